//! A PostgreSQL database, 13 or newer: the store of any number of servers.
//!
//! A few connections write, in groups (`writer`); others read. What a group has to know is on its `desk`, what it writes
//! in its `batch`, and every noun has a module with its statements beside the functions that bind them. Two levels of
//! durability: `strict` waits for the disk of the database (`synchronous_commit = on`), `fast` does not, and may lose
//! the last moments when the database dies, though never a part of a commit.

mod address;
mod batch;
pub mod beside;
mod column;
mod desk;
mod link;
mod list;
mod listen;
mod schema;
mod trouble;
mod writer;

mod flow;
mod journal;
mod run;

mod attempt;
mod depth;
mod job;
mod letter;
mod queue;

mod account;
mod outbox;
mod schedule;

mod log;
mod news;
mod record;
mod server;
mod service;
mod worker;

mod commit;
#[cfg(feature = "sqlite")]
mod copy;
mod retain;

use std::sync::Arc;

use async_trait::async_trait;
use deadpool_postgres::Pool;
use tokio_postgres::{Config, NoTls};
use uuid::Uuid;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId};
use windlass_engine::job::Attempt;
use windlass_engine::time::Timestamp;

use crate::account::{LedgerQuery, LedgerRow};
use crate::commit::{Commit, Committed};
use crate::durability::Durability;
use crate::error::{StoreError, Subject};
use crate::flow::{FlowQuery, FlowRow, Publication, Published, Readable, VersionRef, VersionRow};
use crate::hint::Hints;
use crate::job::{JobQuery, JobRow, KeyQuery, KeyRows, ReadyQuery};
use crate::outbox::{Message, Party};
use crate::page::Page;
use crate::record::{Record, RecordQuery, Records};
use crate::run::{Journal, RunQuery, RunRef, RunRow, Since, Wake};
use crate::store::{Due, Retained, Store};

#[cfg(feature = "sqlite")]
pub(crate) use copy::Held;

use column::{Columns, Id, bound, cells};
use link::{Link, Purpose};
use listen::Channel;
use trouble::{Kind, kind};
use writer::{WRITERS, Writer};

/// Connections that read, and write small rows: with those that write commits and the one that listens some twenty for
/// one server, so that several fit into the hundred that PostgreSQL allows by itself.
const READERS: usize = 6;
/// Connections for those who look rows up by their keys.
const ASKERS: usize = 6;
/// Parts that a count is divided into; whoever shares one waits for the other, and nothing else happens.
const SHARDS: i64 = 64;
/// How often something small is done again because others got in between.
const RACES_MAX: u32 = 8;

/// An address as it may be shown: without its user and its password. One that cannot be used is refused.
pub fn shown(address: &str) -> Result<String, StoreError> {
    Ok(format!("postgres://{}", address::shown(&address::read(address)?)))
}

/// Makes sure that there is a database, for a clear word about what is wrong.
async fn reach(address: &str) -> Result<Config, StoreError> {
    let config = link::configure(address::read(address)?);
    let first = config.connect(NoTls).await;
    drop(first.map_err(|error| address::unreachable(&config, error))?);
    Ok(config)
}

/// A store in a database.
#[derive(Debug)]
pub struct Postgres {
    readers: Pool,
    askers: Pool,
    writer: Writer,
    channel: Arc<Channel>,
    shard: i64,
}

/// Does something again while others get in between.
macro_rules! unless_raced {
    ($done:expr) => {{
        let mut n_races = 0;
        loop {
            match $done.await {
                Err(error) if kind(&error) == Kind::Race && n_races < RACES_MAX => n_races += 1,
                done => break done,
            }
        }
    }};
}

impl Postgres {
    /// Opens the database at an address such as `postgres://user:password@host:5432/database`, and brings its tables up
    /// to date. Others may have it open. One that a copy has not come to its end in is refused. Needs a Tokio runtime,
    /// and lives in it.
    pub async fn open(address: &str, durability: Durability) -> Result<Postgres, StoreError> {
        Self::open_checked(address, durability, true).await
    }

    /// Opens it even if a copy into it has not come to its end.
    #[cfg(feature = "sqlite")]
    pub(crate) async fn open_unfinished(
        address: &str,
        durability: Durability,
    ) -> Result<Postgres, StoreError> {
        Self::open_checked(address, durability, false).await
    }

    async fn open_checked(
        address: &str,
        durability: Durability,
        has_to_be_whole: bool,
    ) -> Result<Postgres, StoreError> {
        let config = reach(address).await?;
        let readers = link::pool(config.clone(), durability, Purpose::Any, READERS)?;
        let askers = link::pool(config.clone(), durability, Purpose::ByKey, ASKERS)?;
        let writers = link::pool(config.clone(), durability, Purpose::ByKey, WRITERS)?;
        let db = Link::take(&readers).await?;
        address::check(&db).await?;
        if has_to_be_whole {
            // Already before anything is waited for that a copy holds.
            schema::check_finished(&db).await?;
        }
        schema::migrate(&db).await?;
        if has_to_be_whole {
            schema::check_finished(&db).await?;
        }
        drop(db);
        let channel = Arc::new(Channel::new(config)?);
        let chance = i64::from(Uuid::now_v7().as_bytes()[15]);
        let shards = std::array::from_fn(|n| (chance + bound(n)) % SHARDS);
        let writer = Writer::start(writers, readers.clone(), channel.clone(), shards);
        Ok(Postgres { readers, askers, writer, channel, shard: shards[0] })
    }

    /// Whether there are tables of the program at an address.
    #[cfg(feature = "sqlite")]
    pub(crate) async fn is_there(address: &str) -> Result<bool, StoreError> {
        let pool = link::pool(reach(address).await?, Durability::Strict, Purpose::Any, 1)?;
        schema::is_there(&Link::take(&pool).await?).await
    }

    async fn link(&self) -> Result<Link, StoreError> {
        Link::take(&self.readers).await
    }

    /// A connection for a question that whoever works asks all the time.
    async fn by_key(&self) -> Result<Link, StoreError> {
        Link::take(&self.askers).await
    }
}

impl AsRef<dyn Store> for Postgres {
    fn as_ref(&self) -> &(dyn Store + 'static) {
        self
    }
}

#[async_trait]
impl Store for Postgres {
    async fn publish(&self, publication: Publication) -> Result<Published, StoreError> {
        let readable = Readable::of(&publication);
        let db = self.link().await?;
        unless_raced!(db.transact(flow::publish(&db, &publication, &readable)))
    }

    async fn flows(&self, query: FlowQuery) -> Result<Page<FlowRow>, StoreError> {
        // One is looked for whenever a run of it is started.
        match query.one() {
            Some(flow) => flow::one(&self.by_key().await?, flow).await,
            None => flow::flows(&self.link().await?, &query).await,
        }
    }

    async fn version(&self, version: VersionRef) -> Result<Option<VersionRow>, StoreError> {
        flow::version(&self.by_key().await?, version).await
    }

    async fn versions(&self, flow: FlowId) -> Result<Vec<VersionRow>, StoreError> {
        flow::versions(&self.link().await?, flow).await
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
        if commits.is_empty() {
            return Vec::new();
        }
        self.writer.write(commits.into_iter().map(commit::Draft::of).collect()).await
    }

    async fn command(&self, command: CommandId) -> Result<Option<Committed>, StoreError> {
        Ok(commit::commands(&self.by_key().await?, &[command]).await?.into_iter().next())
    }

    async fn journal(&self, run: RunId, since: Since, limit: usize) -> Result<Journal, StoreError> {
        journal::journal(&self.by_key().await?, run, since, limit).await
    }

    async fn run(&self, run: RunRef) -> Result<Option<RunRow>, StoreError> {
        run::run(&self.by_key().await?, &run).await
    }

    async fn runs(&self, query: RunQuery) -> Result<Page<RunRow>, StoreError> {
        run::runs(&self.link().await?, &query).await
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

    async fn job(&self, job: JobId) -> Result<Option<JobRow>, StoreError> {
        job::job(&self.by_key().await?, job).await
    }

    async fn jobs(&self, query: JobQuery) -> Result<Page<JobRow>, StoreError> {
        job::jobs(&self.link().await?, &query).await
    }

    async fn attempts(&self, job: JobId, after: u32, limit: usize) -> Result<Vec<Attempt>, StoreError> {
        attempt::after(&self.by_key().await?, job, after, limit).await
    }

    async fn ready(&self, query: ReadyQuery) -> Result<Vec<JobRow>, StoreError> {
        job::ready(&self.by_key().await?, &query).await
    }

    async fn ready_by_key(&self, query: KeyQuery) -> Result<KeyRows, StoreError> {
        let db = self.by_key().await?;
        db.at_one_moment(job::ready_by_key(&db, &query)).await
    }

    async fn outbox(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        outbox::undelivered(&self.link().await?, now, limit).await
    }

    async fn outbox_to(&self, to: Party) -> Result<Vec<Message>, StoreError> {
        outbox::to(&self.by_key().await?, &to).await
    }

    async fn ledger(&self, query: LedgerQuery) -> Result<Vec<LedgerRow>, StoreError> {
        account::ledger(&self.link().await?, &query).await
    }

    async fn save(&self, record: Record) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(record::save(&db, &record))?;
        if let Some(hint) = record::hint(&record) {
            self.channel.tell(&hint);
        }
        Ok(())
    }

    async fn records(&self, query: RecordQuery) -> Result<Records, StoreError> {
        record::records(&self.link().await?, &query).await
    }

    async fn retain(&self, before: Timestamp, limit: usize) -> Result<Retained, StoreError> {
        let db = self.link().await?;
        let retained = unless_raced!(db.transact(retain::retain(&db, self.shard, before, limit)))?;
        unless_raced!(db.transact(depth::forget(&db)))?;
        Ok(retained)
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

fn guard(what: impl FnOnce() -> Subject, expected: u64, found: u64) -> Result<(), StoreError> {
    if expected == found { Ok(()) } else { Err(StoreError::Conflict { what: what(), expected, found }) }
}

/// What time asks for, oldest first.
async fn wakes<I: Id>(
    db: &Link,
    sql: &'static str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Wake<I>>, StoreError> {
    let rows = db.ask(sql, &cells![now.0, bound(limit)]).await?;
    let wake = |row| {
        let mut columns = Columns::of(row);
        Ok(Wake { at: columns.time()?, id: columns.id()? })
    };
    rows.iter().map(wake).collect()
}

#[cfg(test)]
mod tests;
