//! Queues: their settings and their depth.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_engine::time::Timestamp;

use crate::job::{HeldRow, JobStatus};

/// Settings of a queue. A queue without settings is not paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSettings {
    pub name: String,
    /// Nothing is handed out from it.
    pub is_paused: bool,
    pub limits: QueueLimits,
    pub updated_at: Timestamp,
}

impl QueueSettings {
    /// Whether it says the same as no settings.
    pub fn is_empty(&self) -> bool {
        !self.is_paused && self.limits == QueueLimits::default()
    }
}

/// Limits of a queue; none by default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueueLimits {
    /// Jobs of the queue that workers may hold at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How often one is handed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Jobs with the same limit key that workers may hold at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_concurrency: Option<u32>,
    /// How often one with the same limit key is handed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_rate: Option<Rate>,
    /// Whether limit keys take turns even if nothing limits them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fair: bool,
}

/// So many in so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    pub count: u32,
    pub per_ms: u32,
    /// How many may come at once after a pause; `None` = `count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

/// How much of a rate is used up: when all of it can be used again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    pub queue: String,
    /// Empty for the rate of the whole queue.
    pub limit_key: String,
    pub full_at: Timestamp,
}

/// Consumption of the limits of a queue, all of one moment; a repeated entry takes the later value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    /// How often jobs of it were handed out by servers that share it: everything up to this turn is here.
    pub turns: u64,
    /// Jobs that workers have, in no order.
    pub jobs: Vec<HeldRow>,
    /// Consumption of its rates.
    pub spent: Vec<Spent>,
}

/// How full a queue is. There is one for every queue that has settings or a job that is open or a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueDepth {
    pub name: String,
    pub is_paused: bool,
    pub limits: QueueLimits,
    /// Open jobs by status; a status without jobs is left out.
    pub open: BTreeMap<JobStatus, u64>,
    pub n_dead_letters: u64,
    /// When the job that can be claimed longest became due.
    pub oldest_due_at: Option<Timestamp>,
}
