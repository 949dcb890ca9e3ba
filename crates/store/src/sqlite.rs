//! One file on a disk: the store of a single server.
//!
//! One thread writes, in groups (`writer`); a few read (`readers`). Every noun has a module with its statements
//! beside the functions that bind them. Two levels of durability: `strict` makes every group durable before anybody
//! is answered (`synchronous = FULL`: one sync of the log per group); `fast` leaves that to the system
//! (`synchronous = NORMAL`: the log is synced before it is moved into the file), and may lose the last moments when
//! the power fails, though never when only the process dies, and never what makes the file whole. A sync is
//! `fdatasync`, as set in `.cargo/config.toml`; compiled without, it is `fsync`, which promises as much and costs
//! more.

mod column;
mod desk;
mod inbox;
mod list;
mod lock;
mod readers;
mod schema;
mod shorthand;
mod ticket;
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
mod book;
mod filing;
mod ledger;
mod outbox;
mod purse;
mod schedule;
mod sheet;
mod slip;

mod log;
mod record;
mod server;
mod service;
mod worker;

mod commit;
#[cfg(feature = "postgres")]
mod copy;
mod retain;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use rusqlite::{Connection, params};
use windlass_engine::id::{CommandId, FlowId, JobId, RunId};
use windlass_engine::job::Attempt;
use windlass_engine::time::Timestamp;

use crate::account::{LedgerQuery, LedgerRow};
use crate::commit::{Commit, Committed};
pub use crate::durability::Durability;
use crate::error::{StoreError, Subject};
use crate::flow::{FlowQuery, FlowRow, Publication, Published, Readable, VersionRef, VersionRow};
use crate::job::{JobQuery, JobRow, KeyQuery, KeyRows, ReadyQuery};
use crate::outbox::{Message, Party};
use crate::page::Page;
use crate::record::{Record, RecordQuery, Records};
use crate::run::{Journal, RunQuery, RunRef, RunRow, Since, Wake};
use crate::store::{Due, Retained, Store};

use column::{Columns, Id, bound};
use desk::Desk;
use lock::Lock;
use readers::Readers;
use writer::Writer;

/// A store in one file.
#[derive(Debug)]
pub struct Sqlite {
    // In the order in which they have to go: the writer is the last to leave the file, so that it tidies up.
    readers: Readers,
    writer: Writer,
    _lock: Lock,
    _temporary: Option<Temporary>,
}

impl Sqlite {
    /// Opens the file, or makes it, and brings its tables up to date. Nobody else may have it open. A file that a copy
    /// has not been brought to its end in is refused.
    pub fn open(path: impl AsRef<Path>, durability: Durability) -> Result<Sqlite, StoreError> {
        Self::open_checked(path.as_ref(), durability, schema::check_finished)
    }

    /// Opens it even if a copy into it has not come to its end.
    #[cfg(feature = "postgres")]
    pub(crate) fn open_unfinished(path: &Path, durability: Durability) -> Result<Sqlite, StoreError> {
        Self::open_checked(path, durability, |_| Ok(()))
    }

    fn open_checked(
        path: &Path,
        durability: Durability,
        check: fn(&Connection) -> Result<(), StoreError>,
    ) -> Result<Sqlite, StoreError> {
        // The same file under another name is the same store.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let lock = Lock::take(&path)?;
        let mut db = Connection::open(&path)?;
        schema::prepare_writer(&db, durability)?;
        schema::migrate(&mut db)?;
        check(&db)?;
        let writer = Writer::start(db)?;
        let readers = Readers::start(&path)?;
        Ok(Sqlite { readers, writer, _lock: lock, _temporary: None })
    }

    /// Opens a store that is deleted when it is dropped: for tests and trials.
    pub fn temporary(durability: Durability) -> Result<Sqlite, StoreError> {
        let temporary = Temporary::make().map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        let store = Sqlite::open(temporary.0.join("store.db"), durability)?;
        Ok(Sqlite { _temporary: Some(temporary), ..store })
    }

    /// Lets the file grow to so many pages of 4 KiB and no further, until it is opened again. What does not fit is
    /// refused like on a full disk.
    pub async fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        let limit =
            move |desk: &Desk| desk.pragma_update(None, "max_page_count", pages).map_err(StoreError::from);
        self.writer.write(limit)?.await
    }

    /// Transactions that were made durable since it was opened: each is one sync of the disk, however many commits
    /// it holds.
    pub fn n_transactions(&self) -> u64 {
        self.writer.n_transactions()
    }

    async fn read<T, F>(&self, question: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
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
    async fn publish(&self, publication: Publication) -> Result<Published, StoreError> {
        let readable = Readable::of(&publication);
        self.writer.write(move |desk| flow::publish(desk, &publication, &readable))?.await
    }

    async fn flows(&self, query: FlowQuery) -> Result<Page<FlowRow>, StoreError> {
        self.read(move |db| flow::flows(db, &query)).await
    }

    async fn version(&self, version: VersionRef) -> Result<Option<VersionRow>, StoreError> {
        self.read(move |db| flow::version(db, version)).await
    }

    async fn versions(&self, flow: FlowId) -> Result<Vec<VersionRow>, StoreError> {
        self.read(move |db| flow::versions(db, flow)).await
    }

    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
        let n = commits.len();
        // Held until all are answered, so that whoever made them takes them apart, and not the one thread that writes.
        let drafts: Vec<Arc<commit::Draft>> =
            commits.into_iter().map(|commit| Arc::new(commit::Draft::of(commit))).collect();
        let works = drafts.iter().cloned().map(|draft| move |desk: &Desk| commit::commit(desk, &draft));
        let tickets = match self.writer.write_all(works) {
            Ok(tickets) => tickets,
            Err(error) => {
                let told = error.to_string();
                let again = || StoreError::Unavailable(told.clone().into());
                return std::iter::repeat_with(|| Err(again())).take(n).collect();
            }
        };
        let mut answers = Vec::with_capacity(n);
        for ticket in tickets {
            answers.push(ticket.await);
        }
        answers
    }

    async fn command(&self, command: CommandId) -> Result<Option<Committed>, StoreError> {
        self.read(move |db| commit::command(db, command)).await
    }

    async fn journal(&self, run: RunId, since: Since, limit: usize) -> Result<Journal, StoreError> {
        self.read(move |db| journal::journal(db, run, since, limit)).await
    }

    async fn run(&self, run: RunRef) -> Result<Option<RunRow>, StoreError> {
        self.read(move |db| run::run(db, &run)).await
    }

    async fn runs(&self, query: RunQuery) -> Result<Page<RunRow>, StoreError> {
        self.read(move |db| run::runs(db, &query)).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Due, StoreError> {
        let question = move |db: &Connection| {
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

    async fn job(&self, job: JobId) -> Result<Option<JobRow>, StoreError> {
        self.read(move |db| job::job(db, job)).await
    }

    async fn jobs(&self, query: JobQuery) -> Result<Page<JobRow>, StoreError> {
        self.read(move |db| job::jobs(db, &query)).await
    }

    async fn attempts(&self, job: JobId, after: u32, limit: usize) -> Result<Vec<Attempt>, StoreError> {
        self.read(move |db| attempt::after(db, job, after, limit)).await
    }

    async fn ready(&self, query: ReadyQuery) -> Result<Vec<JobRow>, StoreError> {
        self.read(move |db| job::ready(db, &query)).await
    }

    async fn ready_by_key(&self, query: KeyQuery) -> Result<KeyRows, StoreError> {
        self.read(move |db| job::ready_by_key(db, &query)).await
    }

    async fn outbox(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.read(move |db| outbox::undelivered(db, now, limit)).await
    }

    async fn outbox_to(&self, to: Party) -> Result<Vec<Message>, StoreError> {
        self.read(move |db| outbox::to(db, &to)).await
    }

    async fn ledger(&self, query: LedgerQuery) -> Result<Vec<LedgerRow>, StoreError> {
        self.read(move |db| ledger::ledger(db, &query)).await
    }

    async fn save(&self, record: Record) -> Result<(), StoreError> {
        self.writer.write(move |desk| record::save(desk, &record))?.await
    }

    async fn records(&self, query: RecordQuery) -> Result<Records, StoreError> {
        self.read(move |db| record::records(db, &query)).await
    }

    async fn retain(&self, before: Timestamp, limit: usize) -> Result<Retained, StoreError> {
        self.writer.write(move |desk| retain::retain(desk, before, limit))?.await
    }
}

fn guard(what: impl FnOnce() -> Subject, expected: u64, found: u64) -> Result<(), StoreError> {
    if expected == found { Ok(()) } else { Err(StoreError::Conflict { what: what(), expected, found }) }
}

/// What time asks for, oldest first.
fn wakes<I: Id>(
    db: &Connection,
    sql: &str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Wake<I>>, StoreError> {
    let mut statement = db.prepare_cached(sql)?;
    let wakes = statement.query_map(params![now.0, bound(limit)], |row| {
        let mut columns = Columns::of(row);
        Ok(Wake { at: columns.time()?, id: columns.id()? })
    })?;
    Ok(wakes.collect::<rusqlite::Result<_>>()?)
}

/// A directory that is deleted with everything in it.
#[derive(Debug)]
pub(crate) struct Temporary(pub(crate) PathBuf);

impl Temporary {
    pub(crate) fn make() -> std::io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        loop {
            let name = format!("windlass-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Temporary(path)),
                // Left behind by a process of the same number.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What cannot be deleted is left to whoever tidies such places.
        drop(fs::remove_dir_all(&self.0));
    }
}

#[cfg(test)]
mod tests;
