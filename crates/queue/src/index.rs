//! Known jobs, their placements, and the lists from which they are dispatched.
//!
//! A job is *ready* (in the lists of its queue and of its service), *taken* (dispatched, and its claim is not yet
//! durable) or *held* (it runs or waits; keeping it saves a read). Ready and held jobs are bounded in number and in
//! bytes. Jobs beyond the bounds are left to the store, and the lists remember that.
//!
//! [`JobIndex`] keeps its parts in step: the rows ([`IndexedJobs`]), the lists with the limiters ([`DispatchLists`]),
//! the reads in progress ([`OpenReads`]), the shares of the servers ([`ServerShares`]) and the waiting claims.

mod dispatch_lists;
mod indexed_jobs;
mod limit;
mod limited_list_read;
mod list_read;
mod open_reads;
mod servers;
mod taken;
mod via_redis;
mod wake;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use windlass_engine::counter::Revision;
use windlass_engine::id::JobId;
use windlass_engine::job::{JobSpec, State};
use windlass_engine::time::Timestamp;
use windlass_store::blob::referenced_bytes;
use windlass_store::job::JobRow;
use windlass_store::queue::Spent;

use crate::dispatcher::{ClaimQuery, DispatchLimits, QueueTurn};
use crate::queue_limiter::QueueLimiter;
use crate::ready_list::{ListHead, ReadyKey};
use crate::wait_queue::WaitQueue;

use dispatch_lists::{ClassSearch, DispatchLists};
use indexed_jobs::{IndexedJob, IndexedJobs, JobPlacement, weight_of};
use open_reads::OpenReads;
use servers::{OwnJobs, ServerShares};
use via_redis::RecentlyWritten;

pub(crate) use limited_list_read::{LimitedListQuery, LimitedListRows};
pub(crate) use list_read::PlannedRead;

#[derive(Debug)]
pub(crate) struct JobIndex {
    /// Whether this server is told of every change, so that known ranges stay valid.
    is_alone: bool,
    limits: DispatchLimits,
    jobs: IndexedJobs,
    lists: DispatchLists,
    reads: OpenReads,
    servers: ServerShares,
    written: RecentlyWritten,
    pub(crate) wait_queue: WaitQueue,
}

impl JobIndex {
    /// An empty index. `is_all`: the store has no ready jobs, and every change will be reported.
    pub(crate) fn new(limits: DispatchLimits, is_all: bool) -> Self {
        JobIndex {
            is_alone: is_all,
            limits,
            jobs: IndexedJobs::default(),
            lists: DispatchLists::new(is_all),
            reads: OpenReads::default(),
            servers: ServerShares::default(),
            written: RecentlyWritten::default(),
            wait_queue: WaitQueue::default(),
        }
    }

    /// The lists from which jobs are dispatched.
    pub(crate) fn lists(&self) -> &DispatchLists {
        &self.lists
    }

    /// Restores the stored state of a token bucket.
    pub(crate) fn restore(&mut self, spent: &Spent, now: Timestamp) {
        self.lists.limiters_mut().restore(spent, now);
    }

    /// Records that the turn is durable.
    pub(crate) fn had_turn(&mut self, turn: &QueueTurn) {
        self.lists.limiters_mut().had_turn(turn);
    }

    /// The latest known row of a job.
    pub(crate) fn row(&self, id: JobId) -> Option<&Arc<JobRow>> {
        self.jobs.job(id).map(|indexed| &indexed.row)
    }

    /// Takes the new row of a job; `false` if a newer one is known.
    pub(crate) fn offer(&mut self, row: Arc<JobRow>) -> bool {
        if self.is_old(row.id(), row.rev) {
            return false;
        }
        self.remove(row.id());
        let freed = self.lists.limiters_mut().count(&row);
        match row.job.state {
            State::Queued { .. } => self.insert_ready(row, true),
            State::Pending { .. }
            | State::Running { .. }
            | State::Suspended { .. }
            | State::Retrying { .. } => self.hold(row),
            State::Succeeded | State::Failed { .. } | State::Canceled => {
                self.reads.tombstone(row.id(), row.rev);
            }
        }
        self.wake_for_freed(freed);
        true
    }

    /// Removes a job that ended with this revision; `false` if a newer one is known.
    pub(crate) fn forget(&mut self, id: JobId, rev: Revision) -> bool {
        let is_news = !self.is_old(id, rev);
        if is_news {
            self.remove(id);
            self.reads.tombstone(id, rev);
            let freed = self.lists.limiters_mut().free(id);
            self.wake_for_freed(freed);
        }
        is_news
    }

    /// Takes ready jobs in order, within the limits and with the fair share of lower classes. It may stop early where
    /// the store must be read first.
    pub(crate) fn take(&mut self, query: &ClaimQuery, max: usize, now: Timestamp) -> Vec<Arc<JobRow>> {
        let limited = self.lists.limited(query);
        let mut taken = Vec::new();
        let (mut bytes, mut search, mut own) = (0usize, ClassSearch::default(), OwnJobs::default());
        let mut heads: BinaryHeap<Reverse<(ListHead, usize)>> = BinaryHeap::new();
        let n_lists = query.queues.len() + query.services.len() + limited.len();
        heads
            .extend((0..n_lists).filter_map(|at| Some(Reverse((self.lists.head(query, &limited, at)?, at)))));
        while taken.len() < max && bytes < self.limits.take_bytes {
            let Some(Reverse((ListHead::Job(key), at))) = heads.pop() else { break };
            // The job may be gone: it is in two lists, and earlier jobs of this claim may have used up a limit.
            let is_ready = self.jobs.ready_job(key.id).is_some();
            let is_next = self.lists.limiters().is_empty()
                || self.lists.head(query, &limited, at) == Some(ListHead::Job(key));
            if is_ready && is_next {
                let mut given = self.lists.pick_by_share(query, &limited, at, key, &mut search, &self.jobs);
                if given == key {
                    // A claim that got jobs of this server's share comes again for jobs of other servers.
                    let n_left = max - taken.len();
                    let Some(preferred) = self.server_view(now).preferred(query, at, key, n_left, &mut own)
                    else {
                        continue;
                    };
                    given = preferred;
                }
                self.servers.note_given(at, given, &mut own);
                bytes = bytes.saturating_add(self.reserve(given, now, &mut taken));
                // The worker gets parameters that the index holds by reference only.
                bytes = bytes.saturating_add(taken.last().map_or(0, |row| referenced_bytes(row)));
            }
            heads.extend(self.lists.head(query, &limited, at).map(|head| Reverse((head, at))));
        }
        for at in own.lists_that_gave() {
            if let Some(list) = self.lists.plain_list_mut(query, at) {
                list.gave_own_jobs = true;
            }
        }
        if !taken.is_empty() {
            self.pass_on(query, &limited);
        }
        taken
    }

    /// Whether this revision of a job, or a newer one, is known.
    fn is_old(&self, id: JobId, rev: Revision) -> bool {
        self.jobs.knows(id, rev) || self.reads.has_tombstone(id, rev) || self.lists.limiters().counts(id, rev)
    }

    fn hold(&mut self, row: Arc<JobRow>) {
        if self.jobs.held().is_full(&self.limits) {
            self.reads.tombstone(row.id(), row.rev);
            return;
        }
        let (bytes, since) = (weight_of(&row), self.reads.n_begun());
        let placement = JobPlacement::Held;
        self.jobs.insert(IndexedJob { row, placement, bytes, since, is_offered: false });
    }

    /// Adds a ready job and wakes a claim for it. Without room, the last job of its queue is left to the store.
    fn insert_ready(&mut self, row: Arc<JobRow>, is_offered: bool) {
        let queue = &row.job.spec.queue;
        if self.lists.is_via_redis() && !self.lists.limiters().has(queue) {
            return self.insert_for_service(row, is_offered);
        }
        let (key, n_reserved) = (ReadyKey::of(&row), self.lists.n_reserved(queue, self.limits.rows));
        while self.jobs.ready().is_full(&self.limits) {
            let last = self.lists.queue(queue).and_then(|list| list.spare(n_reserved));
            let Some(last) = last.filter(|last| *last > key) else { break };
            self.leave_to_store(last);
        }
        if self.jobs.ready().is_full(&self.limits) || !self.add_ready(row.clone(), is_offered) {
            self.cut(&row, key);
        }
        let JobSpec { queue, name, limit_key, .. } = &*row.job.spec;
        let has_capacity = |limiter: &QueueLimiter| limiter.has_capacity_for(limit_key);
        if !self.lists.is_paused(queue) && self.lists.limiters().named(queue).is_none_or(has_capacity) {
            self.wait_queue.wake(queue, name);
        }
    }

    /// Adds a ready job; `false` if its queue has limits and the store may have jobs before it.
    fn add_ready(&mut self, row: Arc<JobRow>, is_offered: bool) -> bool {
        let is_listed = self.lists.insert(&row, ReadyKey::of(&row));
        if is_listed {
            let (bytes, since) = (weight_of(&row), self.reads.n_begun());
            let placement = JobPlacement::Ready;
            self.jobs.insert(IndexedJob { row, placement, bytes, since, is_offered });
        }
        is_listed
    }

    /// Evicts a ready job; its lists then end before it.
    fn leave_to_store(&mut self, key: ReadyKey) {
        if let Some(indexed) = self.remove(key.id) {
            self.cut(&indexed.row, key);
        }
    }

    /// Ends the lists of an evicted job before it.
    fn cut(&mut self, row: &JobRow, key: ReadyKey) {
        self.reads.tombstone(key.id, Revision(row.rev.0.saturating_sub(1)));
        self.lists.cut(row, key);
    }

    fn remove(&mut self, id: JobId) -> Option<IndexedJob> {
        let indexed = self.jobs.remove(id)?;
        match indexed.placement {
            JobPlacement::Ready => self.lists.remove(&indexed.row),
            JobPlacement::Taken => {
                if let Some(limiter) = self.lists.limiters_mut().named_mut(&indexed.row.job.spec.queue) {
                    limiter.taken.remove(&id);
                }
            }
            JobPlacement::Held => {}
        }
        Some(indexed)
    }

    /// Pauses or resumes a queue. Nothing is dispatched from a paused one, neither by queue nor by service.
    pub(crate) fn pause(&mut self, queue: &str, is_paused: bool) {
        let has_changed = self.lists.pause(queue, is_paused, &self.jobs);
        if has_changed && !is_paused {
            self.wake_for_returned(vec![queue.to_owned()]);
            self.wake_via_redis(queue, usize::MAX);
        }
    }
}

#[cfg(test)]
mod tests;
