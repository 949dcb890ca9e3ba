//! Wake-up times of jobs: the nearest ones, and the time from which the store may have more.

use std::collections::{BTreeSet, HashMap};

use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;

/// The nearest wake-ups, at most one for each job.
#[derive(Debug)]
pub(crate) struct JobTimers {
    by_time: BTreeSet<(Timestamp, JobId)>,
    by_id: HashMap<JobId, Timestamp>,
    /// From this time on, some wake-ups may be only in the store.
    beyond: Option<Timestamp>,
    max: usize,
}

impl JobTimers {
    pub(crate) fn new(max: usize) -> Self {
        JobTimers { by_time: BTreeSet::new(), by_id: HashMap::new(), beyond: None, max: max.max(1) }
    }

    /// The next time at which a job or the store needs attention.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let first = self.by_time.first().map(|(at, _)| *at);
        [first, self.beyond].into_iter().flatten().min()
    }

    /// Sets or clears the wake-up of a job. Beyond the limit, the latest wake-up is left to the store.
    pub(crate) fn set(&mut self, id: JobId, at: Option<Timestamp>) {
        self.clear(id);
        let Some(at) = at else { return };
        self.by_time.insert((at, id));
        self.by_id.insert(id, at);
        if self.by_id.len() > self.max
            && let Some((latest, last)) = self.by_time.pop_last()
        {
            self.by_id.remove(&last);
            self.leave_to_store(latest);
        }
    }

    fn clear(&mut self, id: JobId) {
        if let Some(before) = self.by_id.remove(&id) {
            self.by_time.remove(&(before, id));
        }
    }

    fn leave_to_store(&mut self, from: Timestamp) {
        self.beyond = Some(self.beyond.map_or(from, |beyond| beyond.min(from)));
    }

    /// Removes and returns the jobs that are due, oldest first.
    pub(crate) fn due(&mut self, now: Timestamp, max: usize) -> Vec<JobId> {
        let mut due = Vec::new();
        while due.len() < max && self.by_time.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, id)) = self.by_time.pop_first() {
                self.by_id.remove(&id);
                due.push(id);
            }
        }
        due
    }

    /// Whether the store must be read for more wake-ups; the caller then reads them and passes them on.
    pub(crate) fn take_store_request(&mut self, now: Timestamp) -> bool {
        self.beyond.take_if(|beyond| *beyond <= now).is_some()
    }

    /// Adds the earliest wake-ups in the store, in order. A wake-up that is set here is newer than the stored one.
    pub(crate) fn add_from_store(&mut self, wakes: &[(Timestamp, JobId)], is_all: bool) {
        for (at, id) in wakes {
            if !self.by_id.contains_key(id) {
                self.set(*id, Some(*at));
            }
        }
        if let Some((last, _)) = wakes.last().filter(|_| !is_all) {
            self.leave_to_store(*last);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn job(n: u128) -> JobId {
        JobId::new(Uuid::from_u128(n))
    }

    #[test]
    fn jobs_come_due_in_order_and_once() {
        let mut timers = JobTimers::new(10);
        for (id, at) in [(1, 30), (2, 10), (3, 20)] {
            timers.set(job(id), Some(Timestamp(at)));
        }
        timers.set(job(3), Some(Timestamp(5)));
        timers.set(job(1), None);
        assert_eq!(timers.next(), Some(Timestamp(5)));
        assert_eq!(timers.due(Timestamp(4), 9), []);
        assert_eq!(timers.due(Timestamp(50), 9), [job(3), job(2)]);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn beyond_the_limit_the_latest_wake_ups_are_left_to_the_store() {
        let mut timers = JobTimers::new(2);
        for at in [40, 10, 30, 20] {
            timers.set(job(at), Some(Timestamp(i64::try_from(at).unwrap())));
        }
        assert!(!timers.take_store_request(Timestamp(29)));
        assert_eq!(timers.due(Timestamp(29), 9), [job(10), job(20)]);
        assert_eq!(timers.next(), Some(Timestamp(30)));
        assert!(timers.take_store_request(Timestamp(30)));
        assert!(!timers.take_store_request(Timestamp(30)));
        timers.add_from_store(&[(Timestamp(30), job(30)), (Timestamp(40), job(40))], true);
        assert_eq!(timers.due(Timestamp(99), 9), [job(30), job(40)]);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_known_wake_up_is_newer_than_a_stored_one() {
        let mut timers = JobTimers::new(9);
        timers.set(job(1), Some(Timestamp(70)));
        timers.add_from_store(&[(Timestamp(10), job(1)), (Timestamp(20), job(2))], false);
        assert_eq!(timers.due(Timestamp(20), 9), [job(2)]);
        assert!(timers.take_store_request(Timestamp(20)), "there was more after the last one");
        assert_eq!(timers.next(), Some(Timestamp(70)));
    }
}
