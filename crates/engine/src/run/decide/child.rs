//! Child runs: their part of the budget, and the consequences of their end.

use super::Decider;
use crate::counter::Fence;
use crate::event::{Event, Waiting};
use crate::input::{CallOutcome, Refusal};
use crate::money::Bill;
use crate::path::NodePath;
use crate::plan::{Call, Exec};

impl Decider<'_> {
    /// The amount that a child run may spend: all that is left of the budget when it is started. Nothing else of the run is
    /// charged and no other child is started until it returns the unspent rest, so that all together never
    /// spend more. `Err` = the event that waits for that. A call that is charged itself has its part first.
    pub(super) fn reserve(
        &self,
        path: &NodePath,
        call: &Call,
        charge: Option<i64>,
    ) -> Result<Option<i64>, Box<Event>> {
        let run = self.run;
        let (Exec::Flow { .. }, Some(budget), Some(_)) = (&call.exec, run.budget, &run.start.account) else {
            return Ok(None);
        };
        let amount = run.reserves.total();
        if amount > 0 {
            return Err(Box::new(Event::Waiting {
                node: path.clone(),
                wait: Waiting::Budget { amount, child: true },
            }));
        }
        let left = budget.saturating_sub(run.cost.borne()).saturating_sub(charge.unwrap_or(0));
        Ok(Some(left.max(0)))
    }

    /// Whether this amount is within the budget, but open children may still need it.
    pub(super) fn is_held_by_children(&self, amount: i64) -> bool {
        let run = self.run;
        let reserved = run.reserves.total();
        let needed = run.cost.borne().saturating_add(reserved).saturating_add(amount);
        reserved > 0 && run.budget.is_some_and(|budget| needed > budget)
    }

    /// A child run ended. Its cost counts whether or not the parent still waits for its result.
    pub(super) fn child_ended(
        &self,
        path: &NodePath,
        fence: Fence,
        outcome: Option<&CallOutcome>,
        bill: Bill,
    ) -> Result<Vec<Event>, Refusal> {
        let counts = !bill.is_zero() || self.run.reserve_of(fence).is_some();
        let mut events = Vec::new();
        if counts {
            events.push(Event::Billed { node: path.clone(), fence, bill });
        }
        match outcome.map(|outcome| self.call_ended(path, fence, outcome, None)) {
            Some(Ok(ended)) => events.extend(ended),
            // The parent does not wait for it any more.
            Some(Err(Refusal::Stale { .. })) if counts => {}
            Some(Err(refusal)) => return Err(refusal),
            None => {}
        }
        Ok(events)
    }
}
