//! Limits of a queue whose jobs several servers dispatch. Each dispatch takes the next stored turn, so a count of held
//! jobs is valid up to a turn.

use std::sync::Arc;

use windlass_engine::time::Timestamp;

use super::{QueueLimiter, TokenBucket};

/// How long a count of held jobs is used: other servers do not report the jobs that they release.
const COUNT_VALID_MS: u64 = 1_000;

impl QueueLimiter {
    /// The next turn, if other servers dispatch jobs of the queue too and the held jobs are known.
    pub(crate) fn next_shared_turn(&self) -> Option<u64> {
        self.turns.filter(|_| self.is_counted)
    }

    /// Whether other servers dispatch jobs of the queue too.
    pub(crate) fn is_shared(&self) -> bool {
        self.turns.is_some()
    }

    /// Records a turn of this server.
    pub(crate) fn had_turn(&mut self) {
        self.turns = self.turns.map(|turns| turns.saturating_add(1));
    }

    /// Requires a new count of held jobs and spent tokens before the next dispatch. Reads of ready jobs that are open
    /// stay valid.
    pub(crate) fn invalidate_count(&mut self, count: u64) {
        (self.count_id, self.is_counted, self.is_count_read_open, self.n_held) = (count, false, false, 0);
        let lanes: Vec<Arc<str>> = self.keys.keys().cloned().collect();
        for lane in lanes {
            self.key(&lane).n_held = 0;
            self.reposition(&lane);
        }
    }

    /// Records that the held jobs are known up to this turn. Buckets that other servers use too start from their stored
    /// state.
    pub(crate) fn set_counted(&mut self, turns: u64) {
        self.counted_at = self.now;
        if self.turns.is_none() {
            return;
        }
        self.turns = Some(turns);
        let now = self.now;
        self.bucket = self.limits.rate.map(|rate| TokenBucket::new(rate, now));
        let lanes: Vec<Arc<str>> = self.keys.keys().cloned().collect();
        for lane in lanes {
            self.key(&lane).bucket = None;
            self.reposition(&lane);
        }
    }

    /// Whether other servers may have released jobs since the last count.
    pub(crate) fn is_stale(&self, now: Timestamp) -> bool {
        self.is_shared() && self.is_counted && self.n_held > 0 && now.since(self.counted_at) >= COUNT_VALID_MS
    }

    /// The latest time that the limiter was given.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Moves the clock of the limiter forward.
    pub(crate) fn advance_clock(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }
}
