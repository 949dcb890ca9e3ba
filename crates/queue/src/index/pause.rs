//! Paused queues: nothing is handed out from them, neither by queue nor by service.

use super::Index;
use crate::dispatch::Query;
use crate::list::{Key, Known, List};

impl Index {
    /// Pauses a queue or resumes it.
    pub(crate) fn pause(&mut self, queue: &str, is_paused: bool) {
        if is_paused {
            if self.paused.insert(queue.to_owned()) {
                self.each_of(queue, List::remove);
            }
        } else if self.paused.remove(queue) {
            self.each_of(queue, List::insert);
            // While it was paused, the store did not tell of its jobs.
            match self.gates.get_mut(queue) {
                Some(gate) => gate.doubt(),
                None => {
                    self.queues.of(queue).cut(Known::Nothing);
                    self.services.doubt();
                }
            }
            let services = self.line.services().cloned().collect();
            self.wake_for(&Query { queues: vec![queue.to_owned()], services });
            self.wake_elsewhere(queue, usize::MAX);
        }
    }

    /// Does this to the list of its service for each ready job of the queue.
    fn each_of(&mut self, queue: &str, act: impl Fn(&mut List, Key)) {
        if self.gates.contains_key(queue) {
            return;
        }
        for key in self.queues.named(queue).into_iter().flat_map(List::keys) {
            if let Some(slot) = self.rows.get(&key.id) {
                act(self.services.of(&slot.row.job.spec.name), key);
            }
        }
    }
}
