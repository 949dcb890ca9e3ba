//! Duration histograms: percentiles for the API from `hdrhistogram`, fixed buckets for `/metrics` from `prometheus`.

use std::collections::BTreeMap;

use hdrhistogram::Histogram as HdrHistogram;
use prometheus::core::Metric;
use prometheus::proto::Histogram as BucketCounts;
use prometheus::{Histogram as PrometheusHistogram, HistogramOpts};

/// One digit: durations below 32 ms are exact, a longer percentile is at most a sixteenth above the true one.
const SIGNIFICANT_DIGITS: u8 = 1;
/// Longer durations count as a year in percentiles, so that a histogram takes at most 2 KB.
const DURATION_MS_MAX: u64 = 366 * 86_400_000;

/// The upper bounds of the buckets that `/metrics` shows, in seconds: 1 ms to 1 h.
const BUCKETS: [f64; 18] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0,
    3_600.0,
];

/// Mean, percentiles and maximum of many durations; all empty when none was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Percentiles {
    pub mean: Option<u64>,
    pub p50: Option<u64>,
    pub p95: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

/// Durations that were recorded: how many, their sum, and their percentiles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DurationStats {
    pub count: u64,
    pub sum_ms: u64,
    pub percentiles: Percentiles,
}

/// Durations in milliseconds. Sum and maximum are exact, percentiles have [`SIGNIFICANT_DIGITS`].
#[derive(Debug)]
pub(crate) struct DurationHistogram {
    counts: HdrHistogram<u32>,
    sum_ms: u64,
    max_ms: u64,
}

impl DurationHistogram {
    pub(crate) fn new() -> Self {
        // It grows with the durations that it is given: most are short.
        let counts = HdrHistogram::new(SIGNIFICANT_DIGITS).expect("one digit is a valid precision");
        DurationHistogram { counts, sum_ms: 0, max_ms: 0 }
    }

    pub(crate) fn record(&mut self, ms: u64) {
        self.counts.record(ms.min(DURATION_MS_MAX)).expect("a histogram that grows takes every duration");
        self.sum_ms = self.sum_ms.saturating_add(ms);
        self.max_ms = self.max_ms.max(ms);
    }

    pub(crate) fn add(&mut self, other: &DurationHistogram) {
        self.counts.add(&other.counts).expect("a histogram that grows takes every duration");
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
        self.max_ms = self.max_ms.max(other.max_ms);
    }

    /// The recorded durations, each rounded to the cell of the histogram that holds it, and how often each occurred.
    pub(crate) fn cells(&self) -> BTreeMap<u64, u64> {
        let cells = self.counts.iter_recorded();
        cells
            .map(|cell| (cell.value_iterated_to().min(self.max_ms), u64::from(cell.count_at_value())))
            .collect()
    }

    pub(crate) fn stats(&self) -> DurationStats {
        let (count, sum_ms) = (self.counts.len(), self.sum_ms);
        DurationStats { count, sum_ms, percentiles: self.percentiles() }
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        let Some(mean) = self.sum_ms.checked_div(self.counts.len()) else { return Percentiles::default() };
        let at = |quantile| Some(self.counts.value_at_quantile(quantile).min(self.max_ms));
        Percentiles { mean: Some(mean), p50: at(0.5), p95: at(0.95), p99: at(0.99), max: Some(self.max_ms) }
    }
}

/// Durations in the fixed buckets that `/metrics` shows.
#[derive(Debug)]
pub(super) struct DurationBuckets(PrometheusHistogram);

impl DurationBuckets {
    pub(super) fn new() -> Self {
        // The server names the metric when it renders the page.
        let options = HistogramOpts::new("duration_seconds", "Durations.").buckets(BUCKETS.to_vec());
        DurationBuckets(PrometheusHistogram::with_opts(options).expect("the bounds grow"))
    }

    #[expect(clippy::cast_precision_loss, reason = "a sum of seconds needs no last digit")]
    pub(super) fn record(&self, ms: u64) {
        self.0.observe(ms as f64 / 1_000.0);
    }

    /// Adds these durations to `sum`.
    pub(super) fn add_to(&self, sum: &mut BucketCounts) {
        add_buckets(sum, self.0.metric().get_histogram());
    }
}

/// Adds the durations of `other` to `sum`: all histograms here have the same buckets.
pub(super) fn add_buckets(sum: &mut BucketCounts, other: &BucketCounts) {
    if sum.get_bucket().is_empty() {
        *sum = other.clone();
        return;
    }
    let pairs = sum.get_bucket().iter().zip(other.get_bucket());
    let added = pairs.map(|(bucket, more)| {
        let mut bucket = bucket.clone();
        bucket.set_cumulative_count(bucket.cumulative_count() + more.cumulative_count());
        bucket
    });
    sum.set_bucket(added.collect());
    sum.set_sample_count(sum.get_sample_count() + other.get_sample_count());
    sum.set_sample_sum(sum.get_sample_sum() + other.get_sample_sum());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(durations: impl IntoIterator<Item = u64>) -> DurationHistogram {
        let mut histogram = DurationHistogram::new();
        durations.into_iter().for_each(|ms| histogram.record(ms));
        histogram
    }

    #[test]
    fn a_percentile_is_at_most_a_sixteenth_above_the_true_one() {
        for ms in (0..100_000).step_by(7).chain((17..35).map(|n| (1 << n) - 1)) {
            // A longer one beside it, so that the maximum does not make it exact.
            let found = of([ms, DURATION_MS_MAX]).percentiles().p50.unwrap();
            assert!(found >= ms && (found - ms) * 16 <= ms, "{ms} became {found}");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_durations() {
        assert_eq!(of([]).stats(), DurationStats::default());
        let three = Some(3);
        let expected = Percentiles { mean: three, p50: three, p95: three, p99: three, max: three };
        assert_eq!(of([3]).percentiles(), expected);
        let found = of(1..=1_000).percentiles();
        let near = |found: Option<u64>, expected: u64| found.unwrap().abs_diff(expected) * 16 <= expected;
        assert!(near(found.p50, 500) && near(found.p95, 950) && near(found.p99, 990), "{found:?}");
        assert_eq!((found.max, found.mean), (Some(1_000), Some(500)));
        let one_slow = of((0..199).map(|_| 1).chain([60_000])).percentiles();
        assert_eq!((one_slow.p50, one_slow.p99, one_slow.max), (Some(1), Some(1), Some(60_000)));
        let endless = of([u64::MAX]).percentiles();
        assert_eq!(endless.max, Some(u64::MAX));
        assert!(endless.p50 <= endless.max);
    }

    #[test]
    fn a_percentile_is_never_more_than_the_maximum() {
        assert_eq!(of([99, 99, 99]).percentiles().p99, Some(99));
        assert_eq!(of([1_025]).percentiles().p50, Some(1_025));
    }

    #[test]
    fn a_sum_has_the_durations_of_both() {
        let mut sum = of([10, 10]);
        sum.add(&of([40, 70_000]));
        let DurationStats { count, sum_ms, percentiles } = sum.stats();
        assert_eq!((count, sum_ms, percentiles.p50, percentiles.max), (4, 70_060, Some(10), Some(70_000)));
    }

    #[test]
    fn buckets_count_every_duration_up_to_their_bound() {
        let (one, other) = (DurationBuckets::new(), DurationBuckets::new());
        [1, 2, 1_000].into_iter().for_each(|ms| one.record(ms));
        [1_001, 4_000_000].into_iter().for_each(|ms| other.record(ms));
        let mut sum = BucketCounts::default();
        one.add_to(&mut sum);
        other.add_to(&mut sum);
        let up_to = |bound: f64| {
            let bucket = sum.get_bucket().iter().find(|bucket| (bucket.upper_bound() - bound).abs() < 1e-9);
            bucket.unwrap().cumulative_count()
        };
        assert_eq!([0.001, 0.0025, 1.0, 2.5, 3_600.0].map(up_to), [1, 2, 3, 4, 4]);
        assert_eq!((sum.get_sample_count(), sum.get_sample_sum().round() as u64), (5, 4_002));
    }
}
