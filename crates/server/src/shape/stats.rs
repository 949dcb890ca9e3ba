//! Activity in the types of the API.

use windlass_engine::parallelism::{Parallelism as MeasuredParallelism, levels_of};
use windlass_runtime::jobs::RedisStats as RelayStats;
use windlass_runtime::stats::{
    ActivityTotals, EventCounts, FlowActivity, NodeActivity, Percentiles, RecentActivity, WindowStats,
};
use windlass_sdk::contract::{
    DurationPercentiles, NodeDurations, NodePace, NodeWindow, ParallelismInfo, ParallelismLevel,
    RedisStatsInfo, RunPace, RunWindow,
};

/// The lengths of the windows, in seconds.
const WINDOW_SECONDS: [u64; 3] = [10, 60, 3_600];

/// Rounds to three digits after the point.
pub(crate) fn rounded(n: f64) -> f64 {
    (n * 1_000.0).round() / 1_000.0
}

/// `n / of`, 0 if `of` is 0.
#[expect(clippy::cast_precision_loss, reason = "a quotient is rounded to three digits")]
pub(crate) fn quotient(n: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { rounded(n as f64 / of as f64) }
}

pub(crate) fn percentiles(of: &Percentiles) -> DurationPercentiles {
    DurationPercentiles { mean: of.mean, p50: of.p50, p95: of.p95, p99: of.p99, max: of.max }
}

/// Exact percentiles of a list of durations.
pub(crate) fn exact_percentiles(mut times: Vec<u64>) -> DurationPercentiles {
    times.sort_unstable();
    let n = times.len() as u64;
    let sum = times.iter().fold(0u64, |sum, ms| sum.saturating_add(*ms));
    let at = |percent: u64| {
        let rank = (n * percent).div_ceil(100).max(1);
        times.get(usize::try_from(rank - 1).unwrap_or(usize::MAX)).copied()
    };
    DurationPercentiles {
        mean: sum.checked_div(n),
        p50: at(50),
        p95: at(95),
        p99: at(99),
        max: times.last().copied(),
    }
}

pub(crate) fn redis(stats: RelayStats) -> RedisStatsInfo {
    let RelayStats { is_up, n_fills, n_outages } = stats;
    RedisStatsInfo { up: is_up, outages: n_outages, fills: n_fills }
}

pub(crate) fn parallelism(found: &MeasuredParallelism) -> ParallelismInfo {
    let levels = found.ms_at.iter().enumerate().filter(|(_, ms)| **ms > 0);
    let level = |(index, ms): (usize, &u64)| {
        let (from, to) = levels_of(index);
        ParallelismLevel { from, to, ms: *ms, share: quotient(*ms, found.wall_ms) }
    };
    ParallelismInfo {
        average: rounded(found.average()),
        max: found.max,
        busy_ms: found.busy_ms,
        wall_ms: found.wall_ms,
        distribution: levels.map(level).collect(),
    }
}

pub(crate) fn node_pace(flow: &FlowActivity, up_ms: u64) -> NodePace {
    let ActivityTotals { nodes_settled, calls_begun, calls_ok, calls_failed, calls_suspended, .. } =
        flow.totals;
    let [last_10s, last_minute, last_hour] = each(&flow.calls, |window, seconds| {
        let EventCounts { created, started, succeeded, failed, dead: _, suspended } = window.counts;
        NodeWindow {
            ended: created,
            per_second: quotient(created, seconds),
            started,
            succeeded,
            failed,
            suspended,
            duration_ms: percentiles(&window.work_ms),
            waiting_ms: percentiles(&window.wait_ms),
        }
    });
    let total = NodeWindow {
        ended: nodes_settled,
        per_second: quotient(nodes_settled.saturating_mul(1_000), up_ms),
        started: calls_begun,
        succeeded: calls_ok,
        failed: calls_failed,
        suspended: calls_suspended,
        duration_ms: percentiles(&flow.call_ms.percentiles),
        waiting_ms: percentiles(&flow.wait_ms.percentiles),
    };
    NodePace { last_10s, last_minute, last_hour, total }
}

pub(crate) fn run_pace(flow: &FlowActivity, up_ms: u64) -> RunPace {
    let ActivityTotals { runs_begun, runs_completed, runs_failed, runs_canceled, .. } = flow.totals;
    let [last_10s, last_minute, last_hour] = each(&flow.runs, |window, seconds| {
        let EventCounts { created, succeeded, failed, dead, .. } = window.counts;
        RunWindow {
            started: created,
            completed: succeeded,
            failed: failed.saturating_sub(dead),
            canceled: dead,
            per_second: quotient(succeeded + failed, seconds),
            duration_ms: percentiles(&window.work_ms),
        }
    });
    let n_ended = runs_completed + runs_failed + runs_canceled;
    let total = RunWindow {
        started: runs_begun,
        completed: runs_completed,
        failed: runs_failed,
        canceled: runs_canceled,
        per_second: quotient(n_ended.saturating_mul(1_000), up_ms),
        duration_ms: percentiles(&flow.run_ms.percentiles),
    };
    RunPace { last_10s, last_minute, last_hour, total }
}

fn each<T>(recent: &RecentActivity, shape: impl Fn(&WindowStats, u64) -> T) -> [T; 3] {
    let [first, second, third] = WINDOW_SECONDS;
    [shape(&recent.last_10s, first), shape(&recent.last_minute, second), shape(&recent.last_hour, third)]
}

pub(crate) fn node_durations(node: &NodeActivity) -> NodeDurations {
    NodeDurations {
        node: node.node.clone(),
        succeeded: node.succeeded,
        failed: node.failed,
        suspended: node.suspended,
        total_ms: node.work_ms.sum_ms,
        duration_ms: percentiles(&node.work_ms.percentiles),
        waiting_ms: percentiles(&node.wait_ms),
        node_ms: percentiles(&node.node_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_durations() {
        assert_eq!(exact_percentiles(Vec::new()), DurationPercentiles::default());
        let found = exact_percentiles((1..=100).rev().collect());
        assert_eq!((found.mean, found.p50, found.p95), (Some(50), Some(50), Some(95)));
        assert_eq!((found.p99, found.max), (Some(99), Some(100)));
    }

    #[test]
    fn a_quotient_by_zero_is_zero() {
        assert!(quotient(5, 0).abs() < 1e-9);
        assert!((quotient(1, 3) - 0.333).abs() < 1e-9);
    }
}
