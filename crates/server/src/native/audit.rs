//! The audit log.

use axum::Json;
use axum::extract::State;
use windlass_engine::counter::Seq;
use windlass_engine::problem::did_you_mean;
use windlass_sdk::contract::{AuditLine, AuditListQuery, List};
use windlass_store::audit::AuditQuery as StoredQuery;

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
    let next = rows.last().filter(|_| rows.len() == limit).map(|(seq, _)| seq.to_string());
    Ok(Json(List { items: rows.into_iter().map(shape::audit_line).collect(), next }))
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
