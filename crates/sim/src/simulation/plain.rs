//! Plain jobs: clients create them, workers perform them, operators cancel, retry, replay and discard them. Servers
//! decide on cached rows, which may be outdated; the revision guards each commit.
//!
//! Plain jobs have their own random generator, so that they influence the runs of a seed as little as possible.

use serde_json::json;
use uuid::Uuid;
use windlass_engine::counter::{Fence, Revision};
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobBackoff, JobInput, JobOutcome, JobSpec};
use windlass_engine::money::Amount;
use windlass_engine::money::{MovementKind, Price};
use windlass_engine::project::Project;
use windlass_engine::retry::{Backoff, Fault as JobFault, FaultKind};
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::{JobOrigin, JobQuery, JobRow, ReadyQuery};
use windlass_store::page::Part;
use windlass_store::projection::job_postings;
use windlass_store::{Refusal, StoreError};

use crate::bug::PlantedBug;
use crate::checker::Violation;
use crate::event::{PlainAction, SimEvent, Unordered};
use crate::fault::SimFault;
use crate::rng::SimRng;
use crate::store::CommitReply;
use crate::world::{SimWorld, moment_of, moved};

/// Short, so that leases expire often.
const LEASE_MS: u64 = 4_000;
/// How often a server decides again after a conflict.
const RETRIES_MAX: usize = 8;
pub(super) const QUEUE: &str = "plain";

pub(super) struct PlainJobs {
    rng: SimRng,
    n_jobs: u128,
    n_replays: u64,
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

impl PlainJobs {
    pub(super) fn new(seed: u64) -> Self {
        PlainJobs { rng: SimRng::new(seed ^ 0x6a6f_6273), n_jobs: 0, n_replays: 0 }
    }

    /// Lets clients and operators begin.
    pub(super) fn begin_clients(&mut self, world: &mut SimWorld) {
        let n_clients = self.rng.below(3);
        for _ in 0..n_clients {
            self.act_after(world, 1, 3_000, PlainAction::Create);
            self.act_after(world, 1, 8_000, PlainAction::Operate);
        }
    }

    /// Lets workers begin.
    pub(super) fn begin_workers(&mut self, world: &mut SimWorld) {
        for worker in 0..2 {
            self.act_after(world, 10, 10, PlainAction::Poll(worker));
        }
    }

    /// True with a probability of `percent`.
    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.rng.percent(percent)
    }

    pub(super) fn act(&mut self, world: &mut SimWorld, action: PlainAction) -> Result<(), Violation> {
        match action {
            PlainAction::Create => {
                self.act_after(world, 200, 6_000, PlainAction::Create);
                self.create(world)
            }
            PlainAction::Operate => {
                self.act_after(world, 300, 5_000, PlainAction::Operate);
                self.operate(world)
            }
            PlainAction::Poll(worker) => {
                self.act_after(world, 20, 400, PlainAction::Poll(worker));
                self.poll(world, worker)
            }
            PlainAction::Extend { job, fence } => self.extend(world, job, fence),
            PlainAction::Finish { job, fence, outcome } => self.finish(world, job, fence, *outcome.0),
        }
    }

    fn act_after(&mut self, world: &mut SimWorld, from_ms: u64, to_ms: u64, action: PlainAction) {
        let ms = self.rng.between(from_ms, to_ms);
        world.after(ms, SimEvent::Plain(action));
    }

    fn any_server(&mut self, world: &SimWorld) -> Option<usize> {
        self.rng.pick(&world.servers_up()).copied()
    }

    /// Creates one job or several, all or none; for a duplicate key the client is told the existing job.
    fn create(&mut self, world: &mut SimWorld) -> Result<(), Violation> {
        let Some(server) = self.any_server(world) else { return Ok(()) };
        let n = if self.rng.percent(30) { self.rng.between(2, 5) } else { 1 };
        let mut changes: Vec<JobChange> = (0..n).filter_map(|_| self.new_job(world)).collect();
        while !changes.is_empty() {
            let mut commit = Commit::new(&Project::DEFAULT, world.store.command(), world.now);
            commit.jobs.clone_from(&changes);
            match self.write(world, server, commit)? {
                JobWriteOutcome::Yes => {
                    changes.iter().for_each(|change| world.checker.jobs.acknowledged(change.job.id));
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

    fn new_job(&mut self, world: &mut SimWorld) -> Option<JobChange> {
        self.n_jobs += 1;
        let id = JobId::new(Uuid::from_u128((1 << 101) | self.n_jobs));
        let (account, price) = payment(self.n_jobs).unzip();
        let (now, rng) = (world.now, &mut self.rng);
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
        let (job, _) = Job::create(id, spec, world.now).ok()?;
        Some(JobChange { expected_rev: Revision(0), job, origin: JobOrigin::default() })
    }

    fn operate(&mut self, world: &mut SimWorld) -> Result<(), Violation> {
        let Some(server) = self.any_server(world) else { return Ok(()) };
        let part = Part { limit: 500, ..Part::default() };
        let query = JobQuery { queue: Some(QUEUE.to_owned()), part, ..JobQuery::default() };
        let rows =
            world.store.memory.jobs_now(&Project::DEFAULT, query).map(|page| page.items).unwrap_or_default();
        let Some(row) = self.rng.pick(&rows).cloned() else { return Ok(()) };
        let job = row.job.id;
        if row.job.is_dead_letter() {
            return self.open_dead_letter(world, server, job);
        }
        for (fault, percent, input) in
            [(SimFault::Cancel, 15, JobInput::Cancel), (SimFault::Retry, 30, JobInput::RetryNow)]
        {
            if world.faults.strikes(fault, percent, &mut self.rng) {
                self.submit(world, server, job, &input)?;
            }
        }
        Ok(())
    }

    /// Replays or discards a dead letter.
    fn open_dead_letter(&mut self, world: &mut SimWorld, server: usize, job: JobId) -> Result<(), Violation> {
        if self.rng.percent(25) {
            world.checker.jobs.to_be_given_up(job);
            let discard = JobInput::Discard { reason: "simulated".to_owned() };
            return self.submit(world, server, job, &discard).map(|_| ());
        }
        if world.bug == Some(PlantedBug::ReplayInTwo) {
            let discard = JobInput::Discard { reason: "replayed".to_owned() };
            self.submit(world, server, job, &discard)?;
        }
        self.n_replays += u64::from(self.rng.percent(70));
        let replay_id = format!("replay{}", self.n_replays);
        let due = self.rng.percent(30).then(|| world.now.after(3_000));
        let replay = JobInput::Replay { replay_id, priority: Some(1), patch: None, due };
        self.submit(world, server, job, &replay).map(|_| ())
    }

    fn poll(&mut self, world: &mut SimWorld, worker: usize) -> Result<(), Violation> {
        let Some(server) = self.any_server(world) else { return Ok(()) };
        let queues = vec![QUEUE.to_owned()];
        let query = ReadyQuery { queues, now: world.now, limit: 3, ..ReadyQuery::default() };
        let ready = world.store.memory.ready_now(&Project::DEFAULT, query).unwrap_or_default();
        let Some(job) = self.rng.pick(&ready).map(JobRow::id) else { return Ok(()) };
        let claim = JobInput::Claim { worker: format!("plain{worker}"), lease_ms: LEASE_MS };
        let JobReply::Taken = self.submit(world, server, job, &claim)? else { return Ok(()) };
        let Some(row) = world.servers[server].jobs.get(&job) else { return Ok(()) };
        let (fence, is_new) = (row.job.fence, row.job.memo.is_none());
        self.work(world, job, fence, is_new);
        Ok(())
    }

    /// Schedules the behavior of a worker that holds a job.
    fn work(&mut self, world: &mut SimWorld, job: JobId, fence: Fence, is_new: bool) {
        let (faults, rng) = (&mut world.faults, &mut self.rng);
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
            JobOutcome::Done { result: json!({ "fence": fence }).into() }
        };
        let again = faults.strikes(SimFault::DuplicateAnswer, 15, rng).then(|| rng.between(1, 20_000));
        if !hangs {
            world.after(LEASE_MS / 3, SimEvent::Plain(PlainAction::Extend { job, fence }));
        }
        let done = SimEvent::Plain(PlainAction::Finish { job, fence, outcome: Unordered(Box::new(outcome)) });
        world.after(ms, done.clone());
        if let Some(later) = again {
            world.after(ms + later, done);
        }
    }

    fn extend(&mut self, world: &mut SimWorld, job: JobId, fence: Fence) -> Result<(), Violation> {
        let again = SimEvent::Plain(PlainAction::Extend { job, fence });
        let Some(server) = self.any_server(world) else {
            world.after(LEASE_MS / 6, again);
            return Ok(());
        };
        match self.submit(world, server, job, &JobInput::Extend { fence, lease_ms: LEASE_MS })? {
            JobReply::Taken => world.after(LEASE_MS / 3, again),
            JobReply::Nothing => world.after(LEASE_MS / 6, again),
            JobReply::Refused => {}
        }
        Ok(())
    }

    fn finish(
        &mut self,
        world: &mut SimWorld,
        job: JobId,
        fence: Fence,
        outcome: JobOutcome,
    ) -> Result<(), Violation> {
        let finish = JobInput::Finish { fence, outcome: outcome.clone() };
        let reply = match self.any_server(world) {
            Some(server) => self.submit(world, server, job, &finish)?,
            None => JobReply::Nothing,
        };
        if let JobReply::Nothing = reply {
            world.after(
                500,
                SimEvent::Plain(PlainAction::Finish { job, fence, outcome: Unordered(Box::new(outcome)) }),
            );
        }
        Ok(())
    }

    /// Handles a due job: its delay, its lease, its time limit or the grace of its cancel is over.
    pub(super) fn reap(&mut self, world: &mut SimWorld, server: usize, job: JobId) -> Result<(), Violation> {
        let Some((row, is_kept)) = plain_row(world, server, job) else { return Ok(()) };
        let Some(input) = row.job.overdue(world.now) else {
            // The cached row may be outdated; the next attempt reads the store.
            world.servers[server].jobs.remove(&job);
            return Ok(());
        };
        if world.bug == Some(PlantedBug::ReaperIgnoresFence) && is_kept {
            let Some(mut change) = moved(&row, input, world.now) else { return Ok(()) };
            change.expected_rev = world.store.job(job).map_or(Revision::ZERO, |stored| stored.rev);
            let mut commit = Commit::new(&Project::DEFAULT, world.store.command(), world.now);
            commit.jobs.push(change);
            return self.write(world, server, commit).map(|_| ());
        }
        self.submit(world, server, job, &input).map(|_| ())
    }

    /// Takes an input to a job. A refusal on a cached row is checked against the store.
    pub(super) fn submit(
        &mut self,
        world: &mut SimWorld,
        server: usize,
        job: JobId,
        input: &JobInput,
    ) -> Result<JobReply, Violation> {
        for _ in 0..RETRIES_MAX {
            let Some((row, is_kept)) = plain_row(world, server, job) else { return Ok(JobReply::Refused) };
            let Some(change) = decided(&row, input, world.now) else {
                world.servers[server].jobs.remove(&job);
                if is_kept {
                    continue;
                }
                return Ok(match row.job.decide(input.clone(), world.now) {
                    Ok(_) => JobReply::Taken,
                    Err(_) => JobReply::Refused,
                });
            };
            let mut commit = Commit::new(&Project::DEFAULT, world.store.command(), world.now);
            commit.jobs.push(change);
            match self.write(world, server, commit)? {
                JobWriteOutcome::Yes => return Ok(JobReply::Taken),
                JobWriteOutcome::No(StoreError::Conflict { .. }) => {
                    world.servers[server].jobs.remove(&job);
                }
                JobWriteOutcome::No(StoreError::Refused(_)) => return Ok(JobReply::Refused),
                JobWriteOutcome::No(_) | JobWriteOutcome::Nothing => return Ok(JobReply::Nothing),
            }
        }
        Ok(JobReply::Nothing)
    }

    /// Writes a commit about jobs; the server caches the new rows unless it crashes.
    pub(super) fn write(
        &mut self,
        world: &mut SimWorld,
        server: usize,
        mut commit: Commit,
    ) -> Result<JobWriteOutcome, Violation> {
        commit.postings = job_postings(&commit.jobs);
        if world.bug == Some(PlantedBug::NoRefund) {
            commit.postings.retain(|posting| posting.movement.kind != MovementKind::Refund);
        }
        let heard = world.store.commit(commit.clone(), &mut world.faults, &mut self.rng);
        if matches!(heard, CommitReply::Answer(Ok(_)) | CommitReply::Unknown { happened: true }) {
            let moment = moment_of(world);
            world.checker.jobs.committed(&commit, moment.wall)?;
            world.checker.late.committed(&commit, moment);
            for posting in &commit.postings {
                world.checker.money.posted_again(&posting.account, &posting.movement)?;
            }
            let ids = commit.jobs.iter().map(|change| change.job.id.uuid().as_u128().to_le_bytes());
            let bytes: Vec<u8> = ids.flatten().collect();
            world.trace.mix(&bytes, world.now);
        }
        let wrote = match heard {
            CommitReply::Answer(Ok(_)) => JobWriteOutcome::Yes,
            CommitReply::Answer(Err(error)) => JobWriteOutcome::No(error),
            // An unknown outcome is looked up, never guessed.
            CommitReply::Unknown { .. } => match world.store.looked_up(commit.command) {
                Some(_) => JobWriteOutcome::Yes,
                None => JobWriteOutcome::Nothing,
            },
        };
        if matches!(wrote, JobWriteOutcome::Yes) {
            if world.faults.strikes(SimFault::CrashBeforeEffects, 1, &mut self.rng) {
                let ms = self.rng.between(100, 20_000);
                world.crash_for(server, ms);
                return Ok(JobWriteOutcome::Nothing);
            }
            for JobChange { expected_rev, job, origin } in commit.jobs {
                world.servers[server].jobs.insert(job.id, JobRow { rev: expected_rev.next(), job, origin });
            }
        }
        Ok(wrote)
    }
}

/// The cached row of a job or the stored one, and whether it is the cached one.
fn plain_row(world: &mut SimWorld, server: usize, job: JobId) -> Option<(JobRow, bool)> {
    if let Some(row) = world.servers[server].jobs.get(&job) {
        return Some((row.clone(), true));
    }
    let row = world.store.job(job)?;
    world.servers[server].jobs.insert(job, row.clone());
    Some((row, false))
}

/// A job whose delay is over can be claimed, even before a server has recorded it.
fn decided(row: &JobRow, input: &JobInput, now: Timestamp) -> Option<JobChange> {
    let due = row.job.overdue(now).filter(|_| matches!(input, JobInput::Claim { .. }));
    let due = due.filter(|due| *due == JobInput::Due).and_then(|due| moved(row, due, now));
    let due = due.map(|change| JobRow { rev: row.rev, job: change.job, origin: change.origin });
    moved(due.as_ref().unwrap_or(row), input.clone(), now)
}

/// Every third job has a price of its own; the worker reports the actual cost.
fn payment(n: u128) -> Option<(String, Price)> {
    let unit_price = i64::try_from(n % 7).unwrap_or_default();
    let actual_units = Some(json!("$result.fence"));
    let price = Price { unit_price: Amount(unit_price), min_unit: 1, units: json!(2), actual_units };
    n.is_multiple_of(3).then(|| (format!("account{}", n % 2), price))
}
