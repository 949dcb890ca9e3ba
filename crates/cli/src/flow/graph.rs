//! `windlass flow graph`: draws a definition as lines and arrows, or in the language of Graphviz.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::plan::{Body, Branches, Edge, Node, NodeKind, Routing, Scope, When};

use super::{FlowSelector, read, validate};
use crate::exit::Exit;
use crate::output;
use crate::session::GlobalArgs;

pub(super) async fn graph(which: &FlowSelector, dot: bool, options: &GlobalArgs) -> Result<Exit> {
    let file = Path::new(&which.flow);
    let text = if file.is_file() { read(file)? } else { on_server(which, options).await? };
    let compiled = compile(&text, Strictness::Lenient);
    let Some(plan) = compiled.plan else {
        return Ok(validate::refuse(file, &text, &compiled.problems));
    };
    output::line(if dot { dot_of(&plan.root) } else { ascii_of(&plan.root) }.trim_end())?;
    Ok(Exit::Done)
}

async fn on_server(which: &FlowSelector, options: &GlobalArgs) -> Result<String> {
    let client = options.session()?.client;
    let version = match which.version {
        Some(number) => Some(client.flows().version(&which.flow, number).await?),
        None => client.flows().show(&which.flow).await?.version,
    };
    version.map(|version| version.text).ok_or_else(|| {
        anyhow::anyhow!(
            "flow `{}` has no published version: publish one with `windlass flow apply`",
            which.flow
        )
    })
}

/// Scopes inside a node, each with its name.
fn inside(node: &Node) -> Vec<(String, &Scope)> {
    match &node.kind {
        NodeKind::Sub(sub) => vec![("inside".to_owned(), &sub.scope)],
        NodeKind::Loop(body) => vec![("each turn".to_owned(), &body.body)],
        NodeKind::Fan(fan) => {
            let branches: Vec<_> = match &fan.branches {
                Branches::Fixed(branches) => branches.iter().collect(),
                Branches::Services { each } => vec![each],
                Branches::Items { each, special } => std::iter::once(each).chain(special.values()).collect(),
            };
            branches
                .into_iter()
                .filter_map(|branch| match &branch.body {
                    Body::Scope(inner) => Some((branch.name.clone(), &**inner)),
                    Body::Call(_) => None,
                })
                .collect()
        }
        NodeKind::Call(_)
        | NodeKind::Choice(_)
        | NodeKind::Timer(_)
        | NodeKind::Wait(_)
        | NodeKind::Approval(_)
        | NodeKind::Compute(_)
        | NodeKind::Pass
        | NodeKind::Return => Vec::new(),
    }
}

/// The title of a node, if it says more than its key.
fn title_of(node: &Node) -> Option<String> {
    let title = node.title.as_deref().filter(|title| *title != node.key)?;
    Some(title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect())
}

/// The label of a node, with its service or branches.
fn label_of(node: &Node) -> String {
    let detail = match &node.kind {
        NodeKind::Call(call) if call.service != node.label => call.service.as_str(),
        NodeKind::Fan(fan) => match &fan.branches {
            Branches::Fixed(branches) => {
                let names: Vec<&str> = branches.iter().map(|branch| branch.name.as_str()).collect();
                return format!("{}: {}", node.label, names.join(" | "));
            }
            Branches::Services { .. } => "the services it is given",
            Branches::Items { each, .. } => return format!("{}: {} each", node.label, each.name),
        },
        NodeKind::Call(_)
        | NodeKind::Choice(_)
        | NodeKind::Sub(_)
        | NodeKind::Loop(_)
        | NodeKind::Timer(_)
        | NodeKind::Wait(_)
        | NodeKind::Approval(_)
        | NodeKind::Compute(_)
        | NodeKind::Pass
        | NodeKind::Return => "",
    };
    if detail.is_empty() { node.label.clone() } else { format!("{}: {detail}", node.label) }
}

fn edge_label(when: &When) -> &str {
    match when {
        When::Always => "",
        When::Action(action) => action,
        When::If(_) => "if",
    }
}

fn ascii_of(root: &Scope) -> String {
    let mut text = String::new();
    ascii_scope(root, "", &mut text);
    text
}

/// Recursion ends with the scopes, whose depth the compiler limits.
fn ascii_scope(scope: &Scope, indent: &str, text: &mut String) {
    let begins = |index: usize, node: &Node| match scope.routing {
        Routing::Action { start } => start == index,
        Routing::Join { .. } => node.n_in == 0,
    };
    for (index, node) in in_order(scope, begins) {
        let mark = if begins(index, node) { "▶" } else { "○" };
        // Writing to a string cannot fail.
        let title = title_of(node).map(|title| format!(" {title}")).unwrap_or_default();
        let _ok = writeln!(text, "{indent}{mark} {}{title} [{}]", node.key, label_of(node));
        for (name, inner) in inside(node) {
            let _ok = writeln!(text, "{indent}  │ {name}:");
            ascii_scope(inner, &format!("{indent}  │   "), text);
        }
        for (n, edge) in node.out.iter().enumerate() {
            let corner = if n + 1 == node.out.len() { "└" } else { "├" };
            let label = edge_label(&edge.when);
            let arrow = if label.is_empty() { "──▶".to_owned() } else { format!("─ {label} ─▶") };
            let _ok = writeln!(text, "{indent}  {corner}{arrow} {}", target(scope, edge));
        }
    }
}

/// Nodes in the order in which edges reach them from the start; unreached nodes come last.
fn in_order(scope: &Scope, begins: impl Fn(usize, &Node) -> bool) -> Vec<(usize, &Node)> {
    let starts = scope.nodes.iter().enumerate().filter(|(index, node)| begins(*index, node));
    let mut waiting: VecDeque<usize> = starts.map(|(index, _)| index).collect();
    waiting.extend(0..scope.nodes.len());
    let mut seen = BTreeSet::new();
    let mut ordered = Vec::with_capacity(scope.nodes.len());
    while let Some(index) = waiting.pop_front() {
        let Some(node) = scope.nodes.get(index).filter(|_| seen.insert(index)) else { continue };
        ordered.push((index, node));
        // In the order of their edges, before anything that was not reached yet.
        for to in node.out.iter().rev().filter_map(|edge| edge.to) {
            waiting.push_front(to);
        }
    }
    ordered
}

fn target<'s>(scope: &'s Scope, edge: &Edge) -> &'s str {
    edge.to.and_then(|to| scope.nodes.get(to)).map_or("(end)", |node| node.key.as_str())
}

fn dot_of(root: &Scope) -> String {
    let mut text = "digraph flow {\n  rankdir=LR; node [shape=box, fontname=sans];\n".to_owned();
    dot_scope(root, "", 1, &mut text);
    text.push_str("}\n");
    text
}

fn dot_scope(scope: &Scope, path: &str, depth: usize, text: &mut String) {
    let pad = "  ".repeat(depth);
    let id = |key: &str| quoted(&format!("{path}{key}"));
    for node in &scope.nodes {
        let title = title_of(node).map(|title| format!("\n{title}")).unwrap_or_default();
        let label = quoted(&format!("{}{title}\n{}", node.key, label_of(node)));
        let _ok = writeln!(text, "{pad}{} [label={label}];", id(&node.key));
        for (name, inner) in inside(node) {
            let inner_path = format!("{path}{}/{name}/", node.key);
            let cluster = quoted(&format!("cluster {inner_path}"));
            let _ok = writeln!(text, "{pad}subgraph {cluster} {{ label={};", quoted(&name));
            dot_scope(inner, &inner_path, depth + 1, text);
            let _ok = writeln!(text, "{pad}}}");
            if let Some(first) = inner.nodes.first() {
                let to = quoted(&format!("{inner_path}{}", first.key));
                let _ok = writeln!(text, "{pad}{} -> {to} [style=dashed];", id(&node.key));
            }
        }
        for edge in &node.out {
            let Some(to) = edge.to.and_then(|to| scope.nodes.get(to)) else { continue };
            let label = quoted(edge_label(&edge.when));
            let _ok = writeln!(text, "{pad}{} -> {} [label={label}];", id(&node.key), id(&to.key));
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: &str = r#"{"start": "a", "nodes": {
        "a": {"kind": "choice", "choice_cases": [{"action": "go \"on\"", "expr": {"exists": "$params.x"}}]},
        "b": {"kind": "subflow", "subflow": {"start": "c", "nodes": {"c": {"service": "echo"}}, "edges": []}}},
        "edges": [{"from": "a", "action": "go \"on\"", "to": "b"}, {"from": "b", "to": "a"}, {"from": "a", "to": ""}]}"#;

    fn root(text: &str) -> Scope {
        compile(text, Strictness::Strict).plan.unwrap().root.clone()
    }

    #[test]
    fn lines_show_starts_edges_and_what_is_inside() {
        let text = ascii_of(&root(LOOP));
        assert!(text.starts_with("▶ a [choice]\n"), "{text}");
        for line in ["├─ go \"on\" ─▶ b", "─▶ (end)", "│ inside:", "▶ c [executor: echo]", "└─ default ─▶ a"]
        {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn titles_stand_beside_keys() {
        let titled = r#"{"nodes": [{"id": "start", "type": "start", "name": "开始"}, {"id": "b", "type": "x", "name": "b"}], "edges": []}"#;
        let text = ascii_of(&root(titled));
        assert_eq!(text, "▶ start 开始 [start]\n▶ b [x]\n");
        assert!(dot_of(&root(titled)).contains(r#""start" [label="start\n开始\nstart"];"#));
    }

    #[test]
    fn names_are_quoted_for_graphviz() {
        let text = dot_of(&root(LOOP));
        assert!(text.contains(r#""a" -> "b" [label="go \"on\""];"#), "{text}");
        assert!(text.contains(r#"subgraph "cluster b/inside/""#), "{text}");
    }
}
