//! The graph form: nodes by name, edges by action, cycles allowed.

pub(super) mod branches;
pub(super) mod calls;
pub(super) mod node;
mod routes;
pub(super) mod shared_paths;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::NodeDoers;
use super::reader::{Fields, Reader, at_index, at_key, shown};
use super::refs::{self, Within};
use crate::plan::{Edge, Node, NodeIx, Routing, Scope, When};

/// The action of a node that chooses none.
pub(super) const DEFAULT_ACTION: &str = "default";

/// Reads `start`, `nodes` and `edges` of one scope. `doers`: fields that the enclosing node gives to nodes of it.
pub(super) fn scope(
    fields: &mut Fields<'_>,
    depth: usize,
    doers: NodeDoers,
    reader: &mut Reader,
) -> Option<Scope> {
    let start_key = fields.text("start", reader);
    let edge_list = fields.list("edges", reader).unwrap_or_default();
    if fields.value("nodes").is_none() {
        reader.error(fields.at("nodes"), "the nodes are missing");
    }
    let node_map = fields.map("nodes", reader)?;
    let nodes_path = fields.at("nodes");
    if node_map.is_empty() {
        reader.error(nodes_path, "a flow needs at least one node");
        return None;
    }
    if !reader.admit_nodes(node_map.len(), &nodes_path)
        || !reader.admit_edges(edge_list.len(), &fields.at("edges"))
    {
        return None;
    }
    reader.scopes.push(node_map.keys().cloned().collect::<BTreeSet<_>>());
    let (mut nodes, index, within) = read_nodes(node_map, &nodes_path, depth, doers, reader);
    let start = find_start(start_key, &index, fields, reader);
    read_edges(edge_list, &fields.at("edges"), &mut nodes, &index, reader);
    let path_of = |ix: NodeIx, nodes: &[Node]| at_key(&nodes_path, &nodes[ix].key);
    for (ix, node) in nodes.iter().enumerate() {
        refs::check_nodes(node, &path_of(ix, &nodes), reader);
    }
    reader.scopes.pop();
    let start = start?;
    routes::check(&nodes, start, &nodes_path, reader);
    routes::check_reads(&nodes, &index, &within, &nodes_path, reader);
    refs::check_shared(&nodes, &nodes_path, reader);
    shared_paths::check(&nodes, &nodes_path, reader);
    Some(Scope { routing: Routing::Action { start }, owns_shared: true, nodes, index, groups: Vec::new() })
}

fn read_nodes(
    map: &Map<String, Value>,
    path: &str,
    depth: usize,
    mut doers: NodeDoers,
    reader: &mut Reader,
) -> (Vec<Node>, BTreeMap<String, NodeIx>, Vec<Within>) {
    let mut nodes = Vec::with_capacity(map.len());
    let mut index = BTreeMap::new();
    let mut within = Vec::new();
    for (key, value) in map {
        let path = at_key(path, key);
        reader.check_key(key, &path);
        index.insert(key.clone(), nodes.len());
        let from = reader.outward.len();
        reader.doer = doers.remove(key);
        let node = node::read(key, value, path, depth, reader);
        if let Some(unused) = reader.doer.take() {
            let reason = format!("has no effect on a node of kind {}", node.label);
            unused.warn_of_idle(&reason, reader);
        }
        nodes.push(node);
        within.extend(refs::take_within(nodes.len() - 1, from, reader));
    }
    (nodes, index, within)
}

fn find_start(
    key: Option<&str>,
    index: &BTreeMap<String, NodeIx>,
    fields: &Fields<'_>,
    reader: &mut Reader,
) -> Option<NodeIx> {
    let Some(key) = key else {
        reader.error(fields.at("start"), "the start node is missing: name the node to begin with");
        return None;
    };
    let found = index.get(key).copied();
    if found.is_none() {
        let reason = format!("unknown node `{}`", shown(key));
        reader.error_near(fields.at("start"), reason, key, index.keys().map(String::as_str));
    }
    found
}

fn read_edges(
    list: &[Value],
    path: &str,
    nodes: &mut [Node],
    index: &BTreeMap<String, NodeIx>,
    reader: &mut Reader,
) {
    let mut taken: BTreeMap<(NodeIx, String), usize> = BTreeMap::new();
    for (i, value) in list.iter().enumerate() {
        let Some(mut edge) = Fields::of(value, at_index(path, i), reader) else { continue };
        let from = edge.text("from", reader);
        let to = edge.text("to", reader);
        let action = edge.name("action", reader).unwrap_or(DEFAULT_ACTION);
        if from.is_none() {
            reader.error(edge.at("from"), "an edge needs the node it comes from");
        }
        let from = from.and_then(|key| end_of_edge(key, edge.at("from"), index, reader));
        let to_ix = to.map(|key| end_of_edge(key, edge.at("to"), index, reader));
        let place = edge.path.clone();
        edge.finish(reader);
        // An edge to nowhere ends the scope; an edge to an unknown node has been reported.
        let (Some(from), Some(to)) = (from, to_ix.map_or(Some(None), |found| found.map(Some))) else {
            continue;
        };
        if let Some(first) = taken.insert((from, action.to_owned()), i) {
            let reason = format!(
                "node `{}` has another edge for action `{}` at {}",
                shown(&nodes[from].key),
                shown(action),
                at_index(path, first)
            );
            reader.error(place, reason);
            continue;
        }
        nodes[from].out.push(Edge { to, when: When::Action(action.to_owned()) });
    }
}

fn end_of_edge(
    key: &str,
    path: String,
    index: &BTreeMap<String, NodeIx>,
    reader: &mut Reader,
) -> Option<NodeIx> {
    let found = index.get(key).copied();
    if found.is_none() {
        let reason = format!("unknown node `{}`", shown(key));
        reader.error_near(path, reason, key, index.keys().map(String::as_str));
    }
    found
}
