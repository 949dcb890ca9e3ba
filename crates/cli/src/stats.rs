//! `windlass stats`: how the server and its flows went; and how a run did.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use windlass_sdk::types::{
    FlowStats, Level, NodeDurations, NodePace, NodeStretch, Parallelism, ProcessStats, RedisStats, RunPace,
    RunStats, RunStretch, Spread, Stats,
};

use crate::output::{self, Output};
use crate::session::{Options, Session, in_words};

#[derive(Args)]
pub(crate) struct Flags {
    /// Only of this flow, by name or id, with its nodes; of everything unless given.
    flow: Option<String>,
}

pub(crate) async fn run(flags: &Flags, options: &Options) -> Result<ExitCode> {
    let session = options.session()?;
    match &flags.flow {
        Some(flow) => {
            let stats = session.client.flow_stats(flow).await?;
            session.out.value(&stats, &stats.flow, || flow_text(&stats, &session.out))?;
        }
        None => {
            let stats = session.client.stats().await?;
            session.out.value(&stats, "", || server_text(&stats, &session.out))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows how a run went.
pub(crate) async fn of_run(run: &str, session: &Session) -> Result<ExitCode> {
    let stats = session.client.run_stats(&session.run_id(run).await?).await?;
    session.out.value(&stats, &stats.run, || run_text(&stats, &session.out))?;
    Ok(ExitCode::SUCCESS)
}

fn server_text(stats: &Stats, out: &Output) -> String {
    let ProcessStats { up_ms, cpu_ms, resident_bytes, open_files, threads, tasks } = &stats.process;
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

/// How it goes with Redis, for people.
pub(crate) fn redis(redis: &RedisStats) -> String {
    let RedisStats { up, outages, fills } = redis;
    let state = if *up { "up" } else { "away, jobs are handed out without it" };
    format!("{state}; {outages} outages, {fills} fills")
}

fn flow_text(stats: &FlowStats, out: &Output) -> String {
    let facts = output::facts([
        ("flow", stats.flow.clone()),
        ("running", format!("{} calls, {} at most", stats.running, stats.max_running)),
        ("at once", format!("{:.2} calls of a run, on average", stats.average_parallelism)),
    ]);
    let (nodes, runs) = (nodes_text(&stats.nodes, out), runs_text(&stats.runs, out));
    format!("{facts}\n{nodes}\n\n{runs}\n\n{}", by_node(&stats.by_node, out))
}

fn run_text(stats: &RunStats, out: &Output) -> String {
    let Parallelism { average, max, busy_ms, wall_ms, distribution } = &stats.parallelism;
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

fn nodes_text(pace: &NodePace, out: &Output) -> String {
    let NodePace { last_10s, last_minute, last_hour, total } = pace;
    let rows = [("10 s", last_10s), ("minute", last_minute), ("hour", last_hour), ("since start", total)];
    let row = |(name, nodes): (&str, &NodeStretch)| {
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

fn runs_text(pace: &RunPace, out: &Output) -> String {
    let RunPace { last_10s, last_minute, last_hour, total } = pace;
    let rows = [("10 s", last_10s), ("minute", last_minute), ("hour", last_hour), ("since start", total)];
    let row = |(name, runs): (&str, &RunStretch)| {
        let counts = [runs.started, runs.completed, runs.failed, runs.canceled].map(|n| n.to_string());
        let [started, completed, failed, canceled] = counts;
        let rate = format!("{:.1}", runs.per_second);
        [name.to_owned(), started, completed, failed, canceled, rate, spread(&runs.duration_ms)]
    };
    let heading = ["runs", "started", "completed", "failed", "canceled", "a second", "p50/95/99/max"];
    out.table_text(heading, &rows.map(row))
}

fn by_node(nodes: &[NodeDurations], out: &Output) -> String {
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

/// For how much of the time so many went on: `0: 12%, 3: 88%`.
fn shares(levels: &[Level]) -> String {
    let name = |level: &Level| match level.to {
        Some(to) if to == level.from => to.to_string(),
        Some(to) => format!("{}-{to}", level.from),
        None => format!("{}+", level.from),
    };
    let share = |level: &Level| format!("{}: {:.0}%", name(level), level.share * 100.0);
    levels.iter().map(share).collect::<Vec<_>>().join(", ")
}

fn spread(spread: &Spread) -> String {
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
    fn the_time_is_told_by_how_many_went_on() {
        let level = |from, to, share| Level { from, to, ms: 0, share };
        let levels = [level(0, Some(0), 0.1), level(9, Some(16), 0.85), level(65_537, None, 0.05)];
        assert_eq!(shares(&levels), "0: 10%, 9-16: 85%, 65537+: 5%");
        assert_eq!(shares(&[]), "");
    }
}
