//! Settings, used rates and depths of queues.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::SqliteColumns;
use super::readers::ReadConnection;
use super::{depth, guard, job};
use crate::column::{Columns, bound, json};
use crate::commit::QueueGuard;
use crate::decode;
use crate::error::{StoreError, Subject};
use crate::page::NameRange;
use crate::queue::{Held, QueueDepth, QueueSettings, Spent};
use crate::table;

const SAVE: &str = "INSERT INTO queues (name, is_paused, limits, updated_at, project) \
     VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (project, name) DO UPDATE SET is_paused = excluded.is_paused, limits = excluded.limits, \
     updated_at = excluded.updated_at";
const TURNS: &str = "SELECT turns FROM queues WHERE project = ?2 AND name = ?1";
const TURN: &str = "UPDATE queues SET turns = turns + 1 WHERE project = ?2 AND name = ?1";
const SPENT_OF: &str =
    "SELECT queue, limit_key, full_at FROM queue_rates WHERE project = ?2 AND queue = ?1 ORDER BY limit_key";
const SETTINGS: &str = "SELECT name, is_paused, limits FROM queues WHERE project = ?1 AND name > ?2 \
     ORDER BY name LIMIT ?3";
const SETTINGS_OF: &str =
    "SELECT name, is_paused, limits FROM queues WHERE project = ?1 AND name = ?2 LIMIT ?3";
// The counts of an empty queue are gone with its last job.
const FORGET: &str = "DELETE FROM queues WHERE (project, name) IN (SELECT project, name FROM queues \
     WHERE is_paused = 0 AND limits = '{}' AND updated_at < ?1 AND NOT EXISTS (SELECT 1 FROM queue_depths \
     WHERE queue_depths.project = queues.project AND queue_depths.queue = queues.name) LIMIT ?2)";
const SPEND: &str = "INSERT INTO queue_rates (queue, limit_key, full_at, project) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (project, queue, limit_key) DO UPDATE SET full_at = max(full_at, excluded.full_at)";
const FORGET_SPENT: &str = "DELETE FROM queue_rates WHERE project = ?2 AND (queue, limit_key) IN \
     (SELECT queue, limit_key FROM queue_rates WHERE project = ?2 AND full_at <= ?1 LIMIT 1000)";
const SPENT: &str =
    "SELECT queue, limit_key, full_at FROM queue_rates WHERE project = ?1 ORDER BY queue, limit_key";

pub(super) fn save(db: &Connection, project: &Project, settings: &QueueSettings) -> Result<(), StoreError> {
    let QueueSettings { name, is_paused, limits, updated_at } = settings;
    db.prepare_cached(SAVE)?.execute(params![
        name,
        is_paused,
        json(limits),
        updated_at.0,
        project.as_str()
    ])?;
    Ok(())
}

/// Refuses a commit if another server has granted jobs of the queue since.
pub(super) fn check_turn(db: &Connection, project: &Project, turn: &QueueGuard) -> Result<(), StoreError> {
    guard(|| Subject::Queue(turn.queue.clone()), turn.expected, turns(db, project, &turn.queue)?)
}

pub(super) fn write_turn(db: &Connection, project: &Project, turn: &QueueGuard) -> Result<(), StoreError> {
    db.prepare_cached(TURN)?.execute([turn.queue.as_str(), project.as_str()])?;
    write_spent(db, project, &turn.spent)
}

fn turns(db: &Connection, project: &Project, queue: &str) -> Result<u64, StoreError> {
    let found =
        db.prepare_cached(TURNS)?.query_row([queue, project.as_str()], |row| SqliteColumns::of(row).number());
    Ok(found.optional()?.unwrap_or(0))
}

/// Jobs and rates that count against the limits of a queue. The turns are read first, so that no job of a turn is missing.
pub(super) fn held(db: &ReadConnection, project: &Project, queue: &str) -> Result<Held, StoreError> {
    let turns = turns(&db.connection, project, queue)?;
    let spent = db.rows(&table::QUEUE_RATES, SPENT_OF, [queue, project.as_str()], read_spent)?;
    Ok(Held { turns, jobs: job::held(db, project, queue)?, spent })
}

fn write_spent(db: &Connection, project: &Project, spent: &[Spent]) -> Result<(), StoreError> {
    let mut statement = db.prepare_cached(SPEND)?;
    for Spent { queue, limit_key, full_at } in spent {
        statement.execute(params![queue, limit_key, full_at.0, project.as_str()])?;
    }
    Ok(())
}

fn read_spent(row: &Row<'_>) -> rusqlite::Result<Spent> {
    decode::spent(&mut SqliteColumns::of(row))
}

pub(super) fn spend(
    db: &Connection,
    project: &Project,
    spent: &[Spent],
    now: Timestamp,
) -> Result<(), StoreError> {
    write_spent(db, project, spent)?;
    db.prepare_cached(FORGET_SPENT)?.execute(params![now.0, project.as_str()])?;
    Ok(())
}

pub(super) fn spent(db: &ReadConnection, project: &Project) -> Result<Vec<Spent>, StoreError> {
    db.rows(&table::QUEUE_RATES, SPENT, [project.as_str()], read_spent)
}

/// Deletes queues without settings and jobs, and returns how many.
pub(super) fn forget(db: &Connection, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    Ok(db.prepare_cached(FORGET)?.execute(params![before.0, bound(limit)])?)
}

/// Queues with settings or jobs.
pub(super) fn depths(
    db: &ReadConnection,
    project: &Project,
    names: &NameRange,
    now: Timestamp,
) -> Result<Vec<QueueDepth>, StoreError> {
    let mut depths: BTreeMap<String, QueueDepth> = BTreeMap::new();
    let sql = if names.is_one() { SETTINGS_OF } else { SETTINGS };
    let range = params![project.as_str(), names.bound_name(), bound(names.limit())];
    let settings = db.rows(&table::QUEUES, sql, range, |row| {
        let mut columns = SqliteColumns::of(row);
        Ok(QueueDepth {
            name: columns.value()?,
            is_paused: columns.value()?,
            limits: columns.json()?,
            ..QueueDepth::default()
        })
    })?;
    depths.extend(settings.into_iter().map(|depth| (depth.name.clone(), depth)));
    depth::read(&db.connection, project, names, now, &mut depths)?;
    let named = depths.into_iter().map(|(name, depth)| QueueDepth { name, ..depth });
    // Each table gave as many names as the range may have: the first of both together are complete.
    Ok(named.take(names.limit()).collect())
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[SAVE, SETTINGS, SETTINGS_OF, FORGET, SPEND, FORGET_SPENT, SPENT, TURNS, TURN, SPENT_OF];
