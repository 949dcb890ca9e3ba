//! Decisions about a job: from an input to events. Changes nothing.

use serde_json::{Map, Value};

use crate::counter::Fence;
use crate::id::mix;
use crate::limits;
use crate::raw_json::RawJson;
use crate::retry::{Fault, FaultKind};
use crate::time::Timestamp;
use crate::weight::weigh;

use super::{
    CANCEL_GRACE_MS, FailedAttemptNext, Job, JobEvent, JobInput, JobOutcome, JobRefusal, LEASE_MS_DEFAULT,
    LEASE_MS_MAX, LOSSES_MAX, SPAN_MS_MAX, State, charge,
};

type Decided = Result<Vec<JobEvent>, JobRefusal>;

impl Job {
    /// Events that follow from `input`. An empty list is a no-op (a timer that fired early or twice, a repeated
    /// answer).
    pub fn decide(&self, input: JobInput, now: Timestamp) -> Decided {
        match input {
            JobInput::Due => Ok(self.due(now)),
            JobInput::Claim { worker, lease_ms } => self.claim(worker, lease_ms, false, now),
            JobInput::ClaimKeptByBeats { worker, lease_ms } => self.claim(worker, lease_ms, true, now),
            JobInput::Extend { fence, lease_ms } => self.extend(fence, lease_ms, now),
            JobInput::Finish { fence, outcome } => self.finish(fence, outcome, now),
            JobInput::LeaseExpired { fence } => Ok(self.lose(fence, now)),
            JobInput::AttemptTimeout => Ok(self.time_out(now)),
            JobInput::Cancel => self.cancel(now),
            JobInput::RetryNow => self.retry_now(),
            JobInput::Replay { replay_id, priority, patch, due } => {
                let due = due.filter(|due| *due > now);
                self.reopen(Some(replay_id), priority, patch, due)
            }
            JobInput::Discard { reason } => self.discard(reason),
            JobInput::Release { fence } => self.release(fence),
        }
    }

    fn due(&self, now: Timestamp) -> Vec<JobEvent> {
        match self.state {
            State::Pending { until } | State::Suspended { until } | State::Retrying { until }
                if until <= now =>
            {
                vec![JobEvent::Queued]
            }
            // The worker was told, and had its time.
            State::Running { cancel_at: Some(at), .. } if at <= now => {
                vec![JobEvent::Canceled { outcome: None }]
            }
            State::Pending { .. }
            | State::Suspended { .. }
            | State::Retrying { .. }
            | State::Running { .. }
            | State::Queued { .. }
            | State::Succeeded
            | State::Failed { .. }
            | State::Canceled => Vec::new(),
        }
    }

    fn claim(&self, worker: String, lease_ms: u64, kept_by_beats: bool, now: Timestamp) -> Decided {
        if !matches!(self.state, State::Queued { .. }) {
            return Err(JobRefusal::NotQueued { status: self.display_status() });
        }
        let deadline = (self.spec.timeout_ms > 0).then(|| now.after(self.spec.timeout_ms));
        let lease_until = lease_end(now, lease_ms);
        // The fence would have to grow for longer than the sun burns to get here.
        let fence = self.fence.next();
        Ok(vec![JobEvent::Claimed { fence, worker, lease_until, deadline, kept_by_beats }])
    }

    fn extend(&self, fence: Fence, lease_ms: u64, now: Timestamp) -> Decided {
        match &self.state {
            // A request for an extension never shortens a lease.
            State::Running { lease_until, .. } if fence == self.fence => {
                let until = lease_end(now, lease_ms);
                Ok(if until > *lease_until {
                    vec![JobEvent::Extended { fence, lease_until: until }]
                } else {
                    Vec::new()
                })
            }
            State::Running { .. }
            | State::Pending { .. }
            | State::Queued { .. }
            | State::Suspended { .. }
            | State::Retrying { .. }
            | State::Succeeded
            | State::Failed { .. }
            | State::Canceled => Err(self.stale(fence)),
        }
    }

    fn finish(&self, fence: Fence, outcome: JobOutcome, now: Timestamp) -> Decided {
        let outcome = within_limits(outcome);
        let State::Running { cancel_at, .. } = &self.state else {
            return self.heard_before(fence, &outcome);
        };
        if fence != self.fence {
            return self.heard_before(fence, &outcome);
        }
        if cancel_at.is_some() {
            return Ok(vec![JobEvent::Canceled { outcome: Some(outcome) }]);
        }
        Ok(match outcome {
            JobOutcome::Done { result } => vec![JobEvent::Succeeded { fence, result }],
            JobOutcome::Failed { fault, retry_after_ms } => {
                self.fail(fault, retry_after_ms.unwrap_or(0).min(SPAN_MS_MAX), now)
            }
            JobOutcome::Suspended { memo, recheck_ms } => {
                vec![JobEvent::Suspended { fence, memo, until: now.after(recheck_ms.min(SPAN_MS_MAX)) }]
            }
        })
    }

    /// An answer for an attempt that has ended: fine if it is the very answer that ended it.
    fn heard_before(&self, fence: Fence, outcome: &JobOutcome) -> Decided {
        let same_memo = match outcome {
            JobOutcome::Suspended { memo, .. } => {
                fence == self.fence
                    && matches!(self.state, State::Suspended { .. })
                    && self.memo.as_ref().unwrap_or(&Value::Null) == memo
            }
            JobOutcome::Done { .. } | JobOutcome::Failed { .. } => false,
        };
        let ended = self.attempts.iter().rev().find(|attempt| attempt.fence == fence && fence > Fence::ZERO);
        if same_memo || ended.is_some_and(|attempt| attempt.ended_with(outcome)) {
            Ok(Vec::new())
        } else {
            Err(self.stale(fence))
        }
    }

    fn lose(&self, fence: Fence, now: Timestamp) -> Vec<JobEvent> {
        let State::Running { worker, lease_until, cancel_at, .. } = &self.state else { return Vec::new() };
        if fence != self.fence || *lease_until > now {
            return Vec::new();
        }
        if cancel_at.is_some() {
            return vec![JobEvent::Canceled { outcome: None }];
        }
        let fault = Fault::new(FaultKind::Lost, format!("worker `{worker}` was not heard of in time"));
        let n_losses = self.round.n_losses.saturating_add(1);
        let fate = if self.spec.run.is_none() && n_losses >= LOSSES_MAX {
            let message = format!("lost {n_losses} times; it may be what kills its workers");
            FailedAttemptNext::Dead { reason: Fault::new(FaultKind::Poison, message) }
        } else if self.attempts_left() {
            FailedAttemptNext::Again { at: now }
        } else {
            FailedAttemptNext::Dead { reason: fault.clone() }
        };
        self.end_attempt(fault, true, fate, now)
    }

    fn time_out(&self, now: Timestamp) -> Vec<JobEvent> {
        let State::Running { deadline: Some(deadline), cancel_at, .. } = &self.state else {
            return Vec::new();
        };
        if *deadline > now {
            return Vec::new();
        }
        if cancel_at.is_some() {
            return vec![JobEvent::Canceled { outcome: None }];
        }
        let message = format!("no answer within {} ms", self.spec.timeout_ms);
        self.fail(Fault::new(FaultKind::Timeout, message), 0, now)
    }

    fn cancel(&self, now: Timestamp) -> Decided {
        match &self.state {
            State::Pending { .. }
            | State::Queued { .. }
            | State::Suspended { .. }
            | State::Retrying { .. } => Ok(vec![JobEvent::Canceled { outcome: None }]),
            State::Running { cancel_at: None, .. } => {
                Ok(vec![JobEvent::CancelRequested { until: now.after(CANCEL_GRACE_MS) }])
            }
            State::Running { cancel_at: Some(_), .. } | State::Canceled => Ok(Vec::new()),
            State::Succeeded | State::Failed { .. } => {
                Err(JobRefusal::Ended { status: self.display_status() })
            }
        }
    }

    fn retry_now(&self) -> Decided {
        match &self.state {
            State::Pending { .. } | State::Suspended { .. } | State::Retrying { .. } => {
                Ok(vec![JobEvent::Queued])
            }
            State::Queued { .. } => Ok(Vec::new()),
            State::Running { .. } | State::Succeeded | State::Failed { .. } | State::Canceled => {
                self.reopen(None, None, None, None)
            }
        }
    }

    fn reopen(
        &self,
        replay_id: Option<String>,
        priority: Option<i32>,
        patch: Option<Value>,
        due: Option<Timestamp>,
    ) -> Decided {
        if replay_id.as_ref().is_some_and(|id| self.replays.contains(id)) {
            return Ok(Vec::new());
        }
        if self.spec.run.is_some() {
            return Err(JobRefusal::BelongsToRun);
        }
        match &self.state {
            State::Failed { .. } | State::Canceled => {
                let payload = patch.filter(|patch| !patch.is_null()).map(|patch| self.patched(patch));
                if let Some(Err(excess)) = payload.as_ref().map(RawJson::weigh) {
                    return Err(JobRefusal::PayloadTooMuch { excess });
                }
                if let Some(payload) = &payload
                    && let Err(fault) = charge::estimate_of(&self.spec, payload)
                {
                    return Err(JobRefusal::NoAmount { fault });
                }
                let priority = priority.unwrap_or(self.spec.priority);
                Ok(vec![JobEvent::Replayed { replay_id, priority, payload, due }])
            }
            State::Succeeded => Err(JobRefusal::Completed),
            State::Pending { .. }
            | State::Queued { .. }
            | State::Running { .. }
            | State::Suspended { .. }
            | State::Retrying { .. } => Err(JobRefusal::NotEnded { status: self.display_status() }),
        }
    }

    fn patched(&self, patch: Value) -> RawJson {
        RawJson::from(merged(&self.spec.payload.value(), patch, 0))
    }

    fn discard(&self, reason: String) -> Decided {
        match &self.state {
            State::Failed { discarded: Some(_), .. } => Ok(Vec::new()),
            State::Failed { discarded: None, .. } if self.is_dead_letter() => {
                Ok(vec![JobEvent::Discarded { reason: Fault::new(FaultKind::Canceled, reason).message }])
            }
            State::Failed { .. }
            | State::Pending { .. }
            | State::Queued { .. }
            | State::Running { .. }
            | State::Suspended { .. }
            | State::Retrying { .. }
            | State::Succeeded
            | State::Canceled => Err(JobRefusal::NotDead { status: self.display_status() }),
        }
    }

    fn release(&self, fence: Fence) -> Decided {
        match &self.state {
            State::Running { cancel_at, .. } if fence == self.fence => Ok(match cancel_at {
                Some(_) => vec![JobEvent::Canceled { outcome: None }],
                None => vec![JobEvent::Released { fence }],
            }),
            // Given back before, and not granted again since.
            State::Queued { .. } if fence > Fence::ZERO && self.latest().fence == fence => Ok(Vec::new()),
            State::Running { .. }
            | State::Queued { .. }
            | State::Pending { .. }
            | State::Suspended { .. }
            | State::Retrying { .. }
            | State::Succeeded
            | State::Failed { .. }
            | State::Canceled => Err(self.stale(fence)),
        }
    }

    /// The attempt failed because its worker said so or took too long.
    fn fail(&self, fault: Fault, delay_ms_min: u64, now: Timestamp) -> Vec<JobEvent> {
        let fate = if fault.retryable && self.attempts_left() {
            let n_failed = self.round.n_attempts;
            let (high, low) = self.id.uuid().as_u64_pair();
            let seed = mix(high ^ mix(low ^ mix(u64::from(self.latest().number) ^ mix(self.fence.0))));
            let delay_ms = self.spec.policy().delay_ms_after(n_failed, seed).max(delay_ms_min);
            FailedAttemptNext::Again { at: now.after(delay_ms) }
        } else {
            FailedAttemptNext::Dead { reason: fault.clone() }
        };
        self.end_attempt(fault, false, fate, now)
    }

    fn end_attempt(
        &self,
        fault: Fault,
        loss: bool,
        fate: FailedAttemptNext,
        now: Timestamp,
    ) -> Vec<JobEvent> {
        let at_once = matches!(fate, FailedAttemptNext::Again { at } if at <= now);
        let mut events = vec![JobEvent::AttemptFailed { fence: self.fence, fault, loss, fate }];
        if at_once {
            events.push(JobEvent::Queued);
        }
        events
    }

    fn attempts_left(&self) -> bool {
        self.round.n_attempts < self.spec.attempts_max()
    }

    fn stale(&self, fence: Fence) -> JobRefusal {
        JobRefusal::Stale { fence, current: self.fence, status: self.display_status() }
    }
}

/// A result or memo beyond the limits of one value fails the attempt for good: another would be as large.
fn within_limits(outcome: JobOutcome) -> JobOutcome {
    let (part, weight) = match &outcome {
        JobOutcome::Done { result } => ("the result", result.weigh()),
        JobOutcome::Suspended { memo, .. } => ("the memo", weigh(memo)),
        JobOutcome::Failed { .. } => return outcome,
    };
    match weight {
        Ok(_) => outcome,
        Err(excess) => {
            let fault = Fault::new(FaultKind::Limit, format!("{part} {excess}")).permanent();
            JobOutcome::Failed { fault, retry_after_ms: None }
        }
    }
}

fn lease_end(now: Timestamp, lease_ms: u64) -> Timestamp {
    now.after(if lease_ms == 0 { LEASE_MS_DEFAULT } else { lease_ms.min(LEASE_MS_MAX) })
}

/// `payload` with the fields of `patch` laid over it; null removes a field. Objects deeper than the limit are
/// replaced whole, so that the walk ends.
fn merged(payload: &Value, patch: Value, depth: usize) -> Value {
    let Value::Object(patch) = patch else { return patch };
    if depth >= limits::DEPTH {
        return Value::Object(patch);
    }
    let mut fields = payload.as_object().cloned().unwrap_or_else(Map::new);
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(&key);
        } else {
            let old = fields.get(&key).unwrap_or(&Value::Null);
            let new = merged(old, value, depth + 1);
            fields.insert(key, new);
        }
    }
    Value::Object(fields)
}
