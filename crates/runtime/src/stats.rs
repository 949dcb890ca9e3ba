//! Activity of this server since it started: counters, recent rates and durations of queues, flows, nodes and calls.
//!
//! Commits update it as they become durable, the API and `/metrics` read it. It never reads the store, and every map in
//! it is bounded: beyond the limits, flows and queues without events for longest are evicted.

mod concurrency;
mod counters;
mod histogram;
mod open_calls;
mod process;
mod queue_windows;
mod sample;
mod state;
mod window;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus::proto::Histogram as BucketCounts;
use windlass_engine::counter::Fence;
use windlass_engine::id::{FlowId, RunId};
use windlass_engine::parallelism::Parallelism;
use windlass_engine::path::NodePath;
use windlass_engine::run::state::{Phase, Stage as WorkStage};
use windlass_engine::time::Timestamp;
use windlass_store::commit::JobChange;
use windlass_store::projection::metric_event::MetricEvent;

use crate::part::{RuntimePart, part};
use crate::runs::cached_run::CachedRun;

use counters::{FlowCounters, node_activity};
pub use histogram::{DurationStats, Percentiles};
use open_calls::NodeProgress;
pub use process::ProcessUsage;
use queue_windows::QueueWindows;
pub use sample::{EventFigures, SAMPLE_MS, SAMPLES_KEPT, SampleFigures, Sampler, SeriesPoint};
use state::{CallJobs, CommittedRun, StatsState};
pub use window::{EventCounts, RecentActivity, WindowStats};

/// The label of everything that is counted together. No node has this name: names neither are empty nor contain `/`.
pub const OTHER_LABEL: &str = "/other";

/// Events since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ActivityTotals {
    pub runs_begun: u64,
    pub runs_completed: u64,
    pub runs_failed: u64,
    pub runs_canceled: u64,
    /// Nodes and branches of fans that ended.
    pub nodes_settled: u64,
    /// Attempts that a worker or the server began.
    pub calls_begun: u64,
    pub calls_ok: u64,
    pub calls_failed: u64,
    /// Attempts that answered that they are not finished.
    pub calls_suspended: u64,
}

impl ActivityTotals {
    fn add(&mut self, other: &ActivityTotals) {
        for (count, more) in [
            (&mut self.runs_begun, other.runs_begun),
            (&mut self.runs_completed, other.runs_completed),
            (&mut self.runs_failed, other.runs_failed),
            (&mut self.runs_canceled, other.runs_canceled),
            (&mut self.nodes_settled, other.nodes_settled),
            (&mut self.calls_begun, other.calls_begun),
            (&mut self.calls_ok, other.calls_ok),
            (&mut self.calls_failed, other.calls_failed),
            (&mut self.calls_suspended, other.calls_suspended),
        ] {
            *count = count.saturating_add(more);
        }
    }
}

/// Activity of one flow, or of all.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowActivity {
    pub totals: ActivityTotals,
    /// Calls: `created` counts nodes that ended, `started` attempts that began, the others the ends of attempts.
    pub calls: RecentActivity,
    /// Runs: `created` counts rounds that began, `dead` those that were canceled.
    pub runs: RecentActivity,
    /// From the start of an attempt to its end.
    pub call_ms: DurationStats,
    /// In a queue, before a worker claimed the call.
    pub wait_ms: DurationStats,
    pub run_ms: DurationStats,
    /// The durations of calls, and of their rounds, for rounds that this server saw from start to end.
    pub observed_call_ms: u64,
    pub observed_run_ms: u64,
    /// Calls in progress, now and at most.
    pub running: u64,
    pub running_max: u64,
}

/// Attempts at one node since the server started.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeActivity {
    /// Its path, with `*` for the numbers of branches and iterations.
    pub node: String,
    pub succeeded: u64,
    pub failed: u64,
    pub suspended: u64,
    /// From the start of an attempt to its end.
    pub work_ms: DurationStats,
    /// In a queue before that.
    pub wait_ms: Percentiles,
    /// From the first grant of the node to its end.
    pub node_ms: Percentiles,
}

/// The flows of one name since the server started, as `/metrics` shows them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlowMetrics {
    pub totals: ActivityTotals,
    pub running: u64,
    pub wait_seconds: BucketCounts,
    pub run_seconds: BucketCounts,
    pub nodes: BTreeMap<String, NodeMetrics>,
}

/// One node since the server started, as `/metrics` shows it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeMetrics {
    pub succeeded: u64,
    pub failed: u64,
    pub suspended: u64,
    pub work_seconds: BucketCounts,
}

/// Activity of this server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerActivity {
    pub calls: CallActivity,
    /// Runs in memory, calls that this server makes itself, inputs that wait to be decided.
    pub n_hot_runs: usize,
    pub n_own_calls: usize,
    pub n_inputs: usize,
    /// Dispatched jobs that another server changed first, and those whose queue was another server's turn.
    pub n_claims_lost: u64,
    pub n_turns_lost: u64,
    pub process: ProcessUsage,
}

/// Activity of all flows, and the calls in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct CallActivity {
    pub all: FlowActivity,
    pub last_10s: Parallelism,
    pub last_minute: Parallelism,
    pub last_hour: Parallelism,
    pub since_start: Parallelism,
    /// Calls that this server put into a queue and that no worker has claimed.
    pub n_queued: u64,
}

/// The owner of all counters.
#[derive(Debug)]
pub(crate) struct Stats {
    state: Mutex<StatsState>,
    queues: QueueWindows,
}

impl Stats {
    pub(crate) fn new(now: Timestamp) -> Self {
        // The first reading fixes the start of the process.
        ProcessUsage::read();
        Stats { state: Mutex::new(StatsState::new(now)), queues: QueueWindows::default() }
    }

    /// Records a durable commit of a run, with the jobs of the commit.
    pub(crate) fn record_run(
        &self,
        cached: &CachedRun,
        metric_events: &[MetricEvent],
        jobs: &[JobChange],
        now: Timestamp,
    ) {
        if metric_events.is_empty() {
            return;
        }
        let (run, plan) = (&cached.run, &cached.plan);
        let progress = |node: &NodePath| node_progress(run.place(plan, node).map(|place| place.phase));
        let is_call = |node: &NodePath| run.place(plan, node).is_some_and(|place| place.call.is_some());
        let of = CommittedRun {
            run: run.id,
            created_at: run.created_at,
            round: run.round,
            flow: cached.flow,
            plan,
            jobs: CallJobs::of(run.id, jobs),
            is_call: &is_call,
            progress: &progress,
        };
        self.lock().record_all(&of, metric_events, now);
    }

    /// Records durable changes of jobs for their queues.
    pub(crate) fn record_jobs(&self, changes: &[JobChange], now: Timestamp) {
        self.queues.record_changes(changes, now);
    }

    /// Records claimed jobs, each with its queue and the time for which it could have been claimed.
    pub(crate) fn record_claims<'a>(&self, jobs: impl IntoIterator<Item = (&'a str, u64)>, now: Timestamp) {
        self.queues.record_claims(jobs, now);
    }

    /// Records durable changes of jobs that carry calls and did not change their runs.
    pub(crate) fn record_calls(&self, changes: &[JobChange], now: Timestamp) {
        let calls = changes.iter().filter_map(|change| Some((change.origin.call.as_ref()?, change)));
        let mut calls = calls.peekable();
        if calls.peek().is_none() {
            return;
        }
        let mut state = self.lock();
        calls.for_each(|(call, change)| state.job_changed(call, change, now));
        state.update_concurrency(now);
    }

    /// Another server has written to these runs.
    pub(crate) fn invalidate<'r>(&self, runs: impl IntoIterator<Item = &'r RunId>, now: Timestamp) {
        let mut state = self.lock();
        runs.into_iter().for_each(|run| state.invalidate(*run, now));
    }

    /// Another server may have written to any run.
    pub(crate) fn invalidate_all(&self, now: Timestamp) {
        self.lock().invalidate_all(now);
    }

    /// Removes calls that were unconfirmed for too long, unless this server makes the call itself.
    pub(crate) fn expire(&self, now: Timestamp, is_own_call: impl Fn(RunId, Fence) -> bool) {
        self.lock().expire(now, is_own_call);
    }

    /// Recent activity of a queue; empty if it was not used.
    pub(crate) fn queue(&self, queue: &str, now: Timestamp) -> RecentActivity {
        self.queues.activity(queue, now)
    }

    pub(crate) fn calls(&self, now: Timestamp) -> CallActivity {
        let mut state = self.lock();
        state.concurrency.advance(now);
        let StatsState { all, concurrency, open, .. } = &*state;
        CallActivity {
            all: all.activity(open.n_working(), now),
            last_10s: concurrency.last_10s.total(now),
            last_minute: concurrency.last_minute.total(now),
            last_hour: concurrency.last_hour.total(now),
            since_start: concurrency.total.clone(),
            n_queued: open.n_queued(),
        }
    }

    /// Activity of a flow and its nodes; empty if it has no counters of its own.
    pub(crate) fn flow(&self, flow: FlowId, now: Timestamp) -> (FlowActivity, Vec<NodeActivity>) {
        let state = self.lock();
        let running = state.open.n_working_of(flow);
        match state.flows.get(&flow) {
            Some(of) => (of.counters.activity(running, now), node_activity(&of.nodes)),
            None => (FlowCounters::new().activity(running, now), Vec::new()),
        }
    }

    /// The flows that have counters of their own.
    pub(crate) fn flows(&self) -> Vec<FlowId> {
        let mut flows: Vec<FlowId> = self.lock().flows.keys().copied().collect();
        flows.sort_unstable();
        flows
    }

    /// The sums of flows by name. Flows without a name here and evicted flows are summed as [`OTHER_LABEL`].
    pub(crate) fn metrics(&self, names: &HashMap<FlowId, String>) -> BTreeMap<String, FlowMetrics> {
        self.lock().metrics(names)
    }

    fn lock(&self) -> MutexGuard<'_, StatsState> {
        // A panic while it is held leaves at worst one commit half counted.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn node_progress(phase: Option<&Phase>) -> NodeProgress {
    let Some(phase) = phase.filter(|phase| phase.is_open()) else { return NodeProgress::Ended };
    match phase.work().map(|work| &work.stage) {
        Some(WorkStage::Granted { fence, .. }) => NodeProgress::Granted(*fence),
        Some(WorkStage::Backoff { .. } | WorkStage::Suspended { .. } | WorkStage::Parked { .. }) | None => {
            NodeProgress::Open
        }
    }
}

impl StatsState {
    fn metrics(&self, names: &HashMap<FlowId, String>) -> BTreeMap<String, FlowMetrics> {
        let mut metrics: BTreeMap<String, FlowMetrics> = BTreeMap::new();
        for (flow, of) in &self.flows {
            let name = names.get(flow).map_or(OTHER_LABEL, String::as_str);
            let running = self.open.n_working_of(*flow);
            metrics.entry(name.to_owned()).or_default().add_flow(&of.counters, &of.nodes, running);
        }
        if !self.evicted.is_empty() {
            metrics.entry(OTHER_LABEL.to_owned()).or_default().add(&self.evicted);
        }
        metrics
    }
}

part! {
    /// Questions about the activity of this server, for the API and the metrics.
    pub Activity
}

impl Activity {
    /// Removes calls that another server ended.
    pub(crate) fn tidy(&self) {
        self.stats().expire(self.clock().now(), |run, fence| self.calls().holds(run, fence));
    }

    /// Activity of this server.
    pub fn server(&self) -> ServerActivity {
        self.tidy();
        let (n_claims_lost, n_turns_lost) = self.jobs().n_lost_claims();
        ServerActivity {
            calls: self.stats().calls(self.clock().now()),
            n_hot_runs: self.runs().n_cached(),
            n_own_calls: self.calls().n_open(),
            n_inputs: self.runs().n_waiting(),
            n_claims_lost,
            n_turns_lost,
            process: ProcessUsage::read(),
        }
    }

    /// Activity of one flow and its nodes on this server.
    pub fn flow(&self, flow: FlowId) -> (FlowActivity, Vec<NodeActivity>) {
        self.tidy();
        self.stats().flow(flow, self.clock().now())
    }

    /// The flows that have counters of their own.
    pub fn flows(&self) -> Vec<FlowId> {
        self.stats().flows()
    }

    /// The sums of flows by name, for `/metrics`. Flows without a name here are summed as [`OTHER_LABEL`].
    pub fn metrics(&self, names: &HashMap<FlowId, String>) -> BTreeMap<String, FlowMetrics> {
        self.tidy();
        self.stats().metrics(names)
    }
}

#[cfg(test)]
mod tests;
