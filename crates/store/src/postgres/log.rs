//! Logs of attempts.

use tokio_postgres::Row;
use windlass_engine::id::RunId;

use super::column::{Columns, Id, bound, cells, json, stored, text};
use super::link::Link;
use crate::error::StoreError;
use crate::log::{LOGS_MAX, LogRow};

// The run is held so that it is not deleted meanwhile: nobody would delete the log after it.
const SAVE: &str = "INSERT INTO logs (run, fence, at, text, lines) \
     SELECT id, $2, $3, $4, $5 FROM (SELECT id FROM runs WHERE id = $1 FOR KEY SHARE) AS its \
     ON CONFLICT (run, fence) DO UPDATE SET at = excluded.at, text = excluded.text, \
     lines = excluded.lines";
const OF_RUN: &str = "SELECT run, fence, at, text, lines FROM logs WHERE run = $1 ORDER BY fence LIMIT $2";
const OF_ATTEMPT: &str = "SELECT run, fence, at, text, lines FROM logs WHERE run = $1 AND fence = $2";

pub(super) async fn save(db: &Link, row: &LogRow) -> Result<(), StoreError> {
    let LogRow { run, fence, at, text: said, lines } = row;
    db.execute(SAVE, &cells![run.key(), stored(*fence), at.0, text(said), json(lines)]).await?;
    Ok(())
}

pub(super) async fn logs(db: &Link, run: RunId, fence: Option<u64>) -> Result<Vec<LogRow>, StoreError> {
    let (sql, second) = match fence {
        Some(fence) => (OF_ATTEMPT, stored(fence)),
        None => (OF_RUN, bound(LOGS_MAX)),
    };
    db.ask(sql, &cells![run.key(), second]).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<LogRow, StoreError> {
    let mut columns = Columns::of(row);
    let (run, fence, at) = (columns.id()?, columns.number()?, columns.time()?);
    Ok(LogRow { run, fence, at, text: columns.text()?, lines: columns.json()? })
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[SAVE, OF_RUN, OF_ATTEMPT];
