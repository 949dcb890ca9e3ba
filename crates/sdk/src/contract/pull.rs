//! The pull protocol: claims, extensions of leases, and results of jobs; reports about calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Time, is_default};

/// A worker's request for jobs. A job matches by its queue or by its service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    pub worker_id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// At most so many, 1 to 1,000; absent = 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<usize>,
    /// How long to wait when there is nothing, up to 60,000; absent = not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// How long the jobs are kept from others, 1,000 to 3,600,000; absent = 30,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
}

/// The jobs that the worker holds now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(bound(deserialize = "P: Deserialize<'de> + Default"))]
pub struct ClaimResponse<P = Value> {
    #[schema(value_type = Vec<ClaimedJob>)]
    pub jobs: Vec<ClaimedJob<P>>,
    /// The worker gets no more jobs and should stop when its current ones have ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
}

/// A claimed job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct ClaimedJob<P = Value> {
    #[schema(example = "job_0190a1b2c3d47000800000000000000b")]
    pub id: String,
    /// Names this claim. Opaque: it is sent back with `finish` and `extend`.
    pub lease: String,
    pub attempt: u32,
    /// The idempotency key: the same for every attempt.
    pub key: String,
    pub queue: String,
    pub service: String,
    /// How urgent it is; higher goes first.
    #[serde(default)]
    pub priority: i32,
    /// The input of the call; the payload of a job without a run.
    #[serde(default)]
    #[schema(value_type = Value)]
    pub input: P,
    /// The parameters of the call. Jobs of one run share large ones in memory.
    #[serde(default)]
    #[schema(value_type = Value)]
    pub params: BTreeMap<String, Arc<Value>>,
    /// The value that the attempt left when it was suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<Value>,
    /// When the attempt is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// The end of the lease: another worker can claim the job then, unless the lease is extended.
    pub lease_until: Time,
    /// The call it carries: how it ended can be reported under this id once it was suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The run whose call it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// The three ways in which a call or a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallOutcome {
    /// With `result`.
    #[default]
    Done,
    /// Not finished: called again with `memo` after `recheck_ms`, or ended by a report.
    Suspended,
    /// With `error`.
    Failed,
}

/// Ends of jobs, each for itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(
    deny_unknown_fields,
    bound(serialize = "P: Serialize + Default + PartialEq", deserialize = "P: Deserialize<'de> + Default")
)]
pub struct FinishRequest<P = Value> {
    /// At most 1,000.
    #[schema(value_type = Vec<JobResult>)]
    pub results: Vec<JobResult<P>>,
}

/// How one job ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(serialize = "P: Serialize + Default + PartialEq"))]
pub struct JobResult<P = Value> {
    pub id: String,
    pub lease: String,
    pub outcome: CallOutcome,
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(value_type = Value)]
    pub result: P,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether trying again can help; absent = yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// With `failed`: the minimum delay of the next attempt, even if the backoff is shorter; for a call of a run, up to
    /// an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub memo: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recheck_ms: Option<u64>,
    /// With `failed`: a network error, a time-out or a busy service. A node of the dag form is then tried again within a
    /// second, and after three more tries suspended and called again, independent of its own retries.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub temporary: bool,
    /// The log of the attempt as text; the last 64 KiB are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The same line by line, [`WorkerLogLine`]s or plain texts: the first 1,000, each with 4,096 bytes of text, and 256 KiB
    /// together. Unreadable lines are replaced by a line that says so.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Value)]
    pub logs: Value,
}

/// The state of a lease, as its worker is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LeaseVerdict {
    Ok,
    /// Another worker holds the job, or the job has ended.
    Lost,
    /// The job was canceled: stop.
    Canceled,
    /// The server could not say: nothing is known to have changed, and it can be asked again.
    Error,
}

/// The verdicts on the results, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FinishResponse {
    pub results: Vec<FinishVerdict>,
}

/// The verdict on one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FinishVerdict {
    pub id: String,
    pub verdict: LeaseVerdict,
    /// With `error`: the code of the problem, from `/docs/errors`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Ends of jobs and the next claim, in one request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(
    deny_unknown_fields,
    bound(serialize = "P: Serialize + Default + PartialEq", deserialize = "P: Deserialize<'de> + Default")
)]
pub struct ExchangeRequest<P = Value> {
    /// The ends: at most 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<JobResult>)]
    pub finish: Vec<JobResult<P>>,
    pub claim: ClaimRequest,
}

/// The verdicts on the ends, and the jobs that the worker holds now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(bound(deserialize = "P: Deserialize<'de> + Default"))]
pub struct ExchangeResponse<P = Value> {
    /// The verdicts, in the order of the ends.
    pub results: Vec<FinishVerdict>,
    #[schema(value_type = Vec<ClaimedJob>)]
    pub jobs: Vec<ClaimedJob<P>>,
    /// The worker gets no more jobs and should stop when its current ones have ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
    /// The ends were read, and the claim failed with this code, from `/docs/errors`: claim again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Keep these claims alive.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtendRequest {
    /// Leases from `claim`; at most 1,000.
    pub leases: Vec<String>,
    /// From now on so long, 1,000 to 3,600,000; absent = 30,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
}

/// The verdicts on the leases, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExtendResponse {
    pub results: Vec<ExtendVerdict>,
}

/// The verdict on one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExtendVerdict {
    pub lease: String,
    pub verdict: LeaseVerdict,
    /// With `error`: the code of the problem, from `/docs/errors`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Says how a call that was suspended, or that a push worker took on, ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallReport {
    #[serde(default)]
    pub outcome: CallOutcome,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether trying again can help; absent = yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub memo: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recheck_ms: Option<u64>,
    /// With `failed`: as in the end of a job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub temporary: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// Lines for people, as in the end of a job.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Value)]
    pub logs: Value,
}

/// The verdict on a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportResponse {
    /// The call.
    pub id: String,
    pub verdict: LeaseVerdict,
}
