//! Messages from one run to another, or from a deposit to runs that wait for it: a row written in the sender's commit, and
//! delivered later.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::event::{Ending, InsufficientFundsAction, Parent, Start};
use windlass_engine::id::RunId;
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::money::{Amount, Bill};
use windlass_engine::params::{MissingBlob, ParamLayer, Params, StoredLayer};
use windlass_engine::path::NodePath;
use windlass_engine::plan::Priority;
use windlass_engine::project::Project;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::time::Timestamp;

use crate::blob;

/// The sender or receiver of a message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    Run(RunId),
    /// The runs of the account that wait for money.
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

/// The name of a message: the same sender never uses a name twice. Later messages sort later.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MessageId {
    pub sender: Party,
    /// For a run, the number of the event that ended it, or of the last event of the commit.
    pub seq: Seq,
    /// Tells messages of one number apart: one event can stop many child runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub part: u32,
}

impl MessageId {
    /// The name of the only message of its number.
    pub fn new(sender: Party, seq: Seq) -> Self {
        MessageId { sender, seq, part: 0 }
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.sender, self.seq)?;
        if self.part > 0 { write!(f, ".{}", self.part) } else { Ok(()) }
    }
}

// serde hands it a reference.
#[expect(clippy::trivially_copy_pass_by_ref)]
fn is_zero(part: &u32) -> bool {
    *part == 0
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

/// A message that was not delivered, and the project of both parties.
#[derive(Debug, Clone, PartialEq)]
pub struct Undelivered {
    pub project: Project,
    pub message: Message,
}

impl Undelivered {
    /// Its position among undelivered messages.
    pub fn place(&self) -> OutboxCursor {
        let Message { id, at, .. } = &self.message;
        OutboxCursor { at: *at, project: self.project.clone(), id: id.clone() }
    }
}

/// A position among undelivered messages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutboxCursor {
    pub at: Timestamp,
    pub project: Project,
    pub id: MessageId,
}

/// A tree of runs with child runs that are to be created.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitingTree {
    pub project: Project,
    /// Its outermost run.
    pub root: RunId,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// The child run that a call started has ended.
    CallEnded {
        node: NodePath,
        fence: Fence,
        ending: Ending,
        #[serde(default)]
        result: Arc<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The cost since its last report.
        #[serde(default, skip_serializing_if = "Bill::is_zero")]
        bill: Bill,
    },
    /// A child run that has ended cost something after that: its own children were billed late.
    Billed { node: NodePath, fence: Fence, bill: Bill },
    /// Money came in.
    BalanceChanged,
    /// A call is made by a child run: it is to be created. Addressed to the child.
    StartChild(Box<Child>),
    /// The call that started this child run is over, or its parent no longer waits. It may come before the child
    /// was created, and then has to wait for it.
    CancelChild,
    /// The run that called was given a larger budget: this child run may spend so much from now on.
    ReserveRaised { budget: Amount },
}

/// A child run that is to be created. The same call always has the same child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Child {
    pub child: RunId,
    /// The name of its flow.
    pub flow: String,
    /// Absent: the latest that is published when it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub params: Params,
    /// The parameters in the stored form, if a layer of them is large; then `params` are empty. The store resolves them
    /// when it reads the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params_in: Vec<StoredLayer>,
    pub parent: Parent,
    /// The account that pays: that of the parent run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The rest of the parent's budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Amount>,
    #[serde(default)]
    pub on_short_balance: InsufficientFundsAction,
    /// Absent: that of its own definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// The flows whose calls led here, outermost first, its own last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
}

impl Child {
    /// Its start; the server adds the facts that it gives to every run.
    pub fn start(&self) -> Start {
        Start {
            params: self.params.clone(),
            parent: Some(self.parent.clone()),
            account: self.account.clone(),
            budget: self.budget,
            on_short_balance: self.on_short_balance,
            priority: self.priority,
            chain: self.chain.clone(),
            ..Start::default()
        }
    }

    /// The message to its parent when it cannot be created: the call has failed for good.
    pub fn refused(&self, reason: impl Into<String>) -> Input {
        let outcome = CallOutcome::Failed(Fault::new(FaultKind::Error, reason).permanent());
        let Parent { run: _, node, fence, depth: _, root: _ } = &self.parent;
        let (node, outcome) = (node.clone(), Some(outcome));
        Input::ChildEnded { node, fence: *fence, outcome, bill: Bill::default() }
    }
}

/// The effect of a delivery.
#[derive(Debug, Clone, PartialEq)]
pub enum Delivery {
    /// A run is created, in the commit that delivers the message.
    Create(Box<Child>),
    /// The receiver gets this input.
    Submit(Input),
}

impl Note {
    /// The tree and the depth of the child run that is to be created.
    pub fn tree(&self) -> Option<(RunId, u32)> {
        match self {
            Note::StartChild(child) => Some((child.parent.root(), child.parent.depth)),
            Note::CallEnded { .. }
            | Note::Billed { .. }
            | Note::BalanceChanged
            | Note::CancelChild
            | Note::ReserveRaised { .. } => None,
        }
    }

    /// The stored form: large parameters of a child are references to blobs.
    pub fn stored(&self) -> Cow<'_, Note> {
        if let Note::StartChild(child) = self
            && let Some(params_in) = child.params.stored(blob::hash)
        {
            let child = Child { params: Params::default(), params_in, ..(**child).clone() };
            return Cow::Owned(Note::StartChild(Box::new(child)));
        }
        Cow::Borrowed(self)
    }

    /// The layers of parameters in the stored form.
    pub fn stored_layers(&self) -> &[StoredLayer] {
        if let Note::StartChild(child) = self { &child.params_in } else { &[] }
    }

    /// Replaces references to blobs by the parameters themselves.
    pub fn resolve(&mut self, find: impl Fn(&str) -> Option<Arc<ParamLayer>>) -> Result<(), MissingBlob> {
        if let Note::StartChild(child) = self
            && !child.params_in.is_empty()
        {
            child.params = StoredLayer::resolve(&child.params_in, find)?;
            child.params_in.clear();
        }
        Ok(())
    }

    /// The action of the delivering server.
    pub fn delivery(&self) -> Delivery {
        Delivery::Submit(match self {
            Note::CallEnded { node, fence, ending, result, error, bill } => {
                let outcome = match ending {
                    Ending::Completed => CallOutcome::Done(result.clone()),
                    Ending::Failed => {
                        let message = error.clone().unwrap_or_else(|| "the child run failed".to_owned());
                        CallOutcome::Failed(Fault::new(FaultKind::Error, message))
                    }
                    Ending::Canceled => CallOutcome::Canceled,
                };
                let (node, outcome) = (node.clone(), Some(outcome));
                Input::ChildEnded { node, fence: *fence, outcome, bill: *bill }
            }
            Note::Billed { node, fence, bill } => {
                Input::ChildEnded { node: node.clone(), fence: *fence, outcome: None, bill: *bill }
            }
            Note::BalanceChanged => Input::BalanceChanged { budget: None, balance: None },
            Note::ReserveRaised { budget } => Input::ReserveRaised { budget: *budget },
            Note::CancelChild => Input::Cancel { reason: Some("its parent stopped it".to_owned()), by: None },
            Note::StartChild(child) => return Delivery::Create(child.clone()),
        })
    }
}
