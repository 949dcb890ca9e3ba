//! Errors as clients see them: `application/problem+json`, with a stable code each. The table of this file has all
//! codes, and `docs/errors.md` explains each of them.

mod map;

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use windlass_engine::problem::Problem as DefinitionProblem;
use windlass_engine::problem::Severity;
use windlass_sdk::contract::{FieldError, PlatformProblem, ProblemDetails};

use crate::platform::task_code;

macro_rules! codes {
    ($($name:ident, $word:literal, $status:literal, $title:literal;)*) => {
        /// The code of a problem, for programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $(#[doc = $title] $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// The word on the wire.
            pub fn word(self) -> &'static str {
                match self { $(Code::$name => $word,)* }
            }

            /// The HTTP status that goes with it.
            pub fn status(self) -> StatusCode {
                let status = match self { $(Code::$name => $status,)* };
                StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }

            /// The title of every problem with this code.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }
        }
    };
}

codes! {
    MalformedJson, "malformed_json", 400, "the body is not JSON";
    TooDeep, "too_deep", 400, "the body is nested too deeply";
    BadQuery, "bad_query", 400, "the query has a parameter that is unknown or wrong";
    BadPath, "bad_path", 400, "the path cannot be read";
    BadCursor, "bad_cursor", 400, "the cursor is not one of this list";
    BadHeader, "bad_header", 400, "a header cannot be read";
    InvalidFields, "invalid_fields", 400, "fields of the body are missing, wrong or unknown";
    Unauthenticated, "unauthenticated", 401, "the request has no valid API key";
    KeyExpired, "key_expired", 401, "the API key has expired";
    Forbidden, "forbidden", 403, "the API key lacks the permission";
    CrossOrigin, "cross_origin", 403, "a page of another origin may not ask for this";
    UnknownRoute, "unknown_route", 404, "there is nothing at this path";
    UnknownFlow, "unknown_flow", 404, "there is no such flow";
    UnknownVersion, "unknown_version", 404, "the flow has no such version";
    UnknownRun, "unknown_run", 404, "there is no such run";
    UnknownBulk, "unknown_bulk", 404, "there is no such bulk action";
    UnknownCall, "unknown_call", 404, "there is no such call";
    UnknownEntry, "unknown_entry", 404, "the journal has no such entry";
    UnknownJob, "unknown_job", 404, "there is no such job";
    UnknownTask, "unknown_task", 404, "there is no such task";
    UnknownSchedule, "unknown_schedule", 404, "there is no such schedule";
    AccountNotFound, "account_not_found", 404, "there is no such account";
    UnknownPrice, "unknown_price", 404, "the service has no price";
    UnknownKey, "unknown_key", 404, "there is no such API key";
    UnknownWorker, "unknown_worker", 404, "there is no such worker";
    UnknownService, "unknown_service", 404, "the service has no workers and no settings";
    MethodNotAllowed, "method_not_allowed", 405, "the path does not take this method";
    SlowBody, "slow_body", 408, "the body came too slowly";
    NameTaken, "name_taken", 409, "another flow has the name";
    NumberTaken, "number_taken", 409, "another version has the number";
    RequestTaken, "request_taken", 409, "the request id was used for another body";
    NotTemplate, "not_template", 409, "the flow is no template";
    NotPublished, "not_published", 409, "the version cannot be started";
    NotStarted, "not_started", 409, "the run has not been started";
    AlreadyStarted, "already_started", 409, "the run was already started";
    RunEnded, "run_ended", 409, "the run has ended";
    RunOpen, "run_open", 409, "the run has not ended";
    RunCanceling, "run_canceling", 409, "the run is being canceled";
    JobEnded, "job_ended", 409, "the job has ended";
    JobOpen, "job_open", 409, "the job has not ended";
    JobOfRun, "job_of_run", 409, "the job belongs to a run";
    TaskEnded, "task_ended", 409, "the task has ended";
    TaskOpen, "task_open", 409, "the task has not ended";
    TaskOfRun, "task_of_run", 409, "the task belongs to a run";
    KeyTaken, "key_taken", 409, "another open job has the deduplication key";
    NotDeadLetter, "not_dead_letter", 409, "the job is no dead letter";
    AccountTaken, "account_taken", 409, "the account is there and has another name";
    DepositTaken, "deposit_taken", 409, "the key was used for a deposit of another amount";
    InsufficientBalance, "insufficient_balance", 409, "the account cannot pay for it";
    TooManyPrices, "too_many_prices", 409, "there are as many prices as there may be";
    StaleLease, "stale_lease", 409, "another worker has the call, or it has ended";
    WorkerLost, "worker_lost", 409, "another worker has the id of this one";
    NotWaiting, "not_waiting", 409, "the node does not wait for this";
    NoApproval, "no_approval", 409, "no approval is open";
    NotAssigned, "not_assigned", 409, "the approval is assigned to other people";
    NotRunYet, "not_run_yet", 409, "the node has not run yet";
    NothingToRetry, "nothing_to_retry", 409, "no node failed or was canceled";
    OfParent, "of_parent", 409, "the run spends from the budget of the run that called it";
    AmbiguousId, "ambiguous_id", 409, "several things have an id that begins so";
    Outdated, "outdated", 409, "another request decided it meanwhile";
    Conflict, "conflict", 409, "the stored data forbids it";
    TooLarge, "too_large", 413, "the body is too large";
    TooManyValues, "too_many_values", 413, "the values of the body would take too much memory";
    UnsupportedMedia, "unsupported_media", 415, "the body is encoded, or is not JSON in UTF-8";
    UnknownHost, "unknown_host", 421, "the server is not known under this host name";
    UnknownField, "unknown_field", 422, "the body has an unknown field";
    InvalidBody, "invalid_body", 422, "the body is not of the right shape";
    InvalidDefinition, "invalid_definition", 422, "the definition has errors";
    BulkTooLarge, "bulk_too_large", 422, "more runs match than one action may have";
    InvalidInput, "invalid_input", 422, "the input does not fit the flow";
    UnknownNode, "unknown_node", 422, "the run has no such node";
    WhichApproval, "which_approval", 422, "several approvals are open";
    ReservedKey, "reserved_key", 422, "the key cannot be written from outside";
    UnknownAccount, "unknown_account", 422, "there is no such account";
    Busy, "busy", 429, "too much work waits";
    OpenRunsFull, "open_runs_full", 429, "as many runs are open as may be";
    Internal, "internal", 500, "the server has a bug, or the stored data cannot be read";
    Draining, "draining", 503, "the server is shutting down";
    StoreUnavailable, "store_unavailable", 503, "the store cannot be reached";
}

/// Wrong places that are told in the text for people; programs get all of them.
const PLACES_IN_DETAIL: usize = 20;

/// An error response.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    code: Code,
    detail: String,
    errors: Vec<FieldError>,
    retry_after: Option<Duration>,
}

/// The result of a handler.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        ApiError { code, detail: detail.into(), errors: Vec::new(), retry_after: None }
    }

    /// One place of the request is wrong.
    pub(crate) fn field(code: Code, path: impl Into<String>, reason: impl Into<String>) -> Self {
        let (path, reason) = (path.into(), reason.into());
        let detail = if path.is_empty() { reason.clone() } else { format!("{path}: {reason}") };
        ApiError::new(code, detail).with(FieldError { path, reason, hint: None })
    }

    /// The same problem, with the place of the request that it is about.
    pub(crate) fn about(self, path: Option<&str>) -> Self {
        let Some(path) = path else { return self };
        let reason = self.detail.clone();
        self.with(FieldError { path: path.to_owned(), reason, hint: None })
    }

    /// A definition, or the input of a run, has these problems.
    pub(crate) fn problems(code: Code, problems: Vec<DefinitionProblem>) -> Self {
        let errors: Vec<FieldError> = problems
            .into_iter()
            .filter(|problem| problem.severity == Severity::Error)
            .map(|problem| FieldError { path: problem.path, reason: problem.reason, hint: problem.hint })
            .collect();
        let detail = match errors.as_slice() {
            [] => code.title().to_owned(),
            [one] => format!("{}: {}", one.path, one.reason),
            [one, rest @ ..] => format!("{}: {}; and {} more", one.path, one.reason, rest.len()),
        };
        ApiError { errors, ..ApiError::new(code, detail) }
    }

    pub(crate) fn with(mut self, error: FieldError) -> Self {
        self.errors.push(error);
        self
    }

    pub(crate) fn hint(mut self, hint: Option<String>) -> Self {
        if let Some(error) = self.errors.last_mut() {
            error.hint = hint;
        }
        self
    }

    /// Asks the client to retry after this time.
    pub(crate) fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// The same problem under another code.
    pub(crate) fn with_code(self, code: Code) -> Self {
        ApiError { code, ..self }
    }

    /// The same problem, with its places as another surface names them.
    pub(crate) fn with_places(mut self, place: impl Fn(&str) -> String) -> Self {
        for (n, error) in self.errors.iter_mut().enumerate() {
            let named = place(&error.path);
            if n == 0
                && let Some(rest) = self.detail.strip_prefix(&format!("{}: ", error.path))
            {
                self.detail = if named.is_empty() { rest.to_owned() } else { format!("{named}: {rest}") };
            }
            error.path = named;
        }
        self
    }

    /// The reasons of all places.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = &str> {
        self.errors.iter().map(|error| error.reason.as_str())
    }

    /// The body.
    pub(crate) fn problem(&self) -> ProblemDetails {
        ProblemDetails {
            kind: format!("/docs/errors#{}", self.code.word()),
            title: self.code.title().to_owned(),
            status: self.code.status().as_u16(),
            code: self.code.word().to_owned(),
            detail: self.detail.clone(),
            errors: self.errors.clone(),
        }
    }

    /// The response in the form of the scheduler surface. Problems of a body are always 400 there.
    pub(crate) fn plain(&self) -> Response {
        let body = serde_json::json!({ "error": self.detail });
        self.finish((self.status_of_old_surfaces(), axum::Json(body)).into_response())
    }

    /// The status on the surfaces that do not know 422.
    fn status_of_old_surfaces(&self) -> StatusCode {
        match self.code.status() {
            StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
            other => other,
        }
    }

    /// The response in the form of the queue platform surface: the text that its clients know, and the problem. Problems of
    /// a body are always 400 there.
    pub(crate) fn platform(&self) -> Response {
        self.clone().with_code(task_code(self.code)).platform_response()
    }

    fn platform_response(&self) -> Response {
        let status = self.status_of_old_surfaces();
        let problem = ProblemDetails { status: status.as_u16(), ..self.problem() };
        let body = PlatformProblem { error: self.sentence(), problem };
        self.finish((status, axum::Json(body)).into_response())
    }

    /// Everything that is wrong, in one line.
    fn sentence(&self) -> String {
        if self.errors.len() < 2 {
            return self.detail.clone();
        }
        let places = self
            .errors
            .iter()
            .take(PLACES_IN_DETAIL)
            .map(|error| format!("{}: {}", error.path, error.reason));
        let mut sentence = places.collect::<Vec<_>>().join("; ");
        if self.errors.len() > PLACES_IN_DETAIL {
            sentence.push_str(&format!("; and {} more", self.errors.len() - PLACES_IN_DETAIL));
        }
        sentence
    }

    fn finish(&self, mut response: Response) -> Response {
        // The audit log reads the code from here, in every form.
        response.extensions_mut().insert(self.code);
        if response.status() == StatusCode::UNAUTHORIZED {
            // Never Basic: browsers would ask people for a password and keep it.
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.code.status(), axum::Json(self.problem())).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        let mut response = self.finish(response);
        // The guard rewrites the response in the form of the client's surface.
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_has_its_place_in_the_document_and_the_document_has_no_other() {
        let document = include_str!("../../../docs/errors.md");
        let explained: BTreeSet<&str> =
            document.lines().filter_map(|line| line.strip_prefix("## ")).map(str::trim).collect();
        let codes: BTreeSet<&str> = Code::ALL.iter().map(|code| code.word()).collect();
        assert_eq!(codes.len(), Code::ALL.len(), "two codes share a word");
        assert_eq!(explained, codes);
    }

    #[test]
    fn the_time_to_come_back_is_never_nothing() {
        for (after, seconds) in [(0, "1"), (10, "1"), (1_000, "1"), (1_001, "2")] {
            let error = ApiError::new(Code::Busy, "").retry_after(Duration::from_millis(after));
            let response = error.into_response();
            assert_eq!(response.headers()[RETRY_AFTER], seconds);
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        }
    }
}
