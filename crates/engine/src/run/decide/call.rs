//! Calls: granting them, and the consequences of their answers.

use std::sync::Arc;

use serde_json::Value;

use super::again::RECHECK_MS;
use super::node::action_of;
use super::{Decider, view_of};
use crate::counter::Fence;
use crate::event::{Event, Next};
use crate::input::{CallOutcome, Refusal};
use crate::path::NodePath;
use crate::plan::{Call, Exec, Prep};
use crate::retry::{Fault, FaultKind, RETRY_AFTER_MS_MAX};
use crate::run::state::{Stage, Status, Work};
use crate::run::view::Spot;
use crate::time::Timestamp;
use crate::weight::{Excess, weigh};

/// How many workers may be lost with a call before it is taken for the cause.
pub const LOSSES_MAX: u32 = 3;

impl Decider<'_> {
    /// Gives the call out, or parks or fails it for want of money.
    pub(super) fn grant(&self, spot: &Spot<'_, '_>, path: &NodePath) -> Vec<Event> {
        let call = spot.call().expect("only calls are granted");
        let work = spot.phase().work();
        let mut events = Vec::new();
        if let Some(arm) = spot.branch.filter(|_| work.is_none()) {
            let base = spot.state.input.clone();
            let weighed =
                super::node::weigh_templates(arm.branch.prep.templates(), &spot.view(self.run, &base));
            if let Err(excess) = weighed {
                return vec![self.excessive(spot, path, Fence::ZERO, "the input", excess, None)];
            }
        }
        let charge = match work {
            Some(work) if work.charge.is_some() || !matches!(work.stage, Stage::Parked { .. }) => None,
            Some(_) | None => match self.price(spot, path, call, &mut events) {
                Ok(charge) => charge,
                Err(stop) => {
                    events.push(*stop);
                    return events;
                }
            },
        };
        let budget = match self.reserve(path, call, charge) {
            Ok(budget) => budget,
            Err(wait) => {
                events.push(*wait);
                return events;
            }
        };
        let again = work.is_some_and(|w| matches!(w.stage, Stage::Suspended { .. }));
        let attempt = work.map_or(0, |w| w.attempt) + u32::from(!again);
        let deadline = work.filter(|_| again).and_then(|w| w.deadline).or_else(|| self.deadline(call));
        let fence = self.run.fence.next();
        let own = spot.branch.filter(|arm| work.is_none() && !matches!(arm.branch.prep, Prep::Scope));
        events.push(Event::Granted {
            node: path.clone(),
            fence,
            attempt,
            visit: spot.state.visit,
            input: own.map(|_| spot.input(self.run)),
            deadline,
            charge,
            budget,
            again,
            by: self.given.epoch,
        });
        events
    }

    /// When one attempt given out now is too late. Jobs are timed from their claim, child runs not at all.
    fn deadline(&self, call: &Call) -> Option<Timestamp> {
        let default = self.run.start.call_timeout_ms;
        let first_set = |a: u64, b: u64| if a > 0 { a } else { b };
        let ms = match &call.exec {
            Exec::Queue | Exec::Flow { .. } => 0,
            Exec::Http | Exec::Func { .. } => first_set(call.timeout_ms, default),
            Exec::Script(script) => first_set(call.timeout_ms, first_set(script.timeout_ms, default)),
        };
        (ms > 0).then(|| self.given.now.after(ms))
    }

    pub(super) fn call_ended(
        &self,
        path: &NodePath,
        fence: Fence,
        outcome: &CallOutcome,
        worker: Option<&str>,
    ) -> Result<Vec<Event>, Refusal> {
        let stale = || Refusal::Stale { node: path.clone(), fence };
        let known = path.segments().next().is_some_and(|key| self.plan.root.node(key).is_some());
        if !known {
            return Err(self.unknown(path));
        }
        let spot = self.run.spot(self.plan, path).ok_or_else(stale)?;
        let work = spot.phase().work().filter(|work| work.fence() == Some(fence)).ok_or_else(stale)?;
        if self.run.status == Status::Canceling {
            // A run that is being canceled ignores the content; the answer only confirms that the worker stopped.
            return Ok(vec![Event::Dropped { node: path.clone() }]);
        }
        let recheck_ms = self.recheck_ms(&spot);
        if is_told_again(work, outcome, recheck_ms) {
            return Ok(Vec::new());
        }
        // Only a granted call can be lost or stopped: the worker of a suspended call has gone on.
        let about_work =
            matches!(outcome, CallOutcome::WorkerLost | CallOutcome::ServerLost | CallOutcome::Canceled);
        if about_work && !matches!(work.stage, Stage::Granted { .. }) {
            return Err(stale());
        }
        let worker_name = worker.map(str::to_owned);
        Ok(vec![match outcome {
            CallOutcome::Done(value) => self.call_done(&spot, path, work, value, worker_name),
            CallOutcome::Suspended { memo, recheck_ms: said } => match weigh(memo) {
                Ok(_) => Event::Suspended {
                    node: path.clone(),
                    fence,
                    memo: Arc::new(memo.clone()),
                    until: said.or(recheck_ms).map(|ms| self.given.now.after(ms)),
                    worker: worker_name,
                },
                Err(excess) => self.excessive(&spot, path, fence, "the memo", excess, worker_name),
            },
            CallOutcome::Failed(fault) => self.after_fault(&spot, path, work, fault.clone(), worker_name),
            CallOutcome::Canceled => {
                let fault = Fault::new(FaultKind::Canceled, "the worker canceled the call").permanent();
                self.after_fault(&spot, path, work, fault, worker_name)
            }
            CallOutcome::WorkerLost => self.after_loss(&spot, path, work, worker_name),
            CallOutcome::ServerLost => self.after_server_loss(&spot, path, work),
        }])
    }

    pub(super) fn call_done(
        &self,
        spot: &Spot<'_, '_>,
        path: &NodePath,
        work: &Work,
        value: &Arc<Value>,
        worker: Option<String>,
    ) -> Event {
        let call = spot.call().expect("work is always a call's");
        if let Err(excess) = self.fits(spot, value) {
            return self.excessive(
                spot,
                path,
                work.fence().unwrap_or_default(),
                "the result",
                excess,
                worker,
            );
        }
        let actual = work.charge.map(|estimate| {
            let price = self.run.start.prices.get(spot.service().unwrap_or_default());
            if crate::money::is_settled_as_charged(call.cost.as_ref(), price) {
                return estimate;
            }
            let input = spot.input(self.run);
            let mut view = view_of(self.run, spot, &input);
            view.result = Some(value);
            // An actual cost that makes no sense is no reason to lose the result: the estimate stands.
            crate::money::actual(call.cost.as_ref(), price, &view, estimate).unwrap_or(estimate)
        });
        let post = spot.branch.map_or(&spot.node.post, |arm| &arm.branch.post);
        Event::Done {
            node: path.clone(),
            fence: work.fence().unwrap_or_default(),
            output: Some(value.clone()),
            action: action_of(post, value),
            actual,
            worker,
        }
    }

    /// A value that cannot be kept ends its node: another attempt would bring it again.
    pub(super) fn excessive(
        &self,
        spot: &Spot<'_, '_>,
        path: &NodePath,
        fence: Fence,
        what: &str,
        excess: Excess,
        worker: Option<String>,
    ) -> Event {
        let fault = Fault::new(FaultKind::Limit, format!("{what} {excess}")).permanent();
        self.failed(spot, path, fence, fault, worker)
    }

    /// Whether an output is small enough by itself, and together with its flow's shared state if it is written there.
    pub(super) fn fits(&self, spot: &Spot<'_, '_>, output: &Value) -> Result<(), Excess> {
        let bytes = weigh(output)?;
        let held = spot.chain.iter().rev().find(|level| level.state.shared.is_some());
        let held = held.map_or(0, |level| level.state.shared_bytes);
        let is_large = spot.writes_shared() && held.saturating_add(bytes) > crate::limits::SHARED_BYTES;
        if is_large { Err(Excess::Large) } else { Ok(()) }
    }

    /// A failed attempt: another one, or the end of the node.
    pub(super) fn after_fault(
        &self,
        spot: &Spot<'_, '_>,
        path: &NodePath,
        work: &Work,
        mut fault: Fault,
        worker: Option<String>,
    ) -> Event {
        let call = spot.call().expect("work is always a call's");
        let fence = work.fence().unwrap_or_default();
        let asked_ms = fault.retry_after_ms.take().unwrap_or(0).min(RETRY_AFTER_MS_MAX);
        if matches!(work.stage, Stage::Granted { expiring: Some(_), .. }) {
            return self.no_time_left(spot, path, fence, &fault, worker);
        }
        if call.at_most_once && fault.kind != FaultKind::NoWorker && fault.kind.is_temporary() {
            return self.unknown_outcome(spot, path, fence, &fault, worker);
        }
        let recheck_ms = self.recheck_ms(spot).unwrap_or(RECHECK_MS);
        let Some((next, wait_ms)) = self.next_attempt(call, work, &fault, recheck_ms) else {
            return self.failed(spot, path, fence, fault, worker);
        };
        let until = self.given.now.after(wait_ms.max(asked_ms));
        if work.total_deadline.is_some_and(|total| until >= total) {
            return self.failed(spot, path, fence, fault, worker);
        }
        Event::Deferred { node: path.clone(), fence, fault, until, next, worker }
    }

    /// The worker is gone. Its losses are counted apart from failures: a call that kills its workers is poison.
    fn after_loss(&self, spot: &Spot<'_, '_>, path: &NodePath, work: &Work, worker: Option<String>) -> Event {
        let fence = work.fence().unwrap_or_default();
        let call = spot.call().expect("work is always a call's");
        let lost = Fault::new(FaultKind::Lost, "the worker was lost");
        if call.at_most_once {
            return self.unknown_outcome(spot, path, fence, &lost, worker);
        }
        if work.total_deadline.is_some_and(|total| total <= self.given.now) {
            return self.no_time_left(spot, path, fence, &lost, worker);
        }
        if work.n_losses + 1 >= LOSSES_MAX {
            let message = format!("poison: {LOSSES_MAX} workers were lost with this call");
            return self.failed(
                spot,
                path,
                fence,
                Fault::new(FaultKind::Poison, message).permanent(),
                worker,
            );
        }
        let until = self.given.now;
        Event::Deferred { node: path.clone(), fence, fault: lost, until, next: Next::Lost, worker }
    }

    fn after_server_loss(&self, spot: &Spot<'_, '_>, path: &NodePath, work: &Work) -> Event {
        let fence = work.fence().unwrap_or_default();
        let fault = Fault::new(FaultKind::Lost, "the server that made the call was lost");
        if spot.call().is_some_and(|call| call.at_most_once) {
            return self.unknown_outcome(spot, path, fence, &fault, None);
        }
        if work.total_deadline.is_some_and(|total| total <= self.given.now) {
            return self.no_time_left(spot, path, fence, &fault, None);
        }
        let (until, next) = (self.given.now, Next::Recovered);
        Event::Deferred { node: path.clone(), fence, fault, until, next, worker: None }
    }

    /// The time over all attempts is up: this attempt gets no successor.
    fn no_time_left(
        &self,
        spot: &Spot<'_, '_>,
        path: &NodePath,
        fence: Fence,
        fault: &Fault,
        worker: Option<String>,
    ) -> Event {
        let message = format!("no time was left: {}", fault.message);
        self.failed(spot, path, fence, Fault::new(FaultKind::Timeout, message).permanent(), worker)
    }

    fn unknown_outcome(
        &self,
        spot: &Spot<'_, '_>,
        path: &NodePath,
        fence: Fence,
        fault: &Fault,
        worker: Option<String>,
    ) -> Event {
        let message =
            format!("it is not known whether the call was executed ({}); never made twice", fault.message);
        self.failed(spot, path, fence, Fault::new(FaultKind::Unknown, message).permanent(), worker)
    }
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
