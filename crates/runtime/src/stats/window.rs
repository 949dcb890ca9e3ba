//! Event counts and durations of the last 10 seconds, minute and hour, of one queue, of one flow, or of all.
//!
//! Events are recorded in 10-second cells. A cell that ended a minute ago is merged into a six-minute cell: an hour of
//! 10-second cells would take half a gigabyte for 1,000 busy queues. Time needs no timer to pass: recording merges and
//! drops old cells, and reading skips those outside the window.

use std::collections::VecDeque;

use windlass_engine::time::Timestamp;

use super::histogram::{DurationHistogram, Percentiles};
use super::sample::EventFigures;

const CELL_MS: i64 = 10_000;
const MERGED_CELL_MS: i64 = 360_000;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;

/// Events and durations of the three windows that the API shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecentActivity {
    pub last_10s: WindowStats,
    pub last_minute: WindowStats,
    pub last_hour: WindowStats,
}

/// Events and durations of one window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WindowStats {
    pub counts: EventCounts,
    /// From when a job could be claimed until it was.
    pub wait_ms: Percentiles,
    /// From the claim to the end of the attempt.
    pub work_ms: Percentiles,
}

/// How many events of each kind there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventCounts {
    pub created: u64,
    pub started: u64,
    pub succeeded: u64,
    /// Attempts that failed, whether or not a retry follows.
    pub failed: u64,
    /// Jobs that became dead letters.
    pub dead: u64,
    /// Attempts that answered that they are not finished; counted only for calls of runs.
    pub suspended: u64,
}

/// An event of a job, a call or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowEvent {
    Created,
    /// A worker got it, after this wait if it was in a queue.
    Started {
        wait_ms: Option<u64>,
    },
    /// An attempt succeeded after this time, if that is known.
    Succeeded {
        work_ms: Option<u64>,
    },
    /// An attempt failed; the job may have become a dead letter.
    Failed {
        work_ms: Option<u64>,
        is_dead: bool,
    },
    /// An attempt answered that it is not finished.
    Suspended {
        work_ms: Option<u64>,
    },
}

/// The events of the last hour. Ten to fifty kilobytes if there was one in every cell.
#[derive(Debug)]
pub(crate) struct EventWindows {
    last_at: Timestamp,
    /// 10-second cells that have an event and ended less than a minute ago, oldest first.
    recent: VecDeque<EventCell>,
    /// Six-minute cells of the events before that, oldest first.
    merged: VecDeque<EventCell>,
}

#[derive(Debug)]
struct EventCell {
    /// Milliseconds since the epoch.
    start: i64,
    counts: EventCounts,
    wait: DurationHistogram,
    work: DurationHistogram,
}

impl EventCounts {
    /// Adds a share of the other counts, rounded up: an event stays visible until its whole cell has left the window.
    fn add_share(&mut self, other: &EventCounts, part: u64, whole: u64) {
        for (count, more) in [
            (&mut self.created, other.created),
            (&mut self.started, other.started),
            (&mut self.succeeded, other.succeeded),
            (&mut self.failed, other.failed),
            (&mut self.dead, other.dead),
            (&mut self.suspended, other.suspended),
        ] {
            *count = count.saturating_add(more.saturating_mul(part).div_ceil(whole));
        }
    }
}

impl EventCell {
    fn new(start: i64) -> Self {
        let (wait, work) = (DurationHistogram::new(), DurationHistogram::new());
        EventCell { start, counts: EventCounts::default(), wait, work }
    }

    fn record(&mut self, event: WindowEvent) {
        let (count, work_ms) = match event {
            WindowEvent::Created => (&mut self.counts.created, None),
            WindowEvent::Started { wait_ms } => {
                wait_ms.into_iter().for_each(|ms| self.wait.record(ms));
                (&mut self.counts.started, None)
            }
            WindowEvent::Succeeded { work_ms } => (&mut self.counts.succeeded, work_ms),
            WindowEvent::Suspended { work_ms } => (&mut self.counts.suspended, work_ms),
            WindowEvent::Failed { work_ms, is_dead } => {
                self.counts.dead += u64::from(is_dead);
                (&mut self.counts.failed, work_ms)
            }
        };
        *count += 1;
        work_ms.into_iter().for_each(|ms| self.work.record(ms));
    }

    /// Adds all durations of the other cell, and the share of its counts.
    fn add_share(&mut self, other: &EventCell, part: u64, whole: u64) {
        self.counts.add_share(&other.counts, part, whole);
        self.wait.add(&other.wait);
        self.work.add(&other.work);
    }
}

impl EventWindows {
    pub(crate) fn new() -> Self {
        EventWindows { last_at: Timestamp(i64::MIN), recent: VecDeque::new(), merged: VecDeque::new() }
    }

    pub(crate) fn record(&mut self, event: WindowEvent, now: Timestamp) {
        self.last_at = self.last_at.max(now);
        if ends_before(now.0, 0, self.last_at, HOUR_MS) {
            return;
        }
        cell_at(&mut self.recent, now.0, CELL_MS).record(event);
        while let Some(cell) = pop_if_old(&mut self.recent, CELL_MS, self.last_at, MINUTE_MS) {
            cell_at(&mut self.merged, cell.start, MERGED_CELL_MS).add_share(&cell, 1, 1);
        }
        while pop_if_old(&mut self.merged, MERGED_CELL_MS, self.last_at, HOUR_MS).is_some() {}
    }

    /// The time of the latest event.
    pub(crate) fn last_at(&self) -> Timestamp {
        self.last_at
    }

    /// The figures of the minute that began at this time. It must have ended less than ten seconds ago: older cells are
    /// merged.
    pub(crate) fn minute(&self, begin: Timestamp) -> EventFigures {
        let mut sum = EventCell::new(begin.0);
        let is_inside =
            |cell: &&EventCell| cell.start >= begin.0 && cell.start < begin.0.saturating_add(MINUTE_MS);
        self.recent.iter().filter(is_inside).for_each(|cell| sum.add_share(cell, 1, 1));
        EventFigures::new(sum.counts, &sum.wait, &sum.work)
    }

    pub(crate) fn activity(&self, now: Timestamp) -> RecentActivity {
        RecentActivity {
            last_10s: self.window(now, CELL_MS),
            last_minute: self.window(now, MINUTE_MS),
            last_hour: self.window(now, HOUR_MS),
        }
    }

    /// The window of the last `ms` milliseconds. The counts of a cell that began before it are taken in proportion,
    /// its durations all.
    fn window(&self, now: Timestamp, ms: i64) -> WindowStats {
        let begin = now.0.saturating_sub(ms);
        let mut sum = EventCell::new(begin);
        let mut add = |cells: &VecDeque<EventCell>, length: i64| {
            for cell in cells.iter().filter(|cell| cell.start <= now.0) {
                let inside = cell.start.saturating_add(length).saturating_sub(begin).clamp(0, length);
                if inside > 0 {
                    sum.add_share(cell, inside.unsigned_abs(), length.unsigned_abs());
                }
            }
        };
        add(&self.recent, CELL_MS);
        // All merged events are older than a minute.
        if ms > MINUTE_MS {
            add(&self.merged, MERGED_CELL_MS);
        }
        let EventCell { counts, wait, work, .. } = sum;
        WindowStats { counts, wait_ms: wait.percentiles(), work_ms: work.percentiles() }
    }
}

/// The cell that holds this time; a new one if there is none.
fn cell_at(cells: &mut VecDeque<EventCell>, at: i64, length: i64) -> &mut EventCell {
    let start = at.div_euclid(length).saturating_mul(length);
    let before = cells.iter().rposition(|cell| cell.start <= start);
    let index = match before {
        Some(index) if cells[index].start == start => index,
        Some(_) | None => {
            let index = before.map_or(0, |index| index + 1);
            cells.insert(index, EventCell::new(start));
            index
        }
    };
    &mut cells[index]
}

fn pop_if_old(
    cells: &mut VecDeque<EventCell>,
    length: i64,
    now: Timestamp,
    age_ms: i64,
) -> Option<EventCell> {
    let is_old = cells.front().is_some_and(|cell| ends_before(cell.start, length, now, age_ms));
    if is_old { cells.pop_front() } else { None }
}

/// Whether a cell ended at least `age_ms` ago.
fn ends_before(start: i64, length: i64, now: Timestamp, age_ms: i64) -> bool {
    start.saturating_add(length) <= now.0.saturating_sub(age_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp(1_790_000_000_000 + ms)
    }

    fn created(windows: &EventWindows, ms: i64) -> [u64; 3] {
        let RecentActivity { last_10s, last_minute, last_hour } = windows.activity(at(ms));
        [last_10s, last_minute, last_hour].map(|window| window.counts.created)
    }

    #[test]
    fn events_leave_each_window_in_proportion_to_the_time() {
        let mut windows = EventWindows::new();
        for n in 0..100 {
            windows.record(WindowEvent::Created, at(n * 100));
        }
        assert_eq!(created(&windows, 9_999), [100, 100, 100]);
        assert_eq!(created(&windows, 10_500), [95, 100, 100]);
        assert_eq!(created(&windows, 15_000), [50, 100, 100]);
        assert_eq!(created(&windows, 20_000), [0, 100, 100]);
        assert_eq!(created(&windows, 65_000), [0, 50, 100]);
        assert_eq!(windows.activity(at(86_400_000)), RecentActivity::default());
    }

    #[test]
    fn a_single_event_is_shown_until_its_cell_has_left_the_window() {
        let mut windows = EventWindows::new();
        windows.record(WindowEvent::Succeeded { work_ms: Some(7) }, at(0));
        let last_10s = windows.activity(at(19_999)).last_10s;
        assert_eq!((last_10s.counts.succeeded, last_10s.work_ms.max), (1, Some(7)));
        assert_eq!(windows.activity(at(20_000)).last_10s, WindowStats::default());
    }

    #[test]
    fn a_steady_rate_stays_the_same() {
        let mut windows = EventWindows::new();
        for ms in (0..9_000_000).step_by(100) {
            windows.record(WindowEvent::Created, at(ms));
            if ms > 4_000_000 && ms % 770 == 0 {
                let found = created(&windows, ms);
                let is_near = |(found, expected): (&u64, u64)| found.abs_diff(expected) <= 2;
                assert!(found.iter().zip([100, 600, 36_000]).all(is_near), "{found:?} at {ms}");
            }
        }
        assert!(windows.recent.len() <= 7 && windows.merged.len() <= 11);
    }

    #[test]
    fn every_event_is_counted_in_its_field() {
        let mut windows = EventWindows::new();
        for event in [
            WindowEvent::Created,
            WindowEvent::Started { wait_ms: Some(3) },
            WindowEvent::Started { wait_ms: Some(5) },
            WindowEvent::Succeeded { work_ms: Some(7) },
            WindowEvent::Failed { work_ms: Some(100), is_dead: false },
            WindowEvent::Failed { work_ms: Some(2), is_dead: true },
            WindowEvent::Suspended { work_ms: None },
        ] {
            windows.record(event, at(1));
        }
        let found = windows.activity(at(2)).last_10s;
        let expected = EventCounts { created: 1, started: 2, succeeded: 1, failed: 2, dead: 1, suspended: 1 };
        assert_eq!(found.counts, expected);
        assert_eq!((found.wait_ms.p50, found.wait_ms.max), (Some(3), Some(5)));
        assert_eq!((found.work_ms.p50, found.work_ms.max), (Some(7), Some(100)));
    }

    #[test]
    fn a_late_event_is_counted_at_its_time_unless_it_is_too_old() {
        let mut windows = EventWindows::new();
        windows.record(WindowEvent::Created, at(100_000));
        windows.record(WindowEvent::Created, at(95_000));
        windows.record(WindowEvent::Created, at(0));
        assert_eq!(created(&windows, 105_000), [2, 2, 3]);
        windows.record(WindowEvent::Created, at(100_000 - HOUR_MS));
        assert_eq!(created(&windows, 105_000), [2, 2, 3]);
    }

    #[test]
    fn a_clock_at_its_ends_does_no_harm() {
        let mut windows = EventWindows::new();
        windows.record(WindowEvent::Created, Timestamp(i64::MIN + 100));
        windows.record(WindowEvent::Created, Timestamp(i64::MAX));
        assert_eq!(windows.activity(Timestamp(i64::MAX)).last_minute.counts.created, 1);
        assert_eq!(windows.activity(Timestamp(i64::MIN)).last_minute.counts.created, 0);
    }
}
