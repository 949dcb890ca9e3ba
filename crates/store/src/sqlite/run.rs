//! Reads of runs; `change` writes them.

mod change;

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::counter::Epoch;
use windlass_engine::id::RunId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{SqliteColumns, SqliteId};
use super::list::{self, ListConditions, ListSelect, key};
use super::server;
use crate::column::bound;
use crate::decode;
use crate::error::StoreError;
use crate::page::{Order, Page};
use crate::run::{Owner, RunQuery, RunRef, RunRow, RunStatus, Wake};

#[cfg(test)]
pub(super) use change::ALL as CHANGES;
pub(super) use change::{RunTexts, RunWrite, check, write};

macro_rules! columns {
    () => {
        "SELECT project, id, len, flow, version, request, request_digest, labels, account, parent_run, parent_node, \
         parent_fence, parent_depth, schedule, created_at, status, round, node, action, step_count, wake_at, \
         owner_server, owner_epoch, cost_estimated, cost_actual, cost_refunded, cost_settled, needs, error, shared, \
         result, updated_at, ended_at FROM runs"
    };
}

const SOURCE: ListSelect = ListSelect {
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

fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    decode::run(&mut SqliteColumns::of(row))
}

pub(super) fn run(db: &Connection, project: &Project, run: &RunRef) -> Result<Option<RunRow>, StoreError> {
    let project = project.as_str();
    Ok(match run {
        RunRef::Id(id) => db.prepare_cached(BY_ID)?.query_row(params![id.key(), project], read),
        RunRef::Request(request) => db.prepare_cached(BY_REQUEST)?.query_row(params![request, project], read),
    }
    .optional()?)
}

pub(super) fn runs(db: &Connection, project: &Project, query: &RunQuery) -> Result<Page<RunRow>, StoreError> {
    // These have an index of their own, without the project.
    let has_index = query.parent.is_some() || query.schedule.is_some();
    let mut conditions =
        if has_index { ListConditions::without_index(project) } else { ListConditions::of(project) };
    let words: Vec<&str> = query.statuses.iter().map(|status| status.word()).collect();
    conditions.one_of("status", &words);
    if !words.is_empty() && query.statuses.iter().all(|status| status.is_open()) {
        // Implied by the statuses; it lets SQLite use the partial indexes of open runs.
        conditions.add("ended_at IS NULL", []);
    } else if query.statuses == [RunStatus::Failed] {
        // Implied as well; for the partial index of failed runs.
        conditions.add("status = 'failed'", []);
    }
    if query.part.order == Order::LatestChange {
        let statuses = &query.statuses;
        let asks = |open: bool| statuses.is_empty() || statuses.iter().any(|status| status.is_open() == open);
        let parts = [(asks(true), "ended_at IS NULL"), (asks(false), "ended_at IS NOT NULL")];
        conditions.divide(parts.into_iter().filter_map(|(asks, part)| asks.then_some(part)));
    }
    if let Some(is) = query.is_owned {
        conditions.add("(status <> 'running' OR (owner_server IS NOT NULL) = ?)", [i64::from(is).into()]);
    }
    if let Some(has) = query.has_entered {
        conditions.add("(status <> 'waiting' OR (step_count > 0) = ?)", [i64::from(has).into()]);
    }
    conditions.equal("flow", query.flow.map(key));
    conditions.equal("version", query.version.map(key));
    conditions.equal("account", query.account.clone());
    conditions.equal("parent_run", query.parent.map(key));
    conditions.equal("schedule", query.schedule.map(key));
    conditions.between("created_at", query.since, query.until);
    let matches = |row: &RunRow| row.matches(query);
    let filter = (query.label.is_some() || query.text.is_some()).then_some(&matches as &dyn Fn(&_) -> bool);
    let order = query.part.order;
    list::page(db, &SOURCE, conditions, &query.part, filter, &read, &|row: &RunRow| match order {
        Order::Newest | Order::Oldest => (row.origin.created_at, row.id),
        Order::LatestChange => (row.standing.updated_at, row.id),
    })
}

pub(super) fn due(db: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Wake<RunId>>, StoreError> {
    super::wakes(db, DUE, now, limit)
}

/// Steps through the owners, which are few, and reads only the runs of dead servers.
pub(super) fn orphans(
    db: &Connection,
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
            let mut statement = db.prepare_cached(OF_OWNER)?;
            let rows = statement.query_map(params![server, epoch, after, bound(limit)], read)?;
            orphans.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
        }
        last = (server.to_vec(), epoch);
    }
    orphans.sort_by_key(|row: &RunRow| row.id);
    orphans.truncate(limit);
    Ok(orphans)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[BY_ID, BY_REQUEST, OF_OWNER, NEXT_OWNER, DUE];
