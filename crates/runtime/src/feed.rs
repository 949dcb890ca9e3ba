//! What has just become durable, for whoever watches: live streams, and callers that wait for an end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{broadcast, oneshot};
use windlass_engine::id::{FlowId, RunId};
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;
use windlass_store::run::RunStatus;

/// Changes that a slow watcher may be behind before it has to look into the store.
const BEHIND_MAX: usize = 4_096;

/// One durable entry of a run's journal.
#[derive(Debug, Clone)]
pub struct Change {
    pub run: RunId,
    pub flow: FlowId,
    /// The number of the entry.
    pub seq: u64,
    pub at: Timestamp,
    pub status: RunStatus,
    /// The node that was entered last.
    pub node: Option<NodePath>,
}

/// Somebody waits for the end of a run, until this is dropped.
pub(crate) struct EndOf<'a> {
    feed: &'a Feed,
    run: RunId,
    receiver: oneshot::Receiver<RunStatus>,
}

impl EndOf<'_> {
    /// Waits, but no longer than that.
    pub(crate) async fn within(&mut self, at_most: Duration) -> Option<RunStatus> {
        tokio::time::timeout(at_most, &mut self.receiver).await.ok()?.ok()
    }
}

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.receiver.close();
        self.feed.forget(self.run);
    }
}

/// Tells changes to whoever watches.
#[derive(Debug)]
pub(crate) struct Feed {
    all: broadcast::Sender<Arc<Change>>,
    ends: Mutex<HashMap<RunId, Vec<oneshot::Sender<RunStatus>>>>,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Feed { all: broadcast::channel(BEHIND_MAX).0, ends: Mutex::default() }
    }

    /// Everything from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Change>> {
        self.all.subscribe()
    }

    /// The end of a run, once it comes.
    pub(crate) fn end_of(&self, run: RunId) -> EndOf<'_> {
        let (sender, receiver) = oneshot::channel();
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever gave up waiting is forgotten by whoever comes next.
        let waiting = ends.entry(run).or_default();
        waiting.retain(|sender| !sender.is_closed());
        waiting.push(sender);
        EndOf { feed: self, run, receiver }
    }

    /// Forgets those who stopped waiting for this end.
    fn forget(&self, run: RunId) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = ends.get_mut(&run) {
            waiting.retain(|sender| !sender.is_closed());
            if waiting.is_empty() {
                ends.remove(&run);
            }
        }
    }

    pub(crate) fn tell(&self, change: impl FnOnce() -> Change) {
        if self.all.receiver_count() > 0 {
            // Nobody listening any more is no failure.
            drop(self.all.send(Arc::new(change())));
        }
    }

    pub(crate) fn ended(&self, run: RunId, status: RunStatus) {
        let waiting = self.ends.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
        for sender in waiting.into_iter().flatten() {
            let _ = sender.send(status);
        }
    }
}
