//! Claimable jobs in dispatch order. A query merges one stream of index entries per queue and service, and reads the rows
//! of the first ones only.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashSet, VecDeque};

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::JobId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::read;
use crate::column::bound;
use crate::error::StoreError;
use crate::job::{JobRow, ReadyCursor, ReadyQuery};
use crate::sqlite::column::{Key, SqliteId};
use crate::sqlite::error::{is_of_page, is_of_row};
use crate::sqlite::readers::ReadConnection;
use crate::table;

const BY_ROW: &str = concat!(columns!(), " WHERE jobs.rowid = ?1");
const PLACE: &str = "SELECT priority, due_at, id, rowid FROM jobs WHERE id = ?1 AND project = ?3 AND due_at <= ?2 \
     AND queue NOT IN (SELECT name FROM queues WHERE project = ?3 AND is_paused = 1)";
const IS_PAUSED: &str = "SELECT 1 FROM queues WHERE project = ?2 AND name = ?1 AND is_paused = 1";
/// Index entries that a stream reads at once: there are many streams, and most queries need a few entries of each.
const STREAM_PAGE_SIZE: usize = 256;

// Jobs with a limit key have other indexes than jobs without: each query has a statement for both.
macro_rules! next_priority {
    ($by:literal, $which:literal) => {
        concat!(
            "SELECT priority FROM jobs WHERE project = ?4 AND ",
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
            "SELECT due_at, id, rowid FROM jobs WHERE project = ?8 AND ",
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
            "SELECT queue FROM jobs WHERE project = ?3 AND name = ?1 AND queue > ?2 AND due_at IS NOT NULL AND ",
            $which,
            " ORDER BY queue LIMIT 1"
        )
    };
}

/// The statements of a stream: the next priority, and the entries of a priority.
type StreamStatements = (&'static str, &'static str);

const OF_QUEUE: [StreamStatements; 2] = [
    (
        next_priority!("queue = ?1 AND ?2 IS NULL", "limit_key = ''"),
        places!("queue = ?1 AND ?2 IS NULL", "limit_key = ''"),
    ),
    (
        next_priority!("queue = ?1 AND ?2 IS NULL", "limit_key <> ''"),
        places!("queue = ?1 AND ?2 IS NULL", "limit_key <> ''"),
    ),
];
const OF_PAIR: [StreamStatements; 2] = [
    (
        next_priority!("queue = ?1 AND name = ?2", "limit_key = ''"),
        places!("queue = ?1 AND name = ?2", "limit_key = ''"),
    ),
    (
        next_priority!("queue = ?1 AND name = ?2", "limit_key <> ''"),
        places!("queue = ?1 AND name = ?2", "limit_key <> ''"),
    ),
];
/// Jobs of runs have one index, with limit keys or without.
const OF_QUEUE_AND_RUNS: [StreamStatements; 1] = [(
    next_priority!("queue = ?1 AND ?2 IS NULL", "run IS NOT NULL"),
    places!("queue = ?1 AND ?2 IS NULL", "run IS NOT NULL"),
)];
const OF_PAIR_AND_RUNS: [StreamStatements; 1] = [(
    next_priority!("queue = ?1 AND name = ?2", "run IS NOT NULL"),
    places!("queue = ?1 AND name = ?2", "run IS NOT NULL"),
)];
const NEXT_QUEUE: [&str; 2] = [next_queue!("limit_key = ''"), next_queue!("limit_key <> ''")];

/// The sort key of dispatch: priority, due time, id.
type DispatchKey = (Reverse<i64>, i64, Key);

/// Claimable jobs of a queue, or of one service in it, either with limit keys or without.
struct ReadyStream {
    statements: StreamStatements,
    queue: String,
    service: Option<String>,
    priority: i64,
    /// The last entry that was read of this priority.
    last: (i64, Vec<u8>),
    chunk: VecDeque<(DispatchKey, i64)>,
}

impl ReadyStream {
    fn new(
        statements: StreamStatements,
        queue: String,
        service: Option<String>,
        from: Option<ReadyCursor>,
    ) -> Self {
        let (priority, last) = from.map_or((i64::MAX, first()), |from| {
            // A prefix of the id sorts right before it.
            let id = from.id.key();
            (i64::from(from.priority), (from.due_at.0, id[..id.len() - 1].to_vec()))
        });
        ReadyStream { statements, queue, service, priority, last, chunk: VecDeque::new() }
    }

    /// The next entry and its row number. Each priority has its own range, so that the query skips jobs of a higher
    /// priority that are not due.
    fn next(
        &mut self,
        db: &Connection,
        project: &Project,
        now: Timestamp,
    ) -> rusqlite::Result<Option<(DispatchKey, i64)>> {
        while self.chunk.is_empty() {
            if self.priority == i64::MAX || !self.read(db, project, now)? {
                let above = params![self.queue, self.service, self.priority, project.as_str()];
                let next = db.prepare_cached(self.statements.0)?.query_row(above, |row| row.get(0));
                let Some(priority) = next.optional()? else { return Ok(None) };
                (self.priority, self.last) = (priority, first());
            }
        }
        Ok(self.chunk.pop_front())
    }

    /// Reads more entries of the priority; `false` if there are none.
    fn read(&mut self, db: &Connection, project: &Project, now: Timestamp) -> rusqlite::Result<bool> {
        let ReadyStream { queue, service, priority, .. } = &*self;
        let mut statement = db.prepare_cached(self.statements.1)?;
        let ((due_at, id), limit) = (&self.last, bound(STREAM_PAGE_SIZE));
        let after = params![queue, service, priority, now.0, due_at, id, limit, project.as_str()];
        let mut rows = statement.query(after)?;
        while let Some(row) = rows.next()? {
            let (due, id): (i64, Key) = (row.get(0)?, row.get(1)?);
            self.chunk.push_back(((Reverse(self.priority), due, id), row.get(2)?));
            self.last = (due, id.to_vec());
        }
        Ok(!self.chunk.is_empty())
    }
}

/// Sorts before every entry of a priority.
fn first() -> (i64, Vec<u8>) {
    (i64::MIN, Vec::new())
}

/// Jobs that cannot be read are left out and count in no limit, so that they hide none behind them.
pub(in crate::sqlite) fn ready(
    db: &ReadConnection,
    project: &Project,
    query: &ReadyQuery,
) -> Result<Vec<JobRow>, StoreError> {
    let mut by_row = db.prepare_cached(BY_ROW)?;
    let mut rows = Vec::new();
    each_found(db, project, query, |((_, _, id), row)| {
        match by_row.query_row([row], |row| read(&db.connection, row)) {
            Ok(job) => rows.push(job),
            Err(error) if is_of_row(&error) || is_of_page(&error) => {
                set_aside(db, JobId::from_key(id), error);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(rows.len() < query.limit)
    })?;
    Ok(rows)
}

/// Notes a job that cannot be read.
fn set_aside(db: &ReadConnection, job: JobId, error: rusqlite::Error) {
    db.set_aside(&table::JOBS, job.to_string(), in_words(&error));
    db.note_failure(&error.into());
}

/// Why the row of an index entry cannot be read.
fn in_words(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::QueryReturnedNoRows => "its specification is missing".to_owned(),
        error => error.to_string(),
    }
}

/// The same as [`ready`], without reading the jobs.
pub(in crate::sqlite) fn ready_cursors(
    db: &ReadConnection,
    project: &Project,
    query: &ReadyQuery,
) -> Result<Vec<ReadyCursor>, StoreError> {
    let mut places = Vec::new();
    each_found(db, project, query, |((Reverse(priority), due_at, id), _)| {
        places.push(ReadyCursor {
            // The column was written from an `i32`.
            priority: i32::try_from(priority).unwrap_or_default(),
            due_at: Timestamp(due_at),
            id: JobId::from_key(id),
        });
        Ok(places.len() < query.limit)
    })?;
    Ok(places)
}

/// Passes the entries that the query asks for, in order, each with its row number, to `see`, until it returns `false`.
fn each_found(
    db: &ReadConnection,
    project: &Project,
    query: &ReadyQuery,
    mut see: impl FnMut((DispatchKey, i64)) -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    if query.limit == 0 {
        return Ok(());
    }
    if !query.ids.is_empty() {
        for found in these(db, project, query)? {
            if !see(found)? {
                break;
            }
        }
        return Ok(());
    }
    let db = &db.connection;
    let mut streams = streams(db, project, query)?;
    let mut run_heads: BinaryHeap<Reverse<(DispatchKey, i64, usize)>> = BinaryHeap::new();
    for (at, stream) in streams.iter_mut().enumerate() {
        run_heads.extend(stream.next(db, project, query.now)?.map(|(place, row)| Reverse((place, row, at))));
    }
    let mut seen = HashSet::new();
    while let Some(Reverse((place, row, at))) = run_heads.pop() {
        // A job may be in two streams.
        if seen.insert(row) && !see((place, row))? {
            break;
        }
        run_heads
            .extend(streams[at].next(db, project, query.now)?.map(|(place, row)| Reverse((place, row, at))));
    }
    Ok(())
}

/// The claimable jobs among those that the query names. The index of ids leads to the rows, so one of them may be on a
/// damaged page.
fn these(
    db: &ReadConnection,
    project: &Project,
    query: &ReadyQuery,
) -> Result<Vec<(DispatchKey, i64)>, StoreError> {
    let mut place = db.prepare_cached(PLACE)?;
    let mut places: BTreeSet<(DispatchKey, i64)> = BTreeSet::new();
    for id in &query.ids {
        let read = |row: &Row<'_>| Ok(((Reverse(row.get(0)?), row.get(1)?, row.get(2)?), row.get(3)?));
        match place.query_row(params![id.key(), query.now.0, project.as_str()], read).optional() {
            Ok(found) => places.extend(found),
            Err(error) if is_of_page(&error) => set_aside(db, *id, error),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(places.into_iter().collect())
}

fn streams(db: &Connection, project: &Project, query: &ReadyQuery) -> Result<Vec<ReadyStream>, StoreError> {
    let mut queues: BTreeSet<&str> = BTreeSet::new();
    let mut pairs: BTreeSet<(String, String)> = BTreeSet::new();
    for queue in &query.queues {
        if !is_paused(db, project, queue)? {
            queues.insert(queue);
        }
    }
    for service in &query.services {
        for queue in queues_of(db, project, service)? {
            if !query.except.contains(&queue) && !is_paused(db, project, &queue)? {
                pairs.insert((queue, service.clone()));
            }
        }
    }
    for (queue, service) in &query.pairs {
        if !is_paused(db, project, queue)? {
            pairs.insert((queue.clone(), service.clone()));
        }
    }
    // The stream of a whole queue includes its services.
    pairs.retain(|(queue, _)| !queues.contains(queue.as_str()));
    let (of_queue, of_pair): (&[StreamStatements], &[StreamStatements]) = match query.is_of_runs {
        true => (&OF_QUEUE_AND_RUNS, &OF_PAIR_AND_RUNS),
        false => (&OF_QUEUE, &OF_PAIR),
    };
    let of_queues = queues.iter().flat_map(|queue| {
        let stream = |all: &StreamStatements| ReadyStream::new(*all, (*queue).to_owned(), None, query.from);
        of_queue.iter().map(stream)
    });
    let of_pairs = pairs.iter().flat_map(|(queue, service)| {
        let stream =
            |all: &StreamStatements| ReadyStream::new(*all, queue.clone(), Some(service.clone()), query.from);
        of_pair.iter().map(stream)
    });
    Ok(of_queues.chain(of_pairs).collect())
}

/// The queues with open jobs of a service. Each step of the loop skips to the next queue in the index.
fn queues_of(db: &Connection, project: &Project, service: &str) -> Result<BTreeSet<String>, StoreError> {
    let mut queues = BTreeSet::new();
    for sql in NEXT_QUEUE {
        let mut statement = db.prepare_cached(sql)?;
        let mut after = String::new();
        while let Some(queue) = statement
            .query_row(params![service, after, project.as_str()], |row| row.get::<_, String>(0))
            .optional()?
        {
            queues.insert(queue.clone());
            after = queue;
        }
    }
    Ok(queues)
}

pub(super) fn is_paused(db: &Connection, project: &Project, queue: &str) -> Result<bool, StoreError> {
    Ok(db.prepare_cached(IS_PAUSED)?.exists([queue, project.as_str()])?)
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
