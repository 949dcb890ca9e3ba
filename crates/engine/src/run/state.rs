//! The state of a run: a tree of scopes that mirrors the plan. Only `apply` changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::counter::{Epoch, Fence, Visit};
use crate::input::Refusal;
use crate::money::Amount;
use crate::params::Params;
use crate::plan::{Fan, NodeIx, Scope, Strategy};
use crate::retry::Fault;
use crate::time::Timestamp;

pub type Shared = BTreeMap<String, Arc<Value>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Pending,
    Running,
    Paused,
    Canceling,
    Completed,
    Failed,
    Canceled,
}

impl Status {
    pub fn word(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Running => "running",
            Status::Paused => "paused",
            Status::Canceling => "canceling",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Canceled => "canceled",
        }
    }

    /// Refuses inputs that only an open run can take.
    pub(super) fn require_open(self) -> Result<(), Refusal> {
        match self {
            Status::Running | Status::Paused => Ok(()),
            Status::Canceling => Err(Refusal::Canceling),
            Status::Pending => Err(Refusal::NotStarted),
            Status::Completed | Status::Failed | Status::Canceled => {
                Err(Refusal::Ended { status: self.word() })
            }
        }
    }

    pub fn is_ended(self) -> bool {
        match self {
            Status::Completed | Status::Failed | Status::Canceled => true,
            Status::Pending | Status::Running | Status::Paused | Status::Canceling => false,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScopeState {
    /// Its own shared state; `None` = the enclosing scope's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Shared>,
    /// The weight of the shared state.
    #[serde(default)]
    pub shared_bytes: usize,
    #[serde(default)]
    pub input: Arc<Value>,
    /// The parameters of the run, at the root: the scopes inside add the literal ones of the definition. A snapshot has
    /// them in the start of the run only.
    #[serde(skip)]
    pub params: Params,
    pub nodes: BTreeMap<NodeIx, NodeState>,
    /// The active node of an action scope, or the last one when it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<NodeIx>,
    /// Settled nodes of a join scope: when all are, it ends.
    #[serde(default)]
    pub n_settled: usize,
    /// The nodes that take part, when not all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// The first failure that no edge caught, and the key of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<(crate::path::NodePath, Fault)>,
    /// The value of `return` or `end`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::event::some")]
    pub result: Option<Arc<Value>>,
    #[serde(default)]
    pub ended: bool,
}

/// The part of a join scope that an exec mode runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// Entered at once, without regard to their in-edges.
    pub starts: BTreeSet<NodeIx>,
    /// Edges into each node that takes part, from nodes that do.
    pub n_in: BTreeMap<NodeIx, usize>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeState {
    pub visit: Visit,
    pub phase: Phase,
    #[serde(default)]
    pub input: Arc<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::event::some")]
    pub output: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Attempts made in this visit.
    #[serde(default)]
    pub attempts: u32,
    /// The last grant of its call in this visit; 0 = none.
    #[serde(default, skip_serializing_if = "crate::event::is_default")]
    pub fence: Fence,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// When time has to be looked at for this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Timestamp>,
    /// The inner state; kept after the end, so that a rerun can start in the middle of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nest: Option<Box<Nest>>,
    /// In-edges of a join scope that are settled, and how many of them are live.
    #[serde(default)]
    pub n_in_settled: usize,
    #[serde(default)]
    pub n_in_live: usize,
    /// One of its dependencies failed: it is skipped, even if a live edge leads to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
    /// Targets of the out-edges that were judged dead, once per edge: two edges may lead to one node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dead: Vec<NodeIx>,
    /// Whether its conditional out-edges were judged.
    #[serde(default)]
    pub judged: bool,
    /// How often a subflow was started again.
    #[serde(default)]
    pub restarts: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    #[default]
    Pending,
    Open(Activity),
    Done,
    Failed,
    Skipped,
    Canceled,
}

/// The activity of an open node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Entered; its first action is decided next.
    Beginning,
    Call(Box<Work>),
    /// Its inner nodes run.
    Nest,
    Timer {
        until: Timestamp,
        /// The moment of the wall clock that it waits for, if the definition named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wall: Option<Timestamp>,
    },
    Signal {
        until: Option<Timestamp>,
    },
    Approval {
        until: Option<Timestamp>,
    },
    /// A subflow that failed starts again then.
    Restart {
        until: Timestamp,
    },
}

/// A call of a visit, over all its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    pub stage: Stage,
    pub attempt: u32,
    /// Which of the node's own tries this is, from 1.
    pub n_tries: u32,
    /// Which worker of this try, from 1.
    pub n_deliveries: u32,
    /// Quick tries after temporary faults, since the last recheck.
    #[serde(default)]
    pub n_quick: u32,
    /// How often temporary faults went on and the call was put off, since a worker was last reached.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_rechecks: u32,
    /// How often a worker was lost with it.
    #[serde(default)]
    pub n_losses: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Over all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_deadline: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::event::some")]
    pub memo: Option<Arc<Value>>,
    /// Workers that failed within this try.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<String>,
    /// The worker that failed the last try: the next one goes to it as long as it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stays_with: Option<String>,
    /// The charge that is neither settled nor refunded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<Amount>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The call is granted.
    Granted {
        fence: Fence,
        /// The epoch of the server that makes the call.
        #[serde(default)]
        by: Epoch,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expiring: Option<Timestamp>,
    },
    /// The next attempt is made then.
    Backoff { until: Timestamp },
    /// Asked again then, or reported under this fence.
    Suspended { fence: Fence, until: Option<Timestamp> },
    /// Waits for money.
    Parked { amount: Amount, over_budget: bool },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nest {
    Scope(ScopeState),
    Fan(FanState),
    Loop(LoopState),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FanState {
    pub slots: Vec<Slot>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The next branch that has not been started.
    pub next: usize,
    pub n_open: usize,
    pub n_failed: usize,
    /// A fan without a strategy runs all its branches; older journals have fans that gave up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

impl FanState {
    /// The strategy in force: a fan without one that an older journal opened gives up at the first failure.
    pub fn strategy(&self, fan: &Fan) -> Strategy {
        match fan.strategy {
            Strategy::All if !self.all => Strategy::FailFast,
            given => given,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    pub phase: Phase,
    /// The input of the branch, where it has its own.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::event::some")]
    pub input: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::event::some")]
    pub output: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Box<Fault>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Box<ScopeState>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Timestamp>,
    #[serde(default)]
    pub attempts: u32,
    /// The last grant of its call in this visit; 0 = none.
    #[serde(default, skip_serializing_if = "crate::event::is_default")]
    pub fence: Fence,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopState {
    pub n: usize,
    /// The turn that is open, or `n` when all are over.
    pub index: usize,
    pub turns: Vec<ScopeState>,
    /// One row per finished turn.
    pub outputs: Vec<Vec<Value>>,
}

impl Phase {
    pub fn is_settled(&self) -> bool {
        match self {
            Phase::Done | Phase::Failed | Phase::Skipped | Phase::Canceled => true,
            Phase::Pending | Phase::Open(_) => false,
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self, Phase::Open(_))
    }

    /// The call that is open here, if it is one.
    pub fn work(&self) -> Option<&Work> {
        match self {
            Phase::Open(Activity::Call(work)) => Some(work),
            Phase::Open(_)
            | Phase::Pending
            | Phase::Done
            | Phase::Failed
            | Phase::Skipped
            | Phase::Canceled => None,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Phase::Pending => "pending",
            Phase::Open(activity) => activity.word(),
            Phase::Done => "completed",
            Phase::Failed => "failed",
            Phase::Skipped => "skipped",
            Phase::Canceled => "canceled",
        }
    }
}

impl Activity {
    pub fn word(&self) -> &'static str {
        match self {
            Activity::Beginning | Activity::Nest => "running",
            Activity::Call(work) => match work.stage {
                Stage::Granted { .. } => "running",
                Stage::Backoff { .. } if work.n_rechecks > 0 && work.n_quick == 0 => "suspended",
                Stage::Backoff { .. } => "retrying",
                Stage::Suspended { .. } => "suspended",
                Stage::Parked { .. } => "parked",
            },
            Activity::Timer { .. } | Activity::Signal { .. } | Activity::Approval { .. } => "waiting",
            Activity::Restart { .. } => "retrying",
        }
    }
}

impl Work {
    /// The grant that may still answer.
    pub fn fence(&self) -> Option<Fence> {
        match self.stage {
            Stage::Granted { fence, .. } | Stage::Suspended { fence, .. } => Some(fence),
            Stage::Backoff { .. } | Stage::Parked { .. } => None,
        }
    }

    /// When time has to be looked at for it.
    pub fn wake(&self) -> Option<Timestamp> {
        let limit = [self.deadline, self.total_deadline].into_iter().flatten().min();
        match self.stage {
            Stage::Granted { expiring: Some(until), .. } => Some(until),
            Stage::Granted { expiring: None, .. } => limit,
            Stage::Backoff { until } => Some(self.total_deadline.map_or(until, |total| total.min(until))),
            Stage::Suspended { until, .. } => [until, limit].into_iter().flatten().min(),
            Stage::Parked { .. } => self.total_deadline,
        }
    }
}

impl ScopeState {
    /// How many edges into a node of a join scope have to settle before it is ready; `None` = it takes no part.
    pub(crate) fn n_in(&self, scope: &Scope, ix: NodeIx) -> Option<usize> {
        match &self.chosen {
            None => Some(scope.nodes[ix].n_in),
            Some(chosen) => chosen.n_in.get(&ix).copied(),
        }
    }

    /// How many nodes of a join scope have to settle before it ends.
    pub(crate) fn n_total(&self, scope: &Scope) -> usize {
        self.chosen.as_ref().map_or(scope.nodes.len(), |chosen| chosen.n_in.len())
    }

    /// Its own shared state as one value.
    pub(crate) fn shared_value(&self) -> Arc<Value> {
        let fields = self.shared.iter().flatten();
        Arc::new(Value::Object(fields.map(|(key, value)| (key.clone(), (**value).clone())).collect()))
    }

    /// The state of a node; a node that was never touched is pending.
    pub fn node(&self, ix: NodeIx) -> &NodeState {
        static PENDING: std::sync::LazyLock<NodeState> = std::sync::LazyLock::new(NodeState::default);
        self.nodes.get(&ix).unwrap_or(&PENDING)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}
