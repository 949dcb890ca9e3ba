//! Effects of an event: actions that it requires in the world. Derived just before the event is applied: the nodes it ends
//! are still there.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Run;
use super::state::{Stage, Status, Work};
use super::view::NodeRef;
use crate::counter::Fence;
use crate::effect::{CallSpec, Effect};
use crate::event::Event;
use crate::money::Movement;
use crate::params::Params;
use crate::path::NodePath;
use crate::plan::{Call, Exec, Plan, Prep};
use crate::retry::FaultKind;
use crate::time::Timestamp;

impl Run {
    /// The effects of an event that is about to be applied.
    pub fn effects(&self, plan: &Plan, event: &Event, out: &mut Vec<Effect>) {
        EventEffects { run: self, plan, out }.derive(event);
    }
}

/// Effects of one event, collected from the run as it was before that event.
struct EventEffects<'a> {
    run: &'a Run,
    plan: &'a Plan,
    out: &'a mut Vec<Effect>,
}

impl EventEffects<'_> {
    fn derive(&mut self, event: &Event) {
        let (run, plan) = (self.run, self.plan);
        match event {
            Event::Granted { node, fence, attempt, deadline, charge, .. } => {
                let Some(spot) = run.spot(plan, node) else { return };
                if let Some(amount) = charge {
                    self.movement(&spot, node, |key| Movement::charge(key, *amount));
                }
                self.call(&spot, node, *fence, *attempt, *deadline);
            }
            Event::Done { node, actual, .. } => {
                let Some((spot, work)) = run.work_at(plan, node) else { return };
                if let (Some(estimate), Some(actual)) = (work.charge, actual) {
                    self.movement(&spot, node, |key| Movement::settle(&key, estimate, *actual));
                }
            }
            Event::Failed { node, fault, .. } => {
                let Some((spot, work)) = run.work_at(plan, node) else { return };
                self.stop_unanswered(&spot, node, work, fault.kind);
                self.refund(&spot, node, work);
            }
            Event::Deferred { node, fault, .. } => {
                let Some((spot, work)) = run.work_at(plan, node) else { return };
                self.stop_unanswered(&spot, node, work, fault.kind);
            }
            Event::Expiring { node, fence, .. } => {
                let Some((spot, _)) = run.work_at(plan, node) else { return };
                self.cancel(&spot, node, *fence);
            }
            Event::Dropped { node } => self.stop_inside(node),
            Event::Draining { node } => self.withdraw_inside(node),
            Event::Canceling { .. } => {
                for (path, work) in run.root.works(&plan.root, &NodePath::root()) {
                    let Stage::Granted { fence, .. } = work.stage else { continue };
                    let Some(spot) = run.spot(plan, &path) else { continue };
                    self.cancel(&spot, &path, fence);
                }
            }
            Event::Ended { status, error, result } => {
                let Some(parent) = run.start.parent.clone() else { return };
                let result = result.clone().unwrap_or_else(|| run.root.shared_value());
                let error = error.as_ref().map(|error| placed(&error.node, &error.fault.message));
                let bill = run.cost.bill().beyond(run.told);
                self.out.push(Effect::Tell { parent, status: *status, result, error, bill });
            }
            Event::Billed { bill, .. } => {
                // While the run is open, its own end will tell.
                let parent = run.start.parent.clone().filter(|_| run.status.is_ended() && !bill.is_zero());
                self.out.extend(parent.map(|parent| Effect::Bill { parent, bill: *bill }));
            }
            Event::Funded { child, .. } => {
                self.out
                    .extend(child.map(|child| Effect::Raise { fence: child.fence, budget: child.amount }));
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
            | Event::SetBack { .. }
            | Event::Retried { .. }
            | Event::Rerun { .. }
            | Event::Logged { .. } => {}
        }
    }

    /// Everything open at a path is over: workers stop, and nothing is owed for it.
    fn stop_inside(&mut self, path: &NodePath) {
        let (run, plan) = (self.run, self.plan);
        let canceling = run.status == Status::Canceling;
        for (path, work) in run.root.works(&plan.root, path) {
            let Some(spot) = run.spot(plan, &path) else { continue };
            // The worker was told when the cancel began.
            let told = canceling && matches!(work.stage, Stage::Granted { .. });
            if let Some(fence) = work.fence().filter(|_| !told) {
                self.cancel(&spot, &path, fence);
            }
            self.refund(&spot, &path, work);
        }
    }

    /// The calls inside a place that no worker has begun are not worth beginning.
    fn withdraw_inside(&mut self, path: &NodePath) {
        let (run, plan) = (self.run, self.plan);
        for (path, work) in run.root.works(&plan.root, path) {
            let Stage::Granted { fence, .. } = work.stage else { continue };
            let exec = run.spot(plan, &path).and_then(|spot| spot.exec());
            self.out.extend(exec.map(|exec| Effect::Withdraw { node: path, fence, exec }));
        }
    }

    fn call(
        &mut self,
        spot: &NodeRef<'_, '_>,
        path: &NodePath,
        fence: Fence,
        attempt: u32,
        deadline: Option<Timestamp>,
    ) {
        let run = self.run;
        let (Some(call), Some(exec)) = (spot.call(), spot.exec()) else { return };
        let work = spot.phase().work();
        let prepared = spot.input(run);
        let (input, params) = match resolved_params(spot, &prepared) {
            Some(params) => (params.get("input").cloned().map_or(prepared, Arc::new), params.into()),
            None => {
                let params = with_fields(spot, call, &prepared);
                (prepared, params)
            }
        };
        self.out.push(Effect::Call(Box::new(CallSpec {
            run: run.id,
            node: path.clone(),
            visit: spot.state.visit,
            fence,
            attempt,
            exec,
            service: spot.service().unwrap_or_default().to_owned(),
            input,
            params,
            memo: work.and_then(|work| work.memo.clone()),
            key: run.call_key(path, spot.state.visit),
            deadline,
            timeout_ms: call.timeout_ms,
            priority: spot.priority(run, self.plan),
            weighted_by_load: call.weighted_by_load,
            stays_with: work.and_then(|work| work.stays_with.clone()),
            avoid: work.map(|work| work.workers.clone()).unwrap_or_default(),
            depth: run.start.parent.as_ref().map_or(1, |parent| parent.depth + 1),
        })));
    }

    /// A movement on the run's account; a no-op for a run without one.
    fn movement(&mut self, spot: &NodeRef<'_, '_>, path: &NodePath, make: impl FnOnce(String) -> Movement) {
        let Some(account) = self.run.start.account.clone() else { return };
        let key = crate::money::charge_key(self.run.id, path.as_str(), spot.state.visit);
        self.out.push(Effect::Move { account, movement: make(key) });
    }

    fn refund(&mut self, spot: &NodeRef<'_, '_>, path: &NodePath, work: &Work) {
        if let Some(estimate) = work.charge {
            self.movement(spot, path, |key| Movement::refund(&key, estimate));
        }
    }

    fn cancel(&mut self, spot: &NodeRef<'_, '_>, path: &NodePath, fence: Fence) {
        let exec = spot.exec();
        self.out.extend(exec.map(|exec| Effect::Cancel { node: path.clone(), fence, exec }));
    }

    /// The worker of a call that is over without its answer should stop.
    fn stop_unanswered(&mut self, spot: &NodeRef<'_, '_>, path: &NodePath, work: &Work, kind: FaultKind) {
        let is_unanswered = match kind {
            FaultKind::Timeout
            | FaultKind::Watchdog
            | FaultKind::Lost
            | FaultKind::Poison
            | FaultKind::Unknown => true,
            FaultKind::Error
            | FaultKind::Transport
            | FaultKind::NoWorker
            | FaultKind::Canceled
            | FaultKind::Balance
            | FaultKind::Budget
            | FaultKind::Input
            | FaultKind::Limit => false,
        };
        if let Some(fence) = work.fence().filter(|_| is_unanswered) {
            self.cancel(spot, path, fence);
        }
    }
}

/// The params of the worker, for nodes whose whole configuration is resolved.
fn resolved_params(spot: &NodeRef<'_, '_>, input: &Value) -> Option<Map<String, Value>> {
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
fn with_fields(spot: &NodeRef<'_, '_>, call: &Call, input: &Value) -> Params {
    let params = spot.params();
    let prepared = match spot.node.prep {
        Prep::Key(_) | Prep::Map(_) => matches!(call.exec, Exec::Flow { .. }),
        Prep::Scope | Prep::Params(_) => false,
    };
    match input {
        Value::Object(fields) if prepared => Params::from(fields.clone()).over(&params),
        Value::Null => params,
        other if prepared => {
            let field = Map::from_iter([("input".to_owned(), other.clone())]);
            Params::from(field).over(&params)
        }
        _ => params,
    }
}
