//! Runs as they are read; how they are written is in `change`.

mod change;

use tokio_postgres::Row;
use uuid::Uuid;
use windlass_engine::id::RunId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, PostgresId, cells, text};
use super::link::Link;
use super::list::{self, Conditions, FilterValue, IndexPart, Source};
use super::server;
use crate::column::{Columns, bound, stored};
use crate::decode;
use crate::error::StoreError;
use crate::page::{Order, Page};
use crate::run::{Owner, RunGroup, RunIndex, RunQuery, RunRef, RunRow, Wake};
use crate::table;

#[cfg(test)]
pub(super) use change::ALL as CHANGES;
pub(super) use change::{
    LockedRun, RunTexts, RunWrite, check, heads, insert, reopen, requests, update, versions,
};

macro_rules! columns {
    () => {
        "SELECT project, id, len, flow, version, request, request_digest, labels, account, parent_run, parent_node, \
         parent_fence, parent_depth, root, schedule, created_at, status, round, node, action, step_count, wake_at, \
         owner_server, owner_epoch, cost_estimated, cost_actual, cost_refunded, cost_settled, needs, error, shared, \
         result, updated_at, ended_at FROM runs"
    };
}

const SOURCE: Source<RunRow, RunId> = Source {
    table: table::RUNS,
    select: columns!(),
    count: "SELECT count(*) FROM runs",
    read,
    place: |row, order| match order {
        Order::Newest | Order::Oldest => (row.origin.created_at, row.id),
        Order::LatestChange => (row.projection.updated_at, row.id),
    },
};
const BY_ID: &str = concat!(columns!(), " WHERE id = $1 AND project = $2");
const BY_REQUEST: &str = concat!(columns!(), " WHERE request = $1 AND project = $2");
const OF_OWNERS: &str = concat!(
    columns!(),
    " WHERE owner_server IS NOT NULL AND (owner_server, owner_epoch) IN \
     (SELECT * FROM UNNEST($1::uuid[], $2::bigint[])) AND ($3::uuid IS NULL OR id > $3) ORDER BY id LIMIT $4"
);
// From one owner to the next, not from run to run.
const OWNERS: &str = "WITH RECURSIVE owner (server, epoch) AS ( \
     (SELECT owner_server, owner_epoch FROM runs WHERE owner_server IS NOT NULL \
         ORDER BY owner_server, owner_epoch LIMIT 1) \
     UNION ALL SELECT next.owner_server, next.owner_epoch FROM owner, LATERAL ( \
         SELECT owner_server, owner_epoch FROM runs WHERE owner_server IS NOT NULL \
         AND (owner_server, owner_epoch) > (owner.server, owner.epoch) \
         ORDER BY owner_server, owner_epoch LIMIT 1) AS next \
     ) SELECT server, epoch FROM owner";
const DUE: &str = "SELECT wake_at, id, project FROM runs WHERE wake_slot <= $1::bigint >> 14 AND wake_at <= $1 \
     ORDER BY wake_slot, wake_at, id LIMIT $2";

const BELOW: &str =
    "SELECT count(*) FROM (SELECT FROM runs WHERE project = $1 AND root = $3 LIMIT $2) AS counted";
const OPEN_BELOW: &str = "SELECT count(*) FROM (SELECT FROM runs WHERE project = $1 AND root = $3 AND ended_at IS NULL \
     LIMIT $2) AS counted";
const OPEN_OF_FLOW: &str = "SELECT count(*) FROM (SELECT FROM runs WHERE project = $1 AND flow = $3 \
     AND ended_at IS NULL LIMIT $2) AS counted";
const OPEN: &str =
    "SELECT count(*) FROM (SELECT FROM runs WHERE project = $1 AND ended_at IS NULL LIMIT $2) AS counted";

fn read(row: &Row) -> Result<RunRow, StoreError> {
    decode::run(&mut PostgresColumns::of(row))
}

pub(super) async fn run(db: &Link, project: &Project, run: &RunRef) -> Result<Option<RunRow>, StoreError> {
    let project = project.as_str();
    let row = match run {
        RunRef::Id(id) => db.ask_one(BY_ID, &cells![id.key(), project]).await?,
        RunRef::Request(request) => db.ask_one(BY_REQUEST, &cells![text(request), project]).await?,
    };
    db.one(&table::RUNS, row.as_ref(), read)
}

/// The number of runs in a group, up to a limit.
pub(super) async fn count(
    db: &Link,
    project: &Project,
    group: RunGroup,
    limit: usize,
) -> Result<usize, StoreError> {
    let (project, limit) = (project.as_str(), bound(limit));
    let row = match group {
        RunGroup::Below(root) => db.ask_one(BELOW, &cells![project, limit, root.key()]).await?,
        RunGroup::OpenBelow(root) => db.ask_one(OPEN_BELOW, &cells![project, limit, root.key()]).await?,
        RunGroup::OpenOfFlow(flow) => db.ask_one(OPEN_OF_FLOW, &cells![project, limit, flow.key()]).await?,
        RunGroup::Open => db.ask_one(OPEN, &cells![project, limit]).await?,
    };
    let n: Option<i64> = row.as_ref().map(|row| PostgresColumns::of(row).value()).transpose()?;
    Ok(n.and_then(|n| usize::try_from(n).ok()).unwrap_or_default())
}

pub(super) async fn runs(db: &Link, project: &Project, query: &RunQuery) -> Result<Page<RunRow>, StoreError> {
    let matches = |row: &RunRow| row.matches(query);
    let filter = query.is_examined().then_some(&matches as &(dyn Fn(&_) -> bool + Sync));
    list::page(db, &SOURCE, &conditions(project, query), &query.part, filter).await
}

/// The number of runs that match, up to a limit, if an index answers the query.
pub(super) async fn count_matching(
    db: &Link,
    project: &Project,
    query: &RunQuery,
    limit: usize,
) -> Result<Option<usize>, StoreError> {
    if query.is_examined() {
        return Ok(None);
    }
    list::count_up_to(db, "SELECT FROM runs", &conditions(project, query), limit).await.map(Some)
}

/// The conditions that the index of the query answers; the rest is examined row by row.
fn conditions(project: &Project, query: &RunQuery) -> Conditions {
    let mut conditions = Conditions::of(project);
    match query.index() {
        RunIndex::Parent => conditions.equal("parent_run", query.parent.map(FilterValue::id)),
        RunIndex::Schedule => conditions.equal("schedule", query.schedule.map(FilterValue::id)),
        RunIndex::Account => conditions.equal("account", query.account.clone().map(FilterValue::Text)),
        RunIndex::Creation => {}
        RunIndex::Id => {
            if let Some((first, last)) = query.ids {
                conditions.add("id BETWEEN ? AND ?", [FilterValue::id(first), FilterValue::id(last)]);
            }
        }
        RunIndex::Status => {
            conditions.equal("flow", query.flow.map(FilterValue::id));
            conditions.equal("version", query.version.map(FilterValue::id));
            conditions.add_index_parts(index_parts(query));
            if let Some(is) = query.is_owned {
                conditions
                    .add("(status <> 'running' OR (owner_server IS NOT NULL) = ?)", [FilterValue::Flag(is)]);
            }
            if let Some(has) = query.has_entered {
                conditions.add("(status <> 'waiting' OR (step_count > 0) = ?)", [FilterValue::Flag(has)]);
            }
        }
    }
    conditions.between("created_at", query.since, query.until);
    conditions
}

/// Open runs, and ended runs by status.
fn index_parts(query: &RunQuery) -> impl Iterator<Item = IndexPart> {
    let (is_ended, ended_time, open_time) = match query.part.order {
        Order::Newest | Order::Oldest => ("ended_at IS NOT NULL", "created_at", "created_at"),
        Order::LatestChange => ("settled_at IS NOT NULL", "settled_at", "updated_at"),
    };
    let (open, ended) = query.asked_statuses();
    let words: Vec<&str> = open.iter().map(|status| status.word()).collect();
    let open = (!words.is_empty()).then(|| IndexPart {
        condition: format!("ended_at IS NULL AND status IN ('{}')", words.join("', '")),
        time: open_time,
    });
    let ended = ended.into_iter().map(move |status| IndexPart {
        condition: format!("{is_ended} AND status = '{}'", status.word()),
        time: ended_time,
    });
    open.into_iter().chain(ended)
}

/// The query plan of a list.
#[cfg(test)]
pub(super) async fn list_plan(db: &Link, query: &RunQuery) -> String {
    list::plan(db, &SOURCE, &conditions(&Project::DEFAULT, query), query.part.order).await
}

pub(super) async fn due(db: &Link, now: Timestamp, limit: usize) -> Result<Vec<Wake<RunId>>, StoreError> {
    list::wakes(db, &table::RUNS, DUE, now, limit).await
}

/// Asks about every owner, of which there are few, and reads only the runs of the dead.
pub(super) async fn orphans(
    db: &Link,
    now: Timestamp,
    dead_after_ms: u64,
    after: Option<RunId>,
    limit: usize,
) -> Result<Vec<RunRow>, StoreError> {
    // Owners first: a server that appears after that has a heartbeat by the time that servers are read.
    let owners = db.ask(OWNERS, &[]).await?;
    let servers = server::servers(db).await?;
    let is_alive = |owner: Owner| {
        servers.iter().any(|server| server.owner == owner && server.is_alive(now, dead_after_ms))
    };
    let (mut ids, mut epochs): (Vec<Uuid>, Vec<i64>) = (Vec::new(), Vec::new());
    for row in &owners {
        let mut columns = PostgresColumns::of(row);
        let owner = Owner { server: columns.id()?, epoch: columns.number()? };
        if !is_alive(owner) {
            ids.push(owner.server.key());
            epochs.push(stored(owner.epoch));
        }
    }
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let given = |limit| cells![ids.clone(), epochs.clone(), after.map(PostgresId::key), limit];
    db.first_rows(&table::RUNS, OF_OWNERS, limit, given, read).await
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[BY_ID, BY_REQUEST, OF_OWNERS, OWNERS, DUE, BELOW, OPEN_BELOW, OPEN_OF_FLOW, OPEN];
