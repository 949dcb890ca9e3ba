//! A store in memory that fails or changes its answers on request: a test sets a hook for a verb.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use windlass_engine::access::api_key::ApiKeyId;
use windlass_engine::id::{BulkId, CommandId, FlowId, JobId, RunId, ScheduleId};
use windlass_engine::job::Attempt;
use windlass_engine::money::Amount;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use windlass_store::StoreKey;
use windlass_store::account::{AccountRow, BalanceWaiter, LedgerQuery, LedgerRow, PriceRow};
use windlass_store::api_key::{ApiKeyRow, ApiKeyStore};
use windlass_store::audit::{AuditEntry, AuditHead, AuditQuery};
use windlass_store::blob::FoundBlobs;
use windlass_store::bulk::{BulkFailure, BulkRow, BulkStore, BulkTarget};
use windlass_store::commit::{Commit, Committed};
use windlass_store::flow::{FlowQuery, FlowRow, Publication, Published, VersionRef, VersionRow};
use windlass_store::hint::Hints;
use windlass_store::job::{DeadLetterGroup, JobOutline, JobQuery, JobRow, OutlineQuery, ReadyCursor};
use windlass_store::log::{LogRow, LogsOf};
use windlass_store::outbox::{Message, OutboxCursor, Party, Undelivered, WaitingTree};
use windlass_store::page::{NameRange, Page, Part};
use windlass_store::queue::{Held, QueueDepth, QueueSettings, Spent};
use windlass_store::ready::{KeyQuery, KeyRows, ReadyQuery};
use windlass_store::run::{Journal, RunGroup, RunQuery, RunRef, RunRow, Since};
use windlass_store::sample::{SampleQuery, SampleRow};
use windlass_store::schedule::Scheduled;
use windlass_store::server::ServerRow;
use windlass_store::service::{LiveService, ServiceRow, WaitingService};
use windlass_store::store::{Due, Retained, SetBack};
use windlass_store::worker::{WorkerBeat, WorkerQuery, WorkerRow};
use windlass_store::{Memory, Store, StoreError};

type OnCommit = Box<dyn Fn(&Memory, &[Commit]) -> bool + Send + Sync>;
type OnMessages = Box<dyn Fn(&Party, Vec<Message>) -> Vec<Message> + Send + Sync>;
type OnPrices = Box<dyn Fn() -> Result<(), StoreError> + Send + Sync>;
type OnAccountsWithWaiters = Box<dyn Fn(Option<&str>) -> Result<(), StoreError> + Send + Sync>;
type OnSave = Box<dyn Fn() -> Result<(), StoreError> + Send + Sync>;

/// A store in memory with a hook before or after some of its verbs. The default hooks change nothing.
pub struct FaultyStore {
    pub memory: Arc<Memory>,
    /// Called before commits are made; `false` makes all of them unavailable.
    pub on_commit: OnCommit,
    /// Called with the messages to a receiver after they were read; returns the messages that the caller gets.
    pub on_messages: OnMessages,
    /// Called before prices are read.
    pub on_prices: OnPrices,
    /// Called before accounts with waiting runs are read, with the account if the caller names one.
    pub on_accounts_with_waiters: OnAccountsWithWaiters,
    /// Called before an API key is read.
    pub on_api_key: OnSave,
    /// Called before a row is written that is no part of a commit.
    pub on_save: OnSave,
    /// Messages that were read so far.
    pub n_messages: AtomicUsize,
}

impl Default for FaultyStore {
    fn default() -> Self {
        FaultyStore::over(Arc::new(Memory::new()))
    }
}

impl FaultyStore {
    /// A store that forwards every verb to this one.
    pub fn over(memory: Arc<Memory>) -> Self {
        FaultyStore {
            memory,
            on_commit: Box::new(|_, _| true),
            on_messages: Box::new(|_, sent| sent),
            on_prices: Box::new(|| Ok(())),
            on_accounts_with_waiters: Box::new(|_| Ok(())),
            on_api_key: Box::new(|| Ok(())),
            on_save: Box::new(|| Ok(())),
            n_messages: AtomicUsize::new(0),
        }
    }

    fn count(&self, n: usize) {
        self.n_messages.fetch_add(n, Ordering::SeqCst);
    }
}

pub fn unavailable() -> StoreError {
    StoreError::unavailable("the test made the store unavailable")
}

macro_rules! forward {
    (
        whole { $($whole:ident($($arg:ident: $type:ty),*) -> $answer:ty;)* }
        project { $($verb:ident($($p_arg:ident: $p_type:ty),*) -> $p_answer:ty;)* }
        save { $($save:ident($($s_arg:ident: $s_type:ty),*);)* }
    ) => {
        #[async_trait]
        impl Store for FaultyStore {
            $(
                async fn $whole(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                    self.memory.$whole($($arg),*).await
                }
            )*
            $(
                async fn $verb(&self, project: &Project, $($p_arg: $p_type),*) -> Result<$p_answer, StoreError> {
                    self.memory.$verb(project, $($p_arg),*).await
                }
            )*
            $(
                async fn $save(&self, project: &Project, $($s_arg: $s_type),*) -> Result<(), StoreError> {
                    (self.on_save)()?;
                    self.memory.$save(project, $($s_arg),*).await
                }
            )*

            async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
                match (self.on_commit)(&self.memory, &commits) {
                    true => self.memory.commit(commits).await,
                    false => commits.iter().map(|_| Err(unavailable())).collect(),
                }
            }

            async fn outbox(
                &self,
                now: Timestamp,
                after: Option<OutboxCursor>,
                limit: usize,
            ) -> Result<Vec<Undelivered>, StoreError> {
                let read = self.memory.outbox(now, after, limit).await?;
                self.count(read.len());
                Ok(read)
            }

            async fn waiting_children(
                &self,
                project: &Project,
                root: RunId,
                limit: usize,
            ) -> Result<Vec<Message>, StoreError> {
                let read = self.memory.waiting_children(project, root, limit).await?;
                self.count(read.len());
                Ok(read)
            }

            async fn outbox_to(&self, project: &Project, to: Party) -> Result<Vec<Message>, StoreError> {
                let sent = self.memory.outbox_to(project, to.clone()).await?;
                let sent = (self.on_messages)(&to, sent);
                self.count(sent.len());
                Ok(sent)
            }

            async fn ledger(&self, project: &Project, query: LedgerQuery) -> Result<Vec<LedgerRow>, StoreError> {
                let rows = self.memory.ledger(project, query).await;
                // Other tasks run between the read and the caller's next step.
                tokio::task::yield_now().await;
                rows
            }

            async fn prices(&self, project: &Project) -> Result<Vec<PriceRow>, StoreError> {
                (self.on_prices)()?;
                self.memory.prices(project).await
            }

            async fn accounts_with_waiters(
                &self,
                project: &Project,
                account: Option<String>,
            ) -> Result<Vec<AccountRow>, StoreError> {
                (self.on_accounts_with_waiters)(account.as_deref())?;
                self.memory.accounts_with_waiters(project, account).await
            }

            async fn save_server(&self, row: ServerRow) -> Result<(), StoreError> {
                (self.on_save)()?;
                self.memory.save_server(row).await
            }

            fn is_shared(&self) -> bool {
                self.memory.is_shared()
            }

            fn hints(&self) -> Option<Hints> {
                self.memory.hints()
            }
        }
    };
}

forward! {
    whole {
        due(now: Timestamp, limit: usize) -> Due;
        orphans(now: Timestamp, dead_after_ms: u64, after: Option<RunId>, limit: usize) -> Vec<RunRow>;
        waiting_trees(after: Option<WaitingTree>, limit: usize) -> Vec<WaitingTree>;
        retain(before: Timestamp, limit: usize) -> Retained;
        set_back(now: Timestamp) -> SetBack;
        servers() -> Vec<ServerRow>;
        store_key(name: &str, fresh: StoreKey) -> StoreKey;
        delete_servers(before: Timestamp) -> ();
        delete_workers(before: Timestamp, limit: usize) -> usize;
        delete_queues(before: Timestamp, limit: usize) -> usize;
    }
    project {
        publish(publication: Publication) -> Published;
        flows(query: FlowQuery) -> Page<FlowRow>;
        version(version: VersionRef) -> Option<VersionRow>;
        versions(flow: FlowId) -> Vec<VersionRow>;
        command(command: CommandId) -> Option<Committed>;
        journal(run: RunId, since: Since, limit: usize) -> Journal;
        blobs(hashes: BTreeSet<String>) -> FoundBlobs;
        run(run: RunRef) -> Option<RunRow>;
        runs(query: RunQuery) -> Page<RunRow>;
        count_runs(of: RunGroup, limit: usize) -> usize;
        count_matching(query: RunQuery, limit: usize) -> Option<usize>;
        job(job: JobId) -> Option<JobRow>;
        jobs(query: JobQuery) -> Page<JobRow>;
        attempts(job: JobId, after: u32, limit: usize) -> Vec<Attempt>;
        ready(query: ReadyQuery) -> Vec<JobRow>;
        ready_cursors(query: ReadyQuery) -> Vec<ReadyCursor>;
        job_outlines(query: OutlineQuery) -> Vec<JobOutline>;
        ready_by_key(query: KeyQuery) -> KeyRows;
        account(id: &str) -> Option<AccountRow>;
        accounts() -> Vec<AccountRow>;
        accounts_after(after: Option<String>, limit: usize) -> Vec<AccountRow>;
        balance_waiters(account: String, within: Amount, limit: usize) -> Vec<BalanceWaiter>;
        services(names: NameRange) -> Vec<ServiceRow>;
        live_services(alive_since: Timestamp, names: NameRange) -> Vec<LiveService>;
        waiting_services(names: NameRange, now: Timestamp) -> Vec<WaitingService>;
        queues(names: NameRange, now: Timestamp) -> Vec<QueueDepth>;
        held(queue: String) -> Held;
        spent() -> Vec<Spent>;
        dead_letter_groups(queue: String) -> Vec<DeadLetterGroup>;
        schedule(id: ScheduleId) -> Option<Scheduled>;
        schedules(part: Part) -> Page<Scheduled>;
        audit(query: AuditQuery) -> Vec<AuditEntry>;
        audit_head() -> AuditHead;
        logs(run: RunId, of: LogsOf) -> Vec<LogRow>;
        workers(query: WorkerQuery) -> Vec<WorkerRow>;
    }
    save {
        open_account(id: &str, name: &str, now: Timestamp);
        set_price(row: PriceRow);
        delete_price(service: &str);
        save_service(row: ServiceRow);
        save_queue(settings: QueueSettings);
        save_spent(spent: Vec<Spent>, now: Timestamp);
        save_worker(row: WorkerRow);
        beat_worker(beat: WorkerBeat);
        drain_worker(id: &str, is_draining: bool);
    }
}

#[async_trait]
impl ApiKeyStore for FaultyStore {
    async fn create_api_key(&self, project: &Project, row: ApiKeyRow) -> Result<bool, StoreError> {
        (self.on_save)()?;
        self.memory.create_api_key(project, row).await
    }

    async fn api_key(&self, id: ApiKeyId) -> Result<Option<ApiKeyRow>, StoreError> {
        (self.on_api_key)()?;
        self.memory.api_key(id).await
    }

    async fn api_keys(
        &self,
        project: &Project,
        after: Option<ApiKeyId>,
        limit: usize,
    ) -> Result<Vec<ApiKeyRow>, StoreError> {
        self.memory.api_keys(project, after, limit).await
    }

    async fn has_api_keys(&self) -> Result<bool, StoreError> {
        self.memory.has_api_keys().await
    }

    async fn revoke_api_key(
        &self,
        project: &Project,
        id: ApiKeyId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        (self.on_save)()?;
        self.memory.revoke_api_key(project, id, now).await
    }

    async fn rotate_api_key(
        &self,
        project: &Project,
        id: ApiKeyId,
        ends_at: Timestamp,
        successor: ApiKeyRow,
    ) -> Result<bool, StoreError> {
        (self.on_save)()?;
        self.memory.rotate_api_key(project, id, ends_at, successor).await
    }

    async fn save_api_key_uses(&self, uses: Vec<(ApiKeyId, Timestamp)>) -> Result<(), StoreError> {
        (self.on_save)()?;
        self.memory.save_api_key_uses(uses).await
    }
}

#[async_trait]
impl BulkStore for FaultyStore {
    async fn create_bulk(
        &self,
        project: &Project,
        row: BulkRow,
        targets: Vec<Vec<BulkTarget>>,
    ) -> Result<(), StoreError> {
        (self.on_save)()?;
        self.memory.create_bulk(project, row, targets).await
    }

    async fn save_bulk(
        &self,
        project: &Project,
        row: BulkRow,
        failures: Vec<BulkFailure>,
    ) -> Result<(), StoreError> {
        (self.on_save)()?;
        self.memory.save_bulk(project, row, failures).await
    }

    async fn bulk(&self, project: &Project, id: BulkId) -> Result<Option<BulkRow>, StoreError> {
        self.memory.bulk(project, id).await
    }

    async fn bulks(
        &self,
        project: &Project,
        before: Option<BulkId>,
        limit: usize,
    ) -> Result<Vec<BulkRow>, StoreError> {
        self.memory.bulks(project, before, limit).await
    }

    async fn bulk_targets(
        &self,
        project: &Project,
        id: BulkId,
        part: usize,
    ) -> Result<Vec<BulkTarget>, StoreError> {
        self.memory.bulk_targets(project, id, part).await
    }

    async fn bulk_failures(
        &self,
        project: &Project,
        id: BulkId,
        limit: usize,
    ) -> Result<Vec<BulkFailure>, StoreError> {
        self.memory.bulk_failures(project, id, limit).await
    }

    async fn open_bulks(&self, limit: usize) -> Result<Vec<BulkRow>, StoreError> {
        self.memory.open_bulks(limit).await
    }

    async fn delete_bulks(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.memory.delete_bulks(before, limit).await
    }

    async fn save_samples(&self, project: &Project, rows: Vec<SampleRow>) -> Result<(), StoreError> {
        (self.on_save)()?;
        self.memory.save_samples(project, rows).await
    }

    async fn samples(&self, project: &Project, query: SampleQuery) -> Result<Vec<SampleRow>, StoreError> {
        self.memory.samples(project, query).await
    }

    async fn delete_samples(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.memory.delete_samples(before, limit).await
    }
}
