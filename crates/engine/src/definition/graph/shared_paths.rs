//! Values of an `input_map` that look like paths of the shared state. They are literals, except in definitions for the
//! first scheduler, where every value without a `$` is a path of the shared state.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::definition::reader::{Reader, at_index, at_key, shown};
use crate::definition::refs;
use crate::plan::{Branches, Node, NodeKind, Prep};
use crate::reference::{Seg, Template, parse_path};

/// Warns of literals that name a key which nodes of the scope write.
pub(super) fn check(nodes: &[Node], path: &str, reader: &mut Reader) {
    let mut written: BTreeSet<&str> = nodes.iter().flat_map(refs::writes).collect();
    let begins_with = reader.begins_with.clone().unwrap_or_default();
    written.extend(begins_with.iter().map(String::as_str));
    for node in nodes {
        let path = at_key(path, &node.key);
        check_prep(&node.prep, &path, &written, reader);
        let NodeKind::Fan(fan) = &node.kind else { continue };
        match &fan.branches {
            Branches::Fixed(branches) => {
                for (i, branch) in branches.iter().enumerate() {
                    let path = at_index(&format!("{path}.parallel_execs"), i);
                    check_prep(&branch.prep, &path, &written, reader);
                }
            }
            Branches::Items { special, .. } => {
                for branch in special.values() {
                    check_prep(&branch.prep, &format!("{path}.foreach_execs"), &written, reader);
                }
            }
            Branches::Services { .. } => {}
        }
    }
}

fn check_prep(prep: &Prep, path: &str, written: &BTreeSet<&str>, reader: &mut Reader) {
    let Prep::Map(map) = prep else { return };
    for (key, template) in map {
        let Template::Literal(Value::String(text)) = template else { continue };
        let first = path_of(text).and_then(|path| path.into_iter().next());
        let Some(Seg::Key(first)) = first else { continue };
        if written.contains(first.as_str()) {
            let place = at_key(&format!("{path}.prep.input_map"), key);
            let reason = format!("`{}` is taken as text, not as a path of shared", shown(text));
            reader.hint_warning(place, reason, Some(format!("write `$shared.{}`", shown(text))));
        }
    }
}

/// The path that a text without `$` spells; sentences are none.
fn path_of(text: &str) -> Option<Vec<Seg>> {
    let is_path = !text.starts_with('$') && !text.contains(char::is_whitespace);
    is_path.then(|| parse_path(text).ok()).flatten()
}

/// The definition of a client of the first scheduler, in which every bare path in an `input_map` is a path of the shared
/// state. Text that is no JSON, or has no such path, stays as it is.
pub fn with_shared_paths(definition: String) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(&definition) else { return definition };
    if rewrite(&mut value) { value.to_string() } else { definition }
}

/// Rewrites the maps of a definition, of flows inside it and of its branches; whether anything was rewritten. JSON readers
/// bound the nesting.
fn rewrite(value: &mut Value) -> bool {
    match value {
        Value::Array(items) => items.iter_mut().fold(false, |any, item| rewrite(item) | any),
        Value::Object(fields) => {
            let mut any = false;
            for (key, field) in fields {
                any |= match (key.as_str(), field) {
                    ("prep", Value::Object(prep)) => prep.get_mut("input_map").is_some_and(rewrite_map),
                    // These hold values of the author, not nodes.
                    ("params" | "choice_cases" | "script", _) => false,
                    (_, field) => rewrite(field),
                };
            }
            any
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn rewrite_map(map: &mut Value) -> bool {
    let Value::Object(map) = map else { return false };
    let mut any = false;
    for value in map.values_mut() {
        let Some(text) = value.as_str().filter(|text| path_of(text).is_some()) else { continue };
        let separator = if text.starts_with('[') { "" } else { "." };
        *value = Value::String(format!("$shared{separator}{text}"));
        any = true;
    }
    any
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bare_paths_are_paths_of_shared_for_clients_of_the_first_scheduler() {
        let map = |map: Value| json!({"start": "a", "nodes": {"a": {"prep": {"input_map": map}}}});
        let rewritten = with_shared_paths(
            map(json!({"a": "total", "b": "order.items[0]", "c": "$params.x", "d": 3, "e": "two words", "f": ""}))
                .to_string(),
        );
        let wanted = json!({"a": "$shared.total", "b": "$shared.order.items[0]", "c": "$params.x", "d": 3, "e": "two words", "f": ""});
        assert_eq!(serde_json::from_str::<Value>(&rewritten).unwrap(), map(wanted));
    }

    #[test]
    fn maps_of_flows_and_branches_inside_are_read_alike_and_params_are_left_alone() {
        let inside = |text: &str| {
            json!({"nodes": {
                "p": {"params": {"prep": {"input_map": {"x": "total"}}}, "parallel_execs": [{"prep": {"input_map": {"x": text}}}]},
                "s": {"subflow": {"nodes": {"y": {"prep": {"input_map": {"x": text}}}}}}}})
        };
        let rewritten = with_shared_paths(inside("total").to_string());
        assert_eq!(serde_json::from_str::<Value>(&rewritten).unwrap(), inside("$shared.total"));
    }

    #[test]
    fn a_definition_without_bare_paths_keeps_its_text() {
        for text in ["{ \"nodes\": {} }", "start: a"] {
            assert_eq!(with_shared_paths(text.to_owned()), text);
        }
    }
}
