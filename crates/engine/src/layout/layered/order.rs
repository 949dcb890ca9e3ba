//! The order in every layer: sweeps by the mean place of neighbours, then exchanges of neighbours, as long as fewer
//! lines cross.

use super::layers::{Hop, LayeredGraph};

/// Sweeps at most, and sweeps without a gain after which they end.
const SWEEPS: usize = 16;
const IDLE_SWEEPS: usize = 4;
/// Rounds of exchanges at most, and vertices beyond which there are none.
const EXCHANGES: usize = 6;
const EXCHANGE_VERTICES: usize = 6_000;
/// Pairs of hops looked at in one exchange; vertices with more neighbours stay.
const EXCHANGE_PAIRS: usize = 400;

pub(super) fn reduce_crossings(graph: &mut LayeredGraph<'_>) {
    let mut best = (crossings(graph), graph.layers.clone());
    let mut idle = 0;
    for sweep in 0..SWEEPS {
        if best.0 == 0 || idle == IDLE_SWEEPS {
            break;
        }
        let n_layers = graph.layers.len();
        for at in 0..n_layers {
            let downwards = sweep % 2 == 0;
            sort_layer(graph, if downwards { at } else { n_layers - 1 - at }, downwards);
        }
        let found = crossings(graph);
        idle += 1;
        if found < best.0 {
            best = (found, graph.layers.clone());
            idle = 0;
        }
    }
    graph.layers = best.1;
    graph.rank_all();
    if best.0 > 0 && graph.vertices.len() <= EXCHANGE_VERTICES {
        exchange(graph);
    }
}

/// Sorts one layer by the mean rank of the neighbours before it, or behind it. Vertices without any keep their place.
fn sort_layer(graph: &mut LayeredGraph<'_>, layer: usize, downwards: bool) {
    let mean = |vertex: usize| {
        let hops = if downwards { &graph.up[vertex] } else { &graph.down[vertex] };
        let ranks = hops.iter().map(|hop| graph.rank[if downwards { hop.upper } else { hop.lower }]);
        let sum: usize = ranks.sum();
        // Whole numbers: the order must be the same on every machine.
        (!hops.is_empty()).then(|| (sum << 16) / hops.len())
    };
    let key = |vertex: usize| match (mean(vertex), graph.vertices[vertex].anchor.and_then(mean)) {
        (Some(own), Some(anchor)) => Some(own.midpoint(anchor)),
        (own, anchor) => own.or(anchor.map(|anchor| anchor + 1)),
    };
    let keys: Vec<Option<usize>> = graph.layers[layer].iter().map(|vertex| key(*vertex)).collect();
    let keyed = keys.iter().zip(&graph.layers[layer]);
    let mut sorted: Vec<(usize, usize)> =
        keyed.filter_map(|(key, vertex)| Some(((*key)?, *vertex))).collect();
    sorted.sort_by_key(|(key, _)| *key);
    let mut sorted = sorted.into_iter();
    for (at, key) in keys.iter().enumerate() {
        if let Some((_, vertex)) = key.and_then(|_| sorted.next()) {
            graph.layers[layer][at] = vertex;
        }
    }
    for (at, vertex) in graph.layers[layer].iter().enumerate() {
        graph.rank[*vertex] = at;
    }
}

/// How many pairs of hops cross.
fn crossings(graph: &LayeredGraph<'_>) -> usize {
    let mut all = 0;
    let mut ends: Vec<(usize, usize)> = Vec::new();
    for (layer, next) in graph.layers.iter().zip(graph.layers.iter().skip(1)) {
        ends.clear();
        for vertex in layer {
            let from = graph.rank[*vertex];
            ends.extend(graph.down[*vertex].iter().map(|hop| (from, graph.rank[hop.lower])));
        }
        ends.sort_unstable();
        // A Fenwick tree counts the ends met so far, by their rank.
        let mut met = vec![0_usize; next.len() + 1];
        for (n_before, (_, to)) in ends.iter().enumerate() {
            let (mut n_upto, mut at) = (0, to + 1);
            while at > 0 {
                n_upto += met[at];
                at &= at - 1;
            }
            all += n_before - n_upto;
            let mut at = to + 1;
            while at < met.len() {
                met[at] += 1;
                at += at & at.wrapping_neg();
            }
        }
    }
    all
}

/// Exchanges neighbours while fewer lines cross.
fn exchange(graph: &mut LayeredGraph<'_>) {
    for _ in 0..EXCHANGES {
        let mut changed = false;
        for layer in 0..graph.layers.len() {
            for at in 1..graph.layers[layer].len() {
                let (a, b) = (graph.layers[layer][at - 1], graph.layers[layer][at]);
                if gain(graph, a, b) > 0 {
                    graph.layers[layer].swap(at - 1, at);
                    graph.rank.swap(a, b);
                    changed = true;
                }
            }
        }
        if !changed {
            return;
        }
    }
}

/// Crossings fewer when `b` stands before `a`.
fn gain(graph: &LayeredGraph<'_>, a: usize, b: usize) -> isize {
    let upper = |hop: &Hop| graph.rank[hop.upper];
    let lower = |hop: &Hop| graph.rank[hop.lower];
    between(&graph.up[a], &graph.up[b], upper) + between(&graph.down[a], &graph.down[b], lower)
}

fn between(a: &[Hop], b: &[Hop], rank: impl Fn(&Hop) -> usize) -> isize {
    if a.len() * b.len() > EXCHANGE_PAIRS {
        return 0;
    }
    let mut gain = 0;
    for one in a {
        for other in b {
            gain += match rank(one).cmp(&rank(other)) {
                std::cmp::Ordering::Greater => 1,
                std::cmp::Ordering::Less => -1,
                std::cmp::Ordering::Equal => 0,
            };
        }
    }
    gain
}
