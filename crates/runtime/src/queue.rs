//! Queues: how full they are, how fast they go, and what holds them back.

mod limit;
mod relay;
mod ring;
mod spread;
mod tally;

use windlass_store::queue::QueueDepth;

pub use limit::{LimitError, RATE_MS_MAX};
pub use relay::RedisStats;

pub(crate) use relay::Relay;
pub(crate) use ring::News;
pub(crate) use spread::Times;
pub(crate) use tally::{Tallies, Tally};

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
    /// Attempts that answered that they are not finished; told apart only of calls of runs.
    pub n_suspended: u64,
    /// From when a job could be claimed until it was.
    pub wait_ms: Spread,
    /// From the claim to the end of the attempt.
    pub work_ms: Spread,
}

/// How long something took, over many; nothing when there was none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spread {
    pub mean: Option<u64>,
    pub p50: Option<u64>,
    pub p95: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

impl Runtime {
    /// All queues that have settings, open jobs or dead letters, by name.
    pub async fn queues(&self) -> Result<Vec<QueueView>, RuntimeError> {
        let now = self.clock().now();
        let depths = self.store().queues(now).await?;
        let view = |depth: QueueDepth| QueueView { stats: self.tallies().of(&depth.name, now), depth };
        Ok(depths.into_iter().map(view).collect())
    }

    /// One queue; one that nobody has used is empty.
    pub async fn queue(&self, name: &str) -> Result<QueueView, RuntimeError> {
        let now = self.clock().now();
        let depth = self.store().queues(now).await?.into_iter().find(|depth| depth.name == name);
        let nothing = || QueueDepth { name: name.to_owned(), ..QueueDepth::default() };
        Ok(QueueView { stats: self.tallies().of(name, now), depth: depth.unwrap_or_else(nothing) })
    }
}
