//! An amount of money.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Money in whole minor units (cents, fen); negative for money that leaves an account. There are no operators: the ledger
/// refuses an overflow (`checked_…`), totals and limits stop at the largest amount (`saturating_…`).
///
/// ```compile_fail
/// use windlass_engine::money::Amount;
///
/// let sum = Amount(1) + Amount(2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amount(pub i64);

impl Amount {
    pub const ZERO: Amount = Amount(0);
    pub const MAX: Amount = Amount(i64::MAX);

    pub fn is_zero(&self) -> bool {
        *self == Amount::ZERO
    }

    pub fn is_negative(self) -> bool {
        self < Amount::ZERO
    }

    pub fn checked_add(self, other: Amount) -> Option<Amount> {
        self.0.checked_add(other.0).map(Amount)
    }

    pub fn checked_neg(self) -> Option<Amount> {
        self.0.checked_neg().map(Amount)
    }

    /// The price of so many units.
    pub fn checked_mul(self, units: i64) -> Option<Amount> {
        self.0.checked_mul(units).map(Amount)
    }

    #[must_use]
    pub fn saturating_add(self, other: Amount) -> Amount {
        Amount(self.0.saturating_add(other.0))
    }

    #[must_use]
    pub fn saturating_sub(self, other: Amount) -> Amount {
        Amount(self.0.saturating_sub(other.0))
    }

    #[must_use]
    pub fn saturating_neg(self) -> Amount {
        Amount(self.0.saturating_neg())
    }

    #[must_use]
    pub fn saturating_mul(self, n: u64) -> Amount {
        Amount(self.0.saturating_mul(i64::try_from(n).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for Amount {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Amount)
    }
}

/// Sums of many amounts fit into an `i128`.
impl From<Amount> for i128 {
    fn from(amount: Amount) -> i128 {
        i128::from(amount.0)
    }
}
