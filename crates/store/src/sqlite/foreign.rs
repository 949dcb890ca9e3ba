//! Files of other programs, which are recognised before anything is written to them or beside them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::private_file::beside;
use crate::error::StoreError;

/// The first bytes of every SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";
// Another program's table of migrations has other columns.
const OWN_COLUMNS: &str =
    "SELECT count(*) FROM pragma_table_info('migrations') WHERE name IN ('number', 'name', 'checksum')";
const N_OWN_COLUMNS: i64 = 3;
const FIRST_NAME: &str = "SELECT min(name) FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";

#[derive(Debug, thiserror::Error)]
enum ForeignFile {
    #[error(
        "`{0}` is not a database of SQLite: name another file in --store, or restore this one from a backup"
    )]
    NoDatabase(String),
    #[error(
        "`{path}` is a database of another program (it has `{table}` and no tables of Windlass): name another file in --store"
    )]
    OtherProgram { path: String, table: String },
}

/// Refuses a file that another program wrote. A missing or empty file passes.
pub(super) fn check(path: &Path) -> Result<(), StoreError> {
    match first_bytes(path) {
        Ok(bytes) if bytes.is_empty() => return Ok(()),
        Ok(bytes) if bytes == MAGIC => {}
        Ok(_) => return Err(StoreError::unavailable(ForeignFile::NoDatabase(path.display().to_string()))),
        // The error of the open that follows names the remedy.
        Err(_) => return Ok(()),
    }
    let db = open(path)?;
    let n_own: i64 = db.query_row(OWN_COLUMNS, [], |row| row.get(0))?;
    let table: Option<String> = db.query_row(FIRST_NAME, [], |row| row.get(0))?;
    match table {
        Some(table) if n_own < N_OWN_COLUMNS => {
            let path = path.display().to_string();
            Err(StoreError::unavailable(ForeignFile::OtherProgram { path, table }))
        }
        Some(_) | None => Ok(()),
    }
}

fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens the file without a write to it. Without a log beside it, nothing is created there either.
fn open(path: &Path) -> Result<Connection, StoreError> {
    let has_log = fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    // An immutable file is read without locks and without its log.
    let mode = if has_log { "mode=ro" } else { "immutable=1" };
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(format!("file:{}?{mode}", encoded(path)), flags)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(db)
}

/// The path as a part of a URI.
fn encoded(path: &Path) -> String {
    let encode = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => char::from(*byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    path.as_os_str().as_bytes().iter().map(encode).collect()
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[OWN_COLUMNS, FIRST_NAME];
