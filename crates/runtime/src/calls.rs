//! Calls that this server makes itself: to push workers and to scripts.
//!
//! A call ends in one of four ways: its answer comes, its time is up, it is canceled, or it cannot be made. Its
//! resources are freed when its future is dropped, so no way of ending leaves any behind.

pub(crate) mod address;
mod answer;
pub mod function;
mod handler;
mod http;
pub mod log;
mod output;
mod perform;
pub mod script;
mod script_slots;
pub mod service;
pub mod signature;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_engine::counter::Fence;
use windlass_engine::effect::CallSpec;
use windlass_engine::event::ServiceTerms;
use windlass_engine::id::RunId;
use windlass_engine::input::CallOutcome;
use windlass_engine::plan::Exec;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::time::Timestamp;
use windlass_store::signing::SigningSecret;

use crate::Settings;
use crate::calls::log::Log;
use crate::part::{RuntimePart, part};

use perform::RunningCalls;
use script_slots::ScriptSlots;

/// How much earlier than the run's own time limit a call gives up, at most: the run then learns which worker was too
/// slow.
const MARGIN: Duration = Duration::from_millis(50);
/// The longest wait for an answer under any deadline: timers have a limit.
const LEFT_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The soonest recheck of a suspended call: an eager worker must not keep the server busy.
const RECHECK_MS_MIN: u64 = 100;

/// Raises the recheck interval of a suspended call to the minimum.
pub(crate) fn raise_recheck_interval<R>(outcome: &mut CallOutcome<R>) {
    if let CallOutcome::Suspended { recheck_ms: Some(ms), .. } = outcome {
        *ms = RECHECK_MS_MIN.max(*ms);
    }
}

/// How a call went.
#[derive(Debug, Clone)]
pub(crate) struct CallResult {
    pub(crate) outcome: CallOutcome,
    pub(crate) worker: Option<String>,
    /// Its log lines.
    pub(crate) log: Log,
}

impl CallResult {
    /// Without a worker and without log lines.
    pub(crate) fn of(outcome: CallOutcome) -> Self {
        CallResult { outcome, worker: None, log: Log::default() }
    }
}

/// The state of `Calls`.
pub(crate) struct CallsState {
    client: reqwest::Client,
    scripts: ScriptSlots,
    /// Calls that this server makes now.
    open: RunningCalls,
    /// Handlers at work.
    n_handling: AtomicUsize,
    /// The settings of services that every new run carries.
    terms: RwLock<Arc<BTreeMap<String, ServiceTerms>>>,
    /// The secrets of services, under which calls to their workers are signed.
    secrets: RwLock<BTreeMap<String, SigningSecret>>,
}

impl CallsState {
    pub(crate) fn new(settings: &Settings) -> Self {
        CallsState {
            client: http::client(settings),
            scripts: ScriptSlots::new(settings.scripts_max.max(1)),
            open: RunningCalls::default(),
            n_handling: AtomicUsize::new(0),
            terms: RwLock::default(),
            secrets: RwLock::default(),
        }
    }
}

part! {
    /// The owner of calls: to push workers, to scripts, and to functions and handlers in this process.
    pub Calls, calls: CallsState
}

impl Calls {
    /// Cancels a call that this server makes, if it does.
    pub(crate) fn cancel(&self, run: RunId, fence: Fence) {
        self.state().open.cancel(run, fence);
    }

    /// Cancels a call that this server makes, unless a worker or a script has it already.
    pub(crate) fn withdraw(&self, run: RunId, fence: Fence) {
        self.state().open.withdraw(run, fence);
    }

    /// Whether this server makes the call now.
    pub(crate) fn holds(&self, run: RunId, fence: Fence) -> bool {
        self.state().open.holds(run, fence)
    }

    /// The fences of the calls that this server makes for a run.
    pub(crate) fn fences(&self, run: RunId) -> Vec<Fence> {
        self.state().open.fences(run)
    }

    /// The runs that this server makes calls for.
    pub(crate) fn runs_with_calls(&self) -> BTreeSet<RunId> {
        self.state().open.runs()
    }

    /// The number of calls that this server makes now, handlers excluded.
    pub(crate) fn n_open(&self) -> usize {
        self.state().open.len()
    }

    /// Whether a call or a handler is at work; shutdown waits for these.
    pub(crate) fn is_busy(&self) -> bool {
        self.n_open() > 0 || self.state().n_handling.load(Ordering::Relaxed) > 0
    }

    /// The settings of services that every new run carries.
    pub(crate) fn service_terms(&self) -> Arc<BTreeMap<String, ServiceTerms>> {
        self.state().terms.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a call of the kind http or script and returns its outcome. When the token is canceled, it stops the
    /// worker or script as far as possible and returns `CallOutcome::Canceled`.
    pub(crate) async fn call(&self, spec: &CallSpec, cancel: &CancellationToken) -> CallResult {
        let limit = self.limit(spec);
        if limit.left.is_zero() {
            let outcome = failed(FaultKind::Timeout, "no time was left to make the call");
            return CallResult::of(outcome);
        }
        // Names the chosen worker also when the call is given up halfway.
        let worker = OnceLock::new();
        let calling = async {
            match &spec.exec {
                Exec::Http => self.call_worker(spec, limit, &worker).await,
                Exec::Script(script) => self.call_script(spec, script, limit).await,
                Exec::Func { .. } | Exec::Queue | Exec::Flow { .. } => {
                    (misdirected(&spec.exec), Log::default())
                }
            }
        };
        let (mut outcome, log) = tokio::select! {
            biased;
            () = cancel.cancelled() => (CallOutcome::Canceled, Log::default()),
            ended = calling => ended,
        };
        raise_recheck_interval(&mut outcome);
        CallResult { outcome, worker: worker.into_inner(), log }
    }

    fn limit(&self, spec: &CallSpec) -> CallLimit {
        let now = self.clock().now();
        let deadline = spec.deadline.unwrap_or_else(|| match spec.timeout_ms {
            0 => now.after(u64::try_from(self.settings().call_timeout.as_millis()).unwrap_or(u64::MAX)),
            ms => now.after(ms),
        });
        CallLimit::new(deadline, self.clock().until(deadline))
    }
}

/// How long a call may take.
#[derive(Debug, Clone, Copy)]
struct CallLimit {
    /// The deadline of the run.
    deadline: Timestamp,
    /// The time left until then, less a margin.
    left: Duration,
    ends_at: Instant,
}

impl CallLimit {
    fn new(deadline: Timestamp, left: Duration) -> Self {
        let left = left.min(LEFT_MAX);
        let left = left - MARGIN.min(left / 10);
        CallLimit { deadline, left, ends_at: Instant::now() + left }
    }

    /// The same limit, or this one if it comes earlier.
    fn at_most(self, ms: u64) -> Self {
        let at_most = Duration::from_millis(ms);
        if at_most >= self.left {
            return self;
        }
        CallLimit { left: at_most, ends_at: Instant::now() + at_most, ..self }
    }

    fn ms(self) -> u128 {
        self.left.as_millis()
    }
}

fn failed(kind: FaultKind, message: impl Into<String>) -> CallOutcome {
    CallOutcome::Failed(Fault::new(kind, message))
}

fn failed_for_good(kind: FaultKind, message: impl Into<String>) -> CallOutcome {
    CallOutcome::Failed(Fault::new(kind, message).permanent())
}

/// Functions, jobs and child runs never come here; if one does, the run gets an error instead of waiting for ever.
fn misdirected(exec: &Exec) -> CallOutcome {
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
