//! Settings of queues, and how full they are.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, cells, text, unnest};
use super::link::{BoundStatement, Link};
use super::read_set::ReadSet;
use super::{depth, guard, job};
use crate::column::{Columns, bound, json};
use crate::commit::QueueGuard;
use crate::decode;
use crate::error::{StoreError, Subject};
use crate::page::NameRange;
use crate::queue::{Held, QueueDepth, QueueSettings, Spent};
use crate::table;

const SAVE: &str = "INSERT INTO queues (name, is_paused, limits, updated_at, project) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (project, name) DO UPDATE SET is_paused = excluded.is_paused, limits = excluded.limits, \
     updated_at = excluded.updated_at";
// A transaction that hands out jobs of a queue with limits locks the queue's row.
const TURNS: &str =
    "SELECT name, turns FROM queues WHERE project = $2 AND name = ANY($1) ORDER BY name FOR NO KEY UPDATE";
const TURN: &str = "UPDATE queues SET turns = new.turns FROM UNNEST($1::text[], $2::bigint[]) AS new (name, turns) \
     WHERE queues.project = $3 AND queues.name = new.name";
const TURNS_OF: &str = "SELECT turns FROM queues WHERE project = $2 AND name = $1";
const SPENT_OF: &str =
    "SELECT queue, limit_key, full_at FROM queue_rates WHERE project = $2 AND queue = $1 ORDER BY limit_key";
const SETTINGS: &str = "SELECT name, is_paused, limits FROM queues WHERE project = $1 AND name > $2 \
     ORDER BY name LIMIT $3";
const SETTINGS_OF: &str =
    "SELECT name, is_paused, limits FROM queues WHERE project = $1 AND name = $2 LIMIT $3";
// The shards of an empty queue add up to zero.
const FORGET: &str = "DELETE FROM queues WHERE (project, name) IN (SELECT project, name FROM queues \
     WHERE NOT is_paused AND limits = '{}' AND updated_at < $1 AND NOT EXISTS (SELECT 1 FROM queue_depths \
     WHERE queue_depths.project = queues.project AND queue_depths.queue = queues.name \
     HAVING sum(pending) <> 0 OR sum(queued) <> 0 OR sum(running) <> 0 OR sum(suspended) <> 0 \
     OR sum(retrying) <> 0 OR sum(dead) <> 0) LIMIT $2 FOR UPDATE SKIP LOCKED)";
// In order, so that two who spend the same rates do not wait for one another.
const SPEND: &str = "INSERT INTO queue_rates (queue, limit_key, full_at, project) \
     SELECT queue, limit_key, max(full_at), $4::text FROM UNNEST($1::text[], $2::text[], $3::bigint[]) \
     AS new (queue, limit_key, full_at) GROUP BY queue, limit_key ORDER BY queue COLLATE \"C\", limit_key COLLATE \"C\" \
     ON CONFLICT (project, queue, limit_key) DO UPDATE SET full_at = greatest(queue_rates.full_at, excluded.full_at)";
const FORGET_SPENT: &str = "DELETE FROM queue_rates WHERE (project, queue, limit_key) IN \
     (SELECT project, queue, limit_key FROM queue_rates WHERE project = $2 AND full_at <= $1 LIMIT 1000 FOR UPDATE SKIP LOCKED)";
const SPENT: &str =
    "SELECT queue, limit_key, full_at FROM queue_rates WHERE project = $1 ORDER BY queue, limit_key";

pub(super) async fn save(db: &Link, project: &Project, settings: &QueueSettings) -> Result<(), StoreError> {
    let QueueSettings { name, is_paused, limits, updated_at } = settings;
    let row = cells![text(name), is_paused, json(limits), updated_at.0, project.as_str()];
    db.execute(SAVE, &row).await?;
    Ok(())
}

pub(super) fn turns<'a>(queues: &BTreeSet<&'a str>) -> BoundStatement<'a> {
    BoundStatement::new(TURNS, cells![queues.iter().map(|queue| text(queue)).collect::<Vec<_>>()])
}

pub(super) fn check_turn(read_set: &ReadSet, turn: &QueueGuard) -> Result<(), StoreError> {
    let found = read_set.turns.get(&turn.queue).copied().unwrap_or(0);
    guard(|| Subject::Queue(turn.queue.clone()), turn.expected, found)
}

pub(super) fn have_turns<'a>(rows: &[(&'a str, u64)]) -> BoundStatement<'a> {
    BoundStatement::new(TURN, unnest!(rows, |row| [text(row.0), bound(row.1)]))
}

pub(super) fn spend_rows<'a>(spent: &[&'a Spent]) -> BoundStatement<'a> {
    BoundStatement::new(
        SPEND,
        unnest!(spent, |spent| [text(&spent.queue), text(&spent.limit_key), spent.full_at.0]),
    )
}

/// Consumption of the limits of a queue: the claim counter first, so that no claimed job is missing.
pub(super) async fn held(db: &Link, project: &Project, queue: &str) -> Result<Held, StoreError> {
    let turns = db.ask(TURNS_OF, &cells![text(queue), project.as_str()]).await?;
    let turns = turns.first().map(|row| PostgresColumns::of(row).number()).transpose()?.unwrap_or(0);
    let jobs = job::held(db, project, queue).await?;
    let spent = db.ask(SPENT_OF, &cells![text(queue), project.as_str()]).await?;
    let spent = db.decoded(&table::QUEUE_RATES, &spent, read_spent)?;
    Ok(Held { turns, jobs, spent })
}

fn read_spent(row: &Row) -> Result<Spent, StoreError> {
    decode::spent(&mut PostgresColumns::of(row))
}

pub(super) async fn spend(
    db: &Link,
    project: &Project,
    spent: &[Spent],
    now: Timestamp,
) -> Result<(), StoreError> {
    let ask = spend_rows(&spent.iter().collect::<Vec<_>>()).in_project(project);
    db.execute(ask.sql, &ask.cells).await?;
    db.execute(FORGET_SPENT, &cells![now.0, project.as_str()]).await?;
    Ok(())
}

pub(super) async fn spent(db: &Link, project: &Project) -> Result<Vec<Spent>, StoreError> {
    db.decoded(&table::QUEUE_RATES, &db.ask(SPENT, &cells![project.as_str()]).await?, read_spent)
}

/// Deletes queues without settings and jobs, and returns how many. The row of a queue that gets its first job meanwhile
/// says nothing: the queue is listed by its job.
pub(super) async fn forget(db: &Link, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    let n = db.execute(FORGET, &cells![before.0, bound(limit)]).await?;
    Ok(usize::try_from(n).unwrap_or(usize::MAX))
}

/// Queues with settings or with jobs.
pub(super) async fn depths(
    db: &Link,
    project: &Project,
    names: &NameRange,
    now: Timestamp,
) -> Result<Vec<QueueDepth>, StoreError> {
    let mut depths: BTreeMap<String, QueueDepth> = BTreeMap::new();
    let settings = if names.is_one() { SETTINGS_OF } else { SETTINGS };
    let range = cells![project.as_str(), text(names.bound_name()), bound(names.limit())];
    let settings = db.decoded(&table::QUEUES, &db.ask(settings, &range).await?, |row| {
        let mut columns = PostgresColumns::of(row);
        let (name, is_paused, limits) = (columns.text()?, columns.value()?, columns.json()?);
        Ok(QueueDepth { name, is_paused, limits, ..QueueDepth::default() })
    })?;
    depths.extend(settings.into_iter().map(|depth| (depth.name.clone(), depth)));
    depth::read(db, project, names, now, &mut depths).await?;
    let named = depths.into_iter().map(|(name, depth)| QueueDepth { name, ..depth });
    // Each table gave as many names as the range may have: the first of both together are complete.
    Ok(named.take(names.limit()).collect())
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[SAVE, TURNS, TURN, TURNS_OF, SPENT_OF, SETTINGS, SETTINGS_OF, FORGET, SPEND, FORGET_SPENT, SPENT];
