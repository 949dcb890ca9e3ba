//! Activity of this server, of a flow, and of a run.

mod figures;

use axum::Json;
use axum::extract::State;
use windlass_engine::id::FlowId;
use windlass_engine::parallelism::Parallelism;
use windlass_runtime::stats::{ProcessUsage, ServerActivity};
use windlass_sdk::contract::{
    FlowStatsInfo, LoadInfo, ProcessStatsInfo, RunStats, ServerStatsInfo, StatsResponse,
};
use windlass_store::flow::FlowRef;
use windlass_store::projection::attempts::Attempts;

use crate::app::{App, run_id};
use crate::extract::PathParams;
use crate::problem::ApiResult;
use crate::shape;

pub(crate) use figures::claim_times;
use figures::{RunFigures, record_rounds};

/// Shows the activity of this server since it started: calls in progress, durations, rates.
#[utoipa::path(get, path = "/api/v1/stats", operation_id = "show_stats", tag = "server",
    responses((status = 200, description = "The activity", body = StatsResponse)))]
pub(crate) async fn server(State(app): State<App>) -> ApiResult<Json<StatsResponse>> {
    let server = app.runtime.activity().server();
    let (calls, up_ms) = (&server.calls, server.process.up_ms);
    let mut flows = Vec::new();
    for id in app.runtime.activity().flows() {
        flows.push(flow_name(&app, id).await?);
    }
    flows.sort_unstable();
    flows.dedup();
    Ok(Json(StatsResponse {
        timestamp: shape::time(app.runtime.clock().now()),
        parallelism: LoadInfo {
            running: calls.all.running,
            max_running: calls.all.running_max,
            waiting: calls.n_queued,
            last_10s: shape::parallelism(&calls.last_10s),
            last_minute: shape::parallelism(&calls.last_minute),
            last_hour: shape::parallelism(&calls.last_hour),
        },
        nodes: shape::node_pace(&calls.all, up_ms),
        runs: shape::run_pace(&calls.all, up_ms),
        flows,
        server: server_stats(&server),
        process: process_stats(server.process),
        redis: app.runtime.jobs().redis_stats().map(shape::redis),
    }))
}

/// Shows the activity of a flow on this server since it started.
#[utoipa::path(get, path = "/api/v1/flows/{flow}/stats", operation_id = "show_flow_stats", tag = "flows",
    params(("flow" = String, Path, description = "The name or the id of the flow")),
    responses((status = 200, description = "The activity", body = FlowStatsInfo)))]
pub(crate) async fn flow(
    State(app): State<App>,
    PathParams(flow): PathParams<String>,
) -> ApiResult<Json<FlowStatsInfo>> {
    let flow = app.flow(&flow).await?;
    let (activity, nodes) = app.runtime.activity().flow(flow.id);
    let up_ms = ProcessUsage::read().up_ms;
    Ok(Json(FlowStatsInfo {
        timestamp: shape::time(app.runtime.clock().now()),
        flow: flow.name,
        running: activity.running,
        max_running: activity.running_max,
        average_parallelism: shape::quotient(activity.observed_call_ms, activity.observed_run_ms),
        nodes: shape::node_pace(&activity, up_ms),
        runs: shape::run_pace(&activity, up_ms),
        by_node: nodes.iter().map(shape::node_durations).collect(),
    }))
}

/// Shows how many calls of a run were in progress at once, and the durations of its nodes. It reads the whole journal.
#[utoipa::path(get, path = "/api/v1/runs/{id}/stats", operation_id = "show_run_stats", tag = "runs",
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "The activity", body = RunStats)))]
pub(crate) async fn run(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
) -> ApiResult<Json<RunStats>> {
    let view = app.view(run_id(&id)?).await?;
    let run = view.row.id;
    let (mut attempts, mut rounds) = (Attempts::new(run, &view.plan), Vec::new());
    app.each_entry(run, |_, entry| {
        attempts.follow(entry);
        record_rounds(&mut rounds, entry);
    })
    .await?;
    let claims = claim_times(&app, run).await?;
    let label = app.label(view.row.origin.flow, view.row.origin.version).await?;
    let now = app.runtime.clock().now();
    let figures = RunFigures::new(&view, attempts.rows(), &claims, now);
    let mut parallelism = Parallelism::default();
    for (from, to) in rounds {
        let found = Parallelism::of(&figures.spans, from, to.unwrap_or(now));
        parallelism.add_part(&found, |ms| ms);
    }
    Ok(Json(RunStats {
        run: run.to_string(),
        flow: label.flow.clone(),
        status: shape::status(view.row.projection.status),
        parallelism: shape::parallelism(&parallelism),
        duration_ms: shape::exact_percentiles(figures.work),
        waiting_ms: shape::exact_percentiles(figures.waits),
        attempts: figures.n_attempts,
        nodes: figures.nodes,
    }))
}

/// The name of a flow, or its id if it is gone.
pub(super) async fn flow_name(app: &App, id: FlowId) -> ApiResult<String> {
    let flow = app.store().flow(app.project(), FlowRef::Id(id)).await?;
    Ok(flow.map_or_else(|| id.to_string(), |flow| flow.name))
}

fn server_stats(server: &ServerActivity) -> ServerStatsInfo {
    let count = |n: usize| n as u64;
    ServerStatsInfo {
        hot_runs: count(server.n_hot_runs),
        calls: count(server.n_own_calls),
        inputs: count(server.n_inputs),
    }
}

fn process_stats(usage: ProcessUsage) -> ProcessStatsInfo {
    let ProcessUsage { up_ms, cpu_ms, resident_bytes, open_files, threads, tasks } = usage;
    ProcessStatsInfo { up_ms, cpu_ms, resident_bytes, open_files, threads, tasks }
}
