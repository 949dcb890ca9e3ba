//! The syntax tree of an expression: every name is resolved and every call has its arguments.

use serde_json::Value;

use crate::expr::pattern::Pattern;

/// One value of an expression.
#[derive(Debug, Clone)]
pub(super) enum CelNode {
    Literal(Value),
    /// The value of a reference, by its place in the list of them.
    Ref(usize),
    /// The variable of an enclosing loop, counted from the innermost.
    Local(usize),
    Field(Box<CelNode>, String),
    Index(Box<CelNode>, Box<CelNode>),
    List(Vec<CelNode>),
    Map(Vec<(CelNode, CelNode)>),
    Not(Box<CelNode>),
    Negate(Box<CelNode>),
    And(Vec<CelNode>),
    Or(Vec<CelNode>),
    If(Box<CelNode>, Box<CelNode>, Box<CelNode>),
    Binary(Op, Box<CelNode>, Box<CelNode>),
    Present(Box<CelNode>),
    Convert(Conversion, Box<CelNode>),
    Text(TextTest, Box<CelNode>, Box<CelNode>),
    Matches(Box<CelNode>, Against),
    Loop(CelMacro, Box<CelNode>, Box<CelNode>),
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
    Computed(Box<CelNode>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CelMacro {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}
