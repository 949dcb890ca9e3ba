//! The overview of a server and its store, and time series for charts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Time;

/// The figures of the first page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    pub at: Time,
    pub tiles: OverviewTiles,
    /// Services with work or workers.
    pub services: Vec<ServiceDemand>,
    /// Things that need a person, the most urgent first.
    pub attention: Vec<AttentionItem>,
    /// Whether the store has no flow and no run.
    pub is_empty: bool,
}

/// The numbers of the first page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct OverviewTiles {
    /// Runs with a call in progress.
    pub running: TileCount,
    /// Jobs and calls in queues.
    pub queued: TileCount,
    /// Runs that wait for a timer, a signal, an approval, a retry or money.
    pub waiting: TileCount,
    /// Runs that were created and failed in the last 24 hours.
    pub failed_24h: TileCount,
    pub dead_letters: TileCount,
    /// Open approvals.
    pub approvals: TileCount,
    pub workers: WorkerCounts,
}

/// A number that is counted up to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct TileCount {
    pub count: u64,
    /// Whether there are more, which were not counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// Workers by their state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct WorkerCounts {
    pub online: u64,
    /// Without a heartbeat for longer than a worker may be silent.
    pub stale: u64,
    pub draining: u64,
}

/// The demand for a service and its supply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ServiceDemand {
    pub name: String,
    /// Calls and jobs that wait in its queue.
    pub queued: u64,
    pub running: u64,
    /// Live workers.
    pub n_workers: u64,
    /// Calls that these workers take at a time.
    pub capacity: u64,
}

/// Something that needs a person.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct AttentionItem {
    /// `trouble`, `no_worker`, `missed_schedule`, `dead_letters`, `lease_expired`, `low_balance` or `queue_paused`.
    pub kind: String,
    /// The name or id of the thing.
    pub subject: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// The command that shows more, or the remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The span of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SeriesQuery {
    /// `1h`, `6h`, `24h` or `7d`, until now; absent = `1h`, unless `from` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Absent = now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
    /// Seconds between two points, a multiple of 60; absent = so many that there are at most 360 points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Only the jobs of this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
}

/// Columns of a chart, all of the same length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Series {
    pub from: Time,
    pub to: Time,
    /// Seconds between two points.
    pub step: u64,
    /// The beginning of each point, in seconds since 1970.
    pub at: Vec<i64>,
    /// By name; null = nothing was recorded.
    #[schema(value_type = Object)]
    pub series: BTreeMap<String, Vec<Option<f64>>>,
}

/// The program and its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct About {
    pub version: String,
    /// The id of the server that answers.
    pub server: String,
    pub project: String,
    pub up_ms: u64,
    /// Whether several servers may share the store.
    pub is_shared: bool,
    /// Servers with a heartbeat.
    pub servers: Vec<ServerSummary>,
    /// How long ended runs are kept; absent = for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain_ms: Option<u64>,
    /// How long a worker may be silent.
    pub worker_ttl_ms: u64,
}

/// One server on the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerSummary {
    pub id: String,
    pub name: String,
    pub version: String,
    pub started_at: Time,
    pub heartbeat_at: Time,
}
