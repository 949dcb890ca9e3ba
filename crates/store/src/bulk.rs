//! Bulk actions: one action on many runs, with its progress. The runs are chosen when the action is requested and stored
//! in parts; a server that takes the action over goes on where the last one stored its progress.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::counter::Revision;
use windlass_engine::id::{BulkId, RunId};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use crate::error::StoreError;
use crate::run::Owner;
use crate::sample::{SampleQuery, SampleRow};

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

/// The verbs about bulk actions, and about samples for charts. Every store has them.
#[async_trait]
pub trait BulkStore: Send + Sync {
    /// Writes a new bulk action with its targets, in parts of [`BULK_PART`].
    async fn create_bulk(
        &self,
        project: &Project,
        row: BulkRow,
        targets: Vec<Vec<BulkTarget>>,
    ) -> Result<(), StoreError>;

    /// Writes the progress of a bulk action, with new failures. The revision of the row is the one that is expected; it
    /// grows by one.
    async fn save_bulk(
        &self,
        project: &Project,
        row: BulkRow,
        failures: Vec<BulkFailure>,
    ) -> Result<(), StoreError>;

    /// One bulk action.
    async fn bulk(&self, project: &Project, id: BulkId) -> Result<Option<BulkRow>, StoreError>;

    /// Bulk actions, newest first, before this one.
    async fn bulks(
        &self,
        project: &Project,
        before: Option<BulkId>,
        limit: usize,
    ) -> Result<Vec<BulkRow>, StoreError>;

    /// A part of the targets of a bulk action, from 0; empty after the last part.
    async fn bulk_targets(
        &self,
        project: &Project,
        id: BulkId,
        part: usize,
    ) -> Result<Vec<BulkTarget>, StoreError>;

    /// The first failures of a bulk action.
    async fn bulk_failures(
        &self,
        project: &Project,
        id: BulkId,
        limit: usize,
    ) -> Result<Vec<BulkFailure>, StoreError>;

    /// Bulk actions of all projects that have not ended, oldest first.
    async fn open_bulks(&self, limit: usize) -> Result<Vec<BulkRow>, StoreError>;

    /// Deletes at most `limit` bulk actions that ended before, and returns how many.
    async fn delete_bulks(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Writes samples; a sample of the same subject, minute and server is replaced.
    async fn save_samples(&self, project: &Project, rows: Vec<SampleRow>) -> Result<(), StoreError>;

    /// Samples, oldest first.
    async fn samples(&self, project: &Project, query: SampleQuery) -> Result<Vec<SampleRow>, StoreError>;

    /// Deletes at most `limit` samples from before, and returns how many.
    async fn delete_samples(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}
