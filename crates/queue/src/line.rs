//! Who waits for a job, in the order in which they came. One job wakes one of those whom it suits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::dispatch::Query;

/// Everybody who waits.
#[derive(Debug, Default)]
pub(crate) struct Line {
    n_came: u64,
    waiting: BTreeMap<u64, Waiting>,
    queues: Names,
    services: Names,
}

#[derive(Debug)]
struct Waiting {
    query: Arc<Query>,
    wake: oneshot::Sender<()>,
}

/// The tickets of those who wait for a name.
#[derive(Debug, Default)]
struct Names(HashMap<String, BTreeSet<u64>>);

impl Names {
    fn add(&mut self, names: &[String], ticket: u64) {
        for name in names {
            match self.0.get_mut(name) {
                Some(tickets) => {
                    tickets.insert(ticket);
                }
                None => {
                    self.0.insert(name.clone(), BTreeSet::from([ticket]));
                }
            }
        }
    }

    fn remove(&mut self, names: &[String], ticket: u64) {
        for name in names {
            if let Some(tickets) = self.0.get_mut(name) {
                tickets.remove(&ticket);
                if tickets.is_empty() {
                    self.0.remove(name);
                }
            }
        }
    }

    fn first(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.first().copied()
    }
}

impl Line {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Services that somebody waits for.
    pub(crate) fn services(&self) -> impl Iterator<Item = &String> {
        self.services.0.keys()
    }

    /// Queues that somebody waits for.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &String> {
        self.queues.0.keys()
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&mut self) {
        (self.queues, self.services) = (Names::default(), Names::default());
        for (_, waiting) in std::mem::take(&mut self.waiting) {
            // Whoever is gone without a word needs no waking.
            let _woken = waiting.wake.send(());
        }
    }

    /// Joins the line; with the ticket of an earlier stay, where one stood then.
    pub(crate) fn join(&mut self, query: Arc<Query>, ticket: Option<u64>) -> (u64, oneshot::Receiver<()>) {
        let ticket = ticket.filter(|ticket| !self.waiting.contains_key(ticket)).unwrap_or_else(|| {
            self.n_came += 1;
            self.n_came
        });
        let (wake, woken) = oneshot::channel();
        self.queues.add(&query.queues, ticket);
        self.services.add(&query.services, ticket);
        self.waiting.insert(ticket, Waiting { query, wake });
        (ticket, woken)
    }

    /// Leaves the line; `false` = was woken before.
    pub(crate) fn leave(&mut self, ticket: u64) -> bool {
        self.remove(ticket).is_some()
    }

    /// Wakes the first who wants a job of this queue or this service.
    pub(crate) fn wake(&mut self, queue: &str, service: &str) -> bool {
        self.wake_first(|line| [line.queues.first(queue), line.services.first(service)])
    }

    /// Wakes the first who wants a job of this queue.
    pub(crate) fn wake_queue(&mut self, queue: &str) -> bool {
        self.wake_first(|line| [line.queues.first(queue), None])
    }

    /// Wakes the first who wants a job of this service.
    pub(crate) fn wake_service(&mut self, service: &str) -> bool {
        self.wake_first(|line| [None, line.services.first(service)])
    }

    fn wake_first(&mut self, find: impl Fn(&Line) -> [Option<u64>; 2]) -> bool {
        while let Some(ticket) = find(self).into_iter().flatten().min() {
            // Whoever is gone without a word leaves it to the next.
            if self.remove(ticket).is_some_and(|waiting| waiting.wake.send(()).is_ok()) {
                return true;
            }
        }
        false
    }

    fn remove(&mut self, ticket: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&ticket)?;
        self.queues.remove(&waiting.query.queues, ticket);
        self.services.remove(&waiting.query.services, ticket);
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(queues: &[&str], services: &[&str]) -> Arc<Query> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Arc::new(Query { queues: owned(queues), services: owned(services) })
    }

    #[test]
    fn one_job_wakes_the_first_whom_it_suits() {
        let mut line = Line::default();
        let (_, mut other) = line.join(query(&["other"], &[]), None);
        let (_, mut first) = line.join(query(&[], &["resize"]), None);
        let (_, mut second) = line.join(query(&["images"], &["resize"]), None);
        assert!(line.wake("images", "resize"));
        assert!(first.try_recv().is_ok());
        assert!(second.try_recv().is_err());
        assert!(line.wake("images", "resize"));
        assert!(second.try_recv().is_ok());
        assert!(!line.wake("images", "resize"));
        assert!(other.try_recv().is_err());
        assert_eq!(line.len(), 1);
    }

    #[test]
    fn whoever_comes_again_stands_where_they_stood() {
        let mut line = Line::default();
        let (ticket, mut early) = line.join(query(&["q"], &[]), None);
        assert!(line.wake_queue("q"));
        assert!(early.try_recv().is_ok());
        let (_, mut late) = line.join(query(&["q"], &[]), None);
        let (_, mut early) = line.join(query(&["q"], &[]), Some(ticket));
        assert!(line.wake_queue("q"));
        assert!(early.try_recv().is_ok() && late.try_recv().is_err());
    }

    #[test]
    fn nothing_stays_of_those_who_left() {
        let mut line = Line::default();
        let (ticket, woken) = line.join(query(&["q", "q"], &["s"]), None);
        assert!(line.leave(ticket));
        assert!(!line.leave(ticket));
        drop(woken);
        let (_, gone) = line.join(query(&["q"], &["s"]), None);
        drop(gone);
        assert!(!line.wake_service("s"));
        assert!(line.queues.0.is_empty() && line.services.0.is_empty() && line.len() == 0);
    }
}
