//! Turns that jobs of runs leave to those of lower classes, so that none of them starves.
//!
//! What would be next decides by which list the turn goes. If that list keeps the turn for a lower class, every list
//! of the same claim may have somebody who gets it. Only jobs of runs give turns. A plain job that comes before whoever
//! would get one takes it instead: so plain jobs stay in their order, and none waits longer than without the share.

use super::{Index, Want};
use crate::dispatch::Query;
use crate::list::{Head, Key};
use crate::runs::{LOWEST, READ, Runs};

/// What is kept of each class, in all queues together, is at most this part of all that is.
const KEPT_SHARE: usize = 16;

/// One of the lists that a query asks about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'a> {
    Queue(&'a str),
    Service(&'a str),
    /// A queue with limits, or one service in it.
    Gate(&'a str, Option<&'a str>),
}

/// What one claim knows of lower classes while it takes jobs. Nothing comes to the lists meanwhile.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// In no list of the claim is there somebody below this priority.
    pub(super) nobody_below: Option<i32>,
}

impl Index {
    /// A job of a run is ready from now on.
    pub(super) fn run_came(&mut self, key: Key) {
        if key.is_run {
            *self.n_runs_ready.entry(key.priority()).or_default() += 1;
        }
    }

    /// A job of a run is no longer ready.
    pub(super) fn run_left(&mut self, key: Key) {
        let Some(n) = self.n_runs_ready.get_mut(&key.priority()).filter(|_| key.is_run) else { return };
        *n -= 1;
        if *n == 0 {
            self.n_runs_ready.remove(&key.priority());
        }
    }

    /// The list that is number `at` in the query, unless its queue is paused.
    pub(super) fn source<'a>(
        &self,
        query: &'a Query,
        gated: &'a [(String, usize)],
        at: usize,
    ) -> Option<Source<'a>> {
        let (n_queues, n_services) = (query.queues.len(), query.services.len());
        if let Some(queue) = query.queues.get(at) {
            let is_gate = self.gates.contains_key(queue);
            let source = if is_gate { Source::Gate(queue, None) } else { Source::Queue(queue) };
            return (!self.paused.contains(queue) && (is_gate || !self.is_elsewhere)).then_some(source);
        }
        if let Some(service) = query.services.get(at - n_queues) {
            return Some(Source::Service(service));
        }
        let (queue, service) = gated.get(at - n_queues - n_services)?;
        Some(Source::Gate(queue, query.services.get(*service).map(String::as_str)))
    }

    fn runs(&mut self, source: Source<'_>) -> Option<&mut Runs> {
        Some(match source {
            Source::Queue(queue) => &mut self.queues.named_mut(queue)?.runs,
            Source::Service(service) => &mut self.services.named_mut(service)?.runs,
            Source::Gate(queue, service) => &mut self.gates.get_mut(queue)?.view_mut(service).runs,
        })
    }

    /// The first job of a run below a priority that may be handed out now, as far as is known.
    fn run_below(&self, source: Source<'_>, priority: i32) -> Option<Key> {
        match source {
            Source::Queue(queue) => self.queues.named(queue)?.runs.below(priority),
            Source::Service(service) => self.services.named(service)?.runs.below(priority),
            Source::Gate(queue, service) => self.gates.get(queue)?.run_below(service, priority),
        }
    }

    /// The first plain job that may be handed out now, unless the store may have one before it.
    fn first_plain(&self, source: Source<'_>) -> Option<Key> {
        match source {
            Source::Queue(queue) => self.queues.named(queue)?.first_plain(),
            Source::Service(service) => self.services.named(service)?.first_plain(),
            Source::Gate(queue, service) => self.gates.get(queue)?.first_plain(service),
        }
    }

    /// Who gets the turn of the job that is next in the list that is number `at` in the query: that job, one of a
    /// lower class, or a plain job that is before that one.
    pub(super) fn turn_of(
        &mut self,
        query: &Query,
        gated: &[(String, usize)],
        at: usize,
        top: Key,
        search: &mut Search,
    ) -> Key {
        let Some(source) = self.source(query, gated, at).filter(|_| top.is_run) else { return top };
        let Some(kept) = self.runs(source).map(|runs| runs.kept(top)) else { return top };
        // Where one class is alone, every turn is kept: whoever has many lists does not search them all in vain each
        // time.
        let is_vain = search.nobody_below.is_some_and(|priority| top.priority() <= priority)
            || self.n_runs_ready.range(..top.priority()).next().is_none();
        let mut given = top;
        if let Some(below) = kept.filter(|_| !is_vain) {
            match self.next_below(query, gated, below) {
                Some(next) => given = next,
                None => search.nobody_below = search.nobody_below.max(Some(top.priority())),
            }
        }
        if let Some(runs) = self.runs(source) {
            runs.gave(top, given);
        }
        given
    }

    /// Who gets a turn that is kept for somebody below the first of these priorities, or else below the second.
    fn next_below(&self, query: &Query, gated: &[(String, usize)], below: [i32; 2]) -> Option<Key> {
        let n_lists = query.queues.len() + query.services.len() + gated.len();
        let earlier = |one: Option<Key>, other: Option<Key>| one.into_iter().chain(other).min();
        let (mut next, mut anew, mut plain) = (None, None, None);
        for source in (0..n_lists).filter_map(|at| self.source(query, gated, at)) {
            next = earlier(next, self.run_below(source, below[0]));
            anew = earlier(anew, self.run_below(source, below[1]));
            plain = earlier(plain, self.first_plain(source));
        }
        let lower = next.or(anew)?;
        earlier(Some(lower), plain)
    }

    /// Jobs of each class of runs that are kept of a queue however much there is above them. Of a queue with limits
    /// nothing is kept beyond what is known.
    pub(super) fn n_kept(&self, queue: &str) -> usize {
        if self.gates.contains_key(queue) {
            return 0;
        }
        (self.limits.rows / KEPT_SHARE / self.queues.len().max(1)).min(READ)
    }

    /// Whether there is something to read so that lower classes get their turns.
    pub(super) fn has_unread_classes(&self, query: &Query) -> bool {
        sources(query).any(|source| self.asks_below(source).is_some())
    }

    /// Of the lists that the query asks about, what to read so that lower classes get their turns: where the store
    /// has more than is known, they are behind all that is above them.
    pub(super) fn unread_classes(&mut self, query: &Query) -> Vec<Want> {
        let mut wants = Vec::new();
        for source in sources(query) {
            let Some(top) = self.asks_below(source) else { continue };
            if let Some(runs) = self.runs(source) {
                runs.asked();
            }
            let (queues, services) = match source {
                Source::Queue(queue) | Source::Gate(queue, _) => (vec![queue.to_owned()], Vec::new()),
                Source::Service(service) => (Vec::new(), vec![service.to_owned()]),
            };
            let except: Vec<String> = self.gates.keys().cloned().collect();
            for class in LOWEST..top.priority() {
                self.n_filling += 1;
                wants.push(Want::Class {
                    query: Query { queues: queues.clone(), services: services.clone() },
                    except: except.clone(),
                    from: top.start_of(class),
                    limit: READ,
                });
            }
        }
        wants
    }

    /// The job of a run below whose class the store is to be asked for others.
    pub(super) fn asks_below(&self, source: Source<'_>) -> Option<Key> {
        let list = match source {
            Source::Queue(_) if self.is_elsewhere => None,
            Source::Queue(queue) if self.paused.contains(queue) || self.gates.contains_key(queue) => None,
            Source::Queue(queue) => self.queues.named(queue),
            Source::Service(service) => self.services.named(service),
            Source::Gate(..) => None,
        }?;
        match list.head() {
            Some(Head::Job(top)) if !list.is_known() && list.runs.asks(top) => Some(top),
            Some(Head::Job(_) | Head::AskStore | Head::AskStoreAt(_)) | None => None,
        }
    }
}

/// The lists of a query, those of queues with limits aside.
fn sources(query: &Query) -> impl Iterator<Item = Source<'_>> {
    let queues = query.queues.iter().map(|queue| Source::Queue(queue));
    queues.chain(query.services.iter().map(|service| Source::Service(service)))
}
