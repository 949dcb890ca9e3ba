//! Calls that are open, as far as this server has heard: who waits in a queue, who works, what is between two
//! attempts.
//!
//! Another server may end what began here. Whatever it writes to makes what is known of that run doubtful: the next
//! commit of this server to the run settles that, a worker that gives a sign of life confirms its call, and what
//! nobody confirms is forgotten.

use std::collections::{BTreeMap, HashMap, VecDeque};

use windlass_engine::id::{FlowId, RunId};
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;

/// Calls that work is done on, and as many again that wait; of more, it is not known how long they take.
pub(super) const OPEN_MAX: usize = 200_000;
/// How long something may be doubtful before it is forgotten.
pub(super) const DOUBT_MS: u64 = 60_000;
/// How long a run is doubtful before its own commits settle that: others may write to it all the time.
const SETTLE_MS: u64 = 1_000;

/// Whose call it is.
pub(super) type Key = (RunId, NodePath);

/// What is done about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is in a queue.
    Queued,
    /// Somebody has it.
    Working,
    /// It is tried, asked or reported later.
    Resting { is_suspended: bool },
}

/// How a place stands in a run that was just written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// Somebody was given its call under this fence.
    Granted(u64),
    /// It goes on later.
    Open,
    Over,
}

/// A call that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenCall {
    /// Unknown of a call that another server put into the queue.
    pub(super) flow: Option<FlowId>,
    pub(super) fence: u64,
    /// When somebody was first given it in this visit.
    pub(super) first_at: Timestamp,
    /// Since when it is in this stage.
    pub(super) since: Timestamp,
    pub(super) stage: Stage,
    pub(super) is_doubted: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    calls: BTreeMap<Key, OpenCall>,
    n_working: usize,
    n_queued: usize,
    by_flow: HashMap<FlowId, u64>,
    doubted: HashMap<RunId, Timestamp>,
    /// The same in their order.
    doubts: VecDeque<(Timestamp, RunId)>,
}

impl OpenCalls {
    pub(super) fn n_working(&self) -> u64 {
        self.n_working as u64
    }

    pub(super) fn n_queued(&self) -> u64 {
        self.n_queued as u64
    }

    /// Those of a flow that work is done on.
    pub(super) fn of_flow(&self, flow: FlowId) -> u64 {
        self.by_flow.get(&flow).copied().unwrap_or(0)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    #[cfg(test)]
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.calls.keys()
    }

    pub(super) fn find(&self, key: &Key) -> Option<&OpenCall> {
        self.calls.get(key)
    }

    /// Remembers a call in place of what was known of it; `false` = there are too many.
    pub(super) fn put(&mut self, key: Key, call: OpenCall) -> bool {
        self.remove(&key);
        let has_room = match call.stage {
            Stage::Working => self.n_working < OPEN_MAX,
            Stage::Queued | Stage::Resting { .. } => self.calls.len() - self.n_working < OPEN_MAX,
        };
        if !has_room {
            return false;
        }
        match call.stage {
            Stage::Working => {
                self.n_working += 1;
                if let Some(flow) = call.flow {
                    *self.by_flow.entry(flow).or_default() += 1;
                }
            }
            Stage::Queued => self.n_queued += 1,
            Stage::Resting { .. } => {}
        }
        self.calls.insert(key, call);
        true
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<OpenCall> {
        let call = self.calls.remove(key)?;
        match call.stage {
            Stage::Working => {
                self.n_working -= 1;
                if let Some((flow, n)) = call.flow.and_then(|flow| Some((flow, self.by_flow.get_mut(&flow)?)))
                {
                    *n -= 1;
                    if *n == 0 {
                        self.by_flow.remove(&flow);
                    }
                }
            }
            Stage::Queued => self.n_queued -= 1,
            Stage::Resting { .. } => {}
        }
        Some(call)
    }

    /// Forgets everything at this place of a run and inside it.
    pub(super) fn drop_inside(&mut self, run: RunId, node: &NodePath) {
        let keys = self.calls.range((run, node.clone())..).map(|(key, _)| key);
        // What is beside a place may sort between it and what is inside.
        let beside = |(of, path): &&Key| *of == run && path.as_str().starts_with(node.as_str());
        let inside = keys.take_while(beside).filter(|(_, path)| node.holds(path));
        for key in inside.cloned().collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    /// Another server has written to this run; `is_known` = something else is remembered of it.
    pub(super) fn doubt(&mut self, run: RunId, is_known: bool, now: Timestamp) {
        let mut is_any = is_known;
        for (_, call) in self.calls.range_mut((run, NodePath::root())..).take_while(|((of, _), _)| *of == run)
        {
            (is_any, call.is_doubted) = (true, true);
        }
        if is_any && !self.doubted.contains_key(&run) {
            self.doubted.insert(run, now);
            self.doubts.push_back((now, run));
        }
    }

    /// The runs that have some.
    pub(super) fn runs(&self) -> impl Iterator<Item = RunId> {
        self.calls.keys().map(|(run, _)| *run)
    }

    /// Whoever has it has given a sign of life.
    pub(super) fn confirm(&mut self, key: &Key) {
        if let Some(call) = self.calls.get_mut(key) {
            call.is_doubted = false;
        }
    }

    /// This server has written to a run, and knows how it stands.
    pub(super) fn settle(&mut self, run: RunId, now: Timestamp, stands: impl Fn(&NodePath) -> Stands) {
        if self.doubted.get(&run).is_none_or(|since| now.since(*since) < SETTLE_MS) {
            return;
        }
        self.doubted.remove(&run);
        let is_so = |path: &NodePath, call: &OpenCall| match (call.stage, stands(path)) {
            (Stage::Queued | Stage::Working, Stands::Granted(fence)) => fence == call.fence,
            (Stage::Resting { .. }, Stands::Granted(_) | Stands::Open) => true,
            (Stage::Queued | Stage::Working, Stands::Open | Stands::Over)
            | (Stage::Resting { .. }, Stands::Over) => false,
        };
        self.keep_doubted(run, is_so);
    }

    /// Forgets what was doubtful for too long, unless this server makes the call itself; answers with the runs.
    pub(super) fn expire(&mut self, now: Timestamp, is_made: impl Fn(RunId, u64) -> bool) -> Vec<RunId> {
        let mut runs = Vec::new();
        while let Some((since, run)) = self.doubts.front().copied() {
            let is_old = now.since(since) >= DOUBT_MS;
            let is_news = self.doubted.get(&run) == Some(&since);
            if !is_old && is_news {
                break;
            }
            self.doubts.pop_front();
            if is_news {
                self.doubted.remove(&run);
                self.keep_doubted(run, |_, call| is_made(run, call.fence));
                runs.push(run);
            }
        }
        runs
    }

    /// Of what is doubtful of a run, keeps what is so.
    fn keep_doubted(&mut self, run: RunId, is_so: impl Fn(&NodePath, &OpenCall) -> bool) {
        let mut gone = Vec::new();
        let of_run = self.calls.range_mut((run, NodePath::root())..).take_while(|((of, _), _)| *of == run);
        for (key, call) in of_run.filter(|(_, call)| call.is_doubted) {
            call.is_doubted = false;
            if !is_so(&key.1, call) {
                gone.push(key.clone());
            }
        }
        for key in gone {
            self.remove(&key);
        }
    }
}
