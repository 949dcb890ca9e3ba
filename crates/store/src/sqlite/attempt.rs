//! Attempts at jobs, one row each. A job keeps only its last attempts, the store keeps all. A job that was never claimed
//! has no row: its first attempt follows from the job, and creating a job writes one row less.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::JobId;
use windlass_engine::job::{Attempt, Job};
use windlass_engine::project::Project;
use windlass_engine::raw_json::RawJson;

use super::column::{SqliteColumns, SqliteId};
use super::readers::ReadConnection;
use crate::column::{Columns, bound, json, stored};
use crate::decode;
use crate::error::StoreError;
use crate::table;

macro_rules! columns {
    () => {
        "SELECT number, fence, status, worker, created_at, started_at, finished_at, result, error, next_retry_at, job \
         FROM attempts WHERE job = ?1"
    };
}

const REMEMBERED: &str = concat!(columns!(), " AND number >= ?2 ORDER BY number");
const AFTER: &str = concat!(columns!(), " AND number > ?2 ORDER BY number LIMIT ?3");
const UNTOUCHED: &str =
    "SELECT created_at FROM jobs WHERE id = ?1 AND project = ?2 AND fence = 0 AND is_open = 1";
const HAS_JOB: &str = "SELECT 1 FROM jobs WHERE id = ?1 AND project = ?2";
const LAST: &str = "SELECT max(number) FROM attempts WHERE job = ?1";
const WRITE: &str = "INSERT OR REPLACE INTO attempts (job, number, fence, status, worker, created_at, started_at, \
     finished_at, result, error, next_retry_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

/// Writes the attempts that may have changed: the last one in the store and those after it.
pub(super) fn write(db: &Connection, job: &Job, exists: bool) -> Result<(), StoreError> {
    if job.is_untouched() {
        return Ok(());
    }
    // A job with one attempt needs no query.
    let last: Option<u32> = if exists && job.attempts.len() > 1 {
        db.prepare_cached(LAST)?.query_row([job.id.key()], |row| row.get(0))?
    } else {
        None
    };
    for attempt in job.attempts.iter().filter(|attempt| last.is_none_or(|last| attempt.number >= last)) {
        let Attempt { number, fence, status, worker, created_at, started_at, .. } = attempt;
        let Attempt { finished_at, result, error, next_retry_at, .. } = attempt;
        let (started_at, finished_at) = (started_at.map(|at| at.0), finished_at.map(|at| at.0));
        let (result, error) = (result.as_ref().map(RawJson::as_str), error.as_ref().map(json));
        let next_retry_at = next_retry_at.map(|at| at.0);
        let (job, fence) = (job.id.key(), stored(*fence));
        let row = params![
            job,
            number,
            fence,
            status.word(),
            worker,
            created_at.0,
            started_at,
            finished_at,
            result,
            error,
            next_retry_at
        ];
        db.prepare_cached(WRITE)?.execute(row)?;
    }
    Ok(())
}

/// The attempts that the job itself keeps.
pub(super) fn remembered(db: &Connection, job: JobId, from: u32) -> rusqlite::Result<Vec<Attempt>> {
    db.prepare_cached(REMEMBERED)?.query_map(params![job.key(), from], read)?.collect()
}

pub(super) fn after(
    db: &ReadConnection,
    project: &Project,
    job: JobId,
    after: u32,
    limit: usize,
) -> Result<Vec<Attempt>, StoreError> {
    let id = params![job.key(), project.as_str()];
    if !db.prepare_cached(HAS_JOB)?.exists(id)? {
        return Ok(Vec::new());
    }
    let rows = db.rows(&table::ATTEMPTS, AFTER, params![job.key(), after, bound(limit)], read)?;
    if !rows.is_empty() || after > 0 || limit == 0 {
        return Ok(rows);
    }
    let created_at = db.prepare_cached(UNTOUCHED)?.query_row(id, |row| SqliteColumns::of(row).time());
    Ok(created_at.optional()?.map(Attempt::first).into_iter().collect())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    decode::attempt(&mut SqliteColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[REMEMBERED, AFTER, UNTOUCHED, HAS_JOB, LAST, WRITE];
