//! The types of the console are those of the OpenAPI document.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Fields of the document that say nothing about types.
const SILENT: [&str; 11] = [
    "description",
    "summary",
    "title",
    "example",
    "examples",
    "default",
    "pattern",
    "format",
    "tags",
    "operationId",
    "info",
];
/// Objects whose keys are names and not fields.
const NAMES: [&str; 5] = ["properties", "schemas", "paths", "responses", "content"];

/// The part of the document that types are made of, with sorted keys and without numbers. `ui/scripts/types.mjs` does
/// the same.
fn shape(value: &Value, has_names: bool) -> Value {
    match value {
        Value::Array(items) => {
            items.iter().filter(|item| !item.is_number()).map(|item| shape(item, false)).collect()
        }
        Value::Object(fields) => {
            let mut kept: Vec<_> = fields
                .iter()
                .filter(|(key, value)| {
                    (has_names || !SILENT.contains(&key.as_str())) && !value.is_number()
                })
                .collect();
            kept.sort_by_key(|(key, _)| key.as_str());
            let shaped = kept.into_iter().map(|(key, value)| {
                (key.clone(), shape(value, !has_names && NAMES.contains(&key.as_str())))
            });
            Value::Object(shaped.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

#[test]
fn the_types_of_the_console_belong_to_the_document() {
    let text = shape(&windlass_server::openapi(), false).to_string();
    let digest: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let types = include_str!("../../../ui/src/api/openapi.ts");
    assert_eq!(
        types.lines().next(),
        Some(format!("// shape {digest}").as_str()),
        "the API has changed since the types of the console were made: run ./x types, then npm run types in ui/"
    );
}
