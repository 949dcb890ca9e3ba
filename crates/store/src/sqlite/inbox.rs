//! What waits for a thread of the store: bounded, and closed when nobody will come for it any more.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::trouble::Gone;
use crate::error::StoreError;

/// Things that wait at most: whoever has more is not waiting but leaking.
const WAITING_MAX: usize = 100_000;

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    is_closed: bool,
}

#[derive(Debug)]
pub(super) struct Inbox<T> {
    state: Mutex<State<T>>,
    news: Condvar,
}

impl<T> Inbox<T> {
    pub(super) fn new() -> Self {
        let state = State { waiting: VecDeque::new(), is_closed: false };
        Inbox { state: Mutex::new(state), news: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts everything in, in order, or nothing.
    pub(super) fn put(&self, things: Vec<T>) -> Result<(), StoreError> {
        let mut state = self.state();
        let gone = if state.is_closed {
            "the store is closed"
        } else if state.waiting.len().saturating_add(things.len()) > WAITING_MAX {
            "too much is waiting for the store: ask again later"
        } else {
            state.waiting.extend(things);
            drop(state);
            self.news.notify_one();
            return Ok(());
        };
        Err(StoreError::Unavailable(Box::new(Gone(gone))))
    }

    /// Waits until there is something and takes at most `most` of it, oldest first; nothing = closed and empty.
    pub(super) fn take(&self, most: usize) -> Vec<T> {
        let mut state = self.state();
        while state.waiting.is_empty() && !state.is_closed {
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let n = state.waiting.len().min(most);
        state.waiting.drain(..n).collect()
    }

    /// Lets nothing more in; what waits is still taken.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.news.notify_all();
    }

    /// Lets nothing more in and forgets what waits: who took it is gone.
    pub(super) fn abandon(&self) {
        self.close();
        // Dropped outside the lock: promises that are dropped wake whoever waits for them.
        let waiting = std::mem::take(&mut self.state().waiting);
        drop(waiting);
    }
}
