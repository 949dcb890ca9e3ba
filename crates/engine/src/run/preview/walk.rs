//! Walks through the state in which a round would begin.

use std::collections::BTreeMap;
use std::ops::Range;

use super::anew::Anew;
use super::ask::{foreseen, params_of};
use super::forecast::Forecast;
use super::reach::{by_action, by_join, by_join_again};
use super::told::Told;
use super::{CHILDREN_MAX, Expense, Fate, LOOKS_MAX, PLACES_MAX, Planned, PlannedCall, Preview, Shelf};
use crate::id::RunId;
use crate::input::Given;
use crate::path::NodePath;
use crate::plan::{Body, Branches, Call, Called, Fan, Kind, Loop, Node, NodeIx, Plan, Routing, Scope};
use crate::run::Run;
use crate::run::apply::reopen;
use crate::run::state::{FanState, LoopState, Nest, NodeState, Phase, ScopeState, Slot};
use crate::run::why::performer;

pub(super) struct Walk<'a> {
    /// What values are read from.
    facts: &'a Run,
    plan: &'a Plan,
    given: &'a Given,
    /// Estimates that may still be looked at.
    looks: usize,
    shelf: &'a Shelf,
    forecast: Forecast<'a>,
    pub(super) preview: Preview,
}

impl<'a> Walk<'a> {
    pub(super) fn new(facts: &'a Run, plan: &'a Plan, given: &'a Given, shelf: &'a Shelf) -> Self {
        let (forecast, preview) = (Forecast::new(shelf), Preview::default());
        Walk { facts, plan, given, looks: LOOKS_MAX, shelf, forecast, preview }
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
                    self.node_anew(node, &Anew::once(here, fate));
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
        let left = turns.index.saturating_add(1)..turns.n;
        if !left.is_empty() {
            let whole = Anew::once(path.clone(), Fate::Runs);
            self.scope_anew(&body.body, &whole.each(&[Some(left)], &[]));
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
                    self.body_anew(node, body, arms.names.get(at), &Anew::once(here, Fate::Runs));
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
        match &node.kind {
            Kind::Sub(sub) => self.scope_anew(&sub.scope, anew),
            Kind::Loop(body) => {
                let turns = self.ranges(anew);
                self.scope_anew(&body.body, &anew.each(&turns, &[]));
            }
            Kind::Fan(fan) => self.fan_anew(node, fan, anew),
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

    fn fan_anew(&mut self, node: &Node, fan: &Fan, anew: &Anew) {
        match &fan.branches {
            Branches::Fixed(list) => {
                for (at, branch) in list.iter().enumerate() {
                    self.body_anew(node, &branch.body, None, &anew.child(&at.to_string(), anew.fate));
                }
            }
            Branches::Services { each } => {
                let branches = self.ranges(anew);
                self.body_anew(node, &each.body, None, &anew.each(&branches, &[]));
            }
            Branches::Items { each, special } => {
                let items = self.ranges(anew);
                let apart: Vec<usize> = special.keys().copied().collect();
                self.body_anew(node, &each.body, None, &anew.each(&items, &apart));
                for (at, branch) in special {
                    if self.preview.more {
                        return;
                    }
                    if let Some(item) = anew.item(*at, &items, self.looks) {
                        self.body_anew(node, &branch.body, None, &item);
                    }
                }
            }
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

    /// The items or turns that each model of a fan or a loop had, if it was opened.
    fn ranges(&mut self, anew: &Anew) -> Vec<Option<Range<usize>>> {
        let n_before = |model: NodePath| {
            let spot = self.facts.spot(self.plan, &model).filter(|spot| spot.branch.is_none())?;
            match spot.state.nest.as_deref()? {
                Nest::Loop(turns) => Some(0..turns.n),
                Nest::Fan(arms) => Some(0..arms.slots.len()),
                Nest::Scope(_) => None,
            }
        };
        anew.models().map(n_before).collect()
    }

    fn call(&mut self, node: &Node, call: &Call, name: Option<&String>, anew: &Anew) {
        let spot = anew.models().next().and_then(|model| self.facts.spot(self.plan, &model));
        let named = spot.as_ref().and_then(|spot| spot.service()).map(str::to_owned);
        let service = name.cloned().or(named).unwrap_or_else(|| call.service.clone());
        let pays = self.facts.start.account.is_some();
        let mut bid = if pays { self.bid(call, &service, anew) } else { Bid::default() };
        if let Some(called) = call.called().filter(|_| pays) {
            self.children(called, anew, &mut bid);
        }
        let n = anew.times.unwrap_or(1);
        let preview = &mut self.preview;
        preview.n_calls_possible = preview.n_calls_possible.saturating_add(n);
        if anew.fate == Fate::Runs {
            preview.n_calls = preview.n_calls.saturating_add(n);
        }
        preview.cost.add(bid.cost, anew.fate, Some(1));
        let by = performer(&call.exec);
        self.push(node, anew, Some(PlannedCall { service, by, estimate: bid.dearest }));
    }

    /// What the child runs that make the calls of this place would cost: what the last one did there if it
    /// completed, or else what its definition says.
    fn children(&mut self, called: Called, anew: &Anew, bid: &mut Bid) {
        let depth = self.facts.start.parent.as_ref().map_or(1, |parent| parent.depth.saturating_add(1));
        let (facts, room, mut n) = (self.facts, self.forecast.room(), 0u64);
        for spot in anew.models().take(self.looks).filter_map(|model| facts.spot(self.plan, &model)) {
            n += 1;
            let fence = spot.branch.map_or(spot.state.fence, |arm| arm.slot.fence);
            let made = (fence > 0).then(|| RunId::of_call(facts.id, fence));
            let children = &mut self.preview.questions.children;
            children.extend(made.filter(|_| children.len() < CHILDREN_MAX));
            let one = match made.and_then(|made| self.shelf.costs.get(&made)) {
                Some(cost) => Expense::of(*cost),
                None => self.forecast.child(&called, depth, || params_of(facts, &spot, &room)),
            };
            bid.add_child(one, 1);
        }
        self.looks = self.looks.saturating_sub(anew.around.len());
        let missing = anew.times.unwrap_or(1).saturating_sub(n);
        if missing > 0 {
            bid.add_child(self.forecast.child(&called, depth, || Told::Unknown), missing);
        }
        if anew.times.is_none() && anew.is_repeated() && bid.cost != Expense::default() {
            bid.cost.n_unknown = bid.cost.n_unknown.max(1);
        }
        self.preview.questions.flows.insert(called);
    }

    /// What all calls of this place would be charged. Each is taken to be asked what it was asked before; what was
    /// not there before, and is not the same for all, cannot be told.
    fn bid(&mut self, call: &Call, service: &str, anew: &Anew) -> Bid {
        let prices = &self.facts.start.prices;
        let (mut bid, mut n_known) = (Bid::default(), 0u64);
        let (mut is_priced, mut is_alike) = (call.cost.is_some() || prices.contains_key(service), true);
        let (models, room) = (anew.models().take(self.looks), self.forecast.room());
        for spot in models.filter_map(|model| self.facts.spot(self.plan, &model)) {
            // Branches that are named by their input have a price each.
            let named = spot.service().unwrap_or_default();
            let has_price = call.cost.is_some() || prices.contains_key(named);
            (is_priced, is_alike) = (is_priced || has_price, is_alike && named == service);
            let estimate = if has_price { foreseen(self.facts, &spot, &room) } else { Some(0) };
            n_known += u64::from(estimate.is_some());
            bid.add(estimate, 1);
        }
        self.looks = self.looks.saturating_sub(anew.around.len());
        if !is_priced {
            return Bid::default();
        }
        let missing = anew.times.unwrap_or(1).saturating_sub(n_known);
        let same = crate::money::fixed(call.cost.as_ref(), prices.get(service)).filter(|_| is_alike);
        bid.add(same.filter(|_| missing > 0), missing);
        bid.cost.n_unknown = if same.is_some() { 0 } else { missing };
        if anew.times.is_none() && anew.is_repeated() {
            bid.cost.n_unknown = bid.cost.n_unknown.max(1);
        }
        bid
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

/// What the calls of one place would be charged.
#[derive(Default)]
struct Bid {
    cost: Expense,
    /// The most that one of them would be.
    dearest: Option<i64>,
}

impl Bid {
    fn add(&mut self, amount: Option<i64>, n: u64) {
        self.dearest = self.dearest.max(amount);
        self.cost.add(Expense::of(amount.unwrap_or(0)), Fate::Runs, Some(n));
    }

    /// Adds child runs, which may cost more than is sure.
    fn add_child(&mut self, one: Expense, n: u64) {
        let says_nothing = one.n_unknown > 0 && one.at_most == 0;
        self.dearest = self.dearest.max((!says_nothing).then_some(one.estimated));
        self.cost.add(one, Fate::Runs, Some(n));
    }
}
