//! Jobs without their large payloads.

use tokio_postgres::Row;
use windlass_engine::project::Project;

use crate::column::bound;
use crate::decode;
use crate::error::StoreError;
use crate::job::{JobOutline, OUTLINE_PAYLOAD_MAX, OutlineQuery};
use crate::postgres::attempt;
use crate::postgres::column::{PostgresColumns, PostgresId, cells, text};
use crate::postgres::link::Link;
use crate::table;

macro_rules! outlines {
    ($($rest:literal),*) => {
        concat!(
            "SELECT octet_length(payload) > $1 AS is_cut, id, rev, state, fence, round, memo, replays, call_run, \
             call_node, call_fence, schedule, created_at, updated_at, spec, \
             CASE WHEN octet_length(payload) > $1 THEN to_json(left(payload, $1))::text ELSE payload END AS payload, ",
            crate::postgres::attempt::attempts_json!(),
            " AS attempts FROM jobs JOIN job_specs ON job_specs.job = jobs.id WHERE ",
            $($rest),*
        )
    };
}
const BY_IDS: &str = concat!(
    "SELECT its.* FROM unnest($3::uuid[]) AS wanted (id), LATERAL (",
    outlines!("jobs.id = wanted.id AND project = $2 OFFSET 0"),
    ") AS its"
);
const DELAYED: &str = outlines!("project = $2 AND queue = $3 AND due_at > $4 ORDER BY due_at LIMIT $5");
const DEAD_LETTERS: &str =
    outlines!("project = $2 AND queue = $3 AND is_dead_letter ORDER BY created_at DESC, id DESC LIMIT $4");

pub(in crate::postgres) async fn job_outlines(
    db: &Link,
    project: &Project,
    query: &OutlineQuery,
) -> Result<Vec<JobOutline>, StoreError> {
    let (most, project) = (i32::try_from(OUTLINE_PAYLOAD_MAX).unwrap_or(i32::MAX), project.as_str());
    let rows = match query {
        OutlineQuery::Ids(ids) => {
            let ids: Vec<uuid::Uuid> = ids.iter().map(|id| id.key()).collect();
            db.ask(BY_IDS, &cells![most, project, ids]).await?
        }
        OutlineQuery::Delayed { queue, now, limit } => {
            db.ask(DELAYED, &cells![most, project, text(queue), now.0, bound(*limit)]).await?
        }
        OutlineQuery::DeadLetters { queue, limit } => {
            db.ask(DEAD_LETTERS, &cells![most, project, text(queue), bound(*limit)]).await?
        }
    };
    db.decoded(&table::JOBS, &rows, read)
}

fn read(row: &Row) -> Result<JobOutline, StoreError> {
    decode::job_outline(&mut PostgresColumns::of(row), |columns, _| attempt::remembered(columns.value()?))
}

#[cfg(test)]
pub(in crate::postgres) const ALL: &[&str] = &[BY_IDS, DELAYED, DEAD_LETTERS];
