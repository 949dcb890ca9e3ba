//! Reads of jobs; `change` writes them, `ready` and `keys` find claimable ones.

macro_rules! columns {
    () => {
        "SELECT id, rev, state, fence, round, memo, replays, call_run, call_node, call_fence, \
         schedule, created_at, updated_at, spec, payload, attempts_from FROM jobs JOIN job_specs ON job_specs.job = jobs.id"
    };
}

mod change;
mod keys;
mod ready;

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::JobId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::attempt;
use super::column::{SqliteColumns, SqliteId};
use super::list::{self, ListConditions, ListSelect, key};
use crate::column::Columns;
use crate::decode;
use crate::error::StoreError;
use crate::job::{JobQuery, JobRow, JobStatus};
use crate::page::{Order, Page};
use crate::run::Wake;

#[cfg(test)]
pub(super) use change::ALL as CHANGES;
pub(super) use change::{JobBefore, JobTexts, check, write};
#[cfg(test)]
pub(super) use keys::ALL as KEYS;
pub(super) use keys::{held, ready_by_key};
#[cfg(test)]
pub(super) use ready::ALL as READY;
pub(super) use ready::{ready, ready_places};

const SOURCE: ListSelect = ListSelect {
    select: columns!(),
    count: "SELECT count(*) FROM jobs",
    created: "created_at",
    changed: "updated_at",
    id: "id",
};
const BY_ID: &str = concat!(columns!(), " WHERE id = ?1 AND project = ?2");
const DUE: &str = "SELECT wake_at, id, project FROM jobs WHERE wake_at <= ?1 ORDER BY wake_at, id LIMIT ?2";

fn read(db: &Connection, row: &Row<'_>) -> rusqlite::Result<JobRow> {
    decode::job(&mut SqliteColumns::of(row), |columns, id| {
        let from = columns.small()?;
        attempt::remembered(db, id, from)
    })
}

pub(super) fn job(db: &Connection, project: &Project, job: JobId) -> Result<Option<JobRow>, StoreError> {
    let id = params![job.key(), project.as_str()];
    Ok(db.prepare_cached(BY_ID)?.query_row(id, |row| read(db, row)).optional()?)
}

pub(super) fn jobs(db: &Connection, project: &Project, query: &JobQuery) -> Result<Page<JobRow>, StoreError> {
    let is_running = query.statuses == [JobStatus::Running] || query.worker.is_some();
    // These have a small index of their own, which does not begin with the project.
    let is_any_dead = query.is_dead_letter == Some(true) || query.fingerprint.is_some();
    let has_index = is_running
        || query.run.is_some()
        || query.schedule.is_some()
        || (is_any_dead && query.queue.is_none());
    let mut conditions =
        if has_index { ListConditions::without_index(project) } else { ListConditions::of(project) };
    let words: Vec<&str> = query.statuses.iter().map(|status| status.word()).collect();
    conditions.one_of("status", &words);
    if query.statuses == [JobStatus::Running] {
        // A running job has a wake-up, the end of its lease: the condition selects the small index of wake-ups.
        conditions.add("wake_at IS NOT NULL", []);
    }
    conditions.equal("queue", query.queue.clone());
    conditions.equal("name", query.name.clone());
    conditions.equal("run", query.run.map(key));
    conditions.equal("schedule", query.schedule.map(key));
    if let Some(fingerprint) = &query.fingerprint {
        // Only dead letters have one; the condition selects their index.
        conditions.add("fingerprint = ? AND is_dead_letter = 1", [fingerprint.clone().into()]);
    }
    if let Some(worker) = &query.worker {
        // The same condition as for running jobs.
        let held = "status = 'running' AND wake_at IS NOT NULL AND state ->> '$.worker' = ?";
        conditions.add(held, [worker.clone().into()]);
    }
    if let Some(is) = query.is_dead_letter {
        // A literal and not a parameter, so that SQLite can use the partial index of dead letters.
        conditions.add(if is { "is_dead_letter = 1" } else { "is_dead_letter = 0" }, []);
    }
    conditions.between("created_at", query.since, query.until);
    let order = query.part.order;
    let read = |row: &Row<'_>| read(db, row);
    list::page(db, &SOURCE, conditions, &query.part, None, &read, &|row: &JobRow| match order {
        Order::Newest | Order::Oldest => (row.job.created_at, row.id()),
        Order::LatestChange => (row.job.updated_at, row.id()),
    })
}

pub(super) fn due(db: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Wake<JobId>>, StoreError> {
    super::wakes(db, DUE, now, limit)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[BY_ID, DUE];
