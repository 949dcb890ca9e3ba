//! Queues: how full they are, how fast they go, what holds them back; and their dead letters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{Fault, Time};

/// All queues that have settings, open tasks or dead letters, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Queues {
    pub queues: Vec<Queue>,
    pub count: usize,
}

/// A queue as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    pub name: String,
    /// Nothing is handed out from it.
    pub paused: bool,
    /// Open tasks by state: `pending`, `queued`, `running`, `suspended`, `retrying`.
    pub depth: BTreeMap<String, u64>,
    /// All open tasks.
    pub open: u64,
    pub dead_letters: u64,
    /// How long the task that can be claimed longest has been waiting; null when none can be.
    pub oldest_age_ms: Option<u64>,
    pub limits: QueueLimits,
    pub stats: QueueStats,
}

/// What holds a queue back; what is absent does not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QueueLimits {
    /// Tasks of the queue that workers may have at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How often one is handed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Tasks with the same `limit_key` that workers may have at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_concurrency: Option<u32>,
    /// How often one with the same `limit_key` is handed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_rate: Option<Rate>,
    /// Whether keys take turns even if nothing limits them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fair: bool,
}

/// Limits that are to be different: what is absent stays, and `Some(None)` lifts a limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LimitChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Option<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Option<Rate>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_concurrency: Option<Option<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_rate: Option<Option<Rate>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair: Option<bool>,
}

/// So many in so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    pub count: u32,
    pub per_ms: u32,
    /// How many may come at once after a pause; absent = `count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

/// How a queue went lately, as far as the server that answers has seen it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct QueueStats {
    pub last_10s: Stretch,
    pub last_minute: Stretch,
    pub last_hour: Stretch,
}

/// What happened in a stretch of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Stretch {
    pub created: u64,
    pub started: u64,
    pub succeeded: u64,
    /// Attempts that failed, whether or not another one followed.
    pub failed: u64,
    /// Tasks that became dead letters.
    pub dead: u64,
    pub per_second: Rates,
    /// From when a task could be claimed until it was.
    pub wait_ms: Spread,
    /// From the claim to the end of the attempt.
    pub work_ms: Spread,
}

/// The same per second.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Rates {
    pub created: f64,
    pub started: f64,
    pub succeeded: f64,
    pub failed: f64,
    pub dead: f64,
}

/// How long something took, over many; null when there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Spread {
    #[serde(default)]
    pub mean: Option<u64>,
    pub p50: Option<u64>,
    pub p95: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

/// What is to be different about a queue; what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// With PUT, a limit that is not named is lifted; with PATCH it stays, and null lifts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<QueueLimits>,
}

/// Dead letters of a queue, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetters<T> {
    pub queue: String,
    /// How many are on this page.
    pub count: usize,
    pub items: Vec<T>,
    /// Where the next page begins: send it back as `after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A dead letter: an object, or, unless `format=objects` is asked for, its JSON as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Letter {
    /// `{task_run_id, task_id, attempt, payload, priority, queue_name, max_retries, error}`.
    Text(String),
    Object(Box<DeadLetter>),
}

/// A task that failed for good, until somebody replays or discards it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetter {
    /// Its last attempt.
    pub task_run_id: String,
    pub task_id: String,
    pub name: String,
    pub attempt: u32,
    pub payload: Value,
    pub priority: i32,
    pub queue_name: String,
    pub max_retries: u32,
    pub error: Fault,
    /// The group that it belongs to.
    pub fingerprint: String,
    /// Who had it last.
    pub worker_id: Option<String>,
    pub created_at: Time,
    pub failed_at: Time,
}

/// Which dead letters are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LettersQuery {
    /// 1 to 1,000; absent = 50. A page may hold fewer where they are large, and then has a `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// Only those of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// What the page before answered as `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// `strings` (as if absent) or `objects`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// Dead letters of a queue by what went wrong, the largest group first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LetterGroups {
    pub queue: String,
    pub groups: Vec<LetterGroup>,
    pub count: usize,
}

/// Dead letters that failed in the same way, numbers, ids and quoted words aside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LetterGroup {
    pub fingerprint: String,
    /// How many they are.
    pub count: u64,
    /// Of the latest one.
    pub error: Fault,
    /// The latest one.
    pub latest_task_id: String,
    pub first_at: Time,
    pub last_at: Time,
}

/// Tries dead letters again: the oldest `count`, those of a group, or these.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayLetters {
    /// At most so many, up to 10,000; absent = 1, or with a fingerprint all, up to 10,000 a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// These tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// Those of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Absent = the priority that each has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub override_priority: Option<i32>,
    /// Laid over each payload; null in it removes a field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
    /// At most so many begin per second, the others later; absent = all at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<u32>,
    /// The same request again, with the same id, replays nothing again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_id: Option<String>,
}

/// Gives dead letters up: the oldest `count`, those of a group, or these.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiscardLetters {
    /// Why.
    pub reason: String,
    /// At most so many, up to 10,000; with a fingerprint, absent = all, up to 10,000 a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// These tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// Those of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// What became of dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct LettersMoved {
    pub queue: String,
    /// How many were replayed, or discarded.
    pub moved: usize,
    /// Which.
    #[serde(default)]
    pub ids: Vec<String>,
    /// Those that stay as they are: asked for by id and no dead letters of this queue, or, however they were asked
    /// for, with a deduplication key that another task has now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<LetterRefused>,
}

/// A dead letter that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LetterRefused {
    pub task_id: String,
    pub reason: String,
}
