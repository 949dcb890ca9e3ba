//! Claimable jobs of a queue by limit key, and its running jobs. Servers use both to apply limits per key.

use rusqlite::{Connection, OptionalExtension, Statement, params};
use windlass_engine::id::JobId;
use windlass_engine::project::Project;

use super::read;
use super::ready::is_paused;
use crate::column::Columns;
use crate::error::StoreError;
use crate::job::{HeldRow, JobRow, KeyBatch, KeyQuery, KeyRows};
use crate::sqlite::column::SqliteColumns;
use crate::sqlite::readers::ReadConnection;
use crate::table;

// The empty key is not in the index of keys: the second part reads the index of jobs without a key.
const NEXT_PRIORITY: &str = "SELECT max(priority) FROM ( \
     SELECT * FROM (SELECT priority FROM jobs WHERE project = ?3 AND queue = ?1 AND priority < ?2 AND status = 'queued' \
         AND limit_key <> '' ORDER BY priority DESC LIMIT 1) \
     UNION ALL SELECT * FROM (SELECT priority FROM jobs WHERE project = ?3 AND queue = ?1 AND priority < ?2 AND due_at IS NOT NULL \
         AND limit_key = '' ORDER BY priority DESC LIMIT 1))";
const NEXT_KEY: &str = "SELECT limit_key FROM jobs WHERE project = ?4 AND queue = ?1 AND priority = ?2 AND limit_key > ?3 \
     AND limit_key <> '' AND status = 'queued' ORDER BY limit_key LIMIT 1";
const OF_KEY: &str = concat!(
    columns!(),
    " WHERE project = ?5 AND queue = ?1 AND priority = ?2 AND limit_key = ?3 AND limit_key <> '' AND status = 'queued' \
     AND (?4 IS NULL OR name = ?4) ORDER BY due_at, id"
);
const WITHOUT: &str = concat!(
    columns!(),
    " WHERE project = ?4 AND queue = ?1 AND priority = ?2 AND due_at <= ?3 AND limit_key = '' AND status = 'queued' \
     ORDER BY due_at, id"
);
const WITHOUT_OF_SERVICE: &str = concat!(
    columns!(),
    " WHERE project = ?5 AND name = ?4 AND queue = ?1 AND priority = ?2 AND due_at <= ?3 AND limit_key = '' \
     AND status = 'queued' ORDER BY due_at, id"
);
// A running job has a wake-up, the end of its lease: the index of wake-ups is small.
const HELD: &str = "SELECT id, rev, limit_key FROM jobs INDEXED BY jobs_by_wake \
     WHERE wake_at IS NOT NULL AND status = 'running' AND queue = ?1 AND project = ?2";

/// A limit key within a priority.
type PriorityKey = (i32, String);

pub(in crate::sqlite) fn ready_by_key(
    db: &ReadConnection,
    project: &Project,
    query: &KeyQuery,
) -> Result<KeyRows, StoreError> {
    if is_paused(&db.connection, project, &query.queue)? {
        return Ok(KeyRows::default());
    }
    let (found, rest) = turns(&db.connection, project, query)?;
    let n_each = query.limit.checked_div(found.len()).unwrap_or(query.limit).max(1);
    let mut turns = Vec::with_capacity(found.len());
    for (priority, key) in found {
        let (rows, is_all) = of_turn(db, project, query, priority, &key, n_each)?;
        if !rows.is_empty() {
            turns.push(KeyBatch { key, priority, rows, is_all });
        }
    }
    Ok(KeyRows { turns, rest })
}

/// The keys with claimable jobs, at most `limit`, and the priority at which more follow.
fn turns(
    db: &Connection,
    project: &Project,
    query: &KeyQuery,
) -> Result<(Vec<PriorityKey>, Option<i32>), StoreError> {
    let mut found = Vec::new();
    let mut above = i64::MAX;
    loop {
        let above_here = params![query.queue, above, project.as_str()];
        let next = db.prepare_cached(NEXT_PRIORITY)?.query_row(above_here, |row| row.get(0));
        let Some(priority): Option<i32> = next? else { return Ok((found, None)) };
        above = priority.into();
        // Continues after the last key of the previous query and wraps around.
        let ranges = match query.after.as_deref() {
            None => vec![(None, None)],
            Some(after) => vec![(Some(after), None), (None, Some(after))],
        };
        for (from, to) in ranges {
            for key in keys(db, project, query, priority, from, to)? {
                if found.len() >= query.limit {
                    return Ok((found, Some(priority)));
                }
                found.push((priority, key));
            }
        }
    }
}

/// The keys of a priority with claimable jobs, after `from` and up to `to`: at most one more than `limit`.
fn keys(
    db: &Connection,
    project: &Project,
    query: &KeyQuery,
    priority: i32,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    let mut next = db.prepare_cached(NEXT_KEY)?;
    // The empty key comes first.
    let mut key = match from {
        None => Some(String::new()),
        Some(from) => next_key(&mut next, project, query, priority, from)?,
    };
    while let Some(this) = key {
        if to.is_some_and(|to| this.as_str() > to) || found.len() > query.limit {
            break;
        }
        key = next_key(&mut next, project, query, priority, &this)?;
        if !query.except.contains(this.as_str()) && has_any(db, project, query, priority, &this)? {
            found.push(this);
        }
    }
    Ok(found)
}

fn next_key(
    statement: &mut Statement<'_>,
    project: &Project,
    query: &KeyQuery,
    priority: i32,
    after: &str,
) -> rusqlite::Result<Option<String>> {
    let place = params![query.queue, priority, after, project.as_str()];
    statement.query_row(place, |row| row.get(0)).optional()
}

fn has_any(
    db: &Connection,
    project: &Project,
    query: &KeyQuery,
    priority: i32,
    key: &str,
) -> Result<bool, StoreError> {
    if !key.is_empty() && query.service.is_none() && query.taken.is_empty() {
        return Ok(true);
    }
    let mut is_found = false;
    each(db, project, query, priority, key, |_| {
        is_found = true;
        Ok(false)
    })?;
    Ok(is_found)
}

/// The first jobs of a key, and whether there are no more.
fn of_turn(
    db: &ReadConnection,
    project: &Project,
    query: &KeyQuery,
    priority: i32,
    key: &str,
    n: usize,
) -> Result<(Vec<JobRow>, bool), StoreError> {
    let (mut rows, mut is_all) = (Vec::new(), true);
    each(&db.connection, project, query, priority, key, |row| {
        is_all = rows.len() < n;
        if is_all {
            rows.extend(db.readable(&table::JOBS, row, read(&db.connection, row))?);
        }
        Ok(is_all)
    })?;
    Ok((rows, is_all))
}

/// Passes the jobs of a key that are not `taken` to `see`, until it returns `false`.
fn each(
    db: &Connection,
    project: &Project,
    query: &KeyQuery,
    priority: i32,
    key: &str,
    mut see: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<bool>,
) -> Result<(), StoreError> {
    let KeyQuery { queue, service, taken, now, .. } = query;
    let project = project.as_str();
    let sql = match (key, service) {
        ("", None) => WITHOUT,
        ("", Some(_)) => WITHOUT_OF_SERVICE,
        (_, None | Some(_)) => OF_KEY,
    };
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = match (key, service) {
        ("", None) => statement.query(params![queue, priority, now.0, project])?,
        ("", Some(service)) => statement.query(params![queue, priority, now.0, service, project])?,
        (_, service) => statement.query(params![queue, priority, key, service, project])?,
    };
    while let Some(row) = rows.next()? {
        let id: JobId = SqliteColumns::of(row).id()?;
        if !taken.contains(&id) && !see(row)? {
            break;
        }
    }
    Ok(())
}

/// Running jobs of a queue.
pub(in crate::sqlite) fn held(
    db: &ReadConnection,
    project: &Project,
    queue: &str,
) -> Result<Vec<HeldRow>, StoreError> {
    db.rows(&table::JOBS, HELD, [queue, project.as_str()], |row| {
        let mut columns = SqliteColumns::of(row);
        Ok(HeldRow { job: columns.id()?, rev: columns.number()?, limit_key: columns.value()? })
    })
}

#[cfg(test)]
pub(in crate::sqlite) const ALL: &[&str] =
    &[NEXT_PRIORITY, NEXT_KEY, OF_KEY, WITHOUT, WITHOUT_OF_SERVICE, HELD];
