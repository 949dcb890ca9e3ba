//! Actions on runs. Each answers with the run when the decision is durable.

use axum::Json;
use axum::extract::State;
use windlass_engine::input::Input;
use windlass_engine::money::Amount;
use windlass_sdk::contract::{Budget, Cancel, Continue, Decide, NoBody, RunSummary, Signal};

use crate::access::Caller;
use crate::app::{App, run_id};
use crate::check;
use crate::extract::{JsonBody, PathParams};
use crate::problem::ApiResult;
use crate::shape;

pub(super) async fn tell(app: &App, id: &str, input: Input) -> ApiResult<Json<RunSummary>> {
    let run = run_id(id)?;
    app.runtime.runs().submit(run, input).await?;
    let row = app.row(run).await?;
    let label = app.label(row.origin.flow, row.origin.version).await?;
    Ok(Json(shape::summary(&row, &label)))
}

/// Cancels a run: open calls are told to stop, and the run ends even if they do not.
#[utoipa::path(post, path = "/api/v1/runs/{id}/cancel", operation_id = "cancel_run", tag = "runs", request_body = Cancel,
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "The run", body = RunSummary)))]
pub(crate) async fn cancel(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    caller: Caller,
    JsonBody(body): JsonBody<Cancel>,
) -> ApiResult<Json<RunSummary>> {
    check::text("reason", body.reason.as_deref().unwrap_or_default())?;
    check::name_if_given("by", body.by.as_deref())?;
    tell(&app, &id, Input::Cancel { reason: body.reason, by: caller.name_or(body.by) }).await
}

/// Pauses a run: no further node is entered.
#[utoipa::path(post, path = "/api/v1/runs/{id}/pause", operation_id = "pause_run", tag = "runs", request_body = NoBody,
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "The run", body = RunSummary)))]
pub(crate) async fn pause(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    JsonBody(NoBody {}): JsonBody<NoBody>,
) -> ApiResult<Json<RunSummary>> {
    tell(&app, &id, Input::Pause).await
}

/// Resumes a paused run.
#[utoipa::path(post, path = "/api/v1/runs/{id}/resume", operation_id = "resume_run", tag = "runs", request_body = NoBody,
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "The run", body = RunSummary)))]
pub(crate) async fn resume(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    JsonBody(NoBody {}): JsonBody<NoBody>,
) -> ApiResult<Json<RunSummary>> {
    tell(&app, &id, Input::Resume).await
}

/// Enters one more node of a run that is paused or advanced by hand.
#[utoipa::path(post, path = "/api/v1/runs/{id}/step", operation_id = "step_run", tag = "runs", request_body = NoBody,
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "The run", body = RunSummary)))]
pub(crate) async fn step(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    JsonBody(NoBody {}): JsonBody<NoBody>,
) -> ApiResult<Json<RunSummary>> {
    tell(&app, &id, Input::Step).await
}

/// Ends a suspended or waiting node with a result.
#[utoipa::path(post, path = "/api/v1/runs/{id}/continue", operation_id = "continue_node", tag = "runs", request_body = Continue,
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "The run", body = RunSummary)))]
pub(crate) async fn continue_node(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    JsonBody(body): JsonBody<Continue>,
) -> ApiResult<Json<RunSummary>> {
    tell(&app, &id, Input::Continue { node: body.node.as_str().into(), value: body.result }).await
}

/// Gives a run a value from outside.
#[utoipa::path(post, path = "/api/v1/runs/{id}/signal", operation_id = "signal_run", tag = "runs", request_body = Signal,
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "The run", body = RunSummary)))]
pub(crate) async fn signal(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    caller: Caller,
    JsonBody(body): JsonBody<Signal>,
) -> ApiResult<Json<RunSummary>> {
    check::name("key", &body.key)?;
    check::name_if_given("id", body.id.as_deref())?;
    check::name_if_given("by", body.by.as_deref())?;
    let by = caller.name_or(body.by);
    tell(&app, &id, Input::Signal { id: body.id, key: body.key, value: body.value, by }).await
}

/// Sets the budget of a run. Calls that wait for a larger budget are decided again.
#[utoipa::path(post, path = "/api/v1/runs/{id}/budget", operation_id = "set_budget", tag = "runs", request_body = Budget,
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "The run", body = RunSummary)))]
pub(crate) async fn budget(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    JsonBody(Budget { budget }): JsonBody<Budget>,
) -> ApiResult<Json<RunSummary>> {
    check::within("budget", budget, 0, i64::MAX)?;
    tell(&app, &id, Input::BalanceChanged { budget: Some(Amount(budget)), balance: None }).await
}

/// Decides an approval.
#[utoipa::path(post, path = "/api/v1/runs/{id}/decide", operation_id = "decide_approval", tag = "runs", request_body = Decide,
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "The run", body = RunSummary)))]
pub(crate) async fn decide(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    caller: Caller,
    JsonBody(body): JsonBody<Decide>,
) -> ApiResult<Json<RunSummary>> {
    check::text("comment", body.comment.as_deref().unwrap_or_default())?;
    check::name_if_given("by", body.by.as_deref())?;
    let node = body.node.as_deref().map(Into::into);
    // The assignees of an approval are compared with the name of the key, not with the word of the request.
    let by = caller.name_or(body.by);
    let input = Input::Decide { node, decision: body.decision, by, comment: body.comment };
    tell(&app, &id, input).await
}
