//! Settings of queues, and how full they are.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};
use windlass_engine::time::Timestamp;

use super::column::{Columns, json};
use super::depth;
use crate::error::StoreError;
use crate::queue::{QueueDepth, QueueSettings, Spent};

const SAVE: &str =
    "INSERT OR REPLACE INTO queues (name, is_paused, limits, updated_at) VALUES (?1, ?2, ?3, ?4)";
const SETTINGS: &str = "SELECT name, is_paused, limits FROM queues";
const SPEND: &str = "INSERT INTO queue_rates (queue, limit_key, full_at) VALUES (?1, ?2, ?3) \
     ON CONFLICT (queue, limit_key) DO UPDATE SET full_at = max(full_at, excluded.full_at)";
const FORGET_SPENT: &str = "DELETE FROM queue_rates WHERE full_at <= ?1";
const SPENT: &str = "SELECT queue, limit_key, full_at FROM queue_rates ORDER BY queue, limit_key";

pub(super) fn save(db: &Connection, settings: &QueueSettings) -> Result<(), StoreError> {
    let QueueSettings { name, is_paused, limits, updated_at } = settings;
    db.prepare_cached(SAVE)?.execute(params![name, is_paused, json(limits), updated_at.0])?;
    Ok(())
}

pub(super) fn spend(db: &Connection, spent: &[Spent], now: Timestamp) -> Result<(), StoreError> {
    let mut statement = db.prepare_cached(SPEND)?;
    for Spent { queue, limit_key, full_at } in spent {
        statement.execute(params![queue, limit_key, full_at.0])?;
    }
    db.prepare_cached(FORGET_SPENT)?.execute([now.0])?;
    Ok(())
}

pub(super) fn spent(db: &Connection) -> Result<Vec<Spent>, StoreError> {
    let mut statement = db.prepare_cached(SPENT)?;
    let rows = statement.query_map([], |row| {
        let mut columns = Columns::of(row);
        Ok(Spent { queue: columns.value()?, limit_key: columns.value()?, full_at: columns.time()? })
    })?;
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
pub(super) const ALL: &[&str] = &[SAVE, SETTINGS, SPEND, FORGET_SPENT, SPENT];
