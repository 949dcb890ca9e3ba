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

use super::share::ListSource;
use super::{IndexedJob, JobIndex, JobPlacement};
use crate::dispatcher::ClaimQuery;
use crate::ready_list::{KnownRange, ListHead, ListPosition, ReadyKey, ReadyList};
use crate::ready_lists::ReadyLists;

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

/// Reads of only the own share of a long queue before other shares are read again, as their server may be idle. Only
/// for reads that are used up quickly: an urgent job of another share waits no longer than that.
const OWN_READS: u8 = 3;
const FAST_READ_MS: u64 = 2_000;

/// This server is number `at` of `of`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerShare {
    pub(crate) at: usize,
    pub(crate) of: usize,
}

impl Default for ServerShare {
    fn default() -> Self {
        ServerShare { at: 0, of: 1 }
    }
}

impl ServerShare {
    /// Whether the job is in this server's share.
    fn is_own(self, id: JobId) -> bool {
        self.portion().has(id)
    }

    pub(super) fn portion(self) -> Portion {
        Portion { at: self.at, of: self.of }
    }
}

/// Own jobs that one claim found behind those of others: for each list, the job in front and the own jobs.
#[derive(Debug, Default)]
pub(super) struct OwnJobs {
    found: HashMap<usize, (ReadyKey, VecDeque<ReadyKey>)>,
    /// The lists from which own jobs were dispatched.
    gave: HashSet<usize>,
}

/// Whether a job is as urgent as the next one and due hardly later.
fn is_comparable(key: ReadyKey, next: ReadyKey, now: Timestamp) -> bool {
    let later = PASS_OVER_MS.max(now.since(next.due()) / PASS_OVER_DIVISOR);
    (key.urgency(), key.is_run) == (next.urgency(), next.is_run) && key.due() <= next.due().after(later)
}

impl JobIndex {
    fn plain_list(&self, query: &ClaimQuery, at: usize) -> Option<&ReadyList> {
        match self.source(query, &[], at)? {
            ListSource::Queue(queue) => self.queues.named(queue),
            ListSource::Service(service) => self.services.named(service),
            ListSource::LimitedQueue(..) => None,
        }
    }

    /// Own jobs that may be dispatched instead of the next one, which is not an own job.
    fn own_comparable<'a>(
        &'a self,
        list: &'a ReadyList,
        next: ReadyKey,
        now: Timestamp,
    ) -> impl Iterator<Item = ReadyKey> + use<'a> {
        let alike = list.known_keys().take_while(move |key| {
            key.urgency() == next.urgency() && (key.is_run != next.is_run || is_comparable(*key, next, now))
        });
        alike.filter(move |key| self.is_own(*key, now) && is_comparable(*key, next, now))
    }

    /// Another server wrote jobs of these queues, and no worker claims them there.
    pub(crate) fn accept_foreign(&mut self, queues: &[String], now: Timestamp) {
        if self.foreign_accepted.len() >= FOREIGN_QUEUES_MAX {
            self.foreign_accepted.retain(|_, until| now < *until);
        }
        self.foreign_accepted
            .extend(queues.iter().map(|queue| (queue.clone(), now.after(FOREIGN_ACCEPTED_MS))));
        self.invalidate_queues(queues);
    }

    /// Whether the server that wrote a job of another share is probably dispatching it for the first time.
    fn is_left_to_writer(&self, key: ReadyKey, now: Timestamp) -> bool {
        let has_capacity = |queue: &str| self.foreign_accepted.get(queue).is_some_and(|until| now < *until);
        let is_new = |indexed: &IndexedJob| {
            indexed.row.job.fence == Fence::ZERO && !has_capacity(&indexed.row.job.spec.queue)
        };
        now < key.due().after(LEFT_MS) && self.rows.get(&key.id).is_some_and(is_new)
    }

    /// Whether the query has jobs that are left to other servers for now.
    pub(crate) fn leaves_foreign(&self, query: &ClaimQuery, now: Timestamp) -> bool {
        let is_others =
            |list: &ReadyList| matches!(list.head(), Some(ListHead::Job(key)) if !self.is_own(key, now));
        self.servers.of > 1
            && (0..query.queues.len() + query.services.len())
                .any(|at| self.plain_list(query, at).is_some_and(is_others))
    }

    /// Whether the job is in this server's share, or was just written by it.
    fn is_own(&self, key: ReadyKey, now: Timestamp) -> bool {
        let is_offered = || self.rows.get(&key.id).is_some_and(|indexed| indexed.is_offered);
        self.servers.is_own(key.id) || (now < key.due().after(LEFT_MS) && is_offered())
    }

    /// The job to dispatch instead of `next`: an own job that is as urgent and hardly later, or else one at a different
    /// position for each server. Queues with limits are not shared; the order of their keys decides. `n` more jobs may
    /// be wanted. `None` if other servers probably dispatch the rest and the claim already has jobs.
    pub(super) fn preferred(
        &self,
        query: &ClaimQuery,
        at: usize,
        next: ReadyKey,
        now: Timestamp,
        n: usize,
        own: &mut OwnJobs,
    ) -> Option<ReadyKey> {
        let servers = self.servers;
        if servers.of <= 1 || self.is_own(next, now) {
            return Some(next);
        }
        let Some(list) = self.plain_list(query, at) else { return Some(next) };
        let is_ready = |key: &ReadyKey| {
            self.rows.get(&key.id).is_some_and(|indexed| indexed.placement == JobPlacement::Ready)
        };
        // A claim does not change the order of the rest, so each list is scanned once for each next job.
        let (behind, found) = own
            .found
            .entry(at)
            .or_insert_with(|| (next, self.own_comparable(list, next, now).take(n).collect()));
        if *behind != next {
            (*behind, *found) = (next, self.own_comparable(list, next, now).take(n).collect());
        }
        while let Some(key) = found.pop_front() {
            if is_ready(&key) {
                return Some(key);
            }
        }
        if own.gave.contains(&at) && next.due().after(FOREIGN_TRUST_MS) < now {
            return None;
        }
        if self.is_left_to_writer(next, now) {
            // Jobs behind it do not wait for it.
            let may_give = |key: &ReadyKey| self.is_own(*key, now) || !self.is_left_to_writer(*key, now);
            return list.known_keys().take(SCAN_MAX).find(|key| is_ready(key) && may_give(key));
        }
        let near: Vec<ReadyKey> =
            list.known_keys().take(SCAN_MAX).filter(|key| is_comparable(*key, next, now)).collect();
        Some(near.get(near.len() * servers.at / servers.of).copied().unwrap_or(next))
    }

    /// Records that an own job was dispatched from this list.
    pub(super) fn note_own_given(&self, at: usize, given: ReadyKey, own: &mut OwnJobs) {
        if self.servers.of > 1 && self.servers.is_own(given.id) {
            own.gave.insert(at);
        }
    }

    /// Marks the lists from which own jobs were dispatched.
    pub(super) fn save_own_given(&mut self, query: &ClaimQuery, own: &OwnJobs) {
        for at in &own.gave {
            let list = match self.source(query, &[], *at) {
                Some(ListSource::Queue(queue)) => self.queues.named_mut(queue),
                Some(ListSource::Service(service)) => self.services.named_mut(service),
                Some(ListSource::LimitedQueue(..)) | None => None,
            };
            list.into_iter().for_each(|list| list.gave_own_jobs = true);
        }
    }

    /// Makes the claim read the store where only jobs of other shares are left and the last read is old: most of them
    /// are probably dispatched already.
    pub(crate) fn invalidate_foreign(&mut self, query: &ClaimQuery, now: Timestamp) {
        let servers = self.servers;
        if servers.of <= 1 {
            return;
        }
        for at in 0..query.queues.len() + query.services.len() {
            let is_stale_list = self.plain_list(query, at).is_some_and(|list| self.is_stale_list(list, now));
            let list = match self.source(query, &[], at).filter(|_| is_stale_list) {
                Some(ListSource::Queue(queue)) => self.queues.named_mut(queue),
                Some(ListSource::Service(service)) => self.services.named_mut(service),
                Some(ListSource::LimitedQueue(..)) | None => None,
            };
            if let Some(list) = list {
                // If own jobs follow, the queue is not long: the next read covers all shares.
                if list.known_keys().any(|key| servers.is_own(key.id)) {
                    list.n_own_reads = 0;
                }
                list.cut(KnownRange::Nothing);
                list.gave_own_jobs = false;
            }
        }
    }

    fn is_stale_list(&self, list: &ReadyList, now: Timestamp) -> bool {
        let is_old = |at: Timestamp| at.after(FOREIGN_TRUST_MS) < now;
        let Some(ListHead::Job(next)) = list.head() else { return false };
        !list.is_being_read()
            && is_old(next.due())
            && (list.gave_own_jobs || is_old(list.read_at))
            && !self.is_own(next, now)
            && self.own_comparable(list, next, now).next().is_none()
    }

    /// Records a read of `n` jobs. If reads are rare, the next one covers all shares.
    pub(crate) fn pace(&mut self, query: &ClaimQuery, n: usize, now: Timestamp) {
        if self.servers.of <= 1 {
            return;
        }
        let note = |lists: &mut ReadyLists, name: &str| {
            let Some(list) = lists.named_mut(name) else { return };
            if !list.is_being_read() && !list.suffices(n) {
                if list.read_at.after(FAST_READ_MS) < now {
                    list.n_own_reads = 0;
                }
                list.read_at = now;
            }
        };
        query.queues.iter().for_each(|queue| note(&mut self.queues, queue));
        query.services.iter().for_each(|service| note(&mut self.services, service));
    }

    /// The share to read: only the own one if all these lists are long, so that servers do not read the same rows.
    pub(super) fn begin_portion(&self, query: &ClaimQuery) -> Option<Portion> {
        let is_long = |list: Option<&ReadyList>| list.is_some_and(|list| list.n_own_reads > 0);
        let is_own = self.servers.of > 1
            && query.queues.iter().all(|queue| is_long(self.queues.named(queue)))
            && query.services.iter().all(|service| is_long(self.services.named(service)));
        is_own.then(|| self.servers.portion())
    }

    /// Whether other servers dispatch their shares too. If their jobs pile up in front, they do not, and the claim must
    /// see these jobs.
    pub(super) fn is_shared_out(&self, rows: &[JobRow]) -> bool {
        let n_own = rows.iter().filter(|row| self.servers.is_own(row.id())).count();
        n_own.saturating_mul(self.servers.of).saturating_mul(2) >= rows.len()
    }

    /// Records the end of a read: `is_full` if it returned as many rows as requested and other servers dispatch theirs.
    pub(super) fn end_portion(&mut self, query: &ClaimQuery, portion: Option<Portion>, is_full: bool) {
        if self.servers.of <= 1 {
            return;
        }
        let next = |list: &mut ReadyList| {
            list.gave_own_jobs = false;
            list.n_own_reads = match (is_full, portion) {
                (false, _) => 0,
                (true, None) => OWN_READS,
                (true, Some(_)) => list.n_own_reads.saturating_sub(1),
            };
        };
        query.queues.iter().for_each(|queue| next(self.queues.of(queue)));
        query.services.iter().for_each(|service| next(self.services.of(service)));
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
        let lists = query.queues.iter().filter_map(|queue| self.queues.named(queue));
        let lists = lists.chain(query.services.iter().filter_map(|service| self.services.named(service)));
        let is_gone = |key: &ReadyKey| {
            let indexed = self.rows.get(&key.id);
            let is_others = portion.is_some_and(|portion| !portion.has(key.id));
            let is_asked = is_others || known.covers(*key);
            is_asked && !read.contains(&key.id) && indexed.is_some_and(|indexed| indexed.since < begun)
        };
        let tombstones: Vec<JobId> =
            lists.flat_map(ReadyList::keys).filter(is_gone).map(|key| key.id).collect();
        for indexed in tombstones.into_iter().filter_map(|id| self.remove(id)).collect::<Vec<_>>() {
            // Lists that were not read must read the store when they get to this job.
            let (known, spec) =
                (KnownRange::Before(ListPosition::at(ReadyKey::of(&indexed.row))), &indexed.row.job.spec);
            if !query.queues.contains(&spec.queue) {
                self.queues.of(&spec.queue).cut(known);
            }
            if !query.services.contains(&spec.name) {
                self.services.of(&spec.name).cut(known);
            }
        }
    }
}
