//! An answer that comes from another thread, once.
//!
//! Waking a task of another thread costs as much as writing a row. Those who are answered together therefore share
//! an [`Errand`]: one of them is woken, and the first to look at its answer wakes the others, on its own thread.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::trouble::Gone;
use crate::error::StoreError;

#[derive(Debug)]
enum Cell<T> {
    Empty(Option<Waker>),
    Full(Result<T, StoreError>, Arc<Errand>),
    /// The answer was taken, or nobody waits for it any more.
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

fn open<T>(cell: &Mutex<T>) -> MutexGuard<'_, T> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Those whom somebody of a group has to wake.
#[derive(Debug, Default)]
pub(super) struct Errand(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    /// Nobody has been woken, and nobody has looked at an answer.
    #[default]
    Open,
    /// Whoever looks next wakes these.
    Given(Vec<Waker>),
    /// Somebody looked: there is nobody to wait for.
    Over,
}

impl Errand {
    /// Wakes one of them to wake the others. Only once they all have their answers.
    pub(super) fn give(&self, mut wakers: Vec<Waker>) {
        let Some(first) = wakers.pop() else { return };
        let mut state = open(&self.0);
        match &*state {
            // The first has not looked, or it would be over: it will, or it will be dropped.
            State::Open => *state = State::Given(mem::take(&mut wakers)),
            // The one who looked may have been the first: nobody is sure to come.
            State::Given(_) | State::Over => {}
        }
        drop(state);
        first.wake();
        wakers.into_iter().for_each(Waker::wake);
    }

    fn run(&self) {
        let state = mem::replace(&mut *open(&self.0), State::Over);
        match state {
            State::Given(wakers) => wakers.into_iter().for_each(Waker::wake),
            State::Open | State::Over => {}
        }
    }
}

impl<T> Promise<T> {
    /// Answers, and wakes whoever waits; only the first answer counts.
    pub(super) fn keep(&self, answer: Result<T, StoreError>) {
        let errand = Arc::new(Errand::default());
        errand.give(self.keep_in_group(answer, &errand).into_iter().collect());
    }

    /// Answers, and says whom to wake once the others of the group have been answered too.
    pub(super) fn keep_in_group(&self, answer: Result<T, StoreError>, errand: &Arc<Errand>) -> Option<Waker> {
        let mut cell = open(&self.0);
        let Cell::Empty(waker) = &mut *cell else { return None };
        let waker = waker.take();
        *cell = Cell::Full(answer, errand.clone());
        waker
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        if matches!(&*open(&self.0), Cell::Empty(_)) {
            self.keep(Err(StoreError::Unavailable(Box::new(Gone(
                "the store was closed before it answered",
            )))));
        }
    }
}

impl<T> Future for Ticket<T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut cell = open(&self.0);
        match mem::replace(&mut *cell, Cell::Taken) {
            Cell::Full(answer, errand) => {
                drop(cell);
                errand.run();
                Poll::Ready(answer)
            }
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

impl<T> Drop for Ticket<T> {
    fn drop(&mut self) {
        let cell = mem::replace(&mut *open(&self.0), Cell::Taken);
        match cell {
            Cell::Full(_, errand) => errand.run(),
            Cell::Empty(_) | Cell::Taken => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use std::thread;

    use super::*;
    use crate::conformance::block_on;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Count {
        fn n(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    type Waiting = (Promise<u32>, Pin<Box<Ticket<u32>>>, Arc<Count>);

    /// A ticket that has been polled once, and how often it was woken since.
    fn waiting() -> Waiting {
        let (promise, ticket) = ticket();
        let (mut ticket, count) = (Box::pin(ticket), Arc::new(Count::default()));
        assert!(poll(&mut ticket, &count).is_none());
        (promise, ticket, count)
    }

    fn poll(ticket: &mut Pin<Box<Ticket<u32>>>, count: &Arc<Count>) -> Option<u32> {
        match ticket.as_mut().poll(&mut Context::from_waker(&Waker::from(count.clone()))) {
            Poll::Ready(answer) => Some(answer.unwrap()),
            Poll::Pending => None,
        }
    }

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

    #[test]
    fn one_of_a_group_is_woken_and_wakes_the_others() {
        let mut group: Vec<_> = (0..5).map(|_| waiting()).collect();
        let errand = Arc::new(Errand::default());
        let wakers =
            group.iter().zip(0..).filter_map(|((promise, ..), n)| promise.keep_in_group(Ok(n), &errand));
        errand.give(wakers.collect());
        let woken = |group: &[Waiting]| group.iter().map(|(_, _, count)| count.n()).collect::<Vec<_>>();
        assert_eq!(woken(&group), [0, 0, 0, 0, 1]);
        let (_, ticket, count) = &mut group[4];
        assert_eq!(poll(ticket, count), Some(4));
        assert_eq!(woken(&group), [1, 1, 1, 1, 1]);
        let (_, ticket, count) = &mut group[2];
        assert_eq!(poll(ticket, count), Some(2));
    }

    #[test]
    fn who_was_to_wake_the_others_and_is_dropped_wakes_them() {
        let (first, second) = (waiting(), waiting());
        let errand = Arc::new(Errand::default());
        let wakers = [&first, &second].map(|(promise, ..)| promise.keep_in_group(Ok(1), &errand));
        errand.give(wakers.into_iter().flatten().collect());
        assert_eq!((first.2.n(), second.2.n()), (0, 1));
        drop(second.1);
        assert_eq!(first.2.n(), 1);
    }

    #[test]
    fn who_looks_before_anybody_is_woken_leaves_nobody_asleep() {
        let (mut first, mut second, third) = (waiting(), waiting(), waiting());
        let errand = Arc::new(Errand::default());
        let groups = [&first, &second, &third];
        let wakers: Vec<Waker> =
            groups.iter().filter_map(|(promise, ..)| promise.keep_in_group(Ok(1), &errand)).collect();
        // The one that would be woken first comes by itself, and goes.
        drop(third.1);
        errand.give(wakers);
        assert_eq!((first.2.n(), second.2.n()), (1, 1));
        for (_, ticket, count) in [&mut first, &mut second] {
            assert_eq!(poll(ticket, count), Some(1));
        }
    }

    #[test]
    fn who_has_gone_is_not_relied_on() {
        let (first, second) = (waiting(), waiting());
        drop(second.1);
        let errand = Arc::new(Errand::default());
        let wakers = [&first.0, &second.0].map(|promise| promise.keep_in_group(Ok(1), &errand));
        assert!(wakers[1].is_none());
        errand.give(wakers.into_iter().flatten().collect());
        assert_eq!(first.2.n(), 1);
    }
}
