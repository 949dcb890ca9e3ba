//! The cost of a run and its budget: totals over its calls, and the parts that open child runs may spend.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Run;
use crate::counter::Fence;
use crate::event::Parent;
use crate::money::{Amount, Bill, Reserve};

/// Estimated and real cost of the calls of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    pub estimated: Amount,
    pub actual: Amount,
    /// Estimates given back because the call failed or was canceled: they no longer count against the budget.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refunded: Amount,
    /// Estimates of calls that are done: the budget bears their real cost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settled: Amount,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &Amount) -> bool {
    *value == Amount::ZERO
}

impl Totals {
    /// The amount that the budget bears: the estimates of open calls, and the real cost of the others.
    pub fn spent(&self) -> Amount {
        let open = self.estimated.saturating_sub(self.refunded).saturating_sub(self.settled);
        open.saturating_add(self.actual)
    }

    /// The cost so far as a parent run is told.
    pub(super) fn bill(&self) -> Bill {
        Bill { estimated: self.estimated, actual: self.actual }
    }

    pub(super) fn charge(&mut self, estimate: Amount) {
        self.estimated = self.estimated.saturating_add(estimate);
    }

    /// Replaces the estimate of a call by its real cost, which is never more.
    pub(super) fn settle(&mut self, estimate: Amount, actual: Amount) {
        self.actual = self.actual.saturating_add(actual.min(estimate));
        self.settled = self.settled.saturating_add(estimate);
    }

    pub(super) fn refund(&mut self, estimate: Amount) {
        self.refunded = self.refunded.saturating_add(estimate);
    }

    /// Adds the cost of a child run. All its charges are settled or refunded: the budget bears its real cost.
    pub(super) fn add_child(&mut self, bill: Bill) {
        self.estimated = self.estimated.saturating_add(bill.estimated);
        self.settled = self.settled.saturating_add(bill.estimated);
        self.actual = self.actual.saturating_add(bill.actual);
    }
}

/// The parts of the budget that open child runs may spend, by the fence of the call that started them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Reserves(BTreeMap<Fence, Amount>);

impl Reserves {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The amount of the budget that open child runs may still spend.
    pub(super) fn total(&self) -> Amount {
        self.0.values().fold(Amount::ZERO, |sum, reserve| sum.saturating_add(*reserve))
    }

    /// The open child run that may spend most of the budget.
    pub(super) fn largest(&self) -> Option<Reserve> {
        let reserves = self.0.iter().map(|(fence, amount)| Reserve { fence: *fence, amount: *amount });
        reserves.max_by_key(|reserve| reserve.amount)
    }

    pub(super) fn amount(&self, fence: Fence) -> Option<Amount> {
        self.0.get(&fence).copied()
    }

    /// Sets the part of one child run.
    pub(super) fn set(&mut self, Reserve { fence, amount }: Reserve) {
        self.0.insert(fence, amount);
    }

    /// Takes back the part of a child run that ended; `None` when it had none.
    pub(super) fn release(&mut self, fence: Fence) -> Option<Amount> {
        self.0.remove(&fence)
    }
}

impl Run {
    /// The cost of its own calls so far, without its children.
    pub fn own_cost(&self) -> Bill {
        self.cost.bill().beyond(self.children)
    }

    /// The amount that calls of this run have taken from its account so far, without its children.
    pub fn paid(&self) -> Amount {
        self.cost.spent().saturating_sub(self.children.actual)
    }

    /// The part of the budget that the child run of this fence may spend, while it is open.
    pub fn reserve_of(&self, fence: Fence) -> Option<Amount> {
        self.reserves.amount(fence)
    }

    /// The rest of the budget that neither calls nor open child runs have taken; negative when it was lowered below
    /// that.
    pub(super) fn budget_left(&self) -> Option<Amount> {
        let taken =
            |budget: Amount| budget.saturating_sub(self.cost.spent()).saturating_sub(self.reserves.total());
        self.budget.map(taken)
    }

    /// Whether this amount is within the budget, but open children may still need it.
    pub(super) fn is_held_by_children(&self, amount: Amount) -> bool {
        let reserved = self.reserves.total();
        let needed = self.cost.spent().saturating_add(reserved).saturating_add(Amount(amount.0));
        reserved > Amount::ZERO && self.budget.is_some_and(|budget| needed > budget)
    }

    /// Whose budget this run spends from, if not its own.
    pub(super) fn paying_parent(&self) -> Option<&Parent> {
        self.start.parent.as_ref().filter(|_| self.start.budget.is_some())
    }
}
