//! Settings of queues, and how full they are.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::time::Timestamp;

use super::column::{Columns, json};
use super::{depth, guard, job};
use crate::commit::Turn;
use crate::error::{StoreError, Subject};
use crate::queue::{Held, QueueDepth, QueueSettings, Spent};

const SAVE: &str = "INSERT INTO queues (name, is_paused, limits, updated_at) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (name) DO UPDATE SET is_paused = excluded.is_paused, limits = excluded.limits, \
     updated_at = excluded.updated_at";
const TURNS: &str = "SELECT turns FROM queues WHERE name = ?1";
const TURN: &str = "UPDATE queues SET turns = turns + 1 WHERE name = ?1";
const SPENT_OF: &str =
    "SELECT queue, limit_key, full_at FROM queue_rates WHERE queue = ?1 ORDER BY limit_key";
const SETTINGS: &str = "SELECT name, is_paused, limits FROM queues";
const SPEND: &str = "INSERT INTO queue_rates (queue, limit_key, full_at) VALUES (?1, ?2, ?3) \
     ON CONFLICT (queue, limit_key) DO UPDATE SET full_at = max(full_at, excluded.full_at)";
const FORGET_SPENT: &str = "DELETE FROM queue_rates WHERE (queue, limit_key) IN \
     (SELECT queue, limit_key FROM queue_rates WHERE full_at <= ?1 LIMIT 1000)";
const SPENT: &str = "SELECT queue, limit_key, full_at FROM queue_rates ORDER BY queue, limit_key";

pub(super) fn save(db: &Connection, settings: &QueueSettings) -> Result<(), StoreError> {
    let QueueSettings { name, is_paused, limits, updated_at } = settings;
    db.prepare_cached(SAVE)?.execute(params![name, is_paused, json(limits), updated_at.0])?;
    Ok(())
}

/// Whether nobody had a turn at the queue since.
pub(super) fn check_turn(db: &Connection, turn: &Turn) -> Result<(), StoreError> {
    guard(|| Subject::Queue(turn.queue.clone()), turn.expected, turns(db, &turn.queue)?)
}

pub(super) fn write_turn(db: &Connection, turn: &Turn) -> Result<(), StoreError> {
    db.prepare_cached(TURN)?.execute([&turn.queue])?;
    write_spent(db, &turn.spent)
}

fn turns(db: &Connection, queue: &str) -> Result<u64, StoreError> {
    let found = db.prepare_cached(TURNS)?.query_row([queue], |row| Columns::of(row).number());
    Ok(found.optional()?.unwrap_or(0))
}

/// What counts against the limits of a queue: its turns first, so that no job of one is missing.
pub(super) fn held(db: &Connection, queue: &str) -> Result<Held, StoreError> {
    let turns = turns(db, queue)?;
    let spent =
        db.prepare_cached(SPENT_OF)?.query_map([queue], read_spent)?.collect::<rusqlite::Result<_>>()?;
    Ok(Held { turns, jobs: job::held(db, queue)?, spent })
}

fn write_spent(db: &Connection, spent: &[Spent]) -> Result<(), StoreError> {
    let mut statement = db.prepare_cached(SPEND)?;
    for Spent { queue, limit_key, full_at } in spent {
        statement.execute(params![queue, limit_key, full_at.0])?;
    }
    Ok(())
}

fn read_spent(row: &Row<'_>) -> rusqlite::Result<Spent> {
    let mut columns = Columns::of(row);
    Ok(Spent { queue: columns.value()?, limit_key: columns.value()?, full_at: columns.time()? })
}

pub(super) fn spend(db: &Connection, spent: &[Spent], now: Timestamp) -> Result<(), StoreError> {
    write_spent(db, spent)?;
    db.prepare_cached(FORGET_SPENT)?.execute([now.0])?;
    Ok(())
}

pub(super) fn spent(db: &Connection) -> Result<Vec<Spent>, StoreError> {
    let mut statement = db.prepare_cached(SPENT)?;
    let rows = statement.query_map([], read_spent)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// All queues that somebody has set something for, or that have something in them.
pub(super) fn depths(db: &Connection, now: Timestamp) -> Result<Vec<QueueDepth>, StoreError> {
    let mut depths: BTreeMap<String, QueueDepth> = BTreeMap::new();
    let mut statement = db.prepare_cached(SETTINGS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut columns = Columns::of(row);
        let depth = depths.entry(columns.value()?).or_default();
        (depth.is_paused, depth.limits) = (columns.value()?, columns.json()?);
    }
    depth::read(db, now, &mut depths)?;
    Ok(depths.into_iter().map(|(name, depth)| QueueDepth { name, ..depth }).collect())
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, SETTINGS, SPEND, FORGET_SPENT, SPENT, TURNS, TURN, SPENT_OF];
