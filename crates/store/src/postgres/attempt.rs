//! Attempts, one row each: a job keeps its last attempts only, the store keeps all. The first attempt of a job that was not
//! granted yet has no row, because it would repeat the job's row.

use serde::Deserialize;
use tokio_postgres::Row;
use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::job::Attempt;
use windlass_engine::project::Project;
use windlass_engine::raw_json::RawJson;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, PostgresId, cells, text, unescape, unnest, unreadable};
use super::link::{BoundStatement, Link};
use crate::column::{Columns, bound, json, read_word, stored};
use crate::decode;
use crate::error::StoreError;
use crate::table;

const AFTER: &str = "SELECT number, fence, status, worker, created_at, started_at, finished_at, result, error, \
     next_retry_at FROM attempts WHERE job = $1 AND number > $2 \
     AND (SELECT project FROM jobs WHERE id = $1) = $4 ORDER BY number LIMIT $3";
const UNTOUCHED: &str =
    "SELECT created_at FROM jobs WHERE id = $1 AND project = $2 AND fence = 0 AND is_open";
const WRITE: &str = "INSERT INTO attempts (job, number, fence, status, worker, created_at, started_at, \
     finished_at, result, error, next_retry_at) SELECT * FROM UNNEST($1::uuid[], $2::bigint[], $3::bigint[], \
     $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::bigint[]) \
     ON CONFLICT (job, number) DO UPDATE SET fence = excluded.fence, status = excluded.status, \
     worker = excluded.worker, created_at = excluded.created_at, started_at = excluded.started_at, \
     finished_at = excluded.finished_at, result = excluded.result, error = excluded.error, \
     next_retry_at = excluded.next_retry_at";

/// The query of a job's attempts: none where the job was only created, so that no attempt can
/// be there. Most jobs are read like that, and once more when they are claimed.
macro_rules! if_any {
    ($asked:literal) => {
        concat!(
            "CASE WHEN jobs.rev = 1 AND jobs.fence = 0 AND jobs.is_open THEN NULL ELSE (",
            $asked,
            ") END"
        )
    };
}
pub(super) use if_any;

/// The attempts that a job remembers, as one JSON array.
macro_rules! attempts_json {
    () => {
        crate::postgres::attempt::if_any!(
            "SELECT json_agg(json_build_array(number, fence, status, worker, created_at, started_at, \
             finished_at, result, error, next_retry_at) ORDER BY number)::text FROM attempts \
             WHERE attempts.job = jobs.id AND attempts.number >= jobs.attempts_from"
        )
    };
}
pub(super) use attempts_json;

/// An attempt in the array of [`attempts_json`]; its values stand in this order.
#[derive(Deserialize)]
struct StoredAttempt {
    number: u32,
    fence: i64,
    status: String,
    worker: Option<String>,
    created_at: i64,
    started_at: Option<i64>,
    finished_at: Option<i64>,
    result: Option<String>,
    error: Option<String>,
    next_retry_at: Option<i64>,
}

pub(super) fn write<'c>(rows: &[(JobId, &'c Attempt)]) -> BoundStatement<'c> {
    let cells = unnest!(rows, |(job, attempt)| [
        job.key(),
        i64::from(attempt.number),
        stored(attempt.fence),
        attempt.status.word(),
        attempt.worker.as_deref().map(text),
        attempt.created_at.0,
        attempt.started_at.map(|at| at.0),
        attempt.finished_at.map(|at| at.0),
        attempt.result.as_ref().map(RawJson::as_str),
        attempt.error.as_ref().map(json),
        attempt.next_retry_at.map(|at| at.0),
    ]);
    BoundStatement::new(WRITE, cells)
}

/// The attempts that a job remembers, from [`attempts_json`].
pub(super) fn remembered(attempts: Option<&str>) -> Result<Vec<Attempt>, StoreError> {
    let attempts: Vec<StoredAttempt> =
        attempts.map_or(Ok(Vec::new()), serde_json::from_str).map_err(unreadable)?;
    attempts.into_iter().map(|stored| stored.attempt().map_err(unreadable)).collect()
}

impl StoredAttempt {
    fn attempt(self) -> Result<Attempt, serde_json::Error> {
        Ok(Attempt {
            number: self.number,
            fence: Fence(self.fence.cast_unsigned()),
            status: read_word(&self.status)?,
            worker: self.worker.map(unescape),
            created_at: Timestamp(self.created_at),
            started_at: self.started_at.map(Timestamp),
            finished_at: self.finished_at.map(Timestamp),
            result: self.result.map(|result| serde_json::from_str(&result)).transpose()?,
            error: self.error.map(|error| serde_json::from_str(&error)).transpose()?,
            next_retry_at: self.next_retry_at.map(Timestamp),
        })
    }
}

pub(super) async fn after(
    db: &Link,
    project: &Project,
    job: JobId,
    after: u32,
    limit: usize,
) -> Result<Vec<Attempt>, StoreError> {
    let project = project.as_str();
    let rows = db.ask(AFTER, &cells![job.key(), i64::from(after), bound(limit), project]).await?;
    if !rows.is_empty() || after > 0 || limit == 0 {
        return db.decoded(&table::ATTEMPTS, &rows, read);
    }
    let created_at = db.ask_one(UNTOUCHED, &cells![job.key(), project]).await?;
    let created_at = created_at.map(|row| PostgresColumns::of(&row).time()).transpose()?;
    Ok(created_at.map(Attempt::first).into_iter().collect())
}

fn read(row: &Row) -> Result<Attempt, StoreError> {
    decode::attempt(&mut PostgresColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[AFTER, UNTOUCHED, WRITE];
