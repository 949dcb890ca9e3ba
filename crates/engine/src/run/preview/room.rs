//! How much may be copied and put together for one plan: definitions are hostile, and what a run would refuse must not
//! fill the memory of who only asks.

use std::cell::Cell;

use serde_json::Value;

use crate::limits::SHARED_BYTES;
use crate::reference::{Facts, Ref};
use crate::weight::{weigh, weigh_refs};

/// Bytes in all: sixteen values of the largest size, or twenty thousand of some kilobytes.
const BYTES_MAX: usize = 16 * SHARED_BYTES;

pub(super) struct Room {
    left: Cell<usize>,
}

impl Default for Room {
    fn default() -> Self {
        Room { left: Cell::new(BYTES_MAX) }
    }
}

impl Room {
    /// Takes so much; whether it was there.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Takes what a value needs.
    pub(super) fn holds(&self, value: &Value) -> bool {
        self.left.get() > 0 && self.bears(weigh(value).ok())
    }

    /// Takes what these references point at together.
    pub(super) fn holds_all(&self, refs: &[&Ref], facts: &dyn Facts) -> bool {
        self.left.get() > 0 && self.bears(weigh_refs(refs, facts).ok())
    }

    /// `None` = more than a run would take. To find that out was work too.
    fn bears(&self, bytes: Option<usize>) -> bool {
        self.take(bytes.unwrap_or(SHARED_BYTES)) && bytes.is_some()
    }
}
