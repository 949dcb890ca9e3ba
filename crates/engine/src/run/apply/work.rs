//! Application of events about calls: granted, suspended, deferred, expiring, parked, closed.

use std::sync::Arc;

use serde_json::Value;

use super::super::parked::FundsNeed;
use super::super::state::{Activity, Phase, Stage, Status, Work};
use super::super::{Run, Todo};
use crate::counter::{Fence, Visit};
use crate::event::{Event, Next};
use crate::money::Reserve;
use crate::path::NodePath;
use crate::plan::Plan;
use crate::time::Timestamp;

impl Run {
    pub(super) fn call_moved(&mut self, plan: &Plan, event: &Event, at: Timestamp) {
        match event {
            Event::Granted { node, .. } => self.granted(plan, node, event, at),
            Event::Suspended { node, fence, memo, until, .. } => {
                let limited =
                    self.spot(plan, node).and_then(|spot| spot.call()).is_some_and(|c| c.timeout_ms > 0);
                if let Some(work) = self.leave_grant(plan, node) {
                    // The server's default is for those who work; a limit the node names is for the attempt.
                    work.deadline = work.deadline.filter(|_| limited);
                    work.stage = Stage::Suspended { fence: *fence, until: *until };
                    work.memo = Some(memo.clone());
                    (work.n_quick, work.n_rechecks) = (0, 0);
                }
                self.wake_work(plan, node);
            }
            Event::Deferred { node, next: Next::Restart, fault, until, .. } => {
                self.restarting(plan, node, fault, *until, at);
            }
            Event::Deferred { node, fault, until, next, worker, .. } => {
                let Some(work) = self.leave_grant(plan, node) else { return };
                work.count(*next, worker.as_deref());
                work.stage = Stage::Backoff { until: *until };
                work.deadline = None;
                self.note_fault(plan, node, fault);
                self.wake_work(plan, node);
                if *until <= at {
                    self.agenda.push_back(Todo::Begin(node.clone()));
                }
            }
            Event::Expiring { node, until, .. } => {
                if let Some(work) = self.work_mut(plan, node)
                    && let Stage::Granted { expiring, .. } = &mut work.stage
                {
                    *expiring = Some(*until);
                }
                self.wake_work(plan, node);
            }
            // `apply` passes only the events above.
            _ => {}
        }
    }

    fn granted(&mut self, plan: &Plan, path: &NodePath, event: &Event, at: Timestamp) {
        let Event::Granted { fence, attempt, visit, input, deadline, charge, budget, by, .. } = event else {
            return;
        };
        self.begun(plan, path);
        self.parked.remove(path);
        self.fence = self.fence.max(*fence);
        self.cost.charge(charge.unwrap_or(0));
        if let Some(amount) = *budget {
            self.reserves.set(Reserve { fence: *fence, amount });
        }
        let call = self.spot(plan, path).and_then(|spot| spot.call());
        let total = call.map_or(0, |call| call.total_timeout_ms);
        let was_granted = self.work_mut(plan, path).is_some_and(|w| matches!(w.stage, Stage::Granted { .. }));
        self.n_granted += usize::from(!was_granted);
        let Some((phase, _)) = self.site_mut(plan, path) else { return };
        let stage = Stage::Granted { fence: *fence, by: *by, expiring: None };
        // Time spent waiting for money is not the call's.
        let total_deadline = (total > 0).then(|| at.after(total));
        match phase {
            Phase::Open(Activity::Call(work)) => {
                work.stage = stage;
                work.attempt = *attempt;
                work.deadline = *deadline;
                work.charge = charge.or(work.charge);
                if *attempt == 1 && work.total_deadline.is_none() {
                    work.total_deadline = total_deadline;
                }
            }
            other => {
                let work = Work::first(stage, *attempt, *deadline, total_deadline, *charge);
                *other = Phase::Open(Activity::Call(Box::new(work)));
            }
        }
        self.note_attempts(plan, path, *attempt, *fence);
        self.note_visit(plan, path, *visit, input.as_ref());
        self.wake_work(plan, path);
        // A child for which nothing is left delays no other call.
        self.look_at_next_child();
    }

    /// The journal says which visit a grant belongs to, and the input of a branch with its own input.
    fn note_visit(&mut self, plan: &Plan, path: &NodePath, visit: Visit, input: Option<&Arc<Value>>) {
        if visit == Visit::ZERO {
            return;
        }
        self.visits = self.visits.max(visit);
        let is_branch = self.spot(plan, path).is_some_and(|spot| spot.branch.is_some());
        let Some((fan, _)) = path.split_last().filter(|_| is_branch) else {
            if let Some(node) = self.node_mut(plan, path) {
                node.visit = visit;
            }
            return;
        };
        if let Some(node) = self.node_mut(plan, &fan) {
            node.visit = visit;
        }
        if let (Some(slot), Some(input)) = (self.slot_mut(plan, path), input) {
            slot.input = Some(input.clone());
        }
    }

    pub(super) fn park(&mut self, plan: &Plan, path: &NodePath, need: FundsNeed) {
        let FundsNeed { amount, over_budget, child } = need;
        self.parked.insert(path.clone(), need);
        let Some((phase, _)) = self.site_mut(plan, path) else { return };
        let stage = Stage::Parked { amount, over_budget };
        match phase {
            Phase::Open(Activity::Call(work)) => work.stage = stage,
            other => *other = Phase::Open(Activity::Call(Box::new(Work::first(stage, 0, None, None, None)))),
        }
        self.wake_work(plan, path);
        if !child {
            self.look_at_next_child();
        }
    }

    /// The call at a path, which from now on is not granted.
    fn leave_grant(&mut self, plan: &Plan, path: &NodePath) -> Option<&mut Work> {
        let granted = matches!(self.work_mut(plan, path)?.stage, Stage::Granted { .. });
        self.n_granted = self.n_granted.saturating_sub(usize::from(granted));
        self.work_mut(plan, path)
    }

    /// The call at a path is over: no worker has it, and nothing is owed for it.
    pub(super) fn close_work(&mut self, plan: &Plan, path: &NodePath, actual: Option<i64>) {
        let charge = self.leave_grant(plan, path).and_then(|work| work.charge.take());
        match (charge, actual) {
            (Some(estimate), Some(actual)) => self.cost.settle(estimate, actual),
            (Some(estimate), None) => self.cost.refund(estimate),
            (None, _) => {}
        }
        self.parked.remove(path);
        if let Some(kind) = self.spot(plan, path).map(|spot| &spot.node.kind) {
            self.waits.remove(kind, path);
        }
        self.set_wake(plan, path, None);
        self.look_at_budget(charge.is_some());
    }

    /// Other calls of the run may wait for the amount that a call gave back.
    pub(super) fn look_at_budget(&mut self, came_back: bool) {
        if came_back && matches!(self.status, Status::Running | Status::Paused) {
            let paths = self.within_budget();
            self.look_at_parked(paths);
        }
        // It may have been the one whose turn it was to start a child.
        self.look_at_next_child();
    }

    fn wake_work(&mut self, plan: &Plan, path: &NodePath) {
        let wake = self.work_mut(plan, path).and_then(|work| work.wake());
        self.set_wake(plan, path, wake);
    }

    fn note_attempts(&mut self, plan: &Plan, path: &NodePath, attempt: u32, fence: Fence) {
        match self.spot(plan, path).map(|spot| spot.branch.is_some()) {
            Some(true) => {
                if let Some(slot) = self.slot_mut(plan, path) {
                    (slot.attempts, slot.fence) = (attempt, fence);
                }
            }
            Some(false) => {
                if let Some(node) = self.node_mut(plan, path) {
                    (node.attempts, node.fence) = (attempt, fence);
                }
            }
            None => {}
        }
    }

    /// Keeps the last failure where people look for it, also when another attempt follows.
    fn note_fault(&mut self, plan: &Plan, path: &NodePath, fault: &crate::retry::Fault) {
        match self.spot(plan, path).map(|spot| spot.branch.is_some()) {
            Some(true) => {
                if let Some(slot) = self.slot_mut(plan, path) {
                    slot.fault = Some(Box::new(fault.clone()));
                }
            }
            Some(false) => {
                if let Some(node) = self.node_mut(plan, path) {
                    node.fault = Some(fault.clone());
                }
            }
            None => {}
        }
    }

    /// A subflow that failed starts again from its beginning.
    fn restarting(
        &mut self,
        plan: &Plan,
        path: &NodePath,
        fault: &crate::retry::Fault,
        until: Timestamp,
        at: Timestamp,
    ) {
        self.forget_inside(path);
        if let Some(node) = self.node_mut(plan, path) {
            node.restarts += 1;
            node.fault = Some(fault.clone());
            node.phase = Phase::Open(Activity::Restart { until });
        }
        self.set_wake(plan, path, Some(until));
        if until <= at {
            self.agenda.push_back(Todo::Begin(path.clone()));
        }
    }
}

impl Work {
    fn first(
        stage: Stage,
        attempt: u32,
        deadline: Option<Timestamp>,
        total_deadline: Option<Timestamp>,
        charge: Option<i64>,
    ) -> Work {
        Work {
            stage,
            attempt,
            n_tries: 1,
            n_deliveries: 1,
            n_quick: 0,
            n_rechecks: 0,
            n_losses: 0,
            deadline,
            total_deadline,
            memo: None,
            workers: Vec::new(),
            charge,
        }
    }

    /// Counts the next attempt. A try of the node's own begins anew; all others go on where the last one
    /// stopped, so the memo of a suspended call is kept.
    fn count(&mut self, next: Next, worker: Option<&str>) {
        match next {
            Next::Retry => {
                self.n_tries += 1;
                self.n_deliveries = 1;
                (self.n_quick, self.n_rechecks) = (0, 0);
                self.workers.clear();
                self.memo = None;
            }
            Next::Failover => {
                self.n_deliveries += 1;
                self.workers.extend(worker.map(str::to_owned));
            }
            Next::Quick => self.n_quick += 1,
            Next::Recheck => {
                self.n_quick = 0;
                self.n_rechecks += 1;
            }
            Next::Lost => self.n_losses += 1,
            Next::Recovered | Next::Restart => {}
        }
    }
}
