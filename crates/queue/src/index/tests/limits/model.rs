//! The limits of a queue in their plainest form.

use std::collections::HashMap;

use windlass_engine::limit::Bucket;
use windlass_engine::time::Timestamp;
use windlass_store::queue::{QueueLimits, Rate};

/// The limits of the queue `a`, and their use so far.
pub(super) struct LimitsModel {
    pub(super) limits: QueueLimits,
    pub(super) bucket: Option<Bucket>,
    pub(super) keys: HashMap<String, Bucket>,
}

fn bucket(rate: Rate, now: Timestamp) -> Bucket {
    Bucket::new(rate.count, rate.per_ms, rate.burst.unwrap_or(rate.count), now)
}

impl LimitsModel {
    pub(super) fn set(&mut self, limits: QueueLimits, now: Timestamp) {
        if limits == self.limits {
            return;
        }
        let reshaped = |before: Option<Bucket>, rate: Rate| match before {
            Some(mut before) => {
                before.reshape(rate.count, rate.per_ms, rate.burst.unwrap_or(rate.count), now);
                before
            }
            None => bucket(rate, now),
        };
        self.bucket = limits.rate.map(|rate| reshaped(self.bucket.take(), rate));
        let keys = std::mem::take(&mut self.keys).into_iter();
        self.keys =
            keys.filter_map(|(key, one)| Some((key, reshaped(Some(one), limits.key_rate?)))).collect();
        self.limits = limits;
    }

    pub(super) fn rotates_limit_keys(&self) -> bool {
        self.limits.fair || self.limits.key_concurrency.is_some() || self.limits.key_rate.is_some()
    }

    pub(super) fn allows(&self, key: &str, held: &[String], now: Timestamp) -> bool {
        let n_of_key = held.iter().filter(|held| *held == key).count();
        let has_token = |bucket: Option<&Bucket>| bucket.is_none_or(|bucket| bucket.available(now) > 0);
        self.limits.concurrency.is_none_or(|max| held.len() < usize::try_from(max).unwrap())
            && has_token(self.bucket.as_ref())
            && (key.is_empty()
                || (self.limits.key_concurrency.is_none_or(|max| n_of_key < usize::try_from(max).unwrap())
                    && has_token(self.keys.get(key))))
    }

    pub(super) fn spend(&mut self, key: &str, now: Timestamp) {
        if let Some(bucket) = &mut self.bucket {
            bucket.take(now, 1).unwrap();
        }
        if let Some(rate) = self.limits.key_rate.filter(|_| !key.is_empty()) {
            let of_key = self.keys.entry(key.to_owned()).or_insert_with(|| bucket(rate, now));
            of_key.take(now, 1).unwrap();
        }
    }
}
