//! What has just become durable, for whoever watches: live streams, and callers that wait for an end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, oneshot};
use windlass_engine::id::{FlowId, RunId};
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;
use windlass_store::run::RunStatus;

/// Changes that a slow watcher may be behind before it has to look into the store.
const BEHIND_MAX: usize = 4_096;
/// Runs of which it is remembered what was told last.
const TOLD_MAX: usize = 10_000;

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

/// What becomes durable, as somebody who watches hears it.
#[derive(Debug)]
pub struct Changes(broadcast::Receiver<Option<Arc<Change>>>);

impl Changes {
    /// The next change. `Lagged` = some were missed, here or because nobody heard of them: look into the store.
    pub async fn recv(&mut self) -> Result<Arc<Change>, RecvError> {
        self.0.recv().await?.ok_or(RecvError::Lagged(1))
    }
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
    /// `None` = something was missed.
    all: broadcast::Sender<Option<Arc<Change>>>,
    /// The entry that was told last, by run, where changes are heard of in two ways: from whoever made them, and from
    /// the store.
    told: Option<Mutex<HashMap<RunId, u64>>>,
    ends: Mutex<HashMap<RunId, Vec<oneshot::Sender<RunStatus>>>>,
}

impl Feed {
    pub(crate) fn new(is_alone: bool) -> Self {
        let told = (!is_alone).then(Mutex::default);
        Feed { all: broadcast::channel(BEHIND_MAX).0, told, ends: Mutex::default() }
    }

    /// Everything from now on.
    pub(crate) fn subscribe(&self) -> Changes {
        Changes(self.all.subscribe())
    }

    /// Whether anybody wants to know what becomes of this run.
    pub(crate) fn cares(&self, run: RunId) -> bool {
        self.all.receiver_count() > 0
            || self.ends.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&run)
    }

    /// Runs whose end somebody waits for.
    pub(crate) fn waited_for(&self) -> Vec<RunId> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
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
            let change = change();
            if self.is_news(&change) {
                // Nobody listening any more is no failure.
                drop(self.all.send(Some(Arc::new(change))));
            }
        }
    }

    fn is_news(&self, change: &Change) -> bool {
        let Some(told) = &self.told else { return true };
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(&change.run).is_some_and(|seq| *seq >= change.seq) {
            return false;
        }
        if told.len() >= TOLD_MAX {
            told.clear();
        }
        told.insert(change.run, change.seq);
        true
    }

    /// Something was missed: whoever watches has to look into the store.
    pub(crate) fn missed(&self) {
        drop(self.all.send(None));
    }

    pub(crate) fn ended(&self, run: RunId, status: RunStatus) {
        let waiting = self.ends.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
        for sender in waiting.into_iter().flatten() {
            let _ = sender.send(status);
        }
    }
}
