//! How things went: on this server, of a flow, of a run.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use windlass_engine::id::FlowId;
use windlass_engine::parallelism::Parallelism;
use windlass_engine::time::Timestamp;
use windlass_runtime::stats::{ProcessStats as Process, ServerStats as Seen};
use windlass_sdk::types::{FlowStats, Load, NodeDurations, ProcessStats, RunStats, ServerStats, Stats};
use windlass_store::flow::FlowRef;
use windlass_store::project::attempts::{AttemptStatus, Attempts, NodeAttempt};

use crate::app::{App, run_id};
use crate::extract::At;
use crate::problem::Answer;
use crate::shape;

/// Nodes of a run that are told apart.
const NODES_MAX: usize = 1_000;

/// Says how everything on this server went since it started: how many calls at once, how long, how many a second.
#[utoipa::path(get, path = "/api/v1/stats", operation_id = "show_stats", tag = "server",
    responses((status = 200, description = "How it went", body = Stats)))]
pub(crate) async fn server(State(app): State<App>) -> Answer<Json<Stats>> {
    let seen = app.runtime.server_stats();
    let up_ms = seen.process.up_ms;
    let mut flows = Vec::new();
    for id in app.runtime.flows_with_stats() {
        flows.push(flow_name(&app, id).await?);
    }
    flows.sort_unstable();
    Ok(Json(Stats {
        timestamp: shape::time(app.runtime.clock().now()),
        parallelism: Load {
            running: seen.all.n_open,
            max_running: seen.all.n_open_max,
            last_10s: shape::parallelism(&seen.last_10s),
            last_minute: shape::parallelism(&seen.last_minute),
            last_hour: shape::parallelism(&seen.last_hour),
        },
        nodes: shape::node_pace(&seen.all, up_ms),
        runs: shape::run_pace(&seen.all, up_ms),
        flows,
        server: held(&seen),
        process: process(seen.process),
    }))
}

/// Says how a flow went on this server since it started.
#[utoipa::path(get, path = "/api/v1/flows/{flow}/stats", operation_id = "show_flow_stats", tag = "flows",
    params(("flow" = String, Path, description = "The name or the id of the flow")),
    responses((status = 200, description = "How it went", body = FlowStats)))]
pub(crate) async fn flow(State(app): State<App>, At(flow): At<String>) -> Answer<Json<FlowStats>> {
    let flow = app.flow(&flow).await?;
    let (seen, nodes) = app.runtime.flow_stats(flow.id);
    let up_ms = Process::read().up_ms;
    Ok(Json(FlowStats {
        timestamp: shape::time(app.runtime.clock().now()),
        flow: flow.name,
        running: seen.n_open,
        max_running: seen.n_open_max,
        average_parallelism: shape::quotient(seen.call_ms.1, seen.run_ms.1),
        nodes: shape::node_pace(&seen, up_ms),
        runs: shape::run_pace(&seen, up_ms),
        by_node: nodes.iter().map(shape::node_durations).collect(),
    }))
}

/// Says how many calls of a run went on at once, and how long its nodes took. It reads the whole journal.
#[utoipa::path(get, path = "/api/v1/runs/{id}/stats", operation_id = "show_run_stats", tag = "runs",
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "How it went", body = RunStats)))]
pub(crate) async fn run(State(app): State<App>, At(id): At<String>) -> Answer<Json<RunStats>> {
    let view = app.view(run_id(&id)?).await?;
    let mut attempts = Attempts::new(view.row.id, &view.plan);
    app.each_entry(view.row.id, |_, entry| attempts.follow(entry)).await?;
    let label = app.label(view.row.origin.flow, view.row.origin.version).await?;
    let standing = &view.row.standing;
    let (from, to) =
        (view.row.origin.created_at, standing.ended_at.unwrap_or_else(|| app.runtime.clock().now()));
    let calls: Vec<&NodeAttempt> = attempts.rows().iter().filter(|row| row.fence > 0).collect();
    let spans: Vec<(Timestamp, Timestamp)> =
        calls.iter().map(|row| (row.started_at, row.finished_at.unwrap_or(to))).collect();
    let times = spans.iter().map(|(from, to)| to.since(*from)).collect();
    let mut nodes: BTreeMap<String, (NodeDurations, Vec<u64>)> = BTreeMap::new();
    for (row, (from, to)) in calls.iter().zip(&spans) {
        let name = view.plan.pattern(&row.node);
        let (node, times) = nodes.entry(name).or_default();
        times.push(to.since(*from));
        node.succeeded +=
            u64::from(row.status == AttemptStatus::Ok || row.status == AttemptStatus::Suspended);
        node.failed += u64::from(row.status == AttemptStatus::Error);
    }
    Ok(Json(RunStats {
        run: view.row.id.to_string(),
        flow: label.flow.clone(),
        status: shape::status(standing.status),
        parallelism: shape::parallelism(&Parallelism::of(&spans, from, to)),
        duration_ms: shape::spread_of(times),
        attempts: calls.len() as u64,
        nodes: longest(nodes),
    }))
}

/// By name, those that took longest if there are too many.
fn longest(nodes: BTreeMap<String, (NodeDurations, Vec<u64>)>) -> Vec<NodeDurations> {
    let durations = |(name, (node, times)): (String, (NodeDurations, Vec<u64>))| NodeDurations {
        node: name,
        total_ms: times.iter().fold(0, |sum: u64, ms| sum.saturating_add(*ms)),
        duration_ms: shape::spread_of(times),
        ..node
    };
    let mut nodes: Vec<NodeDurations> = nodes.into_iter().map(durations).collect();
    if nodes.len() > NODES_MAX {
        nodes.sort_by_key(|node| std::cmp::Reverse(node.total_ms));
        nodes.truncate(NODES_MAX);
        nodes.sort_by(|a, b| a.node.cmp(&b.node));
    }
    nodes
}

/// The name of a flow, or its id if it is gone.
pub(super) async fn flow_name(app: &App, id: FlowId) -> Answer<String> {
    let flow = app.store().flow(FlowRef::Id(id)).await?;
    Ok(flow.map_or_else(|| id.to_string(), |flow| flow.name))
}

fn held(seen: &Seen) -> ServerStats {
    let count = |n: usize| n as u64;
    ServerStats {
        hot_runs: count(seen.n_hot_runs),
        calls: count(seen.n_own_calls),
        inputs: count(seen.n_inputs),
    }
}

fn process(seen: Process) -> ProcessStats {
    let Process { up_ms, cpu_ms, resident_bytes, open_files, threads, tasks } = seen;
    ProcessStats { up_ms, cpu_ms, resident_bytes, open_files, threads, tasks }
}
