//! Schedules: tasks and runs that start by the clock.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::{NewTask, Time};

/// The behaviour of a slot while the job or run of an earlier slot is still open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OverlapRule {
    /// It passes.
    #[default]
    Skip,
    /// It waits, in order, until nothing is running.
    Queue,
    /// The open job or run is canceled, and the slot fires.
    Cancel,
    /// It fires all the same.
    Allow,
}

/// The handling of slots that passed while no server was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CatchupRule {
    /// They pass.
    #[default]
    None,
    /// The latest of them fires.
    Last,
    /// They all fire, at most 1,000 of them.
    All,
}

/// The handling of slots when clocks change. A pattern for every hour follows real time under all of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DstRule {
    /// A slot that does not exist fires right after the gap; one that comes twice, the first time.
    #[default]
    Shift,
    /// A slot that does not exist does not fire; one that comes twice fires the first time.
    Skip,
    /// A slot that does not exist fires right after the gap; one that comes twice fires twice.
    Twice,
}

/// A schedule to be made. It starts one of: a copy of an existing task, a task, a run of a flow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSchedule {
    /// Default: the name of the flow or task that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Five fields, or six with seconds first, or a word such as `@daily`.
    #[schema(example = "0 9 * * 1-5")]
    pub cron_expr: String,
    /// An IANA name; absent = UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "Europe/Berlin")]
    pub timezone: Option<String>,
    /// Absent = yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catchup: Option<CatchupRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<DstRule>,
    /// How late a missed slot may still be caught up; absent or 0 = a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u64>,
    /// The id of a task: tasks like it are created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_template_id: Option<String>,
    /// The task that is created; its `type` may be left out, and it has no `run_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<NewTask>,
    /// The name or the id of the flow that is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// With `flow`: the number of the version; absent = the latest published one when it fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The parameters of the run, with `flow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub params: Option<Map<String, Value>>,
    /// With `flow`: who pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// A change of a schedule; absent fields keep their values. The target is replaced as a whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulePatch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron_expr: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catchup: Option<CatchupRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<DstRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_template_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<NewTask>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub params: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// One page of schedules, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Schedules {
    pub schedules: Vec<ScheduleInfo>,
    /// The number of items on this page.
    pub count: usize,
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A schedule as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleInfo {
    pub id: String,
    /// The same.
    pub schedule_id: String,
    pub name: String,
    pub cron_expr: String,
    pub timezone: String,
    pub enabled: bool,
    pub overlap: OverlapRule,
    pub catchup: CatchupRule,
    pub dst: DstRule,
    /// How late a missed slot may still be caught up.
    pub window_ms: u64,
    /// The task that it creates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<NewTask>,
    /// The flow that it starts a run of, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub params: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The next slots, soonest first; none while it is not enabled.
    pub next_runs: Vec<Time>,
    /// Jobs and runs that it started and that have not ended, oldest first.
    pub running: Vec<StartedId>,
    /// Slots that wait for an open job or run, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Time>,
    /// Everything up to this moment is decided.
    pub decided_until: Option<Time>,
    /// How often it started something.
    #[serde(default)]
    pub fired: u64,
    /// Slots that passed without a start, for any reason.
    #[serde(default)]
    pub passed: u64,
    /// The latest start.
    #[serde(default)]
    pub last_run: Option<LastRun>,
    /// Why the latest slot that should have started something did not; absent once a later one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<MissedSlot>,
    pub created_at: Time,
    pub updated_at: Time,
}

/// The latest start of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastRun {
    /// The time of the slot, or of the trigger.
    pub slot: Time,
    /// A client triggered it.
    #[serde(default)]
    pub manual: bool,
    #[serde(flatten)]
    pub started: StartedId,
}

/// A slot that should have started something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissedSlot {
    pub slot: Time,
    pub at: Time,
    /// Why it did not.
    pub reason: String,
}

/// The task or the run that a schedule started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartedId {
    TaskId(String),
    /// As the native surface names it.
    RunId(String),
}

/// The start that a trigger caused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Triggered {
    pub schedule_id: String,
    #[serde(flatten)]
    pub started: StartedId,
}

/// Turns a schedule on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Toggle {
    /// Absent = the other way round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// A schedule that is no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleDeleted {
    pub id: String,
    pub deleted: bool,
}

/// How many slots are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NextQuery {
    /// 1 to 1,000; absent = 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}

/// Asks when something would be due.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulePreviewRequest {
    pub cron_expr: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<DstRule>,
    /// 1 to 1,000; absent = 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}

/// When something is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NextRuns {
    pub cron_expr: String,
    pub timezone: String,
    /// Soonest first.
    pub next_runs: Vec<Time>,
    /// The same on the clocks of the time zone.
    pub local: Vec<String>,
    pub count: usize,
}
