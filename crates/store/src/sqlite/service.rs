//! Settings of services.

use rusqlite::{Connection, Row, params};
use windlass_engine::project::Project;

use super::column::SqliteColumns;
use crate::column::json;
use crate::decode;
use crate::error::StoreError;
use crate::service::{ServiceRow, ServiceSettings};

const SAVE: &str = "INSERT OR REPLACE INTO services (name, settings, updated_at, project) \
     VALUES (?1, ?2, ?3, ?4)";
const REMOVE: &str = "DELETE FROM services WHERE project = ?2 AND name = ?1";
const SERVICES: &str = "SELECT name, settings, updated_at FROM services WHERE project = ?1 ORDER BY name";

pub(super) fn save(db: &Connection, project: &Project, row: &ServiceRow) -> Result<(), StoreError> {
    let ServiceRow { name, settings, updated_at } = row;
    if *settings == ServiceSettings::default() {
        db.prepare_cached(REMOVE)?.execute([name.as_str(), project.as_str()])?;
        return Ok(());
    }
    db.prepare_cached(SAVE)?.execute(params![name, json(settings), updated_at.0, project.as_str()])?;
    Ok(())
}

pub(super) fn services(db: &Connection, project: &Project) -> Result<Vec<ServiceRow>, StoreError> {
    let read = |row: &Row<'_>| decode::service(&mut SqliteColumns::of(row));
    Ok(db.prepare_cached(SERVICES)?.query_map([project.as_str()], read)?.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, REMOVE, SERVICES];
