//! Samples for charts.

use rusqlite::{Connection, Row, params};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{SqliteColumns, SqliteId};
use super::readers::ReadConnection;
use crate::column::bound;
use crate::decode;
use crate::error::StoreError;
use crate::sample::{SampleQuery, SampleRow};
use crate::table;

const SAVE: &str =
    "INSERT OR REPLACE INTO samples (project, scope, at, server, figures) VALUES (?1, ?2, ?3, ?4, ?5)";
const LIST: &str = "SELECT scope, at, server, figures FROM samples \
     WHERE project = ?1 AND scope = ?2 AND at >= ?3 AND at < ?4 ORDER BY at, server";
const FORGET: &str = "DELETE FROM samples WHERE (project, scope, at, server) IN \
     (SELECT project, scope, at, server FROM samples WHERE at < ?1 LIMIT ?2)";

pub(super) fn save(db: &Connection, project: &Project, rows: &[SampleRow]) -> Result<(), StoreError> {
    for SampleRow { scope, at, server, figures } in rows {
        db.prepare_cached(SAVE)?.execute(params![project.as_str(), scope, at.0, server.key(), figures])?;
    }
    Ok(())
}

pub(super) fn samples(
    db: &ReadConnection,
    project: &Project,
    query: &SampleQuery,
) -> Result<Vec<SampleRow>, StoreError> {
    let read = |row: &Row<'_>| decode::sample(&mut SqliteColumns::of(row));
    let SampleQuery { scope, since, until } = query;
    db.rows(&table::SAMPLES, LIST, params![project.as_str(), scope, since.0, until.0], read)
}

/// Deletes samples from before, and returns how many.
pub(super) fn forget(db: &Connection, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    Ok(db.prepare_cached(FORGET)?.execute(params![before.0, bound(limit)])?)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, LIST, FORGET];
