//! A PostgreSQL database, 13 or newer: the store of any number of servers.
//!
//! A few connections write, in groups (`writer`); others read. The rows that a group depends on are in its read set, its writes
//! in its `batch`, and every noun has a module with its statements beside the functions that bind them. Two levels of
//! durability: `strict` waits for the disk of the database (`synchronous_commit = on`), `fast` does not, and may lose
//! the last moments when the database dies, though never a part of a commit.

mod address;
mod batch;
pub mod beside;
mod bulk;
mod column;
mod encryption;
mod link;
mod list;
mod listen;
mod open;
mod read_set;
mod schema;
mod trouble;
mod writer;

mod flow;
mod journal;
mod run;

mod attempt;
mod dead_letter;
mod depth;
mod job;
mod queue;

mod account;
mod api_key;
mod blob;
mod outbox;
mod sample;
mod schedule;

mod audit;
mod job_hints;
mod log;
mod server;
mod service;
mod set_back;
mod store_key;
mod worker;

mod commit;
#[cfg(feature = "sqlite")]
mod copy;
mod retain;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use deadpool_postgres::Pool;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, ScheduleId};
use windlass_engine::job::Attempt;
use windlass_engine::money::Amount;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use crate::account::{AccountRow, BalanceWaiter, LedgerQuery, LedgerRow, PriceRow};
use crate::audit::{AuditEntry, AuditHead, AuditQuery};
use crate::blob::{BlobCache, FoundBlobs};
use crate::commit::{Commit, Committed};
use crate::condition::ConditionLog;
use crate::error::{StoreError, guard};
use crate::flow::{FlowQuery, FlowRow, Publication, Published, Readable, VersionRef, VersionRow};
use crate::hint::{Hint, Hints};
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

#[cfg(feature = "sqlite")]
pub(crate) use copy::HeldDatabase;

use link::Link;
use listen::Channel;
use trouble::{ErrorClass, kind};
use writer::Writer;

pub use address::{is_exposed, shown};
pub use writer::WRITERS;

/// Connections that read, and write small rows: with those that write commits and the one that listens some twenty for
/// one server, so that several fit into the hundred that PostgreSQL allows by itself.
const READERS: usize = 6;
/// Connections for those who look rows up by their keys.
const ASKERS: usize = 6;
/// Parts that a count is divided into; two writers that share a part wait for each other.
const SHARDS: i64 = 64;
/// How often something small is done again because others got in between.
const RACES_MAX: u32 = 8;

/// A store in a database.
#[derive(Debug)]
pub struct Postgres {
    condition: Arc<ConditionLog>,
    readers: Pool,
    askers: Pool,
    writer: Writer,
    channel: Arc<Channel>,
    blobs: BlobCache,
    shard: i64,
}

/// Does something again while others get in between.
macro_rules! unless_raced {
    ($done:expr) => {{
        let mut n_races = 0;
        loop {
            match $done.await {
                Err(error) if kind(&error) == ErrorClass::Race && n_races < RACES_MAX => n_races += 1,
                done => break done,
            }
        }
    }};
}

use unless_raced;

impl Postgres {
    /// Writes commits of one project.
    async fn write(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
        if commits.is_empty() {
            return Vec::new();
        }
        self.blobs.keep_all(&commits);
        self.writer.write(commits.into_iter().map(commit::Draft::of).collect()).await
    }

    async fn link(&self) -> Result<Link, StoreError> {
        Link::take_noting(&self.readers, &self.condition).await
    }

    fn tell_of_settings(&self) {
        self.channel.tell(&Hint { settings: true, ..Hint::default() });
    }

    /// A connection for queries of the hot path.
    async fn by_key(&self) -> Result<Link, StoreError> {
        Link::take_noting(&self.askers, &self.condition).await
    }
}

impl AsRef<dyn Store> for Postgres {
    fn as_ref(&self) -> &(dyn Store + 'static) {
        self
    }
}

#[async_trait]
impl Store for Postgres {
    async fn publish(&self, project: &Project, publication: Publication) -> Result<Published, StoreError> {
        let readable = Readable::of(&publication);
        let db = self.link().await?;
        unless_raced!(db.transact(flow::publish(&db, project, &publication, &readable)))
    }

    async fn flows(&self, project: &Project, query: FlowQuery) -> Result<Page<FlowRow>, StoreError> {
        // One is looked for whenever a run of it is started.
        match query.one() {
            Some(flow) => flow::one(&self.by_key().await?, project, flow).await,
            None => flow::flows(&self.link().await?, project, &query).await,
        }
    }

    async fn version(
        &self,
        project: &Project,
        version: VersionRef,
    ) -> Result<Option<VersionRow>, StoreError> {
        flow::version(&self.by_key().await?, project, version).await
    }

    async fn versions(&self, project: &Project, flow: FlowId) -> Result<Vec<VersionRow>, StoreError> {
        flow::versions(&self.link().await?, project, flow).await
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
        let is_one_project = commits.windows(2).all(|two| two[0].project == two[1].project);
        if commits.is_empty() || is_one_project {
            return self.write(commits).await;
        }
        // Commits of several projects share no row: the places of their answers are all that is kept.
        let mut by_project: BTreeMap<Project, Vec<(usize, Commit)>> = BTreeMap::new();
        for (place, commit) in commits.into_iter().enumerate() {
            by_project.entry(commit.project.clone()).or_default().push((place, commit));
        }
        let mut answers = Vec::new();
        for commits in by_project.into_values() {
            let (places, commits): (Vec<usize>, Vec<Commit>) = commits.into_iter().unzip();
            answers.extend(places.into_iter().zip(self.write(commits).await));
        }
        answers.sort_by_key(|(place, _)| *place);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    async fn command(&self, project: &Project, command: CommandId) -> Result<Option<Committed>, StoreError> {
        Ok(commit::commands(&self.by_key().await?, project, &[command]).await?.into_iter().next())
    }

    async fn journal(
        &self,
        project: &Project,
        run: RunId,
        since: Since,
        limit: usize,
    ) -> Result<Journal, StoreError> {
        journal::journal(&self.by_key().await?, &self.blobs, project, run, since, limit).await
    }

    async fn blobs(&self, project: &Project, hashes: BTreeSet<String>) -> Result<FoundBlobs, StoreError> {
        blob::blobs(&self.by_key().await?, &self.blobs, project, hashes).await
    }

    async fn run(&self, project: &Project, run: RunRef) -> Result<Option<RunRow>, StoreError> {
        run::run(&self.by_key().await?, project, &run).await
    }

    async fn runs(&self, project: &Project, query: RunQuery) -> Result<Page<RunRow>, StoreError> {
        run::runs(&self.link().await?, project, &query).await
    }

    async fn count_runs(&self, project: &Project, of: RunGroup, limit: usize) -> Result<usize, StoreError> {
        run::count(&self.by_key().await?, project, of, limit).await
    }

    async fn count_matching(
        &self,
        project: &Project,
        query: RunQuery,
        limit: usize,
    ) -> Result<Option<usize>, StoreError> {
        run::count_matching(&self.link().await?, project, &query, limit).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Due, StoreError> {
        let db = self.link().await?;
        let (runs, jobs, schedules) = tokio::try_join!(
            run::due(&db, now, limit),
            job::due(&db, now, limit),
            schedule::due(&db, now, limit)
        )?;
        Ok(Due { runs, jobs, schedules })
    }

    async fn orphans(
        &self,
        now: Timestamp,
        dead_after_ms: u64,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<RunRow>, StoreError> {
        run::orphans(&self.link().await?, now, dead_after_ms, after, limit).await
    }

    async fn job(&self, project: &Project, job: JobId) -> Result<Option<JobRow>, StoreError> {
        job::job(&self.by_key().await?, project, job).await
    }

    async fn jobs(&self, project: &Project, query: JobQuery) -> Result<Page<JobRow>, StoreError> {
        job::jobs(&self.link().await?, project, &query).await
    }

    async fn attempts(
        &self,
        project: &Project,
        job: JobId,
        after: u32,
        limit: usize,
    ) -> Result<Vec<Attempt>, StoreError> {
        attempt::after(&self.by_key().await?, project, job, after, limit).await
    }

    async fn ready(&self, project: &Project, query: ReadyQuery) -> Result<Vec<JobRow>, StoreError> {
        job::ready(&self.by_key().await?, project, &query).await
    }

    async fn ready_cursors(
        &self,
        project: &Project,
        query: ReadyQuery,
    ) -> Result<Vec<ReadyCursor>, StoreError> {
        job::ready_cursors(&self.link().await?, project, &query).await
    }

    async fn job_outlines(
        &self,
        project: &Project,
        query: OutlineQuery,
    ) -> Result<Vec<JobOutline>, StoreError> {
        job::job_outlines(&self.link().await?, project, &query).await
    }

    async fn ready_by_key(&self, project: &Project, query: KeyQuery) -> Result<KeyRows, StoreError> {
        let db = self.by_key().await?;
        db.at_one_moment(job::ready_by_key(&db, project, &query)).await
    }

    async fn outbox(
        &self,
        now: Timestamp,
        after: Option<OutboxCursor>,
        limit: usize,
    ) -> Result<Vec<Undelivered>, StoreError> {
        outbox::undelivered(&self.link().await?, &self.blobs, now, after.as_ref(), limit).await
    }

    async fn waiting_trees(
        &self,
        after: Option<WaitingTree>,
        limit: usize,
    ) -> Result<Vec<WaitingTree>, StoreError> {
        outbox::waiting_trees(&self.link().await?, after.as_ref(), limit).await
    }

    async fn waiting_children(
        &self,
        project: &Project,
        root: RunId,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        outbox::waiting_children(&self.by_key().await?, &self.blobs, project, root, limit).await
    }

    async fn outbox_to(&self, project: &Project, to: Party) -> Result<Vec<Message>, StoreError> {
        outbox::to(&self.by_key().await?, &self.blobs, project, &to).await
    }

    async fn ledger(&self, project: &Project, query: LedgerQuery) -> Result<Vec<LedgerRow>, StoreError> {
        account::ledger(&self.link().await?, project, &query).await
    }

    async fn open_account(
        &self,
        project: &Project,
        id: &str,
        name: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(account::open(&db, project, id, name, now))?;
        self.tell_of_settings();
        Ok(())
    }

    async fn account(&self, project: &Project, id: &str) -> Result<Option<AccountRow>, StoreError> {
        account::account(&self.by_key().await?, project, id).await
    }

    async fn accounts(&self, project: &Project) -> Result<Vec<AccountRow>, StoreError> {
        account::accounts(&self.link().await?, project).await
    }

    async fn accounts_after(
        &self,
        project: &Project,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<AccountRow>, StoreError> {
        account::accounts_after(&self.link().await?, project, after.as_deref(), limit).await
    }

    async fn accounts_with_waiters(
        &self,
        project: &Project,
        account: Option<String>,
    ) -> Result<Vec<AccountRow>, StoreError> {
        account::accounts_with_waiters(&self.link().await?, project, account.as_deref()).await
    }

    async fn balance_waiters(
        &self,
        project: &Project,
        account: String,
        within: Amount,
        limit: usize,
    ) -> Result<Vec<BalanceWaiter>, StoreError> {
        account::balance_waiters(&self.link().await?, project, &account, within, limit).await
    }

    async fn prices(&self, project: &Project) -> Result<Vec<PriceRow>, StoreError> {
        account::prices(&self.link().await?, project).await
    }

    async fn set_price(&self, project: &Project, row: PriceRow) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(account::set_price(&db, project, &row))?;
        self.tell_of_settings();
        Ok(())
    }

    async fn delete_price(&self, project: &Project, service: &str) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(account::forget_price(&db, project, service))?;
        self.tell_of_settings();
        Ok(())
    }

    async fn services(&self, project: &Project, names: NameRange) -> Result<Vec<ServiceRow>, StoreError> {
        service::services(&self.link().await?, project, &names).await
    }

    async fn live_services(
        &self,
        project: &Project,
        alive_since: Timestamp,
        names: NameRange,
    ) -> Result<Vec<LiveService>, StoreError> {
        service::live_services(&self.link().await?, project, alive_since, &names).await
    }

    async fn waiting_services(
        &self,
        project: &Project,
        names: NameRange,
        now: Timestamp,
    ) -> Result<Vec<WaitingService>, StoreError> {
        service::waiting_services(&self.link().await?, project, &names, now).await
    }

    async fn save_service(&self, project: &Project, row: ServiceRow) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(service::save(&db, project, &row))?;
        self.tell_of_settings();
        Ok(())
    }

    async fn queues(
        &self,
        project: &Project,
        names: NameRange,
        now: Timestamp,
    ) -> Result<Vec<QueueDepth>, StoreError> {
        queue::depths(&self.link().await?, project, &names, now).await
    }

    async fn save_queue(&self, project: &Project, settings: QueueSettings) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(queue::save(&db, project, &settings))?;
        self.tell_of_settings();
        Ok(())
    }

    async fn held(&self, project: &Project, queue: String) -> Result<Held, StoreError> {
        queue::held(&self.link().await?, project, &queue).await
    }

    async fn spent(&self, project: &Project) -> Result<Vec<Spent>, StoreError> {
        queue::spent(&self.link().await?, project).await
    }

    async fn save_spent(
        &self,
        project: &Project,
        spent: Vec<Spent>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(queue::spend(&db, project, &spent, now))
    }

    async fn dead_letter_groups(
        &self,
        project: &Project,
        queue: String,
    ) -> Result<Vec<DeadLetterGroup>, StoreError> {
        dead_letter::groups(&self.link().await?, project, &queue).await
    }

    async fn schedule(&self, project: &Project, id: ScheduleId) -> Result<Option<Scheduled>, StoreError> {
        schedule::schedule(&self.link().await?, project, id).await
    }

    async fn schedules(&self, project: &Project, part: Part) -> Result<Page<Scheduled>, StoreError> {
        schedule::schedules(&self.link().await?, project, &part).await
    }

    async fn audit(&self, project: &Project, query: AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        audit::audit(&self.link().await?, project, &query).await
    }

    async fn audit_head(&self, project: &Project) -> Result<AuditHead, StoreError> {
        audit::head(&self.link().await?, project).await
    }

    async fn logs(&self, project: &Project, run: RunId, of: LogsOf) -> Result<Vec<LogRow>, StoreError> {
        log::logs(&self.link().await?, project, run, of).await
    }

    async fn workers(&self, project: &Project, query: WorkerQuery) -> Result<Vec<WorkerRow>, StoreError> {
        worker::workers(&self.link().await?, project, &query).await
    }

    async fn save_worker(&self, project: &Project, row: WorkerRow) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(db.transact(worker::save(&db, project, &row)))?;
        self.tell_of_settings();
        Ok(())
    }

    async fn beat_worker(&self, project: &Project, beat: WorkerBeat) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(worker::beat(&db, project, &beat))
    }

    async fn drain_worker(&self, project: &Project, id: &str, is_draining: bool) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(worker::drain(&db, project, id, is_draining))?;
        self.tell_of_settings();
        Ok(())
    }

    async fn delete_workers(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let db = self.link().await?;
        unless_raced!(worker::forget(&db, before, limit))
    }

    async fn delete_queues(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let db = self.link().await?;
        unless_raced!(queue::forget(&db, before, limit))
    }

    async fn servers(&self) -> Result<Vec<ServerRow>, StoreError> {
        server::servers(&self.link().await?).await
    }

    async fn save_server(&self, row: ServerRow) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(server::save(&db, &row))
    }

    async fn delete_servers(&self, before: Timestamp) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(server::forget(&db, before))
    }

    async fn store_key(&self, name: &str, fresh: StoreKey) -> Result<StoreKey, StoreError> {
        let db = self.link().await?;
        unless_raced!(store_key::find_or_add(&db, name, fresh))
    }

    async fn retain(&self, before: Timestamp, limit: usize) -> Result<Retained, StoreError> {
        let db = self.link().await?;
        let retained = unless_raced!(db.transact(retain::retain(&db, self.shard, before, limit)))?;
        unless_raced!(db.transact(depth::forget(&db)))?;
        self.blobs.clear();
        Ok(retained)
    }

    async fn set_back(&self, now: Timestamp) -> Result<SetBack, StoreError> {
        let db = self.link().await?;
        unless_raced!(db.transact(set_back::set_back(&db, now)))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn condition_log(&self) -> Option<&ConditionLog> {
        Some(&self.condition)
    }

    fn shared_by(&self, n_servers: usize) {
        self.writer.shared_by(n_servers);
    }

    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        server::now(&self.link().await?).await.map(Some)
    }

    fn hints(&self) -> Option<Hints> {
        Some(self.channel.listen())
    }
}

#[cfg(test)]
mod tests;
