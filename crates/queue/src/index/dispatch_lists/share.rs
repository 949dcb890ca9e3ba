//! Fair share of lower classes of runs, so that none of them starves.
//!
//! The next job of a claim decides which list has the turn. If that list reserves the turn for a lower class, a job of
//! any list of the same claim may get it. Only jobs of runs give turns away. A plain job before the chosen one takes
//! the turn instead, so plain jobs keep their order and none waits longer than without the share.

use super::DispatchLists;
use super::sources::ListSource;
use crate::dispatcher::ClaimQuery;
use crate::index::PlannedRead;
use crate::index::indexed_jobs::IndexedJobs;
use crate::ready_list::{ListHead, ReadyKey};
use crate::run_jobs::{CLASS_READ_SIZE, LOWEST, RunJobs};

/// The search for lower classes during one claim. No job is added to the lists meanwhile.
#[derive(Debug, Default)]
pub(in crate::index) struct ClassSearch {
    /// No list of the claim has a job of a run below this priority.
    pub(in crate::index) empty_below: Option<i32>,
}

impl DispatchLists {
    fn runs(&mut self, source: ListSource<'_>) -> Option<&mut RunJobs> {
        Some(match source {
            ListSource::Queue(queue) => &mut self.queues.named_mut(queue)?.runs,
            ListSource::Service(service) => &mut self.services.named_mut(service)?.runs,
            ListSource::LimitedQueue(queue, service) => {
                &mut self.limiters.named_mut(queue)?.list_mut(service).runs
            }
        })
    }

    /// The first known job of a run below a priority that may be dispatched now.
    fn run_below(&self, source: ListSource<'_>, priority: i32) -> Option<ReadyKey> {
        match source {
            ListSource::Queue(queue) => self.queues.named(queue)?.runs.below(priority),
            ListSource::Service(service) => self.services.named(service)?.runs.below(priority),
            ListSource::LimitedQueue(queue, service) => {
                self.limiters.named(queue)?.run_below(service, priority)
            }
        }
    }

    /// The first plain job that may be dispatched now, unless the store may have one before it.
    fn first_plain(&self, source: ListSource<'_>) -> Option<ReadyKey> {
        match source {
            ListSource::Queue(queue) => self.queues.named(queue)?.first_plain(),
            ListSource::Service(service) => self.services.named(service)?.first_plain(),
            ListSource::LimitedQueue(queue, service) => self.limiters.named(queue)?.first_plain(service),
        }
    }

    /// The job that gets the turn of `top`, the first job of list number `at`: `top` itself, a job of a lower class, or
    /// a plain job before that one. `jobs` are the jobs in these lists.
    pub(in crate::index) fn pick_by_share(
        &mut self,
        query: &ClaimQuery,
        limited: &[(String, usize)],
        at: usize,
        top: ReadyKey,
        search: &mut ClassSearch,
        jobs: &IndexedJobs,
    ) -> ReadyKey {
        let Some(source) = self.source(query, limited, at).filter(|_| top.is_run) else { return top };
        let Some(kept) = self.runs(source).map(|runs| runs.reserved_below(top)) else { return top };
        // With a single class, every turn is reserved in vain; this avoids a search of all lists each time.
        let is_pointless = search.empty_below.is_some_and(|priority| top.priority() <= priority)
            || !jobs.has_runs_below(top.priority());
        let mut given = top;
        if let Some(below) = kept.filter(|_| !is_pointless) {
            match self.next_below(query, limited, below) {
                Some(next) => given = next,
                None => search.empty_below = search.empty_below.max(Some(top.priority())),
            }
        }
        if let Some(runs) = self.runs(source) {
            runs.record_turn(top, given);
        }
        given
    }

    /// The job that gets a reserved turn: below the first of these priorities, or else below the second.
    fn next_below(
        &self,
        query: &ClaimQuery,
        limited: &[(String, usize)],
        below: [i32; 2],
    ) -> Option<ReadyKey> {
        let n_lists = query.queues.len() + query.services.len() + limited.len();
        let earlier = |one: Option<ReadyKey>, other: Option<ReadyKey>| one.into_iter().chain(other).min();
        let (mut next, mut anew, mut plain) = (None, None, None);
        for source in (0..n_lists).filter_map(|at| self.source(query, limited, at)) {
            next = earlier(next, self.run_below(source, below[0]));
            anew = earlier(anew, self.run_below(source, below[1]));
            plain = earlier(plain, self.first_plain(source));
        }
        let lower = next.or(anew)?;
        earlier(Some(lower), plain)
    }

    /// Whether lower classes must be read from the store.
    pub(in crate::index) fn has_unread_classes(&self, query: &ClaimQuery) -> bool {
        sources(query).any(|source| self.class_read_below(source).is_some())
    }

    /// Plans reads of lower classes for lists that are incomplete: their jobs may be behind all known ones.
    pub(in crate::index) fn begin_class_reads(&mut self, query: &ClaimQuery) -> Vec<PlannedRead> {
        let mut reads = Vec::new();
        for source in sources(query) {
            let Some(top) = self.class_read_below(source) else { continue };
            if let Some(runs) = self.runs(source) {
                runs.class_read_begun();
            }
            let (queues, services) = match source {
                ListSource::Queue(queue) | ListSource::LimitedQueue(queue, _) => {
                    (vec![queue.to_owned()], Vec::new())
                }
                ListSource::Service(service) => (Vec::new(), vec![service.to_owned()]),
            };
            let except: Vec<String> = self.limiters.queues().cloned().collect();
            for class in LOWEST..top.priority() {
                reads.push(PlannedRead::Class {
                    query: ClaimQuery { queues: queues.clone(), services: services.clone() },
                    except: except.clone(),
                    from: top.start_of(class),
                    limit: CLASS_READ_SIZE,
                });
            }
        }
        reads
    }

    /// The next job, if the classes below it must be read from the store.
    fn class_read_below(&self, source: ListSource<'_>) -> Option<ReadyKey> {
        let list = match source {
            ListSource::Queue(_) if self.is_via_redis => None,
            ListSource::Queue(queue) if self.paused.contains(queue) || self.limiters.has(queue) => None,
            ListSource::Queue(queue) => self.queues.named(queue),
            ListSource::Service(service) => self.services.named(service),
            ListSource::LimitedQueue(..) => None,
        }?;
        match list.head() {
            Some(ListHead::Job(top)) if !list.is_known() && list.runs.needs_class_read(top) => Some(top),
            Some(ListHead::Job(_) | ListHead::AskStore | ListHead::AskStoreAt(_)) | None => None,
        }
    }
}

/// The lists of a query, without those of queues with limits.
fn sources(query: &ClaimQuery) -> impl Iterator<Item = ListSource<'_>> {
    let queues = query.queues.iter().map(|queue| ListSource::Queue(queue));
    queues.chain(query.services.iter().map(|service| ListSource::Service(service)))
}
