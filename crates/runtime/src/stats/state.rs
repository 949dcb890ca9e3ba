//! From what became durable to what is counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use windlass_engine::event::Ending;
use windlass_engine::id::{FlowId, RunId};
use windlass_engine::job::State as JobState;
use windlass_engine::path::NodePath;
use windlass_engine::plan::Plan;
use windlass_engine::time::Timestamp;
use windlass_store::commit::JobChange;
use windlass_store::job::CallRef;
use windlass_store::project::moments::Moment;

use super::counts::{Attempted, Counts, How, NodeCounts, Sums};
use super::load::Load;
use super::open::{OpenCall, OpenCalls, Stage, Stands};

/// Flows that are counted, some 80 KB each besides their nodes; of more, those that were quiet longest are forgotten.
pub(super) const FLOWS_MAX: usize = 200;
/// How many are forgotten at once, so that many more flows than that do not cost a search each.
pub(super) const FORGET: usize = 20;
/// Nodes of one flow that are counted, some 1,200 bytes each; what more there are is counted together.
pub(super) const NODES_MAX: usize = 100;
/// Runs whose work is added up; of more, the oldest are left out of averages.
pub(super) const RUNS_MAX: usize = 100_000;
/// What is counted together. No node is called so: no name is empty or contains `/`.
pub const OTHERS: &str = "/other";

#[derive(Debug)]
pub(super) struct State {
    pub(super) open: OpenCalls,
    /// Calls of which nothing is remembered but that they began.
    n_unseen: u64,
    pub(super) runs: BTreeMap<RunId, OpenRun>,
    pub(super) all: Counts,
    pub(super) load: Load,
    pub(super) flows: HashMap<FlowId, OfFlow>,
    /// What the flows did that are not counted by themselves any more.
    pub(super) forgotten: Sums,
}

/// A round of a run that has not ended.
#[derive(Debug)]
pub(super) struct OpenRun {
    begun_at: Timestamp,
    work_ms: u64,
    /// Whether all of it was seen here.
    is_whole: bool,
}

#[derive(Debug)]
pub(super) struct OfFlow {
    pub(super) counts: Counts,
    pub(super) nodes: HashMap<String, NodeCounts>,
}

/// Whose moments are counted.
pub(super) struct Subject<'p> {
    pub(super) run: RunId,
    pub(super) created_at: Timestamp,
    pub(super) round: u32,
    pub(super) flow: FlowId,
    pub(super) plan: &'p Plan,
    pub(super) jobs: Jobs<'p>,
    pub(super) is_call: &'p dyn Fn(&NodePath) -> bool,
    pub(super) stands: &'p dyn Fn(&NodePath) -> Stands,
}

/// What the jobs of a commit tell of its calls.
#[derive(Default)]
pub(super) struct Jobs<'p> {
    /// Places whose calls were put into a queue.
    pub(super) queued: BTreeSet<&'p NodePath>,
    /// Of the jobs that end now: when they were put into their queue, and when somebody got them.
    pub(super) claimed: BTreeMap<&'p NodePath, (Timestamp, Timestamp)>,
}

impl<'p> Jobs<'p> {
    pub(super) fn of(run: RunId, changes: &'p [JobChange]) -> Self {
        let mut jobs = Jobs::default();
        for change in changes {
            let Some(call) = change.origin.call.as_ref().filter(|call| call.run == run) else { continue };
            if change.expected_rev == 0 {
                jobs.queued.insert(&call.node);
            } else if let Some(at) = change.job.latest().started_at {
                jobs.claimed.insert(&call.node, (change.job.created_at, at));
            }
        }
        jobs
    }
}

impl State {
    pub(super) fn new(now: Timestamp) -> Self {
        State {
            open: OpenCalls::default(),
            n_unseen: 0,
            runs: BTreeMap::new(),
            all: Counts::new(),
            load: Load::new(now),
            flows: HashMap::new(),
            forgotten: Sums::new(),
        }
    }

    pub(super) fn follow_all(&mut self, of: &Subject<'_>, moments: &[Moment], now: Timestamp) {
        self.flow(of.flow);
        for moment in moments {
            self.follow(of, moment, now);
        }
        self.open.settle(of.run, now, of.stands);
        self.measure(now);
    }

    /// How many work from now on.
    pub(super) fn measure(&mut self, now: Timestamp) {
        let n = self.open.n_working();
        if n != self.load.n() {
            self.load.set(n, now);
        }
    }

    fn flow(&mut self, flow: FlowId) {
        if self.flows.contains_key(&flow) {
            return;
        }
        if self.flows.len() >= FLOWS_MAX {
            let mut quiet: Vec<(Timestamp, FlowId)> =
                self.flows.iter().map(|(flow, of)| (of.counts.last_at(), *flow)).collect();
            quiet.sort_unstable();
            for (_, flow) in quiet.into_iter().take(FORGET) {
                if let Some(of) = self.flows.remove(&flow) {
                    self.forgotten.add_forgotten(&of.counts, &of.nodes);
                }
            }
        }
        self.flows.insert(flow, OfFlow { counts: Counts::new(), nodes: HashMap::new() });
    }

    fn each(&mut self, flow: Option<FlowId>, count: impl Fn(&mut Counts)) {
        count(&mut self.all);
        if let Some(of) = flow.and_then(|flow| self.flows.get_mut(&flow)) {
            count(&mut of.counts);
        }
    }

    fn follow(&mut self, of: &Subject<'_>, moment: &Moment, now: Timestamp) {
        match moment {
            Moment::Begun => {
                self.each(Some(of.flow), |counts| counts.begun(now));
                if self.runs.len() >= RUNS_MAX {
                    // Their ids sort by when they were made.
                    self.runs.pop_first();
                }
                self.runs.insert(of.run, OpenRun { begun_at: now, work_ms: 0, is_whole: true });
            }
            Moment::Granted { node, fence } => self.granted(of, node, *fence, now),
            Moment::Suspended(node) => self.rests(of, node, How::Suspended, now),
            Moment::Deferred(node) => self.rests(of, node, How::Failed, now),
            Moment::Settled { node, is_ok } => self.settled(of, node, *is_ok, now),
            Moment::Dropped(node) => self.open.drop_inside(of.run, node),
            Moment::Ended(ending) => self.ended(of, *ending, now),
        }
    }

    fn granted(&mut self, of: &Subject<'_>, node: &NodePath, fence: u64, now: Timestamp) {
        let key = (of.run, node.clone());
        // The same call may be given again without having come back.
        let first_at = self.open.remove(&key).map_or(now, |before| before.first_at);
        let is_queued = of.jobs.queued.contains(node);
        let stage = if is_queued { Stage::Queued } else { Stage::Working };
        let call = OpenCall { flow: Some(of.flow), fence, first_at, since: now, stage, is_doubted: false };
        let is_known = self.open.put(key, call);
        if !is_queued {
            self.n_unseen += u64::from(!is_known);
            self.started(Some(of.flow), None, now);
        }
    }

    /// Somebody has a call, after it was in a queue for so long.
    fn started(&mut self, flow: Option<FlowId>, wait_ms: Option<u64>, now: Timestamp) {
        self.all.started(wait_ms, self.open.n_working(), now);
        let n = flow.map_or(0, |flow| self.open.of_flow(flow));
        if let Some(of) = flow.and_then(|flow| self.flows.get_mut(&flow)) {
            of.counts.started(wait_ms, n, now);
        }
    }

    /// How long a call was worked on, if that is known.
    fn work_ms(of: &Subject<'_>, node: &NodePath, call: Option<&OpenCall>, now: Timestamp) -> Option<u64> {
        let began = call.filter(|call| call.stage == Stage::Working).map(|call| call.since);
        of.jobs.claimed.get(node).map(|(_, at)| *at).or(began).map(|at| now.since(at))
    }

    /// An attempt ended, and the node goes on later.
    fn rests(&mut self, of: &Subject<'_>, node: &NodePath, how: How, now: Timestamp) {
        let key = (of.run, node.clone());
        let call = self.open.remove(&key);
        let work_ms = Self::work_ms(of, node, call.as_ref(), now);
        if call.is_none() && work_ms.is_none() && !self.was_unseen(of, node) {
            return;
        }
        self.attempted(of, node, Attempted { how, work_ms, whole_ms: None, wait_ms: None }, now);
        if let Some(call) = call {
            let stage = Stage::Resting { is_suspended: how == How::Suspended };
            self.open.put(key, OpenCall { stage, since: now, is_doubted: false, ..call });
        }
    }

    fn settled(&mut self, of: &Subject<'_>, node: &NodePath, is_ok: bool, now: Timestamp) {
        self.each(Some(of.flow), |counts| counts.settled(now));
        let call = self.open.remove(&(of.run, node.clone()));
        let work_ms = Self::work_ms(of, node, call.as_ref(), now);
        let is_attempt = match call.as_ref().map(|call| call.stage) {
            Some(Stage::Queued | Stage::Working | Stage::Resting { is_suspended: true }) => true,
            // Its time ran out between two attempts.
            Some(Stage::Resting { is_suspended: false }) => false,
            None => work_ms.is_some() || self.was_unseen(of, node),
        };
        let whole_ms = call.map(|call| now.since(call.first_at));
        let how = if is_ok { How::Succeeded } else { How::Failed };
        if is_attempt {
            self.attempted(of, node, Attempted { how, work_ms, whole_ms, wait_ms: None }, now);
        }
    }

    /// Whether it is one of those that nothing is remembered of.
    fn was_unseen(&mut self, of: &Subject<'_>, node: &NodePath) -> bool {
        let was = self.n_unseen > 0 && (of.is_call)(node);
        self.n_unseen -= u64::from(was);
        was
    }

    fn attempted(&mut self, of: &Subject<'_>, node: &NodePath, mut ended: Attempted, now: Timestamp) {
        ended.wait_ms = of.jobs.claimed.get(node).map(|(queued, claimed)| claimed.since(*queued));
        self.each(Some(of.flow), |counts| counts.attempted(ended, now));
        if let Some(run) = self.runs.get_mut(&of.run) {
            run.work_ms = run.work_ms.saturating_add(ended.work_ms.unwrap_or(0));
        }
        if let Some(counts) = self.node(of, node) {
            counts.attempted(ended);
        }
    }

    fn node(&mut self, of: &Subject<'_>, node: &NodePath) -> Option<&mut NodeCounts> {
        let nodes = &mut self.flows.get_mut(&of.flow)?.nodes;
        let mut name = of.plan.pattern(node);
        if nodes.len() >= NODES_MAX && !nodes.contains_key(&name) {
            OTHERS.clone_into(&mut name);
        }
        Some(nodes.entry(name).or_insert_with(NodeCounts::new))
    }

    fn ended(&mut self, of: &Subject<'_>, ending: Ending, now: Timestamp) {
        self.open.drop_inside(of.run, &NodePath::root());
        let run = self.runs.remove(&of.run);
        let first = (of.round <= 1).then_some(of.created_at);
        let ms = run.as_ref().map(|run| run.begun_at).or(first).map(|at| now.since(at));
        let whole = run.filter(|run| run.is_whole).map(|run| run.work_ms).zip(ms);
        self.each(Some(of.flow), |counts| counts.ended(ending, ms, whole, now));
    }

    /// Changes of jobs that carry calls, and that no run was told of: claims, signs of life, what is given back.
    pub(super) fn job_moved(&mut self, call: &CallRef, change: &JobChange, now: Timestamp) {
        let (key, job) = ((call.run, call.node.clone()), &change.job);
        let known = self.open.find(&key).filter(|known| known.fence == call.fence);
        let stage = known.map(|known| known.stage);
        match (&job.state, stage) {
            (JobState::Running { .. }, Some(Stage::Working)) => self.open.confirm(&key),
            (JobState::Running { .. }, Some(Stage::Queued) | None) => self.claimed(call, change, now),
            (JobState::Pending { .. } | JobState::Queued { .. }, Some(Stage::Working)) => {
                if let Some(known) = self.open.remove(&key) {
                    self.open.put(key, OpenCall { stage: Stage::Queued, since: now, ..known });
                }
            }
            (
                JobState::Succeeded | JobState::Failed { .. } | JobState::Cancelled,
                Some(Stage::Working | Stage::Queued),
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
                | JobState::Cancelled,
                _,
            ) => {}
        }
    }

    fn claimed(&mut self, call: &CallRef, change: &JobChange, now: Timestamp) {
        let job = &change.job;
        // Anything else that happens to a job in somebody's hands is no claim.
        let Some(at) = job.latest().started_at.filter(|at| *at == job.updated_at) else { return };
        let key = (call.run, call.node.clone());
        let known = self.open.remove(&key).filter(|known| known.fence == call.fence);
        let (flow, first_at, since) = match known {
            Some(known) => (known.flow, known.first_at, known.since),
            None => (None, job.created_at, job.created_at),
        };
        let fence = call.fence;
        let open = OpenCall { flow, fence, first_at, since: at, stage: Stage::Working, is_doubted: false };
        self.open.put(key, open);
        self.started(flow, Some(at.since(since)), now);
    }

    /// Another server has written to this run.
    pub(super) fn doubt(&mut self, run: RunId, now: Timestamp) {
        let known = self.runs.get_mut(&run);
        let is_known = known.is_some();
        known.into_iter().for_each(|run| run.is_whole = false);
        self.open.doubt(run, is_known, now);
    }

    /// Another server may have written to any run.
    pub(super) fn doubt_all(&mut self, now: Timestamp) {
        let runs: BTreeSet<RunId> = self.open.runs().chain(self.runs.keys().copied()).collect();
        runs.into_iter().for_each(|run| self.doubt(run, now));
    }

    /// Forgets what nobody has confirmed.
    pub(super) fn expire(&mut self, now: Timestamp, is_made: impl Fn(RunId, u64) -> bool) {
        for run in self.open.expire(now, is_made) {
            self.runs.remove(&run);
        }
        self.measure(now);
    }
}
