//! Schedules and their firings.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::counter::Revision;
use windlass_engine::id::ScheduleId;
use windlass_engine::project::Project;
use windlass_engine::schedule::Firing;
use windlass_engine::time::Timestamp;

use super::column::{Key, SqliteColumns, SqliteId};
use super::guard;
use super::list::{self, ListConditions, ListSelect};
use super::readers::ReadConnection;
use crate::column::{Columns, bound, json, stored};
use crate::commit::ScheduleChange;
use crate::decode;
use crate::error::{Refusal, StoreError, Subject};
use crate::page::{Page, Part};
use crate::schedule::{FiringRow, RUNNING_MAX, ScheduleRow, Scheduled, Started};
use crate::table;

macro_rules! schedules {
    ($rest:literal) => {
        concat!(
            "SELECT project, rev, rule, name, target, progress, next_at, history, created_at, updated_at, id \
             FROM schedules ",
            $rest
        )
    };
}

const ONE: &str = schedules!("WHERE id = ?1 AND project = ?2");
const SOURCE: ListSelect = ListSelect {
    table: table::SCHEDULES,
    select: schedules!(""),
    count: "SELECT count(*) FROM schedules",
    created: "created_at",
    changed: "updated_at",
    id: "id",
};
const DUE: &str = schedules!("WHERE next_at <= ?1 ORDER BY next_at, id LIMIT ?2");
const REV: &str = "SELECT rev FROM schedules WHERE id = ?1 AND project = ?2";
const SAVE: &str = "INSERT OR REPLACE INTO schedules (id, rev, name, rule, target, progress, next_at, \
     history, created_at, updated_at, project) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
const DELETE: &str = "DELETE FROM schedules WHERE id = ?1 AND project = ?2";
const FIRED: &str = "SELECT 1 FROM firings WHERE schedule = ?1 AND slot = ?2 AND is_manual = ?3";
const FIRE: &str = "INSERT INTO firings (schedule, slot, is_manual, is_run, started, is_running) \
     VALUES (?1, ?2, ?3, ?4, ?5, CASE WHEN ?4 = 1 \
     THEN EXISTS (SELECT 1 FROM runs WHERE id = ?5 AND ended_at IS NULL) \
     ELSE EXISTS (SELECT 1 FROM jobs WHERE id = ?5 AND is_open = 1) END)";
// The index is named because SQLite would otherwise walk through all firings of the schedule by primary key.
const RUNNING: &str = "SELECT is_run, started FROM firings INDEXED BY firings_running \
     WHERE schedule = ?1 AND is_running = 1 ORDER BY slot, is_manual LIMIT ?2";
const SET_RUNNING: &str = "UPDATE firings SET is_running = ?3 \
     WHERE started = ?1 AND is_run = ?2 AND is_running <> ?3";

const FORGET: &str = "DELETE FROM firings WHERE started = ?1 AND is_run = ?2";

/// Checks the revisions of schedules and that no slot fires twice.
pub(super) fn check(
    db: &Connection,
    project: &Project,
    changes: &[ScheduleChange],
    firings: &[FiringRow],
) -> Result<(), StoreError> {
    for ScheduleChange { expected_rev, row, .. } in changes {
        let found = rev(db, project, row.id())?.unwrap_or_default();
        guard(|| Subject::Schedule(row.id()), *expected_rev, found)?;
    }
    for FiringRow { firing, .. } in firings {
        let Firing { schedule, slot, manual } = firing;
        let is_new = changes.iter().any(|change| change.row.id() == *schedule && !change.delete);
        if !is_new && rev(db, project, *schedule)?.is_none() {
            return Err(Refusal::UnknownSchedule(*schedule).into());
        }
        if db.prepare_cached(FIRED)?.exists(params![schedule.key(), slot.0, manual])? {
            return Err(Refusal::AlreadyFired(*firing).into());
        }
    }
    Ok(())
}

fn rev(db: &Connection, project: &Project, id: ScheduleId) -> Result<Option<Revision>, StoreError> {
    let id = params![id.key(), project.as_str()];
    Ok(db.prepare_cached(REV)?.query_row(id, |row| SqliteColumns::of(row).number()).optional()?)
}

pub(super) fn write(db: &Connection, project: &Project, change: &ScheduleChange) -> Result<(), StoreError> {
    let ScheduleChange { expected_rev, row, delete } = change;
    if *delete {
        db.prepare_cached(DELETE)?.execute(params![row.id().key(), project.as_str()])?;
        return Ok(());
    }
    let ScheduleRow { schedule, name, target, progress, next_at, history, created_at, updated_at } = row;
    let (id, rev, next_at) = (schedule.id.key(), stored(expected_rev.next()), next_at.map(|at| at.0));
    let (rule, target, progress, history) = (json(schedule), json(target), json(progress), json(history));
    let (created_at, updated_at, project) = (created_at.0, updated_at.0, project.as_str());
    let row =
        params![id, rev, name, rule, target, progress, next_at, history, created_at, updated_at, project];
    db.prepare_cached(SAVE)?.execute(row)?;
    Ok(())
}

/// Writes a firing, after the run or job that it started: the row says whether that is open.
pub(super) fn fire(db: &Connection, row: &FiringRow) -> Result<(), StoreError> {
    let FiringRow { firing: Firing { schedule, slot, manual }, started } = row;
    let (is_run, id) = columns(*started);
    db.prepare_cached(FIRE)?.execute(params![schedule.key(), slot.0, manual, is_run, id])?;
    Ok(())
}

fn columns(started: Started) -> (bool, Key) {
    match started {
        Started::Run(id) => (true, id.key()),
        Started::Job(id) => (false, id.key()),
    }
}

/// Updates the firing of a run or job that has ended or is open again.
pub(super) fn set_running(db: &Connection, started: Started, is_running: bool) -> Result<(), StoreError> {
    let (is_run, id) = columns(started);
    db.prepare_cached(SET_RUNNING)?.execute(params![id, is_run, is_running])?;
    Ok(())
}

/// Deletes the firing of a deleted run or job. The slot stays decided: the schedule's progress has passed it.
pub(super) fn forget_firing(db: &Connection, started: Started) -> Result<(), StoreError> {
    let (is_run, id) = columns(started);
    db.prepare_cached(FORGET)?.execute(params![id, is_run])?;
    Ok(())
}

pub(super) fn due(db: &ReadConnection, now: Timestamp, limit: usize) -> Result<Vec<Scheduled>, StoreError> {
    let given = |limit: i64| vec![now.0.into(), limit.into()];
    db.first_rows(&table::SCHEDULES, DUE, limit, given, |row| read(&db.connection, row))
}

pub(super) fn schedule(
    db: &ReadConnection,
    project: &Project,
    id: ScheduleId,
) -> Result<Option<Scheduled>, StoreError> {
    db.one(&table::SCHEDULES, ONE, params![id.key(), project.as_str()], |row| read(&db.connection, row))
}

pub(super) fn schedules(
    db: &ReadConnection,
    project: &Project,
    part: &Part,
) -> Result<Page<Scheduled>, StoreError> {
    let read = |row: &Row<'_>| read(&db.connection, row);
    let place = |scheduled: &Scheduled| scheduled.place(part.order);
    list::page(db, &SOURCE, ListConditions::of(project), part, None, &read, &place)
}

fn read(db: &Connection, row: &Row<'_>) -> rusqlite::Result<Scheduled> {
    let mut scheduled = decode::scheduled(&mut SqliteColumns::of(row))?;
    let started = |row: &Row<'_>| {
        let mut columns = SqliteColumns::of(row);
        Ok(decode::started(columns.flag()?, columns.uuid()?))
    };
    let mut statement = db.prepare_cached(RUNNING)?;
    let running = statement.query_map(params![scheduled.row.id().key(), bound(RUNNING_MAX)], started)?;
    scheduled.running = running.collect::<rusqlite::Result<_>>()?;
    Ok(scheduled)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[ONE, DUE, REV, SAVE, DELETE, FIRED, FIRE, RUNNING, SET_RUNNING, FORGET];
