//! Token bucket of a rate limit.

use windlass_engine::limit::Bucket;
use windlass_engine::time::Timestamp;
use windlass_store::queue::Rate;

/// A bucket, and its refill time while it is empty.
#[derive(Debug)]
pub(super) struct TokenBucket {
    pub(super) tokens: Bucket,
    pub(super) refill_at: Option<Timestamp>,
}

impl TokenBucket {
    pub(super) fn new(rate: Rate, now: Timestamp) -> Self {
        let burst = rate.burst.unwrap_or(rate.count);
        TokenBucket { tokens: Bucket::new(rate.count, rate.per_ms, burst, now), refill_at: None }
    }

    /// Changes the rate; spent tokens stay spent.
    pub(super) fn change_rate(&mut self, rate: Rate, now: Timestamp) {
        self.tokens.reshape(rate.count, rate.per_ms, rate.burst.unwrap_or(rate.count), now);
        self.update_refill_time(now);
    }

    /// Restores a stored state if more tokens were spent in it.
    pub(super) fn restore(&mut self, rate: Rate, full_at: Timestamp, now: Timestamp) {
        if full_at > self.tokens.full_at() {
            let burst = rate.burst.unwrap_or(rate.count);
            self.tokens = Bucket::full_by(rate.count, rate.per_ms, burst, full_at, now);
            self.update_refill_time(now);
        }
    }

    pub(super) fn spend(&mut self, now: Timestamp) {
        // The bucket had a token when the job was chosen; a missing one only delays the refill time.
        let _token = self.tokens.take(now, 1);
        self.update_refill_time(now);
    }

    pub(super) fn update_refill_time(&mut self, now: Timestamp) {
        self.refill_at = self.tokens.clone().take(now, 1).err();
    }

    pub(super) fn has_token(bucket: Option<&TokenBucket>) -> bool {
        bucket.is_none_or(|bucket| bucket.refill_at.is_none())
    }
}
