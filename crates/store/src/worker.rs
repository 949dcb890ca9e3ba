//! Workers that have registered.

use serde::{Deserialize, Serialize};
use windlass_engine::time::Timestamp;

use crate::page::NameRange;

/// A process that performs calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerRow {
    pub id: String,
    pub name: String,
    /// Where it is called; empty for one that only claims.
    pub url: String,
    pub kind: String,
    pub services: Vec<String>,
    pub queues: Vec<String>,
    pub load: i64,
    pub capacity: i64,
    /// It gets no more work, and ends when its calls are done.
    #[serde(default)]
    pub is_draining: bool,
    pub registered_at: Timestamp,
    pub beat_at: Timestamp,
}

/// A sign of life. An unknown worker is refused, so that it registers again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerBeat {
    pub id: String,
    /// `None` = as before.
    pub url: Option<String>,
    pub load: Option<i64>,
    pub at: Timestamp,
}

/// Which workers are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerQuery {
    pub ids: NameRange,
    pub service: Option<String>,
    /// Heard of at or after.
    pub alive_since: Option<Timestamp>,
}

impl WorkerRow {
    /// Whether the query asks for it, the limit aside.
    pub fn matches(&self, query: &WorkerQuery) -> bool {
        query.ids.contains(&self.id)
            && query.service.as_ref().is_none_or(|service| self.services.contains(service))
            && query.alive_since.is_none_or(|since| self.beat_at >= since)
    }
}
