//! The number of calls in progress over the last 10 seconds, minute and hour: average, maximum and distribution.

use windlass_engine::parallelism::Parallelism;
use windlass_engine::time::Timestamp;

/// Cells of a window. One more is kept: the oldest counts in proportion to its part inside the window.
const CELLS: i64 = 10;

/// The calls in progress now, and the windows before now.
#[derive(Debug)]
pub(super) struct ConcurrencyWindows {
    n: u64,
    since: Timestamp,
    pub(super) last_10s: ConcurrencyWindow,
    pub(super) last_minute: ConcurrencyWindow,
    pub(super) last_hour: ConcurrencyWindow,
    /// Since the server started.
    pub(super) total: Parallelism,
}

#[derive(Debug)]
pub(super) struct ConcurrencyWindow {
    cell_ms: i64,
    /// Each with the number of its cell since the epoch, at that number modulo the length.
    cells: Box<[(i64, Parallelism)]>,
}

impl ConcurrencyWindows {
    pub(super) fn new(now: Timestamp) -> Self {
        ConcurrencyWindows {
            n: 0,
            since: now,
            last_10s: ConcurrencyWindow::new(10_000),
            last_minute: ConcurrencyWindow::new(60_000),
            last_hour: ConcurrencyWindow::new(3_600_000),
            total: Parallelism::default(),
        }
    }

    pub(super) fn n(&self) -> u64 {
        self.n
    }

    /// Sets the number of calls in progress from now on.
    pub(super) fn set(&mut self, n: u64, now: Timestamp) {
        self.advance(now);
        self.n = n;
    }

    /// Records the time up to now at the current number.
    pub(super) fn advance(&mut self, now: Timestamp) {
        for window in [&mut self.last_10s, &mut self.last_minute, &mut self.last_hour] {
            window.add(self.n, self.since, now);
        }
        self.total.add(self.n, now.since(self.since));
        self.since = self.since.max(now);
    }
}

impl ConcurrencyWindow {
    fn new(ms: i64) -> Self {
        let cells = (0..=CELLS).map(|_| (i64::MIN, Parallelism::default())).collect();
        ConcurrencyWindow { cell_ms: (ms / CELLS).max(1), cells }
    }

    /// Records `n` calls in progress between two times.
    fn add(&mut self, n: u64, from: Timestamp, to: Timestamp) {
        let last = to.0.div_euclid(self.cell_ms);
        // Time before the window is not kept.
        let first = from.0.div_euclid(self.cell_ms).max(last.saturating_sub(CELLS));
        for nth in first..=last {
            let start = nth.saturating_mul(self.cell_ms);
            let (begun, ended) = (from.0.max(start), to.0.min(start.saturating_add(self.cell_ms)));
            let at = usize::try_from(nth.rem_euclid(CELLS + 1)).unwrap_or(0);
            let (of, cell) = &mut self.cells[at];
            if *of < nth {
                (*of, *cell) = (nth, Parallelism::default());
            }
            if *of == nth {
                cell.add(n, Timestamp(ended).since(Timestamp(begun)));
            }
        }
    }

    pub(super) fn total(&self, now: Timestamp) -> Parallelism {
        let last = now.0.div_euclid(self.cell_ms);
        let first = last.saturating_sub(CELLS);
        let left = u64::try_from(self.cell_ms - now.0.rem_euclid(self.cell_ms)).unwrap_or(0);
        let whole = self.cell_ms.unsigned_abs();
        let part =
            |ms: u64| u64::try_from(u128::from(ms) * u128::from(left) / u128::from(whole)).unwrap_or(ms);
        let mut sum = Parallelism::default();
        for (nth, cell) in self.cells.iter().filter(|(nth, _)| (first..=last).contains(nth)) {
            if *nth == first {
                sum.add_part(cell, part);
            } else {
                sum.add_part(cell, |ms| ms);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp(1_790_000_000_000 + ms)
    }

    #[test]
    fn the_average_is_that_of_the_window() {
        let mut load = ConcurrencyWindows::new(at(0));
        load.set(4, at(0));
        load.set(2, at(5_000));
        load.set(0, at(10_000));
        let found = load.last_10s.total(at(10_000));
        assert!((found.average() - 3.0).abs() < 0.01, "{found:?}");
        assert_eq!((found.max, found.wall_ms), (4, 10_000));
        load.advance(at(30_000));
        let found = load.last_10s.total(at(30_000));
        assert_eq!((found.busy_ms, found.max, found.wall_ms), (0, 0, 10_000));
        assert_eq!(load.last_minute.total(at(30_000)).busy_ms, 30_000);
        assert_eq!((load.total.busy_ms, load.total.wall_ms, load.total.ms_at[4]), (30_000, 30_000, 5_000));
    }

    #[test]
    fn a_long_call_counts_only_for_its_time_inside_the_window() {
        let mut load = ConcurrencyWindows::new(at(0));
        load.set(1, at(0));
        load.set(0, at(86_400_000));
        let found = load.last_minute.total(at(86_400_000));
        assert_eq!((found.max, found.busy_ms, found.wall_ms), (1, 60_000, 60_000));
    }

    #[test]
    fn a_clock_that_goes_back_does_no_harm() {
        let mut load = ConcurrencyWindows::new(at(0));
        load.set(5, at(1_000));
        load.set(1, at(500));
        load.set(0, at(2_000));
        assert_eq!(load.n(), 0);
        assert_eq!(load.last_10s.total(at(2_000)).wall_ms, 2_000);
        let mut early = ConcurrencyWindows::new(Timestamp(i64::MIN + 1_000));
        early.set(1, Timestamp(i64::MAX));
        assert!(early.last_hour.total(Timestamp(i64::MAX)).wall_ms <= 3_600_000 + 360_000);
    }
}
