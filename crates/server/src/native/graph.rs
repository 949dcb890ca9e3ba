//! Graphs of flows and runs: laid out as JSON, and drawn as SVG.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use windlass_engine::layout::{self, Direction, NodeOverlay, Overlay};
use windlass_engine::plan::Plan;
use windlass_runtime::runs::RunView;
use windlass_sdk::contract::{FlowGraph, GraphQuery, GraphSvgQuery, RunGraphQuery};
use windlass_store::flow::{FlowRow, VersionRef, VersionRow};

use super::definition::run_blocking;
use super::flow::numbered;
use crate::app::{App, run_id};
use crate::extract::{PathParams, QueryParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Shows a flow as a graph, laid out.
#[utoipa::path(get, path = "/api/v1/flows/{flow}/graph", operation_id = "show_flow_graph", tag = "flows",
    params(("flow" = String, Path, description = "The name or the id of the flow"), GraphQuery),
    responses((status = 200, description = "The graph", body = FlowGraph)))]
pub(crate) async fn flow(
    State(app): State<App>,
    PathParams(flow): PathParams<String>,
    QueryParams(asked): QueryParams<GraphQuery>,
) -> ApiResult<Json<FlowGraph>> {
    let flow = app.flow(&flow).await?;
    let version = version(&app, &flow, asked.version).await?;
    let plan = app.runtime.runs().plan(version.id).await?;
    graph(plan, shape::direction(asked.dir)).await
}

/// Shows the graph of the version that a run executes, laid out.
#[utoipa::path(get, path = "/api/v1/runs/{id}/graph", operation_id = "show_run_graph", tag = "runs",
    params(("id" = String, Path, description = "The id of the run"), RunGraphQuery),
    responses((status = 200, description = "The graph", body = FlowGraph)))]
pub(crate) async fn run(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(asked): QueryParams<RunGraphQuery>,
) -> ApiResult<Json<FlowGraph>> {
    let row = app.row(run_id(&id)?).await?;
    let plan = app.runtime.runs().plan(row.origin.version).await?;
    graph(plan, shape::direction(asked.dir)).await
}

/// Draws a flow as SVG, optionally with the states of a run. Its colours follow the light or dark scheme of the reader.
#[utoipa::path(get, path = "/api/v1/flows/{flow}/graph.svg", operation_id = "draw_flow_graph", tag = "flows",
    params(("flow" = String, Path, description = "The name or the id of the flow"), GraphSvgQuery),
    responses((status = 200, description = "The drawing", body = String, content_type = "image/svg+xml")))]
pub(crate) async fn svg(
    State(app): State<App>,
    PathParams(flow): PathParams<String>,
    QueryParams(asked): QueryParams<GraphSvgQuery>,
) -> ApiResult<Response> {
    let flow = app.flow(&flow).await?;
    let direction = shape::direction(asked.dir);
    let (plan, number, view) = match &asked.run {
        Some(run) => {
            let view = app.view(run_id(run)?).await?;
            let number = number_of(&app, &flow, &view, asked.version).await?;
            (view.plan.clone(), number, Some(view))
        }
        None => {
            let version = version(&app, &flow, asked.version).await?;
            (app.runtime.runs().plan(version.id).await?, version.number, None)
        }
    };
    let name = format!("{}, version {number}", flow.name);
    let drawing = run_blocking(move || draw(&plan, direction, &name, view.as_ref())).await?;
    let mut response = drawing.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, axum::http::HeaderValue::from_static("image/svg+xml"));
    // Opened alone it is a document; nothing in it may load or run.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'";
    headers.insert(CONTENT_SECURITY_POLICY, axum::http::HeaderValue::from_static(policy));
    Ok(response)
}

async fn graph(plan: Arc<Plan>, direction: Direction) -> ApiResult<Json<FlowGraph>> {
    Ok(Json(run_blocking(move || shape::flow_graph(&plan, direction)).await?))
}

fn draw(plan: &Plan, direction: Direction, name: &str, view: Option<&RunView>) -> String {
    let drawn = layout::layout(plan, direction);
    let Some(view) = view else { return layout::svg(&drawn, name, None) };
    let (states, _) = shape::node_states(&view.plan, &view.state);
    let states = states.iter().map(|(path, state)| {
        let action = state.action.as_deref();
        (path.as_str(), NodeOverlay { status: &state.status, action, attempts: state.attempts })
    });
    let overlay = Overlay::new(&drawn, states);
    layout::svg(&drawn, name, Some(&overlay))
}

/// A version of a flow: the one with a number, or the newest published one.
async fn version(app: &App, flow: &FlowRow, number: Option<u32>) -> ApiResult<VersionRow> {
    if let Some(number) = number {
        return numbered(app, flow, number).await;
    }
    let latest = app.store().version(app.project(), VersionRef::Latest { flow: flow.id }).await?;
    latest.ok_or_else(|| {
        let detail = format!("flow `{}` has no published version: publish one, or name a version", flow.name);
        ApiError::new(Code::UnknownVersion, detail)
    })
}

/// The number of the version that a run of this flow executes.
async fn number_of(app: &App, flow: &FlowRow, view: &RunView, asked: Option<u32>) -> ApiResult<u32> {
    let origin = &view.row.origin;
    let label = app.label(origin.flow, origin.version).await?;
    if origin.flow != flow.id {
        let reason = format!("it is a run of the flow `{}`, not of `{}`", label.flow, flow.name);
        return Err(ApiError::field(Code::BadQuery, "?run", reason));
    }
    match asked.filter(|asked| *asked != label.number) {
        Some(asked) => {
            let reason =
                format!("the run executes version {}, not {asked}: leave the version out", label.number);
            Err(ApiError::field(Code::BadQuery, "?version", reason))
        }
        None => Ok(label.number),
    }
}
