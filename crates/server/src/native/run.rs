//! Runs: listing and showing them.

use axum::Json;
use axum::extract::State;
use windlass_sdk::contract::{List, RunDetail, RunSummary, RunsQuery};
use windlass_store::run::{RunQuery, RunStatus};

use crate::app::{App, run_id};
use crate::extract::{PathParams, QueryParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Lists runs, newest first.
#[utoipa::path(get, path = "/api/v1/runs", operation_id = "list_runs", tag = "runs", params(RunsQuery),
    responses((status = 200, description = "A page of runs", body = List<RunSummary>)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<RunsQuery>,
) -> ApiResult<Json<List<RunSummary>>> {
    let flow = match &asked.flow {
        Some(flow) => Some(app.flow(flow).await?.id),
        None => None,
    };
    let query = RunQuery {
        statuses: statuses(asked.status.as_deref())?,
        flow,
        account: asked.account,
        parent: asked.parent.as_deref().map(run_id).transpose()?,
        label: shape::label(asked.label),
        since: asked.since.map(|at| windlass_engine::time::Timestamp(at.0)),
        until: asked.until.map(|at| windlass_engine::time::Timestamp(at.0)),
        text: asked.q.filter(|text| !text.is_empty()),
        part: shape::part(asked.cursor, asked.limit)?,
        ..RunQuery::default()
    };
    let page = app.store().runs(app.project(), query).await?;
    let mut items = Vec::with_capacity(page.items.len());
    for row in &page.items {
        let label = app.label(row.origin.flow, row.origin.version).await?;
        items.push(shape::summary(row, &label));
    }
    Ok(Json(List { items, next: page.next.map(|next| next.as_str().to_owned()) }))
}

fn statuses(asked: Option<&str>) -> ApiResult<Vec<RunStatus>> {
    let words = asked.into_iter().flat_map(|text| text.split(',')).filter(|word| !word.is_empty());
    let read = |word: &str| {
        RunStatus::from_word(word.trim()).ok_or_else(|| {
            let known: Vec<&str> = RunStatus::ALL.iter().map(|status| status.word()).collect();
            let shown: String = word.chars().take(40).collect();
            let reason = format!("`{shown}` is no status: give {}", known.join(", "));
            ApiError::field(Code::BadQuery, "?status", reason)
        })
    };
    words.map(read).collect()
}

/// Shows a run, wholly.
#[utoipa::path(get, path = "/api/v1/runs/{id}", operation_id = "show_run", tag = "runs",
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "The run", body = RunDetail)))]
pub(crate) async fn show(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
) -> ApiResult<Json<RunDetail>> {
    let view = app.view(run_id(&id)?).await?;
    let label = app.label(view.row.origin.flow, view.row.origin.version).await?;
    Ok(Json(shape::run(&view, &label)))
}
