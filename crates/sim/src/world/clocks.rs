//! The clocks of a world: time that passes, the wall clock that faults move, and server time by the rule that servers
//! use (`engine::server_time`).

use std::time::Duration;

use windlass_engine::server_time::ServerTime;
use windlass_engine::time::Timestamp;

use super::SimWorld;
use crate::bug::PlantedBug;
use crate::checker::SimMoment;

/// When a world begins, as time that passes.
pub(crate) const BEGIN: Timestamp = Timestamp(1_000_000);
/// The wall clock is so far ahead of time that passes at first, so that it can go back.
const MOVED_MS: u64 = 3 * 24 * 3_600_000;
/// How far behind server time the wall clock falls at most: longer than all work may take to end after the last fault.
const BEHIND_MS_MAX: u64 = 12 * 3_600_000;

/// The clocks of a world.
pub(crate) struct SimClocks {
    /// Time that passes: it orders events, and nothing moves it but them.
    passed: Timestamp,
    /// The distance of the wall clock from it.
    moved_ms: u64,
    server: ServerTime,
}

impl SimClocks {
    pub(super) fn new() -> Self {
        SimClocks { passed: BEGIN, moved_ms: MOVED_MS, server: ServerTime::default() }
    }
}

impl SimWorld {
    /// Time that passes.
    pub(crate) fn passed(&self) -> Timestamp {
        self.clocks.passed
    }

    /// The wall clock.
    pub(crate) fn wall(&self) -> Timestamp {
        self.clocks.passed.after(self.clocks.moved_ms)
    }

    /// Lets time pass until then.
    pub(crate) fn pass_until(&mut self, at: Timestamp) {
        self.clocks.passed = self.clocks.passed.max(at);
        self.read_clocks();
    }

    /// Sets the wall clock: ahead of server time, or back.
    pub(super) fn jump_clock(&mut self) {
        let (now, wall) = (self.now, self.wall());
        let to = if self.rng.percent(50) {
            now.after(self.rng.between(1_000, 120_000))
        } else {
            let back = self.rng.between(1_000, BEHIND_MS_MAX);
            let earliest = now.0.saturating_sub_unsigned(BEHIND_MS_MAX);
            Timestamp(wall.0.saturating_sub_unsigned(back).max(earliest))
        };
        self.clocks.moved_ms = to.since(self.clocks.passed);
        self.story.push(format!("{} the wall clock is set to {}", now.0, to.0));
        self.read_clocks();
    }

    pub(super) fn read_clocks(&mut self) {
        let wall = self.wall();
        let passed = Duration::from_millis(self.clocks.passed.since(BEGIN));
        self.now = match self.bug {
            Some(PlantedBug::ClockStandsStill) => self.now.max(wall),
            Some(PlantedBug::QuarterPace) => self.clocks.server.read(wall, passed / 2),
            _ => self.clocks.server.read(wall, passed),
        };
    }
}

/// All clocks at this moment.
pub(crate) fn moment_of(world: &SimWorld) -> SimMoment {
    SimMoment { passed: world.passed(), now: world.now, wall: world.wall() }
}
