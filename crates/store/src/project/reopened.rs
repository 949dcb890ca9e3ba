//! Where the nodes of a run stand when a new round begins. A journal says only that one began: what that means for
//! nodes which are not entered at once is in the plan, which those who read the tables do not have.

use std::collections::BTreeMap;

use serde::Serialize;
use windlass_engine::event::Event;
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Body, Fan, Kind, Plan, Scope};
use windlass_engine::run::Run;
use windlass_engine::run::state::{FanState, Nest, Phase, ScopeState};

/// What differs from how the nodes ended in earlier rounds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Reopened {
    /// Nodes that have to be entered first; what was inside them is gone.
    pub pending: Vec<NodePath>,
    /// Branches that wait for their turn; what is inside them stays.
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
                (Kind::Sub(sub), Some(Nest::Scope(inside))) => self.scope(&sub.scope, inside, &here),
                (Kind::Loop(body), Some(Nest::Loop(turns))) => {
                    for (index, turn) in turns.turns.iter().enumerate() {
                        self.scope(&body.body, turn, &here.at(index));
                    }
                    self.turns.insert(here, turns.turns.len());
                }
                (Kind::Fan(fan), Some(Nest::Fan(arms))) => self.fan(fan, arms, &here),
                // Anything else has no inside, or has not begun it.
                (Kind::Sub(_) | Kind::Loop(_) | Kind::Fan(_), _)
                | (Kind::Call(_) | Kind::Choice(_) | Kind::Timer(_) | Kind::Wait(_), _)
                | (Kind::Approval(_) | Kind::Compute(_) | Kind::Pass | Kind::Return, _) => {}
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
