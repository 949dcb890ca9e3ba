//! The limiters of all queues with limits, the jobs that count against them, and the refill times of their buckets.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use windlass_engine::counter::Revision;
use windlass_engine::id::JobId;
use windlass_engine::job::State;
use windlass_engine::time::Timestamp;
use windlass_store::job::{HeldRow, JobRow};
use windlass_store::queue::{Held, QueueLimits, Spent};

use crate::dispatcher::QueueTurn;
use crate::queue_limiter::QueueLimiter;

#[derive(Debug)]
pub(crate) struct QueueLimiters {
    /// Whether no other server dispatches jobs of the store.
    is_alone: bool,
    named: HashMap<String, QueueLimiter>,
    /// Numbers of limiters and of their counts that were given out.
    n_made: u64,
    /// Held jobs of queues with concurrency limits.
    held_jobs: HashMap<JobId, HeldJob>,
    /// When queues, or limit keys in them, have tokens again.
    refill_times: BTreeSet<(Timestamp, String, Option<Arc<str>>)>,
}

/// A job that a worker holds.
#[derive(Debug)]
struct HeldJob {
    queue: String,
    limit_key: String,
    rev: Revision,
}

/// A read of the held jobs of a queue.
#[derive(Debug)]
pub(crate) struct HeldJobsRead {
    queue: String,
    /// The count of the limiter.
    count_id: u64,
    n_tombstones_dropped: u64,
}

impl HeldJobsRead {
    pub(crate) fn queue(&self) -> &str {
        &self.queue
    }

    /// How often tombstones had been dropped when the read began.
    pub(crate) fn n_tombstones_dropped(&self) -> u64 {
        self.n_tombstones_dropped
    }
}

impl QueueLimiters {
    pub(crate) fn new(is_alone: bool) -> Self {
        QueueLimiters {
            is_alone,
            named: HashMap::new(),
            n_made: 0,
            held_jobs: HashMap::new(),
            refill_times: BTreeSet::new(),
        }
    }

    /// Whether no queue has limits.
    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Whether the queue has limits.
    pub(crate) fn has(&self, queue: &str) -> bool {
        self.named.contains_key(queue)
    }

    pub(crate) fn named(&self, queue: &str) -> Option<&QueueLimiter> {
        self.named.get(queue)
    }

    pub(crate) fn named_mut(&mut self, queue: &str) -> Option<&mut QueueLimiter> {
        self.named.get_mut(queue)
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut QueueLimiter> {
        self.named.values_mut()
    }

    /// The queues with limits.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &String> {
        self.named.keys()
    }

    /// Replaces the limiter of a queue; without limits it gets none. Its held jobs must be read again.
    pub(crate) fn set(&mut self, queue: &str, limits: QueueLimits, now: Timestamp) {
        self.forget_held(queue);
        self.forget_refill_times(queue);
        let before = self.named.remove(queue);
        if limits == QueueLimits::default() {
            return;
        }
        self.n_made += 1;
        let is_shared =
            !self.is_alone && QueueLimits { fair: false, ..limits.clone() } != QueueLimits::default();
        let limiter = QueueLimiter::new(limits, before, self.n_made, is_shared, now);
        self.refill_times.extend(limiter.refill_times().map(|(at, lane)| (at, queue.to_owned(), lane)));
        self.named.insert(queue.to_owned(), limiter);
    }

    fn forget_held(&mut self, queue: &str) {
        self.held_jobs.retain(|_, held| held.queue != queue);
    }

    fn forget_refill_times(&mut self, queue: &str) {
        self.refill_times.retain(|(_, of, _)| of != queue);
    }

    /// Whether this revision of a held job, or a newer one, is counted.
    pub(crate) fn counts(&self, id: JobId, rev: Revision) -> bool {
        self.held_jobs.get(&id).is_some_and(|held| held.rev >= rev)
    }

    /// Counts a job by its state. Returns the queue if the job was held and is no longer.
    pub(crate) fn count(&mut self, row: &JobRow) -> Option<String> {
        if self.named.is_empty() {
            return None;
        }
        if let State::Running { .. } = row.job.state {
            let spec = &row.job.spec;
            self.occupy(row.id(), row.rev, &spec.queue, &spec.limit_key);
            return None;
        }
        self.free(row.id())
    }

    /// Counts a taken job as held before its claim is durable.
    pub(crate) fn count_taken(&mut self, row: &JobRow) {
        let spec = &row.job.spec;
        if let Some(limiter) = self.named.get_mut(&spec.queue) {
            limiter.taken.insert(row.id());
        }
        self.occupy(row.id(), row.rev, &spec.queue, &spec.limit_key);
    }

    /// Counts a held job that the store returned, unless it is counted already.
    pub(crate) fn count_read(&mut self, queue: &str, held: &HeldRow) {
        if !self.held_jobs.contains_key(&held.job) {
            self.occupy(held.job, held.rev, queue, &held.limit_key);
        }
    }

    /// Releases a held job. Returns its queue if it was held.
    pub(crate) fn free(&mut self, id: JobId) -> Option<String> {
        if self.held_jobs.is_empty() {
            return None;
        }
        let HeldJob { queue, limit_key, .. } = self.held_jobs.remove(&id)?;
        if let Some(limiter) = self.named.get_mut(&queue) {
            limiter.free(&limit_key);
        }
        Some(queue)
    }

    fn occupy(&mut self, id: JobId, rev: Revision, queue: &str, limit_key: &str) {
        let Some(limiter) = self.named.get_mut(queue).filter(|limiter| limiter.counts_held()) else {
            return;
        };
        if let Some(held) = self.held_jobs.get_mut(&id) {
            held.rev = rev;
            return;
        }
        let held = HeldJob { queue: queue.to_owned(), limit_key: limit_key.to_owned(), rev };
        self.held_jobs.insert(id, held);
        limiter.hold(limit_key);
    }

    /// Spends tokens for a dispatched job.
    pub(crate) fn spend(&mut self, row: &JobRow, now: Timestamp) {
        let spec = &row.job.spec;
        let Some(limiter) = self.named.get_mut(&spec.queue) else { return };
        limiter.taken.insert(row.id());
        let refill_times = limiter.spend(&spec.limit_key, now).into_iter().flatten();
        self.refill_times.extend(refill_times.map(|(at, lane)| (at, spec.queue.clone(), lane)));
        self.occupy(row.id(), row.rev, &spec.queue, &spec.limit_key);
    }

    /// The state of the token buckets that these jobs used.
    pub(crate) fn spent(&self, rows: &[Arc<JobRow>]) -> Vec<Spent> {
        if self.named.is_empty() {
            return Vec::new();
        }
        let mut spent: HashMap<(&str, String), Timestamp> = HashMap::new();
        for spec in rows.iter().map(|row| &row.job.spec) {
            let Some(limiter) = self.named.get(&spec.queue) else { continue };
            for (limit_key, full_at) in limiter.full_at(&spec.limit_key).into_iter().flatten() {
                spent.insert((&spec.queue, limit_key), full_at);
            }
        }
        let spent = spent.into_iter();
        spent
            .map(|((queue, limit_key), full_at)| Spent { queue: queue.to_owned(), limit_key, full_at })
            .collect()
    }

    /// Restores the stored state of a token bucket.
    pub(crate) fn restore(&mut self, spent: &Spent, now: Timestamp) {
        let Some(limiter) = self.named.get_mut(&spent.queue) else { return };
        if let Some((at, lane)) = limiter.restore(&spent.limit_key, spent.full_at, now) {
            self.refill_times.insert((at, spent.queue.clone(), lane));
        }
    }

    /// When the next empty bucket has a token again.
    pub(crate) fn next_refill(&self) -> Option<Timestamp> {
        self.refill_times.first().map(|(at, ..)| *at)
    }

    /// Refills the next bucket whose time has come. Returns its queue; `None` if there are no more.
    pub(crate) fn refill_next(&mut self, now: Timestamp) -> Option<String> {
        while self.refill_times.first().is_some_and(|(at, ..)| *at <= now) {
            let (_, queue, lane) = self.refill_times.pop_first()?;
            let Some(limiter) = self.named.get_mut(&queue) else { continue };
            match limiter.refill(lane.as_ref(), now) {
                // The clock went back.
                Some(later) => {
                    self.refill_times.insert((later.max(now.after(1)), queue, lane));
                }
                None => return Some(queue),
            }
        }
        None
    }

    /// Begins a read of the held jobs of a queue, if they are unknown and no read is open.
    pub(crate) fn begin_held_read(&mut self, queue: &str, n_tombstones_dropped: u64) -> Option<HeldJobsRead> {
        let limiter =
            self.named.get_mut(queue).filter(|limiter| !limiter.is_counted && !limiter.is_count_read_open)?;
        limiter.is_count_read_open = true;
        Some(HeldJobsRead { queue: queue.to_owned(), count_id: limiter.count_id, n_tombstones_dropped })
    }

    /// Ends a read of held jobs; `None` if it failed. Returns the jobs to count: none if the count is outdated.
    pub(crate) fn end_held_read(&mut self, read: &HeldJobsRead, held: Option<Held>) -> Vec<HeldRow> {
        let HeldJobsRead { queue, count_id, .. } = read;
        let is_same = |limiter: &&mut QueueLimiter| limiter.count_id == *count_id;
        let Some(limiter) = self.named.get_mut(queue).filter(is_same) else { return Vec::new() };
        limiter.is_count_read_open = false;
        limiter.is_counted |= held.is_some();
        let Held { turns, jobs, spent } = held.unwrap_or_default();
        if limiter.is_counted && limiter.is_shared() {
            limiter.set_counted(turns);
            let now = limiter.now();
            self.forget_refill_times(queue);
            spent.iter().for_each(|spent| self.restore(spent, now));
        }
        jobs
    }

    /// Requires a new read of the held jobs of a queue; `false` if no other server dispatches its jobs.
    pub(crate) fn invalidate_count(&mut self, queue: &str) -> bool {
        let Some(limiter) = self.named.get_mut(queue).filter(|limiter| limiter.is_shared()) else {
            return false;
        };
        self.n_made += 1;
        limiter.invalidate_count(self.n_made);
        self.forget_held(queue);
        true
    }

    /// Whether other servers may have released jobs of the queue since its last count.
    pub(crate) fn is_stale(&mut self, queue: &str, now: Timestamp) -> bool {
        self.named.get_mut(queue).is_some_and(|limiter| {
            limiter.advance_clock(now);
            limiter.is_stale(now)
        })
    }

    /// Whether other servers dispatch jobs of the queue too.
    pub(crate) fn is_shared(&self, queue: &str) -> bool {
        self.named.get(queue).is_some_and(QueueLimiter::is_shared)
    }

    /// The turns that this dispatch takes at queues that other servers dispatch from too.
    pub(crate) fn turns(&self, rows: &[Arc<JobRow>]) -> Vec<QueueTurn> {
        if self.is_alone || self.named.is_empty() {
            return Vec::new();
        }
        let queues: BTreeSet<&str> = rows.iter().map(|row| row.job.spec.queue.as_str()).collect();
        let turn = |queue: &str| {
            let limiter = self.named.get(queue).filter(|limiter| limiter.is_shared())?;
            Some(QueueTurn { queue: queue.to_owned(), count_id: limiter.count_id })
        };
        queues.into_iter().filter_map(turn).collect()
    }

    /// The next turn, if the count that the jobs were taken by is still current.
    pub(crate) fn next_turn(&self, turn: &QueueTurn) -> Option<u64> {
        self.named.get(&turn.queue).filter(|limiter| limiter.count_id == turn.count_id)?.next_shared_turn()
    }

    /// Records that the turn is durable.
    pub(crate) fn had_turn(&mut self, turn: &QueueTurn) {
        if let Some(limiter) =
            self.named.get_mut(&turn.queue).filter(|limiter| limiter.count_id == turn.count_id)
        {
            limiter.had_turn();
        }
    }

    #[cfg(test)]
    pub(crate) fn held_ids(&self) -> Vec<JobId> {
        self.held_jobs.keys().copied().collect()
    }
}
