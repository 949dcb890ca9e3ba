//! Reads of jobs; `change` writes them, `ready` and `keys` find claimable ones.

macro_rules! columns {
    () => {
        "SELECT id, rev, state, fence, round, memo, replays, call_run, call_node, call_fence, \
         schedule, created_at, updated_at, spec, payload, attempts_from FROM jobs JOIN job_specs ON job_specs.job = jobs.id"
    };
}

mod change;
mod keys;
mod outline;
mod ready;

use rusqlite::{Connection, Row, params};
use windlass_engine::id::JobId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::attempt;
use super::column::{SqliteColumns, SqliteId};
use super::list::{self, ListConditions, ListSelect, key};
use super::readers::ReadConnection;
use crate::column::Columns;
use crate::decode;
use crate::error::StoreError;
use crate::job::{JobIndex, JobQuery, JobRow};
use crate::page::{Order, Page};
use crate::run::Wake;
use crate::table;

#[cfg(test)]
pub(super) use change::ALL as CHANGES;
pub(super) use change::{JobBefore, JobTexts, check, write};
#[cfg(test)]
pub(super) use keys::ALL as KEYS;
pub(super) use keys::{held, ready_by_key};
#[cfg(test)]
pub(super) use outline::ALL as OUTLINES;
pub(super) use outline::job_outlines;
#[cfg(test)]
pub(super) use ready::ALL as READY;
pub(super) use ready::{ready, ready_cursors};

const SOURCE: ListSelect = ListSelect {
    table: table::JOBS,
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

pub(super) fn job(db: &ReadConnection, project: &Project, job: JobId) -> Result<Option<JobRow>, StoreError> {
    db.one(&table::JOBS, BY_ID, params![job.key(), project.as_str()], |row| read(&db.connection, row))
}

pub(super) fn jobs(
    db: &ReadConnection,
    project: &Project,
    query: &JobQuery,
) -> Result<Page<JobRow>, StoreError> {
    let matches = |row: &JobRow| row.matches(query);
    let filter = query.is_examined().then_some(&matches as &dyn Fn(&_) -> bool);
    let order = query.part.order;
    let read = |row: &Row<'_>| read(&db.connection, row);
    let conditions = conditions(project, query);
    list::page(db, &SOURCE, conditions, &query.part, filter, &read, &|row: &JobRow| match order {
        Order::Newest | Order::Oldest => (row.job.created_at, row.id()),
        Order::LatestChange => (row.job.updated_at, row.id()),
    })
}

/// The conditions that the index of the query answers; the rest is examined row by row. Flags and statuses are literals
/// and not parameters, so that SQLite can use partial indexes.
fn conditions(project: &Project, query: &JobQuery) -> ListConditions {
    let has_own_index = match query.index() {
        JobIndex::Run | JobIndex::Schedule | JobIndex::Running => true,
        JobIndex::DeadLetter => query.queue.is_none(),
        JobIndex::Queue | JobIndex::Status | JobIndex::Creation => false,
    };
    let mut conditions =
        if has_own_index { ListConditions::without_index(project) } else { ListConditions::of(project) };
    match query.index() {
        JobIndex::Run => conditions.equal("run", query.run.map(key)),
        JobIndex::Schedule => conditions.equal("schedule", query.schedule.map(key)),
        JobIndex::DeadLetter => {
            conditions.add("is_dead_letter = 1", []);
            conditions.equal("queue", query.queue.clone());
            conditions.equal("fingerprint", query.fingerprint.clone());
        }
        JobIndex::Running => {
            // A running job has a wake-up, the end of its lease: the condition selects the small index of wake-ups.
            conditions.add("status = 'running' AND wake_at IS NOT NULL", []);
            conditions.equal("state ->> '$.worker'", query.worker.clone());
        }
        JobIndex::Queue => conditions.equal("queue", query.queue.clone()),
        JobIndex::Status => {
            let (open, ended) = query.asked_statuses();
            let open = (!open.is_empty()).then(|| "is_open = 1".to_owned());
            let ended = ended.iter().map(|status| format!("is_open = 0 AND status = '{}'", status.word()));
            conditions.divide(open.into_iter().chain(ended));
        }
        JobIndex::Creation => {}
    }
    conditions.between("created_at", query.since, query.until);
    conditions
}

/// The statement of a list, for its query plan.
#[cfg(test)]
pub(super) fn list_sql(query: &JobQuery) -> String {
    SOURCE.statement::<JobId>(conditions(&Project::DEFAULT, query), query.part.order, None).0
}

pub(super) fn due(db: &ReadConnection, now: Timestamp, limit: usize) -> Result<Vec<Wake<JobId>>, StoreError> {
    list::wakes(db, &table::JOBS, DUE, now, limit)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[BY_ID, DUE];
