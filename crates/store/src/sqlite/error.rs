//! Conversion of SQLite errors to [`StoreError`], with the remedy.

use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::condition::StoreFault;
use crate::error::StoreError;

/// The file is not usable now.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}")]
pub(super) struct SqliteFailure {
    what: &'static str,
    #[source]
    error: Arc<rusqlite::Error>,
}

/// The thread that would answer has ended.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct StoreClosed(pub(super) &'static str);

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        store_error(&Arc::new(error))
    }
}

/// One error for all commits of a group.
pub(super) fn store_error(error: &Arc<rusqlite::Error>) -> StoreError {
    let unavailable = |what| StoreError::unavailable(SqliteFailure { what, error: error.clone() });
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => unavailable("the disk is full: free some space, nothing else is needed"),
        Some(ErrorCode::SystemIoFailure) => unavailable("the file of the store cannot be read or written"),
        Some(ErrorCode::CannotOpen) => {
            unavailable("the file of the store cannot be opened: look at its path and its permissions")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            unavailable("the file of the store cannot be written: look at its permissions")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            unavailable("another program holds the file of the store: close it")
        }
        Some(ErrorCode::OutOfMemory) => unavailable("there is no memory left for the store"),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged(format!("{error}: restore the file from a backup"))
        }
        Some(ErrorCode::ConstraintViolation) => {
            StoreError::Corrupt(format!("a rule of the tables would be broken: {error}"))
        }
        Some(ErrorCode::TooBig) => StoreError::Corrupt(format!("a value is too big for a row: {error}")),
        Some(_) => unavailable("the store cannot be used"),
        // Not an error of SQLite: a column has a value that the program cannot decode.
        None => StoreError::Corrupt(error.to_string()),
    }
}

/// The failure below the tables, with its reason, if it is one.
pub(super) fn fault(error: &StoreError) -> Option<(StoreFault, String)> {
    match error {
        StoreError::Damaged(reason) => Some((StoreFault::Damaged, reason.clone())),
        StoreError::Unavailable(source) => {
            let failure = source.downcast_ref::<SqliteFailure>()?;
            let fault = match failure.error.sqlite_error_code()? {
                ErrorCode::DiskFull => StoreFault::Full,
                ErrorCode::SystemIoFailure => StoreFault::Disk,
                _ => return None,
            };
            Some((fault, failure.what.to_owned()))
        }
        StoreError::Conflict { .. } | StoreError::Corrupt(_) | StoreError::Refused(_) => None,
    }
}

/// Whether a row of the result is at fault, and not the database: one of its columns cannot be decoded.
pub(super) fn is_of_row(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code().is_none()
}

/// Whether the database cannot make sense of a page.
pub(super) fn is_of_page(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt))
}
