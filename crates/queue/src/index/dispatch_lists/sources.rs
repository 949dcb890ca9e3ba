//! The lists of a query: its queues, then its services, then queues with limits that may have jobs for its services.

use super::DispatchLists;
use crate::dispatcher::ClaimQuery;
use crate::ready_list::{ListHead, ReadyList};

/// One of the lists of a query.
#[derive(Debug, Clone, Copy)]
pub(super) enum ListSource<'a> {
    Queue(&'a str),
    Service(&'a str),
    /// A queue with limits, or one service in it.
    LimitedQueue(&'a str, Option<&'a str>),
}

impl DispatchLists {
    /// The queues with limits, not named by the query, that may have jobs for its services: pairs of queue and index of
    /// the service.
    pub(in crate::index) fn limited(&self, query: &ClaimQuery) -> Vec<(String, usize)> {
        if self.limiters.is_empty() {
            return Vec::new();
        }
        let is_asked = |queue: &&String| !self.paused.contains(*queue) && !query.queues.contains(queue);
        let queues: Vec<&String> = self.limiters.queues().filter(is_asked).collect();
        let pairs = (0..query.services.len()).flat_map(|at| queues.iter().map(move |queue| (*queue, at)));
        pairs.map(|(queue, at)| (queue.clone(), at)).collect()
    }

    /// List number `at` of the query, unless its queue is paused.
    pub(super) fn source<'a>(
        &self,
        query: &'a ClaimQuery,
        limited: &'a [(String, usize)],
        at: usize,
    ) -> Option<ListSource<'a>> {
        let (n_queues, n_services) = (query.queues.len(), query.services.len());
        if let Some(queue) = query.queues.get(at) {
            let is_limited = self.limiters.has(queue);
            let source =
                if is_limited { ListSource::LimitedQueue(queue, None) } else { ListSource::Queue(queue) };
            return (!self.paused.contains(queue) && (is_limited || !self.is_via_redis)).then_some(source);
        }
        if let Some(service) = query.services.get(at - n_queues) {
            return Some(ListSource::Service(service));
        }
        let (queue, service) = limited.get(at - n_queues - n_services)?;
        Some(ListSource::LimitedQueue(queue, query.services.get(*service).map(String::as_str)))
    }

    /// The first element of list number `at` of the query; `None` if neither the list nor the store has a job.
    pub(in crate::index) fn head(
        &self,
        query: &ClaimQuery,
        limited: &[(String, usize)],
        at: usize,
    ) -> Option<ListHead> {
        match self.source(query, limited, at)? {
            ListSource::Queue(queue) => self.queues.head(queue),
            ListSource::Service(service) => self.services.head(service),
            ListSource::LimitedQueue(queue, service) => self.limiters.named(queue)?.head(service),
        }
    }

    /// List number `at` of the query, if it has no limits.
    pub(in crate::index) fn plain_list(&self, query: &ClaimQuery, at: usize) -> Option<&ReadyList> {
        match self.source(query, &[], at)? {
            ListSource::Queue(queue) => self.queues.named(queue),
            ListSource::Service(service) => self.services.named(service),
            ListSource::LimitedQueue(..) => None,
        }
    }

    /// The same, to be changed.
    pub(in crate::index) fn plain_list_mut(
        &mut self,
        query: &ClaimQuery,
        at: usize,
    ) -> Option<&mut ReadyList> {
        match self.source(query, &[], at)? {
            ListSource::Queue(queue) => self.queues.named_mut(queue),
            ListSource::Service(service) => self.services.named_mut(service),
            ListSource::LimitedQueue(..) => None,
        }
    }

    /// Whether every job that the query asks for is known.
    pub(crate) fn is_complete(&self, query: &ClaimQuery) -> bool {
        let limited = self.limited(query);
        let n_lists = query.queues.len() + query.services.len() + limited.len();
        (0..n_lists).all(|at| matches!(self.head(query, &limited, at), Some(ListHead::Job(_)) | None))
    }

    /// Whether other servers may release capacity that the query waits for, without a report.
    pub(crate) fn is_shared(&self, query: &ClaimQuery) -> bool {
        let shares = |queue: &String| self.limiters.is_shared(queue);
        query.queues.iter().any(shares) || self.limited(query).iter().any(|(queue, _)| shares(queue))
    }

    /// The claims to wake for a queue without limits: one for each known job, and one for a read of the store.
    pub(in crate::index) fn n_wanted_of_queue(&self, queue: &str) -> usize {
        self.queues.named(queue).map_or(0, ReadyList::len) + usize::from(self.queues.needs_read(queue, 1))
    }

    /// The claims to wake for a service, likewise.
    pub(in crate::index) fn n_wanted_of_service(&self, service: &str) -> usize {
        self.services.named(service).map_or(0, ReadyList::len)
            + usize::from(self.services.needs_read(service, 1))
    }
}
