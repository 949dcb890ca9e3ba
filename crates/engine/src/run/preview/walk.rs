//! Walks through the state in which a round would begin.

use std::collections::BTreeMap;

use super::reach::{by_action, by_join, by_join_again};
use super::{Fate, PLACES_MAX, Planned, PlannedCall, Preview};
use crate::input::Given;
use crate::path::NodePath;
use crate::plan::{Body, Branches, Call, Exec, Fan, Kind, Loop, Node, NodeIx, Plan, Routing, Scope};
use crate::run::Run;
use crate::run::apply::reopen;
use crate::run::decide::estimated;
use crate::run::state::{FanState, LoopState, Nest, NodeState, Phase, ScopeState, Slot};
use crate::run::why::performer;

/// Where the walk is in what begins from its beginning.
#[derive(Clone)]
struct Anew {
    /// As it is told: `*` for what is repeated.
    path: NodePath,
    /// The same place as it was before, if it was: what the estimate is taken from.
    model: NodePath,
    fate: Fate,
    times: Option<u64>,
}

impl Anew {
    fn child(&self, key: &str, fate: Fate) -> Anew {
        // What may not begin has no inside that surely does.
        let fate = if self.fate == Fate::MayRun { Fate::MayRun } else { fate };
        Anew { path: self.path.child(key), model: self.model.child(key), fate, times: self.times }
    }

    /// Every item or turn, of which there were so many; `at` = the one to learn from.
    fn each(&self, n: Option<usize>, at: usize) -> Anew {
        let n = n.and_then(|n| u64::try_from(n).ok());
        let times = match (self.times, n) {
            (Some(outer), Some(n)) => Some(outer.saturating_mul(n)),
            (None, n) => n,
            (Some(_), None) => None,
        };
        Anew { path: self.path.child("*"), model: self.model.at(at), fate: self.fate, times }
    }
}

pub(super) struct Walk<'a> {
    /// What values are read from.
    facts: &'a Run,
    plan: &'a Plan,
    given: &'a Given,
    pub(super) preview: Preview,
}

impl<'a> Walk<'a> {
    pub(super) fn new(facts: &'a Run, plan: &'a Plan, given: &'a Given) -> Self {
        Walk { facts, plan, given, preview: Preview::default() }
    }

    /// A scope that goes on.
    pub(super) fn reopened(&mut self, scope: &Scope, state: &ScopeState, path: &NodePath) {
        let fates = match (&scope.routing, state.cursor) {
            (Routing::Join { .. }, _) => by_join_again(scope, state),
            (Routing::Action { .. }, Some(cursor)) => {
                let mut fates = by_action(scope, cursor);
                let goes_on = state.node(cursor).phase.is_open();
                fates.entry(cursor).and_modify(|fate| *fate = if goes_on { Fate::GoesOn } else { *fate });
                fates
            }
            (Routing::Action { .. }, None) => BTreeMap::new(),
        };
        for (ix, node) in scope.nodes.iter().enumerate() {
            let (here, inner) = (path.child(&node.key), state.node(ix));
            match fates.get(&ix).copied() {
                Some(Fate::GoesOn) => {
                    self.tell(&here, Fate::GoesOn, node);
                    self.goes_on(node, inner, &here);
                }
                Some(fate @ (Fate::Runs | Fate::MayRun)) => {
                    let anew = Anew { path: here.clone(), model: here, fate, times: None };
                    self.node_anew(node, &anew);
                }
                Some(fate @ (Fate::Kept | Fate::Skipped)) => self.tell(&here, fate, node),
                None if inner.phase.is_settled() => self.tell(&here, Fate::Kept, node),
                None => {}
            }
        }
    }

    fn goes_on(&mut self, node: &Node, state: &NodeState, path: &NodePath) {
        match (&node.kind, state.nest.as_deref()) {
            (Kind::Sub(sub), Some(Nest::Scope(inner))) => self.reopened(&sub.scope, inner, path),
            (Kind::Loop(body), Some(Nest::Loop(turns))) => self.loop_goes_on(body, turns, path),
            (Kind::Fan(fan), Some(Nest::Fan(arms))) => self.fan_goes_on(node, fan, arms, path),
            // Anything else has no inside, or has not begun it.
            (Kind::Sub(_) | Kind::Loop(_) | Kind::Fan(_), _)
            | (Kind::Call(_) | Kind::Choice(_) | Kind::Timer(_) | Kind::Wait(_), _)
            | (Kind::Approval(_) | Kind::Compute(_) | Kind::Pass | Kind::Return, _) => {}
        }
    }

    fn loop_goes_on(&mut self, body: &Loop, turns: &LoopState, path: &NodePath) {
        if let Some(turn) = turns.turns.get(turns.index) {
            self.reopened(&body.body, turn, &path.at(turns.index));
        }
        let left = turns.n.saturating_sub(turns.index.saturating_add(1));
        if left > 0 {
            let whole = Anew { path: path.clone(), model: path.clone(), fate: Fate::Runs, times: None };
            self.scope_anew(&body.body, &whole.each(Some(left), turns.index));
        }
    }

    fn fan_goes_on(&mut self, node: &Node, fan: &Fan, arms: &FanState, path: &NodePath) {
        for (at, slot) in arms.slots.iter().enumerate() {
            if self.preview.more {
                return;
            }
            let Some(branch) = fan.branch(at) else { continue };
            let here = path.at(at);
            let runs = match slot.phase {
                Phase::Pending | Phase::Open(_) => true,
                Phase::Done | Phase::Failed | Phase::Skipped | Phase::Canceled => false,
            };
            match (&branch.body, slot.scope.as_deref()) {
                _ if !runs => self.tell(&here, Fate::Kept, node),
                (Body::Scope(scope), Some(inner)) => {
                    self.tell(&here, Fate::GoesOn, node);
                    self.branch_goes_on(scope, inner, slot, &here);
                }
                (body, _) => {
                    let anew = Anew { path: here.clone(), model: here, fate: Fate::Runs, times: None };
                    self.body_anew(node, body, arms.names.get(at), &anew);
                }
            }
        }
    }

    /// A branch that waits for its turn is taken up only when that comes.
    fn branch_goes_on(&mut self, scope: &Scope, inner: &ScopeState, slot: &Slot, path: &NodePath) {
        if slot.phase == Phase::Open(crate::run::state::Activity::Nest) {
            return self.reopened(scope, inner, path);
        }
        let mut inner = inner.clone();
        reopen(scope, &mut inner, path, self.given.now);
        self.reopened(scope, &inner, path);
    }

    /// A scope from its beginning.
    fn scope_anew(&mut self, scope: &Scope, anew: &Anew) {
        let fates: BTreeMap<NodeIx, Fate> = match scope.routing {
            Routing::Action { start } => by_action(scope, start),
            Routing::Join { .. } => by_join(scope),
        };
        for (ix, fate) in fates {
            let node = &scope.nodes[ix];
            self.node_anew(node, &anew.child(&node.key, fate));
        }
    }

    fn node_anew(&mut self, node: &Node, anew: &Anew) {
        if let Kind::Call(call) = &node.kind {
            return self.call(node, call, None, anew);
        }
        self.push(node, anew, None);
        let before = self.before(&anew.model);
        match &node.kind {
            Kind::Sub(sub) => self.scope_anew(&sub.scope, anew),
            Kind::Loop(body) => {
                let n = match before.and_then(|state| state.nest.as_deref()) {
                    Some(Nest::Loop(turns)) => Some(turns.n),
                    Some(Nest::Scope(_) | Nest::Fan(_)) | None => None,
                };
                self.scope_anew(&body.body, &anew.each(n, 0));
            }
            Kind::Fan(fan) => {
                let n = match before.and_then(|state| state.nest.as_deref()) {
                    Some(Nest::Fan(arms)) => Some(arms.slots.len()),
                    Some(Nest::Scope(_) | Nest::Loop(_)) | None => None,
                };
                match &fan.branches {
                    Branches::Fixed(list) => {
                        for (at, branch) in list.iter().enumerate() {
                            self.body_anew(node, &branch.body, None, &anew.child(&at.to_string(), anew.fate));
                        }
                    }
                    Branches::Services { each } | Branches::Items { each, .. } => {
                        self.body_anew(node, &each.body, None, &anew.each(n, 0));
                    }
                }
            }
            Kind::Call(_)
            | Kind::Choice(_)
            | Kind::Timer(_)
            | Kind::Wait(_)
            | Kind::Approval(_)
            | Kind::Compute(_)
            | Kind::Pass
            | Kind::Return => {}
        }
    }

    fn body_anew(&mut self, node: &Node, body: &Body, name: Option<&String>, anew: &Anew) {
        match body {
            Body::Call(call) => self.call(node, call, name, anew),
            Body::Scope(scope) => {
                self.push(node, anew, None);
                self.scope_anew(scope, anew);
            }
        }
    }

    fn before(&self, model: &NodePath) -> Option<&'a NodeState> {
        self.facts.spot(self.plan, model).filter(|spot| spot.branch.is_none()).map(|spot| spot.state)
    }

    fn call(&mut self, node: &Node, call: &Call, name: Option<&String>, anew: &Anew) {
        let spot = self.facts.spot(self.plan, &anew.model);
        let named = spot.as_ref().and_then(|spot| spot.service()).map(str::to_owned);
        let service = name.cloned().or(named).unwrap_or_else(|| call.service.clone());
        let is_flow = matches!(call.exec, Exec::Flow { .. });
        let is_priced = call.cost.is_some() || self.facts.start.prices.contains_key(&service);
        let pays = self.facts.start.account.is_some();
        let estimate = spot.filter(|_| pays && is_priced).and_then(|spot| estimated(self.facts, &spot));
        let n = anew.times.unwrap_or(1);
        let preview = &mut self.preview;
        let amount = estimate.unwrap_or(0).saturating_mul(i64::try_from(n).unwrap_or(i64::MAX));
        preview.cost.at_most = preview.cost.at_most.saturating_add(amount);
        preview.n_calls_possible = preview.n_calls_possible.saturating_add(n);
        if anew.fate == Fate::Runs {
            preview.n_calls = preview.n_calls.saturating_add(n);
            preview.cost.estimated = preview.cost.estimated.saturating_add(amount);
        }
        let repeats = anew.path.segments().any(|segment| segment == "*");
        let is_unknown =
            pays && (is_flow || (is_priced && (estimate.is_none() || (repeats && anew.times.is_none()))));
        if is_unknown {
            preview.cost.n_unknown = preview.cost.n_unknown.saturating_add(n);
        }
        let by = performer(&call.exec);
        self.push(node, anew, Some(PlannedCall { service, by, estimate }));
    }

    fn push(&mut self, node: &Node, anew: &Anew, call: Option<PlannedCall>) {
        let Anew { path, fate, times, .. } = anew;
        self.add(Planned { node: path.clone(), fate: *fate, label: node.label.clone(), times: *times, call });
    }

    fn tell(&mut self, path: &NodePath, fate: Fate, node: &Node) {
        self.add(Planned { node: path.clone(), fate, label: node.label.clone(), times: None, call: None });
    }

    fn add(&mut self, planned: Planned) {
        if self.preview.places.len() < PLACES_MAX {
            self.preview.places.push(planned);
        } else {
            self.preview.more = true;
        }
    }
}
