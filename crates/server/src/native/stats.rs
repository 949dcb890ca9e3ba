//! How things went: on this server, of a flow, of a run.

mod figures;

use axum::Json;
use axum::extract::State;
use windlass_engine::id::FlowId;
use windlass_engine::parallelism::Parallelism;
use windlass_runtime::stats::{ProcessStats as Process, ServerStats as Seen};
use windlass_sdk::types::{FlowStats, Load, ProcessStats, RunStats, ServerStats, Stats};
use windlass_store::flow::FlowRef;
use windlass_store::project::attempts::Attempts;

use crate::app::{App, run_id};
use crate::extract::At;
use crate::problem::Answer;
use crate::shape;

use figures::{Figures, claims, follow_rounds};

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
    flows.dedup();
    Ok(Json(Stats {
        timestamp: shape::time(app.runtime.clock().now()),
        parallelism: Load {
            running: seen.all.n_open,
            max_running: seen.all.n_open_max,
            waiting: seen.n_queued,
            last_10s: shape::parallelism(&seen.last_10s),
            last_minute: shape::parallelism(&seen.last_minute),
            last_hour: shape::parallelism(&seen.last_hour),
        },
        nodes: shape::node_pace(&seen.all, up_ms),
        runs: shape::run_pace(&seen.all, up_ms),
        flows,
        server: held(&seen),
        process: process(seen.process),
        redis: app.runtime.redis_stats().map(shape::redis),
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
        average_parallelism: shape::quotient(seen.whole_ms.0, seen.whole_ms.1),
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
    let run = view.row.id;
    let (mut attempts, mut rounds) = (Attempts::new(run, &view.plan), Vec::new());
    app.each_entry(run, |_, entry| {
        attempts.follow(entry);
        follow_rounds(&mut rounds, entry);
    })
    .await?;
    let claims = claims(&app, run).await?;
    let label = app.label(view.row.origin.flow, view.row.origin.version).await?;
    let now = app.runtime.clock().now();
    let figures = Figures::of(&view, attempts.rows(), &claims, now);
    let mut parallelism = Parallelism::default();
    for (from, to) in rounds {
        let found = Parallelism::of(&figures.spans, from, to.unwrap_or(now));
        parallelism.add_part(&found, |ms| ms);
    }
    Ok(Json(RunStats {
        run: run.to_string(),
        flow: label.flow.clone(),
        status: shape::status(view.row.standing.status),
        parallelism: shape::parallelism(&parallelism),
        duration_ms: shape::spread_of(figures.work),
        waiting_ms: shape::spread_of(figures.waits),
        attempts: figures.n_attempts,
        nodes: figures.nodes,
    }))
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
