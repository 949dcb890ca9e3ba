//! Workers, and the health of the server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{RedisStatsInfo, Time};

/// One page of workers, dead or alive, by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Workers {
    pub workers: Vec<WorkerInfo>,
    /// The number of items on this page.
    pub count: usize,
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Workers that this server refused because of their addresses, the latest refusal first; at most 100, and none
    /// from before the start of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedWorker>,
}

/// A worker whose registration was refused because of its address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedWorker {
    pub id: String,
    pub url: String,
    /// Why, with the setting that allows it.
    pub reason: String,
    pub at: Time,
}

/// A process that performs calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerInfo {
    pub id: String,
    pub name: String,
    pub queues: Vec<String>,
    pub services: Vec<String>,
    pub heartbeat_at: Time,
    /// `online` or `offline`.
    pub status: String,
    pub capacity: i64,
    pub load: i64,
    /// Where it is called; empty for one that only claims.
    #[serde(default)]
    pub url: String,
    /// `http`, `async` or `local`.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// The worker gets no more jobs, and stops when its current ones have ended.
    #[serde(default)]
    pub is_draining: bool,
    /// Jobs that it has now, oldest first; at most 100.
    #[serde(default)]
    pub tasks: Vec<WorkerTask>,
}

/// A job that a worker has now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerTask {
    pub task_id: String,
    pub name: String,
    pub queue_name: String,
    pub attempt: u32,
    /// When it was claimed.
    pub since: Time,
}

/// The server is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
    /// The version of the program.
    #[serde(default)]
    pub version: String,
}

/// Whether the server takes work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    pub ready: bool,
    pub timestamp: Time,
    /// How far the wall clock of the server is behind its time. Above a minute it is a warning, above a day a trouble.
    #[serde(default)]
    pub clock_skew_ms: u64,
    /// The reason why the server takes no work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<String>,
    /// Things that an operator should know although the server takes work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Only if it hands out jobs through Redis. One that is away keeps it from nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisStatsInfo>,
}
