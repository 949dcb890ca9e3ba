//! What the writer has on its desk: the connection, and what it knows without asking.
//!
//! Nobody else writes to the file, so that what was written or read last is still so. It is noted only for what a
//! transaction has really written, and all of it is forgotten when a transaction comes to nothing.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::hooks::Wal;
use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::id::{FlowId, JobId, RunId, VersionId};
use windlass_engine::time::Timestamp;

use super::column::{Columns, Id, Key};
use super::depth::Depths;
use super::purse::Purses;
use crate::error::StoreError;
use crate::run::Owner;

/// Runs, and versions, that are known at most, some 100 bytes each; when there are more, it starts over.
const KNOWN_MAX: usize = 16_384;

const HEAD: &str =
    "SELECT no, len, ended_at IS NULL, wake_at, owner_server, owner_epoch, needs FROM runs WHERE id = ?1";
const VERSION: &str = "SELECT 1 FROM versions WHERE id = ?1 AND flow = ?2";
const LAST_JOB: &str = "SELECT max(id) FROM jobs";
const FIRED: &str = "SELECT EXISTS (SELECT 1 FROM firings)";

/// What a change of a run has to know of it: its number, the length that guards it, and where it is in indexes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Head {
    pub(super) no: i64,
    pub(super) len: u64,
    pub(super) is_open: bool,
    pub(super) wake_at: Option<Timestamp>,
    pub(super) owner: Option<Owner>,
    pub(super) needs: Option<i64>,
}

/// What is known is asked for many times in every commit: hashes are to be fast, and still no one else's to foresee.
pub(super) type Hashes = foldhash::fast::RandomState;

#[derive(Debug)]
pub(super) struct Desk {
    db: Connection,
    heads: RefCell<HashMap<RunId, Head, Hashes>>,
    versions: RefCell<HashMap<VersionId, FlowId, Hashes>>,
    /// Whether a schedule has ever fired: without, nothing that ends has to be looked for there.
    has_fired: Cell<Option<bool>>,
    depths: Depths,
    purses: Purses,
    /// No job has an id after this one; ids are made in order of time, so that most new ones have not been seen.
    last_job: Cell<Option<Key>>,
    n_logged: Arc<AtomicU32>,
}

/// It is a connection first of all.
impl Deref for Desk {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.db
    }
}

impl Desk {
    pub(super) fn new(mut db: Connection) -> Result<Self, StoreError> {
        let (heads, versions) = (RefCell::default(), RefCell::default());
        let n_logged = Arc::new(AtomicU32::new(0));
        let count = n_logged.clone();
        db.wal_hook(Some(move |_: &mut Wal, pages| {
            count.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Desk {
            db,
            heads,
            versions,
            has_fired: Cell::new(None),
            depths: Depths::default(),
            purses: Purses::default(),
            last_job: Cell::new(None),
            n_logged,
        })
    }

    /// Pages in the log since it last began anew.
    pub(super) fn n_logged(&self) -> u32 {
        self.n_logged.load(Ordering::Relaxed)
    }

    /// A transaction came to nothing.
    pub(super) fn forget(&self) {
        self.heads.borrow_mut().clear();
        self.versions.borrow_mut().clear();
        self.has_fired.set(None);
        self.depths.forget();
        self.purses.forget();
        self.last_job.set(None);
    }

    /// What this transaction changes about how full queues are.
    pub(super) fn depths(&self) -> &Depths {
        &self.depths
    }

    /// What is known of accounts.
    pub(super) fn purses(&self) -> &Purses {
        &self.purses
    }

    /// How a run stands, if there is one.
    pub(super) fn head(&self, run: RunId) -> Result<Option<Head>, StoreError> {
        if let Some(head) = self.heads.borrow().get(&run) {
            return Ok(Some(*head));
        }
        let found = self.prepare_cached(HEAD)?.query_row([run.key()], |row| {
            let mut columns = Columns::of(row);
            let (no, len, is_open) = (columns.value()?, columns.number()?, columns.value()?);
            let (wake_at, owner) = (columns.time_or_none()?, columns.id_or_none()?);
            let owner = owner.zip(columns.number_or_none()?);
            let owner = owner.map(|(server, epoch)| Owner { server, epoch });
            Ok(Head { no, len, is_open, wake_at, owner, needs: columns.value()? })
        });
        Ok(found.optional()?)
    }

    /// Notes how a run stands from now on. One that has ended is not asked about again soon.
    pub(super) fn note(&self, run: RunId, head: Head) {
        let mut heads = self.heads.borrow_mut();
        if !head.is_open {
            heads.remove(&run);
            return;
        }
        if heads.len() >= KNOWN_MAX {
            heads.clear();
        }
        heads.insert(run, head);
    }

    /// Whether there is such a version of the flow. Versions are never deleted.
    pub(super) fn has_version(&self, version: VersionId, flow: FlowId) -> Result<bool, StoreError> {
        let mut versions = self.versions.borrow_mut();
        if versions.get(&version) == Some(&flow) {
            return Ok(true);
        }
        let exists = self.prepare_cached(VERSION)?.exists(params![version.key(), flow.key()])?;
        if exists {
            if versions.len() >= KNOWN_MAX {
                versions.clear();
            }
            versions.insert(version, flow);
        }
        Ok(exists)
    }

    /// Whether there cannot be such a job: its id comes after all that were ever written.
    pub(super) fn is_new_job(&self, job: JobId) -> Result<bool, StoreError> {
        if self.last_job.get().is_none() {
            let last: Option<Key> = self.prepare_cached(LAST_JOB)?.query_row([], |row| row.get(0))?;
            self.last_job.set(Some(last.unwrap_or_default()));
        }
        Ok(self.last_job.get().is_some_and(|last| job.key() > last))
    }

    /// Notes that there is such a job from now on.
    pub(super) fn note_job(&self, job: JobId) {
        self.last_job.set(self.last_job.get().map(|last| last.max(job.key())));
    }

    /// Whether a schedule has ever fired.
    pub(super) fn has_fired(&self) -> Result<bool, StoreError> {
        if let Some(has_fired) = self.has_fired.get() {
            return Ok(has_fired);
        }
        let has_fired = self.prepare_cached(FIRED)?.query_row([], |row| row.get(0))?;
        self.has_fired.set(Some(has_fired));
        Ok(has_fired)
    }

    /// A schedule has fired.
    pub(super) fn note_firing(&self) {
        self.has_fired.set(Some(true));
    }
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[HEAD, VERSION, LAST_JOB, FIRED];
