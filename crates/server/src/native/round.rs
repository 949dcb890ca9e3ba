//! New rounds of a run that has ended: done, or only told. And what changed between two moments of a run.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value};
use windlass_engine::input::{Given, Input};
use windlass_engine::run::Shelf;
use windlass_sdk::types::{
    NoBody, PlanQuery, Rerun, RoundAnswer, RunState, StateDiff, StateDiffQuery, StateQuery,
};

use super::action::tell;
use super::definition::aside;
use super::diff::differences;
use crate::app::{App, run_id};
use crate::extract::{Asked, At, Body};
use crate::problem::{Answer, ApiError, Code};
use crate::shape;

/// Fields of a state that say which moment it is of, not what the run was then, or that never change.
const ASIDE: [&str; 6] = ["id", "at", "len", "time", "params", "more_nodes"];

/// Tries failed and cancelled nodes of a run that has ended again; finished ones are kept.
#[utoipa::path(post, path = "/api/v1/runs/{id}/retry", operation_id = "retry_run", tag = "runs", request_body = NoBody,
    params(("id" = String, Path, description = "The id of the run"), PlanQuery),
    responses((status = 200, description = "The run; with `plan`, what would be done", body = RoundAnswer)))]
pub(crate) async fn retry(
    State(app): State<App>,
    At(id): At<String>,
    Asked(asked): Asked<PlanQuery>,
    Body(NoBody {}): Body<NoBody>,
) -> Answer<Json<RoundAnswer>> {
    open(&app, &id, asked, Input::Retry).await
}

/// Runs from a node on again, optionally with another shared state.
#[utoipa::path(post, path = "/api/v1/runs/{id}/rerun", operation_id = "rerun_run", tag = "runs", request_body = Rerun,
    params(("id" = String, Path, description = "The id of the run"), PlanQuery),
    responses((status = 200, description = "The run; with `plan`, what would be done", body = RoundAnswer)))]
pub(crate) async fn rerun(
    State(app): State<App>,
    At(id): At<String>,
    Asked(asked): Asked<PlanQuery>,
    Body(body): Body<Rerun>,
) -> Answer<Json<RoundAnswer>> {
    let input = Input::Rerun { from: body.from.as_str().into(), shared: body.shared };
    open(&app, &id, asked, input).await
}

async fn open(app: &App, id: &str, asked: PlanQuery, input: Input) -> Answer<Json<RoundAnswer>> {
    if !asked.plan {
        let Json(run) = tell(app, id, input).await?;
        return Ok(Json(RoundAnswer::Run(Box::new(run))));
    }
    let view = app.view(run_id(id)?).await?;
    let given = Given::at(app.runtime.clock().now());
    let (view, input) = (Arc::new(view), Arc::new(input));
    let told = async |shelf: Shelf| {
        let (view, input, given) = (view.clone(), input.clone(), given.clone());
        aside(move || view.state.preview(&view.plan, &input, &given, &shelf)).await
    };
    let mut preview = told(Shelf::default()).await??;
    if !preview.questions.is_empty() {
        preview = told(app.runtime.shelf(&preview.questions).await?).await??;
    }
    Ok(Json(RoundAnswer::Plan(shape::round_plan(id, preview))))
}

/// Shows a run as it was after so many entries of its journal.
#[utoipa::path(get, path = "/api/v1/runs/{id}/state", operation_id = "show_run_state", tag = "runs",
    params(("id" = String, Path, description = "The id of the run"), StateQuery),
    responses((status = 200, description = "The run as it was then", body = RunState)))]
pub(crate) async fn state(
    State(app): State<App>,
    At(id): At<String>,
    Asked(asked): Asked<StateQuery>,
) -> Answer<Json<RunState>> {
    state_at(&app, &id, asked.at).await.map(Json)
}

/// Compares a run as it was after two entries of its journal.
#[utoipa::path(get, path = "/api/v1/runs/{id}/state/diff", operation_id = "compare_run_states", tag = "runs",
    params(("id" = String, Path, description = "The id of the run"), StateDiffQuery),
    responses((status = 200, description = "Every place that differs", body = StateDiff)))]
pub(crate) async fn state_diff(
    State(app): State<App>,
    At(id): At<String>,
    Asked(asked): Asked<StateDiffQuery>,
) -> Answer<Json<StateDiff>> {
    let after = state_at(&app, &id, asked.to).await?;
    let Some(from) = asked.from.or_else(|| after.at.checked_sub(1).filter(|from| *from > 0)) else {
        let detail = format!("there is nothing before entry {} of {}: name two entries", after.at, after.id);
        return Err(ApiError::new(Code::UnknownEntry, detail));
    };
    let before = state_at(&app, &id, Some(from)).await?;
    let (id, to, is_cut) = (after.id.clone(), after.at, before.more_nodes || after.more_nodes);
    let (changes, more) = aside(move || differences(&fields(&before), &fields(&after))).await?;
    Ok(Json(StateDiff { id, from, to, changes, more: more || is_cut }))
}

async fn state_at(app: &App, id: &str, at: Option<u64>) -> Answer<RunState> {
    let run = run_id(id)?;
    let row = app.row(run).await?;
    let at = at.unwrap_or(row.len);
    let missing = || {
        let detail = format!("the journal of {run} has {} entries: give 1 to {}", row.len, row.len);
        ApiError::new(Code::UnknownEntry, detail)
    };
    if at == 0 || at > row.len {
        return Err(missing());
    }
    let view = app.runtime.view_at(run, at).await?.ok_or_else(missing)?;
    Ok(shape::run_state(&view, at, &row))
}

/// What of a state is compared.
fn fields(state: &RunState) -> Value {
    let all = serde_json::to_value(state).unwrap_or_default();
    let Value::Object(all) = all else { return all };
    Value::Object(all.into_iter().filter(|(key, _)| !ASIDE.contains(&key.as_str())).collect::<Map<_, _>>())
}
