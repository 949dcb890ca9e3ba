//! Windlass processes that share the store.

use serde::{Deserialize, Serialize};
use windlass_engine::time::Timestamp;

use crate::run::Owner;

/// A server and its last heartbeat. Saving it with an epoch older than the stored one is a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRow {
    pub owner: Owner,
    pub name: String,
    /// The version of the program.
    pub version: String,
    pub started_at: Timestamp,
    pub beat_at: Timestamp,
    /// How long a worker counts as online after its last heartbeat, by the settings of this server.
    pub worker_ttl_ms: u64,
}

impl ServerRow {
    /// Whether it was heard of within `dead_after_ms`.
    pub fn is_alive(&self, now: Timestamp, dead_after_ms: u64) -> bool {
        now.since(self.beat_at) < dead_after_ms
    }
}
