//! Jobs of queues: the bodies and answers of `/api/v1/jobs`. The types of the pull protocol are in `pull`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{BackoffKind, FaultInfo, List, Time, is_default};

/// The state of a job, or of one attempt at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// Waiting for a worker. Before `due_at`, no worker can claim it.
    Queued,
    /// A worker holds its lease; with `suspended`, a worker asked to be called again at `due_at`.
    Running,
    /// An attempt failed, and the next one begins at `due_at`.
    Retrying,
    Completed,
    /// No attempt is left, or the error is not retryable.
    Failed,
    Canceled,
}

impl JobStatus {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            JobStatus::Queued => "queued",
            JobStatus::Running => "running",
            JobStatus::Retrying => "retrying",
            JobStatus::Completed => "completed",
            JobStatus::Failed => "failed",
            JobStatus::Canceled => "canceled",
        }
    }

    /// Whether the job has not ended.
    pub fn is_open(self) -> bool {
        match self {
            JobStatus::Queued | JobStatus::Running | JobStatus::Retrying => true,
            JobStatus::Completed | JobStatus::Failed | JobStatus::Canceled => false,
        }
    }
}

/// How often a failed job is tried again, and the delay before each try; absent fields have their defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobRetry {
    /// Tries after the first attempt, 0 to 999; default 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// The first delay; default 5,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// `exponential` doubles the delay with each try; default `exponential`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffKind>,
    /// The longest delay; default one hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_ms: Option<u64>,
    /// Whether each delay is a random part of its length between a half and the whole; default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
}

/// A job to create, with its payload as a `P`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(serialize = "P: Serialize + Default + PartialEq"))]
pub struct NewJob<P = Value> {
    /// The kind of work: workers of this service, or of the queue, claim the job.
    pub name: String,
    pub queue: String,
    /// Jobs with a higher priority are claimed first; default 0.
    #[serde(default)]
    pub priority: i32,
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(value_type = Value)]
    pub payload: P,
    /// A queue has at most one open job with this key; empty = no key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dedup_key: String,
    /// How long after its creation the job holds its key, even if it ends before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_for_ms: Option<u64>,
    /// Jobs of a queue with the same key share the queue's limits per key, and keys take turns.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub limit_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<JobRetry>,
    /// The earliest time of the first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Time>,
    /// Time limit of one attempt, from its claim; absent or 0 = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The account that pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

impl<P: Default> NewJob<P> {
    /// A job that is due at once.
    pub fn new(name: impl Into<String>, queue: impl Into<String>, payload: P) -> Self {
        NewJob { name: name.into(), queue: queue.into(), payload, ..NewJob::default() }
    }

    /// The same job, due at this time.
    #[must_use]
    pub fn at(self, run_at: Time) -> Self {
        NewJob { run_at: Some(run_at), ..self }
    }
}

/// One job, or an array of up to 10,000.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum NewJobs {
    One(Box<NewJob>),
    Many(Vec<NewJob>),
}

/// The job that a request created, or the open job that holds its deduplication key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobCreated {
    #[schema(example = "job_0190a1b2c3d47000800000000000000b")]
    pub id: String,
    pub status: JobStatus,
    /// The job existed before: it holds the same deduplication key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
}

/// The answer to one job or, in order, to an array of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum JobsCreated {
    One(JobCreated),
    Many(List<JobCreated>),
}

/// The price of a job and the part of it that was paid, in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct JobCost {
    pub estimated: i64,
    pub actual: i64,
}

/// A job in a list: without its payload and its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobSummary {
    #[schema(example = "job_0190a1b2c3d47000800000000000000b")]
    pub id: String,
    pub name: String,
    pub queue: String,
    pub status: JobStatus,
    /// When a worker can claim it next, while it waits for a time: `queued` before `run_at`, `retrying`, or suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Time>,
    /// Only while `running`: a worker suspended the job, and the job is claimed again at `due_at`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// The running attempt was told to stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    pub priority: i32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dedup_key: String,
    /// The number of the latest attempt, from 1.
    pub attempt: u32,
    /// Tries after the first attempt.
    pub retry_max: u32,
    /// The worker of the latest attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The error of a failed job, or of the attempt before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FaultInfo>,
    /// Whether the job is in the dead letter queue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dead_letter: bool,
    /// The schedule that created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The run whose call it carries: cancel or retry that run instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The node of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    pub created_at: Time,
    pub updated_at: Time,
}

/// A job with its payload, its settings and its latest attempt. Payload and result are `P`s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobDetail<P = Value> {
    #[serde(flatten)]
    pub summary: JobSummary,
    #[serde(default)]
    #[schema(value_type = Value)]
    pub payload: P,
    pub retry: JobRetry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Time>,
    /// Time limit of one attempt; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_for_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub limit_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<JobCost>,
    /// The value that a worker left for the next attempt when it suspended the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<Value>,
    /// The reason that was given when the dead letter was discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded: Option<String>,
    #[schema(value_type = JobAttempt)]
    pub latest_attempt: JobAttempt<P>,
}

/// One attempt at a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobAttempt<P = Value> {
    /// From 1.
    pub attempt: u32,
    /// `retrying`: the attempt failed and another one follows.
    pub status: JobStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    pub created_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub result: Option<P>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FaultInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_retry_at: Option<Time>,
}

/// Filters of the list of jobs, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct JobsQuery {
    /// One or several with commas: `queued`, `running`, `retrying`, `completed`, `failed`, `canceled`; `open` means the
    /// first three, `delayed` only queued jobs before their `due_at`, `suspended` only suspended ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The id of the worker that holds the job now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The id of the schedule that created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Created at or after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Created before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// The `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// 1 to 1,000; default 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}
