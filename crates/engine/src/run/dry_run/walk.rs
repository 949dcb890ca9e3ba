//! Walk through the state in which a new round would begin. It lists nodes and adds up their estimates.

use std::collections::BTreeMap;
use std::ops::Range;

use super::budget::EstimateBudget;
use super::estimate::estimate;
use super::reach::{by_action, by_join, by_join_again};
use super::repeat::RepeatedPath;
use super::{
    CHILDREN_MAX, CostEstimate, DRY_RUN_NODES_MAX, DryRunCall, DryRunEntry, DryRunReport, DryRunStatus,
    EstimateInputs,
};
use crate::counter::Fence;
use crate::id::RunId;
use crate::input::Given;
use crate::money::Amount;
use crate::path::NodePath;
use crate::plan::{Body, Branches, Call, Fan, Loop, Node, NodeIx, NodeKind, Plan, Routing, Scope};
use crate::run::Run;
use crate::run::apply::reopen;
use crate::run::state::{FanState, LoopState, Nest, NodeState, Phase, ScopeState, Slot};
use crate::run::why::performer;

pub(super) struct DryRunWalk<'a> {
    /// The run before the new round; estimates read values from it.
    facts: &'a Run,
    plan: &'a Plan,
    given: &'a Given,
    inputs: &'a EstimateInputs,
    budget: EstimateBudget,
    pub(super) report: DryRunReport,
}

impl<'a> DryRunWalk<'a> {
    pub(super) fn new(facts: &'a Run, plan: &'a Plan, given: &'a Given, inputs: &'a EstimateInputs) -> Self {
        let (budget, report) = (EstimateBudget::new(), DryRunReport::default());
        DryRunWalk { facts, plan, given, inputs, budget, report }
    }

    /// A scope that goes on.
    pub(super) fn reopened(&mut self, scope: &Scope, state: &ScopeState, path: &NodePath) {
        let statuses = match (&scope.routing, state.cursor) {
            (Routing::Join { .. }, _) => by_join_again(scope, state),
            (Routing::Action { .. }, Some(cursor)) => {
                let mut statuses = by_action(scope, cursor);
                let goes_on = state.node(cursor).phase.is_open();
                statuses
                    .entry(cursor)
                    .and_modify(|status| *status = if goes_on { DryRunStatus::GoesOn } else { *status });
                statuses
            }
            (Routing::Action { .. }, None) => BTreeMap::new(),
        };
        for (ix, node) in scope.nodes.iter().enumerate() {
            let (here, inner) = (path.child(&node.key), state.node(ix));
            match statuses.get(&ix).copied() {
                Some(DryRunStatus::GoesOn) => {
                    self.list(&here, DryRunStatus::GoesOn, node);
                    self.goes_on(node, inner, &here);
                }
                Some(status @ (DryRunStatus::Runs | DryRunStatus::MayRun)) => {
                    self.node_fresh(node, &RepeatedPath::once(here, status));
                }
                Some(status @ (DryRunStatus::Kept | DryRunStatus::Skipped)) => self.list(&here, status, node),
                None if inner.phase.is_settled() => self.list(&here, DryRunStatus::Kept, node),
                None => {}
            }
        }
    }

    fn goes_on(&mut self, node: &Node, state: &NodeState, path: &NodePath) {
        match (&node.kind, state.nest.as_deref()) {
            (NodeKind::Sub(sub), Some(Nest::Scope(inner))) => self.reopened(&sub.scope, inner, path),
            (NodeKind::Loop(body), Some(Nest::Loop(turns))) => self.loop_goes_on(body, turns, path),
            (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => self.fan_goes_on(node, fan, arms, path),
            // Anything else has no inside, or has not begun it.
            (NodeKind::Sub(_) | NodeKind::Loop(_) | NodeKind::Fan(_), _)
            | (NodeKind::Call(_) | NodeKind::Choice(_) | NodeKind::Timer(_) | NodeKind::Wait(_), _)
            | (NodeKind::Approval(_) | NodeKind::Compute(_) | NodeKind::Pass | NodeKind::Return, _) => {}
        }
    }

    fn loop_goes_on(&mut self, body: &Loop, turns: &LoopState, path: &NodePath) {
        if let Some(turn) = turns.turns.get(turns.index) {
            self.reopened(&body.body, turn, &path.at(turns.index));
        }
        let left = turns.index.saturating_add(1)..turns.n;
        if !left.is_empty() {
            let whole = RepeatedPath::once(path.clone(), DryRunStatus::Runs);
            self.scope_fresh(&body.body, &whole.each(&[Some(left)], &[]));
        }
    }

    fn fan_goes_on(&mut self, node: &Node, fan: &Fan, arms: &FanState, path: &NodePath) {
        for (at, slot) in arms.slots.iter().enumerate() {
            if self.report.more {
                return;
            }
            let Some(branch) = fan.branch(at) else { continue };
            let here = path.at(at);
            let runs = match slot.phase {
                Phase::Pending | Phase::Open(_) => true,
                Phase::Done | Phase::Failed | Phase::Skipped | Phase::Canceled => false,
            };
            match (&branch.body, slot.scope.as_deref()) {
                _ if !runs => self.list(&here, DryRunStatus::Kept, node),
                (Body::Scope(scope), Some(inner)) => {
                    self.list(&here, DryRunStatus::GoesOn, node);
                    self.branch_goes_on(scope, inner, slot, &here);
                }
                (body, _) => {
                    self.body_fresh(
                        node,
                        body,
                        arms.names.get(at),
                        &RepeatedPath::once(here, DryRunStatus::Runs),
                    );
                }
            }
        }
    }

    /// A branch that still waits to be started is reopened only when it starts.
    fn branch_goes_on(&mut self, scope: &Scope, inner: &ScopeState, slot: &Slot, path: &NodePath) {
        if slot.phase == Phase::Open(crate::run::state::Activity::Nest) {
            return self.reopened(scope, inner, path);
        }
        let mut inner = inner.clone();
        reopen(scope, &mut inner, path, self.given.now);
        self.reopened(scope, &inner, path);
    }

    /// A scope from its beginning.
    fn scope_fresh(&mut self, scope: &Scope, fresh: &RepeatedPath) {
        let statuses: BTreeMap<NodeIx, DryRunStatus> = match scope.routing {
            Routing::Action { start } => by_action(scope, start),
            Routing::Join { .. } => by_join(scope),
        };
        for (ix, status) in statuses {
            let node = &scope.nodes[ix];
            self.node_fresh(node, &fresh.child(&node.key, status));
        }
    }

    fn node_fresh(&mut self, node: &Node, fresh: &RepeatedPath) {
        if let NodeKind::Call(call) = &node.kind {
            return self.call(node, call, None, fresh);
        }
        self.push(node, fresh, None);
        match &node.kind {
            NodeKind::Sub(sub) => self.scope_fresh(&sub.scope, fresh),
            NodeKind::Loop(body) => {
                let turns = self.ranges(fresh);
                self.scope_fresh(&body.body, &fresh.each(&turns, &[]));
            }
            NodeKind::Fan(fan) => self.fan_fresh(node, fan, fresh),
            NodeKind::Call(_)
            | NodeKind::Choice(_)
            | NodeKind::Timer(_)
            | NodeKind::Wait(_)
            | NodeKind::Approval(_)
            | NodeKind::Compute(_)
            | NodeKind::Pass
            | NodeKind::Return => {}
        }
    }

    fn fan_fresh(&mut self, node: &Node, fan: &Fan, fresh: &RepeatedPath) {
        match &fan.branches {
            Branches::Fixed(list) => {
                for (at, branch) in list.iter().enumerate() {
                    self.body_fresh(node, &branch.body, None, &fresh.child(&at.to_string(), fresh.status));
                }
            }
            Branches::Services { each } => {
                let branches = self.ranges(fresh);
                self.body_fresh(node, &each.body, None, &fresh.each(&branches, &[]));
            }
            Branches::Items { each, special } => {
                let items = self.ranges(fresh);
                let apart: Vec<usize> = special.keys().copied().collect();
                self.body_fresh(node, &each.body, None, &fresh.each(&items, &apart));
                for (at, branch) in special {
                    if self.report.more {
                        return;
                    }
                    if let Some(item) = fresh.item(*at, &items, self.budget.fuel) {
                        self.body_fresh(node, &branch.body, None, &item);
                    }
                }
            }
        }
    }

    fn body_fresh(&mut self, node: &Node, body: &Body, name: Option<&String>, fresh: &RepeatedPath) {
        match body {
            Body::Call(call) => self.call(node, call, name, fresh),
            Body::Scope(scope) => {
                self.push(node, fresh, None);
                self.scope_fresh(scope, fresh);
            }
        }
    }

    /// The items or turns of each model of a fan or a loop in the last round, if it was opened.
    fn ranges(&mut self, fresh: &RepeatedPath) -> Vec<Option<Range<usize>>> {
        let n_before = |model: NodePath| {
            let spot = self.facts.spot(self.plan, &model).filter(|spot| spot.branch.is_none())?;
            match spot.state.nest.as_deref()? {
                Nest::Loop(turns) => Some(0..turns.n),
                Nest::Fan(arms) => Some(0..arms.slots.len()),
                Nest::Scope(_) => None,
            }
        };
        fresh.models().map(n_before).collect()
    }

    fn call(&mut self, node: &Node, call: &Call, name: Option<&String>, fresh: &RepeatedPath) {
        let spot = fresh.models().next().and_then(|model| self.facts.spot(self.plan, &model));
        let named = spot.as_ref().and_then(|spot| spot.service()).map(str::to_owned);
        let service = name.cloned().or(named).unwrap_or_else(|| call.service.clone());
        let pays = self.facts.start.account.is_some();
        let mut sum = if pays { self.own_cost(call, &service, fresh) } else { NodeEstimate::default() };
        if pays && call.called().is_some() {
            self.add_children(fresh, &mut sum);
        }
        let n = fresh.times.unwrap_or(1);
        let report = &mut self.report;
        report.n_calls_possible = report.n_calls_possible.saturating_add(n);
        let is_sure = fresh.status == DryRunStatus::Runs;
        if is_sure {
            report.n_calls = report.n_calls.saturating_add(n);
        }
        let estimated = if is_sure { sum.cost.estimated } else { Amount::ZERO };
        report.cost.add(CostEstimate { estimated, ..sum.cost }, 1);
        let by = performer(&call.exec);
        self.push(node, fresh, Some(DryRunCall { service, by, estimate: sum.highest }));
    }

    /// Adds the cost of the child runs that make the calls of this node: that of the last child run if it completed,
    /// unknown otherwise.
    fn add_children(&mut self, fresh: &RepeatedPath, sum: &mut NodeEstimate) {
        let mut n = 0u64;
        for model in fresh.models().take(self.budget.fuel) {
            let Some(spot) = self.facts.spot(self.plan, &model) else { continue };
            n += 1;
            let fence = spot.branch.map_or(spot.state.fence, |arm| arm.slot.fence);
            let last = (fence > Fence::ZERO).then(|| RunId::of_call(self.facts.id, fence));
            let children = &mut self.report.children;
            children.extend(last.filter(|_| children.len() < CHILDREN_MAX));
            sum.add_child(last.and_then(|last| self.inputs.child_costs.get(&last)).copied(), 1);
        }
        self.budget.burn(fresh.around.len());
        sum.add_child(None, fresh.times.unwrap_or(1).saturating_sub(n));
        if fresh.times.is_none() && fresh.is_repeated() {
            sum.cost.n_unknown = sum.cost.n_unknown.max(1);
        }
    }

    /// The cost of all calls of this node. A call that was made before is estimated with the same input; a call that
    /// was not is unknown, unless the price is the same for all.
    fn own_cost(&mut self, call: &Call, service: &str, fresh: &RepeatedPath) -> NodeEstimate {
        let prices = &self.facts.start.prices;
        let (mut sum, mut n_known) = (NodeEstimate::default(), 0u64);
        let (mut is_priced, mut is_alike) = (call.cost.is_some() || prices.contains_key(service), true);
        for model in fresh.models().take(self.budget.fuel) {
            let Some(spot) = self.facts.spot(self.plan, &model) else { continue };
            // Branches that are named by their input have a price each.
            let named = spot.service().unwrap_or_default();
            let has_price = call.cost.is_some() || prices.contains_key(named);
            (is_priced, is_alike) = (is_priced || has_price, is_alike && named == service);
            let amount =
                if has_price { estimate(self.facts, &spot, &mut self.budget) } else { Some(Amount::ZERO) };
            n_known += u64::from(amount.is_some());
            sum.add(amount, 1);
        }
        self.budget.burn(fresh.around.len());
        if !is_priced {
            return NodeEstimate::default();
        }
        let missing = fresh.times.unwrap_or(1).saturating_sub(n_known);
        let same = crate::money::fixed(call.cost.as_ref(), prices.get(service)).filter(|_| is_alike);
        sum.add(same.filter(|_| missing > 0), missing);
        sum.cost.n_unknown = if same.is_some() { 0 } else { missing };
        if fresh.times.is_none() && fresh.is_repeated() {
            sum.cost.n_unknown = sum.cost.n_unknown.max(1);
        }
        sum
    }

    fn push(&mut self, node: &Node, fresh: &RepeatedPath, call: Option<DryRunCall>) {
        let RepeatedPath { path, status, times, .. } = fresh;
        let label = node.label.clone();
        self.add(DryRunEntry { node: path.clone(), status: *status, label, times: *times, call });
    }

    fn list(&mut self, path: &NodePath, status: DryRunStatus, node: &Node) {
        self.add(DryRunEntry {
            node: path.clone(),
            status,
            label: node.label.clone(),
            times: None,
            call: None,
        });
    }

    fn add(&mut self, entry: DryRunEntry) {
        if self.report.nodes.len() < DRY_RUN_NODES_MAX {
            self.report.nodes.push(entry);
        } else {
            self.report.more = true;
        }
    }
}

/// The estimated charge of all calls of one node.
#[derive(Default)]
struct NodeEstimate {
    cost: CostEstimate,
    /// The highest charge for one call.
    highest: Option<Amount>,
}

impl NodeEstimate {
    /// Adds calls of one amount; `None` = unknown, and counted by the caller.
    fn add(&mut self, amount: Option<Amount>, n: u64) {
        self.highest = self.highest.max(amount);
        self.cost.add(CostEstimate::of(amount.unwrap_or(Amount::ZERO)), n);
    }

    /// Adds child runs of one cost; `None` = unknown.
    fn add_child(&mut self, cost: Option<Amount>, n: u64) {
        self.highest = self.highest.max(cost);
        self.cost.add(cost.map_or(CostEstimate::UNKNOWN, CostEstimate::of), n);
    }
}
