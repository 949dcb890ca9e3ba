//! Functions that run futures to their end in tests.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Runs a future to its end on this thread, without a runtime: memory and SQLite need none.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Runs a future to its end in a new Tokio runtime, which PostgreSQL needs.
pub fn block_on_tokio<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(future)
}

/// Runs futures side by side, as far as the store lets them; answers in their order.
pub(crate) async fn side_by_side<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut open: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut answers: Vec<Option<F::Output>> = open.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut all_ready = true;
        for (future, answer) in open.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => *answer = Some(output),
                    Poll::Pending => all_ready = false,
                }
            }
        }
        if all_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().map(|answer| answer.unwrap()).collect()
}
