//! Settings of queues, and how full they are.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};
use windlass_engine::time::Timestamp;

use super::column::{Columns, json};
use crate::error::StoreError;
use crate::job::JobStatus;
use crate::queue::{QueueDepth, QueueSettings};

const SAVE: &str =
    "INSERT OR REPLACE INTO queues (name, is_paused, limits, updated_at) VALUES (?1, ?2, ?3, ?4)";
const SETTINGS: &str = "SELECT name, is_paused, limits FROM queues";
const OPEN: &str = "SELECT queue, status, count(*), min(CASE WHEN due_at <= ?1 THEN due_at END) \
     FROM jobs WHERE is_open = 1 GROUP BY queue, status";
const DEAD: &str = "SELECT queue, count(*) FROM jobs WHERE is_dead_letter = 1 GROUP BY queue";

pub(super) fn save(db: &Connection, settings: &QueueSettings) -> Result<(), StoreError> {
    let QueueSettings { name, is_paused, limits, updated_at } = settings;
    db.prepare_cached(SAVE)?.execute(params![name, is_paused, json(limits), updated_at.0])?;
    Ok(())
}

/// Costs what is open: whoever shows it does not ask for it at every job.
pub(super) fn depths(db: &Connection, now: Timestamp) -> Result<Vec<QueueDepth>, StoreError> {
    let mut depths: BTreeMap<String, QueueDepth> = BTreeMap::new();
    let mut statement = db.prepare_cached(SETTINGS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut columns = Columns::of(row);
        let depth = depths.entry(columns.value()?).or_default();
        (depth.is_paused, depth.limits) = (columns.value()?, columns.json()?);
    }
    let mut statement = db.prepare_cached(OPEN)?;
    let mut rows = statement.query([now.0])?;
    while let Some(row) = rows.next()? {
        let mut columns = Columns::of(row);
        let depth = depths.entry(columns.value()?).or_default();
        let (status, n): (JobStatus, u64) = (columns.word()?, columns.number()?);
        depth.open.insert(status, n);
        depth.oldest_due_at = [depth.oldest_due_at, columns.time_or_none()?].into_iter().flatten().min();
    }
    let mut statement = db.prepare_cached(DEAD)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut columns = Columns::of(row);
        let depth = depths.entry(columns.value()?).or_default();
        depth.n_dead_letters = columns.number()?;
    }
    Ok(depths.into_iter().map(|(name, depth)| QueueDepth { name, ..depth }).collect())
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, SETTINGS, OPEN, DEAD];
