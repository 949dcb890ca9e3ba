//! Reads of runs; `change` writes them.

mod change;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use windlass_engine::counter::Epoch;
use windlass_engine::id::RunId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{SqliteColumns, SqliteId};
use super::list::{self, ListConditions, ListSelect, key};
use super::readers::ReadConnection;
use super::server;
use crate::column::bound;
use crate::decode;
use crate::error::StoreError;
use crate::page::{Order, Page};
use crate::run::{Owner, RunGroup, RunIndex, RunQuery, RunRef, RunRow, Wake};
use crate::table;

#[cfg(test)]
pub(super) use change::ALL as CHANGES;
pub(super) use change::{RunTexts, RunWrite, check, write};

macro_rules! columns {
    () => {
        "SELECT project, id, len, flow, version, request, request_digest, labels, account, parent_run, parent_node, \
         parent_fence, parent_depth, root, schedule, created_at, status, round, node, action, step_count, wake_at, \
         owner_server, owner_epoch, cost_estimated, cost_actual, cost_refunded, cost_settled, needs, error, shared, \
         result, updated_at, ended_at FROM runs"
    };
}

const SOURCE: ListSelect = ListSelect {
    table: table::RUNS,
    select: columns!(),
    count: "SELECT count(*) FROM runs",
    created: "created_at",
    changed: "updated_at",
    id: "id",
};
const BY_ID: &str = concat!(columns!(), " WHERE id = ?1 AND project = ?2");
const BY_REQUEST: &str = concat!(columns!(), " WHERE project = ?2 AND request = ?1");
const OF_OWNER: &str =
    concat!(columns!(), " WHERE owner_server = ?1 AND owner_epoch = ?2 AND id > ?3 ORDER BY id LIMIT ?4");
const NEXT_OWNER: &str = "SELECT owner_server, owner_epoch FROM runs WHERE owner_server IS NOT NULL \
     AND (owner_server, owner_epoch) > (?1, ?2) ORDER BY owner_server, owner_epoch LIMIT 1";
const DUE: &str = "SELECT wake_at, id, project FROM runs WHERE wake_at <= ?1 ORDER BY wake_at, id LIMIT ?2";

const BELOW: &str = "SELECT count(*) FROM (SELECT 1 FROM runs WHERE project = ?1 AND root = ?3 LIMIT ?2)";
const OPEN_BELOW: &str = "SELECT count(*) FROM (SELECT 1 FROM runs WHERE project = ?1 AND root = ?3 AND ended_at IS NULL LIMIT ?2)";
const OPEN_OF_FLOW: &str = "SELECT count(*) FROM (SELECT 1 FROM runs WHERE project = ?1 AND flow = ?3 AND ended_at IS NULL LIMIT ?2)";
const OPEN: &str =
    "SELECT count(*) FROM (SELECT 1 FROM runs WHERE project = ?1 AND ended_at IS NULL LIMIT ?2)";

fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    decode::run(&mut SqliteColumns::of(row))
}

pub(super) fn run(
    db: &ReadConnection,
    project: &Project,
    run: &RunRef,
) -> Result<Option<RunRow>, StoreError> {
    let project = project.as_str();
    match run {
        RunRef::Id(id) => db.one(&table::RUNS, BY_ID, params![id.key(), project], read),
        RunRef::Request(request) => db.one(&table::RUNS, BY_REQUEST, params![request, project], read),
    }
}

/// The number of runs in a group, up to a limit.
pub(super) fn count(
    db: &Connection,
    project: &Project,
    group: RunGroup,
    limit: usize,
) -> Result<usize, StoreError> {
    let (project, limit) = (project.as_str(), bound(limit));
    let n: i64 = match group {
        RunGroup::Below(root) => {
            db.prepare_cached(BELOW)?.query_row(params![project, limit, root.key()], |row| row.get(0))
        }
        RunGroup::OpenBelow(root) => {
            db.prepare_cached(OPEN_BELOW)?.query_row(params![project, limit, root.key()], |row| row.get(0))
        }
        RunGroup::OpenOfFlow(flow) => {
            db.prepare_cached(OPEN_OF_FLOW)?.query_row(params![project, limit, flow.key()], |row| row.get(0))
        }
        RunGroup::Open => db.prepare_cached(OPEN)?.query_row(params![project, limit], |row| row.get(0)),
    }?;
    Ok(usize::try_from(n).unwrap_or_default())
}

pub(super) fn runs(
    db: &ReadConnection,
    project: &Project,
    query: &RunQuery,
) -> Result<Page<RunRow>, StoreError> {
    let matches = |row: &RunRow| row.matches(query);
    let filter = query.is_examined().then_some(&matches as &dyn Fn(&_) -> bool);
    let order = query.part.order;
    let conditions = conditions(project, query);
    list::page(db, &SOURCE, conditions, &query.part, filter, &read, &|row: &RunRow| match order {
        Order::Newest | Order::Oldest => (row.origin.created_at, row.id),
        Order::LatestChange => (row.projection.updated_at, row.id),
    })
}

/// The number of runs that match, up to a limit, if an index answers the query.
pub(super) fn count_matching(
    db: &Connection,
    project: &Project,
    query: &RunQuery,
    limit: usize,
) -> Result<Option<usize>, StoreError> {
    if query.is_examined() {
        return Ok(None);
    }
    let (sql, mut values) = conditions(project, query).selection("SELECT 1 FROM runs");
    values.push(bound(limit).into());
    let sql = format!("SELECT count(*) FROM ({sql} LIMIT ?)");
    let n: i64 = db.prepare_cached(&sql)?.query_row(params_from_iter(&values), |row| row.get(0))?;
    Ok(Some(usize::try_from(n).unwrap_or_default()))
}

/// The conditions that the index of the query answers; the rest is examined row by row.
fn conditions(project: &Project, query: &RunQuery) -> ListConditions {
    let mut conditions = match query.index() {
        // These have an index of their own, without the project.
        RunIndex::Id | RunIndex::Parent | RunIndex::Schedule => ListConditions::without_index(project),
        RunIndex::Account | RunIndex::Status | RunIndex::Creation => ListConditions::of(project),
    };
    match query.index() {
        RunIndex::Parent => conditions.equal("parent_run", query.parent.map(key)),
        RunIndex::Schedule => conditions.equal("schedule", query.schedule.map(key)),
        RunIndex::Account => conditions.equal("account", query.account.clone()),
        RunIndex::Creation => {}
        RunIndex::Id => {
            if let Some((first, last)) = query.ids {
                conditions.add("id BETWEEN ? AND ?", [key(first), key(last)]);
            }
        }
        RunIndex::Status => {
            conditions.equal("flow", query.flow.map(key));
            conditions.equal("version", query.version.map(key));
            let (open, ended) = query.asked_statuses();
            let words: Vec<&str> = open.iter().map(|status| status.word()).collect();
            let open = (!words.is_empty())
                .then(|| format!("ended_at IS NULL AND status IN ('{}')", words.join("', '")));
            let ended =
                ended.iter().map(|status| format!("ended_at IS NOT NULL AND status = '{}'", status.word()));
            conditions.divide(open.into_iter().chain(ended));
            if let Some(is) = query.is_owned {
                conditions
                    .add("(status <> 'running' OR (owner_server IS NOT NULL) = ?)", [i64::from(is).into()]);
            }
            if let Some(has) = query.has_entered {
                conditions.add("(status <> 'waiting' OR (step_count > 0) = ?)", [i64::from(has).into()]);
            }
        }
    }
    conditions.between("created_at", query.since, query.until);
    conditions
}

/// The statement of a list, for its query plan.
#[cfg(test)]
pub(super) fn list_sql(query: &RunQuery) -> String {
    SOURCE.statement::<RunId>(conditions(&Project::DEFAULT, query), query.part.order, None).0
}

pub(super) fn due(db: &ReadConnection, now: Timestamp, limit: usize) -> Result<Vec<Wake<RunId>>, StoreError> {
    list::wakes(db, &table::RUNS, DUE, now, limit)
}

/// Steps through the owners, which are few, and reads only the runs of dead servers.
pub(super) fn orphans(
    db: &ReadConnection,
    now: Timestamp,
    dead_after_ms: u64,
    after: Option<RunId>,
    limit: usize,
) -> Result<Vec<RunRow>, StoreError> {
    let servers = server::servers(db)?;
    let is_alive = |owner: Owner| {
        servers.iter().any(|server| server.owner == owner && server.is_alive(now, dead_after_ms))
    };
    // The empty blob sorts before every id.
    let after = after.map(|run| run.key().to_vec()).unwrap_or_default();
    let (mut last, mut orphans) = ((Vec::new(), i64::MIN), Vec::new());
    while let Some((server, epoch)) = db
        .prepare_cached(NEXT_OWNER)?
        .query_row(params![last.0, last.1], |row| Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, i64>(1)?)))
        .optional()?
    {
        if !is_alive(Owner { server: SqliteId::from_key(server), epoch: Epoch(epoch.cast_unsigned()) }) {
            let given = |limit| {
                vec![server.to_vec().into(), epoch.into(), after.clone().into(), Value::Integer(limit)]
            };
            orphans.extend(db.first_rows(&table::RUNS, OF_OWNER, limit, given, read)?);
        }
        last = (server.to_vec(), epoch);
    }
    orphans.sort_by_key(|row: &RunRow| row.id);
    orphans.truncate(limit);
    Ok(orphans)
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[BY_ID, BY_REQUEST, OF_OWNER, NEXT_OWNER, DUE, BELOW, OPEN_BELOW, OPEN_OF_FLOW, OPEN];
