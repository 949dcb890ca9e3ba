//! Errors of the runtime, one variant per next step of the caller.

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
    /// The job, message or schedule in the same commit has changed: read it again.
    #[error("it was decided elsewhere meanwhile: look again")]
    Outdated,
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// Why the server could not serve the request.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RuntimeError {
    /// Too much waits already: come back after this time.
    #[error("too much work waits: try again in {} ms", .retry_after.as_millis())]
    Busy { retry_after: Duration },
    /// As many runs are open as may be: come back when some have ended.
    #[error(
        "{of} has {max} open runs, as many as may be: wait until some end, cancel some, or raise {setting}"
    )]
    OpenRunsFull { of: String, max: usize, setting: &'static str, retry_after: Duration },
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
    /// A bug in this program; the store is intact.
    #[error("the server made a mistake while it worked on this: try again, and report it")]
    Broken,
}

impl RuntimeError {
    /// Whether it concerns the stored rows of one run: all others go on without it.
    pub fn is_of_one_run(&self) -> bool {
        match self {
            RuntimeError::Definition(_)
            | RuntimeError::Journal { .. }
            | RuntimeError::Store(StoreError::Corrupt(_)) => true,
            RuntimeError::Busy { .. }
            | RuntimeError::OpenRunsFull { .. }
            | RuntimeError::Draining
            | RuntimeError::Store(
                StoreError::Refused(_)
                | StoreError::Conflict { .. }
                | StoreError::Unavailable(_)
                | StoreError::Damaged(_),
            )
            | RuntimeError::Broken => false,
        }
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
