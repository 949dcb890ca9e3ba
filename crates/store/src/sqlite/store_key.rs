//! Keys of the store.

use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::store_key::StoreKey;

const ADD: &str = "INSERT OR IGNORE INTO store_keys (name, bytes) VALUES (?1, ?2)";
const KEY: &str = "SELECT bytes FROM store_keys WHERE name = ?1";

pub(super) fn find_or_add(db: &Connection, name: &str, fresh: StoreKey) -> Result<StoreKey, StoreError> {
    db.prepare_cached(ADD)?.execute(params![name, fresh.bytes()])?;
    let bytes: Vec<u8> = db.prepare_cached(KEY)?.query_row([name], |row| row.get(0))?;
    StoreKey::read(&bytes)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[ADD, KEY];
