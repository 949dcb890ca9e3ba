//! `windlass flow graph`: draws a definition as text, as an SVG, or in the language of Graphviz.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use clap::{Args, ValueEnum};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::layout::{self, Direction};
use windlass_engine::plan::{Body, Branches, Node, NodeKind, Plan, Scope, When};
use windlass_sdk::contract::{GraphDirection, GraphSvgQuery};

use super::{FlowSelector, read, validate};
use crate::exit::Exit;
use crate::output;
use crate::session::GlobalArgs;

/// Columns of a drawing that leads from left to right, where the terminal does not say how many it has.
const COLUMNS: i32 = 120;

#[derive(Args)]
pub(crate) struct FlowGraphArgs {
    #[command(flatten)]
    which: FlowSelector,
    /// Boxes and lines for a terminal (this is the default).
    #[arg(long, conflicts_with_all = ["dot", "svg"])]
    ascii: bool,
    /// An SVG, for browsers and documents.
    #[arg(long, conflicts_with = "dot")]
    svg: bool,
    /// The language of Graphviz.
    #[arg(long, conflicts_with = "dir")]
    dot: bool,
    /// Where the drawing leads to [default: lr, or tb where a terminal is too narrow].
    #[arg(long, value_enum, value_name = "lr|tb", hide_possible_values = true)]
    dir: Option<GraphDirectionArg>,
    /// A run of the flow on the server, whose states the SVG shows.
    #[arg(long, value_name = "RUN", requires = "svg")]
    run: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GraphDirectionArg {
    /// From left to right.
    Lr,
    /// From top to bottom.
    Tb,
}

impl From<GraphDirectionArg> for Direction {
    fn from(given: GraphDirectionArg) -> Direction {
        match given {
            GraphDirectionArg::Lr => Direction::LeftRight,
            GraphDirectionArg::Tb => Direction::TopDown,
        }
    }
}

pub(super) async fn graph(asked: &FlowGraphArgs, options: &GlobalArgs) -> Result<Exit> {
    let which = &asked.which;
    if asked.run.is_some() {
        return of_run(asked, options).await;
    }
    let file = Path::new(&which.flow);
    let (text, name) = match file.is_file() {
        true => (read(file)?, file.file_stem().unwrap_or_default().to_string_lossy().into_owned()),
        false => (on_server(which, options).await?, which.flow.clone()),
    };
    let compiled = compile(&text, Strictness::Lenient);
    let Some(plan) = compiled.plan else {
        return Ok(validate::refuse(file, &text, &compiled.problems));
    };
    let drawn = if asked.dot {
        dot_of(&plan.root)
    } else if asked.svg {
        let direction = asked.dir.map(Direction::from).unwrap_or_default();
        layout::svg(&layout::layout(&plan, direction), &name, None)
    } else {
        ascii_of(&plan, asked.dir, options.print().columns)?
    };
    output::line(drawn.trim_end())?;
    Ok(Exit::Done)
}

/// The drawing of a run, which the server makes.
async fn of_run(asked: &FlowGraphArgs, options: &GlobalArgs) -> Result<Exit> {
    let query = GraphSvgQuery {
        version: asked.which.version,
        dir: asked.dir.map(|dir| match dir {
            GraphDirectionArg::Lr => GraphDirection::Lr,
            GraphDirectionArg::Tb => GraphDirection::Tb,
        }),
        run: asked.run.clone(),
    };
    let drawn = options.session()?.client.flows().graph_svg(&asked.which.flow, &query).await?;
    output::line(drawn.trim_end())?;
    Ok(Exit::Done)
}

/// Draws a plan as text: from left to right, as long as that fits.
fn ascii_of(plan: &Plan, dir: Option<GraphDirectionArg>, columns: Option<u16>) -> Result<String> {
    let columns = columns.map_or(COLUMNS, i32::from);
    let fits = |drawn: &String| drawn.lines().all(|line| layout::columns(line) <= columns);
    let drawn = match dir {
        Some(dir) => layout::ascii(plan, dir.into()),
        None => layout::ascii(plan, Direction::LeftRight)
            .filter(fits)
            .or_else(|| layout::ascii(plan, Direction::TopDown)),
    };
    drawn.ok_or_else(|| anyhow::anyhow!("the flow is too large for a drawing of text: draw it with --svg"))
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
    fn a_drawing_that_does_not_fit_leads_down() {
        let nodes: Vec<String> = (0..40).map(|i| format!(r#"{{"id": "n{i}", "type": "work"}}"#)).collect();
        let edges: Vec<String> =
            (1..40).map(|i| format!(r#"{{"source": "n{}", "target": "n{i}"}}"#, i - 1)).collect();
        let text = format!(r#"{{"nodes": [{}], "edges": [{}]}}"#, nodes.join(","), edges.join(","));
        let plan = compile(&text, Strictness::Strict).plan.unwrap();
        assert!(ascii_of(&plan, None, None).unwrap().contains('▼'));
        assert!(ascii_of(&plan, Some(GraphDirectionArg::Lr), Some(80)).unwrap().contains('▶'));
    }

    #[test]
    fn titles_stand_beside_keys() {
        let titled = r#"{"nodes": [{"id": "start", "type": "start", "name": "开始"}, {"id": "b", "type": "x", "name": "b"}], "edges": []}"#;
        let plan = compile(titled, Strictness::Strict).plan.unwrap();
        assert!(ascii_of(&plan, None, None).unwrap().contains("开始"));
        assert!(dot_of(&root(titled)).contains(r#""start" [label="start\n开始\nstart"];"#));
    }

    #[test]
    fn names_are_quoted_for_graphviz() {
        let text = dot_of(&root(LOOP));
        assert!(text.contains(r#""a" -> "b" [label="go \"on\""];"#), "{text}");
        assert!(text.contains(r#"subgraph "cluster b/inside/""#), "{text}");
    }
}
