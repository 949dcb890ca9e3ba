//! Sizes and distances of a drawing, in pixels or in cells of a terminal.

use super::Direction;
use super::label::Font;
use super::layered::{Extent, Spacing};

pub(super) struct Metrics {
    direction: Direction,
    pub(super) label: Font,
    pub(super) detail: Font,
    pub(super) edge_label: Font,
    /// Least and greatest width of a node without others inside.
    leaf_width: (i32, i32),
    leaf_height: i32,
    /// The room beside the text of a node, both sides together.
    leaf_pad: i32,
    /// The side of the mark where a scope ends.
    end: i32,
    edge_label_height: i32,
    pub(super) edge_label_max: i32,
    /// The part of a box above its nodes, with its label; and the room at the other sides.
    pub(super) box_band: i32,
    pub(super) box_pad: i32,
    box_label_max: i32,
    /// The room before the label of a box.
    box_icon: i32,
    pub(super) margin: i32,
    pub(super) spacing: Spacing,
}

impl Metrics {
    pub(super) fn pixels(direction: Direction) -> Metrics {
        let is_lr = direction == Direction::LeftRight;
        Metrics {
            direction,
            // Bold letters are wider.
            label: Font::Pixels { size: 14 },
            detail: Font::Pixels { size: 11 },
            edge_label: Font::Pixels { size: 11 },
            leaf_width: (96, 240),
            leaf_height: 44,
            leaf_pad: 42,
            end: 16,
            edge_label_height: 16,
            edge_label_max: 140,
            box_band: 32,
            box_pad: 16,
            box_label_max: 320,
            box_icon: 20,
            margin: 20,
            spacing: Spacing {
                unit: 0,
                member_gap: if is_lr { 16 } else { 24 },
                line_gap: 16,
                channel: if is_lr { 36 } else { 40 },
                track: 10,
                margin: 10,
                arrow: 14,
                label_gap: 4,
                port: 14,
                port_gap: 6,
                corner: 12,
                row: if is_lr { 12 } else { 6 },
            },
        }
    }

    pub(super) fn cells(direction: Direction) -> Metrics {
        let is_lr = direction == Direction::LeftRight;
        Metrics {
            direction,
            label: Font::Cells,
            detail: Font::Cells,
            edge_label: Font::Cells,
            leaf_width: (9, 30),
            leaf_height: 4,
            leaf_pad: 4,
            end: 1,
            edge_label_height: 1,
            edge_label_max: 20,
            box_band: 2,
            box_pad: 2,
            box_label_max: 40,
            box_icon: 0,
            margin: 0,
            spacing: Spacing {
                unit: 1,
                member_gap: if is_lr { 1 } else { 2 },
                line_gap: if is_lr { 1 } else { 2 },
                channel: if is_lr { 4 } else { 2 },
                track: if is_lr { 2 } else { 1 },
                margin: if is_lr { 1 } else { 0 },
                arrow: if is_lr { 2 } else { 1 },
                label_gap: if is_lr { 1 } else { 0 },
                port: 1,
                port_gap: if is_lr { 0 } else { 2 },
                corner: 2,
                row: if is_lr { 12 } else { 4 },
            },
        }
    }

    fn turned(&self, w: i32, h: i32) -> Extent {
        match self.direction {
            Direction::LeftRight => Extent { main: w, cross: h },
            Direction::TopDown => Extent { main: h, cross: w },
        }
    }

    /// The height of a box around nodes of a height.
    pub(super) fn box_height(&self, inner: i32) -> i32 {
        inner + self.box_band + if self.spacing.unit == 1 { 1 } else { self.box_pad }
    }

    /// The extent of a node without others inside, with its label and detail cut to fit.
    pub(super) fn leaf(&self, label: &str, detail: &str) -> (Extent, String, String) {
        let room = self.leaf_width.1 - self.leaf_pad;
        let (label, detail) = (self.label.cut(label, room), self.detail.cut(detail, room));
        let text = self.label.width(&label).max(self.detail.width(&detail));
        let width = (text + self.leaf_pad).max(self.leaf_width.0);
        (self.turned(width, self.leaf_height), label, detail)
    }

    pub(super) fn end(&self) -> Extent {
        self.turned(self.end, self.end)
    }

    /// The extent of a box around others, with its label and detail cut to fit.
    pub(super) fn boxed(&self, label: &str, detail: &str, inside: Extent) -> (Extent, String, String) {
        let (w, h) = match self.direction {
            Direction::LeftRight => (inside.main, inside.cross),
            Direction::TopDown => (inside.cross, inside.main),
        };
        let room = self.box_label_max.max(w);
        let (label, detail) = (self.label.cut(label, room), self.detail.cut(detail, room));
        // The detail stands behind the label.
        let gap = self.label.width("  ");
        let text = self.box_icon + self.label.width(&label) + gap + self.detail.width(&detail);
        let width = (w.max(text) + 2 * self.box_pad).max(self.leaf_width.0);
        (self.turned(width, self.box_height(h)), label, detail)
    }

    /// The extent of an edge's label, and the label cut to fit.
    pub(super) fn edge_label(&self, label: &str) -> (Extent, String) {
        let label = self.edge_label.cut(label, self.edge_label_max);
        let pad = if self.spacing.unit == 1 { 0 } else { 8 };
        (self.turned(self.edge_label.width(&label) + pad, self.edge_label_height), label)
    }
}
