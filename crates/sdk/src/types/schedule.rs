//! Schedules: tasks and runs that start by the clock.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::{NewTask, Time};

/// What a slot does while what an earlier one started is still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// It passes.
    #[default]
    Skip,
    /// It waits, in order, until nothing is running.
    Queue,
    /// What is running is cancelled, and it fires.
    Cancel,
    /// It fires all the same.
    Allow,
}

/// What happens to slots that passed while no server was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Catchup {
    /// They pass.
    #[default]
    None,
    /// The latest of them fires.
    Last,
    /// They all fire, at most 1,000 of them.
    All,
}

/// What happens to slots when clocks change. A pattern for every hour follows real time under all of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dst {
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
    /// Absent = the name of what it starts.
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
    pub overlap: Option<Overlap>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catchup: Option<Catchup>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<Dst>,
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
    /// With `flow`: what the run is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub params: Option<Map<String, Value>>,
    /// With `flow`: who pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// What is to be different about a schedule; what is absent stays. What it starts is changed as a whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron_expr: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catchup: Option<Catchup>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<Dst>,
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

/// All schedules, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Schedules {
    pub schedules: Vec<Schedule>,
    pub count: usize,
}

/// A schedule as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    pub id: String,
    pub name: String,
    pub cron_expr: String,
    pub timezone: String,
    pub enabled: bool,
    pub overlap: Overlap,
    pub catchup: Catchup,
    pub dst: Dst,
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
    /// What it started and has not ended, oldest first.
    pub running: Vec<Begun>,
    /// Slots that wait for what is running, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Time>,
    /// Everything up to this moment is decided.
    pub decided_until: Option<Time>,
    /// How often it started something.
    #[serde(default)]
    pub fired: u64,
    /// Slots that passed without starting anything, for whatever reason.
    #[serde(default)]
    pub passed: u64,
    /// What it started last.
    #[serde(default)]
    pub last_run: Option<LastRun>,
    /// Why the latest slot that should have started something did not; absent once a later one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Misfire>,
    pub created_at: Time,
    pub updated_at: Time,
}

/// What a schedule started last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastRun {
    /// The moment that it was due, or at which somebody asked for it.
    pub slot: Time,
    /// Somebody asked for it.
    #[serde(default)]
    pub manual: bool,
    #[serde(flatten)]
    pub started: Begun,
}

/// A slot that should have started something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Misfire {
    pub slot: Time,
    pub at: Time,
    /// Why it did not.
    pub reason: String,
}

/// What a schedule started: a task or a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Begun {
    TaskId(String),
    /// As the native surface names it.
    RunId(String),
}

/// What a schedule that was triggered started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Triggered {
    pub schedule_id: String,
    #[serde(flatten)]
    pub started: Begun,
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
pub struct Preview {
    pub cron_expr: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<Dst>,
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
