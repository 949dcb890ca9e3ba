//! Firing: what a schedule's rule decides becomes jobs and runs.
//!
//! What is started, the firing and the schedule's progress are one commit, guarded by the schedule's revision: whoever
//! dies in between leaves nothing half done, and of two servers that look at the same slot one meets a conflict, reads
//! and decides again. Runs are started one commit at a time, each with the progress up to its slot.

use std::collections::BTreeSet;
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::event::Start;
use windlass_engine::id::{CommandId, JobId, ScheduleId};
use windlass_engine::input::{Input, Refusal as Refused};
use windlass_engine::job::{Job, JobSpec};
use windlass_engine::problem::Problem;
use windlass_engine::schedule::{Decision, Firing, Overlap};
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange, ScheduleChange};
use windlass_store::error::Subject;
use windlass_store::job::JobOrigin;
use windlass_store::project::job_postings;
use windlass_store::run::Origin;
use windlass_store::schedule::{FiringRow, Misfire, ScheduleRow, Scheduled, Started};
use windlass_store::{Refusal, StoreError};

use super::Target;
use super::check::NoVersion;
use crate::job::JobError;
use crate::mailbox::Told;
use crate::run::Along;
use crate::{Runtime, RuntimeError, SubmitError};

/// How often a schedule is decided about again: others write to it once per slot, not all the time.
pub(super) const TRIES: u64 = 10;
/// When to come again after that.
pub(super) const AGAIN: Duration = Duration::from_millis(500);

/// What came of trying to start something.
pub(super) enum Tried {
    Fired,
    /// Somebody wrote first. If the schedule has not moved, this slot has been fired already.
    Again(Option<Firing>),
    /// It cannot be started, and will not be by trying again.
    Misfit(Misfit),
}

/// Why something cannot be started.
pub(super) struct Misfit {
    /// The field of the schedule that is to blame.
    pub(super) path: &'static str,
    pub(super) reason: String,
    /// A job with the same deduplication key.
    pub(super) existing: Option<JobId>,
}

impl Misfit {
    fn new(path: &'static str, reason: impl ToString) -> Self {
        Misfit { path, reason: reason.to_string(), existing: None }
    }
}

impl Runtime {
    /// Does what a schedule asks for at `now`.
    pub(super) async fn fire(&self, id: ScheduleId, now: Timestamp) -> Result<(), RuntimeError> {
        let mut gone = BTreeSet::new();
        let mut doubt: Option<(u64, Firing)> = None;
        for _ in 0..TRIES {
            let Some(scheduled) = self.observe(id).await? else {
                self.calendar().forget(id);
                return Ok(());
            };
            gone.extend(doubt.take().filter(|(rev, _)| *rev == scheduled.rev).map(|(_, firing)| firing));
            let ScheduleRow { schedule, progress, .. } = &scheduled.row;
            let mut decision = schedule.plan(progress, now, scheduled.running.len());
            decision.fire.retain(|firing| !gone.contains(firing));
            if is_no_news(&scheduled.row, &decision) {
                self.calendar().set(&scheduled);
                return Ok(());
            }
            if decision.cancel_running {
                self.cancel_started(&scheduled.running).await?;
            }
            let rev = scheduled.rev;
            match self.carry(scheduled, &decision, now).await? {
                None => return Ok(()),
                Some(in_doubt) => doubt = in_doubt.map(|firing| (rev, firing)),
            }
        }
        Err(RuntimeError::Busy { retry_after: AGAIN })
    }

    /// The schedule as it is stored. The end of what its slots may wait for is not missed from here on.
    async fn observe(&self, id: ScheduleId) -> Result<Option<Scheduled>, RuntimeError> {
        let first = self.store().schedules(Some(id)).await?.pop();
        let Some(scheduled) = &first else { return Ok(None) };
        if scheduled.row.schedule.overlap != Overlap::Queue || scheduled.running.is_empty() {
            return Ok(first);
        }
        self.calendar().watch(id, scheduled.running.iter().copied());
        // What ended before it was watched has ended now.
        Ok(self.store().schedules(Some(id)).await?.pop())
    }

    /// Carries out a decision. `Some` = somebody else wrote first: decide again.
    async fn carry(
        &self,
        scheduled: Scheduled,
        decision: &Decision,
        now: Timestamp,
    ) -> Result<Option<Option<Firing>>, RuntimeError> {
        let Scheduled { mut rev, mut row, mut running } = scheduled;
        let (before, target) = (row.progress.clone(), target_of(&row));
        let (total, at_once) = (decision.fire.len(), at_once(target.as_ref().ok(), decision.fire.len()));
        let mut n = 0;
        loop {
            let part = &decision.fire[n..total.min(n + at_once)];
            n += part.len();
            let mut next = row.clone();
            (next.progress, next.next_at) = decision.after(&before, n);
            next.updated_at = now;
            if n == total {
                let n_passed = u64::try_from(decision.n_passed).unwrap_or(u64::MAX);
                next.history.n_passed = next.history.n_passed.saturating_add(n_passed);
            }
            match self.start_part(rev, &mut next, target.as_ref(), part, now).await? {
                Tried::Fired => running.extend(part.iter().filter_map(|firing| started(&target, *firing))),
                Tried::Again(doubt) => return Ok(Some(doubt)),
                Tried::Misfit(misfit) => {
                    let Some(slot) = part.last().map(|firing| firing.slot) else { return Ok(Some(None)) };
                    tracing::warn!(schedule = %row.id(), %slot, reason = %misfit.reason, "a slot started nothing");
                    let n_passed = u64::try_from(part.len()).unwrap_or(u64::MAX);
                    next.history.n_passed = next.history.n_passed.saturating_add(n_passed);
                    next.history.last_error = Some(Misfire { slot, at: now, reason: misfit.reason });
                    let change = ScheduleChange { expected_rev: rev, row: next.clone(), delete: false };
                    if !self.commit_schedule(change, now).await? {
                        return Ok(Some(None));
                    }
                }
            }
            (rev, row) = (rev.saturating_add(1), next);
            if n == total {
                self.calendar().set(&Scheduled { rev, row, running });
                return Ok(None);
            }
        }
    }

    /// Starts some firings together with the schedule as it is to be, which is told what was fired.
    pub(super) async fn start_part(
        &self,
        expected_rev: u64,
        next: &mut ScheduleRow,
        target: Result<&Target, &String>,
        part: &[Firing],
        now: Timestamp,
    ) -> Result<Tried, RuntimeError> {
        let change = |row: &ScheduleRow| ScheduleChange { expected_rev, row: row.clone(), delete: false };
        let Some(last) = part.last().copied() else {
            let is_done = self.commit_schedule(change(next), now).await?;
            return Ok(if is_done { Tried::Fired } else { Tried::Again(None) });
        };
        let target = match target {
            Ok(target) => target,
            Err(reason) => return Ok(Tried::Misfit(Misfit::new("$.task", reason))),
        };
        let rows: Vec<FiringRow> = part
            .iter()
            .map(|firing| FiringRow { firing: *firing, started: starts(target, *firing) })
            .collect();
        let kept = next.history.clone();
        let n_fired = u64::try_from(part.len()).unwrap_or(u64::MAX);
        next.history.n_fired = next.history.n_fired.saturating_add(n_fired);
        next.history.last = rows.last().copied();
        next.history.last_error = None;
        if next.schedule.overlap == Overlap::Queue {
            self.calendar().watch(next.id(), rows.iter().map(|row| row.started));
        }
        let tried = match target {
            Target::Job(spec) => self.start_jobs(change(next), spec, rows, now).await?,
            Target::Flow { .. } => self.start_run(change(next), target, last).await?,
        };
        if !matches!(tried, Tried::Fired) {
            next.history = kept;
        }
        Ok(tried)
    }

    /// Creates the jobs of firings, all in one commit.
    async fn start_jobs(
        &self,
        change: ScheduleChange,
        spec: &JobSpec,
        firings: Vec<FiringRow>,
        now: Timestamp,
    ) -> Result<Tried, RuntimeError> {
        let origin = JobOrigin { schedule: Some(change.row.id()), call: None };
        let mut jobs = Vec::with_capacity(firings.len());
        if let Some(account) = &spec.account
            && self.store().account(account).await?.is_none()
        {
            let refusal = Refusal::UnknownAccount(account.clone());
            return Ok(Tried::Misfit(Misfit::new("$.task.account", refusal)));
        }
        let spec = self.priced(vec![spec.clone()]).await?.pop().unwrap_or_else(|| spec.clone());
        for FiringRow { firing, .. } in &firings {
            match Job::create(firing.job(), spec.clone(), now) {
                Ok((job, _)) => jobs.push(JobChange { expected_rev: 0, job, origin: origin.clone() }),
                Err(problems) => return Ok(Tried::Misfit(Misfit::new("$.task", list(&problems)))),
            }
        }
        let firing_of = |id: JobId| firings.iter().map(|row| row.firing).find(|firing| firing.job() == id);
        let commit = Commit {
            postings: job_postings(&jobs),
            jobs: jobs.clone(),
            schedules: vec![change],
            firings: firings.clone(),
            ..Commit::new(CommandId::new(Uuid::now_v7()), now)
        };
        Ok(match self.commit_looked_up(commit).await {
            Ok(()) => {
                self.committed_jobs(&jobs);
                Tried::Fired
            }
            Err(StoreError::Conflict { what: Subject::Job(id), .. }) => Tried::Again(firing_of(id)),
            Err(StoreError::Conflict { .. }) => Tried::Again(None),
            Err(StoreError::Refused(Refusal::AlreadyFired(firing))) => Tried::Again(Some(firing)),
            Err(StoreError::Refused(Refusal::Duplicates(taken))) => {
                let existing = taken.first().map(|duplicate| duplicate.existing);
                let refusal = Refusal::Duplicates(taken);
                Tried::Misfit(Misfit { existing, ..Misfit::new("$.task.dedup_key", refusal) })
            }
            Err(StoreError::Refused(refusal @ Refusal::Short { .. })) => {
                Tried::Misfit(Misfit::new("$.task.account", refusal))
            }
            Err(StoreError::Refused(refusal)) => Tried::Misfit(Misfit::new("$.task", refusal)),
            Err(error @ (StoreError::Unavailable(_) | StoreError::Corrupt(_))) => return Err(error.into()),
        })
    }

    /// Starts the run of a firing: its first entry, the firing and the schedule's progress are one commit.
    async fn start_run(
        &self,
        change: ScheduleChange,
        target: &Target,
        firing: Firing,
    ) -> Result<Tried, RuntimeError> {
        let Target::Flow { flow, version, params, account } = target else {
            return Err(RuntimeError::Broken);
        };
        let version = match self.version_to_start(*flow, *version).await? {
            Ok(version) => version,
            Err(NoVersion { path, reason }) => return Ok(Tried::Misfit(Misfit::new(path, reason))),
        };
        let start = Start { params: params.clone(), account: account.clone(), ..Start::default() };
        if let Some(account) = account
            && let Err(error) = self.check_account(account).await
        {
            return misfit_or_trouble(error);
        }
        let start = match self.complete(start, version.id).await {
            Ok(start) => start,
            Err(error) => return misfit_or_trouble(error),
        };
        let origin = Origin {
            flow: *flow,
            version: version.id,
            request: None,
            labels: Default::default(),
            account: account.clone(),
            parent: None,
            schedule: Some(firing.schedule),
            created_at: self.clock().now(),
        };
        let firings = vec![FiringRow { firing, started: Started::Run(firing.run()) }];
        let along = Along { create: Some(origin), schedules: vec![change], firings, ..Along::default() };
        Ok(match self.tell(firing.run(), Input::Start(Box::new(start)), along).await {
            Told::Taken(_) => Tried::Fired,
            Told::Outdated | Told::Existing { .. } | Told::Refused(Refused::AlreadyStarted) => {
                Tried::Again(Some(firing))
            }
            Told::Refused(refusal) => Tried::Misfit(Misfit::new("$.params", refusal)),
            Told::UnknownRun => return Err(RuntimeError::Broken),
            Told::Trouble(error) => return misfit_or_trouble(error),
        })
    }

    /// Cancels what a schedule has running. What has ended meanwhile needs no cancelling.
    pub(super) async fn cancel_started(&self, running: &[Started]) -> Result<(), RuntimeError> {
        for started in running {
            match started {
                Started::Job(job) => match self.cancel_job(*job).await {
                    Ok(_) | Err(JobError::Unknown(_) | JobError::Refused(_)) => {}
                    Err(JobError::Runtime(error)) => return Err(error),
                },
                Started::Run(run) => {
                    let reason = Some("its schedule starts the next one".to_owned());
                    let cancel = Input::Cancel { reason, by: None };
                    match self.submit_along(*run, cancel, Along::default()).await {
                        Ok(_)
                        | Err(SubmitError::UnknownRun(_) | SubmitError::Refused(_) | SubmitError::Outdated) =>
                            {}
                        Err(SubmitError::Runtime(error)) => return Err(error),
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes a schedule; `false` = somebody else wrote first.
    pub(super) async fn commit_schedule(
        &self,
        change: ScheduleChange,
        now: Timestamp,
    ) -> Result<bool, RuntimeError> {
        let commit = Commit { schedules: vec![change], ..Commit::new(CommandId::new(Uuid::now_v7()), now) };
        match self.commit_looked_up(commit).await {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// What a schedule starts, or why that cannot be read.
pub(super) fn target_of(row: &ScheduleRow) -> Result<Target, String> {
    serde_json::from_value(row.target.clone())
        .map_err(|error| format!("what the schedule starts cannot be read, save it again: {error}"))
}

/// How many firings go into one commit. A commit is about one run; and of jobs with the same key one is enough.
fn at_once(target: Option<&Target>, n: usize) -> usize {
    match target {
        Some(Target::Job(spec)) if spec.dedup_key.is_empty() => n.max(1),
        Some(Target::Job(_) | Target::Flow { .. }) | None => 1,
    }
}

pub(super) fn starts(target: &Target, firing: Firing) -> Started {
    match target {
        Target::Job(_) => Started::Job(firing.job()),
        Target::Flow { .. } => Started::Run(firing.run()),
    }
}

fn started(target: &Result<Target, String>, firing: Firing) -> Option<Started> {
    target.as_ref().ok().map(|target| starts(target, firing))
}

fn is_no_news(row: &ScheduleRow, decision: &Decision) -> bool {
    decision.fire.is_empty()
        && decision.n_passed == 0
        && decision.progress.waiting == row.progress.waiting
        && decision.next_at == row.next_at
}

/// What comes of trouble with a run that was to be started: some of it does not go away by trying again.
fn misfit_or_trouble(error: RuntimeError) -> Result<Tried, RuntimeError> {
    match error {
        RuntimeError::Busy { .. }
        | RuntimeError::Draining
        | RuntimeError::Store(
            StoreError::Conflict { .. } | StoreError::Unavailable(_) | StoreError::Corrupt(_),
        ) => Err(error),
        RuntimeError::Store(StoreError::Refused(refusal)) => {
            let path = if matches!(refusal, Refusal::UnknownAccount(_)) { "$.account" } else { "$.flow" };
            Ok(Tried::Misfit(Misfit::new(path, refusal)))
        }
        RuntimeError::Definition(_) | RuntimeError::Journal { .. } | RuntimeError::Broken => {
            Ok(Tried::Misfit(Misfit::new("$.flow", error)))
        }
    }
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
