//! States of the nodes of a run when a new round begins. A journal says only that one began: the states of
//! nodes that are not entered at once follow from the plan, which readers of the tables do not have.

use std::collections::BTreeMap;

use serde::Serialize;
use windlass_engine::event::Event;
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Body, Fan, NodeKind, Plan, Scope};
use windlass_engine::run::Run;
use windlass_engine::run::state::{FanState, Nest, Phase, ScopeState};

/// Differences to the ends of the nodes in earlier rounds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Reopened {
    /// Nodes that have to be entered first; their inner state is gone.
    pub pending: Vec<NodePath>,
    /// Branches that wait to start; their inner state stays.
    pub waiting: Vec<NodePath>,
    /// Nodes and branches that go on inside.
    pub open: Vec<NodePath>,
    /// How many turns loops have; later ones are gone.
    pub turns: BTreeMap<NodePath, usize>,
}

/// Where the nodes stand after these events, if a new round began with them.
pub fn reopened(plan: &Plan, run: &Run, events: &[Event]) -> Option<Reopened> {
    let begins = |event: &Event| matches!(event, Event::Retried { .. } | Event::Rerun { .. });
    if !events.iter().any(begins) {
        return None;
    }
    let mut reopened = Reopened::default();
    reopened.scope(&plan.root, &run.root, &NodePath::root());
    Some(reopened)
}

impl Reopened {
    /// Recurses once for each scope inside another, of which a plan has a bounded number.
    fn scope(&mut self, scope: &Scope, state: &ScopeState, path: &NodePath) {
        for (ix, node) in scope.nodes.iter().enumerate() {
            let (here, inner) = (path.child(&node.key), state.node(ix));
            match inner.phase {
                Phase::Pending => {
                    self.pending.push(here);
                    continue;
                }
                Phase::Open(_) => self.open.push(here.clone()),
                Phase::Done | Phase::Failed | Phase::Skipped | Phase::Canceled => {}
            }
            match (&node.kind, inner.nest.as_deref()) {
                (NodeKind::Sub(sub), Some(Nest::Scope(inside))) => self.scope(&sub.scope, inside, &here),
                (NodeKind::Loop(body), Some(Nest::Loop(turns))) => {
                    for (index, turn) in turns.turns.iter().enumerate() {
                        self.scope(&body.body, turn, &here.at(index));
                    }
                    self.turns.insert(here, turns.turns.len());
                }
                (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => self.fan(fan, arms, &here),
                // Anything else has no inside, or has not begun it.
                (NodeKind::Sub(_) | NodeKind::Loop(_) | NodeKind::Fan(_), _)
                | (NodeKind::Call(_) | NodeKind::Choice(_) | NodeKind::Timer(_) | NodeKind::Wait(_), _)
                | (NodeKind::Approval(_) | NodeKind::Compute(_) | NodeKind::Pass | NodeKind::Return, _) => {}
            }
        }
    }

    fn fan(&mut self, fan: &Fan, arms: &FanState, path: &NodePath) {
        for (at, slot) in arms.slots.iter().enumerate() {
            let here = path.at(at);
            match (fan.branch(at).map(|branch| &branch.body), slot.scope.as_deref()) {
                (Some(Body::Scope(scope)), Some(inner)) => self.scope(scope, inner, &here),
                (Some(Body::Scope(_) | Body::Call(_)) | None, _) => {}
            }
            match (&slot.phase, slot.scope.is_some()) {
                (Phase::Pending, true) => self.waiting.push(here),
                (Phase::Pending, false) => self.pending.push(here),
                (Phase::Open(_), _) => self.open.push(here),
                (Phase::Done | Phase::Failed | Phase::Skipped | Phase::Canceled, _) => {}
            }
        }
    }
}
