//! What an event does to a job. Decides nothing, and so cannot fail: an event that does not fit the job as it
//! stands changes only what it can.

use std::sync::Arc;

use crate::time::Timestamp;

use super::attempt::some;
use super::{Attempt, AttemptStatus, Fate, Job, JobEvent, Outcome, REMEMBERED, Round, State, charge};

impl Job {
    /// Changes the job by what happened at `at`.
    pub fn apply(&mut self, event: &JobEvent, at: Timestamp) {
        self.updated_at = self.updated_at.max(at);
        match event {
            // A job begins with it (`Job::replay`); hearing it again changes nothing.
            JobEvent::Created { .. } => {}
            JobEvent::Queued => {
                self.state = State::Queued { since: at };
                self.current().status = AttemptStatus::Queued;
            }
            JobEvent::Claimed { fence, worker, lease_until, deadline } => {
                self.claimed(*fence, worker, *lease_until, *deadline, at);
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
                attempt.result = some(result);
                attempt.end(AttemptStatus::Succeeded, at);
            }
            JobEvent::AttemptFailed { fault, loss, fate, .. } => {
                self.round.n_losses = self.round.n_losses.saturating_add(u32::from(*loss));
                // Whoever fell silent may have left work going on elsewhere; the next one is to ask about it, not
                // to start it again.
                if !fault.is_silence() {
                    self.memo = None;
                }
                self.current().error = Some(fault.clone());
                self.follow(fate, at);
            }
            JobEvent::Suspended { memo, until, .. } => {
                self.state = State::Suspended { until: *until };
                self.memo = some(memo);
                self.current().next_retry_at = Some(*until);
            }
            JobEvent::Released { .. } => {
                self.state = State::Queued { since: at };
                let attempt = self.current();
                attempt.status = AttemptStatus::Queued;
                attempt.worker = None;
                attempt.started_at = None;
            }
            JobEvent::CancelRequested { until } => {
                if let State::Running { cancel_at, .. } = &mut self.state {
                    *cancel_at = Some(*until);
                }
            }
            JobEvent::Cancelled { outcome } => self.cancelled(outcome.as_ref(), at),
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

    fn begin_round(&mut self, at: Timestamp) {
        let number = self.round.number.saturating_add(1);
        let charge = charge::estimated(&self.spec);
        self.round = Round { number, n_attempts: 0, n_losses: 0, charge };
        self.memo = None;
        self.begin_attempt(at);
    }

    fn claimed(
        &mut self,
        fence: u64,
        worker: &str,
        lease_until: Timestamp,
        deadline: Option<Timestamp>,
        at: Timestamp,
    ) {
        self.fence = fence;
        self.state = State::Running { worker: worker.to_owned(), lease_until, deadline, cancel_at: None };
        let attempt = self.current();
        attempt.fence = fence;
        attempt.status = AttemptStatus::Running;
        attempt.worker = Some(worker.to_owned());
        // An attempt that was suspended began when it was first claimed.
        attempt.started_at.get_or_insert(at);
        attempt.next_retry_at = None;
    }

    fn follow(&mut self, fate: &Fate, at: Timestamp) {
        match fate {
            Fate::Again { at: until } => {
                let attempt = self.current();
                attempt.next_retry_at = Some(*until);
                attempt.end(AttemptStatus::Retrying, at);
                self.begin_attempt(at);
                self.state = State::Retrying { until: *until };
            }
            Fate::Dead { reason } => {
                self.current().end(AttemptStatus::Failed, at);
                self.state = State::Failed { reason: reason.clone(), discarded: None };
            }
        }
    }

    fn cancelled(&mut self, outcome: Option<&Outcome>, at: Timestamp) {
        self.state = State::Cancelled;
        self.memo = None;
        let attempt = self.current();
        match outcome {
            Some(Outcome::Done { result }) => attempt.result = some(result),
            Some(Outcome::Failed { fault, .. }) => attempt.error = Some(fault.clone()),
            Some(Outcome::Suspended { .. }) | None => {}
        }
        attempt.next_retry_at = None;
        attempt.end(AttemptStatus::Cancelled, at);
    }

    fn begin_attempt(&mut self, at: Timestamp) {
        let number = self.latest().number.saturating_add(1);
        self.attempts.push(Attempt::queued(number, at));
        forget_oldest(&mut self.attempts);
        self.round.n_attempts = self.round.n_attempts.saturating_add(1);
    }

    fn current(&mut self) -> &mut Attempt {
        self.attempts.last_mut().expect("a job is created with an attempt and never loses its last one")
    }
}

fn forget_oldest<T>(list: &mut Vec<T>) {
    let n_over = list.len().saturating_sub(REMEMBERED);
    list.drain(..n_over);
}
