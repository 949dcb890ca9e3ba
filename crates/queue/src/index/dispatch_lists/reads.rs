//! Lists that need a read of the store, and their state before, during and after it.

use windlass_engine::time::Timestamp;
use windlass_store::job::{Portion, ReadyCursor};

use super::DispatchLists;
use crate::dispatcher::ClaimQuery;
use crate::ready_list::{KnownRange, ReadyList};
use crate::ready_lists::{ReadFrom, ReadyLists};

/// Reads of only the own share of a long queue before other shares are read again, as their server may be idle. Only
/// for reads that are used up quickly: an urgent job of another share waits no longer than that.
const OWN_READS: u8 = 3;
const FAST_READ_MS: u64 = 2_000;

impl DispatchLists {
    /// Whether the store must be read before `n` jobs can be dispatched, and no read is open.
    pub(crate) fn is_low(&self, query: &ClaimQuery, n: usize) -> bool {
        !self.unread_lists(query, n).is_empty()
            || self.has_unread_classes(query)
            || !self.unread_limited_lists(query, n).is_empty()
    }

    /// The lists of the query without limits that need a read.
    pub(in crate::index) fn unread_lists(&self, query: &ClaimQuery, n: usize) -> ClaimQuery {
        let is_plain =
            |name: &&String| !self.is_via_redis && !self.paused.contains(*name) && !self.limiters.has(name);
        let queues = query.queues.iter().filter(is_plain).filter(|name| self.queues.needs_read(name, n));
        let services = query.services.iter().filter(|name| self.services.needs_read(name, n));
        ClaimQuery { queues: queues.cloned().collect(), services: services.cloned().collect() }
    }

    /// Queues with limits, whole or one service in them, that need a read.
    pub(in crate::index) fn unread_limited_lists(
        &self,
        query: &ClaimQuery,
        n: usize,
    ) -> Vec<(String, Option<String>)> {
        if self.limiters.is_empty() {
            return Vec::new();
        }
        let whole = query.queues.iter().filter(|queue| !self.paused.contains(*queue));
        let whole = whole.map(|queue| (queue.clone(), None));
        let limited = self.limited(query).into_iter();
        let parts = limited.filter_map(|(queue, at)| Some((queue, Some(query.services.get(at)?.clone()))));
        let is_low = |(queue, service): &(String, Option<String>)| {
            self.limiters.named(queue).is_some_and(|limiter| limiter.needs_read(service.as_deref(), n))
        };
        whole.chain(parts).filter(is_low).collect()
    }

    /// The first position at which one of these lists is incomplete; `None` = its start.
    pub(in crate::index) fn unknown_from(&self, query: &ClaimQuery) -> Option<ReadyCursor> {
        let queues = self.queues.unknown_from(&query.queues);
        match queues.min(self.services.unknown_from(&query.services)) {
            ReadFrom::Job(key) => Some(key.position()),
            ReadFrom::Start | ReadFrom::Nowhere => None,
        }
    }

    /// Marks the start of a read of these lists.
    pub(in crate::index) fn begin_read(&mut self, query: &ClaimQuery) {
        self.queues.begin_read(&query.queues);
        self.services.begin_read(&query.services);
    }

    /// Marks the end of a read of these lists with its range; `None` if the read failed.
    pub(in crate::index) fn end_read(&mut self, query: &ClaimQuery, known: Option<KnownRange>) {
        for queue in &query.queues {
            self.queues.of(queue).end_read(known);
        }
        for service in &query.services {
            self.services.of(service).end_read(known);
        }
    }

    /// Records a read of `n` jobs. If reads are rare, the next one covers all shares.
    pub(in crate::index) fn pace(&mut self, query: &ClaimQuery, n: usize, now: Timestamp) {
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

    /// Whether all these lists are long, so that a read covers only this server's share.
    pub(in crate::index) fn are_long(&self, query: &ClaimQuery) -> bool {
        let is_long = |list: Option<&ReadyList>| list.is_some_and(|list| list.n_own_reads > 0);
        query.queues.iter().all(|queue| is_long(self.queues.named(queue)))
            && query.services.iter().all(|service| is_long(self.services.named(service)))
    }

    /// Records the end of a read: `is_full` if it returned as many rows as requested and other servers dispatch theirs.
    pub(in crate::index) fn end_portion(
        &mut self,
        query: &ClaimQuery,
        portion: Option<Portion>,
        is_full: bool,
    ) {
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
}
