//! SQLite backend: one file, for a single server. One thread writes in groups (`writer`), a few threads read
//! (`readers`). Every noun has a module with its statements beside the functions that bind them.
//!
//! There are two levels of durability. `strict` syncs the write-ahead log once per group before the writer answers
//! (`synchronous = FULL`). `fast` syncs it only before a checkpoint (`synchronous = NORMAL`): a power failure may lose
//! the last commits, a crash of the process loses none, and the file stays intact in both cases. A sync is
//! `fdatasync`, as set in `.cargo/config.toml`; without that flag it is `fsync`, which promises the same and costs more.

mod bulk;
mod check;
mod column;
mod error;
mod foreign;
mod list;
mod lock;
mod oneshot;
mod open;
mod private_file;
mod readers;
mod schema;
mod shorthand;
mod temp_directory;
mod work_queue;
mod writer;
mod writer_cache;

mod flow;
mod journal;
mod run;

mod attempt;
mod dead_letter;
mod depth;
mod job;
mod queue;

mod account;
mod account_batch;
mod api_key;
mod blob;
mod ledger;
mod outbox;
mod sample;
mod schedule;

mod audit;
mod log;
mod server;
mod service;
mod store_key;
mod worker;

mod commit;
#[cfg(feature = "postgres")]
mod copy;
mod retain;
mod set_back;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, ScheduleId};
use windlass_engine::job::Attempt;
use windlass_engine::money::Amount;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use crate::account::{AccountRow, BalanceWaiter, LedgerQuery, LedgerRow, PriceRow};
use crate::audit::{AuditEntry, AuditHead, AuditQuery};
use crate::blob::{BlobCache, FoundBlobs};
use crate::commit::{Commit, Committed};
use crate::condition::{ConditionLog, StoreCheck};
pub use crate::durability::Durability;
use crate::error::{StoreError, guard};
use crate::flow::{FlowQuery, FlowRow, Publication, Published, Readable, VersionRef, VersionRow};
use crate::job::{
    DeadLetterGroup, JobOutline, JobQuery, JobRow, KeyQuery, KeyRows, OutlineQuery, ReadyCursor, ReadyQuery,
};
use crate::log::{LogRow, LogsOf};
use crate::outbox::{Message, OutboxCursor, Party, Undelivered, WaitingTree};
use crate::page::{NameRange, Page, Part};
use crate::queue::{Held, QueueDepth, QueueSettings, Spent};
use crate::run::{Journal, RunGroup, RunQuery, RunRef, RunRow, Since};
use crate::schedule::Scheduled;
use crate::server::ServerRow;
use crate::service::{LiveService, ServiceRow, WaitingService};
use crate::store::{Due, Retained, SetBack, Store};
use crate::store_key::StoreKey;
use crate::worker::{WorkerBeat, WorkerQuery, WorkerRow};

use check::CheckStart;
use lock::FileLock;
pub use private_file::ExposedFile;
use readers::{ReadConnection, Readers};
pub(crate) use temp_directory::TempDirectory;
use writer::SqliteWriter;
use writer_cache::WriterCache;

/// A store in one file.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    condition: Arc<ConditionLog>,
    check_start: Arc<CheckStart>,
    // Dropped in this order: the writer closes the file last, and SQLite then removes the write-ahead log.
    readers: Readers,
    writer: SqliteWriter,
    blobs: Arc<BlobCache>,
    is_shared: bool,
    exposed: Vec<ExposedFile>,
    _lock: FileLock,
    _temporary: Option<TempDirectory>,
}

impl Sqlite {
    /// Files of the store that other users of the machine could open until this server opened the store.
    pub fn exposed_files(&self) -> &[ExposedFile] {
        &self.exposed
    }

    /// The same store for several servers of this process.
    pub fn shared(self) -> Sqlite {
        Sqlite { is_shared: true, ..self }
    }

    /// Limits the file to this many pages of 4 KiB until it is opened again. A commit that does not fit fails as on a full
    /// disk.
    pub async fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        let limit = move |cache: &WriterCache| {
            cache.db().pragma_update(None, "max_page_count", pages).map_err(StoreError::from)
        };
        self.writer.write(limit)?.await
    }

    /// Transactions since the store was opened. Each costs one sync of the disk, however many commits it holds.
    pub fn n_transactions(&self) -> u64 {
        self.writer.n_transactions()
    }

    async fn read<T, F>(&self, question: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&ReadConnection) -> Result<T, StoreError> + Send + 'static,
    {
        self.readers.read(question)?.await
    }
}

impl AsRef<dyn Store> for Sqlite {
    fn as_ref(&self) -> &(dyn Store + 'static) {
        self
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn publish(&self, project: &Project, publication: Publication) -> Result<Published, StoreError> {
        let project = project.clone();
        let readable = Readable::of(&publication);
        self.writer.write(move |cache| flow::publish(cache.db(), &project, &publication, &readable))?.await
    }

    async fn flows(&self, project: &Project, query: FlowQuery) -> Result<Page<FlowRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| flow::flows(db, &project, &query)).await
    }

    async fn version(
        &self,
        project: &Project,
        version: VersionRef,
    ) -> Result<Option<VersionRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| flow::version(&db.connection, &project, version)).await
    }

    async fn versions(&self, project: &Project, flow: FlowId) -> Result<Vec<VersionRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| flow::versions(db, &project, flow)).await
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
        let n = commits.len();
        self.blobs.keep_all(&commits);
        // The caller's reference is dropped last, so that the caller's thread frees the memory and not the writer.
        let prepared: Vec<Arc<commit::PreparedCommit>> =
            commits.into_iter().map(|commit| Arc::new(commit::PreparedCommit::of(commit))).collect();
        let works =
            prepared.iter().cloned().map(|draft| move |cache: &WriterCache| commit::commit(cache, &draft));
        let receivers = match self.writer.write_all(works) {
            Ok(receivers) => receivers,
            Err(error) => {
                let told = error.to_string();
                let again = || StoreError::unavailable(told.clone());
                return std::iter::repeat_with(|| Err(again())).take(n).collect();
            }
        };
        let mut answers = Vec::with_capacity(n);
        for receiver in receivers {
            answers.push(receiver.await);
        }
        answers
    }

    async fn command(&self, project: &Project, command: CommandId) -> Result<Option<Committed>, StoreError> {
        let project = project.clone();
        self.read(move |db| commit::command(&db.connection, &project, command)).await
    }

    async fn journal(
        &self,
        project: &Project,
        run: RunId,
        since: Since,
        limit: usize,
    ) -> Result<Journal, StoreError> {
        let project = project.clone();
        let blobs = self.blobs.clone();
        self.read(move |db| journal::journal(db, &blobs, &project, run, since, limit)).await
    }

    async fn blobs(&self, project: &Project, hashes: BTreeSet<String>) -> Result<FoundBlobs, StoreError> {
        let (project, cache) = (project.clone(), self.blobs.clone());
        self.read(move |db| blob::blobs(&db.connection, &cache, &project, hashes)).await
    }

    async fn run(&self, project: &Project, run: RunRef) -> Result<Option<RunRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| run::run(db, &project, &run)).await
    }

    async fn runs(&self, project: &Project, query: RunQuery) -> Result<Page<RunRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| run::runs(db, &project, &query)).await
    }

    async fn count_runs(&self, project: &Project, of: RunGroup, limit: usize) -> Result<usize, StoreError> {
        let project = project.clone();
        self.read(move |db| run::count(&db.connection, &project, of, limit)).await
    }

    async fn count_matching(
        &self,
        project: &Project,
        query: RunQuery,
        limit: usize,
    ) -> Result<Option<usize>, StoreError> {
        let project = project.clone();
        self.read(move |db| run::count_matching(&db.connection, &project, &query, limit)).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Due, StoreError> {
        let question = move |db: &ReadConnection| {
            let (runs, jobs) = (run::due(db, now, limit)?, job::due(db, now, limit)?);
            Ok(Due { runs, jobs, schedules: schedule::due(db, now, limit)? })
        };
        self.read(question).await
    }

    async fn orphans(
        &self,
        now: Timestamp,
        dead_after_ms: u64,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<RunRow>, StoreError> {
        self.read(move |db| run::orphans(db, now, dead_after_ms, after, limit)).await
    }

    async fn job(&self, project: &Project, job: JobId) -> Result<Option<JobRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| job::job(db, &project, job)).await
    }

    async fn jobs(&self, project: &Project, query: JobQuery) -> Result<Page<JobRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| job::jobs(db, &project, &query)).await
    }

    async fn attempts(
        &self,
        project: &Project,
        job: JobId,
        after: u32,
        limit: usize,
    ) -> Result<Vec<Attempt>, StoreError> {
        let project = project.clone();
        self.read(move |db| attempt::after(db, &project, job, after, limit)).await
    }

    async fn ready(&self, project: &Project, query: ReadyQuery) -> Result<Vec<JobRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| job::ready(db, &project, &query)).await
    }

    async fn ready_cursors(
        &self,
        project: &Project,
        query: ReadyQuery,
    ) -> Result<Vec<ReadyCursor>, StoreError> {
        let project = project.clone();
        self.read(move |db| job::ready_cursors(db, &project, &query)).await
    }

    async fn job_outlines(
        &self,
        project: &Project,
        query: OutlineQuery,
    ) -> Result<Vec<JobOutline>, StoreError> {
        let project = project.clone();
        self.read(move |db| job::job_outlines(db, &project, &query)).await
    }

    async fn ready_by_key(&self, project: &Project, query: KeyQuery) -> Result<KeyRows, StoreError> {
        let project = project.clone();
        self.read(move |db| job::ready_by_key(db, &project, &query)).await
    }

    async fn outbox(
        &self,
        now: Timestamp,
        after: Option<OutboxCursor>,
        limit: usize,
    ) -> Result<Vec<Undelivered>, StoreError> {
        let blobs = self.blobs.clone();
        self.read(move |db| outbox::undelivered(db, &blobs, now, after.as_ref(), limit)).await
    }

    async fn waiting_trees(
        &self,
        after: Option<WaitingTree>,
        limit: usize,
    ) -> Result<Vec<WaitingTree>, StoreError> {
        self.read(move |db| outbox::waiting_trees(db, after, limit)).await
    }

    async fn waiting_children(
        &self,
        project: &Project,
        root: RunId,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        let (project, blobs) = (project.clone(), self.blobs.clone());
        self.read(move |db| outbox::waiting_children(db, &blobs, &project, root, limit)).await
    }

    async fn outbox_to(&self, project: &Project, to: Party) -> Result<Vec<Message>, StoreError> {
        let project = project.clone();
        let blobs = self.blobs.clone();
        self.read(move |db| outbox::to(db, &blobs, &project, &to)).await
    }

    async fn ledger(&self, project: &Project, query: LedgerQuery) -> Result<Vec<LedgerRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| ledger::ledger(&db.connection, &project, &query)).await
    }

    async fn open_account(
        &self,
        project: &Project,
        id: &str,
        name: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let project = project.clone();
        let id = id.to_owned();
        let name = name.to_owned();
        self.writer.write(move |cache| account::open(cache.db(), &project, &id, &name, now))?.await
    }

    async fn account(&self, project: &Project, id: &str) -> Result<Option<AccountRow>, StoreError> {
        let project = project.clone();
        let id = id.to_owned();
        self.read(move |db| account::account(&db.connection, &project, &id)).await
    }

    async fn accounts(&self, project: &Project) -> Result<Vec<AccountRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| account::accounts(db, &project)).await
    }

    async fn accounts_after(
        &self,
        project: &Project,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<AccountRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| account::accounts_after(db, &project, after.as_deref(), limit)).await
    }

    async fn accounts_with_waiters(
        &self,
        project: &Project,
        account: Option<String>,
    ) -> Result<Vec<AccountRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| account::accounts_with_waiters(db, &project, account.as_deref())).await
    }

    async fn balance_waiters(
        &self,
        project: &Project,
        account: String,
        within: Amount,
        limit: usize,
    ) -> Result<Vec<BalanceWaiter>, StoreError> {
        let project = project.clone();
        self.read(move |db| account::balance_waiters(db, &project, &account, within, limit)).await
    }

    async fn prices(&self, project: &Project) -> Result<Vec<PriceRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| account::prices(db, &project)).await
    }

    async fn set_price(&self, project: &Project, row: PriceRow) -> Result<(), StoreError> {
        let project = project.clone();
        self.writer.write(move |cache| account::set_price(cache.db(), &project, &row))?.await
    }

    async fn delete_price(&self, project: &Project, service: &str) -> Result<(), StoreError> {
        let project = project.clone();
        let service = service.to_owned();
        self.writer.write(move |cache| account::delete_price(cache.db(), &project, &service))?.await
    }

    async fn services(&self, project: &Project, names: NameRange) -> Result<Vec<ServiceRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| service::services(db, &project, &names)).await
    }

    async fn live_services(
        &self,
        project: &Project,
        alive_since: Timestamp,
        names: NameRange,
    ) -> Result<Vec<LiveService>, StoreError> {
        let project = project.clone();
        self.read(move |db| service::live_services(&db.connection, &project, alive_since, &names)).await
    }

    async fn waiting_services(
        &self,
        project: &Project,
        names: NameRange,
        now: Timestamp,
    ) -> Result<Vec<WaitingService>, StoreError> {
        let project = project.clone();
        self.read(move |db| service::waiting_services(&db.connection, &project, &names, now)).await
    }

    async fn save_service(&self, project: &Project, row: ServiceRow) -> Result<(), StoreError> {
        let project = project.clone();
        self.writer.write(move |cache| service::save(cache.db(), &project, &row))?.await
    }

    async fn queues(
        &self,
        project: &Project,
        names: NameRange,
        now: Timestamp,
    ) -> Result<Vec<QueueDepth>, StoreError> {
        let project = project.clone();
        self.read(move |db| queue::depths(db, &project, &names, now)).await
    }

    async fn save_queue(&self, project: &Project, settings: QueueSettings) -> Result<(), StoreError> {
        let project = project.clone();
        self.writer.write(move |cache| queue::save(cache.db(), &project, &settings))?.await
    }

    async fn held(&self, project: &Project, queue: String) -> Result<Held, StoreError> {
        let project = project.clone();
        self.read(move |db| queue::held(db, &project, &queue)).await
    }

    async fn spent(&self, project: &Project) -> Result<Vec<Spent>, StoreError> {
        let project = project.clone();
        self.read(move |db| queue::spent(db, &project)).await
    }

    async fn save_spent(
        &self,
        project: &Project,
        spent: Vec<Spent>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let project = project.clone();
        self.writer.write(move |cache| queue::spend(cache.db(), &project, &spent, now))?.await
    }

    async fn dead_letter_groups(
        &self,
        project: &Project,
        queue: String,
    ) -> Result<Vec<DeadLetterGroup>, StoreError> {
        let project = project.clone();
        self.read(move |db| dead_letter::groups(db, &project, &queue)).await
    }

    async fn schedule(&self, project: &Project, id: ScheduleId) -> Result<Option<Scheduled>, StoreError> {
        let project = project.clone();
        self.read(move |db| schedule::schedule(db, &project, id)).await
    }

    async fn schedules(&self, project: &Project, part: Part) -> Result<Page<Scheduled>, StoreError> {
        let project = project.clone();
        self.read(move |db| schedule::schedules(db, &project, &part)).await
    }

    async fn audit(&self, project: &Project, query: AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        let project = project.clone();
        self.read(move |db| audit::audit(db, &project, &query)).await
    }

    async fn audit_head(&self, project: &Project) -> Result<AuditHead, StoreError> {
        let project = project.clone();
        self.read(move |db| audit::head(&db.connection, &project)).await
    }

    async fn logs(&self, project: &Project, run: RunId, of: LogsOf) -> Result<Vec<LogRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| log::logs(db, &project, run, of)).await
    }

    async fn workers(&self, project: &Project, query: WorkerQuery) -> Result<Vec<WorkerRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| worker::workers(db, &project, &query)).await
    }

    async fn save_worker(&self, project: &Project, row: WorkerRow) -> Result<(), StoreError> {
        let project = project.clone();
        self.writer.write(move |cache| worker::save(cache.db(), &project, &row))?.await
    }

    async fn beat_worker(&self, project: &Project, beat: WorkerBeat) -> Result<(), StoreError> {
        let project = project.clone();
        self.writer.write(move |cache| worker::beat(cache.db(), &project, &beat))?.await
    }

    async fn drain_worker(&self, project: &Project, id: &str, is_draining: bool) -> Result<(), StoreError> {
        let project = project.clone();
        let id = id.to_owned();
        self.writer.write(move |cache| worker::drain(cache.db(), &project, &id, is_draining))?.await
    }

    async fn delete_workers(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.writer.write(move |cache| worker::forget(cache.db(), before, limit))?.await
    }

    async fn delete_queues(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.writer.write(move |cache| queue::forget(cache.db(), before, limit))?.await
    }

    async fn servers(&self) -> Result<Vec<ServerRow>, StoreError> {
        self.read(server::servers).await
    }

    async fn save_server(&self, row: ServerRow) -> Result<(), StoreError> {
        self.writer.write(move |cache| server::save(cache.db(), &row))?.await
    }

    async fn delete_servers(&self, before: Timestamp) -> Result<(), StoreError> {
        self.writer.write(move |cache| server::forget(cache.db(), before))?.await
    }

    async fn store_key(&self, name: &str, fresh: StoreKey) -> Result<StoreKey, StoreError> {
        let name = name.to_owned();
        self.writer.write(move |cache| store_key::find_or_add(cache.db(), &name, fresh))?.await
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn condition_log(&self) -> Option<&ConditionLog> {
        Some(&self.condition)
    }

    async fn check(&self, within: Duration) -> Result<StoreCheck, StoreError> {
        check::start(&self.path, &self.condition, &self.check_start, within)?.await
    }

    async fn retain(&self, before: Timestamp, limit: usize) -> Result<Retained, StoreError> {
        let retained = self.writer.write(move |cache| retain::retain(cache, before, limit))?.await;
        self.blobs.clear();
        retained
    }

    async fn set_back(&self, now: Timestamp) -> Result<SetBack, StoreError> {
        self.writer.write(move |cache| set_back::set_back(cache.db(), now))?.await
    }
}

#[cfg(test)]
mod tests;
