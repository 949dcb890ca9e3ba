//! Jobs: creation, dispatch to workers, leases, ends, and dead letters.
//!
//! The store is the truth; the dispatcher is an index over it that knows which job is next and which wake-up comes
//! first. The engine decides every change on a row, and the commit is guarded by the row's revision: a decision on an
//! old row meets a conflict, reads the row and decides again. A job that carries a call of a run ends in the commit
//! that tells the run.

mod act;
mod change;
mod claim;
mod create;
mod dead_letter;
mod extend;
mod finish;
mod limit;
mod poll;
mod queues;
mod reap;
pub(crate) mod relay;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;
use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::input::CallOutcome;
use windlass_engine::job::{Job, State};
use windlass_engine::params::Params;
use windlass_engine::raw_json::RawJson;
use windlass_engine::time::Timestamp;
use windlass_queue::{DispatchLimits, Dispatcher};
use windlass_store::commit::JobChange;
use windlass_store::job::{CallRef, JobRow};
use windlass_store::page::NameRange;
use windlass_store::queue::QueueDepth;

use crate::calls::log::Log;
use crate::feed::{WorkUpdate, WorkUpdates};
use crate::keyed_lock::KeyedLocks;
use crate::part::{RuntimePart, part};
use crate::{RuntimeError, Settings};

pub(crate) use reap::Reaper;
use relay::Relay;

pub use act::JobError;
pub use create::{BATCH_MAX, CreateError, CreatedJob};
pub use dead_letter::{DEAD_LETTERS_MAX, DeadLetterSelector, DeadLetters, MovedDeadLetters, ReplayRequest};
pub use limit::{LimitError, RATE_MS_MAX};
pub use queues::QueueView;
pub use relay::RedisStats;

/// The longest that a claim waits.
pub const WAIT_MAX: Duration = Duration::from_secs(60);
/// Jobs in one claim.
pub const CLAIM_MAX: usize = 1_000;
/// Queues, and services, that a claim can name; the rest is ignored.
pub const CLAIM_NAMES_MAX: usize = 1_000;

/// A request for work.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    pub worker: String,
    /// A job matches by its queue or by its service.
    pub queues: Vec<String>,
    pub services: Vec<String>,
    /// At most [`CLAIM_MAX`]; 0 counts as 1.
    pub max: usize,
    /// How long to wait when there is nothing, at most [`WAIT_MAX`].
    pub wait: Duration,
    /// Zero is the default one.
    pub lease: Duration,
}

/// A job in the hands of a worker.
#[derive(Debug, Clone)]
pub struct LeasedJob {
    pub job: JobId,
    /// Together with the job's id, names this claim.
    pub fence: Fence,
    pub attempt: u32,
    /// The same for every attempt.
    pub key: String,
    pub queue: String,
    pub service: String,
    /// How urgent it is; higher goes first.
    pub priority: i32,
    pub input: RawJson,
    pub params: Params,
    pub memo: Option<Value>,
    pub created_at: Timestamp,
    pub started_at: Timestamp,
    pub lease_until: Timestamp,
    pub deadline: Option<Timestamp>,
    /// The call of a run that it carries.
    pub call: Option<CallRef>,
}

/// The end of a claimed job.
#[derive(Debug, Clone)]
pub struct JobEnd {
    pub job: JobId,
    pub fence: Fence,
    pub outcome: CallOutcome<RawJson>,
    pub worker: Option<String>,
    /// Log lines of the attempt; kept only for the call of a run.
    pub log: Log,
    /// The minimum delay before the next attempt of a failed plain job.
    pub retry_after_ms: Option<u64>,
}

/// The answer to a worker about its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimVerdict {
    Ok,
    /// Another worker has it, or it is over.
    Lost,
    /// It is canceled: stop.
    Canceled,
}

/// Jobs that were handed out and could not be claimed.
#[derive(Debug, Default)]
struct LostClaims {
    /// Another writer changed the job in between: mostly a server that handed it out too.
    to_others: AtomicU64,
    /// Another server had the turn at a queue with limits.
    turns: AtomicU64,
}

/// The state of `Jobs`.
pub(crate) struct JobsState {
    dispatch: Dispatcher,
    /// Redis, if ready jobs wait there.
    relay: Option<Relay>,
    /// The next wake-up is earlier than it was.
    sooner: Notify,
    /// When the store is next asked whether something got lost.
    sweep_at: AtomicI64,
    /// Claims end at once, and there are no more.
    closed: CancellationToken,
    /// Held during a turn at a queue with limits, on a shared store.
    queue_locks: KeyedLocks,
    /// Failed claims since the server started.
    lost: LostClaims,
    /// Held during a change of a queue's settings: each change reads all of them and writes them back.
    settings: Mutex<()>,
    /// Dead letters are moved by one request at a time: the same one, sent again while the first still runs, would
    /// take its commits for its own.
    moving: Mutex<()>,
}

impl JobsState {
    /// An empty index. A server that does not share its store need not look for jobs of others.
    pub(crate) fn new(settings: &Settings, is_shared: bool) -> Self {
        let redis = settings.redis.clone().map(|redis| redis.for_project(&settings.project));
        let (limits, relay) = (DispatchLimits::default(), redis.map(Relay::new));
        // The index does not know the jobs in Redis.
        let knows_all = !is_shared && relay.is_none();
        JobsState {
            dispatch: if knows_all { Dispatcher::alone(limits) } else { Dispatcher::new(limits) },
            relay,
            lost: LostClaims::default(),
            sooner: Notify::new(),
            sweep_at: AtomicI64::new(0),
            closed: CancellationToken::new(),
            queue_locks: KeyedLocks::default(),
            settings: Mutex::new(()),
            moving: Mutex::new(()),
        }
    }

    /// Jobs as they are from now on.
    fn offer_rows(&self, rows: impl IntoIterator<Item = JobRow>) {
        if self.dispatch.offer(rows) {
            self.sooner.notify_one();
        }
    }
}

part! {
    /// The owner of jobs: creation, dispatch, claims, ends, leases, dead letters, queues and their limits.
    pub Jobs, jobs: JobsState
}

impl Jobs {
    /// Jobs that failed for good.
    pub fn dead_letters(&self) -> DeadLetters {
        DeadLetters::of(&self.inner)
    }

    /// How it goes with Redis; `None` if this server uses none.
    pub fn redis_stats(&self) -> Option<RedisStats> {
        self.state().relay.as_ref().map(Relay::stats)
    }

    /// Hands out no more jobs, and ends every claim that waits.
    pub(crate) fn close(&self) {
        self.state().closed.cancel();
    }

    /// This is server `index` of `n_servers` on the store: the dispatcher hands out its share first.
    pub(crate) fn set_server_share(&self, index: usize, n_servers: usize) {
        self.state().dispatch.set_share(index, n_servers);
    }

    /// Another server died: its wake-ups and the jobs that only it knew are read from the store now.
    pub(crate) fn take_over(&self) {
        self.state().sweep_at.store(0, Ordering::Relaxed);
        self.state().sooner.notify_one();
        if let Some(relay) = &self.state().relay {
            relay.want_everything();
        }
    }

    /// Another server wrote ready jobs to these queues.
    pub(crate) fn on_queue_hint(&self, queues: BTreeSet<String>) {
        self.state().dispatch.accept_foreign(&queues.into_iter().collect::<Vec<_>>(), self.clock().now());
    }

    /// The store holds jobs of these queues that were due for a while: the index no longer counts as complete.
    pub(crate) fn on_overdue_hint(&self, queues: BTreeSet<String>) {
        self.state().dispatch.invalidate_queues(&queues.into_iter().collect::<Vec<_>>());
    }

    /// Any queue may have changed in the store: the index no longer counts as complete.
    pub(crate) fn invalidate(&self) {
        self.state().dispatch.invalidate();
    }

    /// Claims lost to another server's change, and claims lost because another server had the turn at the queue.
    pub(crate) fn n_lost_claims(&self) -> (u64, u64) {
        let LostClaims { to_others, turns } = &self.state().lost;
        (to_others.load(Ordering::Relaxed), turns.load(Ordering::Relaxed))
    }

    /// Reads limits and wake-ups before the first job is handed out. Ready jobs are read when a claim asks for them.
    pub(crate) async fn load_jobs(&self) -> Result<(), RuntimeError> {
        let queues = self.load_queue_settings().await?;
        self.state().dispatch.restore(&self.store().spent(self.project()).await?, self.clock().now());
        self.state().dispatch.invalidate_queues(&with_ready_jobs(queues));
        Reaper::of(&self.inner).load_wakes().await
    }

    /// Reads the limits and pauses of queues.
    pub(crate) async fn load_queue_settings(&self) -> Result<Vec<QueueDepth>, RuntimeError> {
        // A concurrent change is newer.
        let _nobody_sets = self.state().settings.lock().await;
        let queues = self.store().queues(self.project(), NameRange::All, self.clock().now()).await?;
        for QueueDepth { name, is_paused, limits, .. } in &queues {
            self.state().dispatch.limit(name, limits.clone(), self.clock().now());
            self.state().dispatch.pause(name, *is_paused);
        }
        Ok(queues)
    }

    /// Every change of jobs that becomes durable on this server from now on.
    pub fn changes(&self) -> WorkUpdates {
        self.feed().subscribe_to_work()
    }

    /// Tells watchers that these changes of jobs have become durable.
    fn tell_watchers(&self, changes: &[JobChange]) {
        self.feed().tell_work(|| WorkUpdate {
            runs: changes.iter().filter_map(|change| Some(change.origin.call.as_ref()?.run)).collect(),
            has_dead_letters: changes.iter().any(|change| change.job.is_dead_letter()),
        });
    }

    /// These changes of jobs have become durable.
    pub(crate) fn committed_jobs(&self, changes: &[JobChange]) {
        self.schedules().on_jobs_changed(changes);
        self.relay().relay_jobs(changes);
        let (open, ended): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.job.is_open());
        let ended = ended.into_iter().map(|change| (change.job.id, change.expected_rev.next()));
        self.state().dispatch.ended(ended);
        self.stats().record_jobs(changes, self.clock().now());
        self.tell_watchers(changes);
        if !open.is_empty() {
            self.state().offer_rows(open.into_iter().cloned().map(written));
        }
    }
}

/// The calls of canceled jobs that no worker had: no worker will confirm their end.
pub(crate) fn unclaimed(changes: &[JobChange]) -> impl Iterator<Item = &CallRef> {
    let is_unclaimed = |job: &Job| job.state == State::Canceled && job.latest().started_at.is_none();
    changes
        .iter()
        .filter(move |change| is_unclaimed(&change.job))
        .filter_map(|change| change.origin.call.as_ref())
}

/// The names of those in which something can be claimed.
fn with_ready_jobs(queues: Vec<QueueDepth>) -> Vec<String> {
    queues.into_iter().filter(|queue| queue.oldest_due_at.is_some()).map(|queue| queue.name).collect()
}

/// The row that a change made.
fn written(change: JobChange) -> JobRow {
    let JobChange { expected_rev, job, origin } = change;
    JobRow { rev: expected_rev.next(), job, origin }
}

#[cfg(test)]
impl Jobs {
    fn reaper(&self) -> Reaper {
        Reaper::of(&self.inner)
    }
}

#[cfg(test)]
mod tests;
