//! Firings: the decision of a schedule's rule becomes jobs and runs.
//!
//! The started job or run, the firing and the schedule's progress are one commit, guarded by the schedule's revision: a
//! crash leaves nothing half done, and of two servers that fire the same slot one meets a conflict, reads and decides
//! again. Runs are started one commit at a time, each with the progress up to its slot.

use std::collections::BTreeSet;
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::counter::Revision;
use windlass_engine::event::Start;
use windlass_engine::id::{CommandId, JobId, ScheduleId};
use windlass_engine::input::{self, Input};
use windlass_engine::job::{Job, JobSpec};
use windlass_engine::problem::Problem;
use windlass_engine::schedule::{Decision, Firing, Overlap};
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange, ScheduleChange};
use windlass_store::error::Subject;
use windlass_store::flow::FlowRef;
use windlass_store::job::JobOrigin;
use windlass_store::projection::job_postings;
use windlass_store::run::Origin;
use windlass_store::schedule::{FiringRow, Misfire, ScheduleRow, Scheduled, Started};
use windlass_store::{Refusal, StoreError};

use super::FiringTarget;
use super::check::version_place;
use crate::jobs::JobError;
use crate::part::RuntimePart;
use crate::runs::mailbox::SubmitReply;
use crate::runs::{ExtraWrites, SubmitOptions, VersionChoiceError};
use crate::schedules::Schedules;
use crate::{RuntimeError, SubmitError};

/// How often a schedule is decided about again: others write to it once per slot, not all the time.
pub(super) const ATTEMPTS_MAX: u64 = 10;
/// When to come again after that.
pub(super) const RETRY_DELAY: Duration = Duration::from_millis(500);

/// The result of a start.
pub(super) enum FireOutcome {
    Fired,
    /// Another writer was first. If the schedule's revision is the same, this slot has been fired already.
    Again(Option<Firing>),
    /// It cannot be started, and will not be by trying again.
    StartFailure(StartFailure),
}

/// The result of carrying out a decision.
enum CarryOutcome {
    Done,
    /// Another writer was first. If the schedule's revision is the same, this firing has been fired already.
    DecideAgain(Option<Firing>),
}

/// Why something cannot be started.
pub(super) struct StartFailure {
    /// The field of the schedule that is to blame.
    pub(super) path: &'static str,
    pub(super) reason: String,
    /// A job with the same deduplication key.
    pub(super) existing: Option<JobId>,
}

impl StartFailure {
    fn new(path: &'static str, reason: impl ToString) -> Self {
        StartFailure { path, reason: reason.to_string(), existing: None }
    }
}

impl Schedules {
    /// Fires a schedule as due when the wall clock shows `wall`.
    pub(super) async fn fire(&self, id: ScheduleId, wall: Timestamp) -> Result<(), RuntimeError> {
        let mut gone = BTreeSet::new();
        let mut unconfirmed: Option<(Revision, Firing)> = None;
        let mut n_vain = 0;
        while n_vain < ATTEMPTS_MAX {
            let Some(scheduled) = self.observe(id).await? else {
                self.state().calendar.forget(id);
                return Ok(());
            };
            let n_gone = gone.len();
            gone.extend(
                unconfirmed.take().filter(|(rev, _)| *rev == scheduled.rev).map(|(_, firing)| firing),
            );
            // After a clock that was wrong there may be many slots that have fired; each is found once.
            n_vain += u64::from(gone.len() == n_gone);
            let ScheduleRow { schedule, progress, .. } = &scheduled.row;
            let mut decision = schedule.plan(progress, wall, scheduled.running.len());
            decision.fire.retain(|firing| !gone.contains(firing));
            if is_no_op(&scheduled.row, &decision, wall) {
                self.learn(&scheduled);
                return Ok(());
            }
            if decision.cancel_running {
                self.cancel_started(&scheduled.running).await?;
            }
            let rev = scheduled.rev;
            match self.carry(scheduled, &decision, self.clock().now()).await? {
                CarryOutcome::Done => return Ok(()),
                CarryOutcome::DecideAgain(firing) => unconfirmed = firing.map(|firing| (rev, firing)),
            }
        }
        Err(RuntimeError::Busy { retry_after: RETRY_DELAY })
    }

    /// The schedule as it is stored. From here on the calendar watches the runs and jobs that its slots wait for.
    async fn observe(&self, id: ScheduleId) -> Result<Option<Scheduled>, RuntimeError> {
        let first = self.show(id).await?;
        let Some(scheduled) = &first else { return Ok(None) };
        if scheduled.row.schedule.overlap != Overlap::Queue || scheduled.running.is_empty() {
            return Ok(first);
        }
        self.state().calendar.watch(id, scheduled.running.iter().copied());
        // A run that ended before it was watched has ended in this row.
        self.show(id).await
    }

    /// Carries out a decision.
    async fn carry(
        &self,
        scheduled: Scheduled,
        decision: &Decision,
        now: Timestamp,
    ) -> Result<CarryOutcome, RuntimeError> {
        let Scheduled { project, mut rev, mut row, mut running } = scheduled;
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
                FireOutcome::Fired => {
                    running.extend(part.iter().filter_map(|firing| started(&target, *firing)))
                }
                FireOutcome::Again(firing) => return Ok(CarryOutcome::DecideAgain(firing)),
                FireOutcome::StartFailure(failure) => {
                    let Some(slot) = part.last().map(|firing| firing.slot) else {
                        return Ok(CarryOutcome::DecideAgain(None));
                    };
                    tracing::warn!(schedule = %row.id(), %slot, reason = %failure.reason, "a slot started nothing");
                    let n_passed = u64::try_from(part.len()).unwrap_or(u64::MAX);
                    next.history.n_passed = next.history.n_passed.saturating_add(n_passed);
                    next.history.last_error = Some(Misfire { slot, at: now, reason: failure.reason });
                    let change = ScheduleChange { expected_rev: rev, row: next.clone(), delete: false };
                    if !self.commit_schedule(change, now).await? {
                        return Ok(CarryOutcome::DecideAgain(None));
                    }
                }
            }
            (rev, row) = (rev.next(), next);
            if n == total {
                self.learn(&Scheduled { project, rev, row, running });
                return Ok(CarryOutcome::Done);
            }
        }
    }

    /// Starts some firings together with the next row of the schedule, which records them.
    pub(super) async fn start_part(
        &self,
        expected_rev: Revision,
        next: &mut ScheduleRow,
        target: Result<&FiringTarget, &String>,
        part: &[Firing],
        now: Timestamp,
    ) -> Result<FireOutcome, RuntimeError> {
        let change = |row: &ScheduleRow| ScheduleChange { expected_rev, row: row.clone(), delete: false };
        let Some(last) = part.last().copied() else {
            let is_done = self.commit_schedule(change(next), now).await?;
            return Ok(if is_done { FireOutcome::Fired } else { FireOutcome::Again(None) });
        };
        let target = match target {
            Ok(target) => target,
            Err(reason) => return Ok(FireOutcome::StartFailure(StartFailure::new("$.task", reason))),
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
            self.state().calendar.watch(next.id(), rows.iter().map(|row| row.started));
        }
        let tried = match target {
            FiringTarget::Job(spec) => self.start_jobs(change(next), spec, rows, now).await?,
            FiringTarget::Flow { .. } => self.start_run(change(next), target, last).await?,
        };
        if !matches!(tried, FireOutcome::Fired) {
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
    ) -> Result<FireOutcome, RuntimeError> {
        let origin = JobOrigin { schedule: Some(change.row.id()), call: None };
        let mut jobs = Vec::with_capacity(firings.len());
        if let Some(account) = &spec.account
            && self.store().account(self.project(), account).await?.is_none()
        {
            let refusal = Refusal::UnknownAccount(account.clone());
            return Ok(FireOutcome::StartFailure(StartFailure::new("$.task.account", refusal)));
        }
        let spec = self.money().priced(vec![spec.clone()]).await?.pop().unwrap_or_else(|| spec.clone());
        for FiringRow { firing, .. } in &firings {
            match Job::create(firing.job(), spec.clone(), now) {
                Ok((job, _)) => {
                    jobs.push(JobChange { expected_rev: Revision(0), job, origin: origin.clone() })
                }
                Err(problems) => {
                    return Ok(FireOutcome::StartFailure(StartFailure::new("$.task", list(&problems))));
                }
            }
        }
        let firing_of = |id: JobId| firings.iter().map(|row| row.firing).find(|firing| firing.job() == id);
        let commit = Commit {
            postings: job_postings(&jobs),
            jobs: jobs.clone(),
            schedules: vec![change],
            firings: firings.clone(),
            ..Commit::new(self.project(), CommandId::new(Uuid::now_v7()), now)
        };
        Ok(match self.ctx().commit_looked_up(commit).await {
            Ok(()) => {
                self.jobs().committed_jobs(&jobs);
                FireOutcome::Fired
            }
            Err(StoreError::Conflict { what: Subject::Job(id), .. }) => FireOutcome::Again(firing_of(id)),
            Err(StoreError::Conflict { .. }) => FireOutcome::Again(None),
            Err(StoreError::Refused(Refusal::AlreadyFired(firing))) => FireOutcome::Again(Some(firing)),
            Err(StoreError::Refused(Refusal::Duplicates(taken))) => {
                let existing = taken.first().map(|duplicate| duplicate.existing);
                let refusal = Refusal::Duplicates(taken);
                FireOutcome::StartFailure(StartFailure {
                    existing,
                    ..StartFailure::new("$.task.dedup_key", refusal)
                })
            }
            Err(StoreError::Refused(refusal @ Refusal::InsufficientFunds { .. })) => {
                FireOutcome::StartFailure(StartFailure::new("$.task.account", refusal))
            }
            Err(StoreError::Refused(refusal)) => {
                FireOutcome::StartFailure(StartFailure::new("$.task", refusal))
            }
            Err(error @ (StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::Damaged(_))) => {
                return Err(error.into());
            }
        })
    }

    /// Starts the run of a firing: its first entry, the firing and the schedule's progress are one commit.
    async fn start_run(
        &self,
        change: ScheduleChange,
        target: &FiringTarget,
        firing: Firing,
    ) -> Result<FireOutcome, RuntimeError> {
        let FiringTarget::Flow { flow, version, params, account } = target else {
            return Err(RuntimeError::Broken);
        };
        let Some(row) = self.store().flow(self.project(), FlowRef::Id(*flow)).await? else {
            let reason = format!("there is no flow {flow}");
            return Ok(FireOutcome::StartFailure(StartFailure::new("$.flow", reason)));
        };
        let version = match self.runs().choose_version(&row, *version).await {
            Ok(version) => version,
            Err(VersionChoiceError::Runtime(error)) => return Err(error),
            Err(error) => {
                return Ok(FireOutcome::StartFailure(StartFailure::new(version_place(&error), error)));
            }
        };
        let account = match self.money().payer(account.clone(), version.id).await {
            Ok(account) => account,
            Err(error) => return failure_or_error(error),
        };
        if let Some(missing) = self.money().missing_payer(account.as_deref()) {
            return Ok(FireOutcome::StartFailure(StartFailure::new("$.account", missing.reason)));
        }
        let start = Start { params: params.clone().into(), account: account.clone(), ..Start::default() };
        if let Some(account) = &account
            && let Err(error) = self.money().check_account(account).await
        {
            return failure_or_error(error);
        }
        let start = match self.runs().complete(start, version.id).await {
            Ok(start) => start,
            Err(error) => return failure_or_error(error),
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
        let extra =
            ExtraWrites { create: Some(origin), schedules: vec![change], firings, ..ExtraWrites::default() };
        let started = self.runs().start_from_schedule(firing.run(), *flow, start, extra).await?;
        Ok(match started {
            SubmitReply::Taken(_) => FireOutcome::Fired,
            SubmitReply::Outdated
            | SubmitReply::Existing { .. }
            | SubmitReply::Refused(input::Refusal::AlreadyStarted) => FireOutcome::Again(Some(firing)),
            SubmitReply::Refused(refusal) => {
                FireOutcome::StartFailure(StartFailure::new("$.params", refusal))
            }
            SubmitReply::UnknownRun => return Err(RuntimeError::Broken),
            SubmitReply::Trouble(error) => return failure_or_error(error),
        })
    }

    /// Cancels the running jobs and runs of a schedule. An ended one needs no cancel.
    pub(super) async fn cancel_started(&self, running: &[Started]) -> Result<(), RuntimeError> {
        for started in running {
            match started {
                Started::Job(job) => match self.jobs().cancel_job(*job).await {
                    Ok(_) | Err(JobError::Unknown(_) | JobError::Refused(_)) => {}
                    Err(JobError::Runtime(error)) => return Err(error),
                },
                Started::Run(run) => {
                    let reason = Some("its schedule starts the next one".to_owned());
                    let cancel = Input::Cancel { reason, by: None };
                    match self
                        .runs()
                        .submit_with(*run, cancel, SubmitOptions::internal(ExtraWrites::default()))
                        .await
                    {
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

    /// Writes a schedule; `false` = another writer was first.
    pub(super) async fn commit_schedule(
        &self,
        change: ScheduleChange,
        now: Timestamp,
    ) -> Result<bool, RuntimeError> {
        let commit = Commit {
            schedules: vec![change],
            ..Commit::new(self.project(), CommandId::new(Uuid::now_v7()), now)
        };
        match self.ctx().commit_looked_up(commit).await {
            Ok(()) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The target of a schedule, or the reason why it cannot be read.
pub(super) fn target_of(row: &ScheduleRow) -> Result<FiringTarget, String> {
    serde_json::from_value(row.target.clone())
        .map_err(|error| format!("the target of the schedule cannot be read, save it again: {error}"))
}

/// How many firings go into one commit. A commit is about one run; and of jobs with the same key one is enough.
fn at_once(target: Option<&FiringTarget>, n: usize) -> usize {
    match target {
        Some(FiringTarget::Job(spec)) if spec.dedup_key.is_empty() => n.max(1),
        Some(FiringTarget::Job(_) | FiringTarget::Flow { .. }) | None => 1,
    }
}

pub(super) fn starts(target: &FiringTarget, firing: Firing) -> Started {
    match target {
        FiringTarget::Job(_) => Started::Job(firing.job()),
        FiringTarget::Flow { .. } => Started::Run(firing.run()),
    }
}

fn started(target: &Result<FiringTarget, String>, firing: Firing) -> Option<Started> {
    target.as_ref().ok().map(|target| starts(target, firing))
}

fn is_no_op(row: &ScheduleRow, decision: &Decision, wall: Timestamp) -> bool {
    !row.progress.is_ahead_of(wall)
        && decision.fire.is_empty()
        && decision.n_passed == 0
        && decision.progress.waiting == row.progress.waiting
        && decision.next_at == row.next_at
}

/// Sorts an error of a start: some errors do not go away with a retry.
fn failure_or_error(error: RuntimeError) -> Result<FireOutcome, RuntimeError> {
    match error {
        RuntimeError::Busy { .. }
        | RuntimeError::OpenRunsFull { .. }
        | RuntimeError::Draining
        | RuntimeError::Store(
            StoreError::Conflict { .. }
            | StoreError::Unavailable(_)
            | StoreError::Corrupt(_)
            | StoreError::Damaged(_),
        ) => Err(error),
        RuntimeError::Store(StoreError::Refused(refusal)) => {
            let path = if matches!(refusal, Refusal::UnknownAccount(_)) { "$.account" } else { "$.flow" };
            Ok(FireOutcome::StartFailure(StartFailure::new(path, refusal)))
        }
        RuntimeError::Definition(_) | RuntimeError::Journal { .. } | RuntimeError::Broken => {
            Ok(FireOutcome::StartFailure(StartFailure::new("$.flow", error)))
        }
    }
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
