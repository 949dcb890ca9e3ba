//! What holds one queue back: jobs that workers have, tokens, and the turns of its limit keys.
//!
//! Nothing is counted that is not a job somebody has: a job that leaves, whatever the reason, takes what it held with
//! it. A token is spent when a job is handed out, even if the claim comes to nothing afterwards.

mod tap;
mod turn;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;
use windlass_store::queue::{QueueLimits, Rate};

use crate::list::{Head, Key};
use crate::view::{Standing, View};

use tap::Tap;

/// Limit keys that are remembered at least, whether or not there is anything of them.
const KEYS_MAX: usize = 10_000;
/// Services that are looked at one by one at least.
const SERVICES_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Gate {
    limits: QueueLimits,
    /// Another gate of the same queue has another one.
    pub(crate) number: u64,
    /// Whenever who has jobs of it is asked anew, it is another one.
    pub(crate) count: u64,
    /// Who has jobs of it is known. Until then nothing is handed out.
    pub(crate) is_counted: bool,
    pub(crate) is_counting: bool,
    /// Others hand out its jobs too: what was counted holds up to this turn, and each hand-out is a turn.
    turns: Option<u64>,
    counted_at: Timestamp,
    n_held: usize,
    tap: Option<Tap>,
    keys: HashMap<Arc<str>, KeyState>,
    n_keys_max: usize,
    n_turns: u64,
    /// The latest moment it was told of.
    now: Timestamp,
    /// Jobs that are being handed out.
    pub(crate) taken: HashSet<JobId>,
    pub(crate) all: View,
    pub(crate) services: HashMap<String, View>,
    n_services_max: usize,
}

/// What a limit key has.
#[derive(Debug, Default)]
struct KeyState {
    turn: u64,
    n_held: usize,
    tap: Option<Tap>,
}

/// When something will be open again: the queue, or one of its limit keys.
pub(crate) type Opening = (Timestamp, Option<Arc<str>>);

impl Gate {
    /// A gate of a queue of which nothing is known, after another one of the same queue.
    pub(crate) fn new(
        limits: QueueLimits,
        before: Option<Gate>,
        number: u64,
        is_shared: bool,
        now: Timestamp,
    ) -> Self {
        let (tap, keys) = before.map(|before| (before.tap, before.keys)).unwrap_or_default();
        let reshaped = |tap: Option<Tap>, rate: Rate| match tap {
            Some(mut tap) => {
                tap.reshape(rate, now);
                tap
            }
            None => Tap::new(rate, now),
        };
        let key_of = |(key, state): (Arc<str>, KeyState)| {
            let tap = Some(reshaped(Some(state.tap?), limits.key_rate?));
            Some((key, KeyState { tap, ..KeyState::default() }))
        };
        Gate {
            number,
            count: number,
            is_counted: !is_shared && limits.concurrency.is_none() && limits.key_concurrency.is_none(),
            is_counting: false,
            turns: is_shared.then_some(0),
            counted_at: now,
            n_held: 0,
            tap: limits.rate.map(|rate| reshaped(tap, rate)),
            keys: keys.into_iter().filter_map(key_of).collect(),
            n_keys_max: KEYS_MAX,
            n_turns: 0,
            now,
            taken: HashSet::new(),
            all: View::default(),
            services: HashMap::new(),
            n_services_max: SERVICES_MAX,
            limits,
        }
    }

    pub(crate) fn limits(&self) -> &QueueLimits {
        &self.limits
    }

    /// Whether it matters who has jobs of it.
    pub(crate) fn counts(&self) -> bool {
        self.limits.concurrency.is_some() || self.limits.key_concurrency.is_some()
    }

    /// Whether limit keys take turns; otherwise all jobs stand in one lane.
    pub(crate) fn takes_turns(&self) -> bool {
        let QueueLimits { key_concurrency, key_rate, fair, .. } = &self.limits;
        *fair || key_concurrency.is_some() || key_rate.is_some()
    }

    /// Whether the queue as a whole may hand out something.
    pub(crate) fn is_open(&self) -> bool {
        let has_slot = self.limits.concurrency.is_none_or(|max| self.n_held < as_usize(max));
        self.is_counted && has_slot && Tap::is_open(self.tap.as_ref())
    }

    /// Whether a job with this limit key might be handed out, as far as is known.
    pub(crate) fn is_open_for(&self, limit_key: &str) -> bool {
        let lane = if self.takes_turns() { limit_key } else { "" };
        !self.is_counted || (self.is_open() && self.standing(lane).is_open)
    }

    /// The view of the queue, or of one service in it.
    pub(crate) fn view(&self, service: Option<&str>) -> Option<&View> {
        match service {
            None => Some(&self.all),
            Some(service) => self.services.get(service),
        }
    }

    /// The same, made if need be. Of too many, those without jobs are forgotten.
    pub(crate) fn view_mut(&mut self, service: Option<&str>) -> &mut View {
        let Some(service) = service else { return &mut self.all };
        if !self.services.contains_key(service) {
            if self.services.len() >= self.n_services_max {
                self.services.retain(|_, view| view.len() > 0 || view.is_filling());
                self.n_services_max = SERVICES_MAX.max(self.services.len().saturating_mul(2));
            }
            self.services.insert(service.to_owned(), View::default());
        }
        self.services.get_mut(service).expect("it was there or was just made")
    }

    /// What comes next; `None` = nothing that may be handed out now, nor in the store.
    pub(crate) fn head(&self, service: Option<&str>) -> Option<Head> {
        if !self.is_counted {
            return Some(Head::AskStore);
        }
        if !self.is_open() {
            return None;
        }
        self.view(service).map_or(Some(Head::AskStore), View::head)
    }

    /// The first job of a run below a priority, as far as is known; `None` if it may not be handed out now.
    pub(crate) fn run_below(&self, service: Option<&str>, priority: i32) -> Option<Key> {
        let is_open = self.is_counted && self.is_open() && self.standing("").is_open;
        self.view(service).filter(|_| is_open)?.runs.below(priority)
    }

    /// The first job that is not of a run; `None` if it may not be handed out now, or the store may have one before
    /// it.
    pub(crate) fn first_plain(&self, service: Option<&str>) -> Option<Key> {
        let is_open = self.is_counted && self.is_open();
        self.view(service).filter(|_| is_open)?.first_plain(self.standing("").is_open)
    }

    /// Whether the store has to be asked before so many can be handed out, and nobody does.
    pub(crate) fn needs_filling(&self, service: Option<&str>, n: usize) -> bool {
        if !self.is_counted {
            return !self.is_counting;
        }
        self.is_open() && self.view(service).is_none_or(|view| view.needs_filling(n))
    }

    /// The lane of a job with this limit key.
    pub(crate) fn lane(&mut self, limit_key: &str) -> Arc<str> {
        let name = if self.takes_turns() { limit_key } else { "" };
        if let Some((name, _)) = self.keys.get_key_value(name) {
            return name.clone();
        }
        if self.keys.len() >= self.n_keys_max {
            self.forget_keys();
        }
        let (name, turn) = (Arc::<str>::from(name), self.next_turn());
        self.keys.insert(name.clone(), KeyState { turn, ..KeyState::default() });
        name
    }

    fn forget_keys(&mut self) {
        let Gate { keys, all, services, now, .. } = self;
        keys.retain(|key, state| {
            state.n_held > 0
                || state.tap.as_ref().is_some_and(|tap| !tap.bucket.is_full(*now))
                || all.has_lane(key)
                || services.values().any(|view| view.has_lane(key))
        });
        self.n_keys_max = KEYS_MAX.max(self.keys.len().saturating_mul(2));
    }

    /// The next turn; all jobs of one lane stand in order, and there are no turns.
    pub(crate) fn next_turn(&mut self) -> u64 {
        if self.takes_turns() {
            self.n_turns += 1;
        }
        self.n_turns
    }

    /// What a limit key may do now.
    pub(crate) fn standing(&self, lane: &str) -> Standing {
        let Some(state) = self.keys.get(lane) else { return Standing { is_open: true, turn: self.n_turns } };
        let max = self.limits.key_concurrency.filter(|_| !lane.is_empty());
        let has_slot = max.is_none_or(|max| state.n_held < as_usize(max));
        Standing { is_open: has_slot && Tap::is_open(state.tap.as_ref()), turn: state.turn }
    }

    /// Adds a ready job; `false` = the store may have some before it, and it is left there.
    pub(crate) fn insert(&mut self, limit_key: &str, service: &str, key: Key) -> bool {
        let lane = self.lane(limit_key);
        let standing = self.standing(&lane);
        let is_in = self.all.insert(&lane, key, standing);
        let view = self.services.get_mut(service);
        view.is_some_and(|view| view.insert(&lane, key, standing)) || is_in
    }

    pub(crate) fn remove(&mut self, limit_key: &str, service: &str, key: Key) {
        let lane = self.lane(limit_key);
        let standing = self.standing(&lane);
        self.all.remove(&lane, key, standing);
        if let Some(view) = self.services.get_mut(service) {
            view.remove(&lane, key, standing);
        }
    }

    /// A ready job is left to the store.
    pub(crate) fn cut(&mut self, limit_key: &str, service: &str, key: Key) {
        let lane = self.lane(limit_key);
        let standing = self.standing(&lane);
        self.all.cut(&lane, key, standing);
        if let Some(view) = self.services.get_mut(service) {
            view.cut(&lane, key, standing);
        }
    }

    /// Nothing is known any more of what is in the store.
    pub(crate) fn doubt(&mut self) {
        self.all.doubt();
        self.services.values_mut().for_each(View::doubt);
    }

    /// The store may have more than is known.
    pub(crate) fn doubt_rest(&mut self) {
        let turn = self.next_turn();
        self.all.doubt_rest(turn);
        self.services.values_mut().for_each(|view| view.doubt_rest(turn));
    }

    /// Nothing is known any more where there is nothing.
    pub(crate) fn doubt_empty(&mut self) {
        for view in [&mut self.all].into_iter().chain(self.services.values_mut()) {
            if view.len() == 0 && !view.is_filling() {
                view.doubt();
            }
        }
    }

    /// Somebody has one more of its jobs.
    pub(crate) fn hold(&mut self, limit_key: &str) {
        let lane = self.lane(limit_key);
        self.n_held += 1;
        self.key(&lane).n_held += 1;
        self.place(&lane);
    }

    /// Somebody has one less.
    pub(crate) fn free(&mut self, limit_key: &str) {
        let lane = self.lane(limit_key);
        self.n_held -= 1;
        self.key(&lane).n_held -= 1;
        self.place(&lane);
    }

    /// A job is handed out: tokens are spent, and its key has had its turn. When something opens again that is
    /// closed now.
    pub(crate) fn spend(&mut self, limit_key: &str, now: Timestamp) -> [Option<Opening>; 2] {
        self.now = self.now.max(now);
        let (lane, turn) = (self.lane(limit_key), self.next_turn());
        let key_rate = self.limits.key_rate.filter(|_| !lane.is_empty());
        if let Some(tap) = &mut self.tap {
            tap.spend(now);
        }
        let state = self.key(&lane);
        state.turn = turn;
        if let Some(rate) = key_rate {
            state.tap.get_or_insert_with(|| Tap::new(rate, now)).spend(now);
        }
        self.place(&lane);
        let key_tap = self.keys.get(&lane).and_then(|state| state.tap.as_ref());
        let opening = |tap: Option<&Tap>, lane| Some((tap?.opens_at?, lane));
        [opening(self.tap.as_ref(), None), opening(key_tap, Some(lane))]
    }

    /// When all can be used again of the rates that a job with this limit key counts for; the empty key is that of the
    /// whole queue.
    pub(crate) fn full_at(&self, limit_key: &str) -> [Option<(String, Timestamp)>; 2] {
        let full_at = |tap: Option<&Tap>| tap.map(|tap| tap.bucket.full_at());
        let of_key = self.keys.get(limit_key).and_then(|state| state.tap.as_ref());
        [
            full_at(self.tap.as_ref()).map(|at| (String::new(), at)),
            full_at(of_key).map(|at| (limit_key.to_owned(), at)),
        ]
    }

    /// As much of a rate is used up as was when somebody last said so.
    pub(crate) fn restore(&mut self, limit_key: &str, full_at: Timestamp, now: Timestamp) -> Option<Opening> {
        if limit_key.is_empty() {
            let (tap, rate) = (self.tap.as_mut()?, self.limits.rate?);
            tap.restore(rate, full_at, now);
            return Some((tap.opens_at?, None));
        }
        let (rate, lane) = (self.limits.key_rate?, self.lane(limit_key));
        let tap = self.key(&lane).tap.get_or_insert_with(|| Tap::new(rate, now));
        tap.restore(rate, full_at, now);
        let opens_at = tap.opens_at;
        self.place(&lane);
        Some((opens_at?, Some(lane)))
    }

    /// All that opens again some time.
    pub(crate) fn openings(&self) -> impl Iterator<Item = Opening> {
        let keys = self.keys.iter().filter_map(|(key, state)| Some((key, state.tap.as_ref()?)));
        let keys = keys.filter_map(|(key, tap)| Some((tap.opens_at?, Some(key.clone()))));
        self.tap.iter().filter_map(|tap| Some((tap.opens_at?, None))).chain(keys)
    }

    /// The moment of an opening has come. When it comes, if that is later.
    pub(crate) fn open(&mut self, lane: Option<&Arc<str>>, now: Timestamp) -> Option<Timestamp> {
        let tap = match lane {
            None => self.tap.as_mut(),
            Some(lane) => self.keys.get_mut(lane).and_then(|state| state.tap.as_mut()),
        };
        let tap = tap?;
        tap.look(now);
        let later = tap.opens_at;
        if let Some(lane) = lane {
            self.place(lane);
        }
        later
    }

    fn key(&mut self, lane: &Arc<str>) -> &mut KeyState {
        self.keys.entry(lane.clone()).or_default()
    }

    /// Puts the lanes of a key where they belong now.
    pub(crate) fn place(&mut self, lane: &str) {
        let standing = self.standing(lane);
        self.all.place(lane, standing);
        for view in self.services.values_mut() {
            view.place(lane, standing);
        }
    }
}

fn as_usize(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
