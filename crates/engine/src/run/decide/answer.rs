//! Answers to calls, from workers and from child runs.

use super::Decider;
use super::call::CallDecider;
use crate::counter::Fence;
use crate::event::Event;
use crate::input::{CallOutcome, Refusal};
use crate::money::Bill;
use crate::path::NodePath;
use crate::run::state::{Stage, Status};
use crate::run::view::NodeRef;

impl Decider<'_> {
    /// A decision about the call at a place where one is made.
    pub(super) fn call<'s>(&'s self, spot: &'s NodeRef<'s, 's>, path: &'s NodePath) -> CallDecider<'s> {
        let call = spot.call().expect("only calls are granted and answered");
        CallDecider { run: self.run, given: self.given, spot, path, call }
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
            return Err(Refusal::UnknownNode(path.clone()));
        }
        let spot = self.run.spot(self.plan, path).ok_or_else(stale)?;
        let work = spot.phase().work().filter(|work| work.fence() == Some(fence)).ok_or_else(stale)?;
        if self.run.status == Status::Canceling {
            // A run that is being canceled ignores the content; the answer only confirms that the worker stopped.
            return Ok(vec![Event::Dropped { node: path.clone() }]);
        }
        // Only a granted call can be lost or stopped: the worker of a suspended call has gone on.
        let about_work =
            matches!(outcome, CallOutcome::WorkerLost | CallOutcome::ServerLost | CallOutcome::Canceled);
        if about_work && !matches!(work.stage, Stage::Granted { .. }) {
            return Err(stale());
        }
        let ended = self.call(&spot, path).ended(work, outcome, worker.map(str::to_owned));
        Ok(ended.into_iter().collect())
    }

    /// A child run ended. Its cost counts whether or not the parent still waits for its result.
    pub(super) fn child_ended(
        &self,
        path: &NodePath,
        fence: Fence,
        outcome: Option<&CallOutcome>,
        bill: Bill,
    ) -> Result<Vec<Event>, Refusal> {
        let counts = !bill.is_zero() || self.run.reserve_of(fence).is_some();
        let mut events = Vec::new();
        if counts {
            events.push(Event::Billed { node: path.clone(), fence, bill });
        }
        match outcome.map(|outcome| self.call_ended(path, fence, outcome, None)) {
            Some(Ok(ended)) => events.extend(ended),
            // The parent does not wait for it any more.
            Some(Err(Refusal::Stale { .. })) if counts => {}
            Some(Err(refusal)) => return Err(refusal),
            None => {}
        }
        Ok(events)
    }
}
