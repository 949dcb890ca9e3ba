//! Claimable jobs, in order: of every queue, or service in a queue, priority by priority, until there are
//! enough; and only the rows that are wanted are read.
//!
//! Nothing is locked: the server that hands a job out commits the claim, and one of two claims is refused.

use tokio_postgres::Row;
use windlass_engine::id::JobId;
use windlass_engine::project::Project;

use super::read;
use crate::column::{Columns, bound};
use crate::error::StoreError;
use crate::job::{JobRow, Portion, ReadyCursor, ReadyQuery};
use crate::postgres::column::{Cell, PostgresColumns, PostgresId, cells, text};
use crate::postgres::link::Link;
use crate::table;

macro_rules! by_queue {
    ($of:literal) => {
        concat!("project = $13 AND queue = ", $of, ".queue")
    };
}
macro_rules! by_pair {
    ($of:literal) => {
        concat!("project = $13 AND name = ", $of, ".name AND queue = ", $of, ".queue")
    };
}
/// Due jobs of one priority, from the cursor on.
macro_rules! due {
    ($of:literal, $by:ident, $which:literal) => {
        concat!(
            "FROM jobs WHERE ",
            $by!($of),
            " AND priority = ",
            $of,
            ".priority AND due_at <= $6 AND ($11::integer <= 1 OR get_byte(uuid_send(id), 15) % $11 = $12::integer) AND ",
            $which,
            " AND (due_at, id) >= (CASE WHEN ",
            $of,
            ".priority < $7 THEN '-9223372036854775808'::bigint ELSE $8 END, CASE WHEN ",
            $of,
            ".priority < $7 THEN '00000000-0000-0000-0000-000000000000'::uuid ELSE $9 END)"
        )
    };
}
/// The priorities of each stream, highest first, with the number of due jobs above: down to where there are enough. So jobs of a
/// high priority that are not due yet are not walked through.
macro_rules! levels {
    ($level:literal, $stream:literal, $by:ident, $which:literal) => {
        concat!(
            $level,
            " (queue, name, priority, n) AS (SELECT ",
            $stream,
            ".queue, ",
            $stream,
            ".name, first.priority, 0::bigint FROM ",
            $stream,
            ", LATERAL (SELECT priority FROM jobs WHERE ",
            $by!($stream),
            " AND priority <= $7 AND due_at IS NOT NULL AND ",
            $which,
            " ORDER BY priority DESC LIMIT 1) AS first UNION ALL SELECT ",
            $level,
            ".queue, ",
            $level,
            ".name, next.priority, ",
            $level,
            ".n + seen.n FROM ",
            $level,
            ", LATERAL (SELECT count(*) AS n FROM (SELECT 1 ",
            due!($level, $by, $which),
            " LIMIT $10) AS few) AS seen, LATERAL (SELECT priority FROM jobs WHERE ",
            $by!($level),
            " AND priority < ",
            $level,
            ".priority AND due_at IS NOT NULL AND ",
            $which,
            " ORDER BY priority DESC LIMIT 1) AS next WHERE ",
            $level,
            ".n + seen.n < $10)"
        )
    };
}
macro_rules! places {
    ($level:literal, $by:ident, $which:literal) => {
        concat!(
            "SELECT ",
            $level,
            ".priority, found.due_at, found.id FROM ",
            $level,
            ", LATERAL (SELECT due_at, id ",
            due!($level, $by, $which),
            " ORDER BY due_at, id LIMIT $10) AS found"
        )
    };
}
macro_rules! next_queue {
    ($name:literal, $above:literal, $which:literal) => {
        concat!(
            "(SELECT queue FROM jobs WHERE project = $13 AND name = ",
            $name,
            $above,
            " AND due_at IS NOT NULL AND ",
            $which,
            " ORDER BY queue LIMIT 1)"
        )
    };
}
/// The queues that have open jobs of a service: from one to the next, not from job to job.
macro_rules! served {
    ($served:literal, $which:literal) => {
        concat!(
            $served,
            " (name, queue) AS (SELECT asked.name, ",
            next_queue!("asked.name", "", $which),
            " FROM UNNEST($2::text[]) AS asked (name) UNION ALL SELECT name, ",
            next_queue!("last.name", " AND queue > last.queue", $which),
            " FROM ",
            $served,
            " AS last WHERE queue IS NOT NULL)"
        )
    };
}

// Jobs with a limit key are in other indexes than those without: every query reads both.
macro_rules! found {
    () => {
        concat!(
            "WITH RECURSIVE paused AS (SELECT name FROM queues WHERE project = $13 AND is_paused), ",
            served!("served", "limit_key = ''"),
            ", ",
            served!("keyed_served", "limit_key <> ''"),
            ", whole AS (SELECT DISTINCT asked.queue, '' AS name FROM UNNEST($1::text[]) AS asked (queue) \
             WHERE asked.queue NOT IN (SELECT name FROM paused)), \
             pair AS (SELECT queue, name FROM (SELECT queue, name FROM served WHERE queue <> ALL ($3::text[]) \
             UNION SELECT queue, name FROM keyed_served WHERE queue <> ALL ($3::text[]) \
             UNION SELECT queue, name FROM UNNEST($4::text[], $5::text[]) AS asked (queue, name)) AS any_of \
             WHERE queue IS NOT NULL AND queue <> ALL ($1::text[]) AND queue NOT IN (SELECT name FROM paused)), ",
            levels!("queue_level", "whole", by_queue, "limit_key = ''"),
            ", ",
            levels!("keyed_queue_level", "whole", by_queue, "limit_key <> ''"),
            ", ",
            levels!("pair_level", "pair", by_pair, "limit_key = ''"),
            ", ",
            levels!("keyed_pair_level", "pair", by_pair, "limit_key <> ''"),
            ", place AS (",
            places!("queue_level", by_queue, "limit_key = ''"),
            " UNION ALL ",
            places!("keyed_queue_level", by_queue, "limit_key <> ''"),
            " UNION ALL ",
            places!("pair_level", by_pair, "limit_key = ''"),
            " UNION ALL ",
            places!("keyed_pair_level", by_pair, "limit_key <> ''"),
            ") "
        )
    };
}
/// The same of jobs of runs, which are in indexes of their own, with limit keys or without.
macro_rules! found_of_runs {
    () => {
        concat!(
            "WITH RECURSIVE paused AS (SELECT name FROM queues WHERE project = $13 AND is_paused), ",
            served!("served", "run IS NOT NULL"),
            ", whole AS (SELECT DISTINCT asked.queue, '' AS name FROM UNNEST($1::text[]) AS asked (queue) \
             WHERE asked.queue NOT IN (SELECT name FROM paused)), \
             pair AS (SELECT queue, name FROM (SELECT queue, name FROM served WHERE queue <> ALL ($3::text[]) \
             UNION SELECT queue, name FROM UNNEST($4::text[], $5::text[]) AS asked (queue, name)) AS any_of \
             WHERE queue IS NOT NULL AND queue <> ALL ($1::text[]) AND queue NOT IN (SELECT name FROM paused)), ",
            levels!("queue_level", "whole", by_queue, "run IS NOT NULL"),
            ", ",
            levels!("pair_level", "pair", by_pair, "run IS NOT NULL"),
            ", place AS (",
            places!("queue_level", by_queue, "run IS NOT NULL"),
            " UNION ALL ",
            places!("pair_level", by_pair, "run IS NOT NULL"),
            ") "
        )
    };
}
macro_rules! first_places {
    () => {
        "SELECT priority, due_at, id FROM place ORDER BY priority DESC, due_at, id LIMIT $10"
    };
}

const READY: &str =
    concat!(found!(), rows_of!(first_places!()), " ORDER BY wanted.priority DESC, wanted.due_at, wanted.id");
const READY_OF_RUNS: &str = concat!(
    found_of_runs!(),
    rows_of!(first_places!()),
    " ORDER BY wanted.priority DESC, wanted.due_at, wanted.id"
);
const PLACES: &str = concat!(found!(), first_places!());
const PLACES_OF_RUNS: &str = concat!(found_of_runs!(), first_places!());

macro_rules! of_these {
    () => {
        "SELECT priority, due_at, id FROM jobs WHERE id = ANY ($1::uuid[]) AND project = $4 \
         AND due_at <= $2 AND queue NOT IN (SELECT name FROM queues WHERE project = $4 AND is_paused) ORDER BY priority DESC, due_at, id LIMIT $3"
    };
}
const THESE: &str =
    concat!(rows_of!(of_these!()), " ORDER BY wanted.priority DESC, wanted.due_at, wanted.id");
const THEIR_PLACES: &str = of_these!();

/// Above every priority.
const TOP: i32 = i32::MAX;

pub(in crate::postgres) async fn ready(
    db: &Link,
    project: &Project,
    query: &ReadyQuery,
) -> Result<Vec<JobRow>, StoreError> {
    let sql = match (query.ids.is_empty(), query.is_of_runs) {
        (false, _) => THESE,
        (true, true) => READY_OF_RUNS,
        (true, false) => READY,
    };
    db.first_rows(&table::JOBS, sql, query.limit, |limit| cells_of(project, query, limit), read).await
}

/// The same without the jobs.
pub(in crate::postgres) async fn ready_cursors(
    db: &Link,
    project: &Project,
    query: &ReadyQuery,
) -> Result<Vec<ReadyCursor>, StoreError> {
    let sql = match (query.ids.is_empty(), query.is_of_runs) {
        (false, _) => THEIR_PLACES,
        (true, true) => PLACES_OF_RUNS,
        (true, false) => PLACES,
    };
    let place = |row: &Row| {
        let mut columns = PostgresColumns::of(row);
        let (priority, due_at) = (columns.value()?, columns.time()?);
        Ok(ReadyCursor { priority, due_at, id: columns.id()? })
    };
    db.ask(sql, &cells_of(project, query, bound(query.limit))).await?.iter().map(place).collect()
}

fn cells_of<'a>(project: &'a Project, query: &ReadyQuery, limit: i64) -> Vec<Cell<'a>> {
    let ReadyQuery { queues, services, pairs, ids, except, is_of_runs: _, portion, from, now, limit: _ } =
        query;
    if !ids.is_empty() {
        let keys: Vec<uuid::Uuid> = ids.iter().map(|id| id.key()).collect();
        return cells![keys, now.0, limit, project.as_str()];
    }
    let portion = portion.unwrap_or(Portion { at: 0, of: 1 });
    let small = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let texts = |all: &[String]| all.iter().map(|one| text(one).into_owned()).collect::<Vec<_>>();
    let (of, names): (Vec<String>, Vec<String>) = pairs.iter().cloned().unzip();
    let first = ReadyCursor {
        priority: TOP,
        due_at: windlass_engine::time::Timestamp(i64::MIN),
        id: JobId::new(uuid::Uuid::nil()),
    };
    let from = from.unwrap_or(first);
    cells![
        texts(queues),
        texts(services),
        texts(except),
        texts(&of),
        texts(&names),
        now.0,
        from.priority,
        from.due_at.0,
        from.id.key(),
        limit,
        small(portion.of),
        small(portion.at),
        project.as_str()
    ]
}

#[cfg(test)]
pub(in crate::postgres) const ALL: &[&str] =
    &[READY, READY_OF_RUNS, PLACES, PLACES_OF_RUNS, THESE, THEIR_PLACES];
