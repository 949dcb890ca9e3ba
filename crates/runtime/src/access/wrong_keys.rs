//! Limits reads of the store for keys that do not exist: each address has a token bucket, and keys that exist take
//! nothing from it.

use std::collections::HashMap;
use std::time::Duration;

use windlass_engine::limit::Bucket;
use windlass_engine::time::Timestamp;

/// Unknown keys of an address in a second, and at once.
const RATE: u32 = 20;
const BURST: u32 = 200;
const SECOND_MS: u32 = 1_000;
/// Addresses that are remembered: all are forgotten when there are more.
const ADDRESSES_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct WrongKeys(HashMap<String, Bucket>);

impl WrongKeys {
    /// Whether the address may cause one more read; the error is the time until it may.
    pub(super) fn check(&self, address: &str, now: Timestamp) -> Result<(), Duration> {
        let Some(bucket) = self.0.get(address) else { return Ok(()) };
        bucket.clone().take(now, 1).map_err(|at| Duration::from_millis(at.since(now)))
    }

    /// Counts a read that found no key.
    pub(super) fn count(&mut self, address: &str, now: Timestamp) {
        if self.0.len() >= ADDRESSES_MAX && !self.0.contains_key(address) {
            self.0.clear();
        }
        let new = || Bucket::new(RATE, SECOND_MS, BURST, now);
        let bucket = self.0.entry(address.to_owned()).or_insert_with(new);
        // Reads that began at the same time may be more than there are tokens.
        bucket.take(now, 1).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_a_bounded_number_of_unknown_keys() {
        let (mut wrong, now) = (WrongKeys::default(), Timestamp(1_000_000));
        for _ in 0..BURST {
            assert_eq!(wrong.check("a", now), Ok(()));
            wrong.count("a", now);
        }
        assert_eq!(wrong.check("a", now), Err(Duration::from_millis(50)));
        assert_eq!(wrong.check("b", now), Ok(()));
        assert_eq!(wrong.check("a", now.after(50)), Ok(()));
        wrong.count("a", now.after(50));
        assert!(wrong.check("a", now.after(50)).is_err());
    }

    #[test]
    fn a_bounded_number_of_addresses_is_remembered() {
        let mut wrong = WrongKeys::default();
        for n in 0..ADDRESSES_MAX + 5 {
            wrong.count(&n.to_string(), Timestamp(0));
        }
        assert!(wrong.0.len() <= ADDRESSES_MAX);
    }
}
