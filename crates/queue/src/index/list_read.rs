//! Reads of ready lists from the store.

use std::sync::Arc;

use windlass_store::job::{JobRow, Portion, ReadyCursor};

use super::JobIndex;
use super::indexed_jobs::weight_of;
use super::limited_list_read::LimitedListRead;
use crate::dispatcher::ClaimQuery;
use crate::queue_limiters::HeldJobsRead;
use crate::ready_list::{KnownRange, ListPosition, ReadyKey, ReadyList};

/// A read of the store that a claim has to make.
#[derive(Debug)]
pub(crate) enum PlannedRead {
    /// Lists of queues without limits and of services: complete, or only this server's share.
    Lists {
        query: ClaimQuery,
        except: Vec<String>,
        from: Option<ReadyCursor>,
        limit: usize,
        begun: u64,
        portion: Option<Portion>,
    },
    /// Jobs of runs of a lower class, for its fair share when more jobs are above it than are known.
    Class { query: ClaimQuery, except: Vec<String>, from: ReadyCursor, limit: usize },
    /// A queue with limits, or one service in it.
    LimitedList(LimitedListRead),
    /// The held jobs of a queue with limits.
    Held(HeldJobsRead),
}

impl JobIndex {
    /// Plans reads for the lists of the query that cannot give `n` jobs and have no open read. The caller makes the
    /// reads and passes on their results.
    pub(crate) fn begin_read(&mut self, query: &ClaimQuery, n: usize) -> Vec<PlannedRead> {
        if !self.lists.limiters().is_empty() {
            self.derive_services(query);
        }
        if !self.lists.is_low(query, n) {
            return Vec::new();
        }
        // Room is made first: an eviction during the read would shorten its result. It may evict from the very lists
        // that are read.
        self.make_room(self.limits.read_rows);
        let (mut reads, limit) = (Vec::new(), self.reads.n_to_read(&self.limits, self.jobs.n_taken()));
        let query_left = self.lists.unread_lists(query, n);
        if !query_left.is_empty() {
            reads.push(self.begin_list_read(query_left, limit));
        }
        reads.extend(self.lists.begin_class_reads(query));
        for (queue, service) in self.lists.unread_limited_lists(query, n) {
            let limiters = self.lists.limiters_mut();
            let held = limiters.begin_held_read(&queue, self.reads.n_tombstones_dropped());
            reads.extend(held.map(PlannedRead::Held));
            let read = limiters
                .named_mut(&queue)
                .and_then(|limiter| LimitedListRead::begin(limiter, &queue, service.as_deref(), n, limit));
            reads.extend(read.map(PlannedRead::LimitedList));
        }
        self.reads.open(reads.len());
        reads
    }

    fn begin_list_read(&mut self, query: ClaimQuery, limit: usize) -> PlannedRead {
        self.lists.begin_read(&query);
        let except = self.lists.limiters().queues().cloned().collect();
        // Other servers may have inserted jobs before the first position that is unknown.
        let from = if self.is_alone { self.lists.unknown_from(&query) } else { None };
        let begun = self.reads.next_number();
        let portion = self.servers.portion_to_read(&query, &self.lists);
        PlannedRead::Lists { query, except, from, limit, begun, portion }
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
            let is_shared = self.servers.is_shared_out(&rows);
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
        self.reads.close();
        self.lists.end_read(query, known);
        self.wake_for(query);
    }

    /// Takes the rows of a lower class in order; `None` if the read failed. The known ranges of the lists stay.
    pub(crate) fn add_class_rows(&mut self, read: Option<(Vec<JobRow>, usize)>) {
        if let Some((rows, limit)) = read {
            self.add_read(rows, limit);
        }
        self.reads.close();
    }

    /// Makes the next claims read empty lists again, in case a change was missed.
    pub(crate) fn invalidate(&mut self) {
        if !self.is_alone {
            self.lists.invalidate_rest();
        }
        let emptied = self.lists.invalidate_empty();
        let limited: Vec<String> = self.lists.limiters().queues().cloned().collect();
        limited.iter().for_each(|queue| self.wake_for_limited(queue));
        self.wake_for(&emptied);
    }

    /// The store has ready jobs of these queues: lists without known jobs are read again, those of services too. A
    /// paused queue is read when it is resumed.
    pub(crate) fn invalidate_queues(&mut self, queues: &[String]) {
        let is_lost = |queue: &&String| {
            !self.lists.is_paused(queue)
                && (!self.is_alone || self.lists.queue(queue).is_none_or(ReadyList::is_empty))
        };
        let lost: Vec<String> = queues.iter().filter(is_lost).cloned().collect();
        if lost.is_empty() {
            return;
        }
        if self.is_alone {
            self.lists.invalidate_queues(&lost);
        } else {
            // Another server wrote the jobs. Known jobs are dispatched before the store is read.
            self.lists.invalidate_rest_of(&lost);
        }
        self.wake_for_returned(lost);
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
            let ready = self.jobs.ready();
            let is_full = ready.n >= rows_max || ready.bytes >= self.limits.bytes;
            // At least one row is always added, so that the claim makes progress.
            if is_full && at > 0 {
                return KnownRange::Before(ListPosition::at(ReadyKey::of(&row)));
            }
            bytes = bytes.saturating_add(weight_of(&row));
            // A queue that got limits meanwhile is read separately.
            if !self.lists.limiters().has(&row.job.spec.queue) && !self.is_old(row.id(), row.rev) {
                let was_offered = self.remove(row.id()).is_some_and(|indexed| indexed.is_offered);
                let is_offered = was_offered || self.written.has(row.id());
                // The store counts a job as ready when its delay is over, before any server reports it.
                self.add_ready(Arc::new(row), is_offered);
            }
        }
        self.reads.note_size(n, bytes);
        known
    }

    /// Makes room for `n` jobs by shortening long queues to an equal part; the store has the rest.
    fn make_room(&mut self, n: usize) {
        let mut share = self.limits.rows / (self.lists.n_queues_ready() + 1);
        loop {
            let ready = self.jobs.ready();
            let n_after = ready.n.saturating_add(n);
            let is_over = n_after > self.limits.rows || ready.bytes >= self.limits.bytes;
            if !is_over || ready.n == 0 {
                return;
            }
            for key in self.lists.spares(share, self.limits.rows) {
                self.leave_to_store(key);
            }
            if share == 0 {
                return;
            }
            share /= 2;
        }
    }
}
