//! Bulk actions.

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use windlass_engine::counter::Revision;
use windlass_engine::id::BulkId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{Key, SqliteColumns, SqliteId};
use super::readers::ReadConnection;
use super::{Sqlite, guard, sample};
use crate::bulk::{BulkFailure, BulkRow, BulkStore, BulkTarget};
use crate::column::{bound, json, stored};
use crate::decode;
use crate::error::{StoreError, Subject};
use crate::sample::{SampleQuery, SampleRow};
use crate::table;

const CREATE: &str = "INSERT INTO bulks (id, project, rev, state, ended_at) VALUES (?1, ?2, ?3, ?4, ?5)";
const ADD_TARGETS: &str = "INSERT INTO bulk_targets (bulk, part, targets) VALUES (?1, ?2, ?3)";
const REV: &str = "SELECT rev FROM bulks WHERE id = ?1 AND project = ?2";
const SAVE: &str = "UPDATE bulks SET rev = ?3, state = ?4, ended_at = ?5 WHERE id = ?1 AND project = ?2";
const ADD_FAILURE: &str = "INSERT OR REPLACE INTO bulk_failures (bulk, no, failure) VALUES (?1, ?2, ?3)";
const ONE: &str = "SELECT project, id, rev, state, ended_at FROM bulks WHERE id = ?1 AND project = ?2";
const LIST: &str = "SELECT project, id, rev, state, ended_at FROM bulks WHERE project = ?1 AND id < ?2 \
     ORDER BY id DESC LIMIT ?3";
const OPEN: &str =
    "SELECT project, id, rev, state, ended_at FROM bulks WHERE ended_at IS NULL ORDER BY id LIMIT ?1";
const TARGETS: &str = "SELECT targets FROM bulk_targets JOIN bulks ON bulks.id = bulk \
     WHERE bulk = ?1 AND part = ?2 AND project = ?3";
const FAILURES: &str = "SELECT bulk, no, failure FROM bulk_failures JOIN bulks ON bulks.id = bulk \
     WHERE bulk = ?1 AND project = ?2 ORDER BY no LIMIT ?3";
const FORGET: &str = "DELETE FROM bulks WHERE id IN \
     (SELECT id FROM bulks WHERE ended_at IS NOT NULL AND ended_at < ?1 LIMIT ?2) RETURNING id";
const FORGET_TARGETS: &str = "DELETE FROM bulk_targets WHERE bulk = ?1";
const FORGET_FAILURES: &str = "DELETE FROM bulk_failures WHERE bulk = ?1";

/// The largest id: lists begin before it.
const LAST: Key = [0xff; 16];

fn read(row: &Row<'_>) -> rusqlite::Result<BulkRow> {
    decode::bulk(&mut SqliteColumns::of(row))
}

pub(super) fn create(
    db: &Connection,
    project: &Project,
    row: &BulkRow,
    targets: &[Vec<BulkTarget>],
) -> Result<(), StoreError> {
    let BulkRow { project: _, id, rev, state, ended_at } = row;
    let ended_at = ended_at.map(|at| at.0);
    db.prepare_cached(CREATE)?.execute(params![
        id.key(),
        project.as_str(),
        stored(*rev),
        json(state),
        ended_at
    ])?;
    for (part, targets) in targets.iter().enumerate() {
        db.prepare_cached(ADD_TARGETS)?.execute(params![id.key(), bound(part), json(&targets)])?;
    }
    Ok(())
}

pub(super) fn save(
    db: &Connection,
    project: &Project,
    row: &BulkRow,
    failures: &[BulkFailure],
) -> Result<(), StoreError> {
    let BulkRow { project: _, id, rev, state, ended_at } = row;
    let mut found = db.prepare_cached(REV)?;
    let mut found = found.query(params![id.key(), project.as_str()])?;
    let found = match found.next()? {
        Some(row) => Revision(row.get::<_, i64>(0)?.cast_unsigned()),
        None => Revision::ZERO,
    };
    guard(|| Subject::Bulk(*id), *rev, found)?;
    let next = params![id.key(), project.as_str(), stored(rev.next()), json(state), ended_at.map(|at| at.0)];
    db.prepare_cached(SAVE)?.execute(next)?;
    for failure in failures {
        db.prepare_cached(ADD_FAILURE)?.execute(params![id.key(), stored(failure.no), json(failure)])?;
    }
    Ok(())
}

pub(super) fn bulk(
    db: &ReadConnection,
    project: &Project,
    id: BulkId,
) -> Result<Option<BulkRow>, StoreError> {
    db.one(&table::BULKS, ONE, params![id.key(), project.as_str()], read)
}

pub(super) fn bulks(
    db: &ReadConnection,
    project: &Project,
    before: Option<BulkId>,
    limit: usize,
) -> Result<Vec<BulkRow>, StoreError> {
    let before = before.map_or(LAST, SqliteId::key).to_vec();
    let project = project.as_str().to_owned();
    let given = |limit: i64| vec![project.clone().into(), before.clone().into(), limit.into()];
    db.first_rows(&table::BULKS, LIST, limit, given, read)
}

pub(super) fn open(db: &ReadConnection, limit: usize) -> Result<Vec<BulkRow>, StoreError> {
    db.first_rows(&table::BULKS, OPEN, limit, |limit: i64| vec![limit.into()], read)
}

pub(super) fn targets(
    db: &Connection,
    project: &Project,
    id: BulkId,
    part: usize,
) -> Result<Vec<BulkTarget>, StoreError> {
    let mut statement = db.prepare_cached(TARGETS)?;
    let mut rows = statement.query(params![id.key(), bound(part), project.as_str()])?;
    match rows.next()? {
        Some(row) => Ok(decode::bulk_targets(&mut SqliteColumns::of(row))?),
        None => Ok(Vec::new()),
    }
}

pub(super) fn failures(
    db: &ReadConnection,
    project: &Project,
    id: BulkId,
    limit: usize,
) -> Result<Vec<BulkFailure>, StoreError> {
    let read = |row: &Row<'_>| decode::bulk_failure(&mut SqliteColumns::of(row));
    let (id, project) = (id.key().to_vec(), project.as_str().to_owned());
    let given = |limit: i64| vec![id.clone().into(), project.clone().into(), limit.into()];
    db.first_rows(&table::BULK_FAILURES, FAILURES, limit, given, read)
}

/// Deletes bulk actions that ended before, and returns how many.
pub(super) fn forget(db: &Connection, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    let mut statement = db.prepare_cached(FORGET)?;
    let gone = statement.query_map(params![before.0, bound(limit)], |row| row.get::<_, Key>(0))?;
    let gone = gone.collect::<rusqlite::Result<Vec<_>>>()?;
    for id in &gone {
        db.prepare_cached(FORGET_TARGETS)?.execute([id])?;
        db.prepare_cached(FORGET_FAILURES)?.execute([id])?;
    }
    Ok(gone.len())
}

#[async_trait]
impl BulkStore for Sqlite {
    async fn create_bulk(
        &self,
        project: &Project,
        row: BulkRow,
        targets: Vec<Vec<BulkTarget>>,
    ) -> Result<(), StoreError> {
        let project = project.clone();
        self.writer.write(move |cache| self::create(cache.db(), &project, &row, &targets))?.await
    }

    async fn save_bulk(
        &self,
        project: &Project,
        row: BulkRow,
        failures: Vec<BulkFailure>,
    ) -> Result<(), StoreError> {
        let project = project.clone();
        self.writer.write(move |cache| self::save(cache.db(), &project, &row, &failures))?.await
    }

    async fn bulk(&self, project: &Project, id: BulkId) -> Result<Option<BulkRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| self::bulk(db, &project, id)).await
    }

    async fn bulks(
        &self,
        project: &Project,
        before: Option<BulkId>,
        limit: usize,
    ) -> Result<Vec<BulkRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| self::bulks(db, &project, before, limit)).await
    }

    async fn bulk_targets(
        &self,
        project: &Project,
        id: BulkId,
        part: usize,
    ) -> Result<Vec<BulkTarget>, StoreError> {
        let project = project.clone();
        self.read(move |db| self::targets(&db.connection, &project, id, part)).await
    }

    async fn bulk_failures(
        &self,
        project: &Project,
        id: BulkId,
        limit: usize,
    ) -> Result<Vec<BulkFailure>, StoreError> {
        let project = project.clone();
        self.read(move |db| self::failures(db, &project, id, limit)).await
    }

    async fn open_bulks(&self, limit: usize) -> Result<Vec<BulkRow>, StoreError> {
        self.read(move |db| self::open(db, limit)).await
    }

    async fn delete_bulks(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.writer.write(move |cache| self::forget(cache.db(), before, limit))?.await
    }

    async fn save_samples(&self, project: &Project, rows: Vec<SampleRow>) -> Result<(), StoreError> {
        let project = project.clone();
        self.writer.write(move |cache| sample::save(cache.db(), &project, &rows))?.await
    }

    async fn samples(&self, project: &Project, query: SampleQuery) -> Result<Vec<SampleRow>, StoreError> {
        let project = project.clone();
        self.read(move |db| sample::samples(db, &project, &query)).await
    }

    async fn delete_samples(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.writer.write(move |cache| sample::forget(cache.db(), before, limit))?.await
    }
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[
    CREATE,
    ADD_TARGETS,
    REV,
    SAVE,
    ADD_FAILURE,
    ONE,
    LIST,
    OPEN,
    TARGETS,
    FAILURES,
    FORGET,
    FORGET_TARGETS,
    FORGET_FAILURES,
];
