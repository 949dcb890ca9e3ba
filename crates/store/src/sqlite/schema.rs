//! The tables: numbered migrations, embedded, applied in order, each once and never changed afterwards.

use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension};

use super::Durability;
use super::column::bound;
use crate::error::StoreError;

struct Migration {
    name: &'static str,
    sql: &'static str,
}

/// All migrations, in order: their numbers are their places, from 1.
const MIGRATIONS: [Migration; 9] = [
    Migration { name: "0001_first", sql: include_str!("../../migrations/sqlite/0001_first.sql") },
    Migration { name: "0002_logs", sql: include_str!("../../migrations/sqlite/0002_logs.sql") },
    Migration { name: "0003_lean", sql: include_str!("../../migrations/sqlite/0003_lean.sql") },
    Migration { name: "0004_views", sql: include_str!("../../migrations/sqlite/0004_views.sql") },
    Migration { name: "0005_lists", sql: include_str!("../../migrations/sqlite/0005_lists.sql") },
    Migration { name: "0006_queues", sql: include_str!("../../migrations/sqlite/0006_queues.sql") },
    Migration { name: "0007_documents", sql: include_str!("../../migrations/sqlite/0007_documents.sql") },
    Migration { name: "0008_filed", sql: include_str!("../../migrations/sqlite/0008_filed.sql") },
    Migration { name: "0009_sheets", sql: include_str!("../../migrations/sqlite/0009_sheets.sql") },
];

/// Bytes of the log that are kept on the disk for the next time.
const LOG_BYTES: i64 = 64 << 20;
/// Statements that stay prepared per connection: more than there are.
const STATEMENTS: usize = 256;
/// Nobody else writes, so that this is for a backup tool that copies the file.
const BUSY: Duration = Duration::from_secs(5);

const CREATE: &str = "CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum INTEGER NOT NULL
) STRICT";
const APPLIED: &str = "SELECT name, checksum FROM migrations WHERE number = ?1";
const RECORD: &str = "INSERT INTO migrations (number, name, checksum) VALUES (?1, ?2, ?3)";
// Number -1 is no migration: it is there while a copy into the file has not come to its end.
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
         PRAGMA journal_size_limit = {LOG_BYTES}; PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY;
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
    db.busy_timeout(BUSY)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    // Otherwise a statement is compiled anew for every value that it is given, to see whether that value would let it
    // use one of the indexes over a part of a table.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Brings the tables up to date, all at once or not at all.
pub(super) fn migrate(db: &mut Connection) -> Result<(), StoreError> {
    apply(db, &MIGRATIONS)
}

fn apply(db: &mut Connection, migrations: &[Migration]) -> Result<(), StoreError> {
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let known = bound(migrations.len());
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > known {
        return Err(StoreError::Corrupt(format!(
            "the tables are of version {found}, this program knows up to {known}: upgrade it"
        )));
    }
    transaction.execute_batch(CREATE)?;
    for (number, Migration { name, sql }) in (1..).zip(migrations) {
        let applied = transaction.query_row(APPLIED, [number], |row| Ok((row.get(0)?, row.get(1)?)));
        match applied.optional()? {
            None => {
                transaction.execute_batch(sql)?;
                transaction.execute(RECORD, (number, name, checksum(sql)))?;
            }
            Some::<(String, i64)>((its_name, sum)) if its_name != *name || sum != checksum(sql) => {
                return Err(StoreError::Corrupt(format!(
                    "migration {number} was applied as `{its_name}` with other contents: \
                     use the program that made the file, or restore it from a backup"
                )));
            }
            Some(_) => {}
        }
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

/// Whether a copy into the file has not come to its end.
pub(super) fn is_unfinished(db: &Connection) -> Result<bool, StoreError> {
    Ok(db.query_row(IS_UNFINISHED, [], |_| Ok(())).optional()?.is_some())
}

/// Refuses a file that a copy has not come to its end in.
pub(super) fn check_finished(db: &Connection) -> Result<(), StoreError> {
    if is_unfinished(db)? { Err(StoreError::unfinished()) } else { Ok(()) }
}

/// Says from now on that the file is not whole.
#[cfg(feature = "postgres")]
pub(super) fn mark_unfinished(db: &Connection) -> Result<(), StoreError> {
    Ok(db.execute(MARK, []).map(drop)?)
}

/// Says from now on that the file is whole.
#[cfg(feature = "postgres")]
pub(super) fn mark_finished(db: &Connection) -> Result<(), StoreError> {
    Ok(db.execute(UNMARK, []).map(drop)?)
}

/// FNV-1a: it has to notice a change by mistake, not by malice.
fn checksum(text: &str) -> i64 {
    let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, mix).cast_signed()
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[APPLIED, RECORD, IS_UNFINISHED, MARK, UNMARK];

/// The tables as they were after so many migrations.
#[cfg(test)]
pub(super) fn migrate_partly(db: &mut Connection, n: usize) {
    apply(db, &MIGRATIONS[..n]).unwrap();
}
