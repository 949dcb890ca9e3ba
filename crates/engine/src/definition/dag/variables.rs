//! Declared variables.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::definition::reader::{Fields, Reader, a_kind_of, at_key};
use crate::plan::{Variable, VariableKind};

const KINDS: [(&str, VariableKind); 6] = [
    ("string", VariableKind::String),
    ("number", VariableKind::Number),
    ("boolean", VariableKind::Boolean),
    ("url", VariableKind::Url),
    ("object", VariableKind::Object),
    ("array", VariableKind::Array),
];

/// Reads `variables`; only the outermost flow has any.
pub(in crate::definition) fn variables(
    fields: &mut Fields<'_>,
    depth: usize,
    reader: &mut Reader,
) -> BTreeMap<String, Variable> {
    let path = fields.at("variables");
    let Some(map) = fields.map("variables", reader) else { return BTreeMap::new() };
    if depth > 1 && !map.is_empty() {
        reader.error(path, "only the outermost flow declares variables; give a subflow params");
        return BTreeMap::new();
    }
    let mut variables = BTreeMap::new();
    for (name, value) in map {
        let path = at_key(&path, name);
        reader.check_shared_key(name, &path);
        if let Some(variable) = variable(value, path, reader) {
            variables.insert(name.clone(), variable);
        }
    }
    variables
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
