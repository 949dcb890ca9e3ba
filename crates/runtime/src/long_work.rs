//! Long work: decisions, functions and replays that would keep a worker thread of the async runtime from all else. They
//! run on threads of their own, a few at a time, so that the requests of other clients always find a free thread.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The right to do long work now.
pub(crate) struct LongPermit(#[expect(dead_code, reason = "held, not read")] Option<OwnedSemaphorePermit>);

/// The places for long work. Reads have their own, so that a run can be shown while others are being decided.
pub(crate) struct LongWork {
    decisions: Arc<Semaphore>,
    reads: Arc<Semaphore>,
}

impl Default for LongWork {
    /// Half of the processors, so that the other half is left for short work.
    fn default() -> Self {
        let n = std::thread::available_parallelism().map_or(1, |n| n.get() / 2).max(1);
        LongWork { decisions: Arc::new(Semaphore::new(n)), reads: Arc::new(Semaphore::new(n)) }
    }
}

impl LongWork {
    /// Waits for a place of a decision. It is held until the decision is durable, so that one commit of the store holds
    /// few long decisions, and the short ones beside them are not kept waiting.
    pub(crate) async fn decision(&self) -> LongPermit {
        // The semaphore is never closed.
        LongPermit(self.decisions.clone().acquire_owned().await.ok())
    }

    /// Waits for a place of a read.
    pub(crate) async fn read(&self) -> LongPermit {
        LongPermit(self.reads.clone().acquire_owned().await.ok())
    }
}

/// Does the work on a thread of its own. A panic of the work is a panic of the caller; `None` = the server stops.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => None,
    }
}
