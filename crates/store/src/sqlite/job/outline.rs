//! Jobs without their large payloads.

use rusqlite::{Row, params};
use windlass_engine::project::Project;

use crate::column::{Columns, bound};
use crate::decode;
use crate::error::StoreError;
use crate::job::{JobOutline, OUTLINE_PAYLOAD_MAX, OutlineQuery};
use crate::sqlite::attempt;
use crate::sqlite::column::{SqliteColumns, SqliteId};
use crate::sqlite::readers::ReadConnection;
use crate::table;

macro_rules! outlines {
    ($rest:literal) => {
        concat!(
            "SELECT length(CAST(payload AS BLOB)) > ?1, id, rev, state, fence, round, memo, replays, call_run, \
             call_node, call_fence, schedule, created_at, updated_at, spec, \
             CASE WHEN length(CAST(payload AS BLOB)) > ?1 THEN json_quote(substr(payload, 1, ?1)) ELSE payload END, \
             attempts_from FROM jobs JOIN job_specs ON job_specs.job = jobs.id WHERE ",
            $rest
        )
    };
}
const BY_ID: &str = outlines!("id = ?3 AND project = ?2");
const DELAYED: &str = outlines!("project = ?2 AND queue = ?3 AND due_at > ?4 ORDER BY due_at LIMIT ?5");
const DEAD_LETTERS: &str = outlines!(
    "project = ?2 AND queue = ?3 AND is_dead_letter = 1 ORDER BY created_at DESC, id DESC LIMIT ?4"
);

pub(in crate::sqlite) fn job_outlines(
    db: &ReadConnection,
    project: &Project,
    query: &OutlineQuery,
) -> Result<Vec<JobOutline>, StoreError> {
    let (most, project) = (bound(OUTLINE_PAYLOAD_MAX), project.as_str());
    let read = |row: &Row<'_>| {
        decode::job_outline(&mut SqliteColumns::of(row), |columns, id| {
            let from = columns.small()?;
            attempt::remembered(&db.connection, id, from)
        })
    };
    match query {
        OutlineQuery::Ids(ids) => {
            let mut found = Vec::with_capacity(ids.len());
            for id in ids {
                found.extend(db.rows(&table::JOBS, BY_ID, params![most, project, id.key()], read)?);
            }
            Ok(found)
        }
        OutlineQuery::Delayed { queue, now, limit } => {
            db.rows(&table::JOBS, DELAYED, params![most, project, queue, now.0, bound(*limit)], read)
        }
        OutlineQuery::DeadLetters { queue, limit } => {
            db.rows(&table::JOBS, DEAD_LETTERS, params![most, project, queue, bound(*limit)], read)
        }
    }
}

#[cfg(test)]
pub(in crate::sqlite) const ALL: &[&str] = &[BY_ID, DELAYED, DEAD_LETTERS];
