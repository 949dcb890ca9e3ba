//! The console belongs to its server: its types are those of the OpenAPI document, and its files are small.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
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
                .filter(|(key, value)| (has_names || !SILENT.contains(&key.as_str())) && !value.is_number())
                .collect();
            kept.sort_by_key(|(key, _)| key.as_str());
            let shaped = kept
                .into_iter()
                .map(|(key, value)| (key.clone(), shape(value, !has_names && NAMES.contains(&key.as_str()))));
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

/// Bytes of compressed script that the first page loads.
const FIRST_LOAD_MAX: u64 = 130_000;
/// Bytes of all embedded files, without the documents and the viewer of the API.
const EMBEDDED_MAX: u64 = 600_000;

fn built() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ui-dist")
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).len()
}

/// The names of the scripts that a script imports before it runs; those that it loads later are not among them.
fn imports(script: &str) -> impl Iterator<Item = &str> {
    ["from\"./", "import\"./"]
        .into_iter()
        .flat_map(|before| script.split(before).skip(1))
        .filter_map(|rest| rest.split('"').next())
}

/// Adds a script and everything that it imports, with their compressed sizes.
fn add_script(name: &str, found: &mut BTreeMap<String, u64>) {
    if found.contains_key(name) {
        return;
    }
    let path = built().join("assets").join(format!("{name}.gz"));
    found.insert(name.to_owned(), size(&path));
    let mut script = String::new();
    GzDecoder::new(fs::File::open(&path).unwrap()).read_to_string(&mut script).unwrap();
    for import in imports(&script) {
        add_script(import, found);
    }
}

#[test]
fn the_first_page_loads_little_script() {
    let mut found = BTreeMap::new();
    add_script("index.js", &mut found);
    add_script("OverviewPage.js", &mut found);
    let sum: u64 = found.values().sum();
    assert!(found.len() > 2, "the overview imports shared scripts");
    assert!(sum <= FIRST_LOAD_MAX, "the first page loads {sum} bytes of script: {found:?}");
}

#[test]
fn the_embedded_files_are_small() {
    let mut sum = 0;
    let mut directories = vec![built()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if !entry.file_type().unwrap().is_dir() {
                sum += size(&entry.path());
            } else if entry.file_name() != "docs" {
                directories.push(entry.path());
            }
        }
    }
    assert!(sum > 0 && sum <= EMBEDDED_MAX, "the embedded files have {sum} bytes");
}
