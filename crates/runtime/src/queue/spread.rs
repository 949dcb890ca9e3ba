//! How long things took: counts in buckets whose width grows with the time, so that many fit into little and a
//! percentile is right within an eighth.

use super::Spread;

/// Milliseconds that have a bucket of their own.
const EXACT: u64 = 8;
/// Buckets for every doubling after that.
const PER_DOUBLING: usize = 4;
/// Doublings, from 8 ms to 4.7 hours; what took longer is in the last bucket.
const DOUBLINGS: usize = 21;
const BUCKETS: usize = EXACT as usize + PER_DOUBLING * DOUBLINGS;

/// Counts of times.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    counts: [u32; BUCKETS],
    max: u64,
    sum: u64,
}

impl Times {
    pub(crate) const NONE: Times = Times { counts: [0; BUCKETS], max: 0, sum: 0 };

    pub(crate) fn note(&mut self, ms: u64) {
        let count = &mut self.counts[bucket(ms)];
        *count = count.saturating_add(1);
        self.max = self.max.max(ms);
        self.sum = self.sum.saturating_add(ms);
    }

    /// Adds a share of what another one has.
    pub(crate) fn add(&mut self, other: &Times, share: impl Fn(u32) -> u32) {
        let (mut n_all, mut n_taken) = (0u64, 0u64);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            n_all += u64::from(*more);
            let more = share(*more);
            n_taken += u64::from(more);
            *count = count.saturating_add(more);
        }
        if n_taken > 0 {
            self.max = self.max.max(other.max);
            let part = u128::from(other.sum) * u128::from(n_taken) / u128::from(n_all.max(1));
            self.sum = self.sum.saturating_add(u64::try_from(part).unwrap_or(u64::MAX));
        }
    }

    /// How many there are, and all of them added up.
    pub(crate) fn total(&self) -> (u64, u64) {
        (self.counts.iter().map(|count| u64::from(*count)).sum(), self.sum)
    }

    pub(crate) fn spread(&self) -> Spread {
        let (n, sum) = self.total();
        if n == 0 {
            return Spread::default();
        }
        let at = |percent: u64| {
            // The smallest time that so many of a hundred did not exceed.
            let rank = (n * percent).div_ceil(100).max(1);
            let mut seen = 0;
            let found = self.counts.iter().position(|count| {
                seen += u64::from(*count);
                seen >= rank
            });
            found.map(|bucket| middle(bucket).min(self.max))
        };
        Spread { mean: Some(sum / n), p50: at(50), p95: at(95), p99: at(99), max: Some(self.max) }
    }
}

fn bucket(ms: u64) -> usize {
    if ms < EXACT {
        return usize::try_from(ms).unwrap_or(0);
    }
    let doubling = ms.ilog2() as usize - EXACT.ilog2() as usize;
    let quarter = usize::try_from(ms >> (ms.ilog2() - 2) & 3).unwrap_or(0);
    (EXACT as usize + doubling * PER_DOUBLING + quarter).min(BUCKETS - 1)
}

/// What stands for the times of a bucket.
fn middle(bucket: usize) -> u64 {
    let Some(over) = bucket.checked_sub(EXACT as usize) else { return bucket as u64 };
    let width = EXACT << (over / PER_DOUBLING) >> 2;
    width * (PER_DOUBLING + over % PER_DOUBLING) as u64 + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: impl IntoIterator<Item = u64>) -> Spread {
        let mut all = Times::NONE;
        times.into_iter().for_each(|ms| all.note(ms));
        all.spread()
    }

    #[test]
    fn a_bucket_stands_for_its_times_within_an_eighth() {
        for ms in (0..100_000).chain((17..24).map(|n| (1 << n) - 1)) {
            let middle = middle(bucket(ms));
            assert!(middle.abs_diff(ms) * 8 <= ms, "{ms} became {middle}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket(1 << 23), BUCKETS - 4);
        let all: Vec<usize> = (0..1 << 16).map(bucket).collect();
        assert!(all.is_sorted() && all.windows(2).all(|two| two[1] - two[0] <= 1));
    }

    #[test]
    fn percentiles_are_those_of_the_times() {
        assert_eq!(of([]), Spread::default());
        let three = Some(3);
        assert_eq!(of([3]), Spread { mean: three, p50: three, p95: three, p99: three, max: three });
        let spread = of(1..=1_000);
        let near = |found: Option<u64>, expected: u64| found.unwrap().abs_diff(expected) * 8 <= expected;
        assert!(near(spread.p50, 500) && near(spread.p95, 950) && near(spread.p99, 990), "{spread:?}");
        assert_eq!((spread.max, spread.mean), (Some(1_000), Some(500)));
        let one_slow = of((0..199).map(|_| 1).chain([60_000]));
        assert_eq!((one_slow.p50, one_slow.p99, one_slow.max), (Some(1), Some(1), Some(60_000)));
        let endless = of([u64::MAX]);
        assert_eq!(endless.max, Some(u64::MAX));
        assert!(endless.p50 <= endless.max);
    }

    #[test]
    fn a_part_of_some_has_the_mean_of_all() {
        let (mut all, mut part) = (Times::NONE, Times::NONE);
        [10, 10, 40, 40].into_iter().for_each(|ms| all.note(ms));
        part.add(&all, |n| n / 2);
        assert_eq!(part.total(), (2, 50));
        assert_eq!(part.spread().mean, Some(25));
    }

    #[test]
    fn a_percentile_is_never_more_than_the_longest() {
        assert_eq!(of([9, 9, 9]).p99, Some(9));
        assert_eq!(of([1_025]).p50, Some(1_025));
    }
}
