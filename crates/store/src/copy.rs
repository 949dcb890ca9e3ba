//! Copies of a whole store into another one, of the same or another backend.
//!
//! Rows are carried as they are, table by table and a page at a time, so that time is proportional to the number of
//! rows, and memory does not grow with it. The target says from the first row to the last that it is not whole, and no
//! server starts on it; a copy that was cut short is begun anew by copying again. At the end everything is read back
//! and compared with the source.

pub(crate) mod table;
pub(crate) mod value;

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use windlass_engine::recovery;

use crate::durability::Durability;
use crate::error::StoreError;
use crate::postgres::HeldDatabase;
use crate::server::ServerRow;
use crate::store::Store;
use crate::{Postgres, Sqlite};
use table::{TABLES, Table};
use value::{Row, Tally};

/// Rows that are carried at once.
pub(crate) const PAGE_ROWS: usize = 1_000;
/// Bytes after which a page is full: the last row of it may be larger, and no other.
pub(crate) const PAGE_BYTES: usize = 4 << 20;
/// Between two looks at servers that may be dead.
const LOOK: Duration = Duration::from_millis(250);

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// A file of SQLite.
    File(PathBuf),
    /// The address of a database of PostgreSQL.
    Database(String),
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreAddress::File(path) => write!(f, "sqlite:{}", path.display()),
            // Without its secrets.
            StoreAddress::Database(address) => {
                f.write_str(&crate::postgres::shown(address).unwrap_or_else(|_| "postgres".to_owned()))
            }
        }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why nothing was copied, or not everything. The target then is no usable store until a copy into it has
/// come to its end.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("there is no store at {0}: look at its name")]
    Missing(StoreAddress),
    #[error("{0} is both: name two stores")]
    Same(StoreAddress),
    #[error(
        "{place} holds the rest of a copy that was cut short, and cannot be used: copy into it again first"
    )]
    Unfinished { place: StoreAddress },
    #[error("{place} is not empty (its table `{table}` has rows): name a new file or a new database")]
    NotEmpty { place: StoreAddress, table: &'static str },
    #[error("server `{server}` uses {place}: stop it first")]
    InUse { place: StoreAddress, server: String },
    #[error("a server was started on {0} while it was copied: stop it, and copy again")]
    Moved(StoreAddress),
    #[error("cannot use {place}")]
    Store { place: StoreAddress, source: StoreError },
    #[error("cannot copy table `{table}` to {place}")]
    Table { place: StoreAddress, table: &'static str, source: StoreError },
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A server was heard of a moment ago.
    Waiting,
    Copying,
    Comparing,
}

/// How far it is with one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub stage: Stage,
    pub table: &'static str,
    pub n_done: u64,
    /// The total, once rows are compared; unknown before.
    pub n_rows: Option<u64>,
}

/// The result for one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    pub table: &'static str,
    /// Rows in the source and in the target.
    pub n_from: u64,
    pub n_to: u64,
    /// Whether they say the same, to the last column.
    pub is_same: bool,
}

/// The result of a copy.
pub struct Copied {
    pub tables: Vec<Compared>,
    /// The target. It can be served if everything is the same.
    pub store: Arc<dyn Store>,
}

/// A store whose rows are read and written as they are.
#[async_trait]
pub(crate) trait Side: Send + Sync {
    /// The rows after a place, and the next place; nothing after the last.
    async fn page(&self, table: &'static Table, after: Option<Row>) -> Result<CopyPage, StoreError>;
    /// Adds rows, all of them or none.
    async fn put(&self, table: &'static Table, rows: Vec<Row>) -> Result<(), StoreError>;
    /// Whether a copy into it was begun and has not come to its end.
    async fn is_unfinished(&self) -> Result<bool, StoreError>;
    /// Marks the target as incomplete, and deletes its rows.
    async fn begin(&self) -> Result<(), StoreError>;
    /// Adds rows that the backend derives from copied ones.
    async fn derive(&self) -> Result<(), StoreError>;
    /// Says from now on that it is whole.
    async fn finish(&self) -> Result<(), StoreError>;
    /// As the store it is.
    fn store(self: Arc<Self>) -> Arc<dyn Store>;
}

/// Rows in order.
#[derive(Debug, Default)]
pub(crate) struct CopyPage {
    pub(crate) rows: Vec<Row>,
    /// Where the next page begins.
    pub(crate) next: Option<Row>,
}

/// Copies everything from one store to another, which has to be empty. Neither may be in use.
pub async fn copy(
    from: &StoreAddress,
    to: &StoreAddress,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<Copied, CopyError> {
    if is_same(from, to) {
        return Err(CopyError::Same(to.clone()));
    }
    let source = open(from, true).await?;
    let (source, source_held) = (source.side, source.held);
    let of_source = |error| CopyError::Store { place: from.clone(), source: error };
    if source.is_unfinished().await.map_err(of_source)? {
        return Err(CopyError::Unfinished { place: from.clone() });
    }
    let servers = unused(from, &*source.clone().store(), tell).await?;
    let target = open(to, false).await?;
    let (target, target_held) = (target.side, target.held);
    let of_target = |error| CopyError::Store { place: to.clone(), source: error };
    if !target.is_unfinished().await.map_err(of_target)? {
        check_empty(to, &*target).await?;
    }
    target.begin().await.map_err(of_target)?;
    let (copy, mut tables) = (Copy { from, source: &*source, to, target: &*target }, Vec::new());
    for table in TABLES {
        tables.push((table, copy.carry(table, tell).await?));
    }
    target.derive().await.map_err(of_target)?;
    let mut compared = Vec::new();
    for (table, tally) in tables {
        compared.push(copy.compare(table, tally, tell).await?);
    }
    if source.clone().store().servers().await.map_err(of_source)? != servers {
        return Err(CopyError::Moved(from.clone()));
    }
    if compared.iter().all(|table| table.is_same) {
        check_held(from, source_held.as_ref()).await?;
        check_held(to, target_held.as_ref()).await?;
        target.finish().await.map_err(of_target)?;
    }
    Ok(Copied { tables: compared, store: target.store() })
}

/// A store that no server uses, and that none can use as long as this is open.
pub struct StoppedStore {
    pub store: Arc<dyn Store>,
    _held: Option<HeldDatabase>,
}

/// Opens a store that is there and that no server uses.
pub async fn open_stopped(
    place: &StoreAddress,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<StoppedStore, CopyError> {
    let Open { side, held } = open(place, true).await?;
    if side.is_unfinished().await.map_err(|source| CopyError::Store { place: place.clone(), source })? {
        return Err(CopyError::Unfinished { place: place.clone() });
    }
    let store = side.store();
    unused(place, &*store, tell).await?;
    Ok(StoppedStore { store, _held: held })
}

fn is_same(from: &StoreAddress, to: &StoreAddress) -> bool {
    match (from, to) {
        (StoreAddress::File(from), StoreAddress::File(to)) => {
            match (fs::canonicalize(from), fs::canonicalize(to)) {
                (Ok(from), Ok(to)) => from == to,
                (Ok(_) | Err(_), Ok(_) | Err(_)) => from == to,
            }
        }
        (StoreAddress::Database(from), StoreAddress::Database(to)) => from == to,
        (StoreAddress::File(_), StoreAddress::Database(_))
        | (StoreAddress::Database(_), StoreAddress::File(_)) => false,
    }
}

/// An open store, and the lock that keeps servers from it.
struct Open {
    side: Arc<dyn Side>,
    held: Option<HeldDatabase>,
}

async fn open(place: &StoreAddress, is_source: bool) -> Result<Open, CopyError> {
    let unusable = |source| CopyError::Store { place: place.clone(), source };
    match place {
        StoreAddress::File(path) => {
            if is_source && !path.exists() {
                return Err(CopyError::Missing(place.clone()));
            }
            let path = path.clone();
            let opened =
                tokio::task::spawn_blocking(move || Sqlite::open_unfinished(&path, Durability::Strict));
            let opened = opened.await.unwrap_or_else(|error| Err(StoreError::unavailable(error)));
            Ok(Open { side: Arc::new(opened.map_err(unusable)?), held: None })
        }
        StoreAddress::Database(address) => {
            if is_source && !Postgres::is_there(address).await.map_err(unusable)? {
                return Err(CopyError::Missing(place.clone()));
            }
            let store = Postgres::open_unfinished(address, Durability::Strict).await.map_err(unusable)?;
            let held = store.hold().await.map_err(unusable)?;
            Ok(Open { side: Arc::new(store), held: Some(held) })
        }
    }
}

/// Makes sure that no server could start meanwhile.
async fn check_held(place: &StoreAddress, held: Option<&HeldDatabase>) -> Result<(), CopyError> {
    match held {
        Some(held) => held.check().await.map_err(|source| CopyError::Store { place: place.clone(), source }),
        None => Ok(()),
    }
}

/// Makes sure that no server uses the store, and names those that do. An open file is locked. In a database, a
/// server with a recent heartbeat may have been killed: a living one sends another, a dead one is dead soon.
async fn unused(
    place: &StoreAddress,
    store: &dyn Store,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<Vec<ServerRow>, CopyError> {
    let unusable = |source| CopyError::Store { place: place.clone(), source };
    let mut first: Option<Vec<ServerRow>> = None;
    let begun = Instant::now();
    loop {
        let servers = store.servers().await.map_err(unusable)?;
        let Some(now) = store.now().await.map_err(unusable)? else { return Ok(servers) };
        // A moment that is still to come was told by another clock, and says nothing.
        let has_waited = begun.elapsed() >= Duration::from_millis(recovery::DEAD_MS);
        let is_dead = |row: &ServerRow| recovery::is_dead(row.beat_at, now);
        let known = first.get_or_insert_with(|| servers.clone());
        if let Some(row) = servers.iter().find(|row| !is_dead(row) && !known.contains(row)) {
            return Err(CopyError::InUse { place: place.clone(), server: row.name.clone() });
        }
        if has_waited || servers.iter().all(is_dead) {
            return Ok(servers);
        }
        tell(Progress { stage: Stage::Waiting, table: "servers", n_done: 0, n_rows: None });
        tokio::time::sleep(LOOK).await;
    }
}

async fn check_empty(place: &StoreAddress, target: &dyn Side) -> Result<(), CopyError> {
    for table in TABLES {
        let found = target.page(table, None).await;
        let found = found.map_err(|source| CopyError::Store { place: place.clone(), source })?;
        if !found.rows.is_empty() {
            return Err(CopyError::NotEmpty { place: place.clone(), table: table.name });
        }
    }
    Ok(())
}

/// A copy under way.
struct Copy<'a> {
    from: &'a StoreAddress,
    source: &'a dyn Side,
    to: &'a StoreAddress,
    target: &'a dyn Side,
}

impl Copy<'_> {
    /// Copies a table. The next page is read while one is written.
    async fn carry(
        &self,
        table: &'static Table,
        tell: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Tally, CopyError> {
        let reading = |source| CopyError::Table { place: self.from.clone(), table: table.name, source };
        let writing = |source| CopyError::Table { place: self.to.clone(), table: table.name, source };
        let mut tally = Tally::default();
        let mut page = self.source.page(table, None).await.map_err(reading)?;
        while !page.rows.is_empty() {
            page.rows.iter().for_each(|row| tally.add(row));
            let CopyPage { rows, next } = page;
            let ahead = async {
                match next {
                    Some(next) => self.source.page(table, Some(next)).await,
                    None => Ok(CopyPage::default()),
                }
            };
            let (ahead, written) = tokio::join!(ahead, self.target.put(table, rows));
            written.map_err(writing)?;
            page = ahead.map_err(reading)?;
            tell(Progress { stage: Stage::Copying, table: table.name, n_done: tally.n_rows, n_rows: None });
        }
        Ok(tally)
    }

    /// Reads a table back and compares it with the source.
    async fn compare(
        &self,
        table: &'static Table,
        from: Tally,
        tell: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Compared, CopyError> {
        let reading = |source| CopyError::Table { place: self.to.clone(), table: table.name, source };
        let (mut to, mut next) = (Tally::default(), None);
        loop {
            let page = self.target.page(table, next).await.map_err(reading)?;
            page.rows.iter().for_each(|row| to.add(row));
            if !page.rows.is_empty() {
                let (n_done, n_rows) = (to.n_rows, Some(from.n_rows));
                tell(Progress { stage: Stage::Comparing, table: table.name, n_done, n_rows });
            }
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        Ok(Compared { table: table.name, n_from: from.n_rows, n_to: to.n_rows, is_same: from == to })
    }
}

#[cfg(test)]
mod tests;
