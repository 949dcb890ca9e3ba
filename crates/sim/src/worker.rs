//! Modelled workers.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_engine::counter::Fence;
use windlass_engine::input::CallOutcome;
use windlass_engine::path::NodePath;
use windlass_engine::retry::{DeliveryProgress, Fault as CallFault, FaultKind};

use crate::fault::{SimFault, SimFaults};
use crate::rng::SimRng;

/// The behavior of a worker for one call.
pub struct CallBehavior {
    /// The duration of the call.
    pub ms: u64,
    /// The answer; `None` = never.
    pub outcome: Option<CallOutcome>,
    /// The delay of a second answer.
    pub again_after_ms: Option<u64>,
}

/// A result that names its node and the fence of its call.
pub fn tag(node: &NodePath, fence: Fence) -> Value {
    json!({"at": node.as_str(), "fence": fence})
}

/// Chooses the behavior for a call. `was_suspended`: it left a memo before.
pub fn perform(
    node: &NodePath,
    fence: Fence,
    was_suspended: bool,
    faults: &mut SimFaults,
    rng: &mut SimRng,
) -> CallBehavior {
    let mut ms = rng.between(1, 800);
    if faults.strikes(SimFault::LateAnswer, 8, rng) {
        ms += rng.between(5_000, 60_000);
    }
    let outcome = if faults.strikes(SimFault::LostAnswer, 4, rng) {
        None
    } else if faults.strikes(SimFault::WorkerError, 12, rng) {
        let fault = CallFault::new(FaultKind::Error, "simulated");
        Some(CallOutcome::Failed(if rng.percent(20) { fault.permanent() } else { fault }))
    } else if faults.strikes(SimFault::TransportError, 8, rng) {
        let fault = CallFault::new(FaultKind::Transport, "connection reset");
        let mut fault = fault.undelivered(DeliveryProgress::Sent);
        // Drawn from the fence, so that the random choices of a world stay what they are.
        fault.delivery.has_other_worker = fence.0.is_multiple_of(2);
        Some(CallOutcome::Failed(fault))
    } else if !was_suspended && faults.strikes(SimFault::Suspend, 10, rng) {
        Some(CallOutcome::Suspended { memo: json!({"job": fence}), recheck_ms: Some(rng.between(10, 5_000)) })
    } else if !was_suspended && faults.strikes(SimFault::SuspendUntilReport, 5, rng) {
        Some(CallOutcome::Suspended { memo: json!({"job": fence}), recheck_ms: None })
    } else {
        Some(CallOutcome::Done(Arc::new(tag(node, fence))))
    };
    let again_after_ms = faults.strikes(SimFault::DuplicateAnswer, 10, rng).then(|| rng.between(1, 40_000));
    CallBehavior { ms, outcome, again_after_ms }
}
