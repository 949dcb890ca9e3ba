//! Plain jobs: clients create them, workers perform them, operators cancel, retry, replay and discard them. Servers
//! decide on cached rows, which may be outdated; the revision guards each commit.
//!
//! Plain jobs have their own random generator, so that they influence the runs of a seed as little as possible.

use serde_json::json;
use uuid::Uuid;
use windlass_engine::counter::{Fence, Revision};
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobBackoff, JobInput, JobOutcome, JobSpec};
use windlass_engine::money::MovementKind;
use windlass_engine::project::Project;
use windlass_engine::retry::{Backoff, Fault as JobFault, FaultKind};
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::{JobOrigin, JobQuery, JobRow, ReadyQuery};
use windlass_store::page::Part;
use windlass_store::projection::job_postings;
use windlass_store::{Refusal, StoreError};

use super::pull_workers::{moved, payment};
use super::{SimEvent, SimWorld, Unordered};
use crate::bug::PlantedBug;
use crate::checker::Violation;
use crate::fault::SimFault;
use crate::rng::SimRng;
use crate::store::CommitReply;

/// Short, so that leases expire often.
const LEASE_MS: u64 = 4_000;
/// How often a server decides again after a conflict.
const RETRIES_MAX: usize = 8;
pub(super) const QUEUE: &str = "plain";

pub(super) struct PlainJobs {
    pub(super) rng: SimRng,
    n_jobs: u128,
    n_replays: u64,
    pub(super) schedules: Vec<super::schedules::SimSchedule>,
}

impl PlainJobs {
    pub(super) fn new(seed: u64) -> Self {
        let rng = SimRng::new(seed ^ 0x6a6f_6273);
        PlainJobs { rng, n_jobs: 0, n_replays: 0, schedules: Vec::new() }
    }
}

/// An action on plain jobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PlainAction {
    /// A client creates jobs.
    Create,
    /// An operator cancels, retries, replays or discards a job.
    Operate,
    /// A worker asks for a job.
    Poll(usize),
    /// A worker extends its lease.
    Extend { job: JobId, fence: Fence },
    /// A worker reports its result.
    Finish { job: JobId, fence: Fence, outcome: Unordered<JobOutcome> },
}

impl PlainAction {
    /// Whether the action adds work: none is added while the world settles.
    pub(super) fn is_new_work(&self) -> bool {
        match self {
            PlainAction::Create | PlainAction::Operate => true,
            PlainAction::Poll(_) | PlainAction::Extend { .. } | PlainAction::Finish { .. } => false,
        }
    }
}

/// The reply of a server to an action on a job.
pub(super) enum JobReply {
    Taken,
    Refused,
    /// The outcome is unknown; ask again.
    Nothing,
}

/// The outcome of a commit, as its server knows it.
pub(super) enum JobWriteOutcome {
    Yes,
    No(StoreError),
    Nothing,
}

impl SimWorld {
    pub(super) fn begin_plain(&mut self) {
        let n_clients = self.plain.rng.below(3);
        for _ in 0..n_clients {
            self.plain_after(1, 3_000, PlainAction::Create);
            self.plain_after(1, 8_000, PlainAction::Operate);
        }
        self.begin_schedules();
        for worker in 0..2 {
            self.plain_after(10, 10, PlainAction::Poll(worker));
        }
    }

    pub(super) fn do_plain(&mut self, action: PlainAction) -> Result<(), Violation> {
        match action {
            PlainAction::Create => {
                self.plain_after(200, 6_000, PlainAction::Create);
                self.create_plain()
            }
            PlainAction::Operate => {
                self.plain_after(300, 5_000, PlainAction::Operate);
                self.operate_plain()
            }
            PlainAction::Poll(worker) => {
                self.plain_after(20, 400, PlainAction::Poll(worker));
                self.poll_plain(worker)
            }
            PlainAction::Extend { job, fence } => self.extend_plain(job, fence),
            PlainAction::Finish { job, fence, outcome } => self.finish_plain(job, fence, *outcome.0),
        }
    }

    fn plain_after(&mut self, from_ms: u64, to_ms: u64, action: PlainAction) {
        let ms = self.plain.rng.between(from_ms, to_ms);
        self.after(ms, SimEvent::Plain(action));
    }

    fn plain_server(&mut self) -> Option<usize> {
        let up: Vec<usize> = (0..self.servers.len()).filter(|at| self.servers[*at].is_up).collect();
        self.plain.rng.pick(&up).copied()
    }

    /// Creates one job or several, all or none; for a duplicate key the client is told the existing job.
    fn create_plain(&mut self) -> Result<(), Violation> {
        let Some(server) = self.plain_server() else { return Ok(()) };
        let n = if self.plain.rng.percent(30) { self.plain.rng.between(2, 5) } else { 1 };
        let mut changes: Vec<JobChange> = (0..n).filter_map(|_| self.new_plain()).collect();
        while !changes.is_empty() {
            let mut commit = Commit::new(&Project::DEFAULT, self.store.command(), self.now);
            commit.jobs.clone_from(&changes);
            match self.write_plain(server, commit)? {
                JobWriteOutcome::Yes => {
                    changes.iter().for_each(|change| self.checker.jobs.acknowledged(change.job.id));
                    return Ok(());
                }
                JobWriteOutcome::No(StoreError::Refused(Refusal::Duplicates(taken))) => {
                    // The existing job may be in this very commit, and is written with the others.
                    changes.retain(|change| taken.iter().all(|duplicate| duplicate.job != change.job.id));
                }
                JobWriteOutcome::No(_) | JobWriteOutcome::Nothing => return Ok(()),
            }
        }
        Ok(())
    }

    fn new_plain(&mut self) -> Option<JobChange> {
        self.plain.n_jobs += 1;
        let id = JobId::new(Uuid::from_u128((1 << 101) | self.plain.n_jobs));
        let (account, price) = payment(self.plain.n_jobs).unzip();
        let (now, rng) = (self.now, &mut self.plain.rng);
        let base_ms = rng.between(0, 2_000);
        let keyed = rng.percent(30);
        let spec = JobSpec {
            priority: i32::try_from(rng.below(3)).unwrap_or(0),
            dedup_key: if keyed { format!("key{}", rng.below(2)) } else { String::new() },
            unique_for_ms: if keyed && rng.percent(30) { 5_000 } else { 0 },
            run_at: rng.percent(20).then(|| now.after(rng.between(0, 10_000))),
            max_retries: u32::try_from(rng.between(1, 4)).unwrap_or(1),
            timeout_ms: if rng.percent(30) { 10_000 } else { 0 },
            backoff: JobBackoff { kind: Backoff::Exponential, base_ms, cap_ms: 5_000, jitter: true },
            account,
            price,
            ..JobSpec::new("work", QUEUE)
        };
        let (job, _) = Job::create(id, spec, self.now).ok()?;
        Some(JobChange { expected_rev: Revision(0), job, origin: JobOrigin::default() })
    }

    fn operate_plain(&mut self) -> Result<(), Violation> {
        let Some(server) = self.plain_server() else { return Ok(()) };
        let part = Part { limit: 500, ..Part::default() };
        let query = JobQuery { queue: Some(QUEUE.to_owned()), part, ..JobQuery::default() };
        let rows =
            self.store.memory.jobs_now(&Project::DEFAULT, query).map(|page| page.items).unwrap_or_default();
        let Some(row) = self.plain.rng.pick(&rows).cloned() else { return Ok(()) };
        let job = row.job.id;
        if row.job.is_dead_letter() {
            return self.open_dead_letter(server, job);
        }
        for (fault, percent, input) in
            [(SimFault::Cancel, 15, JobInput::Cancel), (SimFault::Retry, 30, JobInput::RetryNow)]
        {
            if self.faults.strikes(fault, percent, &mut self.plain.rng) {
                self.submit_plain(server, job, &input)?;
            }
        }
        Ok(())
    }

    /// Replays or discards a dead letter.
    fn open_dead_letter(&mut self, server: usize, job: JobId) -> Result<(), Violation> {
        if self.plain.rng.percent(25) {
            self.checker.jobs.to_be_given_up(job);
            let discard = JobInput::Discard { reason: "simulated".to_owned() };
            return self.submit_plain(server, job, &discard).map(|_| ());
        }
        if self.bug == Some(PlantedBug::ReplayInTwo) {
            let discard = JobInput::Discard { reason: "replayed".to_owned() };
            self.submit_plain(server, job, &discard)?;
        }
        self.plain.n_replays += u64::from(self.plain.rng.percent(70));
        let replay_id = format!("replay{}", self.plain.n_replays);
        let due = self.plain.rng.percent(30).then(|| self.now.after(3_000));
        let replay = JobInput::Replay { replay_id, priority: Some(1), patch: None, due };
        self.submit_plain(server, job, &replay).map(|_| ())
    }

    fn poll_plain(&mut self, worker: usize) -> Result<(), Violation> {
        let Some(server) = self.plain_server() else { return Ok(()) };
        let queues = vec![QUEUE.to_owned()];
        let query = ReadyQuery { queues, now: self.now, limit: 3, ..ReadyQuery::default() };
        let ready = self.store.memory.ready_now(&Project::DEFAULT, query).unwrap_or_default();
        let Some(job) = self.plain.rng.pick(&ready).map(JobRow::id) else { return Ok(()) };
        let claim = JobInput::Claim { worker: format!("plain{worker}"), lease_ms: LEASE_MS };
        let JobReply::Taken = self.submit_plain(server, job, &claim)? else { return Ok(()) };
        let Some(row) = self.servers[server].jobs.get(&job) else { return Ok(()) };
        let (fence, is_new) = (row.job.fence, row.job.memo.is_none());
        self.work_plain(job, fence, is_new);
        Ok(())
    }

    /// Schedules the behavior of a worker that holds a job.
    fn work_plain(&mut self, job: JobId, fence: Fence, is_new: bool) {
        let (faults, rng) = (&mut self.faults, &mut self.plain.rng);
        let mut ms = rng.between(1, 1_500);
        if faults.strikes(SimFault::WorkerDeath, 8, rng) || faults.strikes(SimFault::LostAnswer, 4, rng) {
            return;
        }
        let hangs = faults.strikes(SimFault::WorkerHang, 8, rng);
        if hangs || faults.strikes(SimFault::LateAnswer, 8, rng) {
            ms += rng.between(LEASE_MS, 4 * LEASE_MS);
        }
        let outcome = if faults.strikes(SimFault::WorkerError, 30, rng) {
            let fault = JobFault::new(FaultKind::Error, "simulated");
            let fault = if rng.percent(20) { fault.permanent() } else { fault };
            JobOutcome::Failed { fault, retry_after_ms: rng.percent(20).then_some(2_000) }
        } else if is_new && faults.strikes(SimFault::Suspend, 10, rng) {
            JobOutcome::Suspended { memo: json!({ "of": fence }), recheck_ms: rng.between(10, 3_000) }
        } else {
            JobOutcome::Done { result: json!({ "fence": fence }) }
        };
        let again = faults.strikes(SimFault::DuplicateAnswer, 15, rng).then(|| rng.between(1, 20_000));
        if !hangs {
            self.after(LEASE_MS / 3, SimEvent::Plain(PlainAction::Extend { job, fence }));
        }
        let done = SimEvent::Plain(PlainAction::Finish { job, fence, outcome: Unordered(Box::new(outcome)) });
        self.after(ms, done.clone());
        if let Some(later) = again {
            self.after(ms + later, done);
        }
    }

    fn extend_plain(&mut self, job: JobId, fence: Fence) -> Result<(), Violation> {
        let again = SimEvent::Plain(PlainAction::Extend { job, fence });
        let Some(server) = self.plain_server() else {
            self.after(LEASE_MS / 6, again);
            return Ok(());
        };
        match self.submit_plain(server, job, &JobInput::Extend { fence, lease_ms: LEASE_MS })? {
            JobReply::Taken => self.after(LEASE_MS / 3, again),
            JobReply::Nothing => self.after(LEASE_MS / 6, again),
            JobReply::Refused => {}
        }
        Ok(())
    }

    fn finish_plain(&mut self, job: JobId, fence: Fence, outcome: JobOutcome) -> Result<(), Violation> {
        let finish = JobInput::Finish { fence, outcome: outcome.clone() };
        let reply = match self.plain_server() {
            Some(server) => self.submit_plain(server, job, &finish)?,
            None => JobReply::Nothing,
        };
        if let JobReply::Nothing = reply {
            self.after(
                500,
                SimEvent::Plain(PlainAction::Finish { job, fence, outcome: Unordered(Box::new(outcome)) }),
            );
        }
        Ok(())
    }

    /// Handles a due job: its delay, its lease, its time limit or the grace of its cancel is over.
    pub(super) fn reap_plain(&mut self, server: usize, job: JobId) -> Result<(), Violation> {
        let Some((row, is_kept)) = self.plain_row(server, job) else { return Ok(()) };
        let Some(input) = row.job.overdue(self.now) else {
            // The cached row may be outdated; the next attempt reads the store.
            self.servers[server].jobs.remove(&job);
            return Ok(());
        };
        if self.bug == Some(PlantedBug::ReaperIgnoresFence) && is_kept {
            let Some(mut change) = moved(&row, input, self.now) else { return Ok(()) };
            change.expected_rev = self.store.job(job).map_or(Revision::ZERO, |stored| stored.rev);
            let mut commit = Commit::new(&Project::DEFAULT, self.store.command(), self.now);
            commit.jobs.push(change);
            return self.write_plain(server, commit).map(|_| ());
        }
        self.submit_plain(server, job, &input).map(|_| ())
    }

    /// The cached row of a job or the stored one, and whether it is the cached one.
    fn plain_row(&mut self, server: usize, job: JobId) -> Option<(JobRow, bool)> {
        if let Some(row) = self.servers[server].jobs.get(&job) {
            return Some((row.clone(), true));
        }
        let row = self.store.job(job)?;
        self.servers[server].jobs.insert(job, row.clone());
        Some((row, false))
    }

    /// Takes an input to a job. A refusal on a cached row is checked against the store.
    pub(super) fn submit_plain(
        &mut self,
        server: usize,
        job: JobId,
        input: &JobInput,
    ) -> Result<JobReply, Violation> {
        for _ in 0..RETRIES_MAX {
            let Some((row, is_kept)) = self.plain_row(server, job) else { return Ok(JobReply::Refused) };
            let Some(change) = self.decided(&row, input) else {
                self.servers[server].jobs.remove(&job);
                if is_kept {
                    continue;
                }
                return Ok(match row.job.decide(input.clone(), self.now) {
                    Ok(_) => JobReply::Taken,
                    Err(_) => JobReply::Refused,
                });
            };
            let mut commit = Commit::new(&Project::DEFAULT, self.store.command(), self.now);
            commit.jobs.push(change);
            match self.write_plain(server, commit)? {
                JobWriteOutcome::Yes => return Ok(JobReply::Taken),
                JobWriteOutcome::No(StoreError::Conflict { .. }) => {
                    self.servers[server].jobs.remove(&job);
                }
                JobWriteOutcome::No(StoreError::Refused(_)) => return Ok(JobReply::Refused),
                JobWriteOutcome::No(_) | JobWriteOutcome::Nothing => return Ok(JobReply::Nothing),
            }
        }
        Ok(JobReply::Nothing)
    }

    /// A job whose delay is over can be claimed, even before a server has recorded it.
    fn decided(&self, row: &JobRow, input: &JobInput) -> Option<JobChange> {
        let due = row.job.overdue(self.now).filter(|_| matches!(input, JobInput::Claim { .. }));
        let due = due.filter(|due| *due == JobInput::Due).and_then(|due| moved(row, due, self.now));
        let due = due.map(|change| JobRow { rev: row.rev, job: change.job, origin: change.origin });
        moved(due.as_ref().unwrap_or(row), input.clone(), self.now)
    }

    /// Writes a commit about jobs; the server caches the new rows unless it crashes.
    pub(super) fn write_plain(
        &mut self,
        server: usize,
        mut commit: Commit,
    ) -> Result<JobWriteOutcome, Violation> {
        commit.postings = job_postings(&commit.jobs);
        if self.bug == Some(PlantedBug::NoRefund) {
            commit.postings.retain(|posting| posting.movement.kind != MovementKind::Refund);
        }
        let heard = self.store.commit(commit.clone(), &mut self.faults, &mut self.plain.rng);
        if matches!(heard, CommitReply::Answer(Ok(_)) | CommitReply::Unknown { happened: true }) {
            self.checker.jobs.committed(&commit)?;
            for posting in &commit.postings {
                self.checker.money.posted_again(&posting.account, &posting.movement)?;
            }
            let ids = commit.jobs.iter().map(|change| change.job.id.uuid().as_u128().to_le_bytes());
            let bytes: Vec<u8> = ids.flatten().collect();
            self.trace(&bytes);
        }
        let wrote = match heard {
            CommitReply::Answer(Ok(_)) => JobWriteOutcome::Yes,
            CommitReply::Answer(Err(error)) => JobWriteOutcome::No(error),
            // An unknown outcome is looked up, never guessed.
            CommitReply::Unknown { .. } => match self.store.looked_up(commit.command) {
                Some(_) => JobWriteOutcome::Yes,
                None => JobWriteOutcome::Nothing,
            },
        };
        if matches!(wrote, JobWriteOutcome::Yes) {
            if self.faults.strikes(SimFault::CrashBeforeEffects, 1, &mut self.plain.rng) {
                let ms = self.plain.rng.between(100, 20_000);
                self.crash_for(server, ms);
                return Ok(JobWriteOutcome::Nothing);
            }
            for JobChange { expected_rev, job, origin } in commit.jobs {
                self.servers[server].jobs.insert(job.id, JobRow { rev: expected_rev.next(), job, origin });
            }
        }
        Ok(wrote)
    }
}
