//! Queues with limits: held jobs, spent tokens, and wake-ups when capacity returns.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use windlass_engine::counter::Revision;
use windlass_engine::id::JobId;
use windlass_engine::job::State;
use windlass_engine::time::Timestamp;
use windlass_store::job::{HeldRow, JobRow};
use windlass_store::queue::{Held, QueueLimits, Spent};

use super::{HeldJob, JobIndex, JobPlacement};
use crate::dispatcher::{ClaimQuery, QueueTurn};
use crate::queue_limiter::QueueLimiter;
use crate::ready_list::{KnownRange, ListHead, ReadyKey, ReadyList};

/// A read of the held jobs of a queue.
#[derive(Debug)]
pub(crate) struct HeldJobsRead {
    pub(crate) queue: String,
    /// The count of the limiter.
    count_id: u64,
    n_tombstones_dropped: u64,
}

impl JobIndex {
    /// Sets the limits of a queue. Its held jobs must be read again.
    pub(crate) fn limit(&mut self, queue: &str, limits: QueueLimits, now: Timestamp) {
        let is_limited = limits != QueueLimits::default();
        let is_same = |limiter: &QueueLimiter| *limiter.limits() == limits;
        if self.limiters.get(queue).map_or(!is_limited, is_same) {
            return;
        }
        let is_known = match self.limiters.get(queue) {
            Some(limiter) => limiter.all.is_known(),
            None => self.queues.is_known(queue),
        };
        let ready = self.clear(queue, is_limited && is_known);
        self.held_jobs.retain(|_, hold| hold.queue != queue);
        self.refill_times.retain(|(_, of, _)| of != queue);
        let before = self.limiters.remove(queue);
        if is_limited {
            self.n_limiters_made += 1;
            let is_shared =
                !self.is_alone && QueueLimits { fair: false, ..limits.clone() } != QueueLimits::default();
            let limiter = QueueLimiter::new(limits, before, self.n_limiters_made, is_shared, now);
            self.refill_times.extend(limiter.refill_times().map(|(at, lane)| (at, queue.to_owned(), lane)));
            self.limiters.insert(queue.to_owned(), limiter);
            self.count_taken(queue);
            if is_limited && is_known {
                self.set_all_known(queue, None, ready);
            }
            self.wake_for_limited(queue);
        } else {
            self.queues.of(queue).cut(KnownRange::Nothing);
            self.services.invalidate();
            let services = self.wait_queue.services().cloned().collect();
            self.wake_for(&ClaimQuery { queues: vec![queue.to_owned()], services });
            self.wake_via_redis(queue, usize::MAX);
        }
    }

    /// Removes the ready jobs of a queue: returns them, or leaves them to the store.
    fn clear(&mut self, queue: &str, gives_back: bool) -> Vec<Arc<JobRow>> {
        let keys: Vec<ReadyKey> = self.queues.named(queue).into_iter().flat_map(ReadyList::keys).collect();
        if gives_back {
            return keys.into_iter().filter_map(|key| Some(self.remove(key.id)?.row)).collect();
        }
        keys.into_iter().for_each(|key| self.leave_to_store(key));
        Vec::new()
    }

    /// Fills a list with all ready jobs that it can have.
    fn set_all_known(&mut self, queue: &str, service: Option<&str>, rows: Vec<Arc<JobRow>>) {
        if let Some(limiter) = self.limiters.get_mut(queue) {
            limiter.list_mut(service).set_others_known(KnownRange::All, 0, None);
        }
        for row in rows {
            let key = ReadyKey::of(&row);
            if self.rows.contains_key(&key.id) {
                if let Some(limiter) = self.limiters.get_mut(queue) {
                    limiter.insert(&row.job.spec.limit_key, &row.job.spec.name, key);
                }
            } else {
                self.add_ready(row, false);
            }
        }
    }

    /// Derives the lists of services from a queue that is completely known, without a read of the store.
    pub(super) fn derive_services(&mut self, query: &ClaimQuery) {
        for (queue, at) in self.limited(query) {
            let Some(service) = query.services.get(at) else { continue };
            let is_unknown =
                |limiter: &&QueueLimiter| limiter.list(Some(service)).is_none() && limiter.all.is_known();
            if self.limiters.get(&queue).filter(is_unknown).is_none() {
                continue;
            }
            let keys = self.queues.named(&queue).into_iter().flat_map(ReadyList::keys);
            let rows = keys.filter_map(|key| Some(&self.rows.get(&key.id)?.row));
            let rows = rows.filter(|row| row.job.spec.name == *service).cloned().collect();
            self.set_all_known(&queue, Some(service), rows);
        }
    }

    /// Counts taken jobs as held before their claims are durable.
    fn count_taken(&mut self, queue: &str) {
        let is_taken = |indexed: &&super::IndexedJob| {
            indexed.placement == JobPlacement::Taken && indexed.row.job.spec.queue == queue
        };
        let taken: Vec<Arc<JobRow>> =
            self.rows.values().filter(is_taken).map(|indexed| indexed.row.clone()).collect();
        for row in taken {
            if let Some(limiter) = self.limiters.get_mut(queue) {
                limiter.taken.insert(row.id());
            }
            self.occupy(row.id(), row.rev, queue, &row.job.spec.limit_key);
        }
    }

    /// Counts a job by its state. Returns the queue if the job was held and is no longer.
    pub(super) fn count(&mut self, row: &JobRow) -> Option<String> {
        if self.limiters.is_empty() {
            return None;
        }
        if let State::Running { .. } = row.job.state {
            let spec = &row.job.spec;
            self.occupy(row.id(), row.rev, &spec.queue, &spec.limit_key);
            return None;
        }
        self.free(row.id())
    }

    /// Releases a held job. Returns its queue if it was held.
    pub(super) fn free(&mut self, id: JobId) -> Option<String> {
        if self.held_jobs.is_empty() {
            return None;
        }
        let HeldJob { queue, limit_key, .. } = self.held_jobs.remove(&id)?;
        if let Some(limiter) = self.limiters.get_mut(&queue) {
            limiter.free(&limit_key);
        }
        Some(queue)
    }

    fn occupy(&mut self, id: JobId, rev: Revision, queue: &str, limit_key: &str) {
        let Some(limiter) = self.limiters.get_mut(queue).filter(|limiter| limiter.counts_held()) else {
            return;
        };
        if let Some(hold) = self.held_jobs.get_mut(&id) {
            hold.rev = rev;
            return;
        }
        let hold = HeldJob { queue: queue.to_owned(), limit_key: limit_key.to_owned(), rev };
        self.held_jobs.insert(id, hold);
        limiter.hold(limit_key);
    }

    /// Spends tokens for a dispatched job.
    pub(super) fn spend(&mut self, row: &JobRow, now: Timestamp) {
        let spec = &row.job.spec;
        let Some(limiter) = self.limiters.get_mut(&spec.queue) else { return };
        limiter.taken.insert(row.id());
        let refill_times = limiter.spend(&spec.limit_key, now).into_iter().flatten();
        self.refill_times.extend(refill_times.map(|(at, lane)| (at, spec.queue.clone(), lane)));
        self.occupy(row.id(), row.rev, &spec.queue, &spec.limit_key);
    }

    /// The state of the token buckets that these jobs used.
    pub(crate) fn spent(&self, rows: &[Arc<JobRow>]) -> Vec<Spent> {
        if self.limiters.is_empty() {
            return Vec::new();
        }
        let mut spent: HashMap<(&str, String), Timestamp> = HashMap::new();
        for spec in rows.iter().map(|row| &row.job.spec) {
            let Some(limiter) = self.limiters.get(&spec.queue) else { continue };
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
        let Some(limiter) = self.limiters.get_mut(&spent.queue) else { return };
        if let Some((at, lane)) = limiter.restore(&spent.limit_key, spent.full_at, now) {
            self.refill_times.insert((at, spent.queue.clone(), lane));
        }
    }

    /// When the next empty bucket has a token again.
    pub(crate) fn next_refill(&self) -> Option<Timestamp> {
        self.refill_times.first().map(|(at, ..)| *at)
    }

    /// Refills buckets whose time has come, and wakes claims that wait for them.
    pub(crate) fn refill(&mut self, now: Timestamp) {
        while self.refill_times.first().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, queue, lane)) = self.refill_times.pop_first() else { return };
            let Some(limiter) = self.limiters.get_mut(&queue) else { continue };
            match limiter.refill(lane.as_ref(), now) {
                // The clock went back.
                Some(later) => {
                    self.refill_times.insert((later.max(now.after(1)), queue, lane));
                }
                None => self.wake_for_limited(&queue),
            }
        }
    }

    /// Begins a read of the held jobs of a queue.
    pub(super) fn begin_held_read(&mut self, queue: &str) -> Option<HeldJobsRead> {
        let limiter = self
            .limiters
            .get_mut(queue)
            .filter(|limiter| !limiter.is_counted && !limiter.is_count_read_open)?;
        limiter.is_count_read_open = true;
        self.n_reads_open += 1;
        Some(HeldJobsRead {
            queue: queue.to_owned(),
            count_id: limiter.count_id,
            n_tombstones_dropped: self.n_tombstones_dropped,
        })
    }

    /// Takes the held jobs of a queue as they were when the store was read; `None` if the read failed.
    pub(crate) fn set_held(&mut self, counting: &HeldJobsRead, held: Option<Held>) {
        let HeldJobsRead { queue, count_id, n_tombstones_dropped } = counting;
        // If a tombstone was dropped meanwhile, the count is read again: an ended job would count forever.
        let held = held.filter(|_| *n_tombstones_dropped == self.n_tombstones_dropped);
        if let Some(limiter) = self.limiters.get_mut(queue).filter(|limiter| limiter.count_id == *count_id) {
            limiter.is_count_read_open = false;
            limiter.is_counted |= held.is_some();
            let Held { turns, jobs, spent } = held.unwrap_or_default();
            if limiter.is_counted && limiter.is_shared() {
                limiter.set_counted(turns);
                let now = limiter.now();
                self.refill_times.retain(|(_, of, _)| of != queue);
                spent.iter().for_each(|spent| self.restore(spent, now));
            }
            for HeldRow { job, rev, limit_key } in jobs {
                // A newer row was counted when it arrived.
                let is_old = self.rows.get(&job).is_some_and(|indexed| indexed.row.rev > rev);
                let is_gone = self.tombstones.get(&job).is_some_and(|known| *known >= rev);
                if !is_old && !is_gone && !self.held_jobs.contains_key(&job) {
                    self.occupy(job, rev, queue, &limit_key);
                }
            }
        }
        self.close_read();
        self.wake_for_limited(queue);
    }

    /// Requires a new read of the held jobs of a queue.
    pub(crate) fn recount(&mut self, queue: &str) {
        let Some(limiter) = self.limiters.get_mut(queue).filter(|limiter| limiter.is_shared()) else {
            return;
        };
        self.n_limiters_made += 1;
        limiter.invalidate_count(self.n_limiters_made);
        self.held_jobs.retain(|_, hold| hold.queue != queue);
        self.count_taken(queue);
        self.wake_for_limited(queue);
    }

    /// Requires a new read for those queues of the query that other servers dispatch from and whose count is stale.
    pub(crate) fn recount_stale(&mut self, query: &ClaimQuery, now: Timestamp) {
        if self.is_alone || self.limiters.is_empty() {
            return;
        }
        let limited = self.limited(query).into_iter().map(|(queue, _)| queue);
        for queue in query.queues.iter().cloned().chain(limited) {
            let Some(limiter) = self.limiters.get_mut(&queue) else { continue };
            limiter.advance_clock(now);
            if limiter.is_stale(now) {
                self.recount(&queue);
            }
        }
    }

    /// The turns that this dispatch takes at queues that other servers dispatch from too.
    pub(crate) fn turns(&self, rows: &[Arc<JobRow>]) -> Vec<QueueTurn> {
        if self.is_alone || self.limiters.is_empty() {
            return Vec::new();
        }
        let queues: BTreeSet<&str> = rows.iter().map(|row| row.job.spec.queue.as_str()).collect();
        let turn = |queue: &str| {
            let limiter = self.limiters.get(queue).filter(|limiter| limiter.is_shared())?;
            Some(QueueTurn { queue: queue.to_owned(), count_id: limiter.count_id })
        };
        queues.into_iter().filter_map(turn).collect()
    }

    /// The next turn, if the count that the jobs were taken by is still current.
    pub(crate) fn next_turn(&self, turn: &QueueTurn) -> Option<u64> {
        self.limiters.get(&turn.queue).filter(|limiter| limiter.count_id == turn.count_id)?.next_shared_turn()
    }

    /// Records that the turn is durable.
    pub(crate) fn had_turn(&mut self, turn: &QueueTurn) {
        if let Some(limiter) =
            self.limiters.get_mut(&turn.queue).filter(|limiter| limiter.count_id == turn.count_id)
        {
            limiter.had_turn();
        }
    }

    /// Whether other servers may release capacity that the query waits for, without a report.
    pub(crate) fn is_shared(&self, query: &ClaimQuery) -> bool {
        let shares = |queue: &String| self.limiters.get(queue).is_some_and(QueueLimiter::is_shared);
        query.queues.iter().any(shares) || self.limited(query).iter().any(|(queue, _)| shares(queue))
    }

    /// The queues with limits, not named by the query, that may have jobs for its services: pairs of queue and index of
    /// the service.
    pub(super) fn limited(&self, query: &ClaimQuery) -> Vec<(String, usize)> {
        if self.limiters.is_empty() {
            return Vec::new();
        }
        let is_asked = |queue: &&String| !self.paused.contains(*queue) && !query.queues.contains(queue);
        let queues: Vec<&String> = self.limiters.keys().filter(is_asked).collect();
        let pairs = (0..query.services.len()).flat_map(|at| queues.iter().map(move |queue| (*queue, at)));
        pairs.map(|(queue, at)| (queue.clone(), at)).collect()
    }

    /// Wakes another claim for the jobs that this one left.
    pub(super) fn pass_on(&mut self, query: &ClaimQuery, limited: &[(String, usize)]) {
        if self.limiters.is_empty() || self.wait_queue.len() == 0 {
            return;
        }
        for queue in query.queues.iter().chain(limited.iter().map(|(queue, _)| queue)) {
            self.wake_for_limited(queue);
        }
    }

    pub(super) fn wake_for_freed(&mut self, freed: Option<String>) {
        if let Some(queue) = freed {
            self.wake_for_limited(&queue);
        }
    }

    /// Wakes one claim that waits for jobs of a queue with limits.
    pub(super) fn wake_for_limited(&mut self, queue: &str) {
        if self.wait_queue.len() == 0 || self.paused.contains(queue) {
            return;
        }
        let Some(limiter) = self.limiters.get(queue) else { return };
        let is_woken = match limiter.head(None) {
            None => return,
            Some(ListHead::Job(key)) => self
                .rows
                .get(&key.id)
                .is_some_and(|indexed| self.wait_queue.wake(queue, &indexed.row.job.spec.name)),
            Some(ListHead::AskStore | ListHead::AskStoreAt(_)) => self.wait_queue.wake_queue(queue),
        };
        if is_woken {
            return;
        }
        let services: Vec<String> = self
            .wait_queue
            .services()
            .filter(|service| limiter.head(Some(service)).is_some())
            .cloned()
            .collect();
        let _is_woken = services.iter().any(|service| self.wait_queue.wake_service(service));
    }
}
