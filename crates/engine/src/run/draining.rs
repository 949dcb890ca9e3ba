//! Places that drain: something inside them failed uncaught, so nothing new begins there, and they fail when the calls
//! that a worker, a function or a script has in hand have ended.

use super::Run;
use super::state::{Activity, Nest, NodeState, Phase, ScopeState, Slot, Stage, Work};
use crate::path::NodePath;
use crate::plan::{Body, Call, Exec, Fan, NodeKind, OnFailure, Plan, Routing, Scope};

/// The open nodes and branches inside a place that fails.
pub(super) struct OpenInside {
    /// Those without a call in hand, the outermost ones only.
    pub(super) idle: Vec<NodePath>,
    pub(super) has_call_in_hand: bool,
}

impl Run {
    /// Whether a place around this one drains: no attempt follows, and nothing begins.
    pub fn is_draining(&self, path: &NodePath) -> bool {
        self.draining.keys().any(|place| place != path && place.holds(path))
    }

    /// Whether a failure inside this place, a scope or a fan, lets the calls in hand end.
    pub(super) fn drains(&self, plan: &Plan, place: &NodePath) -> bool {
        match self.root.chain(&plan.root, place).as_deref().and_then(<[_]>::last) {
            Some(level) => matches!(level.scope.routing, Routing::Join { on_failure: OnFailure::Drain }),
            // Only a failed branch makes a fan give up.
            None => self.spot(plan, place).is_some_and(|spot| matches!(spot.node.kind, NodeKind::Fan(_))),
        }
    }

    /// The open nodes and branches inside a place.
    pub(super) fn open_inside(&self, plan: &Plan, place: &NodePath) -> OpenInside {
        let mut idle = Vec::new();
        let has_call_in_hand = match self.root.chain(&plan.root, place).as_deref().and_then(<[_]>::last) {
            Some(level) => in_scope(level.scope, level.state, place, &mut idle),
            None => self
                .spot(plan, place)
                .is_some_and(|spot| in_nest(&spot.node.kind, spot.state.nest.as_deref(), place, &mut idle)),
        };
        OpenInside { idle, has_call_in_hand }
    }
}

/// Whether a worker, a function or a script may have the call. A child run is none of these. A job that no worker has
/// claimed, and a call that waits for a worker, are withdrawn when the place begins to drain.
fn is_in_hand(call: &Call, work: &Work) -> bool {
    let is_granted = match work.stage {
        Stage::Granted { .. } => true,
        Stage::Backoff { .. } | Stage::Suspended { .. } | Stage::Parked { .. } => false,
    };
    is_granted
        && match call.exec {
            Exec::Http | Exec::Queue | Exec::Func { .. } | Exec::Script(_) => true,
            Exec::Flow { .. } => false,
        }
}

fn in_scope(scope: &Scope, state: &ScopeState, path: &NodePath, idle: &mut Vec<NodePath>) -> bool {
    let mut has_call = false;
    for (ix, node) in state.nodes.iter().filter(|(_, node)| node.phase.is_open()) {
        let plan = &scope.nodes[*ix];
        has_call |= in_node(&plan.kind, node, path.child(&plan.key), idle);
    }
    has_call
}

fn in_node(kind: &NodeKind, node: &NodeState, path: NodePath, idle: &mut Vec<NodePath>) -> bool {
    let n_before = idle.len();
    let has_call = match (&node.phase, kind) {
        (Phase::Open(Activity::Call(work)), NodeKind::Call(call)) => is_in_hand(call, work),
        // A subflow that waits to start again still has its old inner nodes.
        (Phase::Open(Activity::Nest), _) => in_nest(kind, node.nest.as_deref(), &path, idle),
        _ => false,
    };
    keep_outermost(has_call, n_before, path, idle)
}

fn in_nest(kind: &NodeKind, nest: Option<&Nest>, path: &NodePath, idle: &mut Vec<NodePath>) -> bool {
    match (kind, nest) {
        (NodeKind::Sub(sub), Some(Nest::Scope(inner))) => in_scope(&sub.scope, inner, path, idle),
        (NodeKind::Loop(plan), Some(Nest::Loop(turns))) => turns
            .turns
            .get(turns.index)
            .is_some_and(|turn| in_scope(&plan.body, turn, &path.at(turns.index), idle)),
        (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => {
            let mut has_call = false;
            for (at, slot) in arms.slots.iter().enumerate().filter(|(_, slot)| slot.phase.is_open()) {
                has_call |= in_slot(fan, at, slot, path.at(at), idle);
            }
            has_call
        }
        _ => false,
    }
}

fn in_slot(fan: &Fan, at: usize, slot: &Slot, path: NodePath, idle: &mut Vec<NodePath>) -> bool {
    let n_before = idle.len();
    let has_call = match (fan.branch(at).map(|branch| &branch.body), slot.scope.as_deref()) {
        (Some(Body::Call(call)), _) => slot.phase.work().is_some_and(|work| is_in_hand(call, work)),
        (Some(Body::Scope(scope)), Some(inner)) => in_scope(scope, inner, &path, idle),
        (Some(Body::Scope(_)) | None, _) => false,
    };
    keep_outermost(has_call, n_before, path, idle)
}

/// A node without a call in hand stands for everything inside it.
fn keep_outermost(has_call: bool, n_before: usize, path: NodePath, idle: &mut Vec<NodePath>) -> bool {
    if !has_call {
        idle.truncate(n_before);
        idle.push(path);
    }
    has_call
}
