//! The jobs that are known, where each of them stands, and the lists they are handed out from.
//!
//! A job is *ready* (in the lists of its queue and of its service), *taken* (handed out, and nobody knows yet whether
//! the claim became durable) or *held* (it runs or waits, and whoever asks about it next need not read it). Ready and
//! held ones are bounded in number and in size; what does not fit is left to the store, and the lists remember that.

mod fill;
mod pause;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use windlass_engine::id::JobId;
use windlass_engine::job::State;
use windlass_engine::weight;
use windlass_store::job::JobRow;

use crate::dispatch::{Limits, Query};
use crate::line::Line;
use crate::list::{Head, Key, Known, List};
use crate::lists::Lists;

/// The bytes of a job beside its payload, about.
const ROW_BYTES: usize = 1_024;
/// How large jobs are taken to be until some were read: large, so that the first reading is a careful one.
const BYTES_PER_ROW: usize = 128 << 10;
/// Ends that are remembered while somebody reads: more than come in the time of a reading.
const GONE_MAX: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Index {
    rows: HashMap<JobId, Slot>,
    queues: Lists,
    services: Lists,
    paused: HashSet<String>,
    ready: Load,
    held: Load,
    n_taken: usize,
    n_filling: usize,
    /// Of what was last read from the store.
    bytes_per_row: usize,
    /// Jobs that are no longer kept, while somebody reads from the store: what they read may be this old.
    gone: HashMap<JobId, u64>,
    limits: Limits,
    pub(crate) line: Line,
}

#[derive(Debug)]
struct Slot {
    row: Arc<JobRow>,
    place: Place,
    bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Ready,
    Taken,
    Held,
}

/// How much there is of something.
#[derive(Debug, Default, Clone, Copy)]
struct Load {
    n: usize,
    bytes: usize,
}

impl Load {
    fn add(&mut self, bytes: usize) {
        self.n += 1;
        self.bytes += bytes;
    }

    fn subtract(&mut self, bytes: usize) {
        self.n -= 1;
        self.bytes -= bytes;
    }

    fn is_full(self, limits: &Limits) -> bool {
        self.n >= limits.rows || self.bytes >= limits.bytes
    }
}

impl Index {
    /// An index of nothing; whether there is nothing ready in the store.
    pub(crate) fn new(limits: Limits, is_all: bool) -> Self {
        let others = if is_all { Known::All } else { Known::Nothing };
        Index {
            rows: HashMap::new(),
            queues: Lists::new(others),
            services: Lists::new(others),
            paused: HashSet::new(),
            ready: Load::default(),
            held: Load::default(),
            n_taken: 0,
            n_filling: 0,
            bytes_per_row: BYTES_PER_ROW,
            gone: HashMap::new(),
            limits,
            line: Line::default(),
        }
    }

    /// A job as it was last heard of.
    pub(crate) fn row(&self, id: JobId) -> Option<&Arc<JobRow>> {
        self.rows.get(&id).map(|slot| &slot.row)
    }

    /// A job as it is from now on; `false` if something newer is known.
    pub(crate) fn offer(&mut self, row: Arc<JobRow>) -> bool {
        if self.is_old(row.id(), row.rev) {
            return false;
        }
        self.remove(row.id());
        match row.job.state {
            State::Queued { .. } => self.insert_ready(row),
            State::Pending { .. }
            | State::Running { .. }
            | State::Suspended { .. }
            | State::Retrying { .. } => self.hold(row),
            State::Succeeded | State::Failed { .. } | State::Cancelled => self.bury(row.id(), row.rev),
        }
        true
    }

    /// The job has ended with this revision; `false` if something newer is known.
    pub(crate) fn forget(&mut self, id: JobId, rev: u64) -> bool {
        let is_news = !self.is_old(id, rev);
        if is_news {
            self.remove(id);
            self.bury(id, rev);
        }
        is_news
    }

    /// Whether everything that the query asks for is known here.
    pub(crate) fn is_sure(&self, query: &Query) -> bool {
        let n_lists = query.queues.len() + query.services.len();
        (0..n_lists).all(|at| matches!(self.head(query, at), Some(Head::Job(_)) | None))
    }

    /// Takes ready jobs in order. It may stop early where the store has to be asked first.
    pub(crate) fn take(&mut self, query: &Query, max: usize) -> Vec<Arc<JobRow>> {
        let mut taken = Vec::new();
        let mut bytes = 0usize;
        let mut heads: BinaryHeap<Reverse<(Head, usize)>> = BinaryHeap::new();
        let n_lists = query.queues.len() + query.services.len();
        heads.extend((0..n_lists).filter_map(|at| Some(Reverse((self.head(query, at)?, at)))));
        while taken.len() < max && bytes < self.limits.take_bytes {
            let Some(Reverse((Head::Job(key), at))) = heads.pop() else { break };
            // It may be gone already: a job is in two lists.
            if self.rows.get(&key.id).is_some_and(|slot| slot.place == Place::Ready) {
                bytes = bytes.saturating_add(self.reserve(key, &mut taken));
            }
            heads.extend(self.head(query, at).map(|head| Reverse((head, at))));
        }
        taken
    }

    /// The claims of these came to nothing: they are ready as before.
    pub(crate) fn put_back(&mut self, rows: &[Arc<JobRow>]) {
        for row in rows {
            let is_same = |slot: &Slot| slot.place == Place::Taken && slot.row.rev == row.rev;
            if self.rows.get(&row.id()).is_some_and(is_same) {
                self.remove(row.id());
                self.insert_ready(row.clone());
            }
        }
    }

    /// What comes next in the list that is number `at` in the query; `None` = nothing, nor in the store.
    fn head(&self, query: &Query, at: usize) -> Option<Head> {
        match query.queues.get(at) {
            Some(queue) if self.paused.contains(queue) => None,
            Some(queue) => self.queues.head(queue),
            None => self.services.head(query.services.get(at - query.queues.len())?),
        }
    }

    /// Makes a ready job a taken one; how large it is.
    fn reserve(&mut self, key: Key, taken: &mut Vec<Arc<JobRow>>) -> usize {
        let Some(Slot { row, bytes, .. }) = self.remove(key.id) else { return 0 };
        taken.push(row.clone());
        self.n_taken += 1;
        self.rows.insert(key.id, Slot { row, place: Place::Taken, bytes });
        bytes
    }

    fn is_old(&self, id: JobId, rev: u64) -> bool {
        self.rows.get(&id).is_some_and(|slot| slot.row.rev >= rev)
            || self.gone.get(&id).is_some_and(|gone| *gone >= rev)
    }

    /// Remembers what is not kept for as long as somebody may read from before it.
    fn bury(&mut self, id: JobId, rev: u64) {
        if self.n_filling > 0 {
            // Some are always being read: then it is left to the store to refuse what is handed out in vain.
            if self.gone.len() >= GONE_MAX {
                self.gone.clear();
            }
            self.gone.insert(id, rev);
        }
    }

    fn hold(&mut self, row: Arc<JobRow>) {
        if self.held.is_full(&self.limits) {
            self.bury(row.id(), row.rev);
            return;
        }
        let bytes = weight_of(&row);
        self.held.add(bytes);
        self.rows.insert(row.id(), Slot { row, place: Place::Held, bytes });
    }

    /// Adds a ready job and wakes somebody for it. When there is no room, the last of its queue is left to the store.
    fn insert_ready(&mut self, row: Arc<JobRow>) {
        let key = Key::of(&row);
        while self.ready.is_full(&self.limits) {
            let last = self.queues.named(&row.job.spec.queue).and_then(List::last);
            let Some(last) = last.filter(|last| *last > key) else { break };
            self.leave_to_store(last);
        }
        if self.ready.is_full(&self.limits) {
            self.cut(&row, key);
        } else {
            self.add_ready(row.clone());
        }
        if !self.paused.contains(&row.job.spec.queue) {
            self.line.wake(&row.job.spec.queue, &row.job.spec.name);
        }
    }

    fn add_ready(&mut self, row: Arc<JobRow>) {
        let (key, bytes) = (Key::of(&row), weight_of(&row));
        let spec = &row.job.spec;
        self.queues.of(&spec.queue).insert(key);
        if !self.paused.contains(&spec.queue) {
            self.services.of(&spec.name).insert(key);
        }
        self.ready.add(bytes);
        self.rows.insert(key.id, Slot { row, place: Place::Ready, bytes });
    }

    /// Drops a ready job; whoever gets that far in its lists asks the store.
    fn leave_to_store(&mut self, key: Key) {
        if let Some(slot) = self.remove(key.id) {
            self.cut(&slot.row, key);
        }
    }

    /// A ready job is not kept.
    fn cut(&mut self, row: &JobRow, key: Key) {
        let known = Known::Before(key);
        self.bury(key.id, row.rev.saturating_sub(1));
        self.queues.of(&row.job.spec.queue).cut(known);
        self.services.of(&row.job.spec.name).cut(known);
    }

    fn remove(&mut self, id: JobId) -> Option<Slot> {
        let slot = self.rows.remove(&id)?;
        match slot.place {
            Place::Ready => {
                let (key, spec) = (Key::of(&slot.row), &slot.row.job.spec);
                self.queues.of(&spec.queue).remove(key);
                self.services.of(&spec.name).remove(key);
                self.ready.subtract(slot.bytes);
            }
            Place::Taken => self.n_taken -= 1,
            Place::Held => self.held.subtract(slot.bytes),
        }
        Some(slot)
    }
}

fn weight_of(row: &JobRow) -> usize {
    // What cannot be weighed is as heavy as can be.
    let weigh = |value| weight::weigh(value).unwrap_or(windlass_engine::limits::SHARED_BYTES);
    let job = &row.job;
    ROW_BYTES + weigh(&job.spec.payload) + job.memo.as_ref().map_or(0, weigh)
}

#[cfg(test)]
mod tests;
