//! What can go wrong, named for what whoever asked does next.

use std::time::Duration;

use windlass_engine::id::RunId;
use windlass_engine::input::Refusal;
use windlass_engine::problem::Problem;
use windlass_store::StoreError;

/// Why an input to a run changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    /// The run says no; nothing was lost.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// What the input went along with (a job, a message) is no longer so: look again.
    #[error("it was decided elsewhere meanwhile: look again")]
    Outdated,
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// Why the server could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// Too much waits already: come back after this time.
    #[error("too much work waits: try again in {} ms", .retry_after.as_millis())]
    Busy { retry_after: Duration },
    /// The server is shutting down; another one, or this one after its restart, takes it.
    #[error("the server is shutting down: try again in a moment")]
    Draining,
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored definition no longer compiles.
    #[error("the stored definition cannot be read: {}", list(.0))]
    Definition(Vec<Problem>),
    /// A stored journal cannot be read.
    #[error("the journal of {run} cannot be read: {reason}")]
    Journal { run: RunId, reason: String },
    /// A mistake in this program; what is stored is whole.
    #[error("the server made a mistake while it worked on this: try again, and report it")]
    Broken,
}

impl RuntimeError {
    /// The same error for somebody else who waits for the same thing.
    pub(crate) fn again(&self) -> Self {
        match self {
            RuntimeError::Busy { retry_after } => RuntimeError::Busy { retry_after: *retry_after },
            RuntimeError::Draining => RuntimeError::Draining,
            RuntimeError::Store(error) => RuntimeError::Store(same(error)),
            RuntimeError::Definition(problems) => RuntimeError::Definition(problems.clone()),
            RuntimeError::Journal { run, reason } => {
                RuntimeError::Journal { run: *run, reason: reason.clone() }
            }
            RuntimeError::Broken => RuntimeError::Broken,
        }
    }
}

/// The same error for somebody else who waits for the same thing.
pub(crate) fn same(error: &StoreError) -> StoreError {
    match error {
        StoreError::Refused(refusal) => StoreError::Refused(refusal.clone()),
        StoreError::Corrupt(reason) => StoreError::Corrupt(reason.clone()),
        StoreError::Conflict { what, expected, found } => {
            StoreError::Conflict { what: what.clone(), expected: *expected, found: *found }
        }
        StoreError::Unavailable(source) => StoreError::Unavailable(source.to_string().into()),
    }
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<StoreError> for SubmitError {
    fn from(error: StoreError) -> Self {
        SubmitError::Runtime(error.into())
    }
}
