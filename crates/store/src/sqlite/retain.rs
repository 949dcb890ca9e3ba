//! Retention: deletes runs, jobs, commands and messages that ended long ago.

use rusqlite::{Connection, params};
use windlass_engine::id::{JobId, RunId};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{Key, SqliteColumns, SqliteId};
use super::depth::DepthColumn;
use super::writer_cache::WriterCache;
use super::{blob, outbox, schedule};
use crate::column::{Columns, bound};
use crate::error::StoreError;
use crate::outbox::Party;
use crate::schedule::Started;
use crate::store::Retained;

/// Journal entries that one call deletes, apart from those of its last run: other writes wait meanwhile.
const ENTRIES_MAX: usize = 20_000;

// A run stays until its messages are delivered: a child that is yet to be created refers to its parameters.
const OLD_RUNS: &str = "SELECT id, project FROM runs WHERE ended_at < ?1 AND NOT EXISTS (SELECT 1 FROM outbox \
     WHERE outbox.project = runs.project AND outbox.sender = CAST(x'00' || runs.id AS BLOB) AND is_delivered = 0) \
     ORDER BY ended_at, id LIMIT ?2";
const OLD_JOBS: &str = "SELECT id FROM jobs WHERE is_open = 0 AND is_dead_letter = 0 AND run IS NULL \
     AND updated_at < ?1 AND (key_until IS NULL OR key_until <= ?1) ORDER BY updated_at, id LIMIT ?2";
const OLD_COMMANDS: &str = "DELETE FROM commands WHERE id IN \
     (SELECT id FROM commands WHERE at < ?1 ORDER BY at LIMIT ?2)";
const JOBS_OF_RUN: &str = "SELECT id FROM jobs WHERE run = ?1";
const OPEN_OF_RUN: &str = "SELECT queue, status FROM jobs WHERE run = ?1 AND is_open = 1";
const FORGET_MESSAGES: &str = "DELETE FROM outbox WHERE project = ?2 AND sender = ?1";
// Messages of a run are deleted with the run, messages of accounts by age. Accounts sort after all runs.
const OLD_MESSAGES: &str = "DELETE FROM outbox WHERE (project, sender, seq, part) IN \
     (SELECT project, sender, seq, part FROM outbox WHERE sender >= x'01' AND is_delivered = 1 AND at < ?1 LIMIT ?2)";
const FORGET_JOURNAL: &str = "DELETE FROM journal WHERE run = (SELECT no FROM runs WHERE id = ?1)";
const FORGET_SNAPSHOT: &str = "DELETE FROM snapshots WHERE run = ?1";
const FORGET_LOGS: &str = "DELETE FROM logs WHERE run = ?1";
const FORGET_RUN: &str = "DELETE FROM runs WHERE id = ?1";
const FORGET_ATTEMPTS: &str = "DELETE FROM attempts WHERE job = ?1";
const FORGET_SPEC: &str = "DELETE FROM job_specs WHERE job = ?1";
const FORGET_KEY: &str = "DELETE FROM job_keys WHERE job = ?1";
const FORGET_JOB: &str = "DELETE FROM jobs WHERE id = ?1";

pub(super) fn retain(cache: &WriterCache, before: Timestamp, limit: usize) -> Result<Retained, StoreError> {
    let mut retained = Retained::default();
    for (run, project) in old_runs(cache.db(), before, limit)? {
        if retained.n_commands >= ENTRIES_MAX {
            break;
        }
        let (n_jobs, n_commands) = forget_run(cache, &project, run)?;
        retained.n_runs += 1;
        retained.n_jobs += n_jobs;
        retained.n_commands += n_commands;
    }
    for job in keys(cache.db(), OLD_JOBS, params![before.0, bound(limit)])? {
        forget_job(cache.db(), job)?;
        retained.n_jobs += 1;
    }
    cache.db().prepare_cached(OLD_MESSAGES)?.execute(params![before.0, bound(limit)])?;
    let n_left = limit.saturating_sub(retained.n_commands);
    retained.n_commands +=
        cache.db().prepare_cached(OLD_COMMANDS)?.execute(params![before.0, bound(n_left)])?;
    Ok(retained)
}

fn old_runs(db: &Connection, before: Timestamp, limit: usize) -> Result<Vec<(Key, Project)>, StoreError> {
    let mut statement = db.prepare_cached(OLD_RUNS)?;
    let runs = statement.query_map(params![before.0, bound(limit)], |row| {
        let mut columns = SqliteColumns::of(row);
        Ok((columns.value()?, columns.project()?))
    })?;
    Ok(runs.collect::<rusqlite::Result<_>>()?)
}

fn keys(db: &Connection, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<Key>, StoreError> {
    let mut statement = db.prepare_cached(sql)?;
    let keys = statement.query_map(values, |row| row.get(0))?;
    Ok(keys.collect::<rusqlite::Result<_>>()?)
}

/// Deletes a run with all its rows; returns the numbers of its jobs and commands.
fn forget_run(cache: &WriterCache, project: &Project, run: Key) -> Result<(usize, usize), StoreError> {
    let mut open = cache.db().prepare_cached(OPEN_OF_RUN)?;
    let mut rows = open.query([run])?;
    while let Some(row) = rows.next()? {
        let mut columns = SqliteColumns::of(row);
        let queue: String = columns.value()?;
        cache.depths().note(project, &queue, DepthColumn::of(columns.word()?, false), None);
    }
    let jobs = keys(cache.db(), JOBS_OF_RUN, params![run])?;
    for job in &jobs {
        forget_job(cache.db(), *job)?;
    }
    let sender = outbox::party(&Party::Run(RunId::from_key(run)));
    cache.db().prepare_cached(FORGET_MESSAGES)?.execute(params![sender, project.as_str()])?;
    blob::forget(cache.db(), project, run)?;
    // Every entry is one command.
    let n_commands = cache.db().prepare_cached(FORGET_JOURNAL)?.execute([run])?;
    schedule::forget_firing(cache.db(), Started::Run(RunId::from_key(run)))?;
    for sql in [FORGET_SNAPSHOT, FORGET_LOGS, FORGET_RUN] {
        cache.db().prepare_cached(sql)?.execute([run])?;
    }
    Ok((jobs.len(), n_commands))
}

fn forget_job(db: &Connection, job: Key) -> Result<(), StoreError> {
    schedule::forget_firing(db, Started::Job(JobId::from_key(job)))?;
    for sql in [FORGET_ATTEMPTS, FORGET_SPEC, FORGET_KEY, FORGET_JOB] {
        db.prepare_cached(sql)?.execute([job])?;
    }
    Ok(())
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[
    OLD_RUNS,
    OLD_JOBS,
    OLD_COMMANDS,
    JOBS_OF_RUN,
    OPEN_OF_RUN,
    FORGET_MESSAGES,
    OLD_MESSAGES,
    FORGET_JOURNAL,
    FORGET_SNAPSHOT,
    FORGET_LOGS,
    FORGET_RUN,
    FORGET_ATTEMPTS,
    FORGET_SPEC,
    FORGET_KEY,
    FORGET_JOB,
];
