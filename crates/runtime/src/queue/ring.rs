//! What happened lately, in cells of time that are used again and again.
//!
//! Nothing has to run for time to pass: a cell says which stretch of time it is of, and whoever comes with a later
//! one empties it.

use windlass_engine::time::Timestamp;

use super::Stretch;
use super::spread::Times;

/// Cells of a whole stretch. With one more, the oldest counts by how much of it still belongs to the stretch.
const CELLS: usize = 10;

/// What a job did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    Created,
    /// Somebody has it, after so long if it had to wait.
    Started {
        wait_ms: Option<u64>,
    },
    /// An attempt that took so long, if that is known, went well.
    Succeeded {
        work_ms: Option<u64>,
    },
    /// It did not; the job may have become a dead letter.
    Failed {
        work_ms: Option<u64>,
        is_dead: bool,
    },
    /// It answered that it is not finished.
    Suspended {
        work_ms: Option<u64>,
    },
}

/// A stretch of time up to now.
#[derive(Debug)]
pub(super) struct Ring {
    cell_ms: i64,
    cells: Box<[Cell]>,
}

#[derive(Debug, Clone)]
struct Cell {
    /// Which stretch of time it is of: so many cells since the epoch.
    nth: i64,
    n_created: u32,
    n_started: u32,
    n_succeeded: u32,
    n_failed: u32,
    n_dead: u32,
    n_suspended: u32,
    wait: Times,
    work: Times,
}

impl Cell {
    const fn empty(nth: i64) -> Cell {
        let (wait, work) = (Times::NONE, Times::NONE);
        Cell {
            nth,
            n_created: 0,
            n_started: 0,
            n_succeeded: 0,
            n_failed: 0,
            n_dead: 0,
            n_suspended: 0,
            wait,
            work,
        }
    }

    fn note(&mut self, news: News) {
        fn one_more(count: &mut u32) {
            *count = count.saturating_add(1);
        }
        match news {
            News::Created => one_more(&mut self.n_created),
            News::Started { wait_ms } => {
                one_more(&mut self.n_started);
                wait_ms.into_iter().for_each(|ms| self.wait.note(ms));
            }
            News::Succeeded { work_ms } => {
                one_more(&mut self.n_succeeded);
                work_ms.into_iter().for_each(|ms| self.work.note(ms));
            }
            News::Suspended { work_ms } => {
                one_more(&mut self.n_suspended);
                work_ms.into_iter().for_each(|ms| self.work.note(ms));
            }
            News::Failed { work_ms, is_dead } => {
                one_more(&mut self.n_failed);
                self.n_dead = self.n_dead.saturating_add(u32::from(is_dead));
                work_ms.into_iter().for_each(|ms| self.work.note(ms));
            }
        }
    }

    fn add(&mut self, other: &Cell, share: impl Fn(u32) -> u32 + Copy) {
        for (count, more) in [
            (&mut self.n_created, other.n_created),
            (&mut self.n_started, other.n_started),
            (&mut self.n_succeeded, other.n_succeeded),
            (&mut self.n_failed, other.n_failed),
            (&mut self.n_dead, other.n_dead),
            (&mut self.n_suspended, other.n_suspended),
        ] {
            *count = count.saturating_add(share(more));
        }
        self.wait.add(&other.wait, share);
        self.work.add(&other.work, share);
    }
}

impl Ring {
    /// A ring that can tell of the last `ms` milliseconds.
    pub(super) fn of(ms: i64) -> Self {
        let cells = vec![Cell::empty(i64::MIN); CELLS + 1].into_boxed_slice();
        Ring { cell_ms: (ms / CELLS as i64).max(1), cells }
    }

    pub(super) fn note(&mut self, news: News, now: Timestamp) {
        let nth = now.0.div_euclid(self.cell_ms);
        let at = usize::try_from(nth.rem_euclid(CELLS as i64 + 1)).unwrap_or(0);
        let cell = &mut self.cells[at];
        if cell.nth < nth {
            *cell = Cell::empty(nth);
        }
        // What is older than all the ring tells of is no news.
        if cell.nth == nth {
            cell.note(news);
        }
    }

    pub(super) fn stretch(&self, now: Timestamp) -> Stretch {
        let last = now.0.div_euclid(self.cell_ms);
        let first = last.saturating_sub(CELLS as i64);
        // How much of the oldest cell is not older than the stretch.
        let left = u64::try_from(self.cell_ms - now.0.rem_euclid(self.cell_ms)).unwrap_or(0);
        let whole = self.cell_ms.unsigned_abs();
        let part = |n: u32| u32::try_from((u64::from(n) * left + whole / 2) / whole).unwrap_or(u32::MAX);
        let mut sum = Cell::empty(last);
        for cell in self.cells.iter().filter(|cell| (first..=last).contains(&cell.nth)) {
            if cell.nth == first {
                sum.add(cell, part);
            } else {
                sum.add(cell, |n| n);
            }
        }
        Stretch {
            n_created: sum.n_created.into(),
            n_started: sum.n_started.into(),
            n_succeeded: sum.n_succeeded.into(),
            n_failed: sum.n_failed.into(),
            n_dead: sum.n_dead.into(),
            n_suspended: sum.n_suspended.into(),
            wait_ms: sum.wait.spread(),
            work_ms: sum.work.spread(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp(1_790_000_000_000 + ms)
    }

    #[test]
    fn what_happened_is_told_until_it_is_too_long_ago() {
        let mut ring = Ring::of(10_000);
        for n in 0..100 {
            ring.note(News::Created, at(n * 100));
        }
        assert_eq!(ring.stretch(at(9_999)).n_created, 100);
        // Half a cell is older than ten seconds.
        assert_eq!(ring.stretch(at(10_500)).n_created, 95);
        assert_eq!(ring.stretch(at(15_000)).n_created, 50);
        assert_eq!(ring.stretch(at(20_000)).n_created, 0);
        assert_eq!(ring.stretch(at(86_400_000)), Stretch::default());
    }

    #[test]
    fn a_steady_rate_stays_what_it_is() {
        let mut ring = Ring::of(60_000);
        for ms in (0..600_000).step_by(10) {
            ring.note(News::Created, at(ms));
            if ms > 70_000 && ms % 770 == 0 {
                let n = ring.stretch(at(ms)).n_created;
                assert!(n.abs_diff(6_000) <= 2, "{n} at {ms}");
            }
        }
    }

    #[test]
    fn everything_is_counted_where_it_belongs() {
        let mut ring = Ring::of(10_000);
        for news in [
            News::Created,
            News::Started { wait_ms: Some(3) },
            News::Started { wait_ms: Some(5) },
            News::Succeeded { work_ms: Some(7) },
            News::Failed { work_ms: Some(100), is_dead: false },
            News::Failed { work_ms: Some(2), is_dead: true },
        ] {
            ring.note(news, at(1));
        }
        let stretch = ring.stretch(at(2));
        let counts =
            [stretch.n_created, stretch.n_started, stretch.n_succeeded, stretch.n_failed, stretch.n_dead];
        assert_eq!(counts, [1, 2, 1, 2, 1]);
        assert_eq!((stretch.wait_ms.p50, stretch.wait_ms.max), (Some(3), Some(5)));
        assert_eq!((stretch.work_ms.p50, stretch.work_ms.max), (Some(7), Some(100)));
    }

    #[test]
    fn a_cell_is_used_again_after_its_time_and_late_news_of_it_is_none() {
        let mut ring = Ring::of(10_000);
        ring.note(News::Created, at(0));
        ring.note(News::Created, at(11_000));
        assert_eq!(ring.stretch(at(11_000)).n_created, 1);
        ring.note(News::Created, at(0));
        assert_eq!(ring.stretch(at(11_000)).n_created, 1);
        // Older, but within what is told of.
        ring.note(News::Created, at(5_000));
        assert_eq!(ring.stretch(at(11_000)).n_created, 2);
        let mut early = Ring::of(1);
        early.note(News::Created, Timestamp(i64::MIN + 100));
        early.note(News::Created, Timestamp(i64::MAX));
        assert_eq!(early.stretch(Timestamp(i64::MAX)).n_created, 1);
    }
}
