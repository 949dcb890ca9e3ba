//! Dead letters by what went wrong.

use rusqlite::{Connection, Row, params};
use windlass_engine::job::State;

use super::column::{Columns, bound};
use crate::error::StoreError;
use crate::job::{GROUPS_MAX, LetterGroup};

// A dead letter is not written again until it is none any more: its last change is its death.
const GROUPS: &str = "SELECT fingerprint, count(*) AS n, min(updated_at), max(updated_at) AS last_at FROM jobs \
     WHERE queue = ?1 AND is_dead_letter = 1 AND fingerprint IS NOT NULL \
     GROUP BY fingerprint ORDER BY n DESC, last_at DESC, fingerprint LIMIT ?2";
const LATEST: &str = "SELECT id, state FROM jobs WHERE rowid = (SELECT rowid FROM jobs WHERE queue = ?1 \
     AND fingerprint = ?2 AND is_dead_letter = 1 ORDER BY updated_at DESC, id DESC LIMIT 1)";

/// Costs what lies there, of which only an index is read, and one row for each group.
pub(super) fn groups(db: &Connection, queue: &str) -> Result<Vec<LetterGroup>, StoreError> {
    let mut statement = db.prepare_cached(GROUPS)?;
    let counted = statement.query_map(params![queue, bound(GROUPS_MAX)], |row| {
        let mut columns = Columns::of(row);
        Ok((columns.value::<String>()?, columns.number()?, columns.time()?, columns.time()?))
    })?;
    let mut latest = db.prepare_cached(LATEST)?;
    let mut groups = Vec::new();
    for group in counted {
        let (fingerprint, n, first_at, last_at) = group?;
        let read = |row: &Row<'_>| {
            let mut columns = Columns::of(row);
            Ok((columns.id()?, columns.json::<State>()?))
        };
        let (latest, state) = latest.query_row(params![queue, fingerprint], read)?;
        let State::Failed { reason, .. } = state else {
            return Err(StoreError::Corrupt(format!("{latest} is a dead letter and has not failed")));
        };
        groups.push(LetterGroup { fingerprint, n, reason, latest, first_at, last_at });
    }
    Ok(groups)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[GROUPS, LATEST];
