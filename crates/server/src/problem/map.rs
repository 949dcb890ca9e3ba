//! Conversions from errors of the runtime and the store to responses. Details of stored data are logged, never sent.

use std::time::Duration;

use windlass_engine::input::Refusal;
use windlass_engine::job::JobRefusal;
use windlass_engine::problem::Problem;
use windlass_runtime::body_budget::NoBodyMemory;
use windlass_runtime::jobs::LimitError;
use windlass_runtime::jobs::{CreateError, JobError};
use windlass_runtime::money::account::AccountError;
use windlass_runtime::money::price::PriceError;
use windlass_runtime::runs::flow::PublishError;
use windlass_runtime::runs::{StartError, VersionChoiceError};
use windlass_runtime::schedules::ScheduleError;
use windlass_runtime::{RuntimeError, SubmitError};
use windlass_store::{Refusal as StoreRefusal, StoreError};

use super::{ApiError, Code};

/// When to come back to a server that shuts down or whose store is away: long enough for a restart.
const AWAY: Duration = Duration::from_secs(2);

impl From<NoBodyMemory> for ApiError {
    fn from(reason: NoBodyMemory) -> Self {
        match reason {
            NoBodyMemory::Busy => {
                ApiError::new(Code::Busy, reason.to_string()).retry_after(Duration::from_secs(1))
            }
            NoBodyMemory::TooLarge => ApiError::new(Code::TooLarge, reason.to_string()),
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::NotStarted => Code::NotStarted,
            Refusal::AlreadyStarted => Code::AlreadyStarted,
            Refusal::Ended { .. } => Code::RunEnded,
            Refusal::StillOpen { .. } => Code::RunOpen,
            Refusal::Canceling => Code::RunCanceling,
            Refusal::UnknownNode(_) => Code::UnknownNode,
            Refusal::Stale { .. } => Code::StaleLease,
            Refusal::NotWaiting { .. } => Code::NotWaiting,
            Refusal::NoApproval => Code::NoApproval,
            Refusal::WhichApproval(_) => Code::WhichApproval,
            Refusal::NotAssigned { .. } => Code::NotAssigned,
            Refusal::NotRunYet(_) => Code::NotRunYet,
            Refusal::NothingToRetry => Code::NothingToRetry,
            Refusal::AgainByParent { .. } | Refusal::BudgetOfParent { .. } => Code::OfParent,
            Refusal::Reserved(_) => Code::ReservedKey,
            Refusal::Bad(_) => Code::InvalidInput,
        };
        match refusal {
            Refusal::Bad(problems) => ApiError::problems(code, problems),
            other => ApiError::new(code, other.to_string()),
        }
    }
}

impl From<StoreRefusal> for ApiError {
    fn from(refusal: StoreRefusal) -> Self {
        let code = match &refusal {
            StoreRefusal::NameTaken { .. } => Code::NameTaken,
            StoreRefusal::NumberTaken { .. } => Code::NumberTaken,
            StoreRefusal::RequestTaken { .. } => Code::RequestTaken,
            StoreRefusal::UnknownAccount(_) => Code::UnknownAccount,
            StoreRefusal::UnknownFlow(_) => Code::UnknownFlow,
            StoreRefusal::UnknownVersion(_) => Code::UnknownVersion,
            StoreRefusal::AccountTaken { .. } => Code::AccountTaken,
            StoreRefusal::InsufficientFunds { .. } => Code::InsufficientBalance,
            StoreRefusal::BadCursor => Code::BadCursor,
            StoreRefusal::Duplicates(_)
            | StoreRefusal::AlreadyFired(_)
            | StoreRefusal::AlreadyDelivered(_)
            | StoreRefusal::Ledger(_)
            | StoreRefusal::UnknownWorker(_)
            | StoreRefusal::UnknownMessage(_)
            | StoreRefusal::UnknownSchedule(_) => Code::Conflict,
            StoreRefusal::Malformed(_) => Code::Internal,
        };
        let place = if code == Code::UnknownAccount { Some("account") } else { None };
        ApiError::new(code, refusal.to_string()).about(place)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refusal) => refusal.into(),
            StoreError::Conflict { .. } => {
                ApiError::new(Code::Outdated, "another request changed it first: read it again")
            }
            StoreError::Unavailable(source) => {
                tracing::error!(%source, "the store is unavailable");
                let detail = "the store takes nothing now: try again in a moment";
                ApiError::new(Code::StoreUnavailable, detail).retry_after(AWAY)
            }
            StoreError::Corrupt(reason) | StoreError::Damaged(reason) => {
                tracing::error!(reason, "the stored data is damaged");
                ApiError::new(Code::Internal, "the stored data cannot be read: run `windlass doctor`")
            }
        }
    }
}

impl From<RuntimeError> for ApiError {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Busy { retry_after } => {
                ApiError::new(Code::Busy, error.to_string()).retry_after(retry_after)
            }
            RuntimeError::OpenRunsFull { retry_after, .. } => {
                ApiError::new(Code::OpenRunsFull, error.to_string()).retry_after(retry_after)
            }
            RuntimeError::Draining => ApiError::new(Code::Draining, error.to_string()).retry_after(AWAY),
            RuntimeError::Store(error) => error.into(),
            RuntimeError::Definition(_) | RuntimeError::Journal { .. } | RuntimeError::Broken => {
                tracing::error!(%error, "a request could not be fulfilled");
                ApiError::new(Code::Internal, error.to_string())
            }
        }
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::UnknownRun(_) => ApiError::new(Code::UnknownRun, error.to_string()),
            SubmitError::Refused(refusal) => refusal.into(),
            SubmitError::Outdated => ApiError::new(Code::Outdated, error.to_string()),
            SubmitError::Runtime(error) => error.into(),
        }
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Refused(refusal) => refusal.into(),
            StartError::RequestTaken { .. } => ApiError::new(Code::RequestTaken, error.to_string()),
            StartError::Version(error) => error.into(),
            StartError::Runtime(error) => error.into(),
        }
    }
}

impl From<VersionChoiceError> for ApiError {
    fn from(error: VersionChoiceError) -> Self {
        let code = match error {
            VersionChoiceError::NonePublished { .. } | VersionChoiceError::Unknown { .. } => {
                Code::UnknownVersion
            }
            VersionChoiceError::NotPublished { .. } => Code::NotPublished,
            VersionChoiceError::Runtime(error) => return error.into(),
        };
        ApiError::new(code, error.to_string())
    }
}

impl From<PublishError> for ApiError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Problems(problems) => ApiError::problems(Code::InvalidDefinition, problems),
            PublishError::Store(error) => error.into(),
        }
    }
}

impl From<JobRefusal> for ApiError {
    fn from(refusal: JobRefusal) -> Self {
        let code = match &refusal {
            JobRefusal::Stale { .. } => Code::StaleLease,
            JobRefusal::NotQueued { .. } => Code::Conflict,
            JobRefusal::Ended { .. } | JobRefusal::Completed => Code::JobEnded,
            JobRefusal::NotEnded { .. } => Code::JobOpen,
            JobRefusal::NotDead { .. } => Code::NotDeadLetter,
            JobRefusal::PayloadTooMuch { .. } | JobRefusal::NoAmount { .. } => Code::InvalidFields,
            JobRefusal::InsufficientFunds { .. } => Code::InsufficientBalance,
            JobRefusal::BelongsToRun => Code::JobOfRun,
            JobRefusal::KeyTaken { .. } => Code::KeyTaken,
        };
        ApiError::new(code, refusal.to_string())
    }
}

impl From<JobError> for ApiError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Unknown(_) => ApiError::new(Code::UnknownJob, error.to_string()),
            JobError::Refused(refusal) => refusal.into(),
            JobError::Runtime(error) => error.into(),
        }
    }
}

impl From<CreateError> for ApiError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Problems(problems) => ApiError::problems(Code::InvalidFields, problems),
            CreateError::InsufficientFunds { ref places, .. } => {
                let told = ApiError::new(Code::InsufficientBalance, error.to_string());
                let places = ApiError::problems(Code::InsufficientBalance, places.clone());
                ApiError { errors: places.errors, ..told }
            }
            CreateError::Runtime(error) => error.into(),
        }
    }
}

impl From<AccountError> for ApiError {
    fn from(error: AccountError) -> Self {
        let (code, place) = match error {
            AccountError::Unknown(_) => (Code::AccountNotFound, None),
            AccountError::Taken { .. } => (Code::AccountTaken, Some("name")),
            AccountError::KeyTaken { .. } => (Code::DepositTaken, Some("key")),
            AccountError::NoAmount(_) | AccountError::TooMuch => {
                return ApiError::field(Code::InvalidBody, "amount", error.to_string());
            }
            AccountError::Runtime(error) => return error.into(),
        };
        ApiError::new(code, error.to_string()).about(place)
    }
}

impl From<PriceError> for ApiError {
    fn from(error: PriceError) -> Self {
        match error {
            PriceError::Problems(problems) => {
                // As the other fields of bodies are named on this surface.
                let named = |problem: Problem| {
                    let path = problem.path.trim_start_matches("$.").to_owned();
                    Problem { path, ..problem }
                };
                ApiError::problems(Code::InvalidBody, problems.into_iter().map(named).collect())
            }
            PriceError::TooMany => ApiError::new(Code::TooManyPrices, error.to_string()),
            PriceError::Runtime(error) => error.into(),
        }
    }
}

impl From<LimitError> for ApiError {
    fn from(error: LimitError) -> Self {
        match error {
            LimitError::Problems(problems) => {
                // A body has them in a field of their own.
                let inside =
                    |problem: Problem| Problem { path: problem.path.replacen('$', "$.limits", 1), ..problem };
                ApiError::problems(Code::InvalidFields, problems.into_iter().map(inside).collect())
            }
            LimitError::Runtime(error) => error.into(),
        }
    }
}

impl From<ScheduleError> for ApiError {
    fn from(error: ScheduleError) -> Self {
        match error {
            ScheduleError::Unknown(_) => ApiError::new(Code::UnknownSchedule, error.to_string()),
            ScheduleError::Problems(problems) => ApiError::problems(Code::InvalidFields, problems),
            ScheduleError::Runtime(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_of_store_errors_are_not_sent() {
        let secret = StoreError::unavailable("disk /var/secret is full");
        assert!(!ApiError::from(secret).problem().detail.contains("secret"));
        let corrupt = StoreError::Corrupt("row 7 of secret".to_owned());
        assert!(!ApiError::from(corrupt).problem().detail.contains("secret"));
    }

    #[test]
    fn a_busy_server_says_when_to_come_back() {
        let error = ApiError::from(RuntimeError::Busy { retry_after: Duration::from_secs(3) });
        assert_eq!(error.code(), Code::Busy);
        assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
    }
}
