//! Jobs: who gets them, and what becomes of them.
//!
//! The store is the truth; what is kept here is an index over it that says who gets what next and when time will
//! change something. Every change is decided by the engine on a row and committed with the row's revision as its
//! guard: whoever decided on something old meets a conflict, reads the row and decides again. A job that carries a
//! call of a run ends in the commit that tells the run.

mod act;
mod change;
mod claim;
mod create;
mod extend;
mod finish;
mod letter;
pub(crate) mod many;
mod pop;
mod reap;
mod turn;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;
use windlass_engine::id::JobId;
use windlass_engine::input::{Input, Outcome};
use windlass_engine::job::{Job, State};
use windlass_engine::time::Timestamp;
use windlass_queue::{Dispatch, Limits};
use windlass_store::commit::JobChange;
use windlass_store::job::{CallRef, JobRow};
use windlass_store::queue::QueueDepth;

use crate::log::Log;
use crate::mailbox::Letter;
use crate::queue::{Relay, Tallies};
use crate::turnstile::Turnstiles;
use crate::{Runtime, RuntimeError, Settings};

pub use act::JobError;
pub use create::{BATCH_MAX, CreateError, Created};
pub use letter::{LETTERS_MAX, Letters, Moved, Replay};

/// The longest that a claim waits.
pub const WAIT_MAX: Duration = Duration::from_secs(60);
/// Jobs in one claim.
pub const CLAIM_MAX: usize = 1_000;
/// Queues and services, of each, that a claim can name; what is more is not looked at.
pub const CLAIM_NAMES_MAX: usize = 1_000;

/// Somebody asks for work.
#[derive(Debug, Clone)]
pub struct Claim {
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

/// A job that somebody has now.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub job: JobId,
    /// Together with the job's id, names this claim.
    pub fence: u64,
    pub attempt: u32,
    /// The same for every attempt.
    pub key: String,
    pub queue: String,
    pub service: String,
    /// How urgent it is; higher goes first.
    pub priority: i32,
    pub input: Arc<Value>,
    pub params: Arc<Value>,
    pub memo: Option<Value>,
    pub created_at: Timestamp,
    pub started_at: Timestamp,
    pub lease_until: Timestamp,
    pub deadline: Option<Timestamp>,
    /// The call of a run that it carries.
    pub call: Option<CallRef>,
}

/// How a job that somebody had ended.
#[derive(Debug, Clone)]
pub struct Finish {
    pub job: JobId,
    pub fence: u64,
    pub outcome: Outcome,
    pub worker: Option<String>,
    /// What was written beside the result; only of a run's call it is kept.
    pub log: Log,
    /// Of a plain job that failed: the next attempt begins not before so long.
    pub retry_after_ms: Option<u64>,
}

/// What becomes of a claim, in a word for whoever holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    /// Somebody else has it, or it is over.
    Lost,
    /// Nobody wants it any more: stop.
    Canceled,
}

/// Jobs that were handed out in vain.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// Somebody else changed the job in between: mostly another server that handed it out too.
    pub(crate) to_others: AtomicU64,
    /// Another server had the turn at a queue with limits.
    pub(crate) turns: AtomicU64,
}

/// What is kept about jobs.
pub(crate) struct Jobs {
    pub(crate) dispatch: Dispatch,
    /// Redis, if ready jobs wait there.
    pub(crate) relay: Option<Relay>,
    /// How queues went lately.
    tallies: Tallies,
    /// The next wake-up is earlier than it was.
    pub(crate) sooner: Notify,
    /// When the store is next asked whether something got lost.
    sweep_at: AtomicI64,
    /// Claims end at once, and there are no more.
    closed: CancellationToken,
    /// Passed by whoever has a turn at a queue that other servers hand out from too.
    turnstiles: Turnstiles,
    /// Jobs that were handed out in vain since the server started.
    pub(crate) lost: Lost,
    /// Held by whoever changes the settings of queues: each changes a part and writes all.
    pub(crate) settings: Mutex<()>,
    /// Dead letters are moved by one request at a time: the same one, sent again while the first still runs, would
    /// take its commits for its own.
    moving: Mutex<()>,
}

impl Jobs {
    /// Nothing is known of any job. Whoever has the store for itself need not look for what others wrote.
    pub(crate) fn new(settings: &Settings) -> Self {
        let (limits, relay) = (Limits::default(), settings.redis.clone().map(Relay::new));
        // Of what is in Redis the index is not told.
        let knows_all = settings.is_alone && relay.is_none();
        Jobs {
            dispatch: if knows_all { Dispatch::alone(limits) } else { Dispatch::new(limits) },
            relay,
            tallies: Tallies::default(),
            lost: Lost::default(),
            sooner: Notify::new(),
            sweep_at: AtomicI64::new(0),
            closed: CancellationToken::new(),
            turnstiles: Turnstiles::default(),
            settings: Mutex::new(()),
            moving: Mutex::new(()),
        }
    }

    /// Jobs as they are from now on.
    fn heard(&self, rows: impl IntoIterator<Item = JobRow>) {
        if self.dispatch.offer(rows) {
            self.sooner.notify_one();
        }
    }

    /// Asks the store at once what time does to jobs.
    pub(crate) fn sweep_now(&self) {
        self.sweep_at.store(0, Ordering::Relaxed);
        self.sooner.notify_one();
    }

    /// Hands out no more jobs, and sends away whoever waits for some.
    pub(crate) fn close(&self) {
        self.closed.cancel();
    }
}

impl Runtime {
    /// Reads what has to be known before jobs are handed out. Ready ones are read when somebody asks for them.
    pub(crate) async fn load_jobs(&self) -> Result<(), RuntimeError> {
        let queues = self.load_queue_settings().await?;
        self.jobs().dispatch.restore(&self.store().spent().await?, self.clock().now());
        self.jobs().dispatch.doubt_queues(&with_ready_jobs(queues));
        self.load_wakes().await
    }

    /// Reads what holds queues back.
    pub(crate) async fn load_queue_settings(&self) -> Result<Vec<QueueDepth>, RuntimeError> {
        // What somebody sets meanwhile is newer.
        let _nobody_sets = self.jobs().settings.lock().await;
        let queues = self.store().queues(self.clock().now()).await?;
        for QueueDepth { name, is_paused, limits, .. } in &queues {
            self.jobs().dispatch.limit(name, limits.clone(), self.clock().now());
            self.jobs().dispatch.pause(name, *is_paused);
        }
        Ok(queues)
    }

    pub(crate) fn tallies(&self) -> &Tallies {
        &self.jobs().tallies
    }

    /// These changes of jobs have become durable.
    pub(crate) fn committed_jobs(&self, changes: &[JobChange]) {
        self.calendar().jobs_moved(changes);
        self.relay_jobs(changes);
        let (open, ended): (Vec<_>, Vec<_>) = changes.iter().partition(|change| change.job.is_open());
        let ended = ended.into_iter().map(|change| (change.job.id, change.expected_rev.saturating_add(1)));
        self.jobs().dispatch.ended(ended);
        self.tallies().changed(changes, self.clock().now());
        if !open.is_empty() {
            self.jobs().heard(open.into_iter().cloned().map(written));
        }
    }
}

/// Of jobs that were cancelled, those that nobody had: there is nobody who would confirm it, so the run hears it now.
pub(crate) fn unclaimed(changes: &[JobChange]) -> impl Iterator<Item = Letter> {
    let nobodys = |job: &Job| job.state == State::Cancelled && job.latest().started_at.is_none();
    changes.iter().filter(move |change| nobodys(&change.job)).filter_map(|change| {
        let CallRef { node, fence, .. } = change.origin.call.clone()?;
        Some(Letter::of(Input::CallEnded { node, fence, outcome: Outcome::Canceled, worker: None }))
    })
}

/// The names of those in which something can be claimed.
fn with_ready_jobs(queues: Vec<QueueDepth>) -> Vec<String> {
    queues.into_iter().filter(|queue| queue.oldest_due_at.is_some()).map(|queue| queue.name).collect()
}

/// The row that a change made.
fn written(change: JobChange) -> JobRow {
    let JobChange { expected_rev, job, origin } = change;
    JobRow { rev: expected_rev.saturating_add(1), job, origin }
}

#[cfg(test)]
mod tests;
