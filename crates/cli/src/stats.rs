//! `windlass stats` and `windlass run stats`: parallel calls, durations and rates.

use anyhow::Result;
use clap::Args;
use windlass_sdk::contract::{
    DurationPercentiles, FlowStatsInfo, NodeDurations, NodePace, NodeWindow, ParallelismInfo,
    ParallelismLevel, ProcessStatsInfo, RedisStatsInfo, RunPace, RunStats, RunWindow, StatsResponse,
};

use crate::exit::Exit;
use crate::output::{self, Printer};
use crate::session::{GlobalArgs, Session, in_words};

#[derive(Args)]
pub(crate) struct StatsArgs {
    /// The flow, by name or id [default: the whole server].
    flow: Option<String>,
}

pub(crate) async fn run(flags: &StatsArgs, options: &GlobalArgs) -> Result<Exit> {
    let session = options.session()?;
    match &flags.flow {
        Some(flow) => {
            let stats = session.client.flows().stats(flow).await?;
            session.out.value(&stats, &stats.flow, || flow_text(&stats, &session.out))?;
        }
        None => {
            let stats = session.client.stats().await?;
            session.out.value(&stats, "", || server_text(&stats, &session.out))?;
        }
    }
    Ok(Exit::Done)
}

/// Prints the statistics of a run.
pub(crate) async fn print_run_stats(run: &str, session: &Session) -> Result<Exit> {
    let stats = session.client.runs().stats(&session.run_id(run).await?).await?;
    session.out.value(&stats, &stats.run, || run_text(&stats, &session.out))?;
    Ok(Exit::Done)
}

fn server_text(stats: &StatsResponse, out: &Printer) -> String {
    let ProcessStatsInfo { up_ms, cpu_ms, resident_bytes, open_files, threads, tasks } = &stats.process;
    let number = |n: &Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
    let facts = output::facts([
        ("up", length(Some(*up_ms))),
        (
            "running",
            format!("{} calls, {} at most", stats.parallelism.running, stats.parallelism.max_running),
        ),
        ("waiting", format!("{} calls in queues", stats.parallelism.waiting)),
        ("in memory", format!("{} runs, {} inputs wait", stats.server.hot_runs, stats.server.inputs)),
        ("cpu", length(*cpu_ms)),
        ("memory", resident_bytes.map(|bytes| format!("{} MiB", bytes >> 20)).unwrap_or_default()),
        ("open files", number(open_files)),
        ("threads", number(threads)),
        ("tasks", tasks.to_string()),
        ("redis", stats.redis.as_ref().map(redis).unwrap_or_default()),
        ("flows", stats.flows.join(", ")),
    ]);
    let load = &stats.parallelism;
    let rows = [("10 s", &load.last_10s), ("minute", &load.last_minute), ("hour", &load.last_hour)];
    let rows = rows.map(|(name, found)| {
        [name.to_owned(), format!("{:.2}", found.average), found.max.to_string(), shares(&found.distribution)]
    });
    let parallelism = out.table_text(["last", "at once", "most", "of the time"], &rows);
    let (nodes, runs) = (nodes_text(&stats.nodes, out), runs_text(&stats.runs, out));
    format!("{facts}\n{parallelism}\n\n{nodes}\n\n{runs}")
}

/// The state of Redis, for people.
pub(crate) fn redis(redis: &RedisStatsInfo) -> String {
    let RedisStatsInfo { up, outages, fills } = redis;
    let state = if *up { "up" } else { "unreachable, jobs are dispatched without it" };
    format!("{state}; {outages} outages, {fills} fills")
}

fn flow_text(stats: &FlowStatsInfo, out: &Printer) -> String {
    let facts = output::facts([
        ("flow", stats.flow.clone()),
        ("running", format!("{} calls, {} at most", stats.running, stats.max_running)),
        ("at once", format!("{:.2} calls of a run, on average", stats.average_parallelism)),
    ]);
    let (nodes, runs) = (nodes_text(&stats.nodes, out), runs_text(&stats.runs, out));
    format!("{facts}\n{nodes}\n\n{runs}\n\n{}", by_node(&stats.by_node, out))
}

fn run_text(stats: &RunStats, out: &Printer) -> String {
    let ParallelismInfo { average, max, busy_ms, wall_ms, distribution } = &stats.parallelism;
    let facts = output::facts([
        ("run", stats.run.clone()),
        ("flow", stats.flow.clone()),
        ("status", out.painted(stats.status.word(), stats.status.word())),
        ("took", length(Some(*wall_ms))),
        ("calls took", format!("{} together", length(Some(*busy_ms)))),
        ("in queues", spread(&stats.waiting_ms)),
        ("at once", format!("{average:.2} on average, {max} at most")),
        ("of the time", shares(distribution)),
    ]);
    format!("{facts}\n{}", by_node(&stats.nodes, out))
}

fn nodes_text(pace: &NodePace, out: &Printer) -> String {
    let NodePace { last_10s, last_minute, last_hour, total } = pace;
    let rows = [("10 s", last_10s), ("minute", last_minute), ("hour", last_hour), ("since start", total)];
    let row = |(name, nodes): (&str, &NodeWindow)| {
        let counts = [nodes.ended, nodes.started, nodes.succeeded, nodes.failed, nodes.suspended];
        let [ended, started, succeeded, failed, suspended] = counts.map(|n| n.to_string());
        let (rate, took) = (format!("{:.1}", nodes.per_second), spread(&nodes.duration_ms));
        let waited = spread(&nodes.waiting_ms);
        [name.to_owned(), ended, rate, started, succeeded, failed, suspended, took, waited]
    };
    let heading =
        ["nodes", "ended", "a second", "calls", "done", "failed", "suspended", "p50/95/99/max", "in queues"];
    out.table_text(heading, &rows.map(row))
}

fn runs_text(pace: &RunPace, out: &Printer) -> String {
    let RunPace { last_10s, last_minute, last_hour, total } = pace;
    let rows = [("10 s", last_10s), ("minute", last_minute), ("hour", last_hour), ("since start", total)];
    let row = |(name, runs): (&str, &RunWindow)| {
        let counts = [runs.started, runs.completed, runs.failed, runs.canceled].map(|n| n.to_string());
        let [started, completed, failed, canceled] = counts;
        let rate = format!("{:.1}", runs.per_second);
        [name.to_owned(), started, completed, failed, canceled, rate, spread(&runs.duration_ms)]
    };
    let heading = ["runs", "started", "completed", "failed", "canceled", "a second", "p50/95/99/max"];
    out.table_text(heading, &rows.map(row))
}

fn by_node(nodes: &[NodeDurations], out: &Printer) -> String {
    let row = |node: &NodeDurations| {
        [
            node.node.clone(),
            node.succeeded.to_string(),
            node.failed.to_string(),
            node.suspended.to_string(),
            length(Some(node.total_ms)),
            length(node.duration_ms.mean),
            spread(&node.duration_ms),
            length(node.waiting_ms.mean),
            length(node.node_ms.mean),
        ]
    };
    let rows: Vec<_> = nodes.iter().map(row).collect();
    let heading =
        ["node", "done", "failed", "suspended", "together", "mean", "p50/95/99/max", "in queues", "in all"];
    out.table_text(heading, &rows)
}

/// Shares of the time by number of parallel calls: `0: 12%, 3: 88%`.
fn shares(levels: &[ParallelismLevel]) -> String {
    let name = |level: &ParallelismLevel| match level.to {
        Some(to) if to == level.from => to.to_string(),
        Some(to) => format!("{}-{to}", level.from),
        None => format!("{}+", level.from),
    };
    let share = |level: &ParallelismLevel| format!("{}: {:.0}%", name(level), level.share * 100.0);
    levels.iter().map(share).collect::<Vec<_>>().join(", ")
}

fn spread(spread: &DurationPercentiles) -> String {
    match spread.p50 {
        Some(_) => [spread.p50, spread.p95, spread.p99, spread.max].map(length).join(" / "),
        None => String::new(),
    }
}

fn length(ms: Option<u64>) -> String {
    ms.map(|ms| in_words(i64::try_from(ms).unwrap_or(i64::MAX))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_listed_by_number_of_parallel_calls() {
        let level = |from, to, share| ParallelismLevel { from, to, ms: 0, share };
        let levels = [level(0, Some(0), 0.1), level(9, Some(16), 0.85), level(65_537, None, 0.05)];
        assert_eq!(shares(&levels), "0: 10%, 9-16: 85%, 65537+: 5%");
        assert_eq!(shares(&[]), "");
    }
}
