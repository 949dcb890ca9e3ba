//! Checks of the file, table by table, within a time. A check has a connection of its own, so that it delays no other read,
//! and ends its transaction after every table, so that the write-ahead log can be moved into the file.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::ErrorCode;

use super::oneshot::{AnswerReceiver, oneshot};
use super::readers::ReadConnection;
use crate::condition::{ConditionLog, StoreCheck};
use crate::error::StoreError;

/// Findings in one table: the rest of a broken table tells nothing new.
const FINDINGS_MAX: i64 = 10;
const TABLES: &str =
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
const CHECK: &str = "SELECT quick_check FROM pragma_quick_check(?1) LIMIT ?2";

/// Starts a check on a thread of its own.
pub(super) fn start(
    path: &Path,
    condition: &Arc<ConditionLog>,
    within: Duration,
) -> Result<AnswerReceiver<StoreCheck>, StoreError> {
    let (sender, receiver) = oneshot();
    let (path, condition) = (path.to_owned(), condition.clone());
    let work = move || {
        let checked = ReadConnection::open(&path, condition.clone()).and_then(|db| check(db, within));
        match &checked {
            Ok(check) => condition.checked(check),
            Err(error) => {
                condition.checked(&StoreCheck { findings: vec![error.to_string()], is_whole: false })
            }
        }
        sender.send(checked);
    };
    let thread = thread::Builder::new().name("sqlite-check".to_owned());
    thread.spawn(work).map_err(StoreError::unavailable)?;
    Ok(receiver)
}

fn check(mut db: ReadConnection, within: Duration) -> Result<StoreCheck, StoreError> {
    let ends_at = Instant::now() + within;
    db.interrupt_at(ends_at)?;
    let mut findings = Vec::new();
    for table in tables(&db)? {
        // Small tables end before SQLite looks at the clock.
        if Instant::now() >= ends_at {
            return Ok(StoreCheck { findings, is_whole: false });
        }
        match problems(&db, &table) {
            Ok(found) => findings.extend(found),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                return Ok(StoreCheck { findings, is_whole: false });
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                findings.push(damaged(&table, &error.to_string()));
            }
            Err(error) => findings.push(format!("table `{table}` cannot be checked: {error}")),
        }
    }
    Ok(StoreCheck { findings, is_whole: true })
}

fn tables(db: &ReadConnection) -> rusqlite::Result<Vec<String>> {
    db.connection.prepare(TABLES)?.query_map([], |row| row.get(0))?.collect()
}

/// The damage of a table and its indexes.
fn problems(db: &ReadConnection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.connection.prepare(CHECK)?;
    let found = statement.query_map((table, FINDINGS_MAX), |row| row.get::<_, String>(0))?;
    let found = found.collect::<rusqlite::Result<Vec<_>>>()?;
    let is_fine = found.iter().all(|line| line == "ok");
    Ok(if is_fine { Vec::new() } else { found.iter().map(|line| damaged(table, line)).collect() })
}

fn damaged(table: &str, finding: &str) -> String {
    format!("table `{table}` is damaged ({finding}): restore the file from a backup")
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[TABLES, CHECK];
