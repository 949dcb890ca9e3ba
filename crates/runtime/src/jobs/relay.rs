//! The relay keeps Redis in step with the store, where ready jobs wait for all servers: it sends changes of jobs and
//! follows notifications.
//!
//! No request waits for it. Committed changes go into a bounded backlog and from there to Redis in batches; a popped
//! job is claimed by a commit like any other, which the store may refuse. While Redis is away, or not yet filled, the
//! dispatcher hands out jobs from its index over the store.

mod fill;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use windlass_engine::id::JobId;
use windlass_engine::job::State;
use windlass_engine::time::Timestamp;
use windlass_queue::ClaimQuery;
use windlass_queue::redis::{
    JobMessage, Redis, RedisConnection, RedisError, RedisEvent, RedisUpdate, WindowNeeds,
};
use windlass_store::commit::JobChange;
use windlass_store::page::NameRange;

use crate::RuntimeError;
use crate::jobs::JobsState;
use crate::part::{RuntimePart, part};

/// Changes that wait to be sent, each with up to 4 KiB of a payload; with more, Redis is filled again instead.
const BACKLOG_MAX: usize = 20_000;
/// Changes in one request.
const BATCH_MAX: usize = 500;
/// Queues that are checked in one request.
const CHECK_QUEUES_MAX: usize = 500;
/// How often a Redis that is away is asked for.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// How often Redis is checked while claims wait: ids may have got lost without an error.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// How often queues with long overdue jobs are filled again: this brings back an id that got lost from a list that is
/// never empty.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Between two fills of a queue in which jobs of runs of several classes wait: each applies their shares again.
const SHARE_INTERVAL: Duration = Duration::from_millis(250);
/// A job that is ready for so long and still unclaimed is not just on its way.
const OVERDUE: Duration = Duration::from_secs(1);

/// How it goes with Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisStats {
    /// Whether jobs are handed out through it now.
    pub is_up: bool,
    /// How often it was filled from the store, all of it or a queue.
    pub n_fills: u64,
    /// How often it was away.
    pub n_outages: u64,
}

/// Redis, as one server uses it.
pub(super) struct Relay {
    redis: Redis,
    moves: mpsc::Sender<RedisUpdate>,
    /// Taken by the loop that sends to Redis.
    backlog: Mutex<Option<mpsc::Receiver<RedisUpdate>>>,
    /// Only while jobs are handed out through it; canceled when it is of no more use.
    link: RwLock<Option<(RedisConnection, CancellationToken)>>,
    /// There was no room for some move.
    is_behind: AtomicBool,
    wants: Mutex<FillRequests>,
    wanted: Notify,
    /// The log already says that Redis is away.
    is_away: AtomicBool,
    n_fills: AtomicU64,
    n_outages: AtomicU64,
    n_claims: AtomicUsize,
    n_mixed: AtomicUsize,
    /// Jobs that claims have popped and not yet written.
    popped: Mutex<HashSet<JobId>>,
    /// During a fill: the messages of jobs that are not ready any more, which the fill may have read before.
    left: Mutex<Option<Vec<JobMessage>>>,
}

/// The parts of Redis that have to be filled from the store.
#[derive(Debug, Default)]
struct FillRequests {
    everything: bool,
    /// All of it, unless another server has filled it since.
    lost: bool,
    queues: BTreeSet<String>,
    /// Queues in which the lower classes of runs have not got their share.
    classes: BTreeSet<String>,
}

/// Why a connection is no longer used.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error("{0}")]
    Redis(#[from] RedisError),
    #[error("the connection was closed")]
    Gone,
    #[error("the ready jobs could not be read from the store: {0}")]
    Store(#[from] RuntimeError),
}

impl Relay {
    pub(crate) fn new(redis: Redis) -> Self {
        let (moves, backlog) = mpsc::channel(BACKLOG_MAX);
        Relay {
            redis,
            moves,
            backlog: Mutex::new(Some(backlog)),
            link: RwLock::default(),
            is_behind: AtomicBool::new(false),
            wants: Mutex::default(),
            wanted: Notify::new(),
            is_away: AtomicBool::new(false),
            n_fills: AtomicU64::new(0),
            n_outages: AtomicU64::new(0),
            n_claims: AtomicUsize::new(0),
            n_mixed: AtomicUsize::new(0),
            popped: Mutex::default(),
            left: Mutex::default(),
        }
    }

    /// Begins or ends to note the jobs that are not ready any more; returns those that were noted.
    fn note_left(&self, is_noted: bool) -> Vec<JobMessage> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *left, is_noted.then(Vec::new)).unwrap_or_default()
    }

    fn leave(&self, update: &RedisUpdate) {
        let (RedisUpdate::Held { message, .. } | RedisUpdate::Ended { message, .. }) = update else { return };
        if let Some(left) = &mut *self.left.lock().unwrap_or_else(PoisonError::into_inner) {
            left.push(message.clone());
        }
    }

    /// A claim has popped these jobs, or has given them back.
    pub(crate) fn set_popped(&self, jobs: impl IntoIterator<Item = JobId>, is_popped: bool) {
        let mut popped = self.popped.lock().unwrap_or_else(PoisonError::into_inner);
        for job in jobs {
            if is_popped {
                popped.insert(job)
            } else {
                popped.remove(&job)
            };
        }
    }

    /// The jobs that claims of this server have popped and not yet written.
    fn popped(&self) -> HashSet<JobId> {
        self.popped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a claim of this job took it from its list; asked once.
    fn take_popped(&self, job: JobId) -> bool {
        self.popped.lock().unwrap_or_else(PoisonError::into_inner).remove(&job)
    }

    /// Queues a change for Redis. If the backlog is full, the next fill covers it.
    pub(crate) fn tell(&self, what: RedisUpdate) {
        if self.moves.try_send(what).is_err() {
            self.is_behind.store(true, Ordering::Relaxed);
        }
    }

    /// The connection, while jobs are handed out through it.
    pub(crate) fn link(&self) -> Option<RedisConnection> {
        let link = self.link.read().unwrap_or_else(PoisonError::into_inner);
        link.as_ref().map(|(link, _)| link.clone())
    }

    fn set_link(&self, link: Option<(RedisConnection, CancellationToken)>) {
        let before = std::mem::replace(&mut *self.link.write().unwrap_or_else(PoisonError::into_inner), link);
        if let Some((_, gone)) = before {
            gone.cancel();
        }
    }

    /// Redis may lack anything.
    pub(crate) fn want_everything(&self) {
        self.wants().everything = true;
        self.wanted.notify_one();
    }

    /// Redis lost its content.
    pub(crate) fn want_lost(&self) {
        self.wants().lost = true;
        self.wanted.notify_one();
    }

    /// Redis may lack jobs of this queue.
    pub(crate) fn want(&self, queue: &str) {
        self.wants().queues.insert(queue.to_owned());
        self.wanted.notify_one();
    }

    fn want_windows(&self, needs: WindowNeeds) {
        if needs == WindowNeeds::default() {
            return;
        }
        let mut wants = self.wants();
        wants.queues.extend(needs.short);
        wants.classes.extend(needs.mixed);
        drop(wants);
        self.wanted.notify_one();
    }

    fn wants(&self) -> MutexGuard<'_, FillRequests> {
        self.wants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that goes on with every claim that asks for something else too.
    pub(crate) fn next_mixed(&self) -> usize {
        self.n_mixed.fetch_add(1, Ordering::Relaxed)
    }

    /// A number that goes on with every claim.
    pub(crate) fn next_turn(&self) -> usize {
        self.n_claims.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn stats(&self) -> RedisStats {
        RedisStats {
            is_up: self.link().is_some(),
            n_fills: self.n_fills.load(Ordering::Relaxed),
            n_outages: self.n_outages.load(Ordering::Relaxed),
        }
    }
}

part! {
    /// The task that keeps Redis in step with the store, while ready jobs wait there.
    pub(crate) RedisRelay, jobs: JobsState
}

impl RedisRelay {
    /// These changes are durable: Redis shows where the jobs are now.
    pub(crate) fn relay_jobs(&self, changes: &[JobChange]) {
        let Some(relay) = &self.state().relay else { return };
        let now = self.clock().now();
        for JobChange { job, .. } in changes {
            let is_popped = matches!(job.state, State::Running { .. }) && relay.take_popped(job.id);
            let update = RedisUpdate::of(job, is_popped, now);
            relay.leave(&update);
            relay.tell(update);
        }
    }

    /// A worker sent a heartbeat.
    pub(crate) fn relay_beat(&self, worker: &str) {
        let Some(relay) = &self.state().relay else { return };
        relay.tell(RedisUpdate::Heartbeat { worker: worker.to_owned(), at: self.clock().now() });
    }

    /// The connection is of no more use: from now on jobs are handed out without it.
    pub(crate) fn lose_redis(&self, why: &dyn std::fmt::Display) {
        let Some(relay) = &self.state().relay else { return };
        relay.set_link(None);
        self.state().dispatch.set_via_redis(false);
        // One outage is one warning.
        if !relay.is_away.swap(true, Ordering::Relaxed) {
            relay.n_outages.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                redis = %relay.redis.address(),
                reason = %why,
                "Redis is away: jobs are handed out without it until it is back"
            );
        }
    }

    /// Keeps the connection to Redis as long as the server runs.
    pub(crate) async fn relay_loop(self) {
        let Some(relay) = &self.state().relay else { return };
        let taken = relay.backlog.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut backlog) = taken else { return };
        loop {
            let broken = tokio::select! {
                broken = self.use_redis(relay, &mut backlog) => broken,
                () = self.stopped() => break,
            };
            self.lose_redis(&broken);
            // The next fill covers these changes.
            let waiting = async { while backlog.recv().await.is_some() {} };
            tokio::select! {
                _ = tokio::time::timeout(RETRY_DELAY, waiting) => {}
                () = self.stopped() => break,
            }
        }
        relay.set_link(None);
    }

    /// Uses one connection until it breaks.
    async fn use_redis(&self, relay: &Relay, backlog: &mut mpsc::Receiver<RedisUpdate>) -> LinkError {
        let (relay_task, gone) = (self.clone(), CancellationToken::new());
        let is_gone = gone.clone();
        let heard = move |what| match what {
            RedisEvent::Ready { queue, n } => relay_task.state().dispatch.wake_via_redis(&queue, n),
            RedisEvent::Gone => is_gone.cancel(),
        };
        let link = match relay.redis.connect(heard).await {
            Ok(link) => link,
            Err(error) => return error.into(),
        };
        let broken = tokio::select! {
            broken = self.tell_redis(&link, relay, backlog) => broken,
            broken = self.keep_filled(&link, relay, &gone) => broken,
            () = gone.cancelled() => return LinkError::Gone,
        };
        match broken {
            Ok(()) => LinkError::Gone,
            Err(broken) => broken,
        }
    }

    /// Sends changes to Redis, a batch at a time.
    async fn tell_redis(
        &self,
        link: &RedisConnection,
        relay: &Relay,
        backlog: &mut mpsc::Receiver<RedisUpdate>,
    ) -> Result<(), LinkError> {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while backlog.recv_many(&mut batch, BATCH_MAX).await > 0 {
            relay.want_windows(link.apply(&batch).await?);
            batch.clear();
            if relay.is_behind.swap(false, Ordering::Relaxed) {
                tracing::warn!(
                    "more happened than Redis could be told of in time: it is filled from the store"
                );
                relay.want_everything();
            }
        }
        Ok(())
    }

    /// Fills Redis, switches dispatch to it, and fills again the queues that lack jobs.
    async fn keep_filled(
        &self,
        link: &RedisConnection,
        relay: &Relay,
        gone: &CancellationToken,
    ) -> Result<(), LinkError> {
        self.fill_everything(link, relay).await?;
        relay.set_link(Some((link.clone(), gone.clone())));
        self.state().dispatch.set_via_redis(true);
        if relay.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!(redis = %relay.redis.address(), "Redis is back: jobs are handed out through it");
        }
        let every = |time| {
            let mut ticks = tokio::time::interval_at(Instant::now() + time, time);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let (mut look, mut sweep) = (every(CHECK_INTERVAL), every(SWEEP_INTERVAL));
        // Queues with several classes of runs, and when they are filled next.
        let mut shares: BTreeMap<String, Instant> = BTreeMap::new();
        loop {
            let next_share = shares.values().min().copied();
            tokio::select! {
                () = relay.wanted.notified() => {}
                () = tokio::time::sleep_until(next_share.unwrap_or_else(Instant::now)), if next_share.is_some() => {}
                _ = look.tick() => {
                    let queues = self.awaited_in_vain(link, relay).await?;
                    if !queues.is_empty() {
                        self.want_overdue(relay, OVERDUE, |queue| queues.contains(queue)).await;
                    }
                }
                // One server is enough.
                _ = sweep.tick() => if link.begin_sweep(SWEEP_INTERVAL).await? {
                    self.want_overdue(relay, SWEEP_INTERVAL, |_| true).await;
                    self.show_again(link).await?;
                },
            }
            let FillRequests { everything, lost, mut queues, classes } = std::mem::take(&mut *relay.wants());
            if everything || (lost && link.filled_at().await?.is_none()) {
                self.fill_everything(link, relay).await?;
                continue;
            }
            for queue in classes {
                shares.entry(queue).or_insert_with(|| Instant::now() + SHARE_INTERVAL);
            }
            let now = Instant::now();
            queues.extend(shares.extract_if(.., |_, at| *at <= now).map(|(queue, _)| queue));
            for queue in &queues {
                self.fill_queue(link, relay, queue).await?;
            }
        }
    }

    /// Queues with waiting claims that are empty in Redis; wakes the claims of the other queues.
    async fn awaited_in_vain(
        &self,
        link: &RedisConnection,
        relay: &Relay,
    ) -> Result<BTreeSet<String>, LinkError> {
        let dispatch = &self.state().dispatch;
        let awaited = ClaimQuery { queues: dispatch.awaited(), services: Vec::new() };
        let queues = dispatch.queues_via_redis(&awaited);
        let mut empty = BTreeSet::new();
        for part in queues.chunks(CHECK_QUEUES_MAX) {
            let look = link.count_ready(part).await?;
            if look.is_lost {
                relay.want_lost();
            }
            for (queue, n) in part.iter().zip(look.ready) {
                match n {
                    Some(0) => {
                        empty.insert(queue.clone());
                    }
                    Some(n) => dispatch.wake_via_redis(queue, n),
                    None => relay.want(queue),
                }
            }
        }
        Ok(empty)
    }

    /// Asks for a fill of those queues in which a job has been ready for so long.
    async fn want_overdue(&self, relay: &Relay, late: Duration, concerns: impl Fn(&String) -> bool) {
        let now = self.clock().now();
        let depths = match self.store().queues(self.project(), NameRange::All, now).await {
            Ok(depths) => depths,
            Err(error) => {
                return tracing::debug!(%error, "the ready jobs could not be read from the store; it is retried");
            }
        };
        let is_late = |due: Timestamp| u128::from(now.since(due)) >= late.as_millis();
        // The list of a paused queue stays as it is.
        let overdue =
            depths.into_iter().filter(|depth| !depth.is_paused && depth.oldest_due_at.is_some_and(is_late));
        overdue.filter(|depth| concerns(&depth.name)).for_each(|depth| relay.want(&depth.name));
    }
}
