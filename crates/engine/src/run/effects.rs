//! Effects of an event: actions that it requires in the world. Derived just before the event is applied: the nodes it ends
//! are still there.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Run;
use super::state::{Nest, Phase, ScopeState, Stage, Status, Work};
use super::view::Spot;
use crate::counter::{Epoch, Fence, Visit};
use crate::effect::{Effect, Order};
use crate::event::Event;
use crate::money::Movement;
use crate::params::Params;
use crate::path::NodePath;
use crate::plan::{Body, Call, Exec, Fan, NodeKind, Plan, Prep, Scope};
use crate::retry::FaultKind;

impl Run {
    /// The effects of an event that is about to be applied.
    pub fn effects(&self, plan: &Plan, event: &Event, out: &mut Vec<Effect>) {
        match event {
            Event::Granted { node, fence, attempt, deadline, charge, .. } => {
                let Some(spot) = self.spot(plan, node) else { return };
                if let Some(amount) = charge {
                    out.extend(self.movement(&spot, node, |key| Movement::charge(key, *amount)));
                }
                out.extend(self.order(plan, &spot, node, *fence, *attempt, *deadline));
            }
            Event::Done { node, actual, .. } => {
                let Some((spot, work)) = self.work_at(plan, node) else { return };
                if let (Some(estimate), Some(actual)) = (work.charge, actual) {
                    out.extend(self.movement(&spot, node, |key| Movement::settle(&key, estimate, *actual)));
                }
            }
            Event::Failed { node, fault, .. } => {
                let Some((spot, work)) = self.work_at(plan, node) else { return };
                out.extend(unanswered(&spot, node, work, fault.kind));
                out.extend(self.refund(&spot, node, work));
            }
            Event::Deferred { node, fault, .. } => {
                let Some((spot, work)) = self.work_at(plan, node) else { return };
                out.extend(unanswered(&spot, node, work, fault.kind));
            }
            Event::Expiring { node, fence, .. } => {
                let Some((spot, _)) = self.work_at(plan, node) else { return };
                out.extend(cancel(&spot, node, *fence));
            }
            Event::Dropped { node } => self.stop_inside(plan, node, out),
            Event::Canceling { .. } => {
                for (path, work) in self.works(plan, &NodePath::root()) {
                    let Stage::Granted { fence, .. } = work.stage else { continue };
                    let Some(spot) = self.spot(plan, &path) else { continue };
                    out.extend(cancel(&spot, &path, fence));
                }
            }
            Event::Ended { status, error, result } => {
                let Some(parent) = self.start.parent.clone() else { return };
                let result = result.clone().unwrap_or_else(|| self.whole_shared());
                let error = error.as_ref().map(|error| placed(&error.node, &error.fault.message));
                let bill = self.cost.bill().beyond(self.told);
                out.push(Effect::Tell { parent, status: *status, result, error, bill });
            }
            Event::Billed { bill, .. } => {
                // While the run is open, its own end will tell.
                let parent = self.start.parent.clone().filter(|_| self.status.is_ended() && !bill.is_zero());
                out.extend(parent.map(|parent| Effect::Bill { parent, bill: *bill }));
            }
            Event::Funded { child, .. } => {
                out.extend(child.map(|child| Effect::Raise { fence: child.fence, budget: child.amount }));
            }
            Event::Started(_)
            | Event::Entered { .. }
            | Event::Suspended { .. }
            | Event::Skipped { .. }
            | Event::Judged { .. }
            | Event::Opened { .. }
            | Event::Turned { .. }
            | Event::Waiting { .. }
            | Event::Signaled { .. }
            | Event::Decided { .. }
            | Event::Paused
            | Event::Resumed
            | Event::Stepped
            | Event::Retried { .. }
            | Event::Rerun { .. }
            | Event::Logged { .. } => {}
        }
    }

    /// The shared state as one value.
    fn whole_shared(&self) -> Arc<Value> {
        let fields = self.root.shared.iter().flatten();
        Arc::new(Value::Object(fields.map(|(k, v)| (k.clone(), (**v).clone())).collect()))
    }

    /// Everything open at a path is over: workers stop, and nothing is owed for it.
    fn stop_inside(&self, plan: &Plan, path: &NodePath, out: &mut Vec<Effect>) {
        let canceling = self.status == Status::Canceling;
        for (path, work) in self.works(plan, path) {
            let Some(spot) = self.spot(plan, &path) else { continue };
            // The worker was told when the cancel began.
            let told = canceling && matches!(work.stage, Stage::Granted { .. });
            let fence = work.fence().filter(|_| !told);
            out.extend(fence.and_then(|fence| cancel(&spot, &path, fence)));
            out.extend(self.refund(&spot, &path, work));
        }
    }

    /// The calls that are granted or may be reported: a new owner has to watch them.
    pub fn open_calls(&self, plan: &Plan) -> Vec<(NodePath, Fence, Exec)> {
        let works = self.works(plan, &NodePath::root());
        let call = |(path, work): (NodePath, &Work)| {
            let fence = work.fence()?;
            let exec = exec_of(&self.spot(plan, &path)?)?;
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

    /// The number of the attempt that is open at a place.
    pub fn node_attempt(&self, plan: &Plan, path: &NodePath) -> Option<u32> {
        self.work_at(plan, path).map(|(_, work)| work.attempt)
    }

    fn work_at<'p, 's>(&'s self, plan: &'p Plan, path: &NodePath) -> Option<(Spot<'p, 's>, &'s Work)> {
        let spot = self.spot(plan, path)?;
        let work = spot.phase().work()?;
        Some((spot, work))
    }

    /// The order for a call.
    fn order(
        &self,
        plan: &Plan,
        spot: &Spot<'_, '_>,
        path: &NodePath,
        fence: Fence,
        attempt: u32,
        deadline: Option<crate::time::Timestamp>,
    ) -> Option<Effect> {
        let call = spot.call()?;
        let work = spot.phase().work();
        let prepared = spot.input(self);
        let (input, params) = match resolved_params(spot, &prepared) {
            Some(params) => (params.get("input").cloned().map_or(prepared, Arc::new), params.into()),
            None => {
                let params = with_fields(spot, call, &prepared);
                (prepared, params)
            }
        };
        Some(Effect::Call(Box::new(Order {
            run: self.id,
            node: path.clone(),
            visit: spot.state.visit,
            fence,
            attempt,
            exec: exec_of(spot)?,
            service: spot.service().unwrap_or_default().to_owned(),
            input,
            params,
            memo: work.and_then(|work| work.memo.clone()),
            key: self.call_key(path, spot.state.visit),
            deadline,
            timeout_ms: call.timeout_ms,
            priority: self.priority(plan),
            weighted_by_load: call.weighted_by_load,
            avoid: work.map(|work| work.workers.clone()).unwrap_or_default(),
            depth: self.start.parent.as_ref().map_or(1, |parent| parent.depth + 1),
        })))
    }

    /// The same for every attempt of a visit: workers use it to do a thing once.
    pub fn call_key(&self, path: &NodePath, visit: Visit) -> String {
        format!("{}/{path}/{visit}", self.id)
    }

    fn movement(
        &self,
        spot: &Spot<'_, '_>,
        path: &NodePath,
        make: impl FnOnce(String) -> Movement,
    ) -> Option<Effect> {
        let account = self.start.account.clone()?;
        let key = crate::money::charge_key(self.id, path.as_str(), spot.state.visit);
        Some(Effect::Move { account, movement: make(key) })
    }

    fn refund(&self, spot: &Spot<'_, '_>, path: &NodePath, work: &Work) -> Option<Effect> {
        let estimate = work.charge?;
        self.movement(spot, path, |key| Movement::refund(&key, estimate))
    }

    /// Every open call at or inside a place.
    fn works<'a>(&'a self, plan: &'a Plan, path: &NodePath) -> Vec<(NodePath, &'a Work)> {
        let mut found = Vec::new();
        if path.is_root() {
            in_scope(&plan.root, &self.root, path, &mut found);
        } else if let Some(spot) = self.spot(plan, path) {
            match (&spot.branch, &spot.node.kind) {
                (Some(arm), NodeKind::Fan(fan)) => in_slot(fan, arm.index, arm.slot, path, &mut found),
                _ => in_node(&spot.node.kind, spot.state, path, &mut found),
            }
        }
        found
    }
}

/// The params of the worker, for nodes whose whole configuration is resolved.
fn resolved_params(spot: &Spot<'_, '_>, input: &Value) -> Option<Map<String, Value>> {
    if !matches!(spot.node.prep, Prep::Params(_)) {
        return None;
    }
    Some(input.as_object().cloned().unwrap_or_default())
}

/// The node where a child failed, and its error. In a chain of flows, the first and the last are named.
fn placed(node: &NodePath, message: &str) -> String {
    let after_place = |text: &str| -> Option<usize> {
        let end = text.strip_prefix('`')?.find("`: ")?;
        Some(end + "``: ".len())
    };
    match after_place(message).map(|at| message.split_at(at)) {
        Some((_, inner)) if inner.starts_with("… ") => format!("`{node}`: {inner}"),
        Some((_, inner)) if after_place(inner).is_some() => format!("`{node}`: … {inner}"),
        Some(_) | None => format!("`{node}`: {message}"),
    }
}

/// A flow has no input: the prepared input of a graph node becomes params of the child, over all others.
fn with_fields(spot: &Spot<'_, '_>, call: &Call, input: &Value) -> Params {
    let params = spot.params();
    let prepared = match spot.node.prep {
        Prep::Key(_) | Prep::Map(_) => matches!(call.exec, Exec::Flow { .. }),
        Prep::Scope | Prep::Params(_) => false,
    };
    match input {
        Value::Object(fields) if prepared => Params::layered(Arc::new(fields.clone()), params.merged()),
        Value::Null => params,
        other if prepared => {
            let field = Map::from_iter([("input".to_owned(), other.clone())]);
            Params::layered(Arc::new(field), params.merged())
        }
        _ => params,
    }
}

/// The executor of the call; a function that got its name when the fan opened goes by that name.
fn exec_of(spot: &Spot<'_, '_>) -> Option<Exec> {
    let named = spot.branch.and_then(|arm| arm.name);
    match (&spot.call()?.exec, named) {
        (Exec::Func { name }, Some(named)) if name.is_empty() => Some(Exec::Func { name: named.to_owned() }),
        (exec, _) => Some(exec.clone()),
    }
}

fn cancel(spot: &Spot<'_, '_>, path: &NodePath, fence: Fence) -> Option<Effect> {
    Some(Effect::Cancel { node: path.clone(), fence, exec: exec_of(spot)? })
}

/// The worker of a call that is over without its answer should stop.
fn unanswered(spot: &Spot<'_, '_>, path: &NodePath, work: &Work, kind: FaultKind) -> Option<Effect> {
    match kind {
        FaultKind::Timeout
        | FaultKind::Watchdog
        | FaultKind::Lost
        | FaultKind::Poison
        | FaultKind::Unknown => cancel(spot, path, work.fence()?),
        FaultKind::Error
        | FaultKind::Transport
        | FaultKind::NoWorker
        | FaultKind::Canceled
        | FaultKind::Balance
        | FaultKind::Budget
        | FaultKind::Input
        | FaultKind::Limit => None,
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
    node: &'a super::state::NodeState,
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
    slot: &'a super::state::Slot,
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
