//! Ready jobs of a queue limit key by limit key, and what workers have of it.

use rusqlite::{Connection, OptionalExtension, Statement, params};
use windlass_engine::id::JobId;

use super::read;
use super::ready::is_paused;
use crate::error::StoreError;
use crate::job::{HeldRow, JobRow, KeyQuery, KeyRows, KeyTurn};
use crate::sqlite::column::Columns;

// The empty key is not in the index of keys; it is found where jobs without one are.
const NEXT_PRIORITY: &str = "SELECT max(priority) FROM ( \
     SELECT * FROM (SELECT priority FROM jobs WHERE queue = ?1 AND priority < ?2 AND status = 'queued' \
         AND limit_key <> '' ORDER BY priority DESC LIMIT 1) \
     UNION ALL SELECT * FROM (SELECT priority FROM jobs WHERE queue = ?1 AND priority < ?2 AND due_at IS NOT NULL \
         AND limit_key = '' ORDER BY priority DESC LIMIT 1))";
const NEXT_KEY: &str = "SELECT limit_key FROM jobs WHERE queue = ?1 AND priority = ?2 AND limit_key > ?3 \
     AND limit_key <> '' AND status = 'queued' ORDER BY limit_key LIMIT 1";
const OF_KEY: &str = concat!(
    columns!(),
    " WHERE queue = ?1 AND priority = ?2 AND limit_key = ?3 AND limit_key <> '' AND status = 'queued' \
     AND (?4 IS NULL OR name = ?4) ORDER BY due_at, id"
);
const WITHOUT: &str = concat!(
    columns!(),
    " WHERE queue = ?1 AND priority = ?2 AND due_at <= ?3 AND limit_key = '' AND status = 'queued' \
     ORDER BY due_at, id"
);
const WITHOUT_OF_SERVICE: &str = concat!(
    columns!(),
    " WHERE name = ?4 AND queue = ?1 AND priority = ?2 AND due_at <= ?3 AND limit_key = '' \
     AND status = 'queued' ORDER BY due_at, id"
);
// Whoever has a job has it until some moment: among those that time will change, few are looked through in vain.
const HELD: &str = "SELECT id, rev, limit_key FROM jobs INDEXED BY jobs_by_wake \
     WHERE wake_at IS NOT NULL AND status = 'running' AND queue = ?1";

/// One key of one priority.
type Turn = (i32, String);

pub(in crate::sqlite) fn ready_by_key(db: &Connection, query: &KeyQuery) -> Result<KeyRows, StoreError> {
    if is_paused(db, &query.queue)? {
        return Ok(KeyRows::default());
    }
    let (found, rest) = turns(db, query)?;
    let n_each = query.limit.checked_div(found.len()).unwrap_or(query.limit).max(1);
    let mut turns = Vec::with_capacity(found.len());
    for (priority, key) in found {
        let (rows, is_all) = of_turn(db, query, priority, &key, n_each)?;
        if !rows.is_empty() {
            turns.push(KeyTurn { key, priority, rows, is_all });
        }
    }
    Ok(KeyRows { turns, rest })
}

/// The keys that have something, at most as many as jobs are wanted, and from which priority on there are more.
fn turns(db: &Connection, query: &KeyQuery) -> Result<(Vec<Turn>, Option<i32>), StoreError> {
    let mut found = Vec::new();
    let mut above = i64::MAX;
    loop {
        let next = db.prepare_cached(NEXT_PRIORITY)?.query_row(params![query.queue, above], |row| row.get(0));
        let Some(priority): Option<i32> = next? else { return Ok((found, None)) };
        above = priority.into();
        // From where the last question ended to the last key, and from the first key to there.
        let ranges = match query.after.as_deref() {
            None => vec![(None, None)],
            Some(after) => vec![(Some(after), None), (None, Some(after))],
        };
        for (from, to) in ranges {
            for key in keys(db, query, priority, from, to)? {
                if found.len() >= query.limit {
                    return Ok((found, Some(priority)));
                }
                found.push((priority, key));
            }
        }
    }
}

/// The keys of a priority that have something, after one and up to another: at most one more than are wanted.
fn keys(
    db: &Connection,
    query: &KeyQuery,
    priority: i32,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    let mut next = db.prepare_cached(NEXT_KEY)?;
    // The empty key is the first one.
    let mut key = match from {
        None => Some(String::new()),
        Some(from) => next_key(&mut next, query, priority, from)?,
    };
    while let Some(this) = key {
        if to.is_some_and(|to| this.as_str() > to) || found.len() > query.limit {
            break;
        }
        key = next_key(&mut next, query, priority, &this)?;
        if !query.except.contains(this.as_str()) && has_any(db, query, priority, &this)? {
            found.push(this);
        }
    }
    Ok(found)
}

fn next_key(
    statement: &mut Statement<'_>,
    query: &KeyQuery,
    priority: i32,
    after: &str,
) -> rusqlite::Result<Option<String>> {
    statement.query_row(params![query.queue, priority, after], |row| row.get(0)).optional()
}

fn has_any(db: &Connection, query: &KeyQuery, priority: i32, key: &str) -> Result<bool, StoreError> {
    if !key.is_empty() && query.service.is_none() && query.taken.is_empty() {
        return Ok(true);
    }
    let mut is_found = false;
    each(db, query, priority, key, |_| {
        is_found = true;
        Ok(false)
    })?;
    Ok(is_found)
}

/// The first jobs of a turn, and whether those are all.
fn of_turn(
    db: &Connection,
    query: &KeyQuery,
    priority: i32,
    key: &str,
    n: usize,
) -> Result<(Vec<JobRow>, bool), StoreError> {
    let (mut rows, mut is_all) = (Vec::new(), true);
    each(db, query, priority, key, |row| {
        is_all = rows.len() < n;
        if is_all {
            rows.push(read(db, row)?);
        }
        Ok(is_all)
    })?;
    Ok((rows, is_all))
}

/// Goes through the jobs of a turn that nobody is being given, until told to stop.
fn each(
    db: &Connection,
    query: &KeyQuery,
    priority: i32,
    key: &str,
    mut see: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<bool>,
) -> Result<(), StoreError> {
    let KeyQuery { queue, service, taken, now, .. } = query;
    let sql = match (key, service) {
        ("", None) => WITHOUT,
        ("", Some(_)) => WITHOUT_OF_SERVICE,
        (_, None | Some(_)) => OF_KEY,
    };
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = match (key, service) {
        ("", None) => statement.query(params![queue, priority, now.0])?,
        ("", Some(service)) => statement.query(params![queue, priority, now.0, service])?,
        (_, service) => statement.query(params![queue, priority, key, service])?,
    };
    while let Some(row) = rows.next()? {
        let id: JobId = Columns::of(row).id()?;
        if !taken.contains(&id) && !see(row)? {
            break;
        }
    }
    Ok(())
}

/// Jobs of a queue that workers have.
pub(in crate::sqlite) fn held(db: &Connection, queue: &str) -> Result<Vec<HeldRow>, StoreError> {
    let mut statement = db.prepare_cached(HELD)?;
    let rows = statement.query_map([queue], |row| {
        let mut columns = Columns::of(row);
        Ok(HeldRow { job: columns.id()?, rev: columns.number()?, limit_key: columns.value()? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
pub(in crate::sqlite) const ALL: &[&str] =
    &[NEXT_PRIORITY, NEXT_KEY, OF_KEY, WITHOUT, WITHOUT_OF_SERVICE, HELD];
