//! Known jobs, their placements, and the lists from which they are dispatched.
//!
//! A job is *ready* (in the lists of its queue and of its service), *taken* (dispatched, and its claim is not yet
//! durable) or *held* (it runs or waits; keeping it saves a read). Ready and held jobs are bounded in number and in
//! bytes. Jobs beyond the bounds are left to the store, and the lists remember that.

mod limit;
mod limited_list_read;
mod list_read;
mod pause;
mod servers;
mod share;
mod taken;
mod via_redis;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use windlass_engine::counter::Revision;
use windlass_engine::id::JobId;
use windlass_engine::job::{JobSpec, State};
use windlass_engine::time::Timestamp;
use windlass_engine::weight;
use windlass_store::job::JobRow;

use crate::dispatcher::{ClaimQuery, DispatchLimits};
use crate::queue_limiter::QueueLimiter;
use crate::ready_list::{KnownRange, ListHead, ListPosition, ReadyKey};
use crate::ready_lists::ReadyLists;
use crate::wait_queue::WaitQueue;

/// The approximate bytes of a job without its payload.
const ROW_BYTES: usize = 1_024;
/// The assumed bytes of a job before the first read: large, so that the first read is small.
const BYTES_PER_ROW: usize = 128 << 10;
/// Tombstones that are kept during reads: more than are added during one read.
const TOMBSTONES_MAX: usize = 100_000;

pub(crate) use limited_list_read::{LimitedListQuery, LimitedListRows};
pub(crate) use list_read::PlannedRead;
use servers::OwnJobs;
pub(crate) use servers::ServerShare;
use share::{ClassSearch, ListSource};

#[derive(Debug)]
pub(crate) struct JobIndex {
    /// Whether this server is told of every change, so that known ranges stay valid.
    is_alone: bool,
    /// Whether Redis dispatches the jobs of queues without limits to claims by queue.
    is_via_redis: bool,
    written: via_redis::RecentlyWritten,
    rows: HashMap<JobId, IndexedJob>,
    queues: ReadyLists,
    services: ReadyLists,
    paused: HashSet<String>,
    /// Limiters of queues with limits. The jobs of these queues are in no list of a service.
    limiters: HashMap<String, QueueLimiter>,
    n_limiters_made: u64,
    /// Held jobs of queues with concurrency limits.
    held_jobs: HashMap<JobId, HeldJob>,
    /// When queues, or limit keys in them, have tokens again.
    refill_times: BTreeSet<(Timestamp, String, Option<Arc<str>>)>,
    ready: IndexedSize,
    /// Ready jobs of runs by priority.
    n_runs_ready: BTreeMap<i32, usize>,
    held: IndexedSize,
    n_taken: usize,
    n_reads_open: usize,
    /// Reads of lists since the start.
    n_reads_begun: u64,
    /// The mean size in the last read.
    bytes_per_row: usize,
    /// Revisions of jobs that were removed while a read is open: the read may return older rows.
    tombstones: HashMap<JobId, Revision>,
    /// How often the tombstones exceeded their limit.
    n_tombstones_dropped: u64,
    limits: DispatchLimits,
    /// The share of this server among those that dispatch jobs of the store.
    pub(crate) servers: ServerShare,
    /// Queues for which another server reported unclaimed jobs, and until when this server dispatches them.
    foreign_accepted: HashMap<String, Timestamp>,
    pub(crate) wait_queue: WaitQueue,
}

#[derive(Debug)]
struct IndexedJob {
    row: Arc<JobRow>,
    placement: JobPlacement,
    bytes: usize,
    /// The number of reads that had begun when it got its placement.
    since: u64,
    /// Whether a local commit wrote it, rather than a read of the store.
    is_offered: bool,
}

/// A job that a worker holds.
#[derive(Debug)]
struct HeldJob {
    queue: String,
    limit_key: String,
    rev: Revision,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobPlacement {
    Ready,
    Taken,
    Held,
}

/// A number of jobs and their bytes.
#[derive(Debug, Default, Clone, Copy)]
struct IndexedSize {
    n: usize,
    bytes: usize,
}

impl IndexedSize {
    fn add(&mut self, bytes: usize) {
        self.n += 1;
        self.bytes += bytes;
    }

    fn subtract(&mut self, bytes: usize) {
        self.n -= 1;
        self.bytes -= bytes;
    }

    fn is_full(self, limits: &DispatchLimits) -> bool {
        self.n >= limits.rows || self.bytes >= limits.bytes
    }
}

impl JobIndex {
    /// An empty index. `is_all`: the store has no ready jobs, and every change will be reported.
    pub(crate) fn new(limits: DispatchLimits, is_all: bool) -> Self {
        let others = if is_all { KnownRange::All } else { KnownRange::Nothing };
        JobIndex {
            is_alone: is_all,
            is_via_redis: false,
            written: via_redis::RecentlyWritten::default(),
            rows: HashMap::new(),
            queues: ReadyLists::new(others),
            services: ReadyLists::new(others),
            paused: HashSet::new(),
            limiters: HashMap::new(),
            n_limiters_made: 0,
            held_jobs: HashMap::new(),
            refill_times: BTreeSet::new(),
            ready: IndexedSize::default(),
            n_runs_ready: BTreeMap::new(),
            held: IndexedSize::default(),
            n_taken: 0,
            n_reads_open: 0,
            n_reads_begun: 0,
            bytes_per_row: BYTES_PER_ROW,
            tombstones: HashMap::new(),
            n_tombstones_dropped: 0,
            limits,
            servers: ServerShare::default(),
            foreign_accepted: HashMap::new(),
            wait_queue: WaitQueue::default(),
        }
    }

    /// The latest known row of a job.
    pub(crate) fn row(&self, id: JobId) -> Option<&Arc<JobRow>> {
        self.rows.get(&id).map(|indexed| &indexed.row)
    }

    /// Takes the new row of a job; `false` if a newer one is known.
    pub(crate) fn offer(&mut self, row: Arc<JobRow>) -> bool {
        if self.is_old(row.id(), row.rev) {
            return false;
        }
        self.remove(row.id());
        let freed = self.count(&row);
        match row.job.state {
            State::Queued { .. } => self.insert_ready(row, true),
            State::Pending { .. }
            | State::Running { .. }
            | State::Suspended { .. }
            | State::Retrying { .. } => self.hold(row),
            State::Succeeded | State::Failed { .. } | State::Canceled => self.tombstone(row.id(), row.rev),
        }
        self.wake_for_freed(freed);
        true
    }

    /// Removes a job that ended with this revision; `false` if a newer one is known.
    pub(crate) fn forget(&mut self, id: JobId, rev: Revision) -> bool {
        let is_news = !self.is_old(id, rev);
        if is_news {
            self.remove(id);
            self.tombstone(id, rev);
            let freed = self.free(id);
            self.wake_for_freed(freed);
        }
        is_news
    }

    /// Whether every job that the query asks for is known.
    pub(crate) fn is_complete(&self, query: &ClaimQuery) -> bool {
        let limited = self.limited(query);
        let n_lists = query.queues.len() + query.services.len() + limited.len();
        (0..n_lists).all(|at| matches!(self.head(query, &limited, at), Some(ListHead::Job(_)) | None))
    }

    /// Takes ready jobs in order, within the limits and with the fair share of lower classes. It may stop early where
    /// the store must be read first.
    pub(crate) fn take(&mut self, query: &ClaimQuery, max: usize, now: Timestamp) -> Vec<Arc<JobRow>> {
        let limited = self.limited(query);
        let mut taken = Vec::new();
        let (mut bytes, mut search, mut own) = (0usize, ClassSearch::default(), OwnJobs::default());
        let mut heads: BinaryHeap<Reverse<(ListHead, usize)>> = BinaryHeap::new();
        let n_lists = query.queues.len() + query.services.len() + limited.len();
        heads.extend((0..n_lists).filter_map(|at| Some(Reverse((self.head(query, &limited, at)?, at)))));
        while taken.len() < max && bytes < self.limits.take_bytes {
            let Some(Reverse((ListHead::Job(key), at))) = heads.pop() else { break };
            // The job may be gone: it is in two lists, and earlier jobs of this claim may have used up a limit.
            let is_ready =
                self.rows.get(&key.id).is_some_and(|indexed| indexed.placement == JobPlacement::Ready);
            let is_next =
                self.limiters.is_empty() || self.head(query, &limited, at) == Some(ListHead::Job(key));
            if is_ready && is_next {
                let mut given = self.pick_by_share(query, &limited, at, key, &mut search);
                if given == key {
                    // A claim that got jobs of this server's share comes again for jobs of other servers.
                    let Some(preferred) = self.preferred(query, at, key, now, max - taken.len(), &mut own)
                    else {
                        continue;
                    };
                    given = preferred;
                }
                self.note_own_given(at, given, &mut own);
                bytes = bytes.saturating_add(self.reserve(given, now, &mut taken));
            }
            heads.extend(self.head(query, &limited, at).map(|head| Reverse((head, at))));
        }
        self.save_own_given(query, &own);
        if !taken.is_empty() {
            self.pass_on(query, &limited);
        }
        taken
    }

    /// The first element of list number `at` of the query; `None` if neither the list nor the store has a job.
    fn head(&self, query: &ClaimQuery, limited: &[(String, usize)], at: usize) -> Option<ListHead> {
        match self.source(query, limited, at)? {
            ListSource::Queue(queue) => self.queues.head(queue),
            ListSource::Service(service) => self.services.head(service),
            ListSource::LimitedQueue(queue, service) => self.limiters.get(queue)?.head(service),
        }
    }

    fn is_old(&self, id: JobId, rev: Revision) -> bool {
        self.rows.get(&id).is_some_and(|indexed| indexed.row.rev >= rev)
            || self.tombstones.get(&id).is_some_and(|known| *known >= rev)
            || self.held_jobs.get(&id).is_some_and(|held| held.rev >= rev)
    }

    /// Remembers the revision of a removed job while a read is open.
    fn tombstone(&mut self, id: JobId, rev: Revision) {
        if self.n_reads_open > 0 {
            // Reads may overlap forever; the store rejects jobs that are dispatched wrongly.
            if self.tombstones.len() >= TOMBSTONES_MAX {
                self.tombstones.clear();
                self.n_tombstones_dropped += 1;
            }
            self.tombstones.insert(id, rev);
        }
    }

    fn hold(&mut self, row: Arc<JobRow>) {
        if self.held.is_full(&self.limits) {
            self.tombstone(row.id(), row.rev);
            return;
        }
        let bytes = weight_of(&row);
        self.held.add(bytes);
        self.rows.insert(
            row.id(),
            IndexedJob {
                row,
                placement: JobPlacement::Held,
                bytes,
                since: self.n_reads_begun,
                is_offered: false,
            },
        );
    }

    /// Adds a ready job and wakes a claim for it. Without room, the last job of its queue is left to the store.
    fn insert_ready(&mut self, row: Arc<JobRow>, is_offered: bool) {
        if self.is_via_redis && !self.limiters.contains_key(&row.job.spec.queue) {
            return self.insert_for_service(row, is_offered);
        }
        let (key, n_reserved) = (ReadyKey::of(&row), self.n_reserved(&row.job.spec.queue));
        while self.ready.is_full(&self.limits) {
            let last = self.queues.named(&row.job.spec.queue).and_then(|list| list.spare(n_reserved));
            let Some(last) = last.filter(|last| *last > key) else { break };
            self.leave_to_store(last);
        }
        if self.ready.is_full(&self.limits) || !self.add_ready(row.clone(), is_offered) {
            self.cut(&row, key);
        }
        let JobSpec { queue, name, limit_key, .. } = &*row.job.spec;
        let has_capacity = |limiter: &QueueLimiter| limiter.has_capacity_for(limit_key);
        if !self.paused.contains(queue) && self.limiters.get(queue).is_none_or(has_capacity) {
            self.wait_queue.wake(queue, name);
        }
    }

    /// Adds a ready job; `false` if its queue has limits and the store may have jobs before it.
    fn add_ready(&mut self, row: Arc<JobRow>, is_offered: bool) -> bool {
        let (key, bytes) = (ReadyKey::of(&row), weight_of(&row));
        let spec = &row.job.spec;
        if let Some(limiter) = self.limiters.get_mut(&spec.queue) {
            if !limiter.insert(&spec.limit_key, &spec.name, key) {
                return false;
            }
        } else if !self.paused.contains(&spec.queue) {
            self.services.of(&spec.name).insert(key);
        }
        self.queues.of(&spec.queue).insert(key);
        self.ready.add(bytes);
        self.count_run(key);
        let (placement, since) = (JobPlacement::Ready, self.n_reads_begun);
        self.rows.insert(key.id, IndexedJob { row, placement, bytes, since, is_offered });
        true
    }

    /// Evicts a ready job; its lists then end before it.
    fn leave_to_store(&mut self, key: ReadyKey) {
        if let Some(indexed) = self.remove(key.id) {
            self.cut(&indexed.row, key);
        }
    }

    /// Ends the lists of an evicted job before it.
    fn cut(&mut self, row: &JobRow, key: ReadyKey) {
        let (known, spec) = (KnownRange::Before(ListPosition::at(key)), &row.job.spec);
        self.tombstone(key.id, Revision(row.rev.0.saturating_sub(1)));
        if let Some(limiter) = self.limiters.get_mut(&spec.queue) {
            return limiter.cut(&spec.limit_key, &spec.name, key);
        }
        self.queues.of(&spec.queue).cut(known);
        self.services.of(&spec.name).cut(known);
    }

    fn remove(&mut self, id: JobId) -> Option<IndexedJob> {
        let indexed = self.rows.remove(&id)?;
        match indexed.placement {
            JobPlacement::Ready => {
                let (key, spec) = (ReadyKey::of(&indexed.row), &indexed.row.job.spec);
                self.queues.of(&spec.queue).remove(key);
                match self.limiters.get_mut(&spec.queue) {
                    Some(limiter) => limiter.remove(&spec.limit_key, &spec.name, key),
                    None => self.services.of(&spec.name).remove(key),
                }
                self.ready.subtract(indexed.bytes);
                self.uncount_run(key);
            }
            JobPlacement::Taken => {
                self.n_taken -= 1;
                if let Some(limiter) = self.limiters.get_mut(&indexed.row.job.spec.queue) {
                    limiter.taken.remove(&id);
                }
            }
            JobPlacement::Held => self.held.subtract(indexed.bytes),
        }
        Some(indexed)
    }
}

fn weight_of(row: &JobRow) -> usize {
    // A value that is too deep to weigh counts as the largest possible one.
    let weigh = |value| weight::weigh(value).unwrap_or(windlass_engine::limits::SHARED_BYTES);
    let job = &row.job;
    ROW_BYTES + weigh(&job.spec.payload) + job.memo.as_ref().map_or(0, weigh)
}

#[cfg(test)]
mod tests;
