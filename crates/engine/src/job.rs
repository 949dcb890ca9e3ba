//! Jobs: one unit of work in a queue.
//!
//! `decide` may refuse and changes nothing; `apply` decides nothing and cannot fail. A job knows its own attempts
//! and nothing of queues, workers or stores. It is pending (before its time), queued, running, suspended, retrying
//! (waiting between attempts), or it has succeeded, failed or been canceled.
//!
//! Attempts are counted per round, and a replay opens a new round; their numbers and the fence, which goes up
//! with every grant, go on over all rounds. Losses (a lease that ran out) burn an attempt like failures do, but are
//! also counted apart: a job that keeps losing its workers is suspected of killing them.

mod apply;
mod attempt;
mod charge;
mod decide;
mod event;
mod spec;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::counter::Fence;
use crate::id::JobId;
use crate::money::Amount;
use crate::problem::Problem;
use crate::retry::Fault;
use crate::time::Timestamp;

pub use attempt::{Attempt, AttemptStatus, attempt_id};
pub use event::{FailedAttemptNext, JobEvent, JobInput, JobOutcome, JobRefusal};
pub use spec::{
    BASE_MS_DEFAULT, JobBackoff, JobSpec, MAX_RETRIES_DEFAULT, MAX_RETRIES_MAX, SPAN_MS_MAX, TEMPLATE_RUN_AT,
};

/// A lease unless its worker asks for another; workers renew it every third of it.
pub const LEASE_MS_DEFAULT: u64 = 30_000;
/// The longest lease: a dead worker must be noticed within the hour.
pub const LEASE_MS_MAX: u64 = 3_600_000;
/// Losses in one round after which a job is set aside.
pub const LOSSES_MAX: u32 = 3;
/// How long a worker has to stop after a cancel before the job is canceled without it.
pub const CANCEL_GRACE_MS: u64 = 30_000;
/// Attempts, and ids of replays, that a job itself remembers; older rows are only in the store.
pub const REMEMBERED: usize = 100;

/// A job as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    /// Shared: a job is copied at every change, and its specification hardly ever changes.
    pub spec: Arc<JobSpec>,
    pub state: State,
    /// The last grant's; 0 before the first. Never reset.
    pub fence: Fence,
    pub round: Round,
    /// Oldest first; the last one is the current one, and there always is one.
    pub attempts: Vec<Attempt>,
    /// The memo that the last worker left for the next one when it suspended.
    pub memo: Option<Value>,
    /// Replays so far, by id, oldest first.
    pub replays: Vec<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The state of a job, with the data of that state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum State {
    /// Before its time.
    Pending {
        until: Timestamp,
    },
    /// Can be claimed.
    Queued {
        since: Timestamp,
    },
    /// A worker holds it.
    Running {
        worker: String,
        lease_until: Timestamp,
        deadline: Option<Timestamp>,
        cancel_at: Option<Timestamp>,
        /// Heartbeats of the worker keep the lease, not only extensions of this one.
        #[serde(default, skip_serializing_if = "crate::event::is_false")]
        kept_by_beats: bool,
    },
    /// The work goes on elsewhere and is asked about again.
    Suspended {
        until: Timestamp,
    },
    /// Between two attempts.
    Retrying {
        until: Timestamp,
    },
    Succeeded,
    /// No attempt is left, or none would help. A dead letter until it is discarded or replayed, unless a run owns it.
    Failed {
        reason: Fault,
        discarded: Option<String>,
    },
    Canceled,
}

/// The attempts since the job was created or last replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// From 1.
    pub number: u32,
    /// Attempts begun, the current one included.
    pub n_attempts: u32,
    pub n_losses: u32,
    /// The charge of this round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<Amount>,
}

/// The answer to a worker about the attempt that it holds, or believes to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Go on.
    Go,
    /// Stop, and say so.
    Canceled,
    /// The attempt has ended as reported.
    Done,
    /// Stop: another worker has it, or it is over.
    Stale,
}

impl Job {
    /// A new job and the events that made it, or everything that is wrong with its specification.
    pub fn create(id: JobId, spec: JobSpec, now: Timestamp) -> Result<(Job, Vec<JobEvent>), Vec<Problem>> {
        let job = Job::made(id, spec, now)?;
        let due = job.spec.run_at.filter(|at| *at > now);
        let created = JobEvent::Created { spec: job.spec.clone(), due };
        Ok((job, vec![created]))
    }

    /// The same without the events, for callers that keep jobs without their history.
    pub fn made(id: JobId, spec: JobSpec, now: Timestamp) -> Result<Job, Vec<Problem>> {
        let problems = spec.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        let due = spec.run_at.filter(|at| *at > now);
        Ok(Job::begin(id, Arc::new(spec), due, now))
    }

    /// The job that `journal` tells of; `None` if it does not begin with a creation.
    pub fn replay(id: JobId, journal: &[(JobEvent, Timestamp)]) -> Option<Job> {
        let ((JobEvent::Created { spec, due }, at), rest) = journal.split_first()? else { return None };
        let mut job = Job::begin(id, spec.clone(), *due, *at);
        for (event, at) in rest {
            job.apply(event, *at);
        }
        Some(job)
    }

    fn begin(id: JobId, spec: Arc<JobSpec>, due: Option<Timestamp>, now: Timestamp) -> Job {
        let charge = charge::estimated(&spec);
        Job {
            id,
            spec,
            state: due.map_or(State::Queued { since: now }, |until| State::Pending { until }),
            fence: Fence(0),
            round: Round { number: 1, n_attempts: 1, n_losses: 0, charge },
            attempts: vec![Attempt::queued(1, now)],
            memo: None,
            replays: Vec::new(),
            created_at: now,
            updated_at: now,
        }
    }

    /// The status of the job as a whole: pending, queued (until it ends), completed, failed, canceled.
    pub fn status(&self) -> &'static str {
        match self.state {
            State::Pending { .. } => "pending",
            State::Queued { .. }
            | State::Running { .. }
            | State::Suspended { .. }
            | State::Retrying { .. } => "queued",
            State::Succeeded => "completed",
            State::Failed { .. } => "failed",
            State::Canceled => "canceled",
        }
    }

    /// The one word that says where it stands. A suspended job is running: somewhere, work goes on.
    pub fn display_status(&self) -> &'static str {
        match self.state {
            State::Pending { .. } => "pending",
            State::Queued { .. } => "queued",
            State::Running { .. } | State::Suspended { .. } => "running",
            State::Retrying { .. } => "retrying",
            State::Succeeded => "completed",
            State::Failed { .. } => "failed",
            State::Canceled => "canceled",
        }
    }

    /// Whether it has not ended.
    pub fn is_open(&self) -> bool {
        match self.state {
            State::Pending { .. }
            | State::Queued { .. }
            | State::Running { .. }
            | State::Suspended { .. }
            | State::Retrying { .. } => true,
            State::Succeeded | State::Failed { .. } | State::Canceled => false,
        }
    }

    /// Whether it was never granted and has no outcome: then its one attempt says nothing that the job does
    /// not.
    pub fn is_untouched(&self) -> bool {
        self.fence == Fence::ZERO && self.round.number == 1 && self.is_waiting()
    }

    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Pending { .. } | State::Queued { .. })
    }

    /// Whether it lies in the dead letter queue.
    pub fn is_dead_letter(&self) -> bool {
        self.spec.run.is_none() && matches!(self.state, State::Failed { discarded: None, .. })
    }

    /// Whether its worker has been told to stop.
    pub fn cancel_requested(&self) -> bool {
        matches!(self.state, State::Running { cancel_at: Some(_), .. })
    }

    /// Whether another job with its deduplication key would be a duplicate at `now`.
    pub fn holds_key(&self, now: Timestamp) -> bool {
        !self.spec.dedup_key.is_empty()
            && (self.is_open() || self.created_at.after(self.spec.unique_for_ms) > now)
    }

    /// The current attempt.
    pub fn latest(&self) -> &Attempt {
        self.attempts.last().expect("a job is created with an attempt and never loses its last one")
    }

    /// The answer to the worker that was granted `fence`.
    pub fn verdict(&self, fence: Fence) -> Verdict {
        let is_current = fence > Fence::ZERO && self.latest().fence == fence;
        match self.state {
            State::Running { cancel_at: Some(_), .. } | State::Canceled if is_current => Verdict::Canceled,
            State::Running { .. } if is_current => Verdict::Go,
            State::Suspended { .. } | State::Succeeded if is_current => Verdict::Done,
            State::Pending { .. }
            | State::Queued { .. }
            | State::Running { .. }
            | State::Suspended { .. }
            | State::Retrying { .. }
            | State::Succeeded
            | State::Failed { .. }
            | State::Canceled => {
                let mut faults = self.attempts.iter().filter(|a| fence > Fence::ZERO && a.fence == fence);
                let reported = faults.any(|a| a.error.as_ref().is_some_and(|fault| !fault.is_silence()));
                if reported { Verdict::Done } else { Verdict::Stale }
            }
        }
    }

    /// When time alone will change something, if it will: ask [`Job::overdue`] then.
    pub fn wake_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Pending { until } | State::Suspended { until } | State::Retrying { until } => Some(until),
            State::Running { lease_until, deadline, cancel_at, .. } => {
                [Some(lease_until), deadline, cancel_at].into_iter().flatten().min()
            }
            State::Queued { .. } | State::Succeeded | State::Failed { .. } | State::Canceled => None,
        }
    }

    /// Sets everything back that a clock ahead of `now` wrote: the times that the job waits for keep their distance from
    /// its last change. `false` = its last change is not ahead.
    pub fn set_back(&mut self, now: Timestamp) -> bool {
        let by_ms = self.updated_at.since(now);
        match &mut self.state {
            _ if by_ms == 0 => return false,
            State::Pending { until } | State::Suspended { until } | State::Retrying { until } => {
                *until = until.before(by_ms);
            }
            State::Queued { since } => *since = (*since).min(now),
            State::Running { lease_until, deadline, cancel_at, .. } => {
                *lease_until = lease_until.before(by_ms);
                *deadline = deadline.map(|at| at.before(by_ms));
                *cancel_at = cancel_at.map(|at| at.before(by_ms));
            }
            State::Succeeded | State::Failed { .. } | State::Canceled => {}
        }
        self.updated_at = now;
        true
    }

    /// The input that is due for the job at `now`.
    pub fn overdue(&self, now: Timestamp) -> Option<JobInput> {
        match self.state {
            State::Pending { until } | State::Suspended { until } | State::Retrying { until } => {
                (until <= now).then_some(JobInput::Due)
            }
            State::Running { cancel_at: Some(at), .. } if at <= now => Some(JobInput::Due),
            State::Running { deadline: Some(at), .. } if at <= now => Some(JobInput::AttemptTimeout),
            State::Running { lease_until, .. } => {
                (lease_until <= now).then_some(JobInput::LeaseExpired { fence: self.fence })
            }
            State::Queued { .. } | State::Succeeded | State::Failed { .. } | State::Canceled => None,
        }
    }
}

#[cfg(test)]
mod tests;
