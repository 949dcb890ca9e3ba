//! What an expression becomes: a tree in which every name is known and every call has its arguments.

use serde_json::Value;

use crate::expr::pattern::Pattern;

/// One value of an expression.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Literal(Value),
    /// The value of a reference, by its place in the list of them.
    Ref(usize),
    /// The variable of an enclosing loop, counted from the innermost.
    Local(usize),
    Field(Box<Node>, String),
    Index(Box<Node>, Box<Node>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    If(Box<Node>, Box<Node>, Box<Node>),
    Binary(Op, Box<Node>, Box<Node>),
    Present(Box<Node>),
    Convert(Conversion, Box<Node>),
    Text(TextTest, Box<Node>, Box<Node>),
    Matches(Box<Node>, Against),
    Loop(Loop, Box<Node>, Box<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conversion {
    Size,
    Int,
    Double,
    String,
    Bool,
    Type,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextTest {
    Contains,
    StartsWith,
    EndsWith,
}

#[derive(Debug, Clone)]
pub(super) enum Against {
    Known(Pattern),
    /// Compiled at every evaluation.
    Computed(Box<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loop {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}
