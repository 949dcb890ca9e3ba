//! Logs of attempts.

use rusqlite::{Connection, Row, params};
use windlass_engine::id::RunId;

use super::column::{Columns, Id, bound, json, stored};
use crate::error::StoreError;
use crate::log::{LOGS_MAX, LogRow};

const SAVE: &str = "INSERT OR REPLACE INTO logs (run, fence, at, text, lines) \
     SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM runs WHERE id = ?1)";
const OF_RUN: &str = "SELECT run, fence, at, text, lines FROM logs WHERE run = ?1 ORDER BY fence LIMIT ?2";
const OF_ATTEMPT: &str = "SELECT run, fence, at, text, lines FROM logs WHERE run = ?1 AND fence = ?2";

pub(super) fn save(db: &Connection, row: &LogRow) -> Result<(), StoreError> {
    let LogRow { run, fence, at, text, lines } = row;
    db.prepare_cached(SAVE)?.execute(params![run.key(), stored(*fence), at.0, text, json(lines)])?;
    Ok(())
}

pub(super) fn logs(db: &Connection, run: RunId, fence: Option<u64>) -> Result<Vec<LogRow>, StoreError> {
    let (sql, second) = match fence {
        Some(fence) => (OF_ATTEMPT, stored(fence)),
        None => (OF_RUN, bound(LOGS_MAX)),
    };
    let read = |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        let (run, fence, at) = (columns.id()?, columns.number()?, columns.time()?);
        Ok(LogRow { run, fence, at, text: columns.value()?, lines: columns.json()? })
    };
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map(params![run.key(), second], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, OF_RUN, OF_ATTEMPT];
