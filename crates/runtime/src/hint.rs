//! What other servers have written: where this one has to look now, and what whoever watches has to be told.
//!
//! Nothing is right only because a hint came. What is missed is found by the looks that are taken anyway, later.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use windlass_engine::id::RunId;
use windlass_store::hint::{Hint, Hints};
use windlass_store::run::{RunRef, RunRow, RunStatus};
use windlass_store::schedule::Started;

use crate::Runtime;
use crate::feed::Change;
use crate::job::many::each;

/// How often everything is looked at although nobody said anything: a hint may get lost.
const LOOK: Duration = Duration::from_secs(30);
/// The same where there are no hints.
const LOOK_UNTOLD: Duration = Duration::from_secs(2);
/// Runs that are read at once.
const AT_ONCE: usize = 16;

impl Runtime {
    /// Listens to what others write, as long as the server runs.
    pub(crate) async fn listen(self, mut hints: Option<Hints>) {
        let mut looked = Instant::now();
        loop {
            let every = if hints.is_some() { LOOK } else { LOOK_UNTOLD };
            let next = async {
                match &mut hints {
                    Some(hints) => hints.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                hint = next => match hint {
                    Some(hint) => self.heed(hint).await,
                    None => hints = None,
                },
                () = tokio::time::sleep_until(looked + every) => {
                    if hints.is_none() {
                        self.feed().missed();
                        self.stats().doubt_all(self.clock().now());
                    }
                    self.look_everywhere().await;
                    looked = Instant::now();
                }
                () = self.stopped() => return,
            }
        }
    }

    async fn heed(&self, hint: Hint) {
        let Hint { runs, queues, overdue, outbox, schedules, settings, everything } = hint;
        if everything {
            self.feed().missed();
            self.stats().doubt_all(self.clock().now());
            return self.look_everywhere().await;
        }
        if outbox {
            self.outbox().look.notify_one();
        }
        if schedules {
            self.calendar().written.notify_one();
        }
        if settings {
            self.registry().look.notify_one();
        }
        if !queues.is_empty() {
            self.jobs().dispatch.call_to(&queues.into_iter().collect::<Vec<_>>(), self.clock().now());
        }
        if !overdue.is_empty() {
            self.jobs().dispatch.doubt_queues(&overdue.into_iter().collect::<Vec<_>>());
        }
        if !runs.is_empty() {
            self.timers().written_elsewhere(&runs);
            self.stats().doubt(&runs, self.clock().now());
            let is_watched = |run: &RunId| {
                self.feed().cares(*run)
                    || self.calendar().watches(Started::Run(*run))
                    || !self.calls().fences(*run).is_empty()
            };
            self.hear_of(runs.into_iter().filter(is_watched).collect()).await;
        }
    }

    /// Anything may have changed.
    pub(crate) async fn look_everywhere(&self) {
        self.outbox().look.notify_one();
        self.calendar().written.notify_one();
        self.registry().look.notify_one();
        self.jobs().dispatch.doubt();
        let runs = self.calendar().watched().into_iter().filter_map(|started| match started {
            Started::Run(run) => Some(run),
            Started::Job(_) => None,
        });
        let runs = runs.chain(self.feed().waited_for()).chain(self.calls().runs());
        let runs: BTreeSet<RunId> = runs.collect();
        self.hear_of(runs.into_iter().collect()).await;
    }

    /// Reads runs that somebody watches, and tells where they stand.
    async fn hear_of(&self, runs: Vec<RunId>) {
        let read = |run| {
            let runtime = self.clone();
            async move {
                // Those that were made before it was read: of them it says whether anybody wants them.
                let fences = runtime.calls().fences(run);
                runtime.store().run(RunRef::Id(run)).await.map(|row| row.map(|row| (row, fences)))
            }
        };
        for found in each(runs, AT_ONCE, read).await {
            match found {
                Some(Ok(Some((row, fences)))) => {
                    // Whoever cancelled it could stop none of the calls that are made here.
                    if !row.standing.status.is_open() || row.standing.status == RunStatus::Canceling {
                        fences.into_iter().for_each(|fence| self.calls().cancel(row.id, fence));
                    }
                    self.tell_where(row);
                }
                Some(Ok(None)) => {}
                // Whoever watches looks into the store, and meets the same trouble.
                Some(Err(_)) | None => self.feed().missed(),
            }
        }
    }

    fn tell_where(&self, row: RunRow) {
        let (run, status) = (row.id, row.standing.status);
        self.feed().tell(|| Change {
            run,
            flow: row.origin.flow,
            seq: row.len,
            at: row.standing.updated_at,
            status,
            node: row.standing.node.clone(),
        });
        if !status.is_open() {
            self.feed().ended(run, status);
            self.calendar().ended(Started::Run(run));
        }
    }
}
