//! Durable changes of runs, for watchers: live streams, and callers that wait for the end of a run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, oneshot};
use windlass_engine::counter::Seq;
use windlass_engine::id::{FlowId, RunId};
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;
use windlass_store::run::RunStatus;

/// Changes that a slow watcher may be behind before it has to look into the store.
const BEHIND_MAX: usize = 4_096;
/// Runs with a remembered last change.
const TOLD_MAX: usize = 10_000;

/// One durable entry of a run's journal.
#[derive(Debug, Clone)]
pub struct RunUpdate {
    pub run: RunId,
    pub flow: FlowId,
    /// The number of the entry.
    pub seq: Seq,
    pub at: Timestamp,
    pub status: RunStatus,
    /// The node that was entered last.
    pub node: Option<NodePath>,
}

/// Changes of jobs that became durable in one commit.
#[derive(Debug, Clone, Default)]
pub struct WorkUpdate {
    /// Runs whose calls these jobs carry.
    pub runs: Vec<RunId>,
    /// Whether a job became a dead letter.
    pub has_dead_letters: bool,
}

/// Changes of jobs, as one watcher receives them.
#[derive(Debug)]
pub struct WorkUpdates(broadcast::Receiver<Arc<WorkUpdate>>);

impl WorkUpdates {
    /// The next change. `Lagged` = some were missed.
    pub async fn recv(&mut self) -> Result<Arc<WorkUpdate>, RecvError> {
        self.0.recv().await
    }
}

/// Durable changes, as one watcher receives them.
#[derive(Debug)]
pub struct RunUpdates(broadcast::Receiver<Option<Arc<RunUpdate>>>);

impl RunUpdates {
    /// The next change. `Lagged` = some were missed, by this watcher or by the server: read the store.
    pub async fn recv(&mut self) -> Result<Arc<RunUpdate>, RecvError> {
        self.0.recv().await?.ok_or(RecvError::Lagged(1))
    }
}

/// The wait for the end of a run, until this is dropped.
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

/// Sends changes to all watchers.
#[derive(Debug)]
pub(crate) struct Feed {
    /// `None` = something was missed.
    all: broadcast::Sender<Option<Arc<RunUpdate>>>,
    /// The last entry that was sent, by run, on a shared store: a change arrives twice there, from its commit and from
    /// the store.
    told: Option<Mutex<HashMap<RunId, Seq>>>,
    work: broadcast::Sender<Arc<WorkUpdate>>,
    ends: Mutex<HashMap<RunId, Vec<oneshot::Sender<RunStatus>>>>,
}

impl Feed {
    pub(crate) fn new(is_shared: bool) -> Self {
        let told = is_shared.then(Mutex::default);
        Feed {
            all: broadcast::channel(BEHIND_MAX).0,
            told,
            work: broadcast::channel(BEHIND_MAX).0,
            ends: Mutex::default(),
        }
    }

    /// Everything from now on.
    pub(crate) fn subscribe(&self) -> RunUpdates {
        RunUpdates(self.all.subscribe())
    }

    /// All changes of jobs from now on.
    pub(crate) fn subscribe_to_work(&self) -> WorkUpdates {
        WorkUpdates(self.work.subscribe())
    }

    /// Jobs have changed.
    pub(crate) fn tell_work(&self, change: impl FnOnce() -> WorkUpdate) {
        if self.work.receiver_count() > 0 {
            // An empty list of watchers is no error.
            drop(self.work.send(Arc::new(change())));
        }
    }

    /// Whether a watcher follows this run.
    pub(crate) fn cares(&self, run: RunId) -> bool {
        self.all.receiver_count() > 0
            || self.ends.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&run)
    }

    /// Runs with a caller that waits for the end.
    pub(crate) fn waited_for(&self) -> Vec<RunId> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// The end of a run, once it comes.
    pub(crate) fn end_of(&self, run: RunId) -> EndOf<'_> {
        let (sender, receiver) = oneshot::channel();
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        // Callers that gave up are removed here.
        let waiting = ends.entry(run).or_default();
        waiting.retain(|sender| !sender.is_closed());
        waiting.push(sender);
        EndOf { feed: self, run, receiver }
    }

    /// Removes callers that stopped waiting for this end.
    fn forget(&self, run: RunId) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = ends.get_mut(&run) {
            waiting.retain(|sender| !sender.is_closed());
            if waiting.is_empty() {
                ends.remove(&run);
            }
        }
    }

    pub(crate) fn tell(&self, change: impl FnOnce() -> RunUpdate) {
        if self.all.receiver_count() > 0 {
            let change = change();
            if self.is_news(&change) {
                // An empty list of watchers is no error.
                drop(self.all.send(Some(Arc::new(change))));
            }
        }
    }

    fn is_news(&self, change: &RunUpdate) -> bool {
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

    /// Changes were missed: watchers have to read the store.
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
