//! What a child run cost, as the run that called it is told.

use serde::{Deserialize, Serialize};

/// What calls were estimated to cost and did cost. Nothing in it is open: what was refunded is not in `actual`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bill {
    pub estimated: i64,
    pub actual: i64,
}

impl Bill {
    pub fn is_zero(&self) -> bool {
        *self == Bill::default()
    }

    /// What this is more than what was told before.
    #[must_use]
    pub fn beyond(self, told: Bill) -> Bill {
        Bill {
            estimated: self.estimated.saturating_sub(told.estimated),
            actual: self.actual.saturating_sub(told.actual),
        }
    }

    #[must_use]
    pub fn plus(self, other: Bill) -> Bill {
        Bill {
            estimated: self.estimated.saturating_add(other.estimated),
            actual: self.actual.saturating_add(other.actual),
        }
    }
}

/// What an open child run may spend of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserve {
    /// Of the call that started it.
    pub fence: u64,
    pub amount: i64,
}
