//! The trace of a world: a hash of all commits in order. Two plays of a seed must have the same.

use windlass_engine::time::Timestamp;

pub struct SimTrace {
    hash: u64,
    n_commits: u64,
}

impl Default for SimTrace {
    fn default() -> Self {
        SimTrace { hash: 0xcbf2_9ce4_8422_2325, n_commits: 0 }
    }
}

impl SimTrace {
    /// Mixes a commit into the trace.
    pub fn mix(&mut self, bytes: &[u8], now: Timestamp) {
        self.n_commits += 1;
        for byte in bytes.iter().chain(&now.0.to_le_bytes()) {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn n_commits(&self) -> u64 {
        self.n_commits
    }
}
