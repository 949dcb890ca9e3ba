//! Calls that this server makes itself: to push workers and to scripts.
//!
//! A call ends in one of four ways: its answer comes, its time is up, nobody wants it any more, or it cannot be made.
//! However it ends, nothing of it stays behind: what it holds is given back when its future is dropped.

pub(crate) mod address;
mod answer;
mod http;
mod output;
mod script;
mod turns;

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_engine::effect::Order;
use windlass_engine::input::Outcome;
use windlass_engine::plan::Exec;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::time::Timestamp;

use crate::log::Log;
use crate::{Runtime, Settings};

use address::Policy;
use turns::Turns;

/// How much earlier than the run's own time limit a call gives up, at most: the run then learns who was too slow,
/// and not only that somebody was.
const MARGIN: Duration = Duration::from_millis(50);
/// The longest that is ever waited for an answer, whatever the run says: timers end somewhere.
const LEFT_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);
/// Scripts that run at once: each is a process, or many, on the server's own machine.
const SCRIPTS_MAX: usize = 32;

/// The soonest that a worker who said "not yet" is asked again: an eager one must not keep the server busy.
const RECHECK_MS_MIN: u64 = 100;

/// Gives whoever said "not yet" no less time than there must be.
pub(crate) fn unhurry(outcome: &mut Outcome) {
    if let Outcome::Suspended { recheck_ms: Some(ms), .. } = outcome {
        *ms = RECHECK_MS_MIN.max(*ms);
    }
}

/// How a call went.
#[derive(Debug, Clone)]
pub(crate) struct Reported {
    pub(crate) outcome: Outcome,
    pub(crate) worker: Option<String>,
    /// What it wrote beside its result.
    pub(crate) log: Log,
}

impl Reported {
    /// By nobody in particular, who wrote nothing.
    pub(crate) fn of(outcome: Outcome) -> Self {
        Reported { outcome, worker: None, log: Log::default() }
    }
}

/// What calls are made with.
pub(crate) struct Caller {
    client: reqwest::Client,
    scripts: Turns,
}

impl Caller {
    pub(crate) fn new(settings: &Settings) -> Self {
        Caller {
            client: http::client(Policy::of(settings), settings.worker_calls_max),
            scripts: Turns::new(SCRIPTS_MAX),
        }
    }
}

impl Runtime {
    /// Makes a call of the kind http or script and says how it ended. When the token is cancelled it stops whoever
    /// works, as far as that can be done, and answers `Outcome::Canceled`.
    pub(crate) async fn call(&self, order: &Order, cancel: &CancellationToken) -> Reported {
        let limit = self.limit(order);
        if limit.left.is_zero() {
            let outcome = failed(FaultKind::Timeout, "no time was left to make the call");
            return Reported::of(outcome);
        }
        // Whoever was chosen is named also when the call is given up halfway.
        let worker = OnceLock::new();
        let calling = async {
            match &order.exec {
                Exec::Http => self.call_worker(order, limit, &worker).await,
                Exec::Script(script) => self.call_script(order, script, limit).await,
                Exec::Func { .. } | Exec::Queue | Exec::Flow { .. } => {
                    (misdirected(&order.exec), Log::default())
                }
            }
        };
        let (mut outcome, log) = tokio::select! {
            biased;
            () = cancel.cancelled() => (Outcome::Canceled, Log::default()),
            ended = calling => ended,
        };
        unhurry(&mut outcome);
        Reported { outcome, worker: worker.into_inner(), log }
    }

    fn limit(&self, order: &Order) -> Limit {
        let now = self.clock().now();
        let deadline = order.deadline.unwrap_or_else(|| match order.timeout_ms {
            0 => now.after(u64::try_from(self.settings().call_timeout.as_millis()).unwrap_or(u64::MAX)),
            ms => now.after(ms),
        });
        Limit::new(deadline, self.clock().until(deadline))
    }
}

/// How long a call may take.
#[derive(Debug, Clone, Copy)]
struct Limit {
    /// What the run says.
    deadline: Timestamp,
    /// What is left of it, less a margin.
    left: Duration,
    ends_at: Instant,
}

impl Limit {
    fn new(deadline: Timestamp, left: Duration) -> Self {
        let left = left.min(LEFT_MAX);
        let left = left - MARGIN.min(left / 10);
        Limit { deadline, left, ends_at: Instant::now() + left }
    }

    /// The same limit, or this one if it comes earlier.
    fn at_most(self, ms: u64) -> Self {
        let at_most = Duration::from_millis(ms);
        if at_most >= self.left {
            return self;
        }
        Limit { left: at_most, ends_at: Instant::now() + at_most, ..self }
    }

    fn ms(self) -> u128 {
        self.left.as_millis()
    }
}

fn failed(kind: FaultKind, message: impl Into<String>) -> Outcome {
    Outcome::Failed(Fault::new(kind, message))
}

fn failed_for_good(kind: FaultKind, message: impl Into<String>) -> Outcome {
    Outcome::Failed(Fault::new(kind, message).permanent())
}

/// Functions, jobs and child runs never come here; if one does, the run is told rather than left waiting.
fn misdirected(exec: &Exec) -> Outcome {
    let what = match exec {
        Exec::Func { .. } => "a function",
        Exec::Queue => "a job",
        Exec::Flow { .. } => "a flow",
        Exec::Http => "a worker",
        Exec::Script(_) => "a script",
    };
    failed_for_good(FaultKind::Error, format!("{what} was taken for a call that the server makes itself"))
}

#[cfg(test)]
pub(crate) mod tests;
