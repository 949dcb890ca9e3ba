//! Tasks: jobs in the words of the queue platform surface. A *run* of a task is one attempt at it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{FaultInfo, Time, is_default};

/// When a task is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskType {
    /// At once.
    #[default]
    Immediate,
    /// At `run_at`.
    Scheduled,
}

/// A task to be created.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(serialize = "P: Serialize + Default + PartialEq"))]
pub struct NewTask<P = Value> {
    /// The kind of work: workers of this service, or of the queue, claim the task.
    pub name: String,
    /// Required, except in the task of a schedule.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(required = true)]
    pub kind: Option<TaskType>,
    pub queue_name: String,
    /// Higher goes first.
    #[serde(default)]
    pub priority: i32,
    #[serde(default, skip_serializing_if = "is_default")]
    #[schema(value_type = Value)]
    pub payload: P,
    /// Among open tasks of a queue there is one with this key; empty = no matter.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dedup_key: String,
    /// How long after its creation the key stays taken, even if the task ends before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_for_ms: Option<u64>,
    /// Tasks of a queue with the same key share the queue's limits per key, and keys take turns.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub limit_key: String,
    /// All attempts, the first included, up to 1,000; absent = 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Not before; for the type `scheduled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Time>,
    /// Time limit of one attempt, from its claim; absent or 0 = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<TaskBackoff>,
    /// The account that pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

impl<P: Default> NewTask<P> {
    /// A task that is due at once.
    pub fn new(name: impl Into<String>, queue_name: impl Into<String>, payload: P) -> Self {
        NewTask {
            name: name.into(),
            kind: Some(TaskType::Immediate),
            queue_name: queue_name.into(),
            payload,
            ..NewTask::default()
        }
    }

    /// The same, due at this moment.
    #[must_use]
    pub fn at(self, run_at: Time) -> Self {
        NewTask { kind: Some(TaskType::Scheduled), run_at: Some(run_at), ..self }
    }
}

/// How delays between attempts grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackoffKind {
    /// They do not.
    Fixed,
    /// Each is twice the one before.
    #[default]
    Exponential,
}

/// The delays between attempts of a task; absent fields have their defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBackoff {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<BackoffKind>,
    /// The first delay; absent = 5,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_ms: Option<u64>,
    /// The longest delay; absent = an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_ms: Option<u64>,
    /// Whether delays are randomised, so that tasks which failed together are not retried together; default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
}

/// The result of a request to create a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskCreated {
    #[schema(example = "f2841987-0cf0-42e4-bb69-066ad5978c56")]
    pub task_id: String,
    /// `queued`, or `pending` before its time; for a duplicate, the status of the existing task.
    #[schema(example = "queued")]
    pub status: String,
    /// One with the same deduplication key was there: this is it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
}

/// The result of a batch, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TasksCreated {
    pub tasks: Vec<TaskCreated>,
    pub count: usize,
}

/// A task, its latest run, and where it stands in one word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskDetail<P = Value> {
    #[schema(value_type = TaskInfo)]
    pub task: TaskInfo<P>,
    #[schema(value_type = TaskRun)]
    pub latest_run: TaskRun<P>,
    /// `pending`, `queued`, `running`, `retrying`, `completed`, `failed` or `cancelled`.
    pub display_status: String,
}

/// The price of a task and the part of it that was paid, in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct TaskCost {
    pub estimated: i64,
    pub actual: i64,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskInfo<P = Value> {
    pub id: String,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: TaskType,
    pub queue_name: String,
    pub priority: i32,
    #[schema(value_type = Value)]
    pub payload: P,
    /// All attempts, the first included.
    pub max_retries: u32,
    /// `pending`, `queued` (until it ends), `completed`, `failed` or `cancelled`.
    pub status: String,
    pub dedup_key: String,
    pub created_at: Time,
    pub updated_at: Time,
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
    /// The charge of the latest round, and the part of it that was paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<TaskCost>,
    #[serde(default)]
    pub backoff: TaskBackoff,
    /// The value that a worker left when it suspended the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<Value>,
    /// Why it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FaultInfo>,
    /// Whether it lies in the dead letter queue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dead_letter: bool,
    /// Why it was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded: Option<String>,
    /// Whether its worker has been told to stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// The schedule that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_id: Option<String>,
    /// The run whose call it carries, as the native surface names it: cancel or retry it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
}

/// One attempt at a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskRun<P = Value> {
    /// A UUID: that of the task, with the number of the attempt in the place of its last eight digits.
    #[schema(example = "f2841987-0cf0-42e4-bb69-066a00000001")]
    pub id: String,
    pub task_id: String,
    /// From 1.
    pub attempt: u32,
    /// `queued`, `running`, `succeeded`, `failed`, `retrying` or `cancelled`.
    pub status: String,
    pub worker_id: Option<String>,
    pub started_at: Option<Time>,
    pub finished_at: Option<Time>,
    #[schema(value_type = Option<Value>)]
    pub result: Option<P>,
    pub next_retry_at: Option<Time>,
    pub created_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FaultInfo>,
}

/// Attempts at a task, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskRuns<P = Value> {
    pub task_id: String,
    #[schema(value_type = Vec<TaskRun>)]
    pub runs: Vec<TaskRun<P>>,
    /// The number of items on this page.
    pub count: usize,
    /// The cursor of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A task as it stands in a list: without its payload and its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskSummary {
    pub id: String,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: TaskType,
    pub queue_name: String,
    pub priority: i32,
    pub max_retries: u32,
    pub status: String,
    /// Where it stands, in one word.
    pub display_status: String,
    pub dedup_key: String,
    /// The number of the latest attempt.
    pub attempt: u32,
    /// The worker of the latest attempt.
    pub worker_id: Option<String>,
    /// When it can be claimed, while it waits for a moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_run_at: Option<Time>,
    /// The latest error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FaultInfo>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dead_letter: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    pub created_at: Time,
    pub updated_at: Time,
}

/// One page of tasks, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskList {
    pub tasks: Vec<TaskSummary>,
    /// The number of items on this page.
    pub count: usize,
    /// The cursor of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// Filters of the list of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TasksQuery {
    /// `pending`, `queued`, `running`, `suspended`, `retrying`, `completed`, `failed` or `cancelled`, or several with
    /// commas between; `open` stands for the first five.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The id of the worker that has it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The id of the schedule that made it.
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
    /// 1 to 1,000; absent = 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}
