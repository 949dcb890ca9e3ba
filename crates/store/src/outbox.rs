//! What one run does to another, or a deposit to runs that wait for it: a row written in the sender's commit, and
//! delivered at leisure.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::event::Ending;
use windlass_engine::id::RunId;
use windlass_engine::input::{Input, Outcome};
use windlass_engine::path::NodePath;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::time::Timestamp;

/// Who sends or gets a message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    Run(RunId),
    /// All open runs of the account.
    Account(String),
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Party::Run(id) => id.fmt(f),
            Party::Account(id) => write!(f, "account:{id}"),
        }
    }
}

/// Names a message: the same sender never says two things under one number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MessageId {
    pub sender: Party,
    /// For a run, the number of the event that caused it.
    pub seq: u64,
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.sender, self.seq)
    }
}

/// One thing that one party tells another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub id: MessageId,
    pub to: Party,
    /// Not delivered before.
    pub at: Timestamp,
    pub note: Note,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// The child run that a call started has ended.
    CallEnded {
        node: NodePath,
        fence: u64,
        ending: Ending,
        #[serde(default)]
        result: Arc<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// Money came in.
    BalanceChanged,
}

impl Note {
    /// What the run that gets it is told.
    pub fn input(&self) -> Input {
        match self {
            Note::CallEnded { node, fence, ending, result, error } => {
                let outcome = match ending {
                    Ending::Completed => Outcome::Done(result.clone()),
                    Ending::Failed => {
                        let message = error.clone().unwrap_or_else(|| "the child run failed".to_owned());
                        Outcome::Failed(Fault::new(FaultKind::Error, message))
                    }
                    Ending::Canceled => Outcome::Canceled,
                };
                Input::CallEnded { node: node.clone(), fence: *fence, outcome, worker: None }
            }
            Note::BalanceChanged => Input::BalanceChanged { budget: None },
        }
    }
}
