//! The dag form: nodes and edges with conditions; a node starts when everything before it is settled.

mod node;
mod outputs;
mod variables;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::join;
use super::reader::{Fields, Reader, at_index, shown};
use super::refs::{self, Within};
use crate::expr::{Condition, cel};
use crate::plan::{Compute, Edge, Join, Node, NodeIx, NodeKind, OnFailure, Post, Routing, Scope, When};

pub(super) use variables::variables;

const ON_FAILURE: [(&str, OnFailure); 2] = [("stop", OnFailure::Stop), ("continue", OnFailure::Continue)];

/// Reads `nodes`, `edges` and `on_failure` of one scope; `declared` are the names of the variables of the flow.
pub(super) fn scope(
    fields: &mut Fields<'_>,
    depth: usize,
    declared: BTreeSet<String>,
    reader: &mut Reader,
) -> Option<Scope> {
    let on_failure = fields.word("on_failure", &ON_FAILURE, reader).unwrap_or_default();
    let edge_list = fields.list("edges", reader).unwrap_or_default();
    if fields.value("nodes").is_none() {
        reader.error(fields.at("nodes"), "the nodes are missing");
    }
    let node_list = fields.list("nodes", reader)?;
    let nodes_path = fields.at("nodes");
    if node_list.is_empty() {
        reader.error(nodes_path, "a flow needs at least one node");
        return None;
    }
    if !reader.admit_nodes(node_list.len(), &nodes_path)
        || !reader.admit_edges(edge_list.len(), &fields.at("edges"))
    {
        return None;
    }
    let names = node_list.iter().filter_map(|node| match node.get("id")? {
        Value::String(id) => Some(id.clone()),
        other => other.as_u64().map(|n| n.to_string()),
    });
    reader.scopes.push(names.collect::<BTreeSet<_>>());
    let mut read = read_nodes(node_list, &nodes_path, depth, reader);
    read_edges(edge_list, &fields.at("edges"), &mut read, reader);
    check_undecided(&read, reader);
    for (node, path) in read.nodes.iter().zip(&read.paths) {
        refs::check_nodes(node, path, reader);
    }
    reader.scopes.pop();
    join::check(&mut read.nodes, &read.paths, &read.within, join::EarlyRead::Refused, reader);
    if depth == 1 && !declared.is_empty() {
        check_variables(&read, declared, reader);
    }
    check_joins(&read, reader);
    check_islands(&read, reader);
    Some(Scope {
        routing: Routing::Join { on_failure },
        owns_shared: true,
        nodes: read.nodes,
        index: read.index,
        groups: Vec::new(),
    })
}

/// The nodes of a scope with the places where they stand.
struct DagNodes {
    nodes: Vec<Node>,
    paths: Vec<String>,
    index: BTreeMap<String, NodeIx>,
    within: Vec<Within>,
    /// The nodes of the type `condition` without an expression.
    undecided: Vec<NodeIx>,
}

fn read_nodes(list: &[Value], path: &str, depth: usize, reader: &mut Reader) -> DagNodes {
    let mut read = DagNodes {
        nodes: Vec::new(),
        paths: Vec::new(),
        index: BTreeMap::new(),
        within: Vec::new(),
        undecided: Vec::new(),
    };
    for (i, value) in list.iter().enumerate() {
        let path = at_index(path, i);
        let Some(mut fields) = Fields::of(value, path.clone(), reader) else { continue };
        let id = fields.id("id", reader).unwrap_or_default();
        let from = reader.outward.len();
        let node = node::read(&id, fields, depth, reader);
        let within = refs::take_within(read.nodes.len(), from, reader);
        if !reader.check_key(&id, &format!("{path}.id")) {
            continue;
        }
        if let Some(first) = read.index.get(id.as_ref()) {
            let reason = format!("the id `{}` is taken by {}", shown(&id), read.paths[*first]);
            reader.error(format!("{path}.id"), reason);
            continue;
        }
        let expression = value.pointer("/config/expression");
        if node.label == "condition" && expression.is_none_or(|text| text.is_null() || text == "") {
            read.undecided.push(read.nodes.len());
        }
        read.index.insert(id.into_owned(), read.nodes.len());
        read.nodes.push(node);
        read.within.extend(within);
        read.paths.push(path);
    }
    read
}

fn read_edges(list: &[Value], path: &str, read: &mut DagNodes, reader: &mut Reader) {
    let mut taken: BTreeMap<(NodeIx, NodeIx, String), usize> = BTreeMap::new();
    for (i, value) in list.iter().enumerate() {
        let Some(mut fields) = Fields::of(value, at_index(path, i), reader) else { continue };
        let source = end_of_edge("source", &mut fields, &read.index, reader);
        let target = end_of_edge("target", &mut fields, &read.index, reader);
        let decides =
            source.is_some_and(|ix| matches!(read.nodes[ix].kind, NodeKind::Compute(Compute::Test(_))));
        check_action(source.map(|ix| &read.nodes[ix]), &fields, reader);
        let when = when(&mut fields, decides, reader);
        // An editor draws edges in its own way, and stores the way.
        fields.allow(&["id", "label", "type", "target_handle", "targetHandle"]);
        let place = fields.path.clone();
        // Edges with different conditions are different edges: both answers may lead to the same node.
        let asks = format!("{:?}", when.as_ref().map(shape_of));
        fields.finish(reader);
        let (Some(source), Some(target), Some(when)) = (source, target, when) else { continue };
        if source == target {
            let key = shown(&read.nodes[source].key);
            reader.error(place, format!("cycle: {key} → {key}"));
            continue;
        }
        if let Some(first) = taken.insert((source, target, asks), i) {
            reader.error(place, format!("the same edge as {}", at_index(path, first)));
            continue;
        }
        read.nodes[source].out.push(Edge { to: Some(target), when });
    }
}

fn end_of_edge(
    name: &'static str,
    fields: &mut Fields<'_>,
    index: &BTreeMap<String, NodeIx>,
    reader: &mut Reader,
) -> Option<NodeIx> {
    let Some(key) = fields.id(name, reader) else {
        reader.error(fields.at(name), format!("an edge needs a {name}"));
        return None;
    };
    let found = index.get(key.as_ref()).copied();
    if found.is_none() {
        let reason = format!("unknown node `{}`", shown(&key));
        reader.error_near(fields.at(name), reason, &key, index.keys().map(String::as_str));
    }
    found
}

/// Refuses an edge that waits for a failure: a failed node of a dag has no outgoing edges. A node that takes its action
/// from the definition may use any word.
fn check_action(source: Option<&Node>, fields: &Fields<'_>, reader: &mut Reader) {
    let chooses = |node: &Node| {
        let Post { action_static, action_key, .. } = &node.post;
        matches!(node.kind, NodeKind::Choice(_)) || action_static.is_some() || action_key.is_some()
    };
    let action = fields.map.get("action").and_then(Value::as_str).unwrap_or_default();
    if !matches!(action, "error" | "timeout") || source.is_some_and(chooses) {
        return;
    }
    let reason = format!("this edge is never followed: a node of a dag has no edges for `{action}`");
    let hint = "leave the action out; with `on_failure: continue` the nodes that do not depend on a failed one \
                still run, and the graph form has edges for errors";
    reader.strict_error(fields.at("action"), reason, Some(hint.to_owned()));
}

/// The condition or action of an edge as it is written.
fn shape_of(when: &When) -> String {
    match when {
        When::Always => String::new(),
        When::Action(action) => format!("action {action}"),
        When::If(condition) => format!("if {condition:?}"),
    }
}

/// The decision that an edge stands for by the handle at which it leaves: editors draw one handle for each.
fn decision_of(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<&'static str> {
    let snake = fields.text("source_handle", reader);
    let handle = fields.text("sourceHandle", reader).or(snake)?;
    ["true", "false"].into_iter().find(|word| *word == handle)
}

/// The condition of an edge. After a node that decides, a bare `true` or `false` is the decision, and without a condition
/// the handle of the edge is.
fn when(fields: &mut Fields<'_>, decides: bool, reader: &mut Reader) -> Option<When> {
    let action = fields.name("action", reader);
    let handle = decision_of(fields, reader).filter(|_| decides && action.is_none());
    let path = fields.at("condition");
    let condition = match fields.value("condition") {
        Some(Value::Bool(flag)) => Some(if *flag { "true" } else { "false" }),
        Some(_) => fields.text("condition", reader).filter(|text| !text.trim().is_empty()),
        None => None,
    };
    match (action, condition.map(str::trim)) {
        (Some(_), Some(_)) => {
            reader.error(path, "an edge has an action or a condition, not both");
            None
        }
        (Some(action), None) => Some(When::Action(action.to_owned())),
        (None, Some(word @ ("true" | "false"))) if decides => {
            if let Some(handle) = handle.filter(|handle| *handle != word) {
                let reason =
                    format!("the edge leaves at the handle `{handle}`, but its condition is `{word}`");
                reader.error(path, reason);
            }
            Some(When::Action(word.to_owned()))
        }
        (None, Some(text)) => {
            let condition = expression(text, &path, reader)?;
            refs::check_known(&condition.refs(), &path, reader);
            Some(When::If(condition))
        }
        (None, None) => Some(handle.map_or(When::Always, |word| When::Action(word.to_owned()))),
    }
}

/// A `condition` without an expression leaves the decision to the edges out of it.
fn check_undecided(read: &DagNodes, reader: &mut Reader) {
    for ix in &read.undecided {
        let edges = &read.nodes[*ix].out;
        if !edges.iter().any(|edge| matches!(edge.when, When::If(_))) {
            let reason = "the expression is missing: give one, or conditions on the edges out of the node";
            reader.error(format!("{}.config.expression", read.paths[*ix]), reason);
        }
    }
}

/// Reports a `join` of nodes that wait for nothing. Edges are counted by now.
fn check_joins(read: &DagNodes, reader: &mut Reader) {
    for (node, path) in read.nodes.iter().zip(&read.paths) {
        let is_end = matches!(node.kind, NodeKind::Compute(Compute::Outputs(_)));
        if node.join == Join::AnySettled && node.n_in == 0 && !is_end {
            reader.error(format!("{path}.join"), "has no effect: no edge leads to this node");
        }
    }
}

fn expression(text: &str, path: &str, reader: &mut Reader) -> Option<Condition> {
    cel::CelExpr::parse(text).map(Condition::Cel).map_err(|reason| reader.error(path, reason)).ok()
}

/// Where variables are declared, reading any other is likely to be a slip.
fn check_variables(read: &DagNodes, mut known: BTreeSet<String>, reader: &mut Reader) {
    known.insert("_error".to_owned());
    known.extend(read.nodes.iter().flat_map(refs::writes).map(str::to_owned));
    for (node, path) in read.nodes.iter().zip(&read.paths) {
        let mut reads = refs::of_node(node);
        for edge in &node.out {
            if let When::If(condition) = &edge.when {
                reads.extend(condition.refs());
            }
        }
        refs::check_written(&reads, &known, path, "declare it in `variables`", reader);
    }
}

fn check_islands(read: &DagNodes, reader: &mut Reader) {
    if read.nodes.len() < 2 {
        return;
    }
    for (node, path) in read.nodes.iter().zip(&read.paths) {
        if node.n_in == 0 && node.out.is_empty() {
            reader.warning(path.clone(), "no edge leads to this node or away from it: it starts at once");
        }
    }
}
