//! What a child run would cost that was not made: told from the definition of its flow, with what is known of its
//! params and of the prices that it would have. It is told as if every node ended well, and no condition is looked at.

mod place;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::reach::{by_action, by_join};
use super::room::Room;
use super::told::Told;
use super::{Expense, Fate, LOOKS_MAX, Shelf};
use crate::limits::DEPTH;
use crate::plan::{Body, Branch, Branches, Call, Called, Fan, Kind, Node, Plan, Prep, Routing, Scope};
use place::{At, Place, is_fieldless};

/// Scopes inside scopes, of all flows that call one another together: flows may call flows as deep as they can be
/// with four each, and the stack is not endless.
const DEEP_MAX: usize = 4 * DEPTH;
/// Fields of params and inputs that are one more look at each node that sees them.
const FIELDS_AT_ONCE: usize = 100;
/// Items and turns that are looked at one by one.
const EACH_MAX: usize = 100;

pub(super) struct Forecast<'a> {
    shelf: &'a Shelf,
    /// Nodes and branches that may still be looked at.
    looks: usize,
    room: Rc<Room>,
    /// What flows cost at a depth, whatever they are given: as far as that can be told.
    whatever: BTreeMap<(Called, u32), Expense>,
}

impl<'a> Forecast<'a> {
    pub(super) fn new(shelf: &'a Shelf) -> Self {
        Forecast { shelf, looks: LOOKS_MAX, room: Rc::default(), whatever: BTreeMap::new() }
    }

    /// What may still be put together for this plan.
    pub(super) fn room(&self) -> Rc<Room> {
        self.room.clone()
    }

    /// What a child run so many flows deep would cost, given these params.
    pub(super) fn child(&mut self, called: &Called, depth: u32, params: impl FnOnce() -> Told) -> Expense {
        self.child_within(called, depth, 0, params)
    }

    fn child_within(
        &mut self,
        called: &Called,
        depth: u32,
        deep: usize,
        params: impl FnOnce() -> Told,
    ) -> Expense {
        if depth as usize > DEPTH {
            // It is refused before it costs anything.
            return Expense::default();
        }
        let shelf = self.shelf;
        let plan = shelf.flows.get(called).filter(|plan| !plan.stopped);
        let Some(plan) = plan.filter(|_| self.looks > 0 && deep < DEEP_MAX) else {
            return Expense::unknown(1);
        };
        let key = (called.clone(), depth);
        let whatever = match self.whatever.get(&key) {
            Some(known) => *known,
            None => {
                let told = self.run(plan, &Told::Unknown, depth, deep);
                self.whatever.insert(key, told);
                told
            }
        };
        // What does not depend on the params is the same for all.
        if whatever.n_unknown == 0 || self.looks == 0 {
            return whatever;
        }
        match params() {
            Told::Unknown => whatever,
            params => self.run(plan, &params, depth, deep),
        }
    }

    fn run(&mut self, plan: &'a Plan, params: &Told, depth: u32, deep: usize) -> Expense {
        let at = At { fate: Fate::Runs, times: Some(1), depth, deep };
        let mut sum = Expense::default();
        self.scope(&plan.root, &Place::root(plan, params, self.room()), at, &mut sum);
        sum
    }

    fn scope(&mut self, scope: &'a Scope, place: &Place<'a>, at: At, sum: &mut Expense) {
        if at.deep >= DEEP_MAX {
            return sum.add(Expense::unknown(1), at.fate, at.times);
        }
        let fates = match scope.routing {
            Routing::Action { start } => by_action(scope, start),
            Routing::Join { .. } => by_join(scope),
        };
        let place = place.within(scope);
        let looks = 1 + place.breadth() / FIELDS_AT_ONCE;
        for (ix, fate) in fates {
            if self.looks == 0 {
                return sum.add(Expense::unknown(1), at.fate, at.times);
            }
            self.looks = self.looks.saturating_sub(looks);
            self.node(&scope.nodes[ix], &place, at.inside(fate), sum);
        }
    }

    fn node(&mut self, node: &'a Node, place: &Place<'a>, at: At, sum: &mut Expense) {
        let here = place.node(node);
        match &node.kind {
            Kind::Call(call) => self.call(node, call, &call.service, &here, at, sum),
            Kind::Sub(sub) => {
                let inner = here.opened(&sub.scope, None, Some(&sub.overrides));
                self.scope(&sub.scope, &inner, at, sum);
            }
            Kind::Loop(body) => {
                let n = here.n_turns(&body.over);
                self.each(n, 0, at, sum, |forecast, turn, at, sum| {
                    forecast.scope(&body.body, &place.turn(node, turn, &here.input), at, sum);
                });
            }
            Kind::Fan(fan) => self.fan(node, fan, &here, at, sum),
            Kind::Choice(_)
            | Kind::Timer(_)
            | Kind::Wait(_)
            | Kind::Approval(_)
            | Kind::Compute(_)
            | Kind::Pass
            | Kind::Return => {}
        }
    }

    fn fan(&mut self, node: &'a Node, fan: &'a Fan, here: &Place<'a>, at: At, sum: &mut Expense) {
        match &fan.branches {
            Branches::Fixed(list) => {
                for (index, branch) in list.iter().enumerate() {
                    if self.looks == 0 {
                        return sum.add(Expense::unknown(1), at.fate, at.times);
                    }
                    let arm = here.branch(node, branch, &here.input);
                    self.body(node, branch, None, Some(index), &arm, at, sum);
                }
            }
            Branches::Items { each, special } => self.items(node, each, special, here, at, sum),
            Branches::Services { each } => {
                let arm = here.branch(node, each, &here.input);
                let Some(names) = here.services() else {
                    // Any of them may have a price.
                    return sum.add(Expense::unknown(1), at.fate, at.times);
                };
                for (index, name) in names.iter().enumerate() {
                    self.body(node, each, Some(name), Some(index), &arm, at, sum);
                }
            }
        }
    }

    /// Items that have a branch of their own by themselves, and all others.
    fn items(
        &mut self,
        node: &'a Node,
        each: &'a Branch,
        special: &'a BTreeMap<usize, Branch>,
        here: &Place<'a>,
        at: At,
        sum: &mut Expense,
    ) {
        let n = here.input.n_items();
        let arm = |branch, index| here.branch(node, branch, &here.item(index));
        let mut n_apart = 0;
        for (index, branch) in special.range(..n.unwrap_or(usize::MAX)) {
            if self.looks == 0 {
                return sum.add(Expense::unknown(1), at.fate, at.times);
            }
            // Nobody knows whether there are so many.
            let at = if n.is_some() { at } else { At { fate: Fate::MayRun, ..at } };
            self.body(node, branch, None, Some(*index), &arm(branch, Some(*index)), at, sum);
            n_apart += 1;
        }
        self.each(n, n_apart, at, sum, |forecast, index, at, sum| {
            if index.is_none_or(|index| !special.contains_key(&index)) {
                forecast.body(node, each, None, index, &arm(each, index), at, sum);
            }
        });
    }

    #[expect(clippy::too_many_arguments, reason = "a branch is a node's, has a place and may have a name")]
    fn body(
        &mut self,
        node: &'a Node,
        branch: &'a Branch,
        name: Option<&str>,
        index: Option<usize>,
        arm: &Place<'a>,
        at: At,
        sum: &mut Expense,
    ) {
        if self.looks == 0 {
            return sum.add(Expense::unknown(1), at.fate, at.times);
        }
        self.looks -= 1;
        match &branch.body {
            Body::Call(call) => self.call(node, call, name.unwrap_or(&call.service), arm, at, sum),
            Body::Scope(scope) => self.scope(scope, &arm.opened(scope, Some(index), None), at, sum),
        }
    }

    /// So many of the same, but those that were told apart. Those that cost the same whatever they are about are not
    /// looked at one by one.
    fn each(
        &mut self,
        n: Option<usize>,
        n_apart: usize,
        at: At,
        sum: &mut Expense,
        one: impl Fn(&mut Self, Option<usize>, At, &mut Expense),
    ) {
        let mut all = Expense::default();
        one(self, None, at.repeated(n.map(|n| n.saturating_sub(n_apart))), &mut all);
        match n {
            Some(n) if all.n_unknown > 0 && n <= EACH_MAX => {
                (0..n).for_each(|index| one(self, Some(index), at, sum));
            }
            Some(_) | None => *sum = sum.plus(all),
        }
    }

    fn call(&mut self, node: &Node, call: &Call, service: &str, here: &Place<'_>, at: At, sum: &mut Expense) {
        let is_whole = matches!(node.prep, Prep::Params(_));
        sum.add(self.charge(call, service, &here.asked(is_whole)), at.fate, at.times);
        if let Some(called) = call.called() {
            let params = || if is_whole { here.input.clone() } else { with_fields(node, here) };
            let child = self.child_within(&called, at.depth + 1, at.deep, params);
            sum.add(child, at.fate, at.times);
        }
    }

    /// What one call is charged itself.
    fn charge(&self, call: &Call, service: &str, sight: &Place<'_>) -> Expense {
        let (cost, price) = (call.cost.as_ref(), self.shelf.prices.get(service));
        let Some(asked) = crate::money::asked(cost, price) else { return Expense::default() };
        let asked = sight.told(&asked);
        let amount = asked.value().and_then(|asked| crate::money::charged(cost, price, asked).ok());
        amount.map_or(Expense::unknown(1), Expense::of)
    }
}

/// A flow has no input: what is prepared for one is given to it as params, over all others.
fn with_fields(node: &Node, here: &Place<'_>) -> Told {
    match node.prep {
        Prep::Scope | Prep::Params(_) => here.params.clone(),
        Prep::Key(_) | Prep::Map(_) => as_params(&here.input).over(&here.params),
    }
}

/// What a flow is given that was prepared as an input.
pub(super) fn as_params(input: &Told) -> Told {
    match is_fieldless(input) {
        true => Told::fields([("input".to_owned(), input.clone())], false),
        false => input.clone(),
    }
}
