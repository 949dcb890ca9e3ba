//! How runs and calls go on this server: counted in memory as commits become durable, and forgotten when it stops.
//!
//! Nothing is ever scanned for it. Everything is bounded: of too many flows or nodes, those that were quiet longest
//! are forgotten, and the totals of all keep what they did.

mod counts;
mod load;
mod open;
mod process;
mod state;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_engine::id::{FlowId, RunId};
use windlass_engine::parallelism::Parallelism;
use windlass_engine::path::NodePath;
use windlass_engine::run::state::{Phase, Stage as WorkStage};
use windlass_engine::time::Timestamp;
use windlass_store::commit::JobChange;
use windlass_store::project::moments::Moment;

use crate::Runtime;
use crate::hot::Hot;
use crate::queue::{QueueStats, Spread};

use counts::{Counts, Sums, node_stats};
use open::Stands;
pub use process::ProcessStats;
pub use state::OTHERS;
use state::{Jobs, State, Subject};

/// What happened since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    pub runs_begun: u64,
    pub runs_completed: u64,
    pub runs_failed: u64,
    pub runs_canceled: u64,
    /// Nodes, and branches of fans, that are over.
    pub nodes_settled: u64,
    /// Attempts that somebody was given.
    pub calls_begun: u64,
    pub calls_ok: u64,
    pub calls_failed: u64,
    /// Attempts that answered that they are not finished.
    pub calls_suspended: u64,
}

impl Totals {
    fn add(&mut self, other: &Totals) {
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

/// How things went, of one flow or of all.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowStats {
    pub totals: Totals,
    /// Of calls: created = a node is over, started = somebody was given one, and how attempts ended.
    pub calls: QueueStats,
    /// Of runs: created = begun; dead = cancelled.
    pub runs: QueueStats,
    /// Since the server started: how many, their times added up, and the spread. Of calls, from when somebody had
    /// them.
    pub call_ms: (u64, u64, Spread),
    /// How long calls were in a queue before somebody had them.
    pub wait_ms: (u64, u64, Spread),
    pub run_ms: (u64, u64, Spread),
    /// Of runs that were seen from their beginning to their end: the times of their calls, and their own.
    pub whole_ms: (u64, u64),
    /// Calls that somebody has, and the most that were at once.
    pub n_open: u64,
    pub n_open_max: u64,
}

/// How the attempts at one node went since the server started.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeStats {
    /// Its path, with `*` for the numbers of branches and turns.
    pub node: String,
    pub n_ok: u64,
    pub n_failed: u64,
    pub n_suspended: u64,
    /// Attempts, from when somebody had them: how many, their times added up, and the spread.
    pub ms: (u64, u64, Spread),
    /// How long they were in a queue before that.
    pub wait_ms: Spread,
    /// How long the node took, from when somebody was first given it until it was over.
    pub whole_ms: Spread,
}

/// What the flows of one name did since the server started.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSums {
    pub totals: Totals,
    pub n_open: u64,
    pub call_ms: (u64, u64, Spread),
    pub wait_ms: (u64, u64, Spread),
    pub run_ms: (u64, u64, Spread),
    pub nodes: Vec<NodeStats>,
}

/// How everything on this server went.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStats {
    pub all: FlowStats,
    pub last_10s: Parallelism,
    pub last_minute: Parallelism,
    pub last_hour: Parallelism,
    /// Calls in queues that this server put there and nobody has yet.
    pub n_queued: u64,
    /// Runs in memory, calls that this server makes itself, inputs that wait to be decided.
    pub n_hot_runs: usize,
    pub n_own_calls: usize,
    pub n_inputs: usize,
    /// Jobs that were handed out in vain: somebody else changed them in between, or had the turn at their queue.
    pub n_claims_lost: u64,
    pub n_turns_lost: u64,
    pub process: ProcessStats,
}

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Stats {
    state: Mutex<State>,
}

impl Stats {
    pub(crate) fn new(now: Timestamp) -> Self {
        // So that it knows when the process began.
        ProcessStats::read();
        Stats { state: Mutex::new(State::new(now)) }
    }

    /// What became durable of a run, with the jobs of the commit.
    pub(crate) fn follow(&self, hot: &Hot, moments: &[Moment], jobs: &[JobChange], now: Timestamp) {
        if moments.is_empty() {
            return;
        }
        let (run, plan) = (&hot.run, &hot.plan);
        let stands = |node: &NodePath| stands(run.place(plan, node).map(|place| place.phase));
        let is_call = |node: &NodePath| run.place(plan, node).is_some_and(|place| place.call.is_some());
        let of = Subject {
            run: run.id,
            created_at: run.created_at,
            round: run.round,
            flow: hot.flow,
            plan,
            jobs: Jobs::of(run.id, jobs),
            is_call: &is_call,
            stands: &stands,
        };
        self.lock().follow_all(&of, moments, now);
    }

    /// Jobs that changed without a run being told.
    pub(crate) fn jobs_moved(&self, changes: &[JobChange], now: Timestamp) {
        let calls = changes.iter().filter_map(|change| Some((change.origin.call.as_ref()?, change)));
        let mut calls = calls.peekable();
        if calls.peek().is_none() {
            return;
        }
        let mut state = self.lock();
        calls.for_each(|(call, change)| state.job_moved(call, change, now));
        state.measure(now);
    }

    /// Another server has written to these runs.
    pub(crate) fn doubt<'r>(&self, runs: impl IntoIterator<Item = &'r RunId>, now: Timestamp) {
        let mut state = self.lock();
        runs.into_iter().for_each(|run| state.doubt(*run, now));
    }

    /// Another server may have written to any run.
    pub(crate) fn doubt_all(&self, now: Timestamp) {
        self.lock().doubt_all(now);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Counts may be wrong without harm, so that a panic elsewhere spoils nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stands(phase: Option<&Phase>) -> Stands {
    let Some(phase) = phase.filter(|phase| phase.is_open()) else { return Stands::Over };
    match phase.work().map(|work| &work.stage) {
        Some(WorkStage::Granted { fence, .. }) => Stands::Granted(*fence),
        Some(WorkStage::Backoff { .. } | WorkStage::Suspended { .. } | WorkStage::Parked { .. }) | None => {
            Stands::Open
        }
    }
}

impl Runtime {
    /// Forgets what was doubtful for too long.
    pub(crate) fn tidy_stats(&self) {
        let now = self.clock().now();
        self.stats().lock().expire(now, |run, fence| self.calls().holds(run, fence));
    }

    /// How everything on this server went.
    pub fn server_stats(&self) -> ServerStats {
        self.tidy_stats();
        let now = self.clock().now();
        let mut state = self.stats().lock();
        state.load.pass(now);
        let State { all, load, open, .. } = &*state;
        let stretches = [&load.last_10s, &load.last_minute, &load.last_hour].map(|ring| ring.stretch(now));
        let [last_10s, last_minute, last_hour] = stretches;
        let (all, n_queued) = (flow_stats(all, open.n_working(), now), open.n_queued());
        drop(state);
        ServerStats {
            all,
            last_10s,
            last_minute,
            last_hour,
            n_queued,
            n_hot_runs: self.mailboxes().len(),
            n_own_calls: self.calls().len(),
            n_inputs: self.mailboxes().n_waiting(),
            n_claims_lost: self.jobs().lost.to_others.load(Ordering::Relaxed),
            n_turns_lost: self.jobs().lost.turns.load(Ordering::Relaxed),
            process: ProcessStats::read(),
        }
    }

    /// How one flow went on this server; nothing of one that is not counted.
    pub fn flow_stats(&self, flow: FlowId) -> (FlowStats, Vec<NodeStats>) {
        self.tidy_stats();
        let (now, state) = (self.clock().now(), self.stats().lock());
        let n_open = state.open.of_flow(flow);
        match state.flows.get(&flow) {
            Some(of) => (flow_stats(&of.counts, n_open, now), node_stats(&of.nodes)),
            None => (flow_stats(&Counts::new(), n_open, now), Vec::new()),
        }
    }

    /// All flows that are counted.
    pub fn flows_with_stats(&self) -> Vec<FlowId> {
        let mut flows: Vec<FlowId> = self.stats().lock().flows.keys().copied().collect();
        flows.sort_unstable();
        flows
    }

    /// What flows did since the server started, by name: several may have one. Those without a name here, and those
    /// that are not counted by themselves any more, are one, called [`OTHERS`].
    pub fn stats_by_name(&self, names: &HashMap<FlowId, String>) -> BTreeMap<String, FlowSums> {
        self.tidy_stats();
        let state = self.stats().lock();
        state.by_name(names)
    }
}

fn flow_stats(counts: &Counts, n_open: u64, now: Timestamp) -> FlowStats {
    let (calls, runs) = counts.stats(now);
    let [call_ms, wait_ms, run_ms] = counts.durations();
    let (whole_ms, n_open_max) = (counts.whole_ms, counts.n_open_max);
    FlowStats { totals: counts.totals, calls, runs, call_ms, wait_ms, run_ms, whole_ms, n_open, n_open_max }
}

impl State {
    fn by_name(&self, names: &HashMap<FlowId, String>) -> BTreeMap<String, FlowSums> {
        let mut sums: BTreeMap<&str, Sums> = BTreeMap::new();
        for (flow, of) in &self.flows {
            let name = names.get(flow).map_or(OTHERS, String::as_str);
            let n_open = self.open.of_flow(*flow);
            sums.entry(name).or_insert_with(Sums::new).add(&of.counts, &of.nodes, n_open);
        }
        if !self.forgotten.is_empty() {
            sums.entry(OTHERS).or_insert_with(Sums::new).join(&self.forgotten);
        }
        sums.into_iter().map(|(name, sums)| (name.to_owned(), sums.stats())).collect()
    }
}

#[cfg(test)]
mod tests;
