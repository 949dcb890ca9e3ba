//! Child runs: their cost, and their part of the budget.

use super::super::Run;
use super::super::state::Status;
use crate::counter::Fence;
use crate::event::InsufficientFundsAction;
use crate::money::Bill;

impl Run {
    pub(super) fn billed_by_child(&mut self, fence: Fence, bill: Bill) {
        self.children = self.children.plus(bill);
        self.cost.add_child(bill);
        let freed = self.reserves.release(fence);
        match self.status {
            Status::Running | Status::Paused if freed.is_some() => self.reserve_freed(),
            Status::Completed | Status::Failed | Status::Canceled if self.start.parent.is_some() => {
                self.told = self.told.plus(bill);
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

    /// A child returned its part of the budget. Calls that fit go. Where those that do not fit must fail, they are looked at as well:
    /// they only waited because the child might have left enough.
    fn reserve_freed(&mut self) {
        if self.start.on_short_balance == InsufficientFundsAction::Fail && self.reserves.total() <= 0 {
            let all = self.parked.over_budget().cloned().collect();
            self.look_at_parked(all);
        }
        self.look_at_budget(true);
    }
}
