//! The page of a run: one snapshot of everything that it shows, and the values that are too long for it.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::id::RunId;
use windlass_sdk::contract::{OutputQuery, RunPage};
use windlass_store::page::Part;
use windlass_store::projection::attempts::{Attempts, NodeAttempt};
use windlass_store::run::RunQuery;

use super::stats::claim_times;
use super::trace::reasons;
use crate::app::{App, run_id};
use crate::extract::{PathParams, QueryParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// The newest attempts that are shown.
const ATTEMPTS_MAX: usize = 2_000;
/// Child runs that are shown.
const CHILDREN_MAX: usize = 50;

/// Shows everything that the page of a run shows: the run, its nodes, the newest attempts with the beginnings of their
/// values, the reasons for waiting, and child runs. Patches of the topic `run:ID` of the event stream keep it current.
#[utoipa::path(get, path = "/api/v1/runs/{id}/view", operation_id = "view_run", tag = "runs",
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "The page", body = RunPage)))]
pub(crate) async fn view(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
) -> ApiResult<Json<RunPage>> {
    let run = run_id(&id)?;
    let mut row = app.row(run).await?;
    let plan = app.runtime.runs().plan(row.origin.version).await?;
    let (mut attempts, mut seq) = (Attempts::new(run, &plan), Seq::ZERO);
    app.each_entry(run, |number, entry| {
        attempts.follow(entry);
        seq = number;
    })
    .await?;
    if seq != row.len {
        // Entries were written between the two reads.
        row = app.row(run).await?;
    }
    let label = app.label(row.origin.flow, row.origin.version).await?;
    let mut page = shape::run_page(&row, &label, &plan, attempts.run(), seq);
    let rows = attempts.rows();
    let newest = &rows[rows.len().saturating_sub(ATTEMPTS_MAX)..];
    let claims = claims_of(&app, run, newest).await?;
    page.attempts = newest.iter().map(|row| shape::attempt_head(row, &claims)).collect();
    page.more_attempts = newest.len() < rows.len();
    if row.projection.status.is_open() {
        page.why = reasons(&app, &row, &plan, attempts.run()).await?;
    }
    let part = Part { limit: CHILDREN_MAX, ..Part::default() };
    let children = RunQuery { parent: Some(run), part, ..RunQuery::default() };
    let children = app.store().runs(app.project(), children).await?;
    for child in &children.items {
        let label = app.label(child.origin.flow, child.origin.version).await?;
        page.children.push(shape::summary(child, &label));
    }
    page.more_children = children.next.is_some();
    Ok(Json(page))
}

/// When the jobs of these attempts were claimed.
async fn claims_of(
    app: &App,
    run: RunId,
    rows: &[NodeAttempt],
) -> ApiResult<HashMap<Fence, Option<windlass_engine::time::Timestamp>>> {
    if rows.iter().any(|row| row.exec == Some("queue")) {
        claim_times(app, run).await
    } else {
        Ok(HashMap::new())
    }
}

/// Downloads a value of a run or of an attempt as JSON, however large.
#[utoipa::path(get, path = "/api/v1/runs/{id}/output", operation_id = "download_output", tag = "runs",
    params(("id" = String, Path, description = "The id of the run"), OutputQuery),
    responses((status = 200, description = "The value", body = Value)))]
pub(crate) async fn output(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(asked): QueryParams<OutputQuery>,
) -> ApiResult<Response> {
    let run = run_id(&id)?;
    let (value, of) = match asked.fence {
        Some(fence) => attempt_value(&app, run, fence, asked.of.as_deref()).await?,
        None => run_value(&app, run, asked.of.as_deref()).await?,
    };
    let mut response = value.to_string().into_response();
    let name = format!("attachment; filename=\"{run}-{of}.json\"");
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

async fn run_value(app: &App, run: RunId, of: Option<&str>) -> ApiResult<(Value, String)> {
    let view = app.view(run).await?;
    let state = &view.state;
    let value = match of.unwrap_or("result") {
        "result" => state.result.as_deref().cloned().unwrap_or_default(),
        "params" => state.start.params.to_map().into(),
        "shared" => shape::shared(state).into(),
        other => return Err(no_value(other, "result, params or shared")),
    };
    Ok((value, of.unwrap_or("result").to_owned()))
}

async fn attempt_value(app: &App, run: RunId, fence: u64, of: Option<&str>) -> ApiResult<(Value, String)> {
    let of = of.unwrap_or("output");
    let row = app.row(run).await?;
    let plan = app.runtime.runs().plan(row.origin.version).await?;
    let mut attempts = Attempts::new(run, &plan);
    app.each_entry(run, |_, entry| attempts.follow(entry)).await?;
    let found = attempts.rows().iter().find(|row| row.fence.0 == fence && fence > 0).ok_or_else(|| {
        let detail = format!("{run} has no attempt with the fence {fence}: list them with /attempts");
        ApiError::field(Code::BadQuery, "?fence", detail)
    })?;
    let value = match of {
        "output" => found.output.as_deref().cloned().unwrap_or_default(),
        "input" => (*found.input).clone(),
        other => return Err(no_value(other, "output or input")),
    };
    Ok((value, format!("{fence}-{of}")))
}

fn no_value(asked: &str, known: &str) -> ApiError {
    let shown: String = asked.chars().take(40).collect();
    ApiError::field(Code::BadQuery, "?of", format!("`{shown}` is no value here: give {known}"))
}
