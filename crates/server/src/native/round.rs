//! New rounds of a run that has ended, with dry runs; states of a run at an entry of its journal, and their differences.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value};
use windlass_engine::counter::Seq;
use windlass_engine::input::{Given, Input};
use windlass_engine::run::EstimateInputs;
use windlass_sdk::contract::{
    DryRunQuery, NoBody, RerunRequest, RoundAnswer, RunState, StateDiff, StateDiffQuery, StateQuery,
};

use super::action::tell;
use super::definition::run_blocking;
use super::diff::differences;
use crate::app::{App, run_id};
use crate::extract::{JsonBody, PathParams, QueryParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Fields of a state that name its entry or never change: a diff leaves them out.
const ASIDE: [&str; 6] = ["id", "at", "len", "time", "params", "more_nodes"];

/// Tries failed and canceled nodes of a run that has ended again; finished ones are kept.
#[utoipa::path(post, path = "/api/v1/runs/{id}/retry", operation_id = "retry_run", tag = "runs", request_body = NoBody,
    params(("id" = String, Path, description = "The id of the run"), DryRunQuery),
    responses((status = 200, description = "The run; with `dry_run`, the effect it would have", body = RoundAnswer)))]
pub(crate) async fn retry(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(asked): QueryParams<DryRunQuery>,
    JsonBody(NoBody {}): JsonBody<NoBody>,
) -> ApiResult<Json<RoundAnswer>> {
    open(&app, &id, asked, Input::Retry).await
}

/// Runs from a node on again, optionally with another shared state.
#[utoipa::path(post, path = "/api/v1/runs/{id}/rerun", operation_id = "rerun_run", tag = "runs", request_body = RerunRequest,
    params(("id" = String, Path, description = "The id of the run"), DryRunQuery),
    responses((status = 200, description = "The run; with `dry_run`, the effect it would have", body = RoundAnswer)))]
pub(crate) async fn rerun(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(asked): QueryParams<DryRunQuery>,
    JsonBody(body): JsonBody<RerunRequest>,
) -> ApiResult<Json<RoundAnswer>> {
    let input = Input::Rerun { from: body.from.as_str().into(), shared: body.shared };
    open(&app, &id, asked, input).await
}

async fn open(app: &App, id: &str, asked: DryRunQuery, input: Input) -> ApiResult<Json<RoundAnswer>> {
    if !asked.dry_run {
        let Json(run) = tell(app, id, input).await?;
        return Ok(Json(RoundAnswer::Run(Box::new(run))));
    }
    let view = app.view(run_id(id)?).await?;
    let now = app.runtime.clock().now();
    let (view, input) = (Arc::new(view), Arc::new(input));
    let report_with = async |inputs: EstimateInputs| {
        let (view, input) = (view.clone(), input.clone());
        run_blocking(move || view.state.dry_run(&view.plan, &input, &Given::at(now), &inputs)).await
    };
    let mut report = report_with(EstimateInputs::default()).await??;
    if !report.children.is_empty() {
        report = report_with(app.runtime.runs().estimate_inputs(&report.children).await?).await??;
    }
    Ok(Json(RoundAnswer::DryRun(shape::dry_run(id, report))))
}

/// Shows a run as it was after so many entries of its journal.
#[utoipa::path(get, path = "/api/v1/runs/{id}/state", operation_id = "show_run_state", tag = "runs",
    params(("id" = String, Path, description = "The id of the run"), StateQuery),
    responses((status = 200, description = "The run as it was then", body = RunState)))]
pub(crate) async fn state(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(asked): QueryParams<StateQuery>,
) -> ApiResult<Json<RunState>> {
    state_at(&app, &id, asked.at).await.map(Json)
}

/// Compares a run as it was after two entries of its journal.
#[utoipa::path(get, path = "/api/v1/runs/{id}/state/diff", operation_id = "compare_run_states", tag = "runs",
    params(("id" = String, Path, description = "The id of the run"), StateDiffQuery),
    responses((status = 200, description = "Every place that differs", body = StateDiff)))]
pub(crate) async fn state_diff(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(asked): QueryParams<StateDiffQuery>,
) -> ApiResult<Json<StateDiff>> {
    let after = state_at(&app, &id, asked.to).await?;
    let Some(from) = asked.from.or_else(|| after.at.checked_sub(1).filter(|from| *from > 0)) else {
        let detail = format!("there is nothing before entry {} of {}: name two entries", after.at, after.id);
        return Err(ApiError::new(Code::UnknownEntry, detail));
    };
    let before = state_at(&app, &id, Some(from)).await?;
    let (id, to, is_cut) = (after.id.clone(), after.at, before.more_nodes || after.more_nodes);
    let (changes, more) = run_blocking(move || differences(&fields(&before), &fields(&after))).await?;
    Ok(Json(StateDiff { id, from, to, changes, more: more || is_cut }))
}

async fn state_at(app: &App, id: &str, at: Option<u64>) -> ApiResult<RunState> {
    let run = run_id(id)?;
    let row = app.row(run).await?;
    let at = at.map_or(row.len, Seq);
    let missing = || {
        let detail = format!("the journal of {run} has {} entries: give 1 to {}", row.len, row.len);
        ApiError::new(Code::UnknownEntry, detail)
    };
    if at == Seq::ZERO || at > row.len {
        return Err(missing());
    }
    let view = app.runtime.runs().view_at(run, at).await?.ok_or_else(missing)?;
    Ok(shape::run_state(&view, at, &row))
}

/// The fields of a state that are compared.
fn fields(state: &RunState) -> Value {
    let all = serde_json::to_value(state).unwrap_or_default();
    let Value::Object(all) = all else { return all };
    Value::Object(all.into_iter().filter(|(key, _)| !ASIDE.contains(&key.as_str())).collect::<Map<_, _>>())
}
