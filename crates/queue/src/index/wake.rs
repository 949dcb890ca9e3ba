//! Wake-ups of waiting claims: for ready jobs, for reads of the store, and for capacity that returned.

use super::JobIndex;
use crate::dispatcher::ClaimQuery;
use crate::ready_list::ListHead;

impl JobIndex {
    /// Wakes claims for these lists: one for each known job, and one for a read of the store.
    pub(crate) fn wake_for(&mut self, query: &ClaimQuery) {
        let mut limited: Vec<String> = Vec::new();
        for queue in query.queues.iter().filter(|queue| !self.lists.is_paused(queue)) {
            if self.lists.limiters().has(queue) {
                limited.push(queue.clone());
                continue;
            }
            if self.lists.is_via_redis() {
                continue;
            }
            let mut n = self.lists.n_wanted_of_queue(queue);
            while n > 0 && self.wait_queue.wake_queue(queue) {
                n -= 1;
            }
        }
        for service in &query.services {
            let mut n = self.lists.n_wanted_of_service(service);
            while n > 0 && self.wait_queue.wake_service(service) {
                n -= 1;
            }
        }
        limited.extend(self.lists.limited(query).into_iter().map(|(queue, _)| queue));
        limited.iter().for_each(|queue| self.wake_for_limited(queue));
    }

    /// Wakes claims for these queues, which may have jobs again, and for all services: they may have jobs of them.
    pub(super) fn wake_for_returned(&mut self, queues: Vec<String>) {
        let services = self.wait_queue.services().cloned().collect();
        self.wake_for(&ClaimQuery { queues, services });
    }

    /// Wakes another claim for the jobs that this one left.
    pub(super) fn pass_on(&mut self, query: &ClaimQuery, limited: &[(String, usize)]) {
        if self.lists.limiters().is_empty() || self.wait_queue.len() == 0 {
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
        if self.wait_queue.len() == 0 || self.lists.is_paused(queue) {
            return;
        }
        let Some(limiter) = self.lists.limiters().named(queue) else { return };
        let is_woken = match limiter.head(None) {
            None => return,
            Some(ListHead::Job(key)) => self
                .jobs
                .job(key.id)
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
