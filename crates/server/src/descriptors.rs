//! The descriptors of this process, shared between accepted connections and everything else: calls to workers, scripts
//! and the store. Connections never take the part of the others.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that connections never get: at least so many, and one of so many.
const RESERVED_MIN: u64 = 128;
const RESERVED_SHARE: u64 = 4;
/// With fewer connections a server is of no use.
const CONNECTIONS_MIN: u64 = 32;
/// More than any server uses; systems without a limit report the largest number.
const LIMIT_MAX: u64 = 1 << 20;

/// The shares of a process that may have so many descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorShares {
    pub limit: u64,
    pub connections: usize,
}

impl DescriptorShares {
    /// The shares within a limit: as many connections as wanted, if they leave a reserve.
    pub fn of(limit: u64, connections_wanted: usize) -> Result<Self, String> {
        let least = RESERVED_MIN + CONNECTIONS_MIN;
        if limit < least {
            return Err(format!(
                "this process may open {limit} files and needs at least {least}: raise the limit (ulimit -n, LimitNOFILE)"
            ));
        }
        let reserved = RESERVED_MIN.max(limit / RESERVED_SHARE);
        let most = usize::try_from(limit - reserved).unwrap_or(usize::MAX);
        Ok(DescriptorShares { limit, connections: connections_wanted.min(most) })
    }

    /// Descriptors that connections leave to calls, scripts and the store.
    pub fn reserved(&self) -> u64 {
        self.limit.saturating_sub(self.connections as u64)
    }
}

/// Raises the limit of this process as far as the system lets it; returns the limit now.
pub fn raise_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let (current, maximum) = (current.unwrap_or(LIMIT_MAX), maximum.unwrap_or(LIMIT_MAX).min(LIMIT_MAX));
    if current >= maximum {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(maximum), ..getrlimit(Resource::Nofile) }) {
        Ok(()) => maximum,
        Err(error) => {
            let error = io::Error::from(error);
            tracing::warn!(%error, "the limit of open files stays at {current}");
            current
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_a_reserve() {
        let shares = |limit, wanted| DescriptorShares::of(limit, wanted).map(|shares| shares.connections);
        assert_eq!(shares(20_000, 10_000), Ok(10_000));
        assert_eq!(shares(1_024, 10_000), Ok(768));
        assert_eq!(shares(256, 10_000), Ok(128));
        assert_eq!(shares(160, 10_000), Ok(32));
        assert_eq!(shares(1_024, 5), Ok(5));
        assert!(shares(159, 5).unwrap_err().contains("raise the limit"));
        assert_eq!(DescriptorShares::of(1_024, 10_000).unwrap().reserved(), 256);
    }
}
