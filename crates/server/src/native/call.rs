//! Reports about the ends of calls.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use windlass_engine::id::RunId;
use windlass_runtime::calls::log::Log;
use windlass_runtime::grant::GrantError;
use windlass_runtime::runs::{CallEnd, ReportError};
use windlass_sdk::contract::{CallReport, LeaseVerdict, ReportResponse};

use super::pull::ReportedOutcome;
use crate::app::App;
use crate::check;
use crate::extract::{JsonBody, PathParams};
use crate::problem::{ApiError, ApiResult, Code};

/// Reports the end of a call that was suspended, or that a push worker accepted. The same report sent again is `ok`
/// again. `lost`: the call belongs to another attempt now, or has ended.
#[utoipa::path(post, path = "/api/v1/calls/{id}/report", operation_id = "report_call", tag = "jobs", request_body = CallReport,
    params(("id" = String, Path, description = "The id of the call, as its worker was told: `<run>.<fence>.<signature>`")),
    responses((status = 200, description = "The verdict on the report", body = ReportResponse)))]
pub(crate) async fn report(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    JsonBody(report): JsonBody<CallReport>,
) -> ApiResult<Json<ReportResponse>> {
    let CallReport { outcome, result, error, retryable, memo, recheck_ms, temporary, worker_id, logs } =
        report;
    check::name_if_given("worker_id", worker_id.as_deref())?;
    let outcome = ReportedOutcome { outcome, result, error, retryable, temporary, memo, recheck_ms }
        .into_outcome("")?
        .map_result(Arc::new);
    let (run, fence) = match app.runtime.grants().check(&id, |run| run.parse::<RunId>().ok()) {
        Ok(grant) => grant,
        Err(GrantError::Unreadable) => return Err(unknown(&id)),
        Err(GrantError::Forged) => return Ok(Json(ReportResponse { id, verdict: LeaseVerdict::Lost })),
    };
    let end = CallEnd { run, fence, outcome, worker: worker_id, log: Log::read(None, logs) };
    let is_accepted = match app.runtime.runs().report_call(end).await {
        Ok(is_accepted) => is_accepted,
        // Only a missing run makes the call unknown: other errors are answered as such, and the report is sent again.
        Err(ReportError::UnknownRun(_)) => return Err(unknown(&id)),
        Err(error @ ReportError::NotReportable(_)) => {
            return Err(ApiError::new(Code::NotWaiting, error.to_string()));
        }
        Err(ReportError::Submit(error)) => return Err(error.into()),
    };
    Ok(Json(ReportResponse { id, verdict: if is_accepted { LeaseVerdict::Ok } else { LeaseVerdict::Lost } }))
}

fn unknown(id: &str) -> ApiError {
    let shown: String = id.chars().take(120).collect();
    ApiError::new(
        Code::UnknownCall,
        format!(
            "there is no call `{shown}`: send the whole id that its worker got, `<run>.<fence>.<signature>`"
        ),
    )
}
