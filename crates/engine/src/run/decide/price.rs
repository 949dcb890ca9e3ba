//! The charge of a call before it is made and its part of the budget, and the consequence when the account or budget
//! cannot bear it.

use super::call::CallDecider;
use super::view_of;
use crate::counter::Fence;
use crate::event::{Event, InsufficientFundsAction, Level, Waiting};
use crate::money::Amount;
use crate::plan::Exec;
use crate::retry::{Fault, FaultKind};

impl CallDecider<'_> {
    /// The charge of the call before it is made: nothing, an amount, or an event instead of the call.
    pub(super) fn price(&self, events: &mut Vec<Event>) -> Result<Option<Amount>, Box<Event>> {
        let (run, spot, path, call) = (self.run, self.spot, self.path, self.call);
        let service = spot.service().unwrap_or_default();
        let price = run.start.prices.get(service);
        if call.cost.is_none() && price.is_none() {
            return Ok(None);
        }
        let amount = match crate::money::fixed(call.cost.as_ref(), price) {
            // A constant cost needs no look at values.
            Some(amount) => amount,
            None => {
                let input = spot.input(run);
                let view = view_of(run, spot, &input);
                match crate::money::estimate(call.cost.as_ref(), price, &view) {
                    Ok(Some(amount)) => amount,
                    Ok(None) => return Ok(None),
                    Err(fault) => return Err(Box::new(spot.bad_input(path, fault.to_string()))),
                }
            }
        };
        if run.start.account.is_none() {
            let message = format!("`{service}` costs {amount}, but the run has no account: free");
            let node = Some(path.clone());
            events.push(Event::Logged { level: Level::Info, node, message });
            return Ok(None);
        }
        let spent = run.cost.spent();
        let over_budget = run.budget.is_some_and(|budget| spent.saturating_add(amount) > budget);
        let budget = Waiting::Budget { amount, child: false };
        if !over_budget && run.is_held_by_children(Amount(amount.0)) {
            return Err(Box::new(Event::Waiting { node: path.clone(), wait: budget }));
        }
        if !over_budget && !self.has_insufficient_funds(amount) {
            return Ok(Some(amount));
        }
        if run.start.on_short_balance == InsufficientFundsAction::Wait {
            let wait = if over_budget { budget } else { Waiting::Balance { amount } };
            return Err(Box::new(Event::Waiting { node: path.clone(), wait }));
        }
        let fault = if over_budget {
            let budget = run.budget.unwrap_or_default();
            let message = format!("budget_exceeded: {amount} more would pass the run's budget of {budget}");
            Fault::new(FaultKind::Budget, message).permanent()
        } else {
            let account = run.start.account.as_deref().unwrap_or_default();
            let message = format!("insufficient_balance: account `{account}` cannot bear {amount}");
            Fault::new(FaultKind::Balance, message).permanent()
        };
        Err(Box::new(spot.failed(path, Fence::ZERO, fault, None)))
    }

    /// Whether the account is known not to bear this call.
    fn has_insufficient_funds(&self, amount: Amount) -> bool {
        let paid = self.run.paid();
        self.given.insufficient_funds.contains(self.path)
            || self.given.spend_limit.is_some_and(|limit| paid.saturating_add(amount) > limit)
    }

    /// The amount that a child run may spend: all that is left of the budget when it is started. Nothing else of the run is
    /// charged and no other child is started until it returns the unspent rest, so that all together never
    /// spend more. `Err` = the event that waits for that. A call that is charged itself has its part first.
    pub(super) fn reserve(&self, charge: Option<Amount>) -> Result<Option<Amount>, Box<Event>> {
        let run = self.run;
        let (Exec::Flow { .. }, Some(budget), Some(_)) = (&self.call.exec, run.budget, &run.start.account)
        else {
            return Ok(None);
        };
        let amount = run.reserves.total();
        if amount > Amount::ZERO {
            return Err(Box::new(Event::Waiting {
                node: self.path.clone(),
                wait: Waiting::Budget { amount, child: true },
            }));
        }
        let left = budget.saturating_sub(run.cost.spent()).saturating_sub(charge.unwrap_or(Amount::ZERO));
        Ok(Some(left.max(Amount::ZERO)))
    }
}
