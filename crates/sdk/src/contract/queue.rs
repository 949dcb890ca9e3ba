//! Queues: depth, throughput and limits; and their dead letters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{FaultInfo, Time};

/// One page of the queues that have settings, open tasks or dead letters, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Queues {
    pub queues: Vec<QueueInfo>,
    /// The number of items on this page.
    pub count: usize,
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A queue as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueInfo {
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
    pub limits: QueueLimitSettings,
    pub stats: QueueStatsInfo,
}

/// The limits of a queue; an absent limit does not apply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QueueLimitSettings {
    /// Tasks of the queue that workers may have at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How often one is handed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateLimit>,
    /// Tasks with the same `limit_key` that workers may have at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_concurrency: Option<u32>,
    /// How often one with the same `limit_key` is handed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_rate: Option<RateLimit>,
    /// Whether keys take turns even if nothing limits them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fair: bool,
}

/// A change of limits: an absent field keeps its limit, and `Some(None)` removes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LimitChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Option<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Option<RateLimit>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_concurrency: Option<Option<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_rate: Option<Option<RateLimit>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair: Option<bool>,
}

/// So many in so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    #[schema(minimum = 1)]
    pub count: u32,
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub per_ms: u32,
    /// How many may come at once after a pause; absent = `count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub burst: Option<u32>,
}

/// How a queue went lately, as far as the server that answers has seen it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct QueueStatsInfo {
    pub last_10s: QueueWindow,
    pub last_minute: QueueWindow,
    pub last_hour: QueueWindow,
}

/// Counts and durations of one time window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct QueueWindow {
    pub created: u64,
    pub started: u64,
    pub succeeded: u64,
    /// Attempts that failed, whether or not another one followed.
    pub failed: u64,
    /// Tasks that became dead letters.
    pub dead: u64,
    pub per_second: Rates,
    /// From when a task could be claimed until it was.
    pub wait_ms: DurationPercentiles,
    /// From the claim to the end of the attempt.
    pub work_ms: DurationPercentiles,
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
pub struct DurationPercentiles {
    #[serde(default)]
    pub mean: Option<u64>,
    pub p50: Option<u64>,
    pub p95: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

/// A change of a queue; absent fields keep their values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// With PUT, a limit that is not named is lifted; with PATCH it stays, and null lifts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<QueueLimitSettings>,
}

/// Dead letters of a queue, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetters<T> {
    pub queue: String,
    /// The number of items on this page.
    pub count: usize,
    pub items: Vec<T>,
    /// The next page: send it back as `after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A dead letter: an object, or, unless `format=objects` is asked for, its JSON as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum DeadLetterItem {
    /// `{task_run_id, task_id, attempt, payload, priority, queue_name, max_retries, error}`.
    Text(String),
    Object(Box<DeadLetter>),
}

/// A task that failed for good, until a client replays or discards it.
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
    pub error: FaultInfo,
    /// The group that it belongs to.
    pub fingerprint: String,
    /// The worker of the last attempt.
    pub worker_id: Option<String>,
    pub created_at: Time,
    pub failed_at: Time,
}

/// Filters of the list of dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DeadLettersQuery {
    /// 1 to 1,000; absent = 50. A page may hold fewer where they are large, and then has a `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// Only those of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// `strings` (as if absent) or `objects`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// Dead letters of a queue, grouped by error, the largest group first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterGroups {
    pub queue: String,
    pub groups: Vec<DeadLetterGroupInfo>,
    pub count: usize,
}

/// Dead letters that failed in the same way, numbers, ids and quoted words aside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterGroupInfo {
    pub fingerprint: String,
    /// How many they are.
    pub count: u64,
    /// The error of the latest one.
    pub error: FaultInfo,
    /// The latest one.
    pub latest_task_id: String,
    pub first_at: Time,
    pub last_at: Time,
}

/// Tries dead letters again: the oldest `count`, those of a group, or these.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayDeadLetters {
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
pub struct DiscardDeadLetters {
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

/// The result of a replay or a discard.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct DeadLettersMoved {
    pub queue: String,
    /// How many were replayed, or discarded.
    pub moved: usize,
    /// Which.
    #[serde(default)]
    pub ids: Vec<String>,
    /// Those that stay as they are: asked for by id and no dead letters of this queue, or, however they were asked
    /// for, with a deduplication key that another task has now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<DeadLetterRefusal>,
}

/// A dead letter that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterRefusal {
    pub task_id: String,
    pub reason: String,
}
