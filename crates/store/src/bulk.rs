//! Bulk actions: one action on many runs, with its progress. The runs are chosen when the action is requested and stored
//! in parts; a server that takes the action over goes on where the last one stored its progress.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::counter::Revision;
use windlass_engine::id::{BulkId, RunId};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use crate::run::Owner;

/// Runs in one stored part.
pub const BULK_PART: usize = 1_000;

/// A bulk action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkRow {
    pub project: Project,
    pub id: BulkId,
    /// Grows with every change of the row.
    pub rev: Revision,
    pub state: BulkState,
    pub ended_at: Option<Timestamp>,
}

/// The request of a bulk action, and its progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkState {
    pub spec: BulkSpec,
    pub status: BulkStatus,
    /// Runs that were chosen.
    pub matched: u64,
    /// Runs that were acted on, whether that succeeded or not.
    pub done: u64,
    pub succeeded: u64,
    pub failed: u64,
    /// The server that works on it.
    pub owner: Option<Owner>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The request of a bulk action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkSpec {
    /// The action: `cancel`, `retry`, ….
    pub action: String,
    #[serde(default)]
    pub args: Value,
    /// The query by which the runs were chosen, unless they were named.
    #[serde(default)]
    pub query: Option<String>,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub actor: String,
}

/// Where a bulk action stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkStatus {
    Running,
    Completed,
    Canceled,
}

/// A run that was chosen, as it was then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkTarget {
    pub run: RunId,
    /// The round: a run in a later one has been retried or rerun since.
    pub round: u32,
}

/// A run on which the action failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkFailure {
    /// The place of the run among the targets, from 0.
    pub no: u64,
    pub run: RunId,
    pub code: String,
    pub message: String,
}
