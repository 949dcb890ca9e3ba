//! Queues that Redis dispatches.

use super::{ClaimQuery, Dispatcher};

impl Dispatcher {
    /// Switches dispatch through Redis on or off for claims by queue. Queues with limits and claims by service are
    /// served here in any case. All waiting claims ask again when it changes.
    pub fn set_via_redis(&self, is_via_redis: bool) {
        self.lock().index.set_via_redis(is_via_redis);
    }

    /// The queues of the query that Redis dispatches.
    pub fn queues_via_redis(&self, query: &ClaimQuery) -> Vec<String> {
        self.lock().index.lists().queues_via_redis(query)
    }

    /// Wakes up to `n` claims for a queue of which Redis has jobs.
    pub fn wake_via_redis(&self, queue: &str, n: usize) {
        self.lock().index.wake_via_redis(queue, n);
    }

    /// Wakes another claim in place of one that was woken and got a job of another queue.
    pub fn pass_on(&self, query: &ClaimQuery) {
        self.lock().index.pass_on_via_redis(query);
    }

    /// Queues that at least one claim waits for.
    pub fn awaited(&self) -> Vec<String> {
        self.lock().index.wait_queue.queues().cloned().collect()
    }
}
