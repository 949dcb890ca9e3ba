//! Registered workers.

use rusqlite::{Connection, Row, params};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::SqliteColumns;
use crate::column::json;
use crate::decode;
use crate::error::{Refusal, StoreError};
use crate::worker::{WorkerBeat, WorkerQuery, WorkerRow};

const SAVE: &str = "INSERT OR REPLACE INTO registrations (id, name, url, kind, services, queues, load, capacity, \
     is_draining, registered_at, beat_at, project) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const BEAT: &str = "UPDATE registrations SET url = coalesce(?2, url), load = coalesce(?3, load), \
     beat_at = max(beat_at, ?4) WHERE project = ?5 AND id = ?1";
const DRAIN: &str = "UPDATE registrations SET is_draining = ?2 WHERE project = ?3 AND id = ?1";
const FORGET: &str = "DELETE FROM registrations WHERE (project, id) IN \
     (SELECT project, id FROM registrations WHERE beat_at < ?1 LIMIT 10000)";
const WORKERS: &str = "SELECT id, name, url, kind, services, queues, load, capacity, is_draining, \
     registered_at, beat_at FROM registrations WHERE project = ?1 ORDER BY id";

pub(super) fn save(db: &Connection, project: &Project, row: &WorkerRow) -> Result<(), StoreError> {
    let WorkerRow { id, name, url, kind, services, queues, load, capacity, .. } = row;
    let WorkerRow { is_draining, registered_at, beat_at, .. } = row;
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
        project
    ])?;
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

pub(super) fn forget(db: &Connection, before: Timestamp) -> Result<(), StoreError> {
    db.prepare_cached(FORGET)?.execute([before.0])?;
    Ok(())
}

/// Reads all workers, which are few, and filters them.
pub(super) fn workers(
    db: &Connection,
    project: &Project,
    query: &WorkerQuery,
) -> Result<Vec<WorkerRow>, StoreError> {
    let mut statement = db.prepare_cached(WORKERS)?;
    let rows = statement.query_map([project.as_str()], read)?.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(rows.into_iter().filter(|row| row.matches(query)).collect())
}

fn read(row: &Row<'_>) -> rusqlite::Result<WorkerRow> {
    decode::worker(&mut SqliteColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, BEAT, DRAIN, FORGET, WORKERS];
