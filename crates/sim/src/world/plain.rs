//! Plain jobs: clients create them, workers do them, people cancel, retry, replay and give them up. Servers decide on
//! what they remember of a job, which may be old; its revision is the guard.
//!
//! Chance is drawn from a generator of its own, so that plain jobs disturb the runs of a seed as little as possible.

use serde_json::json;
use uuid::Uuid;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobBackoff, JobInput, JobSpec, Outcome};
use windlass_engine::money::Kind;
use windlass_engine::retry::{Backoff, Fault as JobFault, FaultKind};
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::{JobOrigin, JobQuery, JobRow, ReadyQuery};
use windlass_store::page::Part;
use windlass_store::project::job_postings;
use windlass_store::{Refusal, StoreError};

use super::jobs::{moved, payment};
use super::{Boxed, Happening, World};
use crate::bug::Bug;
use crate::checker::Violation;
use crate::disk::Heard;
use crate::fault::Fault;
use crate::rng::Rng;

/// Short, so that leases are lost often.
const LEASE_MS: u64 = 4_000;
/// How often a server decides again because somebody wrote first.
const TRIES: usize = 8;
pub(super) const QUEUE: &str = "plain";

pub(super) struct Plain {
    pub(super) rng: Rng,
    n_jobs: u128,
    n_replays: u64,
    pub(super) schedules: Vec<super::schedules::Kept>,
}

impl Plain {
    pub(super) fn new(seed: u64) -> Self {
        let rng = Rng::new(seed ^ 0x6a6f_6273);
        Plain { rng, n_jobs: 0, n_replays: 0, schedules: Vec::new() }
    }
}

/// Something that happens to plain jobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    /// A client wants some.
    Create,
    /// Somebody cancels, retries, replays or gives up.
    Meddle,
    /// A worker looks for work.
    Poll(usize),
    /// A worker says that it lives.
    Extend { job: JobId, fence: u64 },
    /// A worker is done.
    Finish { job: JobId, fence: u64, outcome: Boxed<Outcome> },
}

impl Deed {
    /// Whether somebody wants something new: at rest nobody does.
    pub(super) fn is_wish(&self) -> bool {
        match self {
            Deed::Create | Deed::Meddle => true,
            Deed::Poll(_) | Deed::Extend { .. } | Deed::Finish { .. } => false,
        }
    }
}

/// What a server says to whoever wanted something of a job.
pub(super) enum Said {
    Taken,
    Refused,
    /// The server cannot tell; ask again.
    Nothing,
}

/// What a server knows about a commit of its own.
pub(super) enum Wrote {
    Yes,
    No(StoreError),
    Nothing,
}

impl World {
    pub(super) fn begin_plain(&mut self) {
        let n_clients = self.plain.rng.below(3);
        for _ in 0..n_clients {
            self.plain_after(1, 3_000, Deed::Create);
            self.plain_after(1, 8_000, Deed::Meddle);
        }
        self.begin_schedules();
        for worker in 0..2 {
            self.plain_after(10, 10, Deed::Poll(worker));
        }
    }

    pub(super) fn do_plain(&mut self, deed: Deed) -> Result<(), Violation> {
        match deed {
            Deed::Create => {
                self.plain_after(200, 6_000, Deed::Create);
                self.create_plain()
            }
            Deed::Meddle => {
                self.plain_after(300, 5_000, Deed::Meddle);
                self.meddle_plain()
            }
            Deed::Poll(worker) => {
                self.plain_after(20, 400, Deed::Poll(worker));
                self.poll_plain(worker)
            }
            Deed::Extend { job, fence } => self.extend_plain(job, fence),
            Deed::Finish { job, fence, outcome } => self.finish_plain(job, fence, *outcome.0),
        }
    }

    fn plain_after(&mut self, from_ms: u64, to_ms: u64, deed: Deed) {
        let ms = self.plain.rng.between(from_ms, to_ms);
        self.after(ms, Happening::Plain(deed));
    }

    fn plain_server(&mut self) -> Option<usize> {
        let up: Vec<usize> = (0..self.servers.len()).filter(|at| self.servers[*at].is_up).collect();
        self.plain.rng.pick(&up).copied()
    }

    /// Creates one job or several, all or none; of those whose key is taken, the client is told who has it.
    fn create_plain(&mut self) -> Result<(), Violation> {
        let Some(server) = self.plain_server() else { return Ok(()) };
        let n = if self.plain.rng.percent(30) { self.plain.rng.between(2, 5) } else { 1 };
        let mut changes: Vec<JobChange> = (0..n).filter_map(|_| self.new_plain()).collect();
        while !changes.is_empty() {
            let mut commit = Commit::new(self.disk.command(), self.now);
            commit.jobs.clone_from(&changes);
            match self.write_plain(server, commit)? {
                Wrote::Yes => {
                    changes.iter().for_each(|change| self.checker.jobs.acknowledged(change.job.id));
                    return Ok(());
                }
                Wrote::No(StoreError::Refused(Refusal::Duplicates(taken))) => {
                    // The one that has it may be of this very commit, and is written with the others.
                    changes.retain(|change| taken.iter().all(|duplicate| duplicate.job != change.job.id));
                }
                Wrote::No(_) | Wrote::Nothing => return Ok(()),
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
        Some(JobChange { expected_rev: 0, job, origin: JobOrigin::default() })
    }

    fn meddle_plain(&mut self) -> Result<(), Violation> {
        let Some(server) = self.plain_server() else { return Ok(()) };
        let part = Part { limit: 500, ..Part::default() };
        let query = JobQuery { queue: Some(QUEUE.to_owned()), part, ..JobQuery::default() };
        let rows = self.disk.memory.jobs_now(query).map(|page| page.items).unwrap_or_default();
        let Some(row) = self.plain.rng.pick(&rows).cloned() else { return Ok(()) };
        let job = row.job.id;
        if row.job.is_dead_letter() {
            return self.open_letter(server, job);
        }
        for (fault, percent, input) in
            [(Fault::Cancel, 15, JobInput::Cancel), (Fault::Retry, 30, JobInput::RetryNow)]
        {
            if self.faults.strikes(fault, percent, &mut self.plain.rng) {
                self.ask_plain(server, job, &input)?;
            }
        }
        Ok(())
    }

    /// A dead letter is tried again or given up.
    fn open_letter(&mut self, server: usize, job: JobId) -> Result<(), Violation> {
        if self.plain.rng.percent(25) {
            self.checker.jobs.to_be_given_up(job);
            let discard = JobInput::Discard { reason: "simulated".to_owned() };
            return self.ask_plain(server, job, &discard).map(|_| ());
        }
        if self.bug == Some(Bug::ReplayInTwo) {
            let discard = JobInput::Discard { reason: "replayed".to_owned() };
            self.ask_plain(server, job, &discard)?;
        }
        self.plain.n_replays += u64::from(self.plain.rng.percent(70));
        let replay_id = format!("replay{}", self.plain.n_replays);
        let due = self.plain.rng.percent(30).then(|| self.now.after(3_000));
        let replay = JobInput::Replay { replay_id, priority: Some(1), patch: None, due };
        self.ask_plain(server, job, &replay).map(|_| ())
    }

    fn poll_plain(&mut self, worker: usize) -> Result<(), Violation> {
        let Some(server) = self.plain_server() else { return Ok(()) };
        let queues = vec![QUEUE.to_owned()];
        let query = ReadyQuery { queues, now: self.now, limit: 3, ..ReadyQuery::default() };
        let ready = self.disk.memory.ready_now(query).unwrap_or_default();
        let Some(job) = self.plain.rng.pick(&ready).map(JobRow::id) else { return Ok(()) };
        let claim = JobInput::Claim { worker: format!("plain{worker}"), lease_ms: LEASE_MS };
        let Said::Taken = self.ask_plain(server, job, &claim)? else { return Ok(()) };
        let Some(row) = self.servers[server].jobs.get(&job) else { return Ok(()) };
        let (fence, is_new) = (row.job.fence, row.job.memo.is_none());
        self.work_plain(job, fence, is_new);
        Ok(())
    }

    /// What becomes of a job in the hands of a worker.
    fn work_plain(&mut self, job: JobId, fence: u64, is_new: bool) {
        let (faults, rng) = (&mut self.faults, &mut self.plain.rng);
        let mut ms = rng.between(1, 1_500);
        if faults.strikes(Fault::WorkerDeath, 8, rng) || faults.strikes(Fault::LostAnswer, 4, rng) {
            return;
        }
        let hangs = faults.strikes(Fault::WorkerHang, 8, rng);
        if hangs || faults.strikes(Fault::LateAnswer, 8, rng) {
            ms += rng.between(LEASE_MS, 4 * LEASE_MS);
        }
        let outcome = if faults.strikes(Fault::WorkerError, 30, rng) {
            let fault = JobFault::new(FaultKind::Error, "simulated");
            let fault = if rng.percent(20) { fault.permanent() } else { fault };
            Outcome::Failed { fault, retry_after_ms: rng.percent(20).then_some(2_000) }
        } else if is_new && faults.strikes(Fault::Suspend, 10, rng) {
            Outcome::Suspended { memo: json!({ "of": fence }), recheck_ms: rng.between(10, 3_000) }
        } else {
            Outcome::Done { result: json!({ "fence": fence }) }
        };
        let again = faults.strikes(Fault::DuplicateAnswer, 15, rng).then(|| rng.between(1, 20_000));
        if !hangs {
            self.after(LEASE_MS / 3, Happening::Plain(Deed::Extend { job, fence }));
        }
        let done = Happening::Plain(Deed::Finish { job, fence, outcome: Boxed(Box::new(outcome)) });
        self.after(ms, done.clone());
        if let Some(later) = again {
            self.after(ms + later, done);
        }
    }

    fn extend_plain(&mut self, job: JobId, fence: u64) -> Result<(), Violation> {
        let again = Happening::Plain(Deed::Extend { job, fence });
        let Some(server) = self.plain_server() else {
            self.after(LEASE_MS / 6, again);
            return Ok(());
        };
        match self.ask_plain(server, job, &JobInput::Extend { fence, lease_ms: LEASE_MS })? {
            Said::Taken => self.after(LEASE_MS / 3, again),
            Said::Nothing => self.after(LEASE_MS / 6, again),
            Said::Refused => {}
        }
        Ok(())
    }

    fn finish_plain(&mut self, job: JobId, fence: u64, outcome: Outcome) -> Result<(), Violation> {
        let finish = JobInput::Finish { fence, outcome: outcome.clone() };
        let said = match self.plain_server() {
            Some(server) => self.ask_plain(server, job, &finish)?,
            None => Said::Nothing,
        };
        if let Said::Nothing = said {
            self.after(500, Happening::Plain(Deed::Finish { job, fence, outcome: Boxed(Box::new(outcome)) }));
        }
        Ok(())
    }

    /// A job whose time has come: its wait, its lease, its limit or the grace of its cancel is over.
    pub(super) fn reap_plain(&mut self, server: usize, job: JobId) -> Result<(), Violation> {
        let Some((row, is_kept)) = self.plain_row(server, job) else { return Ok(()) };
        let Some(input) = row.job.overdue(self.now) else {
            // What it remembers may be old; the next one to look reads it.
            self.servers[server].jobs.remove(&job);
            return Ok(());
        };
        if self.bug == Some(Bug::ReaperIgnoresFence) && is_kept {
            let Some(mut change) = moved(&row, input, self.now) else { return Ok(()) };
            change.expected_rev = self.disk.job(job).map_or(0, |stored| stored.rev);
            let mut commit = Commit::new(self.disk.command(), self.now);
            commit.jobs.push(change);
            return self.write_plain(server, commit).map(|_| ());
        }
        self.ask_plain(server, job, &input).map(|_| ())
    }

    /// A job as the server remembers it, or as it is stored; and whether it is the former.
    fn plain_row(&mut self, server: usize, job: JobId) -> Option<(JobRow, bool)> {
        if let Some(row) = self.servers[server].jobs.get(&job) {
            return Some((row.clone(), true));
        }
        let row = self.disk.job(job)?;
        self.servers[server].jobs.insert(job, row.clone());
        Some((row, false))
    }

    /// Takes an input to a job, as a server does. A no is never said without looking.
    pub(super) fn ask_plain(
        &mut self,
        server: usize,
        job: JobId,
        input: &JobInput,
    ) -> Result<Said, Violation> {
        for _ in 0..TRIES {
            let Some((row, is_kept)) = self.plain_row(server, job) else { return Ok(Said::Refused) };
            let Some(change) = self.decided(&row, input) else {
                self.servers[server].jobs.remove(&job);
                if is_kept {
                    continue;
                }
                return Ok(match row.job.decide(input.clone(), self.now) {
                    Ok(_) => Said::Taken,
                    Err(_) => Said::Refused,
                });
            };
            let mut commit = Commit::new(self.disk.command(), self.now);
            commit.jobs.push(change);
            match self.write_plain(server, commit)? {
                Wrote::Yes => return Ok(Said::Taken),
                Wrote::No(StoreError::Conflict { .. }) => {
                    self.servers[server].jobs.remove(&job);
                }
                Wrote::No(StoreError::Refused(_)) => return Ok(Said::Refused),
                Wrote::No(_) | Wrote::Nothing => return Ok(Said::Nothing),
            }
        }
        Ok(Said::Nothing)
    }

    /// A job whose wait is over can be claimed, whether or not somebody has said so.
    fn decided(&self, row: &JobRow, input: &JobInput) -> Option<JobChange> {
        let due = row.job.overdue(self.now).filter(|_| matches!(input, JobInput::Claim { .. }));
        let due = due.filter(|due| *due == JobInput::Due).and_then(|due| moved(row, due, self.now));
        let due = due.map(|change| JobRow { rev: row.rev, job: change.job, origin: change.origin });
        moved(due.as_ref().unwrap_or(row), input.clone(), self.now)
    }

    /// Writes a commit about jobs; the server remembers what it wrote, unless it dies of it.
    pub(super) fn write_plain(&mut self, server: usize, mut commit: Commit) -> Result<Wrote, Violation> {
        commit.postings = job_postings(&commit.jobs);
        if self.bug == Some(Bug::NoRefund) {
            commit.postings.retain(|posting| posting.movement.kind != Kind::Refund);
        }
        let heard = self.disk.commit(commit.clone(), &mut self.faults, &mut self.plain.rng);
        if matches!(heard, Heard::Answer(Ok(_)) | Heard::Silence { happened: true }) {
            self.checker.jobs.committed(&commit)?;
            for posting in &commit.postings {
                self.checker.money.posted_or_told_again(&posting.account, &posting.movement)?;
            }
            let ids = commit.jobs.iter().map(|change| change.job.id.uuid().as_u128().to_le_bytes());
            let bytes: Vec<u8> = ids.flatten().collect();
            self.trace(&bytes);
        }
        let wrote = match heard {
            Heard::Answer(Ok(_)) => Wrote::Yes,
            Heard::Answer(Err(error)) => Wrote::No(error),
            // An unknown outcome is looked up, never guessed.
            Heard::Silence { .. } => match self.disk.looked_up(commit.command) {
                Some(_) => Wrote::Yes,
                None => Wrote::Nothing,
            },
        };
        if matches!(wrote, Wrote::Yes) {
            if self.faults.strikes(Fault::CrashBeforeEffects, 1, &mut self.plain.rng) {
                let ms = self.plain.rng.between(100, 20_000);
                self.crash_for(server, ms);
                return Ok(Wrote::Nothing);
            }
            for JobChange { expected_rev, job, origin } in commit.jobs {
                self.servers[server].jobs.insert(job.id, JobRow { rev: expected_rev + 1, job, origin });
            }
        }
        Ok(wrote)
    }
}
