//! Runs and their journals.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::event::Parent;
use windlass_engine::id::RunId;
use windlass_engine::journal::Entry;
use windlass_engine::run::Totals;
use windlass_engine::time::Timestamp;

use super::column::{Columns, Id, bound, json, stored};
use super::list::{self, Conditions, Source, key};
use super::{guard, schedule, server};
use crate::commit::RunChange;
use crate::error::{Refusal, StoreError, Subject};
use crate::page::{Order, Page};
use crate::run::{
    Journal, Origin, Owner, Request, RunQuery, RunRef, RunRow, RunStatus, Since, Snapshot, Standing, Wake,
};
use crate::schedule::Started;

macro_rules! columns {
    () => {
        "SELECT id, len, flow, version, request, request_digest, labels, account, parent_run, parent_node, \
         parent_fence, parent_depth, schedule, created_at, status, round, node, action, step_count, wake_at, \
         owner_server, owner_epoch, cost_estimated, cost_actual, cost_refunded, cost_settled, error, shared, \
         result, updated_at, ended_at FROM runs"
    };
}

const SOURCE: Source = Source {
    select: columns!(),
    count: "SELECT count(*) FROM runs",
    created: "created_at",
    changed: "updated_at",
    id: "id",
};
const BY_ID: &str = concat!(columns!(), " WHERE id = ?1");
const BY_REQUEST: &str = concat!(columns!(), " WHERE request = ?1");
const OF_OWNER: &str =
    concat!(columns!(), " WHERE owner_server = ?1 AND owner_epoch = ?2 AND id > ?3 ORDER BY id LIMIT ?4");
const NEXT_OWNER: &str = "SELECT owner_server, owner_epoch FROM runs WHERE owner_server IS NOT NULL \
     AND (owner_server, owner_epoch) > (?1, ?2) ORDER BY owner_server, owner_epoch LIMIT 1";
const DUE: &str = "SELECT wake_at, id FROM runs WHERE wake_at <= ?1 ORDER BY wake_at, id LIMIT ?2";
const HEAD: &str = "SELECT len, ended_at IS NULL FROM runs WHERE id = ?1";
const REQUEST: &str = "SELECT id, request_digest FROM runs WHERE request = ?1";
const VERSION: &str = "SELECT 1 FROM versions WHERE id = ?1 AND flow = ?2";
const INSERT: &str = "INSERT INTO runs (id, len, flow, version, request, request_digest, labels, account, \
     parent_run, parent_node, parent_fence, parent_depth, schedule, created_at, status, round, node, action, \
     step_count, wake_at, owner_server, owner_epoch, cost_estimated, cost_actual, cost_refunded, error, shared, \
     result, updated_at, ended_at, cost_settled) VALUES (?1, ?2, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, \
     ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";
const UPDATE: &str = "UPDATE runs SET len = ?2, status = ?3, round = ?4, node = ?5, action = ?6, \
     step_count = ?7, wake_at = ?8, owner_server = ?9, owner_epoch = ?10, cost_estimated = ?11, \
     cost_actual = ?12, cost_refunded = ?13, error = ?14, shared = ?15, result = ?16, updated_at = ?17, \
     ended_at = ?18, cost_settled = ?19 WHERE id = ?1";
const APPEND: &str = "INSERT INTO journal (run, seq, entry) VALUES (?1, ?2, ?3)";
const ENTRIES: &str = "SELECT seq, entry FROM journal WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
const SNAPSHOT: &str = "SELECT seq, state FROM snapshots WHERE run = ?1";
const SNAP: &str = "INSERT INTO snapshots (run, seq, state) VALUES (?1, ?2, ?3) \
     ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, state = excluded.state";

/// What a change of a run finds there.
pub(super) struct Before {
    is_open: bool,
}

/// Whether the change may be made.
pub(super) fn check(db: &Connection, change: &RunChange) -> Result<Before, StoreError> {
    let head = db.prepare_cached(HEAD)?.query_row([change.run.key()], |row| {
        let mut columns = Columns::of(row);
        Ok((columns.number()?, columns.value()?))
    });
    let (found, is_open) = head.optional()?.unwrap_or((0, false));
    guard(|| Subject::Run(change.run), change.expected_len, found)?;
    let Some(origin) = &change.create else { return Ok(Before { is_open }) };
    if !db.prepare_cached(VERSION)?.exists([origin.version.key(), origin.flow.key()])? {
        return Err(Refusal::UnknownVersion(origin.version).into());
    }
    let Some(request) = &origin.request else { return Ok(Before { is_open }) };
    let first = db.prepare_cached(REQUEST)?.query_row([&request.id], |row| {
        let mut columns = Columns::of(row);
        Ok((columns.id::<RunId>()?, columns.value::<String>()?))
    });
    let Some((existing, digest)) = first.optional()? else { return Ok(Before { is_open }) };
    let same_request = digest == request.digest;
    Err(Refusal::RequestTaken { request: request.id.clone(), existing, same_request }.into())
}

/// Makes the change, and says how many entries the journal has now.
pub(super) fn write(db: &Connection, change: &RunChange, before: &Before) -> Result<u64, StoreError> {
    let RunChange { run, expected_len, create, entry, standing, snapshot } = change;
    let (id, len) = (run.key(), expected_len.saturating_add(1));
    write_row(db, *run, len, create.as_ref(), standing)?;
    db.prepare_cached(APPEND)?.execute(params![id, stored(len), entry.encode()])?;
    if let Some(bytes) = snapshot {
        db.prepare_cached(SNAP)?.execute(params![id, stored(len), bytes])?;
    }
    let is_open = standing.status.is_open();
    if is_open != before.is_open {
        schedule::set_running(db, Started::Run(*run), is_open)?;
    }
    Ok(len)
}

fn write_row(
    db: &Connection,
    run: RunId,
    len: u64,
    create: Option<&Origin>,
    standing: &Standing,
) -> Result<(), StoreError> {
    let Standing {
        status,
        round,
        node,
        action,
        step_count,
        wake_at,
        owner,
        cost,
        error,
        shared,
        result,
        updated_at,
        ended_at,
    } = standing;
    let (id, len, status, step_count) = (run.key(), stored(len), status.word(), stored(*step_count));
    let node = node.as_ref().map(|node| node.as_str());
    let (wake_at, ended_at) = (wake_at.map(|at| at.0), ended_at.map(|at| at.0));
    let (server, epoch) = (owner.map(|owner| owner.server.key()), owner.map(|owner| stored(owner.epoch)));
    let Totals { estimated, actual, refunded, settled } = cost;
    let error = error.as_ref().map(json);
    let (shared, result) = (shared.as_ref().map(json), result.as_ref().map(json));
    let standing = params![
        id,
        len,
        status,
        round,
        node,
        action,
        step_count,
        wake_at,
        server,
        epoch,
        estimated,
        actual,
        refunded,
        error,
        shared,
        result,
        updated_at.0,
        ended_at,
        settled
    ];
    let Some(Origin { flow, version, request, labels, account, parent, schedule, created_at }) = create
    else {
        db.prepare_cached(UPDATE)?.execute(standing)?;
        return Ok(());
    };
    let (flow, version, labels) = (flow.key(), version.key(), json(labels));
    let (request_id, digest) = request.as_ref().map(|request| (&request.id, &request.digest)).unzip();
    let parent_run = parent.as_ref().map(|parent| parent.run.key());
    let parent_node = parent.as_ref().map(|parent| parent.node.as_str());
    let (fence, depth) = parent.as_ref().map(|parent| (stored(parent.fence), parent.depth)).unzip();
    let schedule = schedule.map(Id::key);
    let origin = params![
        flow,
        version,
        request_id,
        digest,
        labels,
        account,
        parent_run,
        parent_node,
        fence,
        depth,
        schedule,
        created_at.0
    ];
    db.prepare_cached(INSERT)?.execute([standing, origin].concat().as_slice())?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let mut columns = Columns::of(row);
    Ok(RunRow {
        id: columns.id()?,
        len: columns.number()?,
        origin: read_origin(&mut columns)?,
        standing: read_standing(&mut columns)?,
    })
}

fn read_origin(columns: &mut Columns<'_>) -> rusqlite::Result<Origin> {
    let (flow, version) = (columns.id()?, columns.id()?);
    let (id, digest): (Option<String>, Option<String>) = (columns.value()?, columns.value()?);
    let request = id.zip(digest).map(|(id, digest)| Request { id, digest });
    let (labels, account) = (columns.json()?, columns.value()?);
    let (run, node) = (columns.id_or_none()?, columns.path_or_none()?);
    let (fence, depth) = (columns.number_or_none()?, columns.value()?);
    let parent = run.zip(node).zip(fence.zip(depth));
    let parent = parent.map(|((run, node), (fence, depth))| Parent { run, node, fence, depth });
    let (schedule, created_at) = (columns.id_or_none()?, columns.time()?);
    Ok(Origin { flow, version, request, labels, account, parent, schedule, created_at })
}

fn read_standing(columns: &mut Columns<'_>) -> rusqlite::Result<Standing> {
    let status: String = columns.value()?;
    let status = RunStatus::from_word(&status)
        .ok_or_else(|| columns.unreadable(format!("`{status}` is not a status of a run")))?;
    let (round, node, action) = (columns.value()?, columns.path_or_none()?, columns.value()?);
    let (step_count, wake_at) = (columns.number()?, columns.time_or_none()?);
    let owner = columns.id_or_none()?.zip(columns.number_or_none()?);
    let owner = owner.map(|(server, epoch)| Owner { server, epoch });
    let cost = Totals {
        estimated: columns.value()?,
        actual: columns.value()?,
        refunded: columns.value()?,
        settled: columns.value()?,
    };
    Ok(Standing {
        status,
        round,
        node,
        action,
        step_count,
        wake_at,
        owner,
        cost,
        error: columns.json_or_none()?,
        shared: columns.json_or_none()?,
        result: columns.json_or_none()?,
        updated_at: columns.time()?,
        ended_at: columns.time_or_none()?,
    })
}

pub(super) fn run(db: &Connection, run: &RunRef) -> Result<Option<RunRow>, StoreError> {
    Ok(match run {
        RunRef::Id(id) => db.prepare_cached(BY_ID)?.query_row([id.key()], read),
        RunRef::Request(request) => db.prepare_cached(BY_REQUEST)?.query_row([request], read),
    }
    .optional()?)
}

pub(super) fn runs(db: &Connection, query: &RunQuery) -> Result<Page<RunRow>, StoreError> {
    let mut conditions = Conditions::default();
    let words: Vec<&str> = query.statuses.iter().map(|status| status.word()).collect();
    conditions.one_of("status", &words);
    if !words.is_empty() && query.statuses.iter().all(|status| status.is_open()) {
        // Says the same again, so that the small indexes of what is open can be used.
        conditions.add("ended_at IS NULL", []);
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

pub(super) fn journal(
    db: &Connection,
    run: RunId,
    since: Since,
    limit: usize,
) -> Result<Journal, StoreError> {
    let snapshot = match since {
        Since::Entry(_) => None,
        Since::Snapshot => {
            let found = db.prepare_cached(SNAPSHOT)?.query_row([run.key()], |row| {
                let mut columns = Columns::of(row);
                Ok(Snapshot { seq: columns.number()?, bytes: columns.value()? })
            });
            found.optional()?
        }
    };
    let after = match since {
        Since::Entry(after) => after,
        Since::Snapshot => snapshot.as_ref().map_or(0, |snapshot| snapshot.seq),
    };
    let mut statement = db.prepare_cached(ENTRIES)?;
    let mut rows = statement.query(params![run.key(), bound(after), bound(limit)])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = Columns::of(row).number()?;
        let entry = Entry::decode(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?);
        let entry = entry.map_err(|error| StoreError::Corrupt(format!("entry {seq} of {run}: {error}")))?;
        entries.push((seq, entry));
    }
    Ok(Journal { snapshot, entries })
}

pub(super) fn due(db: &Connection, now: Timestamp, limit: usize) -> Result<Vec<Wake<RunId>>, StoreError> {
    super::wakes(db, DUE, now, limit)
}

/// Asks about every owner, of which there are few, and reads only the runs of the dead.
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
    // Nothing comes before every id.
    let after = after.map(|run| run.key().to_vec()).unwrap_or_default();
    let (mut last, mut orphans) = ((Vec::new(), i64::MIN), Vec::new());
    while let Some((server, epoch)) = db
        .prepare_cached(NEXT_OWNER)?
        .query_row(params![last.0, last.1], |row| Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, i64>(1)?)))
        .optional()?
    {
        if !is_alive(Owner { server: Id::from_key(server), epoch: epoch.cast_unsigned() }) {
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
pub(super) const ALL: &[&str] = &[
    BY_ID, BY_REQUEST, OF_OWNER, NEXT_OWNER, DUE, HEAD, REQUEST, VERSION, INSERT, UPDATE, APPEND, ENTRIES,
    SNAPSHOT, SNAP,
];
