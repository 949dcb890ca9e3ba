//! Nodes of a run: a walk over them, and their states.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use windlass_engine::counter::Fence;
use windlass_engine::id::{JobId, RunId};
use windlass_engine::path::NodePath;
use windlass_engine::plan::{
    Body, Branch, Branches as PlanBranches, Call, Exec, Fan, Node, NodeKind, Plan, Scope,
};
use windlass_engine::retry::Fault as EngineFault;
use windlass_engine::run::Run;
use windlass_engine::run::state::{FanState, Nest, NodeState as State, Phase, ScopeState, Slot, Stage};
use windlass_runtime::grant;
use windlass_sdk::contract::{BranchCounts, FaultInfo, NodeInfo};

use super::time;

/// Nodes shown of one run: a larger response would be unreadable.
const NODES_MAX: usize = 10_000;

/// A place of a run.
pub(crate) enum NodeAt<'a> {
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

impl<'a> NodeAt<'a> {
    pub(crate) fn phase(&self) -> &'a Phase {
        match self {
            NodeAt::Node { state, .. } => &state.phase,
            NodeAt::Branch { slot, .. } => &slot.phase,
        }
    }

    /// The call made here, if it is one.
    pub(crate) fn call(&self) -> Option<&'a Call> {
        match self {
            NodeAt::Node { node, .. } => match &node.kind {
                NodeKind::Call(call) => Some(call),
                _ => None,
            },
            NodeAt::Branch { branch, .. } => match &branch.body {
                Body::Call(call) => Some(call),
                Body::Scope(_) => None,
            },
        }
    }
}

type NodeVisitor<'v> = &'v mut dyn FnMut(NodePath, NodeAt<'_>) -> ControlFlow<()>;

/// Shows every node and branch that the run has got to, and those beside them, outermost first. Recurses once for
/// each scope inside another, of which a plan has a bounded number.
pub(crate) fn each_node(plan: &Plan, run: &Run, visit: NodeVisitor<'_>) -> ControlFlow<()> {
    walk(&plan.root, &run.root, &NodePath::root(), visit)
}

fn walk(scope: &Scope, state: &ScopeState, path: &NodePath, visit: NodeVisitor<'_>) -> ControlFlow<()> {
    for (ix, node) in scope.nodes.iter().enumerate() {
        let (here, inner) = (path.child(&node.key), state.node(ix));
        visit(here.clone(), NodeAt::Node { node, state: inner })?;
        match (&node.kind, inner.nest.as_deref()) {
            (NodeKind::Sub(sub), Some(Nest::Scope(inside))) => walk(&sub.scope, inside, &here, visit)?,
            (NodeKind::Loop(body), Some(Nest::Loop(turns))) => {
                for (index, turn) in turns.turns.iter().enumerate() {
                    walk(&body.body, turn, &here.at(index), visit)?;
                }
            }
            (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => walk_fan(node, fan, arms, &here, visit)?,
            _ => {}
        }
    }
    ControlFlow::Continue(())
}

fn walk_fan(
    node: &Node,
    fan: &Fan,
    arms: &FanState,
    here: &NodePath,
    visit: NodeVisitor<'_>,
) -> ControlFlow<()> {
    for (index, slot) in arms.slots.iter().enumerate() {
        let branch = match &fan.branches {
            PlanBranches::Fixed(list) => list.get(index),
            PlanBranches::Services { each } => Some(each),
            PlanBranches::Items { each, special } => Some(special.get(&index).unwrap_or(each)),
        };
        let Some(branch) = branch else { continue };
        let name = arms.names.get(index).unwrap_or(&branch.name);
        visit(here.at(index), NodeAt::Branch { node, branch, name, slot })?;
        if let (Body::Scope(scope), Some(inner)) = (&branch.body, slot.scope.as_deref()) {
            walk(scope, inner, &here.at(index), visit)?;
        }
    }
    ControlFlow::Continue(())
}

/// The states of the nodes of a run, by path; and whether there are more than are shown.
pub(crate) fn node_states(plan: &Plan, run: &Run) -> (BTreeMap<String, NodeInfo>, bool) {
    collect(plan, run, node_state)
}

/// The same without outputs, which may be large.
pub(crate) fn node_heads(plan: &Plan, run: &Run) -> (BTreeMap<String, NodeInfo>, bool) {
    collect(plan, run, node_head)
}

fn collect(
    plan: &Plan,
    run: &Run,
    shape: impl Fn(&Plan, &Run, &NodePath, &NodeAt<'_>) -> NodeInfo,
) -> (BTreeMap<String, NodeInfo>, bool) {
    let mut states = BTreeMap::new();
    let stopped = each_node(plan, run, &mut |path, found| {
        if states.len() >= NODES_MAX {
            return ControlFlow::Break(());
        }
        let state = shape(plan, run, &path, &found);
        states.insert(path.as_str().to_owned(), state);
        ControlFlow::Continue(())
    });
    (states, stopped.is_break())
}

fn node_state(plan: &Plan, run: &Run, path: &NodePath, found: &NodeAt<'_>) -> NodeInfo {
    let output = match found {
        NodeAt::Node { state, .. } => state.output.as_deref().cloned(),
        NodeAt::Branch { slot, .. } => slot.output.as_deref().cloned(),
    };
    NodeInfo { output, ..node_head(plan, run, path, found) }
}

fn node_head(plan: &Plan, run: &Run, path: &NodePath, found: &NodeAt<'_>) -> NodeInfo {
    let (job, call) = reach(run.id, found);
    let status = match found.phase() {
        // An ended run reaches no further nodes.
        Phase::Pending if run.status.is_ended() => "skipped",
        phase => phase.word(),
    };
    let child = child(run.id, found);
    let state = NodeInfo { status: status.to_owned(), job, call, child, ..NodeInfo::default() };
    match found {
        NodeAt::Node { node, state: inner } => NodeInfo {
            title: node.title.clone(),
            kind: node.label.clone(),
            task_id: plan.position(path).and_then(|position| position.task_id()),
            action: inner.action.clone(),
            error: inner.fault.as_ref().map(|fault| shape_fault(fault, None)),
            attempts: inner.attempts,
            round: (inner.visit.0 > 0).then(|| run.round_of_visit(inner.visit)),
            started_at: inner.entered_at.map(time),
            finished_at: inner.ended_at.map(time),
            branches: match inner.nest.as_deref() {
                Some(Nest::Fan(arms)) => Some(branches(arms)),
                Some(Nest::Scope(_) | Nest::Loop(_)) | None => None,
            },
            ..state
        },
        NodeAt::Branch { node, name, slot, .. } => NodeInfo {
            title: Some((*name).to_owned()).filter(|name| !name.is_empty()),
            kind: node.label.clone(),
            error: slot.fault.as_deref().map(|fault| shape_fault(fault, None)),
            attempts: slot.attempts,
            ..state
        },
    }
}

fn branches(arms: &FanState) -> BranchCounts {
    BranchCounts {
        total: arms.slots.len(),
        open: arms.n_open,
        failed: arms.n_failed,
        waiting: arms.slots.len().saturating_sub(arms.next),
    }
}

/// The job that carries the call of this place, or carried it last, and the call that may be reported.
fn reach(run: RunId, found: &NodeAt<'_>) -> (Option<String>, Option<String>) {
    let (job, call) = reach_now(run, found);
    let last = last_grant(found).filter(|_| found.call().is_some_and(|call| call.exec == Exec::Queue));
    (job.or_else(|| Some(JobId::of_call(run, last?).to_string())), call)
}

/// The run that the call of this place started, or started last.
fn child(run: RunId, found: &NodeAt<'_>) -> Option<String> {
    let is_flow = found.call().is_some_and(|call| matches!(call.exec, Exec::Flow { .. }));
    last_grant(found).filter(|_| is_flow).map(|fence| RunId::of_call(run, fence).to_string())
}

fn last_grant(found: &NodeAt<'_>) -> Option<Fence> {
    let fence = match found {
        NodeAt::Node { state, .. } => state.fence,
        NodeAt::Branch { slot, .. } => slot.fence,
    };
    (fence > Fence::ZERO).then_some(fence)
}

fn reach_now(run: RunId, found: &NodeAt<'_>) -> (Option<String>, Option<String>) {
    let (Some(work), Some(call)) = (found.phase().work(), found.call()) else { return (None, None) };
    let Some(fence) = work.fence() else { return (None, None) };
    let reported = Some(grant::named(&run, fence));
    match (&work.stage, &call.exec) {
        (Stage::Granted { .. }, Exec::Queue) => (Some(JobId::of_call(run, fence).to_string()), None),
        (Stage::Granted { .. }, Exec::Http) | (Stage::Suspended { .. }, _) => (None, reported),
        (Stage::Granted { .. } | Stage::Backoff { .. } | Stage::Parked { .. }, _) => (None, None),
    }
}

/// A fault in the words of the surface.
pub(crate) fn shape_fault(fault: &EngineFault, node: Option<&NodePath>) -> FaultInfo {
    FaultInfo {
        node: node.map(|node| node.as_str().to_owned()),
        message: fault.message.clone(),
        kind: fault.kind.word().to_owned(),
        retryable: fault.retryable,
    }
}
