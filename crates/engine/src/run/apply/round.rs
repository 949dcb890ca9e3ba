//! New rounds: retry takes up failed and canceled nodes, rerun starts again from a node. Finished nodes that are
//! not affected are kept; history is in the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::super::state::{Activity, Nest, NodeState, Phase, ScopeState, Slot, Status};
use super::super::{Run, Todo};
use super::Applier;
use super::scope::reachable;
use super::settle::live_edges;
use crate::counter::Visit;
use crate::path::NodePath;
use crate::plan::{Body, Node, NodeIx, NodeKind, Routing, Scope, Strategy, When};
use crate::time::Timestamp;

impl Run {
    /// Replaces the shared state of the run.
    pub(in super::super) fn give_shared(&mut self, shared: &Map<String, Value>) {
        let entries = shared.iter().map(|(key, value)| (key.clone(), Arc::new(value.clone())));
        self.root.shared = Some(entries.collect());
        self.root.shared_bytes = shared.values().map(super::scope::bytes).sum();
        // Keys removed from shared are gone, also those that a signal wrote.
        self.signals.retain(|key, _| shared.contains_key(key));
    }
}

impl Applier<'_> {
    pub(super) fn retried(&mut self, round: u32) {
        self.new_round(round);
        let mut reopened = Reopened::at(self.at, self.run.visits);
        reopened.scope(&self.plan.root, &mut self.run.root, &NodePath::root());
        self.take_up(reopened, &NodePath::root());
    }

    /// A branch that is a scope opened: it goes on where an earlier round left it, or begins.
    pub(super) fn opened_branch(&mut self, path: &NodePath, fresh: Option<ScopeState>) {
        let Some(slot) = self.run.root.slot_mut(&self.plan.root, path) else { return };
        slot.phase = Phase::Open(Activity::Nest);
        if slot.scope.is_none() {
            slot.scope = fresh.map(Box::new);
            return self.open_scope(path);
        }
        let mut reopened = Reopened::at(self.at, self.run.visits);
        if let Some((scope, state)) = self.run.root.scope_mut(&self.plan.root, path) {
            reopened.scope(scope, state, path);
        }
        self.take_up(reopened, path);
    }

    pub(super) fn rerun(&mut self, round: u32, from: &NodePath, shared: Option<&Map<String, Value>>) {
        self.new_round(round);
        if let Some(shared) = shared {
            self.run.give_shared(shared);
        }
        let mut reopened = Reopened::at(self.at, self.run.visits);
        let segments: Vec<&str> = from.segments().collect();
        reopened.from(&self.plan.root, &mut self.run.root, &NodePath::root(), &segments);
        self.take_up(reopened, &NodePath::root());
    }

    fn new_round(&mut self, round: u32) {
        self.run.round = round;
        self.run.visits_before_rounds.push(self.run.visits);
        self.run.entries = 0;
        self.run.spare_entries = 0;
        self.run.status = Status::Running;
        self.run.error = None;
        self.run.result = None;
        self.run.ended_at = None;
        self.run.root.ended = false;
    }

    /// Goes on with the reopened nodes of the scope at `path`; with nothing left to do there, it ends.
    fn take_up(&mut self, reopened: Reopened, path: &NodePath) {
        self.run.visits = reopened.visits;
        self.run.wakes.extend(reopened.wakes);
        let nothing = reopened.todos.is_empty() && reopened.fans.is_empty();
        self.run.agenda.extend(reopened.todos);
        for fan in reopened.fans {
            self.fan_moved(&fan);
        }
        if nothing {
            self.end_scope(path);
        }
    }
}

/// Takes up a scope as a retry does, without going on with it.
pub(in super::super) fn reopen(scope: &Scope, state: &mut ScopeState, path: &NodePath, at: Timestamp) {
    Reopened::at(at, Visit::ZERO).scope(scope, state, path);
}

/// Collects the work of a new round while the tree is walked.
struct Reopened {
    todos: Vec<Todo>,
    wakes: Vec<(Timestamp, NodePath)>,
    fans: Vec<NodePath>,
    at: Timestamp,
    /// Visits so far: reopened nodes get a new visit, so that no key of an earlier round is used again.
    visits: Visit,
}

impl Reopened {
    fn at(at: Timestamp, visits: Visit) -> Self {
        Reopened { todos: Vec::new(), wakes: Vec::new(), fans: Vec::new(), at, visits }
    }

    /// Takes up a scope: failed and canceled nodes again.
    fn scope(&mut self, scope: &Scope, state: &mut ScopeState, path: &NodePath) {
        clear(state);
        match scope.routing {
            Routing::Action { .. } => {
                let Some(ix) = state.cursor else { return };
                let inner = path.child(&scope.nodes[ix].key);
                if !self.goes_on_inside(&scope.nodes[ix], state.nodes.entry(ix).or_default(), &inner) {
                    self.todos.push(Todo::Enter(inner));
                }
            }
            Routing::Join { .. } => {
                for (ix, node) in &mut state.nodes {
                    if matches!(node.phase, Phase::Failed | Phase::Canceled) {
                        self.goes_on_inside(&scope.nodes[*ix], node, &path.child(&scope.nodes[*ix].key));
                    }
                }
                // Nodes to be entered again are pending now; counting finds them ready.
                self.recount(scope, state, path);
            }
        }
    }

    /// Takes up one node: a container goes on inside; anything else is pending and to be entered again.
    fn goes_on_inside(&mut self, plan: &Node, node: &mut NodeState, path: &NodePath) -> bool {
        let inside = match (&plan.kind, node.nest.as_deref_mut()) {
            (NodeKind::Sub(sub), Some(Nest::Scope(inner))) if !matches!(node.phase, Phase::Pending) => {
                self.scope(&sub.scope, inner, path);
                true
            }
            (NodeKind::Loop(body), Some(Nest::Loop(turns))) if !matches!(node.phase, Phase::Pending) => {
                let index = turns.index;
                match turns.turns.get_mut(index) {
                    Some(turn) => self.scope(&body.body, turn, &path.at(index)),
                    None => self.todos.push(Todo::Finish(path.clone())),
                }
                true
            }
            (NodeKind::Fan(_), Some(Nest::Fan(arms))) if !matches!(node.phase, Phase::Pending) => {
                (arms.n_open, arms.n_failed, arms.next) = (0, 0, 0);
                // Branches start again at the fan's pace; those that are scopes go on inside when they do.
                for slot in arms.slots.iter_mut().filter(|slot| slot.phase != Phase::Done) {
                    slot.phase = Phase::Pending;
                }
                self.fans.push(path.clone());
                true
            }
            _ => false,
        };
        if inside {
            self.reopen(plan, node, path);
        } else {
            node.phase = Phase::Pending;
        }
        inside
    }

    fn reopen(&mut self, plan: &Node, node: &mut NodeState, path: &NodePath) {
        self.visits = self.visits.next();
        node.visit = self.visits;
        node.phase = Phase::Open(Activity::Nest);
        node.fault = None;
        node.output = None;
        node.action = None;
        node.ended_at = None;
        node.judged = false;
        node.restarts = 0;
        node.wake = (plan.timeout_ms > 0).then(|| self.at.after(plan.timeout_ms));
        self.wakes.extend(node.wake.map(|wake| (wake, path.clone())));
    }

    /// Starts a scope again from the node that the segments lead to.
    fn from(&mut self, scope: &Scope, state: &mut ScopeState, path: &NodePath, segments: &[&str]) {
        clear(state);
        let Some((first, rest)) = segments.split_first() else { return };
        let Some((ix, plan)) = scope.node(first) else { return };
        let inner = path.child(first);
        if let Routing::Join { .. } = scope.routing {
            reset_after(scope, state, ix);
        }
        state.cursor = matches!(scope.routing, Routing::Action { .. }).then_some(ix);
        let node = state.nodes.entry(ix).or_default();
        if rest.is_empty() {
            node.phase = Phase::Pending;
            if state.cursor.is_some() {
                self.todos.push(Todo::Enter(inner));
            }
        } else {
            self.inside(plan, node, &inner, rest);
        }
        if let Routing::Join { .. } = scope.routing {
            self.recount(scope, state, path);
        }
    }

    /// Starts a whole turn again.
    fn anew(&mut self, scope: &Scope, state: &mut ScopeState, path: &NodePath) {
        *state = ScopeState { input: state.input.clone(), ..ScopeState::default() };
        match scope.routing {
            Routing::Action { start } => {
                state.cursor = Some(start);
                self.todos.push(Todo::Enter(path.child(&scope.nodes[start].key)));
            }
            Routing::Join { .. } => self.recount(scope, state, path),
        }
    }

    /// Reopens a container whose inside is started again.
    fn inside(&mut self, plan: &Node, node: &mut NodeState, path: &NodePath, rest: &[&str]) {
        self.reopen(plan, node, path);
        let index = || rest[0].parse::<usize>().ok();
        match (&plan.kind, node.nest.as_deref_mut()) {
            (NodeKind::Sub(sub), Some(Nest::Scope(inner))) => self.from(&sub.scope, inner, path, rest),
            (NodeKind::Loop(body), Some(Nest::Loop(turns))) => {
                let Some(index) = index() else { return };
                turns.turns.truncate(index + 1);
                turns.outputs.truncate(index);
                turns.index = index;
                match turns.turns.get_mut(index) {
                    Some(turn) if rest.len() == 1 => self.anew(&body.body, turn, &path.at(index)),
                    Some(turn) => self.from(&body.body, turn, &path.at(index), &rest[1..]),
                    None => {}
                }
            }
            (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => {
                let Some(index) = index() else { return };
                // A fan that fails with a branch cannot end well with one: its failed branches run again too.
                let lacks = |slot: &Slot| match slot.phase {
                    Phase::Canceled => true,
                    Phase::Failed => matches!(fan.strategy, Strategy::All | Strategy::FailFast),
                    Phase::Pending | Phase::Open(_) | Phase::Done | Phase::Skipped => false,
                };
                for (at, slot) in arms.slots.iter_mut().enumerate() {
                    if at == index && rest.len() == 1 {
                        *slot = Slot::default();
                    } else if at == index || lacks(slot) {
                        slot.phase = Phase::Pending;
                    }
                }
                (arms.n_open, arms.next) = (0, 0);
                arms.n_failed = arms.slots.iter().filter(|slot| slot.phase == Phase::Failed).count();
                self.fans.push(path.clone());
                let Some(slot) = arms.slots.get_mut(index).filter(|_| rest.len() > 1) else { return };
                if let (Some(Body::Scope(scope)), Some(inner)) =
                    (fan.branch(index).map(|branch| &branch.body), slot.scope.as_deref_mut())
                {
                    slot.phase = Phase::Open(Activity::Nest);
                    arms.n_open = 1;
                    self.from(scope, inner, &path.at(index), &rest[1..]);
                }
            }
            _ => {}
        }
    }

    /// Counts the edges of a join scope anew from its finished nodes, and finds the ready nodes.
    fn recount(&mut self, scope: &Scope, state: &mut ScopeState, path: &NodePath) {
        let mut counts: BTreeMap<NodeIx, (usize, usize)> = BTreeMap::new();
        state.n_settled = 0;
        for (ix, node) in &mut state.nodes {
            match node.phase {
                Phase::Done => {}
                Phase::Open(_) => continue,
                Phase::Pending | Phase::Failed | Phase::Skipped | Phase::Canceled => {
                    *node = NodeState::default();
                    continue;
                }
            }
            state.n_settled += 1;
            let out = &scope.nodes[*ix].out;
            if !node.judged && out.iter().any(|edge| !matches!(edge.when, When::Always)) {
                self.todos.push(Todo::Judge(path.child(&scope.nodes[*ix].key)));
                continue;
            }
            let mut is_live = live_edges(&node.dead);
            for to in out.iter().filter_map(|edge| edge.to) {
                let (settled, live) = counts.entry(to).or_default();
                *settled += 1;
                *live += usize::from(is_live(to));
            }
        }
        for ix in 0..scope.nodes.len() {
            let Some(n_in) = state.n_in(scope, ix) else { continue };
            let (settled, live) = counts.get(&ix).copied().unwrap_or_default();
            let started = state.chosen.as_ref().is_some_and(|chosen| chosen.starts.contains(&ix));
            let node = state.nodes.entry(ix).or_default();
            (node.n_in_settled, node.n_in_live) = (settled, live);
            if node.phase == Phase::Pending && (started || settled == n_in) {
                self.todos.push(Todo::Enter(path.child(&scope.nodes[ix].key)));
            }
        }
    }
}

fn clear(state: &mut ScopeState) {
    state.fault = None;
    state.result = None;
    state.ended = false;
}

/// Everything after a node of a join scope, and the node itself, has to run again.
fn reset_after(scope: &Scope, state: &mut ScopeState, ix: NodeIx) {
    for after in reachable(scope, &BTreeSet::from([ix])) {
        let node = state.nodes.entry(after).or_default();
        node.phase = Phase::Pending;
        node.dead.clear();
        node.judged = false;
    }
}
