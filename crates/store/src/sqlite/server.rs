//! Servers and their heartbeats.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::counter::Epoch;
use windlass_engine::time::Timestamp;

use super::column::{SqliteColumns, SqliteId};
use super::readers::ReadConnection;
use crate::column::{Columns, stored};
use crate::decode;
use crate::error::{StoreError, Subject};
use crate::run::Owner;
use crate::server::ServerRow;
use crate::table;

const EPOCH: &str = "SELECT epoch FROM servers WHERE id = ?1";
const SAVE: &str = "INSERT OR REPLACE INTO servers (id, epoch, name, version, started_at, beat_at, \
     worker_ttl_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const SERVERS: &str =
    "SELECT id, epoch, name, version, started_at, beat_at, worker_ttl_ms FROM servers ORDER BY id";
const FORGET: &str = "DELETE FROM servers WHERE id IN (SELECT id FROM servers WHERE beat_at < ?1 \
     AND epoch < (SELECT max(epoch) FROM servers) AND NOT EXISTS (SELECT 1 FROM runs \
     WHERE runs.owner_server = servers.id AND runs.owner_epoch = servers.epoch) LIMIT 1000)";

pub(super) fn save(db: &Connection, row: &ServerRow) -> Result<(), StoreError> {
    let ServerRow { owner: Owner { server, epoch }, name, version, started_at, beat_at, worker_ttl_ms } = row;
    let found = db.prepare_cached(EPOCH)?.query_row([server.key()], |row| SqliteColumns::of(row).number());
    let found = found.optional()?.unwrap_or(Epoch::ZERO);
    if found > *epoch {
        let what = Subject::Server(*server);
        return Err(StoreError::Conflict { what, expected: epoch.0, found: found.0 });
    }
    let ttl = stored(*worker_ttl_ms);
    let row = params![server.key(), stored(*epoch), name, version, started_at.0, beat_at.0, ttl];
    db.prepare_cached(SAVE)?.execute(row)?;
    Ok(())
}

pub(super) fn forget(db: &Connection, before: Timestamp) -> Result<(), StoreError> {
    db.prepare_cached(FORGET)?.execute([before.0])?;
    Ok(())
}

pub(super) fn servers(db: &ReadConnection) -> Result<Vec<ServerRow>, StoreError> {
    let read = |row: &Row<'_>| decode::server(&mut SqliteColumns::of(row));
    db.rows(&table::SERVERS, SERVERS, [], read)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[EPOCH, SAVE, SERVERS, FORGET];
