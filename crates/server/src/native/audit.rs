//! The audit log, its head and the check of its hash chain.

use axum::Json;
use axum::extract::State;
use windlass_engine::counter::Seq;
use windlass_engine::problem::did_you_mean;
use windlass_runtime::audit::AuditCheck;
use windlass_sdk::contract::{
    AuditBreak, AuditHead, AuditLine, AuditListQuery, AuditVerification, AuditVerifyQuery, List,
};
use windlass_store::audit::{AuditHead as StoredHead, AuditQuery as StoredQuery};

use crate::app::App;
use crate::audit::words;
use crate::extract::QueryParams;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Lists requested changes, newest first.
#[utoipa::path(get, path = "/api/v1/audit", operation_id = "show_audit", tag = "server", params(AuditListQuery),
    responses((status = 200, description = "A page of the audit", body = List<AuditLine>)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<AuditListQuery>,
) -> ApiResult<Json<List<AuditLine>>> {
    let limit = shape::limit(asked.limit)?;
    let query = StoredQuery {
        who: asked.who,
        what: asked.what.map(known).transpose()?,
        subject: asked.subject,
        order: shape::order(asked.order),
        after: Seq(shape::counted(asked.cursor.as_deref())?),
        limit,
    };
    let rows = app.store().audit(app.project(), query).await?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|line| line.seq.to_string());
    Ok(Json(List { items: rows.into_iter().map(shape::audit_line).collect(), next }))
}

/// The last line of the audit. A copy in another place proves later that no line up to it was changed or deleted.
#[utoipa::path(get, path = "/api/v1/audit/head", operation_id = "show_audit_head", tag = "server",
    responses((status = 200, description = "The last line", body = AuditHead)))]
pub(crate) async fn head(State(app): State<App>) -> ApiResult<Json<AuditHead>> {
    Ok(Json(shape::audit_head(app.store().audit_head(app.project()).await?)))
}

/// Checks that all lines of the audit are as they were written. It reads them all: about a second for 100,000 lines.
#[utoipa::path(get, path = "/api/v1/audit/verify", operation_id = "verify_audit", tag = "server",
    params(AuditVerifyQuery),
    responses((status = 200, description = "Whether the audit is intact, and where it is not", body = AuditVerification)))]
pub(crate) async fn verify(
    State(app): State<App>,
    QueryParams(asked): QueryParams<AuditVerifyQuery>,
) -> ApiResult<Json<AuditVerification>> {
    let kept = asked.head.as_deref().map(kept_head).transpose()?;
    let check = AuditCheck::of(&app.runtime, kept.as_slice()).await?;
    let seq = check.intact.0;
    let broken = check.broken.map(|reason| AuditBreak { seq: seq + 1, reason: reason.to_owned() });
    Ok(Json(AuditVerification { intact: seq, head: shape::audit_head(check.head), broken }))
}

/// A head as a caller kept it: `<seq>:<hash>`.
fn kept_head(text: &str) -> ApiResult<StoredHead> {
    let head = text
        .split_once(':')
        .and_then(|(seq, hash)| Some(StoredHead { seq: Seq(seq.parse().ok()?), hash: hash.parse().ok()? }));
    let reason = "a head is `<seq>:<hash>`, with the hash as 64 hexadecimal digits, as `windlass audit head` prints it";
    head.ok_or_else(|| ApiError::field(Code::BadQuery, "?head", reason))
}

/// The name of a change. A misspelled name is refused: an empty list would look as if nothing had been done.
fn known(what: String) -> ApiResult<String> {
    if words().contains(what.as_str()) {
        return Ok(what);
    }
    let shown: String = what.chars().take(80).collect();
    let reason = format!("no change is called `{shown}`: docs/audit.md lists them");
    let hint = did_you_mean(&shown, words());
    Err(ApiError::field(Code::BadQuery, "?what", reason).hint(hint))
}
