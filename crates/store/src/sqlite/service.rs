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
use crate::service::{LiveService, ServiceRow, ServiceSettings, WAITING_MAX, WaitingService};
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
            "SELECT service, count(*), sum(CASE WHEN is_draining THEN 0 ELSE max(capacity, 0) END), sum(max(load, 0)) \
             FROM worker_services CROSS JOIN registrations \
             ON registrations.project = worker_services.project AND registrations.id = worker_services.worker \
             WHERE worker_services.project = ?1 AND ",
            $services,
            " AND beat_at >= ?4 GROUP BY service ORDER BY service LIMIT ?3"
        )
    };
}
const LIVE: &str = live!("service > ?2");
const LIVE_ONE: &str = live!("service = ?2");

// Names are found one after the other in the index, and so many jobs of each are looked at: the rest costs nothing.
macro_rules! waiting {
    ($keys:literal) => {
        concat!(
            "WITH RECURSIVE names(name) AS (SELECT (SELECT min(name) FROM jobs WHERE project = ?1 AND name > ?2 \
             AND due_at IS NOT NULL AND ",
            $keys,
            ") UNION ALL SELECT (SELECT min(jobs.name) FROM jobs WHERE project = ?1 AND jobs.name > names.name \
             AND due_at IS NOT NULL AND ",
            $keys,
            ") FROM names WHERE names.name IS NOT NULL LIMIT ?3) \
             SELECT name, (SELECT count(*) FROM (SELECT due_at FROM jobs WHERE project = ?1 \
             AND jobs.name = names.name AND due_at IS NOT NULL AND ",
            $keys,
            " LIMIT ?4) WHERE due_at <= ?5) FROM names WHERE name IS NOT NULL"
        )
    };
}
macro_rules! waiting_one {
    ($keys:literal) => {
        concat!(
            "SELECT ?2, count(*) FROM (SELECT due_at FROM jobs WHERE project = ?1 AND name = ?2 \
             AND due_at IS NOT NULL AND ",
            $keys,
            " LIMIT min(?3, ?4)) WHERE due_at <= ?5"
        )
    };
}
const WAITING: [&str; 2] = [waiting!("limit_key = ''"), waiting!("limit_key <> ''")];
const WAITING_ONE: [&str; 2] = [waiting_one!("limit_key = ''"), waiting_one!("limit_key <> ''")];

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

pub(super) fn waiting_services(
    db: &Connection,
    project: &Project,
    names: &NameRange,
    now: Timestamp,
) -> Result<Vec<WaitingService>, StoreError> {
    let read = |row: &Row<'_>| decode::waiting_service(&mut SqliteColumns::of(row));
    let list = |sql: &str| -> Result<Vec<WaitingService>, StoreError> {
        let looked_at = i64::try_from(WAITING_MAX).unwrap_or(i64::MAX);
        let limit = if names.is_one() { i64::MAX } else { bound(names.limit()) };
        let range = params![project.as_str(), names.bound_name(), limit, looked_at, now.0];
        Ok(db.prepare_cached(sql)?.query_map(range, read)?.collect::<rusqlite::Result<_>>()?)
    };
    let [plain, keyed] = if names.is_one() { WAITING_ONE } else { WAITING };
    Ok(WaitingService::added([list(plain)?, list(keyed)?], names.limit()))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[
    SAVE,
    REMOVE,
    SERVICES,
    SERVICE,
    LIVE,
    LIVE_ONE,
    WAITING[0],
    WAITING[1],
    WAITING_ONE[0],
    WAITING_ONE[1],
];
