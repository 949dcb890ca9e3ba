//! Application of events to the state of a run. It decides nothing and cannot fail: an event about a node that the run
//! does not have changes nothing. Follow-up decisions are put on the agenda.

#![deny(
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "applying an event cannot fail"
)]

mod cancel;
mod draining;
mod fan;
mod funds;
mod round;
mod scope;
mod set_back;
mod settle;
mod work;

use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) use round::reopen;
pub(super) use scope::{chosen, reachable};
pub(super) use settle::collected;

use super::parked::FundsNeed;
use super::state::{Activity, LoopState, Nest, NodeState, Phase, Slot, Status};
use super::waits::Look;
use super::{Run, Todo};
use crate::counter::Visit;
use crate::event::{Ending, Event, RunFault, Start, Waiting};
use crate::path::NodePath;
use crate::plan::{Form, NodeKind, Plan, Routing};
use crate::time::Timestamp;

impl Run {
    /// Folds one event into the state.
    pub fn apply(&mut self, plan: &Plan, event: &Event, at: Timestamp) {
        self.length += 1;
        self.updated_at = self.updated_at.max(at);
        let mut applier = Applier { run: self, plan, at };
        applier.apply(event);
        applier.drained();
    }
}

/// The application of one event: the run that it changes, the plan of the run, and when the event happened.
struct Applier<'a> {
    run: &'a mut Run,
    plan: &'a Plan,
    at: Timestamp,
}

impl Applier<'_> {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Started(start) => self.started(start),
            Event::Entered { node, visit, input } => self.entered(node, *visit, input.clone()),
            Event::Granted { .. }
            | Event::Suspended { .. }
            | Event::Deferred { .. }
            | Event::Expiring { .. } => self.call_moved(event),
            Event::Done { node, output, action, actual, .. } => {
                self.done(node, output.clone(), action.clone(), *actual);
            }
            Event::Failed { node, fault, route, .. } => self.failed(node, fault, route.as_deref()),
            Event::Skipped { node } => self.skipped(node),
            Event::Dropped { node } => self.dropped(node),
            Event::Judged { node, dead } => self.judged(node, dead),
            Event::Opened { node, n, names, all } => self.opened(node, *n, names, *all),
            Event::Draining { node } => self.draining(node),
            Event::Turned { node, outputs, .. } => self.turned(node, outputs),
            Event::Waiting { node, wait } => self.waiting(node, wait),
            Event::Signaled { id, key, value, .. } => self.signaled(id.as_deref(), key, value),
            Event::Canceling { until, .. } => {
                self.run.status = Status::Canceling;
                self.run.agenda.clear();
                self.run.draining.clear();
                // Only the grace of the cancel itself counts from now on.
                self.run.wakes = BTreeSet::from([(*until, NodePath::root())]);
            }
            Event::Paused => self.run.status = Status::Paused,
            Event::Resumed => {
                self.run.status = Status::Running;
                self.run.look = Look::All;
            }
            Event::Stepped => self.run.allowance += 1,
            Event::SetBack { by_ms } => self.set_back(*by_ms),
            Event::Retried { round } => self.retried(*round),
            Event::Rerun { round, from, shared } => self.rerun(*round, from, shared.as_ref()),
            Event::Funded { budget, nodes, child } => self.funded(*budget, nodes, *child),
            Event::Billed { fence, bill, .. } => self.billed_by_child(*fence, *bill),
            Event::Decided { .. } | Event::Logged { .. } => {}
            Event::Ended { status, error, result } => self.ended(*status, error.as_ref(), result.clone()),
        }
    }

    fn started(&mut self, start: &Start) {
        self.run.status = Status::Running;
        self.run.created_at = self.at;
        self.run.budget = start.budget;
        let mut shared = super::state::Shared::new();
        if self.plan.form == Form::Dag {
            let fields = start.params.fields().into_iter();
            shared.extend(fields.map(|(key, value)| (key.to_owned(), value.clone())));
        }
        self.run.root.shared = Some(shared);
        self.run.root.params = start.params.clone();
        self.run.root.chosen = scope::chosen(&self.plan.root, start);
        self.run.start = Arc::new(start.clone());
        self.open_scope(&NodePath::root());
    }

    fn entered(&mut self, path: &NodePath, visit: Visit, input: Arc<serde_json::Value>) {
        self.run.agenda.remove(&Todo::Enter(path.clone()));
        self.run.visits = self.run.visits.max(visit);
        self.run.entries += 1;
        self.run.allowance = self.run.allowance.saturating_sub(1);
        let Some((scope_path, key)) = path.split_last() else { return };
        let Some((scope, state)) = self.run.root.scope_mut(&self.plan.root, &scope_path) else { return };
        let Some((ix, node)) = scope.node(key) else { return };
        if let Routing::Action { .. } = scope.routing {
            state.cursor = Some(ix);
        }
        let before = state.nodes.remove(&ix).unwrap_or_default();
        let fresh = NodeState {
            visit,
            phase: Phase::Open(Activity::Beginning),
            input,
            entered_at: Some(self.at),
            n_in_settled: before.n_in_settled,
            n_in_live: before.n_in_live,
            ..NodeState::default()
        };
        state.nodes.insert(ix, fresh);
        let limit = matches!(node.kind, NodeKind::Fan(_) | NodeKind::Sub(_) | NodeKind::Loop(_))
            && node.timeout_ms > 0;
        self.set_wake(path, limit.then(|| self.at.after(node.timeout_ms)));
        self.run.agenda.push_back(Todo::Begin(path.clone()));
    }

    fn opened(&mut self, path: &NodePath, n: usize, names: &[String], all: bool) {
        self.begun(path);
        let Some(spot) = self.run.spot(self.plan, path) else { return };
        let spare = scope::spare_entries(&spot, n);
        let inner = scope::inner_state(&spot, self.run);
        let limit = match (&spot.branch, &spot.node.kind) {
            // A subflow that starts again has its whole time again, and no longer waits to start.
            (None, NodeKind::Sub(_)) => {
                (spot.node.timeout_ms > 0).then(|| self.at.after(spot.node.timeout_ms))
            }
            _ => spot.state.wake,
        };
        if spot.branch.is_some() {
            self.run.spare_entries = self.run.spare_entries.saturating_add(spare);
            self.opened_branch(path, inner);
            return;
        }
        let nest = match &spot.node.kind {
            NodeKind::Sub(_) => inner.map(Nest::Scope),
            NodeKind::Fan(_) => Some(Nest::Fan(super::state::FanState {
                slots: vec![Slot::default(); n],
                names: names.to_vec(),
                all,
                ..Default::default()
            })),
            NodeKind::Loop(_) => Some(Nest::Loop(LoopState { n, ..LoopState::default() })),
            _ => None,
        };
        let kind = &spot.node.kind;
        self.run.spare_entries = self.run.spare_entries.saturating_add(spare);
        if let Some(node) = self.run.root.node_mut(&self.plan.root, path) {
            node.phase = Phase::Open(Activity::Nest);
            node.nest = nest.map(Box::new);
        }
        self.set_wake(path, limit);
        match kind {
            NodeKind::Sub(_) => self.open_scope(path),
            NodeKind::Fan(_) => self.fan_moved(path),
            _ => self.next_turn(path),
        }
    }

    fn waiting(&mut self, path: &NodePath, wait: &Waiting) {
        self.begun(path);
        let activity = match *wait {
            Waiting::Timer { until, wall } => Activity::Timer { until, wall },
            Waiting::Signal { until } => Activity::Signal { until },
            Waiting::Approval { until } => Activity::Approval { until },
            Waiting::Balance { amount } => return self.park(path, FundsNeed::of_balance(amount)),
            Waiting::Budget { amount, child } => {
                return self.park(path, FundsNeed { amount, over_budget: true, child });
            }
        };
        let wake = match &activity {
            Activity::Timer { until, .. } => Some(*until),
            Activity::Signal { until } | Activity::Approval { until } => *until,
            Activity::Beginning | Activity::Call(_) | Activity::Nest | Activity::Restart { .. } => None,
        };
        if !matches!(activity, Activity::Timer { .. }) {
            let kind = self.run.spot(self.plan, path).map(|spot| &spot.node.kind);
            if let Some(kind) = kind {
                self.run.waits.insert(kind, path);
            }
        }
        if let Some(node) = self.run.root.node_mut(&self.plan.root, path) {
            node.phase = Phase::Open(activity);
        }
        self.set_wake(path, wake);
    }

    fn signaled(&mut self, id: Option<&str>, key: &str, value: &Arc<serde_json::Value>) {
        if let Some(id) = id {
            self.run.signal_ids.push_back(id.to_owned());
            while self.run.signal_ids.len() > crate::limits::SIGNAL_IDS {
                self.run.signal_ids.pop_front();
            }
        }
        self.run.signals.insert(key.to_owned(), value.clone());
        self.run.root.shared.get_or_insert_default().insert(key.to_owned(), value.clone());
        scope::overwrite(&self.plan.root, &mut self.run.root, key, value);
        self.run.look.note(&NodePath::root(), key);
    }

    fn ended(&mut self, status: Ending, error: Option<&RunFault>, result: Option<Arc<serde_json::Value>>) {
        self.run.status = match status {
            Ending::Completed => Status::Completed,
            Ending::Failed => Status::Failed,
            Ending::Canceled => Status::Canceled,
        };
        self.run.error = error.cloned();
        self.run.result = result;
        if self.run.start.parent.is_some() {
            self.run.told = self.run.cost.bill();
        }
        self.run.ended_at = Some(self.at);
        self.run.root.ended = true;
        self.run.agenda.clear();
        self.run.draining.clear();
        self.run.wakes.clear();
        self.run.waits.clear();
        self.run.parked.clear();
        self.run.allowance = 0;
        self.run.n_granted = 0;
    }

    /// Takes the beginning of a node off the agenda. An item that a pause would have held uses up a step; a node that
    /// was just entered used it up when it was.
    fn begun(&mut self, path: &NodePath) {
        self.run.agenda.remove(&Todo::Begin(path.clone()));
        let entered = self.run.spot(self.plan, path).is_some_and(|spot| spot.was_entered());
        if self.run.status == Status::Paused && !entered {
            self.run.allowance = self.run.allowance.saturating_sub(1);
        }
    }

    /// Records the next wake-up of this path; replaces the earlier one.
    fn set_wake(&mut self, path: &NodePath, wake: Option<Timestamp>) {
        let Some(spot) = self.run.root.spot_mut(&self.plan.root, path) else { return };
        let before = std::mem::replace(spot.into_wake(), wake);
        if before == wake {
            return;
        }
        if let Some(before) = before {
            self.run.wakes.remove(&(before, path.clone()));
        }
        if let Some(wake) = wake {
            self.run.wakes.insert((wake, path.clone()));
        }
    }
}
