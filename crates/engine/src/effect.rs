//! What must be done in the world because of an event. Derived from events and not stored as such: jobs, movements
//! and what one run does to another become rows of the same commit; calls that a server makes itself are found in
//! the state when it dies.

use std::sync::Arc;

use serde_json::Value;

use crate::event::{Ending, Parent};
use crate::id::RunId;
use crate::money::{Bill, Movement};
use crate::params::Params;
use crate::path::NodePath;
use crate::plan::{Exec, Priority};
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Make this call, through a worker, a job, a function, a script or a child run.
    Call(Box<Order>),
    /// Whoever makes this call should stop; an answer is no longer needed, or only as a confirmation.
    Cancel { node: NodePath, fence: u64, exec: Exec },
    /// Post this to the ledger, in the same commit.
    Move { account: String, movement: Movement },
    /// The run ended: tell the run that waits for it.
    Tell { parent: Parent, status: Ending, result: Arc<Value>, error: Option<String>, bill: Bill },
    /// A child of a run that had ended cost something after that: the run that waited for this one is told.
    Bill { parent: Parent, bill: Bill },
    /// The budget was raised: the child run that was started under this fence may spend so much from now on.
    Raise { fence: u64, budget: i64 },
}

/// One call, with everything its maker needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub run: RunId,
    pub node: NodePath,
    pub visit: u64,
    pub fence: u64,
    pub attempt: u32,
    pub exec: Exec,
    pub service: String,
    pub input: Arc<Value>,
    pub params: Params,
    /// What a suspended call left behind.
    pub memo: Option<Arc<Value>>,
    /// The same for every attempt of a visit.
    pub key: String,
    pub deadline: Option<Timestamp>,
    /// Time limit of one attempt, counted by whoever hands it out when `deadline` is not known yet.
    pub timeout_ms: u64,
    pub priority: Priority,
    pub weighted_by_load: bool,
    /// Workers that failed within this try.
    pub avoid: Vec<String>,
    /// How many flows deep a child run would be.
    pub depth: u32,
}
