//! Names: one type name per crate, and words that say something.

use std::collections::BTreeMap;

use crate::tree::{crates, none, sources, text};

/// Type names that a crate may define more than once: both SQL backends of the store have these parts.
const TWICE: [&str; 3] = ["JobTexts", "RunTexts", "RunWrite"];
/// Endings and names that say nothing about a type.
const EMPTY_WORDS: [&str; 6] = ["Manager", "Helper", "Impl", "Utils", "V2", "Data"];
/// Methods of one struct, over all its `impl` blocks.
const METHODS_MAX: usize = 60;

/// The name that a line defines, if it defines a type.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let rest = ["struct ", "enum ", "trait ", "union "].iter().find_map(|word| line.strip_prefix(word))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| name.starts_with(char::is_uppercase))
}

fn crate_of(file: &str) -> &str {
    file.split('/').nth(1).unwrap_or_default()
}

#[test]
fn a_type_name_is_unique_in_its_crate() {
    let mut places: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (file, text) in sources() {
        for (i, line) in text.lines().enumerate() {
            if let Some(name) = defined(line) {
                let key = (crate_of(&file).to_owned(), name.to_owned());
                places.entry(key).or_default().push(format!("{file}:{}", i + 1));
            }
        }
    }
    assert!(TWICE.len() <= 30, "at most 30 names may be defined twice");
    let again = places.iter().filter(|((_, name), at)| at.len() > 1 && !TWICE.contains(&name.as_str()));
    let found: Vec<String> = again
        .map(|((krate, name), at)| format!("{krate}: `{name}` at {}: qualify it by its noun", at.join(", ")))
        .collect();
    none(&found);
}

#[test]
fn names_say_something() {
    let mut found = Vec::new();
    for (file, text) in sources() {
        for (i, line) in text.lines().enumerate() {
            if let Some(name) = defined(line)
                && EMPTY_WORDS.iter().any(|word| name.ends_with(word))
            {
                found.push(format!("{file}:{}: `{name}` says nothing: name what it holds", i + 1));
            }
            if line.contains(concat!("fn ", "get_")) {
                found.push(format!("{file}:{}: leave `get_` out", i + 1));
            }
        }
    }
    none(&found);
}

/// Inherent methods by struct: functions one level inside `impl Type`.
fn methods(text: &str) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    let mut owner: Option<String> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("impl") {
            let head = rest.split('{').next().unwrap_or_default();
            let name =
                head.rsplit(['>', ' ']).find(|word| !word.is_empty() && word.starts_with(char::is_uppercase));
            owner = name
                .filter(|_| !head.contains(" for "))
                .map(|name| name.split('<').next().unwrap().to_owned());
        } else if line.starts_with('}') {
            owner = None;
        } else if let Some(owner) = &owner {
            let is_method = line.starts_with("    ") && !line.starts_with("     ") && line.contains("fn ");
            if is_method && !line.trim_start().starts_with("//") {
                *counted.entry(owner.clone()).or_default() += 1;
            }
        }
    }
    counted
}

#[test]
fn no_struct_does_everything() {
    let mut totals: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (file, text) in sources() {
        for (owner, n) in methods(&text) {
            *totals.entry((crate_of(&file).to_owned(), owner)).or_default() += n;
        }
    }
    let large = totals.iter().filter(|(_, n)| **n > METHODS_MAX);
    let found: Vec<String> =
        large.map(|((krate, name), n)| format!("{krate}::{name} has {n} methods: split it")).collect();
    none(&found);
}

#[test]
fn messages_of_errors_are_lowercase_and_have_no_full_stop() {
    let mut found = Vec::new();
    for (file, text) in sources() {
        for (i, line) in text.lines().enumerate() {
            let Some(message) = line.trim_start().strip_prefix("#[error(\"") else { continue };
            let Some(message) = message.strip_suffix("\")]") else { continue };
            if message.starts_with(|c: char| c.is_uppercase()) || message.ends_with('.') {
                found.push(format!("{file}:{}: `{message}`", i + 1));
            }
        }
    }
    none(&found);
}

#[test]
fn every_crate_is_in_the_code_map() {
    let map = text("ARCHITECTURE.md").unwrap();
    let missing = crates().into_iter().filter(|name| !map.contains(&format!("`crates/{name}`")));
    let found: Vec<String> =
        missing.map(|name| format!("ARCHITECTURE.md does not describe `crates/{name}`")).collect();
    none(&found);
}

#[test]
fn the_checks_of_names_find_violations() {
    assert_eq!(defined("pub(crate) struct Envelope {"), Some("Envelope"));
    assert_eq!(defined("    enum Phase<'a> {"), Some("Phase"));
    assert_eq!(defined("// struct Old"), None);
    let counted = methods(
        "impl<T> Queue<T> {\n    fn a() {}\n    pub fn b() {}\n}\nimpl Drop for Queue {\n    fn drop() {}\n}\n",
    );
    assert_eq!(counted.get("Queue"), Some(&2), "{counted:?}");
}
