//! The places of layers, channels and members along the layers, and the points of every link.

use std::collections::BTreeMap;

use super::channel::{TrackTree, Trunk, tracks};
use super::layers::{LayeredGraph, LinkKind};
use super::{Arrangement, Extent, Route, Spacing, Spot};

/// Tracks of a channel that stand at their full distance.
const WIDE_TRACKS: usize = 60;

/// The crossing of one channel by one link: from one place across the layers to another.
#[derive(Debug, Clone, Copy)]
struct Crossing {
    channel: usize,
    trunk: usize,
    from: i32,
    to: i32,
}

/// Lines that share a trunk: all hops from one port, or all hops to one member.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum TrunkKey {
    FromPort { member: usize, port: usize },
    ToMember { channel: usize, member: usize },
}

struct Router<'g, 'l> {
    graph: &'g LayeredGraph<'l>,
    centres: &'g [i32],
    spacing: &'g Spacing,
    /// Trunks by channel; channel `k` stands before layer `k`.
    trunks: Vec<Vec<Trunk>>,
    shared: BTreeMap<TrunkKey, usize>,
    /// Hops of the first channel behind each port.
    n_at_port: BTreeMap<(usize, usize), usize>,
    /// Where lines around all layers run.
    lanes: Vec<i32>,
}

/// The place of every channel along the layers, and its tracks.
struct Channels {
    starts: Vec<i32>,
    tracks: Vec<Vec<i32>>,
    layers: Vec<i32>,
    extent: i32,
}

pub(super) fn arrange(graph: &LayeredGraph<'_>, centres: &[i32], spacing: &Spacing) -> Arrangement {
    let cross = graph.vertices.iter().zip(centres).map(|(vertex, centre)| centre + vertex.after).max();
    let (lanes, cross) = lanes(graph, cross.unwrap_or(0), spacing);
    let mut n_at_port = BTreeMap::new();
    for hop in graph.down.iter().take(graph.extents.len()).flatten() {
        *n_at_port.entry((hop.upper, graph.paths[hop.link].port)).or_insert(0) += 1;
    }
    let trunks = vec![Vec::new(); graph.layers.len() + 1];
    let mut router = Router { graph, centres, spacing, trunks, shared: BTreeMap::new(), n_at_port, lanes };
    let mut loops = vec![0; graph.extents.len()];
    let crossings: Vec<Vec<Crossing>> =
        (0..graph.links.len()).map(|link| router.crossings(link, &mut loops)).collect();
    let channels = router.channels();
    let spots: Vec<Spot> = (0..graph.extents.len()).map(|member| router.spot(member, &channels)).collect();
    let routes = crossings.iter().enumerate().map(|(link, list)| router.route(link, list, &spots, &channels));
    let routes = routes.collect();
    Arrangement { extent: Extent { main: channels.extent, cross }, spots, routes }
}

/// The lanes of links that run around all layers, below everything else; shorter ones nearer.
fn lanes(graph: &LayeredGraph<'_>, cross: i32, spacing: &Spacing) -> (Vec<i32>, i32) {
    let span = |link: usize| {
        let from = i32::try_from(graph.vertices[graph.links[link].from].layer + 1).unwrap_or(i32::MAX);
        let to = i32::try_from(graph.vertices[graph.links[link].to].layer).unwrap_or(i32::MAX);
        (from.min(to), from.max(to))
    };
    let mut outer: Vec<usize> = (0..graph.paths.len()).filter(|link| graph.paths[*link].is_outer).collect();
    outer.sort_by_key(|link| span(*link).1 - span(*link).0);
    let mut lanes = vec![0; graph.paths.len()];
    let mut last = cross;
    let mut used = TrackTree::new(outer.iter().flat_map(|link| [span(*link).0, span(*link).1]));
    for link in outer {
        let (from, to) = span(link);
        let lane = i32::try_from(used.take(from, to)).unwrap_or(i32::MAX);
        lanes[link] = cross + lane * spacing.line_gap + spacing.line_gap / 2;
        last = last.max(lanes[link] + spacing.line_gap);
    }
    (lanes, last)
}

impl Router<'_, '_> {
    fn layer(&self, vertex: usize) -> usize {
        self.graph.vertices[vertex].layer
    }

    /// All crossings of channels by one link, from its source on.
    fn crossings(&mut self, link: usize, loops: &mut [i32]) -> Vec<Crossing> {
        let graph = self.graph;
        let (from, to) = (graph.links[link].from, graph.links[link].to);
        let path = &graph.paths[link];
        let leave = self.centres[from] + graph.port_offset(from, link);
        let (behind, before) = (self.layer(from) + 1, self.layer(to));
        if path.is_outer {
            let lane = self.lanes[link];
            return vec![
                self.cross(behind, (Some(leave), None), lane, None),
                self.cross(before, (None, Some(self.centres[to])), lane, None),
            ];
        }
        match path.kind {
            LinkKind::Itself => {
                let vertex = &graph.vertices[from];
                let all = graph.n_loops[from] * self.spacing.line_gap;
                let lane = self.centres[from] + vertex.after - all
                    + loops[from] * self.spacing.line_gap
                    + self.spacing.line_gap / 2;
                loops[from] += 1;
                vec![self.turn(behind, leave, lane, true), self.turn(before, lane, self.centres[to], false)]
            }
            LinkKind::Back => {
                let passes: Vec<usize> = path.passes.clone().rev().collect();
                let mut crossings = vec![self.turn(behind, leave, self.centres[passes[0]], true)];
                for pair in passes.windows(2) {
                    let (right, left) = (self.centres[pair[0]], self.centres[pair[1]]);
                    let crossing = self.cross(self.layer(pair[0]), (Some(left), Some(right)), 0, None);
                    crossings.push(Crossing { from: right, to: left, ..crossing });
                }
                let last = self.centres[passes[passes.len() - 1]];
                crossings.push(self.turn(before, last, self.centres[to], false));
                crossings
            }
            LinkKind::Forward => {
                let mut crossings = Vec::with_capacity(path.passes.len() + 1);
                let (mut at, mut upper) = (leave, from);
                for lower in path.passes.clone().chain([to]) {
                    let channel = self.layer(lower);
                    let key = self.trunk_key(link, channel, upper, lower);
                    let next = self.centres[lower];
                    crossings.push(self.cross(channel, (Some(at), Some(next)), 0, key));
                    (at, upper) = (next, lower);
                }
                crossings
            }
        }
    }

    fn trunk_key(&self, link: usize, channel: usize, upper: usize, lower: usize) -> Option<TrunkKey> {
        let port = self.graph.paths[link].port;
        let is_first = upper == self.graph.links[link].from;
        if is_first && self.n_at_port.get(&(upper, port)).is_some_and(|n| *n > 1) {
            return Some(TrunkKey::FromPort { member: upper, port });
        }
        (lower == self.graph.links[link].to).then_some(TrunkKey::ToMember { channel, member: lower })
    }

    /// Adds a crossing between the sides of a channel. A side that the link does not meet is replaced by `lane`.
    fn cross(
        &mut self,
        channel: usize,
        (left, right): (Option<i32>, Option<i32>),
        lane: i32,
        key: Option<TrunkKey>,
    ) -> Crossing {
        let known = key.as_ref().and_then(|key| self.shared.get(key)).copied();
        let trunk = known.unwrap_or_else(|| {
            self.trunks[channel].push(Trunk::default());
            self.trunks[channel].len() - 1
        });
        if let Some(key) = key {
            self.shared.insert(key, trunk);
        }
        let (from, to) = (left.unwrap_or(lane), right.unwrap_or(lane));
        self.trunks[channel][trunk].left.push(from);
        self.trunks[channel][trunk].right.push(to);
        Crossing { channel, trunk, from, to }
    }

    /// Adds a turn: a link that comes from one side of a channel and goes back to the same side.
    fn turn(&mut self, channel: usize, from: i32, to: i32, is_left: bool) -> Crossing {
        let ends = vec![from, to];
        let trunk = if is_left {
            Trunk { left: ends, right: Vec::new() }
        } else {
            Trunk { left: Vec::new(), right: ends }
        };
        self.trunks[channel].push(trunk);
        Crossing { channel, trunk: self.trunks[channel].len() - 1, from, to }
    }

    fn channels(&self) -> Channels {
        let n_layers = self.graph.layers.len();
        let mut thickness = vec![0; n_layers];
        let mut labels = vec![0; n_layers + 1];
        for (member, extent) in self.graph.extents.iter().enumerate() {
            let layer = self.layer(member);
            thickness[layer] = extent.main.max(thickness[layer]);
        }
        for link in self.graph.links {
            let zone = &mut labels[self.layer(link.from) + 1];
            let needed = link.label.map_or(0, |label| label.main + 2 * self.spacing.label_gap);
            *zone = needed.max(*zone);
        }
        let mut channels = Channels { starts: Vec::new(), tracks: Vec::new(), layers: Vec::new(), extent: 0 };
        for (channel, trunks) in self.trunks.iter().enumerate() {
            let (found, n_tracks) = tracks(trunks);
            let Spacing { margin, arrow, .. } = *self.spacing;
            let n = i32::try_from(n_tracks).unwrap_or(i32::MAX);
            let gap = match n_tracks {
                0..=WIDE_TRACKS => self.spacing.track,
                _ => (self.spacing.track * i32::try_from(WIDE_TRACKS).unwrap_or(1) / n).max(1),
            };
            let all = gap * (n - 1).max(0);
            let inner = (self.spacing.channel - arrow).max(all + self.spacing.unit + 2 * margin);
            let first = channels.extent + labels[channel] + (inner - self.spacing.unit - all) / 2;
            let place =
                |track: Option<usize>| first + gap * track.and_then(|t| i32::try_from(t).ok()).unwrap_or(0);
            channels.tracks.push(found.into_iter().map(place).collect());
            channels.starts.push(channels.extent);
            if !trunks.is_empty() {
                channels.extent += labels[channel] + inner + arrow;
            }
            if let Some(thickness) = thickness.get(channel) {
                channels.layers.push(channels.extent);
                channels.extent += thickness;
            }
        }
        channels
    }

    fn spot(&self, member: usize, channels: &Channels) -> Spot {
        let extent = self.graph.extents[member];
        let layer = self.layer(member);
        Spot {
            main: channels.layers[layer],
            cross: self.centres[member] - self.graph.vertices[member].before,
            extent,
        }
    }

    fn route(&self, link: usize, crossings: &[Crossing], spots: &[Spot], channels: &Channels) -> Route {
        let (from, to) = (self.graph.links[link].from, self.graph.links[link].to);
        let leave = self.centres[from] + self.graph.port_offset(from, link);
        let start = spots[from].main + spots[from].extent.main - self.spacing.unit;
        let mut points = vec![(start, leave)];
        for crossing in crossings {
            let track = channels.tracks[crossing.channel][crossing.trunk];
            if crossing.from != crossing.to {
                points.extend([(track, crossing.from), (track, crossing.to)]);
            }
        }
        points.push((spots[to].main, self.centres[to]));
        let label = self.graph.links[link].label.map(|label| {
            let channel = channels.starts[self.layer(from) + 1];
            (channel + self.spacing.label_gap, leave - (label.cross - self.spacing.unit) / 2)
        });
        Route { kind: self.graph.paths[link].kind, points: without_straight(points), label }
    }
}

/// Leaves out points at which a line does not bend.
fn without_straight(points: Vec<(i32, i32)>) -> Vec<(i32, i32)> {
    let mut kept: Vec<(i32, i32)> = Vec::with_capacity(points.len());
    for point in points {
        if kept.last() == Some(&point) {
            continue;
        }
        if let [.., a, b] = kept[..]
            && ((a.0 == b.0 && b.0 == point.0) || (a.1 == b.1 && b.1 == point.1))
        {
            kept.pop();
        }
        kept.push(point);
    }
    kept
}
