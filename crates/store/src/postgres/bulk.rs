//! Bulk actions.

use async_trait::async_trait;
use tokio_postgres::Row;
use uuid::Uuid;
use windlass_engine::counter::Revision;
use windlass_engine::id::BulkId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, PostgresId, cells};
use super::link::Link;
use super::{ErrorClass, Postgres, RACES_MAX, kind, sample, unless_raced};
use crate::bulk::{BulkFailure, BulkRow, BulkStore, BulkTarget};
use crate::column::{Columns, bound, json, stored};
use crate::decode;
use crate::error::{StoreError, Subject};
use crate::sample::{SampleQuery, SampleRow};
use crate::table;

const CREATE: &str = "INSERT INTO bulks (id, project, rev, state, ended_at) VALUES ($1, $2, $3, $4, $5)";
const ADD_TARGETS: &str = "INSERT INTO bulk_targets (bulk, part, targets) \
     SELECT $1, part - 1, targets FROM UNNEST($2::text[]) WITH ORDINALITY AS new (targets, part)";
const REV: &str = "SELECT rev FROM bulks WHERE id = $1 AND project = $2 FOR NO KEY UPDATE";
const SAVE: &str = "UPDATE bulks SET rev = $3, state = $4, ended_at = $5 WHERE id = $1 AND project = $2";
const ADD_FAILURES: &str = "INSERT INTO bulk_failures (bulk, no, failure) \
     SELECT $1, no, failure FROM UNNEST($2::bigint[], $3::text[]) AS new (no, failure) \
     ON CONFLICT (bulk, no) DO UPDATE SET failure = excluded.failure";
const ONE: &str = "SELECT project, id, rev, state, ended_at FROM bulks WHERE id = $1 AND project = $2";
const LIST: &str = "SELECT project, id, rev, state, ended_at FROM bulks WHERE project = $1 AND id < $2 \
     ORDER BY id DESC LIMIT $3";
const OPEN: &str =
    "SELECT project, id, rev, state, ended_at FROM bulks WHERE ended_at IS NULL ORDER BY id LIMIT $1";
const TARGETS: &str = "SELECT targets FROM bulk_targets JOIN bulks ON bulks.id = bulk \
     WHERE bulk = $1 AND part = $2 AND project = $3";
const FAILURES: &str = "SELECT bulk, no, failure FROM bulk_failures JOIN bulks ON bulks.id = bulk \
     WHERE bulk = $1 AND project = $2 ORDER BY no LIMIT $3";
const FORGET: &str = "WITH gone AS (DELETE FROM bulks WHERE id IN \
     (SELECT id FROM bulks WHERE ended_at IS NOT NULL AND ended_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id), \
     targets AS (DELETE FROM bulk_targets USING gone WHERE bulk = gone.id), \
     failures AS (DELETE FROM bulk_failures USING gone WHERE bulk = gone.id) SELECT count(*) FROM gone";

fn read(row: &Row) -> Result<BulkRow, StoreError> {
    decode::bulk(&mut PostgresColumns::of(row))
}

/// Writes a bulk action with its targets, in the caller's transaction.
pub(super) async fn create(
    db: &Link,
    project: &Project,
    row: &BulkRow,
    targets: &[Vec<BulkTarget>],
) -> Result<(), StoreError> {
    let BulkRow { project: _, id, rev, state, ended_at } = row;
    let ended_at = ended_at.map(|at| at.0);
    db.execute(CREATE, &cells![id.key(), project.as_str(), stored(*rev), json(state), ended_at]).await?;
    let targets: Vec<String> = targets.iter().map(json).collect();
    db.execute(ADD_TARGETS, &cells![id.key(), targets]).await?;
    Ok(())
}

/// Writes the progress of a bulk action, in the caller's transaction.
pub(super) async fn save(
    db: &Link,
    project: &Project,
    row: &BulkRow,
    failures: &[BulkFailure],
) -> Result<(), StoreError> {
    let BulkRow { project: _, id, rev, state, ended_at } = row;
    let found = db.ask_one(REV, &cells![id.key(), project.as_str()]).await?;
    let found = found.as_ref().map(|row| PostgresColumns::of(row).number::<u64>()).transpose()?;
    let found = Revision(found.unwrap_or_default());
    if found != *rev {
        return Err(StoreError::Conflict { what: Subject::Bulk(*id), expected: rev.0, found: found.0 });
    }
    let ended_at = ended_at.map(|at| at.0);
    db.execute(SAVE, &cells![id.key(), project.as_str(), stored(rev.next()), json(state), ended_at]).await?;
    if !failures.is_empty() {
        let numbers: Vec<i64> = failures.iter().map(|failure| stored(failure.no)).collect();
        let texts: Vec<String> = failures.iter().map(json).collect();
        db.execute(ADD_FAILURES, &cells![id.key(), numbers, texts]).await?;
    }
    Ok(())
}

pub(super) async fn bulk(db: &Link, project: &Project, id: BulkId) -> Result<Option<BulkRow>, StoreError> {
    let row = db.ask_one(ONE, &cells![id.key(), project.as_str()]).await?;
    db.one(&table::BULKS, row.as_ref(), read)
}

pub(super) async fn bulks(
    db: &Link,
    project: &Project,
    before: Option<BulkId>,
    limit: usize,
) -> Result<Vec<BulkRow>, StoreError> {
    let before = before.map_or(Uuid::max(), PostgresId::key);
    db.first_rows(&table::BULKS, LIST, limit, |limit| cells![project.as_str(), before, limit], read).await
}

pub(super) async fn open(db: &Link, limit: usize) -> Result<Vec<BulkRow>, StoreError> {
    db.first_rows(&table::BULKS, OPEN, limit, |limit| cells![limit], read).await
}

pub(super) async fn targets(
    db: &Link,
    project: &Project,
    id: BulkId,
    part: usize,
) -> Result<Vec<BulkTarget>, StoreError> {
    let row = db.ask_one(TARGETS, &cells![id.key(), bound(part), project.as_str()]).await?;
    let read = |row: &Row| decode::bulk_targets(&mut PostgresColumns::of(row));
    Ok(row.as_ref().map(read).transpose()?.unwrap_or_default())
}

pub(super) async fn failures(
    db: &Link,
    project: &Project,
    id: BulkId,
    limit: usize,
) -> Result<Vec<BulkFailure>, StoreError> {
    let read = |row: &Row| decode::bulk_failure(&mut PostgresColumns::of(row));
    let given = |limit| cells![id.key(), project.as_str(), limit];
    db.first_rows(&table::BULK_FAILURES, FAILURES, limit, given, read).await
}

/// Deletes bulk actions that ended before, and returns how many.
pub(super) async fn forget(db: &Link, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    let rows = db.ask(FORGET, &cells![before.0, bound(limit)]).await?;
    let n: u64 = rows.first().map_or(Ok(0), |row| PostgresColumns::of(row).number())?;
    Ok(usize::try_from(n).unwrap_or(usize::MAX))
}

#[async_trait]
impl BulkStore for Postgres {
    async fn create_bulk(
        &self,
        project: &Project,
        row: BulkRow,
        targets: Vec<Vec<BulkTarget>>,
    ) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(db.transact(create(&db, project, &row, &targets)))
    }

    async fn save_bulk(
        &self,
        project: &Project,
        row: BulkRow,
        failures: Vec<BulkFailure>,
    ) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(db.transact(save(&db, project, &row, &failures)))
    }

    async fn bulk(&self, project: &Project, id: BulkId) -> Result<Option<BulkRow>, StoreError> {
        self::bulk(&self.link().await?, project, id).await
    }

    async fn bulks(
        &self,
        project: &Project,
        before: Option<BulkId>,
        limit: usize,
    ) -> Result<Vec<BulkRow>, StoreError> {
        self::bulks(&self.link().await?, project, before, limit).await
    }

    async fn bulk_targets(
        &self,
        project: &Project,
        id: BulkId,
        part: usize,
    ) -> Result<Vec<BulkTarget>, StoreError> {
        self::targets(&self.link().await?, project, id, part).await
    }

    async fn bulk_failures(
        &self,
        project: &Project,
        id: BulkId,
        limit: usize,
    ) -> Result<Vec<BulkFailure>, StoreError> {
        self::failures(&self.link().await?, project, id, limit).await
    }

    async fn open_bulks(&self, limit: usize) -> Result<Vec<BulkRow>, StoreError> {
        self::open(&self.link().await?, limit).await
    }

    async fn delete_bulks(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let db = self.link().await?;
        unless_raced!(forget(&db, before, limit))
    }

    async fn save_samples(&self, project: &Project, rows: Vec<SampleRow>) -> Result<(), StoreError> {
        let db = self.link().await?;
        unless_raced!(sample::save(&db, project, &rows))
    }

    async fn samples(&self, project: &Project, query: SampleQuery) -> Result<Vec<SampleRow>, StoreError> {
        sample::samples(&self.link().await?, project, &query).await
    }

    async fn delete_samples(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let db = self.link().await?;
        unless_raced!(sample::forget(&db, before, limit))
    }
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[CREATE, ADD_TARGETS, REV, SAVE, ADD_FAILURES, ONE, LIST, OPEN, TARGETS, FAILURES, FORGET];
