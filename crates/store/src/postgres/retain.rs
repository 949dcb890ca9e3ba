//! Deletion of rows that ended long ago. Several servers may do so at once: each takes rows that no other has.

use tokio_postgres::Row;
use uuid::Uuid;
use windlass_engine::id::RunId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::blob;
use super::column::{PostgresColumns, cells, unnest};
use super::depth::{DepthKey, Depths};
use super::link::Link;
use super::outbox;
use crate::column::{Columns, bound};
use crate::error::StoreError;
use crate::outbox::Party;
use crate::store::Retained;

// Not more than so many entries at once, the last run of them aside: no statement may take for ever. A run stays until its
// messages are delivered: a child that is yet to be created refers to its parameters.
const OLD_RUNS: &str = "SELECT project, id FROM (SELECT project, id, ended_at, \
     sum(len) OVER (ORDER BY ended_at, id ROWS UNBOUNDED PRECEDING) - len AS n_before FROM \
     (SELECT project, id, ended_at, len FROM runs WHERE ended_at < $1 AND NOT EXISTS (SELECT 1 FROM outbox \
     WHERE outbox.project = runs.project AND outbox.sender = '\\x00'::bytea || uuid_send(runs.id) AND NOT is_delivered) \
     ORDER BY ended_at, id LIMIT $2 FOR UPDATE SKIP LOCKED) \
     AS old) AS counted WHERE n_before < 20000 ORDER BY ended_at, id";
const OLD_JOBS: &str = "SELECT id FROM jobs WHERE NOT is_open AND NOT is_dead_letter AND run IS NULL \
     AND updated_at < $1 AND (key_until IS NULL OR key_until <= $1) ORDER BY updated_at, id LIMIT $2 \
     FOR UPDATE SKIP LOCKED";
const OLD_COMMANDS: &str = "DELETE FROM commands WHERE id IN \
     (SELECT id FROM commands WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED)";
const JOBS_OF_RUNS: &str =
    "SELECT id, project, queue, status, is_open FROM jobs WHERE run = ANY($1) ORDER BY id FOR UPDATE";
const FORGET_MESSAGES: &str = "DELETE FROM outbox USING UNNEST($1::text[], $2::bytea[]) \
     AS gone (project, sender) WHERE outbox.project = gone.project AND outbox.sender = gone.sender";
// A run sends one last message, an account sends for ever: messages of accounts go by age. Accounts come after all runs.
const OLD_MESSAGES: &str = "DELETE FROM outbox WHERE (project, sender, seq, part) IN \
     (SELECT project, sender, seq, part FROM outbox WHERE sender >= '\\x01'::bytea AND is_delivered AND at < $1 LIMIT $2 \
     FOR UPDATE SKIP LOCKED)";
const FORGET_JOURNALS: &str = "DELETE FROM journal WHERE run = ANY($1)";
const FORGET_FIRINGS_OF_RUNS: &str = "DELETE FROM firings WHERE started = ANY($1) AND is_run";
const FORGET_SNAPSHOTS: &str = "DELETE FROM snapshots WHERE run = ANY($1)";
const FORGET_LOGS: &str = "DELETE FROM logs WHERE run = ANY($1)";
const FORGET_RUNS: &str = "DELETE FROM runs WHERE id = ANY($1)";
const FORGET_FIRINGS_OF_JOBS: &str = "DELETE FROM firings WHERE started = ANY($1) AND NOT is_run";
const FORGET_ATTEMPTS: &str = "DELETE FROM attempts WHERE job = ANY($1)";
const FORGET_SPECS: &str = "DELETE FROM job_specs WHERE job = ANY($1)";
const FORGET_KEYS: &str = "DELETE FROM job_keys WHERE job = ANY($1)";
const FORGET_JOBS: &str = "DELETE FROM jobs WHERE id = ANY($1)";

/// Deletes, in a transaction of its own.
pub(super) async fn retain(
    db: &Link,
    shard: i64,
    before: Timestamp,
    limit: usize,
) -> Result<Retained, StoreError> {
    let old = old_runs(db, before, limit).await?;
    let runs: Vec<Uuid> = old.iter().map(|(_, run)| *run).collect();
    let (mut retained, mut depths) =
        (Retained { n_runs: runs.len(), ..Retained::default() }, Depths::default());
    if !runs.is_empty() {
        let mut jobs = Vec::new();
        for row in &db.ask(JOBS_OF_RUNS, &cells![&runs]).await? {
            let mut columns = PostgresColumns::of(row);
            let (id, project): (Uuid, _) = (columns.value()?, columns.project()?);
            let (queue, status) = (columns.text()?, columns.word()?);
            if columns.value()? {
                depths.note(&project, &queue, DepthKey::of(status, false), None);
            }
            jobs.push(id);
        }
        retained.n_jobs += forget_jobs(db, jobs).await?;
        let senders =
            unnest!(old, |(project, run)| [project.as_str(), outbox::party(&Party::Run(RunId::new(*run))),]);
        db.execute(FORGET_MESSAGES, &senders).await?;
        blob::forget(db, &runs).await?;
        // Every entry is the result of one command.
        retained.n_commands = count(db.execute(FORGET_JOURNALS, &cells![&runs]).await?);
        for sql in [FORGET_FIRINGS_OF_RUNS, FORGET_SNAPSHOTS, FORGET_LOGS, FORGET_RUNS] {
            db.execute(sql, &cells![&runs]).await?;
        }
    }
    let jobs = keys(db, OLD_JOBS, before, limit).await?;
    retained.n_jobs += forget_jobs(db, jobs).await?;
    db.execute(OLD_MESSAGES, &cells![before.0, bound(limit)]).await?;
    let n_left = limit.saturating_sub(retained.n_commands);
    retained.n_commands += count(db.execute(OLD_COMMANDS, &cells![before.0, bound(n_left)]).await?);
    if let Some(ask) = depths.write(shard) {
        db.execute(ask.sql, &ask.cells).await?;
    }
    Ok(retained)
}

async fn old_runs(db: &Link, before: Timestamp, limit: usize) -> Result<Vec<(Project, Uuid)>, StoreError> {
    let read = |row: &Row| {
        let mut columns = PostgresColumns::of(row);
        Ok((columns.project()?, columns.value()?))
    };
    db.ask(OLD_RUNS, &cells![before.0, bound(limit)]).await?.iter().map(read).collect()
}

async fn keys(
    db: &Link,
    sql: &'static str,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<Uuid>, StoreError> {
    let rows = db.ask(sql, &cells![before.0, bound(limit)]).await?;
    rows.iter().map(|row| PostgresColumns::of(row).value()).collect()
}

async fn forget_jobs(db: &Link, jobs: Vec<Uuid>) -> Result<usize, StoreError> {
    if !jobs.is_empty() {
        for sql in [FORGET_FIRINGS_OF_JOBS, FORGET_ATTEMPTS, FORGET_SPECS, FORGET_KEYS, FORGET_JOBS] {
            db.execute(sql, &cells![&jobs]).await?;
        }
    }
    Ok(jobs.len())
}

fn count(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[
    OLD_RUNS,
    OLD_JOBS,
    OLD_COMMANDS,
    JOBS_OF_RUNS,
    FORGET_MESSAGES,
    OLD_MESSAGES,
    FORGET_JOURNALS,
    FORGET_FIRINGS_OF_RUNS,
    FORGET_SNAPSHOTS,
    FORGET_LOGS,
    FORGET_RUNS,
    FORGET_FIRINGS_OF_JOBS,
    FORGET_ATTEMPTS,
    FORGET_SPECS,
    FORGET_KEYS,
    FORGET_JOBS,
];
