//! Scopes: opening them, ending them, and whose shared state is whose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::super::decide::outside::is_reserved;
use super::super::state::{Chosen, Nest, ScopeState, Shared};
use super::super::view::NodeRef;
use super::super::{Run, Todo};
use super::Applier;
use crate::event::{ExecMode, Start};
use crate::path::NodePath;
use crate::plan::{Body, NodeIx, NodeKind, Routing, Scope};

impl Applier<'_> {
    /// Makes the first nodes of a scope ready.
    pub(super) fn open_scope(&mut self, path: &NodePath) {
        let Some((scope, state)) = self.run.root.scope_mut(&self.plan.root, path) else { return };
        state.ended = false;
        let ready: Vec<NodeIx> = match scope.routing {
            Routing::Action { start } => {
                state.cursor = Some(start);
                vec![start]
            }
            Routing::Join { .. } => match &state.chosen {
                Some(chosen) => chosen.starts.iter().copied().collect(),
                None => (0..scope.nodes.len()).filter(|ix| scope.nodes[*ix].n_in == 0).collect(),
            },
        };
        if ready.is_empty() {
            self.end_scope(path);
            return;
        }
        self.run.agenda.extend(ready.into_iter().map(|ix| Todo::Enter(path.child(&scope.nodes[ix].key))));
    }

    /// Nothing is left to do in a scope.
    pub(super) fn end_scope(&mut self, path: &NodePath) {
        if let Some((_, state)) = self.run.root.scope_mut(&self.plan.root, path) {
            if std::mem::replace(&mut state.ended, true) {
                return;
            }
            if state.fault.is_some() {
                self.run.agenda.push_front(Todo::Collapse(path.clone()));
                return;
            }
        }
        let todo = match self.run.root.loop_of_turn(&self.plan.root, path) {
            Some(of) => Todo::Turn(of),
            None => Todo::Finish(path.clone()),
        };
        self.run.agenda.push_back(todo);
    }

    /// The next turn of a loop, or its end.
    pub(super) fn next_turn(&mut self, path: &NodePath) {
        let Some(spot) = self.run.spot(self.plan, path) else { return };
        let input = spot.level.state.input.clone();
        let Some(node) = self.run.root.node_mut(&self.plan.root, path) else { return };
        let Some(Nest::Loop(turns)) = node.nest.as_deref_mut() else { return };
        if turns.index >= turns.n {
            self.run.agenda.push_back(Todo::Finish(path.clone()));
            return;
        }
        turns.turns.truncate(turns.index);
        turns.turns.push(ScopeState { input, ..ScopeState::default() });
        let turn = path.at(turns.index);
        self.open_scope(&turn);
    }

    pub(super) fn turned(&mut self, path: &NodePath, outputs: &[Value]) {
        self.run.agenda.remove(&Todo::Turn(path.clone()));
        if let Some(node) = self.run.root.node_mut(&self.plan.root, path)
            && let Some(Nest::Loop(turns)) = node.nest.as_deref_mut()
        {
            turns.outputs.push(outputs.to_vec());
            turns.index += 1;
        }
        self.next_turn(path);
    }

    /// Writes into the shared state that the node at `path` sees.
    pub(super) fn write_shared(&mut self, path: &NodePath, entries: Vec<(String, Arc<Value>)>) {
        if entries.is_empty() {
            return;
        }
        let flow = self.run.root.flow_of(&self.plan.root, path);
        for (key, _) in &entries {
            self.run.look.note(&flow, key);
        }
        let Some((_, state)) = self.run.root.scope_mut(&self.plan.root, &flow) else { return };
        let shared = state.shared.get_or_insert_default();
        for (key, value) in entries {
            state.shared_bytes += bytes(&value);
            if let Some(before) = shared.insert(key, value) {
                state.shared_bytes = state.shared_bytes.saturating_sub(bytes(&before));
            }
        }
    }
}

/// The weight of a value in shared. A value that is too large was refused before it came here.
pub(super) fn bytes(value: &Value) -> usize {
    crate::weight::weigh(value).unwrap_or(crate::limits::SHARED_BYTES)
}

/// The state a subflow or a branch begins with: its own shared state holds the fields of its input, but for those
/// that only the engine writes.
pub(super) fn inner_state(spot: &NodeRef<'_, '_>, run: &Run) -> Option<ScopeState> {
    let owns = match (&spot.branch, &spot.node.kind) {
        (Some(arm), _) => match &arm.branch.body {
            Body::Scope(scope) => scope.owns_shared,
            Body::Call(_) => return None,
        },
        (None, NodeKind::Sub(sub)) => sub.scope.owns_shared,
        (None, _) => return None,
    };
    let input = spot.input(run);
    let mut shared = Shared::new();
    match &*input {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(key, _)| !is_reserved(key));
            shared.extend(fields.map(|(key, value)| (key.clone(), Arc::new(value.clone()))));
        }
        Value::Null => {}
        _ => {
            shared.insert("input".to_owned(), input.clone());
        }
    }
    if let Some(arm) = &spot.branch {
        shared.insert("index".to_owned(), Arc::new(arm.index.into()));
    }
    Some(ScopeState { shared: owns.then_some(shared), input, ..ScopeState::default() })
}

/// Entries that one pass through the node opening here takes, if it is inside a fan: width is no cycle.
/// A node that starts again after a failure has had them.
pub(super) fn spare_entries(spot: &NodeRef<'_, '_>, n_turns: usize) -> u64 {
    let n = match (&spot.branch, &spot.node.kind) {
        (Some(arm), _) => match &arm.branch.body {
            Body::Scope(scope) => scope.nodes.len(),
            Body::Call(_) => 0,
        },
        (None, NodeKind::Sub(sub)) if spot.in_fan && spot.state.restarts == 0 => sub.scope.nodes.len(),
        (None, NodeKind::Loop(plan)) if spot.in_fan => plan.body.nodes.len().saturating_mul(n_turns),
        (None, _) => 0,
    };
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// The part of the root scope that an exec mode runs.
pub(in crate::run) fn chosen(scope: &Scope, start: &Start) -> Option<Chosen> {
    if start.exec_mode == ExecMode::All || !matches!(scope.routing, Routing::Join { .. }) {
        return None;
    }
    let starts: BTreeSet<NodeIx> =
        start.start_node_ids.iter().filter_map(|id| Some(scope.node(id)?.0)).collect();
    if start.exec_mode == ExecMode::IsolatedNodes {
        let n_in = starts.iter().map(|ix| (*ix, 0)).collect();
        return Some(Chosen { starts, n_in });
    }
    let nodes = reachable(scope, &starts);
    let mut n_in: BTreeMap<NodeIx, usize> = nodes.iter().map(|ix| (*ix, 0)).collect();
    for to in nodes.iter().flat_map(|ix| &scope.nodes[*ix].out).filter_map(|edge| edge.to) {
        *n_in.entry(to).or_default() += 1;
    }
    for ix in &starts {
        n_in.insert(*ix, 0);
    }
    Some(Chosen { starts, n_in })
}

/// These nodes and everything their edges lead to.
pub(in super::super) fn reachable(scope: &Scope, from: &BTreeSet<NodeIx>) -> BTreeSet<NodeIx> {
    let mut found = from.clone();
    let mut open: Vec<NodeIx> = from.iter().copied().collect();
    while let Some(ix) = open.pop() {
        for to in scope.nodes[ix].out.iter().filter_map(|edge| edge.to) {
            if found.insert(to) {
                open.push(to);
            }
        }
    }
    found
}

/// A signal replaces the values that open inner scopes hold under its key, so that it is seen there too.
pub(super) fn overwrite(scope: &Scope, state: &mut ScopeState, key: &str, value: &Arc<Value>) {
    if let Some(shared) = &mut state.shared
        && let Some(held) = shared.get_mut(key)
    {
        *held = value.clone();
    }
    for (ix, node) in state.nodes.iter_mut().filter(|(_, node)| node.phase.is_open()) {
        match (&scope.nodes[*ix].kind, node.nest.as_deref_mut()) {
            (NodeKind::Sub(sub), Some(Nest::Scope(inner))) => overwrite(&sub.scope, inner, key, value),
            (NodeKind::Loop(plan), Some(Nest::Loop(turns))) => {
                if let Some(turn) = turns.turns.get_mut(turns.index) {
                    overwrite(&plan.body, turn, key, value);
                }
            }
            (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => {
                for (at, slot) in arms.slots.iter_mut().enumerate().filter(|(_, slot)| slot.phase.is_open()) {
                    if let (Some(Body::Scope(scope)), Some(inner)) =
                        (fan.branch(at).map(|branch| &branch.body), slot.scope.as_deref_mut())
                    {
                        overwrite(scope, inner, key, value);
                    }
                }
            }
            _ => {}
        }
    }
}
