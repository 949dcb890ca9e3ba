//! Simulated workers: what becomes of a call once somebody has it.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_engine::input::Outcome;
use windlass_engine::path::NodePath;
use windlass_engine::retry::{Fault as CallFault, FaultKind};

use crate::fault::{Fault, Faults};
use crate::rng::Rng;

/// What a worker does with one call.
pub struct Deed {
    /// How long it takes.
    pub ms: u64,
    /// What it answers; `None` = never.
    pub outcome: Option<Outcome>,
    /// Whether it answers a second time, much later.
    pub again_after_ms: Option<u64>,
}

/// A result says where it comes from and under which fence it was asked for.
pub fn tag(node: &NodePath, fence: u64) -> Value {
    json!({"at": node.as_str(), "fence": fence})
}

/// Works on a call. `was_suspended`: it left a memo before.
pub fn perform(node: &NodePath, fence: u64, was_suspended: bool, faults: &mut Faults, rng: &mut Rng) -> Deed {
    let mut ms = rng.between(1, 800);
    if faults.strikes(Fault::LateAnswer, 8, rng) {
        ms += rng.between(5_000, 60_000);
    }
    let outcome = if faults.strikes(Fault::LostAnswer, 4, rng) {
        None
    } else if faults.strikes(Fault::WorkerError, 12, rng) {
        let fault = CallFault::new(FaultKind::Error, "simulated");
        Some(Outcome::Failed(if rng.percent(20) { fault.permanent() } else { fault }))
    } else if faults.strikes(Fault::TransportError, 8, rng) {
        Some(Outcome::Failed(CallFault::new(FaultKind::Transport, "connection reset")))
    } else if !was_suspended && faults.strikes(Fault::Suspend, 10, rng) {
        Some(Outcome::Suspended { memo: json!({"job": fence}), recheck_ms: Some(rng.between(10, 5_000)) })
    } else if !was_suspended && faults.strikes(Fault::SuspendUntilReport, 5, rng) {
        Some(Outcome::Suspended { memo: json!({"job": fence}), recheck_ms: None })
    } else {
        Some(Outcome::Done(Arc::new(tag(node, fence))))
    };
    let again_after_ms = faults.strikes(Fault::DuplicateAnswer, 10, rng).then(|| rng.between(1, 40_000));
    Deed { ms, outcome, again_after_ms }
}
