//! Calls that wait for a free worker of one service. The more urgent go first, but every so many places one goes to
//! whoever has waited longest: a class that always has somebody more urgent before it still gets its share.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use windlass_engine::plan::Priority;

/// One place in so many is kept for whoever has waited longest: a fifth is felt by those who wait, and hardly by
/// those who are urgent.
const SHARE: u64 = 5;

/// Who waits, by ticket: tickets only grow, so that the smallest has waited longest.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    by_rank: BTreeMap<(Reverse<Priority>, u64), T>,
    by_age: BTreeMap<u64, Priority>,
    n_served: u64,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Waiting { by_rank: BTreeMap::new(), by_age: BTreeMap::new(), n_served: 0 }
    }
}

impl<T> Waiting<T> {
    pub(super) fn len(&self) -> usize {
        self.by_age.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    pub(super) fn add(&mut self, ticket: u64, priority: Priority, waiter: T) {
        self.by_age.insert(ticket, priority);
        self.by_rank.insert((Reverse(priority), ticket), waiter);
    }

    /// Takes somebody out who no longer waits, for whatever reason.
    pub(super) fn remove(&mut self, ticket: u64) -> Option<T> {
        let priority = self.by_age.remove(&ticket)?;
        self.by_rank.remove(&(Reverse(priority), ticket))
    }

    /// Takes somebody out because it is their turn.
    pub(super) fn serve(&mut self, ticket: u64) -> Option<T> {
        self.n_served = self.n_served.wrapping_add(1);
        self.remove(ticket)
    }

    /// Everybody, in the order in which they should get the next place.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = (u64, &T)> {
        let oldest = self.by_age.first_key_value().filter(|_| self.n_served % SHARE == SHARE - 1);
        let oldest = oldest.map(|(ticket, priority)| (Reverse(*priority), *ticket));
        let first = oldest.and_then(|key| Some((key.1, self.by_rank.get(&key)?)));
        first.into_iter().chain(self.by_rank.iter().map(|((_, ticket), waiter)| (*ticket, waiter)))
    }

    /// Empties it.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.by_age.clear();
        std::mem::take(&mut self.by_rank).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(waiting: &mut Waiting<()>) -> Vec<u64> {
        let next = |waiting: &Waiting<()>| waiting.in_turn().map(|(ticket, ())| ticket).next();
        let mut order = Vec::new();
        while let Some(ticket) = next(waiting) {
            waiting.serve(ticket);
            order.push(ticket);
        }
        order
    }

    #[test]
    fn the_more_urgent_go_first_and_equals_in_the_order_they_came() {
        let mut waiting = Waiting::default();
        waiting.add(1, Priority::Medium, ());
        waiting.add(2, Priority::Highest, ());
        waiting.add(3, Priority::Medium, ());
        waiting.add(4, Priority::High, ());
        assert_eq!(served(&mut waiting), [2, 4, 1, 3]);
        assert!(waiting.is_empty());
    }

    #[test]
    fn every_fifth_place_goes_to_whoever_waits_longest() {
        let mut waiting = Waiting::default();
        waiting.add(1, Priority::Lowest, ());
        waiting.add(2, Priority::Lowest, ());
        for ticket in 3..=12 {
            waiting.add(ticket, Priority::Highest, ());
        }
        assert_eq!(served(&mut waiting), [3, 4, 5, 6, 1, 7, 8, 9, 10, 2, 11, 12]);
    }

    #[test]
    fn somebody_who_left_is_never_served() {
        let mut waiting = Waiting::default();
        waiting.add(1, Priority::Medium, ());
        waiting.add(2, Priority::Medium, ());
        assert!(waiting.remove(1).is_some());
        assert!(waiting.remove(1).is_none());
        assert_eq!(waiting.len(), 1);
        assert_eq!(served(&mut waiting), [2]);
    }
}
