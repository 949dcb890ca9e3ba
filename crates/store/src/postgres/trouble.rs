//! Errors of PostgreSQL as errors of the store.

use std::error::Error as _;
use std::sync::Arc;

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::condition::StoreFault;
use crate::error::StoreError;

/// The meaning of an error for the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// Another transaction came between: nothing was written, and a retry will see its changes.
    Race,
    /// The connection is of no use any more.
    Lost,
    /// It will not work the next time either, or not soon.
    Other,
}

/// The database cannot be used now.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}")]
pub(super) struct Trouble {
    what: String,
    pub(super) kind: ErrorClass,
    #[source]
    error: Option<Arc<Error>>,
}

impl Trouble {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Trouble { what: what.into(), kind: ErrorClass::Other, error: None }
    }

    /// The connection did not answer in time.
    pub(super) fn silence() -> Self {
        let what = "the database does not answer: look at it, and at the network to it";
        Trouble { kind: ErrorClass::Lost, ..Trouble::new(what) }
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        StoreError::unavailable(trouble)
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        told(&Arc::new(error))
    }
}

/// The meaning of an error by its code.
pub(super) fn kind(error: &StoreError) -> ErrorClass {
    match error {
        StoreError::Unavailable(source) => {
            source.downcast_ref::<Trouble>().map_or(ErrorClass::Other, |trouble| trouble.kind)
        }
        StoreError::Conflict { .. }
        | StoreError::Corrupt(_)
        | StoreError::Damaged(_)
        | StoreError::Refused(_) => ErrorClass::Other,
    }
}

/// Whether another transaction holds the lock.
pub(super) fn is_held(error: &StoreError) -> bool {
    let StoreError::Unavailable(source) = error else { return false };
    let error = source.downcast_ref::<Trouble>().and_then(|trouble| trouble.error.as_ref());
    error.and_then(|error| error.code()) == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// The failure below the tables, with its reason, if it is one.
pub(super) fn fault(error: &StoreError) -> Option<(StoreFault, String)> {
    match error {
        StoreError::Damaged(reason) => Some((StoreFault::Damaged, reason.clone())),
        StoreError::Unavailable(source) => {
            let trouble = source.downcast_ref::<Trouble>()?;
            let code = trouble.error.as_ref()?.code()?;
            let fault = match (code, code.code().get(..2)) {
                (&SqlState::DISK_FULL, _) => StoreFault::Full,
                (_, Some("58")) => StoreFault::Disk,
                (_, _) => return None,
            };
            Some((fault, trouble.what.clone()))
        }
        StoreError::Conflict { .. } | StoreError::Corrupt(_) | StoreError::Refused(_) => None,
    }
}

/// A copy of the error for the next caller of the same group.
pub(super) fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(source) => match source.downcast_ref::<Trouble>() {
            Some(trouble) => trouble.clone().into(),
            None => Trouble::new(source.to_string()).into(),
        },
        StoreError::Corrupt(what) => StoreError::Corrupt(what.clone()),
        StoreError::Damaged(what) => StoreError::Damaged(what.clone()),
        StoreError::Conflict { what, expected, found } => {
            StoreError::Conflict { what: what.clone(), expected: *expected, found: *found }
        }
        StoreError::Refused(refusal) => StoreError::Refused(refusal.clone()),
    }
}

fn told(error: &Arc<Error>) -> StoreError {
    let Some(code) = error.code() else {
        return match error.source() {
            // A value that cannot be read or bound.
            Some(source) if !error.is_closed() && !source.is::<std::io::Error>() => {
                StoreError::Corrupt(format!("{error}: {source}"))
            }
            Some(_) | None => {
                let what = format!("the connection to the database is lost ({})", chain(error));
                Trouble { what, kind: ErrorClass::Lost, error: Some(error.clone()) }.into()
            }
        };
    };
    let message = error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
    let trouble = |kind: ErrorClass, remedy: &str| {
        let what = if remedy.is_empty() { message.clone() } else { format!("{message}: {remedy}") };
        Trouble { what, kind, error: Some(error.clone()) }.into()
    };
    let class = code.code().get(..2).unwrap_or_default();
    match (class, code) {
        (_, &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED) => {
            trouble(ErrorClass::Race, "too many wanted the same rows at once, ask again")
        }
        (_, &SqlState::UNIQUE_VIOLATION) => {
            trouble(ErrorClass::Race, "another writer stored this key first, ask again")
        }
        (_, &SqlState::LOCK_NOT_AVAILABLE) => {
            trouble(ErrorClass::Other, "another transaction holds the rows: see pg_stat_activity, and end it")
        }
        (_, &SqlState::QUERY_CANCELED) => {
            trouble(ErrorClass::Other, "it took too long: look at the load of the database")
        }
        (_, &SqlState::DISK_FULL) => trouble(
            ErrorClass::Other,
            "the disk of the database is full: free some space, nothing else is needed",
        ),
        (_, &SqlState::INSUFFICIENT_PRIVILEGE | &SqlState::INVALID_SCHEMA_NAME) => trouble(
            ErrorClass::Other,
            "grant the user of the store all rights on its database and on the schema of its tables",
        ),
        (_, &SqlState::READ_ONLY_SQL_TRANSACTION) => {
            trouble(ErrorClass::Other, "this is a copy that cannot be written: name the primary in --store")
        }
        ("53", _) => trouble(ErrorClass::Other, "the database is out of means: look at its limits"),
        ("57" | "08", _) => trouble(ErrorClass::Lost, "the database is going down or coming up"),
        ("58", _) => trouble(ErrorClass::Other, "the database cannot use its disk"),
        ("23", _) => StoreError::Corrupt(format!("a rule of the tables would be broken: {message}")),
        (_, &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => {
            StoreError::Damaged(format!("{message}: restore the database from a backup"))
        }
        ("XX", _) => StoreError::Corrupt(format!("the database met an error of its own: {message}")),
        ("42", _) => StoreError::Corrupt(format!("the tables are not those of this program: {message}")),
        ("22" | "54", _) => StoreError::Corrupt(format!("a value does not fit into a row: {message}")),
        (_, _) => trouble(ErrorClass::Other, ""),
    }
}

/// An error and its sources, in one line.
pub(super) fn chain(error: &Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Why no connection was to be had.
pub(super) fn no_connection(error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) => StoreError::from(error),
        PoolError::Timeout(TimeoutType::Wait) => {
            let what = "all connections to the database are in use: ask again later, or find what holds them in \
                        pg_stat_activity";
            Trouble::new(what).into()
        }
        PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => Trouble::silence().into(),
        PoolError::Closed => Trouble::new("the store is closed").into(),
        PoolError::NoRuntimeSpecified => Trouble::new("the store has no runtime to wait with").into(),
        PoolError::PostCreateHook(error) => match error {
            deadpool_postgres::HookError::Backend(error) => StoreError::from(error),
            deadpool_postgres::HookError::Message(message) => Trouble::new(message.into_owned()).into(),
        },
    }
}
