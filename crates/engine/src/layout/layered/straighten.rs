//! Moves vertices within the free room beside them, where more of their hops become straight.

use super::Spacing;
use super::layers::{Hop, LayeredGraph};

/// Rounds over all vertices at most.
const ROUNDS: usize = 3;

pub(super) fn straighten(graph: &LayeredGraph<'_>, spacing: &Spacing, centres: &mut [i32]) {
    let units = units(graph);
    for _ in 0..ROUNDS {
        let mut changed = false;
        for unit in &units {
            changed |= move_unit(graph, spacing, unit, centres);
        }
        if !changed {
            return;
        }
    }
}

/// Vertices that move together: each member, and all passes of each link.
fn units(graph: &LayeredGraph<'_>) -> Vec<Vec<usize>> {
    let members = (0..graph.extents.len()).map(|member| vec![member]);
    let passes = graph.paths.iter().filter(|path| !path.passes.is_empty());
    passes.map(|path| path.passes.clone().collect()).chain(members).collect()
}

fn move_unit(graph: &LayeredGraph<'_>, spacing: &Spacing, unit: &[usize], centres: &mut [i32]) -> bool {
    let (first, last) = (unit[0], unit[unit.len() - 1]);
    let here = centres[first];
    // A member between several neighbours on one side stays in their middle.
    let single = |hops: &[Hop]| if hops.len() == 1 { hops.first().copied() } else { None };
    let up = single(&graph.up[first]).map(|hop| centres[hop.upper] + graph.shift(&hop));
    let down = single(&graph.down[last]).map(|hop| centres[hop.lower] - graph.shift(&hop));
    if up.or(down).is_none() || unit.iter().any(|vertex| centres[*vertex] != here) {
        return false;
    }
    let (mut low, mut high) = (0, i32::MAX);
    for vertex in unit {
        let (layer, rank) = (&graph.layers[graph.vertices[*vertex].layer], graph.rank[*vertex]);
        low = low.max(graph.vertices[*vertex].before);
        if let Some(before) = rank.checked_sub(1).map(|rank| layer[rank]) {
            low = low.max(centres[before] + graph.distance(before, *vertex, spacing));
        }
        if let Some(after) = layer.get(rank + 1) {
            high = high.min(centres[*after] - graph.distance(*vertex, *after, spacing));
        }
    }
    let wanted = || up.into_iter().chain(down);
    let n_straight = |at: i32| wanted().filter(|other| *other == at).count();
    let free = wanted().filter(|at| (low..=high).contains(at));
    let best = free.max_by_key(|at| (n_straight(*at), -(at - here).abs(), -*at));
    match best.filter(|at| n_straight(*at) > n_straight(here)) {
        Some(at) => {
            unit.iter().for_each(|vertex| centres[*vertex] = at);
            true
        }
        None => false,
    }
}
