//! Settings of services.

use tokio_postgres::Row;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, cells, text};
use super::link::Link;
use crate::column::{bound, json};
use crate::decode;
use crate::error::StoreError;
use crate::page::NameRange;
use crate::service::{LiveService, ServiceRow, ServiceSettings};
use crate::table;

const SAVE: &str = "INSERT INTO services (name, settings, updated_at, project) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (project, name) DO UPDATE SET settings = excluded.settings, updated_at = excluded.updated_at";
const REMOVE: &str = "DELETE FROM services WHERE project = $2 AND name = $1";
const SERVICES: &str = "SELECT name, settings, updated_at FROM services WHERE project = $1 AND name > $2 \
     ORDER BY name LIMIT $3";
const SERVICE: &str =
    "SELECT name, settings, updated_at FROM services WHERE project = $1 AND name = $2 LIMIT $3";
macro_rules! live {
    ($services:literal) => {
        concat!(
            "SELECT service, count(*) FROM worker_services JOIN registrations \
             ON registrations.project = worker_services.project AND registrations.id = worker_services.worker \
             WHERE worker_services.project = $1 AND ",
            $services,
            " AND beat_at >= $4 GROUP BY service ORDER BY service LIMIT $3"
        )
    };
}
const LIVE: &str = live!("service > $2");
const LIVE_ONE: &str = live!("service = $2");

pub(super) async fn save(db: &Link, project: &Project, row: &ServiceRow) -> Result<(), StoreError> {
    let ServiceRow { name, settings, updated_at } = row;
    if *settings == ServiceSettings::default() {
        db.execute(REMOVE, &cells![text(name), project.as_str()]).await?;
        return Ok(());
    }
    db.execute(SAVE, &cells![text(name), json(settings), updated_at.0, project.as_str()]).await?;
    Ok(())
}

pub(super) async fn services(
    db: &Link,
    project: &Project,
    names: &NameRange,
) -> Result<Vec<ServiceRow>, StoreError> {
    let read = |row: &Row| decode::service(&mut PostgresColumns::of(row));
    let sql = if names.is_one() { SERVICE } else { SERVICES };
    let range = |limit| cells![project.as_str(), text(names.bound_name()), limit];
    db.first_rows(&table::SERVICES, sql, names.limit(), range, read).await
}

pub(super) async fn live_services(
    db: &Link,
    project: &Project,
    alive_since: Timestamp,
    names: &NameRange,
) -> Result<Vec<LiveService>, StoreError> {
    let read = |row: &Row| decode::live_service(&mut PostgresColumns::of(row));
    let sql = if names.is_one() { LIVE_ONE } else { LIVE };
    let range = cells![project.as_str(), text(names.bound_name()), bound(names.limit()), alive_since.0];
    db.ask(sql, &range).await?.iter().map(read).collect()
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, REMOVE, SERVICES, SERVICE, LIVE, LIVE_ONE];
