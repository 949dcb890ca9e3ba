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
    /// The network address that it registered from; empty where the server does not see one.
    #[serde(default)]
    pub peer: String,
    /// The live worker that this registration took the id from.
    #[serde(default)]
    pub replaced: Option<WorkerAddress>,
    pub registered_at: Timestamp,
    pub beat_at: Timestamp,
}

/// Where a worker was when it registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerAddress {
    pub url: String,
    pub peer: String,
}

/// A heartbeat. An unknown worker is refused, so that it registers again.
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
    /// Where it registered from.
    pub fn address(&self) -> WorkerAddress {
        WorkerAddress { url: self.url.clone(), peer: self.peer.clone() }
    }

    /// Whether the other registration is one of another process. A worker that is called is known by its URL; one that
    /// only claims, by the address that it registers from, as far as servers see one.
    pub fn is_elsewhere(&self, other: &WorkerRow) -> bool {
        if self.url.is_empty() && other.url.is_empty() {
            return !self.peer.is_empty() && !other.peer.is_empty() && self.peer != other.peer;
        }
        self.url != other.url
    }

    /// Whether a request under this id comes from the worker that this registration took the id from. A heartbeat
    /// names its URL; a claim has only the address that it comes from.
    pub fn has_replaced(&self, url: Option<&str>, peer: &str) -> bool {
        let Some(older) = &self.replaced else { return false };
        match url.filter(|url| !url.is_empty()) {
            Some(url) => url == older.url && url != self.url,
            None => !peer.is_empty() && peer == older.peer && peer != self.peer,
        }
    }

    /// Whether the query asks for it, the limit aside.
    pub fn matches(&self, query: &WorkerQuery) -> bool {
        query.ids.contains(&self.id)
            && query.service.as_ref().is_none_or(|service| self.services.contains(service))
            && query.alive_since.is_none_or(|since| self.beat_at >= since)
    }
}
