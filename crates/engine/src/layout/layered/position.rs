//! The place of every vertex across the layers, after Brandes and Köpf: vertices are joined to straight blocks in four
//! ways, each is made compact, and the mean of the two middle ones is taken. Ports shift a block's vertices.

use std::collections::BTreeSet;

use super::Spacing;
use super::layers::{Hop, LayeredGraph};

/// The centre of every vertex, from 0.
pub(super) fn assign(graph: &LayeredGraph<'_>, spacing: &Spacing) -> Vec<i32> {
    let conflicts = conflicts(graph);
    let ways = [(false, false), (false, true), (true, false), (true, true)];
    let found =
        ways.map(|(upwards, mirrored)| Alignment { graph, spacing, upwards, mirrored }.centres(&conflicts));
    let bounds = found.each_ref().map(|centres| bounds(graph, centres));
    let narrowest = (0..4).min_by_key(|way| bounds[*way].1 - bounds[*way].0).unwrap_or(0);
    let shift = |way: usize| match ways[way].1 {
        false => bounds[narrowest].0 - bounds[way].0,
        true => bounds[narrowest].1 - bounds[way].1,
    };
    let shifts = [0, 1, 2, 3].map(shift);
    let mean = |vertex: usize| {
        let mut four = [0, 1, 2, 3].map(|way| found[way][vertex] + shifts[way]);
        four.sort_unstable();
        (four[1] + four[2]).div_euclid(2)
    };
    let mut centres: Vec<i32> = (0..graph.vertices.len()).map(mean).collect();
    let (first, _) = self::bounds(graph, &centres);
    centres.iter_mut().for_each(|centre| *centre -= first);
    centres
}

fn bounds(graph: &LayeredGraph<'_>, centres: &[i32]) -> (i32, i32) {
    let both = || graph.vertices.iter().zip(centres);
    let first = both().map(|(vertex, centre)| centre - vertex.before).min();
    let last = both().map(|(vertex, centre)| centre + vertex.after).max();
    (first.unwrap_or(0), last.unwrap_or(0))
}

/// Hops that cross a hop between two passes: those are to stay straight.
fn conflicts(graph: &LayeredGraph<'_>) -> BTreeSet<(usize, usize)> {
    let mut found = BTreeSet::new();
    let is_pass = |vertex: usize| graph.vertices[vertex].is_pass;
    for (upper, layer) in graph.layers.iter().zip(graph.layers.iter().skip(1)) {
        let (mut scanned, mut low) = (0, 0);
        for (at, vertex) in layer.iter().enumerate() {
            let straight = graph.up[*vertex].iter().find(|hop| is_pass(*vertex) && is_pass(hop.upper));
            if straight.is_none() && at + 1 < layer.len() {
                continue;
            }
            let high = straight.map_or(upper.len(), |hop| graph.rank[hop.upper]);
            for other in &layer[scanned..=at] {
                for hop in &graph.up[*other] {
                    let rank = graph.rank[hop.upper];
                    if (rank < low || high < rank) && !(is_pass(*other) && is_pass(hop.upper)) {
                        found.insert((hop.upper, *other));
                    }
                }
            }
            (scanned, low) = (at + 1, high);
        }
    }
    found
}

/// One of the four ways to join vertices: from either end of the layers, from either side.
struct Alignment<'g, 'l> {
    graph: &'g LayeredGraph<'l>,
    spacing: &'g Spacing,
    upwards: bool,
    mirrored: bool,
}

/// Vertices joined to straight blocks.
struct Blocks {
    /// The first vertex of the block of each vertex.
    root: Vec<usize>,
    /// The place of each vertex in its block, from the root.
    shift: Vec<i32>,
}

impl Alignment<'_, '_> {
    fn centres(&self, conflicts: &BTreeSet<(usize, usize)>) -> Vec<i32> {
        let blocks = self.join(conflicts);
        let starts = self.compact(&blocks);
        let sign = if self.mirrored { -1 } else { 1 };
        (0..blocks.root.len()).map(|v| sign * (starts[blocks.root[v]] + blocks.shift[v])).collect()
    }

    fn layer(&self, at: usize) -> Vec<usize> {
        let layers = &self.graph.layers;
        let layer = &layers[if self.upwards { layers.len() - 1 - at } else { at }];
        if self.mirrored { layer.iter().rev().copied().collect() } else { layer.clone() }
    }

    fn rank(&self, vertex: usize) -> usize {
        let rank = self.graph.rank[vertex];
        let n = || self.graph.layers[self.graph.vertices[vertex].layer].len();
        if self.mirrored { n() - 1 - rank } else { rank }
    }

    /// Joins every vertex to the middle one of its neighbours in the layer before, where no other line is crossed.
    fn join(&self, conflicts: &BTreeSet<(usize, usize)>) -> Blocks {
        let graph = self.graph;
        let n = graph.vertices.len();
        let sign = if self.upwards == self.mirrored { 1 } else { -1 };
        let mut blocks = Blocks { root: (0..n).collect(), shift: vec![0; n] };
        let mut neighbours: Vec<(usize, &Hop)> = Vec::new();
        for at in 1..graph.layers.len() {
            // The first rank of the layer before to which a vertex may still be joined.
            let mut free = 0;
            for vertex in self.layer(at) {
                let hops = if self.upwards { &graph.down[vertex] } else { &graph.up[vertex] };
                let other = |hop: &Hop| if self.upwards { hop.lower } else { hop.upper };
                neighbours.clear();
                neighbours.extend(hops.iter().map(|hop| (self.rank(other(hop)), hop)));
                neighbours.sort_by_key(|(rank, _)| *rank);
                let Some(last) = neighbours.len().checked_sub(1) else { continue };
                for middle in [last / 2, last.div_ceil(2)] {
                    let (rank, hop) = neighbours[middle];
                    if rank < free || conflicts.contains(&(hop.upper, hop.lower)) {
                        continue;
                    }
                    let before = other(hop);
                    blocks.root[vertex] = blocks.root[before];
                    blocks.shift[vertex] = blocks.shift[before] + sign * graph.shift(hop);
                    free = rank + 1;
                    break;
                }
            }
        }
        blocks
    }

    /// The distance between the centres of two neighbours in a layer.
    fn distance(&self, first: usize, second: usize) -> i32 {
        let (first, second) = if self.mirrored { (second, first) } else { (first, second) };
        self.graph.distance(first, second, self.spacing)
    }

    /// The place of every block's root: as near to the first side as its neighbours let it, then as near to the
    /// neighbours on the other side as it can be.
    fn compact(&self, blocks: &Blocks) -> Vec<i32> {
        let n = blocks.root.len();
        let mut after: Vec<Vec<(usize, i32)>> = vec![Vec::new(); n];
        let mut waits = vec![0_usize; n];
        for at in 0..self.graph.layers.len() {
            for pair in self.layer(at).windows(2) {
                let (a, b) = (pair[0], pair[1]);
                let apart = self.distance(a, b) + blocks.shift[a] - blocks.shift[b];
                after[blocks.root[a]].push((blocks.root[b], apart));
                waits[blocks.root[b]] += 1;
            }
        }
        let mut order: Vec<usize> = (0..n).filter(|v| blocks.root[*v] == *v && waits[*v] == 0).collect();
        let mut start: Vec<Option<i32>> = vec![None; n];
        let mut next = 0;
        while let Some(block) = order.get(next).copied() {
            next += 1;
            let here = *start[block].get_or_insert(0);
            for (to, apart) in &after[block] {
                start[*to] = start[*to].max(Some(here + apart));
                waits[*to] -= 1;
                if waits[*to] == 0 {
                    order.push(*to);
                }
            }
        }
        let mut start: Vec<i32> = start.into_iter().map(Option::unwrap_or_default).collect();
        for block in order.into_iter().rev() {
            let most = after[block].iter().map(|(to, apart)| start[*to] - apart).min();
            start[block] = most.map_or(start[block], |most| most.max(start[block]));
        }
        start
    }
}
