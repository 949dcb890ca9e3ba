//! When time will change something about a job: the nearest moments, and from when on the store knows more.

use std::collections::{BTreeSet, HashMap};

use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;

/// The nearest wake-ups of jobs, at most one each.
#[derive(Debug)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Timestamp, JobId)>,
    by_id: HashMap<JobId, Timestamp>,
    /// From this moment on there may be wake-ups that are only in the store.
    beyond: Option<Timestamp>,
    max: usize,
}

impl Timers {
    pub(crate) fn new(max: usize) -> Self {
        Timers { by_time: BTreeSet::new(), by_id: HashMap::new(), beyond: None, max: max.max(1) }
    }

    /// The next moment to look at something: a job, or the store.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let first = self.by_time.first().map(|(at, _)| *at);
        [first, self.beyond].into_iter().flatten().min()
    }

    /// Sets the wake-up of a job, or none. Of too many, the latest are left to the store.
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

    /// Takes out jobs whose moment has come, oldest first.
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

    /// Whether the store must be asked for more; whoever is told so asks, and says what it heard.
    pub(crate) fn ask_store(&mut self, now: Timestamp) -> bool {
        self.beyond.take_if(|beyond| *beyond <= now).is_some()
    }

    /// The earliest wake-ups in the store, in order. What was said about a job meanwhile is newer.
    pub(crate) fn heard(&mut self, wakes: &[(Timestamp, JobId)], is_all: bool) {
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
        let mut timers = Timers::new(10);
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
    fn of_too_many_the_latest_are_left_to_the_store() {
        let mut timers = Timers::new(2);
        for at in [40, 10, 30, 20] {
            timers.set(job(at), Some(Timestamp(i64::try_from(at).unwrap())));
        }
        assert!(!timers.ask_store(Timestamp(29)));
        assert_eq!(timers.due(Timestamp(29), 9), [job(10), job(20)]);
        assert_eq!(timers.next(), Some(Timestamp(30)));
        assert!(timers.ask_store(Timestamp(30)));
        assert!(!timers.ask_store(Timestamp(30)));
        timers.heard(&[(Timestamp(30), job(30)), (Timestamp(40), job(40))], true);
        assert_eq!(timers.due(Timestamp(99), 9), [job(30), job(40)]);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn what_is_known_is_newer_than_what_the_store_says() {
        let mut timers = Timers::new(9);
        timers.set(job(1), Some(Timestamp(70)));
        timers.heard(&[(Timestamp(10), job(1)), (Timestamp(20), job(2))], false);
        assert_eq!(timers.due(Timestamp(20), 9), [job(2)]);
        assert!(timers.ask_store(Timestamp(20)), "there was more after the last one");
        assert_eq!(timers.next(), Some(Timestamp(70)));
    }
}
