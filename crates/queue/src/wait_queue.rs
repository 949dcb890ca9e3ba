//! Claims that wait for a job, in order of arrival. One job wakes the first claim that it matches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::dispatcher::ClaimQuery;

/// All waiting claims.
#[derive(Debug, Default)]
pub(crate) struct WaitQueue {
    last_waiter: u64,
    waiting: BTreeMap<u64, WaitingClaim>,
    queues: WaitersByName,
    services: WaitersByName,
}

#[derive(Debug)]
struct WaitingClaim {
    query: Arc<ClaimQuery>,
    wake: oneshot::Sender<()>,
}

/// The numbers of waiting claims by queue or service.
#[derive(Debug, Default)]
struct WaitersByName(HashMap<String, BTreeSet<u64>>);

impl WaitersByName {
    fn add(&mut self, names: &[String], waiter: u64) {
        for name in names {
            match self.0.get_mut(name) {
                Some(waiters) => {
                    waiters.insert(waiter);
                }
                None => {
                    self.0.insert(name.clone(), BTreeSet::from([waiter]));
                }
            }
        }
    }

    fn remove(&mut self, names: &[String], waiter: u64) {
        for name in names {
            if let Some(waiters) = self.0.get_mut(name) {
                waiters.remove(&waiter);
                if waiters.is_empty() {
                    self.0.remove(name);
                }
            }
        }
    }

    fn first(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.first().copied()
    }
}

impl WaitQueue {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Services that at least one claim waits for.
    pub(crate) fn services(&self) -> impl Iterator<Item = &String> {
        self.services.0.keys()
    }

    /// Queues that at least one claim waits for.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &String> {
        self.queues.0.keys()
    }

    /// Wakes all claims.
    pub(crate) fn wake_all(&mut self) {
        (self.queues, self.services) = (WaitersByName::default(), WaitersByName::default());
        for (_, waiting) in std::mem::take(&mut self.waiting) {
            // A claim that was dropped needs no wake-up.
            let _woken = waiting.wake.send(());
        }
    }

    /// Adds a claim. With the number of an earlier wait, it gets its old position.
    pub(crate) fn join(
        &mut self,
        query: Arc<ClaimQuery>,
        waiter: Option<u64>,
    ) -> (u64, oneshot::Receiver<()>) {
        let waiter = waiter.filter(|waiter| !self.waiting.contains_key(waiter)).unwrap_or_else(|| {
            self.last_waiter += 1;
            self.last_waiter
        });
        let (wake, woken) = oneshot::channel();
        self.queues.add(&query.queues, waiter);
        self.services.add(&query.services, waiter);
        self.waiting.insert(waiter, WaitingClaim { query, wake });
        (waiter, woken)
    }

    /// Removes a claim; `false` if it was already woken.
    pub(crate) fn leave(&mut self, waiter: u64) -> bool {
        self.remove(waiter).is_some()
    }

    /// Wakes the first claim for this queue or this service.
    pub(crate) fn wake(&mut self, queue: &str, service: &str) -> bool {
        self.wake_first(|wait_queue| [wait_queue.queues.first(queue), wait_queue.services.first(service)])
    }

    /// Wakes the first claim for this queue.
    pub(crate) fn wake_queue(&mut self, queue: &str) -> bool {
        self.wake_first(|wait_queue| [wait_queue.queues.first(queue), None])
    }

    /// Wakes the first claim for this service.
    pub(crate) fn wake_service(&mut self, service: &str) -> bool {
        self.wake_first(|wait_queue| [None, wait_queue.services.first(service)])
    }

    fn wake_first(&mut self, find: impl Fn(&WaitQueue) -> [Option<u64>; 2]) -> bool {
        while let Some(waiter) = find(self).into_iter().flatten().min() {
            // If this claim was dropped, the next one is woken.
            if self.remove(waiter).is_some_and(|waiting| waiting.wake.send(()).is_ok()) {
                return true;
            }
        }
        false
    }

    fn remove(&mut self, waiter: u64) -> Option<WaitingClaim> {
        let waiting = self.waiting.remove(&waiter)?;
        self.queues.remove(&waiting.query.queues, waiter);
        self.services.remove(&waiting.query.services, waiter);
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(queues: &[&str], services: &[&str]) -> Arc<ClaimQuery> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Arc::new(ClaimQuery { queues: owned(queues), services: owned(services) })
    }

    #[test]
    fn one_job_wakes_the_first_matching_claim() {
        let mut wait_queue = WaitQueue::default();
        let (_, mut other) = wait_queue.join(query(&["other"], &[]), None);
        let (_, mut first) = wait_queue.join(query(&[], &["resize"]), None);
        let (_, mut second) = wait_queue.join(query(&["images"], &["resize"]), None);
        assert!(wait_queue.wake("images", "resize"));
        assert!(first.try_recv().is_ok());
        assert!(second.try_recv().is_err());
        assert!(wait_queue.wake("images", "resize"));
        assert!(second.try_recv().is_ok());
        assert!(!wait_queue.wake("images", "resize"));
        assert!(other.try_recv().is_err());
        assert_eq!(wait_queue.len(), 1);
    }

    #[test]
    fn a_returning_claim_keeps_its_position() {
        let mut wait_queue = WaitQueue::default();
        let (waiter, mut early) = wait_queue.join(query(&["q"], &[]), None);
        assert!(wait_queue.wake_queue("q"));
        assert!(early.try_recv().is_ok());
        let (_, mut late) = wait_queue.join(query(&["q"], &[]), None);
        let (_, mut early) = wait_queue.join(query(&["q"], &[]), Some(waiter));
        assert!(wait_queue.wake_queue("q"));
        assert!(early.try_recv().is_ok() && late.try_recv().is_err());
    }

    #[test]
    fn claims_that_left_leave_nothing_behind() {
        let mut wait_queue = WaitQueue::default();
        let (waiter, woken) = wait_queue.join(query(&["q", "q"], &["s"]), None);
        assert!(wait_queue.leave(waiter));
        assert!(!wait_queue.leave(waiter));
        drop(woken);
        let (_, gone) = wait_queue.join(query(&["q"], &["s"]), None);
        drop(gone);
        assert!(!wait_queue.wake_service("s"));
        assert!(wait_queue.queues.0.is_empty() && wait_queue.services.0.is_empty() && wait_queue.len() == 0);
    }
}
