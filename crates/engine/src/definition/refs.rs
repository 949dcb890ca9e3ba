//! References between nodes: the values that nodes read and write, and whether each value read can exist.

use std::collections::BTreeSet;

use super::reader::{Reader, at_key, shown};
use crate::plan::{
    Body, Branch, Branches, Call, Compute, LoopOver, Node, NodeIx, NodeKind, Post, Prep, Timer,
};
use crate::reference::{Ref, Root, Seg};

/// The references a node reads itself, those of scopes inside it and of its edges left out.
pub(crate) fn of_node(node: &Node) -> Vec<&Ref> {
    let mut found = of_prep(&node.prep);
    match &node.kind {
        NodeKind::Call(call) => found.extend(of_call(call)),
        NodeKind::Choice(choice) => found.extend(choice.cases.iter().flat_map(|(_, expr)| expr.refs())),
        NodeKind::Fan(fan) => match &fan.branches {
            Branches::Fixed(branches) => found.extend(branches.iter().flat_map(of_branch)),
            Branches::Services { each } => found.extend(of_branch(each)),
            Branches::Items { each, special } => {
                found.extend(of_branch(each));
                found.extend(special.values().flat_map(of_branch));
            }
        },
        NodeKind::Loop(l) => {
            match &l.over {
                LoopOver::Limit(template) | LoopOver::Array(template) => found.extend(template.refs()),
            }
            // A loop's outputs read the loop's own body, so they are checked with it.
        }
        NodeKind::Timer(Timer::Delay(t) | Timer::Seconds(t) | Timer::Until(t)) => found.extend(t.refs()),
        NodeKind::Compute(compute) => found.extend(of_compute(compute)),
        // A wait or an approval reads values from outside; they are not expected to exist yet.
        NodeKind::Sub(_) | NodeKind::Wait(_) | NodeKind::Approval(_) | NodeKind::Pass | NodeKind::Return => {}
    }
    found
}

fn of_prep(prep: &Prep) -> Vec<&Ref> {
    match prep {
        Prep::Scope => Vec::new(),
        Prep::Key(reference) => vec![reference],
        Prep::Map(map) => map.values().flat_map(|template| template.refs()).collect(),
        Prep::Params(template) => template.refs(),
    }
}

fn of_call(call: &Call) -> Vec<&Ref> {
    let Some(cost) = &call.cost else { return Vec::new() };
    let mut found = cost.estimate.refs();
    found.extend(cost.actual.iter().flat_map(|actual| actual.refs()));
    found
}

fn of_branch(branch: &Branch) -> Vec<&Ref> {
    let mut found = of_prep(&branch.prep);
    match &branch.body {
        Body::Call(call) => found.extend(of_call(call)),
        Body::Scope(_) => {}
    }
    found
}

fn of_compute(compute: &Compute) -> Vec<&Ref> {
    match compute {
        Compute::Set(values) | Compute::Outputs(values) => {
            values.iter().flat_map(|(_, template)| template.refs()).collect()
        }
        Compute::Test(condition) => condition.refs(),
        Compute::Define { .. }
        | Compute::Assign { .. }
        | Compute::TextJoin
        | Compute::TextSplit
        | Compute::JsonGet
        | Compute::JsonSet
        | Compute::TimeNow => Vec::new(),
    }
}

/// The shared keys a node writes, those its branches and the body of a loop write included. Subflows have a shared
/// state of their own.
pub(super) fn writes(node: &Node) -> Vec<&str> {
    let mut keys = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        keys.extend(of_post(&node.post));
        match &node.kind {
            NodeKind::Fan(fan) => match &fan.branches {
                Branches::Fixed(branches) => keys.extend(branches.iter().flat_map(|b| of_post(&b.post))),
                Branches::Services { each } => keys.extend(of_post(&each.post)),
                Branches::Items { each, special } => {
                    keys.extend(of_post(&each.post));
                    keys.extend(special.values().flat_map(|b| of_post(&b.post)));
                }
            },
            NodeKind::Loop(l) if !l.body.owns_shared => open.extend(&l.body.nodes),
            NodeKind::Compute(compute) => keys.extend(set_by(compute)),
            NodeKind::Call(_)
            | NodeKind::Choice(_)
            | NodeKind::Sub(_)
            | NodeKind::Loop(_)
            | NodeKind::Timer(_)
            | NodeKind::Wait(_)
            | NodeKind::Approval(_)
            | NodeKind::Pass
            | NodeKind::Return => {}
        }
    }
    keys
}

/// The shared keys that a result is written to.
pub(super) fn of_post(post: &Post) -> impl Iterator<Item = &str> {
    post.output_key.iter().chain(post.output_map.keys()).map(String::as_str)
}

fn set_by(compute: &Compute) -> Vec<&str> {
    match compute {
        Compute::Set(values) => values.iter().map(|(name, _)| name.as_str()).collect(),
        Compute::Define { variable } | Compute::Assign { variable } => vec![variable],
        Compute::Test(_)
        | Compute::TextJoin
        | Compute::TextSplit
        | Compute::JsonGet
        | Compute::JsonSet
        | Compute::TimeNow
        | Compute::Outputs(_) => Vec::new(),
    }
}

/// A reference from inside a node to a node of a scope around it.
pub(super) struct Outward {
    /// Which of the scopes around it is meant, from the outermost.
    level: usize,
    pub(super) name: String,
    /// The result, not the status or the error.
    pub(super) of_output: bool,
    /// Where it is read.
    pub(super) path: String,
}

/// A reference to a node of a scope from inside another node of it.
pub(super) struct Within {
    pub(super) reader_ix: NodeIx,
    pub(super) read: Outward,
}

/// Takes the reads of nodes inside the node at `ix` that concern the scope being read; `from` is the number of reads
/// from inside nodes before this one.
pub(super) fn take_within(ix: NodeIx, from: usize, reader: &mut Reader) -> Vec<Within> {
    let level = reader.scopes.len().saturating_sub(1);
    let meant = reader.outward.extract_if(from.., |read| read.level == level);
    meant.map(|read| Within { reader_ix: ix, read }).collect()
}

/// Whether a node has nothing to read for the nodes inside it: a loop shows its turn, and every node its status.
pub(super) fn is_hidden_inside(node: &Node, of_output: bool) -> bool {
    of_output && !matches!(node.kind, NodeKind::Loop(_))
}

/// Reports references of a node to nodes that are in none of the scopes around it.
pub(super) fn check_nodes(node: &Node, path: &str, reader: &mut Reader) {
    check_known(&of_node(node), path, reader);
}

/// Reports those of `refs` that name a node which is in none of the scopes around the place.
pub(super) fn check_known(refs: &[&Ref], path: &str, reader: &mut Reader) {
    let named: BTreeSet<(&str, bool)> = refs
        .iter()
        .filter_map(|reference| Some((reference.node()?, matches!(reference.root, Root::Output(_)))))
        .collect();
    let mut unknown: BTreeSet<&str> = BTreeSet::new();
    for (name, of_output) in named {
        match reader.scopes.iter().rposition(|scope| scope.contains(name)) {
            // The scope that is being read looks at these itself.
            Some(level) if level + 1 == reader.scopes.len() => {}
            Some(level) => {
                let (name, path) = (name.to_owned(), path.to_owned());
                reader.outward.push(Outward { level, name, of_output, path });
            }
            None => drop(unknown.insert(name)),
        }
    }
    for name in unknown {
        let scopes = std::mem::take(&mut reader.scopes);
        let known = scopes.iter().rev().flatten().map(String::as_str);
        let reason = format!("reference to unknown node `{}`", shown(name));
        reader.error_near(path, reason, name, known);
        reader.scopes = scopes;
    }
}

/// Warns of shared keys that are read in a scope with a shared state of its own but written by nothing in it.
pub(super) fn check_shared(nodes: &[Node], path: &str, reader: &mut Reader) {
    let Some(mut written) = reader.begins_with.clone() else { return };
    written.extend(["_error".to_owned(), "_rt".to_owned()]);
    for node in nodes {
        for key in writes(node) {
            written.insert(key.to_owned());
            written.insert(format!("{key}_errors"));
        }
        // Waits and approvals name the keys that signals will write.
        let awaited = match &node.kind {
            NodeKind::Wait(wait) => Some(&wait.key),
            NodeKind::Approval(approval) => approval.key.as_ref(),
            NodeKind::Call(_)
            | NodeKind::Choice(_)
            | NodeKind::Fan(_)
            | NodeKind::Sub(_)
            | NodeKind::Loop(_)
            | NodeKind::Timer(_)
            | NodeKind::Compute(_)
            | NodeKind::Pass
            | NodeKind::Return => None,
        };
        if let Some(Seg::Key(key)) = awaited.and_then(|reference| reference.path.first()) {
            written.insert(key.clone());
        }
    }
    for node in nodes {
        let remedy = "write it before, or send it as a signal";
        check_written(&of_node(node), &written, &at_key(path, &node.key), remedy, reader);
    }
}

/// Warns of shared keys that are read but not among those `written`.
pub(super) fn check_written(
    refs: &[&Ref],
    written: &BTreeSet<String>,
    path: &str,
    remedy: &str,
    reader: &mut Reader,
) {
    let missing: BTreeSet<&str> = refs
        .iter()
        .filter(|reference| reference.root == Root::Shared)
        .filter_map(|reference| match reference.path.first() {
            Some(Seg::Key(key)) if !written.contains(key) => Some(key.as_str()),
            Some(Seg::Key(_) | Seg::Index(_)) | None => None,
        })
        .collect();
    for key in missing {
        let hint = reader.suggestion(key, written.iter().map(String::as_str));
        let reason = format!("nothing writes `{}`, so it may be missing here", shown(key));
        reader.hint_warning(path.to_owned(), reason, Some(hint.unwrap_or_else(|| remedy.to_owned())));
    }
}
