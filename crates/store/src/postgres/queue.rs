//! Settings of queues, and how full they are.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;
use windlass_engine::time::Timestamp;

use super::column::{Columns, bound, cells, json, text, unnest};
use super::desk::Desk;
use super::link::{Ask, Link};
use super::{depth, guard, job};
use crate::commit::Turn;
use crate::error::{StoreError, Subject};
use crate::queue::{Held, QueueDepth, QueueSettings, Spent};

const SAVE: &str = "INSERT INTO queues (name, is_paused, limits, updated_at) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (name) DO UPDATE SET is_paused = excluded.is_paused, limits = excluded.limits, \
     updated_at = excluded.updated_at";
// Whoever hands out jobs of a queue with limits has it to itself until that is written.
const TURNS: &str = "SELECT name, turns FROM queues WHERE name = ANY($1) ORDER BY name FOR NO KEY UPDATE";
const TURN: &str = "UPDATE queues SET turns = new.turns FROM UNNEST($1::text[], $2::bigint[]) AS new (name, turns) \
     WHERE queues.name = new.name";
const TURNS_OF: &str = "SELECT turns FROM queues WHERE name = $1";
const SPENT_OF: &str =
    "SELECT queue, limit_key, full_at FROM queue_rates WHERE queue = $1 ORDER BY limit_key";
const SETTINGS: &str = "SELECT name, is_paused, limits FROM queues";
// In order, so that two who spend the same rates do not wait for one another.
const SPEND: &str = "INSERT INTO queue_rates (queue, limit_key, full_at) \
     SELECT queue, limit_key, max(full_at) FROM UNNEST($1::text[], $2::text[], $3::bigint[]) \
     AS new (queue, limit_key, full_at) GROUP BY queue, limit_key ORDER BY queue COLLATE \"C\", limit_key COLLATE \"C\" \
     ON CONFLICT (queue, limit_key) DO UPDATE SET full_at = greatest(queue_rates.full_at, excluded.full_at)";
const FORGET_SPENT: &str = "DELETE FROM queue_rates WHERE (queue, limit_key) IN \
     (SELECT queue, limit_key FROM queue_rates WHERE full_at <= $1 LIMIT 1000 FOR UPDATE SKIP LOCKED)";
const SPENT: &str = "SELECT queue, limit_key, full_at FROM queue_rates ORDER BY queue, limit_key";

pub(super) async fn save(db: &Link, settings: &QueueSettings) -> Result<(), StoreError> {
    let QueueSettings { name, is_paused, limits, updated_at } = settings;
    db.execute(SAVE, &cells![text(name), is_paused, json(limits), updated_at.0]).await?;
    Ok(())
}

pub(super) fn turns<'a>(queues: &BTreeSet<&'a str>) -> Ask<'a> {
    Ask::new(TURNS, cells![queues.iter().map(|queue| text(queue)).collect::<Vec<_>>()])
}

pub(super) fn check_turn(desk: &Desk, turn: &Turn) -> Result<(), StoreError> {
    let found = desk.turns.get(&turn.queue).copied().unwrap_or(0);
    guard(|| Subject::Queue(turn.queue.clone()), turn.expected, found)
}

pub(super) fn have_turns<'a>(rows: &[(&'a str, u64)]) -> Ask<'a> {
    Ask::new(TURN, unnest!(rows, |row| [text(row.0), bound(row.1)]))
}

pub(super) fn spend_rows<'a>(spent: &[&'a Spent]) -> Ask<'a> {
    Ask::new(SPEND, unnest!(spent, |spent| [text(&spent.queue), text(&spent.limit_key), spent.full_at.0]))
}

/// What counts against the limits of a queue: its turns first, so that no job of one is missing.
pub(super) async fn held(db: &Link, queue: &str) -> Result<Held, StoreError> {
    let turns = db.ask(TURNS_OF, &cells![text(queue)]).await?;
    let turns = turns.first().map(|row| Columns::of(row).number()).transpose()?.unwrap_or(0);
    let jobs = job::held(db, queue).await?;
    let spent =
        db.ask(SPENT_OF, &cells![text(queue)]).await?.iter().map(read_spent).collect::<Result<_, _>>()?;
    Ok(Held { turns, jobs, spent })
}

fn read_spent(row: &Row) -> Result<Spent, StoreError> {
    let mut columns = Columns::of(row);
    Ok(Spent { queue: columns.text()?, limit_key: columns.text()?, full_at: columns.time()? })
}

pub(super) async fn spend(db: &Link, spent: &[Spent], now: Timestamp) -> Result<(), StoreError> {
    let rows = unnest!(spent, |spent| [text(&spent.queue), text(&spent.limit_key), spent.full_at.0]);
    db.execute(SPEND, &rows).await?;
    db.execute(FORGET_SPENT, &cells![now.0]).await?;
    Ok(())
}

pub(super) async fn spent(db: &Link) -> Result<Vec<Spent>, StoreError> {
    db.ask(SPENT, &[]).await?.iter().map(read_spent).collect()
}

/// All queues that somebody has set something for, or that have something in them.
pub(super) async fn depths(db: &Link, now: Timestamp) -> Result<Vec<QueueDepth>, StoreError> {
    let mut depths: BTreeMap<String, QueueDepth> = BTreeMap::new();
    for row in &db.ask(SETTINGS, &[]).await? {
        let mut columns = Columns::of(row);
        let depth = depths.entry(columns.text()?).or_default();
        (depth.is_paused, depth.limits) = (columns.value()?, columns.json()?);
    }
    depth::read(db, now, &mut depths).await?;
    Ok(depths.into_iter().map(|(name, depth)| QueueDepth { name, ..depth }).collect())
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[SAVE, TURNS, TURN, TURNS_OF, SPENT_OF, SETTINGS, SPEND, FORGET_SPENT, SPENT];
