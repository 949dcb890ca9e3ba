//! Queues whose jobs others hand out.

use super::{Dispatch, Query};

impl Dispatch {
    /// Whether others say who gets the jobs of queues, whoever asks for them by queue; those of queues with limits and
    /// of services are handed out here as ever. Whoever waits asks again when this changes.
    pub fn elsewhere(&self, is_elsewhere: bool) {
        self.lock().index.elsewhere(is_elsewhere);
    }

    /// Of the queues that the query asks for, those whose jobs others hand out.
    pub fn asked_elsewhere(&self, query: &Query) -> Vec<String> {
        self.lock().index.asked_elsewhere(query)
    }

    /// Others have so many jobs of a queue: wakes as many of those who wait for one.
    pub fn wake_elsewhere(&self, queue: &str, n: usize) {
        self.lock().index.wake_elsewhere(queue, n);
    }

    /// Somebody who was woken got something else: others may have something for somebody else.
    pub fn pass_on(&self, query: &Query) {
        self.lock().index.pass_on_elsewhere(query);
    }

    /// Queues that somebody waits for.
    pub fn awaited(&self) -> Vec<String> {
        self.lock().index.line.queues().cloned().collect()
    }
}
