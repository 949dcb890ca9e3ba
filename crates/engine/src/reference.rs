//! References and templates: how a definition points at values, for all three forms.
//!
//! Each form has its own small parser (in `definition/`); what they parse *to* is one `Template`, and what a run
//! resolves is one `Ref`. A missing value is null, never an error.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seg {
    Key(String),
    Index(usize),
}

/// What a reference starts from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    /// The parameters in force at the node (`$params`).
    Params,
    /// The shared state of the scope (`$shared`, `$var`).
    Shared,
    /// The node's prepared input (`$input`).
    Input,
    /// What the call returned (`$result`); only where a result exists.
    Result,
    /// What node `key` put out (`$node.key.output`, `{{__key}}`); looked up in this scope, then outwards.
    Output(String),
    /// The error message of node `key` (`$node.key.error`).
    Error(String),
    /// The status word of node `key` (`$node.key.status`).
    Status(String),
    /// A bare name, looked up in shared, then params, then input (`signal_key: "flag"`).
    Anywhere,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ref {
    pub root: Root,
    pub path: Vec<Seg>,
}

/// A value with references in it.
#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    Literal(Value),
    /// Keeps the type of what it points at.
    Ref(Ref),
    /// Text with references inside; concatenated.
    Text(Vec<Piece>),
    Array(Vec<Template>),
    Object(BTreeMap<String, Template>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Text(String),
    Ref(Ref),
}

/// Where references find their values.
pub trait Facts {
    /// The value a root stands for here; `None` is null.
    fn root(&self, root: &Root) -> Option<Cow<'_, Value>>;

    /// One top-level field of a root, for roots that are not kept as one value.
    fn field(&self, root: &Root, key: &str) -> Option<Cow<'_, Value>>;
}
