//! Runs: listing, counting and showing them.

use axum::Json;
use axum::extract::State;
use windlass_runtime::runs::{RunSelection, SelectError};
use windlass_sdk::contract::{
    CountedValue, List, RunCounts, RunCountsQuery, RunDetail, RunSummary, RunsQuery,
};
use windlass_store::run::{RunQuery, RunRow, RunStatus};

use crate::app::{App, run_id};
use crate::extract::{PathParams, QueryParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Runs that are counted for one status.
const COUNTED_MAX: usize = 10_000;

/// Lists runs, newest first. `query` is a query of the query language of runs; a page may hold fewer runs than `limit`
/// and still have a `next`.
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
    let base = RunQuery {
        statuses: statuses(asked.status.as_deref())?,
        flow,
        account: asked.account,
        parent: asked.parent.as_deref().map(run_id).transpose()?,
        label: shape::label(asked.label),
        since: asked.since.map(|at| windlass_engine::time::Timestamp(at.0)),
        until: asked.until.map(|at| windlass_engine::time::Timestamp(at.0)),
        text: asked.q.filter(|text| !text.is_empty()),
        ..RunQuery::default()
    };
    let part = shape::part(asked.cursor, asked.limit)?;
    let selection = select(&app, asked.query.as_deref().unwrap_or_default(), base).await?;
    let page = app.runtime.runs().finder().selected(&selection, part).await?;
    let items = summaries(&app, &page.items).await?;
    Ok(Json(List { items, next: page.next.map(|next| next.as_str().to_owned()) }))
}

/// Rows as they are listed.
pub(super) async fn summaries(app: &App, rows: &[RunRow]) -> ApiResult<Vec<RunSummary>> {
    let mut items = Vec::with_capacity(rows.len());
    for row in rows {
        let label = app.label(row.origin.flow, row.origin.version).await?;
        items.push(shape::summary(row, &label));
    }
    Ok(items)
}

/// Reads a query; an error names the position in it.
pub(super) async fn select(app: &App, text: &str, base: RunQuery) -> ApiResult<RunSelection> {
    app.runtime.runs().finder().select(text, base).await.map_err(|error| match error {
        SelectError::Search(error) => {
            ApiError::field(Code::BadQuery, format!("?query:{}", error.position), error.reason)
        }
        SelectError::Runtime(error) => error.into(),
    })
}

/// Counts runs by status, up to 10,000 of each.
#[utoipa::path(get, path = "/api/v1/runs/counts", operation_id = "count_runs", tag = "runs", params(RunCountsQuery),
    responses((status = 200, description = "The numbers", body = RunCounts)))]
pub(crate) async fn counts(
    State(app): State<App>,
    QueryParams(asked): QueryParams<RunCountsQuery>,
) -> ApiResult<Json<RunCounts>> {
    let by = asked.by.unwrap_or_else(|| "status".to_owned());
    if by != "status" {
        let shown: String = by.chars().take(40).collect();
        return Err(ApiError::field(
            Code::BadQuery,
            "?by",
            format!("`{shown}` is no property: give `status`"),
        ));
    }
    let selection = select(&app, asked.query.as_deref().unwrap_or_default(), RunQuery::default()).await?;
    let mut counts = Vec::new();
    for status in RunStatus::ALL {
        let counted =
            app.runtime.runs().finder().count_selected(&selection.of_status(status), COUNTED_MAX).await?;
        let (count, more) = (counted.n as u64, counted.is_more);
        counts.push(CountedValue { value: status.word().to_owned(), count, more });
    }
    Ok(Json(RunCounts { by, counts, at: shape::time(app.runtime.clock().now()) }))
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
