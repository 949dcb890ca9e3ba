//! The time of this server: the system's clock, except that it never goes back.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass_engine::time::Timestamp;

/// Tells the time in milliseconds: the system's, or that of the store if servers share one. When the system's clock is set back, it stands still until that has caught up:
/// no timer fires early, and no entry of a journal is older than the one before it.
#[derive(Debug, Default)]
pub struct Clock {
    latest: AtomicI64,
    /// How far the system's clock is behind.
    behind: AtomicI64,
}

impl Clock {
    /// The time now.
    pub fn now(&self) -> Timestamp {
        let now = system_ms().saturating_add(self.behind.load(Ordering::Relaxed));
        Timestamp(self.latest.fetch_max(now, Ordering::Relaxed).max(now))
    }

    /// Follows the store's clock: it said `told`, within the time that asking took.
    pub(crate) fn agree(&self, told: Timestamp, took: Duration) {
        let took = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        let behind = told.0.saturating_add(took / 2).saturating_sub(system_ms());
        // The round trip bounds the error.
        if behind.abs_diff(self.behind.load(Ordering::Relaxed)) > took.unsigned_abs() {
            self.behind.store(behind, Ordering::Relaxed);
        }
    }

    /// Never returns a time before this one: stored times may come from a clock that ran ahead.
    pub fn not_before(&self, at: Timestamp) {
        self.latest.fetch_max(at.0, Ordering::Relaxed);
    }

    /// How long it is until then; nothing if that has passed.
    pub fn until(&self, at: Timestamp) -> Duration {
        Duration::from_millis(at.since(self.now()))
    }
}

fn system_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_agree_on_the_time_of_their_store() {
        let clock = Clock::default();
        let ahead = Timestamp(system_ms()).after(3_600_000);
        clock.agree(ahead, Duration::ZERO);
        assert!(clock.now().since(ahead) < 10_000 && clock.now() >= ahead);
        let reached = clock.now();
        clock.agree(Timestamp(system_ms()), Duration::ZERO);
        assert!(clock.now() >= reached, "it stands still until the others have caught up");
    }

    #[test]
    fn clocks_agree_no_more_closely_than_the_round_trip() {
        let clock = Clock::default();
        clock.agree(Timestamp(system_ms()).after(40), Duration::from_secs(1));
        assert_eq!(clock.behind.load(Ordering::Relaxed), 0);
    }

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
