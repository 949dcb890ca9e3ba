//! What SQLite says went wrong, in the store's words.

use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::error::StoreError;

/// The file cannot be used now.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}")]
pub(super) struct Trouble {
    what: &'static str,
    #[source]
    error: Arc<rusqlite::Error>,
}

/// There is nobody to do it any more.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Gone(pub(super) &'static str);

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        told(&Arc::new(error))
    }
}

/// The same error for everybody whom it concerns.
pub(super) fn told(error: &Arc<rusqlite::Error>) -> StoreError {
    let unavailable = |what| StoreError::Unavailable(Box::new(Trouble { what, error: error.clone() }));
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
            StoreError::Corrupt(format!("{error}: restore the file from a backup"))
        }
        Some(ErrorCode::ConstraintViolation) => {
            StoreError::Corrupt(format!("a rule of the tables would be broken: {error}"))
        }
        Some(ErrorCode::TooBig) => StoreError::Corrupt(format!("a value is too big for a row: {error}")),
        Some(_) => unavailable("the store cannot be used"),
        // Not from SQLite: a column that is not what the program wrote there.
        None => StoreError::Corrupt(error.to_string()),
    }
}
