//! Open calls of runs, as far as this server knows: in a queue, in progress, or between two attempts.
//!
//! Another server may end a call that began here. When it writes to a run, the calls of that run become unconfirmed:
//! the next commit of this server to the run confirms or removes them, a heartbeat of the worker confirms its call, and
//! a call that nothing confirms within a minute is removed.

use std::collections::{BTreeMap, HashMap, VecDeque};

use windlass_engine::counter::Fence;
use windlass_engine::id::{FlowId, RunId};
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;

/// Calls in progress, and as many again that wait. The durations of further calls are unknown.
const OPEN_MAX: usize = 200_000;
/// How long a call may be unconfirmed before it is removed.
pub(super) const UNCONFIRMED_MS_MAX: u64 = 60_000;
/// How long a run stays unconfirmed before a commit of this server confirms it: other servers may write all the time.
const CONFIRM_DELAY_MS: u64 = 1_000;

/// The run and the node of a call.
pub(super) type CallKey = (RunId, NodePath);

/// The stage of an open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallStage {
    /// It is in a queue.
    Queued,
    /// A worker or this server works on it.
    Working,
    /// It waits for a retry, a recheck or a report.
    Resting { is_suspended: bool },
}

/// The state of a node in a run that was just written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeProgress {
    /// Its call was granted under this fence.
    Granted(Fence),
    /// It waits for its next attempt.
    Open,
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenCall {
    /// Unknown if another server put the call into the queue.
    pub(super) flow: Option<FlowId>,
    pub(super) fence: Fence,
    /// The first grant of this visit.
    pub(super) first_at: Timestamp,
    /// When it entered its stage.
    pub(super) since: Timestamp,
    pub(super) stage: CallStage,
    pub(super) is_unconfirmed: bool,
}

/// All open calls, with counts by stage and by flow.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    calls: BTreeMap<CallKey, OpenCall>,
    n_working: usize,
    n_queued: usize,
    by_flow: HashMap<FlowId, u64>,
    /// Runs that another server wrote to, since when.
    unconfirmed: HashMap<RunId, Timestamp>,
    /// The same runs in the order of their times.
    expiries: VecDeque<(Timestamp, RunId)>,
}

impl OpenCalls {
    pub(super) fn n_working(&self) -> u64 {
        self.n_working as u64
    }

    pub(super) fn n_queued(&self) -> u64 {
        self.n_queued as u64
    }

    /// Calls of a flow that are in progress.
    pub(super) fn n_working_of(&self, flow: FlowId) -> u64 {
        self.by_flow.get(&flow).copied().unwrap_or(0)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    #[cfg(test)]
    pub(super) fn keys(&self) -> impl Iterator<Item = &CallKey> {
        self.calls.keys()
    }

    pub(super) fn find(&self, key: &CallKey) -> Option<&OpenCall> {
        self.calls.get(key)
    }

    /// Inserts or replaces a call; `false` = the limit is reached.
    pub(super) fn put(&mut self, key: CallKey, call: OpenCall) -> bool {
        self.remove(&key);
        let has_room = match call.stage {
            CallStage::Working => self.n_working < OPEN_MAX,
            CallStage::Queued | CallStage::Resting { .. } => self.calls.len() - self.n_working < OPEN_MAX,
        };
        if !has_room {
            return false;
        }
        match call.stage {
            CallStage::Working => {
                self.n_working += 1;
                if let Some(flow) = call.flow {
                    *self.by_flow.entry(flow).or_default() += 1;
                }
            }
            CallStage::Queued => self.n_queued += 1,
            CallStage::Resting { .. } => {}
        }
        self.calls.insert(key, call);
        true
    }

    pub(super) fn remove(&mut self, key: &CallKey) -> Option<OpenCall> {
        let call = self.calls.remove(key)?;
        match call.stage {
            CallStage::Working => {
                self.n_working -= 1;
                if let Some((flow, n)) = call.flow.and_then(|flow| Some((flow, self.by_flow.get_mut(&flow)?)))
                {
                    *n -= 1;
                    if *n == 0 {
                        self.by_flow.remove(&flow);
                    }
                }
            }
            CallStage::Queued => self.n_queued -= 1,
            CallStage::Resting { .. } => {}
        }
        Some(call)
    }

    /// Removes the calls of this node and of the nodes inside it.
    pub(super) fn remove_inside(&mut self, run: RunId, node: &NodePath) {
        let keys = self.calls.range((run, node.clone())..).map(|(key, _)| key);
        // A sibling may sort between a node and the nodes inside it.
        let shares_prefix = |(of, path): &&CallKey| *of == run && path.as_str().starts_with(node.as_str());
        let inside = keys.take_while(shares_prefix).filter(|(_, path)| node.holds(path));
        for key in inside.cloned().collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    /// Marks the calls of a run that another server has written to; `is_known` = the run itself is known.
    pub(super) fn invalidate(&mut self, run: RunId, is_known: bool, now: Timestamp) {
        let mut has_any = is_known;
        for (_, call) in self.calls.range_mut((run, NodePath::root())..).take_while(|((of, _), _)| *of == run)
        {
            (has_any, call.is_unconfirmed) = (true, true);
        }
        if has_any && !self.unconfirmed.contains_key(&run) {
            self.unconfirmed.insert(run, now);
            self.expiries.push_back((now, run));
        }
    }

    /// The runs that have open calls.
    pub(super) fn runs(&self) -> impl Iterator<Item = RunId> {
        self.calls.keys().map(|(run, _)| *run)
    }

    /// Confirms a call after a heartbeat of its worker.
    pub(super) fn confirm(&mut self, key: &CallKey) {
        if let Some(call) = self.calls.get_mut(key) {
            call.is_unconfirmed = false;
        }
    }

    /// Confirms or removes the calls of a run that this server has just written.
    pub(super) fn confirm_run(
        &mut self,
        run: RunId,
        now: Timestamp,
        progress: impl Fn(&NodePath) -> NodeProgress,
    ) {
        if self.unconfirmed.get(&run).is_none_or(|since| now.since(*since) < CONFIRM_DELAY_MS) {
            return;
        }
        self.unconfirmed.remove(&run);
        let is_open = |path: &NodePath, call: &OpenCall| match (call.stage, progress(path)) {
            (CallStage::Queued | CallStage::Working, NodeProgress::Granted(fence)) => fence == call.fence,
            (CallStage::Resting { .. }, NodeProgress::Granted(_) | NodeProgress::Open) => true,
            (CallStage::Queued | CallStage::Working, NodeProgress::Open | NodeProgress::Ended)
            | (CallStage::Resting { .. }, NodeProgress::Ended) => false,
        };
        self.retain_unconfirmed(run, is_open);
    }

    /// Removes calls that were unconfirmed for too long, unless this server makes the call itself. Returns their runs.
    pub(super) fn expire(&mut self, now: Timestamp, is_made: impl Fn(RunId, Fence) -> bool) -> Vec<RunId> {
        let mut runs = Vec::new();
        while let Some((since, run)) = self.expiries.front().copied() {
            let is_old = now.since(since) >= UNCONFIRMED_MS_MAX;
            let is_current = self.unconfirmed.get(&run) == Some(&since);
            if !is_old && is_current {
                break;
            }
            self.expiries.pop_front();
            if is_current {
                self.unconfirmed.remove(&run);
                self.retain_unconfirmed(run, |_, call| is_made(run, call.fence));
                runs.push(run);
            }
        }
        runs
    }

    /// Removes the unconfirmed calls of a run that are not open, and confirms the others.
    fn retain_unconfirmed(&mut self, run: RunId, is_open: impl Fn(&NodePath, &OpenCall) -> bool) {
        let mut gone = Vec::new();
        let of_run = self.calls.range_mut((run, NodePath::root())..).take_while(|((of, _), _)| *of == run);
        for (key, call) in of_run.filter(|(_, call)| call.is_unconfirmed) {
            call.is_unconfirmed = false;
            if !is_open(&key.1, call) {
                gone.push(key.clone());
            }
        }
        for key in gone {
            self.remove(&key);
        }
    }
}
