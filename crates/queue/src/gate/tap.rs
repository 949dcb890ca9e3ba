//! What is left of a rate.

use windlass_engine::limit::Bucket;
use windlass_engine::time::Timestamp;
use windlass_store::queue::Rate;

/// A bucket, and when there will be something in it if there is nothing.
#[derive(Debug)]
pub(super) struct Tap {
    pub(super) bucket: Bucket,
    pub(super) opens_at: Option<Timestamp>,
}

impl Tap {
    pub(super) fn new(rate: Rate, now: Timestamp) -> Self {
        let burst = rate.burst.unwrap_or(rate.count);
        Tap { bucket: Bucket::new(rate.count, rate.per_ms, burst, now), opens_at: None }
    }

    /// The same under another rate: what was used up stays so.
    pub(super) fn reshape(&mut self, rate: Rate, now: Timestamp) {
        self.bucket.reshape(rate.count, rate.per_ms, rate.burst.unwrap_or(rate.count), now);
        self.look(now);
    }

    /// As much is used up as was when somebody last said so, if that is more.
    pub(super) fn restore(&mut self, rate: Rate, full_at: Timestamp, now: Timestamp) {
        if full_at > self.bucket.full_at() {
            let burst = rate.burst.unwrap_or(rate.count);
            self.bucket = Bucket::full_by(rate.count, rate.per_ms, burst, full_at, now);
            self.look(now);
        }
    }

    pub(super) fn spend(&mut self, now: Timestamp) {
        // It was open, so there is a token; one that is missing is waited for.
        let _token = self.bucket.take(now, 1);
        self.look(now);
    }

    pub(super) fn look(&mut self, now: Timestamp) {
        self.opens_at = self.bucket.clone().take(now, 1).err();
    }

    pub(super) fn is_open(tap: Option<&Tap>) -> bool {
        tap.is_none_or(|tap| tap.opens_at.is_none())
    }
}
