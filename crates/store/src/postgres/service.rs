//! What is set for services.

use tokio_postgres::Row;

use super::column::{Columns, cells, json, text};
use super::link::Link;
use crate::error::StoreError;
use crate::service::{ServiceRow, ServiceSettings};

const SAVE: &str = "INSERT INTO services (name, settings, updated_at) VALUES ($1, $2, $3) \
     ON CONFLICT (name) DO UPDATE SET settings = excluded.settings, updated_at = excluded.updated_at";
const REMOVE: &str = "DELETE FROM services WHERE name = $1";
const SERVICES: &str = "SELECT name, settings, updated_at FROM services ORDER BY name";

pub(super) async fn save(db: &Link, row: &ServiceRow) -> Result<(), StoreError> {
    let ServiceRow { name, settings, updated_at } = row;
    if *settings == ServiceSettings::default() {
        db.execute(REMOVE, &cells![text(name)]).await?;
        return Ok(());
    }
    db.execute(SAVE, &cells![text(name), json(settings), updated_at.0]).await?;
    Ok(())
}

pub(super) async fn services(db: &Link) -> Result<Vec<ServiceRow>, StoreError> {
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        Ok(ServiceRow { name: columns.text()?, settings: columns.json()?, updated_at: columns.time()? })
    };
    db.ask(SERVICES, &[]).await?.iter().map(read).collect()
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, REMOVE, SERVICES];
