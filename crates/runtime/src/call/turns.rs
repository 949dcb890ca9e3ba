//! Places for scripts on this machine, and who gets the next one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use windlass_engine::plan::Priority;

use crate::waiting::Waiting;

/// So many places at once, given in turn.
#[derive(Debug)]
pub(super) struct Turns {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    n_free: usize,
    last_ticket: u64,
    waiting: Waiting<oneshot::Sender<()>>,
}

impl State {
    fn give(&mut self) {
        while self.n_free > 0 {
            let next = self.waiting.in_turn().next().map(|(ticket, _)| ticket);
            let Some(tell) = next.and_then(|ticket| self.waiting.serve(ticket)) else { return };
            self.n_free -= 1;
            // Whoever does not listen any more gives the place back right away.
            let _ = tell.send(());
        }
    }
}

/// A place, or the wait for one. Dropped, it is somebody else's.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    ticket: u64,
}

impl Turns {
    pub(super) fn new(n: usize) -> Self {
        Turns { state: Mutex::new(State { n_free: n, last_ticket: 0, waiting: Waiting::default() }) }
    }

    /// Waits for a place.
    pub(super) async fn wait(&self, priority: Priority) -> Turn<'_> {
        let (turn, told) = self.ask(priority);
        // It is told before it is forgotten: an error would mean that nobody gives places any more.
        let _told = told.await;
        turn
    }

    fn ask(&self, priority: Priority) -> (Turn<'_>, oneshot::Receiver<()>) {
        let (tell, told) = oneshot::channel();
        let mut state = self.lock();
        state.last_ticket += 1;
        let ticket = state.last_ticket;
        state.waiting.add(ticket, priority, tell);
        state.give();
        (Turn { turns: self, ticket }, told)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
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
    fn the_more_urgent_get_the_next_place_and_keep_a_share_for_others() {
        let turns = Turns::new(1);
        let (mut working, _told) = turns.ask(Priority::Medium);
        let mut waiting: Vec<_> = (0..8).map(|_| turns.ask(Priority::Highest)).collect();
        waiting.insert(0, turns.ask(Priority::Lowest));
        let mut order = Vec::new();
        for _ in 0..9 {
            drop(working);
            let at = waiting.iter_mut().position(|(_, told)| told.try_recv().is_ok()).unwrap();
            let (turn, _) = waiting.remove(at);
            order.push(turn.ticket);
            working = turn;
        }
        // The lowest came last, and the first place counts.
        assert_eq!(order, [2, 3, 4, 10, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_place_is_given_back_exactly_once() {
        let turns = Turns::new(1);
        let (working, _told) = turns.ask(Priority::Medium);
        // One goes while it waits, and one after its turn has come but before it was told.
        let (first, first_told) = turns.ask(Priority::Medium);
        drop((first, first_told));
        let (second, second_told) = turns.ask(Priority::Medium);
        drop(second_told);
        drop(working);
        assert_eq!(turns.lock().n_free, 0);
        drop(second);
        assert_eq!(turns.lock().n_free, 1);
    }
}
