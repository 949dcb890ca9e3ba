//! Nodes that settle: their results are kept, and their successors become ready.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::Todo;
use super::super::facts::loop_fact;
use super::super::state::{Nest, Phase, ScopeState};
use super::super::view::NodeRef;
use super::{Applier, fan};
use crate::money::Amount;
use crate::path::NodePath;
use crate::plan::{Compute, NodeIx, NodeKind, OnFailure, Post, Routing, Strategy, When};
use crate::reference::dig;
use crate::retry::Fault;

impl Applier<'_> {
    pub(super) fn done(
        &mut self,
        path: &NodePath,
        output: Option<Arc<Value>>,
        action: Option<String>,
        actual: Option<Amount>,
    ) {
        self.close_work(path, actual);
        self.forget(path);
        self.drains_no_more(path);
        let Some(spot) = self.run.spot(self.plan, path) else { return };
        let output = output.unwrap_or_else(|| collected(&spot));
        let (ix, node) = (spot.ix, spot.node);
        if let Some(arm) = spot.branch {
            let entries = results(&arm.branch.post, &output);
            if let Some(slot) = self.run.root.slot_mut(&self.plan.root, path) {
                slot.phase = Phase::Done;
                slot.output = Some(output);
                slot.fault = None;
            }
            self.write_shared(path, entries);
            self.branch_settled(path, false);
            return;
        }
        let mut entries = results(&node.post, &output);
        entries.extend(extra_results(&spot, &output));
        if let Some(state) = self.run.root.node_mut(&self.plan.root, path) {
            state.phase = Phase::Done;
            state.output = Some(output.clone());
            state.action.clone_from(&action);
            state.fault = None;
            state.ended_at = Some(self.at);
        }
        self.write_shared(path, entries);
        match &node.kind {
            NodeKind::Return => {
                let flow = self.run.root.flow_of(&self.plan.root, path);
                if let Some((_, state)) = self.run.root.scope_mut(&self.plan.root, &flow) {
                    state.result = Some(output);
                    state.ended = true;
                }
                self.run.agenda.forget(&flow);
                self.run.agenda.push_front(Todo::Finish(flow));
                return;
            }
            NodeKind::Compute(Compute::Outputs(_)) => {
                let flow = self.run.root.flow_of(&self.plan.root, path);
                if let Some((_, state)) = self.run.root.scope_mut(&self.plan.root, &flow) {
                    state.result = Some(output);
                }
            }
            _ => {}
        }
        self.route(path, ix, action.as_deref(), true);
    }

    pub(super) fn failed(&mut self, path: &NodePath, fault: &Fault, route: Option<&str>) {
        self.close_work(path, None);
        self.forget(path);
        self.drains_no_more(path);
        self.run.agenda.remove(&Todo::Enter(path.clone()));
        let Some(spot) = self.run.spot(self.plan, path) else { return };
        if spot.branch.is_some() {
            if let Some(slot) = self.run.root.slot_mut(&self.plan.root, path) {
                slot.phase = Phase::Failed;
                slot.fault = Some(Box::new(fault.clone()));
            }
            self.branch_settled(path, true);
            return;
        }
        let (ix, node) = (spot.ix, spot.node);
        let routing = &spot.level.scope.routing;
        let attempts = spot.state.attempts;
        let partial = matches!(spot.state.nest.as_deref(), Some(Nest::Fan(_))).then(|| collected(&spot));
        let mut entries = partial.as_ref().map(|output| results(&node.post, output)).unwrap_or_default();
        if route.is_some() {
            let error = serde_json::json!({
                "node": path.as_str(), "message": fault.message, "attempt": attempts, "kind": fault.kind.word(),
            });
            entries.push(("_error".to_owned(), Arc::new(error)));
        }
        if let Some(state) = self.run.root.node_mut(&self.plan.root, path) {
            state.phase = Phase::Failed;
            state.output = partial;
            state.fault = Some(fault.clone());
            state.action = route.map(str::to_owned);
            state.ended_at = Some(self.at);
        }
        self.write_shared(path, entries);
        let goes_on = matches!(routing, Routing::Join { on_failure: OnFailure::Continue });
        if route.is_some() {
            self.route(path, ix, route, true);
            return;
        }
        let Some((scope_path, _)) = path.split_last() else { return };
        if let Some((_, state)) = self.run.root.scope_mut(&self.plan.root, &scope_path)
            && state.fault.is_none()
        {
            state.fault = Some((path.clone(), fault.clone()));
        }
        if goes_on {
            self.block_after(&scope_path, ix);
            self.route(path, ix, None, false);
        } else {
            self.end_scope(&scope_path);
        }
    }

    pub(super) fn skipped(&mut self, path: &NodePath) {
        self.run.agenda.remove(&Todo::Enter(path.clone()));
        let Some(spot) = self.run.spot(self.plan, path) else { return };
        let (ix, blocked) = (spot.ix, spot.state.blocked);
        if let Some(state) = self.run.root.node_mut(&self.plan.root, path) {
            state.phase = Phase::Skipped;
            state.ended_at = Some(self.at);
        }
        if let Some((scope_path, _)) = path.split_last().filter(|_| blocked) {
            self.block_after(&scope_path, ix);
        }
        self.route(path, ix, None, false);
    }

    pub(super) fn judged(&mut self, path: &NodePath, dead: &[String]) {
        self.run.agenda.remove(&Todo::Judge(path.clone()));
        let Some((scope_path, key)) = path.split_last() else { return };
        let Some((scope, state)) = self.run.root.scope_mut(&self.plan.root, &scope_path) else { return };
        let Some((ix, _)) = scope.node(key) else { return };
        let dead: Vec<NodeIx> = dead.iter().filter_map(|key| Some(scope.node(key)?.0)).collect();
        let node = state.nodes.entry(ix).or_default();
        node.dead.clone_from(&dead);
        node.judged = true;
        self.follow_edges(&scope_path, ix, live_edges(&dead));
    }

    /// Queues the successors of a settled node. `live`: whether its edges may be live at all.
    fn route(&mut self, path: &NodePath, ix: NodeIx, action: Option<&str>, live: bool) {
        let Some((scope_path, _)) = path.split_last() else { return };
        self.run.look.note_settled(&self.run.waits);
        let Some((scope, state)) = self.run.root.scope_mut(&self.plan.root, &scope_path) else { return };
        let node = &scope.nodes[ix];
        if matches!(scope.routing, Routing::Action { .. }) {
            let edge_of = |wanted: &str| {
                node.out.iter().find(|edge| matches!(&edge.when, When::Action(a) if a == wanted))
            };
            let edge = action.and_then(edge_of).or_else(|| edge_of("default"));
            match edge.and_then(|edge| edge.to) {
                Some(to) => {
                    state.cursor = Some(to);
                    state.nodes.entry(to).or_default().phase = Phase::Pending;
                    self.run.agenda.push_back(Todo::Enter(scope_path.child(&scope.nodes[to].key)));
                }
                None => self.end_scope(&scope_path),
            }
            return;
        }
        state.n_settled += 1;
        if live && node.out.iter().any(|edge| !matches!(edge.when, When::Always)) {
            self.run.agenda.push_back(Todo::Judge(path.clone()));
        } else {
            self.follow_edges(&scope_path, ix, |_| live);
        }
        if let Some((scope, state)) = self.run.root.scope_mut(&self.plan.root, &scope_path)
            && state.n_settled >= state.n_total(scope)
        {
            self.end_scope(&scope_path);
        }
    }

    /// Counts the edges out of a settled node of a join scope; targets whose edges are all counted are ready.
    fn follow_edges(&mut self, scope_path: &NodePath, ix: NodeIx, mut live: impl FnMut(NodeIx) -> bool) {
        let Some((scope, state)) = self.run.root.scope_mut(&self.plan.root, scope_path) else { return };
        let mut ready = Vec::new();
        for to in scope.nodes[ix].out.iter().filter_map(|edge| edge.to) {
            let Some(n_in) = state.n_in(scope, to) else { continue };
            let target = state.nodes.entry(to).or_default();
            target.n_in_settled += 1;
            target.n_in_live += usize::from(live(to));
            if target.n_in_settled == n_in && target.phase == Phase::Pending {
                ready.push(Todo::Enter(scope_path.child(&scope.nodes[to].key)));
            }
        }
        self.run.agenda.extend(ready);
    }

    /// Nodes that depend on a failed node do not run.
    fn block_after(&mut self, scope_path: &NodePath, ix: NodeIx) {
        let Some((scope, state)) = self.run.root.scope_mut(&self.plan.root, scope_path) else { return };
        for to in scope.nodes[ix].out.iter().filter_map(|edge| edge.to) {
            state.nodes.entry(to).or_default().blocked = true;
        }
    }

    /// Takes the items of a settled path off the agenda. Only containers have more than their own item.
    fn forget(&mut self, path: &NodePath) {
        let nested = self.run.spot(self.plan, path).is_some_and(|spot| match spot.branch {
            Some(arm) => arm.slot.scope.is_some(),
            None => spot.state.nest.is_some(),
        });
        if nested {
            self.run.agenda.forget(path);
        } else {
            self.run.agenda.remove(&Todo::Begin(path.clone()));
        }
    }
}

/// Asked once per edge, whether it is live. Edges to the same node differ only in number.
pub(super) fn live_edges(dead: &[NodeIx]) -> impl FnMut(NodeIx) -> bool + use<> {
    let mut n_dead: BTreeMap<NodeIx, usize> = BTreeMap::new();
    for ix in dead {
        *n_dead.entry(*ix).or_default() += 1;
    }
    move |to| match n_dead.get_mut(&to) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        Some(_) | None => true,
    }
}

/// The output of a container, from its inner nodes.
pub(in super::super) fn collected(spot: &NodeRef<'_, '_>) -> Arc<Value> {
    let of_scope = |scope: &ScopeState| scope.result.clone().unwrap_or_else(|| scope.shared_value());
    if let Some(arm) = &spot.branch {
        return arm.slot.scope.as_deref().map(of_scope).unwrap_or_default();
    }
    match (&spot.node.kind, spot.state.nest.as_deref()) {
        (NodeKind::Sub(_), Some(Nest::Scope(inner))) => of_scope(inner),
        (NodeKind::Fan(plan), Some(Nest::Fan(arms))) => Arc::new(fan::output(arms.strategy(plan), arms)),
        (NodeKind::Loop(plan), Some(Nest::Loop(turns))) => {
            let keys = plan.outputs.iter().map(|(key, _)| key.as_str());
            Arc::new(loop_fact(keys, turns, &spot.state.input))
        }
        _ => Arc::default(),
    }
}

/// Writes of a result into shared.
fn results(post: &Post, output: &Arc<Value>) -> Vec<(String, Arc<Value>)> {
    let mapped = post.output_map.iter().filter(|_| output.is_object()).map(|(to, from)| {
        let value = dig(output, from).cloned().unwrap_or(Value::Null);
        (to.clone(), Arc::new(value))
    });
    let whole = post.output_key.iter().map(|key| (key.clone(), output.clone()));
    mapped.chain(whole).collect()
}

/// Further writes of single kinds: variables, and the errors a fan collected.
fn extra_results(spot: &NodeRef<'_, '_>, output: &Arc<Value>) -> Vec<(String, Arc<Value>)> {
    match (&spot.node.kind, spot.state.nest.as_deref()) {
        (NodeKind::Compute(Compute::Set(_)), _) => match &**output {
            Value::Object(fields) => fields.iter().map(|(k, v)| (k.clone(), Arc::new(v.clone()))).collect(),
            _ => Vec::new(),
        },
        (NodeKind::Compute(Compute::Define { variable } | Compute::Assign { variable }), _) => {
            let value = output.get("value").cloned().unwrap_or(Value::Null);
            vec![(variable.clone(), Arc::new(value))]
        }
        (NodeKind::Fan(plan), Some(Nest::Fan(arms))) if plan.strategy == Strategy::CollectErrors => {
            let key = spot.node.post.output_key.iter();
            key.map(|key| (format!("{key}_errors"), Arc::new(fan::errors(plan, arms)))).collect()
        }
        _ => Vec::new(),
    }
}
