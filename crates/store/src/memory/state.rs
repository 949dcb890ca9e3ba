//! The tables of the store: those of each project, and the servers and keys, which belong to none.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::access::api_key::ApiKeyId;
use windlass_engine::counter::{Fence, Revision, Seq};
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, ScheduleId, ServerId, VersionId};
use windlass_engine::job::Attempt;
use windlass_engine::journal::Entry;
use windlass_engine::project::Project;
use windlass_engine::schedule::Firing;
use windlass_engine::time::Timestamp;

use super::audit::AuditTable;
use super::blob::BlobTable;
use super::bulk::BulkTables;
use super::registry::ServiceRegistry;
use crate::account::{AccountRow, LedgerRow};
use crate::api_key::ApiKeyRow;
use crate::commit::Committed;
use crate::error::StoreError;
use crate::flow::{FlowRow, VersionRow};
use crate::job::JobRow;
use crate::log::LogRow;
use crate::outbox::{Message, MessageId};
use crate::queue::QueueSettings;
use crate::run::{RunRow, Snapshot};
use crate::schedule::{RUNNING_MAX, ScheduleRow, Scheduled, Started};
use crate::server::ServerRow;
use crate::store_key::StoreKey;

/// The whole store. Projects share no table, so that no verb reaches rows of another one.
#[derive(Debug, Default)]
pub(super) struct MemoryState {
    pub(super) projects: BTreeMap<Project, ProjectTables>,
    pub(super) servers: BTreeMap<ServerId, ServerRow>,
    pub(super) keys: BTreeMap<String, StoreKey>,
    pub(super) api_keys: BTreeMap<ApiKeyId, ApiKeyRow>,
}

impl MemoryState {
    /// The tables of a project; empty if it has not been used yet.
    pub(super) fn tables(&mut self, project: &Project) -> &mut ProjectTables {
        if !self.projects.contains_key(project) {
            let tables = ProjectTables { project: project.clone(), ..ProjectTables::default() };
            self.projects.insert(project.clone(), tables);
        }
        self.projects.get_mut(project).expect("the tables were inserted above")
    }
}

/// The tables of one project.
#[derive(Debug, Default)]
pub(super) struct ProjectTables {
    pub(super) project: Project,

    pub(super) flows: BTreeMap<FlowId, FlowRow>,
    pub(super) versions: BTreeMap<VersionId, VersionRow>,

    pub(super) runs: BTreeMap<RunId, StoredRun>,
    pub(super) open_runs: BTreeSet<RunId>,
    pub(super) requests: BTreeMap<String, RunId>,

    pub(super) jobs: BTreeMap<JobId, JobRow>,
    pub(super) open_jobs: BTreeSet<JobId>,
    pub(super) attempts: BTreeMap<(JobId, u32), Attempt>,
    /// The job that holds, or held last, a key of a queue.
    pub(super) keys: BTreeMap<(String, String), JobId>,

    pub(super) accounts: BTreeMap<String, StoredAccount>,

    pub(super) blobs: BlobTable,
    pub(super) messages: BTreeMap<MessageId, Message>,
    pub(super) undelivered: BTreeSet<(Timestamp, MessageId)>,

    pub(super) schedules: BTreeMap<ScheduleId, (Revision, ScheduleRow)>,
    pub(super) firings: BTreeMap<Firing, Started>,

    /// By run and fence.
    pub(super) logs: BTreeMap<(RunId, Seq, Fence), LogRow>,

    pub(super) commands: BTreeMap<CommandId, Committed>,
    pub(super) audit: AuditTable,

    pub(super) bulk_tables: BulkTables,

    pub(super) registry: ServiceRegistry,
    pub(super) queues: BTreeMap<String, QueueSettings>,
    /// Turns at queues that servers share.
    pub(super) turns: BTreeMap<String, u64>,
    /// By queue and limit key.
    pub(super) spent: BTreeMap<(String, String), Timestamp>,
}

#[derive(Debug)]
pub(super) struct StoredRun {
    pub(super) row: RunRow,
    pub(super) entries: Vec<Entry>,
    pub(super) snapshot: Option<Snapshot>,
}

#[derive(Debug)]
pub(super) struct StoredAccount {
    pub(super) row: AccountRow,
    pub(super) ledger: Vec<LedgerRow>,
    /// Where in the ledger a movement is.
    pub(super) by_key: BTreeMap<String, usize>,
}

impl ProjectTables {
    pub(super) fn schedule(&self, id: ScheduleId) -> Result<Option<Scheduled>, StoreError> {
        let Some((rev, row)) = self.schedules.get(&id) else { return Ok(None) };
        let fired = self.firings.iter().filter(|(firing, _)| firing.schedule == id);
        let running = fired.map(|(_, started)| *started).filter(|started| match started {
            Started::Run(run) => self.open_runs.contains(run),
            Started::Job(job) => self.open_jobs.contains(job),
        });
        Ok(Some(Scheduled {
            project: self.project.clone(),
            rev: *rev,
            row: row.clone(),
            running: running.take(RUNNING_MAX).collect(),
        }))
    }
}
