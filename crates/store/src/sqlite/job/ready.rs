//! Jobs that can be claimed, in order: streams of places, merged, and only the rows that are wanted are read.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashSet, VecDeque};

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;

use super::read;
use crate::error::StoreError;
use crate::job::{JobRow, ReadyPlace, ReadyQuery};
use crate::sqlite::column::{Id, Key, bound};

const BY_ROW: &str = concat!(columns!(), " WHERE jobs.rowid = ?1");
const PLACE: &str = "SELECT priority, due_at, id, rowid FROM jobs WHERE id = ?1 AND due_at <= ?2 \
     AND queue NOT IN (SELECT name FROM queues WHERE is_paused = 1)";
const IS_PAUSED: &str = "SELECT 1 FROM queues WHERE name = ?1 AND is_paused = 1";
/// Places that are read of a stream at once: streams are many, and of most only the first few are wanted.
const CHUNK: usize = 256;

// Jobs with a limit key are in other indexes than those without: whatever is asked is asked of both.
macro_rules! next_priority {
    ($by:literal, $which:literal) => {
        concat!(
            "SELECT priority FROM jobs WHERE ",
            $by,
            " AND priority < ?3 AND due_at IS NOT NULL AND ",
            $which,
            " ORDER BY priority DESC LIMIT 1"
        )
    };
}
macro_rules! places {
    ($by:literal, $which:literal) => {
        concat!(
            "SELECT due_at, id, rowid FROM jobs WHERE ",
            $by,
            " AND priority = ?3 AND due_at <= ?4 AND (due_at, id) > (?5, ?6) AND ",
            $which,
            " ORDER BY due_at, id LIMIT ?7"
        )
    };
}
macro_rules! next_queue {
    ($which:literal) => {
        concat!(
            "SELECT queue FROM jobs WHERE name = ?1 AND queue > ?2 AND due_at IS NOT NULL AND ",
            $which,
            " ORDER BY queue LIMIT 1"
        )
    };
}

/// The statements of a stream: its priorities, and its places within one.
type Statements = (&'static str, &'static str);

const OF_QUEUE: [Statements; 2] = [
    (
        next_priority!("queue = ?1 AND ?2 IS NULL", "limit_key = ''"),
        places!("queue = ?1 AND ?2 IS NULL", "limit_key = ''"),
    ),
    (
        next_priority!("queue = ?1 AND ?2 IS NULL", "limit_key <> ''"),
        places!("queue = ?1 AND ?2 IS NULL", "limit_key <> ''"),
    ),
];
const OF_PAIR: [Statements; 2] = [
    (
        next_priority!("queue = ?1 AND name = ?2", "limit_key = ''"),
        places!("queue = ?1 AND name = ?2", "limit_key = ''"),
    ),
    (
        next_priority!("queue = ?1 AND name = ?2", "limit_key <> ''"),
        places!("queue = ?1 AND name = ?2", "limit_key <> ''"),
    ),
];
/// Of runs, those with limit keys and those without are in one index.
const OF_QUEUE_AND_RUNS: [Statements; 1] = [(
    next_priority!("queue = ?1 AND ?2 IS NULL", "run IS NOT NULL"),
    places!("queue = ?1 AND ?2 IS NULL", "run IS NOT NULL"),
)];
const OF_PAIR_AND_RUNS: [Statements; 1] = [(
    next_priority!("queue = ?1 AND name = ?2", "run IS NOT NULL"),
    places!("queue = ?1 AND name = ?2", "run IS NOT NULL"),
)];
const NEXT_QUEUE: [&str; 2] = [next_queue!("limit_key = ''"), next_queue!("limit_key <> ''")];

/// Where a job stands among others.
type Place = (Reverse<i64>, i64, Key);

/// Ready jobs of a queue, or of one service in it, with limit keys or without.
struct Stream {
    statements: Statements,
    queue: String,
    service: Option<String>,
    priority: i64,
    /// Of the priority, the last place that was read.
    last: (i64, Vec<u8>),
    chunk: VecDeque<(Place, i64)>,
}

impl Stream {
    fn new(statements: Statements, queue: String, service: Option<String>, from: Option<ReadyPlace>) -> Self {
        let (priority, last) = from.map_or((i64::MAX, first()), |from| {
            // Right before the place: what an id begins with comes before it.
            let id = from.id.key();
            (i64::from(from.priority), (from.due_at.0, id[..id.len() - 1].to_vec()))
        });
        Stream { statements, queue, service, priority, last, chunk: VecDeque::new() }
    }

    /// The next place, and the row. Goes from priority to priority, so that jobs of a high one that are not due yet
    /// are not walked through.
    fn next(&mut self, db: &Connection, now: Timestamp) -> rusqlite::Result<Option<(Place, i64)>> {
        while self.chunk.is_empty() {
            if self.priority == i64::MAX || !self.read(db, now)? {
                let above = params![self.queue, self.service, self.priority];
                let next = db.prepare_cached(self.statements.0)?.query_row(above, |row| row.get(0));
                let Some(priority) = next.optional()? else { return Ok(None) };
                (self.priority, self.last) = (priority, first());
            }
        }
        Ok(self.chunk.pop_front())
    }

    /// Reads some more of the priority; whether there were any.
    fn read(&mut self, db: &Connection, now: Timestamp) -> rusqlite::Result<bool> {
        let Stream { queue, service, priority, .. } = &*self;
        let mut statement = db.prepare_cached(self.statements.1)?;
        let after = params![queue, service, priority, now.0, self.last.0, self.last.1, bound(CHUNK)];
        let mut rows = statement.query(after)?;
        while let Some(row) = rows.next()? {
            let (due, id): (i64, Key) = (row.get(0)?, row.get(1)?);
            self.chunk.push_back(((Reverse(self.priority), due, id), row.get(2)?));
            self.last = (due, id.to_vec());
        }
        Ok(!self.chunk.is_empty())
    }
}

/// Before every place of a priority.
fn first() -> (i64, Vec<u8>) {
    (i64::MIN, Vec::new())
}

pub(in crate::sqlite) fn ready(db: &Connection, query: &ReadyQuery) -> Result<Vec<JobRow>, StoreError> {
    let mut by_row = db.prepare_cached(BY_ROW)?;
    let rows = found(db, query)?.into_iter().map(|(_, row)| by_row.query_row([row], |row| read(db, row)));
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The same without the jobs.
pub(in crate::sqlite) fn ready_places(
    db: &Connection,
    query: &ReadyQuery,
) -> Result<Vec<ReadyPlace>, StoreError> {
    let place = |((Reverse(priority), due_at, id), _): (Place, i64)| ReadyPlace {
        // Stored as it was given, and that was no larger.
        priority: i32::try_from(priority).unwrap_or_default(),
        due_at: Timestamp(due_at),
        id: JobId::from_key(id),
    };
    Ok(found(db, query)?.into_iter().map(place).collect())
}

/// The places that are asked for, in order, each with its row.
fn found(db: &Connection, query: &ReadyQuery) -> Result<Vec<(Place, i64)>, StoreError> {
    if !query.ids.is_empty() {
        return these(db, query);
    }
    let mut streams = streams(db, query)?;
    let mut heads: BinaryHeap<Reverse<(Place, i64, usize)>> = BinaryHeap::new();
    for (at, stream) in streams.iter_mut().enumerate() {
        heads.extend(stream.next(db, query.now)?.map(|(place, row)| Reverse((place, row, at))));
    }
    let (mut seen, mut places) = (HashSet::new(), Vec::new());
    while places.len() < query.limit
        && let Some(Reverse((place, row, at))) = heads.pop()
    {
        // One that matches twice is in two streams.
        if seen.insert(row) {
            places.push((place, row));
        }
        heads.extend(streams[at].next(db, query.now)?.map(|(place, row)| Reverse((place, row, at))));
    }
    Ok(places)
}

/// Of jobs that are named, those that can be claimed.
fn these(db: &Connection, query: &ReadyQuery) -> Result<Vec<(Place, i64)>, StoreError> {
    let mut place = db.prepare_cached(PLACE)?;
    let mut places: BTreeSet<(Place, i64)> = BTreeSet::new();
    for id in &query.ids {
        let read = |row: &Row<'_>| Ok(((Reverse(row.get(0)?), row.get(1)?, row.get(2)?), row.get(3)?));
        places.extend(place.query_row(params![id.key(), query.now.0], read).optional()?);
    }
    Ok(places.into_iter().take(query.limit).collect())
}

fn streams(db: &Connection, query: &ReadyQuery) -> Result<Vec<Stream>, StoreError> {
    let mut queues: BTreeSet<&str> = BTreeSet::new();
    let mut pairs: BTreeSet<(String, String)> = BTreeSet::new();
    for queue in &query.queues {
        if !is_paused(db, queue)? {
            queues.insert(queue);
        }
    }
    for service in &query.services {
        for queue in queues_of(db, service)? {
            if !query.except.contains(&queue) && !is_paused(db, &queue)? {
                pairs.insert((queue, service.clone()));
            }
        }
    }
    for (queue, service) in &query.pairs {
        if !is_paused(db, queue)? {
            pairs.insert((queue.clone(), service.clone()));
        }
    }
    // What a whole queue tells is not told again.
    pairs.retain(|(queue, _)| !queues.contains(queue.as_str()));
    let (of_queue, of_pair): (&[Statements], &[Statements]) = match query.is_of_runs {
        true => (&OF_QUEUE_AND_RUNS, &OF_PAIR_AND_RUNS),
        false => (&OF_QUEUE, &OF_PAIR),
    };
    let of_queues = queues.iter().flat_map(|queue| {
        let stream = |all: &Statements| Stream::new(*all, (*queue).to_owned(), None, query.from);
        of_queue.iter().map(stream)
    });
    let of_pairs = pairs.iter().flat_map(|(queue, service)| {
        let stream = |all: &Statements| Stream::new(*all, queue.clone(), Some(service.clone()), query.from);
        of_pair.iter().map(stream)
    });
    Ok(of_queues.chain(of_pairs).collect())
}

/// The queues that have open jobs of a service: from one to the next, not from job to job.
fn queues_of(db: &Connection, service: &str) -> Result<BTreeSet<String>, StoreError> {
    let mut queues = BTreeSet::new();
    for sql in NEXT_QUEUE {
        let mut statement = db.prepare_cached(sql)?;
        let mut after = String::new();
        while let Some(queue) =
            statement.query_row(params![service, after], |row| row.get::<_, String>(0)).optional()?
        {
            queues.insert(queue.clone());
            after = queue;
        }
    }
    Ok(queues)
}

pub(super) fn is_paused(db: &Connection, queue: &str) -> Result<bool, StoreError> {
    Ok(db.prepare_cached(IS_PAUSED)?.exists([queue])?)
}

#[cfg(test)]
pub(in crate::sqlite) const ALL: &[&str] = &[
    BY_ROW,
    PLACE,
    IS_PAUSED,
    NEXT_QUEUE[0],
    NEXT_QUEUE[1],
    OF_QUEUE[0].0,
    OF_QUEUE[0].1,
    OF_QUEUE[1].0,
    OF_QUEUE[1].1,
    OF_PAIR[0].0,
    OF_PAIR[0].1,
    OF_PAIR[1].0,
    OF_PAIR[1].1,
    OF_QUEUE_AND_RUNS[0].0,
    OF_QUEUE_AND_RUNS[0].1,
    OF_PAIR_AND_RUNS[0].0,
    OF_PAIR_AND_RUNS[0].1,
];
