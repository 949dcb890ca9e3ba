//! Writes of runs: the next journal entry and the row.

use rusqlite::{OptionalExtension, params};
use windlass_engine::counter::Seq;
use windlass_engine::id::RunId;
use windlass_engine::project::Project;
use windlass_engine::run::Totals;

use crate::blob;
use crate::column::{Columns, json, stored};
use crate::commit::RunChange;
use crate::error::{Refusal, StoreError, Subject};
use crate::run::{Origin, RunProjection};
use crate::schedule::Started;
use crate::sqlite::column::{SqliteColumns, SqliteId};
use crate::sqlite::shorthand::shorten;
use crate::sqlite::writer_cache::{RunHead, WriterCache};
use crate::sqlite::{guard, journal, schedule};

const REQUEST: &str = "SELECT id, request_digest FROM runs WHERE project = ?2 AND request = ?1";
const CREATE: &str = "INSERT INTO runs (len, status, round, node, action, step_count, cost_estimated, \
     cost_actual, cost_refunded, cost_settled, error, updated_at, wake_at, owner_server, owner_epoch, ended_at, \
     shared, result, needs, id, flow, version, request, request_digest, labels, account, parent_run, parent_node, \
     parent_fence, parent_depth, root, schedule, created_at, project) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, \
     ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34)";
const REOPEN: &str = "UPDATE runs SET reopened = ?2 WHERE no = ?1";
const UNDO_CREATE: &str = "DELETE FROM runs WHERE no = ?1";

// SQLite writes an index again when a statement sets a column of it, even to the same value: hence three statements.
macro_rules! update {
    ($more:literal, $no:literal) => {
        concat!(
            "UPDATE runs SET len = ?1, status = ?2, round = ?3, node = ?4, action = ?5, step_count = ?6, \
             cost_estimated = ?7, cost_actual = ?8, cost_refunded = ?9, cost_settled = ?10, error = ?11, \
             updated_at = ?12",
            $more,
            " WHERE no = ",
            $no
        )
    };
}
/// The run stays open, with the same owner, wake-up and need of money.
const STEP: &str = update!("", "?13");
/// The same with another wake-up.
const STEP_AND_WAKE: &str = update!(", wake_at = ?13", "?14");
const MOVE: &str = update!(
    ", wake_at = ?13, owner_server = ?14, owner_epoch = ?15, ended_at = ?16, shared = ?17, result = ?18, \
     needs = ?19",
    "?20"
);

/// The JSON texts of a run's row. The caller's thread makes them, the writer only binds them.
#[derive(Debug)]
pub(in crate::sqlite) struct RunTexts {
    events: String,
    labels: Option<String>,
    error: Option<String>,
    shared: Option<String>,
    result: Option<String>,
}

impl RunTexts {
    pub(in crate::sqlite) fn of(change: &RunChange) -> Self {
        let RunProjection { error, shared, result, .. } = &change.projection;
        RunTexts {
            events: shorten(&json(&change.entry.stored_events(blob::hash))),
            labels: change.create.as_ref().map(|origin| json(&origin.labels)),
            error: error.as_ref().map(json),
            shared: shared.as_ref().map(json),
            result: result.as_ref().map(json),
        }
    }
}

/// A change of a run, and the run as the writer found it.
pub(in crate::sqlite) struct RunWrite<'c> {
    pub(in crate::sqlite) change: &'c RunChange,
    pub(in crate::sqlite) texts: &'c RunTexts,
    pub(in crate::sqlite) before: Option<RunHead>,
}

/// Checks a change; returns the run that it finds.
pub(in crate::sqlite) fn check(
    cache: &WriterCache,
    project: &Project,
    change: &RunChange,
) -> Result<Option<RunHead>, StoreError> {
    let head = cache.head(project, change.run)?;
    guard(|| Subject::Run(change.run), change.expected_len, head.map_or(Seq::ZERO, |head| head.len))?;
    let Some(origin) = &change.create else { return Ok(head) };
    if !cache.has_version(project, origin.version, origin.flow)? {
        return Err(Refusal::UnknownVersion(origin.version).into());
    }
    let Some(request) = &origin.request else { return Ok(head) };
    let first =
        cache.db().prepare_cached(REQUEST)?.query_row([request.id.as_str(), project.as_str()], |row| {
            let mut columns = SqliteColumns::of(row);
            Ok((columns.id::<RunId>()?, columns.value::<String>()?))
        });
    let Some((existing, digest)) = first.optional()? else { return Ok(head) };
    let same_request = digest == request.digest;
    Err(Refusal::RequestTaken { request: request.id.clone(), existing, same_request }.into())
}

/// Writes a change and returns the new length of the journal; `None` if its command was committed before.
pub(in crate::sqlite) fn write(
    cache: &WriterCache,
    project: &Project,
    change: &RunWrite<'_>,
    balances: Option<&str>,
) -> Result<Option<Seq>, StoreError> {
    let RunWrite { change: made, texts, before } = change;
    let RunChange { run, expected_len, create, entry, projection, snapshot, reopened } = made;
    let len = expected_len.next();
    // A new run gets its row number by the insert.
    let (no, is_new) = match before {
        Some(head) => (head.no, false),
        None => (write_row(cache, project, change, len)?, true),
    };
    if !journal::append(cache.db(), no, len, entry, &texts.events, balances)? {
        if is_new {
            cache.db().prepare_cached(UNDO_CREATE)?.execute([no])?;
        }
        return Ok(None);
    }
    if !is_new {
        write_row(cache, project, change, len)?;
    }
    if let Some(bytes) = snapshot {
        journal::keep_snapshot(cache.db(), *run, len, bytes)?;
    }
    if let Some(reopened) = reopened {
        cache.db().prepare_cached(REOPEN)?.execute(params![no, json(reopened)])?;
    }
    let is_open = projection.status.is_open();
    if is_open != before.is_some_and(|head| head.is_open) && cache.has_fired()? {
        schedule::set_running(cache.db(), Started::Run(*run), is_open)?;
    }
    debug_assert_eq!(create.is_some(), is_new, "a run is created with its first entry");
    let RunProjection { wake_at, owner, needs, .. } = *projection;
    cache.note(project, *run, RunHead { no, len, is_open, wake_at, owner, needs });
    Ok(Some(len))
}

/// Writes the row and returns its number.
fn write_row(
    cache: &WriterCache,
    project: &Project,
    change: &RunWrite<'_>,
    len: Seq,
) -> Result<i64, StoreError> {
    let RunWrite { change: RunChange { run, create, projection, .. }, texts, before } = change;
    let RunProjection { status, round, node, action, step_count, wake_at, owner, cost, needs, .. } =
        projection;
    let (len, status, step_count) = (stored(len), status.word(), stored(*step_count));
    let node = node.as_ref().map(|node| node.as_str());
    let Totals { estimated, actual, refunded, settled } = cost;
    let (error, updated_at) = (&texts.error, projection.updated_at.0);
    let step = params![
        len,
        status,
        round,
        node,
        action,
        step_count,
        estimated.0,
        actual.0,
        refunded.0,
        settled.0,
        error,
        updated_at
    ];
    let wake = wake_at.map(|at| at.0);
    if let Some(head) = before
        && head.is_open
        && projection.status.is_open()
        && head.owner == *owner
        && head.needs == *needs
    {
        if head.wake_at == *wake_at {
            cache.db().prepare_cached(STEP)?.execute([step, params![head.no]].concat().as_slice())?;
        } else {
            cache
                .db()
                .prepare_cached(STEP_AND_WAKE)?
                .execute([step, params![wake, head.no]].concat().as_slice())?;
        }
        return Ok(head.no);
    }
    let (server, epoch) = (owner.map(|owner| owner.server.key()), owner.map(|owner| stored(owner.epoch)));
    let ended_at = projection.ended_at.map(|at| at.0);
    let rest = params![wake, server, epoch, ended_at, texts.shared, texts.result, needs.map(|needs| needs.0)];
    match (before, create) {
        (Some(head), _) => {
            cache.db().prepare_cached(MOVE)?.execute([step, rest, params![head.no]].concat().as_slice())?;
            Ok(head.no)
        }
        (None, Some(origin)) => insert(cache, project, *run, [step, rest].concat(), origin, texts),
        (None, None) => unreachable!("a run without entries is created, as was checked"),
    }
}

fn insert(
    cache: &WriterCache,
    project: &Project,
    run: RunId,
    projection: Vec<&dyn rusqlite::ToSql>,
    origin: &Origin,
    texts: &RunTexts,
) -> Result<i64, StoreError> {
    let Origin { flow, version, request, labels: _, account, parent, schedule, created_at } = origin;
    let (id, flow, version) = (run.key(), flow.key(), version.key());
    let (request_id, digest) = request.as_ref().map(|request| (&request.id, &request.digest)).unzip();
    let parent_run = parent.as_ref().map(|parent| parent.run.key());
    let parent_node = parent.as_ref().map(|parent| parent.node.as_str());
    let (fence, depth) = parent.as_ref().map(|parent| (stored(parent.fence), parent.depth)).unzip();
    let root = parent.as_ref().map(|parent| parent.root().key());
    let (schedule, project) = (schedule.map(SqliteId::key), project.as_str());
    let origin = params![
        id,
        flow,
        version,
        request_id,
        digest,
        texts.labels,
        account,
        parent_run,
        parent_node,
        fence,
        depth,
        root,
        schedule,
        created_at.0,
        project
    ];
    Ok(cache.db().prepare_cached(CREATE)?.insert([&projection, origin].concat().as_slice())?)
}

#[cfg(test)]
pub(in crate::sqlite) const ALL: &[&str] = &[REQUEST, CREATE, REOPEN, UNDO_CREATE, STEP, STEP_AND_WAKE, MOVE];
