//! Errors of the surface: `{"error": "text"}`. Only this file maps errors to statuses.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use windlass_engine::input::Refusal;
use windlass_runtime::body_budget::NoBodyMemory;
use windlass_runtime::runs::flow::PublishError;
use windlass_runtime::runs::{StartError, VersionChoiceError};
use windlass_runtime::workers::RegisterError;
use windlass_runtime::{RuntimeError, SubmitError};
use windlass_store::{Refusal as Forbidden, StoreError};

use crate::problem::ApiError;

/// The result of most handlers.
pub(super) type SchedulerResult = Result<Json<Value>, Failure>;

/// The response of a successful action.
pub(super) fn ok() -> SchedulerResult {
    Ok(Json(json!({"ok": "1"})))
}

/// An error of the surface.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    text: String,
    /// Seconds after which it may be tried again.
    retry_after: Option<u64>,
}

impl Failure {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Failure { status, text: text.into(), retry_after: None }
    }

    /// The request is invalid.
    pub(super) fn bad(text: impl Into<String>) -> Self {
        Failure::new(StatusCode::BAD_REQUEST, text)
    }

    /// A thing with this id does not exist.
    pub(super) fn unknown(what: &str, id: &str) -> Self {
        let shown: String = id.chars().take(80).collect();
        Failure::new(StatusCode::NOT_FOUND, format!("there is no {what} `{shown}`"))
    }

    /// The current state forbids the action.
    pub(super) fn conflict(text: impl Into<String>) -> Self {
        Failure::new(StatusCode::CONFLICT, text)
    }

    pub(super) fn method_not_allowed() -> Self {
        Failure::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not take that method")
    }

    fn later(status: StatusCode, text: impl Into<String>, seconds: u64) -> Self {
        Failure { status, text: text.into(), retry_after: Some(seconds.max(1)) }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(json!({"error": self.text}))).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        let text = error.to_string();
        match error {
            RuntimeError::Busy { retry_after } | RuntimeError::OpenRunsFull { retry_after, .. } => {
                Failure::later(StatusCode::TOO_MANY_REQUESTS, text, retry_after.as_secs())
            }
            RuntimeError::Draining => Failure::later(StatusCode::SERVICE_UNAVAILABLE, text, 1),
            RuntimeError::Store(error) => error.into(),
            RuntimeError::Definition(_) | RuntimeError::Journal { .. } | RuntimeError::Broken => {
                tracing::error!(error = %text, "a call of the scheduler surface went wrong");
                Failure::new(StatusCode::INTERNAL_SERVER_ERROR, text)
            }
        }
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Failure::new(error.code().status(), error.problem().detail)
    }
}

impl From<NoBodyMemory> for Failure {
    fn from(reason: NoBodyMemory) -> Self {
        match reason {
            NoBodyMemory::Busy => Failure::later(StatusCode::TOO_MANY_REQUESTS, reason.to_string(), 1),
            NoBodyMemory::TooLarge => Failure::new(StatusCode::PAYLOAD_TOO_LARGE, reason.to_string()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refusal) => refusal.into(),
            StoreError::Conflict { .. } => Failure::later(
                StatusCode::SERVICE_UNAVAILABLE,
                "another request changed it first: try again",
                1,
            ),
            StoreError::Unavailable(source) => {
                tracing::warn!(error = %source, "the store is unavailable");
                Failure::later(StatusCode::SERVICE_UNAVAILABLE, "the store is unavailable: try again", 1)
            }
            StoreError::Corrupt(reason) | StoreError::Damaged(reason) => {
                tracing::error!(reason, "the store is corrupt");
                let text = "the stored data is damaged: see the server's log";
                Failure::new(StatusCode::INTERNAL_SERVER_ERROR, text)
            }
        }
    }
}

impl From<Forbidden> for Failure {
    fn from(refusal: Forbidden) -> Self {
        let status = match &refusal {
            Forbidden::UnknownAccount(_)
            | Forbidden::UnknownFlow(_)
            | Forbidden::UnknownVersion(_)
            | Forbidden::UnknownWorker(_)
            | Forbidden::UnknownMessage(_)
            | Forbidden::UnknownSchedule(_) => StatusCode::NOT_FOUND,
            Forbidden::BadCursor => StatusCode::BAD_REQUEST,
            Forbidden::InsufficientFunds { .. }
            | Forbidden::AccountTaken { .. }
            | Forbidden::Duplicates(_)
            | Forbidden::RequestTaken { .. }
            | Forbidden::AlreadyFired(_)
            | Forbidden::AlreadyDelivered(_)
            | Forbidden::NameTaken { .. }
            | Forbidden::NumberTaken { .. }
            | Forbidden::Ledger(_) => StatusCode::CONFLICT,
            Forbidden::Malformed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Failure::new(status, refusal.to_string())
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::Reserved(_) | Refusal::Bad(_) => StatusCode::BAD_REQUEST,
            Refusal::UnknownNode(_) => StatusCode::NOT_FOUND,
            Refusal::NotStarted
            | Refusal::AlreadyStarted
            | Refusal::Ended { .. }
            | Refusal::StillOpen { .. }
            | Refusal::Canceling
            | Refusal::Stale { .. }
            | Refusal::NotWaiting { .. }
            | Refusal::NoApproval
            | Refusal::WhichApproval(_)
            | Refusal::NotAssigned { .. }
            | Refusal::NotRunYet(_)
            | Refusal::NothingToRetry
            | Refusal::AgainByParent { .. }
            | Refusal::BudgetOfParent { .. } => StatusCode::CONFLICT,
        };
        Failure::new(status, refusal.to_string())
    }
}

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Self {
        let text = error.to_string();
        match error {
            SubmitError::UnknownRun(_) => Failure::new(StatusCode::NOT_FOUND, text),
            SubmitError::Refused(refusal) => refusal.into(),
            SubmitError::Outdated => Failure::conflict(text),
            SubmitError::Runtime(error) => error.into(),
        }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let text = error.to_string();
        match error {
            StartError::Refused(refusal) => refusal.into(),
            StartError::RequestTaken { .. }
            | StartError::Version(VersionChoiceError::NotPublished { .. }) => Failure::conflict(text),
            StartError::Version(
                VersionChoiceError::NonePublished { .. } | VersionChoiceError::Unknown { .. },
            ) => Failure::new(StatusCode::NOT_FOUND, text),
            StartError::Version(VersionChoiceError::Runtime(error)) => error.into(),
            StartError::Runtime(error) => error.into(),
        }
    }
}

impl From<RegisterError> for Failure {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::Address(text) | RegisterError::Invalid(text) => Failure::bad(text),
            RegisterError::Runtime(error) => error.into(),
        }
    }
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Problems(problems) => {
                Failure::bad(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
            }
            PublishError::Store(error) => error.into(),
        }
    }
}
