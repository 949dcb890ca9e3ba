//! The lists from which jobs are dispatched: by queue, by service, and by the limiters of queues with limits.
//!
//! A ready job is in the list of its queue. It is also in the list of its service, unless its queue is paused or has
//! limits; then its limiter has it.

mod reads;
mod share;
mod sources;

use std::collections::HashSet;

use windlass_store::job::JobRow;

pub(super) use share::ClassSearch;

use super::indexed_jobs::IndexedJobs;
use crate::dispatcher::ClaimQuery;
use crate::queue_limiter::QueueLimiter;
use crate::queue_limiters::QueueLimiters;
use crate::ready_list::{KnownRange, ListPosition, ReadyKey, ReadyList};
use crate::ready_lists::ReadyLists;
use crate::run_jobs::CLASS_READ_SIZE;

/// The reserved jobs of one class, in all queues together, are at most this part of all ready jobs.
const RESERVED_DIVISOR: usize = 16;

#[derive(Debug)]
pub(crate) struct DispatchLists {
    queues: ReadyLists,
    services: ReadyLists,
    limiters: QueueLimiters,
    paused: HashSet<String>,
    /// Whether Redis dispatches the jobs of queues without limits to claims by queue.
    is_via_redis: bool,
}

impl DispatchLists {
    /// Empty lists. `is_all`: the store has no ready jobs, and every change will be reported.
    pub(super) fn new(is_all: bool) -> Self {
        let others = if is_all { KnownRange::All } else { KnownRange::Nothing };
        DispatchLists {
            queues: ReadyLists::new(others),
            services: ReadyLists::new(others),
            limiters: QueueLimiters::new(is_all),
            paused: HashSet::new(),
            is_via_redis: false,
        }
    }

    pub(crate) fn limiters(&self) -> &QueueLimiters {
        &self.limiters
    }

    pub(super) fn limiters_mut(&mut self) -> &mut QueueLimiters {
        &mut self.limiters
    }

    pub(super) fn queue(&self, queue: &str) -> Option<&ReadyList> {
        self.queues.named(queue)
    }

    pub(super) fn service(&self, service: &str) -> Option<&ReadyList> {
        self.services.named(service)
    }

    /// Whether every ready job of the queue is known.
    pub(super) fn is_queue_known(&self, queue: &str) -> bool {
        match self.limiters.named(queue) {
            Some(limiter) => limiter.all.is_known(),
            None => self.queues.is_known(queue),
        }
    }

    #[cfg(test)]
    pub(super) fn is_service_known(&self, service: &str) -> bool {
        self.services.is_known(service)
    }

    /// The ready jobs in the lists of all queues.
    #[cfg(test)]
    pub(super) fn n_ready(&self) -> usize {
        self.queues.all().map(|(_, list)| list.len()).sum()
    }

    /// The keys of all ready jobs of a queue.
    pub(super) fn keys_of(&self, queue: &str) -> impl Iterator<Item = ReadyKey> {
        self.queues.named(queue).into_iter().flat_map(ReadyList::keys)
    }

    pub(super) fn is_paused(&self, queue: &str) -> bool {
        self.paused.contains(queue)
    }

    /// Pauses or resumes a queue; `false` if it was so already. Its jobs leave or enter the lists of their services.
    pub(super) fn pause(&mut self, queue: &str, is_paused: bool, jobs: &IndexedJobs) -> bool {
        if is_paused {
            let is_new = self.paused.insert(queue.to_owned());
            if is_new {
                self.each_service_of(queue, jobs, ReadyList::remove);
            }
            return is_new;
        }
        let was_paused = self.paused.remove(queue);
        if was_paused {
            self.each_service_of(queue, jobs, ReadyList::insert);
            // The store does not return jobs of a paused queue.
            match self.limiters.named_mut(queue) {
                Some(limiter) => limiter.invalidate(),
                None => self.invalidate_unlimited(queue),
            }
        }
        was_paused
    }

    /// Applies `act` to the service list of each ready job of the queue.
    fn each_service_of(&mut self, queue: &str, jobs: &IndexedJobs, act: impl Fn(&mut ReadyList, ReadyKey)) {
        if self.limiters.has(queue) {
            return;
        }
        for key in self.queues.named(queue).into_iter().flat_map(ReadyList::keys) {
            if let Some(indexed) = jobs.job(key.id) {
                act(self.services.of(&indexed.row.job.spec.name), key);
            }
        }
    }

    pub(super) fn is_via_redis(&self) -> bool {
        self.is_via_redis
    }

    pub(super) fn set_via_redis(&mut self, is_via_redis: bool) {
        self.is_via_redis = is_via_redis;
    }

    /// Whether Redis dispatches the jobs of the queue now.
    pub(super) fn is_served_by_redis(&self, queue: &str) -> bool {
        self.is_via_redis && !self.paused.contains(queue) && !self.limiters.has(queue)
    }

    /// The queues of a query that Redis dispatches.
    pub(crate) fn queues_via_redis(&self, query: &ClaimQuery) -> Vec<String> {
        query.queues.iter().filter(|queue| self.is_served_by_redis(queue)).cloned().collect()
    }

    /// Adds a ready job; `false` if its queue has limits and the store may have jobs before it.
    pub(super) fn insert(&mut self, row: &JobRow, key: ReadyKey) -> bool {
        let spec = &row.job.spec;
        if let Some(limiter) = self.limiters.named_mut(&spec.queue) {
            if !limiter.insert(&spec.limit_key, &spec.name, key) {
                return false;
            }
        } else if !self.paused.contains(&spec.queue) {
            self.services.of(&spec.name).insert(key);
        }
        self.queues.of(&spec.queue).insert(key);
        true
    }

    /// Removes a ready job.
    pub(super) fn remove(&mut self, row: &JobRow) {
        let (key, spec) = (ReadyKey::of(row), &row.job.spec);
        self.queues.of(&spec.queue).remove(key);
        match self.limiters.named_mut(&spec.queue) {
            Some(limiter) => limiter.remove(&spec.limit_key, &spec.name, key),
            None => self.services.of(&spec.name).remove(key),
        }
    }

    /// Ends the lists of an evicted job before it.
    pub(super) fn cut(&mut self, row: &JobRow, key: ReadyKey) {
        let (known, spec) = (KnownRange::Before(ListPosition::at(key)), &row.job.spec);
        if let Some(limiter) = self.limiters.named_mut(&spec.queue) {
            return limiter.cut(&spec.limit_key, &spec.name, key);
        }
        self.queues.of(&spec.queue).cut(known);
        self.services.of(&spec.name).cut(known);
    }

    /// Ends those lists of a dropped job before it that the query does not name.
    pub(super) fn cut_beside(&mut self, query: &ClaimQuery, row: &JobRow) {
        let (known, spec) = (KnownRange::Before(ListPosition::at(ReadyKey::of(row))), &row.job.spec);
        if !query.queues.contains(&spec.queue) {
            self.queues.of(&spec.queue).cut(known);
        }
        if !query.services.contains(&spec.name) {
            self.services.of(&spec.name).cut(known);
        }
    }

    /// Jobs of each class of runs that are kept for a queue, however many are above them. `rows_max` is the limit of
    /// all ready jobs. Queues with limits keep none beyond their known range.
    pub(super) fn n_reserved(&self, queue: &str, rows_max: usize) -> usize {
        if self.limiters.has(queue) {
            return 0;
        }
        (rows_max / RESERVED_DIVISOR / self.queues.len().max(1)).min(CLASS_READ_SIZE)
    }

    /// The number of queues with ready jobs.
    pub(super) fn n_queues_ready(&self) -> usize {
        self.queues.all().filter(|(_, list)| !list.is_empty()).count()
    }

    /// The jobs to evict if each queue keeps `share` jobs and its reserved ones.
    pub(super) fn spares(&self, share: usize, rows_max: usize) -> Vec<ReadyKey> {
        let long = self.queues.all().filter(|(_, list)| list.len() > share);
        let ends = |(queue, list): (&String, &'_ ReadyList)| -> Vec<ReadyKey> {
            list.spares(share, self.n_reserved(queue, rows_max)).collect()
        };
        long.flat_map(ends).collect()
    }

    /// Forgets the known range of a queue.
    pub(super) fn invalidate_queue(&mut self, queue: &str) {
        self.queues.of(queue).cut(KnownRange::Nothing);
    }

    /// Forgets the known range of a queue without limits, and of all services.
    pub(super) fn invalidate_unlimited(&mut self, queue: &str) {
        self.invalidate_queue(queue);
        self.services.invalidate();
    }

    /// Forgets the known range of every list.
    pub(super) fn invalidate_all(&mut self) {
        self.queues.invalidate();
        self.services.invalidate();
        self.limiters.all_mut().for_each(QueueLimiter::invalidate);
    }

    /// Forgets the known range of empty lists. Returns the queues and services without limits among them.
    pub(super) fn invalidate_empty(&mut self) -> ClaimQuery {
        let (queues, services) = (self.queues.invalidate_empty(), self.services.invalidate_empty());
        self.limiters.all_mut().for_each(QueueLimiter::invalidate_empty);
        ClaimQuery { queues, services }
    }

    /// The store may have more jobs of every queue without limits than are known.
    pub(super) fn invalidate_rest(&mut self) {
        self.queues.invalidate_rest();
        self.services.invalidate_rest();
    }

    /// Forgets the known range of these queues, and of all services.
    pub(super) fn invalidate_queues(&mut self, queues: &[String]) {
        for queue in queues {
            match self.limiters.named_mut(queue) {
                Some(limiter) => limiter.invalidate(),
                None => self.queues.of(queue).cut(KnownRange::Nothing),
            }
        }
        self.services.invalidate();
    }

    /// The store may have more jobs of these queues, and of all services, than are known.
    pub(super) fn invalidate_rest_of(&mut self, queues: &[String]) {
        for queue in queues {
            match self.limiters.named_mut(queue) {
                Some(limiter) => limiter.invalidate_rest(),
                None => self.queues.of(queue).invalidate_rest(),
            }
        }
        self.services.invalidate_rest();
    }
}
