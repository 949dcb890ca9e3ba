//! Slots for scripts on this machine, granted in the order of a wait queue.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use windlass_engine::plan::Priority;

use crate::wait_queue::WaitQueue;

/// Slots for scripts that run at once, given in the order of requests.
#[derive(Debug)]
pub(super) struct ScriptSlots {
    state: Mutex<SlotsState>,
}

#[derive(Debug)]
struct SlotsState {
    n_free: usize,
    last_ticket: u64,
    waiting: WaitQueue<oneshot::Sender<()>>,
}

impl SlotsState {
    fn give(&mut self) {
        while self.n_free > 0 {
            let next = self.waiting.in_order().next().map(|(ticket, _)| ticket);
            let Some(granted_to) = next.and_then(|ticket| self.waiting.serve(ticket)) else { return };
            self.n_free -= 1;
            // A waiter that no longer listens returns the slot at once.
            let _ = granted_to.send(());
        }
    }
}

/// A slot, or the wait for one. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct ScriptSlot<'a> {
    slots: &'a ScriptSlots,
    ticket: u64,
}

impl ScriptSlots {
    pub(super) fn new(n: usize) -> Self {
        ScriptSlots {
            state: Mutex::new(SlotsState { n_free: n, last_ticket: 0, waiting: WaitQueue::default() }),
        }
    }

    /// Waits for a place.
    pub(super) async fn wait(&self, priority: Priority) -> ScriptSlot<'_> {
        let (slot, granted) = self.ask(priority);
        // The sender is used before it is dropped, so the error cannot happen.
        let _granted = granted.await;
        slot
    }

    fn ask(&self, priority: Priority) -> (ScriptSlot<'_>, oneshot::Receiver<()>) {
        let (granted_to, granted) = oneshot::channel();
        let mut state = self.lock();
        state.last_ticket += 1;
        let ticket = state.last_ticket;
        state.waiting.add(ticket, priority, granted_to);
        state.give();
        (ScriptSlot { slots: self, ticket }, granted)
    }

    fn lock(&self) -> MutexGuard<'_, SlotsState> {
        // A panic elsewhere leaves nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ScriptSlot<'_> {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        if state.waiting.remove(self.ticket).is_none() {
            state.n_free += 1;
            state.give();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_priorities_get_the_next_slot_and_leave_a_share() {
        let slots = ScriptSlots::new(1);
        let (mut working, _granted) = slots.ask(Priority::Medium);
        let mut waiting: Vec<_> = (0..8).map(|_| slots.ask(Priority::Highest)).collect();
        waiting.insert(0, slots.ask(Priority::Lowest));
        let mut order = Vec::new();
        for _ in 0..9 {
            drop(working);
            let at = waiting.iter_mut().position(|(_, granted)| granted.try_recv().is_ok()).unwrap();
            let (slot, _) = waiting.remove(at);
            order.push(slot.ticket);
            working = slot;
        }
        // The lowest came last, and the first place counts.
        assert_eq!(order, [2, 3, 4, 10, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_slot_is_freed_exactly_once() {
        let slots = ScriptSlots::new(1);
        let (working, _granted) = slots.ask(Priority::Medium);
        // One leaves while it waits, and one after its slot was granted but before it heard of it.
        let (first, first_told) = slots.ask(Priority::Medium);
        drop((first, first_told));
        let (second, second_told) = slots.ask(Priority::Medium);
        drop(second_told);
        drop(working);
        assert_eq!(slots.lock().n_free, 0);
        drop(second);
        assert_eq!(slots.lock().n_free, 1);
    }
}
