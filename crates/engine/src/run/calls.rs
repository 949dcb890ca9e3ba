//! Calls that are open in a run: their places, their executors, and the key that all attempts of a visit share.

use super::Run;
use super::state::{Nest, NodeState, Phase, ScopeState, Slot, Stage, Work};
use super::view::NodeRef;
use crate::counter::{Epoch, Fence, Visit};
use crate::path::NodePath;
use crate::plan::{Body, Exec, Fan, NodeKind, Plan, Scope};

impl Run {
    /// The calls that are granted or may be reported: a new owner has to watch them.
    pub fn open_calls(&self, plan: &Plan) -> Vec<(NodePath, Fence, Exec)> {
        let works = self.root.works(&plan.root, &NodePath::root());
        let call = |(path, work): (NodePath, &Work)| {
            let fence = work.fence()?;
            let exec = self.spot(plan, &path)?.exec()?;
            Some((path, fence, exec))
        };
        works.into_iter().filter_map(call).collect()
    }

    /// The calls that are granted right now, each with the epoch of the server that makes it.
    pub fn granted_calls(&self, plan: &Plan) -> Vec<(NodePath, Fence, Exec, Epoch)> {
        let with_maker = |(path, fence, exec): (NodePath, Fence, Exec)| {
            let (_, work) = self.work_at(plan, &path)?;
            let Stage::Granted { by, .. } = work.stage else { return None };
            Some((path, fence, exec, by))
        };
        self.open_calls(plan).into_iter().filter_map(with_maker).collect()
    }

    /// Whether the time of a call is up and its answer is waited for.
    pub fn is_expiring(&self, plan: &Plan, path: &NodePath) -> bool {
        let work = self.work_at(plan, path).map(|(_, work)| &work.stage);
        matches!(work, Some(Stage::Granted { expiring: Some(_), .. }))
    }

    /// The number of the attempt that is open at a place.
    pub fn node_attempt(&self, plan: &Plan, path: &NodePath) -> Option<u32> {
        self.work_at(plan, path).map(|(_, work)| work.attempt)
    }

    /// The same for every attempt of a visit: workers use it to do a thing once.
    pub fn call_key(&self, path: &NodePath, visit: Visit) -> String {
        format!("{}/{path}/{visit}", self.id)
    }

    pub(super) fn work_at<'p, 's>(
        &'s self,
        plan: &'p Plan,
        path: &NodePath,
    ) -> Option<(NodeRef<'p, 's>, &'s Work)> {
        let spot = self.spot(plan, path)?;
        let work = spot.phase().work()?;
        Some((spot, work))
    }
}

impl NodeRef<'_, '_> {
    /// The executor of the call; a function that got its name when the fan opened goes by that name.
    pub(super) fn exec(&self) -> Option<Exec> {
        let named = self.branch.and_then(|arm| arm.name);
        match (&self.call()?.exec, named) {
            (Exec::Func { name }, Some(named)) if name.is_empty() => {
                Some(Exec::Func { name: named.to_owned() })
            }
            (exec, _) => Some(exec.clone()),
        }
    }
}

impl ScopeState {
    /// Every open call at or inside `path`.
    pub(super) fn works<'a>(&'a self, scope: &'a Scope, path: &NodePath) -> Vec<(NodePath, &'a Work)> {
        let mut found = Vec::new();
        if path.is_root() {
            in_scope(scope, self, path, &mut found);
        } else if let Some(spot) = self.spot(scope, path) {
            match (&spot.branch, &spot.node.kind) {
                (Some(arm), NodeKind::Fan(fan)) => in_slot(fan, arm.index, arm.slot, path, &mut found),
                _ => in_node(&spot.node.kind, spot.state, path, &mut found),
            }
        } else if let Some(turn) = self.chain(scope, path).as_deref().and_then(<[_]>::last) {
            in_scope(turn.scope, turn.state, path, &mut found);
        }
        found
    }
}

fn in_scope<'a>(
    scope: &'a Scope,
    state: &'a ScopeState,
    path: &NodePath,
    found: &mut Vec<(NodePath, &'a Work)>,
) {
    for (ix, node) in state.nodes.iter().filter(|(_, node)| node.phase.is_open()) {
        let plan = &scope.nodes[*ix];
        in_node(&plan.kind, node, &path.child(&plan.key), found);
    }
}

fn in_node<'a>(
    kind: &'a NodeKind,
    node: &'a NodeState,
    path: &NodePath,
    found: &mut Vec<(NodePath, &'a Work)>,
) {
    if let Some(work) = node.phase.work() {
        found.push((path.clone(), work));
        return;
    }
    match (kind, node.nest.as_deref()) {
        (NodeKind::Sub(sub), Some(Nest::Scope(inner))) => in_scope(&sub.scope, inner, path, found),
        (NodeKind::Loop(plan), Some(Nest::Loop(turns))) => {
            if let Some(turn) = turns.turns.get(turns.index) {
                in_scope(&plan.body, turn, &path.at(turns.index), found);
            }
        }
        (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => {
            for (index, slot) in arms.slots.iter().enumerate() {
                in_slot(fan, index, slot, &path.at(index), found);
            }
        }
        _ => {}
    }
}

fn in_slot<'a>(
    fan: &'a Fan,
    index: usize,
    slot: &'a Slot,
    path: &NodePath,
    found: &mut Vec<(NodePath, &'a Work)>,
) {
    match &slot.phase {
        Phase::Open(_) => {}
        Phase::Pending | Phase::Done | Phase::Failed | Phase::Skipped | Phase::Canceled => return,
    }
    if let Some(work) = slot.phase.work() {
        found.push((path.clone(), work));
    } else if let (Some(Body::Scope(scope)), Some(inner)) =
        (fan.branch(index).map(|branch| &branch.body), slot.scope.as_deref())
    {
        in_scope(scope, inner, path, found);
    }
}
