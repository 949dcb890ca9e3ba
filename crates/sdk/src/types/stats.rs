//! How the server, a flow and a run went: how many at once, how long, how many a second.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{RunStatus, Spread, Time};

/// How everything on the server that answers went since it started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Stats {
    pub timestamp: Time,
    pub parallelism: Load,
    pub nodes: NodePace,
    pub runs: RunPace,
    /// Flows that are counted by themselves, by name; at most 200, those that were heard of lately.
    pub flows: Vec<String>,
    pub server: ServerStats,
    pub process: ProcessStats,
    /// Only if the server hands out jobs through Redis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisStats>,
}

/// How a flow went on the server that answers since it started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct FlowStats {
    pub timestamp: Time,
    pub flow: String,
    /// Calls of its runs that somebody has.
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

/// How a run went, from its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunStats {
    pub run: String,
    pub flow: String,
    pub status: RunStatus,
    /// While it went on, in all its rounds.
    pub parallelism: Parallelism,
    /// How long the attempts at its nodes took, from when somebody had them.
    pub duration_ms: Spread,
    /// How long they were in a queue before that.
    #[serde(default)]
    pub waiting_ms: Spread,
    pub attempts: u64,
    /// By node; of more than 1,000 nodes, those that took longest.
    pub nodes: Vec<NodeDurations>,
}

/// How many calls somebody had at once, now and lately.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Load {
    pub running: u64,
    pub max_running: u64,
    /// Calls that this server put into a queue and that nobody has yet.
    #[serde(default)]
    pub waiting: u64,
    pub last_10s: Parallelism,
    pub last_minute: Parallelism,
    pub last_hour: Parallelism,
}

/// How many calls were open at once in a stretch of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Parallelism {
    /// `busy_ms` by `wall_ms`.
    pub average: f64,
    pub max: u64,
    /// The times of all calls added up.
    pub busy_ms: u64,
    /// How long the stretch is.
    pub wall_ms: u64,
    /// For how much of the stretch so many were open; what never was is left out.
    pub distribution: Vec<Level>,
}

/// For how much of a stretch of time so many calls were open.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Level {
    pub from: u64,
    /// Null = any more.
    pub to: Option<u64>,
    pub ms: u64,
    /// Of the whole stretch, from 0 to 1.
    pub share: f64,
}

/// How nodes went lately, and since the server started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct NodePace {
    pub last_10s: NodeStretch,
    pub last_minute: NodeStretch,
    pub last_hour: NodeStretch,
    pub total: NodeStretch,
}

/// How nodes went in a stretch of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeStretch {
    /// Nodes, and branches of fans, that were over: done or failed for good.
    pub ended: u64,
    /// The same a second.
    pub per_second: f64,
    /// Attempts at calls that somebody was given.
    pub started: u64,
    pub succeeded: u64,
    pub failed: u64,
    /// Attempts that answered that they are not finished; what comes of them is counted once more.
    #[serde(default)]
    pub suspended: u64,
    /// How long attempts took, from when somebody had the call.
    pub duration_ms: Spread,
    /// How long they were in a queue before that; of calls that need none, nothing.
    #[serde(default)]
    pub waiting_ms: Spread,
}

/// How runs went lately, and since the server started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct RunPace {
    pub last_10s: RunStretch,
    pub last_minute: RunStretch,
    pub last_hour: RunStretch,
    pub total: RunStretch,
}

/// How runs went in a stretch of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct RunStretch {
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    pub canceled: u64,
    /// Runs that ended, however they did, a second.
    pub per_second: f64,
    /// From the start to the end of each round.
    pub duration_ms: Spread,
}

/// How long the attempts at a node took.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeDurations {
    /// Its path, with `*` for the numbers of branches and turns.
    pub node: String,
    pub succeeded: u64,
    pub failed: u64,
    /// Attempts that answered that they are not finished; what comes of them is counted once more.
    #[serde(default)]
    pub suspended: u64,
    /// All attempts added up.
    pub total_ms: u64,
    /// How long attempts took, from when somebody had the call.
    pub duration_ms: Spread,
    /// How long they were in a queue before that.
    #[serde(default)]
    pub waiting_ms: Spread,
    /// How long the node took, from when its call was first made until it was over, whatever it waited for.
    #[serde(default)]
    pub node_ms: Spread,
}

/// What the server holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ServerStats {
    /// Runs in memory.
    pub hot_runs: u64,
    /// Calls that the server makes itself.
    pub calls: u64,
    /// Inputs that wait to be decided.
    pub inputs: u64,
}

/// How it goes with the Redis that a server hands out jobs through.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct RedisStats {
    /// Whether jobs are handed out through it now; while they are not, the store alone is used, and nothing is lost.
    pub up: bool,
    /// How often it was away since the server started.
    pub outages: u64,
    /// How often a queue was filled from the store.
    pub fills: u64,
}

/// What the process of the server uses; null where its system does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ProcessStats {
    pub up_ms: u64,
    /// Of all its threads.
    pub cpu_ms: Option<u64>,
    pub resident_bytes: Option<u64>,
    pub open_files: Option<u64>,
    pub threads: Option<u64>,
    /// Tasks of the asynchronous runtime that are alive.
    pub tasks: u64,
}
