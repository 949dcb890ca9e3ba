//! Where jobs wait.

use std::fmt;

use anyhow::{Result, anyhow, bail};
use windlass_queue::redis::Redis;

/// Where ready jobs wait for whoever claims them.
#[derive(Debug, Clone)]
pub(crate) enum Queue {
    /// In memory, over the store.
    Memory,
    Redis(Box<Redis>),
}

impl Queue {
    /// Reads what somebody wrote. What is secret in it is not repeated.
    pub(super) fn read(text: &str) -> Result<Queue> {
        match text {
            "memory" => Ok(Queue::Memory),
            address if address.starts_with("redis") => Redis::at(address)
                .map(Box::new)
                .map(Queue::Redis)
                .map_err(|error| anyhow!("--queue: {error}")),
            other => {
                let shown: String = other.chars().take(40).collect();
                bail!("`{shown}` is no queue: write memory, or an address such as redis://host:6379")
            }
        }
    }

    /// Redis, if jobs wait there.
    pub(crate) fn redis(&self) -> Option<&Redis> {
        match self {
            Queue::Memory => None,
            Queue::Redis(redis) => Some(redis),
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::Memory => f.write_str("memory"),
            Queue::Redis(redis) => redis.address().fmt(f),
        }
    }
}

impl PartialEq for Queue {
    fn eq(&self, other: &Self) -> bool {
        self.redis().map(Redis::address) == other.redis().map(Redis::address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_queue_is_refused_with_one_that_is() {
        let refused = |text: &str| Queue::read(text).unwrap_err().to_string();
        assert!(refused("kafka://k").contains("redis://host:6379"));
        assert!(refused("rediss://me:secret@h").contains("does not encrypt"));
        assert!(!refused("redis://me:secret@h/x").contains("secret"));
        assert_eq!(Queue::read("memory").unwrap(), Queue::Memory);
        assert_eq!(Queue::read("redis://me:secret@h").unwrap().to_string(), "redis://h:6379");
    }
}
