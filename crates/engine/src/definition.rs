//! Definitions: three forms, read as JSON or YAML, checked completely, and compiled to one plan.
//!
//! `source` makes text a value; `reader` takes values apart and collects problems; `graph`, `dag` and `steps` each
//! read one form; `refs` and `join` hold the checks that all forms share. No check stops at the first problem, and
//! nothing recurses deeper than [`crate::limits::DEPTH`] scopes.

mod dag;
mod graph;
mod join;
mod payer;
mod reader;
mod refs;
mod source;
pub mod source_map;
mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::plan::{Form, Payer, Plan, Priority, Scope, Variable};
use crate::problem::Problem;
use reader::{Fields, Reader, a_kind_of};

pub use graph::shared_paths::with_shared_paths;
pub(crate) use reader::{at_index, at_key};
pub(crate) use refs::of_node;
pub use steps::{ExpandedTask, Expansion, expand};

/// Whether unknown fields are errors or warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// They are errors: the native API.
    #[default]
    Strict,
    /// They are warnings: the surfaces that old clients speak to.
    Lenient,
}

/// The result of compiling a definition.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// Absent exactly when a problem is an error.
    pub plan: Option<Arc<Plan>>,
    /// All problems, sorted by their place in the definition.
    pub problems: Vec<Problem>,
    pub form: Option<Form>,
    /// The definition as a value; null if it could not be read as one.
    pub definition: Value,
}

/// Compiles the text of a definition, JSON or YAML.
pub fn compile(text: &str, strictness: Strictness) -> Compiled {
    match source::parse(text) {
        Ok(value) => compile_owned(value, strictness),
        Err(problem) => refused(problem),
    }
}

/// Compiles a definition that is a value already.
pub fn compile_value(value: Value, strictness: Strictness) -> Compiled {
    match source::weigh(&value) {
        Ok(()) => compile_owned(value, strictness),
        Err(problem) => refused(problem),
    }
}

/// The bytes that compiling a definition's text may take: its values, and a plan that repeats them. Text whose values
/// take more than half of that is refused.
pub fn compile_bytes(text: &str) -> usize {
    source::tree_bytes(text).saturating_mul(2)
}

/// The bytes that the plan of a text of this length may take, as an upper estimate for a text without aliases.
pub fn plan_bytes(text_bytes: usize) -> usize {
    source::dense_bytes(text_bytes)
}

fn refused(problem: Problem) -> Compiled {
    Compiled { plan: None, problems: vec![problem], form: None, definition: Value::Null }
}

fn compile_owned(definition: Value, strictness: Strictness) -> Compiled {
    let mut reader = Reader::new(strictness);
    let flow = Flow::read(&definition, "$", 1, NodeDoers::new(), &mut reader);
    let form = flow.as_ref().map(|flow| flow.form);
    let plan = match flow {
        Some(Flow { form, title, root: Some(root), variables, priority, stopped, payer })
            if !reader.problems.has_errors() =>
        {
            let n_nodes = reader.n_nodes;
            Some(Arc::new(Plan { form, title, root, variables, priority, stopped, payer, n_nodes }))
        }
        Some(_) | None => None,
    };
    Compiled { plan, problems: reader.problems.into_list(), form, definition }
}

/// Fields that say who works, by the key of the node that they are given to.
type NodeDoers = BTreeMap<String, graph::calls::Doer>;

/// A definition or a flow inside one.
struct Flow {
    form: Form,
    title: Option<String>,
    root: Option<Scope>,
    variables: BTreeMap<String, Variable>,
    priority: Priority,
    stopped: bool,
    payer: Payer,
}

impl Flow {
    /// Reads a flow of any form. `depth` counts scopes, the outermost being 1.
    /// `doers`: fields that the node around the flow gives to nodes of it.
    fn read(value: &Value, path: &str, depth: usize, doers: NodeDoers, reader: &mut Reader) -> Option<Flow> {
        if !reader.admit_depth(depth, path) {
            return None;
        }
        let mut fields = Fields::of(value, path.to_owned(), reader)?;
        let form = form_of(&mut fields, reader)?;
        let title = fields.text("title", reader).or_else(|| fields.text("name", reader));
        let mut flow = Flow {
            form,
            title: title.map(str::to_owned),
            root: None,
            variables: BTreeMap::new(),
            priority: Priority::default(),
            stopped: false,
            payer: payer::read(&mut fields, depth, reader),
        };
        fields.text("description", reader);
        match form {
            Form::Graph => flow.root = graph::scope(&mut fields, depth, doers, reader),
            Form::Dag | Form::Steps if !doers.is_empty() => {
                for doer in doers.values() {
                    doer.warn_of_idle("has no effect: the subflow is not of the graph form", reader);
                }
                return Flow::read(value, path, depth, NodeDoers::new(), reader);
            }
            Form::Dag => {
                let declared = dag::variables(&mut fields, depth, reader);
                flow.root = dag::scope(&mut fields, depth, declared.names, reader);
                flow.variables = declared.variables;
            }
            Form::Steps => {
                flow.priority = steps::priority(&mut fields, depth, reader);
                flow.stopped = steps::stopped(&mut fields, depth, reader);
                flow.root = steps::scope(&mut fields, depth, reader);
            }
        }
        fields.finish(reader);
        Some(flow)
    }
}

const FORMS: [(&str, Form); 3] = [("graph", Form::Graph), ("dag", Form::Dag), ("steps", Form::Steps)];

fn form_of(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<Form> {
    if fields.value("form").is_some_and(|form| form != "") {
        return fields.word("form", &FORMS, reader);
    }
    let found = (fields.map.get("nodes"), fields.map.get("steps"));
    match found {
        (Some(Value::Object(_)), _) => Some(Form::Graph),
        (Some(Value::Array(_)), _) => Some(Form::Dag),
        (_, Some(Value::Array(_))) => Some(Form::Steps),
        (nodes, steps) => {
            let reason = match (nodes, steps) {
                (Some(nodes), _) => format!("`nodes` is {}", a_kind_of(nodes)),
                (None, Some(steps)) => format!("`steps` is {}", a_kind_of(steps)),
                (None, None) => "there are neither `nodes` nor `steps`".to_owned(),
            };
            reader.hint_error(
                fields.path.clone(),
                format!("this is no definition: {reason}"),
                "give `start` and an object `nodes` (graph), arrays `nodes` and `edges` (dag) or an array `steps` (steps)",
            );
            None
        }
    }
}

#[cfg(test)]
mod tests;
