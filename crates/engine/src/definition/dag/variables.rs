//! Declared variables.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::definition::reader::{Fields, Reader, a_kind_of, at_index, at_key, shown};
use crate::plan::{Variable, VariableKind};

const KINDS: [(&str, VariableKind); 6] = [
    ("string", VariableKind::String),
    ("number", VariableKind::Number),
    ("boolean", VariableKind::Boolean),
    ("url", VariableKind::Url),
    ("object", VariableKind::Object),
    ("array", VariableKind::Array),
];

/// Reads `variables`, and the `inputVariables` of `start` nodes; only the outermost flow has any.
pub(in crate::definition) fn variables(
    fields: &mut Fields<'_>,
    depth: usize,
    reader: &mut Reader,
) -> DagVariables {
    let path = fields.at("variables");
    let mut declared: Vec<Declaration<'_>> = Vec::new();
    for (name, value) in fields.map("variables", reader).into_iter().flatten() {
        declared.push(Declaration { name, value, path: at_key(&path, name) });
    }
    of_start_nodes(fields, &mut declared, reader);
    if depth > 1
        && let Some(first) = declared.first()
    {
        let reason = "only the outermost flow declares variables; give a subflow params";
        reader.error(first.path.clone(), reason);
        return DagVariables::default();
    }
    let DagVariables { mut variables, mut names } = DagVariables::default();
    for Declaration { name, value, path } in declared {
        reader.check_shared_key(name, &path);
        names.insert(name.to_owned());
        let Some(variable) = variable(value, path.clone(), reader) else { continue };
        match variables.get(name) {
            Some(first) if *first != variable => {
                let reason = format!("the variable `{}` is declared twice, and not alike", shown(name));
                reader.error(path, reason);
            }
            Some(_) => {}
            None => drop(variables.insert(name.to_owned(), variable)),
        }
    }
    DagVariables { variables, names }
}

/// The declared variables.
#[derive(Default)]
pub(in crate::definition) struct DagVariables {
    pub(in crate::definition) variables: BTreeMap<String, Variable>,
    /// The names of all declarations, those with problems included.
    pub(in crate::definition) names: BTreeSet<String>,
}

/// A variable as it is written.
struct Declaration<'v> {
    name: &'v str,
    value: &'v Value,
    path: String,
}

/// Collects the `inputVariables` of `start` nodes, from the node or its configuration: an object by name, or a list of
/// objects with names.
fn of_start_nodes<'v>(fields: &Fields<'v>, declared: &mut Vec<Declaration<'v>>, reader: &mut Reader) {
    let nodes = fields.map.get("nodes").and_then(Value::as_array).into_iter().flatten();
    let starts = nodes.enumerate().filter(|(_, node)| node.get("type").is_some_and(|word| word == "start"));
    for (i, node) in starts {
        let path = at_index(&fields.at("nodes"), i);
        let beside = (node.get("inputVariables"), format!("{path}.inputVariables"));
        let inside = (node.pointer("/config/inputVariables"), format!("{path}.config.inputVariables"));
        for (value, path) in [beside, inside] {
            match value {
                None | Some(Value::Null) => {}
                Some(Value::Object(map)) => declared.extend(map.iter().map(|(name, value)| Declaration {
                    name,
                    value,
                    path: at_key(&path, name),
                })),
                Some(Value::Array(list)) => {
                    for (i, value) in list.iter().enumerate() {
                        let path = at_index(&path, i);
                        match value.get("name").and_then(Value::as_str) {
                            Some(name) => declared.push(Declaration { name, value, path }),
                            None => {
                                reader.error(format!("{path}.name"), "the name of the variable is missing")
                            }
                        }
                    }
                }
                Some(_) => reader.error(path, "must be a list of variables, or an object of them by name"),
            }
        }
    }
}

fn variable(value: &Value, path: String, reader: &mut Reader) -> Option<Variable> {
    let mut fields = Fields::of(value, path, reader)?;
    fields.allow(&["description", "label", "name", "title"]);
    if !fields.map.contains_key("type") {
        reader.error(fields.at("type"), "the type of the variable is missing");
    }
    let kind = fields.word("type", &KINDS, reader);
    let required = fields.flag("required", reader).unwrap_or(false);
    let name = if fields.map.contains_key("default") { "default" } else { "defaultValue" };
    let default = fields.value(name).cloned();
    if let (Some(kind), Some(default)) = (kind, &default)
        && !fits(kind, default)
    {
        let wanted = KINDS.iter().find(|(_, known)| *known == kind).map_or("value", |(word, _)| *word);
        let reason = format!("the default must fit the type {wanted}, but is {}", a_kind_of(default));
        reader.error(fields.at(name), reason);
    }
    fields.allow(&["defaultValue"]);
    fields.finish(reader);
    Some(Variable { kind: kind?, default, required })
}

fn fits(kind: VariableKind, value: &Value) -> bool {
    match kind {
        VariableKind::String | VariableKind::Url => value.is_string(),
        VariableKind::Number => value.is_number(),
        VariableKind::Boolean => value.is_boolean(),
        VariableKind::Object => value.is_object(),
        VariableKind::Array => value.is_array(),
    }
}
