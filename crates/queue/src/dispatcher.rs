//! The public face of this crate: one lock around the index, and a future for each waiting claim.

mod store_read;
mod via_redis;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use windlass_engine::counter::Revision;
use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;
use windlass_store::job::JobRow;
use windlass_store::queue::{QueueLimits, Spent};

use crate::index::JobIndex;
use crate::timers::JobTimers;

pub use store_read::{StoreRead, StoreReadQuery, StoreReadResult};

/// The jobs that a claim asks for: a job matches by its queue or by its service name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimQuery {
    pub queues: Vec<String>,
    pub services: Vec<String>,
}

impl ClaimQuery {
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.services.is_empty()
    }
}

/// Memory limits of a dispatcher.
#[derive(Debug, Clone)]
pub struct DispatchLimits {
    /// Ready jobs, and as many again that run or wait.
    pub rows: usize,
    /// Bytes of payloads, for each of the two.
    pub bytes: usize,
    /// Rows in one read of the store.
    pub read_rows: usize,
    /// A claim gets no further job once its jobs have this size together.
    pub take_bytes: usize,
    /// Wake-ups of jobs.
    pub timers: usize,
    /// Waiting claims.
    pub waiters: usize,
}

impl Default for DispatchLimits {
    fn default() -> Self {
        DispatchLimits {
            rows: 100_000,
            bytes: 128 << 20,
            read_rows: 4_000,
            take_bytes: 16 << 20,
            timers: 200_000,
            waiters: 20_000,
        }
    }
}

/// With fewer ready jobs, a dispatcher that shares its store reads ahead.
const LOW_SHARED: usize = 64;

/// Dispatches jobs to claims.
#[derive(Debug)]
pub struct Dispatcher {
    state: Mutex<State>,
    waiters_max: usize,
    /// With fewer ready jobs, the store is read ahead.
    low: usize,
}

#[derive(Debug)]
struct State {
    index: JobIndex,
    timers: JobTimers,
}

impl State {
    fn next_wake(&self) -> Option<Timestamp> {
        [self.timers.next(), self.index.lists().limiters().next_refill()].into_iter().flatten().min()
    }
}

/// The result of an attempt to take jobs.
#[derive(Debug)]
pub enum TakeResult<'a> {
    /// These jobs are reserved until the claim is reported: by [`Dispatcher::offer`] with the new rows, or by
    /// [`Dispatcher::put_back`].
    Jobs(TakenJobs),
    /// The store may have more: read it, pass on the result, and take again.
    Read(StoreRead<'a>),
    /// There is no job; the waiter is woken when there may be one.
    Wait(Waiter<'a>),
    /// There is no job, and too many claims wait already.
    Crowded,
}

/// Jobs that a claim got.
#[derive(Debug)]
pub struct TakenJobs {
    pub rows: Vec<Arc<JobRow>>,
    /// The state of the token buckets that they used; to be written before the claim is answered.
    pub spent: Vec<Spent>,
    /// One turn for each queue that other servers dispatch from too; the commit must include it.
    pub turns: Vec<QueueTurn>,
    /// The next wake-up is earlier than before: another claim waits for capacity.
    pub is_sooner: bool,
}

/// A turn of this server at a queue that other servers dispatch from too. The store rejects a turn that another server
/// took first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueTurn {
    pub queue: String,
    pub(crate) count_id: u64,
}

impl Dispatcher {
    /// A dispatcher that knows nothing yet.
    pub fn new(limits: DispatchLimits) -> Self {
        Self::begin(limits, false)
    }

    /// A dispatcher that has the store for itself. The caller names the queues with ready jobs by
    /// [`Dispatcher::invalidate_queues`] and reports every change from then on.
    pub fn alone(limits: DispatchLimits) -> Self {
        Self::begin(limits, true)
    }

    fn begin(limits: DispatchLimits, is_all: bool) -> Self {
        // With a shared store, the index is never complete for long: a high mark would cause constant reads.
        let low = if is_all { limits.read_rows / 4 } else { LOW_SHARED.min(limits.read_rows / 4) };
        let waiters_max = limits.waiters;
        let state = State { timers: JobTimers::new(limits.timers), index: JobIndex::new(limits, is_all) };
        Dispatcher { state: Mutex::new(state), waiters_max, low }
    }

    /// Takes new rows of jobs: ready ones can be dispatched, ended ones are removed, outdated rows are ignored. `true`
    /// if the next wake-up is earlier than before.
    pub fn offer(&self, rows: impl IntoIterator<Item = JobRow>) -> bool {
        let mut state = self.lock();
        let before = state.timers.next();
        for row in rows {
            let (id, rev, wake_at) = (row.id(), row.rev, row.job.wake_at());
            let is_news = if row.job.is_open() {
                state.index.offer(Arc::new(row))
            } else {
                state.index.forget(id, rev)
            };
            if is_news {
                state.timers.set(id, wake_at);
            }
        }
        is_earlier(state.timers.next(), before)
    }

    /// Removes jobs that ended with this revision.
    pub fn ended(&self, jobs: impl IntoIterator<Item = (JobId, Revision)>) {
        let mut state = self.lock();
        for (id, rev) in jobs {
            if state.index.forget(id, rev) {
                state.timers.set(id, None);
            }
        }
    }

    /// Removes a job that does not exist any more.
    pub fn forget(&self, id: JobId) {
        let mut state = self.lock();
        state.index.forget(id, Revision(u64::MAX));
        state.timers.set(id, None);
    }

    /// The latest known row of a job, if it is kept.
    pub fn row(&self, id: JobId) -> Option<Arc<JobRow>> {
        self.lock().index.row(id).cloned()
    }

    /// Takes jobs in dispatch order: higher priority first, then earlier due time, then smaller id; in a queue that
    /// rotates limit keys, the key with the oldest turn. It never exceeds the limits of a queue as long as all its jobs
    /// are dispatched here. With `may_read`, the store is read first where it may have more. `waiter` is the number of
    /// an earlier wait of the same claim.
    pub fn take(
        &self,
        query: &Arc<ClaimQuery>,
        max: usize,
        may_read: bool,
        waiter: Option<u64>,
        now: Timestamp,
    ) -> TakeResult<'_> {
        let mut state = self.lock();
        state.index.refill(now);
        if may_read {
            // After a read, its result is used once, however long the read took.
            state.index.recount_stale(query, now);
            state.index.invalidate_foreign(query, now);
        }
        if may_read && let Some(fill) = self.fill(&mut state, query, 1, now) {
            return TakeResult::Read(fill);
        }
        let before = state.next_wake();
        let rows = state.index.take(query, max, now);
        if !rows.is_empty() {
            let limiters = state.index.lists().limiters();
            let (spent, turns) = (limiters.spent(&rows), limiters.turns(&rows));
            let is_sooner = is_earlier(state.next_wake(), before);
            return TakeResult::Jobs(TakenJobs { rows, spent, turns, is_sooner });
        }
        if state.index.wait_queue.len() >= self.waiters_max {
            return TakeResult::Crowded;
        }
        let (waiter, woken) = state.index.wait_queue.join(query.clone(), waiter);
        let lists = state.index.lists();
        let is_shared = lists.is_shared(query) || state.index.server_view(now).leaves_foreign(query);
        let is_complete = lists.is_complete(query);
        let query = query.clone();
        TakeResult::Wait(Waiter {
            dispatch: self,
            query,
            waiter,
            woken,
            is_heard: false,
            is_complete,
            is_shared,
        })
    }

    /// Whether the query has so few jobs that more should be read.
    pub fn is_low(&self, query: &ClaimQuery) -> bool {
        self.lock().index.lists().is_low(query, self.low)
    }

    /// Reads to make before the next claim has to wait for them.
    pub fn read_ahead(&self, query: &ClaimQuery, now: Timestamp) -> Option<StoreRead<'_>> {
        self.fill(&mut self.lock(), query, self.low, now)
    }

    fn fill(&self, state: &mut State, query: &ClaimQuery, n: usize, now: Timestamp) -> Option<StoreRead<'_>> {
        state.index.pace(query, n, now);
        let reads = state.index.begin_read(query, n);
        (!reads.is_empty()).then(|| StoreRead::new(self, reads))
    }

    /// Makes jobs ready again after their claims failed.
    pub fn put_back(&self, rows: &[Arc<JobRow>]) {
        self.lock().index.put_back(rows);
    }

    /// Drops a job whose claim failed because another server changed it.
    pub fn give_up(&self, row: &JobRow) {
        self.lock().index.give_up(row);
    }

    /// Pauses or resumes a queue, after the store has recorded it.
    pub fn pause(&self, queue: &str, is_paused: bool) {
        self.lock().index.pause(queue, is_paused);
    }

    /// Sets the limits of a queue, after the store has recorded them; the default has none. The next claim reads the
    /// held jobs.
    pub fn limit(&self, queue: &str, limits: QueueLimits, now: Timestamp) {
        self.lock().index.limit(queue, limits, now);
    }

    /// Restores the stored states of token buckets.
    pub fn restore(&self, spent: &[Spent], now: Timestamp) {
        let mut state = self.lock();
        spent.iter().for_each(|spent| state.index.restore(spent, now));
    }

    /// Wakes claims that wait for refilled token buckets.
    pub fn refill_limits(&self, now: Timestamp) {
        self.lock().index.refill(now);
    }

    /// Makes the next claims read empty lists again, in case a change was missed.
    pub fn invalidate(&self) {
        self.lock().index.invalidate();
    }

    /// The store has ready jobs of these queues: lists without known jobs are read again.
    pub fn invalidate_queues(&self, queues: &[String]) {
        self.lock().index.invalidate_queues(queues);
    }

    /// Another server has ready jobs of these queues that no worker claims there.
    pub fn accept_foreign(&self, queues: &[String], now: Timestamp) {
        self.lock().index.accept_foreign(queues, now);
    }

    /// Sets the share of this server: number `at` of `of` servers that dispatch jobs of the store.
    pub fn set_share(&self, at: usize, of: usize) {
        self.lock().index.set_share(at, of.max(1));
    }

    /// The next turn at the queue; `None` if the count behind the taken jobs is outdated: put them back.
    pub fn next_turn(&self, turn: &QueueTurn) -> Option<u64> {
        self.lock().index.lists().limiters().next_turn(turn)
    }

    /// Records that the turn is durable.
    pub fn had_turn(&self, turn: &QueueTurn) {
        self.lock().index.had_turn(turn);
    }

    /// Another server took the turn: the held jobs of the queue must be read again.
    pub fn recount(&self, queue: &str) {
        self.lock().index.recount(queue);
    }

    /// The next time at which a job or a token bucket needs attention, as far as is known.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.lock().next_wake()
    }

    /// Jobs that are due. Each is returned once: the caller sets its next wake-up by [`Dispatcher::offer`] or
    /// [`Dispatcher::wake`].
    pub fn due(&self, now: Timestamp, max: usize) -> Vec<JobId> {
        self.lock().timers.due(now, max)
    }

    /// Sets the wake-up of a job.
    pub fn wake(&self, id: JobId, at: Option<Timestamp>) {
        self.lock().timers.set(id, at);
    }

    /// Whether the store may have due jobs that are not known here; the caller then reads them.
    pub fn needs_wakes(&self, now: Timestamp) -> bool {
        self.lock().timers.take_store_request(now)
    }

    /// Adds the earliest wake-ups in the store, in order. `is_all` if there are no more.
    pub fn add_wakes(&self, wakes: &[(Timestamp, JobId)], is_all: bool) {
        self.lock().timers.add_from_store(wakes, is_all);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state may be wrong without harm, so a panic while it is held has no consequence.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_earlier(now: Option<Timestamp>, before: Option<Timestamp>) -> bool {
    match (now, before) {
        (Some(now), Some(before)) => now < before,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// A waiting claim.
#[derive(Debug)]
pub struct Waiter<'a> {
    dispatch: &'a Dispatcher,
    query: Arc<ClaimQuery>,
    waiter: u64,
    woken: oneshot::Receiver<()>,
    is_heard: bool,
    is_complete: bool,
    is_shared: bool,
}

impl Waiter<'_> {
    /// The number for the next attempt, which keeps the position in the wait queue.
    pub fn waiter(&self) -> u64 {
        self.waiter
    }

    /// Whether the store has no job either. If not, the claim must ask again soon.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether other servers may release or leave jobs without a report. The claim must then ask again soon.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Waits until there may be a job.
    pub async fn woken(&mut self) {
        // An error means that the wait queue is gone, so there is nothing to wait for.
        let _said = (&mut self.woken).await;
        self.is_heard = true;
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if self.is_heard {
            return;
        }
        let mut state = self.dispatch.lock();
        // A claim that was woken and leaves passes the wake-up on.
        if !state.index.wait_queue.leave(self.waiter) {
            state.index.wake_for(&self.query);
            state.index.pass_on_via_redis(&self.query);
        }
    }
}

#[cfg(test)]
mod tests;
