//! Warnings about legal edges of an action scope, such as nodes that no edge reaches.

use std::collections::{BTreeMap, BTreeSet};

use super::DEFAULT_ACTION;
use crate::definition::join::EarlyRead;
use crate::definition::reader::{Reader, at_key, shown};
use crate::definition::refs::{self, Within};
use crate::plan::{Node, NodeIx, NodeKind, When};

/// Warns of nodes nothing leads to and of actions that lead nowhere.
pub(super) fn check(nodes: &[Node], start: NodeIx, path: &str, reader: &mut Reader) {
    let mut reached = vec![false; nodes.len()];
    let mut todo = vec![start];
    while let Some(ix) = todo.pop() {
        if !std::mem::replace(&mut reached[ix], true) {
            todo.extend(nodes[ix].out.iter().filter_map(|edge| edge.to));
        }
    }
    for (node, reached) in nodes.iter().zip(reached) {
        let path = at_key(path, &node.key);
        if reached {
            check_actions(node, path, reader);
        } else {
            reader.warning(path, "no path leads from the start to this node");
        }
    }
}

/// Nodes and edges that the search for paths visits in one scope; beyond that it reports nothing.
const STEPS: usize = 10_000_000;

/// Reports reads of nodes from which no path leads to the reader: they cannot have run.
pub(super) fn check_reads(
    nodes: &[Node],
    index: &BTreeMap<String, NodeIx>,
    within: &[Within],
    path: &str,
    reader: &mut Reader,
) {
    let mut reads: BTreeMap<NodeIx, BTreeSet<(NodeIx, Option<&str>)>> = BTreeMap::new();
    for (ix, node) in nodes.iter().enumerate() {
        for named in refs::of_node(node).iter().filter_map(|reference| index.get(reference.node()?)) {
            reads.entry(*named).or_default().insert((ix, None));
        }
    }
    for Within { reader_ix, read } in within {
        let Some(named) = index.get(&read.name) else { continue };
        if named != reader_ix || refs::is_hidden_inside(&nodes[*named], read.of_output) {
            reads.entry(*named).or_default().insert((*reader_ix, Some(&read.path)));
        }
    }
    let mut steps = STEPS;
    for (named, readers) in reads {
        let Some(reached) = reached_from(named, nodes, &mut steps) else { return };
        for (ix, place) in readers.into_iter().filter(|(ix, _)| !reached[*ix]) {
            let name = shown(&nodes[named].key);
            let (reason, hint) = match (ix == named, place) {
                (true, None) => ("a node cannot read its own result".to_owned(), None),
                (true, Some(_)) => (format!("`{name}` has no result yet: this node is inside it"), None),
                (false, _) => {
                    let reason =
                        format!("`{name}` cannot have run before this node: no path leads from it to here");
                    (reason, Some("read the result of a node that comes before".to_owned()))
                }
            };
            let place = place.map_or_else(|| at_key(path, &nodes[ix].key), str::to_owned);
            reader.out_of_order(place, reason, hint, EarlyRead::Refused);
        }
    }
}

/// Which nodes a path of at least one edge leads to; `None` when too much has been looked at.
fn reached_from(from: NodeIx, nodes: &[Node], steps: &mut usize) -> Option<Vec<bool>> {
    *steps = steps.checked_sub(nodes.len())?;
    let mut reached = vec![false; nodes.len()];
    let mut todo = vec![from];
    while let Some(ix) = todo.pop() {
        *steps = steps.checked_sub(nodes[ix].out.len())?;
        for to in nodes[ix].out.iter().filter_map(|edge| edge.to) {
            if !std::mem::replace(&mut reached[to], true) {
                todo.push(to);
            }
        }
    }
    Some(reached)
}

/// A node whose edges are all for particular actions ends the flow silently on any other.
fn check_actions(node: &Node, path: String, reader: &mut Reader) {
    let has_edge = |action: &str| node.out.iter().any(|e| matches!(&e.when, When::Action(a) if a == action));
    let handles_only_failure = node
        .out
        .iter()
        .all(|edge| matches!(&edge.when, When::Action(a) if matches!(a.as_str(), "error" | "timeout")));
    if has_edge(DEFAULT_ACTION) || handles_only_failure {
        return;
    }
    let mut possible: Vec<&str> = Vec::new();
    let mut open_ended = false;
    match &node.kind {
        NodeKind::Choice(choice) => {
            possible.extend(choice.cases.iter().map(|(action, _)| action.as_str()));
            match (&node.post.action_static, &node.post.action_key, &choice.default_action) {
                (Some(action), _, _) => possible.push(action),
                (None, None, Some(action)) => possible.push(action),
                (None, Some(_), _) | (None, None, None) => open_ended = true,
            }
        }
        NodeKind::Approval(_) => possible.extend(["approved", "rejected"]),
        NodeKind::Call(_)
        | NodeKind::Fan(_)
        | NodeKind::Sub(_)
        | NodeKind::Loop(_)
        | NodeKind::Timer(_)
        | NodeKind::Wait(_)
        | NodeKind::Compute(_)
        | NodeKind::Pass
        | NodeKind::Return => match &node.post.action_static {
            Some(action) => possible.push(action),
            None => open_ended = true,
        },
    }
    let missing = possible.into_iter().find(|action| !has_edge(action));
    let reason = match missing {
        Some(action) => {
            format!("no edge for action `{}` and no default edge: the flow ends there", shown(action))
        }
        None if open_ended => {
            "no default edge: an action without an edge of its own ends the flow".to_owned()
        }
        None => return,
    };
    reader.hint_warning(path, reason, Some("add an edge with action `default`".to_owned()));
}
