//! The context that all owners share: the store, the clock, the settings, the event feed, the task tracker and the
//! shutdown signal. It holds no state of runs, jobs or workers; each owner keeps its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_store::commit::Commit;
use windlass_store::server::ServerRow;
use windlass_store::{Store, StoreError};

use crate::body_budget::BodyBudget;
use crate::clock::Clock;
use crate::feed::Feed;
use crate::grant::GrantSigner;
use crate::long_work::LongWork;
use crate::{RuntimeError, Settings};

/// Everything that an owner needs besides its own state.
pub(crate) struct Ctx {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) feed: Feed,
    pub(crate) grants: GrantSigner,
    /// The memory of bodies of requests and of answers of workers.
    pub(crate) bodies: BodyBudget,
    /// Places for work that keeps a thread busy.
    pub(crate) long_work: LongWork,
    /// Loops and calls; `Runtime::shut_down` waits for them.
    pub(crate) tasks: TaskTracker,
    /// Canceled when the server stops.
    pub(crate) shutdown: CancellationToken,
    pub(crate) is_draining: AtomicBool,
    /// This server as it registered: its id, its epoch and its start time.
    pub(crate) server: ServerRow,
}

impl Ctx {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        settings: Settings,
        clock: Clock,
        grants: GrantSigner,
        server: ServerRow,
    ) -> Self {
        Ctx {
            clock,
            feed: Feed::new(store.is_shared()),
            grants,
            bodies: BodyBudget::default(),
            long_work: LongWork::default(),
            store,
            tasks: TaskTracker::new(),
            shutdown: CancellationToken::new(),
            is_draining: AtomicBool::new(false),
            server,
            settings,
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Runs the work on a task of its own, so that it completes even when the caller goes away or the server stops.
    pub(crate) async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        self.tasks.spawn(work).await.map_err(|_| RuntimeError::Broken)
    }

    /// Writes a commit. If the store does not say whether it took it, the command id answers that.
    pub(crate) async fn commit_looked_up(&self, commit: Commit) -> Result<(), StoreError> {
        let command = commit.command;
        match self.store.commit_one(commit).await {
            Ok(_) => Ok(()),
            Err(error @ StoreError::Unavailable(_)) => {
                match self.store.command(&self.settings.project, command).await {
                    Ok(Some(_)) => Ok(()),
                    Ok(None) | Err(_) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// Sets the clock by the store's clock; `false` = the store has none.
pub(crate) async fn sync_clock(clock: &Clock, store: &dyn Store) -> Result<bool, RuntimeError> {
    let begun = Instant::now();
    let store_time = store.now().await?;
    if let Some(store_time) = store_time {
        clock.agree(store_time, begun.elapsed());
    }
    Ok(store_time.is_some())
}
