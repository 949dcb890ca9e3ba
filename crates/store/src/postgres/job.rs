//! Jobs as they are read; how they are written is in `change`.

macro_rules! columns {
    () => {
        concat!(
            "SELECT id, rev, state, fence, round, memo, replays, call_run, call_node, call_fence, schedule, \
             created_at, updated_at, spec, payload, ",
            crate::postgres::attempt::attempts_json!(),
            " AS attempts FROM jobs JOIN job_specs ON job_specs.job = jobs.id"
        )
    };
}

/// The rows of jobs that were found as `wanted`, each by its id: the planner cannot know how many there will be,
/// and with a wrong estimate it would read the whole table.
macro_rules! rows_of {
    ($($wanted:expr),*) => {
        concat!(
            "SELECT its.* FROM (",
            $($wanted,)*
            ") AS wanted, LATERAL (",
            columns!(),
            " WHERE jobs.id = wanted.id OFFSET 0) AS its"
        )
    };
}

mod change;
mod keys;
mod outline;
mod ready;

use tokio_postgres::Row;
use windlass_engine::id::JobId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::attempt;
use super::column::{PostgresColumns, PostgresId, cells};
use super::link::Link;
use super::list::{self, Conditions, FilterValue, IndexPart, Source};

use crate::decode;
use crate::error::StoreError;
use crate::job::{JobIndex, JobQuery, JobRow};
use crate::page::{Order, Page};
use crate::run::Wake;
use crate::table;

#[cfg(test)]
pub(super) use change::ALL as CHANGES;
pub(super) use change::{
    Holder, JobTexts, JobWrite, LockedJob, check, heads, heads_at_once, hold_keys, holders, insert,
    insert_specs, move_keys, take_keys, update, update_specs,
};
#[cfg(test)]
pub(super) use keys::ALL as KEYS;
pub(super) use keys::{held, ready_by_key};
#[cfg(test)]
pub(super) use outline::ALL as OUTLINES;
pub(super) use outline::job_outlines;
#[cfg(test)]
pub(super) use ready::ALL as READY;
pub(super) use ready::{ready, ready_cursors};

const SOURCE: Source<JobRow, JobId> = Source {
    table: table::JOBS,
    select: columns!(),
    count: "SELECT count(*) FROM jobs",
    read,
    place: |row, order| match order {
        Order::Newest | Order::Oldest => (row.job.created_at, row.id()),
        Order::LatestChange => (row.job.updated_at, row.id()),
    },
};
const BY_ID: &str = concat!(columns!(), " WHERE id = $1 AND project = $2");
const DUE: &str = "SELECT wake_at, id, project FROM jobs WHERE wake_at <= $1 ORDER BY wake_at, id LIMIT $2";

fn read(row: &Row) -> Result<JobRow, StoreError> {
    decode::job(&mut PostgresColumns::of(row), |columns, _| attempt::remembered(columns.value()?))
}

pub(super) async fn job(db: &Link, project: &Project, job: JobId) -> Result<Option<JobRow>, StoreError> {
    db.one(&table::JOBS, db.ask_one(BY_ID, &cells![job.key(), project.as_str()]).await?.as_ref(), read)
}

pub(super) async fn jobs(db: &Link, project: &Project, query: &JobQuery) -> Result<Page<JobRow>, StoreError> {
    let matches = |row: &JobRow| row.matches(query);
    let filter = query.is_examined().then_some(&matches as &(dyn Fn(&_) -> bool + Sync));
    list::page(db, &SOURCE, &conditions(project, query), &query.part, filter).await
}

/// The conditions that the index of the query answers; the rest is examined row by row. Flags and statuses are not
/// values, so that partial indexes can be used.
fn conditions(project: &Project, query: &JobQuery) -> Conditions {
    let mut conditions = Conditions::of(project);
    match query.index() {
        JobIndex::Run => conditions.equal("run", query.run.map(FilterValue::id)),
        JobIndex::Schedule => conditions.equal("schedule", query.schedule.map(FilterValue::id)),
        JobIndex::DeadLetter => {
            conditions.add("is_dead_letter", []);
            conditions.equal("queue", query.queue.clone().map(FilterValue::Text));
            conditions.equal("fingerprint", query.fingerprint.clone().map(FilterValue::Text));
        }
        JobIndex::Running => {
            // A running job has a wake-up: its lease ends. So the query reads only jobs that time will move.
            conditions.add("status = 'running' AND wake_at IS NOT NULL", []);
            conditions.equal("worker", query.worker.clone().map(FilterValue::Text));
        }
        JobIndex::Queue => conditions.equal("queue", query.queue.clone().map(FilterValue::Text)),
        JobIndex::Status => {
            let (open, ended) = query.asked_statuses();
            let time = match query.part.order {
                Order::Newest | Order::Oldest => "created_at",
                Order::LatestChange => "updated_at",
            };
            let part = |condition| IndexPart { condition, time };
            let open = (!open.is_empty()).then(|| part("is_open".to_owned()));
            let ended =
                ended.iter().map(|status| part(format!("NOT is_open AND status = '{}'", status.word())));
            conditions.add_index_parts(open.into_iter().chain(ended));
        }
        JobIndex::Creation => {}
    }
    conditions.between("created_at", query.since, query.until);
    conditions
}

/// The query plan of a list.
#[cfg(test)]
pub(super) async fn list_plan(db: &Link, query: &JobQuery) -> String {
    list::plan(db, &SOURCE, &conditions(&Project::DEFAULT, query), query.part.order).await
}

pub(super) async fn due(db: &Link, now: Timestamp, limit: usize) -> Result<Vec<Wake<JobId>>, StoreError> {
    list::wakes(db, &table::JOBS, DUE, now, limit).await
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[BY_ID, DUE];
