//! When to try again.

/// How long after its time-out a call may still answer before the watchdog fails the node.
pub const WATCHDOG_MS: u64 = 60_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Tries after the first.
    pub max: u32,
    pub delay_ms: u64,
    pub backoff: Backoff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backoff {
    #[default]
    Fixed,
    Exponential,
}
