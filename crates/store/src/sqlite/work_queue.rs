//! Bounded queue of a thread of the store. It is closed when the store or the thread ends.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::error::StoreClosed;
use crate::error::StoreError;

/// The limit of the queue: a longer one means that callers do not wait for answers.
const QUEUE_LENGTH_MAX: usize = 100_000;

#[derive(Debug)]
struct QueueState<T> {
    waiting: VecDeque<T>,
    is_closed: bool,
}

#[derive(Debug)]
pub(super) struct WorkQueue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
}

impl<T> WorkQueue<T> {
    pub(super) fn new() -> Self {
        let state = QueueState { waiting: VecDeque::new(), is_closed: false };
        WorkQueue { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds all items in order, or none.
    pub(super) fn put(&self, things: Vec<T>) -> Result<(), StoreError> {
        let mut state = self.state();
        let gone = if state.is_closed {
            "the store is closed"
        } else if state.waiting.len().saturating_add(things.len()) > QUEUE_LENGTH_MAX {
            "too much is waiting for the store: ask again later"
        } else {
            state.waiting.extend(things);
            drop(state);
            self.changed.notify_one();
            return Ok(());
        };
        Err(StoreError::unavailable(StoreClosed(gone)))
    }

    /// Waits for items and takes at most `most`, oldest first; empty = closed.
    pub(super) fn take(&self, most: usize) -> Vec<T> {
        let mut state = self.state();
        while state.waiting.is_empty() && !state.is_closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let n = state.waiting.len().min(most);
        state.waiting.drain(..n).collect()
    }

    /// Refuses new items; queued ones are still taken.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    /// Refuses new items and drops the queued ones: the thread has ended.
    pub(super) fn abandon(&self) {
        self.close();
        // Dropped outside the lock, because a dropped sender wakes its caller.
        let waiting = std::mem::take(&mut self.state().waiting);
        drop(waiting);
    }
}
