//! Calls: granting them, and the consequences of their answers.

use std::sync::Arc;

use serde_json::Value;

use super::node::weigh_templates;
use super::view_of;
use crate::counter::Fence;
use crate::event::{Event, Next};
use crate::input::{CallOutcome, Given};
use crate::path::NodePath;
use crate::plan::{Call, Exec, Prep, Recheck};
use crate::retry::{DeliveryProgress, Fault, FaultKind, RETRY_AFTER_MS_MAX, WATCHDOG_MS};
use crate::run::Run;
use crate::run::state::{Stage, Work};
use crate::run::view::NodeRef;
use crate::time::Timestamp;
use crate::weight::weigh;

/// How many workers may be lost with a call before it is taken for the cause.
pub const LOSSES_MAX: u32 = 3;

/// One decision about the call of a node or branch.
pub(super) struct CallDecider<'a> {
    pub(super) run: &'a Run,
    pub(super) given: &'a Given,
    pub(super) spot: &'a NodeRef<'a, 'a>,
    pub(super) path: &'a NodePath,
    pub(super) call: &'a Call,
}

impl CallDecider<'_> {
    /// Gives the call out, or parks or fails it for want of money.
    pub(super) fn grant(&self) -> Vec<Event> {
        let (run, spot, path) = (self.run, self.spot, self.path);
        let work = spot.phase().work();
        let mut events = Vec::new();
        if let Some(arm) = spot.branch.filter(|_| work.is_none()) {
            let weighed = weigh_templates(arm.branch.prep.templates(), &spot.view(run, &spot.state.input));
            match weighed {
                Ok(bytes) if self.given.meter.spend_bytes(bytes).is_err() => return Vec::new(),
                Ok(_) => {}
                Err(excess) => return vec![spot.excessive(path, Fence::ZERO, "the input", excess, None)],
            }
        }
        let charge = match work {
            Some(work) if work.charge.is_some() || !matches!(work.stage, Stage::Parked { .. }) => None,
            Some(_) | None => match self.price(&mut events) {
                Ok(charge) => charge,
                Err(stop) => {
                    events.push(*stop);
                    return events;
                }
            },
        };
        let budget = match self.reserve(charge) {
            Ok(budget) => budget,
            Err(wait) => {
                events.push(*wait);
                return events;
            }
        };
        let again = work.is_some_and(|w| matches!(w.stage, Stage::Suspended { .. }));
        let attempt = work.map_or(0, |w| w.attempt) + u32::from(!again);
        let deadline = work.filter(|_| again).and_then(|w| w.deadline).or_else(|| self.deadline());
        let own = spot.branch.filter(|arm| work.is_none() && !matches!(arm.branch.prep, Prep::Scope));
        events.push(Event::Granted {
            node: path.clone(),
            fence: run.fence.next(),
            attempt,
            visit: spot.state.visit,
            input: own.map(|_| spot.input(run)),
            deadline,
            charge,
            budget,
            again,
            by: self.given.epoch,
        });
        events
    }

    /// When one attempt given out now is too late. Jobs are timed from their claim, child runs not at all.
    fn deadline(&self) -> Option<Timestamp> {
        let (call, default) = (self.call, self.attempt_default_ms());
        let first_set = |a: u64, b: u64| if a > 0 { a } else { b };
        let ms = match &call.exec {
            Exec::Queue | Exec::Flow { .. } => 0,
            Exec::Http | Exec::Func { .. } => first_set(call.timeout_ms, default),
            Exec::Script(script) => first_set(call.timeout_ms, first_set(script.timeout_ms, default)),
        };
        (ms > 0).then(|| self.given.now.after(ms))
    }

    /// The time limit of an attempt whose node names none: the server's, unless more time is set for all attempts. The
    /// watchdog after that time comes before this limit.
    fn attempt_default_ms(&self) -> u64 {
        let default = self.run.start.call_timeout_ms;
        match self.spot.total_timeout_ms(self.run) {
            total if total > 0 && default > 0 => default.max(total.saturating_add(WATCHDOG_MS)),
            _ => default,
        }
    }

    /// The consequence of an answer; `None` when it says nothing new.
    pub(super) fn ended(&self, work: &Work, outcome: &CallOutcome, worker: Option<String>) -> Option<Event> {
        let (spot, path, fence) = (self.spot, self.path, fence_of(work));
        let recheck_ms = self.recheck_ms();
        if is_told_again(work, outcome, recheck_ms) {
            return None;
        }
        let is_result = matches!(outcome, CallOutcome::Done(_) | CallOutcome::Failed(_));
        if !is_result && self.run.is_draining(path) {
            return Some(Event::Dropped { node: path.clone() });
        }
        Some(match outcome {
            CallOutcome::Done(value) => self.done(work, value, worker),
            CallOutcome::Suspended { memo, recheck_ms: said } => match weigh(memo) {
                Ok(_) => Event::Suspended {
                    node: path.clone(),
                    fence,
                    memo: Arc::new(memo.clone()),
                    until: said.or(recheck_ms).map(|ms| self.given.now.after(ms)),
                    worker,
                },
                Err(excess) => spot.excessive(path, fence, "the memo", excess, worker),
            },
            CallOutcome::Failed(fault) => self.after_fault(work, fault.clone(), worker),
            CallOutcome::Canceled => {
                let fault = Fault::new(FaultKind::Canceled, "the worker canceled the call").permanent();
                self.after_fault(work, fault, worker)
            }
            CallOutcome::WorkerLost => self.after_loss(work, worker),
            CallOutcome::ServerLost => self.after_server_loss(work),
        })
    }

    pub(super) fn done(&self, work: &Work, value: &Arc<Value>, worker: Option<String>) -> Event {
        let (run, spot, path, call) = (self.run, self.spot, self.path, self.call);
        if let Err(excess) = spot.fits(value) {
            return spot.excessive(path, fence_of(work), "the result", excess, worker);
        }
        let actual = work.charge.map(|estimate| {
            let price = run.start.prices.get(spot.service().unwrap_or_default());
            if crate::money::is_settled_as_charged(call.cost.as_ref(), price) {
                return estimate;
            }
            let input = spot.input(run);
            let mut view = view_of(run, spot, &input);
            view.result = Some(value);
            // An actual cost that makes no sense is no reason to lose the result: the estimate stands.
            crate::money::actual(call.cost.as_ref(), price, &view, estimate).unwrap_or(estimate)
        });
        Event::Done {
            node: path.clone(),
            fence: fence_of(work),
            output: Some(value.clone()),
            action: spot.action(value),
            actual,
            worker,
        }
    }

    /// The consequence of a wait or a limit of the call that is due.
    pub(super) fn due(&self, work: &Work) -> Vec<Event> {
        let (spot, path, now) = (self.spot, self.path, self.given.now);
        let passed = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        let total = passed(work.total_deadline);
        match work.stage {
            Stage::Granted { expiring: Some(_), .. } => {
                let message = format!("watchdog: no answer {} s after the time-out", WATCHDOG_MS / 1_000);
                let fault = Fault::new(FaultKind::Watchdog, message).permanent();
                vec![spot.failed(path, fence_of(work), fault, None)]
            }
            Stage::Granted { expiring: None, fence, .. } if total => {
                vec![Event::Expiring { node: path.clone(), fence, until: now.after(WATCHDOG_MS) }]
            }
            _ if total => {
                let limit_ms = spot.total_timeout_ms(self.run);
                let message = format!("not finished within {limit_ms} ms over all attempts");
                let fault = Fault::new(FaultKind::Timeout, message).permanent();
                vec![spot.failed(path, fence_of(work), fault, None)]
            }
            Stage::Granted { .. } | Stage::Suspended { .. } if passed(work.deadline) => {
                let fault = Fault::new(FaultKind::Timeout, "the attempt took too long");
                vec![self.after_fault(work, fault, None)]
            }
            Stage::Suspended { .. } | Stage::Backoff { .. } => self.grant(),
            Stage::Granted { .. } | Stage::Parked { .. } => Vec::new(),
        }
    }

    /// A failed attempt: another one, or the end of the node.
    fn after_fault(&self, work: &Work, mut fault: Fault, worker: Option<String>) -> Event {
        let (path, fence) = (self.path, fence_of(work));
        let asked_ms = fault.retry_after_ms.take().unwrap_or(0).min(RETRY_AFTER_MS_MAX);
        let delivery = std::mem::take(&mut fault.delivery);
        if matches!(work.stage, Stage::Granted { expiring: Some(_), .. }) {
            return self.no_time_left(work, &fault, worker);
        }
        let was_received =
            fault.kind != FaultKind::NoWorker && delivery.progress != DeliveryProgress::NotSent;
        if self.call.at_most_once && was_received && fault.kind.is_temporary() {
            return self.unknown_outcome(work, &fault, worker);
        }
        let recheck_ms = self.recheck_ms().unwrap_or(Recheck::RECONCILE_MS);
        let Some((next, wait_ms)) = self.next_attempt(work, &fault, delivery, recheck_ms) else {
            return self.spot.failed(path, fence, fault, worker);
        };
        let until = self.given.now.after(wait_ms.max(asked_ms));
        if work.total_deadline.is_some_and(|total| until >= total) {
            return self.spot.failed(path, fence, fault, worker);
        }
        Event::Deferred { node: path.clone(), fence, fault, until, next, worker }
    }

    /// The worker is gone. Its losses are counted apart from failures: a call that kills its workers is poison.
    fn after_loss(&self, work: &Work, worker: Option<String>) -> Event {
        let fence = fence_of(work);
        let lost = Fault::new(FaultKind::Lost, "the worker was lost");
        if self.call.at_most_once {
            return self.unknown_outcome(work, &lost, worker);
        }
        if work.total_deadline.is_some_and(|total| total <= self.given.now) {
            return self.no_time_left(work, &lost, worker);
        }
        if work.n_losses + 1 >= LOSSES_MAX {
            let message = format!("poison: {LOSSES_MAX} workers were lost with this call");
            let poison = Fault::new(FaultKind::Poison, message).permanent();
            return self.spot.failed(self.path, fence, poison, worker);
        }
        let (node, until) = (self.path.clone(), self.given.now);
        Event::Deferred { node, fence, fault: lost, until, next: Next::Lost, worker }
    }

    fn after_server_loss(&self, work: &Work) -> Event {
        let fault = Fault::new(FaultKind::Lost, "the server that made the call was lost");
        if self.call.at_most_once {
            return self.unknown_outcome(work, &fault, None);
        }
        if work.total_deadline.is_some_and(|total| total <= self.given.now) {
            return self.no_time_left(work, &fault, None);
        }
        let (node, fence) = (self.path.clone(), fence_of(work));
        let (until, next) = (self.given.now, Next::Recovered);
        Event::Deferred { node, fence, fault, until, next, worker: None }
    }

    /// The time over all attempts is up: this attempt gets no successor.
    fn no_time_left(&self, work: &Work, fault: &Fault, worker: Option<String>) -> Event {
        let message = format!("no time was left: {}", fault.message);
        let fault = Fault::new(FaultKind::Timeout, message).permanent();
        self.spot.failed(self.path, fence_of(work), fault, worker)
    }

    fn unknown_outcome(&self, work: &Work, fault: &Fault, worker: Option<String>) -> Event {
        let message =
            format!("it is not known whether the call was executed ({}); never made twice", fault.message);
        let fault = Fault::new(FaultKind::Unknown, message).permanent();
        self.spot.failed(self.path, fence_of(work), fault, worker)
    }
}

/// The grant that may still answer; zero when there is none.
fn fence_of(work: &Work) -> Fence {
    work.fence().unwrap_or_default()
}

/// Whether a suspended call is reported as suspended once more, with nothing new: a report that came twice.
fn is_told_again(work: &Work, outcome: &CallOutcome, recheck_ms: Option<u64>) -> bool {
    match (&work.stage, outcome) {
        (Stage::Suspended { until, .. }, CallOutcome::Suspended { memo, recheck_ms: said }) => {
            until.is_some() == said.or(recheck_ms).is_some() && work.memo.as_deref() == Some(memo)
        }
        _ => false,
    }
}
