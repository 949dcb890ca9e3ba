//! A run with everything that a page about it shows: the snapshot, and the patches that keep it current.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{
    ChangeEvent, FaultInfo, FlowGraph, NodeInfo, RunPriority, RunSummary, StartMode, Time, WaitReason,
};

/// A value, or its beginning if it is long.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct ValueHead {
    /// Bytes of the value as JSON text.
    pub bytes: usize,
    /// The value, if its text has at most 2,048 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The beginning of the text of a longer value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// A run with its graph, its nodes and its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunPage {
    /// Entries of the journal that are in it: patches with a lower number are older.
    pub seq: u64,
    pub run: RunSummary,
    pub exec_mode: StartMode,
    #[serde(default)]
    pub start_node_ids: Vec<String>,
    pub priority: RunPriority,
    pub manual: bool,
    #[serde(default)]
    pub budget: Option<i64>,
    pub params: ValueHead,
    pub shared: ValueHead,
    #[serde(default)]
    pub result: Option<ValueHead>,
    /// By path, without outputs: attempts have them.
    pub node_states: BTreeMap<String, NodeInfo>,
    /// Whether there are more nodes than are shown.
    pub more_nodes: bool,
    /// The graph of its version, laid out from left to right.
    pub graph: FlowGraph,
    /// The newest attempts, oldest first.
    pub attempts: Vec<AttemptHead>,
    /// Whether there are older attempts.
    pub more_attempts: bool,
    /// Why it waits.
    pub why: Vec<WaitReason>,
    /// Child runs, newest first.
    pub children: Vec<RunSummary>,
    pub more_children: bool,
}

/// One attempt at a node, with the beginnings of its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptHead {
    /// The fence of the call; absent where no call was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    pub node: String,
    /// The entry into the node that it belongs to.
    pub visit: u64,
    /// Counts from 1 within a visit.
    pub attempt: u32,
    /// `ok`, `error`, `canceled`, `queued`, `running`, `suspended` or `waiting`.
    pub status: String,
    /// The index or the name of the branch, in a fan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The type as the definition spells it.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    pub input: ValueHead,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<ValueHead>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FaultInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// When the call or the wait began.
    pub queued_at: Time,
    /// When a worker took the call out of a queue; for any other attempt, when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
}

/// The value of a run that is downloaded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OutputQuery {
    /// `result`, `params` or `shared`; with `fence`, `output` or `input`. Absent = `result`, or `output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The fence of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
}

/// A change of a run. Each part that is there replaces the part of the same key as a whole, so that a patch may be
/// applied twice.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct RunPatch {
    /// `run:` and the id of the run.
    pub topic: String,
    pub seq: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunSummary>,
    /// Nodes that changed, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_states: BTreeMap<String, NodeInfo>,
    /// Paths of nodes that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Attempts that changed; their key is the fence, or node, visit and attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptHead>,
    /// Why it waits, if that was looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Vec<WaitReason>>,
    /// The snapshot has to be read again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
}

/// Filters of the numbers of runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunCountsQuery {
    /// A query of the query language; its terms with `status:` are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Numbers of runs, by a property.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunCounts {
    /// The property.
    pub by: String,
    pub counts: Vec<CountedValue>,
    pub at: Time,
}

/// The number of things with one value of a property.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CountedValue {
    pub value: String,
    pub count: u64,
    /// Whether there are more, which were not counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// A text to be found in ids and names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SearchQuery {
    /// The beginning of the id of a run, the id of a job, or a part of the name of a flow or queue.
    pub q: String,
    /// Hits of each kind, 1 to 50; absent = 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Things that were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchHits {
    pub items: Vec<SearchHit>,
}

/// A thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchHit {
    /// `run`, `flow`, `queue` or `job`.
    pub kind: String,
    pub id: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// Runs that changed, each with its newest state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunChanges {
    pub changes: Vec<ChangeEvent>,
    /// Whether there were more: read the lists again.
    pub more: bool,
}
