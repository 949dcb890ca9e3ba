//! Layouts of flows, and the states of runs over them.

use windlass_engine::layout::{
    self, Direction, EdgeWhen, Layout, LayoutEdge, LayoutKind, LayoutNode, LinkKind,
};
use windlass_engine::plan::Plan;
use windlass_sdk::contract::{
    FlowGraph, GraphArea, GraphDirection, GraphEdge, GraphEdgeKind, GraphEdgeWhen, GraphNode, GraphNodeKind,
};

use super::form;

pub(crate) fn direction(asked: Option<GraphDirection>) -> Direction {
    match asked.unwrap_or_default() {
        GraphDirection::Lr => Direction::LeftRight,
        GraphDirection::Tb => Direction::TopDown,
    }
}

/// Lays a plan out.
pub(crate) fn flow_graph(plan: &Plan, direction: Direction) -> FlowGraph {
    let drawn = layout::layout(plan, direction);
    FlowGraph {
        direction: match direction {
            Direction::LeftRight => GraphDirection::Lr,
            Direction::TopDown => GraphDirection::Tb,
        },
        form: form(drawn.form).to_owned(),
        width: drawn.width,
        height: drawn.height,
        more: drawn.has_hidden(),
        nodes: drawn.nodes.iter().map(|one| node(&drawn, one)).collect(),
        edges: drawn.edges.iter().map(|one| edge(&drawn, one)).collect(),
    }
}

fn node(drawn: &Layout, node: &LayoutNode) -> GraphNode {
    GraphNode {
        id: node.id.clone(),
        parent: node.parent.map(|parent| drawn.nodes[parent].id.clone()),
        key: node.key.clone(),
        label: node.label.clone(),
        short: node.short.clone(),
        kind: kind(node.kind),
        word: node.word.clone(),
        detail: node.detail.clone(),
        path: node.place.clone(),
        start: node.is_start,
        is_box: node.is_box,
        hidden: (node.n_hidden > 0).then_some(node.n_hidden),
        x: node.area.x,
        y: node.area.y,
        w: node.area.w,
        h: node.area.h,
    }
}

fn kind(kind: LayoutKind) -> GraphNodeKind {
    match kind {
        LayoutKind::Call => GraphNodeKind::Call,
        LayoutKind::Flow => GraphNodeKind::Flow,
        LayoutKind::Choice => GraphNodeKind::Choice,
        LayoutKind::Parallel => GraphNodeKind::Parallel,
        LayoutKind::Foreach => GraphNodeKind::Foreach,
        LayoutKind::Subflow => GraphNodeKind::Subflow,
        LayoutKind::Loop => GraphNodeKind::Loop,
        LayoutKind::Branch => GraphNodeKind::Branch,
        LayoutKind::Timer => GraphNodeKind::Timer,
        LayoutKind::Signal => GraphNodeKind::Signal,
        LayoutKind::Approval => GraphNodeKind::Approval,
        LayoutKind::Compute => GraphNodeKind::Compute,
        LayoutKind::Pass => GraphNodeKind::Pass,
        LayoutKind::Return => GraphNodeKind::Return,
        LayoutKind::End => GraphNodeKind::End,
    }
}

fn edge(drawn: &Layout, edge: &LayoutEdge) -> GraphEdge {
    let (when, action) = match &edge.when {
        EdgeWhen::Always => (GraphEdgeWhen::Always, None),
        EdgeWhen::Action(action) => (GraphEdgeWhen::Action, Some(action.clone())),
        EdgeWhen::Condition => (GraphEdgeWhen::Condition, None),
    };
    let has_label = edge.label_area.is_some();
    GraphEdge {
        id: edge.id.clone(),
        from: drawn.nodes[edge.from].id.clone(),
        to: drawn.nodes[edge.to].id.clone(),
        kind: match edge.kind {
            LinkKind::Forward => GraphEdgeKind::Forward,
            LinkKind::Back => GraphEdgeKind::Back,
            LinkKind::Itself => GraphEdgeKind::Itself,
        },
        when,
        action,
        label: has_label.then(|| edge.label.clone()),
        short: has_label.then(|| edge.short.clone()),
        label_box: edge.label_area.map(|area| GraphArea { x: area.x, y: area.y, w: area.w, h: area.h }),
        points: edge.points.iter().map(|(x, y)| [*x, *y]).collect(),
    }
}
