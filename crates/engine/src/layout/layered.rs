//! The layered layout of one scope: members in layers, lines between them.
//!
//! Coordinates are along the layers (`main`) and across them (`cross`), so that one computation serves both
//! directions. A line leaves a member at its end side and enters one at its start side. It runs across only in the
//! channels between layers and passes a layer only where no member is, so no line crosses a member. Boxes are members
//! with a size; what is inside them has been laid out before.

mod channel;
mod grid;
mod layers;
mod order;
mod position;
mod route;
mod straighten;

pub use layers::LinkKind;

/// A member's extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) main: i32,
    pub(super) cross: i32,
}

/// A line from one member to another, with the extents of its label.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: Option<Extent>,
}

/// Distances between things, in the unit of the drawing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spacing {
    /// 0 where coordinates are lines between pixels; 1 where they are cells, whose last one is a border.
    pub(super) unit: i32,
    pub(super) member_gap: i32,
    /// Between a line and anything beside it, across the layers.
    pub(super) line_gap: i32,
    /// A channel without tracks.
    pub(super) channel: i32,
    /// Between the tracks of a channel.
    pub(super) track: i32,
    /// Before the first and behind the last track of a channel.
    pub(super) margin: i32,
    /// The head of an arrow, at the end of a channel.
    pub(super) arrow: i32,
    /// Before and after a label, along its line.
    pub(super) label_gap: i32,
    /// The part of a member's side that a line without a label takes.
    pub(super) port: i32,
    /// Beside a label, across its line.
    pub(super) port_gap: i32,
    /// The part of a member's side, at both ends together, where no line leaves.
    pub(super) corner: i32,
    /// Members without lines that stand in one row across the layers.
    pub(super) row: usize,
}

/// Where a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) main: i32,
    pub(super) cross: i32,
    pub(super) extent: Extent,
}

/// A line's way: the points where it bends, from border to border.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) kind: LinkKind,
    pub(super) points: Vec<(i32, i32)>,
    /// The corner of the label nearest to the origin.
    pub(super) label: Option<(i32, i32)>,
}

/// A scope laid out: all coordinates begin at 0.
#[derive(Debug, Clone)]
pub(super) struct Arrangement {
    pub(super) extent: Extent,
    pub(super) spots: Vec<Spot>,
    pub(super) routes: Vec<Route>,
}

/// Lays members out. `starts` are the members with which the scope begins.
pub(super) fn arrange(
    members: &[Extent],
    links: &[Link],
    starts: &[usize],
    spacing: &Spacing,
) -> Arrangement {
    if links.is_empty() {
        return grid::arrange(members, spacing);
    }
    let mut graph = layers::LayeredGraph::new(members, links, starts, spacing);
    order::reduce_crossings(&mut graph);
    graph.place_ports(spacing);
    let mut centres = position::assign(&graph, spacing);
    straighten::straighten(&graph, spacing, &mut centres);
    route::arrange(&graph, &centres, spacing)
}
