//! How many things went on at once: on average, at most, and for how long so many.

use crate::time::Timestamp;

/// Levels that have a place of their own; after that, each place is for twice as many as the one before.
const EXACT: u64 = 8;
/// Places of the distribution: up to a hundred thousand and more.
pub const LEVELS: usize = 8 + 1 + 14;

/// How many went on at once in a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parallelism {
    /// How long the span is.
    pub wall_ms: u64,
    /// The times of all that went on, added up: divided by the span, the average.
    pub busy_ms: u64,
    /// The most at once.
    pub max: u64,
    /// How long so many went on, see [`level`] and [`levels_of`].
    pub ms_at: [u64; LEVELS],
}

impl Parallelism {
    /// Parallelism between two moments, from the begin and the end of each span. Parts of spans outside of the
    /// window do not count.
    pub fn of(spans: &[(Timestamp, Timestamp)], from: Timestamp, to: Timestamp) -> Self {
        let mut changes: Vec<(Timestamp, i64)> = Vec::with_capacity(spans.len().saturating_mul(2));
        let inside = |at: Timestamp| at.max(from).min(to.max(from));
        for (begun, ended) in spans {
            let (begun, ended) = (inside(*begun), inside(*ended));
            if begun < ended {
                changes.extend([(begun, 1), (ended, -1)]);
            }
        }
        changes.sort_unstable();
        let mut found = Parallelism::default();
        let (mut level, mut since) = (0i64, from);
        for (at, change) in changes {
            found.add(level.unsigned_abs(), at.since(since));
            (level, since) = (level + change, at);
        }
        found.add(level.unsigned_abs(), to.since(since));
        // Spans of less than a millisecond count as done, one after another.
        found.max = found.max.max(u64::from(!spans.is_empty()));
        found
    }

    /// So many went on for so long.
    pub fn add(&mut self, n: u64, ms: u64) {
        if ms == 0 {
            return;
        }
        self.wall_ms = self.wall_ms.saturating_add(ms);
        self.busy_ms = self.busy_ms.saturating_add(n.saturating_mul(ms));
        self.max = self.max.max(n);
        let at = &mut self.ms_at[level(n)];
        *at = at.saturating_add(ms);
    }

    /// Adds a part of another one: `share` is the part of its time.
    pub fn add_part(&mut self, other: &Parallelism, share: impl Fn(u64) -> u64) {
        self.wall_ms = self.wall_ms.saturating_add(share(other.wall_ms));
        self.busy_ms = self.busy_ms.saturating_add(share(other.busy_ms));
        self.max = self.max.max(other.max);
        for (at, more) in self.ms_at.iter_mut().zip(other.ms_at) {
            *at = at.saturating_add(share(more));
        }
    }

    /// How many went on at once on average.
    pub fn average(&self) -> f64 {
        if self.wall_ms == 0 {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "the last digits of an average do not matter")]
        let average = self.busy_ms as f64 / self.wall_ms as f64;
        average
    }
}

/// The place of so many in the distribution.
pub fn level(n: u64) -> usize {
    if n <= EXACT {
        return usize::try_from(n).unwrap_or(0);
    }
    // From 9 to 16, from 17 to 32, and so on.
    let doubling = (n - 1).ilog2() - EXACT.ilog2();
    (usize::try_from(EXACT).unwrap_or(0) + 1 + usize::try_from(doubling).unwrap_or(0)).min(LEVELS - 1)
}

/// How many a place of the distribution stands for: from, and to unless it is the last.
pub fn levels_of(place: usize) -> (u64, Option<u64>) {
    let place = u64::try_from(place).unwrap_or(u64::MAX);
    let Some(doubling) = place.checked_sub(EXACT + 1) else { return (place, Some(place)) };
    let doubling = doubling.min(40);
    let is_last = place + 1 >= LEVELS as u64;
    ((EXACT << doubling) + 1, (!is_last).then_some(EXACT << (doubling + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spans: &[(i64, i64)], from: i64, to: i64) -> Parallelism {
        let spans: Vec<_> = spans.iter().map(|(from, to)| (Timestamp(*from), Timestamp(*to))).collect();
        Parallelism::of(&spans, Timestamp(from), Timestamp(to))
    }

    fn times(found: &Parallelism) -> Vec<(u64, u64)> {
        let places = found.ms_at.iter().enumerate().filter(|(_, ms)| **ms > 0);
        places.map(|(place, ms)| (levels_of(place).0, *ms)).collect()
    }

    #[test]
    fn three_branches_side_by_side_are_three_at_once() {
        let found = of(&[(10, 40), (10, 40), (10, 40), (40, 50)], 0, 50);
        assert_eq!((found.wall_ms, found.busy_ms, found.max), (50, 100, 3));
        assert_eq!(times(&found), [(0, 10), (1, 10), (3, 30)]);
        assert!((found.average() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn one_after_another_is_one_at_once() {
        let found = of(&[(0, 10), (10, 20), (20, 20), (20, 30)], 0, 30);
        assert_eq!((found.max, found.busy_ms), (1, 30));
        assert_eq!(times(&found), [(1, 30)]);
    }

    #[test]
    fn nothing_and_what_takes_no_time_are_no_trouble() {
        assert_eq!(of(&[], 5, 5), Parallelism::default());
        assert_eq!(of(&[(7, 7), (7, 7)], 7, 7).max, 1);
        assert!(of(&[(7, 7)], 7, 7).average().abs() < 1e-9);
        // A clock that went back, and spans outside the window.
        let found = of(&[(10, 5), (-10, 3), (8, 90)], 0, 10);
        assert_eq!((found.wall_ms, found.busy_ms, found.max), (10, 5, 1));
        assert_eq!(of(&[(0, 10)], 10, 0).busy_ms, 0);
        let endless = of(&[(i64::MIN, i64::MAX), (i64::MIN, i64::MAX)], i64::MIN, i64::MAX);
        assert_eq!((endless.max, endless.busy_ms), (2, u64::MAX - 1));
    }

    #[test]
    fn every_level_has_one_place() {
        for n in 0..100_000 {
            let (from, to) = levels_of(level(n));
            assert!(from <= n && to.is_none_or(|to| n <= to), "{n}: {from} to {to:?}");
        }
        assert_eq!(level(u64::MAX), LEVELS - 1);
        assert_eq!(levels_of(LEVELS - 1).1, None);
        assert_eq!(
            (levels_of(8), levels_of(9), levels_of(10)),
            ((8, Some(8)), (9, Some(16)), (17, Some(32)))
        );
    }
}
