//! Canceling a node with everything inside it.

use std::collections::BTreeSet;

use super::super::parked::Parked;
use super::super::state::{Activity, Nest, NodeState, Phase, ScopeState, Slot, Stage};
use super::super::waits::Waits;
use super::Applier;
use crate::money::Amount;
use crate::path::NodePath;
use crate::plan::{Body, Fan, NodeKind, Scope};
use crate::time::Timestamp;

impl Applier<'_> {
    pub(super) fn dropped(&mut self, path: &NodePath) {
        let Some(spot) = self.run.spot(self.plan, path) else { return };
        let (kind, is_branch) = (&spot.node.kind, spot.branch.is_some());
        let run = &mut *self.run;
        let mut walk = CancelWalk {
            at: self.at,
            wakes: &mut run.wakes,
            parked: &mut run.parked,
            waits: &mut run.waits,
            n_granted: 0,
            refunded: Amount::ZERO,
        };
        if is_branch {
            let (NodeKind::Fan(fan), Some((fan_path, index))) = (kind, path.split_last()) else { return };
            let Some(arms) = run.root.fan_mut(&self.plan.root, &fan_path) else { return };
            let index = index.parse().unwrap_or(usize::MAX);
            let Some(slot) = arms.slots.get_mut(index) else { return };
            arms.n_open = arms.n_open.saturating_sub(usize::from(slot.phase.is_open()));
            walk.slot(fan, index, slot, path);
        } else if let Some(node) = run.root.node_mut(&self.plan.root, path) {
            walk.node(kind, node, path);
        }
        let (n_granted, refunded) = (walk.n_granted, walk.refunded);
        run.cost.refund(refunded);
        run.agenda.forget(path);
        self.left_grants(path, n_granted);
        self.drains_no_more(path);
        self.look_at_budget(refunded > Amount::ZERO);
    }
}

/// Cancels open nodes: takes their paths out of the indexes, and counts the calls that are given up.
struct CancelWalk<'a> {
    at: Timestamp,
    wakes: &'a mut BTreeSet<(Timestamp, NodePath)>,
    parked: &'a mut Parked,
    waits: &'a mut Waits,
    n_granted: usize,
    refunded: Amount,
}

impl CancelWalk<'_> {
    fn node(&mut self, kind: &NodeKind, node: &mut NodeState, path: &NodePath) {
        if !node.phase.is_open() {
            return;
        }
        self.leave(&node.phase, node.wake.take(), path);
        self.waits.remove(kind, path);
        node.phase = Phase::Canceled;
        node.ended_at = Some(self.at);
        match (kind, node.nest.as_deref_mut()) {
            (NodeKind::Sub(sub), Some(Nest::Scope(inner))) => self.scope(&sub.scope, inner, path),
            (NodeKind::Loop(plan), Some(Nest::Loop(turns))) => {
                let index = turns.index;
                if let Some(turn) = turns.turns.get_mut(index) {
                    self.scope(&plan.body, turn, &path.at(index));
                }
            }
            (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => {
                for (index, slot) in
                    arms.slots.iter_mut().enumerate().filter(|(_, slot)| slot.phase.is_open())
                {
                    self.slot(fan, index, slot, &path.at(index));
                }
                arms.n_open = 0;
            }
            _ => {}
        }
    }

    fn slot(&mut self, fan: &Fan, index: usize, slot: &mut Slot, path: &NodePath) {
        if !slot.phase.is_open() {
            return;
        }
        self.leave(&slot.phase, slot.wake.take(), path);
        slot.phase = Phase::Canceled;
        if let (Some(Body::Scope(scope)), Some(inner)) =
            (fan.branch(index).map(|branch| &branch.body), slot.scope.as_deref_mut())
        {
            self.scope(scope, inner, path);
        }
    }

    fn scope(&mut self, scope: &Scope, state: &mut ScopeState, path: &NodePath) {
        state.ended = true;
        for (ix, node) in &mut state.nodes {
            let inner = &scope.nodes[*ix];
            self.node(&inner.kind, node, &path.child(&inner.key));
        }
    }

    fn leave(&mut self, phase: &Phase, wake: Option<Timestamp>, path: &NodePath) {
        if let Some(at) = wake {
            self.wakes.remove(&(at, path.clone()));
        }
        self.parked.remove(path);
        if let Phase::Open(Activity::Call(work)) = phase {
            self.n_granted += usize::from(matches!(work.stage, Stage::Granted { .. }));
            self.refunded = self.refunded.saturating_add(work.charge.unwrap_or(Amount::ZERO));
        }
    }
}
