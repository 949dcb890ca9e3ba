//! How many calls were open at once lately, in cells of time that are used again and again.

use windlass_engine::parallelism::Parallelism;
use windlass_engine::time::Timestamp;

/// Cells of a whole stretch. With one more, the oldest counts by how much of it still belongs to the stretch.
const CELLS: i64 = 10;

/// How many there are, and were.
#[derive(Debug)]
pub(super) struct Load {
    n: u64,
    since: Timestamp,
    pub(super) last_10s: Ring,
    pub(super) last_minute: Ring,
    pub(super) last_hour: Ring,
}

/// A stretch of time up to now.
#[derive(Debug)]
pub(super) struct Ring {
    cell_ms: i64,
    cells: Box<[(i64, Parallelism)]>,
}

impl Load {
    pub(super) fn new(now: Timestamp) -> Self {
        let ring = Ring::of;
        Load {
            n: 0,
            since: now,
            last_10s: ring(10_000),
            last_minute: ring(60_000),
            last_hour: ring(3_600_000),
        }
    }

    pub(super) fn n(&self) -> u64 {
        self.n
    }

    /// From now on there are so many.
    pub(super) fn set(&mut self, n: u64, now: Timestamp) {
        self.pass(now);
        self.n = n;
    }

    /// Time passes, whether or not something changes.
    pub(super) fn pass(&mut self, now: Timestamp) {
        for ring in [&mut self.last_10s, &mut self.last_minute, &mut self.last_hour] {
            ring.add(self.n, self.since, now);
        }
        self.since = self.since.max(now);
    }
}

impl Ring {
    fn of(ms: i64) -> Self {
        let cells = (0..=CELLS).map(|_| (i64::MIN, Parallelism::default())).collect();
        Ring { cell_ms: (ms / CELLS).max(1), cells }
    }

    /// So many from one moment to another.
    fn add(&mut self, n: u64, from: Timestamp, to: Timestamp) {
        let last = to.0.div_euclid(self.cell_ms);
        // What is older than all the ring tells of is no news.
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

    pub(super) fn stretch(&self, now: Timestamp) -> Parallelism {
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
    fn an_average_is_that_of_the_stretch() {
        let mut load = Load::new(at(0));
        load.set(4, at(0));
        load.set(2, at(5_000));
        load.set(0, at(10_000));
        let found = load.last_10s.stretch(at(10_000));
        assert!((found.average() - 3.0).abs() < 0.01, "{found:?}");
        assert_eq!((found.max, found.wall_ms), (4, 10_000));
        // Time passes, and what was is over.
        load.pass(at(30_000));
        let found = load.last_10s.stretch(at(30_000));
        assert_eq!((found.busy_ms, found.max, found.wall_ms), (0, 0, 10_000));
        assert_eq!(load.last_minute.stretch(at(30_000)).busy_ms, 30_000);
    }

    #[test]
    fn what_lasts_long_counts_only_for_the_time_that_it_lasted_in_the_stretch() {
        let mut load = Load::new(at(0));
        load.set(1, at(0));
        load.set(0, at(86_400_000));
        let found = load.last_minute.stretch(at(86_400_000));
        assert_eq!((found.max, found.busy_ms, found.wall_ms), (1, 60_000, 60_000));
    }

    #[test]
    fn a_clock_that_goes_back_does_no_harm() {
        let mut load = Load::new(at(0));
        load.set(5, at(1_000));
        load.set(1, at(500));
        load.set(0, at(2_000));
        assert_eq!(load.n(), 0);
        assert_eq!(load.last_10s.stretch(at(2_000)).wall_ms, 2_000);
        let mut early = Load::new(Timestamp(i64::MIN + 1_000));
        early.set(1, Timestamp(i64::MAX));
        assert!(early.last_hour.stretch(Timestamp(i64::MAX)).wall_ms <= 3_600_000 + 360_000);
    }
}
