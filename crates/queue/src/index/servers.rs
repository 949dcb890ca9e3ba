//! Dispatch by several servers from one store. Each server starts with its own share, so that two servers seldom take
//! the same job.
//!
//! A server does not learn which jobs another one dispatches; they stay in its lists until the next read. So it passes
//! over the shares of others while its own share has a job that is almost as urgent, and reads the store again before
//! it takes theirs.

use std::collections::{HashMap, HashSet, VecDeque};

use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;
use windlass_store::hint::LEFT_MS;
use windlass_store::job::{JobRow, Portion};

use super::JobIndex;
use super::dispatch_lists::DispatchLists;
use super::indexed_jobs::{IndexedJob, IndexedJobs};
use crate::dispatcher::ClaimQuery;
use crate::ready_list::{KnownRange, ListHead, ReadyKey, ReadyList};

/// Jobs that are scanned for the first one to dispatch, when this server's share has none.
const SCAN_MAX: usize = 256;
/// A job of another share is passed over for own jobs that are due up to this much later, or up to an eighth of its
/// waiting time if that is more.
const PASS_OVER_MS: u64 = 1_000;
const PASS_OVER_DIVISOR: u64 = 8;
/// How long jobs of other shares are assumed to be still there after a read.
const FOREIGN_TRUST_MS: u64 = 100;
/// How long this server dispatches jobs of a queue that another server reported as unclaimed.
const FOREIGN_ACCEPTED_MS: u64 = 1_000;
const FOREIGN_QUEUES_MAX: usize = 1_024;

/// The share of this server among those that dispatch jobs of the store, and the jobs of others that it takes over.
#[derive(Debug)]
pub(super) struct ServerShares {
    own: Portion,
    /// Queues for which another server reported unclaimed jobs, and until when this server dispatches them.
    accepted: HashMap<String, Timestamp>,
}

impl Default for ServerShares {
    fn default() -> Self {
        ServerShares { own: Portion { at: 0, of: 1 }, accepted: HashMap::new() }
    }
}

impl ServerShares {
    #[cfg(test)]
    pub(super) fn own(&self) -> Portion {
        self.own
    }

    /// Whether this server is the only one.
    fn is_single(&self) -> bool {
        self.own.of <= 1
    }

    /// Whether the job is in this server's share.
    fn has(&self, id: JobId) -> bool {
        self.own.has(id)
    }

    /// Another server wrote jobs of these queues, and no worker claims them there.
    fn accept(&mut self, queues: &[String], now: Timestamp) {
        if self.accepted.len() >= FOREIGN_QUEUES_MAX {
            self.accepted.retain(|_, until| now < *until);
        }
        self.accepted.extend(queues.iter().map(|queue| (queue.clone(), now.after(FOREIGN_ACCEPTED_MS))));
    }

    fn accepts(&self, queue: &str, now: Timestamp) -> bool {
        self.accepted.get(queue).is_some_and(|until| now < *until)
    }

    /// Records that a job was dispatched from list number `at`, if it is an own one.
    pub(super) fn note_given(&self, at: usize, given: ReadyKey, own: &mut OwnJobs) {
        if !self.is_single() && self.has(given.id) {
            own.gave.insert(at);
        }
    }

    /// The share to read: only the own one if all these lists are long, so that servers do not read the same rows.
    pub(super) fn portion_to_read(&self, query: &ClaimQuery, lists: &DispatchLists) -> Option<Portion> {
        (!self.is_single() && lists.are_long(query)).then_some(self.own)
    }

    /// Whether other servers dispatch their shares too. If their jobs pile up in front, they do not, and the claim must
    /// see these jobs.
    pub(super) fn is_shared_out(&self, rows: &[JobRow]) -> bool {
        let n_own = rows.iter().filter(|row| self.has(row.id())).count();
        n_own.saturating_mul(self.own.of).saturating_mul(2) >= rows.len()
    }
}

/// Own jobs that one claim found behind those of others: for each list, the job in front and the own jobs.
#[derive(Debug, Default)]
pub(super) struct OwnJobs {
    found: HashMap<usize, (ReadyKey, VecDeque<ReadyKey>)>,
    /// The lists from which own jobs were dispatched.
    gave: HashSet<usize>,
}

impl OwnJobs {
    /// The lists from which own jobs were dispatched.
    pub(super) fn lists_that_gave(&self) -> impl Iterator<Item = usize> {
        self.gave.iter().copied()
    }
}

/// Whether a job is as urgent as the next one and due hardly later.
fn is_comparable(key: ReadyKey, next: ReadyKey, now: Timestamp) -> bool {
    let later = PASS_OVER_MS.max(now.since(next.due()) / PASS_OVER_DIVISOR);
    (key.urgency(), key.is_run) == (next.urgency(), next.is_run) && key.due() <= next.due().after(later)
}

/// The ready jobs as this server sees them at one time: its own ones and those of others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerView<'a> {
    servers: &'a ServerShares,
    jobs: &'a IndexedJobs,
    lists: &'a DispatchLists,
    now: Timestamp,
}

impl<'a> ServerView<'a> {
    /// Own jobs that may be dispatched instead of the next one, which is not an own job.
    fn own_comparable(self, list: &'a ReadyList, next: ReadyKey) -> impl Iterator<Item = ReadyKey> + use<'a> {
        let alike = list.known_keys().take_while(move |key| {
            key.urgency() == next.urgency()
                && (key.is_run != next.is_run || is_comparable(*key, next, self.now))
        });
        alike.filter(move |key| self.is_own(*key) && is_comparable(*key, next, self.now))
    }

    /// Whether the server that wrote a job of another share is probably dispatching it for the first time.
    fn is_left_to_writer(self, key: ReadyKey) -> bool {
        let is_new = |indexed: &IndexedJob| {
            let job = &indexed.row.job;
            job.fence == Fence::ZERO && !self.servers.accepts(&job.spec.queue, self.now)
        };
        self.now < key.due().after(LEFT_MS) && self.jobs.job(key.id).is_some_and(is_new)
    }

    /// Whether the query has jobs that are left to other servers for now.
    pub(crate) fn leaves_foreign(self, query: &ClaimQuery) -> bool {
        let is_others =
            |list: &ReadyList| matches!(list.head(), Some(ListHead::Job(key)) if !self.is_own(key));
        !self.servers.is_single()
            && (0..query.queues.len() + query.services.len())
                .any(|at| self.lists.plain_list(query, at).is_some_and(is_others))
    }

    /// Whether the job is in this server's share, or was just written by it.
    fn is_own(self, key: ReadyKey) -> bool {
        let is_offered = || self.jobs.job(key.id).is_some_and(|indexed| indexed.is_offered);
        self.servers.has(key.id) || (self.now < key.due().after(LEFT_MS) && is_offered())
    }

    /// The job to dispatch instead of `next`: an own job that is as urgent and hardly later, or else one at a different
    /// position for each server. Queues with limits are not shared; the order of their keys decides. `n` more jobs may
    /// be wanted. `None` if other servers probably dispatch the rest and the claim already has jobs.
    pub(super) fn preferred(
        self,
        query: &ClaimQuery,
        at: usize,
        next: ReadyKey,
        n: usize,
        own: &mut OwnJobs,
    ) -> Option<ReadyKey> {
        if self.servers.is_single() || self.is_own(next) {
            return Some(next);
        }
        let Some(list) = self.lists.plain_list(query, at) else { return Some(next) };
        let is_ready = |key: &ReadyKey| self.jobs.ready_job(key.id).is_some();
        // A claim does not change the order of the rest, so each list is scanned once for each next job.
        let (behind, found) =
            own.found.entry(at).or_insert_with(|| (next, self.own_comparable(list, next).take(n).collect()));
        if *behind != next {
            (*behind, *found) = (next, self.own_comparable(list, next).take(n).collect());
        }
        while let Some(key) = found.pop_front() {
            if is_ready(&key) {
                return Some(key);
            }
        }
        if own.gave.contains(&at) && next.due().after(FOREIGN_TRUST_MS) < self.now {
            return None;
        }
        if self.is_left_to_writer(next) {
            // Jobs behind it do not wait for it.
            let may_give = |key: &ReadyKey| self.is_own(*key) || !self.is_left_to_writer(*key);
            return list.known_keys().take(SCAN_MAX).find(|key| is_ready(key) && may_give(key));
        }
        let near: Vec<ReadyKey> =
            list.known_keys().take(SCAN_MAX).filter(|key| is_comparable(*key, next, self.now)).collect();
        let Portion { at, of } = self.servers.own;
        Some(near.get(near.len() * at / of).copied().unwrap_or(next))
    }

    /// Whether only jobs of other shares are left and the last read is old.
    fn is_stale_list(self, list: &'a ReadyList) -> bool {
        let is_old = |at: Timestamp| at.after(FOREIGN_TRUST_MS) < self.now;
        let Some(ListHead::Job(next)) = list.head() else { return false };
        !list.is_being_read()
            && is_old(next.due())
            && (list.gave_own_jobs || is_old(list.read_at))
            && !self.is_own(next)
            && self.own_comparable(list, next).next().is_none()
    }
}

impl JobIndex {
    /// The ready jobs as this server sees them now.
    pub(crate) fn server_view(&self, now: Timestamp) -> ServerView<'_> {
        ServerView { servers: &self.servers, jobs: &self.jobs, lists: &self.lists, now }
    }

    /// Sets the share of this server: number `at` of `of` servers that dispatch jobs of the store.
    pub(crate) fn set_share(&mut self, at: usize, of: usize) {
        self.servers.own = Portion { at, of };
    }

    /// Another server wrote jobs of these queues, and no worker claims them there.
    pub(crate) fn accept_foreign(&mut self, queues: &[String], now: Timestamp) {
        self.servers.accept(queues, now);
        self.invalidate_queues(queues);
    }

    /// Makes the claim read the store where only jobs of other shares are left and the last read is old: most of them
    /// are probably dispatched already.
    pub(crate) fn invalidate_foreign(&mut self, query: &ClaimQuery, now: Timestamp) {
        if self.servers.is_single() {
            return;
        }
        for at in 0..query.queues.len() + query.services.len() {
            let view = self.server_view(now);
            if !self.lists.plain_list(query, at).is_some_and(|list| view.is_stale_list(list)) {
                continue;
            }
            if let Some(list) = self.lists.plain_list_mut(query, at) {
                // If own jobs follow, the queue is not long: the next read covers all shares.
                if list.known_keys().any(|key| self.servers.has(key.id)) {
                    list.n_own_reads = 0;
                }
                list.cut(KnownRange::Nothing);
                list.gave_own_jobs = false;
            }
        }
    }

    /// Records a read of `n` jobs. If reads are rare, the next one covers all shares.
    pub(crate) fn pace(&mut self, query: &ClaimQuery, n: usize, now: Timestamp) {
        if !self.servers.is_single() {
            self.lists.pace(query, n, now);
        }
    }

    /// Records the end of a read: `is_full` if it returned as many rows as requested and other servers dispatch theirs.
    pub(super) fn end_portion(&mut self, query: &ClaimQuery, portion: Option<Portion>, is_full: bool) {
        if !self.servers.is_single() {
            self.lists.end_portion(query, portion, is_full);
        }
    }

    /// Drops jobs in the range of a read that it did not return, if they were known before the read and have not
    /// changed since. Jobs outside the share that was read are dropped too.
    pub(super) fn drop_unread(
        &mut self,
        query: &ClaimQuery,
        begun: u64,
        portion: Option<Portion>,
        known: KnownRange,
        read: &HashSet<JobId>,
    ) {
        if self.is_alone {
            return;
        }
        let lists = query.queues.iter().filter_map(|queue| self.lists.queue(queue));
        let lists = lists.chain(query.services.iter().filter_map(|service| self.lists.service(service)));
        let is_gone = |key: &ReadyKey| {
            let indexed = self.jobs.job(key.id);
            let is_others = portion.is_some_and(|portion| !portion.has(key.id));
            let is_asked = is_others || known.covers(*key);
            is_asked && !read.contains(&key.id) && indexed.is_some_and(|indexed| indexed.since < begun)
        };
        let gone: Vec<JobId> = lists.flat_map(ReadyList::keys).filter(is_gone).map(|key| key.id).collect();
        for indexed in gone.into_iter().filter_map(|id| self.remove(id)).collect::<Vec<_>>() {
            // Lists that were not read must read the store when they get to this job.
            self.lists.cut_beside(query, &indexed.row);
        }
    }
}
