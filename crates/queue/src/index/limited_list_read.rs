//! Reads of queues with limits from the store.

use std::sync::Arc;

use windlass_store::job::{JobRow, KeyQuery, KeyRows, ReadyQuery};

use super::JobIndex;
use super::indexed_jobs::{IndexedSize, weight_of};
use crate::limited_ready_list;
use crate::queue_limiter::QueueLimiter;
use crate::ready_list::{KnownRange, ListPosition, ReadyKey};

/// A read of one list.
#[derive(Debug)]
pub(crate) struct LimitedListRead {
    queue: String,
    service: Option<String>,
    /// Identifies the limiter.
    limiter_id: u64,
    query: LimitedListQuery,
}

#[derive(Debug, Clone)]
pub(crate) enum LimitedListQuery {
    /// In dispatch order, with any limit key.
    InOrder(ReadyQuery),
    ByKey(KeyQuery),
}

/// The result of a read.
#[derive(Debug)]
pub(crate) enum LimitedListRows {
    InOrder(Vec<JobRow>),
    ByKey(KeyRows),
}

/// Both results in one form: the rows of each lane, and the known range of the other keys.
struct LaneRows {
    lanes: Vec<(String, KnownRange, Vec<JobRow>)>,
    others: KnownRange,
    after: Option<Arc<str>>,
}

impl LimitedListRead {
    /// Begins a read of at most `limit` rows of a list, if it needs one before `n` jobs can be dispatched.
    pub(super) fn begin(
        limiter: &mut QueueLimiter,
        queue: &str,
        service: Option<&str>,
        n: usize,
        limit: usize,
    ) -> Option<Self> {
        let (limiter_id, rotates_limit_keys, taken) =
            (limiter.limiter_id, limiter.rotates_limit_keys(), limiter.taken.clone());
        let list = limiter.list_mut(service);
        if !list.needs_read(n) {
            return None;
        }
        let query = if rotates_limit_keys {
            let (except, after) = (list.keys(), list.after());
            let (queue, service) = (queue.to_owned(), service.map(str::to_owned));
            LimitedListQuery::ByKey(KeyQuery {
                queue,
                service,
                except,
                taken,
                after,
                limit,
                ..KeyQuery::default()
            })
        } else {
            let pair = |service: &str| (queue.to_owned(), service.to_owned());
            let queues = if service.is_none() { vec![queue.to_owned()] } else { Vec::new() };
            let pairs = service.map(pair).into_iter().collect();
            LimitedListQuery::InOrder(ReadyQuery { queues, pairs, limit, ..ReadyQuery::default() })
        };
        list.begin_read(!rotates_limit_keys);
        Some(LimitedListRead {
            queue: queue.to_owned(),
            service: service.map(str::to_owned),
            limiter_id,
            query,
        })
    }

    pub(crate) fn query(&self) -> LimitedListQuery {
        self.query.clone()
    }
}

impl JobIndex {
    /// Takes the result of a read; `None` if the read failed.
    pub(crate) fn add_limited_rows(&mut self, read: &LimitedListRead, rows_read: Option<LimitedListRows>) {
        let LimitedListRead { queue, service, limiter_id, query } = read;
        let is_same = |limiter: &&mut QueueLimiter| limiter.limiter_id == *limiter_id;
        if let Some(limiter) = self.lists.limiters_mut().named_mut(queue).filter(is_same) {
            let still = limiter.list_mut(service.as_deref()).end_read();
            if let Some(rows_read) = rows_read {
                self.add_lanes(queue, service.as_deref(), lane_rows(rows_read, query), still);
            }
        }
        self.reads.close();
        self.wake_for_limited(queue);
    }

    fn add_lanes(
        &mut self,
        queue: &str,
        service: Option<&str>,
        read: LaneRows,
        still: limited_ready_list::ReadValidity,
    ) {
        let LaneRows { mut lanes, mut others, after } = read;
        // Lanes with capacity come first: there may not be room for all.
        if let Some(limiter) = self.lists.limiters().named(queue) {
            lanes.sort_by_key(|(limit_key, ..)| !limiter.lane_state(limit_key).has_capacity);
        }
        let (mut n, mut bytes) = (0usize, 0usize);
        let up_to = |rows: &[JobRow]| match still.is_invalidated {
            true => {
                rows.last().map_or(KnownRange::Nothing, |last| limited_ready_list::up_to(&ReadyKey::of(last)))
            }
            false => KnownRange::All,
        };
        others = others.min(lanes.iter().map(|(_, _, rows)| up_to(rows)).max().unwrap_or(up_to(&[])));
        for (limit_key, known, rows) in lanes {
            let known = known.min(still.lanes).min(up_to(&rows));
            let known = self.fitting(known, &rows, n > 0);
            n += rows.len();
            bytes = rows.iter().map(weight_of).fold(bytes, usize::saturating_add);
            let Some(limiter) = self.lists.limiters_mut().named_mut(queue) else { return };
            let lane = limiter.lane(&limit_key);
            limiter.list_mut(service).set_known(&lane, known);
            for row in rows {
                self.add_limited_row(row, known);
            }
            let Some(limiter) = self.lists.limiters_mut().named_mut(queue) else { return };
            limiter.reposition(&lane);
            if !limiter.list_mut(service).has_lane(&lane) {
                others = others.min(known);
            }
        }
        let Some(limiter) = self.lists.limiters_mut().named_mut(queue) else { return };
        let turn = limiter.next_turn();
        limiter.list_mut(service).set_others_known(others.min(still.others), turn, after);
        self.reads.note_size(n, bytes);
    }

    /// Shortens the known range of a lane to the rows that fit. At least one row is always added, so that the claim
    /// makes progress.
    fn fitting(&self, known: KnownRange, rows: &[JobRow], may_be_none: bool) -> KnownRange {
        let rows_max = self.limits.rows.saturating_add(self.limits.read_rows);
        let IndexedSize { mut n, mut bytes } = self.jobs.ready();
        // Known rows need no room.
        let fresh = rows.iter().filter(|row| !self.is_old(row.id(), row.rev));
        for (at, row) in fresh.enumerate() {
            let is_full = n >= rows_max || bytes >= self.limits.bytes;
            if is_full && (at > 0 || may_be_none) {
                return known.min(KnownRange::Before(ListPosition::at(ReadyKey::of(row))));
            }
            (n, bytes) = (n + 1, bytes.saturating_add(weight_of(row)));
        }
        known
    }

    fn add_limited_row(&mut self, row: JobRow, known: KnownRange) {
        let key = ReadyKey::of(&row);
        if !known.covers(key) {
            return;
        }
        if !self.is_old(row.id(), row.rev) {
            self.remove(row.id());
            self.lists.limiters_mut().count(&row);
            self.add_ready(Arc::new(row), false);
            return;
        }
        // The job is ready, and another list knows it.
        if self.jobs.ready_job(row.id()).is_some_and(|indexed| indexed.row.rev == row.rev)
            && let Some(limiter) = self.lists.limiters_mut().named_mut(&row.job.spec.queue)
        {
            limiter.insert(&row.job.spec.limit_key, &row.job.spec.name, key);
        }
    }
}

fn lane_rows(rows_read: LimitedListRows, query: &LimitedListQuery) -> LaneRows {
    let limit = match query {
        LimitedListQuery::InOrder(query) => query.limit,
        LimitedListQuery::ByKey(query) => query.limit,
    };
    match rows_read {
        LimitedListRows::InOrder(rows) => {
            let last = rows.last().filter(|_| rows.len() >= limit).map(ReadyKey::of);
            let known = last.map_or(KnownRange::All, |last| KnownRange::Before(ListPosition::after(last)));
            LaneRows { lanes: vec![(String::new(), known, rows)], others: known, after: None }
        }
        LimitedListRows::ByKey(rows) => lane_rows_by_key(rows),
    }
}

fn lane_rows_by_key(KeyRows { turns, rest }: KeyRows) -> LaneRows {
    let after = turns.last().filter(|_| rest.is_some()).map(|turn| Arc::from(turn.key.as_str()));
    let others = rest.map_or(KnownRange::All, |rest| KnownRange::Before(ListPosition::start_of(rest)));
    let mut lanes: Vec<(String, KnownRange, Vec<JobRow>)> = Vec::new();
    let mut at: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    for turn in turns {
        let at = *at.entry(turn.key.clone()).or_insert_with(|| {
            lanes.push((turn.key, others, Vec::new()));
            lanes.len() - 1
        });
        let Some((_, known, rows)) = lanes.get_mut(at) else { continue };
        // Rows behind an incomplete turn of this key are not known.
        if *known < others {
            continue;
        }
        let last = turn.rows.last().map(ReadyKey::of).filter(|_| !turn.is_all);
        rows.extend(turn.rows);
        if let Some(last) = last {
            *known = KnownRange::Before(ListPosition::after(last));
        } else if Some(turn.priority) == rest {
            *known = KnownRange::Before(ListPosition::end_of(turn.priority));
        }
    }
    LaneRows { lanes, others, after }
}
