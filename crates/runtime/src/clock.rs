//! The time of this server, made from a wall clock: the system's, or that of the store if servers share one.
//!
//! `engine::server_time` has the rule. Every wait for a moment is made here, in sleeps of at most a second: a clock that
//! jumps ahead, as that of a suspended laptop does, is noticed within that time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use windlass_engine::server_time::{SKEW_MAX_MS, SKEW_SHOWN_MS, ServerTime, wait_ms};
use windlass_engine::time::Timestamp;

/// An advance of the wall clock beyond the time that passed is a jump ahead from this on.
const JUMP_MS: u64 = 60_000;
/// The longest sleep between two looks at the clock.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Tells the time in milliseconds. Server time never goes back: no timer fires early, and no entry of a journal is older
/// than the one before it.
#[derive(Debug)]
pub struct Clock {
    /// The beginning of the monotonic clock.
    begun: Instant,
    state: Mutex<ClockState>,
}

#[derive(Debug)]
struct ClockState {
    wall: WallClock,
    server: ServerTime,
    /// The distance between both as it was last logged.
    reported: SkewLevel,
    /// The wall clock as it was last read, and the monotonic clock then.
    last: Option<(Timestamp, Duration)>,
    /// The monotonic clock when the wall clock last jumped ahead.
    jumped_at: Option<Duration>,
}

impl ClockState {
    /// Server time and the wall clock.
    fn read(&mut self, monotonic: Duration) -> (Timestamp, Timestamp) {
        let wall = self.wall.read(monotonic);
        if let Some((last, at)) = self.last {
            let passed = u64::try_from(monotonic.saturating_sub(at).as_millis()).unwrap_or(u64::MAX);
            if wall.since(last) > passed.saturating_add(JUMP_MS) {
                self.jumped_at = Some(monotonic);
            }
        }
        self.last = Some((wall, monotonic));
        (self.server.read(wall, monotonic), wall)
    }
}

/// The source of the wall clock.
#[derive(Debug)]
enum WallClock {
    System,
    /// The clock of the store, as it was last read, and the monotonic clock then. The system's clock plays no part: it
    /// may be set at any time, on one of several servers.
    Store {
        reported: Timestamp,
        at: Duration,
    },
    #[cfg(test)]
    Manual(ManualWall),
}

/// How much the distance between server time and the wall clock matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SkewLevel {
    #[default]
    Small,
    /// Timers are noticeably late.
    Shown,
    /// It would take days until both meet.
    Unready,
}

impl SkewLevel {
    fn of(skew_ms: u64) -> Self {
        match skew_ms {
            0..=SKEW_SHOWN_MS => SkewLevel::Small,
            ms if ms <= SKEW_MAX_MS => SkewLevel::Shown,
            _ => SkewLevel::Unready,
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::of(WallClock::System)
    }
}

impl Clock {
    fn of(wall: WallClock) -> Self {
        let (server, reported) = (ServerTime::default(), SkewLevel::default());
        let state = ClockState { wall, server, reported, last: None, jumped_at: None };
        Clock { begun: Instant::now(), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Server time now.
    pub fn now(&self) -> Timestamp {
        self.both().0
    }

    /// The wall clock now. Moments that people name go by it: slots of schedules, and `until` of timers.
    pub fn wall(&self) -> Timestamp {
        self.both().1
    }

    /// Server time and the wall clock, at the same moment.
    pub(crate) fn both(&self) -> (Timestamp, Timestamp) {
        let mut state = self.state();
        state.read(self.begun.elapsed())
    }

    /// The server before this one was alive at this time: if that is long ago, the wall clock may have jumped ahead since.
    pub(crate) fn resume_after(&self, beat_at: Timestamp) {
        let mut state = self.state();
        let monotonic = self.begun.elapsed();
        let (_, wall) = state.read(monotonic);
        if wall.since(beat_at) > JUMP_MS {
            state.jumped_at = Some(monotonic);
        }
    }

    /// How much is left of this time after the wall clock jumped ahead; nothing if it did not.
    pub(crate) fn left_after_jump(&self, time: Duration) -> Duration {
        let mut state = self.state();
        let monotonic = self.begun.elapsed();
        state.read(monotonic);
        state.jumped_at.map_or(Duration::ZERO, |at| time.saturating_sub(monotonic.saturating_sub(at)))
    }

    /// How far the wall clock is behind server time, in milliseconds.
    pub fn skew_ms(&self) -> u64 {
        let (now, wall) = self.both();
        now.since(wall)
    }

    /// Follows the store's clock: it said `reported`, within the time that asking took.
    pub(crate) fn agree(&self, reported: Timestamp, took: Duration) {
        let mut state = self.state();
        let at = self.begun.elapsed();
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let reported = reported.after(took / 2);
        // The round trip bounds the error.
        let is_close = matches!(state.wall, WallClock::Store { .. })
            && reported.0.abs_diff(state.wall.read(at).0) <= took;
        if !is_close {
            state.wall = WallClock::Store { reported, at };
        }
    }

    /// Never returns a time before this one: stored times may come from a clock that ran ahead.
    pub fn not_before(&self, at: Timestamp) {
        // Server time is brought up to date first, so that a wall clock that is ahead of `at` counts.
        let mut state = self.state();
        let monotonic = self.begun.elapsed();
        state.read(monotonic);
        state.server.not_before(at, monotonic);
    }

    /// How long it is until then; nothing if that has passed.
    pub fn until(&self, at: Timestamp) -> Duration {
        let (now, wall) = self.both();
        Duration::from_millis(wait_ms(at, now, wall))
    }

    /// Sleeps until server time reaches this moment.
    pub async fn sleep_until(&self, at: Timestamp) {
        sleep_while(|| self.until(at)).await;
    }

    /// Sleeps until the wall clock shows this moment.
    pub(crate) async fn sleep_until_wall(&self, at: Timestamp) {
        sleep_while(|| Duration::from_millis(at.since(self.wall()))).await;
    }

    /// A sentence about a wall clock that is far behind, for people; `None` = it is not.
    pub fn skew_warning(&self) -> Option<String> {
        let skew_ms = self.skew_ms();
        (SkewLevel::of(skew_ms) != SkewLevel::Small).then(|| {
            format!(
                "the wall clock is {} s behind the time of this server: timers, leases and retries run at half pace until both meet",
                skew_ms / 1_000
            )
        })
    }

    /// A sentence about a wall clock that is too far behind to wait for; `None` = it is not.
    pub(crate) fn skew_trouble(&self) -> Option<String> {
        let skew_ms = self.skew_ms();
        (SkewLevel::of(skew_ms) == SkewLevel::Unready).then(|| {
            format!(
                "the wall clock is {} h behind the time of this server: set the clock, or stop the server and run `windlass doctor --repair --store STORE`",
                skew_ms / 3_600_000
            )
        })
    }

    /// Logs when the wall clock falls far behind, and when both have met again; once for each change.
    pub(crate) fn log_skew(&self) {
        let skew_ms = self.skew_ms();
        let level = SkewLevel::of(skew_ms);
        let before = std::mem::replace(&mut self.state().reported, level);
        if before == level {
            return;
        }
        match level {
            SkewLevel::Small => tracing::info!("the wall clock agrees with the time of this server again"),
            SkewLevel::Shown | SkewLevel::Unready => {
                let reason = self.skew_trouble().or_else(|| self.skew_warning());
                tracing::warn!(skew_ms, "{}", reason.unwrap_or_default());
            }
        }
    }
}

#[cfg(test)]
impl Clock {
    /// Sets a clock that tests can set.
    pub(crate) fn set_wall(&self, at: Timestamp) {
        let WallClock::Manual(wall) = &self.state().wall else { panic!("this clock cannot be set") };
        wall.set(at.0.saturating_sub(system().0));
    }
}

impl WallClock {
    fn read(&self, monotonic: Duration) -> Timestamp {
        match self {
            WallClock::System => system(),
            WallClock::Store { reported, at } => {
                let since = monotonic.saturating_sub(*at);
                reported.after(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
            }
            #[cfg(test)]
            WallClock::Manual(wall) => wall.read(),
        }
    }
}

async fn sleep_while(left: impl Fn() -> Duration) {
    loop {
        let wait = left();
        if wait.is_zero() {
            return;
        }
        tokio::time::sleep(wait.min(SLEEP_MAX)).await;
    }
}

fn system() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A wall clock that a test sets: the system's, moved by so many milliseconds.
#[cfg(test)]
#[derive(Debug, Clone, Default)]
pub(crate) struct ManualWall {
    moved_ms: std::sync::Arc<std::sync::atomic::AtomicI64>,
}

#[cfg(test)]
impl ManualWall {
    /// A clock of a server that follows this one.
    pub(crate) fn clock(&self) -> Clock {
        Clock::of(WallClock::Manual(self.clone()))
    }

    /// One that shows this moment now.
    pub(crate) fn at(moment: Timestamp) -> Self {
        let wall = ManualWall::default();
        wall.set(moment.0.saturating_sub(system().0));
        wall
    }

    /// Another one that shows the same moment, and can be set apart from this one.
    pub(crate) fn apart(&self) -> Self {
        let wall = ManualWall::default();
        wall.set(self.moved_ms.load(std::sync::atomic::Ordering::Relaxed));
        wall
    }

    /// Sets the clock this far from the system's.
    pub(crate) fn set(&self, moved_ms: i64) {
        self.moved_ms.store(moved_ms, std::sync::atomic::Ordering::Relaxed);
    }

    fn read(&self) -> Timestamp {
        Timestamp(system().0.saturating_add(self.moved_ms.load(std::sync::atomic::Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests;
