//! DepthChanges of queues, counted as jobs are written. The writer adds up the changes of a transaction in memory and writes one
//! row per queue before COMMIT.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::SqliteColumns;
use crate::column::{Columns, bound};
use crate::error::StoreError;
use crate::job::JobStatus;
use crate::page::NameRange;
use crate::queue::QueueDepth;

const ADD: &str = "INSERT INTO queue_depths (queue, pending, queued, running, suspended, retrying, dead, project) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (project, queue) DO UPDATE SET pending = pending + excluded.pending, \
     queued = queued + excluded.queued, running = running + excluded.running, \
     suspended = suspended + excluded.suspended, retrying = retrying + excluded.retrying, dead = dead + excluded.dead";
const FORGET: &str = "DELETE FROM queue_depths WHERE project = ?2 AND queue = ?1 AND pending = 0 AND queued = 0 AND running = 0 \
     AND suspended = 0 AND retrying = 0 AND dead = 0";
const DEPTHS: &str = "SELECT queue, pending, queued, running, suspended, retrying, dead FROM queue_depths \
     WHERE project = ?1 AND queue > ?2 ORDER BY queue LIMIT ?3";
const DEPTH_OF: &str = "SELECT queue, pending, queued, running, suspended, retrying, dead FROM queue_depths \
     WHERE project = ?1 AND queue = ?2 LIMIT ?3";
const OLDEST_DUE: &str = "SELECT due_at FROM jobs WHERE project = ?2 AND queue = ?1 AND due_at IS NOT NULL ORDER BY due_at LIMIT 1";

/// The counted statuses, in the order of the columns; dead letters come last.
const STATUSES: [JobStatus; 5] =
    [JobStatus::Pending, JobStatus::Queued, JobStatus::Running, JobStatus::Suspended, JobStatus::Retrying];
const DEAD: usize = STATUSES.len();

/// The column in which a job is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DepthColumn(usize);

impl DepthColumn {
    /// The column of a job; `None` if it has ended and is not a dead letter.
    pub(super) fn of(status: JobStatus, is_dead_letter: bool) -> Option<DepthColumn> {
        let open = STATUSES.iter().position(|counted| *counted == status);
        open.or_else(|| is_dead_letter.then_some(DEAD)).map(DepthColumn)
    }
}

/// The changes of the open transaction.
#[derive(Debug, Default)]
pub(super) struct DepthChanges {
    projects: RefCell<HashMap<Project, HashMap<String, [i64; DEAD + 1]>>>,
}

impl DepthChanges {
    /// Counts a job that moves from one column to another.
    pub(super) fn note(
        &self,
        project: &Project,
        queue: &str,
        before: Option<DepthColumn>,
        after: Option<DepthColumn>,
    ) {
        if before == after {
            return;
        }
        let mut projects = self.projects.borrow_mut();
        let changes = projects.entry(project.clone()).or_default();
        if !changes.contains_key(queue) {
            changes.insert(queue.to_owned(), [0; DEAD + 1]);
        }
        let Some(counts) = changes.get_mut(queue) else { return };
        for (place, change) in [(before, -1), (after, 1)] {
            if let Some(DepthColumn(at)) = place {
                counts[at] += change;
            }
        }
    }

    /// Writes the changes and clears them.
    pub(super) fn write(&self, db: &Connection) -> Result<(), StoreError> {
        for (project, changes) in self.projects.borrow_mut().iter_mut() {
            for (queue, counts) in changes.drain().filter(|(_, counts)| *counts != [0; DEAD + 1]) {
                let [pending, queued, running, suspended, retrying, dead] = counts;
                let project = project.as_str();
                let row = params![queue, pending, queued, running, suspended, retrying, dead, project];
                db.prepare_cached(ADD)?.execute(row)?;
                if counts.iter().any(|change| *change < 0) {
                    db.prepare_cached(FORGET)?.execute([queue.as_str(), project])?;
                }
            }
        }
        Ok(())
    }

    /// Clears the changes: the transaction was rolled back.
    pub(super) fn forget(&self) {
        self.projects.borrow_mut().clear();
    }
}

/// Adds the depths to the settings of queues. The cost grows with the number of queues, not of jobs.
pub(super) fn read(
    db: &Connection,
    project: &Project,
    names: &NameRange,
    now: Timestamp,
    depths: &mut BTreeMap<String, QueueDepth>,
) -> Result<(), StoreError> {
    let mut statement = db.prepare_cached(if names.is_one() { DEPTH_OF } else { DEPTHS })?;
    let mut oldest = db.prepare_cached(OLDEST_DUE)?;
    let range = params![project.as_str(), names.bound_name(), bound(names.limit())];
    let mut rows = statement.query(range)?;
    while let Some(row) = rows.next()? {
        let mut columns = SqliteColumns::of(row);
        let queue: String = columns.value()?;
        let due = oldest
            .query_row([queue.as_str(), project.as_str()], |row| SqliteColumns::of(row).time())
            .optional()?;
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
pub(super) const ALL: &[&str] = &[ADD, FORGET, DEPTHS, DEPTH_OF, OLDEST_DUE];
