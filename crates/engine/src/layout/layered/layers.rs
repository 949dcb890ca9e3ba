//! Layers: which links lead back, the layer of every member, and the vertices where long links pass a layer.

use super::{Extent, Link, Spacing};

/// Vertices of long links for each member, and for small scopes: links beyond that run around all layers.
const PASSES_PER_MEMBER: usize = 8;
const PASSES_MIN: usize = 4_000;

/// How a link runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    Forward,
    /// To a node that led here: against the direction of the layers.
    Back,
    /// From a node to itself.
    Itself,
}

/// A member, or the place where a link passes a layer. Members come first, by their index.
#[derive(Debug, Clone)]
pub(super) struct Vertex {
    pub(super) layer: usize,
    /// Extents across the layers from the centre, where lines enter.
    pub(super) before: i32,
    pub(super) after: i32,
    pub(super) is_pass: bool,
    /// The member beside which the end of a back link should be.
    pub(super) anchor: Option<usize>,
}

/// The part of a link between two neighbouring layers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hop {
    pub(super) upper: usize,
    pub(super) lower: usize,
    pub(super) link: usize,
}

/// A link's way through the layers.
#[derive(Debug, Clone)]
pub(super) struct LinkPath {
    pub(super) kind: LinkKind,
    /// Vertices of its own, by layer; a back link has one in the layers of its ends, too.
    pub(super) passes: std::ops::Range<usize>,
    /// It runs around all layers, and has no vertices.
    pub(super) is_outer: bool,
    pub(super) port: usize,
}

/// A place at the end side of a member where links leave.
#[derive(Debug, Clone)]
pub(super) struct Port {
    pub(super) links: Vec<usize>,
    pub(super) extent: i32,
    /// From the member's centre, across the layers.
    pub(super) offset: i32,
}

pub(super) struct LayeredGraph<'l> {
    pub(super) extents: Vec<Extent>,
    pub(super) links: &'l [Link],
    pub(super) vertices: Vec<Vertex>,
    /// Vertices by layer, in their order.
    pub(super) layers: Vec<Vec<usize>>,
    pub(super) paths: Vec<LinkPath>,
    pub(super) ports: Vec<Vec<Port>>,
    /// Hops to lower layers, by their upper vertex; and the other way round.
    pub(super) down: Vec<Vec<Hop>>,
    pub(super) up: Vec<Vec<Hop>>,
    /// The place of every vertex in its layer.
    pub(super) rank: Vec<usize>,
    /// Lanes beside each member for links from it to itself.
    pub(super) n_loops: Vec<i32>,
}

impl<'l> LayeredGraph<'l> {
    pub(super) fn new(members: &[Extent], links: &'l [Link], starts: &[usize], spacing: &Spacing) -> Self {
        let n = members.len();
        let (kinds, visits) = kinds(n, links, starts);
        let layer = layer_of_members(n, links, &kinds, starts);
        let n_layers = layer.iter().max().map_or(0, |last| last + 1);
        let mut graph = LayeredGraph {
            extents: members.to_vec(),
            links,
            vertices: Vec::with_capacity(n),
            layers: vec![Vec::new(); n_layers],
            paths: Vec::with_capacity(links.len()),
            ports: vec![Vec::new(); n],
            down: vec![Vec::new(); n],
            up: vec![Vec::new(); n],
            rank: Vec::new(),
            n_loops: vec![0; n],
        };
        for layer in layer {
            graph.vertices.push(Vertex { layer, before: 0, after: 0, is_pass: false, anchor: None });
        }
        let outer = graph.outer(&kinds);
        for (link, kind) in kinds.into_iter().enumerate() {
            graph.add_path(link, kind, outer[link]);
            graph.add_port(link, spacing);
        }
        graph.grow_members(spacing);
        graph.order_as_visited(&visits);
        graph
    }

    fn span(&self, link: usize) -> usize {
        let Link { from, to, .. } = self.links[link];
        self.vertices[from].layer.abs_diff(self.vertices[to].layer)
    }

    /// Which links run around all layers: the longest, as far as all others have too many vertices.
    fn outer(&self, kinds: &[LinkKind]) -> Vec<bool> {
        let n_passes = |link: usize| match kinds[link] {
            LinkKind::Forward => self.span(link).saturating_sub(1),
            LinkKind::Back => self.span(link) + 1,
            LinkKind::Itself => 0,
        };
        let mut outer = vec![false; self.links.len()];
        let mut n_all: usize = (0..self.links.len()).map(n_passes).sum();
        let most = PASSES_MIN.max(self.extents.len() * PASSES_PER_MEMBER);
        if n_all > most {
            let mut longest: Vec<usize> = (0..self.links.len()).collect();
            longest.sort_by_key(|link| std::cmp::Reverse(n_passes(*link)));
            for link in longest {
                if n_all <= most {
                    break;
                }
                n_all -= n_passes(link);
                outer[link] = n_passes(link) > 0;
            }
        }
        outer
    }

    fn add_path(&mut self, link: usize, kind: LinkKind, is_outer: bool) {
        let Link { from, to, .. } = self.links[link];
        let first = self.vertices.len();
        let layers = match kind {
            _ if is_outer => 0..0,
            LinkKind::Itself => {
                self.n_loops[from] += 1;
                0..0
            }
            LinkKind::Forward => self.vertices[from].layer + 1..self.vertices[to].layer,
            LinkKind::Back => self.vertices[to].layer..self.vertices[from].layer + 1,
        };
        for layer in layers.clone() {
            let anchor = match kind {
                LinkKind::Back if layer == layers.start => Some(to),
                LinkKind::Back if layer + 1 == layers.end => Some(from),
                LinkKind::Back | LinkKind::Forward | LinkKind::Itself => None,
            };
            self.vertices.push(Vertex { layer, before: 0, after: 0, is_pass: true, anchor });
            self.down.push(Vec::new());
            self.up.push(Vec::new());
        }
        let passes = first..self.vertices.len();
        let ends = match kind {
            LinkKind::Forward if !is_outer => (Some(from), Some(to)),
            LinkKind::Forward | LinkKind::Back | LinkKind::Itself => (None, None),
        };
        let chain: Vec<usize> = ends.0.into_iter().chain(passes.clone()).chain(ends.1).collect();
        for pair in chain.windows(2) {
            let hop = Hop { upper: pair[0], lower: pair[1], link };
            self.down[hop.upper].push(hop);
            self.up[hop.lower].push(hop);
        }
        self.paths.push(LinkPath { kind, passes, is_outer, port: 0 });
    }

    /// Links without a label leave a member at one place, each link with a label at a place of its own.
    fn add_port(&mut self, link: usize, spacing: &Spacing) {
        let Link { from, label, .. } = self.links[link];
        let ports = &mut self.ports[from];
        let plain = |port: &Port| self.links[port.links[0]].label.is_none();
        let known = if label.is_none() { ports.iter().position(plain) } else { None };
        let at = known.unwrap_or_else(|| {
            let extent = label.map_or(spacing.port, |label| label.cross + spacing.port_gap);
            ports.push(Port { links: Vec::new(), extent, offset: 0 });
            ports.len() - 1
        });
        ports[at].links.push(link);
        self.paths[link].port = at;
    }

    /// Members grow across the layers until all their ports have room.
    fn grow_members(&mut self, spacing: &Spacing) {
        for (member, extent) in self.extents.iter_mut().enumerate() {
            let ports: i32 = self.ports[member].iter().map(|port| port.extent).sum();
            extent.cross = extent.cross.max(ports + spacing.corner);
            let centre = (extent.cross - spacing.unit) / 2;
            let loops = self.n_loops[member] * spacing.line_gap;
            let vertex = &mut self.vertices[member];
            (vertex.before, vertex.after) = (centre, extent.cross - centre + loops);
        }
        for vertex in self.vertices.iter_mut().skip(self.extents.len()) {
            vertex.after = spacing.unit;
        }
    }

    /// The first order: as links were followed from the start. The ends of back links come after their members.
    fn order_as_visited(&mut self, visits: &[usize]) {
        let mut keys: Vec<(usize, usize)> = vec![(0, 0); self.vertices.len()];
        for (member, visit) in visits.iter().enumerate() {
            keys[member] = (*visit, 0);
        }
        for (link, path) in self.paths.iter().enumerate() {
            let Link { from, to, .. } = self.links[link];
            let near = if path.kind == LinkKind::Back { to } else { from };
            for pass in path.passes.clone() {
                keys[pass] = (visits[self.vertices[pass].anchor.unwrap_or(near)], link + 1);
            }
        }
        for (vertex, place) in self.vertices.iter().enumerate() {
            self.layers[place.layer].push(vertex);
        }
        for layer in &mut self.layers {
            layer.sort_by_key(|vertex| keys[*vertex]);
        }
        self.rank = vec![0; self.vertices.len()];
        self.rank_all();
    }

    pub(super) fn rank_all(&mut self) {
        for layer in &self.layers {
            for (at, vertex) in layer.iter().enumerate() {
                self.rank[*vertex] = at;
            }
        }
    }

    /// Places the ports of every member in the order of the vertices that their links lead to.
    pub(super) fn place_ports(&mut self, spacing: &Spacing) {
        for member in 0..self.extents.len() {
            let mut aims = vec![usize::MAX; self.ports[member].len()];
            for hop in &self.down[member] {
                let aim = &mut aims[self.paths[hop.link].port];
                *aim = (*aim).min(self.rank[hop.lower]);
            }
            let ports = &mut self.ports[member];
            let mut order: Vec<usize> = (0..ports.len()).collect();
            order.sort_by_key(|port| aims[*port]);
            let all: i32 = ports.iter().map(|port| port.extent).sum();
            let mut at = -((all - spacing.unit) / 2);
            for port in order {
                ports[port].offset = at + (ports[port].extent - spacing.unit) / 2;
                at += ports[port].extent;
            }
        }
    }

    /// The distance between the centres of two neighbours in a layer, at least.
    pub(super) fn distance(&self, first: usize, second: usize, spacing: &Spacing) -> i32 {
        let (first, second) = (&self.vertices[first], &self.vertices[second]);
        let gap = if first.is_pass || second.is_pass { spacing.line_gap } else { spacing.member_gap };
        first.after + gap + second.before
    }

    /// The difference between the centres of a hop's ends at which it is straight.
    pub(super) fn shift(&self, hop: &Hop) -> i32 {
        self.port_offset(hop.upper, hop.link)
    }

    /// The place where a link leaves a vertex, from its centre.
    pub(super) fn port_offset(&self, vertex: usize, link: usize) -> i32 {
        match self.ports.get(vertex) {
            Some(ports) => ports[self.paths[link].port].offset,
            None => 0,
        }
    }
}

/// The kind of every link, and the order in which members are visited: depth first, from the starts.
fn kinds(n: usize, links: &[Link], starts: &[usize]) -> (Vec<LinkKind>, Vec<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum Visited {
        Not,
        Open,
        Ended,
    }
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut has_in = vec![false; n];
    for (ix, link) in links.iter().enumerate() {
        out[link.from].push(ix);
        has_in[link.to] |= link.from != link.to;
    }
    let mut kinds = vec![LinkKind::Forward; links.len()];
    let mut state = vec![Visited::Not; n];
    let mut visits = vec![0; n];
    let mut n_visits = 0;
    let first = (0..n).filter(|member| !has_in[*member]);
    for root in starts.iter().copied().chain(first).chain(0..n) {
        if state[root] != Visited::Not {
            continue;
        }
        let mut open = vec![(root, 0)];
        while let Some((member, next)) = open.last_mut() {
            let member = *member;
            if state[member] == Visited::Not {
                state[member] = Visited::Open;
                visits[member] = n_visits;
                n_visits += 1;
            }
            let Some(link) = out[member].get(*next).copied() else {
                state[member] = Visited::Ended;
                open.pop();
                continue;
            };
            *next += 1;
            let to = links[link].to;
            match state[to] {
                _ if to == member => kinds[link] = LinkKind::Itself,
                Visited::Open => kinds[link] = LinkKind::Back,
                Visited::Not => open.push((to, 0)),
                Visited::Ended => {}
            }
        }
    }
    (kinds, visits)
}

/// Every member's layer: one after the last before it. Members that nothing leads to stand just before the next ones.
fn layer_of_members(n: usize, links: &[Link], kinds: &[LinkKind], starts: &[usize]) -> Vec<usize> {
    let forward = links.iter().zip(kinds).filter(|(_, kind)| **kind == LinkKind::Forward);
    let (mut out, mut waits) = (vec![Vec::new(); n], vec![0_usize; n]);
    for (link, _) in forward {
        out[link.from].push(link.to);
        waits[link.to] += 1;
    }
    let mut layer = vec![0; n];
    let mut ready: Vec<usize> = (0..n).filter(|member| waits[*member] == 0).collect();
    let first = ready.clone();
    while let Some(member) = ready.pop() {
        for to in &out[member] {
            layer[*to] = layer[*to].max(layer[member] + 1);
            waits[*to] -= 1;
            if waits[*to] == 0 {
                ready.push(*to);
            }
        }
    }
    for member in first {
        let next = out[member].iter().map(|to| layer[*to]).min();
        if let Some(next) = next.filter(|_| !starts.contains(&member)) {
            layer[member] = next - 1;
        }
    }
    layer
}
