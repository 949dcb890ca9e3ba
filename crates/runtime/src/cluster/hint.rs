//! Hints about commits of other servers. A hint names the runs, queues and settings to read again, and wakes the
//! watchers of those runs.
//!
//! Hints only save time: a poll finds everything that a lost hint would have announced, later.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use windlass_engine::id::RunId;
use windlass_store::hint::{Hint, Hints};
use windlass_store::run::{RunRef, RunRow, RunStatus};
use windlass_store::schedule::Started;

use crate::bounded::map_concurrent;
use crate::cluster::Cluster;
use crate::feed::RunUpdate;
use crate::part::RuntimePart;

/// How often everything is polled even without hints: a hint may get lost.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// The same where there are no hints.
const POLL_INTERVAL_WITHOUT_HINTS: Duration = Duration::from_secs(2);
/// Runs that are read at once.
const BATCH_MAX: usize = 16;

impl Cluster {
    /// Follows hints until the server stops.
    pub(crate) async fn listen(self, mut hints: Option<Hints>) {
        let mut looked = Instant::now();
        loop {
            let every = if hints.is_some() { POLL_INTERVAL } else { POLL_INTERVAL_WITHOUT_HINTS };
            let next = async {
                match &mut hints {
                    Some(hints) => hints.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                hint = next => match hint {
                    Some(hint) => self.apply_hint(hint).await,
                    None => hints = None,
                },
                () = tokio::time::sleep_until(looked + every) => {
                    if hints.is_none() {
                        self.feed().missed();
                        self.stats().invalidate_all(self.clock().now());
                    }
                    self.refresh_everything().await;
                    looked = Instant::now();
                }
                () = self.stopped() => return,
            }
        }
    }

    async fn apply_hint(&self, hint: Hint) {
        let Hint { runs, queues, overdue, outbox, schedules, settings, everything } = hint;
        if everything {
            self.feed().missed();
            self.stats().invalidate_all(self.clock().now());
            return self.refresh_everything().await;
        }
        if outbox {
            self.runs().poll_outbox_soon();
        }
        if schedules {
            self.schedules().refresh_soon();
        }
        if settings {
            self.workers().refresh_soon();
            self.access().invalidate();
        }
        if !queues.is_empty() {
            self.jobs().on_queue_hint(queues);
        }
        if !overdue.is_empty() {
            self.jobs().on_overdue_hint(overdue);
        }
        if !runs.is_empty() {
            self.runs().on_foreign_commits(&runs);
            self.stats().invalidate(&runs, self.clock().now());
            let is_watched = |run: &RunId| {
                self.feed().cares(*run)
                    || self.schedules().watches(Started::Run(*run))
                    || !self.calls().fences(*run).is_empty()
            };
            self.reload_runs(runs.into_iter().filter(is_watched).collect()).await;
        }
    }

    /// Anything may have changed.
    pub(crate) async fn refresh_everything(&self) {
        self.runs().poll_outbox_soon();
        self.schedules().refresh_soon();
        self.workers().refresh_soon();
        self.access().invalidate();
        self.jobs().invalidate();
        let runs = self.schedules().watched().into_iter().filter_map(|started| match started {
            Started::Run(run) => Some(run),
            Started::Job(_) => None,
        });
        let runs = runs.chain(self.feed().waited_for()).chain(self.calls().runs_with_calls());
        let runs: BTreeSet<RunId> = runs.collect();
        self.reload_runs(runs.into_iter().collect()).await;
    }

    /// Reads watched runs and tells their watchers the current status.
    async fn reload_runs(&self, runs: Vec<RunId>) {
        let read = |run| {
            let cluster = self.clone();
            async move {
                // Only calls that began before the read: the row tells whether they are still wanted.
                let fences = cluster.calls().fences(run);
                cluster
                    .store()
                    .run(cluster.project(), RunRef::Id(run))
                    .await
                    .map(|row| row.map(|row| (row, fences)))
            }
        };
        for found in map_concurrent(runs, BATCH_MAX, read).await {
            match found {
                Some(Ok(Some((row, fences)))) => {
                    // The server that canceled the run could not stop the calls that this server makes.
                    if !row.projection.status.is_open() || row.projection.status == RunStatus::Canceling {
                        fences.into_iter().for_each(|fence| self.calls().cancel(row.id, fence));
                    }
                    self.notify_watchers(row);
                }
                Some(Ok(None)) => {}
                // The watcher reads the store itself, and meets the same error.
                Some(Err(_)) | None => self.feed().missed(),
            }
        }
    }

    fn notify_watchers(&self, row: RunRow) {
        let (run, status) = (row.id, row.projection.status);
        self.feed().tell(|| RunUpdate {
            run,
            flow: row.origin.flow,
            seq: row.len,
            at: row.projection.updated_at,
            status,
            node: row.projection.node.clone(),
        });
        if !status.is_open() {
            self.feed().ended(run, status);
            self.schedules().on_ended(Started::Run(run));
        }
    }
}
