//! How runs and calls go on this server: counted in memory as commits become durable, and forgotten when it stops.
//!
//! Nothing is ever scanned for it. Everything is bounded: of too many flows or nodes, those that were quiet longest
//! are forgotten, and the totals of all keep what they did.

mod counts;
mod load;
mod process;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_engine::id::{FlowId, RunId};
use windlass_engine::parallelism::Parallelism;
use windlass_engine::path::NodePath;
use windlass_engine::plan::Plan;
use windlass_engine::time::Timestamp;
use windlass_store::project::moments::Moment;

use crate::Runtime;
use crate::hot::Hot;
use crate::queue::{QueueStats, Spread};

use counts::{Counts, NodeCounts, node_stats};
use load::Load;
pub use process::ProcessStats;

/// Flows that are counted, some 60 KB each; of more, the one that was quiet longest is forgotten.
const FLOWS_MAX: usize = 200;
/// Nodes of one flow that are counted, some 400 bytes each; what more there are is counted together.
const NODES_MAX: usize = 100;
/// Nodes that are counted together.
const OTHERS: &str = "other";
/// Calls whose beginning is remembered; of more, it is not known how long they take.
const OPEN_MAX: usize = 200_000;

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
}

/// How things went, of one flow or of all.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowStats {
    pub totals: Totals,
    /// Of calls: created = a node is over, started = somebody was given one, and how attempts ended.
    pub calls: QueueStats,
    /// Of runs: created = begun; dead = cancelled.
    pub runs: QueueStats,
    /// Since the server started: how many, their times added up, and the spread.
    pub call_ms: (u64, u64, Spread),
    pub run_ms: (u64, u64, Spread),
    /// Calls that are open, and the most that were at once.
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
    pub total_ms: u64,
    pub ms: Spread,
}

/// How everything on this server went.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStats {
    pub all: FlowStats,
    pub last_10s: Parallelism,
    pub last_minute: Parallelism,
    pub last_hour: Parallelism,
    /// Runs in memory, calls that this server makes itself, inputs that wait to be decided.
    pub n_hot_runs: usize,
    pub n_own_calls: usize,
    pub n_inputs: usize,
    pub process: ProcessStats,
}

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Stats {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When calls began that are open.
    open: BTreeMap<(RunId, NodePath), (FlowId, Timestamp)>,
    all: Counts,
    load: Load,
    flows: HashMap<FlowId, OfFlow>,
}

/// Whose moments are counted.
struct Subject<'p> {
    run: RunId,
    begun_at: Timestamp,
    flow: FlowId,
    plan: &'p Plan,
}

#[derive(Debug)]
struct OfFlow {
    counts: Counts,
    nodes: HashMap<String, NodeCounts>,
}

impl Stats {
    pub(crate) fn new(now: Timestamp) -> Self {
        // So that it knows when the process began.
        ProcessStats::read();
        Stats { state: Mutex::new(State::new(now)) }
    }

    /// What became durable of a run.
    pub(crate) fn follow(&self, hot: &Hot, moments: &[Moment], now: Timestamp) {
        if moments.is_empty() {
            return;
        }
        let (run, begun_at) = (hot.run.id, hot.run.created_at);
        self.lock().follow_all(&Subject { run, begun_at, flow: hot.flow, plan: &hot.plan }, moments, now);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Counts may be wrong without harm, so that a panic elsewhere spoils nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(now: Timestamp) -> Self {
        State { open: BTreeMap::new(), all: Counts::new(), load: Load::new(now), flows: HashMap::new() }
    }

    fn follow_all(&mut self, of: &Subject<'_>, moments: &[Moment], now: Timestamp) {
        self.flow(of.flow);
        for moment in moments {
            self.follow(of, moment, now);
        }
        let n = self.open.len() as u64;
        if n != self.load.n() {
            self.load.set(n, now);
        }
    }

    fn flow(&mut self, flow: FlowId) {
        if self.flows.contains_key(&flow) {
            return;
        }
        if self.flows.len() >= FLOWS_MAX {
            let quiet = self.flows.iter().min_by_key(|(_, of)| of.counts.last_at()).map(|(flow, _)| *flow);
            quiet.and_then(|flow| self.flows.remove(&flow));
        }
        self.flows.insert(flow, OfFlow { counts: Counts::new(), nodes: HashMap::new() });
    }

    fn each(&mut self, flow: FlowId, count: impl Fn(&mut Counts)) {
        count(&mut self.all);
        if let Some(of) = self.flows.get_mut(&flow) {
            count(&mut of.counts);
        }
    }

    fn follow(&mut self, of: &Subject<'_>, moment: &Moment, now: Timestamp) {
        let flow = of.flow;
        match moment {
            Moment::Begun => self.each(flow, |counts| counts.begun(now)),
            Moment::Granted(node) => self.granted(of, node, now),
            Moment::Attempted { node, is_ok } => self.attempted(of, node, *is_ok, now),
            Moment::Settled { node, is_ok } => {
                self.attempted(of, node, *is_ok, now);
                self.each(flow, |counts| counts.settled(now));
            }
            Moment::Dropped(node) => self.dropped(of.run, node),
            Moment::Ended(ending) => {
                self.dropped(of.run, &NodePath::root());
                let ms = now.since(of.begun_at);
                self.each(flow, |counts| counts.ended(*ending, ms, now));
            }
        }
    }

    fn granted(&mut self, of: &Subject<'_>, node: &NodePath, now: Timestamp) {
        // The same call may be given again without having come back.
        self.close((of.run, node.clone()));
        if self.open.len() < OPEN_MAX {
            self.open.insert((of.run, node.clone()), (of.flow, now));
            self.each(of.flow, |counts| counts.granted(now));
        }
    }

    fn close(&mut self, key: (RunId, NodePath)) -> Option<Timestamp> {
        let (flow, since) = self.open.remove(&key)?;
        self.each(flow, Counts::closed);
        Some(since)
    }

    fn attempted(&mut self, of: &Subject<'_>, node: &NodePath, is_ok: bool, now: Timestamp) {
        let Some(since) = self.close((of.run, node.clone())) else { return };
        let ms = now.since(since);
        self.each(of.flow, |counts| counts.attempted(is_ok, ms, now));
        let Some(OfFlow { nodes, .. }) = self.flows.get_mut(&of.flow) else { return };
        let mut name = of.plan.pattern(node);
        if nodes.len() >= NODES_MAX && !nodes.contains_key(&name) {
            OTHERS.clone_into(&mut name);
        }
        nodes.entry(name).or_insert_with(NodeCounts::new).attempted(is_ok, ms);
    }

    /// Everything at this place of a run and inside it.
    fn dropped(&mut self, run: RunId, node: &NodePath) {
        let from = (run, node.clone());
        let keys = self.open.range(from..).map(|(key, _)| key.clone());
        // What is beside a place may sort between it and what is inside.
        let beside = |(of, path): &(RunId, NodePath)| *of == run && path.as_str().starts_with(node.as_str());
        let gone: Vec<_> = keys.take_while(beside).filter(|(_, path)| node.holds(path)).collect();
        for key in gone {
            self.close(key);
        }
    }
}

impl Runtime {
    /// How everything on this server went.
    pub fn server_stats(&self) -> ServerStats {
        let now = self.clock().now();
        let mut state = self.stats().lock();
        state.load.pass(now);
        let State { all, load, .. } = &*state;
        let stretches = [&load.last_10s, &load.last_minute, &load.last_hour].map(|ring| ring.stretch(now));
        let [last_10s, last_minute, last_hour] = stretches;
        let all = flow_stats(all, now);
        drop(state);
        ServerStats {
            all,
            last_10s,
            last_minute,
            last_hour,
            n_hot_runs: self.mailboxes().len(),
            n_own_calls: self.calls().len(),
            n_inputs: self.mailboxes().n_waiting(),
            process: ProcessStats::read(),
        }
    }

    /// How one flow went on this server; nothing of one that is not counted.
    pub fn flow_stats(&self, flow: FlowId) -> (FlowStats, Vec<NodeStats>) {
        let (now, state) = (self.clock().now(), self.stats().lock());
        match state.flows.get(&flow) {
            Some(of) => (flow_stats(&of.counts, now), node_stats(&of.nodes)),
            None => (flow_stats(&Counts::new(), now), Vec::new()),
        }
    }

    /// All flows that are counted.
    pub fn flows_with_stats(&self) -> Vec<FlowId> {
        let mut flows: Vec<FlowId> = self.stats().lock().flows.keys().copied().collect();
        flows.sort_unstable();
        flows
    }
}

fn flow_stats(counts: &Counts, now: Timestamp) -> FlowStats {
    let (calls, runs) = counts.stats(now);
    let [call_ms, run_ms] = counts.durations();
    let (n_open, n_open_max) = (counts.n_open, counts.n_open_max);
    FlowStats { totals: counts.totals, calls, runs, call_ms, run_ms, n_open, n_open_max }
}

#[cfg(test)]
mod tests;
