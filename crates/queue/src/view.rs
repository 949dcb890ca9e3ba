//! The ready jobs of a queue with limits, or of one service in it: a lane for each limit key, and whose turn it is.
//!
//! A lane has jobs that are known to be the next of its key. One without jobs is no lane, unless its key may hand out
//! nothing now: what there is of it need not be known before it may. What is in no lane is known as far as the view
//! says, and whoever gets that far asks the store.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::list::{Head, Key, Known, Mark};
use crate::runs::Runs;

/// Where a lane stands: by the priority of its next job, then by how long ago its key had a turn.
type Place = (Reverse<i32>, u64, Mark);

/// Where there is one lane and no turns, so many jobs are handed out before the store is asked what somebody else wrote.
const DOUBTED_MAX: usize = 64;

/// What a lane's key may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Whether something of it may be handed out.
    pub(crate) is_open: bool,
    /// When it last had a turn; the smaller, the longer ago.
    pub(crate) turn: u64,
}

#[derive(Debug, Default)]
pub(crate) struct View {
    lanes: HashMap<Arc<str>, Lane>,
    /// The lanes that are open.
    order: BTreeSet<(Place, JobOf)>,
    n_ready: usize,
    /// What is known of jobs that are in no lane.
    others: Known,
    /// When the keys that are only in the store have their turn.
    others_turn: u64,
    filling: Option<Filling>,
    /// The key after which the store is asked for more.
    after: Option<Arc<str>>,
    /// Jobs of runs have no limit key, and are all in one lane.
    pub(crate) runs: Runs,
    /// The others that have no limit key either, and so are in the same lane.
    plain: BTreeSet<Key>,
}

/// The next job of a lane.
type JobOf = Key;

/// While somebody reads from the store: how much of what they read will still be known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filling {
    pub(crate) lanes: Known,
    /// Of keys that have no lane then.
    pub(crate) others: Known,
    /// Lanes are read as well, and not left out.
    is_whole: bool,
    /// Somebody else wrote something meanwhile: beyond what is read there may be more.
    pub(crate) is_doubted: bool,
}

#[derive(Debug)]
struct Lane {
    ready: BTreeSet<Key>,
    /// Always beyond the last of its jobs.
    known: Known,
    place: Option<(Place, JobOf)>,
}

impl View {
    pub(crate) fn len(&self) -> usize {
        self.n_ready
    }

    pub(crate) fn is_filling(&self) -> bool {
        self.filling.is_some()
    }

    pub(crate) fn has_lane(&self, limit_key: &str) -> bool {
        self.lanes.contains_key(limit_key)
    }

    /// Whether the store has nothing that is not here.
    pub(crate) fn is_known(&self) -> bool {
        self.others == Known::All && self.lanes.values().all(|lane| lane.known == Known::All)
    }

    /// The keys that have a lane.
    pub(crate) fn keys(&self) -> HashSet<Arc<str>> {
        self.lanes.keys().cloned().collect()
    }

    /// Where the next question to the store begins.
    pub(crate) fn after(&self) -> Option<Arc<str>> {
        self.after.clone()
    }

    /// What comes next; `None` = nothing that may be handed out, nor in the store.
    pub(crate) fn head(&self) -> Option<Head> {
        let first = self.order.first();
        let (place, ask) = match self.others {
            Known::All => return first.map(|(_, job)| Head::Job(*job)),
            Known::Nothing => return Some(Head::AskStore),
            Known::Before(end) => ((end.urgency, self.others_turn, end), Head::AskStoreAt(end)),
        };
        Some(match first {
            Some((lane, job)) if *lane < place => Head::Job(*job),
            Some(_) | None => ask,
        })
    }

    /// The first that is not of a run and may be handed out, if none in the store comes before it.
    pub(crate) fn first_plain(&self, is_keyless_open: bool) -> Option<Key> {
        // Only the lane of the runs can begin with one of theirs: this looks at two at most.
        let next = self.order.iter().map(|(_, job)| *job).find(|job| !job.is_run);
        let behind_runs = self.plain.first().copied().filter(|_| is_keyless_open);
        next.into_iter().chain(behind_runs).min().filter(|key| self.others.covers(*key))
    }

    /// Whether the store has to be asked before so many can be handed out, and nobody does.
    pub(crate) fn needs_filling(&self, n: usize) -> bool {
        let asks = || matches!(self.head(), Some(Head::AskStore | Head::AskStoreAt(_)));
        !self.is_filling() && self.others != Known::All && (self.n_ready < n || asks())
    }

    /// Adds a job, unless the store may have some before it; whether it was added.
    pub(crate) fn insert(&mut self, limit_key: &Arc<str>, key: Key, standing: Standing) -> bool {
        let known = self.lanes.get(limit_key).map_or(self.others, |lane| lane.known);
        if !known.covers(key) {
            self.lower_filling(Known::Before(Mark::at(key)));
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
        self.place(limit_key, standing);
        true
    }

    /// Takes a job out, if it is there.
    pub(crate) fn remove(&mut self, limit_key: &str, key: Key, standing: Standing) {
        let Some(lane) = self.lanes.get_mut(limit_key) else { return };
        if lane.ready.remove(&key) {
            self.n_ready -= 1;
            self.runs.remove(key);
            self.plain.remove(&key);
            self.place(limit_key, standing);
        }
    }

    /// From this job on, the store may have more.
    pub(crate) fn cut(&mut self, limit_key: &Arc<str>, key: Key, standing: Standing) {
        let known = Known::Before(Mark::at(key));
        match self.lanes.get_mut(limit_key) {
            Some(lane) => lane.known = lane.known.min(known),
            None if standing.is_open => self.lower_others(known),
            None => {
                self.lanes.insert(limit_key.clone(), Lane::new(known.min(self.others)));
            }
        }
        self.lower_filling(known);
    }

    /// Puts a lane where it belongs now, or ends it.
    pub(crate) fn place(&mut self, limit_key: &str, standing: Standing) {
        let Some(lane) = self.lanes.get_mut(limit_key) else { return };
        let place = |first: &Key| ((first.urgency(), standing.turn, Mark::at(*first)), *first);
        let place = lane.ready.first().filter(|_| standing.is_open).map(place);
        if lane.place != place {
            if let Some(before) = std::mem::replace(&mut lane.place, place) {
                self.order.remove(&before);
            }
            self.order.extend(place);
        }
        if standing.is_open && place.is_none() {
            let known = lane.known;
            self.lanes.remove(limit_key);
            self.lower_others(known);
            // Nobody reads what had a lane when they began.
            if let Some(filling) = self.filling.as_mut().filter(|filling| !filling.is_whole) {
                filling.others = filling.others.min(known);
            }
        }
    }

    /// Nothing is known any more of what is in no lane, or in one without jobs.
    pub(crate) fn doubt(&mut self) {
        for lane in self.lanes.values_mut().filter(|lane| lane.ready.is_empty()) {
            lane.known = Known::Nothing;
        }
        self.lower_others(Known::Nothing);
        self.lower_filling(Known::Nothing);
    }

    /// The store may have more than is known here: it is asked when every lane that has something had this turn, or
    /// when as much was handed out as may go before what is more urgent there.
    pub(crate) fn doubt_rest(&mut self, turn: u64) {
        let (mut known, is_one) = (Known::Nothing, self.lanes.len() == 1);
        for lane in self.lanes.values_mut() {
            lane.known = lane.known.min(lane.ready.last().map_or(Known::Nothing, up_to));
            let enough = if is_one { lane.ready.iter().nth(DOUBTED_MAX) } else { None };
            known = known.max(enough.or(lane.ready.last()).map_or(Known::Nothing, up_to));
        }
        self.lower_others(known);
        self.others_turn = turn;
        if let Some(filling) = &mut self.filling {
            filling.is_doubted = true;
        }
    }

    /// Somebody begins to read from the store.
    pub(crate) fn begin_filling(&mut self, is_whole: bool) {
        let (lanes, others) = (Known::All, Known::All);
        self.filling = Some(Filling { lanes, others, is_whole, is_doubted: false });
    }

    /// The reading has ended: so much of what was read is still known.
    pub(crate) fn end_filling(&mut self) -> Filling {
        let (lanes, others) = (Known::Nothing, Known::Nothing);
        let nothing = Filling { lanes, others, is_whole: false, is_doubted: true };
        self.filling.take().unwrap_or(nothing)
    }

    /// So much is known of a key, if it is more than before. Its jobs are added next.
    pub(crate) fn learn(&mut self, limit_key: &Arc<str>, known: Known) {
        let known = known.max(self.lanes.get(limit_key).map_or(self.others, |lane| lane.known));
        let lane = self.lanes.entry(limit_key.clone()).or_insert_with(|| Lane::new(known));
        lane.known = known;
    }

    /// So much is known of keys that have no lane, and they have their turn after this one. `after` is the last key
    /// that was read.
    pub(crate) fn learn_others(&mut self, known: Known, turn: u64, after: Option<Arc<str>>) {
        self.others = self.others.max(known);
        (self.others_turn, self.after) = (turn, after);
    }

    fn lower_others(&mut self, known: Known) {
        self.others = self.others.min(known);
    }

    fn lower_filling(&mut self, known: Known) {
        if let Some(filling) = &mut self.filling {
            (filling.lanes, filling.others) = (filling.lanes.min(known), filling.others.min(known));
        }
    }
}

/// Everything up to a job, and the job.
pub(crate) fn up_to(last: &Key) -> Known {
    Known::Before(Mark::after(*last))
}

impl Lane {
    fn new(known: Known) -> Self {
        Lane { ready: BTreeSet::new(), known, place: None }
    }
}
