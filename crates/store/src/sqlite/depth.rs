//! How full queues are: counted as jobs are written, so that nobody has to count them.
//!
//! The changes of a transaction are added up in memory and written once, at its end: many jobs of one queue cost one
//! row.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::time::Timestamp;

use super::column::Columns;
use crate::error::StoreError;
use crate::job::JobStatus;
use crate::queue::QueueDepth;

const ADD: &str = "INSERT INTO queue_depths (queue, pending, queued, running, suspended, retrying, dead) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (queue) DO UPDATE SET pending = pending + excluded.pending, \
     queued = queued + excluded.queued, running = running + excluded.running, \
     suspended = suspended + excluded.suspended, retrying = retrying + excluded.retrying, dead = dead + excluded.dead";
const FORGET: &str = "DELETE FROM queue_depths WHERE queue = ?1 AND pending = 0 AND queued = 0 AND running = 0 \
     AND suspended = 0 AND retrying = 0 AND dead = 0";
const ALL_DEPTHS: &str =
    "SELECT queue, pending, queued, running, suspended, retrying, dead FROM queue_depths";
const OLDEST_DUE: &str =
    "SELECT due_at FROM jobs WHERE queue = ?1 AND due_at IS NOT NULL ORDER BY due_at LIMIT 1";

/// The statuses that are counted, in the order of the columns; dead letters come after them.
const STATUSES: [JobStatus; 5] =
    [JobStatus::Pending, JobStatus::Queued, JobStatus::Running, JobStatus::Suspended, JobStatus::Retrying];
const DEAD: usize = STATUSES.len();

/// Where a job is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(usize);

impl Place {
    /// The place of a job; `None` if it has ended and is no dead letter.
    pub(super) fn of(status: JobStatus, is_dead_letter: bool) -> Option<Place> {
        let open = STATUSES.iter().position(|counted| *counted == status);
        open.or_else(|| is_dead_letter.then_some(DEAD)).map(Place)
    }
}

/// What the transaction so far has changed.
#[derive(Debug, Default)]
pub(super) struct Depths {
    changes: RefCell<HashMap<String, [i64; DEAD + 1]>>,
}

impl Depths {
    /// A job has gone from one place to another.
    pub(super) fn note(&self, queue: &str, before: Option<Place>, after: Option<Place>) {
        if before == after {
            return;
        }
        let mut changes = self.changes.borrow_mut();
        if !changes.contains_key(queue) {
            changes.insert(queue.to_owned(), [0; DEAD + 1]);
        }
        let Some(counts) = changes.get_mut(queue) else { return };
        for (place, change) in [(before, -1), (after, 1)] {
            if let Some(Place(at)) = place {
                counts[at] += change;
            }
        }
    }

    /// Writes what has changed, and begins anew.
    pub(super) fn write(&self, db: &Connection) -> Result<(), StoreError> {
        for (queue, counts) in self.changes.borrow_mut().drain() {
            let [pending, queued, running, suspended, retrying, dead] = counts;
            if counts == [0; DEAD + 1] {
                continue;
            }
            let row = params![queue, pending, queued, running, suspended, retrying, dead];
            db.prepare_cached(ADD)?.execute(row)?;
            if counts.iter().any(|change| *change < 0) {
                db.prepare_cached(FORGET)?.execute([queue])?;
            }
        }
        Ok(())
    }

    /// The transaction came to nothing.
    pub(super) fn forget(&self) {
        self.changes.borrow_mut().clear();
    }
}

/// Adds how full queues are to what is known of them. Costs what there are of queues, not of jobs.
pub(super) fn read(
    db: &Connection,
    now: Timestamp,
    depths: &mut BTreeMap<String, QueueDepth>,
) -> Result<(), StoreError> {
    let mut statement = db.prepare_cached(ALL_DEPTHS)?;
    let mut oldest = db.prepare_cached(OLDEST_DUE)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut columns = Columns::of(row);
        let queue: String = columns.value()?;
        let due = oldest.query_row([&queue], |row| Columns::of(row).time()).optional()?;
        let depth = depths.entry(queue).or_default();
        depth.oldest_due_at = due.filter(|due| *due <= now);
        for status in STATUSES {
            let n = u64::try_from(columns.value::<i64>()?).unwrap_or(0);
            if n > 0 {
                depth.open.insert(status, n);
            }
        }
        depth.n_dead_letters = u64::try_from(columns.value::<i64>()?).unwrap_or(0);
    }
    Ok(())
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[ADD, FORGET, ALL_DEPTHS, OLDEST_DUE];
