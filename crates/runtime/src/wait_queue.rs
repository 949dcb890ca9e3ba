//! A wait queue of calls, for a worker of one service or for a script slot. Higher priorities go first, and leave a
//! share for lower ones: see [`windlass_engine::share`].

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use windlass_engine::plan::Priority;
use windlass_engine::share::Share;

/// The waiters by ticket: tickets only grow, so the smallest has waited longest.
#[derive(Debug)]
pub(crate) struct WaitQueue<T> {
    by_rank: BTreeMap<(Reverse<Priority>, u64), T>,
    classes: BTreeMap<u64, Priority>,
    share: Share<Priority>,
}

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        WaitQueue { by_rank: BTreeMap::new(), classes: BTreeMap::new(), share: Share::default() }
    }
}

impl<T> WaitQueue<T> {
    pub(crate) fn len(&self) -> usize {
        self.classes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    pub(crate) fn add(&mut self, ticket: u64, priority: Priority, waiter: T) {
        self.classes.insert(ticket, priority);
        self.by_rank.insert((Reverse(priority), ticket), waiter);
    }

    /// Removes a waiter that gave up.
    pub(crate) fn remove(&mut self, ticket: u64) -> Option<T> {
        let priority = self.classes.remove(&ticket)?;
        self.by_rank.remove(&(Reverse(priority), ticket))
    }

    /// Removes a waiter because it is served.
    pub(crate) fn serve(&mut self, ticket: u64) -> Option<T> {
        let top = self.by_rank.first_key_value().map(|((Reverse(top), _), _)| *top);
        if let Some((top, given)) = top.zip(self.classes.get(&ticket).copied()) {
            self.share.gave(top, given);
        }
        self.remove(ticket)
    }

    /// All waiters, in the order in which they are to be served.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (u64, &T)> {
        let first_below = |class: Priority| {
            let lower = (Bound::Excluded((Reverse(class), u64::MAX)), Bound::Unbounded);
            self.by_rank.range(lower).next()
        };
        let top = self.by_rank.first_key_value().filter(|_| self.share.is_kept());
        let kept = top.map(|((Reverse(top), _), _)| self.share.below(*top));
        let kept = kept.and_then(|below| below.into_iter().find_map(first_below));
        kept.into_iter().chain(&self.by_rank).map(|((_, ticket), waiter)| (*ticket, waiter))
    }

    /// Empties it.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.classes.clear();
        std::mem::take(&mut self.by_rank).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(waiting: &mut WaitQueue<()>) -> Vec<u64> {
        let next = |waiting: &WaitQueue<()>| waiting.in_order().map(|(ticket, ())| ticket).next();
        let mut order = Vec::new();
        while let Some(ticket) = next(waiting) {
            waiting.serve(ticket);
            order.push(ticket);
        }
        order
    }

    #[test]
    fn the_more_urgent_go_first_and_equals_in_the_order_they_came() {
        let mut waiting = WaitQueue::default();
        waiting.add(1, Priority::Medium, ());
        waiting.add(2, Priority::Highest, ());
        waiting.add(3, Priority::Medium, ());
        waiting.add(4, Priority::High, ());
        assert_eq!(served(&mut waiting), [2, 4, 1, 3]);
        assert!(waiting.is_empty());
    }

    #[test]
    fn every_fifth_place_is_kept_for_a_lower_class() {
        let mut waiting = WaitQueue::default();
        waiting.add(1, Priority::Lowest, ());
        waiting.add(2, Priority::Lowest, ());
        for ticket in 3..=12 {
            waiting.add(ticket, Priority::Highest, ());
        }
        assert_eq!(served(&mut waiting), [3, 4, 5, 6, 1, 7, 8, 9, 10, 2, 11, 12]);
    }

    #[test]
    fn the_lowest_is_served_under_an_endless_stream_of_the_highest() {
        let mut waiting = WaitQueue::default();
        // However many of them are older.
        (1..=1_000).for_each(|ticket| waiting.add(ticket, Priority::Highest, ()));
        (1_001..=1_004).for_each(|ticket| waiting.add(ticket, Priority::Lowest, ()));
        waiting.add(1_005, Priority::Low, ());
        let mut order = Vec::new();
        for ticket in 2_000..2_025 {
            let (next, ()) = waiting.in_order().next().unwrap();
            waiting.serve(next);
            waiting.add(ticket, Priority::Highest, ());
            order.push(next);
        }
        let (urgent, others): (Vec<u64>, Vec<u64>) = order.into_iter().partition(|ticket| *ticket <= 1_000);
        assert_eq!(others, [1_005, 1_001, 1_002, 1_003, 1_004]);
        assert_eq!(urgent, (1..=20).collect::<Vec<_>>());
    }

    #[test]
    fn a_waiter_that_left_is_never_served() {
        let mut waiting = WaitQueue::default();
        waiting.add(1, Priority::Medium, ());
        waiting.add(2, Priority::Medium, ());
        assert!(waiting.remove(1).is_some());
        assert!(waiting.remove(1).is_none());
        assert_eq!(waiting.len(), 1);
        assert_eq!(served(&mut waiting), [2]);
    }
}
