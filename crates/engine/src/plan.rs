//! The plan: the compiled version of any form. A tree of scopes; each scope has nodes and one of two routing
//! rules. Nothing here changes while runs execute it, and nothing here is stored: it is compiled again from the
//! definition.

mod call;
mod parts;
mod pattern;
mod position;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::expr::Condition;
use crate::params::Params;
use crate::reference::{Ref, Template};

pub use call::{Call, Exec, OutputMode, Recheck, Script, StdinMode, Temporary};
pub use parts::Called;
pub use position::NodePosition;

/// A node's place in its scope's list.
pub type NodeIx = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    Graph,
    Dag,
    Steps,
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub form: Form,
    pub title: Option<String>,
    pub root: Scope,
    /// Declared variables of the dag form.
    pub variables: BTreeMap<String, Variable>,
    pub priority: Priority,
    /// `status: stopped` in the steps form: the version exists, but may not be started.
    pub stopped: bool,
    pub payer: Payer,
    /// Nodes in all scopes together.
    pub n_nodes: usize,
}

/// The account of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Payer {
    /// The one that its start names, if any.
    #[default]
    StarterOrNone,
    /// The one that its start names, or else the owner of the flow.
    StarterOr(String),
    /// The one that its start names; a start without an account is refused.
    Starter,
}

impl Payer {
    /// The owner of the flow.
    pub fn owner(&self) -> Option<&str> {
        match self {
            Payer::StarterOr(owner) => Some(owner),
            Payer::StarterOrNone | Payer::Starter => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub kind: VariableKind,
    pub default: Option<Value>,
    pub required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VariableKind {
    String,
    Number,
    Boolean,
    Url,
    Object,
    Array,
}

/// Five classes; higher ones go first, lower ones keep a reserved share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    Lowest,
    Low,
    #[default]
    Medium,
    High,
    Highest,
}

#[derive(Debug, Clone)]
pub struct Scope {
    pub routing: Routing,
    /// Whether nodes in it read and write a shared state of their own (an embedded subflow) or the enclosing one
    /// (a loop's body).
    pub owns_shared: bool,
    pub nodes: Vec<Node>,
    pub index: BTreeMap<String, NodeIx>,
    /// Parallels of the steps form, outer ones before those inside them. They are no nodes and run nothing; drawings
    /// show them.
    pub groups: Vec<Group>,
}

/// A parallel of the steps form, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub key: String,
    pub title: Option<String>,
    /// The operator.
    pub label: String,
    /// The place in the definition, after that of the flow.
    pub place: String,
    /// The group around it.
    pub outer: Option<usize>,
}

#[derive(Debug, Clone)]
pub enum Routing {
    /// One node is active; its action chooses the edge. Cycles are legal.
    Action { start: NodeIx },
    /// A node is ready when all its predecessors are settled and one in-edge is live. Acyclic.
    Join { on_failure: OnFailure },
}

/// The effect of a failed node of a join scope on the nodes beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The scope fails at once; running nodes are canceled.
    #[default]
    Stop,
    /// The scope fails when the calls in hand have ended; nothing else is waited for.
    Drain,
    /// Independent nodes finish first; then the scope fails.
    Continue,
}

/// The edges into a node of a join scope that have to be live, once all of them are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Join {
    /// At least one; else the node is skipped.
    #[default]
    AnyLive,
    /// None: the node runs although all its predecessors were skipped. An `end` always does.
    AnySettled,
}

#[derive(Debug, Clone)]
pub struct Node {
    /// Unique in its scope; one segment of a path.
    pub key: String,
    /// Title and description for people.
    pub title: Option<String>,
    /// The positional id (`1_b0_s0`); steps form only.
    pub task_id: Option<String>,
    /// The type, kind or operator as the definition spells it.
    pub label: String,
    pub kind: NodeKind,
    /// Literal parameters of the node, of every kind; a call carries its own.
    pub params: Params,
    pub prep: Prep,
    pub post: Post,
    /// Out-edges. In an action scope each carries an action; in a join scope a condition.
    pub out: Vec<Edge>,
    /// How many edges of a join scope lead here.
    pub n_in: usize,
    /// Which of them have to be live.
    pub join: Join,
    /// The time limit of a whole visit, for kinds that contain others or wait; 0 = none. Calls have their own.
    pub timeout_ms: u64,
    /// Steps form only: the place in the definition, after that of the flow. In other forms the key or the index says it.
    pub place: String,
    /// The group that it is written in.
    pub group: Option<usize>,
}

#[derive(Debug, Clone)]
pub struct Edge {
    /// `None` ends the scope.
    pub to: Option<NodeIx>,
    pub when: When,
}

#[derive(Debug, Clone)]
pub enum When {
    Always,
    /// The node ended with this action.
    Action(String),
    /// The condition holds when the node has ended.
    If(Condition),
}

/// How a node's input is made when it is entered.
#[derive(Debug, Clone, Default)]
pub enum Prep {
    /// The input of the enclosing scope (null at the root).
    #[default]
    Scope,
    Key(Ref),
    Map(BTreeMap<String, Template>),
    /// Dag and steps forms: the node's whole configuration with references resolved. It is both the call's params
    /// and, unless it has a field `input`, its input.
    Params(Template),
}

/// The use that a node makes of its result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Post {
    pub output_key: Option<String>,
    /// Shared key ← path into the result.
    pub output_map: BTreeMap<String, Vec<crate::reference::Seg>>,
    pub action_static: Option<String>,
    pub action_key: Option<Vec<crate::reference::Seg>>,
}

#[derive(Debug, Clone)]
pub enum NodeKind {
    Call(Box<Call>),
    Choice(Choice),
    Fan(Box<Fan>),
    Sub(Box<Sub>),
    Loop(Box<Loop>),
    Timer(Timer),
    Wait(Wait),
    Approval(Approval),
    /// Evaluated at once from its input; no call is made.
    Compute(Compute),
    /// Ends at once; its output is its input.
    Pass,
    /// Ends its flow (the root or the nearest subflow) at once; its input is the result.
    Return,
}

#[derive(Debug, Clone, Default)]
pub struct Choice {
    pub cases: Vec<(String, Condition)>,
    pub default_action: Option<String>,
}

/// Branches side by side: given ones (`parallel`) or one per item (`foreach`).
#[derive(Debug, Clone)]
pub struct Fan {
    pub branches: Branches,
    /// How many run at a time; `None` = all.
    pub max_parallel: Option<usize>,
    pub strategy: Strategy,
}

#[derive(Debug, Clone)]
pub enum Branches {
    Fixed(Vec<Branch>),
    /// Services named in `params.services` when the node is entered; every branch is `each` with that service.
    Services {
        each: Branch,
    },
    /// One branch per item of the input array; `special` overrides single indexes.
    Items {
        each: Branch,
        special: BTreeMap<usize, Branch>,
    },
}

#[derive(Debug, Clone)]
pub struct Branch {
    /// The name of the branch in lists.
    pub name: String,
    pub body: Body,
    /// Literal parameters of the branch, which win over its node's.
    pub params: Params,
    /// The branch's own input, when it differs from the fan's input or item.
    pub prep: Prep,
    /// Applied to the branch's result before it is collected.
    pub post: Post,
    /// The place in the definition, after that of its node; empty = the node itself describes it.
    pub place: String,
}

#[derive(Debug, Clone)]
pub enum Body {
    Call(Box<Call>),
    Scope(Arc<Scope>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// None was given: all branches run, and the node fails if one of them did.
    #[default]
    All,
    FailFast,
    CollectErrors,
    IgnoreErrors,
    Continue,
}

/// A flow inside a flow.
#[derive(Debug, Clone)]
pub struct Sub {
    pub scope: Scope,
    /// `subflow_execs`: parameters for single nodes inside, which win over the nodes' own.
    pub overrides: BTreeMap<String, Params>,
    pub on_failure: SubFailure,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SubFailure {
    /// The subflow node fails.
    Fail,
    /// The subflow ends where it failed, as if done.
    Ignore,
    /// It starts again from its beginning, as often as the policy allows.
    Restart(crate::retry::Policy),
}

#[derive(Debug, Clone)]
pub struct Loop {
    pub over: LoopOver,
    pub body: Scope,
    /// Evaluated at the end of every iteration; collected into arrays.
    pub outputs: Vec<(String, Template)>,
}

#[derive(Debug, Clone)]
pub enum LoopOver {
    /// So many times.
    Limit(Template),
    /// Once per element.
    Array(Template),
}

#[derive(Debug, Clone)]
pub enum Timer {
    /// Milliseconds from entry.
    Delay(Template),
    /// Seconds from entry (`delaySeconds` of the dag form, which may be a reference).
    Seconds(Template),
    /// An RFC 3339 moment.
    Until(Template),
}

#[derive(Debug, Clone)]
pub struct Wait {
    pub key: Ref,
}

#[derive(Debug, Clone)]
pub struct Approval {
    pub key: Option<Ref>,
    pub assignees: Vec<String>,
    /// A JSON Schema for the decision's form, shown to the person who decides.
    pub form: Option<Value>,
}

/// Built-in operations without a call: pure functions of the node's input.
#[derive(Debug, Clone)]
pub enum Compute {
    /// Sets variables; its output is their values.
    Set(Vec<(String, Template)>),
    /// Puts out the boolean; `true` or `false` is the action.
    Test(Condition),
    /// `@internal/define`: a variable with a first value.
    Define {
        variable: String,
    },
    /// `@internal/assign`: a new value for a variable.
    Assign {
        variable: String,
    },
    TextJoin,
    TextSplit,
    JsonGet,
    JsonSet,
    TimeNow,
    /// `end` of the dag form: the named outputs are the result of the flow.
    Outputs(Vec<(String, Template)>),
}

impl Prep {
    /// The templates that are put together to an input.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let (map, whole) = match self {
            Prep::Scope | Prep::Key(_) => (None, None),
            Prep::Map(map) => (Some(map), None),
            Prep::Params(template) => (None, Some(template)),
        };
        map.into_iter().flat_map(BTreeMap::values).chain(whole)
    }
}

impl NodeKind {
    /// The items of a loop.
    pub fn over(&self) -> Option<&Template> {
        match self {
            NodeKind::Loop(body) => match &body.over {
                LoopOver::Limit(template) | LoopOver::Array(template) => Some(template),
            },
            _ => None,
        }
    }
}

impl Scope {
    pub fn node(&self, key: &str) -> Option<(NodeIx, &Node)> {
        let ix = *self.index.get(key)?;
        Some((ix, &self.nodes[ix]))
    }
}
