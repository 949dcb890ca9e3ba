//! Samples for charts.

use tokio_postgres::Row;
use uuid::Uuid;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, PostgresId, cells, text};
use super::link::Link;
use crate::column::bound;
use crate::decode;
use crate::error::StoreError;
use crate::sample::{SampleQuery, SampleRow};
use crate::table;

const SAVE: &str = "INSERT INTO samples (project, scope, at, server, figures) \
     SELECT $1, new.* FROM UNNEST($2::text[], $3::bigint[], $4::uuid[], $5::text[]) AS new \
     ON CONFLICT (project, scope, at, server) DO UPDATE SET figures = excluded.figures";
const LIST: &str = "SELECT scope, at, server, figures FROM samples \
     WHERE project = $1 AND scope = $2 AND at >= $3 AND at < $4 ORDER BY at, server";
const FORGET: &str = "DELETE FROM samples WHERE (project, scope, at, server) IN \
     (SELECT project, scope, at, server FROM samples WHERE at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)";

pub(super) async fn save(db: &Link, project: &Project, rows: &[SampleRow]) -> Result<(), StoreError> {
    let scopes: Vec<_> = rows.iter().map(|row| text(&row.scope)).collect();
    let times: Vec<i64> = rows.iter().map(|row| row.at.0).collect();
    let servers: Vec<Uuid> = rows.iter().map(|row| row.server.key()).collect();
    let figures: Vec<&str> = rows.iter().map(|row| row.figures.as_str()).collect();
    db.execute(SAVE, &cells![project.as_str(), scopes, times, servers, figures]).await?;
    Ok(())
}

pub(super) async fn samples(
    db: &Link,
    project: &Project,
    query: &SampleQuery,
) -> Result<Vec<SampleRow>, StoreError> {
    let read = |row: &Row| decode::sample(&mut PostgresColumns::of(row));
    let SampleQuery { scope, since, until } = query;
    let rows = db.ask(LIST, &cells![project.as_str(), text(scope), since.0, until.0]).await?;
    db.decoded(&table::SAMPLES, &rows, read)
}

/// Deletes samples from before, and returns how many.
pub(super) async fn forget(db: &Link, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    let n = db.execute(FORGET, &cells![before.0, bound(limit)]).await?;
    Ok(usize::try_from(n).unwrap_or(usize::MAX))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, LIST, FORGET];
