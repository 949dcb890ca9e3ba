//! Bulk actions: one action on many runs.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use windlass_engine::id::{BulkId, RunId};
use windlass_runtime::bulks::{BulkChoice, BulkInput, TARGETS_MAX};
use windlass_sdk::contract::{
    BulkAccepted, BulkAction, BulkAnswer, BulkDryRun, BulkFailureInfo, BulkInfo, BulkKind, BulkOutcomes,
    BulkRequest, BulkStatus, List, NoBody, PageQuery,
};
use windlass_store::bulk::{BulkRow, BulkSpec, BulkStatus as StoredStatus};
use windlass_store::run::RunQuery;

use super::run::select;
use crate::access::Caller;
use crate::app::{App, run_id};
use crate::audit;
use crate::check;
use crate::extract::{JsonBody, PathParams, QueryParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Ids in one request.
const IDS_MAX: usize = 10_000;
/// Runs that a dry run names.
const SAMPLE_MAX: usize = 20;

/// Begins an action on many runs, which goes on after the answer, and after a restart. With `dry_run` nothing is changed.
#[utoipa::path(post, path = "/api/v1/bulk", operation_id = "create_bulk", tag = "runs", request_body = BulkRequest,
    responses((status = 202, description = "The action was stored and has begun", body = BulkAccepted),
        (status = 200, description = "The effect that it would have", body = BulkDryRun)))]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(asked): JsonBody<BulkRequest>,
) -> ApiResult<Response> {
    check::text("reason", &asked.reason)?;
    let args = serde_json::to_value(&asked.args).unwrap_or_default();
    let spec = BulkSpec {
        action: asked.action.word().to_owned(),
        args,
        query: asked.query.clone(),
        reason: asked.reason,
        actor: caller.name_or(audit::actor_of(&headers)?).unwrap_or_default(),
    };
    let input = BulkInput::of(&spec).map_err(|reason| ApiError::field(Code::InvalidBody, "args", reason))?;
    check_args(&asked.args, asked.action)?;
    let choice = choose(&app, asked.query.as_deref(), asked.ids.as_deref()).await?;
    if asked.dry_run {
        return Ok(Json(BulkAnswer::DryRun(dry_run(&choice, &input))).into_response());
    }
    if choice.is_more {
        let detail =
            format!("more than {TARGETS_MAX} runs match: narrow the query, for example with `before:`");
        return Err(ApiError::field(Code::BulkTooLarge, "query", detail));
    }
    let row = app.runtime.bulks().create(spec, choice.targets).await?;
    let accepted = BulkAccepted { id: row.id.to_string(), matched: row.state.matched };
    let made = audit::made(&accepted.id);
    Ok((StatusCode::ACCEPTED, made, Json(BulkAnswer::Accepted(accepted))).into_response())
}

/// Refuses arguments that the action does not read.
fn check_args(args: &windlass_sdk::contract::BulkArgs, action: BulkAction) -> ApiResult<()> {
    let (is_rerun, is_signal) = (action == BulkAction::Rerun, action == BulkAction::Signal);
    for (name, is_given, is_read) in [
        ("from", args.from.is_some(), is_rerun),
        ("shared", args.shared.is_some(), is_rerun),
        ("key", args.key.is_some(), is_signal),
        ("value", args.value.is_some(), is_signal),
    ] {
        if is_given && !is_read {
            let reason = format!("the action `{}` does not read it: leave it out", action.word());
            return Err(ApiError::field(Code::InvalidBody, format!("args.{name}"), reason));
        }
    }
    if let Some(key) = &args.key {
        check::name("args.key", key)?;
    }
    Ok(())
}

async fn choose(app: &App, query: Option<&str>, ids: Option<&[String]>) -> ApiResult<BulkChoice> {
    let wrong = |path, reason: &str| Err(ApiError::field(Code::InvalidBody, path, reason));
    match (query, ids) {
        (Some(query), None) => {
            let selection = select(app, query, RunQuery::default()).await?;
            Ok(app.runtime.bulks().choose(&selection).await?)
        }
        (None, Some([])) => wrong("ids", "it is empty: name at least one run"),
        (None, Some(ids)) if ids.len() > IDS_MAX => {
            wrong("ids", "there are more than 10,000: give a `query`")
        }
        (None, Some(ids)) => {
            let runs = ids.iter().map(|id| run_id(id)).collect::<ApiResult<Vec<RunId>>>()?;
            match app.runtime.bulks().choose_ids(&runs).await? {
                Ok(choice) => Ok(choice),
                Err(unknown) => {
                    let detail = format!("there is no run `{unknown}`: nothing was changed");
                    Err(ApiError::field(Code::UnknownRun, "ids", detail))
                }
            }
        }
        (Some(_), Some(_)) => wrong("ids", "there is a `query` too: give one of the two"),
        (None, None) => wrong("query", "name the runs: give `query` or `ids`"),
    }
}

fn dry_run(choice: &BulkChoice, input: &BulkInput) -> BulkDryRun {
    let mut outcomes = BulkOutcomes::default();
    for (status, n) in &choice.by_status {
        *(if input.fits(*status) { &mut outcomes.apply } else { &mut outcomes.refuse }) += n;
    }
    BulkDryRun {
        dry_run: true,
        matched: choice.targets.len() as u64,
        more: choice.is_more,
        outcomes,
        by_status: choice.by_status.iter().map(|(status, n)| (status.word().to_owned(), *n)).collect(),
        sample: choice.targets.iter().take(SAMPLE_MAX).map(|target| target.run.to_string()).collect(),
    }
}

/// Lists bulk actions, newest first. They are kept for 7 days after their end.
#[utoipa::path(get, path = "/api/v1/bulk", operation_id = "list_bulks", tag = "runs", params(PageQuery),
    responses((status = 200, description = "A page of bulk actions", body = List<BulkInfo>)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<PageQuery>,
) -> ApiResult<Json<List<BulkInfo>>> {
    let limit = shape::limit(asked.limit)?;
    let before = match asked.cursor.as_deref().map(str::parse::<BulkId>) {
        None => None,
        Some(Ok(before)) => Some(before),
        Some(Err(_)) => {
            return Err(ApiError::new(
                Code::BadCursor,
                "the cursor is not one of this list: ask again without it",
            ));
        }
    };
    let mut rows = app.runtime.bulks().list(before, limit + 1).await?;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(|row| row.id.to_string());
    Ok(Json(List { items: rows.iter().map(bulk).collect(), next }))
}

/// Shows a bulk action with its progress and its failures.
#[utoipa::path(get, path = "/api/v1/bulk/{id}", operation_id = "show_bulk", tag = "runs",
    params(("id" = String, Path, description = "The id of the bulk action")),
    responses((status = 200, description = "The bulk action", body = BulkInfo)))]
pub(crate) async fn show(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
) -> ApiResult<Json<BulkInfo>> {
    info(&app, bulk_id(&id)?).await.map(Json)
}

/// Ends a bulk action: no further run takes it.
#[utoipa::path(post, path = "/api/v1/bulk/{id}/cancel", operation_id = "cancel_bulk", tag = "runs", request_body = NoBody,
    params(("id" = String, Path, description = "The id of the bulk action")),
    responses((status = 200, description = "The bulk action", body = BulkInfo)))]
pub(crate) async fn cancel(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    JsonBody(NoBody {}): JsonBody<NoBody>,
) -> ApiResult<Json<BulkInfo>> {
    let id = bulk_id(&id)?;
    app.runtime.bulks().cancel(id).await?.ok_or_else(|| unknown(&id.to_string()))?;
    info(&app, id).await.map(Json)
}

/// A bulk action with its failures.
pub(crate) async fn info(app: &App, id: BulkId) -> ApiResult<BulkInfo> {
    let row = app.runtime.bulks().show(id).await?.ok_or_else(|| unknown(&id.to_string()))?;
    let failures = if row.state.failed > 0 { app.runtime.bulks().failures(id).await? } else { Vec::new() };
    let more_failures = (failures.len() as u64) < row.state.failed;
    let failures = failures
        .into_iter()
        .map(|failure| BulkFailureInfo {
            id: failure.run.to_string(),
            code: failure.code,
            message: failure.message,
        })
        .collect();
    Ok(BulkInfo { failures, more_failures, ..bulk(&row) })
}

fn bulk(row: &BulkRow) -> BulkInfo {
    let state = &row.state;
    let action = BulkAction::ALL.into_iter().find(|action| action.word() == state.spec.action);
    BulkInfo {
        id: row.id.to_string(),
        kind: BulkKind::Runs,
        action: action.unwrap_or_default(),
        query: state.spec.query.clone(),
        args: serde_json::from_value(state.spec.args.clone()).unwrap_or_default(),
        reason: state.spec.reason.clone(),
        actor: state.spec.actor.clone(),
        status: match state.status {
            StoredStatus::Running => BulkStatus::Running,
            StoredStatus::Completed => BulkStatus::Completed,
            StoredStatus::Canceled => BulkStatus::Canceled,
        },
        matched: state.matched,
        done: state.done,
        succeeded: state.succeeded,
        failed: state.failed,
        created_at: shape::time(state.created_at),
        updated_at: shape::time(state.updated_at),
        ended_at: row.ended_at.map(shape::time),
        failures: Vec::new(),
        more_failures: false,
    }
}

fn bulk_id(text: &str) -> ApiResult<BulkId> {
    text.parse().map_err(|_| unknown(text))
}

fn unknown(text: &str) -> ApiError {
    let shown: String = text.chars().take(80).collect();
    let detail = format!("there is no bulk action `{shown}`: list them with GET /api/v1/bulk");
    ApiError::new(Code::UnknownBulk, detail)
}
