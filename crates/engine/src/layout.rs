//! The layout of a flow: where its nodes, boxes, edges and labels are, in pixels or in cells of a terminal.
//!
//! One layout serves the console, the SVG and the text drawing. `contents` makes a tree of a plan; `layered` lays out
//! each scope of it, inner ones first; here they are put together. The same plan always has the same layout. Nodes of
//! one scope overlap neither each other nor lines, labels have room of their own, and boxes contain their nodes.

mod contents;
mod drawing;
mod label;
mod layered;
mod metrics;
mod overlay;
mod svg;

use crate::plan::{Form, Plan};
use contents::Contents;
use metrics::Metrics;

pub use drawing::{ascii, columns};
pub use layered::LinkKind;
pub use overlay::{EdgeState, NodeOverlay, Overlay};
pub use svg::svg;

/// Where the layers lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    #[default]
    LeftRight,
    TopDown,
}

/// A rectangle; `x` and `y` are its corner nearest to the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Area {
    pub x: i32,
    pub y: i32,
    pub w: i32,
    pub h: i32,
}

/// The kind of a node as it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutKind {
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
    /// The mark where edges lead that end their scope.
    End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutNode {
    /// The path of the node in runs, with `*` for the index of a branch or an iteration.
    pub id: String,
    /// The box around it, by its index.
    pub parent: Option<usize>,
    pub key: String,
    /// Its title or its key.
    pub label: String,
    /// The label, cut to the node's width.
    pub short: String,
    pub kind: LayoutKind,
    /// The kind, type or operator as the definition spells it.
    pub word: String,
    /// A second line, cut to the node's width.
    pub detail: String,
    /// The place in the definition, as problems name it.
    pub place: Option<String>,
    /// Its scope begins with it.
    pub is_start: bool,
    pub is_box: bool,
    /// Nodes inside that are not drawn.
    pub n_hidden: usize,
    pub area: Area,
}

/// The condition under which an edge is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgeWhen {
    Always,
    Action(String),
    Condition,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutEdge {
    pub id: String,
    /// Nodes, by their index.
    pub from: usize,
    pub to: usize,
    pub kind: LinkKind,
    pub when: EdgeWhen,
    pub label: String,
    /// The label, cut to its area.
    pub short: String,
    pub label_area: Option<Area>,
    /// Corners of the line, from the border of one node to the border of the other.
    pub points: Vec<(i32, i32)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub direction: Direction,
    pub form: Form,
    pub title: Option<String>,
    pub width: i32,
    pub height: i32,
    /// Boxes come before the nodes inside them.
    pub nodes: Vec<LayoutNode>,
    pub edges: Vec<LayoutEdge>,
}

impl Layout {
    /// Whether some nodes are not drawn.
    pub fn has_hidden(&self) -> bool {
        self.nodes.iter().any(|node| node.n_hidden > 0)
    }
}

/// Lays a plan out in pixels.
pub fn layout(plan: &Plan, direction: Direction) -> Layout {
    lay_out(plan, direction, &Metrics::pixels(direction))
}

/// Lays a plan out in cells of a terminal.
fn layout_in_cells(plan: &Plan, direction: Direction) -> Layout {
    lay_out(plan, direction, &Metrics::cells(direction))
}

fn lay_out(plan: &Plan, direction: Direction, metrics: &Metrics) -> Layout {
    let contents = contents::of_plan(plan, metrics);
    let mut composer = Composer { direction, metrics, nodes: Vec::new(), edges: Vec::new() };
    let area = composer.compose(contents, None, (metrics.margin, metrics.margin));
    Layout {
        direction,
        form: plan.form,
        title: plan.title.clone(),
        width: area.w + 2 * metrics.margin,
        height: area.h + 2 * metrics.margin,
        nodes: composer.nodes,
        edges: composer.edges,
    }
}

/// Puts laid-out scopes together.
struct Composer<'m> {
    direction: Direction,
    metrics: &'m Metrics,
    nodes: Vec<LayoutNode>,
    edges: Vec<LayoutEdge>,
}

impl Composer<'_> {
    /// Adds a scope whose corner is at `at`. Recurses once for each box inside another, of which a plan has a bounded
    /// number.
    fn compose(&mut self, contents: Contents, parent: Option<usize>, at: (i32, i32)) -> Area {
        let arrangement = contents.arrangement;
        let mut places = Vec::with_capacity(contents.members.len());
        for (member, spot) in contents.members.into_iter().zip(&arrangement.spots) {
            let (x, y) = self.point((spot.main, spot.cross), at);
            let (w, h) = self.turned(spot.extent.main, spot.extent.cross);
            let mut node = member.node;
            node.parent = parent;
            node.area = Area { x, y, w, h };
            let own = self.nodes.len();
            places.push(own);
            self.nodes.push(node);
            if let Some(inside) = member.inside {
                let (inner_w, inner_h) =
                    self.turned(inside.arrangement.extent.main, inside.arrangement.extent.cross);
                // Boxes may have grown for their label or their ports.
                let free = (w - 2 * self.metrics.box_pad - inner_w, h - self.metrics.box_height(inner_h));
                let corner = (x + self.metrics.box_pad + free.0 / 2, y + self.metrics.box_band + free.1 / 2);
                self.compose(*inside, Some(own), corner);
            }
        }
        for (wire, route) in contents.wires.into_iter().zip(arrangement.routes) {
            let label_area = route.label.zip(wire.label_extent).map(|(corner, extent)| {
                let (x, y) = self.point(corner, at);
                let (w, h) = self.turned(extent.main, extent.cross);
                Area { x, y, w, h }
            });
            self.edges.push(LayoutEdge {
                id: wire.id,
                from: places[wire.from],
                to: places[wire.to],
                kind: route.kind,
                when: wire.when,
                label: wire.label,
                short: wire.short,
                label_area,
                points: route.points.into_iter().map(|point| self.point(point, at)).collect(),
            });
        }
        let (w, h) = self.turned(arrangement.extent.main, arrangement.extent.cross);
        Area { x: at.0, y: at.1, w, h }
    }

    /// Width and height of extents along and across the layers.
    fn turned(&self, main: i32, cross: i32) -> (i32, i32) {
        match self.direction {
            Direction::LeftRight => (main, cross),
            Direction::TopDown => (cross, main),
        }
    }

    fn point(&self, (main, cross): (i32, i32), at: (i32, i32)) -> (i32, i32) {
        let (x, y) = self.turned(main, cross);
        (at.0 + x, at.1 + y)
    }
}

#[cfg(test)]
mod tests;
