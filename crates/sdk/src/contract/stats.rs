//! Statistics of the server, of a flow and of a run: parallelism, durations and rates.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{DurationPercentiles, RunStatus, Time};

/// How everything on the server that answers went since it started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct StatsResponse {
    pub timestamp: Time,
    pub parallelism: LoadInfo,
    pub nodes: NodePace,
    pub runs: RunPace,
    /// Flows that are counted by themselves, by name; at most 200, those that were heard of lately.
    pub flows: Vec<String>,
    pub server: ServerStatsInfo,
    pub process: ProcessStatsInfo,
    /// Only if the server hands out jobs through Redis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisStatsInfo>,
}

/// Statistics of a flow on the server that answers, since the server started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct FlowStatsInfo {
    pub timestamp: Time,
    pub flow: String,
    /// Calls of its runs that workers hold now.
    pub running: u64,
    /// The most that were at once.
    pub max_running: u64,
    /// How many calls a run had at once on average: the times of its calls added up, by its own; of runs that ended
    /// and that this server saw from their beginning on.
    pub average_parallelism: f64,
    pub nodes: NodePace,
    pub runs: RunPace,
    /// By node; of more than 100 nodes, the others are counted together as `/other`.
    pub by_node: Vec<NodeDurations>,
}

/// Statistics of a run, from its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunStats {
    pub run: String,
    pub flow: String,
    pub status: RunStatus,
    /// While it went on, in all its rounds.
    pub parallelism: ParallelismInfo,
    /// Durations of the attempts at its nodes, from the claim.
    pub duration_ms: DurationPercentiles,
    /// Durations in a queue before that.
    #[serde(default)]
    pub waiting_ms: DurationPercentiles,
    pub attempts: u64,
    /// By node; of more than 1,000 nodes, those that took longest.
    pub nodes: Vec<NodeDurations>,
}

/// Calls in progress at once, now and lately.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct LoadInfo {
    pub running: u64,
    pub max_running: u64,
    /// Calls that this server put into a queue and that no worker has claimed yet.
    #[serde(default)]
    pub waiting: u64,
    pub last_10s: ParallelismInfo,
    pub last_minute: ParallelismInfo,
    pub last_hour: ParallelismInfo,
}

/// How many calls were open at once in a span of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct ParallelismInfo {
    /// `busy_ms` by `wall_ms`.
    pub average: f64,
    pub max: u64,
    /// The times of all calls added up.
    pub busy_ms: u64,
    /// The length of the window.
    pub wall_ms: u64,
    /// The share of the window for each number of open calls; numbers that never occurred are left out.
    pub distribution: Vec<ParallelismLevel>,
}

/// The time of a window in which a range of calls was open.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct ParallelismLevel {
    pub from: u64,
    /// Null = any more.
    pub to: Option<u64>,
    pub ms: u64,
    /// The share of the whole window, from 0 to 1.
    pub share: f64,
}

/// Activity of nodes lately, and since the server started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct NodePace {
    pub last_10s: NodeWindow,
    pub last_minute: NodeWindow,
    pub last_hour: NodeWindow,
    pub total: NodeWindow,
}

/// How nodes went in a span of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeWindow {
    /// Nodes, and branches of fans, that were over: done or failed for good.
    pub ended: u64,
    /// The same a second.
    pub per_second: f64,
    /// Attempts that workers claimed or were pushed.
    pub started: u64,
    pub succeeded: u64,
    pub failed: u64,
    /// Attempts that ended suspended; their continuations are counted again.
    #[serde(default)]
    pub suspended: u64,
    /// Durations of attempts, from the claim or the push.
    pub duration_ms: DurationPercentiles,
    /// How long they were in a queue before that; of calls that need none, nothing.
    #[serde(default)]
    pub waiting_ms: DurationPercentiles,
}

/// How runs went lately, and since the server started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct RunPace {
    pub last_10s: RunWindow,
    pub last_minute: RunWindow,
    pub last_hour: RunWindow,
    pub total: RunWindow,
}

/// How runs went in a span of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct RunWindow {
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    pub canceled: u64,
    /// Runs that ended, however they did, a second.
    pub per_second: f64,
    /// From the start to the end of each round.
    pub duration_ms: DurationPercentiles,
}

/// How long the attempts at a node took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeDurations {
    /// Its path, with `*` for the numbers of branches and turns.
    pub node: String,
    pub succeeded: u64,
    pub failed: u64,
    /// Attempts that ended suspended; their continuations are counted again.
    #[serde(default)]
    pub suspended: u64,
    /// All attempts added up.
    pub total_ms: u64,
    /// Durations of attempts, from the claim or the push.
    pub duration_ms: DurationPercentiles,
    /// Durations in a queue before that.
    #[serde(default)]
    pub waiting_ms: DurationPercentiles,
    /// Durations of the node, from its first call until its end, waits included.
    #[serde(default)]
    pub node_ms: DurationPercentiles,
}

/// Objects in the memory of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ServerStatsInfo {
    /// Runs in memory.
    pub hot_runs: u64,
    /// Calls that the server makes itself.
    pub calls: u64,
    /// Inputs that wait to be decided.
    pub inputs: u64,
}

/// How it goes with the Redis that a server hands out jobs through.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct RedisStatsInfo {
    /// Whether jobs are handed out through it now; while they are not, the store alone is used, and nothing is lost.
    pub up: bool,
    /// How often it was away since the server started.
    pub outages: u64,
    /// How often a queue was filled from the store.
    pub fills: u64,
}

/// Resources of the server process; null where the operating system does not tell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ProcessStatsInfo {
    pub up_ms: u64,
    /// CPU time of all its threads.
    pub cpu_ms: Option<u64>,
    pub resident_bytes: Option<u64>,
    pub open_files: Option<u64>,
    pub threads: Option<u64>,
    /// Tasks of the asynchronous runtime that are alive.
    pub tasks: u64,
}
