//! Application of events about calls: granted, suspended, deferred, expiring, parked, closed.

use std::sync::Arc;

use serde_json::Value;

use super::super::Todo;
use super::super::parked::FundsNeed;
use super::super::state::{Activity, Phase, Stage, Work};
use super::Applier;
use crate::counter::Visit;
use crate::event::{Event, Next};
use crate::money::{Amount, Reserve};
use crate::path::NodePath;
use crate::retry::Fault;
use crate::time::Timestamp;

impl Applier<'_> {
    pub(super) fn call_moved(&mut self, event: &Event) {
        match event {
            Event::Granted { node, .. } => self.granted(node, event),
            Event::Suspended { node, fence, memo, until, .. } => {
                let limited = self
                    .run
                    .spot(self.plan, node)
                    .and_then(|spot| spot.call())
                    .is_some_and(|c| c.timeout_ms > 0);
                if let Some(work) = self.leave_grant(node) {
                    // The server's default is for those who work; a limit the node names is for the attempt.
                    work.deadline = work.deadline.filter(|_| limited);
                    work.stage = Stage::Suspended { fence: *fence, until: *until };
                    work.memo = Some(memo.clone());
                    (work.n_quick, work.n_rechecks) = (0, 0);
                }
                self.wake_work(node);
            }
            Event::Deferred { node, next: Next::Restart, fault, until, .. } => {
                self.restarting(node, fault, *until);
            }
            Event::Deferred { node, fault, until, next, worker, .. } => {
                let Some(work) = self.leave_grant(node) else { return };
                work.count(*next, worker.as_deref());
                work.stage = Stage::Backoff { until: *until };
                work.deadline = None;
                if let Some(mut spot) = self.run.root.spot_mut(&self.plan.root, node) {
                    spot.note_fault(fault);
                }
                self.wake_work(node);
                if *until <= self.at {
                    self.run.agenda.push_back(Todo::Begin(node.clone()));
                }
            }
            Event::Expiring { node, until, .. } => {
                if let Some(work) = self.run.root.work_mut(&self.plan.root, node)
                    && let Stage::Granted { expiring, .. } = &mut work.stage
                {
                    *expiring = Some(*until);
                }
                self.wake_work(node);
            }
            // `apply` passes only the events above.
            _ => {}
        }
    }

    fn granted(&mut self, path: &NodePath, event: &Event) {
        let Event::Granted { fence, attempt, visit, input, deadline, charge, budget, by, .. } = event else {
            return;
        };
        self.begun(path);
        self.run.parked.remove(path);
        self.run.fence = self.run.fence.max(*fence);
        self.run.cost.charge(charge.unwrap_or(Amount::ZERO));
        if let Some(amount) = *budget {
            self.run.reserves.set(Reserve { fence: *fence, amount });
        }
        let total = self.run.spot(self.plan, path).map_or(0, |spot| spot.total_timeout_ms(self.run));
        let work = self.run.root.work_mut(&self.plan.root, path);
        let was_granted = work.is_some_and(|work| matches!(work.stage, Stage::Granted { .. }));
        self.run.n_granted += usize::from(!was_granted);
        let Some(mut spot) = self.run.root.spot_mut(&self.plan.root, path) else { return };
        spot.note_grant(*attempt, *fence);
        let stage = Stage::Granted { fence: *fence, by: *by, expiring: None };
        // Time spent waiting for money is not the call's.
        let total_deadline = (total > 0).then(|| self.at.after(total));
        match spot.into_phase() {
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
        self.note_visit(path, *visit, input.as_ref());
        self.wake_work(path);
        // A child for which nothing is left delays no other call.
        self.look_at_next_child();
    }

    /// The journal says which visit a grant belongs to, and the input of a branch with its own input.
    fn note_visit(&mut self, path: &NodePath, visit: Visit, input: Option<&Arc<Value>>) {
        if visit == Visit::ZERO {
            return;
        }
        self.run.visits = self.run.visits.max(visit);
        let is_branch = self.run.spot(self.plan, path).is_some_and(|spot| spot.branch.is_some());
        let Some((fan, _)) = path.split_last().filter(|_| is_branch) else {
            if let Some(node) = self.run.root.node_mut(&self.plan.root, path) {
                node.visit = visit;
            }
            return;
        };
        if let Some(node) = self.run.root.node_mut(&self.plan.root, &fan) {
            node.visit = visit;
        }
        if let (Some(slot), Some(input)) = (self.run.root.slot_mut(&self.plan.root, path), input) {
            slot.input = Some(input.clone());
        }
    }

    pub(super) fn park(&mut self, path: &NodePath, need: FundsNeed) {
        let FundsNeed { amount, over_budget, child } = need;
        self.run.parked.insert(path.clone(), need);
        let Some(spot) = self.run.root.spot_mut(&self.plan.root, path) else { return };
        let stage = Stage::Parked { amount, over_budget };
        match spot.into_phase() {
            Phase::Open(Activity::Call(work)) => work.stage = stage,
            other => *other = Phase::Open(Activity::Call(Box::new(Work::first(stage, 0, None, None, None)))),
        }
        self.wake_work(path);
        if !child {
            self.look_at_next_child();
        }
    }

    /// The call at a path, which from now on is not granted.
    fn leave_grant(&mut self, path: &NodePath) -> Option<&mut Work> {
        let work = self.run.root.work_mut(&self.plan.root, path)?;
        let granted = matches!(work.stage, Stage::Granted { .. });
        self.left_grants(path, usize::from(granted));
        self.run.root.work_mut(&self.plan.root, path)
    }

    /// The call at a path is over: no worker has it, and nothing is owed for it.
    pub(super) fn close_work(&mut self, path: &NodePath, actual: Option<Amount>) {
        let charge = self.leave_grant(path).and_then(|work| work.charge.take());
        match (charge, actual) {
            (Some(estimate), Some(actual)) => self.run.cost.settle(estimate, actual),
            (Some(estimate), None) => self.run.cost.refund(estimate),
            (None, _) => {}
        }
        self.run.parked.remove(path);
        if let Some(kind) = self.run.spot(self.plan, path).map(|spot| &spot.node.kind) {
            self.run.waits.remove(kind, path);
        }
        self.set_wake(path, None);
        self.look_at_budget(charge.is_some());
    }

    fn wake_work(&mut self, path: &NodePath) {
        let wake = self.run.root.work_mut(&self.plan.root, path).and_then(|work| work.wake());
        self.set_wake(path, wake);
    }

    /// A subflow that failed starts again from its beginning.
    fn restarting(&mut self, path: &NodePath, fault: &Fault, until: Timestamp) {
        self.run.agenda.forget(path);
        self.drains_no_more(path);
        if let Some(node) = self.run.root.node_mut(&self.plan.root, path) {
            node.restarts += 1;
            node.fault = Some(fault.clone());
            node.phase = Phase::Open(Activity::Restart { until });
        }
        self.set_wake(path, Some(until));
        if until <= self.at {
            self.run.agenda.push_back(Todo::Begin(path.clone()));
        }
    }
}

impl Work {
    fn first(
        stage: Stage,
        attempt: u32,
        deadline: Option<Timestamp>,
        total_deadline: Option<Timestamp>,
        charge: Option<Amount>,
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
            stays_with: None,
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
                self.stays_with = worker.map(str::to_owned);
                self.memo = None;
            }
            Next::Failover => {
                self.n_deliveries += 1;
                self.stays_with = None;
                self.workers.extend(worker.map(str::to_owned));
            }
            Next::Quick => self.n_quick += 1,
            Next::Recheck => {
                self.n_quick = 0;
                self.n_rechecks += 1;
                self.n_deliveries = 1;
                self.workers.clear();
            }
            Next::Lost => self.n_losses += 1,
            Next::Recovered | Next::Restart => {}
        }
    }
}
