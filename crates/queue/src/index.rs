//! The jobs that are known, where each of them stands, and the lists they are handed out from.
//!
//! A job is *ready* (in the lists of its queue and of its service), *taken* (handed out, and nobody knows yet whether
//! the claim became durable) or *held* (it runs or waits, and whoever asks about it next need not read it). Ready and
//! held ones are bounded in number and in size; what does not fit is left to the store, and the lists remember that.

mod elsewhere;
mod fill;
mod limit;
mod pause;
mod read;
mod servers;
mod share;
mod taken;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use windlass_engine::id::JobId;
use windlass_engine::job::{JobSpec, State};
use windlass_engine::time::Timestamp;
use windlass_engine::weight;
use windlass_store::job::JobRow;

use crate::dispatch::{Limits, Query};
use crate::gate::Gate;
use crate::line::Line;
use crate::list::{Head, Key, Known, Mark};
use crate::lists::Lists;

/// The bytes of a job beside its payload, about.
const ROW_BYTES: usize = 1_024;
/// How large jobs are taken to be until some were read: large, so that the first reading is a careful one.
const BYTES_PER_ROW: usize = 128 << 10;
/// Ends that are remembered while somebody reads: more than come in the time of a reading.
const GONE_MAX: usize = 100_000;

pub(crate) use fill::Want;
pub(crate) use read::{Asked, Heard};
use servers::Own;
pub(crate) use servers::Servers;
use share::{Search, Source};

#[derive(Debug)]
pub(crate) struct Index {
    /// Whether everything that changes is told here: then what is known stays known.
    is_alone: bool,
    /// Whether others say who gets the jobs of queues without limits, whoever asks by queue.
    is_elsewhere: bool,
    written: elsewhere::Written,
    rows: HashMap<JobId, Slot>,
    queues: Lists,
    services: Lists,
    paused: HashSet<String>,
    /// Queues with limits. Their jobs are in no list of a service.
    gates: HashMap<String, Gate>,
    n_gates_made: u64,
    /// Jobs that somebody has, of queues that count them.
    slots: HashMap<JobId, Hold>,
    /// When queues, or keys in them, have tokens again.
    openings: BTreeSet<(Timestamp, String, Option<Arc<str>>)>,
    ready: Load,
    /// Of those, the ones of runs, by priority.
    n_runs_ready: BTreeMap<i32, usize>,
    held: Load,
    n_taken: usize,
    n_filling: usize,
    /// Readings of lists that were begun.
    n_readings: u64,
    /// Of what was last read from the store.
    bytes_per_row: usize,
    /// Jobs that are no longer kept, while somebody reads from the store: what they read may be this old.
    gone: HashMap<JobId, u64>,
    /// How often they were too many.
    n_gone_lost: u64,
    limits: Limits,
    /// Which jobs are handed out here before others, if several servers hand them out.
    pub(crate) servers: Servers,
    /// Queues of which others have said that nobody claims there, and until when that is believed.
    open: HashMap<String, Timestamp>,
    pub(crate) line: Line,
}

#[derive(Debug)]
struct Slot {
    row: Arc<JobRow>,
    place: Place,
    bytes: usize,
    /// After how many readings it came to its place.
    since: u64,
    /// It was not read from the store: whoever wrote it said so.
    is_offered: bool,
}

/// Where somebody has a job.
#[derive(Debug)]
struct Hold {
    queue: String,
    limit_key: String,
    rev: u64,
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
            is_alone: is_all,
            is_elsewhere: false,
            written: elsewhere::Written::default(),
            rows: HashMap::new(),
            queues: Lists::new(others),
            services: Lists::new(others),
            paused: HashSet::new(),
            gates: HashMap::new(),
            n_gates_made: 0,
            slots: HashMap::new(),
            openings: BTreeSet::new(),
            ready: Load::default(),
            n_runs_ready: BTreeMap::new(),
            held: Load::default(),
            n_taken: 0,
            n_filling: 0,
            n_readings: 0,
            bytes_per_row: BYTES_PER_ROW,
            gone: HashMap::new(),
            n_gone_lost: 0,
            limits,
            servers: Servers::default(),
            open: HashMap::new(),
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
        let freed = self.count(&row);
        match row.job.state {
            State::Queued { .. } => self.insert_ready(row, true),
            State::Pending { .. }
            | State::Running { .. }
            | State::Suspended { .. }
            | State::Retrying { .. } => self.hold(row),
            State::Succeeded | State::Failed { .. } | State::Cancelled => self.bury(row.id(), row.rev),
        }
        self.stir_freed(freed);
        true
    }

    /// The job has ended with this revision; `false` if something newer is known.
    pub(crate) fn forget(&mut self, id: JobId, rev: u64) -> bool {
        let is_news = !self.is_old(id, rev);
        if is_news {
            self.remove(id);
            self.bury(id, rev);
            let freed = self.free(id);
            self.stir_freed(freed);
        }
        is_news
    }

    /// Whether everything that the query asks for is known here.
    pub(crate) fn is_sure(&self, query: &Query) -> bool {
        let gated = self.gated(query);
        let n_lists = query.queues.len() + query.services.len() + gated.len();
        (0..n_lists).all(|at| matches!(self.head(query, &gated, at), Some(Head::Job(_)) | None))
    }

    /// Takes ready jobs in order, as far as limits allow; jobs of runs leave some turns to those of lower classes. It
    /// may stop early where the store has to be asked first.
    pub(crate) fn take(&mut self, query: &Query, max: usize, now: Timestamp) -> Vec<Arc<JobRow>> {
        let gated = self.gated(query);
        let mut taken = Vec::new();
        let (mut bytes, mut search, mut own) = (0usize, Search::default(), Own::default());
        let mut heads: BinaryHeap<Reverse<(Head, usize)>> = BinaryHeap::new();
        let n_lists = query.queues.len() + query.services.len() + gated.len();
        heads.extend((0..n_lists).filter_map(|at| Some(Reverse((self.head(query, &gated, at)?, at)))));
        while taken.len() < max && bytes < self.limits.take_bytes {
            let Some(Reverse((Head::Job(key), at))) = heads.pop() else { break };
            // It may be gone already: a job is in two lists, and what was handed out may have used up a limit.
            let is_ready = self.rows.get(&key.id).is_some_and(|slot| slot.place == Place::Ready);
            let is_next = self.gates.is_empty() || self.head(query, &gated, at) == Some(Head::Job(key));
            if is_ready && is_next {
                let mut given = self.turn_of(query, &gated, at, key, &mut search);
                if given == key {
                    // Whoever got something of the own share comes again for what may be left by others.
                    let Some(preferred) = self.preferred(query, at, key, now, max - taken.len(), &mut own)
                    else {
                        continue;
                    };
                    given = preferred;
                }
                self.note_given(at, given, &mut own);
                bytes = bytes.saturating_add(self.reserve(given, now, &mut taken));
            }
            heads.extend(self.head(query, &gated, at).map(|head| Reverse((head, at))));
        }
        self.keep_given(query, &own);
        if !taken.is_empty() {
            self.pass_on(query, &gated);
        }
        taken
    }

    /// What comes next in the list that is number `at` in the query; `None` = nothing, nor in the store.
    fn head(&self, query: &Query, gated: &[(String, usize)], at: usize) -> Option<Head> {
        match self.source(query, gated, at)? {
            Source::Queue(queue) => self.queues.head(queue),
            Source::Service(service) => self.services.head(service),
            Source::Gate(queue, service) => self.gates.get(queue)?.head(service),
        }
    }

    fn is_old(&self, id: JobId, rev: u64) -> bool {
        self.rows.get(&id).is_some_and(|slot| slot.row.rev >= rev)
            || self.gone.get(&id).is_some_and(|gone| *gone >= rev)
            || self.slots.get(&id).is_some_and(|held| held.rev >= rev)
    }

    /// Remembers what is not kept for as long as somebody may read from before it.
    fn bury(&mut self, id: JobId, rev: u64) {
        if self.n_filling > 0 {
            // Some are always being read: then it is left to the store to refuse what is handed out in vain.
            if self.gone.len() >= GONE_MAX {
                self.gone.clear();
                self.n_gone_lost += 1;
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
        self.rows.insert(
            row.id(),
            Slot { row, place: Place::Held, bytes, since: self.n_readings, is_offered: false },
        );
    }

    /// Adds a ready job and wakes somebody for it. When there is no room, the last of its queue is left to the store.
    fn insert_ready(&mut self, row: Arc<JobRow>, is_offered: bool) {
        if self.is_elsewhere && !self.gates.contains_key(&row.job.spec.queue) {
            return self.insert_for_service(row, is_offered);
        }
        let (key, n_kept) = (Key::of(&row), self.n_kept(&row.job.spec.queue));
        while self.ready.is_full(&self.limits) {
            let last = self.queues.named(&row.job.spec.queue).and_then(|list| list.spare(n_kept));
            let Some(last) = last.filter(|last| *last > key) else { break };
            self.leave_to_store(last);
        }
        if self.ready.is_full(&self.limits) || !self.add_ready(row.clone(), is_offered) {
            self.cut(&row, key);
        }
        let JobSpec { queue, name, limit_key, .. } = &*row.job.spec;
        let is_open = |gate: &Gate| gate.is_open_for(limit_key);
        if !self.paused.contains(queue) && self.gates.get(queue).is_none_or(is_open) {
            self.line.wake(queue, name);
        }
    }

    /// Adds a ready job; `false` = its queue has limits, and the store may have some before it.
    fn add_ready(&mut self, row: Arc<JobRow>, is_offered: bool) -> bool {
        let (key, bytes) = (Key::of(&row), weight_of(&row));
        let spec = &row.job.spec;
        if let Some(gate) = self.gates.get_mut(&spec.queue) {
            if !gate.insert(&spec.limit_key, &spec.name, key) {
                return false;
            }
        } else if !self.paused.contains(&spec.queue) {
            self.services.of(&spec.name).insert(key);
        }
        self.queues.of(&spec.queue).insert(key);
        self.ready.add(bytes);
        self.run_came(key);
        let (place, since) = (Place::Ready, self.n_readings);
        self.rows.insert(key.id, Slot { row, place, bytes, since, is_offered });
        true
    }

    /// Drops a ready job; whoever gets that far in its lists asks the store.
    fn leave_to_store(&mut self, key: Key) {
        if let Some(slot) = self.remove(key.id) {
            self.cut(&slot.row, key);
        }
    }

    /// A ready job is not kept.
    fn cut(&mut self, row: &JobRow, key: Key) {
        let (known, spec) = (Known::Before(Mark::at(key)), &row.job.spec);
        self.bury(key.id, row.rev.saturating_sub(1));
        if let Some(gate) = self.gates.get_mut(&spec.queue) {
            return gate.cut(&spec.limit_key, &spec.name, key);
        }
        self.queues.of(&spec.queue).cut(known);
        self.services.of(&spec.name).cut(known);
    }

    fn remove(&mut self, id: JobId) -> Option<Slot> {
        let slot = self.rows.remove(&id)?;
        match slot.place {
            Place::Ready => {
                let (key, spec) = (Key::of(&slot.row), &slot.row.job.spec);
                self.queues.of(&spec.queue).remove(key);
                match self.gates.get_mut(&spec.queue) {
                    Some(gate) => gate.remove(&spec.limit_key, &spec.name, key),
                    None => self.services.of(&spec.name).remove(key),
                }
                self.ready.subtract(slot.bytes);
                self.run_left(key);
            }
            Place::Taken => {
                self.n_taken -= 1;
                if let Some(gate) = self.gates.get_mut(&slot.row.job.spec.queue) {
                    gate.taken.remove(&id);
                }
            }
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
