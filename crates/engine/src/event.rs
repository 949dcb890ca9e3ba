//! Events: facts, stored for ever, folded into the state of a run. Never commands.
//!
//! The JSON of an event is a promise: a journal written by any release must replay with every later one. Fields
//! may be added with defaults; none may change its meaning (`journal.rs` has the version).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::counter::{Epoch, Fence, Visit};
use crate::id::RunId;
use crate::money::{Amount, Bill, Price, Reserve};
use crate::params::{Params, StoredLayer};
use crate::path::NodePath;
use crate::plan::Priority;
use crate::retry::Fault;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "e", rename_all = "snake_case")]
pub enum Event {
    /// The run began.
    Started(Box<Start>),
    /// A node was entered; its input is stored here, once per visit.
    Entered {
        node: NodePath,
        visit: Visit,
        #[serde(default, skip_serializing_if = "is_null")]
        input: Arc<Value>,
    },
    /// The call was granted under a new fence. `again` = the same attempt is asked again after a suspension.
    Granted {
        node: NodePath,
        fence: Fence,
        attempt: u32,
        /// The visit it belongs to: its key and its charge carry the visit.
        #[serde(default, skip_serializing_if = "is_default")]
        visit: Visit,
        /// The input of a branch with an input of its own; the same for all its attempts.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some")]
        input: Option<Arc<Value>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        charge: Option<Amount>,
        /// The part of the run's budget that the child run of the call may spend.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Amount>,
        #[serde(default, skip_serializing_if = "is_false")]
        again: bool,
        /// The epoch of the server that makes the call: when that server is dead, no answer comes.
        #[serde(default, skip_serializing_if = "is_default")]
        by: Epoch,
    },
    /// The call answered that it is not finished: asked again at `until`, or reported through the API.
    Suspended {
        node: NodePath,
        fence: Fence,
        #[serde(default, skip_serializing_if = "is_null")]
        memo: Arc<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
    },
    /// An attempt ended badly and another will be made at `until`.
    Deferred {
        node: NodePath,
        #[serde(default, skip_serializing_if = "is_default")]
        fence: Fence,
        fault: Fault,
        until: Timestamp,
        next: Next,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
    },
    /// The time limit over all attempts passed during an attempt: the worker is told to stop and may answer until then.
    Expiring {
        node: NodePath,
        fence: Fence,
        until: Timestamp,
    },
    /// A node, or a branch of a fan, ended well. `output` is absent where it is already in the state: the results of a
    /// fan, the shared state of a subflow, the outputs of a loop.
    Done {
        node: NodePath,
        #[serde(default, skip_serializing_if = "is_default")]
        fence: Fence,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some")]
        output: Option<Arc<Value>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<String>,
        /// The real cost of the call, when it was charged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actual: Option<Amount>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
    },
    /// A node, or a branch of a fan, failed for good. `route` = the edge that catches it.
    Failed {
        node: NodePath,
        #[serde(default, skip_serializing_if = "is_default")]
        fence: Fence,
        fault: Fault,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        route: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
    },
    /// All edges into the node are dead.
    Skipped {
        node: NodePath,
    },
    /// Canceled while open, with everything inside it.
    Dropped {
        node: NodePath,
    },
    /// The conditional edges out of a settled node: these targets' edges are dead, each named once per dead edge.
    Judged {
        node: NodePath,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dead: Vec<String>,
    },
    /// A fan, a loop, a subflow or a branch opened; `n` branches or turns.
    Opened {
        node: NodePath,
        #[serde(default, skip_serializing_if = "is_zero_len")]
        n: usize,
        /// The names of the branches of a fan, when only the run knew them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
        /// A fan without a strategy runs all its branches. Absent in older journals: there it gave up at the first
        /// failure.
        #[serde(default, skip_serializing_if = "is_false")]
        all: bool,
    },
    /// Something inside this place failed and nothing there caught it. Nothing more begins inside; the place fails when
    /// the calls in hand have ended.
    Draining {
        node: NodePath,
    },
    /// One turn of a loop ended with these outputs.
    Turned {
        node: NodePath,
        index: usize,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outputs: Vec<Value>,
    },
    /// The node waits for something outside.
    Waiting {
        node: NodePath,
        wait: Waiting,
    },
    /// A value came from outside.
    Signaled {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        key: String,
        #[serde(default)]
        value: Arc<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A person decided an approval.
    Decided {
        node: NodePath,
        decision: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
    /// Cancel was requested during an attempt; at `until` the run ends regardless.
    Canceling {
        until: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    Paused,
    Resumed,
    /// One more node may be entered although the run is paused or advanced by hand.
    Stepped,
    /// A new round: failed and canceled nodes again, finished ones kept.
    Retried {
        round: u32,
    },
    /// A new round from a node on, with the shared state as given.
    Rerun {
        round: u32,
        from: NodePath,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shared: Option<Map<String, Value>>,
    },
    /// Money came in, or the budget was raised: parked calls are looked at again.
    Funded {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Amount>,
        /// Those that are; empty = all of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        nodes: Vec<NodePath>,
        /// The open child run that holds the amount by which the budget was raised.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<Reserve>,
    },
    /// The child run that was started under this fence has ended and reported its cost since its last report; its part
    /// of the budget is free again. It may come when the call is long over.
    Billed {
        node: NodePath,
        fence: Fence,
        #[serde(default)]
        bill: Bill,
    },
    /// The store was repaired after a clock that was wrong: all times that the run waits for are earlier by so much.
    SetBack {
        by_ms: u64,
    },
    /// Something worth reading that changes nothing.
    Logged {
        level: Level,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodePath>,
        message: String,
    },
    /// The run reached its one terminal status of this round.
    Ended {
        status: Ending,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<RunFault>,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some")]
        result: Option<Arc<Value>>,
    },
}

/// Everything a run is given at its start; pinned, so that later settings do not change a running run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Start {
    #[serde(skip_serializing_if = "Params::is_empty")]
    pub params: Params,
    /// The parameters in the stored form, if a layer of them is large; then `params` are empty. Readers of the journal
    /// resolve them before they apply the event.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params_in: Vec<StoredLayer>,
    #[serde(skip_serializing_if = "is_default")]
    pub exec_mode: ExecMode,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub start_node_ids: Vec<String>,
    /// Absent: the plan's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Advanced only by steps from outside.
    #[serde(skip_serializing_if = "is_false")]
    pub manual: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Amount>,
    #[serde(skip_serializing_if = "is_default")]
    pub on_short_balance: InsufficientFundsAction,
    /// Prices of the services this plan uses, as they were at the start.
    #[serde(skip_serializing_if = "is_default")]
    pub prices: Arc<BTreeMap<String, Price>>,
    /// Settings of the services that this plan uses, as they were at the start.
    #[serde(alias = "rechecks", skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, ServiceTerms>,
    /// The server's default time limit of one push, local or script attempt; 0 = none.
    #[serde(skip_serializing_if = "is_default")]
    pub call_timeout_ms: u64,
    /// The call of another run that started this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The flows whose calls led here, outermost first, this one last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
}

/// The settings of a service that a run carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "StoredTerms")]
pub struct ServiceTerms {
    /// How often a suspended call is asked again that names no interval itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recheck_ms: Option<u64>,
    /// A suspended call that names no interval itself waits until it is reported.
    #[serde(skip_serializing_if = "is_false")]
    pub until_reported: bool,
    /// The time limit over all attempts of a call whose node has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The class of a call whose node has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

/// The stored form of [`ServiceTerms`]: older journals have the recheck interval alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredTerms {
    Recheck(u64),
    Terms {
        #[serde(default)]
        recheck_ms: Option<u64>,
        #[serde(default)]
        until_reported: bool,
        #[serde(default)]
        timeout_ms: Option<u64>,
        #[serde(default)]
        priority: Option<Priority>,
    },
}

impl From<StoredTerms> for ServiceTerms {
    fn from(stored: StoredTerms) -> Self {
        match stored {
            StoredTerms::Recheck(ms) => ServiceTerms { recheck_ms: Some(ms), ..ServiceTerms::default() },
            StoredTerms::Terms { recheck_ms, until_reported, timeout_ms, priority } => {
                ServiceTerms { recheck_ms, until_reported, timeout_ms, priority }
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub run: RunId,
    pub node: NodePath,
    pub fence: Fence,
    /// How many flows deep this run is; a flow that calls itself without end is stopped by it.
    pub depth: u32,
    /// The outermost run of the tree; absent: `run` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<RunId>,
}

impl Parent {
    /// The outermost run of the tree that the child run belongs to.
    pub fn root(&self) -> RunId {
        self.root.unwrap_or(self.run)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecMode {
    #[default]
    All,
    /// From the given nodes on.
    SpecifiedStarts,
    /// Only the given nodes.
    IsolatedNodes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InsufficientFundsAction {
    #[default]
    Fail,
    Wait,
}

/// The kind of the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// Another try of the node's own retries.
    Retry,
    /// Another worker within the same try.
    Failover,
    /// A quick try after a temporary fault.
    Quick,
    /// Temporary faults went on: asked again later.
    Recheck,
    /// The worker was lost; not the node's fault.
    Lost,
    /// The server was lost; neither worker nor node failed.
    Recovered,
    /// A subflow starts again from its beginning.
    Restart,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Waiting {
    Timer {
        until: Timestamp,
        /// The moment of the wall clock that `until` stands for, if the definition named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wall: Option<Timestamp>,
    },
    Signal {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    Approval {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The account is short by the time the call was to be made.
    Balance { amount: Amount },
    /// The estimate would pass the run's budget.
    Budget {
        amount: Amount,
        /// A child run waits until another child returns its part of the budget: any amount is enough for it.
        #[serde(default, skip_serializing_if = "is_false")]
        child: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Info,
    Warn,
    Error,
}

impl Level {
    /// The word used on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    Completed,
    Failed,
    Canceled,
}

/// Why a run failed, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFault {
    pub node: NodePath,
    #[serde(flatten)]
    pub fault: Fault,
}

fn is_null(value: &Arc<Value>) -> bool {
    value.is_null()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero_len(value: &usize) -> bool {
    *value == 0
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A field that is there and null is a value, not an absence.
pub(crate) fn some<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Arc<Value>>, D::Error> {
    Value::deserialize(from).map(|value| Some(Arc::new(value)))
}
