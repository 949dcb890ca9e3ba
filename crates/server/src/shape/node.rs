//! Walking through a run, and what its nodes are doing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use windlass_engine::id::{JobId, RunId};
use windlass_engine::path::NodePath;
use windlass_engine::plan::{
    Body, Branch, Branches as PlanBranches, Call, Exec, Fan, Kind, Node, Plan, Scope,
};
use windlass_engine::retry::Fault as EngineFault;
use windlass_engine::run::Run;
use windlass_engine::run::state::{FanState, Nest, NodeState as State, Phase, ScopeState, Slot, Stage};
use windlass_sdk::types::{Branches, Fault, NodeState};

use super::time;

/// Nodes shown of one run: an answer with more would be read by nobody.
const NODES_MAX: usize = 10_000;

/// A place of a run.
pub(crate) enum Found<'a> {
    Node {
        node: &'a Node,
        state: &'a State,
    },
    /// A branch of a fan.
    Branch {
        node: &'a Node,
        branch: &'a Branch,
        name: &'a str,
        slot: &'a Slot,
    },
}

impl<'a> Found<'a> {
    pub(crate) fn phase(&self) -> &'a Phase {
        match self {
            Found::Node { state, .. } => &state.phase,
            Found::Branch { slot, .. } => &slot.phase,
        }
    }

    /// The call made here, if it is one.
    pub(crate) fn call(&self) -> Option<&'a Call> {
        match self {
            Found::Node { node, .. } => match &node.kind {
                Kind::Call(call) => Some(call),
                _ => None,
            },
            Found::Branch { branch, .. } => match &branch.body {
                Body::Call(call) => Some(call),
                Body::Scope(_) => None,
            },
        }
    }
}

type Visit<'v> = &'v mut dyn FnMut(NodePath, Found<'_>) -> ControlFlow<()>;

/// Shows every node and branch that the run has got to, and those beside them, outermost first. Recurses once for
/// each scope inside another, of which a plan has a bounded number.
pub(crate) fn each_node(plan: &Plan, run: &Run, visit: Visit<'_>) -> ControlFlow<()> {
    walk(&plan.root, &run.root, &NodePath::root(), visit)
}

fn walk(scope: &Scope, state: &ScopeState, path: &NodePath, visit: Visit<'_>) -> ControlFlow<()> {
    for (ix, node) in scope.nodes.iter().enumerate() {
        let (here, inner) = (path.child(&node.key), state.node(ix));
        visit(here.clone(), Found::Node { node, state: inner })?;
        match (&node.kind, inner.nest.as_deref()) {
            (Kind::Sub(sub), Some(Nest::Scope(inside))) => walk(&sub.scope, inside, &here, visit)?,
            (Kind::Loop(body), Some(Nest::Loop(turns))) => {
                for (index, turn) in turns.turns.iter().enumerate() {
                    walk(&body.body, turn, &here.at(index), visit)?;
                }
            }
            (Kind::Fan(fan), Some(Nest::Fan(arms))) => walk_fan(node, fan, arms, &here, visit)?,
            _ => {}
        }
    }
    ControlFlow::Continue(())
}

fn walk_fan(node: &Node, fan: &Fan, arms: &FanState, here: &NodePath, visit: Visit<'_>) -> ControlFlow<()> {
    for (index, slot) in arms.slots.iter().enumerate() {
        let branch = match &fan.branches {
            PlanBranches::Fixed(list) => list.get(index),
            PlanBranches::Services { each } => Some(each),
            PlanBranches::Items { each, special } => Some(special.get(&index).unwrap_or(each)),
        };
        let Some(branch) = branch else { continue };
        let name = arms.names.get(index).unwrap_or(&branch.name);
        visit(here.at(index), Found::Branch { node, branch, name, slot })?;
        if let (Body::Scope(scope), Some(inner)) = (&branch.body, slot.scope.as_deref()) {
            walk(scope, inner, &here.at(index), visit)?;
        }
    }
    ControlFlow::Continue(())
}

/// What the nodes of a run are doing, by path; and whether there are more than are shown.
pub(crate) fn node_states(plan: &Plan, run: &Run) -> (BTreeMap<String, NodeState>, bool) {
    let mut states = BTreeMap::new();
    let stopped = each_node(plan, run, &mut |path, found| {
        if states.len() >= NODES_MAX {
            return ControlFlow::Break(());
        }
        states.insert(path.as_str().to_owned(), node_state(run.id, &found));
        ControlFlow::Continue(())
    });
    (states, stopped.is_break())
}

fn node_state(run: RunId, found: &Found<'_>) -> NodeState {
    let (job, call) = reach(run, found);
    let status = found.phase().word().to_owned();
    let state = NodeState { status, job, call, child: child(run, found), ..NodeState::default() };
    match found {
        Found::Node { node, state: inner } => NodeState {
            title: node.title.clone(),
            kind: node.label.clone(),
            task_id: node.task_id.clone(),
            output: inner.output.as_deref().cloned(),
            action: inner.action.clone(),
            error: inner.fault.as_ref().map(|fault| shape_fault(fault, None)),
            attempts: inner.attempts,
            started_at: inner.entered_at.map(time),
            finished_at: inner.ended_at.map(time),
            branches: match inner.nest.as_deref() {
                Some(Nest::Fan(arms)) => Some(branches(arms)),
                Some(Nest::Scope(_) | Nest::Loop(_)) | None => None,
            },
            ..state
        },
        Found::Branch { node, name, slot, .. } => NodeState {
            title: Some((*name).to_owned()).filter(|name| !name.is_empty()),
            kind: node.label.clone(),
            output: slot.output.as_deref().cloned(),
            error: slot.fault.as_deref().map(|fault| shape_fault(fault, None)),
            attempts: slot.attempts,
            ..state
        },
    }
}

fn branches(arms: &FanState) -> Branches {
    Branches {
        total: arms.slots.len(),
        open: arms.n_open,
        failed: arms.n_failed,
        waiting: arms.slots.len().saturating_sub(arms.next),
    }
}

/// The job that carries the call of this place, or carried it last, and the call that may be reported.
fn reach(run: RunId, found: &Found<'_>) -> (Option<String>, Option<String>) {
    let (job, call) = reach_now(run, found);
    let last = last_grant(found).filter(|_| found.call().is_some_and(|call| call.exec == Exec::Queue));
    (job.or_else(|| Some(JobId::of_call(run, last?).to_string())), call)
}

/// The run that the call of this place started, or started last.
fn child(run: RunId, found: &Found<'_>) -> Option<String> {
    let is_flow = found.call().is_some_and(|call| matches!(call.exec, Exec::Flow { .. }));
    last_grant(found).filter(|_| is_flow).map(|fence| RunId::of_call(run, fence).to_string())
}

fn last_grant(found: &Found<'_>) -> Option<u64> {
    let fence = match found {
        Found::Node { state, .. } => state.fence,
        Found::Branch { slot, .. } => slot.fence,
    };
    (fence > 0).then_some(fence)
}

fn reach_now(run: RunId, found: &Found<'_>) -> (Option<String>, Option<String>) {
    let (Some(work), Some(call)) = (found.phase().work(), found.call()) else { return (None, None) };
    let Some(fence) = work.fence() else { return (None, None) };
    let reported = Some(format!("{run}.{fence}"));
    match (&work.stage, &call.exec) {
        (Stage::Granted { .. }, Exec::Queue) => (Some(JobId::of_call(run, fence).to_string()), None),
        (Stage::Granted { .. }, Exec::Http) | (Stage::Suspended { .. }, _) => (None, reported),
        (Stage::Granted { .. } | Stage::Backoff { .. } | Stage::Parked { .. }, _) => (None, None),
    }
}

/// A fault in the words of the surface.
pub(crate) fn shape_fault(fault: &EngineFault, node: Option<&NodePath>) -> Fault {
    Fault {
        node: node.map(|node| node.as_str().to_owned()),
        message: fault.message.clone(),
        kind: fault.kind.word().to_owned(),
        retryable: fault.retryable,
    }
}
