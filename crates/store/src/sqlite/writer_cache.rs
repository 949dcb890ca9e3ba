//! Cache of the writer: its connection, and rows that it has read or written. The writer is the only one that writes to the
//! file, so cached rows stay valid. It caches only rows that a transaction wrote, and clears the cache on rollback.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::hooks::Wal;
use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::counter::Seq;
use windlass_engine::id::{FlowId, JobId, RunId, VersionId};
use windlass_engine::money::Amount;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::account_batch::AccountBatch;
use super::column::{Key, SqliteColumns, SqliteId};
use super::depth::DepthChanges;
use crate::column::Columns;
use crate::error::StoreError;
use crate::run::Owner;

/// Cached runs, and cached versions, at most; about 100 bytes each. A full cache is cleared.
const CACHE_ENTRIES_MAX: usize = 16_384;

const HEAD: &str = "SELECT no, len, ended_at IS NULL, wake_at, owner_server, owner_epoch, needs FROM runs WHERE id = ?1 AND project = ?2";
const VERSION: &str = "SELECT 1 FROM versions WHERE id = ?1 AND flow = ?2 AND project = ?3";
const LAST_JOB: &str = "SELECT max(id) FROM jobs";
const FIRED: &str = "SELECT EXISTS (SELECT 1 FROM firings)";

/// The columns of a run that a change needs: its row number, the length that guards it, and indexed columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RunHead {
    pub(super) no: i64,
    pub(super) len: Seq,
    pub(super) is_open: bool,
    pub(super) wake_at: Option<Timestamp>,
    pub(super) owner: Option<Owner>,
    pub(super) needs: Option<Amount>,
}

/// Every commit looks up several keys: the hash is fast, and seeded so that clients cannot cause collisions.
pub(super) type HashState = foldhash::fast::RandomState;

#[derive(Debug)]
pub(super) struct WriterCache {
    db: Connection,
    run_heads: RefCell<HashMap<(Project, RunId), RunHead, HashState>>,
    versions: RefCell<HashMap<(Project, VersionId), FlowId, HashState>>,
    /// Whether a schedule has ever fired: if not, an ending run or job needs no lookup of its firing.
    has_fired: Cell<Option<bool>>,
    depths: DepthChanges,
    accounts: AccountBatch,
    /// The largest job id. Ids are ordered by time, so that most new jobs have a larger one and need no lookup.
    last_job: Cell<Option<Key>>,
    n_logged: Arc<AtomicU32>,
}

impl WriterCache {
    pub(super) fn new(mut db: Connection) -> Result<Self, StoreError> {
        let (run_heads, versions) = (RefCell::default(), RefCell::default());
        let n_logged = Arc::new(AtomicU32::new(0));
        let count = n_logged.clone();
        db.wal_hook(Some(move |_: &mut Wal, pages| {
            count.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(WriterCache {
            db,
            run_heads,
            versions,
            has_fired: Cell::new(None),
            depths: DepthChanges::default(),
            accounts: AccountBatch::default(),
            last_job: Cell::new(None),
            n_logged,
        })
    }

    pub(super) fn db(&self) -> &Connection {
        &self.db
    }

    /// Pages in the write-ahead log since it was last restarted.
    pub(super) fn n_logged(&self) -> u32 {
        self.n_logged.load(Ordering::Relaxed)
    }

    /// Clears the cache: a transaction was rolled back.
    pub(super) fn forget(&self) {
        self.run_heads.borrow_mut().clear();
        self.versions.borrow_mut().clear();
        self.has_fired.set(None);
        self.depths.forget();
        self.accounts.clear();
        self.last_job.set(None);
    }

    /// The depths of queues that this transaction changes.
    pub(super) fn depths(&self) -> &DepthChanges {
        &self.depths
    }

    /// The accounts that this transaction has read or moved.
    pub(super) fn accounts(&self) -> &AccountBatch {
        &self.accounts
    }

    /// The cached or stored columns of a run, if it exists.
    pub(super) fn head(&self, project: &Project, run: RunId) -> Result<Option<RunHead>, StoreError> {
        if let Some(head) = self.run_heads.borrow().get(&(project.clone(), run)) {
            return Ok(Some(*head));
        }
        let found = self.db.prepare_cached(HEAD)?.query_row(params![run.key(), project.as_str()], |row| {
            let mut columns = SqliteColumns::of(row);
            let (no, len, is_open) = (columns.value()?, columns.number()?, columns.value()?);
            let (wake_at, owner) = (columns.time_or_none()?, columns.id_or_none()?);
            let owner = owner.zip(columns.number_or_none()?);
            let owner = owner.map(|(server, epoch)| Owner { server, epoch });
            Ok(RunHead { no, len, is_open, wake_at, owner, needs: columns.integer_or_none()?.map(Amount) })
        });
        Ok(found.optional()?)
    }

    /// Caches a run after a write, or drops it if it has ended.
    pub(super) fn note(&self, project: &Project, run: RunId, head: RunHead) {
        let mut run_heads = self.run_heads.borrow_mut();
        if !head.is_open {
            run_heads.remove(&(project.clone(), run));
            return;
        }
        if run_heads.len() >= CACHE_ENTRIES_MAX {
            run_heads.clear();
        }
        run_heads.insert((project.clone(), run), head);
    }

    /// Whether the flow has this version. Versions are never deleted.
    pub(super) fn has_version(
        &self,
        project: &Project,
        version: VersionId,
        flow: FlowId,
    ) -> Result<bool, StoreError> {
        let key = (project.clone(), version);
        let mut versions = self.versions.borrow_mut();
        if versions.get(&key) == Some(&flow) {
            return Ok(true);
        }
        let exists =
            self.db.prepare_cached(VERSION)?.exists(params![version.key(), flow.key(), project.as_str()])?;
        if exists {
            if versions.len() >= CACHE_ENTRIES_MAX {
                versions.clear();
            }
            versions.insert(key, flow);
        }
        Ok(exists)
    }

    /// Whether the id is larger than that of every stored job.
    pub(super) fn is_new_job(&self, job: JobId) -> Result<bool, StoreError> {
        if self.last_job.get().is_none() {
            let last: Option<Key> = self.db.prepare_cached(LAST_JOB)?.query_row([], |row| row.get(0))?;
            self.last_job.set(Some(last.unwrap_or_default()));
        }
        Ok(self.last_job.get().is_some_and(|last| job.key() > last))
    }

    /// Remembers a created job.
    pub(super) fn note_job(&self, job: JobId) {
        self.last_job.set(self.last_job.get().map(|last| last.max(job.key())));
    }

    /// Whether a schedule has ever fired.
    pub(super) fn has_fired(&self) -> Result<bool, StoreError> {
        if let Some(has_fired) = self.has_fired.get() {
            return Ok(has_fired);
        }
        let has_fired = self.db.prepare_cached(FIRED)?.query_row([], |row| row.get(0))?;
        self.has_fired.set(Some(has_fired));
        Ok(has_fired)
    }

    /// Remembers that a schedule has fired.
    pub(super) fn note_firing(&self) {
        self.has_fired.set(Some(true));
    }
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[HEAD, VERSION, LAST_JOB, FIRED];
