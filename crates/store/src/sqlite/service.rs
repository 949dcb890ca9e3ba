//! What is set for services.

use rusqlite::{Connection, Row, params};

use super::column::{Columns, json};
use crate::error::StoreError;
use crate::service::{ServiceRow, ServiceSettings};

const SAVE: &str = "INSERT OR REPLACE INTO services (name, settings, updated_at) VALUES (?1, ?2, ?3)";
const REMOVE: &str = "DELETE FROM services WHERE name = ?1";
const SERVICES: &str = "SELECT name, settings, updated_at FROM services ORDER BY name";

pub(super) fn save(db: &Connection, row: &ServiceRow) -> Result<(), StoreError> {
    let ServiceRow { name, settings, updated_at } = row;
    if *settings == ServiceSettings::default() {
        db.prepare_cached(REMOVE)?.execute([name])?;
        return Ok(());
    }
    db.prepare_cached(SAVE)?.execute(params![name, json(settings), updated_at.0])?;
    Ok(())
}

pub(super) fn services(db: &Connection) -> Result<Vec<ServiceRow>, StoreError> {
    let read = |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        Ok(ServiceRow { name: columns.value()?, settings: columns.json()?, updated_at: columns.time()? })
    };
    Ok(db.prepare_cached(SERVICES)?.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, REMOVE, SERVICES];
