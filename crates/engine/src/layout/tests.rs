//! The layout in cells; that in pixels is tested from outside.

#![allow(dead_code, unreachable_pub, reason = "tests outside the crate use more of these")]

#[path = "../../tests/support/dice.rs"]
mod dice;
#[path = "../../tests/support/random.rs"]
mod random;

use std::collections::BTreeMap;

use super::*;
use crate::definition::{Strictness, compile_value};

/// The innermost node at every cell, and whether that cell is its border.
fn cells_of(layout: &Layout) -> BTreeMap<(i32, i32), (usize, bool)> {
    let mut cells: BTreeMap<(i32, i32), (usize, bool)> = BTreeMap::new();
    for (ix, node) in layout.nodes.iter().enumerate() {
        let Area { x, y, w, h } = node.area;
        for (cx, cy) in (x..x + w).flat_map(|cx| (y..y + h).map(move |cy| (cx, cy))) {
            let before =
                cells.insert((cx, cy), (ix, cx == x || cx == x + w - 1 || cy == y || cy == y + h - 1));
            assert_eq!(before.map(|(outer, _)| outer), node.parent, "`{}` is over another node", node.id);
            assert!(before.is_none_or(|(_, is_border)| !is_border), "`{}` is over a border", node.id);
        }
    }
    cells
}

fn check_cells(layout: &Layout) {
    let cells = cells_of(layout);
    for edge in &layout.edges {
        let around = layout.nodes[edge.from].parent;
        let last = edge.points.len() - 2;
        for (part, pair) in edge.points.windows(2).enumerate() {
            let step = ((pair[1].0 - pair[0].0).signum(), (pair[1].1 - pair[0].1).signum());
            let mut here = pair[0];
            loop {
                let found = cells.get(&here).copied();
                let is_end = (part == 0 && here == pair[0]) || (part == last && here == pair[1]);
                let is_free =
                    found.map(|(node, _)| node) == around && found.is_none_or(|(_, is_border)| !is_border);
                assert!(is_free || is_end, "`{}` runs over {found:?} at {here:?}", edge.id);
                if here == pair[1] {
                    break;
                }
                here = (here.0 + step.0, here.1 + step.1);
            }
        }
        if let Some(Area { x, y, w, h }) = edge.label_area {
            for cell in (x..x + w).flat_map(|cx| (y..y + h).map(move |cy| (cx, cy))) {
                let found = cells.get(&cell).map(|(node, _)| *node);
                assert_eq!(found, around, "the label of `{}` is over a node", edge.id);
            }
        }
    }
}

#[test]
fn lines_run_between_the_boxes_of_a_terminal() {
    for seed in 0..300 {
        let bytes = dice::noise(seed, 320);
        let definition = random::definition(&mut dice::Dice::new(&bytes));
        let plan = compile_value(definition, Strictness::Strict).plan.unwrap();
        for direction in [Direction::LeftRight, Direction::TopDown] {
            check_cells(&layout_in_cells(&plan, direction));
        }
    }
}
