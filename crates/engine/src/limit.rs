//! Limits of a queue: starts per window (`Bucket`), jobs at a time (`Slots`).
//!
//! Both are values: the caller keeps them, and passes the time in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::{LATEST, Timestamp};

/// A token bucket: `rate` tokens drip in per `window_ms`, and at most `burst` are saved up.
///
/// Kept in whole parts of a token (`1 / window_ms`), so that nothing is ever rounded away or made up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    rate: u32,
    window_ms: u32,
    burst: u32,
    parts: u64,
    filled_at: Timestamp,
}

impl Bucket {
    /// A full bucket. A window of zero is taken as one millisecond.
    pub fn new(rate: u32, window_ms: u32, burst: u32, now: Timestamp) -> Self {
        let mut bucket = Self { rate, window_ms: window_ms.max(1), burst, parts: 0, filled_at: now };
        bucket.parts = bucket.parts_max();
        bucket
    }

    /// Takes `n` tokens, or says when they will be there if no other caller takes any; [`LATEST`] means never.
    pub fn take(&mut self, now: Timestamp, n: u32) -> Result<(), Timestamp> {
        self.fill(now);
        let wanted = u64::from(n) * u64::from(self.window_ms);
        if let Some(rest) = self.parts.checked_sub(wanted) {
            self.parts = rest;
            return Ok(());
        }
        if n > self.burst || self.rate == 0 {
            return Err(LATEST);
        }
        Err(self.filled_at.after((wanted - self.parts).div_ceil(u64::from(self.rate))))
    }

    /// Whole tokens that can be taken at `now`.
    pub fn available(&self, now: Timestamp) -> u32 {
        let mut filled = self.clone();
        filled.fill(now);
        u32::try_from(filled.parts / u64::from(filled.window_ms)).unwrap_or(u32::MAX)
    }

    /// A bucket that will be full at `full_at` if no caller takes any token: the stored form of a bucket.
    pub fn full_by(rate: u32, window_ms: u32, burst: u32, full_at: Timestamp, now: Timestamp) -> Self {
        let mut bucket = Self::new(rate, window_ms, burst, now);
        let missing = full_at.since(now).saturating_mul(u64::from(rate));
        bucket.parts = bucket.parts.saturating_sub(missing);
        bucket
    }

    /// When it will be full if no caller takes any token; [`LATEST`] means never. Every taken token makes it later.
    pub fn full_at(&self) -> Timestamp {
        let missing = self.parts_max() - self.parts;
        match missing.div_ceil(u64::from(self.rate.max(1))) {
            0 => self.filled_at,
            _ if self.rate == 0 => LATEST,
            ms => self.filled_at.after(ms),
        }
    }

    /// Whether nothing of it is used up at `now`.
    pub fn is_full(&self, now: Timestamp) -> bool {
        let mut filled = self.clone();
        filled.fill(now);
        filled.parts == filled.parts_max()
    }

    /// Changes the limit and keeps the consumption so far.
    pub fn reshape(&mut self, rate: u32, window_ms: u32, burst: u32, now: Timestamp) {
        self.fill(now);
        let missing = (self.parts_max() - self.parts) / u64::from(self.window_ms);
        *self = Self::new(rate, window_ms, burst, self.filled_at);
        self.parts = self.parts.saturating_sub(missing.saturating_mul(u64::from(self.window_ms)));
    }

    fn parts_max(&self) -> u64 {
        u64::from(self.burst) * u64::from(self.window_ms)
    }

    /// A clock that went back drips nothing until it has caught up: time is never counted twice.
    fn fill(&mut self, now: Timestamp) {
        let dripped = now.since(self.filled_at).saturating_mul(u64::from(self.rate));
        self.parts = self.parts.saturating_add(dripped).min(self.parts_max());
        self.filled_at = self.filled_at.max(now);
    }
}

/// Jobs at a time. Slots belong to leases, never to a counter: a dead worker's slots come back when
/// its lease runs out, and giving back twice changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    limit: usize,
    held: BTreeMap<String, Timestamp>,
}

impl Slots {
    /// `limit` free slots.
    pub fn new(limit: usize) -> Self {
        Self { limit, held: BTreeMap::new() }
    }

    /// Takes a slot for `lease` until `expires_at`, or moves the end of one it already holds. When all are taken,
    /// says when the first could come free on its own; [`LATEST`] means never (the limit is zero).
    pub fn acquire(&mut self, lease: &str, expires_at: Timestamp, now: Timestamp) -> Result<(), Timestamp> {
        self.expire(now);
        if let Some(end) = self.held.get_mut(lease) {
            *end = expires_at;
            return Ok(());
        }
        if self.held.len() >= self.limit {
            return Err(self.next_expiry());
        }
        if expires_at > now {
            self.held.insert(lease.to_owned(), expires_at);
        }
        Ok(())
    }

    /// Gives back the slots of `lease`; whether it held any.
    pub fn release(&mut self, lease: &str) -> bool {
        self.held.remove(lease).is_some()
    }

    /// Frees the slots of leases that have run out; how many.
    pub fn expire(&mut self, now: Timestamp) -> usize {
        let before = self.held.len();
        self.held.retain(|_, expires_at| *expires_at > now);
        before - self.held.len()
    }

    /// Changes the limit. Held slots stay held; no new one is given until enough have been given back.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Slots in use at `now`.
    pub fn used(&self, now: Timestamp) -> usize {
        self.held.values().filter(|expires_at| **expires_at > now).count()
    }

    /// When enough leases have run out for one more to fit.
    fn next_expiry(&self) -> Timestamp {
        if self.limit == 0 {
            return LATEST;
        }
        let mut ends: Vec<Timestamp> = self.held.values().copied().collect();
        ends.sort_unstable();
        ends.get(self.held.len() - self.limit).copied().unwrap_or(LATEST)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::new(10, 1_000, 3, Timestamp(0));
        for _ in 0..3 {
            assert_eq!(bucket.take(Timestamp(0), 1), Ok(()));
        }
        assert_eq!(bucket.take(Timestamp(0), 1), Err(Timestamp(100)));
        assert_eq!(bucket.take(Timestamp(99), 1), Err(Timestamp(100)));
        assert_eq!(bucket.take(Timestamp(100), 1), Ok(()));
        assert_eq!(bucket.available(Timestamp(1_000_000)), 3);
    }

    #[test]
    fn a_wait_that_cannot_end_says_never() {
        let mut bucket = Bucket::new(10, 1_000, 3, Timestamp(0));
        assert_eq!(bucket.take(Timestamp(0), 4), Err(LATEST));
        let mut dry = Bucket::new(0, 0, 1, Timestamp(0));
        assert_eq!(dry.take(Timestamp(0), 1), Ok(()));
        assert_eq!(dry.take(Timestamp(i64::MAX), 1), Err(LATEST));
    }

    #[test]
    fn a_clock_that_goes_back_and_forth_drips_once() {
        let mut bucket = Bucket::new(1, 1_000, 5, Timestamp(0));
        bucket.take(Timestamp(0), 5).unwrap();
        assert_eq!(bucket.take(Timestamp(1_000), 1), Ok(()));
        assert_eq!(bucket.take(Timestamp(0), 1), Err(Timestamp(2_000)));
        assert_eq!(bucket.take(Timestamp(1_000), 1), Err(Timestamp(2_000)));
    }

    #[test]
    fn a_new_shape_forgives_nothing_that_was_used() {
        let mut bucket = Bucket::new(1, 1_000, 10, Timestamp(0));
        bucket.take(Timestamp(0), 8).unwrap();
        bucket.reshape(1, 500, 20, Timestamp(0));
        assert_eq!(bucket.available(Timestamp(0)), 12);
    }

    #[test]
    fn a_remembered_bucket_gives_no_more_than_it_would_have() {
        for n_taken in 0..=7 {
            let mut bucket = Bucket::new(3, 1_000, 7, Timestamp(0));
            bucket.take(Timestamp(0), n_taken).unwrap();
            for now in [0, 1, 333, 334, 5_000].map(Timestamp) {
                let again = Bucket::full_by(3, 1_000, 7, bucket.full_at(), now);
                let (n, n_again) = (bucket.available(now), again.available(now));
                assert!(n_again <= n && n_again + 1 >= n, "{n_taken} {now:?}: {n_again} of {n}");
                assert!(again.full_at() <= bucket.full_at().max(now));
            }
        }
        assert_eq!(Bucket::new(0, 5, 1, Timestamp(3)).full_at(), Timestamp(3));
    }

    #[test]
    fn a_dead_owner_gives_its_slot_back() {
        let mut slots = Slots::new(1);
        assert_eq!(slots.acquire("a", Timestamp(10), Timestamp(0)), Ok(()));
        assert_eq!(slots.acquire("b", Timestamp(20), Timestamp(5)), Err(Timestamp(10)));
        assert_eq!(slots.acquire("a", Timestamp(15), Timestamp(5)), Ok(()));
        assert_eq!(slots.acquire("b", Timestamp(20), Timestamp(15)), Ok(()));
        assert!(!slots.release("a"));
        assert!(slots.release("b"));
        assert_eq!(slots.used(Timestamp(15)), 0);
    }

    #[test]
    fn a_lowered_limit_waits_for_enough_to_leave() {
        let mut slots = Slots::new(3);
        for (lease, end) in [("a", 10), ("b", 20), ("c", 30)] {
            slots.acquire(lease, Timestamp(end), Timestamp(0)).unwrap();
        }
        slots.set_limit(1);
        assert_eq!(slots.acquire("d", Timestamp(99), Timestamp(0)), Err(Timestamp(30)));
        slots.set_limit(0);
        assert_eq!(slots.acquire("d", Timestamp(99), Timestamp(0)), Err(LATEST));
    }

    proptest! {
        #[test]
        fn a_bucket_never_gives_more_than_its_limit_and_never_sticks(
            rate in 1u32..50, window_ms in 1u32..5_000, burst in 1u32..20,
            asks in prop::collection::vec((0u64..3_000, 1u32..5), 1..80),
        ) {
            let mut bucket = Bucket::new(rate, window_ms, burst, Timestamp(0));
            let mut now = Timestamp(0);
            let mut given: Vec<(Timestamp, u32)> = Vec::new();
            for (gap, n) in asks {
                now = now.after(gap);
                match bucket.take(now, n) {
                    Ok(()) => given.push((now, n)),
                    Err(at) if n <= burst => {
                        prop_assert!(at > now);
                        // One millisecond earlier is too early; the moment itself is not.
                        prop_assert!(bucket.clone().take(Timestamp(at.0 - 1), n).is_err());
                        prop_assert_eq!(bucket.clone().take(at, n), Ok(()));
                    }
                    Err(at) => prop_assert_eq!(at, LATEST),
                }
            }
            for (i, (from, _)) in given.iter().enumerate() {
                let mut sum = 0u64;
                for (to, n) in &given[i..] {
                    sum += u64::from(*n);
                    let dripped = to.since(*from) * u64::from(rate) / u64::from(window_ms);
                    prop_assert!(sum <= u64::from(burst) + dripped);
                }
            }
        }

        #[test]
        fn slots_are_never_over_the_limit_and_never_leak(
            limit in 1usize..6,
            steps in prop::collection::vec((0u8..3, 0u8..10, 0u64..50, 1u64..100), 1..120),
        ) {
            let mut slots = Slots::new(limit);
            let mut now = Timestamp(0);
            for (what, who, gap, length) in steps {
                now = now.after(gap);
                let lease = format!("lease-{who}");
                if what == 0 {
                    slots.release(&lease);
                } else if let Err(at) = slots.acquire(&lease, now.after(length), now) {
                    prop_assert_eq!(slots.used(now), limit);
                    prop_assert!(at > now);
                    prop_assert_eq!(slots.clone().acquire(&lease, at.after(1), at), Ok(()));
                }
                prop_assert!(slots.used(now) <= limit);
            }
            prop_assert_eq!(slots.used(now.after(100)), 0);
        }
    }
}
