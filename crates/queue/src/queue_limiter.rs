//! Limits of one queue: held jobs, token buckets, and the rotation of its limit keys.
//!
//! Only jobs that workers hold are counted: a job that leaves for any reason releases its slot. A token is spent when a
//! job is dispatched, even if the claim fails afterwards.

mod shared;
mod token_bucket;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;
use windlass_store::queue::{QueueLimits, Rate};

use crate::limited_ready_list::{LaneState, LimitedReadyList};
use crate::ready_list::{ListHead, ReadyKey};

use token_bucket::TokenBucket;

/// Limit keys that are kept at least, even if they are unused.
const KEYS_MAX: usize = 10_000;
/// Services with lists of their own that are kept at least.
const SERVICES_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) struct QueueLimiter {
    limits: QueueLimits,
    /// Identifies this limiter among the limiters that the queue has had.
    pub(crate) limiter_id: u64,
    /// Identifies the current count of held jobs; a recount gets a new one.
    pub(crate) count_id: u64,
    /// Whether the held jobs are known. Nothing is dispatched before that.
    pub(crate) is_counted: bool,
    pub(crate) is_count_read_open: bool,
    /// Set if other servers dispatch jobs of the queue too: the stored turn up to which the count is valid. Each
    /// dispatch takes a turn.
    turns: Option<u64>,
    counted_at: Timestamp,
    n_held: usize,
    bucket: Option<TokenBucket>,
    keys: HashMap<Arc<str>, LimitKeyState>,
    n_keys_max: usize,
    n_turns: u64,
    /// The latest time that the limiter was given.
    now: Timestamp,
    /// Jobs whose claims are not yet durable.
    pub(crate) taken: HashSet<JobId>,
    pub(crate) all: LimitedReadyList,
    pub(crate) services: HashMap<String, LimitedReadyList>,
    n_services_max: usize,
}

/// The state of one limit key.
#[derive(Debug, Default)]
struct LimitKeyState {
    turn: u64,
    n_held: usize,
    bucket: Option<TokenBucket>,
}

/// When the bucket of the queue, or of one of its limit keys, has a token again.
pub(crate) type RefillTime = (Timestamp, Option<Arc<str>>);

impl QueueLimiter {
    /// A limiter that takes over the buckets of its predecessor. Its ready jobs and held jobs are unknown.
    pub(crate) fn new(
        limits: QueueLimits,
        before: Option<QueueLimiter>,
        limiter_id: u64,
        is_shared: bool,
        now: Timestamp,
    ) -> Self {
        let (bucket, keys) = before.map(|before| (before.bucket, before.keys)).unwrap_or_default();
        let reshaped = |bucket: Option<TokenBucket>, rate: Rate| match bucket {
            Some(mut bucket) => {
                bucket.change_rate(rate, now);
                bucket
            }
            None => TokenBucket::new(rate, now),
        };
        let key_of = |(key, state): (Arc<str>, LimitKeyState)| {
            let bucket = Some(reshaped(Some(state.bucket?), limits.key_rate?));
            Some((key, LimitKeyState { bucket, ..LimitKeyState::default() }))
        };
        QueueLimiter {
            limiter_id,
            count_id: limiter_id,
            is_counted: !is_shared && limits.concurrency.is_none() && limits.key_concurrency.is_none(),
            is_count_read_open: false,
            turns: is_shared.then_some(0),
            counted_at: now,
            n_held: 0,
            bucket: limits.rate.map(|rate| reshaped(bucket, rate)),
            keys: keys.into_iter().filter_map(key_of).collect(),
            n_keys_max: KEYS_MAX,
            n_turns: 0,
            now,
            taken: HashSet::new(),
            all: LimitedReadyList::default(),
            services: HashMap::new(),
            n_services_max: SERVICES_MAX,
            limits,
        }
    }

    pub(crate) fn limits(&self) -> &QueueLimits {
        &self.limits
    }

    /// Whether a limit depends on the held jobs.
    pub(crate) fn counts_held(&self) -> bool {
        self.limits.concurrency.is_some() || self.limits.key_concurrency.is_some()
    }

    /// Whether limit keys are served in rotation; otherwise all jobs are in one lane.
    pub(crate) fn rotates_limit_keys(&self) -> bool {
        let QueueLimits { key_concurrency, key_rate, fair, .. } = &self.limits;
        *fair || key_concurrency.is_some() || key_rate.is_some()
    }

    /// Whether the limits of the whole queue allow another job.
    pub(crate) fn has_capacity(&self) -> bool {
        let has_slot = self.limits.concurrency.is_none_or(|max| self.n_held < as_usize(max));
        self.is_counted && has_slot && TokenBucket::has_token(self.bucket.as_ref())
    }

    /// Whether a job with this limit key may be dispatched, as far as is known.
    pub(crate) fn has_capacity_for(&self, limit_key: &str) -> bool {
        let lane = if self.rotates_limit_keys() { limit_key } else { "" };
        !self.is_counted || (self.has_capacity() && self.lane_state(lane).has_capacity)
    }

    /// The ready jobs of the queue, or of one service in it.
    pub(crate) fn list(&self, service: Option<&str>) -> Option<&LimitedReadyList> {
        match service {
            None => Some(&self.all),
            Some(service) => self.services.get(service),
        }
    }

    /// The same, created if absent. Beyond the limit, empty lists are dropped.
    pub(crate) fn list_mut(&mut self, service: Option<&str>) -> &mut LimitedReadyList {
        let Some(service) = service else { return &mut self.all };
        if !self.services.contains_key(service) {
            if self.services.len() >= self.n_services_max {
                self.services.retain(|_, list| list.len() > 0 || list.is_being_read());
                self.n_services_max = SERVICES_MAX.max(self.services.len().saturating_mul(2));
            }
            self.services.insert(service.to_owned(), LimitedReadyList::default());
        }
        self.services.get_mut(service).expect("it was there or was just made")
    }

    /// The first element; `None` if no job may be dispatched now, neither from here nor from the store.
    pub(crate) fn head(&self, service: Option<&str>) -> Option<ListHead> {
        if !self.is_counted {
            return Some(ListHead::AskStore);
        }
        if !self.has_capacity() {
            return None;
        }
        self.list(service).map_or(Some(ListHead::AskStore), LimitedReadyList::head)
    }

    /// The first known job of a run below a priority; `None` if it may not be dispatched now.
    pub(crate) fn run_below(&self, service: Option<&str>, priority: i32) -> Option<ReadyKey> {
        let has_capacity = self.is_counted && self.has_capacity() && self.lane_state("").has_capacity;
        self.list(service).filter(|_| has_capacity)?.runs.below(priority)
    }

    /// The first plain job; `None` if it may not be dispatched now, or if the store may have one before it.
    pub(crate) fn first_plain(&self, service: Option<&str>) -> Option<ReadyKey> {
        let has_capacity = self.is_counted && self.has_capacity();
        self.list(service).filter(|_| has_capacity)?.first_plain(self.lane_state("").has_capacity)
    }

    /// Whether the store must be read before `n` jobs can be dispatched, and no read is open.
    pub(crate) fn needs_read(&self, service: Option<&str>, n: usize) -> bool {
        if !self.is_counted {
            return !self.is_count_read_open;
        }
        self.has_capacity() && self.list(service).is_none_or(|list| list.needs_read(n))
    }

    /// The lane of a job with this limit key.
    pub(crate) fn lane(&mut self, limit_key: &str) -> Arc<str> {
        let name = if self.rotates_limit_keys() { limit_key } else { "" };
        if let Some((name, _)) = self.keys.get_key_value(name) {
            return name.clone();
        }
        if self.keys.len() >= self.n_keys_max {
            self.forget_keys();
        }
        let (name, turn) = (Arc::<str>::from(name), self.next_turn());
        self.keys.insert(name.clone(), LimitKeyState { turn, ..LimitKeyState::default() });
        name
    }

    fn forget_keys(&mut self) {
        let QueueLimiter { keys, all, services, now, .. } = self;
        keys.retain(|key, state| {
            state.n_held > 0
                || state.bucket.as_ref().is_some_and(|bucket| !bucket.tokens.is_full(*now))
                || all.has_lane(key)
                || services.values().any(|list| list.has_lane(key))
        });
        self.n_keys_max = KEYS_MAX.max(self.keys.len().saturating_mul(2));
    }

    /// The next turn number. Without rotation the number stays the same.
    pub(crate) fn next_turn(&mut self) -> u64 {
        if self.rotates_limit_keys() {
            self.n_turns += 1;
        }
        self.n_turns
    }

    /// The capacity and the last turn of a lane.
    pub(crate) fn lane_state(&self, lane: &str) -> LaneState {
        let Some(state) = self.keys.get(lane) else {
            return LaneState { has_capacity: true, turn: self.n_turns };
        };
        let max = self.limits.key_concurrency.filter(|_| !lane.is_empty());
        let has_slot = max.is_none_or(|max| state.n_held < as_usize(max));
        LaneState {
            has_capacity: has_slot && TokenBucket::has_token(state.bucket.as_ref()),
            turn: state.turn,
        }
    }

    /// Adds a ready job; `false` if the store may have jobs before it, so that it stays there.
    pub(crate) fn insert(&mut self, limit_key: &str, service: &str, key: ReadyKey) -> bool {
        let lane = self.lane(limit_key);
        let lane_state = self.lane_state(&lane);
        let is_in = self.all.insert(&lane, key, lane_state);
        let list = self.services.get_mut(service);
        list.is_some_and(|list| list.insert(&lane, key, lane_state)) || is_in
    }

    pub(crate) fn remove(&mut self, limit_key: &str, service: &str, key: ReadyKey) {
        let lane = self.lane(limit_key);
        let lane_state = self.lane_state(&lane);
        self.all.remove(&lane, key, lane_state);
        if let Some(list) = self.services.get_mut(service) {
            list.remove(&lane, key, lane_state);
        }
    }

    /// Leaves a ready job to the store.
    pub(crate) fn cut(&mut self, limit_key: &str, service: &str, key: ReadyKey) {
        let lane = self.lane(limit_key);
        let lane_state = self.lane_state(&lane);
        self.all.cut(&lane, key, lane_state);
        if let Some(list) = self.services.get_mut(service) {
            list.cut(&lane, key, lane_state);
        }
    }

    /// Forgets the known range of all lists.
    pub(crate) fn invalidate(&mut self) {
        self.all.invalidate();
        self.services.values_mut().for_each(LimitedReadyList::invalidate);
    }

    /// The store may have more jobs than are known.
    pub(crate) fn invalidate_rest(&mut self) {
        let turn = self.next_turn();
        self.all.invalidate_rest(turn);
        self.services.values_mut().for_each(|list| list.invalidate_rest(turn));
    }

    /// Forgets the known range of empty lists.
    pub(crate) fn invalidate_empty(&mut self) {
        for list in [&mut self.all].into_iter().chain(self.services.values_mut()) {
            if list.len() == 0 && !list.is_being_read() {
                list.invalidate();
            }
        }
    }

    /// Counts one more held job.
    pub(crate) fn hold(&mut self, limit_key: &str) {
        let lane = self.lane(limit_key);
        self.n_held += 1;
        self.key(&lane).n_held += 1;
        self.reposition(&lane);
    }

    /// Counts one held job less.
    pub(crate) fn free(&mut self, limit_key: &str) {
        let lane = self.lane(limit_key);
        self.n_held -= 1;
        self.key(&lane).n_held -= 1;
        self.reposition(&lane);
    }

    /// Records a dispatched job: spends tokens and moves its limit key to the end of the rotation. Returns the refill
    /// times of buckets that are empty now.
    pub(crate) fn spend(&mut self, limit_key: &str, now: Timestamp) -> [Option<RefillTime>; 2] {
        self.now = self.now.max(now);
        let (lane, turn) = (self.lane(limit_key), self.next_turn());
        let key_rate = self.limits.key_rate.filter(|_| !lane.is_empty());
        if let Some(bucket) = &mut self.bucket {
            bucket.spend(now);
        }
        let state = self.key(&lane);
        state.turn = turn;
        if let Some(rate) = key_rate {
            state.bucket.get_or_insert_with(|| TokenBucket::new(rate, now)).spend(now);
        }
        self.reposition(&lane);
        let key_bucket = self.keys.get(&lane).and_then(|state| state.bucket.as_ref());
        let refill_time = |bucket: Option<&TokenBucket>, lane| Some((bucket?.refill_at?, lane));
        [refill_time(self.bucket.as_ref(), None), refill_time(key_bucket, Some(lane))]
    }

    /// When the buckets that a job with this limit key uses are full again; the empty key stands for the whole queue.
    pub(crate) fn full_at(&self, limit_key: &str) -> [Option<(String, Timestamp)>; 2] {
        let full_at = |bucket: Option<&TokenBucket>| bucket.map(|bucket| bucket.tokens.full_at());
        let of_key = self.keys.get(limit_key).and_then(|state| state.bucket.as_ref());
        [
            full_at(self.bucket.as_ref()).map(|at| (String::new(), at)),
            full_at(of_key).map(|at| (limit_key.to_owned(), at)),
        ]
    }

    /// Restores the stored state of a bucket. Returns its refill time if it is empty.
    pub(crate) fn restore(
        &mut self,
        limit_key: &str,
        full_at: Timestamp,
        now: Timestamp,
    ) -> Option<RefillTime> {
        if limit_key.is_empty() {
            let (bucket, rate) = (self.bucket.as_mut()?, self.limits.rate?);
            bucket.restore(rate, full_at, now);
            return Some((bucket.refill_at?, None));
        }
        let (rate, lane) = (self.limits.key_rate?, self.lane(limit_key));
        let bucket = self.key(&lane).bucket.get_or_insert_with(|| TokenBucket::new(rate, now));
        bucket.restore(rate, full_at, now);
        let refill_at = bucket.refill_at;
        self.reposition(&lane);
        Some((refill_at?, Some(lane)))
    }

    /// The refill times of all empty buckets.
    pub(crate) fn refill_times(&self) -> impl Iterator<Item = RefillTime> {
        let keys = self.keys.iter().filter_map(|(key, state)| Some((key, state.bucket.as_ref()?)));
        let keys = keys.filter_map(|(key, bucket)| Some((bucket.refill_at?, Some(key.clone()))));
        self.bucket.iter().filter_map(|bucket| Some((bucket.refill_at?, None))).chain(keys)
    }

    /// Refills a bucket whose time has come. Returns the new refill time if it is still empty.
    pub(crate) fn refill(&mut self, lane: Option<&Arc<str>>, now: Timestamp) -> Option<Timestamp> {
        let bucket = match lane {
            None => self.bucket.as_mut(),
            Some(lane) => self.keys.get_mut(lane).and_then(|state| state.bucket.as_mut()),
        };
        let bucket = bucket?;
        bucket.update_refill_time(now);
        let later = bucket.refill_at;
        if let Some(lane) = lane {
            self.reposition(lane);
        }
        later
    }

    fn key(&mut self, lane: &Arc<str>) -> &mut LimitKeyState {
        self.keys.entry(lane.clone()).or_default()
    }

    /// Moves the lanes of a limit key to their positions.
    pub(crate) fn reposition(&mut self, lane: &str) {
        let lane_state = self.lane_state(lane);
        self.all.reposition(lane, lane_state);
        for list in self.services.values_mut() {
            list.reposition(lane, lane_state);
        }
    }
}

fn as_usize(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
