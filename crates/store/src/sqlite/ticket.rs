//! An answer that comes from another thread, once.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::trouble::Gone;
use crate::error::StoreError;

#[derive(Debug)]
enum Cell<T> {
    Empty(Option<Waker>),
    Full(Result<T, StoreError>),
    Taken,
}

/// Who owes an answer. Dropped without one, it answers that there is none.
#[derive(Debug)]
pub(super) struct Promise<T>(Arc<Mutex<Cell<T>>>);

/// Who waits for it.
#[derive(Debug)]
pub(super) struct Ticket<T>(Arc<Mutex<Cell<T>>>);

/// The two ends.
pub(super) fn ticket<T>() -> (Promise<T>, Ticket<T>) {
    let cell = Arc::new(Mutex::new(Cell::Empty(None)));
    (Promise(cell.clone()), Ticket(cell))
}

fn open<T>(cell: &Mutex<Cell<T>>) -> MutexGuard<'_, Cell<T>> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Promise<T> {
    /// Answers; only the first answer counts.
    pub(super) fn keep(&self, answer: Result<T, StoreError>) {
        let mut cell = open(&self.0);
        let Cell::Empty(waker) = &mut *cell else { return };
        let waker = waker.take();
        *cell = Cell::Full(answer);
        drop(cell);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.keep(Err(StoreError::Unavailable(Box::new(Gone("the store was closed before it answered")))));
    }
}

impl<T> Future for Ticket<T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut cell = open(&self.0);
        match std::mem::replace(&mut *cell, Cell::Taken) {
            Cell::Full(answer) => Poll::Ready(answer),
            Cell::Empty(_) => {
                *cell = Cell::Empty(Some(context.waker().clone()));
                Poll::Pending
            }
            Cell::Taken => {
                let gone = Gone("an answer was asked for twice");
                Poll::Ready(Err(StoreError::Unavailable(Box::new(gone))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::conformance::block_on;

    #[test]
    fn an_answer_arrives_from_another_thread() {
        let (promise, ticket) = ticket();
        let thread = thread::spawn(move || promise.keep(Ok(7)));
        assert_eq!(block_on(ticket).unwrap(), 7);
        thread.join().unwrap();
    }

    #[test]
    fn a_broken_promise_is_an_answer() {
        let (promise, ticket) = ticket::<()>();
        drop(promise);
        assert!(matches!(block_on(ticket), Err(StoreError::Unavailable(_))));
    }
}
