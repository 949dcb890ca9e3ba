//! SqliteWriter thread. It batches the commits that arrived during the last sync into one transaction with one sync of the disk,
//! and answers after the sync.
//!
//! The writer validates each commit before it writes any row, so a rejected commit does not affect the rest of the group.
//! If a statement fails, the writer rolls the group back and gives each commit a transaction of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use super::error::{fault, store_error};
use super::oneshot::{AnswerReceiver, AnswerSender, WakeBatch, oneshot};
use super::work_queue::WorkQueue;
use super::writer_cache::WriterCache;
use crate::condition::{Access, ConditionLog};
use crate::error::StoreError;

/// Units in one transaction at most, so that the first one does not wait for thousands of others.
const GROUP_MAX: usize = 4_096;
/// Callers that share a wake batch: few enough that several threads share the work.
const WAKE_BATCH_SIZE: usize = 32;
/// Pages in the write-ahead log after which the writer makes a checkpoint, between two groups: 16 MB. A page that was
/// written several times is copied once.
const CHECKPOINT_PAGES: u32 = 4_096;

/// A write and the caller that waits for it.
trait WriteUnit: Send {
    /// Performs it inside a transaction. An error rolls the transaction back; a refusal is a result.
    fn perform(&mut self, cache: &WriterCache) -> Result<(), StoreError>;
    /// Sends the result, or the failure of the transaction. Returns the waker of the caller.
    fn answer(self: Box<Self>, failure: Option<StoreError>, wake_batch: &Arc<WakeBatch>) -> Option<Waker>;
}

struct WriteTask<T, F> {
    work: F,
    answer: Option<Result<T, StoreError>>,
    sender: AnswerSender<T>,
}

impl<T: Send, F: Fn(&WriterCache) -> Result<T, StoreError> + Send> WriteUnit for WriteTask<T, F> {
    fn perform(&mut self, cache: &WriterCache) -> Result<(), StoreError> {
        let answer = (self.work)(cache);
        match answer {
            Err(error @ (StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::Damaged(_))) => {
                Err(error)
            }
            Ok(_) | Err(StoreError::Conflict { .. } | StoreError::Refused(_)) => {
                self.answer = Some(answer);
                Ok(())
            }
        }
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>, wake_batch: &Arc<WakeBatch>) -> Option<Waker> {
        let WriteTask { answer, sender, .. } = *self;
        // Without either, dropping the sender reports that the store was closed.
        sender.send_in_batch(failure.map(Err).or(answer)?, wake_batch)
    }
}

type BoxedUnit = Box<dyn WriteUnit>;

/// The writer thread and its queue.
#[derive(Debug)]
pub(super) struct SqliteWriter {
    queue: Arc<WorkQueue<BoxedUnit>>,
    n_transactions: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for dyn WriteUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WriteUnit")
    }
}

impl SqliteWriter {
    /// Starts the thread, which owns the connection.
    pub(super) fn start(db: Connection, condition: Arc<ConditionLog>) -> Result<Self, StoreError> {
        let cache = WriterCache::new(db)?;
        let (queue, n_transactions) = (Arc::new(WorkQueue::new()), Arc::new(AtomicU64::new(0)));
        let (its, transactor) =
            (queue.clone(), Transactor { cache, condition, n_transactions: n_transactions.clone() });
        let thread = thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || transactor.serve(&AbandonOnDrop(its)))
            .map_err(StoreError::unavailable)?;
        Ok(SqliteWriter { queue, n_transactions, thread: Some(thread) })
    }

    /// Queues one write. The writer may call it again if the transaction of its group fails.
    pub(super) fn write<T, F>(&self, work: F) -> Result<AnswerReceiver<T>, StoreError>
    where
        T: Send + 'static,
        F: Fn(&WriterCache) -> Result<T, StoreError> + Send + 'static,
    {
        let (sender, receiver) = oneshot();
        self.queue.put(vec![Box::new(WriteTask { work, answer: None, sender })])?;
        Ok(receiver)
    }

    /// Queues many writes at once, in order.
    pub(super) fn write_all<T, F>(
        &self,
        works: impl IntoIterator<Item = F>,
    ) -> Result<Vec<AnswerReceiver<T>>, StoreError>
    where
        T: Send + 'static,
        F: Fn(&WriterCache) -> Result<T, StoreError> + Send + 'static,
    {
        let (mut units, mut receivers): (Vec<BoxedUnit>, Vec<_>) = (Vec::new(), Vec::new());
        for work in works {
            let (sender, receiver) = oneshot();
            units.push(Box::new(WriteTask { work, answer: None, sender }));
            receivers.push(receiver);
        }
        self.queue.put(units)?;
        Ok(receivers)
    }

    /// Transactions so far.
    pub(super) fn n_transactions(&self) -> u64 {
        self.n_transactions.load(Ordering::Relaxed)
    }
}

impl Drop for SqliteWriter {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported already.
            drop(thread.join());
        }
    }
}

/// Closes the queue when the thread ends, also by a panic.
struct AbandonOnDrop(Arc<WorkQueue<BoxedUnit>>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// The reason why a transaction failed.
enum TransactionError {
    /// A statement failed, and nothing was written.
    Statement(StoreError),
    /// COMMIT failed: the outcome is unknown.
    Commit(Arc<rusqlite::Error>),
}

impl TransactionError {
    fn store_error(&self) -> StoreError {
        match self {
            TransactionError::Statement(error) => error.clone(),
            TransactionError::Commit(error) => store_error(error),
        }
    }
}

/// The thread's own state.
struct Transactor {
    cache: WriterCache,
    condition: Arc<ConditionLog>,
    n_transactions: Arc<AtomicU64>,
}

impl Transactor {
    fn serve(&self, queue: &AbandonOnDrop) {
        let mut n_moved = 0;
        loop {
            let group = queue.0.take(GROUP_MAX);
            if group.is_empty() {
                return;
            }
            self.perform(group);
            let n_logged = self.cache.n_logged();
            if n_logged < n_moved {
                // SQLite restarted the log.
                n_moved = 0;
            }
            if n_logged - n_moved >= CHECKPOINT_PAGES {
                n_moved = n_logged;
                // Pages that a reader still uses are copied by the next checkpoint.
                drop(self.cache.db().query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
            }
        }
    }

    fn perform(&self, mut group: Vec<BoxedUnit>) {
        match self.transact(&mut group) {
            Ok(()) => answer(group, || None),
            Err(TransactionError::Statement(_)) if group.len() > 1 => {
                for unit in group {
                    self.perform(vec![unit]);
                }
            }
            Err(error) => answer(group, || Some(error.store_error())),
        }
    }

    /// Performs a group in one transaction, and notes the condition of the store that it shows.
    fn transact(&self, group: &mut [BoxedUnit]) -> Result<(), TransactionError> {
        let done = self.try_transact(group);
        match &done {
            Ok(()) => {
                self.n_transactions.fetch_add(1, Ordering::Relaxed);
                self.condition.succeeded(Access::Write);
            }
            Err(error) => {
                if let Some((fault, reason)) = fault(&error.store_error()) {
                    self.condition.failed(Access::Write, fault, reason);
                }
                self.cache.forget();
                // Some errors roll back by themselves. If ROLLBACK fails, the next BEGIN reports it.
                if !self.cache.db().is_autocommit() {
                    drop(self.cache.db().execute_batch("ROLLBACK"));
                }
            }
        }
        done
    }

    fn try_transact(&self, group: &mut [BoxedUnit]) -> Result<(), TransactionError> {
        let (cache, db) = (&self.cache, self.cache.db());
        db.execute_batch("BEGIN IMMEDIATE").map_err(|error| TransactionError::Statement(error.into()))?;
        for unit in group {
            unit.perform(cache).map_err(TransactionError::Statement)?;
        }
        cache.depths().write(db).map_err(TransactionError::Statement)?;
        cache.accounts().write(db).map_err(TransactionError::Statement)?;
        db.execute_batch("COMMIT").map_err(|error| TransactionError::Commit(Arc::new(error)))
    }
}

/// Answers all callers and wakes one of each batch.
fn answer(group: Vec<BoxedUnit>, failure: impl Fn() -> Option<StoreError>) {
    let mut units = group.into_iter().peekable();
    while units.peek().is_some() {
        let wake_batch = Arc::new(WakeBatch::default());
        let together = units.by_ref().take(WAKE_BATCH_SIZE);
        wake_batch.wake_one(together.filter_map(|unit| unit.answer(failure(), &wake_batch)).collect());
    }
}
