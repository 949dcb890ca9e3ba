//! The trait that every backend implements: one verb per question and per row.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, ScheduleId};
use windlass_engine::job::Attempt;
use windlass_engine::money::Amount;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use crate::account::{AccountRow, BalanceWaiter, LedgerQuery, LedgerRow, PriceRow};
use crate::api_key::ApiKeyStore;
use crate::audit::{AuditEntry, AuditHead, AuditQuery};
use crate::blob::FoundBlobs;
use crate::bulk::BulkStore;
use crate::commit::{Commit, Committed};
use crate::condition::{ConditionLog, StoreCheck, StoreCondition};
use crate::error::StoreError;
use crate::flow::{FlowQuery, FlowRef, FlowRow, Publication, Published, VersionRef, VersionRow};
use crate::hint::Hints;
use crate::job::{
    DeadLetterGroup, JobOutline, JobQuery, JobRow, KeyQuery, KeyRows, OutlineQuery, ReadyCursor, ReadyQuery,
};
use crate::log::{LogRow, LogsOf};
use crate::outbox::{Message, OutboxCursor, Party, Undelivered, WaitingTree};
use crate::page::{NameRange, Page, Part};
use crate::queue::{Held, QueueDepth, QueueSettings, Spent};
use crate::run::{Journal, RunGroup, RunQuery, RunRef, RunRow, Since, Wake};
use crate::schedule::Scheduled;
use crate::server::ServerRow;
use crate::service::{LiveService, ServiceRow, WaitingService};
use crate::store_key::StoreKey;
use crate::worker::{WorkerBeat, WorkerQuery, WorkerRow};

/// Runs, jobs and schedules whose time has come.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Due {
    /// Open runs whose wake-up has come.
    pub runs: Vec<Wake<RunId>>,
    /// Open jobs whose wait, lease, time limit or grace is over.
    pub jobs: Vec<Wake<JobId>>,
    pub schedules: Vec<Scheduled>,
}

/// How much was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retained {
    pub n_runs: usize,
    pub n_jobs: usize,
    pub n_commands: usize,
}

/// How many rows had times that were ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetBack {
    pub n_servers: usize,
    pub n_workers: usize,
    pub n_runs: usize,
    pub n_jobs: usize,
    pub n_schedules: usize,
    pub n_messages: usize,
    /// Token buckets of queues.
    pub n_rates: usize,
    pub n_commands: usize,
}

/// All that servers remember. A verb with a project reads and writes rows of that project only: an id of another project
/// is unknown to it. Verbs without one serve the whole store, and their rows name the project.
#[async_trait]
pub trait Store: BulkStore + ApiKeyStore + Send + Sync {
    /// Publishes a flow, a version, or both, or nothing at all. Names are unique unless the draft says otherwise.
    async fn publish(&self, project: &Project, publication: Publication) -> Result<Published, StoreError>;

    /// Flows that match.
    async fn flows(&self, project: &Project, query: FlowQuery) -> Result<Page<FlowRow>, StoreError>;

    /// One version, with its definition.
    async fn version(&self, project: &Project, version: VersionRef)
    -> Result<Option<VersionRow>, StoreError>;

    /// The versions of a flow, newest number first.
    async fn versions(&self, project: &Project, flow: FlowId) -> Result<Vec<VersionRow>, StoreError>;

    /// Writes each commit wholly or not at all, in order, and answers for each in its place. The commits share a
    /// transaction and nothing else: a rejected commit does not affect the rest.
    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>>;

    /// The outcome of a command, if it was committed: callers use it to look up an unknown outcome.
    async fn command(&self, project: &Project, command: CommandId) -> Result<Option<Committed>, StoreError>;

    /// A part of a run's journal, oldest first, at most `limit` entries; empty if there is no such run.
    async fn journal(
        &self,
        project: &Project,
        run: RunId,
        since: Since,
        limit: usize,
    ) -> Result<Journal, StoreError>;

    /// The blobs with these hashes, as far as they are there.
    async fn blobs(&self, project: &Project, hashes: BTreeSet<String>) -> Result<FoundBlobs, StoreError>;

    /// One run.
    async fn run(&self, project: &Project, run: RunRef) -> Result<Option<RunRow>, StoreError>;

    /// Runs that match.
    async fn runs(&self, project: &Project, query: RunQuery) -> Result<Page<RunRow>, StoreError>;

    /// The number of runs in a group, or `limit` if there are more. Its cost grows with the number.
    async fn count_runs(&self, project: &Project, of: RunGroup, limit: usize) -> Result<usize, StoreError>;

    /// The number of runs that match, or `limit` if there are more; `None` if no index answers the whole query, so that
    /// every row would have to be examined.
    async fn count_matching(
        &self,
        project: &Project,
        query: RunQuery,
        limit: usize,
    ) -> Result<Option<usize>, StoreError>;

    /// Open runs, open jobs and schedules of all projects whose time has come at `now`, oldest first, at most `limit`
    /// of each. A `now` in the future asks for those that become due until then.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Due, StoreError>;

    /// Open runs of all projects whose owner has sent no heartbeat for `dead_after_ms`, or none in this epoch; by id,
    /// after this one.
    async fn orphans(
        &self,
        now: Timestamp,
        dead_after_ms: u64,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<RunRow>, StoreError>;

    /// One job.
    async fn job(&self, project: &Project, job: JobId) -> Result<Option<JobRow>, StoreError>;

    /// Jobs that match.
    async fn jobs(&self, project: &Project, query: JobQuery) -> Result<Page<JobRow>, StoreError>;

    /// All attempts at a job after this number, oldest first, also those that the job itself has forgotten.
    async fn attempts(
        &self,
        project: &Project,
        job: JobId,
        after: u32,
        limit: usize,
    ) -> Result<Vec<Attempt>, StoreError>;

    /// Jobs that can be claimed, in dispatch order: higher priority first, then the earlier due, then the smaller id.
    /// Paused queues have none. Reading claims nothing.
    async fn ready(&self, project: &Project, query: ReadyQuery) -> Result<Vec<JobRow>, StoreError>;

    /// Positions of jobs that can be claimed, without the jobs: the same as [`Store::ready`] otherwise.
    async fn ready_cursors(
        &self,
        project: &Project,
        query: ReadyQuery,
    ) -> Result<Vec<ReadyCursor>, StoreError>;

    /// Jobs to be shown, without their large payloads.
    async fn job_outlines(
        &self,
        project: &Project,
        query: OutlineQuery,
    ) -> Result<Vec<JobOutline>, StoreError>;

    /// Jobs of one queue that can be claimed, limit key by limit key. A paused queue has none.
    async fn ready_by_key(&self, project: &Project, query: KeyQuery) -> Result<KeyRows, StoreError>;

    /// Messages of all projects that were not delivered and may be by now, oldest first, after this place. Creations of
    /// child runs are not among them: see [`Store::waiting_children`].
    async fn outbox(
        &self,
        now: Timestamp,
        after: Option<OutboxCursor>,
        limit: usize,
    ) -> Result<Vec<Undelivered>, StoreError>;

    /// Trees of all projects with child runs that are to be created, by project and outermost run, after this one.
    async fn waiting_trees(
        &self,
        after: Option<WaitingTree>,
        limit: usize,
    ) -> Result<Vec<WaitingTree>, StoreError>;

    /// Undelivered messages that create child runs in the tree of this run, the deepest first, then the oldest.
    async fn waiting_children(
        &self,
        project: &Project,
        root: RunId,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError>;

    /// Messages to one receiver that were not delivered, by sender; also those that may not be yet.
    async fn outbox_to(&self, project: &Project, to: Party) -> Result<Vec<Message>, StoreError>;

    /// The ledger of an account.
    async fn ledger(&self, project: &Project, query: LedgerQuery) -> Result<Vec<LedgerRow>, StoreError>;

    /// Opens an account. Opening it again under the same name is a no-op; another name is refused.
    async fn open_account(
        &self,
        project: &Project,
        id: &str,
        name: &str,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// One account.
    async fn account(&self, project: &Project, id: &str) -> Result<Option<AccountRow>, StoreError>;

    /// Accounts, by id.
    async fn accounts(&self, project: &Project) -> Result<Vec<AccountRow>, StoreError>;

    /// Accounts after this one, by id.
    async fn accounts_after(
        &self,
        project: &Project,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<AccountRow>, StoreError>;

    /// Accounts with runs that wait for money, by id; all, or one.
    async fn accounts_with_waiters(
        &self,
        project: &Project,
        account: Option<String>,
    ) -> Result<Vec<AccountRow>, StoreError>;

    /// Runs of an account whose calls wait for at most `within`, oldest first.
    async fn balance_waiters(
        &self,
        project: &Project,
        account: String,
        within: Amount,
        limit: usize,
    ) -> Result<Vec<BalanceWaiter>, StoreError>;

    /// Prices, by service.
    async fn prices(&self, project: &Project) -> Result<Vec<PriceRow>, StoreError>;

    /// Sets the price of a service.
    async fn set_price(&self, project: &Project, row: PriceRow) -> Result<(), StoreError>;

    /// Deletes the price of a service; a no-op without one.
    async fn delete_price(&self, project: &Project, service: &str) -> Result<(), StoreError>;

    /// Settings of services, by name.
    async fn services(&self, project: &Project, names: NameRange) -> Result<Vec<ServiceRow>, StoreError>;

    /// Services of workers whose last heartbeat was at or after, by name.
    async fn live_services(
        &self,
        project: &Project,
        alive_since: Timestamp,
        names: NameRange,
    ) -> Result<Vec<LiveService>, StoreError>;

    /// Services with jobs that can be claimed at `now`, by name; jobs of paused queues count, too.
    async fn waiting_services(
        &self,
        project: &Project,
        names: NameRange,
        now: Timestamp,
    ) -> Result<Vec<WaitingService>, StoreError>;

    /// Replaces the settings of a service.
    async fn save_service(&self, project: &Project, row: ServiceRow) -> Result<(), StoreError>;

    /// Queues and their depths, by name; open jobs that can be claimed at `now` count as due.
    async fn queues(
        &self,
        project: &Project,
        names: NameRange,
        now: Timestamp,
    ) -> Result<Vec<QueueDepth>, StoreError>;

    /// Replaces the settings of a queue.
    async fn save_queue(&self, project: &Project, settings: QueueSettings) -> Result<(), StoreError>;

    /// Jobs and rates that count against the limits of a queue. Its cost grows with the running jobs: servers ask when
    /// they first apply a limit.
    async fn held(&self, project: &Project, queue: String) -> Result<Held, StoreError>;

    /// Used rates, by queue and limit key; those that are free again may be missing.
    async fn spent(&self, project: &Project) -> Result<Vec<Spent>, StoreError>;

    /// Writes used rates: the latest time of each counts. Deletes those that are free again at `now`.
    async fn save_spent(
        &self,
        project: &Project,
        spent: Vec<Spent>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Dead letters of a queue grouped by their error, the largest group first, then the latest; at most
    /// [`crate::job::GROUPS_MAX`] groups.
    async fn dead_letter_groups(
        &self,
        project: &Project,
        queue: String,
    ) -> Result<Vec<DeadLetterGroup>, StoreError>;

    /// One schedule.
    async fn schedule(&self, project: &Project, id: ScheduleId) -> Result<Option<Scheduled>, StoreError>;

    /// Schedules in the order of the part.
    async fn schedules(&self, project: &Project, part: Part) -> Result<Page<Scheduled>, StoreError>;

    /// Lines of the audit.
    async fn audit(&self, project: &Project, query: AuditQuery) -> Result<Vec<AuditEntry>, StoreError>;

    /// The last line of the audit.
    async fn audit_head(&self, project: &Project) -> Result<AuditHead, StoreError>;

    /// Log lines of a run's attempts; at most [`crate::log::LOGS_MAX`].
    async fn logs(&self, project: &Project, run: RunId, of: LogsOf) -> Result<Vec<LogRow>, StoreError>;

    /// Workers that match, by id.
    async fn workers(&self, project: &Project, query: WorkerQuery) -> Result<Vec<WorkerRow>, StoreError>;

    /// Registers a worker.
    async fn save_worker(&self, project: &Project, row: WorkerRow) -> Result<(), StoreError>;

    /// Writes a worker's heartbeat. An unknown worker is refused.
    async fn beat_worker(&self, project: &Project, beat: WorkerBeat) -> Result<(), StoreError>;

    /// Sets whether a worker drains: heartbeats do not change it, a new registration does. An unknown worker is
    /// refused.
    async fn drain_worker(&self, project: &Project, id: &str, is_draining: bool) -> Result<(), StoreError>;

    /// Deletes workers of all projects whose last heartbeat was before, at most `limit`; returns how many. A worker that
    /// comes back registers again.
    async fn delete_workers(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Deletes queues of all projects that have neither settings nor jobs, and whose settings changed before, at most
    /// `limit`; returns how many.
    async fn delete_queues(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Servers, by id.
    async fn servers(&self) -> Result<Vec<ServerRow>, StoreError>;

    /// Writes a server's row. A row of a later epoch makes it a conflict.
    async fn save_server(&self, row: ServerRow) -> Result<(), StoreError>;

    /// Deletes servers whose last heartbeat was before, a thousand at most. The server with the latest epoch stays,
    /// because the next one counts on from it, and so do servers that own runs.
    async fn delete_servers(&self, before: Timestamp) -> Result<(), StoreError>;

    /// The key of this name. The fresh one becomes the key if the store has none: servers that start at the same time
    /// get the same one.
    async fn store_key(&self, name: &str, fresh: StoreKey) -> Result<StoreKey, StoreError>;

    /// Deletes at most `limit` runs that ended before, at most as many jobs without a run that did, and commands as old,
    /// with all rows that belong to them, in all projects. Never the ledger, the audit, dead letters, or a message that
    /// was not delivered.
    async fn retain(&self, before: Timestamp, limit: usize) -> Result<Retained, StoreError>;

    /// Sets stored times back to `now` that are ahead of it, in all projects: a clock that was wrong wrote them. A run that
    /// was written since then is woken `now`. States of open jobs, journals, the ledger, the audit and logs are left.
    /// Only for a store that no server uses.
    async fn set_back(&self, now: Timestamp) -> Result<SetBack, StoreError>;

    /// Whether other servers may write to the store, so that a server's memory is not the last word.
    fn is_shared(&self) -> bool;

    /// Writes of other servers to the same store, as far as they are announced, from now on. Only a hint: some are never
    /// announced. `None` = no other server can write to it.
    fn hints(&self) -> Option<Hints> {
        None
    }

    /// So many servers write to the store: each uses fewer connections, with larger groups of commits.
    fn shared_by(&self, _n_servers: usize) {}

    /// The notes of failed reads and writes, and of rows that readers set aside. `None` = none can fail.
    fn condition_log(&self) -> Option<&ConditionLog> {
        None
    }

    /// Checks the pages of the database, for so long at most; the next check goes on from there. A database that checks
    /// itself has no findings.
    async fn check(&self, _within: Duration) -> Result<StoreCheck, StoreError> {
        Ok(StoreCheck::default())
    }

    /// The time on which all servers of the store agree. `None` = the caller's own clock.
    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }
}

impl dyn Store + '_ {
    /// One flow; of several with the name, the one that had it first.
    pub async fn flow(&self, project: &Project, flow: FlowRef) -> Result<Option<FlowRow>, StoreError> {
        let page = self.flows(project, FlowQuery::of_one(flow)).await?;
        Ok(page.items.into_iter().next())
    }

    /// Faults and bad rows that reads and writes have met since the store was opened.
    pub fn condition(&self) -> StoreCondition {
        self.condition_log().map(ConditionLog::condition).unwrap_or_default()
    }

    /// Forgets the rows that readers have set aside; the next read of each tells whether it is still bad.
    pub fn forget_set_aside(&self) {
        if let Some(log) = self.condition_log() {
            log.forget_rows();
        }
    }

    /// Writes one commit.
    pub async fn commit_one(&self, commit: Commit) -> Result<Committed, StoreError> {
        let answer = self.commit(vec![commit]).await.into_iter().next();
        answer.unwrap_or_else(|| Err(StoreError::Corrupt("a commit was not answered".to_owned())))
    }
}
