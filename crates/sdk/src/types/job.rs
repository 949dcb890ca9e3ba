//! The pull protocol: claiming jobs, keeping them, and saying how they ended; and reports about calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Said, Time};

/// Somebody asks for work. A job matches by its queue or by its service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
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

/// Jobs that somebody has now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Claimed {
    pub jobs: Vec<ClaimedJob>,
    /// The worker is to finish what it has and go; it gets no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
}

/// A job that somebody has now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct ClaimedJob {
    #[schema(example = "job_0190a1b2c3d47000800000000000000b")]
    pub id: String,
    /// Names this claim. Opaque: it is sent back with `finish` and `extend`.
    pub lease: String,
    pub attempt: u32,
    /// The same for every attempt: what the world is asked to do once is filed under it.
    pub key: String,
    pub queue: String,
    pub service: String,
    /// How urgent it is; higher goes first.
    #[serde(default)]
    pub priority: i32,
    /// What there is to do; of a plain job its payload.
    #[serde(default)]
    pub input: Value,
    #[serde(default)]
    pub params: Value,
    /// What was left when it was suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<Value>,
    /// When the attempt is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// When somebody else gets it, unless the lease is extended.
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
pub enum Outcome {
    /// With `result`.
    #[default]
    Done,
    /// Not finished: asked again with `memo` after `recheck_ms`, or reported by somebody.
    Suspended,
    /// With `error`.
    Failed,
}

/// Ends of jobs, each for itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Finish {
    /// At most 1,000.
    pub results: Vec<JobResult>,
}

/// How one job ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobResult {
    pub id: String,
    pub lease: String,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether trying again can help; absent = yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// With `failed`: the next attempt begins not before so long, whatever the backoff says; of a call of a run, up to
    /// an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub memo: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recheck_ms: Option<u64>,
    /// With `failed`: the network, a time-out, somebody who is busy. A node of the dag form is then tried again within a
    /// second, and after three more tries suspended and asked again, whatever its own retries are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub temporary: bool,
    /// What was written beside the result, for people; the last 64 KiB are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The same line by line, [`Said`]s or plain texts: the first 1,000, each with 4,096 bytes of text, and 256 KiB
    /// together. Of what cannot be read a line says so, and nothing else is lost.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Vec<Said>)]
    pub logs: Value,
}

/// What becomes of a claim, in a word for whoever holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// Somebody else has it, or it is over.
    Lost,
    /// Nobody wants it any more: stop.
    Canceled,
    /// The server could not say: nothing is known to have changed, and it can be asked again.
    Error,
}

/// What became of the ends, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finished {
    pub results: Vec<FinishVerdict>,
}

/// What became of one end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FinishVerdict {
    pub id: String,
    pub verdict: Verdict,
    /// With `error`: what went wrong, a code of `/docs/errors`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Keep these claims alive.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    /// What `claim` answered as `lease`; at most 1,000.
    pub leases: Vec<String>,
    /// From now on so long, 1,000 to 3,600,000; absent = 30,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
}

/// What became of the claims, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Extended {
    pub results: Vec<ExtendVerdict>,
}

/// What became of one claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExtendVerdict {
    pub lease: String,
    pub verdict: Verdict,
    /// With `error`: what went wrong, a code of `/docs/errors`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Says how a call that was suspended, or that a push worker took on, ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallReport {
    #[serde(default)]
    pub outcome: Outcome,
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
    #[schema(value_type = Vec<Said>)]
    pub logs: Value,
}

/// What became of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reported {
    /// The call.
    pub id: String,
    pub verdict: Verdict,
}
