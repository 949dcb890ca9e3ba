//! Queues: settings somebody made, and how full they are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_engine::time::Timestamp;

use crate::job::JobStatus;

/// What somebody set for a queue. A queue without settings is not paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSettings {
    pub name: String,
    /// Nothing is handed out from it.
    pub is_paused: bool,
    pub updated_at: Timestamp,
}

/// How full a queue is. There is one for every queue that has settings or a job that is open or a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueDepth {
    pub name: String,
    pub is_paused: bool,
    /// Open jobs by status; a status without jobs is left out.
    pub open: BTreeMap<JobStatus, u64>,
    pub n_dead_letters: u64,
    /// When the job that can be claimed longest became due.
    pub oldest_due_at: Option<Timestamp>,
}
