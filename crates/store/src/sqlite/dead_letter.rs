//! Groups of dead letters by cause.

use rusqlite::{Row, params};
use windlass_engine::id::JobId;
use windlass_engine::job::State;
use windlass_engine::project::Project;

use super::column::SqliteColumns;
use super::readers::ReadConnection;
use crate::column::{Columns, bound};
use crate::error::StoreError;
use crate::job::{DeadLetterGroup, GROUPS_MAX};
use crate::table;

// A dead letter does not change until it is replayed, so `updated_at` is the time of its death.
const GROUPS: &str = "SELECT fingerprint, count(*) AS n, min(updated_at), max(updated_at) AS last_at FROM jobs \
     WHERE project = ?3 AND queue = ?1 AND is_dead_letter = 1 AND fingerprint IS NOT NULL \
     GROUP BY fingerprint ORDER BY n DESC, last_at DESC, fingerprint LIMIT ?2";
const LATEST: &str = "SELECT id, state FROM jobs WHERE rowid = (SELECT rowid FROM jobs WHERE project = ?3 AND queue = ?1 \
     AND fingerprint = ?2 AND is_dead_letter = 1 ORDER BY updated_at DESC, id DESC LIMIT 1)";

/// The cost grows with the dead letters of the queue, in an index only, plus one row per group.
pub(super) fn groups(
    db: &ReadConnection,
    project: &Project,
    queue: &str,
) -> Result<Vec<DeadLetterGroup>, StoreError> {
    let project = project.as_str();
    let mut statement = db.prepare_cached(GROUPS)?;
    let counted = statement.query_map(params![queue, bound(GROUPS_MAX), project], |row| {
        let mut columns = SqliteColumns::of(row);
        Ok((columns.value::<String>()?, columns.number()?, columns.time()?, columns.time()?))
    })?;
    let mut latest = db.prepare_cached(LATEST)?;
    let mut groups = Vec::new();
    for group in counted {
        let (fingerprint, n, first_at, last_at) = group?;
        let read = |row: &Row<'_>| {
            let mut columns = SqliteColumns::of(row);
            let latest: JobId = columns.id()?;
            match columns.json::<State>()? {
                State::Failed { reason, .. } => Ok((latest, reason)),
                _ => Err(columns.unreadable(&"a dead letter has not failed")),
            }
        };
        let mut found = latest.query(params![queue, fingerprint, project])?;
        let Some(row) = found.next()? else { continue };
        let Some((latest, reason)) = db.readable(&table::JOBS, row, read(row))? else { continue };
        groups.push(DeadLetterGroup { fingerprint, n, reason, latest, first_at, last_at });
    }
    Ok(groups)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[GROUPS, LATEST];
