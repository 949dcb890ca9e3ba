//! Registered workers.

use rusqlite::{Connection, Row, params};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::SqliteColumns;
use super::readers::ReadConnection;
use crate::column::{bound, json};
use crate::decode;
use crate::error::{Refusal, StoreError};
use crate::signing::SigningSecret;
use crate::table;
use crate::worker::{WorkerBeat, WorkerQuery, WorkerRow};

const SAVE: &str = "INSERT OR REPLACE INTO registrations (id, name, url, kind, services, queues, load, capacity, \
     is_draining, registered_at, beat_at, project, peer, replaced, secret) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
const BEAT: &str = "UPDATE registrations SET url = coalesce(?2, url), load = coalesce(?3, load), \
     beat_at = max(beat_at, ?4) WHERE project = ?5 AND id = ?1";
const DRAIN: &str = "UPDATE registrations SET is_draining = ?2 WHERE project = ?3 AND id = ?1";
const FORGET: &str = "DELETE FROM registrations WHERE (project, id) IN \
     (SELECT project, id FROM registrations WHERE beat_at < ?1 LIMIT ?2) RETURNING project, id";
const FORGET_SERVICES: &str = "DELETE FROM worker_services WHERE project = ?1 AND worker = ?2";
const SAVE_SERVICE: &str =
    "INSERT OR IGNORE INTO worker_services (project, service, worker) VALUES (?1, ?2, ?3)";

macro_rules! workers {
    ($from:literal) => {
        concat!(
            "SELECT id, name, url, kind, services, queues, load, capacity, is_draining, registered_at, beat_at, peer, \
             replaced, secret FROM ",
            $from,
            " LIMIT ?3"
        )
    };
}
const WORKERS: &str = workers!("registrations WHERE project = ?1 AND id > ?2 AND beat_at >= ?4 ORDER BY id");
const WORKER: &str = workers!("registrations WHERE project = ?1 AND id = ?2 AND beat_at >= ?4");
const WORKERS_OF_SERVICE: &str = workers!(
    "worker_services CROSS JOIN registrations \
     ON registrations.project = worker_services.project AND registrations.id = worker_services.worker \
     WHERE worker_services.project = ?1 AND service = ?5 AND worker > ?2 AND beat_at >= ?4 ORDER BY worker"
);

pub(super) fn save(db: &Connection, project: &Project, row: &WorkerRow) -> Result<(), StoreError> {
    let WorkerRow { id, name, url, kind, services, queues, load, capacity, .. } = row;
    let WorkerRow { is_draining, registered_at, beat_at, peer, replaced, secret, .. } = row;
    let (services, queues) = (json(services), json(queues));
    let (registered_at, beat_at, project) = (registered_at.0, beat_at.0, project.as_str());
    db.prepare_cached(SAVE)?.execute(params![
        id,
        name,
        url,
        kind,
        services,
        queues,
        load,
        capacity,
        is_draining,
        registered_at,
        beat_at,
        project,
        peer,
        json(replaced),
        secret.as_ref().map(SigningSecret::expose)
    ])?;
    db.prepare_cached(FORGET_SERVICES)?.execute(params![project, id])?;
    for service in &row.services {
        db.prepare_cached(SAVE_SERVICE)?.execute(params![project, service, id])?;
    }
    Ok(())
}

pub(super) fn beat(db: &Connection, project: &Project, beat: &WorkerBeat) -> Result<(), StoreError> {
    let WorkerBeat { id, url, load, at } = beat;
    match db.prepare_cached(BEAT)?.execute(params![id, url, load, at.0, project.as_str()])? {
        0 => Err(Refusal::UnknownWorker(id.clone()).into()),
        _ => Ok(()),
    }
}

pub(super) fn drain(
    db: &Connection,
    project: &Project,
    id: &str,
    is_draining: bool,
) -> Result<(), StoreError> {
    match db.prepare_cached(DRAIN)?.execute(params![id, is_draining, project.as_str()])? {
        0 => Err(Refusal::UnknownWorker(id.to_owned()).into()),
        _ => Ok(()),
    }
}

/// Deletes workers, and returns how many.
pub(super) fn forget(db: &Connection, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    let mut statement = db.prepare_cached(FORGET)?;
    let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
    let gone = statement.query_map(params![before.0, bound(limit)], read)?;
    let gone = gone.collect::<rusqlite::Result<Vec<_>>>()?;
    for (project, id) in &gone {
        db.prepare_cached(FORGET_SERVICES)?.execute([project, id])?;
    }
    Ok(gone.len())
}

pub(super) fn workers(
    db: &ReadConnection,
    project: &Project,
    query: &WorkerQuery,
) -> Result<Vec<WorkerRow>, StoreError> {
    let WorkerQuery { ids, service, alive_since } = query;
    let since = alive_since.map_or(i64::MIN, |since| since.0);
    let (project, from) = (project.as_str().to_owned(), ids.bound_name().to_owned());
    let range = |limit: i64| vec![project.clone().into(), from.clone().into(), limit.into(), since.into()];
    let rows = match service {
        Some(service) if !ids.is_one() => {
            let given = |limit| [range(limit), vec![service.clone().into()]].concat();
            db.first_rows(&table::WORKERS, WORKERS_OF_SERVICE, ids.limit(), given, read)?
        }
        Some(_) | None => {
            let sql = if ids.is_one() { WORKER } else { WORKERS };
            db.first_rows(&table::WORKERS, sql, ids.limit(), range, read)?
        }
    };
    Ok(rows.into_iter().filter(|row| row.matches(query)).collect())
}

fn read(row: &Row<'_>) -> rusqlite::Result<WorkerRow> {
    decode::worker(&mut SqliteColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[SAVE, BEAT, DRAIN, FORGET, FORGET_SERVICES, SAVE_SERVICE, WORKERS, WORKER, WORKERS_OF_SERVICE];
