//! Checks of the file, table by table, within a time. A check has a connection of its own, so that it delays no other read,
//! and ends its transaction after every table, so that the write-ahead log can be moved into the file. The next check goes
//! on where the time of this one ended, so that successive checks cover a file that is too large for one.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::ErrorCode;

use super::error::{fault, is_of_page};
use super::oneshot::{AnswerReceiver, oneshot};
use super::readers::ReadConnection;
use crate::condition::{Access, ConditionLog, StoreCheck};
use crate::error::StoreError;

/// Findings in one table: the rest of a broken table tells nothing new.
const FINDINGS_MAX: i64 = 10;
const TABLES: &str =
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
const CHECK: &str = "SELECT quick_check FROM pragma_quick_check(?1) LIMIT ?2";

/// The table that the next check begins with.
#[derive(Debug, Default)]
pub(super) struct CheckStart(Mutex<Option<String>>);

impl CheckStart {
    /// All tables, from this one on.
    fn rotated(&self, mut tables: Vec<String>) -> Vec<String> {
        let start = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = start.as_ref().and_then(|start| tables.iter().position(|table| table == start));
        tables.rotate_left(at.unwrap_or_default());
        tables
    }

    fn set(&self, table: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(table.to_owned());
    }
}

/// Starts a check on a thread of its own.
pub(super) fn start(
    path: &Path,
    condition: &Arc<ConditionLog>,
    start: &Arc<CheckStart>,
    within: Duration,
) -> Result<AnswerReceiver<StoreCheck>, StoreError> {
    let (sender, receiver) = oneshot();
    let (path, condition, start) = (path.to_owned(), condition.clone(), start.clone());
    let work = move || {
        let db = ReadConnection::open(&path, condition.clone());
        let checked = db.and_then(|mut db| check(&mut db, &start, within));
        match &checked {
            Ok(check) => condition.checked(check),
            Err(error) => {
                if let Some((fault, reason)) = fault(error) {
                    condition.failed(Access::Read, fault, reason);
                }
            }
        }
        sender.send(checked);
    };
    let thread = thread::Builder::new().name("sqlite-check".to_owned());
    thread.spawn(work).map_err(StoreError::unavailable)?;
    Ok(receiver)
}

fn check(db: &mut ReadConnection, start: &CheckStart, within: Duration) -> Result<StoreCheck, StoreError> {
    let tables = start.rotated(tables(db)?);
    let ends_at = Instant::now() + within;
    db.interrupt_at(ends_at)?;
    let mut check = StoreCheck { n_tables: tables.len(), ..StoreCheck::default() };
    for (n, table) in tables.iter().enumerate() {
        // Small tables end before SQLite looks at the clock.
        if Instant::now() >= ends_at {
            start.set(table);
            return Ok(check);
        }
        let mut found = Vec::new();
        match problems(db, table, &mut found) {
            Ok(()) => {}
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                // A table that all the time was not enough for is passed over, or no later one would be reached.
                let next = if n == 0 { tables.get(1).unwrap_or(table) } else { table };
                start.set(next);
                check.findings.extend(found);
                return Ok(check);
            }
            Err(error) if is_of_page(&error) => found.push(damaged(table, &error.to_string())),
            Err(error) => {
                check.failures.push(format!("table `{table}` cannot be checked: {error}"));
                continue;
            }
        }
        check.n_checked += 1;
        if found.is_empty() {
            check.sound.insert(table.clone());
        }
        check.findings.extend(found);
    }
    Ok(check)
}

fn tables(db: &ReadConnection) -> rusqlite::Result<Vec<String>> {
    db.connection.prepare(TABLES)?.query_map([], |row| row.get(0))?.collect()
}

/// Finds the damage of a table and its indexes.
fn problems(db: &ReadConnection, table: &str, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut statement = db.connection.prepare(CHECK)?;
    for line in statement.query_map((table, FINDINGS_MAX), |row| row.get::<_, String>(0))? {
        let line = line?;
        if line != "ok" {
            found.push(damaged(table, &line));
        }
    }
    Ok(())
}

fn damaged(table: &str, finding: &str) -> String {
    format!("table `{table}` is damaged ({finding}): restore the file from a backup")
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[TABLES, CHECK];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rusqlite::Connection;

    use super::super::temp_directory::TempDirectory;
    use super::*;

    #[test]
    fn successive_checks_reach_tables_behind_one_that_takes_too_long() {
        let place = TempDirectory::make().unwrap();
        let path = place.0.join("store.db");
        let rows = "CREATE TABLE big AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500000) \
            SELECT i FROM n; CREATE TABLE later (i); CREATE TABLE next (i);";
        Connection::open(&path).unwrap().execute_batch(rows).unwrap();
        let mut db = ReadConnection::open(&path, Arc::default()).unwrap();
        let (start, mut sound) = (CheckStart::default(), BTreeSet::new());
        let begun = Instant::now();
        while sound.len() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(30), "later tables are not reached: {sound:?}");
            let check = check(&mut db, &start, Duration::from_millis(2)).unwrap();
            assert!(!check.is_whole() && check.findings.is_empty() && check.failures.is_empty(), "{check:?}");
            sound.extend(check.sound);
        }
        let whole = check(&mut db, &start, Duration::from_secs(60)).unwrap();
        assert!(whole.is_whole() && whole.sound.len() == 3, "{whole:?}");
    }

    #[test]
    fn a_failure_that_passes_is_no_damage() {
        let place = TempDirectory::make().unwrap();
        let condition = Arc::<ConditionLog>::default();
        let gone = place.0.join("no such file");
        let checked = super::start(&gone, &condition, &Arc::default(), Duration::from_secs(60)).unwrap();
        let checked = windlass_conformance::block_on(checked);
        assert!(matches!(checked, Err(StoreError::Unavailable(_))), "{checked:?}");
        assert!(condition.condition().troubles.is_empty(), "{:?}", condition.condition());
    }
}
