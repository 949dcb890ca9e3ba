//! What may be wrong with the edges of an action scope although every one of them is legal.

use super::DEFAULT_ACTION;
use crate::definition::reader::{Reader, at_key, shown};
use crate::plan::{Kind, Node, NodeIx, When};

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
        Kind::Choice(choice) => {
            possible.extend(choice.cases.iter().map(|(action, _)| action.as_str()));
            match (&node.post.action_static, &node.post.action_key, &choice.default_action) {
                (Some(action), _, _) => possible.push(action),
                (None, None, Some(action)) => possible.push(action),
                (None, Some(_), _) | (None, None, None) => open_ended = true,
            }
        }
        Kind::Approval(_) => possible.extend(["approved", "rejected"]),
        Kind::Call(_)
        | Kind::Fan(_)
        | Kind::Sub(_)
        | Kind::Loop(_)
        | Kind::Timer(_)
        | Kind::Wait(_)
        | Kind::Compute(_)
        | Kind::Pass
        | Kind::Return => match &node.post.action_static {
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
