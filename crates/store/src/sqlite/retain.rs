//! Forgetting what ended long ago.

use rusqlite::{Connection, params};
use windlass_engine::id::{JobId, RunId};
use windlass_engine::time::Timestamp;

use super::column::{Columns, Id, Key, bound};
use super::depth::Place;
use super::desk::Desk;
use super::{outbox, schedule};
use crate::error::StoreError;
use crate::outbox::Party;
use crate::schedule::Started;
use crate::store::Retained;

/// Entries of runs that are deleted at once, the last run of them aside: those who write wait meanwhile.
const ENTRIES_MAX: usize = 20_000;

const OLD_RUNS: &str = "SELECT id FROM runs WHERE ended_at < ?1 ORDER BY ended_at, id LIMIT ?2";
const OLD_JOBS: &str = "SELECT id FROM jobs WHERE is_open = 0 AND is_dead_letter = 0 AND run IS NULL \
     AND updated_at < ?1 AND (key_until IS NULL OR key_until <= ?1) ORDER BY updated_at, id LIMIT ?2";
const OLD_COMMANDS: &str = "DELETE FROM commands WHERE id IN \
     (SELECT id FROM commands WHERE at < ?1 ORDER BY at LIMIT ?2)";
const JOBS_OF_RUN: &str = "SELECT id FROM jobs WHERE run = ?1";
const OPEN_OF_RUN: &str = "SELECT queue, status FROM jobs WHERE run = ?1 AND is_open = 1";
const FORGET_MESSAGES: &str = "DELETE FROM outbox WHERE sender = ?1 AND is_delivered = 1";
// A run is told of once, an account for ever: what accounts said goes by its age. Accounts come after all runs.
const OLD_MESSAGES: &str = "DELETE FROM outbox WHERE (sender, seq, part) IN \
     (SELECT sender, seq, part FROM outbox WHERE sender >= x'01' AND is_delivered = 1 AND at < ?1 LIMIT ?2)";
const FORGET_JOURNAL: &str = "DELETE FROM journal WHERE run = (SELECT no FROM runs WHERE id = ?1)";
const FORGET_SNAPSHOT: &str = "DELETE FROM snapshots WHERE run = ?1";
const FORGET_LOGS: &str = "DELETE FROM logs WHERE run = ?1";
const FORGET_RUN: &str = "DELETE FROM runs WHERE id = ?1";
const FORGET_ATTEMPTS: &str = "DELETE FROM attempts WHERE job = ?1";
const FORGET_SPEC: &str = "DELETE FROM job_specs WHERE job = ?1";
const FORGET_KEY: &str = "DELETE FROM job_keys WHERE job = ?1";
const FORGET_JOB: &str = "DELETE FROM jobs WHERE id = ?1";

pub(super) fn retain(db: &Desk, before: Timestamp, limit: usize) -> Result<Retained, StoreError> {
    let mut retained = Retained::default();
    for run in keys(db, OLD_RUNS, params![before.0, bound(limit)])? {
        if retained.n_commands >= ENTRIES_MAX {
            break;
        }
        let (n_jobs, n_commands) = forget_run(db, run)?;
        retained.n_runs += 1;
        retained.n_jobs += n_jobs;
        retained.n_commands += n_commands;
    }
    for job in keys(db, OLD_JOBS, params![before.0, bound(limit)])? {
        forget_job(db, job)?;
        retained.n_jobs += 1;
    }
    db.prepare_cached(OLD_MESSAGES)?.execute(params![before.0, bound(limit)])?;
    let n_left = limit.saturating_sub(retained.n_commands);
    retained.n_commands += db.prepare_cached(OLD_COMMANDS)?.execute(params![before.0, bound(n_left)])?;
    Ok(retained)
}

fn keys(db: &Connection, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<Key>, StoreError> {
    let mut statement = db.prepare_cached(sql)?;
    let keys = statement.query_map(values, |row| row.get(0))?;
    Ok(keys.collect::<rusqlite::Result<_>>()?)
}

/// Deletes a run with everything that belongs to it, and says how many jobs and commands that were.
fn forget_run(db: &Desk, run: Key) -> Result<(usize, usize), StoreError> {
    let mut open = db.prepare_cached(OPEN_OF_RUN)?;
    let mut rows = open.query([run])?;
    while let Some(row) = rows.next()? {
        let mut columns = Columns::of(row);
        let queue: String = columns.value()?;
        db.depths().note(&queue, Place::of(columns.word()?, false), None);
    }
    let jobs = keys(db, JOBS_OF_RUN, params![run])?;
    for job in &jobs {
        forget_job(db, *job)?;
    }
    let sender = outbox::party(&Party::Run(RunId::from_key(run)));
    db.prepare_cached(FORGET_MESSAGES)?.execute([sender])?;
    // Every entry is what came of one command.
    let n_commands = db.prepare_cached(FORGET_JOURNAL)?.execute([run])?;
    schedule::forget_firing(db, Started::Run(RunId::from_key(run)))?;
    for sql in [FORGET_SNAPSHOT, FORGET_LOGS, FORGET_RUN] {
        db.prepare_cached(sql)?.execute([run])?;
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
