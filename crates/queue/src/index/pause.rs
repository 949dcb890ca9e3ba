//! Paused queues: nothing is dispatched from them, neither by queue nor by service.

use super::JobIndex;
use crate::dispatcher::ClaimQuery;
use crate::ready_list::{KnownRange, ReadyKey, ReadyList};

impl JobIndex {
    /// Pauses or resumes a queue.
    pub(crate) fn pause(&mut self, queue: &str, is_paused: bool) {
        if is_paused {
            if self.paused.insert(queue.to_owned()) {
                self.each_of(queue, ReadyList::remove);
            }
        } else if self.paused.remove(queue) {
            self.each_of(queue, ReadyList::insert);
            // The store does not return jobs of a paused queue.
            match self.limiters.get_mut(queue) {
                Some(limiter) => limiter.invalidate(),
                None => {
                    self.queues.of(queue).cut(KnownRange::Nothing);
                    self.services.invalidate();
                }
            }
            let services = self.wait_queue.services().cloned().collect();
            self.wake_for(&ClaimQuery { queues: vec![queue.to_owned()], services });
            self.wake_via_redis(queue, usize::MAX);
        }
    }

    /// Applies `act` to the service list of each ready job of the queue.
    fn each_of(&mut self, queue: &str, act: impl Fn(&mut ReadyList, ReadyKey)) {
        if self.limiters.contains_key(queue) {
            return;
        }
        for key in self.queues.named(queue).into_iter().flat_map(ReadyList::keys) {
            if let Some(indexed) = self.rows.get(&key.id) {
                act(self.services.of(&indexed.row.job.spec.name), key);
            }
        }
    }
}
