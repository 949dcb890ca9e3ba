//! Money that comes in or comes back: bills of child runs, raised budgets, and the parked calls that may go then.

use super::super::Todo;
use super::super::state::Status;
use super::Applier;
use crate::counter::Fence;
use crate::event::InsufficientFundsAction;
use crate::money::{Amount, Bill, Reserve};
use crate::path::NodePath;

impl Applier<'_> {
    pub(super) fn funded(&mut self, budget: Option<Amount>, nodes: &[NodePath], child: Option<Reserve>) {
        self.run.budget = budget.or(self.run.budget);
        if let Some(child) = child {
            self.run.reserves.set(child);
        }
        let nodes =
            if nodes.is_empty() { self.run.parked.paths().cloned().collect() } else { nodes.to_vec() };
        self.look_at_parked(nodes);
    }

    pub(super) fn billed_by_child(&mut self, fence: Fence, bill: Bill) {
        self.run.children = self.run.children.plus(bill);
        self.run.cost.add_child(bill);
        let freed = self.run.reserves.release(fence);
        match self.run.status {
            Status::Running | Status::Paused if freed.is_some() => self.reserve_freed(),
            Status::Completed | Status::Failed | Status::Canceled if self.run.start.parent.is_some() => {
                self.run.told = self.run.told.plus(bill);
            }
            Status::Pending
            | Status::Running
            | Status::Paused
            | Status::Canceling
            | Status::Completed
            | Status::Failed
            | Status::Canceled => {}
        }
    }

    /// A child returned its part of the budget. Calls that fit go. Where those that do not fit must fail, they are looked at as
    /// well: they only waited because the child might have left enough.
    fn reserve_freed(&mut self) {
        if self.run.start.on_short_balance == InsufficientFundsAction::Fail
            && self.run.reserves.total() <= Amount::ZERO
        {
            let all = self.run.parked.over_budget().cloned().collect();
            self.look_at_parked(all);
        }
        self.look_at_budget(true);
    }

    /// Other calls of the run may wait for the amount that a call gave back.
    pub(super) fn look_at_budget(&mut self, came_back: bool) {
        if came_back && matches!(self.run.status, Status::Running | Status::Paused) {
            let paths = self.run.within_budget();
            self.look_at_parked(paths);
        }
        // It may have been the one whose turn it was to start a child.
        self.look_at_next_child();
    }

    pub(super) fn look_at_next_child(&mut self) {
        if matches!(self.run.status, Status::Running | Status::Paused)
            && let Some(path) = self.run.next_child().cloned()
        {
            self.look_at_parked(vec![path]);
        }
    }

    /// Calls that wait for money may go now: they are decided again.
    fn look_at_parked(&mut self, paths: Vec<NodePath>) {
        let run = &mut *self.run;
        // A paused run still has those that were funded before on its agenda.
        let todos = paths.into_iter().filter(|path| run.parked.contains(path)).map(Todo::Begin);
        let fresh: Vec<Todo> = todos.filter(|todo| !run.agenda.contains(todo)).collect();
        run.agenda.extend(fresh);
    }
}
