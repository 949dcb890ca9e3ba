//! Named values of nodes of the dag form: the outputs of an `end`, and the variables that a `variable_set` sets.

use serde_json::Value;

use super::node::template;
use crate::definition::reader::{Fields, Reader, at_index, at_key};
use crate::reference::Template;

/// The named outputs of an `end`, in either spelling and at either place.
pub(super) fn read(
    config: &mut Fields<'_>,
    beside: &mut Fields<'_>,
    reader: &mut Reader,
) -> Vec<(String, Template)> {
    let outputs = named_values("outputs", "source", config, reader);
    let of_config = output_variables(config, reader);
    let of_node = output_variables(beside, reader);
    let given = [
        (outputs, config.at("outputs")),
        (of_config, config.at("outputVariables")),
        (of_node, beside.at("outputVariables")),
    ];
    let mut given = given.into_iter().filter(|(values, _)| !values.is_empty());
    let first = given.next();
    for (_, path) in given {
        reader.error(path, "the outputs are given twice: keep one of the lists");
    }
    first.map(|(values, _)| values).unwrap_or_default()
}

/// Reads `outputVariables`: names of variables, or `{name, source}`; one without a source is the variable of its name.
fn output_variables(fields: &mut Fields<'_>, reader: &mut Reader) -> Vec<(String, Template)> {
    const LIST: &str = "outputVariables";
    if matches!(fields.map.get(LIST), Some(Value::Object(_))) {
        return named_values(LIST, "source", fields, reader);
    }
    let path = fields.at(LIST);
    let mut values = Vec::new();
    for (i, item) in fields.list(LIST, reader).unwrap_or_default().iter().enumerate() {
        let path = at_index(&path, i);
        if let Value::String(name) = item {
            values.extend(variable(name, &path, reader).map(|template| (name.clone(), template)));
            continue;
        }
        let Some(mut item) = Fields::of(item, path, reader) else { continue };
        let name = item.name("name", reader).map(str::to_owned);
        let value =
            item.value("source").or_else(|| item.value("value")).map(|value| (value, item.at("source")));
        let template = match (&name, value) {
            (None, _) => {
                reader.error(item.at("name"), "the name is missing");
                None
            }
            (Some(_), Some((value, path))) => template(value, &path, reader),
            (Some(name), None) => variable(name, &item.path, reader),
        };
        item.allow(&["source", "value", "type", "description", "label", "title", "required"]);
        item.finish(reader);
        values.extend(name.zip(template));
    }
    values
}

/// The variable of this name, as a template.
fn variable(name: &str, path: &str, reader: &mut Reader) -> Option<Template> {
    template(&Value::String(format!("$var.{name}")), path, reader)
}

/// Reads `[{name, <of>}]`, or an object of the same meaning.
pub(super) fn named_values(
    list: &'static str,
    of: &'static str,
    config: &mut Fields<'_>,
    reader: &mut Reader,
) -> Vec<(String, Template)> {
    let path = config.at(list);
    let mut values = Vec::new();
    if let Some(Value::Object(map)) = config.value(list) {
        for (name, value) in map {
            values.extend(
                template(value, &at_key(&path, name), reader).map(|template| (name.clone(), template)),
            );
        }
        return values;
    }
    for (i, item) in config.list(list, reader).unwrap_or_default().iter().enumerate() {
        let Some(mut item) = Fields::of(item, at_index(&path, i), reader) else { continue };
        let name = item.name("name", reader).map(str::to_owned);
        if name.is_none() {
            reader.error(item.at("name"), "the name is missing");
        }
        let value = item.value(of).unwrap_or(&Value::Null);
        let template = template(value, &item.at(of), reader);
        item.allow(&["type", "description"]);
        item.finish(reader);
        values.extend(name.zip(template));
    }
    values
}
