//! Settings of services.

use rusqlite::{Connection, Row, params};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::SqliteColumns;
use super::readers::ReadConnection;
use crate::column::{bound, json};
use crate::decode;
use crate::error::StoreError;
use crate::page::NameRange;
use crate::service::{LiveService, ServiceRow, ServiceSettings};
use crate::table;

const SAVE: &str = "INSERT OR REPLACE INTO services (name, settings, updated_at, project) \
     VALUES (?1, ?2, ?3, ?4)";
const REMOVE: &str = "DELETE FROM services WHERE project = ?2 AND name = ?1";
const SERVICES: &str = "SELECT name, settings, updated_at FROM services WHERE project = ?1 AND name > ?2 \
     ORDER BY name LIMIT ?3";
const SERVICE: &str =
    "SELECT name, settings, updated_at FROM services WHERE project = ?1 AND name = ?2 LIMIT ?3";
// The order of the tables is fixed: workers of the services are looked up, in the order of the services.
macro_rules! live {
    ($services:literal) => {
        concat!(
            "SELECT service, count(*) FROM worker_services CROSS JOIN registrations \
             ON registrations.project = worker_services.project AND registrations.id = worker_services.worker \
             WHERE worker_services.project = ?1 AND ",
            $services,
            " AND beat_at >= ?4 GROUP BY service ORDER BY service LIMIT ?3"
        )
    };
}
const LIVE: &str = live!("service > ?2");
const LIVE_ONE: &str = live!("service = ?2");

pub(super) fn save(db: &Connection, project: &Project, row: &ServiceRow) -> Result<(), StoreError> {
    let ServiceRow { name, settings, updated_at } = row;
    if *settings == ServiceSettings::default() {
        db.prepare_cached(REMOVE)?.execute([name.as_str(), project.as_str()])?;
        return Ok(());
    }
    db.prepare_cached(SAVE)?.execute(params![name, json(settings), updated_at.0, project.as_str()])?;
    Ok(())
}

pub(super) fn services(
    db: &ReadConnection,
    project: &Project,
    names: &NameRange,
) -> Result<Vec<ServiceRow>, StoreError> {
    let read = |row: &Row<'_>| decode::service(&mut SqliteColumns::of(row));
    let sql = if names.is_one() { SERVICE } else { SERVICES };
    let (project, from) = (project.as_str().to_owned(), names.bound_name().to_owned());
    let given = |limit: i64| vec![project.clone().into(), from.clone().into(), limit.into()];
    db.first_rows(&table::SERVICES, sql, names.limit(), given, read)
}

pub(super) fn live_services(
    db: &Connection,
    project: &Project,
    alive_since: Timestamp,
    names: &NameRange,
) -> Result<Vec<LiveService>, StoreError> {
    let read = |row: &Row<'_>| decode::live_service(&mut SqliteColumns::of(row));
    let mut statement = db.prepare_cached(if names.is_one() { LIVE_ONE } else { LIVE })?;
    let range = params![project.as_str(), names.bound_name(), bound(names.limit()), alive_since.0];
    Ok(statement.query_map(range, read)?.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, REMOVE, SERVICES, SERVICE, LIVE, LIVE_ONE];
