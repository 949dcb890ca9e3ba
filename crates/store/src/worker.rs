//! Workers that have registered.

use serde::{Deserialize, Serialize};
use windlass_engine::time::Timestamp;

use crate::page::NameRange;
use crate::signing::SigningSecret;

/// Workers that are remembered after another one took their id.
const REPLACED_MAX: usize = 8;

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
    /// The live workers that had the id before, the last of them at the end: at most `REPLACED_MAX`.
    #[serde(default)]
    pub replaced: Vec<WorkerAddress>,
    /// The secret under which calls to it are signed, if it gave one.
    #[serde(default)]
    pub secret: Option<SigningSecret>,
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

    /// Remembers the live worker that had the id before, and those that had it before that one. Returns its address if
    /// this registration takes the id from it.
    pub fn take_over(&mut self, known: WorkerRow) -> Option<WorkerAddress> {
        let taken_from = known.is_elsewhere(self).then(|| known.address());
        self.replaced = known.replaced;
        self.replaced.extend(taken_from.clone());
        let own = self.address();
        // One that takes the id back is no older one any more.
        self.replaced.retain(|older| *older != own);
        let n_over = self.replaced.len().saturating_sub(REPLACED_MAX);
        self.replaced.drain(..n_over);
        taken_from
    }

    /// Whether a request under this id comes from a worker that another registration took the id from. A heartbeat
    /// names its URL; a claim has only the address that it comes from.
    pub fn has_replaced(&self, url: Option<&str>, peer: &str) -> bool {
        self.replaced.iter().any(|older| match url.filter(|url| !url.is_empty()) {
            Some(url) => url == older.url && url != self.url,
            None => !peer.is_empty() && peer == older.peer && peer != self.peer,
        })
    }

    /// Whether the query asks for it, the limit aside.
    pub fn matches(&self, query: &WorkerQuery) -> bool {
        query.ids.contains(&self.id)
            && query.service.as_ref().is_none_or(|service| self.services.contains(service))
            && query.alive_since.is_none_or(|since| self.beat_at >= since)
    }
}
