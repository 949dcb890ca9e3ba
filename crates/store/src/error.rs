//! Errors of the store, named for the next action of the caller.

use std::fmt;
use std::sync::Arc;

use windlass_engine::counter::Revision;
use windlass_engine::id::{BulkId, FlowId, JobId, RunId, ScheduleId, ServerId, VersionId};
use windlass_engine::money::{Amount, LedgerFault};
use windlass_engine::schedule::Firing;

use crate::job::JobStatus;
use crate::outbox::MessageId;

/// Why the store did not do it. No variant means a partial write, except that
/// `Unavailable` leaves open whether a commit was.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Another writer was first: reload and decide again.
    #[error("{what} moved on: expected {expected}, found {found}")]
    Conflict { what: Subject, expected: u64, found: u64 },
    /// The database cannot be reached now: wait and try again. After a commit the outcome is unknown: look it up
    /// with [`crate::Store::command`], never blindly commit again and never report a failure.
    #[error("store unavailable")]
    Unavailable(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// A stored row makes no sense: leave it out, and tell a person.
    #[error("store is corrupt: {0}")]
    Corrupt(String),
    /// The database cannot make sense of its own file: tell a person, and take no work.
    #[error("store is damaged: {0}")]
    Damaged(String),
    /// The store works and refuses: decide again with this fact, or tell the client.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A fact only the store has, and that forbids the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Decide again, given that the calls with these charges are short of money.
    #[error(
        "account `{account}` is short: {needed} needed, {balance} there; deposit at least {}",
        .needed.saturating_sub(*.balance)
    )]
    InsufficientFunds {
        account: String,
        /// The balance that all charges together need.
        needed: Amount,
        balance: Amount,
        /// The charges that could not be borne, in the order in which they were posted.
        keys: Vec<String>,
        /// The value for [`crate::commit::Unmoved`] when the calls are parked because of it.
        revision: Revision,
    },
    /// Answer with the existing jobs; the rest can be committed without these.
    #[error("{}", taken(.0))]
    Duplicates(Vec<Duplicate>),
    /// Answer with the run that is there if `same_request`, else refuse the request.
    #[error("request `{request}` already made {existing}")]
    RequestTaken { request: String, existing: RunId, same_request: bool },
    /// Another server fired the slot: forget about it.
    #[error("{0} was already fired")]
    AlreadyFired(Firing),
    /// Another server delivered the message: forget about it.
    #[error("message {0} was already delivered")]
    AlreadyDelivered(MessageId),
    /// Choose another name, or publish a version of that flow.
    #[error("the name `{name}` is taken by {existing}")]
    NameTaken { name: String, existing: FlowId },
    /// Leave the number out to get the next one.
    #[error("{flow} already has a version {number}")]
    NumberTaken { flow: FlowId, number: u32 },
    /// The movement makes no sense; the ledger stands as it is.
    #[error(transparent)]
    Ledger(#[from] LedgerFault),
    /// Choose another id, or leave the name as it is.
    #[error("account `{id}` is there and has the name `{name}`")]
    AccountTaken { id: String, name: String },
    #[error("there is no account `{0}`: open it first")]
    UnknownAccount(String),
    #[error("there is no flow {0}")]
    UnknownFlow(FlowId),
    #[error("there is no version {0}")]
    UnknownVersion(VersionId),
    #[error("there is no worker `{0}`: register it again")]
    UnknownWorker(String),
    #[error("there is no message {0}")]
    UnknownMessage(MessageId),
    #[error("there is no schedule {0}")]
    UnknownSchedule(ScheduleId),
    /// Start from the first page.
    #[error("the cursor is not one of this list: ask again without it")]
    BadCursor,
    /// A mistake in the program that made the commit: stop, and report it.
    #[error("the commit contradicts itself: {0}")]
    Malformed(&'static str),
}

/// A job that was to be created or opened again although another one has its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// The one that was to be written.
    pub job: JobId,
    pub queue: String,
    pub key: String,
    /// The one that has the key: a stored one, or an earlier one of the same commit.
    pub existing: JobId,
    /// Where the existing one stands, or would.
    pub status: JobStatus,
}

/// The first of them, and how many more there are.
fn taken(duplicates: &[Duplicate]) -> String {
    let Some((Duplicate { queue, key, existing, .. }, more)) = duplicates.split_first() else {
        return "no key is taken".to_owned();
    };
    let first = format!("{existing} of queue `{queue}` already has the key `{key}`");
    if more.is_empty() { first } else { format!("{first}, and {} more keys are taken", more.len()) }
}

/// The row that has a newer revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Its length is the number of its journal entries.
    Run(RunId),
    Job(JobId),
    Account(String),
    /// Its number counts the guarded claims.
    Queue(String),
    Schedule(ScheduleId),
    Bulk(BulkId),
    /// Its number is its epoch: a server that meets this has been replaced, and stops.
    Server(ServerId),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Run(id) => id.fmt(f),
            Subject::Job(id) => id.fmt(f),
            Subject::Account(id) => write!(f, "account `{id}`"),
            Subject::Queue(name) => write!(f, "queue `{name}`"),
            Subject::Schedule(id) => id.fmt(f),
            Subject::Bulk(id) => id.fmt(f),
            Subject::Server(id) => id.fmt(f),
        }
    }
}

impl StoreError {
    /// The database cannot be reached, because of this.
    pub fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        StoreError::Unavailable(Arc::from(source.into()))
    }

    /// The store is not whole: a copy into it has not come to its end.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(crate) fn unfinished() -> Self {
        let what = "a copy into it is under way or was cut short: wait for it, or begin it anew with the same \
                    `windlass store copy`";
        StoreError::unavailable(what)
    }

    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            StoreError::Refused(refusal) => Some(refusal),
            StoreError::Conflict { .. }
            | StoreError::Unavailable(_)
            | StoreError::Corrupt(_)
            | StoreError::Damaged(_) => None,
        }
    }

    /// Whether another writer was first.
    pub fn is_conflict(&self) -> bool {
        matches!(self, StoreError::Conflict { .. })
    }
}

/// Refuses a change of a row whose number is not the expected one.
pub(crate) fn guard<N>(what: impl FnOnce() -> Subject, expected: N, found: N) -> Result<(), StoreError>
where
    N: PartialEq + Into<u64>,
{
    if expected == found {
        return Ok(());
    }
    Err(StoreError::Conflict { what: what(), expected: expected.into(), found: found.into() })
}
