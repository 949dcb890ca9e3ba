//! Ready jobs of a queue with limits, or of one service in it: one lane for each limit key, served in rotation.
//!
//! A lane holds the known next jobs of its limit key. A lane without jobs is removed, unless its key has no capacity:
//! its jobs need not be known before it has. Jobs of keys without a lane are known up to the range `others`; beyond it
//! the store is read.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::ready_list::{KnownRange, ListHead, ListPosition, ReadyKey};
use crate::run_jobs::RunJobs;

/// The sort key of a lane: the priority of its first job, then the last turn of its limit key.
type LanePosition = (Reverse<i32>, u64, ListPosition);

/// With a single lane, so many jobs are dispatched before the store is read for jobs of other servers.
const UNVERIFIED_MAX: usize = 64;

/// Capacity and rotation of a lane's limit key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneState {
    /// Whether its limits allow another job.
    pub(crate) has_capacity: bool,
    /// The number of its last turn; a smaller one is longer ago.
    pub(crate) turn: u64,
}

#[derive(Debug, Default)]
pub(crate) struct LimitedReadyList {
    lanes: HashMap<Arc<str>, Lane>,
    /// Lanes with capacity, in order.
    order: BTreeSet<(LanePosition, ReadyKey)>,
    n_ready: usize,
    /// The known range of keys without a lane.
    others: KnownRange,
    /// The turn of keys that are only in the store.
    others_turn: u64,
    open_read: Option<ReadValidity>,
    /// The limit key after which the next read continues.
    after: Option<Arc<str>>,
    /// Jobs of runs: they have no limit key and share one lane.
    pub(crate) runs: RunJobs,
    /// Plain jobs without a limit key, in the same lane.
    plain: BTreeSet<ReadyKey>,
}

/// During a read of the store: the ranges in which its result will still be complete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadValidity {
    pub(crate) lanes: KnownRange,
    /// For keys without a lane.
    pub(crate) others: KnownRange,
    /// Whether lanes are read too, instead of being left out.
    is_whole: bool,
    /// Whether another server wrote meanwhile, so that there may be more behind the result.
    pub(crate) is_invalidated: bool,
}

#[derive(Debug)]
struct Lane {
    ready: BTreeSet<ReadyKey>,
    /// Always beyond the last of its jobs.
    known: KnownRange,
    place: Option<(LanePosition, ReadyKey)>,
}

impl LimitedReadyList {
    pub(crate) fn len(&self) -> usize {
        self.n_ready
    }

    pub(crate) fn is_being_read(&self) -> bool {
        self.open_read.is_some()
    }

    pub(crate) fn has_lane(&self, limit_key: &str) -> bool {
        self.lanes.contains_key(limit_key)
    }

    /// Whether every ready job of the store is known.
    pub(crate) fn is_known(&self) -> bool {
        self.others == KnownRange::All && self.lanes.values().all(|lane| lane.known == KnownRange::All)
    }

    /// The keys that have a lane.
    pub(crate) fn keys(&self) -> HashSet<Arc<str>> {
        self.lanes.keys().cloned().collect()
    }

    /// The limit key after which the next read continues.
    pub(crate) fn after(&self) -> Option<Arc<str>> {
        self.after.clone()
    }

    /// The first element; `None` if no job may be dispatched, neither from here nor from the store.
    pub(crate) fn head(&self) -> Option<ListHead> {
        let first = self.order.first();
        let (place, ask) = match self.others {
            KnownRange::All => return first.map(|(_, job)| ListHead::Job(*job)),
            KnownRange::Nothing => return Some(ListHead::AskStore),
            KnownRange::Before(end) => ((end.urgency, self.others_turn, end), ListHead::AskStoreAt(end)),
        };
        Some(match first {
            Some((lane, job)) if *lane < place => ListHead::Job(*job),
            Some(_) | None => ask,
        })
    }

    /// The first plain job that may be dispatched, if the store has none before it.
    pub(crate) fn first_plain(&self, has_keyless_capacity: bool) -> Option<ReadyKey> {
        // Only the lane of runs can begin with a job of a run, so this visits two lanes at most.
        let next = self.order.iter().map(|(_, job)| *job).find(|job| !job.is_run);
        let behind_runs = self.plain.first().copied().filter(|_| has_keyless_capacity);
        next.into_iter().chain(behind_runs).min().filter(|key| self.others.covers(*key))
    }

    /// Whether the store must be read before `n` jobs can be dispatched, and no read is open.
    pub(crate) fn needs_read(&self, n: usize) -> bool {
        let asks = || matches!(self.head(), Some(ListHead::AskStore | ListHead::AskStoreAt(_)));
        !self.is_being_read() && self.others != KnownRange::All && (self.n_ready < n || asks())
    }

    /// Adds a job, unless the store may have jobs before it. Returns whether it was added.
    pub(crate) fn insert(&mut self, limit_key: &Arc<str>, key: ReadyKey, lane_state: LaneState) -> bool {
        let known = self.lanes.get(limit_key).map_or(self.others, |lane| lane.known);
        if !known.covers(key) {
            self.lower_read_validity(KnownRange::Before(ListPosition::at(key)));
            return false;
        }
        let lane = self.lanes.entry(limit_key.clone()).or_insert_with(|| Lane::new(known));
        if lane.ready.insert(key) {
            self.n_ready += 1;
            if key.is_run {
                self.runs.insert(key);
            } else if limit_key.is_empty() {
                self.plain.insert(key);
            }
        }
        self.reposition(limit_key, lane_state);
        true
    }

    /// Removes a job, if it is here.
    pub(crate) fn remove(&mut self, limit_key: &str, key: ReadyKey, lane_state: LaneState) {
        let Some(lane) = self.lanes.get_mut(limit_key) else { return };
        if lane.ready.remove(&key) {
            self.n_ready -= 1;
            self.runs.remove(key);
            self.plain.remove(&key);
            self.reposition(limit_key, lane_state);
        }
    }

    /// From this job on, the store may have more.
    pub(crate) fn cut(&mut self, limit_key: &Arc<str>, key: ReadyKey, lane_state: LaneState) {
        let known = KnownRange::Before(ListPosition::at(key));
        match self.lanes.get_mut(limit_key) {
            Some(lane) => lane.known = lane.known.min(known),
            None if lane_state.has_capacity => self.lower_others(known),
            None => {
                self.lanes.insert(limit_key.clone(), Lane::new(known.min(self.others)));
            }
        }
        self.lower_read_validity(known);
    }

    /// Moves a lane to its position, or removes it.
    pub(crate) fn reposition(&mut self, limit_key: &str, lane_state: LaneState) {
        let Some(lane) = self.lanes.get_mut(limit_key) else { return };
        let place = |first: &ReadyKey| ((first.urgency(), lane_state.turn, ListPosition::at(*first)), *first);
        let place = lane.ready.first().filter(|_| lane_state.has_capacity).map(place);
        if lane.place != place {
            if let Some(before) = std::mem::replace(&mut lane.place, place) {
                self.order.remove(&before);
            }
            self.order.extend(place);
        }
        if lane_state.has_capacity && place.is_none() {
            let known = lane.known;
            self.lanes.remove(limit_key);
            self.lower_others(known);
            // The open read leaves out keys that had a lane when it began.
            if let Some(open_read) = self.open_read.as_mut().filter(|open_read| !open_read.is_whole) {
                open_read.others = open_read.others.min(known);
            }
        }
    }

    /// Forgets the known range of keys without a lane and of empty lanes.
    pub(crate) fn invalidate(&mut self) {
        for lane in self.lanes.values_mut().filter(|lane| lane.ready.is_empty()) {
            lane.known = KnownRange::Nothing;
        }
        self.lower_others(KnownRange::Nothing);
        self.lower_read_validity(KnownRange::Nothing);
    }

    /// The store may have more jobs than are known here. It is read after every lane with jobs had this turn, or after
    /// [`UNVERIFIED_MAX`] jobs of a single lane.
    pub(crate) fn invalidate_rest(&mut self, turn: u64) {
        let (mut known, is_one) = (KnownRange::Nothing, self.lanes.len() == 1);
        for lane in self.lanes.values_mut() {
            lane.known = lane.known.min(lane.ready.last().map_or(KnownRange::Nothing, up_to));
            let enough = if is_one { lane.ready.iter().nth(UNVERIFIED_MAX) } else { None };
            known = known.max(enough.or(lane.ready.last()).map_or(KnownRange::Nothing, up_to));
        }
        self.lower_others(known);
        self.others_turn = turn;
        if let Some(open_read) = &mut self.open_read {
            open_read.is_invalidated = true;
        }
    }

    /// Marks the start of a read of the store.
    pub(crate) fn begin_read(&mut self, is_whole: bool) {
        let (lanes, others) = (KnownRange::All, KnownRange::All);
        self.open_read = Some(ReadValidity { lanes, others, is_whole, is_invalidated: false });
    }

    /// Ends a read and returns the ranges in which its result is still complete.
    pub(crate) fn end_read(&mut self) -> ReadValidity {
        let (lanes, others) = (KnownRange::Nothing, KnownRange::Nothing);
        let nothing = ReadValidity { lanes, others, is_whole: false, is_invalidated: true };
        self.open_read.take().unwrap_or(nothing)
    }

    /// Extends the known range of a key. Its jobs are added next.
    pub(crate) fn set_known(&mut self, limit_key: &Arc<str>, known: KnownRange) {
        let known = known.max(self.lanes.get(limit_key).map_or(self.others, |lane| lane.known));
        let lane = self.lanes.entry(limit_key.clone()).or_insert_with(|| Lane::new(known));
        lane.known = known;
    }

    /// Extends the known range of keys without a lane; their turn is `turn`. `after` is the last key that was read.
    pub(crate) fn set_others_known(&mut self, known: KnownRange, turn: u64, after: Option<Arc<str>>) {
        self.others = self.others.max(known);
        (self.others_turn, self.after) = (turn, after);
    }

    fn lower_others(&mut self, known: KnownRange) {
        self.others = self.others.min(known);
    }

    fn lower_read_validity(&mut self, known: KnownRange) {
        if let Some(open_read) = &mut self.open_read {
            (open_read.lanes, open_read.others) = (open_read.lanes.min(known), open_read.others.min(known));
        }
    }
}

/// The range up to a job, including it.
pub(crate) fn up_to(last: &ReadyKey) -> KnownRange {
    KnownRange::Before(ListPosition::after(*last))
}

impl Lane {
    fn new(known: KnownRange) -> Self {
        Lane { ready: BTreeSet::new(), known, place: None }
    }
}
