//! Runs: starting them, telling them something, looking at them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Time;

/// A run to be started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// The parameters of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub params: Option<Map<String, Value>>,
    /// Another word for `params`; give one of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub variables: Option<Map<String, Value>>,
    /// The number of the version; absent or 0 = the highest that is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Starting again with the same id and the same body starts nothing and answers with the run that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The account that pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(default)]
    pub exec_mode: StartMode,
    /// For the modes `specified_starts` and `isolated_nodes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start_node_ids: Vec<String>,
    /// Absent: the definition's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<RunPriority>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Advanced only by steps from outside.
    #[serde(default)]
    pub manual: bool,
    /// The most that its calls may cost, in minor units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<i64>,
    #[serde(default)]
    pub on_short_balance: OnShortBalance,
}

/// Which nodes of a definition run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartMode {
    #[default]
    All,
    /// From the given nodes on.
    SpecifiedStarts,
    /// Only the given nodes.
    IsolatedNodes,
}

/// Five classes; higher ones go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunPriority {
    Lowest,
    Low,
    Medium,
    High,
    Highest,
}

impl RunPriority {
    /// The priority in one word.
    pub fn word(self) -> &'static str {
        match self {
            RunPriority::Lowest => "lowest",
            RunPriority::Low => "low",
            RunPriority::Medium => "medium",
            RunPriority::High => "high",
            RunPriority::Highest => "highest",
        }
    }
}

/// The reaction to a call that the account cannot pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnShortBalance {
    /// Its node fails.
    #[default]
    Fail,
    /// It waits for money.
    Wait,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    Pending,
    /// A worker or the server executes one of its nodes.
    Running,
    /// It waits for a timer, a signal, an approval, a retry, a report or money.
    Waiting,
    Paused,
    Canceling,
    Completed,
    Failed,
    Canceled,
}

impl RunStatus {
    /// The word used on the wire.
    pub fn word(self) -> &'static str {
        match self {
            RunStatus::Pending => "pending",
            RunStatus::Running => "running",
            RunStatus::Waiting => "waiting",
            RunStatus::Paused => "paused",
            RunStatus::Canceling => "canceling",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Canceled => "canceled",
        }
    }

    /// Whether the run has ended.
    pub fn is_ended(self) -> bool {
        match self {
            RunStatus::Completed | RunStatus::Failed | RunStatus::Canceled => true,
            RunStatus::Pending
            | RunStatus::Running
            | RunStatus::Waiting
            | RunStatus::Paused
            | RunStatus::Canceling => false,
        }
    }
}

/// The result of a request to start a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StartResponse {
    #[schema(example = "run_0190a1b2c3d47000800000000000000b")]
    pub id: String,
    pub status: RunStatus,
    /// The name of the flow.
    pub flow: String,
    pub flow_id: String,
    /// The number of the version.
    pub version: u32,
    pub version_id: String,
    /// `false`: an earlier request with the same id started it.
    pub created: bool,
    /// The run as it is after the wait, when `wait_ms` asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Box<RunDetail>>,
}

/// A run as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    pub id: String,
    /// The name of the flow.
    pub flow: String,
    pub flow_id: String,
    /// The number of the version.
    pub version: u32,
    pub version_id: String,
    pub status: RunStatus,
    /// Starts at 1; retry and rerun open the next.
    pub round: u32,
    /// The node that was entered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The action with which a node of the outermost scope ended last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    pub step_count: u64,
    /// Entries in its journal.
    pub len: u64,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The call of another run that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_id: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FaultInfo>,
    pub cost: RunCost,
    /// When it goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_at: Option<Time>,
    pub created_at: Time,
    pub updated_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
}

/// The call of a run that started another run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ParentCall {
    pub run: String,
    pub node: String,
}

/// A failure, and where it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FaultInfo {
    /// The node; absent where it is told by the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    pub message: String,
    /// One word: `error`, `transport`, `timeout`, `no_worker`, `lost`, `balance`, …
    pub kind: String,
    /// Whether the worker that failed marked the error as retryable.
    pub retryable: bool,
}

/// The estimated and the actual cost of a run, in minor units, with all its child runs that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct RunCost {
    pub estimated: i64,
    pub actual: i64,
    /// The part of its own calls, where child runs cost something too. Not shown in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnCost>,
}

/// The estimated and the actual cost of a run's own calls, in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct OwnCost {
    pub estimated: i64,
    pub actual: i64,
}

/// A run, wholly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunDetail {
    #[serde(flatten)]
    pub summary: RunSummary,
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// The shared state of the outermost scope.
    #[schema(value_type = Object)]
    pub shared: Map<String, Value>,
    /// The output of the run, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// By path: `fetch`, `sub/fetch`, `each/3`.
    pub node_states: BTreeMap<String, NodeInfo>,
    /// Whether there are more nodes than are shown: branches of large fans are left out.
    #[serde(default)]
    pub more_nodes: bool,
    pub exec_mode: StartMode,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start_node_ids: Vec<String>,
    pub priority: RunPriority,
    pub manual: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<i64>,
}

/// The state of one node of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeInfo {
    /// `pending`, `running`, `waiting`, `retrying`, `suspended`, `parked`, `completed`, `failed`, `skipped` or
    /// `canceled`.
    pub status: String,
    /// The title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The type as the definition spells it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Steps form: where it is among the branches around it, `{parallel}_b{branch}_s{step}`; in a turn of a loop with
    /// `_i{turn}` behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FaultInfo>,
    /// The job that carries its call, or carried it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The call that may be reported now, without the signature that the report needs: its worker has the whole id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The child run that makes its call, or made it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// Attempts made in this visit.
    #[serde(default)]
    pub attempts: u32,
    /// The round in which it was entered last; absent if it was not entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// How far the branches of a fan are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branches: Option<BranchCounts>,
}

/// How far the branches of a fan are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct BranchCounts {
    pub total: usize,
    pub open: usize,
    pub failed: usize,
    /// Not started yet.
    pub waiting: usize,
}

/// A run as it was after so many entries of its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunState {
    pub id: String,
    /// Entries of the journal that are in it.
    pub at: u64,
    /// Entries of the journal in all.
    pub len: u64,
    /// When the last of these entries was written.
    pub time: Time,
    pub status: RunStatus,
    pub round: u32,
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    #[schema(value_type = Object)]
    pub shared: Map<String, Value>,
    /// The newest value of every signal.
    #[schema(value_type = Object)]
    pub signals: Map<String, Value>,
    pub node_states: BTreeMap<String, NodeInfo>,
    /// Whether there are more nodes than are shown: branches of large fans are left out.
    #[serde(default)]
    pub more_nodes: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FaultInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    pub cost: RunCost,
}
