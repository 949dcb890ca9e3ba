//! Inputs: requests to a run and reports to it, and reasons for their refusal.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::counter::{Epoch, Fence};
use crate::event::Start;
use crate::id::RunId;
use crate::meter::Meter;
use crate::money::{Amount, Bill};
use crate::path::NodePath;
use crate::problem::Problem;
use crate::retry::Fault;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    Start(Box<Start>),
    /// The outcome of a call.
    CallEnded {
        node: NodePath,
        fence: Fence,
        outcome: CallOutcome,
        worker: Option<String>,
    },
    /// A child run reports its outcome and its cost; without an outcome, only the cost.
    ChildEnded {
        node: NodePath,
        fence: Fence,
        outcome: Option<CallOutcome>,
        bill: Bill,
    },
    /// Something that was to happen at a time may be due; the agenda that a budget left open comes first.
    TimePassed,
    Signal {
        id: Option<String>,
        key: String,
        value: Value,
        by: Option<String>,
    },
    /// A person decides an approval; without a node, the only one that is open.
    Decide {
        node: Option<NodePath>,
        decision: Value,
        by: Option<String>,
        comment: Option<String>,
    },
    Cancel {
        reason: Option<String>,
        by: Option<String>,
    },
    Pause,
    Resume,
    /// Enter one more node of a paused run or one advanced by hand.
    Step,
    /// Failed and canceled nodes again.
    Retry,
    /// From this node on again, optionally with another shared state.
    Rerun {
        from: NodePath,
        shared: Option<Map<String, Value>>,
    },
    /// Ends a suspended or waiting node with this result.
    Continue {
        node: NodePath,
        value: Value,
    },
    /// Money came in, or the budget was raised: parked calls may go.
    BalanceChanged {
        budget: Option<Amount>,
        /// The balance of the account for this run: it limits how many calls are looked at. Absent: all of them.
        balance: Option<Amount>,
    },
    /// The run that called this one was given more, and passes it on: so much may be spent from now on.
    ReserveRaised {
        budget: Amount,
    },
}

/// The three ways a call ends, and two with an unknown outcome. `R` is the form of its result.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome<R = Arc<Value>> {
    Done(R),
    /// Not finished: ask again after `recheck_ms`, or wait for a report.
    Suspended {
        memo: Value,
        recheck_ms: Option<u64>,
    },
    Failed(Fault),
    /// Stopped because it was asked to.
    Canceled,
    /// The worker is gone: its lease expired or its process died.
    WorkerLost,
    /// The server that made the call is gone.
    ServerLost,
}

impl<R> CallOutcome<R> {
    /// The same with the result in another form.
    pub fn map_result<T>(self, form: impl FnOnce(R) -> T) -> CallOutcome<T> {
        match self {
            CallOutcome::Done(result) => CallOutcome::Done(form(result)),
            CallOutcome::Suspended { memo, recheck_ms } => CallOutcome::Suspended { memo, recheck_ms },
            CallOutcome::Failed(fault) => CallOutcome::Failed(fault),
            CallOutcome::Canceled => CallOutcome::Canceled,
            CallOutcome::WorkerLost => CallOutcome::WorkerLost,
            CallOutcome::ServerLost => CallOutcome::ServerLost,
        }
    }
}

/// Facts that come with an input.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Server time.
    pub now: Timestamp,
    /// The wall clock: `now`, or behind it.
    pub wall: Timestamp,
    /// The epoch of the server that asks: it makes the calls that are granted. Zero = no server in particular.
    pub epoch: Epoch,
    /// Calls whose charge the account could not bear when this was committed before.
    pub insufficient_funds: BTreeSet<NodePath>,
    /// The limit of [`Run::paid`](crate::run::Run::paid) under the balance of that time: every call beyond it has
    /// insufficient funds as well, so that a thousand such calls cost one conflict and not a thousand.
    pub spend_limit: Option<Amount>,
    /// The work that may be done before the decision has to be committed.
    pub meter: Meter,
}

impl Given {
    pub fn at(now: Timestamp) -> Self {
        Self { now, wall: now, ..Given::default() }
    }
}

/// Why an input changed nothing. Each names the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("the run has not been started")]
    NotStarted,
    #[error("the run was already started")]
    AlreadyStarted,
    #[error("the run has ended ({status}); retry or rerun it to go on")]
    Ended { status: &'static str },
    #[error("the run is still open ({status}); cancel it or wait for its end first")]
    StillOpen { status: &'static str },
    #[error("the run is being canceled")]
    Canceling,
    #[error("there is no node `{0}` in this run")]
    UnknownNode(NodePath),
    /// An answer to a call that another worker has now, or that is over.
    #[error("`{node}` is past fence {fence}: the lease was lost or the call is over")]
    Stale { node: NodePath, fence: Fence },
    #[error("`{node}` is not waiting for that: it is {state}")]
    NotWaiting { node: NodePath, state: &'static str },
    #[error("no approval is open")]
    NoApproval,
    #[error("several approvals are open, name one of: {0}")]
    WhichApproval(String),
    #[error("`{by}` may not decide `{node}`; allowed: {allowed}")]
    NotAssigned { node: NodePath, by: String, allowed: String },
    #[error("`{0}` has not run yet: rerun starts from a node that has")]
    NotRunYet(NodePath),
    #[error("nothing failed or was canceled: there is nothing to retry")]
    NothingToRetry,
    /// Its part of its parent's budget was returned when it ended, and may be spent.
    #[error(
        "it spent from the budget of {parent}, and what it left was given back when it ended: run the node again \
         that called it, with `windlass run rerun {parent} --from {node}`"
    )]
    AgainByParent { parent: RunId, node: NodePath },
    #[error(
        "its budget is part of that of {parent}: raise that one, with `windlass run budget {parent} AMOUNT`, and it \
         has the difference"
    )]
    BudgetOfParent { parent: RunId },
    #[error("`{0}` is reserved and cannot be written from outside")]
    Reserved(String),
    #[error("{}", list(.0))]
    Bad(Vec<Problem>),
}

impl Refusal {
    /// One stable word, the same as in responses of the API.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::NotStarted => "not_started",
            Refusal::AlreadyStarted => "already_started",
            Refusal::Ended { .. } => "run_ended",
            Refusal::StillOpen { .. } => "run_open",
            Refusal::Canceling => "run_canceling",
            Refusal::UnknownNode(_) => "unknown_node",
            Refusal::Stale { .. } => "stale_lease",
            Refusal::NotWaiting { .. } => "not_waiting",
            Refusal::NoApproval => "no_approval",
            Refusal::WhichApproval(_) => "which_approval",
            Refusal::NotAssigned { .. } => "not_assigned",
            Refusal::NotRunYet(_) => "not_run_yet",
            Refusal::NothingToRetry => "nothing_to_retry",
            Refusal::AgainByParent { .. } | Refusal::BudgetOfParent { .. } => "of_parent",
            Refusal::Reserved(_) => "reserved_key",
            Refusal::Bad(_) => "invalid_input",
        }
    }
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
