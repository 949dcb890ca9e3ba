//! Effects: actions in the world that an event requires. Derived from events and not stored as such: jobs, postings
//! and messages to other runs become rows of the same commit; calls that a server makes itself are found in
//! the state when it dies.

use std::sync::Arc;

use serde_json::Value;

use crate::counter::{Fence, Visit};
use crate::event::{Ending, Parent};
use crate::id::RunId;
use crate::money::{Amount, Bill, Movement};
use crate::params::Params;
use crate::path::NodePath;
use crate::plan::{Exec, Priority};
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Make this call, through a worker, a job, a function, a script or a child run.
    Call(Box<CallSpec>),
    /// The worker of this call should stop; an answer is no longer needed, or only as a confirmation.
    Cancel { node: NodePath, fence: Fence, exec: Exec },
    /// This call should not begin: unless a worker, a function or a script has it, it ends as canceled.
    Withdraw { node: NodePath, fence: Fence, exec: Exec },
    /// Post this to the ledger, in the same commit.
    Move { account: String, movement: Movement },
    /// The run ended: tell the run that waits for it.
    Tell { parent: Parent, status: Ending, result: Arc<Value>, error: Option<String>, bill: Bill },
    /// A child of a run that had ended cost something after that: the run that waited for this one is told.
    Bill { parent: Parent, bill: Bill },
    /// The budget was raised: the child run that was started under this fence may spend so much from now on.
    Raise { fence: Fence, budget: Amount },
}

/// One call, with everything its maker needs.
#[derive(Debug, Clone, PartialEq)]
pub struct CallSpec {
    pub run: RunId,
    pub node: NodePath,
    pub visit: Visit,
    pub fence: Fence,
    pub attempt: u32,
    pub exec: Exec,
    pub service: String,
    pub input: Arc<Value>,
    pub params: Params,
    /// The memo of a suspended call.
    pub memo: Option<Arc<Value>>,
    /// The same for every attempt of a visit.
    pub key: String,
    pub deadline: Option<Timestamp>,
    /// Time limit of one attempt; the server that hands it out counts it when `deadline` is not known yet.
    pub timeout_ms: u64,
    pub priority: Priority,
    pub weighted_by_load: bool,
    /// The worker of the last try, as long as it lives.
    pub stays_with: Option<String>,
    /// Workers that failed within this try.
    pub avoid: Vec<String>,
    /// How many flows deep a child run would be.
    pub depth: u32,
}
