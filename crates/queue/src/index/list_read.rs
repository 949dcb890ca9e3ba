//! Reads of ready lists from the store.

use std::sync::Arc;

use windlass_store::job::{JobRow, Portion, ReadyPlace};

use super::limit::HeldJobsRead;
use super::limited_list_read::LimitedListRead;
use super::{JobIndex, weight_of};
use crate::dispatcher::ClaimQuery;
use crate::queue_limiter::QueueLimiter;
use crate::ready_list::{KnownRange, ListPosition, ReadyKey, ReadyList};
use crate::ready_lists::ReadyLists;

/// One read takes at most this part of the memory for ready jobs.
const READ_BYTES_DIVISOR: usize = 4;
/// The smallest read, however large the jobs are: single rows would never catch up.
const READ_ROWS_MIN: usize = 16;

/// A read of the store that a claim has to make.
#[derive(Debug)]
pub(crate) enum PlannedRead {
    /// Lists of queues without limits and of services: complete, or only this server's share.
    Lists {
        query: ClaimQuery,
        except: Vec<String>,
        from: Option<ReadyPlace>,
        limit: usize,
        begun: u64,
        portion: Option<Portion>,
    },
    /// Jobs of runs of a lower class, for its fair share when more jobs are above it than are known.
    Class { query: ClaimQuery, except: Vec<String>, from: ReadyPlace, limit: usize },
    /// A queue with limits, or one service in it.
    LimitedList(LimitedListRead),
    /// The held jobs of a queue with limits.
    Held(HeldJobsRead),
}

impl JobIndex {
    /// Plans reads for the lists of the query that cannot give `n` jobs and have no open read. The caller makes the
    /// reads and passes on their results.
    pub(crate) fn begin_read(&mut self, query: &ClaimQuery, n: usize) -> Vec<PlannedRead> {
        if !self.limiters.is_empty() {
            self.derive_services(query);
        }
        if !self.is_low(query, n) {
            return Vec::new();
        }
        // Room is made first: an eviction during the read would shorten its result. It may evict from the very lists
        // that are read.
        self.make_room(self.limits.read_rows);
        let mut reads = Vec::new();
        let query_left = self.unread_lists(query, n);
        if !query_left.is_empty() {
            self.queues.begin_read(&query_left.queues);
            self.services.begin_read(&query_left.services);
            self.n_reads_open += 1;
            let except = self.limiters.keys().cloned().collect();
            let from = self.unknown_from(&query_left);
            self.n_reads_begun += 1;
            let (limit, begun) = (self.n_to_read(), self.n_reads_begun);
            let portion = self.begin_portion(&query_left);
            reads.push(PlannedRead::Lists { query: query_left, except, from, limit, begun, portion });
        }
        reads.extend(self.unread_classes(query));
        for (queue, service) in self.unread_limited_lists(query, n) {
            reads.extend(self.begin_held_read(&queue).map(PlannedRead::Held));
            reads
                .extend(self.begin_limited_read(&queue, service.as_deref(), n).map(PlannedRead::LimitedList));
        }
        reads
    }

    /// The first position at which one of these lists is incomplete; `None` = its start.
    fn unknown_from(&self, query: &ClaimQuery) -> Option<ReadyPlace> {
        // Other servers may have inserted jobs before it.
        if !self.is_alone {
            return None;
        }
        let queues = self.queues.unknown_from(&query.queues)?;
        let services = self.services.unknown_from(&query.services)?;
        [queues, services].into_iter().flatten().min().map(ReadyKey::position)
    }

    /// Rows to read: fewer if jobs are large, and more by the taken jobs, which the read returns again.
    pub(super) fn n_to_read(&self) -> usize {
        let n_fitting = self.limits.bytes / READ_BYTES_DIVISOR / self.bytes_per_row.max(1);
        n_fitting.clamp(READ_ROWS_MIN, self.limits.read_rows.max(READ_ROWS_MIN)).saturating_add(self.n_taken)
    }

    /// Takes the rows of these lists in order; `None` if the read failed. `begun` is the number of the read.
    pub(crate) fn add_list_rows(
        &mut self,
        query: &ClaimQuery,
        begun: u64,
        portion: Option<Portion>,
        read: Option<(Vec<JobRow>, usize)>,
    ) {
        let known = read.map(|(rows, limit)| {
            let (ids, is_full) = (rows.iter().map(JobRow::id).collect(), rows.len() >= limit);
            let last = rows.last().map(ReadyKey::of);
            let is_shared = self.is_shared_out(&rows);
            let mut known = self.add_read(rows, limit);
            if portion.is_some() && known == KnownRange::All {
                // The store may have more jobs of other shares.
                known =
                    last.map_or(KnownRange::Nothing, |last| KnownRange::Before(ListPosition::after(last)));
            }
            self.drop_unread(query, begun, portion, known, &ids);
            self.end_portion(query, portion, is_full && is_shared);
            known
        });
        self.close_read();
        for queue in &query.queues {
            self.queues.of(queue).end_read(known);
        }
        for service in &query.services {
            self.services.of(service).end_read(known);
        }
        self.wake_for(query);
    }

    /// Takes the rows of a lower class in order; `None` if the read failed. The known ranges of the lists stay.
    pub(crate) fn add_class_rows(&mut self, read: Option<(Vec<JobRow>, usize)>) {
        if let Some((rows, limit)) = read {
            self.add_read(rows, limit);
        }
        self.close_read();
    }

    pub(super) fn close_read(&mut self) {
        self.n_reads_open -= 1;
        if self.n_reads_open == 0 {
            self.tombstones.clear();
        }
    }

    /// Makes the next claims read empty lists again, in case a change was missed.
    pub(crate) fn invalidate(&mut self) {
        if !self.is_alone {
            self.queues.invalidate_rest();
            self.services.invalidate_rest();
        }
        let (queues, services) = (self.queues.invalidate_empty(), self.services.invalidate_empty());
        self.limiters.values_mut().for_each(QueueLimiter::invalidate_empty);
        let limited: Vec<String> = self.limiters.keys().cloned().collect();
        limited.iter().for_each(|queue| self.wake_for_limited(queue));
        self.wake_for(&ClaimQuery { queues, services });
    }

    /// The store has ready jobs of these queues: lists without known jobs are read again, those of services too. A
    /// paused queue is read when it is resumed.
    pub(crate) fn invalidate_queues(&mut self, queues: &[String]) {
        let is_lost = |queue: &&String| {
            !self.paused.contains(*queue)
                && (!self.is_alone || self.queues.named(queue).is_none_or(ReadyList::is_empty))
        };
        let lost: Vec<String> = queues.iter().filter(is_lost).cloned().collect();
        if lost.is_empty() {
            return;
        }
        if !self.is_alone {
            return self.invalidate_rest_of(lost);
        }
        for queue in &lost {
            match self.limiters.get_mut(queue) {
                Some(limiter) => limiter.invalidate(),
                None => self.queues.of(queue).cut(KnownRange::Nothing),
            }
        }
        self.services.invalidate();
        let services = self.wait_queue.services().cloned().collect();
        self.wake_for(&ClaimQuery { queues: lost, services });
    }

    /// Another server wrote jobs of these queues. Known jobs are dispatched before the store is read.
    fn invalidate_rest_of(&mut self, queues: Vec<String>) {
        for queue in &queues {
            match self.limiters.get_mut(queue) {
                Some(limiter) => limiter.invalidate_rest(),
                None => self.queues.of(queue).invalidate_rest(),
            }
        }
        self.services.invalidate_rest();
        let services = self.wait_queue.services().cloned().collect();
        self.wake_for(&ClaimQuery { queues, services });
    }

    /// Wakes claims for these lists: one for each known job, and one for a read of the store.
    pub(crate) fn wake_for(&mut self, query: &ClaimQuery) {
        let n_wanted = |lists: &ReadyLists, name: &str| {
            lists.named(name).map_or(0, ReadyList::len) + usize::from(lists.needs_read(name, 1))
        };
        let mut limited: Vec<String> = Vec::new();
        for queue in query.queues.iter().filter(|queue| !self.paused.contains(*queue)) {
            if self.limiters.contains_key(queue) {
                limited.push(queue.clone());
                continue;
            }
            if self.is_via_redis {
                continue;
            }
            let mut n = n_wanted(&self.queues, queue);
            while n > 0 && self.wait_queue.wake_queue(queue) {
                n -= 1;
            }
        }
        for service in &query.services {
            let mut n = n_wanted(&self.services, service);
            while n > 0 && self.wait_queue.wake_service(service) {
                n -= 1;
            }
        }
        limited.extend(self.limited(query).into_iter().map(|(queue, _)| queue));
        limited.iter().for_each(|queue| self.wake_for_limited(queue));
    }

    /// Adds rows as far as there is room. Returns the range that is known then.
    fn add_read(&mut self, rows: Vec<JobRow>, limit: usize) -> KnownRange {
        let known = match rows.last() {
            Some(last) if rows.len() >= limit => KnownRange::Before(ListPosition::at(ReadyKey::of(last))),
            Some(_) | None => KnownRange::All,
        };
        let (n, mut bytes) = (rows.len(), 0usize);
        let rows_max = self.limits.rows.saturating_add(self.limits.read_rows);
        for (at, row) in rows.into_iter().enumerate() {
            let is_full = self.ready.n >= rows_max || self.ready.bytes >= self.limits.bytes;
            // At least one row is always added, so that the claim makes progress.
            if is_full && at > 0 {
                return KnownRange::Before(ListPosition::at(ReadyKey::of(&row)));
            }
            bytes = bytes.saturating_add(weight_of(&row));
            // A queue that got limits meanwhile is read separately.
            if !self.limiters.contains_key(&row.job.spec.queue) && !self.is_old(row.id(), row.rev) {
                let was_offered = self.remove(row.id()).is_some_and(|indexed| indexed.is_offered);
                let is_offered = was_offered || self.written.has(row.id());
                // The store counts a job as ready when its delay is over, before any server reports it.
                self.add_ready(Arc::new(row), is_offered);
            }
        }
        self.bytes_per_row = bytes.checked_div(n).unwrap_or(self.bytes_per_row);
        known
    }

    /// Whether the store must be read before `n` jobs can be dispatched, and no read is open.
    pub(crate) fn is_low(&self, query: &ClaimQuery, n: usize) -> bool {
        !self.unread_lists(query, n).is_empty()
            || self.has_unread_classes(query)
            || !self.unread_limited_lists(query, n).is_empty()
    }

    fn unread_lists(&self, query: &ClaimQuery, n: usize) -> ClaimQuery {
        let is_plain = |name: &&String| {
            !self.is_via_redis && !self.paused.contains(*name) && !self.limiters.contains_key(*name)
        };
        let queues = query.queues.iter().filter(is_plain).filter(|name| self.queues.needs_read(name, n));
        let services = query.services.iter().filter(|name| self.services.needs_read(name, n));
        ClaimQuery { queues: queues.cloned().collect(), services: services.cloned().collect() }
    }

    /// Queues with limits, whole or one service in them, that need a read.
    fn unread_limited_lists(&self, query: &ClaimQuery, n: usize) -> Vec<(String, Option<String>)> {
        if self.limiters.is_empty() {
            return Vec::new();
        }
        let whole = query.queues.iter().filter(|queue| !self.paused.contains(*queue));
        let whole = whole.map(|queue| (queue.clone(), None));
        let limited = self.limited(query).into_iter();
        let parts = limited.filter_map(|(queue, at)| Some((queue, Some(query.services.get(at)?.clone()))));
        let is_low = |(queue, service): &(String, Option<String>)| {
            self.limiters.get(queue).is_some_and(|limiter| limiter.needs_read(service.as_deref(), n))
        };
        whole.chain(parts).filter(is_low).collect()
    }

    /// Makes room for `n` jobs by shortening long queues to an equal part; the store has the rest.
    fn make_room(&mut self, n: usize) {
        let n_queues = self.queues.all().filter(|(_, list)| !list.is_empty()).count();
        let mut share = self.limits.rows / (n_queues + 1);
        loop {
            let n_after = self.ready.n.saturating_add(n);
            let is_over = n_after > self.limits.rows || self.ready.bytes >= self.limits.bytes;
            if !is_over || self.ready.n == 0 {
                return;
            }
            let long = self.queues.all().filter(|(_, list)| list.len() > share);
            let ends = |(queue, list): (&String, &'_ ReadyList)| -> Vec<ReadyKey> {
                list.spares(share, self.n_reserved(queue)).collect()
            };
            let ends: Vec<ReadyKey> = long.flat_map(ends).collect();
            for key in ends {
                self.leave_to_store(key);
            }
            if share == 0 {
                return;
            }
            share /= 2;
        }
    }
}
