//! Settings of services.

use tokio_postgres::Row;
use windlass_engine::project::Project;

use super::column::{PostgresColumns, cells, text};
use super::link::Link;
use crate::column::json;
use crate::decode;
use crate::error::StoreError;
use crate::service::{ServiceRow, ServiceSettings};

const SAVE: &str = "INSERT INTO services (name, settings, updated_at, project) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (project, name) DO UPDATE SET settings = excluded.settings, updated_at = excluded.updated_at";
const REMOVE: &str = "DELETE FROM services WHERE project = $2 AND name = $1";
const SERVICES: &str = "SELECT name, settings, updated_at FROM services WHERE project = $1 ORDER BY name";

pub(super) async fn save(db: &Link, project: &Project, row: &ServiceRow) -> Result<(), StoreError> {
    let ServiceRow { name, settings, updated_at } = row;
    if *settings == ServiceSettings::default() {
        db.execute(REMOVE, &cells![text(name), project.as_str()]).await?;
        return Ok(());
    }
    db.execute(SAVE, &cells![text(name), json(settings), updated_at.0, project.as_str()]).await?;
    Ok(())
}

pub(super) async fn services(db: &Link, project: &Project) -> Result<Vec<ServiceRow>, StoreError> {
    let read = |row: &Row| decode::service(&mut PostgresColumns::of(row));
    db.ask(SERVICES, &cells![project.as_str()]).await?.iter().map(read).collect()
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, REMOVE, SERVICES];
