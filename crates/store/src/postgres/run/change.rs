//! One more entry of a run.

use std::collections::HashMap;

use tokio_postgres::Row;
use windlass_engine::counter::Seq;
use windlass_engine::id::{FlowId, RunId, VersionId};

use crate::blob;
use crate::column::{Columns, json, stored};
use crate::commit::RunChange;
use crate::error::{Refusal, StoreError, Subject};
use crate::postgres::column::{PostgresColumns, PostgresId, cells, text, unnest};
use crate::postgres::guard;
use crate::postgres::link::BoundStatement;
use crate::postgres::read_set::ReadSet;
use crate::projection::Reopened;
use crate::run::{Origin, RunProjection};

// A transaction that appends to a journal locks the run's row. The project is compared as an expression, which no index
// serves: the planner, whose statistics of a table that grows quickly are old, would read all runs of the project.
const HEADS: &str = "SELECT id, len, ended_at IS NULL FROM runs WHERE id = ANY($1) AND project || '' = $2 \
     ORDER BY id FOR NO KEY UPDATE";
const REQUESTS: &str =
    "SELECT request, id, request_digest FROM runs WHERE project = $2 AND request = ANY($1)";
const VERSIONS: &str = "SELECT id, flow FROM versions WHERE id = ANY($1) AND project = $2";
const INSERT: &str = "INSERT INTO runs (id, len, status, round, node, action, step_count, wake_at, owner_server, owner_epoch, \
     cost_estimated, cost_actual, cost_refunded, cost_settled, error, shared, result, updated_at, ended_at, \
     settled_at, needs, flow, version, request, request_digest, labels, account, parent_run, parent_node, \
     parent_fence, parent_depth, root, schedule, created_at, project) SELECT new.*, $35::text FROM UNNEST($1::uuid[], $2::bigint[], \
     $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::uuid[], $10::bigint[], \
     $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::text[], $17::text[], \
     $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::uuid[], $23::uuid[], $24::text[], \
     $25::text[], $26::text[], $27::text[], $28::uuid[], $29::text[], $30::bigint[], $31::bigint[], \
     $32::uuid[], $33::uuid[], $34::bigint[]) AS new";
const UPDATE: &str = "UPDATE runs SET len = new.len, status = new.status, round = new.round, node = new.node, action = \
     new.action, step_count = new.step_count, wake_at = new.wake_at, owner_server = new.owner_server, \
     owner_epoch = new.owner_epoch, cost_estimated = new.cost_estimated, cost_actual = new.cost_actual, \
     cost_refunded = new.cost_refunded, cost_settled = new.cost_settled, error = new.error, shared = \
     new.shared, result = new.result, updated_at = new.updated_at, ended_at = new.ended_at, settled_at = \
     new.settled_at, needs = new.needs FROM UNNEST($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], \
     $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::uuid[], $10::bigint[], $11::bigint[], \
     $12::bigint[], $13::bigint[], $14::bigint[], $15::text[], $16::text[], $17::text[], $18::bigint[], \
     $19::bigint[], $20::bigint[], $21::bigint[]) AS new (id, len, status, round, node, action, step_count, \
     wake_at, owner_server, owner_epoch, cost_estimated, cost_actual, cost_refunded, cost_settled, error, \
     shared, result, updated_at, ended_at, settled_at, needs) WHERE runs.id = new.id";
const REOPEN: &str = "UPDATE runs SET reopened = new.reopened FROM UNNEST($1::uuid[], $2::text[]) AS new (id, reopened) \
     WHERE runs.id = new.id";

/// The stored state that a change of a run depends on: the length that guards it, and whether it is open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::postgres) struct LockedRun {
    pub(in crate::postgres) len: Seq,
    pub(in crate::postgres) is_open: bool,
}

/// The texts of a change.
#[derive(Debug)]
pub(in crate::postgres) struct RunTexts {
    pub(in crate::postgres) events: String,
    labels: Option<String>,
    error: Option<String>,
    shared: Option<String>,
    result: Option<String>,
}

impl RunTexts {
    pub(in crate::postgres) fn of(change: &RunChange) -> Self {
        let RunProjection { error, shared, result, .. } = &change.projection;
        RunTexts {
            events: json(&change.entry.stored_events(blob::hash)),
            labels: change.create.as_ref().map(|origin| json(&origin.labels)),
            error: error.as_ref().map(json),
            shared: shared.as_ref().map(json),
            result: result.as_ref().map(json),
        }
    }
}

/// A run as it is after the last of its changes in a group.
pub(in crate::postgres) struct RunWrite<'c> {
    pub(in crate::postgres) len: Seq,
    pub(in crate::postgres) change: &'c RunChange,
    pub(in crate::postgres) texts: &'c RunTexts,
    /// Its origin, if it is new.
    pub(in crate::postgres) origin: Option<(&'c Origin, &'c RunTexts)>,
}

pub(in crate::postgres) fn heads<'a>(runs: impl Iterator<Item = RunId>) -> BoundStatement<'a> {
    BoundStatement::new(HEADS, cells![runs.map(PostgresId::key).collect::<Vec<_>>()])
}

impl LockedRun {
    pub(in crate::postgres) fn read(row: &Row) -> Result<(RunId, LockedRun), StoreError> {
        let mut columns = PostgresColumns::of(row);
        Ok((columns.id()?, LockedRun { len: columns.number()?, is_open: columns.value()? }))
    }
}

pub(in crate::postgres) fn requests<'a>(requests: impl Iterator<Item = &'a str>) -> BoundStatement<'a> {
    BoundStatement::new(REQUESTS, cells![requests.map(text).collect::<Vec<_>>()])
}

pub(in crate::postgres) fn versions<'a>(versions: impl Iterator<Item = VersionId>) -> BoundStatement<'a> {
    BoundStatement::new(VERSIONS, cells![versions.map(PostgresId::key).collect::<Vec<_>>()])
}

/// Whether the change may be made.
pub(in crate::postgres) fn check(read_set: &ReadSet, change: &RunChange) -> Result<(), StoreError> {
    let head = read_set.runs.get(&change.run);
    guard(|| Subject::Run(change.run), change.expected_len, head.map_or(Seq::ZERO, |head| head.len))?;
    let Some(origin) = &change.create else { return Ok(()) };
    check_origin(&read_set.versions, &read_set.requests, origin)
}

fn check_origin(
    versions: &HashMap<VersionId, FlowId>,
    requests: &HashMap<String, (RunId, String)>,
    origin: &Origin,
) -> Result<(), StoreError> {
    if versions.get(&origin.version) != Some(&origin.flow) {
        return Err(Refusal::UnknownVersion(origin.version).into());
    }
    let Some(request) = &origin.request else { return Ok(()) };
    let Some((existing, digest)) = requests.get(&request.id) else { return Ok(()) };
    let (existing, same_request) = (*existing, *digest == request.digest);
    Err(Refusal::RequestTaken { request: request.id.clone(), existing, same_request }.into())
}

/// Where runs stand: the columns that both statements have, in order.
macro_rules! projection {
    ($rows:expr) => {
        unnest!($rows, |row| [
            row.change.run.key(),
            stored(row.len),
            row.change.projection.status.word(),
            i64::from(row.change.projection.round),
            row.change.projection.node.as_ref().map(|node| text(node.as_str())),
            row.change.projection.action.as_deref().map(text),
            stored(row.change.projection.step_count),
            row.change.projection.wake_at.map(|at| at.0),
            row.change.projection.owner.map(|owner| owner.server.key()),
            row.change.projection.owner.map(|owner| stored(owner.epoch)),
            row.change.projection.cost.estimated.0,
            row.change.projection.cost.actual.0,
            row.change.projection.cost.refunded.0,
            row.change.projection.cost.settled.0,
            row.texts.error.as_deref(),
            row.texts.shared.as_deref(),
            row.texts.result.as_deref(),
            row.change.projection.updated_at.0,
            row.change.projection.ended_at.map(|at| at.0),
            row.change.projection.ended_at.map(|_| row.change.projection.updated_at.0),
            row.change.projection.needs.map(|needs| needs.0),
        ])
    };
}

pub(in crate::postgres) fn update<'c>(rows: &[&RunWrite<'c>]) -> BoundStatement<'c> {
    BoundStatement::new(UPDATE, projection!(rows))
}

/// Stores the nodes that retries and reruns have opened again.
pub(in crate::postgres) fn reopen<'c>(rows: &[(RunId, &'c Reopened)]) -> BoundStatement<'c> {
    BoundStatement::new(REOPEN, unnest!(rows, |(run, reopened)| [run.key(), json(reopened)]))
}

/// Writes runs that are new: all of these have an origin.
pub(in crate::postgres) fn insert<'c>(rows: &[&RunWrite<'c>]) -> BoundStatement<'c> {
    let origins: Vec<(&'c Origin, &'c RunTexts)> = rows.iter().filter_map(|row| row.origin).collect();
    let mut cells = projection!(rows);
    cells.extend(unnest!(origins, |(origin, texts)| [
        origin.flow.key(),
        origin.version.key(),
        origin.request.as_ref().map(|request| text(&request.id)),
        origin.request.as_ref().map(|request| request.digest.as_str()),
        texts.labels.as_deref(),
        origin.account.as_deref().map(text),
        origin.parent.as_ref().map(|parent| parent.run.key()),
        origin.parent.as_ref().map(|parent| text(parent.node.as_str())),
        origin.parent.as_ref().map(|parent| stored(parent.fence)),
        origin.parent.as_ref().map(|parent| i64::from(parent.depth)),
        origin.parent.as_ref().map(|parent| parent.root().key()),
        origin.schedule.map(PostgresId::key),
        origin.created_at.0,
    ]));
    BoundStatement::new(INSERT, cells)
}

#[cfg(test)]
pub(in crate::postgres) const ALL: &[&str] = &[HEADS, REQUESTS, VERSIONS, INSERT, UPDATE, REOPEN];
