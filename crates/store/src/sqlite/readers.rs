//! Reader threads, each with a read-only connection. Each read sees one snapshot of the database.
//!
//! A read of many rows leaves out those that cannot be decoded, and notes them in the condition of the store.

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{CachedStatement, Connection, OpenFlags, Params, Row, params_from_iter};
use uuid::Uuid;

use super::error::{fault, is_of_row};
use super::oneshot::{AnswerReceiver, oneshot};
use super::schema;
use super::work_queue::WorkQueue;
use crate::column::bound;
use crate::condition::{Access, BadRow, ConditionLog};
use crate::error::StoreError;
use crate::table::KeyedTable;

/// Enough that one long list does not delay other reads, few enough for two cores.
const READER_THREADS: usize = 4;

/// Steps of SQLite between two looks at the clock.
const STEPS: i32 = 1_000;

type ReadTask = Box<dyn FnOnce(&ReadConnection) + Send>;

/// A connection that reads, and the condition of the store that its reads show.
pub(super) struct ReadConnection {
    pub(super) connection: Connection,
    condition: Arc<ConditionLog>,
}

impl ReadConnection {
    pub(super) fn open(path: &Path, condition: Arc<ConditionLog>) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        schema::prepare_reader(&connection)?;
        Ok(ReadConnection { connection, condition })
    }

    /// A statement that stays prepared for the next read.
    pub(super) fn prepare_cached(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }

    /// Ends every statement that runs at this moment.
    pub(super) fn interrupt_at(&mut self, moment: Instant) -> Result<(), StoreError> {
        Ok(self.connection.progress_handler(STEPS, Some(move || Instant::now() >= moment))?)
    }

    /// All rows of a query, without those that cannot be decoded.
    pub(super) fn rows<T>(
        &self,
        table: &KeyedTable,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.extend(self.readable(table, row, read(row))?);
        }
        Ok(found)
    }

    /// The first rows of a query that can be decoded: `given` makes its parameters from the limit.
    pub(super) fn first_rows<T>(
        &self,
        table: &KeyedTable,
        sql: &str,
        limit: usize,
        given: impl Fn(i64) -> Vec<Value>,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.each_row(table, sql, limit, given, read, |row| {
            found.push(row);
            true
        })?;
        Ok(found)
    }

    /// Passes the first rows of a query that can be decoded to `see`, until it returns `false`. Bad rows do not count in
    /// the limit, so that they hide none behind them.
    pub(super) fn each_row<T>(
        &self,
        table: &KeyedTable,
        sql: &str,
        limit: usize,
        given: impl Fn(i64) -> Vec<Value>,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
        mut see: impl FnMut(T) -> bool,
    ) -> Result<(), StoreError> {
        let mut statement = self.prepare_cached(sql)?;
        let (mut n_bad, mut n_seen) = (0, 0);
        loop {
            let asked = limit.saturating_add(n_bad);
            let (mut n_read, mut n_good) = (0, 0);
            let mut rows = statement.query(params_from_iter(given(bound(asked))))?;
            while let Some(row) = rows.next()? {
                n_read += 1;
                let Some(value) = self.readable(table, row, read(row))? else { continue };
                n_good += 1;
                if n_good <= n_seen {
                    continue;
                }
                n_seen += 1;
                if !see(value) {
                    return Ok(());
                }
            }
            if n_good >= limit || n_read < asked {
                return Ok(());
            }
            n_bad = n_read - n_good;
        }
    }

    /// The value of a row; `None` if it cannot be decoded, after which it is set aside.
    pub(super) fn readable<T>(
        &self,
        table: &KeyedTable,
        row: &Row<'_>,
        value: rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        match value {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_of_row(&error) => {
                self.set_aside(table, key_of(table, row), reason_of(row, &error));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The one row of a query. A row that cannot be decoded is an error, and is set aside.
    pub(super) fn one<T>(
        &self,
        table: &KeyedTable,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let Some(row) = rows.next()? else { return Ok(None) };
        match self.readable(table, row, read(row))? {
            Some(value) => Ok(Some(value)),
            None => {
                Err(StoreError::Corrupt(format!("{} of `{}` cannot be read", key_of(table, row), table.name)))
            }
        }
    }

    /// Notes a row that is left out.
    pub(super) fn set_aside(&self, table: &KeyedTable, key: String, reason: String) {
        self.condition.set_aside(BadRow { table: table.name, key, reason });
    }

    /// Notes a failure below the tables.
    pub(super) fn note_failure(&self, error: &StoreError) {
        if let Some((fault, reason)) = fault(error) {
            self.condition.failed(Access::Read, fault, reason);
        }
    }
}

/// The key of a row, as far as it can be read.
fn key_of(table: &KeyedTable, row: &Row<'_>) -> String {
    let part = |column: &&str| match row.get_ref(*column) {
        Ok(ValueRef::Blob(bytes)) => match Uuid::from_slice(bytes) {
            Ok(uuid) => (table.id)(uuid),
            // A party of a message: the kind, and the id or the name.
            Err(_) => match bytes.split_first().and_then(|(_, rest)| Uuid::from_slice(rest).ok()) {
                Some(uuid) => (table.id)(uuid),
                None => String::from_utf8_lossy(bytes.get(1..).unwrap_or_default()).into_owned(),
            },
        },
        Ok(ValueRef::Integer(n)) => n.to_string(),
        Ok(ValueRef::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        Ok(ValueRef::Real(_) | ValueRef::Null) | Err(_) => "?".to_owned(),
    };
    table.key.iter().map(part).collect::<Vec<_>>().join("/")
}

/// The column that cannot be decoded, and why.
fn reason_of(row: &Row<'_>, error: &rusqlite::Error) -> String {
    let column = match error {
        rusqlite::Error::FromSqlConversionFailure(at, ..)
        | rusqlite::Error::IntegralValueOutOfRange(at, _)
        | rusqlite::Error::InvalidColumnType(at, ..) => row.as_ref().column_name(*at).ok(),
        _ => None,
    };
    match (column, error) {
        (Some(column), rusqlite::Error::FromSqlConversionFailure(_, _, source)) => {
            format!("column `{column}`: {source}")
        }
        (Some(column), error) => format!("column `{column}`: {error}"),
        (None, error) => error.to_string(),
    }
}

pub(super) struct Readers {
    queue: Arc<WorkQueue<ReadTask>>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").field("n", &self.threads.len()).finish()
    }
}

impl Readers {
    pub(super) fn start(path: &Path, condition: &Arc<ConditionLog>) -> Result<Self, StoreError> {
        let mut readers = Readers { queue: Arc::new(WorkQueue::new()), threads: Vec::new() };
        for n in 0..READER_THREADS {
            let db = ReadConnection::open(path, condition.clone())?;
            let queue = readers.queue.clone();
            let thread = thread::Builder::new().name(format!("sqlite-reader-{n}"));
            let thread = thread.spawn(move || serve(&db, &queue));
            readers.threads.push(thread.map_err(StoreError::unavailable)?);
        }
        Ok(readers)
    }

    /// Queues a read; all its statements see the same snapshot.
    pub(super) fn read<T, F>(&self, question: F) -> Result<AnswerReceiver<T>, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&ReadConnection) -> Result<T, StoreError> + Send + 'static,
    {
        let (sender, receiver) = oneshot();
        let question = move |db: &ReadConnection| {
            let answer = at_one_moment(db, question);
            match &answer {
                Ok(_) => db.condition.succeeded(Access::Read),
                Err(error) => db.note_failure(error),
            }
            sender.send(answer);
        };
        self.queue.put(vec![Box::new(question)])?;
        Ok(receiver)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            // A panic of the thread was reported already.
            drop(thread.join());
        }
    }
}

fn serve(db: &ReadConnection, queue: &WorkQueue<ReadTask>) {
    loop {
        let questions = queue.take(1);
        if questions.is_empty() {
            return;
        }
        questions.into_iter().for_each(|question| question(db));
    }
}

fn at_one_moment<T>(
    db: &ReadConnection,
    question: impl FnOnce(&ReadConnection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    // Dropping it rolls back, which is right for a read.
    let _moment = db.connection.unchecked_transaction()?;
    question(db)
}
