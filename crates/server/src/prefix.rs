//! Ids by their beginning: `/api/v1/runs/run_0190a1…` may be cut, as long as one run alone has an id that begins so. The
//! path is completed before the router sees it, so that every handler, and the audit, has the whole id.

use axum::extract::{Request, State};
use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use windlass_engine::access::Permission;
use windlass_engine::id::RunId;
use windlass_sdk::contract::FieldError;

use crate::access::Caller;
use crate::app::App;
use crate::problem::{ApiError, ApiResult, Code};

const RUNS: &str = "/api/v1/runs/";
/// Digits of a beginning at least.
const DIGITS_MIN: usize = 4;
/// Matches that an error names.
const SHOWN_MAX: usize = 5;

/// Completes the id in the path, if it is the beginning of one.
pub(crate) async fn complete(State(app): State<App>, mut request: Request, next: Next) -> Response {
    // Ids are told to callers that may read them.
    let may_read =
        request.extensions().get::<Caller>().is_some_and(|caller| caller.require(Permission::Read).is_ok());
    if !may_read {
        return next.run(request).await;
    }
    let uri = match completed(&app, request.uri()).await {
        Ok(Some(uri)) => uri,
        Ok(None) => return next.run(request).await,
        Err(error) => return error.into_response(),
    };
    *request.uri_mut() = uri;
    next.run(request).await
}

/// The path with the whole id; `None` = it stays as it is.
async fn completed(app: &App, uri: &Uri) -> ApiResult<Option<Uri>> {
    let Some(rest) = uri.path().strip_prefix(RUNS) else { return Ok(None) };
    let (beginning, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let digits = beginning.strip_prefix("run_").unwrap_or(beginning);
    let is_beginning = beginning.parse::<RunId>().is_err()
        && digits.len() >= DIGITS_MIN
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_beginning {
        return Ok(None);
    }
    let found = app.runtime.runs().finder().with_prefix(beginning, SHOWN_MAX).await?;
    let run = match &found[..] {
        [] => return Ok(None),
        [row] => row.id,
        several => {
            let detail = format!("several runs have an id that begins with `{beginning}`: give more digits");
            let error = |id: RunId| FieldError { path: "id".to_owned(), reason: id.to_string(), hint: None };
            let error = several
                .iter()
                .map(|row| error(row.id))
                .fold(ApiError::new(Code::AmbiguousId, detail), ApiError::with);
            return Err(error);
        }
    };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(format!("{RUNS}{run}{tail}{query}")).ok();
    Ok(Uri::from_parts(parts).ok())
}
