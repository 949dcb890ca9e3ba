//! The steps form: steps in a row, with parallel and conditional branches and loops between them.
//!
//! First the whole tree is read (`tree`), because ids are unique in all of it and may be named before they come.
//! Then every scope, the outermost or a loop's body, is expanded to tasks (`expansion`), and every task becomes a
//! node (`node`).

mod expansion;
mod node;
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::reader::{Fields, Reader, shown};
use super::{Strictness, join, payer, refs, source};
use crate::plan::{Edge, Form, Node, OnFailure, Priority, Routing, Scope, When};
use crate::problem::Problem;
use expansion::{Expanded, Task};
use tree::{Step, Tree};

/// A step as it runs, with the tasks that must be settled before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExpandedTask {
    pub id: String,
    /// The positional id: `{parallel}_b{branch}_s{step}` inside branches, the step's own id elsewhere. In the body of a
    /// loop it ends with `_i{turn}`, and runs have the number of the turn in place of `{turn}`.
    pub task_id: String,
    pub operator: String,
    /// The title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(rename = "dependOn")]
    pub depend_on: Vec<String>,
    /// The body of a loop. Its tasks exist once in each turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<ExpandedTask>,
}

/// Tasks that the steps of a definition expand to.
#[derive(Debug, Clone, Serialize)]
pub struct Expansion {
    /// Empty if a problem is an error.
    pub tasks: Vec<ExpandedTask>,
    pub problems: Vec<Problem>,
}

/// Expands a definition of the steps form to its tasks, without making a plan of it.
pub fn expand(definition: &Value, strictness: Strictness) -> Expansion {
    if let Err(problem) = source::weigh(definition) {
        return Expansion { tasks: Vec::new(), problems: vec![problem] };
    }
    let mut reader = Reader::new(strictness);
    let mut tasks = Vec::new();
    if let Some(mut fields) = Fields::of(definition, "$".to_owned(), &mut reader) {
        fields.word("form", &[("steps", Form::Steps)], &mut reader);
        for name in ["title", "name", "description"] {
            fields.text(name, &mut reader);
        }
        payer::read(&mut fields, 1, &mut reader);
        priority(&mut fields, 1, &mut reader);
        stopped(&mut fields, 1, &mut reader);
        tasks = read(&mut fields, 1, &mut reader).map(|(_, tasks)| tasks).unwrap_or_default();
        fields.finish(&mut reader);
    }
    if reader.problems.has_errors() {
        tasks.clear();
    }
    Expansion { tasks, problems: reader.problems.into_list() }
}

const PRIORITIES: [(&str, Priority); 5] = [
    ("highest", Priority::Highest),
    ("high", Priority::High),
    ("medium", Priority::Medium),
    ("low", Priority::Low),
    ("lowest", Priority::Lowest),
];

pub(super) fn priority(fields: &mut Fields<'_>, depth: usize, reader: &mut Reader) -> Priority {
    let priority = fields.word("priority", &PRIORITIES, reader);
    if depth > 1 && priority.is_some() {
        reader.warning(fields.at("priority"), "has no effect inside another flow");
    }
    priority.unwrap_or_default()
}

pub(super) fn stopped(fields: &mut Fields<'_>, depth: usize, reader: &mut Reader) -> bool {
    let stopped = fields.word("status", &[("normal", false), ("stopped", true)], reader).unwrap_or(false);
    if depth > 1 && stopped {
        reader.warning(fields.at("status"), "has no effect inside another flow");
    }
    stopped
}

/// Reads `steps` of one flow.
pub(super) fn scope(fields: &mut Fields<'_>, depth: usize, reader: &mut Reader) -> Option<Scope> {
    read(fields, depth, reader).map(|(scope, _)| scope)
}

fn read(fields: &mut Fields<'_>, depth: usize, reader: &mut Reader) -> Option<(Scope, Vec<ExpandedTask>)> {
    let path = fields.at("steps");
    let Some(list) = fields.list("steps", reader) else {
        if fields.value("steps").is_none() {
            reader.error(path, "the steps are missing");
        }
        return None;
    };
    if list.is_empty() {
        reader.error(path, "a flow needs at least one step");
        return None;
    }
    let mut tree = Tree::default();
    let steps = tree::read(list, &path, depth, &mut tree, reader)?;
    Some(build(&steps, &fields.path, NodeDepth { scopes: depth, around: StepsAround::Flow }, &tree, reader))
}

/// The surroundings of a row of steps.
#[derive(Clone, Copy)]
enum StepsAround {
    /// It is a flow, with a shared state of its own.
    Flow,
    /// It is the body of a loop; so many loops are around it.
    Loops(usize),
}

impl StepsAround {
    fn n_loops(self) -> usize {
        match self {
            StepsAround::Flow => 0,
            StepsAround::Loops(n) => n,
        }
    }
}

/// Builds the scope of a row of steps: the outermost one or a loop's body. `flow` is the place of the flow or the loop.
fn build(
    steps: &[Step<'_>],
    flow: &str,
    depth: NodeDepth,
    tree: &Tree,
    reader: &mut Reader,
) -> (Scope, Vec<ExpandedTask>) {
    let Expanded { tasks, conditions, mut groups } =
        expansion::expand(steps, depth.around.n_loops(), tree, reader);
    groups.iter_mut().for_each(|group| group.place = after(flow, &group.place));
    reader.scopes.push(tasks.iter().map(|task| task.step.id.clone()).collect::<BTreeSet<_>>());
    let mut nodes: Vec<Node> = Vec::with_capacity(tasks.len());
    let mut within = Vec::new();
    let mut expanded_tasks = Vec::with_capacity(tasks.len());
    for (ix, task) in tasks.iter().enumerate() {
        let from = reader.outward.len();
        let mut body = Vec::new();
        nodes.push(node::read(task, flow, depth, tree, &mut body, reader));
        expanded_tasks.push(ExpandedTask { steps: body, ..expanded(task, depth.around, &tasks) });
        within.extend(refs::take_within(ix, from, reader));
    }
    let paths: Vec<String> = tasks.iter().map(|task| task.step.path.clone()).collect();
    for (ix, task) in tasks.iter().enumerate() {
        for need in &task.needs {
            let when = match need.when {
                Some(condition) => When::If(conditions[condition].clone()),
                None => When::Always,
            };
            nodes[need.task].out.push(Edge { to: Some(ix), when });
        }
        refs::check_nodes(&nodes[ix], &paths[ix], reader);
    }
    for (node, path) in nodes.iter().zip(&paths) {
        for edge in &node.out {
            if let When::If(condition) = &edge.when {
                refs::check_known(&condition.refs(), path, reader);
            }
        }
    }
    reader.scopes.pop();
    join::check(&mut nodes, &paths, &within, join::EarlyRead::Warned, reader);
    let index: BTreeMap<_, _> = nodes.iter().enumerate().map(|(ix, node)| (node.key.clone(), ix)).collect();
    let owns_shared = matches!(depth.around, StepsAround::Flow);
    let routing = Routing::Join { on_failure: OnFailure::Drain };
    (Scope { routing, owns_shared, nodes, index, groups }, expanded_tasks)
}

/// The rest of a place after that of the flow around it.
fn after(flow: &str, place: &str) -> String {
    place.strip_prefix(flow).unwrap_or(place).to_owned()
}

/// How deep a node stands.
#[derive(Clone, Copy)]
struct NodeDepth {
    scopes: usize,
    around: StepsAround,
}

fn expanded(task: &Task<'_, '_>, around: StepsAround, tasks: &[Task<'_, '_>]) -> ExpandedTask {
    let mut depend_on: Vec<String> = Vec::with_capacity(task.needs.len());
    let mut seen = BTreeSet::new();
    for need in &task.needs {
        if seen.insert(need.task) {
            depend_on.push(tasks[need.task].step.id.clone());
        }
    }
    ExpandedTask {
        id: task.step.id.clone(),
        task_id: format!("{}{}", task.task_id, "_i{turn}".repeat(around.n_loops())),
        operator: shown(task.step.operator),
        title: task.step.title.map(str::to_owned),
        depend_on,
        steps: Vec::new(),
    }
}
