//! Limits on the work of one dry run: fuel counts the estimates, bytes the values put together for them.
//!
//! Definitions come from users, so a dry run must not take more time or memory than a run would.

use crate::limits::SHARED_BYTES;
use crate::reference::{Facts, Ref};
use crate::weight::weigh_refs;

/// Estimates in one dry run; nodes beyond count as unknown.
pub(super) const FUEL_MAX: usize = 20_000;
/// Sixteen values of the largest size, or twenty thousand of some kilobytes.
const BYTES_MAX: usize = 16 * SHARED_BYTES;

pub(super) struct EstimateBudget {
    pub(super) fuel: usize,
    bytes: usize,
}

impl EstimateBudget {
    pub(super) fn new() -> Self {
        EstimateBudget { fuel: FUEL_MAX, bytes: BYTES_MAX }
    }

    pub(super) fn burn(&mut self, n: usize) {
        self.fuel = self.fuel.saturating_sub(n);
    }

    /// Takes the bytes of the values that these references point at. Returns whether they fit into the budget and
    /// into the size that a run accepts.
    pub(super) fn take(&mut self, refs: &[&Ref], facts: &dyn Facts) -> bool {
        if self.bytes == 0 {
            return false;
        }
        let weight = weigh_refs(refs, facts).ok();
        // Finding out that values are too large is work too.
        let left = self.bytes.checked_sub(weight.unwrap_or(SHARED_BYTES));
        self.bytes = left.unwrap_or(0);
        left.is_some() && weight.is_some()
    }
}
