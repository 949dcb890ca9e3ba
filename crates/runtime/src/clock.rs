//! The time of this server: the system's clock, except that it never goes back.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass_engine::time::Timestamp;

/// Tells the time in milliseconds. When the system's clock is set back, it stands still until that has caught up:
/// no timer fires early, and no entry of a journal is older than the one before it.
#[derive(Debug, Default)]
pub struct Clock {
    latest: AtomicI64,
}

impl Clock {
    /// The time now.
    pub fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let now = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.latest.fetch_max(now, Ordering::Relaxed).max(now))
    }

    /// Never tell a time before this one: what is stored may come from a clock that ran ahead.
    pub fn not_before(&self, at: Timestamp) {
        self.latest.fetch_max(at.0, Ordering::Relaxed);
    }

    /// How long it is until then; nothing if that has passed.
    pub fn until(&self, at: Timestamp) -> Duration {
        Duration::from_millis(at.since(self.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back() {
        let clock = Clock::default();
        let now = clock.now();
        let ahead = now.after(60_000);
        clock.not_before(ahead);
        assert_eq!(clock.now(), ahead);
        assert_eq!(clock.until(ahead), Duration::ZERO);
        assert!(clock.until(ahead.after(5)) <= Duration::from_millis(5));
    }
}
