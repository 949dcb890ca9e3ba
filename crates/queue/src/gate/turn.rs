//! A queue with limits that other servers hand out from too: what was counted holds up to a turn.

use std::sync::Arc;

use windlass_engine::time::Timestamp;

use super::{Gate, Tap};

/// How long it is taken for true who has jobs of a queue that others hand out from too: what they give back is not
/// told.
const STALE_MS: u64 = 1_000;

impl Gate {
    /// Which turn comes next, if others hand out its jobs too and it is known who has which.
    pub(crate) fn next_hand_out(&self) -> Option<u64> {
        self.turns.filter(|_| self.is_counted)
    }

    /// Whether others hand out its jobs too.
    pub(crate) fn is_shared(&self) -> bool {
        self.turns.is_some()
    }

    /// Somebody here had a turn.
    pub(crate) fn had_turn(&mut self) {
        self.turns = self.turns.map(|turns| turns.saturating_add(1));
    }

    /// It has to be asked again who has its jobs, and what is used up: nothing is handed out until then. The number
    /// of that count is new; what is being read of its jobs holds nevertheless.
    pub(crate) fn doubt_count(&mut self, count: u64) {
        (self.count, self.is_counted, self.is_counting, self.n_held) = (count, false, false, 0);
        let lanes: Vec<Arc<str>> = self.keys.keys().cloned().collect();
        for lane in lanes {
            self.key(&lane).n_held = 0;
            self.place(&lane);
        }
    }

    /// It is known who has its jobs, up to this turn. Of rates that others use too, only what is stored is used up.
    pub(crate) fn begin_turns(&mut self, turns: u64) {
        self.counted_at = self.now;
        if self.turns.is_none() {
            return;
        }
        self.turns = Some(turns);
        let now = self.now;
        self.tap = self.limits.rate.map(|rate| Tap::new(rate, now));
        let lanes: Vec<Arc<str>> = self.keys.keys().cloned().collect();
        for lane in lanes {
            self.key(&lane).tap = None;
            self.place(&lane);
        }
    }

    /// Whether others may have given something back since it was last asked.
    pub(crate) fn is_stale(&self, now: Timestamp) -> bool {
        self.is_shared() && self.is_counted && self.n_held > 0 && now.since(self.counted_at) >= STALE_MS
    }

    /// The latest moment it was told of.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// It is so late now.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }
}
