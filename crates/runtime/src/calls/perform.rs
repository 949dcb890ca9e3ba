//! Calls that this server makes itself, from the effect of a commit to the answer in the run's mailbox.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use windlass_engine::counter::Fence;
use windlass_engine::effect::CallSpec;
use windlass_engine::id::RunId;
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::plan::Exec;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::time::LATEST;
use windlass_engine::weight::is_light;

use super::{CallResult, Calls};
use crate::calls::function::{Function, FunctionCall, QuickFunction};
use crate::calls::log::AttemptLog;
use crate::long_work::aside;
use crate::part::RuntimePart;
use crate::runs::mailbox::Envelope;

/// Bytes of the input of a quick function that is called on the thread of an actor: well below a millisecond.
const LIGHT_BYTES: usize = 64 << 10;

/// Calls that this server makes at the moment, each with the means to stop it.
#[derive(Default)]
pub(super) struct RunningCalls {
    open: Mutex<BTreeMap<(RunId, Fence), RunningCall>>,
}

struct RunningCall {
    cancel: CancellationToken,
    /// A worker, a script or a handler has it, or is about to.
    is_in_hand: bool,
}

impl RunningCalls {
    fn open(&self) -> MutexGuard<'_, BTreeMap<(RunId, Fence), RunningCall>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, run: RunId, fence: Fence) -> CancellationToken {
        let token = CancellationToken::new();
        self.open().insert((run, fence), RunningCall { cancel: token.clone(), is_in_hand: false });
        token
    }

    pub(super) fn end(&self, run: RunId, fence: Fence) {
        self.open().remove(&(run, fence));
    }

    /// Cancels this call, if it is running.
    pub(super) fn cancel(&self, run: RunId, fence: Fence) {
        if let Some(call) = self.open().get(&(run, fence)) {
            call.cancel.cancel();
        }
    }

    /// Cancels this call, if it is running and still waits for a worker or a slot.
    pub(super) fn withdraw(&self, run: RunId, fence: Fence) {
        if let Some(call) = self.open().get(&(run, fence)).filter(|call| !call.is_in_hand) {
            call.cancel.cancel();
        }
    }

    /// A worker, a script or a handler takes this call; false if it was canceled before.
    pub(super) fn take_in_hand(&self, run: RunId, fence: Fence) -> bool {
        match self.open().get_mut(&(run, fence)) {
            Some(call) if call.cancel.is_cancelled() => false,
            Some(call) => {
                call.is_in_hand = true;
                true
            }
            // Not one of those that can be canceled here.
            None => true,
        }
    }

    /// Whether this one is being made.
    pub(super) fn holds(&self, run: RunId, fence: Fence) -> bool {
        self.open().contains_key(&(run, fence))
    }

    /// The fences of those of this run.
    pub(super) fn fences(&self, run: RunId) -> Vec<Fence> {
        self.open().range((run, Fence::ZERO)..=(run, Fence(u64::MAX))).map(|((_, fence), _)| *fence).collect()
    }

    /// The runs of which some are being made.
    pub(super) fn runs(&self) -> BTreeSet<RunId> {
        self.open().keys().map(|(run, _)| *run).collect()
    }

    /// How many are being made.
    pub(super) fn len(&self) -> usize {
        self.open().len()
    }
}

impl Calls {
    /// Whether the call is answered as soon as it is made.
    pub(crate) fn is_quick(&self, spec: &CallSpec) -> bool {
        match &spec.exec {
            Exec::Func { name } => !matches!(self.settings().functions.find(name), Some(Function::Slow(_))),
            Exec::Queue | Exec::Flow { .. } | Exec::Http | Exec::Script(_) => false,
        }
    }

    /// Makes a call; the answer of a quick function is returned at once.
    pub(crate) fn make(&self, spec: CallSpec) -> Option<Envelope> {
        if self.is_draining() {
            // Left to the next server, which finds it granted by one that is gone.
            return None;
        }
        if !self.cluster().may_call() {
            // Another server may be about to make it, so it counts as lost.
            return Some(ended(&spec, CallResult::of(CallOutcome::ServerLost)));
        }
        match &spec.exec {
            // Rows of the commit: a job, or a message that starts a child run.
            Exec::Queue | Exec::Flow { .. } => None,
            Exec::Func { name } => match self.settings().functions.find(name) {
                Some(Function::Quick(_)) if !is_light(&spec.input, LIGHT_BYTES) => {
                    self.make_later(spec);
                    None
                }
                Some(Function::Quick(function)) => {
                    let call = FunctionCall::of(&spec);
                    let outcome = catch_unwind(AssertUnwindSafe(|| function(&call)));
                    let outcome = outcome.unwrap_or_else(|_| panicked(name));
                    Some(ended(&spec, CallResult { log: call.logger.take(), ..CallResult::of(outcome) }))
                }
                Some(Function::Slow(_)) => {
                    self.make_later(spec);
                    None
                }
                None => Some(ended(&spec, CallResult::of(self.settings().functions.unknown(name)))),
            },
            Exec::Http | Exec::Script(_) => {
                self.make_later(spec);
                None
            }
        }
    }

    fn make_later(&self, spec: CallSpec) {
        let (calls, token) = (self.clone(), self.state().open.begin(spec.run, spec.fence));
        self.tasks().spawn(async move {
            let making = calls.clone();
            let its = spec.clone();
            // A task of its own, so that a panic is an answer like any other.
            let mut call = tokio::spawn(async move { making.perform(&its, &token).await });
            let made = tokio::select! {
                made = &mut call => made,
                // No actor takes the answer any more; the next server makes the call again.
                () = calls.stopped() => return call.abort(),
            };
            let made = made.unwrap_or_else(|_| CallResult::of(panicked(&spec.service)));
            calls.state().open.end(spec.run, spec.fence);
            calls.runs().send(spec.run, ended(&spec, made));
        });
    }

    /// Calls a quick function with a large input, on a thread for long work.
    async fn compute(&self, function: QuickFunction, spec: &CallSpec) -> CallResult {
        let call = FunctionCall::of(spec);
        let logger = call.logger.clone();
        let _permit = self.ctx().long_work.decision().await;
        let outcome = aside(move || function(&call)).await;
        // Without an outcome, the server stops: the next one makes the call again.
        CallResult { log: logger.take(), ..CallResult::of(outcome.unwrap_or(CallOutcome::ServerLost)) }
    }

    async fn perform(&self, spec: &CallSpec, cancel: &CancellationToken) -> CallResult {
        let Exec::Func { name } = &spec.exec else { return self.call(spec, cancel).await };
        if !self.state().open.take_in_hand(spec.run, spec.fence) {
            return CallResult::of(CallOutcome::Canceled);
        }
        let function = match self.settings().functions.find(name) {
            Some(Function::Slow(function)) => function,
            Some(Function::Quick(function)) => return self.compute(function.clone(), spec).await,
            None => return CallResult::of(self.settings().functions.unknown(name)),
        };
        let late = self.clock().sleep_until(spec.deadline.unwrap_or(LATEST));
        let call = FunctionCall::of(spec);
        let logger = call.logger.clone();
        let outcome = tokio::select! {
            outcome = function(call) => outcome,
            () = cancel.cancelled() => CallOutcome::Canceled,
            () = late => CallOutcome::Failed(Fault::new(FaultKind::Timeout, format!("`{name}` took too long"))),
        };
        CallResult { log: logger.take(), ..CallResult::of(outcome) }
    }
}

fn ended(spec: &CallSpec, reported: CallResult) -> Envelope {
    let CallResult { outcome, worker, log } = reported;
    let (node, fence) = (spec.node.clone(), spec.fence);
    let mut envelope = Envelope::of(Input::CallEnded { node: node.clone(), fence, outcome, worker });
    envelope.extra.log = Some(AttemptLog { node, fence, log });
    envelope
}

fn panicked(name: &str) -> CallOutcome {
    CallOutcome::Failed(Fault::new(FaultKind::Error, format!("`{name}` panicked; see the server's log")))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn only_a_call_that_waits_is_withdrawn() {
        let (calls, run) = (RunningCalls::default(), RunId::new(Uuid::nil()));
        let (waits, works) = (calls.begin(run, Fence(1)), calls.begin(run, Fence(2)));
        assert!(calls.take_in_hand(run, Fence(2)));
        for fence in [Fence(1), Fence(2), Fence(3)] {
            calls.withdraw(run, fence);
        }
        assert_eq!((waits.is_cancelled(), works.is_cancelled()), (true, false));
        assert!(!calls.take_in_hand(run, Fence(1)), "a withdrawn call is not begun");
    }
}
