//! Ready jobs wait in Redis, where all servers pop them: what became durable is told to it, and what it says is heard.
//!
//! Nobody who asks for something waits for this. What is committed goes into a bounded backlog and from there to Redis
//! in batches; what is popped is claimed as ever, by a commit that the store may refuse. While Redis is away, or until it
//! has been filled from the store, jobs are handed out by the index over the store, as without it.

mod fill;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use windlass_engine::time::Timestamp;
use windlass_queue::Query;
use windlass_queue::redis::{Heard, Link, Move, Redis, RedisError};
use windlass_store::commit::JobChange;

use crate::{Runtime, RuntimeError};

/// Moves that wait to be told; with more, Redis is filled anew instead.
const BACKLOG: usize = 100_000;
/// Moves that are told at once.
const BATCH: usize = 500;
/// For how long a worker is shown at most; Redis takes no time without end.
const BEAT_MS_MAX: u64 = 86_400_000;
/// Queues that are looked at in one request.
const LOOK_QUEUES: usize = 500;
/// How often a Redis that is away is asked for.
const RETRY: Duration = Duration::from_millis(500);
/// How often it is looked at while somebody waits: something may have got lost without a word.
const LOOK: Duration = Duration::from_secs(5);
/// How often queues are filled whose jobs have waited for so long: an id that got lost in a list that is never empty is
/// back in its place then.
const SWEEP: Duration = Duration::from_secs(60);
/// A job that the store has had ready for so long and nobody has found is not just on its way.
const LATE: Duration = Duration::from_secs(1);

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
pub(crate) struct Relay {
    redis: Redis,
    moves: mpsc::Sender<Move>,
    /// Taken by the loop that tells Redis.
    backlog: Mutex<Option<mpsc::Receiver<Move>>>,
    /// Only while jobs are handed out through it; cancelled when it is of no more use.
    link: RwLock<Option<(Link, CancellationToken)>>,
    /// There was no room for some move.
    is_behind: AtomicBool,
    wants: Mutex<Wants>,
    wanted: Notify,
    /// Somebody has been told that Redis is away.
    is_away: AtomicBool,
    n_fills: AtomicU64,
    n_outages: AtomicU64,
    n_claims: AtomicUsize,
    n_mixed: AtomicUsize,
}

/// What is to be filled from the store.
#[derive(Debug, Default)]
struct Wants {
    everything: bool,
    /// Everything, unless somebody has filled it since.
    lost: bool,
    queues: BTreeSet<String>,
    /// Of these only what lower classes of runs have.
    classes: BTreeSet<String>,
}

/// Why a connection is no longer used.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("{0}")]
    Redis(#[from] RedisError),
    #[error("the connection was closed")]
    Gone,
    #[error("the store does not say what is ready: {0}")]
    Store(#[from] RuntimeError),
}

impl Relay {
    pub(crate) fn new(redis: Redis) -> Self {
        let (moves, backlog) = mpsc::channel(BACKLOG);
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
        }
    }

    /// Tells Redis, in a while. Whatever it does not hear it is given when it is filled.
    pub(crate) fn tell(&self, what: Move) {
        if self.moves.try_send(what).is_err() {
            self.is_behind.store(true, Ordering::Relaxed);
        }
    }

    /// The connection, while jobs are handed out through it.
    pub(crate) fn link(&self) -> Option<Link> {
        let link = self.link.read().unwrap_or_else(PoisonError::into_inner);
        link.as_ref().map(|(link, _)| link.clone())
    }

    fn set_link(&self, link: Option<(Link, CancellationToken)>) {
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

    /// Redis has nothing of what it was given.
    pub(crate) fn want_lost(&self) {
        self.wants().lost = true;
        self.wanted.notify_one();
    }

    /// Redis may lack jobs of this queue.
    pub(crate) fn want(&self, queue: &str) {
        self.wants().queues.insert(queue.to_owned());
        self.wanted.notify_one();
    }

    /// Redis may lack jobs of lower classes of runs of this queue, which get turns although there is more above them.
    pub(crate) fn want_classes(&self, queue: &str) {
        self.wants().classes.insert(queue.to_owned());
        self.wanted.notify_one();
    }

    fn wants(&self) -> MutexGuard<'_, Wants> {
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

    fn stats(&self) -> RedisStats {
        RedisStats {
            is_up: self.link().is_some(),
            n_fills: self.n_fills.load(Ordering::Relaxed),
            n_outages: self.n_outages.load(Ordering::Relaxed),
        }
    }
}

impl Runtime {
    /// How it goes with Redis; `None` if this server uses none.
    pub fn redis_stats(&self) -> Option<RedisStats> {
        self.jobs().relay.as_ref().map(Relay::stats)
    }

    /// These changes are durable: Redis shows where the jobs are now.
    pub(crate) fn relay_jobs(&self, changes: &[JobChange]) {
        let Some(relay) = &self.jobs().relay else { return };
        let now = self.clock().now();
        changes.iter().for_each(|change| relay.tell(Move::of(&change.job, now)));
    }

    /// A worker lives: Redis shows it for as long as it counts as alive.
    pub(crate) fn relay_beat(&self, worker: &str) {
        let Some(relay) = &self.jobs().relay else { return };
        let ms = u64::try_from(self.settings().worker_ttl.as_millis()).unwrap_or(BEAT_MS_MAX);
        let ms = ms.clamp(1, BEAT_MS_MAX);
        relay.tell(Move::Beat { worker: worker.to_owned(), at: self.clock().now(), ms });
    }

    /// The connection is of no more use: from now on jobs are handed out without it.
    pub(crate) fn lose_redis(&self, why: &dyn std::fmt::Display) {
        let Some(relay) = &self.jobs().relay else { return };
        relay.set_link(None);
        self.jobs().dispatch.elsewhere(false);
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
    pub(crate) async fn keep_redis(self) {
        let Some(relay) = &self.jobs().relay else { return };
        let taken = relay.backlog.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut backlog) = taken else { return };
        loop {
            let broken = tokio::select! {
                broken = self.use_redis(relay, &mut backlog) => broken,
                () = self.stopped() => break,
            };
            self.lose_redis(&broken);
            // It is filled when it is back: until then nobody needs what it would have been told.
            let waiting = async { while backlog.recv().await.is_some() {} };
            tokio::select! {
                _ = tokio::time::timeout(RETRY, waiting) => {}
                () = self.stopped() => break,
            }
        }
        relay.set_link(None);
    }

    /// Uses one connection until it breaks.
    async fn use_redis(&self, relay: &Relay, backlog: &mut mpsc::Receiver<Move>) -> Broken {
        let (runtime, gone) = (self.clone(), CancellationToken::new());
        let is_gone = gone.clone();
        let heard = move |what| match what {
            Heard::Ready { queue, n } => runtime.jobs().dispatch.wake_elsewhere(&queue, n),
            Heard::Gone => is_gone.cancel(),
        };
        let link = match relay.redis.connect(heard).await {
            Ok(link) => link,
            Err(error) => return error.into(),
        };
        let broken = tokio::select! {
            broken = self.tell_redis(&link, relay, backlog) => broken,
            broken = self.keep_filled(&link, relay, &gone) => broken,
            () = gone.cancelled() => return Broken::Gone,
        };
        match broken {
            Ok(()) => Broken::Gone,
            Err(broken) => broken,
        }
    }

    /// Tells Redis what there is to tell, a batch at a time.
    async fn tell_redis(
        &self,
        link: &Link,
        relay: &Relay,
        backlog: &mut mpsc::Receiver<Move>,
    ) -> Result<(), Broken> {
        let mut batch = Vec::with_capacity(BATCH);
        while backlog.recv_many(&mut batch, BATCH).await > 0 {
            link.apply(&batch).await?;
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

    /// Fills Redis, has jobs handed out through it, and fills again what it lacks.
    async fn keep_filled(&self, link: &Link, relay: &Relay, gone: &CancellationToken) -> Result<(), Broken> {
        self.fill_everything(link, relay).await?;
        relay.set_link(Some((link.clone(), gone.clone())));
        self.jobs().dispatch.elsewhere(true);
        if relay.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!(redis = %relay.redis.address(), "Redis is back: jobs are handed out through it");
        }
        let every = |time| {
            let mut ticks = tokio::time::interval_at(Instant::now() + time, time);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let (mut look, mut sweep) = (every(LOOK), every(SWEEP));
        loop {
            tokio::select! {
                () = relay.wanted.notified() => {}
                _ = look.tick() => {
                    let queues = self.awaited_in_vain(link, relay).await?;
                    if !queues.is_empty() {
                        self.want_overdue(relay, LATE, |queue| queues.contains(queue)).await;
                    }
                }
                // One server is enough.
                _ = sweep.tick() => if link.begin_sweep(SWEEP).await? {
                    self.want_overdue(relay, SWEEP, |_| true).await;
                },
            }
            let Wants { everything, lost, queues, classes } = std::mem::take(&mut *relay.wants());
            if everything || (lost && link.filled_at().await?.is_none()) {
                self.fill_everything(link, relay).await?;
                continue;
            }
            for queue in &queues {
                self.fill_queue(link, relay, queue).await?;
            }
            for queue in classes.difference(&queues) {
                self.fill_classes(link, queue).await?;
            }
        }
    }

    /// Queues that somebody waits for and of which Redis has nothing; wakes those who wait for what it has.
    async fn awaited_in_vain(&self, link: &Link, relay: &Relay) -> Result<BTreeSet<String>, Broken> {
        let dispatch = &self.jobs().dispatch;
        let awaited = Query { queues: dispatch.awaited(), services: Vec::new() };
        let queues = dispatch.asked_elsewhere(&awaited);
        let mut empty = BTreeSet::new();
        for part in queues.chunks(LOOK_QUEUES) {
            let look = link.look(part, self.clock().now()).await?;
            if look.is_lost {
                relay.want_lost();
            }
            for (queue, n) in part.iter().zip(look.ready) {
                match n {
                    Some(0) => {
                        empty.insert(queue.clone());
                    }
                    Some(n) => dispatch.wake_elsewhere(queue, n),
                    None => relay.want(queue),
                }
            }
        }
        Ok(empty)
    }

    /// Of these queues, has those filled in which a job has waited for so long.
    async fn want_overdue(&self, relay: &Relay, late: Duration, concerns: impl Fn(&String) -> bool) {
        let now = self.clock().now();
        let depths = match self.store().queues(now).await {
            Ok(depths) => depths,
            Err(error) => {
                return tracing::debug!(%error, "the store does not say what is ready; it is asked again");
            }
        };
        let is_late = |due: Timestamp| u128::from(now.since(due)) >= late.as_millis();
        let overdue = depths.into_iter().filter(|depth| depth.oldest_due_at.is_some_and(is_late));
        overdue.filter(|depth| concerns(&depth.name)).for_each(|depth| relay.want(&depth.name));
    }
}
