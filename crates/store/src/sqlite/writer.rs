//! The one thread that writes.
//!
//! A group is what arrived while the last one was being made durable; all of it goes into one transaction with one
//! sync of the disk, and nobody is answered before. What is refused was checked before anything was written for it,
//! so that a refusal spoils nobody else. If a statement fails, the group is undone and everybody has a transaction
//! of their own: whoever cannot be written then fails alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use super::desk::Desk;
use super::inbox::Inbox;
use super::ticket::{Errand, Promise, Ticket, ticket};
use super::trouble::told;
use crate::error::StoreError;

/// Units in one transaction at most: the first of them should not wait for thousands of others.
const GROUP_MAX: usize = 4_096;
/// Those who are answered together and wake each other: few enough that several threads share the waking.
const WOKEN_TOGETHER: usize = 32;
/// Pages in the log after which it is moved into the file, once everybody has been answered: 16 MB. A page that is
/// written again and again is moved once.
const CHECKPOINT_PAGES: u32 = 4_096;

/// Something to be written, and who waits for it.
trait Unit: Send {
    /// Does it inside a transaction. An error means that the transaction is spoilt; a refusal is an answer.
    fn perform(&mut self, desk: &Desk) -> Result<(), StoreError>;
    /// Answers: with what came of it, or with why it was not made durable. Says whom to wake.
    fn answer(self: Box<Self>, failure: Option<StoreError>, errand: &Arc<Errand>) -> Option<Waker>;
}

struct Work<T, F> {
    work: F,
    answer: Option<Result<T, StoreError>>,
    promise: Promise<T>,
}

impl<T: Send, F: Fn(&Desk) -> Result<T, StoreError> + Send> Unit for Work<T, F> {
    fn perform(&mut self, desk: &Desk) -> Result<(), StoreError> {
        let answer = (self.work)(desk);
        match answer {
            Err(error @ (StoreError::Unavailable(_) | StoreError::Corrupt(_))) => Err(error),
            Ok(_) | Err(StoreError::Conflict { .. } | StoreError::Refused(_)) => {
                self.answer = Some(answer);
                Ok(())
            }
        }
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>, errand: &Arc<Errand>) -> Option<Waker> {
        let Work { answer, promise, .. } = *self;
        // Without either, the promise says that nobody answered.
        promise.keep_in_group(failure.map(Err).or(answer)?, errand)
    }
}

type Waiting = Box<dyn Unit>;

/// The thread and what waits for it.
#[derive(Debug)]
pub(super) struct Writer {
    inbox: Arc<Inbox<Waiting>>,
    n_transactions: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for dyn Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unit")
    }
}

impl Writer {
    /// Starts the thread; the connection is its own from now on.
    pub(super) fn start(db: Connection) -> Result<Self, StoreError> {
        let desk = Desk::new(db)?;
        let (inbox, n_transactions) = (Arc::new(Inbox::new()), Arc::new(AtomicU64::new(0)));
        let (its, count) = (inbox.clone(), n_transactions.clone());
        let thread = thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || serve(&desk, &Abandoned(its), &count))
            .map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Writer { inbox, n_transactions, thread: Some(thread) })
    }

    /// Hands in one piece of work, done in a transaction with whatever else waits. It may be done again if others
    /// spoil the transaction.
    pub(super) fn write<T, F>(&self, work: F) -> Result<Ticket<T>, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Desk) -> Result<T, StoreError> + Send + 'static,
    {
        let (promise, ticket) = ticket();
        self.inbox.put(vec![Box::new(Work { work, answer: None, promise })])?;
        Ok(ticket)
    }

    /// Hands in many pieces of work at once, in order.
    pub(super) fn write_all<T, F>(
        &self,
        works: impl IntoIterator<Item = F>,
    ) -> Result<Vec<Ticket<T>>, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Desk) -> Result<T, StoreError> + Send + 'static,
    {
        let (mut units, mut tickets): (Vec<Waiting>, Vec<_>) = (Vec::new(), Vec::new());
        for work in works {
            let (promise, ticket) = ticket();
            units.push(Box::new(Work { work, answer: None, promise }));
            tickets.push(ticket);
        }
        self.inbox.put(units)?;
        Ok(tickets)
    }

    /// Transactions that were made durable so far.
    pub(super) fn n_transactions(&self) -> u64 {
        self.n_transactions.load(Ordering::Relaxed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.inbox.close();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so itself.
            drop(thread.join());
        }
    }
}

/// Closes the inbox when the thread ends, however it ends.
struct Abandoned(Arc<Inbox<Waiting>>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn serve(desk: &Desk, inbox: &Abandoned, n_transactions: &AtomicU64) {
    let mut n_moved = 0;
    loop {
        let group = inbox.0.take(GROUP_MAX);
        if group.is_empty() {
            return;
        }
        perform(desk, group, n_transactions);
        let n_logged = desk.n_logged();
        if n_logged < n_moved {
            // All of it had been moved, and it began anew.
            n_moved = 0;
        }
        if n_logged - n_moved >= CHECKPOINT_PAGES {
            n_moved = n_logged;
            // What a reader still looks at is moved the next time.
            drop(desk.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
        }
    }
}

/// Why a transaction came to nothing.
enum Spoilt {
    /// Something in it could not be done, and nothing was written.
    Statement(StoreError),
    /// It could not be made durable: whether it was, nobody knows.
    Commit(Arc<rusqlite::Error>),
}

fn perform(desk: &Desk, mut group: Vec<Waiting>, n_transactions: &AtomicU64) {
    match transact(desk, &mut group, n_transactions) {
        Ok(()) => answer(group, || None),
        Err(Spoilt::Commit(error)) => answer(group, || Some(told(&error))),
        Err(Spoilt::Statement(error)) if group.len() == 1 => {
            let mut failure = Some(error);
            answer(group, || failure.take());
        }
        Err(Spoilt::Statement(_)) => {
            for unit in group {
                perform_alone(desk, unit, n_transactions);
            }
        }
    }
}

fn perform_alone(desk: &Desk, unit: Waiting, n_transactions: &AtomicU64) {
    let mut alone = [unit];
    let mut failure = match transact(desk, &mut alone, n_transactions) {
        Ok(()) => None,
        Err(Spoilt::Commit(error)) => Some(told(&error)),
        Err(Spoilt::Statement(error)) => Some(error),
    };
    answer(alone.into(), || failure.take());
}

/// Answers everybody, and wakes one of so many.
fn answer(group: Vec<Waiting>, mut failure: impl FnMut() -> Option<StoreError>) {
    let mut units = group.into_iter().peekable();
    while units.peek().is_some() {
        let errand = Arc::new(Errand::default());
        let together = units.by_ref().take(WOKEN_TOGETHER);
        errand.give(together.filter_map(|unit| unit.answer(failure(), &errand)).collect());
    }
}

fn transact(desk: &Desk, group: &mut [Waiting], n_transactions: &AtomicU64) -> Result<(), Spoilt> {
    desk.execute_batch("BEGIN IMMEDIATE").map_err(|error| Spoilt::Statement(error.into()))?;
    let mut done = Ok(());
    for unit in group {
        done = unit.perform(desk).map_err(Spoilt::Statement);
        if done.is_err() {
            break;
        }
    }
    let done = done.and_then(|()| desk.depths().write(desk).map_err(Spoilt::Statement));
    let done = done.and_then(|()| desk.purses().write(desk).map_err(Spoilt::Statement));
    let done = done.and_then(|()| desk.execute_batch("COMMIT").map_err(|e| Spoilt::Commit(Arc::new(e))));
    if done.is_ok() {
        n_transactions.fetch_add(1, Ordering::Relaxed);
        return done;
    }
    desk.forget();
    // Some errors end the transaction by themselves. A rollback that fails leaves it to the next BEGIN to say so.
    if !desk.is_autocommit() {
        drop(desk.execute_batch("ROLLBACK"));
    }
    done
}
