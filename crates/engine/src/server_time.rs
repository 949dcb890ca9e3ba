//! Server time: a clock that never goes back, made from a wall clock that may.
//!
//! Server time is the wall clock as long as that does not go back. While the wall clock is behind, server time runs at
//! half pace, measured by a monotonic clock, until both meet: waits are late by at most a factor of two and never
//! early. A wall clock that is ahead is followed at once. The rule is pure, so that the simulator drives the one that
//! servers use.

use std::time::Duration;

use crate::time::Timestamp;

/// A wall clock that is behind by more than this is reported.
pub const SKEW_SHOWN_MS: u64 = 60_000;
/// A wall clock that is behind by more than this makes the server unready: half pace would take days to make up for it.
pub const SKEW_MAX_MS: u64 = 24 * 3_600_000;

/// The state of server time: the moment when it was last set by the wall clock, on both clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerTime {
    at: Timestamp,
    /// The monotonic clock at that moment.
    since: Duration,
}

impl ServerTime {
    /// Server time now, given the wall clock and the monotonic clock now.
    pub fn read(&mut self, wall: Timestamp, monotonic: Duration) -> Timestamp {
        let paced = self.paced(monotonic);
        if wall < paced {
            return paced;
        }
        *self = ServerTime { at: wall, since: monotonic };
        wall
    }

    /// Makes server time no earlier than this from now on: stored times may come from a clock that ran ahead.
    pub fn not_before(&mut self, at: Timestamp, monotonic: Duration) {
        if at > self.paced(monotonic) {
            *self = ServerTime { at, since: monotonic };
        }
    }

    fn paced(&self, monotonic: Duration) -> Timestamp {
        let half = monotonic.saturating_sub(self.since) / 2;
        self.at.after(u64::try_from(half.as_millis()).unwrap_or(u64::MAX))
    }
}

/// How long it takes until server time reaches `at`, if no clock jumps meanwhile.
pub fn wait_ms(at: Timestamp, now: Timestamp, wall: Timestamp) -> u64 {
    let left = at.since(now);
    left.saturating_mul(2).min(left.saturating_add(now.since(wall)))
}

/// The server time at which the wall clock reaches `at`, if no clock jumps meanwhile; never before that.
pub fn at_wall(at: Timestamp, now: Timestamp, wall: Timestamp) -> Timestamp {
    at.max(if at > wall { now.after(at.since(wall).div_ceil(2)) } else { at })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    /// A wall clock that can be set, and time that passes.
    struct Clocks {
        server: ServerTime,
        wall: Timestamp,
        monotonic: Duration,
    }

    impl Clocks {
        fn new() -> Self {
            Clocks { server: ServerTime::default(), wall: Timestamp(1_000_000), monotonic: Duration::ZERO }
        }

        fn pass(&mut self, ms: u64) -> Timestamp {
            self.monotonic += Duration::from_millis(ms);
            self.wall = self.wall.after(ms);
            self.now()
        }

        fn now(&mut self) -> Timestamp {
            self.server.read(self.wall, self.monotonic)
        }
    }

    #[test]
    fn a_clock_ahead_is_followed_at_once() {
        let mut clocks = Clocks::new();
        assert_eq!(clocks.now(), clocks.wall);
        clocks.wall = clocks.wall.after(HOUR);
        assert_eq!(clocks.now(), clocks.wall);
        assert_eq!(clocks.pass(300), clocks.wall);
    }

    #[test]
    fn time_runs_at_half_pace_until_the_wall_clock_has_caught_up() {
        let mut clocks = Clocks::new();
        clocks.wall = clocks.wall.after(HOUR);
        let reached = clocks.now();
        clocks.wall = Timestamp(1_000_000);
        assert_eq!(clocks.now(), reached);
        // Many reads lose no fraction of a millisecond.
        for _ in 0..600 {
            clocks.pass(1);
        }
        assert_eq!(clocks.now(), reached.after(300));
        assert_eq!(clocks.pass(2 * HOUR - 600 - 1), reached.after(HOUR - 1));
        assert_eq!(clocks.pass(1), clocks.wall);
        assert_eq!(clocks.pass(1_000), clocks.wall, "both have met");
    }

    #[test]
    fn each_jump_back_is_made_up_for() {
        let mut clocks = Clocks::new();
        let mut before = clocks.now();
        for ms in [5, 70_000, 3_000] {
            clocks.wall = Timestamp(clocks.wall.0.saturating_sub_unsigned(ms));
            assert_eq!(clocks.now(), before);
            before = clocks.pass(1_000);
            assert!(before == clocks.wall || before.since(clocks.wall) > 0);
        }
        assert_eq!(clocks.pass(4 * HOUR), clocks.wall);
    }

    #[test]
    fn stored_times_that_are_ahead_are_not_gone_behind() {
        let mut clocks = Clocks::new();
        let stored = clocks.wall.after(HOUR);
        clocks.server.not_before(stored, clocks.monotonic);
        assert_eq!(clocks.now(), stored);
        assert_eq!(clocks.pass(1_000), stored.after(500));
        clocks.server.not_before(stored, clocks.monotonic);
        assert_eq!(clocks.now(), stored.after(500), "an earlier moment changes nothing");
    }

    #[test]
    fn waits_are_as_long_as_server_time_takes() {
        let (now, wall) = (Timestamp(10_000), Timestamp(9_000));
        assert_eq!(wait_ms(Timestamp(10_300), now, now), 300);
        assert_eq!(wait_ms(Timestamp(10_300), now, wall), 600);
        assert_eq!(wait_ms(Timestamp(20_000), now, wall), 11_000, "both meet before that");
        assert_eq!(wait_ms(Timestamp(9_500), now, wall), 0);
    }

    #[test]
    fn a_moment_of_the_wall_clock_has_a_server_time() {
        let (now, wall) = (Timestamp(10_000), Timestamp(9_000));
        assert_eq!(at_wall(Timestamp(12_345), now, now), Timestamp(12_345));
        assert_eq!(at_wall(Timestamp(9_301), now, wall), Timestamp(10_151));
        assert_eq!(at_wall(Timestamp(11_000), now, wall), Timestamp(11_000), "where both meet");
        assert_eq!(at_wall(Timestamp(20_000), now, wall), Timestamp(20_000));
        assert_eq!(at_wall(Timestamp(8_000), now, wall), Timestamp(8_000), "it has passed");
    }
}
