//! Tables of the store: numbered migrations, embedded in the program. `Sqlite::open` applies the missing ones in order.
//! The store keeps a checksum of each, and refuses a file that was written by another version of a migration.

use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension};

use super::Durability;
use crate::column::bound;
use crate::error::StoreError;

struct SqliteMigration {
    name: &'static str,
    sql: &'static str,
}

/// All migrations in order, numbered from 1. `0001` may change until the first release; later ones are only added.
const MIGRATIONS: [SqliteMigration; 1] =
    [SqliteMigration { name: "0001_first", sql: include_str!("../../migrations/sqlite/0001_first.sql") }];

/// Bytes of the write-ahead log that SQLite keeps on disk for reuse.
const WAL_BYTES_KEPT: i64 = 64 << 20;
/// Prepared statements per connection: more than the program has.
const PREPARED_STATEMENTS_MAX: usize = 256;
/// For a backup tool that reads the file; no other process writes to it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const CREATE: &str = "CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum INTEGER NOT NULL
) STRICT";
const APPLIED: &str = "SELECT name, checksum FROM migrations WHERE number = ?1";
const RECORD: &str = "INSERT INTO migrations (number, name, checksum) VALUES (?1, ?2, ?3)";
// Number -1 is not a migration: it marks a file with an unfinished copy.
const IS_UNFINISHED: &str = "SELECT 1 FROM migrations WHERE number = -1";
#[cfg(any(test, feature = "postgres"))]
const MARK: &str = "INSERT OR IGNORE INTO migrations (number, name, checksum) VALUES (-1, 'copy', 0)";
#[cfg(any(test, feature = "postgres"))]
const UNMARK: &str = "DELETE FROM migrations WHERE number = -1";

pub(super) fn prepare_writer(db: &Connection, durability: Durability) -> Result<(), StoreError> {
    let synchronous = match durability {
        Durability::Strict => "FULL",
        Durability::Fast => "NORMAL",
    };
    prepare_any(db)?;
    let mode: String = db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let error =
            format!("the file cannot have a log beside it (journal mode `{mode}`): move it to a local disk");
        return Err(StoreError::Corrupt(error));
    }
    db.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous}; PRAGMA wal_autocheckpoint = 0;
         PRAGMA journal_size_limit = {WAL_BYTES_KEPT}; PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY;
         PRAGMA trusted_schema = OFF;"
    ))?;
    Ok(())
}

pub(super) fn prepare_reader(db: &Connection) -> Result<(), StoreError> {
    prepare_any(db)?;
    db.execute_batch("PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;")?;
    Ok(())
}

fn prepare_any(db: &Connection) -> Result<(), StoreError> {
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS_MAX);
    // Without it, SQLite compiles a statement again for every parameter, to check whether a partial index applies.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Applies the missing migrations in one transaction.
pub(super) fn migrate(db: &mut Connection) -> Result<(), StoreError> {
    apply(db, &MIGRATIONS)
}

fn apply(db: &mut Connection, migrations: &[SqliteMigration]) -> Result<(), StoreError> {
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let known = bound(migrations.len());
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > known {
        return Err(StoreError::Corrupt(format!(
            "the tables are of version {found}, this program knows up to {known}: use a newer program, or start with a new file"
        )));
    }
    transaction.execute_batch(CREATE)?;
    for (number, SqliteMigration { name, sql }) in (1..).zip(migrations) {
        let applied = transaction.query_row(APPLIED, [number], |row| Ok((row.get(0)?, row.get(1)?)));
        match applied.optional()? {
            None => {
                transaction.execute_batch(sql)?;
                transaction.execute(RECORD, (number, name, checksum(sql)))?;
            }
            Some::<(String, i64)>((its_name, sum)) if its_name != *name || sum != checksum(sql) => {
                return Err(StoreError::Corrupt(format!(
                    "the file has other tables than this program (migration {number} was applied as `{its_name}` \
                     with other contents): open it with the program that wrote it, or start with a new file"
                )));
            }
            Some(_) => {}
        }
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

/// Whether the file has an unfinished copy.
pub(super) fn is_unfinished(db: &Connection) -> Result<bool, StoreError> {
    Ok(db.query_row(IS_UNFINISHED, [], |_| Ok(())).optional()?.is_some())
}

/// Refuses a file with an unfinished copy.
pub(super) fn check_finished(db: &Connection) -> Result<(), StoreError> {
    if is_unfinished(db)? { Err(StoreError::unfinished()) } else { Ok(()) }
}

/// Marks the file as unfinished.
#[cfg(feature = "postgres")]
pub(super) fn mark_unfinished(db: &Connection) -> Result<(), StoreError> {
    Ok(db.execute(MARK, []).map(drop)?)
}

/// Removes the mark.
#[cfg(feature = "postgres")]
pub(super) fn mark_finished(db: &Connection) -> Result<(), StoreError> {
    Ok(db.execute(UNMARK, []).map(drop)?)
}

/// FNV-1a: it detects accidental changes, not attacks.
fn checksum(text: &str) -> i64 {
    let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, mix).cast_signed()
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[APPLIED, RECORD, IS_UNFINISHED, MARK, UNMARK];
