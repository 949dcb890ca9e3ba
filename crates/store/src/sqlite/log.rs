//! Logs of attempts.

use rusqlite::{Connection, Row, params};
use windlass_engine::id::RunId;
use windlass_engine::project::Project;

use super::column::{SqliteColumns, SqliteId};
use super::readers::ReadConnection;
use crate::column::{bound, json, stored};
use crate::decode;
use crate::error::StoreError;
use crate::log::{LOGS_MAX, LogRow, LogsOf};
use crate::table;

const WRITE: &str = "INSERT OR IGNORE INTO logs (run, entry, fence, node, at, text, lines) \
     SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND project = ?8)";
const OF_ATTEMPT: &str = "SELECT run, entry, fence, node, at, text, lines FROM logs \
     WHERE run = ?1 AND fence = ?2 \
     AND EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND project = ?4) ORDER BY entry LIMIT ?3";
const AFTER: &str = "SELECT run, entry, fence, node, at, text, lines FROM logs \
     WHERE run = ?1 AND (entry, fence) > (?2, ?3) \
     AND EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND project = ?5) ORDER BY entry, fence LIMIT ?4";

pub(super) fn write(db: &Connection, project: &Project, row: &LogRow) -> Result<(), StoreError> {
    let LogRow { run, entry, fence, node, at, text, lines } = row;
    let (entry, fence, lines) = (stored(*entry), stored(*fence), json(lines));
    let (node, project) = (node.as_str(), project.as_str());
    db.prepare_cached(WRITE)?.execute(params![run.key(), entry, fence, node, at.0, text, lines, project])?;
    Ok(())
}

pub(super) fn logs(
    db: &ReadConnection,
    project: &Project,
    run: RunId,
    of: LogsOf,
) -> Result<Vec<LogRow>, StoreError> {
    let (run, limit, project) = (run.key(), bound(LOGS_MAX), project.as_str());
    match of {
        LogsOf::Attempt(fence) => {
            db.rows(&table::LOGS, OF_ATTEMPT, params![run, stored(fence), limit, project], read)
        }
        LogsOf::After { entry, fence } => {
            let after = params![run, stored(entry), stored(fence), limit, project];
            db.rows(&table::LOGS, AFTER, after, read)
        }
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<LogRow> {
    decode::log(&mut SqliteColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[WRITE, OF_ATTEMPT, AFTER];
