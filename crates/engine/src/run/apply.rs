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
mod child;
mod fan;
mod round;
mod scope;
mod settle;
mod work;

use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) use round::reopen;
pub(super) use scope::{chosen, reachable};
pub(super) use settle::collected;

use super::parked::FundsNeed;
use super::state::{Activity, LoopState, Nest, NodeState, Phase, Slot, Status, Work};
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
        match event {
            Event::Started(start) => self.started(plan, start, at),
            Event::Entered { node, visit, input } => self.entered(plan, node, *visit, input.clone(), at),
            Event::Granted { .. }
            | Event::Suspended { .. }
            | Event::Deferred { .. }
            | Event::Expiring { .. } => {
                self.call_moved(plan, event, at);
            }
            Event::Done { node, output, action, actual, .. } => {
                self.done(plan, node, output.clone(), action.clone(), *actual, at);
            }
            Event::Failed { node, fault, route, .. } => self.failed(plan, node, fault, route.as_deref(), at),
            Event::Skipped { node } => self.skipped(plan, node, at),
            Event::Dropped { node } => self.dropped(plan, node, at),
            Event::Judged { node, dead } => self.judged(plan, node, dead),
            Event::Opened { node, n, names } => self.opened(plan, node, *n, names, at),
            Event::Turned { node, outputs, .. } => self.turned(plan, node, outputs),
            Event::Waiting { node, wait } => self.waiting(plan, node, wait),
            Event::Signaled { id, key, value, .. } => self.signaled(plan, id.as_deref(), key, value),
            Event::Canceling { until, .. } => {
                self.status = Status::Canceling;
                self.agenda.clear();
                // Only the grace of the cancel itself counts from now on.
                self.wakes = BTreeSet::from([(*until, NodePath::root())]);
            }
            Event::Paused => self.status = Status::Paused,
            Event::Resumed => {
                self.status = Status::Running;
                self.look = Look::All;
            }
            Event::Stepped => self.allowance += 1,
            Event::Retried { round } => self.retried(plan, *round, at),
            Event::Rerun { round, from, shared } => self.rerun(plan, *round, from, shared.as_ref(), at),
            Event::Funded { budget, nodes, child } => {
                self.budget = budget.or(self.budget);
                if let Some(child) = *child {
                    self.reserves.set(child);
                }
                let nodes =
                    if nodes.is_empty() { self.parked.paths().cloned().collect() } else { nodes.clone() };
                self.look_at_parked(nodes);
            }
            Event::Billed { fence, bill, .. } => self.billed_by_child(*fence, *bill),
            Event::Decided { .. } | Event::Logged { .. } => {}
            Event::Ended { status, error, result } => self.ended(*status, error.as_ref(), result.clone(), at),
        }
    }

    fn started(&mut self, plan: &Plan, start: &Start, at: Timestamp) {
        self.status = Status::Running;
        self.created_at = at;
        self.budget = start.budget;
        let mut shared = super::state::Shared::new();
        if plan.form == Form::Dag {
            shared.extend(start.params.iter().map(|(key, value)| (key.clone(), Arc::new(value.clone()))));
        }
        self.root.shared = Some(shared);
        self.root.params = Some(Arc::new(start.params.clone()));
        self.root.chosen = scope::chosen(&plan.root, start);
        self.start = Arc::new(start.clone());
        self.open_scope(plan, &NodePath::root());
    }

    fn entered(
        &mut self,
        plan: &Plan,
        path: &NodePath,
        visit: Visit,
        input: Arc<serde_json::Value>,
        at: Timestamp,
    ) {
        self.consume(&Todo::Enter(path.clone()));
        self.visits = self.visits.max(visit);
        self.entries += 1;
        self.allowance = self.allowance.saturating_sub(1);
        let Some((scope_path, key)) = path.split_last() else { return };
        let Some((scope, state)) = self.scope_mut(plan, &scope_path) else { return };
        let Some((ix, node)) = scope.node(key) else { return };
        if let Routing::Action { .. } = scope.routing {
            state.cursor = Some(ix);
        }
        let before = state.nodes.remove(&ix).unwrap_or_default();
        let fresh = NodeState {
            visit,
            phase: Phase::Open(Activity::Beginning),
            input,
            entered_at: Some(at),
            n_in_settled: before.n_in_settled,
            n_in_live: before.n_in_live,
            ..NodeState::default()
        };
        state.nodes.insert(ix, fresh);
        let limit = matches!(node.kind, NodeKind::Fan(_) | NodeKind::Sub(_) | NodeKind::Loop(_))
            && node.timeout_ms > 0;
        self.set_wake(plan, path, limit.then(|| at.after(node.timeout_ms)));
        self.agenda.push_back(Todo::Begin(path.clone()));
    }

    fn opened(&mut self, plan: &Plan, path: &NodePath, n: usize, names: &[String], at: Timestamp) {
        self.begun(plan, path);
        let Some(spot) = self.spot(plan, path) else { return };
        let spare = scope::spare_entries(&spot, n);
        let inner = scope::inner_state(&spot, self);
        let limit = match (&spot.branch, &spot.node.kind) {
            // A subflow that starts again has its whole time again, and no longer waits to start.
            (None, NodeKind::Sub(_)) => (spot.node.timeout_ms > 0).then(|| at.after(spot.node.timeout_ms)),
            _ => spot.state.wake,
        };
        if spot.branch.is_some() {
            self.spare_entries = self.spare_entries.saturating_add(spare);
            self.opened_branch(plan, path, inner, at);
            return;
        }
        let nest = match &spot.node.kind {
            NodeKind::Sub(_) => inner.map(Nest::Scope),
            NodeKind::Fan(_) => Some(Nest::Fan(super::state::FanState {
                slots: vec![Slot::default(); n],
                names: names.to_vec(),
                ..Default::default()
            })),
            NodeKind::Loop(_) => Some(Nest::Loop(LoopState { n, ..LoopState::default() })),
            _ => None,
        };
        let kind = &spot.node.kind;
        self.spare_entries = self.spare_entries.saturating_add(spare);
        if let Some(node) = self.node_mut(plan, path) {
            node.phase = Phase::Open(Activity::Nest);
            node.nest = nest.map(Box::new);
        }
        self.set_wake(plan, path, limit);
        match kind {
            NodeKind::Sub(_) => self.open_scope(plan, path),
            NodeKind::Fan(_) => self.fan_moved(plan, path),
            _ => self.next_turn(plan, path),
        }
    }

    fn waiting(&mut self, plan: &Plan, path: &NodePath, wait: &Waiting) {
        self.begun(plan, path);
        let activity = match *wait {
            Waiting::Timer { until } => Activity::Timer { until },
            Waiting::Signal { until } => Activity::Signal { until },
            Waiting::Approval { until } => Activity::Approval { until },
            Waiting::Balance { amount } => return self.park(plan, path, FundsNeed::of_balance(amount)),
            Waiting::Budget { amount, child } => {
                return self.park(plan, path, FundsNeed { amount, over_budget: true, child });
            }
        };
        let wake = match &activity {
            Activity::Timer { until } => Some(*until),
            Activity::Signal { until } | Activity::Approval { until } => *until,
            Activity::Beginning | Activity::Call(_) | Activity::Nest | Activity::Restart { .. } => None,
        };
        if !matches!(activity, Activity::Timer { .. }) {
            let kind = self.spot(plan, path).map(|spot| &spot.node.kind);
            if let Some(kind) = kind {
                self.waits.insert(kind, path);
            }
        }
        if let Some(node) = self.node_mut(plan, path) {
            node.phase = Phase::Open(activity);
        }
        self.set_wake(plan, path, wake);
    }

    fn signaled(&mut self, plan: &Plan, id: Option<&str>, key: &str, value: &Arc<serde_json::Value>) {
        if let Some(id) = id {
            self.signal_ids.push_back(id.to_owned());
            while self.signal_ids.len() > crate::limits::SIGNAL_IDS {
                self.signal_ids.pop_front();
            }
        }
        self.signals.insert(key.to_owned(), value.clone());
        self.root.shared.get_or_insert_default().insert(key.to_owned(), value.clone());
        scope::overwrite(&plan.root, &mut self.root, key, value);
        self.look.note(&NodePath::root(), key);
    }

    fn ended(
        &mut self,
        status: Ending,
        error: Option<&RunFault>,
        result: Option<Arc<serde_json::Value>>,
        at: Timestamp,
    ) {
        self.status = match status {
            Ending::Completed => Status::Completed,
            Ending::Failed => Status::Failed,
            Ending::Canceled => Status::Canceled,
        };
        self.error = error.cloned();
        self.result = result;
        if self.start.parent.is_some() {
            self.told = self.cost.bill();
        }
        self.ended_at = Some(at);
        self.root.ended = true;
        self.agenda.clear();
        self.wakes.clear();
        self.waits.clear();
        self.parked.clear();
        self.allowance = 0;
        self.n_granted = 0;
    }

    /// Takes the beginning of a node off the agenda. An item that a pause would have held uses up a step; a node that
    /// was just entered used it up when it was.
    fn begun(&mut self, plan: &Plan, path: &NodePath) {
        self.consume(&Todo::Begin(path.clone()));
        let entered = self.spot(plan, path).is_some_and(|spot| spot.was_entered());
        if self.status == Status::Paused && !entered {
            self.allowance = self.allowance.saturating_sub(1);
        }
    }

    /// Takes an item off the agenda: it has been decided.
    fn consume(&mut self, todo: &Todo) {
        self.agenda.remove(todo);
    }

    pub(super) fn node_mut(&mut self, plan: &Plan, path: &NodePath) -> Option<&mut NodeState> {
        let (scope_path, key) = path.split_last()?;
        let (scope, state) = self.scope_mut(plan, &scope_path)?;
        let (ix, _) = scope.node(key)?;
        Some(state.nodes.entry(ix).or_default())
    }

    /// The branch at `path`, when the path leads to a branch.
    pub(super) fn slot_mut(&mut self, plan: &Plan, path: &NodePath) -> Option<&mut Slot> {
        let (fan, index) = path.split_last()?;
        let index: usize = index.parse().ok()?;
        match self.node_mut(plan, &fan)?.nest.as_deref_mut()? {
            Nest::Fan(arms) => arms.slots.get_mut(index),
            Nest::Scope(_) | Nest::Loop(_) => None,
        }
    }

    /// The phase and the wake-up of a node or a branch.
    fn site_mut(&mut self, plan: &Plan, path: &NodePath) -> Option<(&mut Phase, &mut Option<Timestamp>)> {
        if self.spot(plan, path)?.branch.is_some() {
            let slot = self.slot_mut(plan, path)?;
            return Some((&mut slot.phase, &mut slot.wake));
        }
        let node = self.node_mut(plan, path)?;
        Some((&mut node.phase, &mut node.wake))
    }

    /// Records the next wake-up of this path; replaces the earlier one.
    pub(super) fn set_wake(&mut self, plan: &Plan, path: &NodePath, wake: Option<Timestamp>) {
        let Some((_, filed)) = self.site_mut(plan, path) else { return };
        let before = std::mem::replace(filed, wake);
        if before == wake {
            return;
        }
        if let Some(before) = before {
            self.wakes.remove(&(before, path.clone()));
        }
        if let Some(wake) = wake {
            self.wakes.insert((wake, path.clone()));
        }
    }

    /// The call that is open at a place.
    fn work_mut(&mut self, plan: &Plan, path: &NodePath) -> Option<&mut Work> {
        match self.site_mut(plan, path)?.0 {
            Phase::Open(Activity::Call(work)) => Some(work),
            Phase::Open(_)
            | Phase::Pending
            | Phase::Done
            | Phase::Failed
            | Phase::Skipped
            | Phase::Canceled => None,
        }
    }
}
