//! The tree of boxes, nodes and edges that a plan is drawn as, each scope laid out on its own.

use std::collections::{BTreeMap, BTreeSet};

use super::layered::{Arrangement, Extent, Link, arrange};
use super::metrics::Metrics;
use super::{Area, EdgeWhen, LayoutKind, LayoutNode};
use crate::definition::{at_index, at_key};
use crate::path::NodePath;
use crate::plan::{
    Body, Branch, Branches, Call, Edge, Exec, Fan, Form, Group, Node, NodeKind, Plan, Routing, Scope, When,
};

/// Branches of one fan that are drawn.
const BRANCHES_MAX: usize = 100;
/// Bytes of ids and places inside boxes. Deeper boxes stay closed: every node repeats the names of all around it.
const NAMES_BYTES: usize = 4 << 20;
/// The action of a node that chooses none; edges for it have no label.
const DEFAULT_ACTION: &str = "default";

/// A scope, laid out.
pub(super) struct Contents {
    pub(super) members: Vec<LayoutMember>,
    pub(super) wires: Vec<Wire>,
    pub(super) arrangement: Arrangement,
}

/// A node with everything inside it.
pub(super) struct LayoutMember {
    pub(super) node: LayoutNode,
    pub(super) inside: Option<Box<Contents>>,
    extent: Extent,
}

/// An edge between two members.
pub(super) struct Wire {
    pub(super) id: String,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) when: EdgeWhen,
    pub(super) label: String,
    pub(super) short: String,
    pub(super) label_extent: Option<Extent>,
}

pub(super) fn of_plan(plan: &Plan, metrics: &Metrics) -> Contents {
    let mut builder = Builder { metrics, names_left: NAMES_BYTES };
    builder.scope(&plan.root, &NodePath::root(), "$")
}

struct Builder<'m> {
    metrics: &'m Metrics,
    names_left: usize,
}

/// A scope with the names that lead to it.
struct ScopeAt<'s> {
    scope: &'s Scope,
    form: Form,
    path: &'s NodePath,
    place: &'s str,
}

impl ScopeAt<'_> {
    fn place_of(&self, ix: usize) -> String {
        let node = &self.scope.nodes[ix];
        match self.form {
            Form::Graph => at_key(&format!("{}.nodes", self.place), &node.key),
            Form::Dag => at_index(&format!("{}.nodes", self.place), ix),
            Form::Steps => format!("{}{}", self.place, node.place),
        }
    }

    fn is_start(&self, ix: usize) -> bool {
        match self.scope.routing {
            Routing::Action { start } => start == ix,
            Routing::Join { .. } => self.scope.nodes[ix].n_in == 0,
        }
    }
}

/// A member of a group or a scope: a node, a group, or the end of the scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Node(usize),
    Group(usize),
    End,
}

impl Builder<'_> {
    /// Recurses once for each scope or group inside another, of which a plan has a bounded number.
    fn scope(&mut self, scope: &Scope, path: &NodePath, place: &str) -> Contents {
        let form = match scope.routing {
            Routing::Action { .. } => Form::Graph,
            Routing::Join { .. } if scope.nodes.iter().any(|node| node.task_id.is_some()) => Form::Steps,
            Routing::Join { .. } => Form::Dag,
        };
        let at = ScopeAt { scope, form, path, place };
        let mut groups = Groups::of(scope);
        self.group(&at, &mut groups, None)
    }

    /// One level of a scope: the scope itself, or a group in it.
    fn group(&mut self, at: &ScopeAt<'_>, groups: &mut Groups, group: Option<usize>) -> Contents {
        let parts = groups.parts.remove(&group).unwrap_or_default();
        let index: BTreeMap<Part, usize> = parts.iter().enumerate().map(|(ix, part)| (*part, ix)).collect();
        let mut members = Vec::with_capacity(parts.len());
        for part in &parts {
            members.push(match part {
                Part::Node(ix) => self.node(at, *ix),
                Part::Group(ix) => {
                    let inside = self.group(at, groups, Some(*ix));
                    self.boxed(of_group(at, &at.scope.groups[*ix]), inside)
                }
                Part::End => self.end(at.path),
            });
        }
        let mut wires = Vec::new();
        for (from, to, edge) in groups.edges.remove(&group).unwrap_or_default() {
            let ends = (&*members[index[&from]].node.id, &*members[index[&to]].node.id);
            wires.push(self.wire(ends, (index[&from], index[&to]), edge.of(at.scope)));
        }
        number(&mut wires);
        let start = match at.scope.routing {
            Routing::Action { start } => index.get(&Part::Node(start)).copied(),
            Routing::Join { .. } => None,
        };
        self.contents(members, wires, start)
    }

    fn contents(&self, members: Vec<LayoutMember>, wires: Vec<Wire>, start: Option<usize>) -> Contents {
        let extents: Vec<Extent> = members.iter().map(|member| member.extent).collect();
        let link = |wire: &Wire| Link { from: wire.from, to: wire.to, label: wire.label_extent };
        let links: Vec<Link> = wires.iter().map(link).collect();
        let starts: Vec<usize> = start.into_iter().collect();
        let arrangement = arrange(&extents, &links, &starts, &self.metrics.spacing);
        Contents { members, wires, arrangement }
    }

    fn wire(&self, ids: (&str, &str), (from, to): (usize, usize), when: &When) -> Wire {
        let (when, label) = match when {
            When::Always => (EdgeWhen::Always, String::new()),
            When::Action(action) if action == DEFAULT_ACTION => {
                (EdgeWhen::Action(action.clone()), String::new())
            }
            When::Action(action) => (EdgeWhen::Action(action.clone()), action.clone()),
            When::If(condition) => (EdgeWhen::Condition, condition.summary()),
        };
        let (extent, short) = self.metrics.edge_label(&label);
        let label_extent = (!short.is_empty()).then_some(extent);
        Wire { id: format!("{}>{}", ids.0, ids.1), from, to, when, label, short, label_extent }
    }

    fn end(&self, path: &NodePath) -> LayoutMember {
        // No node has an empty key.
        let id = format!("{}//end", path.as_str());
        let node = LayoutNode { kind: LayoutKind::End, key: "end".to_owned(), ..blank(id) };
        LayoutMember { node, inside: None, extent: self.metrics.end() }
    }

    fn leaf(&self, mut node: LayoutNode) -> LayoutMember {
        let (extent, short, detail) = self.metrics.leaf(&node.label, &node.detail);
        (node.short, node.detail) = (short, detail);
        LayoutMember { node, inside: None, extent }
    }

    fn boxed(&self, mut node: LayoutNode, inside: Contents) -> LayoutMember {
        let (extent, short, detail) =
            self.metrics.boxed(&node.label, &node.detail, inside.arrangement.extent);
        (node.short, node.detail, node.is_box) = (short, detail, true);
        LayoutMember { node, inside: Some(Box::new(inside)), extent }
    }

    fn node(&mut self, at: &ScopeAt<'_>, ix: usize) -> LayoutMember {
        let node = &at.scope.nodes[ix];
        let path = at.path.child(&node.key);
        let place = at.place_of(ix);
        // Configurations of the dag form stand one level deeper.
        let config = if at.form == Form::Dag { format!("{place}.config") } else { place.clone() };
        let drawn = LayoutNode {
            key: node.key.clone(),
            label: node.title.clone().unwrap_or_else(|| node.key.clone()),
            kind: kind_of(&node.kind),
            word: node.label.clone(),
            detail: detail_of(node),
            place: Some(place.clone()),
            is_start: at.is_start(ix),
            ..blank(path.as_str().to_owned())
        };
        match &node.kind {
            NodeKind::Sub(sub) => self.around(drawn, &sub.scope, &path, &format!("{config}.subflow")),
            NodeKind::Loop(body) => self.around(drawn, &body.body, &path.child("*"), &place),
            NodeKind::Fan(fan) => self.fan(drawn, fan, &path, &config),
            NodeKind::Call(_)
            | NodeKind::Choice(_)
            | NodeKind::Timer(_)
            | NodeKind::Wait(_)
            | NodeKind::Approval(_)
            | NodeKind::Compute(_)
            | NodeKind::Pass
            | NodeKind::Return => self.leaf(drawn),
        }
    }

    /// A box around a scope, or a closed node when there is no room left for the names inside.
    fn around(&mut self, mut node: LayoutNode, scope: &Scope, path: &NodePath, place: &str) -> LayoutMember {
        let n_edges: usize = scope.nodes.iter().map(|node| node.out.len()).sum();
        let around = path.as_str().len();
        let names = scope.nodes.len() * (2 * around + place.len()) + n_edges * 4 * around;
        let Some(left) = self.names_left.checked_sub(names) else {
            node.n_hidden = scope.nodes.len();
            return self.leaf(node);
        };
        self.names_left = left;
        let inside = self.scope(scope, path, place);
        self.boxed(node, inside)
    }

    fn fan(&mut self, mut node: LayoutNode, fan: &Fan, path: &NodePath, config: &str) -> LayoutMember {
        match &fan.branches {
            Branches::Services { .. } => self.leaf(node),
            Branches::Items { each, special } if special.is_empty() => match &each.body {
                Body::Call(_) => self.leaf(node),
                Body::Scope(scope) => {
                    let place = format!("{config}{}.subflow", each.place);
                    self.around(node, scope, &path.child("*"), &place)
                }
            },
            Branches::Items { each, special } => {
                let named = special.iter().map(|(item, branch)| (item.to_string(), branch));
                let branches = std::iter::once(("*".to_owned(), each)).chain(named);
                self.branches(node, branches, path, config)
            }
            Branches::Fixed(list) => {
                node.n_hidden = list.len().saturating_sub(BRANCHES_MAX);
                let branches = list.iter().enumerate().map(|(ix, branch)| (ix.to_string(), branch));
                self.branches(node, branches, path, config)
            }
        }
    }

    fn branches<'b>(
        &mut self,
        node: LayoutNode,
        branches: impl Iterator<Item = (String, &'b Branch)>,
        path: &NodePath,
        config: &str,
    ) -> LayoutMember {
        let word = node.word.clone();
        let mut members = Vec::new();
        for (key, branch) in branches.take(BRANCHES_MAX) {
            let path = path.child(&key);
            let place = format!("{config}{}", branch.place);
            let drawn = LayoutNode {
                label: if branch.name.is_empty() { key.clone() } else { branch.name.clone() },
                key,
                word: word.clone(),
                place: Some(place.clone()),
                is_start: true,
                ..blank(path.as_str().to_owned())
            };
            members.push(match &branch.body {
                Body::Call(call) => {
                    let drawn =
                        LayoutNode { kind: kind_of_call(call), detail: way_of(call).to_owned(), ..drawn };
                    self.leaf(drawn)
                }
                Body::Scope(scope) => {
                    let drawn = LayoutNode { kind: LayoutKind::Branch, ..drawn };
                    self.around(drawn, scope, &path, &format!("{place}.subflow"))
                }
            });
        }
        let inside = self.contents(members, Vec::new(), None);
        self.boxed(node, inside)
    }
}

/// Edges with the same ends are told apart by a number.
fn number(wires: &mut [Wire]) {
    let mut seen: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for wire in wires {
        let n = seen.entry((wire.from, wire.to)).or_default();
        *n += 1;
        if *n > 1 {
            wire.id = format!("{}#{n}", wire.id);
        }
    }
}

/// Members and edges of a scope by the group that they stand in. An edge between two groups stands where the boxes of
/// both do, and leads from one box to the other.
struct Groups {
    parts: BTreeMap<Option<usize>, Vec<Part>>,
    edges: BTreeMap<Option<usize>, Vec<(Part, Part, EdgeAt)>>,
}

/// An edge, by its node and its place among the edges of that.
#[derive(Debug, Clone, Copy)]
struct EdgeAt {
    node: usize,
    edge: usize,
}

impl EdgeAt {
    fn of(self, scope: &Scope) -> &When {
        &scope.nodes[self.node].out[self.edge].when
    }
}

impl Groups {
    fn of(scope: &Scope) -> Groups {
        let mut groups = Groups { parts: BTreeMap::new(), edges: BTreeMap::new() };
        let mut placed = vec![false; scope.groups.len()];
        for (ix, node) in scope.nodes.iter().enumerate() {
            // Groups stand where their first nodes do; those around them come first.
            for part in chain(scope, node.group).into_iter().rev() {
                if !std::mem::replace(&mut placed[part], true) {
                    groups.parts.entry(scope.groups[part].outer).or_default().push(Part::Group(part));
                }
            }
            groups.parts.entry(node.group).or_default().push(Part::Node(ix));
        }
        let mut has_end = false;
        for (ix, node) in scope.nodes.iter().enumerate() {
            for (at, edge) in node.out.iter().enumerate() {
                has_end |= edge.to.is_none();
                groups.add(scope, EdgeAt { node: ix, edge: at }, edge);
            }
        }
        if has_end {
            groups.parts.entry(None).or_default().push(Part::End);
        }
        for edges in groups.edges.values_mut() {
            drop_repeated(edges, scope);
        }
        groups
    }

    fn add(&mut self, scope: &Scope, at: EdgeAt, edge: &Edge) {
        let outward = chain(scope, scope.nodes[at.node].group);
        let inward = edge.to.map(|to| chain(scope, scope.nodes[to].group)).unwrap_or_default();
        let common = outward.iter().find(|group| inward.contains(group)).copied();
        let part = |groups: &[usize], own: Part| {
            let outermost = groups.iter().take_while(|group| Some(**group) != common).last();
            outermost.map_or(own, |group| Part::Group(*group))
        };
        let from = part(&outward, Part::Node(at.node));
        let to = part(&inward, edge.to.map_or(Part::End, Part::Node));
        self.edges.entry(common).or_default().push((from, to, at));
    }
}

/// Groups around a node, innermost first.
fn chain(scope: &Scope, group: Option<usize>) -> Vec<usize> {
    std::iter::successors(group, |group| scope.groups[*group].outer).collect()
}

/// Many edges of nodes in a box may have become one edge of the box.
fn drop_repeated(edges: &mut Vec<(Part, Part, EdgeAt)>, scope: &Scope) {
    let mut seen: BTreeSet<(Part, Part, String)> = BTreeSet::new();
    edges.retain(|(from, to, at)| {
        if !matches!((from, to), (Part::Group(_), _) | (_, Part::Group(_))) {
            return true;
        }
        let when = match at.of(scope) {
            When::Always => String::new(),
            When::Action(action) => format!("action {action}"),
            When::If(condition) => format!("if {}", condition.summary()),
        };
        seen.insert((*from, *to, when))
    });
}

fn blank(id: String) -> LayoutNode {
    LayoutNode {
        id,
        parent: None,
        key: String::new(),
        label: String::new(),
        short: String::new(),
        kind: LayoutKind::Pass,
        word: String::new(),
        detail: String::new(),
        place: None,
        is_start: false,
        is_box: false,
        n_hidden: 0,
        area: Area::default(),
    }
}

fn of_group(at: &ScopeAt<'_>, group: &Group) -> LayoutNode {
    LayoutNode {
        key: group.key.clone(),
        label: group.title.clone().unwrap_or_else(|| group.key.clone()),
        kind: LayoutKind::Parallel,
        word: group.label.clone(),
        detail: "parallel".to_owned(),
        place: Some(format!("{}{}", at.place, group.place)),
        ..blank(at.path.child(&group.key).as_str().to_owned())
    }
}

fn kind_of(kind: &NodeKind) -> LayoutKind {
    match kind {
        NodeKind::Call(call) => kind_of_call(call),
        NodeKind::Choice(_) => LayoutKind::Choice,
        NodeKind::Fan(fan) => match fan.branches {
            Branches::Fixed(_) | Branches::Services { .. } => LayoutKind::Parallel,
            Branches::Items { .. } => LayoutKind::Foreach,
        },
        NodeKind::Sub(_) => LayoutKind::Subflow,
        NodeKind::Loop(_) => LayoutKind::Loop,
        NodeKind::Timer(_) => LayoutKind::Timer,
        NodeKind::Wait(_) => LayoutKind::Signal,
        NodeKind::Approval(_) => LayoutKind::Approval,
        NodeKind::Compute(_) => LayoutKind::Compute,
        NodeKind::Pass => LayoutKind::Pass,
        NodeKind::Return => LayoutKind::Return,
    }
}

fn kind_of_call(call: &Call) -> LayoutKind {
    match call.exec {
        Exec::Flow { .. } => LayoutKind::Flow,
        Exec::Http | Exec::Queue | Exec::Func { .. } | Exec::Script(_) => LayoutKind::Call,
    }
}

/// The way in which a call is made, in one word.
fn way_of(call: &Call) -> &'static str {
    match call.exec {
        Exec::Http => "http",
        Exec::Queue => "queue",
        Exec::Func { .. } => "function",
        Exec::Script(_) => "script",
        Exec::Flow { .. } => "flow",
    }
}

/// The second line of a node: its kind, and the service where no other name says it.
fn detail_of(node: &Node) -> String {
    // Operators of the steps form have long names; their last part says enough.
    let word = match &node.task_id {
        Some(_) => node.label.rsplit('/').next().unwrap_or(&node.label),
        None => &node.label,
    };
    let more = match &node.kind {
        NodeKind::Call(call) if call.service == node.label => way_of(call).to_owned(),
        NodeKind::Call(call) => call.service.clone(),
        NodeKind::Fan(fan) => match &fan.branches {
            Branches::Fixed(list) => format!("{} branches", list.len()),
            Branches::Services { .. } => "services".to_owned(),
            Branches::Items { each, special } if special.is_empty() => match &each.body {
                Body::Call(_) => each.name.clone(),
                Body::Scope(_) => String::new(),
            },
            Branches::Items { .. } => String::new(),
        },
        NodeKind::Choice(_)
        | NodeKind::Sub(_)
        | NodeKind::Loop(_)
        | NodeKind::Timer(_)
        | NodeKind::Wait(_)
        | NodeKind::Approval(_)
        | NodeKind::Compute(_)
        | NodeKind::Pass
        | NodeKind::Return => String::new(),
    };
    if more.is_empty() || more == node.key { word.to_owned() } else { format!("{word} · {more}") }
}
