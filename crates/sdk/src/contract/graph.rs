//! The graph of a flow, laid out.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The direction in which a graph is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GraphDirection {
    /// From left to right.
    #[default]
    Lr,
    /// From top to bottom.
    Tb,
}

/// The version and the direction of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GraphQuery {
    /// The number of the version; absent = the highest that is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// `lr` (the default) or `tb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub dir: Option<GraphDirection>,
}

/// The graph of a run: its version is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunGraphQuery {
    /// `lr` (the default) or `tb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub dir: Option<GraphDirection>,
}

/// The graph of a flow as an SVG, with the states of a run if one is named.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GraphSvgQuery {
    /// The number of the version; absent = that of the run, or the highest that is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// `lr` (the default) or `tb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub dir: Option<GraphDirection>,
    /// The id of a run of this flow whose states are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A flow, laid out: places are whole pixels, from the corner at the top left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlowGraph {
    pub direction: GraphDirection,
    /// `graph`, `dag` or `steps`.
    pub form: String,
    pub width: i32,
    pub height: i32,
    /// Boxes come before the nodes inside them.
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
    /// Whether some nodes are not drawn, because there are too many; see `hidden` of nodes.
    pub more: bool,
}

/// A node of a graph, or a box with nodes inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GraphNode {
    /// The path of the node in runs, with `*` for the index of a branch or an iteration: `a`, `sf/b`, `loop/*/b`, `par/0`.
    pub id: String,
    /// The id of the box around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The last part of the id.
    pub key: String,
    /// The title, or the key.
    pub label: String,
    /// The label, cut to the width of the node.
    pub short: String,
    pub kind: GraphNodeKind,
    /// The kind, type or operator as the definition spells it.
    pub word: String,
    /// A second line, cut to the width of the node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The place in the definition, as the `path` of a problem names it: `$.nodes.fetch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether its scope begins with it.
    pub start: bool,
    /// Whether it has nodes inside.
    #[serde(rename = "box")]
    pub is_box: bool,
    /// Nodes inside that are not drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<usize>,
    pub x: i32,
    pub y: i32,
    pub w: i32,
    pub h: i32,
}

/// The kind of a node in a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GraphNodeKind {
    /// A call of a worker, a function or a script.
    Call,
    /// A call of another flow.
    Flow,
    Choice,
    Parallel,
    Foreach,
    Subflow,
    Loop,
    /// A branch with nodes of its own.
    Branch,
    Timer,
    Signal,
    Approval,
    Compute,
    Pass,
    Return,
    /// The mark where edges lead that end their scope. No run has its id as a path.
    End,
}

/// An edge of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GraphEdge {
    /// Stays the same for a version: `a>b`, `a>b#2`.
    pub id: String,
    /// Ids of nodes.
    pub from: String,
    pub to: String,
    pub kind: GraphEdgeKind,
    pub when: GraphEdgeWhen,
    /// The action that is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The action or the condition; absent for the default action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The label, cut to its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_box: Option<GraphArea>,
    /// Corners of the line, each `[x, y]`, from the border of one node to that of the other. All parts are level or
    /// upright.
    pub points: Vec<[i32; 2]>,
}

/// How an edge runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GraphEdgeKind {
    Forward,
    /// To a node that led here.
    Back,
    /// From a node to itself.
    #[serde(rename = "self")]
    Itself,
}

/// The condition under which an edge is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GraphEdgeWhen {
    Always,
    Action,
    Condition,
}

/// The place of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GraphArea {
    pub x: i32,
    pub y: i32,
    pub w: i32,
    pub h: i32,
}
