//! How things went, as clients read it.

use windlass_engine::parallelism::{Parallelism as Found, levels_of};
use windlass_runtime::queue::{QueueStats, RedisStats as RedisFound, Spread as Seen, Stretch};
use windlass_runtime::stats::{FlowStats, NodeStats, Totals};
use windlass_sdk::types::{
    Level, NodeDurations, NodePace, NodeStretch, Parallelism, RedisStats, RunPace, RunStretch, Spread,
};

/// How long the stretches are, in seconds.
const STRETCHES: [u64; 3] = [10, 60, 3_600];

/// Three digits are read by people. Counts of an hour are far below what a float holds exactly.
pub(crate) fn rounded(n: f64) -> f64 {
    (n * 1_000.0).round() / 1_000.0
}

/// `n` by `of`.
#[expect(clippy::cast_precision_loss, reason = "nobody reads the last digits of a quotient")]
pub(crate) fn quotient(n: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { rounded(n as f64 / of as f64) }
}

pub(crate) fn spread(seen: &Seen) -> Spread {
    Spread { mean: seen.mean, p50: seen.p50, p95: seen.p95, p99: seen.p99, max: seen.max }
}

/// The spread of these times, exactly.
pub(crate) fn spread_of(mut times: Vec<u64>) -> Spread {
    times.sort_unstable();
    let n = times.len() as u64;
    let sum = times.iter().fold(0u64, |sum, ms| sum.saturating_add(*ms));
    let at = |percent: u64| {
        let rank = (n * percent).div_ceil(100).max(1);
        times.get(usize::try_from(rank - 1).unwrap_or(usize::MAX)).copied()
    };
    Spread { mean: sum.checked_div(n), p50: at(50), p95: at(95), p99: at(99), max: times.last().copied() }
}

pub(crate) fn redis(found: RedisFound) -> RedisStats {
    let RedisFound { is_up, n_fills, n_outages } = found;
    RedisStats { up: is_up, outages: n_outages, fills: n_fills }
}

pub(crate) fn parallelism(found: &Found) -> Parallelism {
    let places = found.ms_at.iter().enumerate().filter(|(_, ms)| **ms > 0);
    let level = |(place, ms): (usize, &u64)| {
        let (from, to) = levels_of(place);
        Level { from, to, ms: *ms, share: quotient(*ms, found.wall_ms) }
    };
    Parallelism {
        average: rounded(found.average()),
        max: found.max,
        busy_ms: found.busy_ms,
        wall_ms: found.wall_ms,
        distribution: places.map(level).collect(),
    }
}

pub(crate) fn node_pace(stats: &FlowStats, up_ms: u64) -> NodePace {
    let Totals { nodes_settled, calls_begun, calls_ok, calls_failed, calls_suspended, .. } = stats.totals;
    let [last_10s, last_minute, last_hour] = each(&stats.calls, |seen, seconds| NodeStretch {
        ended: seen.n_created,
        per_second: quotient(seen.n_created, seconds),
        started: seen.n_started,
        succeeded: seen.n_succeeded,
        failed: seen.n_failed,
        suspended: seen.n_suspended,
        duration_ms: spread(&seen.work_ms),
        waiting_ms: spread(&seen.wait_ms),
    });
    let total = NodeStretch {
        ended: nodes_settled,
        per_second: quotient(nodes_settled.saturating_mul(1_000), up_ms),
        started: calls_begun,
        succeeded: calls_ok,
        failed: calls_failed,
        suspended: calls_suspended,
        duration_ms: spread(&stats.call_ms.2),
        waiting_ms: spread(&stats.wait_ms.2),
    };
    NodePace { last_10s, last_minute, last_hour, total }
}

pub(crate) fn run_pace(stats: &FlowStats, up_ms: u64) -> RunPace {
    let Totals { runs_begun, runs_completed, runs_failed, runs_canceled, .. } = stats.totals;
    let [last_10s, last_minute, last_hour] = each(&stats.runs, |seen, seconds| RunStretch {
        started: seen.n_created,
        completed: seen.n_succeeded,
        failed: seen.n_failed.saturating_sub(seen.n_dead),
        canceled: seen.n_dead,
        per_second: quotient(seen.n_succeeded + seen.n_failed, seconds),
        duration_ms: spread(&seen.work_ms),
    });
    let n_ended = runs_completed + runs_failed + runs_canceled;
    let total = RunStretch {
        started: runs_begun,
        completed: runs_completed,
        failed: runs_failed,
        canceled: runs_canceled,
        per_second: quotient(n_ended.saturating_mul(1_000), up_ms),
        duration_ms: spread(&stats.run_ms.2),
    };
    RunPace { last_10s, last_minute, last_hour, total }
}

fn each<T>(stats: &QueueStats, shape: impl Fn(&Stretch, u64) -> T) -> [T; 3] {
    let [first, second, third] = STRETCHES;
    [shape(&stats.last_10s, first), shape(&stats.last_minute, second), shape(&stats.last_hour, third)]
}

pub(crate) fn node_durations(stats: &NodeStats) -> NodeDurations {
    NodeDurations {
        node: stats.node.clone(),
        succeeded: stats.n_ok,
        failed: stats.n_failed,
        suspended: stats.n_suspended,
        total_ms: stats.ms.1,
        duration_ms: spread(&stats.ms.2),
        waiting_ms: spread(&stats.wait_ms),
        node_ms: spread(&stats.whole_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_that_of_the_times() {
        assert_eq!(spread_of(Vec::new()), Spread::default());
        let spread = spread_of((1..=100).rev().collect());
        assert_eq!((spread.mean, spread.p50, spread.p95), (Some(50), Some(50), Some(95)));
        assert_eq!((spread.p99, spread.max), (Some(99), Some(100)));
    }

    #[test]
    fn nothing_by_nothing_is_nothing() {
        assert!(quotient(5, 0).abs() < 1e-9);
        assert!((quotient(1, 3) - 0.333).abs() < 1e-9);
    }
}
