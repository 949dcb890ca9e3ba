//! Record of plain jobs and slots: accepted commits in order, acknowledgements of clients, and requests of operators.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::counter::{Fence, Revision};
use windlass_engine::id::{JobId, ScheduleId};
use windlass_engine::job::{AttemptStatus, Job, State};
use windlass_engine::retry::FaultKind;
use windlass_engine::schedule::{Firing, Overlap};
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::JobRow;
use windlass_store::schedule::{FiringRow, Started};

use super::{CheckResult, broken};

#[derive(Default)]
pub struct JobChecker {
    known: BTreeMap<JobId, CheckedJob>,
    /// Jobs whose creation was acknowledged.
    acknowledged: BTreeSet<JobId>,
    /// Dead letters that an operator asked to discard.
    given_up: BTreeSet<JobId>,
    overlaps: BTreeMap<ScheduleId, Overlap>,
    slots: BTreeMap<Firing, JobId>,
}

struct CheckedJob {
    rev: Revision,
    job: Job,
    /// The highest fence that was granted.
    granted: Fence,
    /// Rounds in which it succeeded.
    successes: BTreeSet<u32>,
    schedule: Option<ScheduleId>,
}

impl JobChecker {
    /// Records that a client was told that its job exists.
    pub fn acknowledged(&mut self, job: JobId) {
        self.acknowledged.insert(job);
    }

    /// Records that an operator asks to discard a dead letter.
    pub fn to_be_given_up(&mut self, job: JobId) {
        self.given_up.insert(job);
    }

    /// Records a schedule with its rule.
    pub fn scheduled(&mut self, schedule: ScheduleId, overlap: Overlap) {
        self.overlaps.insert(schedule, overlap);
    }

    /// Checks an accepted commit, written when the wall clock showed `wall`.
    pub fn committed(&mut self, commit: &Commit, wall: Timestamp) -> CheckResult {
        for row in &commit.firings {
            self.fired(row, wall)?;
        }
        let plain = || commit.jobs.iter().filter(|change| change.job.spec.run.is_none());
        for change in plain() {
            self.changed(change, commit.now)?;
            let is_fired = || self.slots.values().any(|job| *job == change.job.id);
            if change.expected_rev == Revision::ZERO && change.origin.schedule.is_some() && !is_fired() {
                return broken("J5", format!("{} was started by no slot", change.job.id));
            }
        }
        plain().try_for_each(|change| self.holds_key_alone(&change.job))
    }

    fn changed(&mut self, change: &JobChange, now: Timestamp) -> CheckResult {
        let JobChange { expected_rev, job, origin } = change;
        let Some(known) = self.known.get_mut(&job.id) else {
            let known = CheckedJob {
                rev: Revision(1),
                job: job.clone(),
                granted: Fence::ZERO,
                successes: BTreeSet::new(),
                schedule: origin.schedule,
            };
            self.known.insert(job.id, known);
            return Ok(());
        };
        if *expected_rev != known.rev {
            let (rev, id) = (known.rev, job.id);
            return broken("J3", format!("{id}: what was decided on revision {expected_rev} replaced {rev}"));
        }
        known.granted_anew(job, now)?;
        known.ended(job, now)?;
        known.reopened(job)?;
        (known.rev, known.job) = (known.rev.next(), job.clone());
        Ok(())
    }

    /// Checks that the open jobs of a queue have distinct keys.
    fn holds_key_alone(&self, job: &Job) -> CheckResult {
        let (queue, key) = (&job.spec.queue, &job.spec.dedup_key);
        if key.is_empty() || !job.is_open() {
            return Ok(());
        }
        let same = |known: &&CheckedJob| {
            let spec = &known.job.spec;
            known.job.id != job.id && known.job.is_open() && spec.queue == *queue && spec.dedup_key == *key
        };
        match self.known.values().find(same) {
            Some(other) => broken("J4", format!("{} and {} both have `{key}`", job.id, other.job.id)),
            None => Ok(()),
        }
    }

    fn fired(&mut self, row: &FiringRow, wall: Timestamp) -> CheckResult {
        let firing = row.firing;
        let Started::Job(id) = row.started else { return Ok(()) };
        if firing.slot > wall && !firing.manual {
            return broken("J6", format!("{firing} fired at {}, before its time", wall.0));
        }
        if let Some(before) = self.slots.insert(firing, id) {
            return broken("J5", format!("{firing} fired twice: {before} and {id}"));
        }
        // A job that an operator reopened does not count for the schedule.
        let runs = |known: &&CheckedJob| {
            known.schedule == Some(firing.schedule) && known.job.is_open() && known.job.round.number == 1
        };
        match (self.overlaps.get(&firing.schedule), self.known.values().find(runs)) {
            (Some(Overlap::Skip | Overlap::Queue), Some(running)) => {
                broken("J9", format!("{firing} fired while {} was running", running.job.id))
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Checks that every slot of a schedule in `(from, to]` fired; there is one every `every_ms`.
    pub fn all_fired(
        &self,
        schedule: ScheduleId,
        from: Timestamp,
        to: Timestamp,
        every_ms: i64,
    ) -> CheckResult {
        let first = (from.0.div_euclid(every_ms) + 1) * every_ms;
        for slot in (0..).map(|n| first + n * every_ms).take_while(|slot| *slot <= to.0) {
            let firing = Firing { schedule, slot: Timestamp(slot), manual: false };
            if !self.slots.contains_key(&firing) {
                return broken("J8", format!("{firing} never fired"));
            }
        }
        Ok(())
    }

    /// Checks the final state, after the last fault has healed and all work has ended.
    pub fn check_settled(&self, stored: impl Fn(JobId) -> Option<JobRow>) -> CheckResult {
        if let Some(id) = self.acknowledged.iter().find(|id| !self.known.contains_key(id)) {
            return broken("J1", format!("{id} was acknowledged and never written"));
        }
        if let Some((firing, id)) = self.slots.iter().find(|(_, id)| !self.known.contains_key(id)) {
            return broken("J5", format!("{firing} fired and started nothing: there is no {id}"));
        }
        for (id, known) in &self.known {
            match stored(*id) {
                Some(row) if row.rev == known.rev && row.job == known.job => {}
                Some(_) => return broken("J1", format!("{id} is not what was written")),
                None => return broken("J1", format!("{id} is gone")),
            }
            let is_given_up = matches!(&known.job.state, State::Failed { discarded: Some(_), .. });
            if is_given_up && !self.given_up.contains(id) {
                return broken("J7", format!("{id} was discarded without a request for it"));
            }
            if known.job.is_open() {
                return broken("J1", format!("{id} is still open at the end: {:?}", known.job.state));
            }
        }
        Ok(())
    }
}

impl CheckedJob {
    /// Checks that a grant has a new fence and is not early.
    fn granted_anew(&mut self, job: &Job, now: Timestamp) -> CheckResult {
        let is_running = |job: &Job| matches!(job.state, State::Running { .. });
        if !is_running(job) || (is_running(&self.job) && self.job.fence == job.fence) {
            return Ok(());
        }
        if job.fence <= self.granted {
            return broken("J3", format!("{}: fence {} is not new", job.id, job.fence));
        }
        self.granted = job.fence;
        match self.job.state {
            State::Pending { until } | State::Retrying { until } | State::Suspended { until }
                if until > now =>
            {
                broken("J6", format!("{} was due at {} and claimed at {}", job.id, until.0, now.0))
            }
            State::Succeeded | State::Failed { .. } | State::Canceled => {
                broken("J2", format!("{} was claimed after its end", job.id))
            }
            State::Pending { .. }
            | State::Retrying { .. }
            | State::Suspended { .. }
            | State::Queued { .. }
            | State::Running { .. } => Ok(()),
        }
    }

    /// Checks that an attempt ended by an answer of its holder, or because its time was over.
    fn ended(&mut self, job: &Job, now: Timestamp) -> CheckResult {
        let State::Running { lease_until, .. } = self.job.state else {
            let succeeds = job.state == State::Succeeded && self.job.state != State::Succeeded;
            let id = job.id;
            return if succeeds { broken("J2", format!("{id} succeeded without a lease")) } else { Ok(()) };
        };
        let fence = self.job.fence;
        let Some(attempt) = job.attempts.iter().find(|attempt| attempt.fence == fence) else { return Ok(()) };
        let is_lost = attempt.error.as_ref().is_some_and(|fault| fault.kind == FaultKind::Lost);
        if is_lost && now < lease_until {
            let (id, until) = (job.id, lease_until.0);
            return broken("J6", format!("{id} was lost at {}, its lease goes until {until}", now.0));
        }
        if attempt.status != AttemptStatus::Succeeded {
            return Ok(());
        }
        let reply =
            attempt.result.as_ref().and_then(|result| result.value().get("fence")?.as_u64()).map(Fence);
        if reply != Some(fence) {
            return broken("J3", format!("{}: fence {fence} took the result of {reply:?}", job.id));
        }
        if !self.successes.insert(job.round.number) {
            return broken("J2", format!("{} succeeded twice in round {}", job.id, job.round.number));
        }
        Ok(())
    }

    /// Checks that an ended job is reopened only by a new round, and that a dead letter stays one until then or until
    /// it is discarded.
    fn reopened(&self, job: &Job) -> CheckResult {
        if self.job.is_open() {
            return Ok(());
        }
        let is_new_round = job.round.number > self.job.round.number;
        let is_given_up = matches!(&job.state, State::Failed { discarded: Some(_), .. });
        if job.is_open() && !is_new_round {
            return broken("J2", format!("{} was opened again without a new round", job.id));
        }
        if self.job.is_dead_letter() && !is_new_round && !is_given_up {
            return broken(
                "J7",
                format!("{} is no dead letter any more, without a retry or a discard", job.id),
            );
        }
        Ok(())
    }
}
