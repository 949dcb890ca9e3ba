//! Queues with limits: changes of limits, counts of held jobs, and refilled token buckets.

use std::sync::Arc;

use windlass_engine::time::Timestamp;
use windlass_store::job::JobRow;
use windlass_store::queue::{Held, QueueLimits};

use super::JobIndex;
use crate::dispatcher::ClaimQuery;
use crate::queue_limiter::QueueLimiter;
use crate::queue_limiters::HeldJobsRead;
use crate::ready_list::{KnownRange, ReadyKey};

impl JobIndex {
    /// Sets the limits of a queue. Its held jobs must be read again.
    pub(crate) fn limit(&mut self, queue: &str, limits: QueueLimits, now: Timestamp) {
        let is_limited = limits != QueueLimits::default();
        let before = self.lists.limiters().named(queue);
        if before.map_or(!is_limited, |limiter| *limiter.limits() == limits) {
            return;
        }
        let is_known = self.lists.is_queue_known(queue);
        let ready = self.clear(queue, is_limited && is_known);
        self.lists.limiters_mut().set(queue, limits, now);
        if is_limited {
            self.count_taken(queue);
            if is_known {
                self.set_all_known(queue, None, ready);
            }
            self.wake_for_limited(queue);
        } else {
            self.lists.invalidate_unlimited(queue);
            self.wake_for_returned(vec![queue.to_owned()]);
            self.wake_via_redis(queue, usize::MAX);
        }
    }

    /// Removes the ready jobs of a queue: returns them, or leaves them to the store.
    fn clear(&mut self, queue: &str, gives_back: bool) -> Vec<Arc<JobRow>> {
        let keys: Vec<ReadyKey> = self.lists.keys_of(queue).collect();
        if gives_back {
            return keys.into_iter().filter_map(|key| Some(self.remove(key.id)?.row)).collect();
        }
        keys.into_iter().for_each(|key| self.leave_to_store(key));
        Vec::new()
    }

    /// Fills a list with all ready jobs that it can have.
    fn set_all_known(&mut self, queue: &str, service: Option<&str>, rows: Vec<Arc<JobRow>>) {
        if let Some(limiter) = self.lists.limiters_mut().named_mut(queue) {
            limiter.list_mut(service).set_others_known(KnownRange::All, 0, None);
        }
        for row in rows {
            let key = ReadyKey::of(&row);
            if self.jobs.job(key.id).is_some() {
                if let Some(limiter) = self.lists.limiters_mut().named_mut(queue) {
                    limiter.insert(&row.job.spec.limit_key, &row.job.spec.name, key);
                }
            } else {
                self.add_ready(row, false);
            }
        }
    }

    /// Derives the lists of services from a queue that is completely known, without a read of the store.
    pub(super) fn derive_services(&mut self, query: &ClaimQuery) {
        for (queue, at) in self.lists.limited(query) {
            let Some(service) = query.services.get(at) else { continue };
            let is_unknown =
                |limiter: &&QueueLimiter| limiter.list(Some(service)).is_none() && limiter.all.is_known();
            if self.lists.limiters().named(&queue).filter(is_unknown).is_none() {
                continue;
            }
            let rows = self.lists.keys_of(&queue).filter_map(|key| Some(&self.jobs.job(key.id)?.row));
            let rows = rows.filter(|row| row.job.spec.name == *service).cloned().collect();
            self.set_all_known(&queue, Some(service), rows);
        }
    }

    /// Counts taken jobs as held before their claims are durable.
    fn count_taken(&mut self, queue: &str) {
        let limiters = self.lists.limiters_mut();
        self.jobs.taken_of(queue).for_each(|row| limiters.count_taken(row));
    }

    /// Refills buckets whose time has come, and wakes claims that wait for them.
    pub(crate) fn refill(&mut self, now: Timestamp) {
        while let Some(queue) = self.lists.limiters_mut().refill_next(now) {
            self.wake_for_limited(&queue);
        }
    }

    /// Takes the held jobs of a queue as they were when the store was read; `None` if the read failed.
    pub(crate) fn set_held(&mut self, read: &HeldJobsRead, held: Option<Held>) {
        // If a tombstone was dropped meanwhile, the count is read again: an ended job would count forever.
        let held = held.filter(|_| read.n_tombstones_dropped() == self.reads.n_tombstones_dropped());
        for held in self.lists.limiters_mut().end_held_read(read, held) {
            // A newer row was counted when it arrived.
            let is_old = self.jobs.job(held.job).is_some_and(|indexed| indexed.row.rev > held.rev);
            if !is_old && !self.reads.has_tombstone(held.job, held.rev) {
                self.lists.limiters_mut().count_read(read.queue(), &held);
            }
        }
        self.reads.close();
        self.wake_for_limited(read.queue());
    }

    /// Requires a new read of the held jobs of a queue.
    pub(crate) fn recount(&mut self, queue: &str) {
        if self.lists.limiters_mut().invalidate_count(queue) {
            self.count_taken(queue);
            self.wake_for_limited(queue);
        }
    }

    /// Requires a new read for those queues of the query that other servers dispatch from and whose count is stale.
    pub(crate) fn recount_stale(&mut self, query: &ClaimQuery, now: Timestamp) {
        if self.is_alone || self.lists.limiters().is_empty() {
            return;
        }
        let limited = self.lists.limited(query).into_iter().map(|(queue, _)| queue);
        for queue in query.queues.iter().cloned().chain(limited) {
            if self.lists.limiters_mut().is_stale(&queue, now) {
                self.recount(&queue);
            }
        }
    }
}
