//! Queues: how full they are, how fast they go, and what holds them back.

mod limit;

use windlass_store::queue::QueueDepth;

pub use limit::{LimitError, RATE_MS_MAX};

use crate::{Runtime, RuntimeError};

/// A queue as it stands.
#[derive(Debug, Clone)]
pub struct QueueView {
    /// Also whether it is paused, and its limits.
    pub depth: QueueDepth,
    pub stats: QueueStats,
}

/// How a queue went lately, as far as this server has seen it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueStats {
    pub last_10s: Stretch,
    pub last_minute: Stretch,
    pub last_hour: Stretch,
}

/// What happened in a stretch of time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stretch {
    pub n_created: u64,
    pub n_started: u64,
    pub n_succeeded: u64,
    /// Attempts that failed, whether or not another one follows.
    pub n_failed: u64,
    /// Jobs that became dead letters.
    pub n_dead: u64,
    /// From when a job could be claimed until it was.
    pub wait_ms: Spread,
    /// From the claim to the end of the attempt.
    pub work_ms: Spread,
}

/// How long something took, over many; nothing when there was none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spread {
    pub p50: Option<u64>,
    pub p95: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

impl Runtime {
    /// All queues that have settings, open jobs or dead letters, by name.
    pub async fn queues(&self) -> Result<Vec<QueueView>, RuntimeError> {
        unimplemented!()
    }

    /// One queue; one that nobody has used is empty.
    pub async fn queue(&self, _name: &str) -> Result<QueueView, RuntimeError> {
        unimplemented!()
    }
}
