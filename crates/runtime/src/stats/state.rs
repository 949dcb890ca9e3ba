//! Counters of flows, nodes, calls and runs, updated by each durable commit.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use windlass_engine::counter::{Fence, Revision};
use windlass_engine::event::Ending;
use windlass_engine::id::{FlowId, RunId};
use windlass_engine::job::State as JobState;
use windlass_engine::path::NodePath;
use windlass_engine::plan::Plan;
use windlass_engine::time::Timestamp;
use windlass_store::commit::JobChange;
use windlass_store::job::CallRef;
use windlass_store::projection::metric_event::MetricEvent;

use super::concurrency::ConcurrencyWindows;
use super::counters::{AttemptOutcome, EndedAttempt, EndedRound, FlowCounters, NodeCounters};
use super::open_calls::{CallStage, NodeProgress, OpenCall, OpenCalls};
use super::{FlowMetrics, OTHER_LABEL};

/// Flows with counters of their own, up to 100 KB each besides their nodes. Beyond that, the flows without events for
/// longest are evicted.
pub(super) const FLOWS_MAX: usize = 200;
/// Flows that are evicted together, so that not every new flow costs a search.
pub(super) const EVICTED_TOGETHER: usize = 20;
/// Nodes of one flow with counters of their own, 1 to 7 KB each. Further nodes are counted together.
pub(super) const NODES_MAX: usize = 100;
/// Open runs whose call durations are added up. Beyond that, the oldest are left out of averages.
pub(super) const RUNS_MAX: usize = 100_000;

#[derive(Debug)]
pub(super) struct StatsState {
    pub(super) open: OpenCalls,
    /// Calls that began when the limit of open calls was reached.
    n_untracked: u64,
    pub(super) runs: BTreeMap<RunId, OpenRun>,
    pub(super) all: FlowCounters,
    pub(super) concurrency: ConcurrencyWindows,
    pub(super) flows: HashMap<FlowId, CountedFlow>,
    /// The sums of evicted flows.
    pub(super) evicted: FlowMetrics,
}

/// A round of a run that has not ended.
#[derive(Debug)]
pub(super) struct OpenRun {
    begun_at: Timestamp,
    work_ms: u64,
    /// Whether no other server wrote to it.
    is_observed: bool,
}

#[derive(Debug)]
pub(super) struct CountedFlow {
    pub(super) counters: FlowCounters,
    pub(super) nodes: HashMap<String, NodeCounters>,
}

/// The run of a commit.
pub(super) struct CommittedRun<'p> {
    pub(super) run: RunId,
    pub(super) created_at: Timestamp,
    pub(super) round: u32,
    pub(super) flow: FlowId,
    pub(super) plan: &'p Plan,
    pub(super) jobs: CallJobs<'p>,
    pub(super) is_call: &'p dyn Fn(&NodePath) -> bool,
    pub(super) progress: &'p dyn Fn(&NodePath) -> NodeProgress,
}

/// The jobs of a commit that carry calls of its run.
#[derive(Default)]
pub(super) struct CallJobs<'p> {
    /// Nodes whose calls were put into a queue.
    pub(super) queued: BTreeSet<&'p NodePath>,
    /// For each job that ended: when it was put into its queue, and when a worker claimed it.
    pub(super) claimed: BTreeMap<&'p NodePath, (Timestamp, Timestamp)>,
}

impl<'p> CallJobs<'p> {
    pub(super) fn of(run: RunId, changes: &'p [JobChange]) -> Self {
        let mut jobs = CallJobs::default();
        for change in changes {
            let Some(call) = change.origin.call.as_ref().filter(|call| call.run == run) else { continue };
            if change.expected_rev == Revision::ZERO {
                jobs.queued.insert(&call.node);
            } else if let Some(at) = change.job.latest().started_at {
                jobs.claimed.insert(&call.node, (change.job.created_at, at));
            }
        }
        jobs
    }
}

impl StatsState {
    pub(super) fn new(now: Timestamp) -> Self {
        StatsState {
            open: OpenCalls::default(),
            n_untracked: 0,
            runs: BTreeMap::new(),
            all: FlowCounters::new(),
            concurrency: ConcurrencyWindows::new(now),
            flows: HashMap::new(),
            evicted: FlowMetrics::default(),
        }
    }

    pub(super) fn record_all(
        &mut self,
        of: &CommittedRun<'_>,
        metric_events: &[MetricEvent],
        now: Timestamp,
    ) {
        self.add_flow(of.flow);
        for moment in metric_events {
            self.record(of, moment, now);
        }
        self.open.confirm_run(of.run, now, of.progress);
        self.update_concurrency(now);
    }

    /// Takes the number of calls in progress from now on.
    pub(super) fn update_concurrency(&mut self, now: Timestamp) {
        let n = self.open.n_working();
        if n != self.concurrency.n() {
            self.concurrency.set(n, now);
        }
    }

    fn add_flow(&mut self, flow: FlowId) {
        if self.flows.contains_key(&flow) {
            return;
        }
        if self.flows.len() >= FLOWS_MAX {
            let mut quiet: Vec<(Timestamp, FlowId)> =
                self.flows.iter().map(|(flow, of)| (of.counters.last_at(), *flow)).collect();
            quiet.sort_unstable();
            for (_, flow) in quiet.into_iter().take(EVICTED_TOGETHER) {
                if let Some(of) = self.flows.remove(&flow) {
                    self.evicted.add_evicted(&of.counters, &of.nodes);
                }
            }
        }
        self.flows.insert(flow, CountedFlow { counters: FlowCounters::new(), nodes: HashMap::new() });
    }

    /// Updates the counters of all flows, and those of this flow.
    fn count(&mut self, flow: FlowId, count: impl Fn(&mut FlowCounters)) {
        count(&mut self.all);
        if let Some(of) = self.flows.get_mut(&flow) {
            count(&mut of.counters);
        }
    }

    fn record(&mut self, of: &CommittedRun<'_>, moment: &MetricEvent, now: Timestamp) {
        match moment {
            MetricEvent::Begun => {
                self.count(of.flow, |counters| counters.round_began(now));
                if self.runs.len() >= RUNS_MAX {
                    // Their ids sort by when they were made.
                    self.runs.pop_first();
                }
                self.runs.insert(of.run, OpenRun { begun_at: now, work_ms: 0, is_observed: true });
            }
            MetricEvent::Granted { node, fence } => self.granted(of, node, *fence, now),
            MetricEvent::Suspended(node) => self.rested(of, node, AttemptOutcome::Suspended, now),
            MetricEvent::Deferred(node) => self.rested(of, node, AttemptOutcome::Failed, now),
            MetricEvent::Settled { node, is_ok } => self.settled(of, node, *is_ok, now),
            MetricEvent::Dropped(node) => self.open.remove_inside(of.run, node),
            MetricEvent::Ended(ending) => self.ended(of, *ending, now),
        }
    }

    fn granted(&mut self, of: &CommittedRun<'_>, node: &NodePath, fence: Fence, now: Timestamp) {
        let key = (of.run, node.clone());
        // A call may be granted again before the previous grant has ended.
        let first_at = self.open.remove(&key).map_or(now, |before| before.first_at);
        let is_queued = of.jobs.queued.contains(node);
        let stage = if is_queued { CallStage::Queued } else { CallStage::Working };
        let call =
            OpenCall { flow: Some(of.flow), fence, first_at, since: now, stage, is_unconfirmed: false };
        let is_known = self.open.put(key, call);
        if !is_queued {
            self.n_untracked += u64::from(!is_known);
            self.call_began(Some(of.flow), None, now);
        }
    }

    /// A call began after this wait in a queue.
    fn call_began(&mut self, flow: Option<FlowId>, wait_ms: Option<u64>, now: Timestamp) {
        self.all.call_began(wait_ms, self.open.n_working(), now);
        let n = flow.map_or(0, |flow| self.open.n_working_of(flow));
        if let Some(of) = flow.and_then(|flow| self.flows.get_mut(&flow)) {
            of.counters.call_began(wait_ms, n, now);
        }
    }

    /// The time from the start of a call until now, if the start is known.
    fn work_ms(
        of: &CommittedRun<'_>,
        node: &NodePath,
        call: Option<&OpenCall>,
        now: Timestamp,
    ) -> Option<u64> {
        let began = call.filter(|call| call.stage == CallStage::Working).map(|call| call.since);
        of.jobs.claimed.get(node).map(|(_, at)| *at).or(began).map(|at| now.since(at))
    }

    /// An attempt ended, and its node waits for the next one.
    fn rested(&mut self, of: &CommittedRun<'_>, node: &NodePath, outcome: AttemptOutcome, now: Timestamp) {
        let key = (of.run, node.clone());
        let call = self.open.remove(&key);
        let work_ms = Self::work_ms(of, node, call.as_ref(), now);
        if call.is_none() && work_ms.is_none() && !self.was_untracked(of, node) {
            return;
        }
        self.attempt_ended(of, node, EndedAttempt { outcome, work_ms, node_ms: None, wait_ms: None }, now);
        if let Some(call) = call {
            let stage = CallStage::Resting { is_suspended: outcome == AttemptOutcome::Suspended };
            self.open.put(key, OpenCall { stage, since: now, is_unconfirmed: false, ..call });
        }
    }

    fn settled(&mut self, of: &CommittedRun<'_>, node: &NodePath, is_ok: bool, now: Timestamp) {
        self.count(of.flow, |counters| counters.node_settled(now));
        let call = self.open.remove(&(of.run, node.clone()));
        let work_ms = Self::work_ms(of, node, call.as_ref(), now);
        let is_attempt = match call.as_ref().map(|call| call.stage) {
            Some(CallStage::Queued | CallStage::Working | CallStage::Resting { is_suspended: true }) => true,
            // The node timed out between two attempts.
            Some(CallStage::Resting { is_suspended: false }) => false,
            None => work_ms.is_some() || self.was_untracked(of, node),
        };
        let node_ms = call.map(|call| now.since(call.first_at));
        let outcome = if is_ok { AttemptOutcome::Succeeded } else { AttemptOutcome::Failed };
        if is_attempt {
            self.attempt_ended(of, node, EndedAttempt { outcome, work_ms, node_ms, wait_ms: None }, now);
        }
    }

    /// Whether this call began when the limit of open calls was reached; it no longer counts as untracked.
    fn was_untracked(&mut self, of: &CommittedRun<'_>, node: &NodePath) -> bool {
        let was = self.n_untracked > 0 && (of.is_call)(node);
        self.n_untracked -= u64::from(was);
        was
    }

    fn attempt_ended(
        &mut self,
        of: &CommittedRun<'_>,
        node: &NodePath,
        mut ended: EndedAttempt,
        now: Timestamp,
    ) {
        ended.wait_ms = of.jobs.claimed.get(node).map(|(queued, claimed)| claimed.since(*queued));
        self.count(of.flow, |counters| counters.attempt_ended(ended, now));
        if let Some(run) = self.runs.get_mut(&of.run) {
            run.work_ms = run.work_ms.saturating_add(ended.work_ms.unwrap_or(0));
        }
        if let Some(counters) = self.node(of, node) {
            counters.attempt_ended(ended);
        }
    }

    fn node(&mut self, of: &CommittedRun<'_>, node: &NodePath) -> Option<&mut NodeCounters> {
        let nodes = &mut self.flows.get_mut(&of.flow)?.nodes;
        let mut name = of.plan.pattern(node);
        if nodes.len() >= NODES_MAX && !nodes.contains_key(&name) {
            OTHER_LABEL.clone_into(&mut name);
        }
        Some(nodes.entry(name).or_insert_with(NodeCounters::new))
    }

    fn ended(&mut self, of: &CommittedRun<'_>, ending: Ending, now: Timestamp) {
        self.open.remove_inside(of.run, &NodePath::root());
        let run = self.runs.remove(&of.run);
        let first = (of.round <= 1).then_some(of.created_at);
        let run_ms = run.as_ref().map(|run| run.begun_at).or(first).map(|at| now.since(at));
        let call_ms = run.filter(|run| run.is_observed).map(|run| run.work_ms);
        let ended = EndedRound { ending, run_ms, call_ms };
        self.count(of.flow, |counters| counters.round_ended(ended, now));
    }

    /// Records a change of a job that carries a call and did not change its run: a claim, a heartbeat, a release.
    pub(super) fn job_changed(&mut self, call: &CallRef, change: &JobChange, now: Timestamp) {
        let (key, job) = ((call.run, call.node.clone()), &change.job);
        let known = self.open.find(&key).filter(|known| known.fence == call.fence);
        let stage = known.map(|known| known.stage);
        match (&job.state, stage) {
            (JobState::Running { .. }, Some(CallStage::Working)) => self.open.confirm(&key),
            (JobState::Running { .. }, Some(CallStage::Queued) | None) => self.claimed(call, change, now),
            (JobState::Pending { .. } | JobState::Queued { .. }, Some(CallStage::Working)) => {
                if let Some(known) = self.open.remove(&key) {
                    self.open.put(key, OpenCall { stage: CallStage::Queued, since: now, ..known });
                }
            }
            (
                JobState::Succeeded | JobState::Failed { .. } | JobState::Canceled,
                Some(CallStage::Working | CallStage::Queued),
            ) => {
                self.open.remove(&key);
            }
            (
                JobState::Pending { .. }
                | JobState::Queued { .. }
                | JobState::Suspended { .. }
                | JobState::Retrying { .. }
                | JobState::Running { .. }
                | JobState::Succeeded
                | JobState::Failed { .. }
                | JobState::Canceled,
                _,
            ) => {}
        }
    }

    fn claimed(&mut self, call: &CallRef, change: &JobChange, now: Timestamp) {
        let job = &change.job;
        // Only a claim starts and updates a job at the same time.
        let Some(at) = job.latest().started_at.filter(|at| *at == job.updated_at) else { return };
        let key = (call.run, call.node.clone());
        let known = self.open.remove(&key).filter(|known| known.fence == call.fence);
        let (flow, first_at, since) = match known {
            Some(known) => (known.flow, known.first_at, known.since),
            None => (None, job.created_at, job.created_at),
        };
        let fence = call.fence;
        let open =
            OpenCall { flow, fence, first_at, since: at, stage: CallStage::Working, is_unconfirmed: false };
        self.open.put(key, open);
        self.call_began(flow, Some(at.since(since)), now);
    }

    /// Another server has written to this run.
    pub(super) fn invalidate(&mut self, run: RunId, now: Timestamp) {
        let known = self.runs.get_mut(&run);
        let is_known = known.is_some();
        known.into_iter().for_each(|run| run.is_observed = false);
        self.open.invalidate(run, is_known, now);
    }

    /// Another server may have written to any run.
    pub(super) fn invalidate_all(&mut self, now: Timestamp) {
        let runs: BTreeSet<RunId> = self.open.runs().chain(self.runs.keys().copied()).collect();
        runs.into_iter().for_each(|run| self.invalidate(run, now));
    }

    /// Removes calls that were unconfirmed for too long.
    pub(super) fn expire(&mut self, now: Timestamp, is_made: impl Fn(RunId, Fence) -> bool) {
        for run in self.open.expire(now, is_made) {
            self.runs.remove(&run);
        }
        self.update_concurrency(now);
    }
}
