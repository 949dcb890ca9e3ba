//! Servers, as they are heard of.

use tokio_postgres::Row;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, PostgresId, cells, text};
use super::link::Link;
use crate::column::{Columns, stored};
use crate::decode;
use crate::error::{StoreError, Subject};
use crate::run::Owner;
use crate::server::ServerRow;
use crate::table;

const EPOCH: &str = "SELECT epoch FROM servers WHERE id = $1";
const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const SAVE: &str = "INSERT INTO servers (id, epoch, name, version, started_at, beat_at, worker_ttl_ms) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, name = excluded.name, \
     version = excluded.version, started_at = excluded.started_at, beat_at = excluded.beat_at, \
     worker_ttl_ms = excluded.worker_ttl_ms \
     WHERE servers.epoch <= excluded.epoch";
const SERVERS: &str =
    "SELECT id, epoch, name, version, started_at, beat_at, worker_ttl_ms FROM servers ORDER BY id";
// Rows that another server deletes at the same moment are skipped.
const FORGET: &str = "DELETE FROM servers WHERE id IN (SELECT id FROM servers WHERE beat_at < $1 \
     AND epoch < (SELECT max(epoch) FROM servers) AND NOT EXISTS (SELECT 1 FROM runs \
     WHERE runs.owner_server = servers.id AND runs.owner_epoch = servers.epoch) LIMIT 1000 FOR UPDATE SKIP LOCKED)";

pub(super) async fn save(db: &Link, row: &ServerRow) -> Result<(), StoreError> {
    let ServerRow { owner: Owner { server, epoch }, name, version, started_at, beat_at, worker_ttl_ms } = row;
    let ttl = stored(*worker_ttl_ms);
    let row = cells![server.key(), stored(*epoch), text(name), text(version), started_at.0, beat_at.0, ttl];
    if db.execute(SAVE, &row).await? > 0 {
        return Ok(());
    }
    let found = db.ask_one(EPOCH, &cells![server.key()]).await?;
    let found = found.map_or(Ok(0), |row| PostgresColumns::of(&row).number())?;
    Err(StoreError::Conflict { what: Subject::Server(*server), expected: epoch.0, found })
}

pub(super) async fn forget(db: &Link, before: Timestamp) -> Result<(), StoreError> {
    db.execute(FORGET, &cells![before.0]).await?;
    Ok(())
}

pub(super) async fn servers(db: &Link) -> Result<Vec<ServerRow>, StoreError> {
    db.decoded(&table::SERVERS, &db.ask(SERVERS, &[]).await?, read)
}

fn read(row: &Row) -> Result<ServerRow, StoreError> {
    decode::server(&mut PostgresColumns::of(row))
}

/// The time of the database.
pub(super) async fn now(db: &Link) -> Result<Timestamp, StoreError> {
    let rows = db.ask(NOW, &[]).await?;
    let row = rows
        .first()
        .ok_or_else(|| StoreError::Corrupt("the database does not say what time it is".to_owned()))?;
    PostgresColumns::of(row).time()
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[NOW, EPOCH, SAVE, SERVERS, FORGET];
