//! What can be asked of a job, what happened to it, and why something was refused.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::JobId;
use crate::money::MoneyFault;
use crate::retry::Fault;
use crate::time::Timestamp;
use crate::weight::Excess;

use super::JobSpec;

/// How an attempt ended, as its worker says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    Done {
        result: Value,
    },
    Failed {
        fault: Fault,
        /// Not before so long; what a throttled worker was told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// The work goes on somewhere else: ask again later, and hand `memo` to whoever asks. Burns no attempt.
    Suspended {
        memo: Value,
        recheck_ms: u64,
    },
}

/// What is asked of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobInput {
    /// Time has passed: whatever the job was waiting for may have come.
    Due,
    /// A worker takes it; a lease of 0 is the default one.
    Claim {
        worker: String,
        lease_ms: u64,
    },
    /// Its worker is alive.
    Extend {
        fence: u64,
        lease_ms: u64,
    },
    /// Its worker is done with it.
    Finish {
        fence: u64,
        outcome: Outcome,
    },
    /// Nobody has heard of its worker in time.
    LeaseExpired {
        fence: u64,
    },
    /// The attempt has taken too long.
    AttemptTimeout,
    Cancel,
    /// Do not wait any longer; a failed or cancelled job gets a new round.
    RetryNow,
    /// A new round for a failed or cancelled job, once per id. The patch is laid over the payload; null in it removes
    /// a field.
    Replay {
        replay_id: String,
        priority: Option<i32>,
        patch: Option<Value>,
        /// Not before; `None` = at once.
        due: Option<Timestamp>,
    },
    /// A dead letter nobody wants any more.
    Discard {
        reason: String,
    },
    /// Its worker shuts down and gives it back.
    Release {
        fence: u64,
    },
}

/// What happened to a job.
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
        fence: u64,
        worker: String,
        lease_until: Timestamp,
        deadline: Option<Timestamp>,
    },
    Extended {
        fence: u64,
        lease_until: Timestamp,
    },
    Succeeded {
        fence: u64,
        result: Value,
    },
    /// The attempt failed or was lost.
    AttemptFailed {
        fence: u64,
        fault: Fault,
        loss: bool,
        fate: Fate,
    },
    Suspended {
        fence: u64,
        memo: Value,
        until: Timestamp,
    },
    /// Given back unharmed: the same attempt is offered again.
    Released {
        fence: u64,
    },
    /// Whoever works on it is told to stop; at `until` it is over either way.
    CancelRequested {
        until: Timestamp,
    },
    Cancelled {
        /// What the worker said before it learnt of it; kept for reading, without effect.
        outcome: Option<Outcome>,
    },
    /// A new round.
    Replayed {
        replay_id: Option<String>,
        priority: i32,
        /// The whole payload, when it was changed.
        payload: Option<Value>,
        /// Not before; absent = at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<Timestamp>,
    },
    Discarded {
        reason: String,
    },
}

/// What follows a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fate")]
pub enum Fate {
    /// The next attempt, not before `at`.
    Again { at: Timestamp },
    /// The job has failed, for this reason.
    Dead { reason: Fault },
}

/// Why a request changed nothing. `status` is the job's display status, so that the answer can be truthful.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobRefusal {
    /// Somebody else has it, or it is over: stop working on it.
    #[error("stale lease: the job is {status} and its fence is {current}, not {fence}")]
    Stale { fence: u64, current: u64, status: &'static str },
    /// Look for another one.
    #[error("the job is {status}: only a queued job can be claimed")]
    NotQueued { status: &'static str },
    #[error("the job is {status}: it has ended and cannot be cancelled")]
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
    /// Only whoever knows the account can say so.
    #[error(
        "insufficient_balance: {needed} are needed and account `{account}` has {balance}; deposit at least {}",
        .needed.saturating_sub(*.balance)
    )]
    Short { account: String, needed: i64, balance: i64 },
    #[error("the job belongs to a run: cancel or retry it there")]
    BelongsToRun,
    /// Only whoever knows all jobs can say so.
    #[error("{existing} has the deduplication key `{key}` now: cancel that one, or wait until it has ended")]
    KeyTaken { key: String, existing: JobId },
}
