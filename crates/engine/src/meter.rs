//! The work of a decision, counted in steps: events, evaluated nodes, bytes that are looked at or copied. Steps follow
//! from the state and the plan alone, never from time, so that a replay and a simulation count the same.

use std::cell::Cell;

use serde_json::Value;

use crate::event::Event;
use crate::weight::weigh;

/// Bytes that count as one step: text is searched and copied much faster than nodes are visited.
pub(crate) const BYTES_PER_STEP: usize = 32;
/// Steps of one event: it is decided, applied, projected into rows and stored.
const EVENT_STEPS: usize = 32;

/// The budget of a decision, shared by all inputs that are decided together.
#[derive(Debug, Clone)]
pub struct Meter {
    spent: Cell<u64>,
    budget: u64,
    /// Whether an item of the agenda that exceeds the budget is put back undecided.
    is_strict: bool,
    has_put_back: Cell<bool>,
}

impl Default for Meter {
    fn default() -> Self {
        Meter::endless()
    }
}

impl Meter {
    /// Every agenda is followed to its end.
    pub fn endless() -> Self {
        Meter::of(u64::MAX)
    }

    /// The agenda is followed until so many steps are spent. The item that exceeds the budget is still decided, so a
    /// fresh meter of at least one step always makes progress.
    pub fn of(budget: u64) -> Self {
        Meter { spent: Cell::new(0), budget, is_strict: false, has_put_back: Cell::new(false) }
    }

    /// The same, but the item that would exceed the budget is put back before its work is done.
    pub fn strict(budget: u64) -> Self {
        Meter { is_strict: true, ..Meter::of(budget) }
    }

    /// Steps so far.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Whether the decision has to be committed before the agenda is followed further.
    pub fn is_spent(&self) -> bool {
        self.spent.get() >= self.budget
    }

    /// Whether an item of the agenda was put back, because it would have exceeded the budget.
    pub fn has_put_back(&self) -> bool {
        self.has_put_back.get()
    }

    /// Counts work that is about to be done. `Err` means that the item of the agenda is put back.
    pub(crate) fn spend(&self, steps: usize) -> Result<(), PutBack> {
        self.count(steps);
        if self.is_strict && self.spent.get() > self.budget {
            self.has_put_back.set(true);
            return Err(PutBack);
        }
        Ok(())
    }

    pub(crate) fn spend_bytes(&self, bytes: usize) -> Result<(), PutBack> {
        self.spend(bytes / BYTES_PER_STEP)
    }

    /// Counts an event that was decided, with the values that it carries.
    pub(crate) fn count_event(&self, event: &Event) {
        let bytes = match event {
            Event::Entered { input, .. } => bytes(input),
            Event::Granted { input, .. } => input.as_deref().map_or(0, bytes),
            Event::Done { output, .. } => output.as_deref().map_or(0, bytes),
            Event::Suspended { memo, .. } => bytes(memo),
            Event::Turned { outputs, .. } => outputs.iter().map(bytes).sum(),
            Event::Signaled { value, .. } => bytes(value),
            Event::Started(_)
            | Event::Deferred { .. }
            | Event::Expiring { .. }
            | Event::Failed { .. }
            | Event::Skipped { .. }
            | Event::Dropped { .. }
            | Event::Judged { .. }
            | Event::Opened { .. }
            | Event::Draining { .. }
            | Event::Waiting { .. }
            | Event::Decided { .. }
            | Event::Canceling { .. }
            | Event::Paused
            | Event::Resumed
            | Event::Stepped
            | Event::Retried { .. }
            | Event::Rerun { .. }
            | Event::Funded { .. }
            | Event::Billed { .. }
            | Event::Logged { .. }
            | Event::SetBack { .. }
            | Event::Ended { .. } => 0,
        };
        self.count(EVENT_STEPS + bytes / BYTES_PER_STEP);
    }

    /// Counts work that cannot be put back.
    pub(crate) fn count(&self, steps: usize) {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.spent.set(self.spent.get().saturating_add(steps));
    }
}

/// The item of the agenda that is being decided exceeds the budget and is put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PutBack;

fn bytes(value: &Value) -> usize {
    weigh(value).unwrap_or(crate::limits::SHARED_BYTES)
}

/// Steps of a walk over the value, or of a copy of it. Values nest no deeper than JSON readers let them.
pub(crate) fn steps_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() / BYTES_PER_STEP,
        Value::Array(items) => items.iter().map(steps_of).fold(1, usize::saturating_add),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, field)| steps_of(field) + key.len() / BYTES_PER_STEP)
            .fold(1, usize::saturating_add),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_strict_meter_puts_back() {
        let meter = Meter::of(10);
        assert_eq!(meter.spend(11), Ok(()));
        assert!(meter.is_spent() && !meter.has_put_back());
        let strict = Meter::strict(10);
        assert_eq!(strict.spend(10), Ok(()));
        assert_eq!(strict.spend(1), Err(PutBack));
        assert!(strict.is_spent() && strict.has_put_back());
        assert!(!Meter::endless().is_spent());
    }

    #[test]
    fn values_count_by_their_bytes() {
        assert_eq!(steps_of(&json!(1)), 1);
        assert_eq!(steps_of(&json!("x".repeat(BYTES_PER_STEP))), 2);
        assert_eq!(steps_of(&json!({"a": [1, 2], "b": null})), 5);
    }
}
