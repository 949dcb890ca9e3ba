//! Cancelling a node with everything inside it.

use super::super::Run;
use super::super::state::{Activity, Nest, Phase, ScopeState, Stage};
use crate::path::NodePath;
use crate::plan::{Body, Fan, NodeKind, Plan, Scope};
use crate::time::Timestamp;

/// Index entries to remove for canceled paths.
#[derive(Default)]
struct Gone<'p> {
    wakes: Vec<(Timestamp, NodePath)>,
    paths: Vec<NodePath>,
    waits: Vec<(&'p NodeKind, NodePath)>,
    n_granted: usize,
    refunded: i64,
}

impl Run {
    pub(super) fn dropped(&mut self, plan: &Plan, path: &NodePath, at: Timestamp) {
        let Some(spot) = self.spot(plan, path) else { return };
        let kind = &spot.node.kind;
        let branch = spot.branch.is_some();
        let mut gone = Gone::default();
        if branch {
            let (NodeKind::Fan(fan), Some((fan_path, _))) = (kind, path.split_last()) else { return };
            let Some(arms) = self.fan_mut(plan, &fan_path) else { return };
            let index = path.split_last().and_then(|(_, index)| index.parse().ok()).unwrap_or(usize::MAX);
            let Some(slot) = arms.slots.get_mut(index) else { return };
            arms.n_open = arms.n_open.saturating_sub(usize::from(slot.phase.is_open()));
            close_slot(fan, index, slot, path, at, &mut gone);
        } else if let Some(node) = self.node_mut(plan, path) {
            close_node(kind, node, path, at, &mut gone);
        }
        for wake in gone.wakes {
            self.wakes.remove(&wake);
        }
        for path in gone.paths {
            self.parked.remove(&path);
        }
        for (kind, path) in gone.waits {
            self.waits.remove(kind, &path);
        }
        self.n_granted = self.n_granted.saturating_sub(gone.n_granted);
        self.cost.refund(gone.refunded);
        self.forget_inside(path);
        self.look_at_budget(gone.refunded > 0);
    }
}

fn close_node<'p>(
    kind: &'p NodeKind,
    node: &mut super::super::state::NodeState,
    path: &NodePath,
    at: Timestamp,
    gone: &mut Gone<'p>,
) {
    if !node.phase.is_open() {
        return;
    }
    note(&node.phase, node.wake.take(), path, gone);
    if matches!(kind, NodeKind::Wait(_) | NodeKind::Approval(_)) {
        gone.waits.push((kind, path.clone()));
    }
    node.phase = Phase::Canceled;
    node.ended_at = Some(at);
    match (kind, node.nest.as_deref_mut()) {
        (NodeKind::Sub(sub), Some(Nest::Scope(inner))) => close_scope(&sub.scope, inner, path, at, gone),
        (NodeKind::Loop(plan), Some(Nest::Loop(turns))) => {
            let index = turns.index;
            if let Some(turn) = turns.turns.get_mut(index) {
                close_scope(&plan.body, turn, &path.at(index), at, gone);
            }
        }
        (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => {
            for (index, slot) in arms.slots.iter_mut().enumerate().filter(|(_, slot)| slot.phase.is_open()) {
                close_slot(fan, index, slot, &path.at(index), at, gone);
            }
            arms.n_open = 0;
        }
        _ => {}
    }
}

fn close_slot<'p>(
    fan: &'p Fan,
    index: usize,
    slot: &mut super::super::state::Slot,
    path: &NodePath,
    at: Timestamp,
    gone: &mut Gone<'p>,
) {
    if !slot.phase.is_open() {
        return;
    }
    note(&slot.phase, slot.wake.take(), path, gone);
    slot.phase = Phase::Canceled;
    if let (Some(Body::Scope(scope)), Some(inner)) =
        (fan.branch(index).map(|branch| &branch.body), slot.scope.as_deref_mut())
    {
        close_scope(scope, inner, path, at, gone);
    }
}

fn close_scope<'p>(
    scope: &'p Scope,
    state: &mut ScopeState,
    path: &NodePath,
    at: Timestamp,
    gone: &mut Gone<'p>,
) {
    state.ended = true;
    for (ix, node) in &mut state.nodes {
        let inner = &scope.nodes[*ix];
        close_node(&inner.kind, node, &path.child(&inner.key), at, gone);
    }
}

fn note(phase: &Phase, wake: Option<Timestamp>, path: &NodePath, gone: &mut Gone<'_>) {
    gone.wakes.extend(wake.map(|at| (at, path.clone())));
    gone.paths.push(path.clone());
    if let Phase::Open(Activity::Call(work)) = phase {
        gone.n_granted += usize::from(matches!(work.stage, Stage::Granted { .. }));
        gone.refunded = gone.refunded.saturating_add(work.charge.unwrap_or(0));
    }
}
