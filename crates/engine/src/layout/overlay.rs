//! The states of a run over the layout of its flow: one for every node, and which edges were followed.

use std::collections::{BTreeMap, BTreeSet};

use super::{EdgeWhen, Layout, LayoutKind};

/// The action of a node that chose none.
const DEFAULT_ACTION: &str = "default";

/// The state of a place of a run, as the API words it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeOverlay<'s> {
    pub status: &'s str,
    pub action: Option<&'s str>,
    pub attempts: u32,
}

/// Whether an edge was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EdgeState {
    /// Its node has not ended.
    #[default]
    Open,
    Taken,
    NotTaken,
}

/// All places of a run that one node stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tally<'s> {
    pub(super) status: &'s str,
    /// Places, and those of them that have ended well.
    pub(super) n: usize,
    pub(super) n_done: usize,
    pub(super) attempts: u32,
    actions: BTreeSet<&'s str>,
}

/// The states of the nodes and edges of a layout, by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay<'s> {
    pub(super) nodes: Vec<Option<Tally<'s>>>,
    pub edges: Vec<EdgeState>,
}

impl<'s> Overlay<'s> {
    /// Takes the states of a run by path.
    pub fn new(layout: &Layout, states: impl IntoIterator<Item = (&'s str, NodeOverlay<'s>)>) -> Overlay<'s> {
        let places = Places::of(layout);
        let mut nodes: Vec<Option<Tally<'s>>> = vec![None; layout.nodes.len()];
        for (path, state) in states {
            if let Some(node) = places.find(path) {
                nodes[node].get_or_insert_default().add(state);
            }
        }
        // A box without a state of its own, a parallel of the steps form, shows the worst state inside. Boxes come
        // before the nodes inside them: from the end, inner ones are known first.
        let has_own: Vec<bool> = nodes.iter().map(Option::is_some).collect();
        for ix in (0..layout.nodes.len()).rev() {
            let Some(parent) = layout.nodes[ix].parent.filter(|parent| !has_own[*parent]) else { continue };
            if let Some(status) = nodes[ix].as_ref().map(|tally| tally.status) {
                nodes[parent].get_or_insert_default().worsen(status);
            }
        }
        let edges = layout.edges.iter().map(|edge| {
            let (Some(from), to) = (&nodes[edge.from], &nodes[edge.to]) else { return EdgeState::Open };
            let entered = match to {
                Some(to) => !matches!(to.status, "pending" | "skipped"),
                None => layout.nodes[edge.to].kind == LayoutKind::End,
            };
            let chosen = match &edge.when {
                EdgeWhen::Always | EdgeWhen::Condition => from.status != "skipped",
                EdgeWhen::Action(action) => from.actions.contains(action.as_str()),
            };
            let has_left = is_ended(from.status) || from.n > 1;
            match (has_left, entered && chosen) {
                (true, true) => EdgeState::Taken,
                (true, false) if is_ended(from.status) => EdgeState::NotTaken,
                (true | false, _) => EdgeState::Open,
            }
        });
        let edges = edges.collect();
        Overlay { nodes, edges }
    }
}

fn is_ended(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "skipped" | "canceled")
}

/// The rank of a state: the highest one of several is shown.
fn severity(status: &str) -> usize {
    const ORDER: [&str; 8] =
        ["skipped", "completed", "canceled", "pending", "waiting", "running", "retrying", "failed"];
    // Words that are not in the list are ways to wait.
    ORDER.iter().position(|known| *known == status).unwrap_or(4)
}

impl<'s> Tally<'s> {
    fn add(&mut self, state: NodeOverlay<'s>) {
        self.n += 1;
        self.n_done += usize::from(matches!(state.status, "completed" | "skipped"));
        self.attempts = self.attempts.max(state.attempts);
        match state.action {
            Some(action) => drop(self.actions.insert(action)),
            None if state.status == "completed" => drop(self.actions.insert(DEFAULT_ACTION)),
            None => {}
        }
        self.worsen(state.status);
    }

    fn worsen(&mut self, status: &'s str) {
        if self.status.is_empty() || severity(status) > severity(self.status) {
            self.status = status;
        }
    }
}

/// Finds the node that a path of a run is drawn as.
struct Places<'l> {
    nodes: BTreeMap<&'l str, usize>,
    /// Every beginning of an id that ends before a slash.
    beginnings: BTreeSet<&'l str>,
}

impl<'l> Places<'l> {
    fn of(layout: &'l Layout) -> Places<'l> {
        let mut places = Places { nodes: BTreeMap::new(), beginnings: BTreeSet::new() };
        for (ix, node) in layout.nodes.iter().enumerate() {
            places.nodes.insert(&node.id, ix);
            places.beginnings.insert(&node.id);
            places.beginnings.extend(node.id.match_indices('/').map(|(at, _)| &node.id[..at]));
        }
        places
    }

    /// Segment by segment: the name itself, or `*` for any index.
    fn find(&self, path: &str) -> Option<usize> {
        let mut id = String::with_capacity(path.len());
        for segment in path.split('/') {
            let around = id.len();
            for name in [segment, "*"] {
                id.truncate(around);
                if around > 0 {
                    id.push('/');
                }
                id.push_str(name);
                if self.beginnings.contains(id.as_str()) {
                    break;
                }
            }
        }
        self.nodes.get(id.as_str()).copied()
    }
}
