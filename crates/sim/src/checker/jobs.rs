//! Plain jobs and slots as the checker knows them: what the store accepted, one change after the other, and what
//! clients and people were told or asked for.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::id::{JobId, ScheduleId};
use windlass_engine::job::{AttemptStatus, Job, State};
use windlass_engine::retry::FaultKind;
use windlass_engine::schedule::{Firing, Overlap};
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::JobRow;
use windlass_store::schedule::{FiringRow, Started};

use super::{Verdict, broken};

#[derive(Default)]
pub struct Jobs {
    known: BTreeMap<JobId, Known>,
    /// Clients were told that these exist.
    acknowledged: BTreeSet<JobId>,
    /// Somebody asked to give these up.
    given_up: BTreeSet<JobId>,
    overlaps: BTreeMap<ScheduleId, Overlap>,
    slots: BTreeMap<Firing, JobId>,
}

struct Known {
    rev: u64,
    job: Job,
    /// The highest fence that was ever granted.
    granted: u64,
    /// Rounds in which it succeeded.
    successes: BTreeSet<u32>,
    schedule: Option<ScheduleId>,
}

impl Jobs {
    /// A client was told that its job exists.
    pub fn acknowledged(&mut self, job: JobId) {
        self.acknowledged.insert(job);
    }

    /// Somebody asks for the end of a dead letter.
    pub fn to_be_given_up(&mut self, job: JobId) {
        self.given_up.insert(job);
    }

    /// There is a schedule with this rule.
    pub fn scheduled(&mut self, schedule: ScheduleId, overlap: Overlap) {
        self.overlaps.insert(schedule, overlap);
    }

    /// The store accepted a commit.
    pub fn committed(&mut self, commit: &Commit) -> Verdict {
        for row in &commit.firings {
            self.fired(row, commit.now)?;
        }
        let plain = || commit.jobs.iter().filter(|change| change.job.spec.run.is_none());
        for change in plain() {
            self.changed(change, commit.now)?;
            let is_fired = || self.slots.values().any(|job| *job == change.job.id);
            if change.expected_rev == 0 && change.origin.schedule.is_some() && !is_fired() {
                return broken("J5", format!("{} was started by no slot", change.job.id));
            }
        }
        plain().try_for_each(|change| self.holds_key_alone(&change.job))
    }

    fn changed(&mut self, change: &JobChange, now: Timestamp) -> Verdict {
        let JobChange { expected_rev, job, origin } = change;
        let Some(known) = self.known.get_mut(&job.id) else {
            let known = Known {
                rev: 1,
                job: job.clone(),
                granted: 0,
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
        (known.rev, known.job) = (known.rev + 1, job.clone());
        Ok(())
    }

    /// Among open jobs of a queue there is one with a key.
    fn holds_key_alone(&self, job: &Job) -> Verdict {
        let (queue, key) = (&job.spec.queue, &job.spec.dedup_key);
        if key.is_empty() || !job.is_open() {
            return Ok(());
        }
        let same = |known: &&Known| {
            let spec = &known.job.spec;
            known.job.id != job.id && known.job.is_open() && spec.queue == *queue && spec.dedup_key == *key
        };
        match self.known.values().find(same) {
            Some(other) => broken("J4", format!("{} and {} both have `{key}`", job.id, other.job.id)),
            None => Ok(()),
        }
    }

    fn fired(&mut self, row: &FiringRow, now: Timestamp) -> Verdict {
        let firing = row.firing;
        let Started::Job(id) = row.started else { return Ok(()) };
        if firing.slot > now && !firing.manual {
            return broken("J6", format!("{firing} fired at {}, before its time", now.0));
        }
        if let Some(before) = self.slots.insert(firing, id) {
            return broken("J5", format!("{firing} fired twice: {before} and {id}"));
        }
        // What somebody opened again is not the schedule's doing.
        let runs = |known: &&Known| {
            known.schedule == Some(firing.schedule) && known.job.is_open() && known.job.round.number == 1
        };
        match (self.overlaps.get(&firing.schedule), self.known.values().find(runs)) {
            (Some(Overlap::Skip | Overlap::Queue), Some(running)) => {
                broken("J9", format!("{firing} fired while {} was running", running.job.id))
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Every slot of a schedule in `(from, to]` fired; there is one every so often.
    pub fn all_fired(&self, schedule: ScheduleId, from: Timestamp, to: Timestamp, every_ms: i64) -> Verdict {
        let first = (from.0.div_euclid(every_ms) + 1) * every_ms;
        for slot in (0..).map(|n| first + n * every_ms).take_while(|slot| *slot <= to.0) {
            let firing = Firing { schedule, slot: Timestamp(slot), manual: false };
            if !self.slots.contains_key(&firing) {
                return broken("J8", format!("{firing} never fired"));
            }
        }
        Ok(())
    }

    /// After the last fault has healed and everything has come to rest.
    pub fn at_rest(&self, stored: impl Fn(JobId) -> Option<JobRow>) -> Verdict {
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
                return broken("J7", format!("{id} was a dead letter that nobody gave up, and it is"));
            }
            if known.job.is_open() {
                return broken("J1", format!("{id} is still open at the end: {:?}", known.job.state));
            }
        }
        Ok(())
    }
}

impl Known {
    /// Whoever gets the job gets it under a new fence, and not before its time.
    fn granted_anew(&mut self, job: &Job, now: Timestamp) -> Verdict {
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
            State::Succeeded | State::Failed { .. } | State::Cancelled => {
                broken("J2", format!("{} was claimed after its end", job.id))
            }
            State::Pending { .. }
            | State::Retrying { .. }
            | State::Suspended { .. }
            | State::Queued { .. }
            | State::Running { .. } => Ok(()),
        }
    }

    /// An attempt that ended did so by the word of whoever had it, or because its time was over.
    fn ended(&mut self, job: &Job, now: Timestamp) -> Verdict {
        let State::Running { lease_until, .. } = self.job.state else {
            let succeeds = job.state == State::Succeeded && self.job.state != State::Succeeded;
            let id = job.id;
            return if succeeds { broken("J2", format!("{id} succeeded in nobody's hands")) } else { Ok(()) };
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
        let said = attempt.result.as_ref().and_then(|result| result.get("fence")?.as_u64());
        if said != Some(fence) {
            return broken("J3", format!("{}: fence {fence} took the result of {said:?}", job.id));
        }
        if !self.successes.insert(job.round.number) {
            return broken("J2", format!("{} succeeded twice in round {}", job.id, job.round.number));
        }
        Ok(())
    }

    /// What has ended is opened again by a new round only; a dead letter stays one until then, or until it is given up.
    fn reopened(&self, job: &Job) -> Verdict {
        if self.job.is_open() {
            return Ok(());
        }
        let is_new_round = job.round.number > self.job.round.number;
        let is_given_up = matches!(&job.state, State::Failed { discarded: Some(_), .. });
        if job.is_open() && !is_new_round {
            return broken("J2", format!("{} was opened again without a new round", job.id));
        }
        if self.job.is_dead_letter() && !is_new_round && !is_given_up {
            return broken("J7", format!("{} is no dead letter any more, and nobody wanted that", job.id));
        }
        Ok(())
    }
}
