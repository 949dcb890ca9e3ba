//! Child runs: their cost, and their part of the budget.

use super::super::Run;
use super::super::state::Status;
use crate::counter::Fence;
use crate::event::{InsufficientFundsAction, Parent};
use crate::money::Bill;
use crate::money::Reserve;

impl Run {
    /// The cost of the run so far, with its children.
    pub(in super::super) fn billed(&self) -> Bill {
        Bill { estimated: self.cost.estimated, actual: self.cost.actual }
    }

    /// The cost of its own calls so far, without its children.
    pub fn own_cost(&self) -> Bill {
        self.billed().beyond(self.children)
    }

    /// The amount of the budget that open child runs may still spend.
    pub(in super::super) fn reserved(&self) -> i64 {
        self.reserves.values().fold(0, |sum, reserve| sum.saturating_add(*reserve))
    }

    /// The open child run that may spend most of the budget.
    pub(in super::super) fn largest_reserve(&self) -> Option<Reserve> {
        let reserves = self.reserves.iter().map(|(fence, amount)| Reserve { fence: *fence, amount: *amount });
        reserves.max_by_key(|reserve| reserve.amount)
    }

    /// Whose budget this run spends from, if not its own.
    pub(in super::super) fn benefactor(&self) -> Option<&Parent> {
        self.start.parent.as_ref().filter(|_| self.start.budget.is_some())
    }

    /// The amount that calls of this run have taken from its account so far, without its children.
    pub fn paid(&self) -> i64 {
        self.cost.borne().saturating_sub(self.children.actual)
    }

    /// The part of the budget that the child run of this fence may spend, while it is open.
    pub fn reserve_of(&self, fence: Fence) -> Option<i64> {
        self.reserves.get(&fence).copied()
    }

    pub(super) fn billed_by_child(&mut self, fence: Fence, bill: Bill) {
        let Bill { estimated, actual } = bill;
        self.children = self.children.plus(bill);
        self.cost.estimated = self.cost.estimated.saturating_add(estimated);
        // All charges of the child are settled or refunded: the budget bears its cost.
        self.cost.settled = self.cost.settled.saturating_add(estimated);
        self.cost.actual = self.cost.actual.saturating_add(actual);
        let freed = self.reserves.remove(&fence);
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
        if self.start.on_short_balance == InsufficientFundsAction::Fail && self.reserved() <= 0 {
            let all = self.parked.over_budget().cloned().collect();
            self.look_at_parked(all);
        }
        self.look_at_budget(true);
    }
}
