//! The backend that holds ready jobs, as `--queue` names it.

use std::fmt;

use windlass_queue::redis::Redis;

/// The backend that holds ready jobs until workers claim them.
#[derive(Debug, Clone)]
pub(crate) enum QueueBackend {
    /// An index in memory over the store.
    Memory,
    Redis(Box<Redis>),
}

impl QueueBackend {
    /// Reads `memory` or `redis://…`. An error does not repeat a password.
    pub(super) fn parse(text: &str) -> Result<QueueBackend, String> {
        match text {
            "memory" => Ok(QueueBackend::Memory),
            address if address.starts_with("redis") => {
                Redis::at(address).map(Box::new).map(QueueBackend::Redis).map_err(|error| error.to_string())
            }
            other => {
                let shown: String = other.chars().take(40).collect();
                Err(format!("`{shown}` is no queue: write memory, or an address such as redis://host:6379"))
            }
        }
    }

    /// The Redis client, if Redis holds the jobs.
    pub(crate) fn redis(&self) -> Option<&Redis> {
        match self {
            QueueBackend::Memory => None,
            QueueBackend::Redis(redis) => Some(redis),
        }
    }
}

impl fmt::Display for QueueBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueBackend::Memory => f.write_str("memory"),
            QueueBackend::Redis(redis) => redis.address().fmt(f),
        }
    }
}

impl PartialEq for QueueBackend {
    fn eq(&self, other: &Self) -> bool {
        self.redis().map(Redis::address) == other.redis().map(Redis::address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_queue_is_refused_with_the_form_of_a_right_one() {
        let refused = |text: &str| QueueBackend::parse(text).unwrap_err();
        assert!(refused("kafka://k").contains("redis://host:6379"));
        assert_eq!(QueueBackend::parse("rediss://me:secret@h").unwrap().to_string(), "rediss://h:6379");
        assert!(!refused("redis://me:secret@h/x").contains("secret"));
        assert_eq!(QueueBackend::parse("memory").unwrap(), QueueBackend::Memory);
        assert_eq!(QueueBackend::parse("redis://me:secret@h").unwrap().to_string(), "redis://h:6379");
    }
}
