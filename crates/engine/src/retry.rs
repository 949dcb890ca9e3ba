//! Retry delays and kinds of failures.

mod fingerprint;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::mix;
use crate::limits;

/// How long after its time-out a call may still answer before the watchdog fails the node.
pub const WATCHDOG_MS: u64 = 60_000;
/// The longest delay between two tries when a policy names none: a caller that wants more than an hour has to say so.
pub const CAP_MS_DEFAULT: u64 = 3_600_000;

/// The longest pause that a failing worker may ask for: as long as the longest automatic delay.
pub const RETRY_AFTER_MS_MAX: u64 = CAP_MS_DEFAULT;

/// How often, and after which delays, something is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Tries after the first.
    pub max: u32,
    pub delay_ms: u64,
    pub backoff: Backoff,
    /// The longest delay before jitter; 0 = [`CAP_MS_DEFAULT`]. A fixed delay is never capped: its author chose it.
    pub cap_ms: u64,
    /// Spreads delays over `[d, d + d/2]`, so that calls that failed together do not retry together.
    pub jitter: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    #[default]
    Fixed,
    Exponential,
}

impl Policy {
    /// The delay before the next try when `n_failed` tries (at least one) have failed. The same arguments always
    /// give the same delay; `seed` should differ between the things that fail together.
    pub fn delay_ms_after(&self, n_failed: u32, seed: u64) -> u64 {
        let whole = match self.backoff {
            Backoff::Fixed => self.delay_ms,
            Backoff::Exponential => {
                let cap = if self.cap_ms == 0 { CAP_MS_DEFAULT } else { self.cap_ms };
                let factor = 1u64.checked_shl(n_failed.saturating_sub(1)).unwrap_or(u64::MAX);
                self.delay_ms.saturating_mul(factor).min(cap)
            }
        };
        if !self.jitter {
            return whole;
        }
        // On top: the delay that was set is the shortest one.
        whole.saturating_add(mix(seed ^ mix(u64::from(n_failed))) % (whole / 2).saturating_add(1))
    }
}

/// The kind of a failure; it decides whether a retry can help, and edges and people select by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The worker said so.
    Error,
    /// The worker could not be reached, or the connection broke.
    Transport,
    /// No answer in time.
    Timeout,
    /// No worker serves the service.
    NoWorker,
    /// The lease expired or the worker died.
    Lost,
    Canceled,
    /// The account could not pay.
    Balance,
    /// The run's budget would be passed.
    Budget,
    /// Silence long after the time-out.
    Watchdog,
    /// It was lost so often that it is suspected of killing its workers.
    Poison,
    /// The node cannot use its input: not an array, not a moment.
    Input,
    /// One of the engine's limits was reached.
    Limit,
    /// It may or may not have been executed, and it must not be executed twice.
    Unknown,
}

impl FaultKind {
    /// Whether the same thing may well succeed a moment later.
    pub fn is_temporary(self) -> bool {
        match self {
            FaultKind::Transport | FaultKind::Timeout | FaultKind::NoWorker | FaultKind::Lost => true,
            FaultKind::Error
            | FaultKind::Canceled
            | FaultKind::Balance
            | FaultKind::Budget
            | FaultKind::Watchdog
            | FaultKind::Poison
            | FaultKind::Input
            | FaultKind::Limit
            | FaultKind::Unknown => false,
        }
    }

    /// Whether a retry makes sense by default: a temporary fault or a worker's error.
    pub fn is_retryable(self) -> bool {
        self.is_temporary() || self == FaultKind::Error
    }

    /// The word used on the wire.
    pub fn word(self) -> &'static str {
        match self {
            FaultKind::Error => "error",
            FaultKind::Transport => "transport",
            FaultKind::Timeout => "timeout",
            FaultKind::NoWorker => "no_worker",
            FaultKind::Lost => "lost",
            FaultKind::Canceled => "canceled",
            FaultKind::Balance => "balance",
            FaultKind::Budget => "budget",
            FaultKind::Watchdog => "watchdog",
            FaultKind::Poison => "poison",
            FaultKind::Input => "input",
            FaultKind::Limit => "limit",
            FaultKind::Unknown => "unknown",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// One failure, as it is kept with the attempt that had it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    /// Whether the failing side expects a retry to help.
    pub retryable: bool,
    /// The pause that the failing side asks for; not kept, because the resulting delay is.
    #[serde(skip)]
    pub retry_after_ms: Option<u64>,
    /// Facts about the call to a push worker; not kept, because the decision to call another one is.
    #[serde(skip)]
    pub delivery: Delivery,
}

/// Facts about a failed call to a push worker, which decide whether another worker is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivery {
    pub progress: DeliveryProgress,
    /// Another live worker of the service has not been called within this try.
    pub has_other_worker: bool,
}

/// How far a call to a push worker came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeliveryProgress {
    /// The worker answered, or its time was up; or it was no call to a push worker.
    #[default]
    Answered,
    /// The connection broke before the answer was there: the worker may have received the call.
    Sent,
    /// There was no connection: the worker did not receive the call.
    NotSent,
}

impl Fault {
    /// A fault that is retried if its kind usually is; the message is cut to its stored length.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: cut(message.into()),
            retryable: kind.is_retryable(),
            retry_after_ms: None,
            delivery: Delivery::default(),
        }
    }

    /// The same fault, not to be tried again before so long.
    #[must_use]
    pub fn after(mut self, ms: Option<u64>) -> Self {
        self.retry_after_ms = ms;
        self
    }

    /// The same fault of a call to a push worker that came so far.
    #[must_use]
    pub fn undelivered(mut self, progress: DeliveryProgress) -> Self {
        self.delivery.progress = progress;
        self
    }

    /// Whether it was detected by silence rather than reported.
    pub fn is_silence(&self) -> bool {
        matches!(self.kind, FaultKind::Lost | FaultKind::Timeout | FaultKind::Watchdog)
    }

    /// The same fault, not to be tried again.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.retryable = false;
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

/// Cuts a message to [`limits::ERROR_BYTES`] without splitting a character.
fn cut(mut message: String) -> String {
    if message.len() > limits::ERROR_BYTES {
        message.truncate(message.floor_char_boundary(limits::ERROR_BYTES));
    }
    message
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXPONENTIAL: Policy =
        Policy { max: 9, delay_ms: 5_000, backoff: Backoff::Exponential, cap_ms: 0, jitter: false };

    #[test]
    fn an_exponential_delay_doubles_up_to_its_cap() {
        let delays: Vec<u64> = (1..=11).map(|n| EXPONENTIAL.delay_ms_after(n, 0)).collect();
        assert_eq!(delays[..4], [5_000, 10_000, 20_000, 40_000]);
        assert_eq!(delays[9..], [2_560_000, CAP_MS_DEFAULT]);
        assert_eq!(EXPONENTIAL.delay_ms_after(u32::MAX, 0), CAP_MS_DEFAULT);
        assert_eq!(Policy { cap_ms: 7_000, ..EXPONENTIAL }.delay_ms_after(2, 0), 7_000);
    }

    #[test]
    fn a_fixed_delay_stays_as_it_is() {
        let policy = Policy { backoff: Backoff::Fixed, delay_ms: 2 * CAP_MS_DEFAULT, ..EXPONENTIAL };
        assert_eq!(policy.delay_ms_after(1, 0), policy.delay_ms_after(60, 9));
        assert_eq!(policy.delay_ms_after(1, 0), 2 * CAP_MS_DEFAULT);
    }

    #[test]
    fn the_default_is_to_not_try_again() {
        assert_eq!(Policy::default().max, 0);
        assert_eq!(Policy { jitter: true, ..Policy::default() }.delay_ms_after(1, 3), 0);
    }

    #[test]
    fn seeds_spread_delays() {
        let policy = Policy { jitter: true, ..EXPONENTIAL };
        let delays: std::collections::BTreeSet<u64> =
            (0..100).map(|seed| policy.delay_ms_after(1, seed)).collect();
        assert!(delays.len() > 80, "{delays:?}");
        assert!(delays.first() < Some(&5_500) && delays.last() > Some(&7_000), "{delays:?}");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let fault = Fault::new(FaultKind::Error, "é".repeat(limits::ERROR_BYTES));
        assert_eq!(fault.message.len(), limits::ERROR_BYTES);
        let odd = Fault::new(FaultKind::Error, format!("x{}", "é".repeat(limits::ERROR_BYTES)));
        assert_eq!(odd.message.len(), limits::ERROR_BYTES - 1);
    }

    #[test]
    fn the_word_is_what_the_wire_says() {
        for kind in [FaultKind::NoWorker, FaultKind::Error, FaultKind::Poison, FaultKind::Unknown] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
        }
        assert!(Fault::new(FaultKind::Lost, "").retryable);
        assert!(!Fault::new(FaultKind::Input, "").retryable);
        assert!(!Fault::new(FaultKind::Error, "").permanent().retryable);
    }

    proptest! {
        #[test]
        fn jitter_adds_up_to_a_half(
            n in any::<u32>(), seed in any::<u64>(), delay_ms in any::<u64>(), cap_ms in any::<u64>(), fixed in any::<bool>()
        ) {
            let backoff = if fixed { Backoff::Fixed } else { Backoff::Exponential };
            let plain = Policy { max: 1, delay_ms, backoff, cap_ms, jitter: false };
            let whole = plain.delay_ms_after(n, seed);
            let spread = Policy { jitter: true, ..plain }.delay_ms_after(n, seed);
            prop_assert!(spread >= whole && spread <= whole.saturating_add(whole / 2));
        }
    }
}
