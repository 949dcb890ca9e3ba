//! Keys of the store.

use super::column::{PostgresColumns, cells, text};
use super::link::Link;
use crate::column::Columns;
use crate::error::StoreError;
use crate::store_key::StoreKey;

const ADD: &str = "INSERT INTO store_keys (name, bytes) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const KEY: &str = "SELECT bytes FROM store_keys WHERE name = $1";

/// The insertion waits for another server that makes the same key at the same moment, so both read the same one.
pub(super) async fn find_or_add(db: &Link, name: &str, fresh: StoreKey) -> Result<StoreKey, StoreError> {
    db.execute(ADD, &cells![text(name), fresh.bytes()]).await?;
    let row = db.ask_one(KEY, &cells![text(name)]).await?;
    let row = row.ok_or_else(|| StoreError::Corrupt("a key of the store is gone".to_owned()))?;
    StoreKey::read(&PostgresColumns::of(&row).bytes()?)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[ADD, KEY];
