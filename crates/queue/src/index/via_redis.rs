//! Queues that Redis dispatches to claims by queue. The index then serves claims by service, and queues with limits.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use windlass_engine::id::JobId;
use windlass_store::job::JobRow;

use super::JobIndex;
use crate::dispatcher::ClaimQuery;
use crate::ready_list::ReadyKey;

/// Ids of local jobs that are kept: more than are written while they matter.
const WRITTEN_MAX: usize = 20_000;

/// The latest jobs that this server wrote and does not keep. When a read returns them, they are not left to another
/// server: no other server would dispatch them first.
#[derive(Debug, Default)]
pub(super) struct RecentlyWritten {
    ids: HashSet<JobId>,
    order: VecDeque<JobId>,
}

impl RecentlyWritten {
    fn add(&mut self, id: JobId) {
        if !self.ids.insert(id) {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > WRITTEN_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }

    pub(super) fn has(&self, id: JobId) -> bool {
        self.ids.contains(&id)
    }
}

impl JobIndex {
    /// Switches dispatch through Redis on or off. Known jobs may be outdated and are dropped; all waiting claims ask
    /// again.
    pub(crate) fn set_via_redis(&mut self, is_via_redis: bool) {
        if self.lists.is_via_redis() == is_via_redis {
            return;
        }
        self.lists.set_via_redis(is_via_redis);
        for id in self.jobs.ready_ids() {
            if self.remove(id).is_some_and(|indexed| indexed.is_offered) {
                self.written.add(id);
            }
        }
        self.lists.invalidate_all();
        self.wait_queue.wake_all();
    }

    /// Wakes up to `n` claims for a queue of which Redis has jobs.
    pub(crate) fn wake_via_redis(&mut self, queue: &str, n: usize) {
        if !self.lists.is_served_by_redis(queue) {
            return;
        }
        let mut n = n;
        while n > 0 && self.wait_queue.wake_queue(queue) {
            n -= 1;
        }
    }

    /// Wakes another claim in place of one that was woken and left.
    pub(crate) fn pass_on_via_redis(&mut self, query: &ClaimQuery) {
        query.queues.iter().for_each(|queue| self.wake_via_redis(queue, 1));
    }

    /// Keeps a ready job of a queue that Redis dispatches only if a claim has asked for its service.
    pub(super) fn insert_for_service(&mut self, row: Arc<JobRow>, is_offered: bool) {
        let (key, service) = (ReadyKey::of(&row), row.job.spec.name.clone());
        let is_asked = self.lists.service(&service).is_some();
        let is_kept =
            is_asked && !self.jobs.ready().is_full(&self.limits) && self.add_ready(row.clone(), is_offered);
        if !is_kept && is_offered {
            self.written.add(key.id);
        }
        if is_asked && !is_kept {
            self.cut(&row, key);
        } else if !is_asked {
            self.lists.invalidate_queue(&row.job.spec.queue);
        }
        if !self.lists.is_paused(&row.job.spec.queue) {
            self.wait_queue.wake_service(&service);
        }
    }
}
