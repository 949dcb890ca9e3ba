//! Inputs of a job, its events, and reasons for refusals.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::counter::Fence;
use crate::id::JobId;
use crate::money::{Amount, MoneyFault};
use crate::raw_json::RawJson;
use crate::retry::Fault;
use crate::time::Timestamp;
use crate::weight::Excess;

use super::JobSpec;

/// How an attempt ended, as its worker says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum JobOutcome {
    Done {
        result: RawJson,
    },
    Failed {
        fault: Fault,
        /// The earliest delay; a throttled worker was told so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// The work goes on somewhere else: ask again later, and hand `memo` to the next worker. Uses up no attempt.
    Suspended {
        memo: Value,
        recheck_ms: u64,
    },
}

/// An input of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobInput {
    /// Time has passed: a wait of the job may be over.
    Due,
    /// A worker takes it; a lease of 0 is the default one.
    Claim {
        worker: String,
        lease_ms: u64,
    },
    /// A worker takes it, and its heartbeats keep the lease.
    ClaimKeptByBeats {
        worker: String,
        lease_ms: u64,
    },
    /// Its worker is alive.
    Extend {
        fence: Fence,
        lease_ms: u64,
    },
    /// Its worker is done with it.
    Finish {
        fence: Fence,
        outcome: JobOutcome,
    },
    /// Its worker did not extend the lease in time.
    LeaseExpired {
        fence: Fence,
    },
    /// The attempt has taken too long.
    AttemptTimeout,
    Cancel,
    /// Do not wait any longer; a failed or canceled job gets a new round.
    RetryNow,
    /// A new round for a failed or canceled job, once per id. The patch is laid over the payload; null in it removes
    /// a field.
    Replay {
        replay_id: String,
        priority: Option<i32>,
        patch: Option<Value>,
        /// Not before; `None` = at once.
        due: Option<Timestamp>,
    },
    /// A dead letter that is discarded.
    Discard {
        reason: String,
    },
    /// Its worker shuts down and gives it back.
    Release {
        fence: Fence,
    },
}

/// An event of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum JobEvent {
    Created {
        spec: Arc<JobSpec>,
        /// Not before; absent = at once.
        due: Option<Timestamp>,
    },
    /// It can be claimed.
    Queued,
    Claimed {
        fence: Fence,
        worker: String,
        lease_until: Timestamp,
        deadline: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "crate::event::is_false")]
        kept_by_beats: bool,
    },
    Extended {
        fence: Fence,
        lease_until: Timestamp,
    },
    Succeeded {
        fence: Fence,
        result: RawJson,
    },
    /// The attempt failed or was lost.
    AttemptFailed {
        fence: Fence,
        fault: Fault,
        loss: bool,
        fate: FailedAttemptNext,
    },
    Suspended {
        fence: Fence,
        memo: Value,
        until: Timestamp,
    },
    /// Given back unharmed: the same attempt is offered again.
    Released {
        fence: Fence,
    },
    /// The worker is told to stop; at `until` it is over either way.
    CancelRequested {
        until: Timestamp,
    },
    Canceled {
        /// The answer of a worker that had not learnt of the cancel; kept for reading, without effect.
        outcome: Option<JobOutcome>,
    },
    /// A new round.
    Replayed {
        replay_id: Option<String>,
        priority: i32,
        /// The whole payload, when it was changed.
        payload: Option<RawJson>,
        /// Not before; absent = at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<Timestamp>,
    },
    Discarded {
        reason: String,
    },
}

/// The consequence of a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fate")]
pub enum FailedAttemptNext {
    /// The next attempt, not before `at`.
    Again { at: Timestamp },
    /// The job has failed, for this reason.
    Dead { reason: Fault },
}

/// Why a request changed nothing. `status` is the job's display status, so that the answer can be truthful.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobRefusal {
    /// Another worker has it, or it is over: stop working on it.
    #[error("stale lease: the job is {status} and its fence is {current}, not {fence}")]
    Stale { fence: Fence, current: Fence, status: &'static str },
    /// Look for another one.
    #[error("the job is {status}: only a queued job can be claimed")]
    NotQueued { status: &'static str },
    #[error("the job is {status}: it has ended and cannot be canceled")]
    Ended { status: &'static str },
    #[error("the job is {status}: cancel it first, or wait until it has ended")]
    NotEnded { status: &'static str },
    #[error("the job is completed: create a new one to do the work again")]
    Completed,
    #[error("the job is {status}: only a dead letter can be replayed or discarded")]
    NotDead { status: &'static str },
    #[error("the payload with the patch {excess}: patch it with less")]
    PayloadTooMuch { excess: Excess },
    #[error("what the payload with the patch costs cannot be told: {fault}")]
    NoAmount { fault: MoneyFault },
    /// The store finds this out: it has the balance of the account.
    #[error(
        "insufficient_balance: {needed} are needed and account `{account}` has {balance}; deposit at least {}",
        .needed.saturating_sub(*.balance)
    )]
    InsufficientFunds { account: String, needed: Amount, balance: Amount },
    #[error("the job belongs to a run: cancel or retry it there")]
    BelongsToRun,
    /// Only the store, which knows all jobs, can say so.
    #[error("{existing} has the deduplication key `{key}` now: cancel that one, or wait until it has ended")]
    KeyTaken { key: String, existing: JobId },
}
