//! Oneshot channel from a thread of the store to a task.
//!
//! Waking a task of another thread costs as much as writing a row. Tasks that are answered together therefore share a
//! [`WakeBatch`]: the writer wakes one of them, and the first task that polls its answer wakes the others on its thread.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::error::StoreClosed;
use crate::error::StoreError;

#[derive(Debug)]
enum AnswerSlot<T> {
    Empty(Option<Waker>),
    Full(Result<T, StoreError>, Arc<WakeBatch>),
    /// The answer was taken, or the receiver was dropped.
    Taken,
}

/// The sending end. Dropped without an answer, it sends an error.
#[derive(Debug)]
pub(super) struct AnswerSender<T>(Arc<Mutex<AnswerSlot<T>>>);

/// The receiving end.
#[derive(Debug)]
pub(super) struct AnswerReceiver<T>(Arc<Mutex<AnswerSlot<T>>>);

/// A new channel.
pub(super) fn oneshot<T>() -> (AnswerSender<T>, AnswerReceiver<T>) {
    let cell = Arc::new(Mutex::new(AnswerSlot::Empty(None)));
    (AnswerSender(cell.clone()), AnswerReceiver(cell))
}

fn open<T>(cell: &Mutex<T>) -> MutexGuard<'_, T> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakers that the first polled task of a batch has to wake.
#[derive(Debug, Default)]
pub(super) struct WakeBatch(Mutex<WakeState>);

#[derive(Debug, Default)]
enum WakeState {
    /// No task was woken, and none has polled its answer.
    #[default]
    Open,
    /// The next task that polls wakes these.
    Given(Vec<Waker>),
    /// A task has polled: the batch is done.
    Over,
}

impl WakeBatch {
    /// Wakes one task to wake the others. Called after all of them have their answers.
    pub(super) fn wake_one(&self, mut wakers: Vec<Waker>) {
        let Some(first) = wakers.pop() else { return };
        let mut state = open(&self.0);
        match &*state {
            // The first task has not polled yet, so it will poll or drop its receiver.
            WakeState::Open => *state = WakeState::Given(mem::take(&mut wakers)),
            // The task that polled may have been the first, so no other one is sure to poll.
            WakeState::Given(_) | WakeState::Over => {}
        }
        drop(state);
        first.wake();
        wakers.into_iter().for_each(Waker::wake);
    }

    fn wake_rest(&self) {
        let state = mem::replace(&mut *open(&self.0), WakeState::Over);
        match state {
            WakeState::Given(wakers) => wakers.into_iter().for_each(Waker::wake),
            WakeState::Open | WakeState::Over => {}
        }
    }
}

impl<T> AnswerSender<T> {
    /// Sends the answer and wakes the receiver; only the first answer counts.
    pub(super) fn send(&self, answer: Result<T, StoreError>) {
        let wake_batch = Arc::new(WakeBatch::default());
        wake_batch.wake_one(self.send_in_batch(answer, &wake_batch).into_iter().collect());
    }

    /// Sends the answer and returns the waker for the batch.
    pub(super) fn send_in_batch(
        &self,
        answer: Result<T, StoreError>,
        wake_batch: &Arc<WakeBatch>,
    ) -> Option<Waker> {
        let mut cell = open(&self.0);
        let AnswerSlot::Empty(waker) = &mut *cell else { return None };
        let waker = waker.take();
        *cell = AnswerSlot::Full(answer, wake_batch.clone());
        waker
    }
}

impl<T> Drop for AnswerSender<T> {
    fn drop(&mut self) {
        if matches!(&*open(&self.0), AnswerSlot::Empty(_)) {
            self.send(Err(StoreError::unavailable(StoreClosed("the store was closed before it answered"))));
        }
    }
}

impl<T> Future for AnswerReceiver<T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut cell = open(&self.0);
        match mem::replace(&mut *cell, AnswerSlot::Taken) {
            AnswerSlot::Full(answer, wake_batch) => {
                drop(cell);
                wake_batch.wake_rest();
                Poll::Ready(answer)
            }
            AnswerSlot::Empty(_) => {
                *cell = AnswerSlot::Empty(Some(context.waker().clone()));
                Poll::Pending
            }
            AnswerSlot::Taken => {
                let error = StoreClosed("an answer was asked for twice");
                Poll::Ready(Err(StoreError::unavailable(error)))
            }
        }
    }
}

impl<T> Drop for AnswerReceiver<T> {
    fn drop(&mut self) {
        let cell = mem::replace(&mut *open(&self.0), AnswerSlot::Taken);
        match cell {
            AnswerSlot::Full(_, wake_batch) => wake_batch.wake_rest(),
            AnswerSlot::Empty(_) | AnswerSlot::Taken => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use std::thread;

    use windlass_conformance::block_on;

    use super::*;

    #[derive(Default)]
    struct WakeCount(AtomicUsize);

    impl Wake for WakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl WakeCount {
        fn n(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    type PolledReceiver = (AnswerSender<u32>, Pin<Box<AnswerReceiver<u32>>>, Arc<WakeCount>);

    /// A receiver that was polled once, and the number of its wake-ups since.
    fn waiting() -> PolledReceiver {
        let (sender, receiver) = oneshot();
        let (mut receiver, count) = (Box::pin(receiver), Arc::new(WakeCount::default()));
        assert!(poll(&mut receiver, &count).is_none());
        (sender, receiver, count)
    }

    fn poll(receiver: &mut Pin<Box<AnswerReceiver<u32>>>, count: &Arc<WakeCount>) -> Option<u32> {
        match receiver.as_mut().poll(&mut Context::from_waker(&Waker::from(count.clone()))) {
            Poll::Ready(answer) => Some(answer.unwrap()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn an_answer_arrives_from_another_thread() {
        let (sender, receiver) = oneshot();
        let thread = thread::spawn(move || sender.send(Ok(7)));
        assert_eq!(block_on(receiver).unwrap(), 7);
        thread.join().unwrap();
    }

    #[test]
    fn a_dropped_sender_answers_with_an_error() {
        let (sender, receiver) = oneshot::<()>();
        drop(sender);
        assert!(matches!(block_on(receiver), Err(StoreError::Unavailable(_))));
    }

    #[test]
    fn one_of_a_group_is_woken_and_wakes_the_others() {
        let mut group: Vec<_> = (0..5).map(|_| waiting()).collect();
        let wake_batch = Arc::new(WakeBatch::default());
        let wakers =
            group.iter().zip(0..).filter_map(|((sender, ..), n)| sender.send_in_batch(Ok(n), &wake_batch));
        wake_batch.wake_one(wakers.collect());
        let woken =
            |group: &[PolledReceiver]| group.iter().map(|(_, _, count)| count.n()).collect::<Vec<_>>();
        assert_eq!(woken(&group), [0, 0, 0, 0, 1]);
        let (_, receiver, count) = &mut group[4];
        assert_eq!(poll(receiver, count), Some(4));
        assert_eq!(woken(&group), [1, 1, 1, 1, 1]);
        let (_, receiver, count) = &mut group[2];
        assert_eq!(poll(receiver, count), Some(2));
    }

    #[test]
    fn a_dropped_receiver_wakes_the_rest_of_its_batch() {
        let (first, second) = (waiting(), waiting());
        let wake_batch = Arc::new(WakeBatch::default());
        let wakers = [&first, &second].map(|(sender, ..)| sender.send_in_batch(Ok(1), &wake_batch));
        wake_batch.wake_one(wakers.into_iter().flatten().collect());
        assert_eq!((first.2.n(), second.2.n()), (0, 1));
        drop(second.1);
        assert_eq!(first.2.n(), 1);
    }

    #[test]
    fn a_receiver_dropped_before_the_batch_is_woken_leaves_no_task_asleep() {
        let (mut first, mut second, third) = (waiting(), waiting(), waiting());
        let wake_batch = Arc::new(WakeBatch::default());
        let groups = [&first, &second, &third];
        let wakers: Vec<Waker> =
            groups.iter().filter_map(|(sender, ..)| sender.send_in_batch(Ok(1), &wake_batch)).collect();
        // The receiver that would be woken first is dropped.
        drop(third.1);
        wake_batch.wake_one(wakers);
        assert_eq!((first.2.n(), second.2.n()), (1, 1));
        for (_, receiver, count) in [&mut first, &mut second] {
            assert_eq!(poll(receiver, count), Some(1));
        }
    }

    #[test]
    fn a_batch_does_not_rely_on_a_dropped_receiver() {
        let (first, second) = (waiting(), waiting());
        drop(second.1);
        let wake_batch = Arc::new(WakeBatch::default());
        let wakers = [&first.0, &second.0].map(|sender| sender.send_in_batch(Ok(1), &wake_batch));
        assert!(wakers[1].is_none());
        wake_batch.wake_one(wakers.into_iter().flatten().collect());
        assert_eq!(first.2.n(), 1);
    }
}
