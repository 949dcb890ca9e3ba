//! Tidiness as a test: rules that reviewers would otherwise repeat. STYLE.md and ARCHITECTURE.md name the rules.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod claims;
mod layers;
mod names;
mod tree;
mod words;

use std::fs;
use std::path::Path;

use tree::{ending_with, files, none, root, text};

/// Lines of a source file: about 400 is usual, more than this hides a second idea.
const LINES_MAX: usize = 600;
/// Documents with a length of their own.
const DOCUMENTS: [(&str, usize); 3] = [("ARCHITECTURE.md", 420), ("STYLE.md", 120), ("README.md", 180)];
/// Crates that would collect code without an owner.
const BUCKETS: [&str; 4] = ["common", "utils", "util", "types"];

#[test]
fn source_files_are_short() {
    let mut found = Vec::new();
    for file in ending_with(".rs") {
        let n = text(&file).unwrap().lines().count();
        if n > LINES_MAX {
            found.push(format!("{file} has {n} lines, {LINES_MAX} at most: split it by idea"));
        }
    }
    none(&found);
}

#[test]
fn scripts_of_redis_are_short() {
    let lines = |file: String| text(&file).map_or(0, |text| text.lines().count());
    let scripts = ending_with(".lua");
    assert!(scripts.iter().all(|file| file.starts_with("crates/queue/src/redis/")), "{scripts:?}");
    let n: usize = scripts.into_iter().map(lines).sum();
    assert!((1..=150).contains(&n), "{n} lines");
}

#[test]
fn documents_are_short() {
    for (file, most) in DOCUMENTS {
        let n = text(file).unwrap().lines().count();
        assert!(n <= most, "{file} has {n} lines, {most} at most");
    }
}

#[test]
fn no_file_is_called_mod() {
    let found: Vec<String> =
        ending_with("/mod.rs").iter().map(|file| format!("{file}: write `foo.rs` beside `foo/`")).collect();
    none(&found);
}

#[test]
fn every_crate_opens_with_a_header() {
    let mut found = Vec::new();
    for file in files() {
        let is_root = file.ends_with("/src/lib.rs") || file.ends_with("/src/main.rs");
        if is_root && !text(&file).unwrap().starts_with("//!") {
            found.push(format!("{file}: begin with a `//!` sentence"));
        }
    }
    none(&found);
}

#[test]
fn no_crate_is_a_collection() {
    let mut found = Vec::new();
    for file in ending_with("Cargo.toml") {
        let dir = Path::new(&file).parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        if BUCKETS.contains(&dir.as_ref()) {
            found.push(format!("{file}: name the crate after what it does"));
        }
    }
    none(&found);
}

#[test]
fn work_left_to_do_has_an_issue() {
    // Put together, so that this line does not find itself.
    let word = ["TO", "DO"].concat();
    let mut found = Vec::new();
    for file in files().iter().filter(|file| !file.ends_with(".md") && *file != "Cargo.lock") {
        let Some(text) = text(file) else { continue };
        for (i, line) in text.lines().enumerate() {
            let Some((_, after)) = line.split_once(&word) else { continue };
            let numbered =
                after.strip_prefix("(#").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            if !numbered {
                found.push(format!("{file}:{}: name the issue: {word}(#12)", i + 1));
            }
        }
    }
    none(&found);
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut found = Vec::new();
    for file in ending_with(".md") {
        let text = text(&file).unwrap();
        let dir = root().join(Path::new(&file).parent().unwrap());
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !path.is_empty() && !dir.join(path).exists() {
                found.push(format!("{file}: {target} does not exist"));
            }
        }
    }
    none(&found);
}

#[test]
fn nothing_names_a_machine_or_a_registry() {
    // Put together, so that this file does not find itself.
    let places = [
        ["/wo", "rk/"],
        ["/ro", "ot/"],
        ["/ho", "me/"],
        ["/Us", "ers/"],
        ["/t", "mp/"],
        ["static.", "crates.io"],
        ["index.", "crates.io"],
    ]
    .map(|parts| parts.concat());
    let mut found = Vec::new();
    // The lockfile names the registry its packages come from; cargo writes it so.
    for file in files().iter().filter(|file| *file != "Cargo.lock") {
        let Some(text) = text(file) else { continue };
        for (i, line) in text.lines().enumerate() {
            // A path only starts where no other path goes on: `docs/work/` is ours.
            let named = places.iter().find(|place| {
                line.match_indices(place.as_str()).any(|(at, _)| {
                    !place.starts_with('/')
                        || !line[..at]
                            .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}'))
                })
            });
            if let Some(place) = named {
                found.push(format!("{file}:{}: `{place}` is of one machine", i + 1));
            }
        }
    }
    none(&found);
}

#[test]
fn scripts_are_executable() {
    use std::os::unix::fs::PermissionsExt;
    for file in ["test", "x", ".ci/run"] {
        let mode = fs::metadata(root().join(file)).unwrap().permissions().mode();
        assert!(mode & 0o111 != 0, "{file} is not executable");
    }
}
