//! API keys.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use windlass_engine::access::api_key::{ApiKey, ApiKeyId};
use windlass_engine::access::identity::{KeyRights, WorkScope};
use windlass_engine::time::Timestamp;
use windlass_runtime::access::NewApiKey;
use windlass_sdk::contract::{KeyInfo, KeyMade, List, NewKey, NoBody, PageQuery, RotateKey};
use windlass_store::api_key::ApiKeyRow;

use crate::access::Caller;
use crate::app::App;
use crate::audit;
use crate::check;
use crate::extract::{JsonBody, PathParams, QueryParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Services, and queues, of one key.
const NAMES_MAX: usize = 1_000;
/// How long a rotated key stays valid unless the request says otherwise, and at most.
const GRACE_MS: u64 = 86_400_000;
const GRACE_MS_MAX: u64 = 30 * GRACE_MS;

/// Lists keys by id, ended ones included, without their secrets.
#[utoipa::path(get, path = "/api/v1/keys", operation_id = "list_keys", tag = "keys", params(PageQuery),
    responses((status = 200, description = "A page of keys", body = List<KeyInfo>)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<PageQuery>,
) -> ApiResult<Json<List<KeyInfo>>> {
    let limit = shape::limit(asked.limit)?;
    let after = asked.cursor.map(|cursor| {
        let wrong =
            || ApiError::new(Code::BadCursor, "the cursor is not one of this list: ask again without it");
        cursor.parse::<ApiKeyId>().map_err(|_| wrong())
    });
    let rows = app.runtime.access().list(after.transpose()?, limit).await?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|last| last.id.to_string());
    Ok(Json(List { items: rows.into_iter().map(shape::key).collect(), next }))
}

/// Makes a key. Its text is in this answer and nowhere else. The first key closes an open server: from then on every
/// request needs a key.
#[utoipa::path(post, path = "/api/v1/keys", operation_id = "create_key", tag = "keys", request_body = NewKey,
    responses((status = 201, description = "The key, with its text", body = KeyMade)))]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(new): JsonBody<NewKey>,
) -> ApiResult<impl IntoResponse> {
    check::visible_name("name", &new.name)?;
    for (field, names) in [("services", &new.services), ("queues", &new.queues)] {
        check::within(field, names.len(), 0, NAMES_MAX)?;
        names.iter().try_for_each(|name| check::name(field, name))?;
    }
    let expires_at = new.expires_at.map(|at| Timestamp(at.0));
    if expires_at.is_some_and(|at| at <= app.runtime.clock().now()) {
        let reason = "it is in the past: name a time to come, or leave it out";
        return Err(ApiError::field(Code::InvalidBody, "expires_at", reason));
    }
    let scope =
        WorkScope { services: new.services.into_iter().collect(), queues: new.queues.into_iter().collect() };
    let rights = KeyRights { role: shape::role(new.role), may_script: new.scripts, scope };
    let rights =
        rights.checked().map_err(|(field, reason)| ApiError::field(Code::InvalidBody, field, reason))?;
    let created_by = creator(&caller, &headers)?;
    let new = NewApiKey { name: new.name, rights, expires_at, created_by };
    Ok(made(app.runtime.access().create(new).await?))
}

/// Ends a key at once; on other servers of the store within a second. Revoking it again is a no-op.
#[utoipa::path(post, path = "/api/v1/keys/{id}/revoke", operation_id = "revoke_key", tag = "keys", request_body = NoBody,
    params(("id" = String, Path, description = "The id of the key")),
    responses((status = 200, description = "The key", body = KeyInfo)))]
pub(crate) async fn revoke(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    JsonBody(NoBody {}): JsonBody<NoBody>,
) -> ApiResult<Json<KeyInfo>> {
    let key = key_id(&id)?;
    if !app.runtime.access().revoke(key).await? {
        return Err(unknown(&id));
    }
    let row = app.runtime.access().show(key).await?;
    row.map(|row| Json(shape::key(row))).ok_or_else(|| unknown(&id))
}

/// Makes the successor of a key with the same rights. The old key stays valid for a grace period.
#[utoipa::path(post, path = "/api/v1/keys/{id}/rotate", operation_id = "rotate_key", tag = "keys", request_body = RotateKey,
    params(("id" = String, Path, description = "The id of the key")),
    responses((status = 201, description = "The new key, with its text", body = KeyMade)))]
pub(crate) async fn rotate(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(RotateKey { grace_ms }): JsonBody<RotateKey>,
) -> ApiResult<impl IntoResponse> {
    let grace = check::within("grace_ms", grace_ms.unwrap_or(GRACE_MS), 0, GRACE_MS_MAX)?;
    let by = creator(&caller, &headers)?;
    let rotated = app.runtime.access().rotate(key_id(&id)?, Duration::from_millis(grace), by).await?;
    rotated.map(made).ok_or_else(|| unknown(&id))
}

fn creator(caller: &Caller, headers: &HeaderMap) -> ApiResult<String> {
    Ok(caller.name_or(audit::actor_of(headers)?).unwrap_or_else(|| audit::NOBODY.to_owned()))
}

fn made((key, row): (ApiKey, ApiKeyRow)) -> impl IntoResponse {
    let id = audit::made(row.id.as_str());
    (StatusCode::CREATED, id, Json(KeyMade { key: key.reveal().to_owned(), info: shape::key(row) }))
}

fn key_id(text: &str) -> ApiResult<ApiKeyId> {
    text.parse().map_err(|_| unknown(text))
}

fn unknown(id: &str) -> ApiError {
    // A whole key may stand where an id is expected: the answer must not repeat it.
    let shown: String = id.chars().take(8).collect();
    ApiError::new(
        Code::UnknownKey,
        format!("there is no live key `{shown}`: list keys with GET /api/v1/keys"),
    )
}
