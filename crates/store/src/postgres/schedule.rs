//! Schedules and their starts.

use std::collections::BTreeSet;

use tokio_postgres::Row;
use uuid::Uuid;
use windlass_engine::counter::Revision;
use windlass_engine::id::ScheduleId;
use windlass_engine::project::Project;
use windlass_engine::schedule::Firing;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, PostgresId, cells, text, unnest};
use super::guard;
use super::link::{BoundStatement, Link};
use super::list::{self, Conditions, Source};
use super::read_set::ReadSet;
use crate::column::{Columns, bound, json, stored};
use crate::commit::ScheduleChange;
use crate::decode;
use crate::error::{Refusal, StoreError, Subject};
use crate::page::{Page, Part};
use crate::schedule::{FiringRow, RUNNING_MAX, Scheduled, Started};
use crate::table;

// With the open starts of each, as one text: a second query would be of another moment.
macro_rules! schedules {
    ($rest:literal, $most:literal) => {
        concat!(
            "SELECT project, rev, rule, name, target, progress, next_at, history, created_at, updated_at, \
             (SELECT json_agg(json_build_array(is_run, started))::text FROM ( \
             SELECT is_run, started FROM firings WHERE schedule = schedules.id AND is_running \
             ORDER BY slot, is_manual LIMIT ",
            $most,
            ") AS its), id FROM schedules ",
            $rest
        )
    };
}

const ONE: &str = schedules!("WHERE id = $1 AND project = $3", "$2");
// The statement of a list numbers its parameters itself: the number of open starts is written out.
const _: () = assert!(RUNNING_MAX == 1_000);
const SOURCE: Source<Scheduled, ScheduleId> = Source {
    table: table::SCHEDULES,
    select: schedules!("", "1000"),
    count: "SELECT count(*) FROM schedules",
    read,
    place: Scheduled::place,
};
const DUE: &str = schedules!("WHERE next_at <= $1 ORDER BY next_at, id LIMIT $2", "$3");
// A transaction that changes or fires a schedule locks its row.
const REVS: &str =
    "SELECT id, rev FROM schedules WHERE id = ANY($1) AND project = $2 ORDER BY id FOR NO KEY UPDATE";
const INSERT: &str = "INSERT INTO schedules (id, rev, name, rule, target, progress, next_at, history, created_at, \
     updated_at, project) SELECT new.*, $11::text FROM UNNEST($1::uuid[], $2::bigint[], $3::text[], $4::text[], \
     $5::text[], $6::text[], $7::bigint[], $8::text[], $9::bigint[], $10::bigint[]) AS new";
const UPDATE: &str = "UPDATE schedules SET rev = new.rev, name = new.name, rule = new.rule, target = new.target, \
     progress = new.progress, next_at = new.next_at, history = new.history, created_at = new.created_at, \
     updated_at = new.updated_at FROM UNNEST($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], \
     $6::text[], $7::bigint[], $8::text[], $9::bigint[], $10::bigint[]) AS new (id, rev, name, rule, target, \
     progress, next_at, history, created_at, updated_at) WHERE schedules.id = new.id";
const DELETE: &str = "DELETE FROM schedules WHERE id = ANY($1)";
const FIRED: &str = "SELECT firings.schedule, firings.slot, firings.is_manual FROM firings \
     JOIN UNNEST($1::uuid[], $2::bigint[], $3::boolean[]) AS asked (schedule, slot, is_manual) \
     ON asked.schedule = firings.schedule AND asked.slot = firings.slot AND asked.is_manual = firings.is_manual";
// After their starts are written, so that it is known whether those are open.
const FIRE: &str = "INSERT INTO firings (schedule, slot, is_manual, is_run, started, is_running) \
     SELECT schedule, slot, is_manual, is_run, started, CASE WHEN is_run \
     THEN EXISTS (SELECT 1 FROM runs WHERE id = started AND ended_at IS NULL) \
     ELSE EXISTS (SELECT 1 FROM jobs WHERE id = started AND is_open) END \
     FROM UNNEST($1::uuid[], $2::bigint[], $3::boolean[], $4::boolean[], $5::uuid[]) \
     AS new (schedule, slot, is_manual, is_run, started)";
const SET_RUNNING: &str = "UPDATE firings SET is_running = new.is_running \
     FROM UNNEST($1::uuid[], $2::boolean[], $3::boolean[]) AS new (started, is_run, is_running) \
     WHERE firings.started = new.started AND firings.is_run = new.is_run AND firings.is_running <> new.is_running";

pub(super) fn revs<'a>(ids: &BTreeSet<ScheduleId>) -> BoundStatement<'a> {
    BoundStatement::new(REVS, cells![ids.iter().map(|id| id.key()).collect::<Vec<_>>()])
}

pub(super) fn read_rev(row: &Row) -> Result<(ScheduleId, Revision), StoreError> {
    let mut columns = PostgresColumns::of(row);
    Ok((columns.id()?, columns.number()?))
}

pub(super) fn fired<'a>(firings: &BTreeSet<Firing>) -> BoundStatement<'a> {
    BoundStatement::new(
        FIRED,
        unnest!(firings, |firing| [firing.schedule.key(), firing.slot.0, firing.manual]),
    )
}

pub(super) fn read_fired(row: &Row) -> Result<Firing, StoreError> {
    let mut columns = PostgresColumns::of(row);
    Ok(Firing { schedule: columns.id()?, slot: columns.time()?, manual: columns.value()? })
}

/// Whether the changes and firings may be made.
pub(super) fn check(
    read_set: &ReadSet,
    changes: &[ScheduleChange],
    firings: &[FiringRow],
) -> Result<(), StoreError> {
    let rev = |id: ScheduleId| read_set.schedules.get(&id).copied();
    for ScheduleChange { expected_rev, row, .. } in changes {
        guard(|| Subject::Schedule(row.id()), *expected_rev, rev(row.id()).unwrap_or_default())?;
    }
    for FiringRow { firing, .. } in firings {
        let is_new = changes.iter().any(|change| change.row.id() == firing.schedule && !change.delete);
        if !is_new && rev(firing.schedule).is_none() {
            return Err(Refusal::UnknownSchedule(firing.schedule).into());
        }
        if read_set.firings.contains(firing) {
            return Err(Refusal::AlreadyFired(*firing).into());
        }
    }
    Ok(())
}

fn written<'c>(sql: &'static str, changes: &[&'c ScheduleChange]) -> BoundStatement<'c> {
    let cells = unnest!(changes, |change| [
        change.row.id().key(),
        stored(change.expected_rev.next()),
        text(&change.row.name),
        json(&change.row.schedule),
        json(&change.row.target),
        json(&change.row.progress),
        change.row.next_at.map(|at| at.0),
        json(&change.row.history),
        change.row.created_at.0,
        change.row.updated_at.0,
    ]);
    BoundStatement::new(sql, cells)
}

pub(super) fn insert<'c>(changes: &[&'c ScheduleChange]) -> BoundStatement<'c> {
    written(INSERT, changes)
}

pub(super) fn update<'c>(changes: &[&'c ScheduleChange]) -> BoundStatement<'c> {
    written(UPDATE, changes)
}

pub(super) fn delete<'c>(ids: Vec<Uuid>) -> BoundStatement<'c> {
    BoundStatement::new(DELETE, cells![ids])
}

pub(super) fn fire<'c>(rows: &[&FiringRow]) -> BoundStatement<'c> {
    let cells = unnest!(rows, |row| [
        row.firing.schedule.key(),
        row.firing.slot.0,
        row.firing.manual,
        columns(row.started).0,
        columns(row.started).1,
    ]);
    BoundStatement::new(FIRE, cells)
}

/// A start has ended, or is open again.
pub(super) fn set_running<'c>(rows: &[(Started, bool)]) -> BoundStatement<'c> {
    let cells =
        unnest!(rows, |(started, is_running)| [columns(*started).1, columns(*started).0, *is_running]);
    BoundStatement::new(SET_RUNNING, cells)
}

fn columns(started: Started) -> (bool, Uuid) {
    match started {
        Started::Run(id) => (true, id.key()),
        Started::Job(id) => (false, id.key()),
    }
}

pub(super) async fn due(db: &Link, now: Timestamp, limit: usize) -> Result<Vec<Scheduled>, StoreError> {
    let given = |limit| cells![now.0, limit, bound(RUNNING_MAX)];
    db.first_rows(&table::SCHEDULES, DUE, limit, given, read).await
}

pub(super) async fn schedule(
    db: &Link,
    project: &Project,
    id: ScheduleId,
) -> Result<Option<Scheduled>, StoreError> {
    let rows = db.ask(ONE, &cells![id.key(), bound(RUNNING_MAX), project.as_str()]).await?;
    db.one(&table::SCHEDULES, rows.first(), read)
}

pub(super) async fn schedules(
    db: &Link,
    project: &Project,
    part: &Part,
) -> Result<Page<Scheduled>, StoreError> {
    list::page(db, &SOURCE, &Conditions::of(project), part, None).await
}

fn read(row: &Row) -> Result<Scheduled, StoreError> {
    let mut columns = PostgresColumns::of(row);
    let mut scheduled = decode::scheduled(&mut columns)?;
    let running: Option<Vec<(bool, Uuid)>> = columns.json_or_none()?;
    let running = running.unwrap_or_default().into_iter();
    scheduled.running = running.map(|(is_run, id)| decode::started(is_run, id)).collect();
    Ok(scheduled)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[ONE, DUE, REVS, INSERT, UPDATE, DELETE, FIRED, FIRE, SET_RUNNING];
