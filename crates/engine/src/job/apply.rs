//! Application of events to a job. It decides nothing and cannot fail: an event that does not fit the state of the job
//! changes only the fields it can.

#![deny(
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "applying an event cannot fail"
)]

use std::sync::Arc;

use serde_json::Value;

use crate::counter::Fence;
use crate::raw_json::RawJson;
use crate::time::Timestamp;

use super::{
    Attempt, AttemptStatus, FailedAttemptNext, Job, JobEvent, JobOutcome, REMEMBERED, Round, State, charge,
};

impl Job {
    /// Applies an event of the moment `at`.
    pub fn apply(&mut self, event: &JobEvent, at: Timestamp) {
        self.updated_at = self.updated_at.max(at);
        match event {
            // A job begins with it (`Job::replay`); hearing it again changes nothing.
            JobEvent::Created { .. } => {}
            JobEvent::Queued => {
                self.state = State::Queued { since: at };
                self.current().status = AttemptStatus::Queued;
            }
            JobEvent::Claimed { fence, worker, lease_until, deadline, kept_by_beats } => {
                self.state = State::Running {
                    worker: worker.clone(),
                    lease_until: *lease_until,
                    deadline: *deadline,
                    cancel_at: None,
                    kept_by_beats: *kept_by_beats,
                };
                self.claimed(*fence, worker, at);
            }
            JobEvent::Extended { lease_until: until, .. } => {
                if let State::Running { lease_until, .. } = &mut self.state {
                    *lease_until = *until;
                }
            }
            JobEvent::Succeeded { result, .. } => {
                self.state = State::Succeeded;
                self.memo = None;
                let attempt = self.current();
                attempt.result = some(result, RawJson::is_null);
                attempt.end(AttemptStatus::Succeeded, at);
            }
            JobEvent::AttemptFailed { fault, loss, fate, .. } => {
                self.round.n_losses = self.round.n_losses.saturating_add(u32::from(*loss));
                // A silent worker may have left work going on elsewhere; the next worker asks about it and does
                // not start it again.
                if !fault.is_silence() {
                    self.memo = None;
                }
                self.current().error = Some(fault.clone());
                self.follow(fate, at);
            }
            JobEvent::Suspended { memo, until, .. } => {
                self.state = State::Suspended { until: *until };
                self.memo = some(memo, Value::is_null);
                self.current().next_retry_at = Some(*until);
            }
            JobEvent::Released { .. } => self.released(at),
            JobEvent::CancelRequested { until } => {
                if let State::Running { cancel_at, .. } = &mut self.state {
                    *cancel_at = Some(*until);
                }
            }
            JobEvent::Canceled { outcome } => self.canceled(outcome.as_ref(), at),
            JobEvent::Replayed { replay_id, priority, payload, due } => {
                let spec = Arc::make_mut(&mut self.spec);
                spec.priority = *priority;
                if let Some(payload) = payload {
                    spec.payload = payload.clone();
                }
                self.replays.extend(replay_id.clone());
                forget_oldest(&mut self.replays);
                self.begin_round(at);
                self.state = due.map_or(State::Queued { since: at }, |until| State::Pending { until });
            }
            JobEvent::Discarded { reason: why } => {
                if let State::Failed { discarded, .. } = &mut self.state {
                    *discarded = Some(why.clone());
                }
            }
        }
    }

    fn released(&mut self, at: Timestamp) {
        self.state = State::Queued { since: at };
        let attempt = self.current();
        attempt.status = AttemptStatus::Queued;
        attempt.worker = None;
        attempt.started_at = None;
    }

    fn begin_round(&mut self, at: Timestamp) {
        let number = self.round.number.saturating_add(1);
        let charge = charge::estimated(&self.spec);
        self.round = Round { number, n_attempts: 0, n_losses: 0, charge };
        self.memo = None;
        self.begin_attempt(at);
    }

    fn claimed(&mut self, fence: Fence, worker: &str, at: Timestamp) {
        self.fence = fence;
        let attempt = self.current();
        attempt.fence = fence;
        attempt.status = AttemptStatus::Running;
        attempt.worker = Some(worker.to_owned());
        // An attempt that was suspended began when it was first claimed.
        attempt.started_at.get_or_insert(at);
        attempt.next_retry_at = None;
    }

    fn follow(&mut self, fate: &FailedAttemptNext, at: Timestamp) {
        match fate {
            FailedAttemptNext::Again { at: until } => {
                let attempt = self.current();
                attempt.next_retry_at = Some(*until);
                attempt.end(AttemptStatus::Retrying, at);
                self.begin_attempt(at);
                self.state = State::Retrying { until: *until };
            }
            FailedAttemptNext::Dead { reason } => {
                self.current().end(AttemptStatus::Failed, at);
                self.state = State::Failed { reason: reason.clone(), discarded: None };
            }
        }
    }

    fn canceled(&mut self, outcome: Option<&JobOutcome>, at: Timestamp) {
        self.state = State::Canceled;
        self.memo = None;
        let attempt = self.current();
        match outcome {
            Some(JobOutcome::Done { result }) => attempt.result = some(result, RawJson::is_null),
            Some(JobOutcome::Failed { fault, .. }) => attempt.error = Some(fault.clone()),
            Some(JobOutcome::Suspended { .. }) | None => {}
        }
        attempt.next_retry_at = None;
        attempt.end(AttemptStatus::Canceled, at);
    }

    fn begin_attempt(&mut self, at: Timestamp) {
        let number = self.attempts.last().map_or(0, |attempt| attempt.number).saturating_add(1);
        self.attempts.push(Attempt::queued(number, at));
        forget_oldest(&mut self.attempts);
        self.round.n_attempts = self.round.n_attempts.saturating_add(1);
    }

    /// The latest attempt. A job is created with one and never loses the last.
    fn current(&mut self) -> &mut Attempt {
        if self.attempts.is_empty() {
            self.attempts.push(Attempt::queued(1, self.created_at));
        }
        let last = self.attempts.len() - 1;
        &mut self.attempts[last]
    }
}

/// The value, unless it is null.
fn some<T: Clone>(value: &T, is_null: impl Fn(&T) -> bool) -> Option<T> {
    Some(value).filter(|value| !is_null(value)).cloned()
}

fn forget_oldest<T>(list: &mut Vec<T>) {
    let n_over = list.len().saturating_sub(REMEMBERED);
    list.drain(..n_over);
}
