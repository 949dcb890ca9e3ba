//! Workers that have registered.

use tokio_postgres::Row;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, cells, text};
use super::link::Link;
use crate::column::json;
use crate::decode;
use crate::error::{Refusal, StoreError};
use crate::worker::{WorkerBeat, WorkerQuery, WorkerRow};

const SAVE: &str = "INSERT INTO registrations (id, name, url, kind, services, queues, load, capacity, \
     is_draining, registered_at, beat_at, project) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
     ON CONFLICT (project, id) DO UPDATE SET name = excluded.name, url = excluded.url, kind = excluded.kind, \
     services = excluded.services, queues = excluded.queues, load = excluded.load, capacity = excluded.capacity, \
     is_draining = excluded.is_draining, registered_at = excluded.registered_at, beat_at = excluded.beat_at";
const BEAT: &str = "UPDATE registrations SET url = coalesce($2, url), load = coalesce($3, load), \
     beat_at = greatest(beat_at, $4) WHERE project = $5 AND id = $1";
const DRAIN: &str = "UPDATE registrations SET is_draining = $2 WHERE project = $3 AND id = $1";
const FORGET: &str = "DELETE FROM registrations WHERE (project, id) IN \
     (SELECT project, id FROM registrations WHERE beat_at < $1 LIMIT 10000 FOR UPDATE SKIP LOCKED)";
const WORKERS: &str = "SELECT id, name, url, kind, services, queues, load, capacity, is_draining, \
     registered_at, beat_at FROM registrations WHERE project = $1 ORDER BY id";

pub(super) async fn save(db: &Link, project: &Project, row: &WorkerRow) -> Result<(), StoreError> {
    let WorkerRow { id, name, url, kind, services, queues, load, capacity, .. } = row;
    let WorkerRow { is_draining, registered_at, beat_at, .. } = row;
    let row = cells![
        text(id),
        text(name),
        text(url),
        text(kind),
        json(services),
        json(queues),
        load,
        capacity,
        is_draining,
        registered_at.0,
        beat_at.0,
        project.as_str()
    ];
    db.execute(SAVE, &row).await?;
    Ok(())
}

pub(super) async fn beat(db: &Link, project: &Project, beat: &WorkerBeat) -> Result<(), StoreError> {
    let WorkerBeat { id, url, load, at } = beat;
    let row = cells![text(id), url.as_deref().map(text), load, at.0, project.as_str()];
    match db.execute(BEAT, &row).await? {
        0 => Err(Refusal::UnknownWorker(id.clone()).into()),
        _ => Ok(()),
    }
}

pub(super) async fn drain(
    db: &Link,
    project: &Project,
    id: &str,
    is_draining: bool,
) -> Result<(), StoreError> {
    match db.execute(DRAIN, &cells![text(id), is_draining, project.as_str()]).await? {
        0 => Err(Refusal::UnknownWorker(id.to_owned()).into()),
        _ => Ok(()),
    }
}

pub(super) async fn forget(db: &Link, before: Timestamp) -> Result<(), StoreError> {
    db.execute(FORGET, &cells![before.0]).await?;
    Ok(())
}

/// There are few workers: each tells whether it is asked for.
pub(super) async fn workers(
    db: &Link,
    project: &Project,
    query: &WorkerQuery,
) -> Result<Vec<WorkerRow>, StoreError> {
    let rows = db.ask(WORKERS, &cells![project.as_str()]).await?;
    let rows = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(rows.into_iter().filter(|row| row.matches(query)).collect())
}

fn read(row: &Row) -> Result<WorkerRow, StoreError> {
    decode::worker(&mut PostgresColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, BEAT, DRAIN, FORGET, WORKERS];
