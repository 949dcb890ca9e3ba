//! Ready jobs of a queue by limit key, and the jobs that workers hold of each.

use tokio_postgres::Row;
use uuid::Uuid;
use windlass_engine::project::Project;

use super::read;
use crate::column::{Columns, bound};
use crate::error::StoreError;
use crate::job::{HeldRow, KeyBatch, KeyQuery, KeyRows};
use crate::postgres::column::{PostgresColumns, PostgresId, cells, text, unescape};
use crate::postgres::link::{BoundStatement, Link};
use crate::table;

const IS_PAUSED: &str = "SELECT 1 FROM queues WHERE project = $2 AND name = $1 AND is_paused";
// The empty key is not in the index of keys; it is found where jobs without one are.
const NEXT_PRIORITY: &str = "SELECT max(priority) FROM ( \
     (SELECT priority FROM jobs WHERE project = $3 AND queue = $1 AND priority < $2::bigint AND status = 'queued' \
         AND limit_key <> '' ORDER BY priority DESC LIMIT 1) \
     UNION ALL (SELECT priority FROM jobs WHERE project = $3 AND queue = $1 AND priority < $2::bigint AND due_at IS NOT NULL \
         AND limit_key = '' ORDER BY priority DESC LIMIT 1)) AS few";

macro_rules! without {
    ($project:literal) => {
        concat!(
            "FROM jobs WHERE project = ",
            $project,
            " AND queue = $1 AND priority = $2 AND due_at <= $3 AND limit_key = '' AND status = 'queued' \
             AND id <> ALL ($4::uuid[])"
        )
    };
}
macro_rules! of_key {
    ($key:literal, $project:literal) => {
        concat!(
            "FROM jobs WHERE project = ",
            $project,
            " AND queue = $1 AND priority = $2 AND limit_key = ",
            $key,
            " AND limit_key <> '' AND status = 'queued' AND id <> ALL ($4::uuid[]) \
             AND ($5::text IS NULL OR name = $5)"
        )
    };
}
const HAS_WITHOUT: &str = concat!("SELECT 1 ", without!("$5"), " LIMIT 1");
const HAS_WITHOUT_OF_SERVICE: &str = concat!("SELECT 1 ", without!("$6"), " AND name = $5 LIMIT 1");
// From one key to the next, not from job to job, and no further than is asked for.
const KEYS: &str = concat!(
    "WITH RECURSIVE chain (key) AS ((",
    "SELECT limit_key FROM jobs WHERE project = $9 AND queue = $1 AND priority = $2 AND limit_key > $3 AND limit_key <> '' \
     AND status = 'queued' ORDER BY limit_key LIMIT 1",
    ") UNION ALL SELECT next.limit_key FROM chain, LATERAL (",
    "SELECT limit_key FROM jobs WHERE project = $9 AND queue = $1 AND priority = $2 AND limit_key > chain.key AND limit_key <> '' \
     AND status = 'queued' ORDER BY limit_key LIMIT 1",
    ") AS next) SELECT key FROM chain WHERE ($6::text IS NULL OR key <= $6) AND key <> ALL ($7::text[]) \
     AND EXISTS (SELECT 1 ",
    of_key!("chain.key", "$9"),
    ") LIMIT $8"
);
const OF_KEY: &str = concat!(
    rows_of!("SELECT due_at, id ", of_key!("$3", "$7"), " ORDER BY due_at, id LIMIT $6"),
    " ORDER BY wanted.due_at, wanted.id"
);
const WITHOUT: &str = concat!(
    rows_of!("SELECT due_at, id ", without!("$7"), " AND $5::text IS NULL ORDER BY due_at, id LIMIT $6"),
    " ORDER BY wanted.due_at, wanted.id"
);
const WITHOUT_OF_SERVICE: &str = concat!(
    rows_of!("SELECT due_at, id ", without!("$7"), " AND name = $5 ORDER BY due_at, id LIMIT $6"),
    " ORDER BY wanted.due_at, wanted.id"
);
const HELD: &str =
    "SELECT id, rev, limit_key FROM jobs WHERE status = 'running' AND project = $2 AND queue = $1";

/// One key of one priority.
type KeyRank = (i32, String);

/// The query, in the form in which it is bound.
struct KeyRequest<'q> {
    project: &'q str,
    query: &'q KeyQuery,
    queue: String,
    service: Option<String>,
    taken: Vec<Uuid>,
    except: Vec<String>,
}

pub(in crate::postgres) async fn ready_by_key(
    db: &Link,
    project: &Project,
    query: &KeyQuery,
) -> Result<KeyRows, StoreError> {
    let asked = KeyRequest {
        project: project.as_str(),
        query,
        queue: text(&query.queue).into_owned(),
        service: query.service.as_deref().map(|service| text(service).into_owned()),
        taken: query.taken.iter().map(|job| job.key()).collect(),
        except: query.except.iter().map(|key| text(key).into_owned()).collect(),
    };
    if db.ask_one(IS_PAUSED, &cells![&asked.queue, asked.project]).await?.is_some() {
        return Ok(KeyRows::default());
    }
    let (found, rest) = turns(db, &asked).await?;
    let n_each = query.limit.checked_div(found.len()).unwrap_or(query.limit).max(1);
    Ok(KeyRows { turns: of_turns(db, &asked, found, n_each).await?, rest })
}

/// The keys that have something, at most as many as jobs are wanted, and from which priority on there are more.
async fn turns(db: &Link, asked: &KeyRequest<'_>) -> Result<(Vec<KeyRank>, Option<i32>), StoreError> {
    let limit = asked.query.limit;
    let mut found = Vec::new();
    let mut above = i64::MAX;
    loop {
        let next = db.ask_one(NEXT_PRIORITY, &cells![&asked.queue, above, asked.project]).await?;
        let next: Option<i32> = next.map_or(Ok(None), |row| PostgresColumns::of(&row).value())?;
        let Some(priority) = next else { return Ok((found, None)) };
        above = priority.into();
        // From where the last question ended to the last key, and from the first key to there.
        let ranges = match asked.query.after.as_deref() {
            None => vec![(None, None)],
            Some(after) => vec![(Some(after), None), (None, Some(after))],
        };
        for (from, to) in ranges {
            for key in keys(db, asked, priority, from, to).await? {
                if found.len() >= limit {
                    return Ok((found, Some(priority)));
                }
                found.push((priority, key));
            }
        }
    }
}

/// The keys of a priority that have something, after one and up to another: at most one more than are wanted.
async fn keys(
    db: &Link,
    asked: &KeyRequest<'_>,
    priority: i32,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<Vec<String>, StoreError> {
    let KeyRequest { project, query, queue, service, taken, except } = asked;
    let mut found = Vec::new();
    // The empty key is the first one.
    if from.is_none() && !query.except.contains("") && has_without(db, asked, priority).await? {
        found.push(String::new());
    }
    let most = bound(query.limit.saturating_add(1));
    let (from, to) = (text(from.unwrap_or_default()), to.map(text));
    let cells = cells![queue, priority, from, taken, service, to, except, most, project];
    for row in &db.ask(KEYS, &cells).await? {
        found.push(unescape(PostgresColumns::of(row).value()?));
    }
    found.sort();
    Ok(found)
}

async fn has_without(db: &Link, asked: &KeyRequest<'_>, priority: i32) -> Result<bool, StoreError> {
    let KeyRequest { project, query, queue, service, taken, .. } = asked;
    let found = match service {
        None => {
            let cells = cells![queue, priority, query.now.0, taken, project];
            db.ask_one(HAS_WITHOUT, &cells).await?
        }
        Some(service) => {
            let cells = cells![queue, priority, query.now.0, taken, service, project];
            db.ask_one(HAS_WITHOUT_OF_SERVICE, &cells).await?
        }
    };
    Ok(found.is_some())
}

/// The first jobs of every turn, asked for at once.
async fn of_turns(
    db: &Link,
    asked: &KeyRequest<'_>,
    found: Vec<KeyRank>,
    n: usize,
) -> Result<Vec<KeyBatch>, StoreError> {
    let KeyRequest { project, query, queue, service, taken, .. } = asked;
    // One more tells whether those are all.
    let most = bound(n.saturating_add(1));
    let ask = |(priority, key): &KeyRank| {
        let priority = *priority;
        if key.is_empty() {
            let sql = if service.is_some() { WITHOUT_OF_SERVICE } else { WITHOUT };
            BoundStatement::new(sql, cells![queue, priority, query.now.0, taken, service, most, project])
        } else {
            let key = text(key).into_owned();
            BoundStatement::new(OF_KEY, cells![queue, priority, key, taken, service, most, project])
        }
    };
    let asks: Vec<BoundStatement<'_>> = found.iter().map(ask).collect();
    let answers = db.ask_all(&asks).await?;
    let mut turns = Vec::with_capacity(found.len());
    for ((priority, key), rows) in found.into_iter().zip(answers) {
        let is_all = rows.len() <= n;
        let rows = db.decoded(&table::JOBS, rows.get(..n).unwrap_or(&rows), read)?;
        if !rows.is_empty() {
            turns.push(KeyBatch { key, priority, rows, is_all });
        }
    }
    Ok(turns)
}

/// Jobs of a queue that workers have.
pub(in crate::postgres) async fn held(
    db: &Link,
    project: &Project,
    queue: &str,
) -> Result<Vec<HeldRow>, StoreError> {
    let rows = db.ask(HELD, &cells![text(queue), project.as_str()]).await?;
    db.decoded(&table::JOBS, &rows, read_held)
}

fn read_held(row: &Row) -> Result<HeldRow, StoreError> {
    let mut columns = PostgresColumns::of(row);
    Ok(HeldRow { job: columns.id()?, rev: columns.number()?, limit_key: columns.text()? })
}

#[cfg(test)]
pub(in crate::postgres) const ALL: &[&str] = &[
    IS_PAUSED,
    NEXT_PRIORITY,
    HAS_WITHOUT,
    HAS_WITHOUT_OF_SERVICE,
    KEYS,
    OF_KEY,
    WITHOUT,
    WITHOUT_OF_SERVICE,
    HELD,
];
