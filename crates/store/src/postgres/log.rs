//! Logs of attempts.

use tokio_postgres::Row;
use windlass_engine::id::RunId;
use windlass_engine::project::Project;

use super::column::{PostgresColumns, PostgresId, cells, text, unnest};
use super::link::{BoundStatement, Link};
use crate::column::{bound, json, stored};
use crate::decode;
use crate::error::StoreError;
use crate::log::{LOGS_MAX, LogRow, LogsOf};
use crate::table;

const WRITE: &str = "INSERT INTO logs (run, entry, fence, node, at, text, lines) \
     SELECT its.* FROM UNNEST($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], \
     $7::text[]) AS its (run, entry, fence, node, at, text, lines) \
     WHERE EXISTS (SELECT 1 FROM runs WHERE runs.id = its.run AND runs.project = $8) ON CONFLICT DO NOTHING";
const OF_ATTEMPT: &str = "SELECT run, entry, fence, node, at, text, lines FROM logs \
     WHERE run = $1 AND fence = $2 AND (SELECT project FROM runs WHERE id = $1) = $4 ORDER BY entry LIMIT $3";
const AFTER: &str = "SELECT run, entry, fence, node, at, text, lines FROM logs \
     WHERE run = $1 AND (entry, fence) > ($2, $3) AND (SELECT project FROM runs WHERE id = $1) = $5 ORDER BY entry, fence LIMIT $4";

pub(super) fn write<'c>(rows: &[&'c LogRow]) -> BoundStatement<'c> {
    let cells = unnest!(rows, |row| [
        row.run.key(),
        stored(row.entry),
        stored(row.fence),
        text(row.node.as_str()),
        row.at.0,
        text(&row.text),
        json(&row.lines),
    ]);
    BoundStatement::new(WRITE, cells)
}

pub(super) async fn logs(
    db: &Link,
    project: &Project,
    run: RunId,
    of: LogsOf,
) -> Result<Vec<LogRow>, StoreError> {
    let (limit, project) = (bound(LOGS_MAX), project.as_str());
    let (sql, cells) = match of {
        LogsOf::Attempt(fence) => (OF_ATTEMPT, cells![run.key(), stored(fence), limit, project]),
        LogsOf::After { entry, fence } => {
            (AFTER, cells![run.key(), stored(entry), stored(fence), limit, project])
        }
    };
    db.decoded(&table::LOGS, &db.ask(sql, &cells).await?, read)
}

fn read(row: &Row) -> Result<LogRow, StoreError> {
    decode::log(&mut PostgresColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[WRITE, OF_ATTEMPT, AFTER];
