//! The cost of a child run, as it is reported to its parent.

use super::Amount;
use crate::counter::Fence;
use serde::{Deserialize, Serialize};

/// Estimated and real cost of calls. All charges in it are closed: refunds are not in `actual`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bill {
    pub estimated: Amount,
    pub actual: Amount,
}

impl Bill {
    pub fn is_zero(&self) -> bool {
        *self == Bill::default()
    }

    /// The difference to an earlier report.
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

/// The part of the budget that an open child run may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserve {
    /// The fence of the call that started it.
    pub fence: Fence,
    pub amount: Amount,
}
