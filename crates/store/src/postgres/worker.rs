//! Workers that have registered.

use tokio_postgres::Row;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, cells, text};
use super::link::Link;
use crate::column::{Columns, bound, json};
use crate::decode;
use crate::error::{Refusal, StoreError};
use crate::table;
use crate::worker::{WorkerBeat, WorkerQuery, WorkerRow};

const SAVE: &str = "INSERT INTO registrations (id, name, url, kind, services, queues, load, capacity, \
     is_draining, registered_at, beat_at, project, peer, replaced, secret) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) \
     ON CONFLICT (project, id) DO UPDATE SET name = excluded.name, url = excluded.url, kind = excluded.kind, \
     services = excluded.services, queues = excluded.queues, load = excluded.load, capacity = excluded.capacity, \
     is_draining = excluded.is_draining, registered_at = excluded.registered_at, beat_at = excluded.beat_at, \
     peer = excluded.peer, replaced = excluded.replaced, secret = excluded.secret";
const BEAT: &str = "UPDATE registrations SET url = coalesce($2, url), load = coalesce($3, load), \
     beat_at = greatest(beat_at, $4) WHERE project = $5 AND id = $1";
const DRAIN: &str = "UPDATE registrations SET is_draining = $2 WHERE project = $3 AND id = $1";
const FORGET: &str = "WITH gone AS (DELETE FROM registrations WHERE (project, id) IN \
     (SELECT project, id FROM registrations WHERE beat_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED) \
     RETURNING project, id), served AS (DELETE FROM worker_services USING gone \
     WHERE worker_services.project = gone.project AND worker_services.worker = gone.id) \
     SELECT count(*) FROM gone";
const FORGET_SERVICES: &str = "DELETE FROM worker_services WHERE project = $1 AND worker = $2";
const SAVE_SERVICES: &str = "INSERT INTO worker_services (project, service, worker) \
     SELECT $1, service, $2 FROM UNNEST($3::text[]) AS new (service) ON CONFLICT DO NOTHING";

macro_rules! workers {
    ($from:literal) => {
        concat!(
            "SELECT id, name, url, kind, services, queues, load, capacity, is_draining, registered_at, beat_at, peer, \
             replaced, secret FROM ",
            $from,
            " LIMIT $3"
        )
    };
}
const WORKERS: &str = workers!("registrations WHERE project = $1 AND id > $2 AND beat_at >= $4 ORDER BY id");
const WORKER: &str = workers!("registrations WHERE project = $1 AND id = $2 AND beat_at >= $4");
const WORKERS_OF_SERVICE: &str = workers!(
    "worker_services JOIN registrations \
     ON registrations.project = worker_services.project AND registrations.id = worker_services.worker \
     WHERE worker_services.project = $1 AND service = $5 AND worker > $2 AND beat_at >= $4 ORDER BY worker"
);

/// Writes a worker and its services. The caller's transaction holds the row of the worker, so that two registrations
/// under one id follow one another.
pub(super) async fn save(db: &Link, project: &Project, row: &WorkerRow) -> Result<(), StoreError> {
    let served: Vec<_> = row.services.iter().map(|service| text(service)).collect();
    let WorkerRow { id, name, url, kind, services, queues, load, capacity, .. } = row;
    let WorkerRow { is_draining, registered_at, beat_at, peer, replaced, secret, .. } = row;
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
        project.as_str(),
        text(peer),
        json(replaced),
        secret.as_ref().map(|secret| text(secret.expose()))
    ];
    db.execute(SAVE, &row).await?;
    db.execute(FORGET_SERVICES, &cells![project.as_str(), text(id)]).await?;
    db.execute(SAVE_SERVICES, &cells![project.as_str(), text(id), served]).await?;
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

/// Deletes workers, and returns how many.
pub(super) async fn forget(db: &Link, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    let rows = db.ask(FORGET, &cells![before.0, bound(limit)]).await?;
    let n: u64 = rows.first().map_or(Ok(0), |row| PostgresColumns::of(row).number())?;
    Ok(usize::try_from(n).unwrap_or(usize::MAX))
}

pub(super) async fn workers(
    db: &Link,
    project: &Project,
    query: &WorkerQuery,
) -> Result<Vec<WorkerRow>, StoreError> {
    let WorkerQuery { ids, service, alive_since } = query;
    let since = alive_since.map_or(i64::MIN, |since| since.0);
    let (project, from, limit) = (project.as_str(), text(ids.bound_name()), bound(ids.limit()));
    let rows = match service {
        Some(service) if !ids.is_one() => {
            db.ask(WORKERS_OF_SERVICE, &cells![project, from, limit, since, text(service)]).await?
        }
        Some(_) | None => {
            let sql = if ids.is_one() { WORKER } else { WORKERS };
            db.ask(sql, &cells![project, from, limit, since]).await?
        }
    };
    let rows = db.decoded(&table::WORKERS, &rows, read)?;
    Ok(rows.into_iter().filter(|row| row.matches(query)).collect())
}

fn read(row: &Row) -> Result<WorkerRow, StoreError> {
    decode::worker(&mut PostgresColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[SAVE, BEAT, DRAIN, FORGET, FORGET_SERVICES, SAVE_SERVICES, WORKERS, WORKER, WORKERS_OF_SERVICE];
