//! Tidiness as a test: what reviews would otherwise repeat.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of a source file from which it should be split.
const LINES: usize = 400;
/// Lines no file may have, whatever its reason.
const LINES_HARD: usize = 800;
/// Files that may be longer than [`LINES`], each with its reason.
const LONG: [(&str, &str); 0] = [];
/// Documents with a length of their own.
const DOCUMENTS: [(&str, usize); 2] = [("ARCHITECTURE.md", 300), ("STYLE.md", 120)];
/// Crates that would collect whatever has no place.
const BUCKETS: [&str; 4] = ["common", "utils", "util", "types"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Tracked files and new ones that are not ignored, by their paths from the root. Without git there are none to
/// judge: a source archive was tidy when it was made.
fn files() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    if !root().join(".git").exists() {
        return Vec::new();
    }
    let listed = listed.unwrap();
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed.lines().filter(|file| root().join(file).is_file()).map(str::to_owned).collect()
}

fn ending_with(ending: &str) -> Vec<String> {
    files().into_iter().filter(|file| file.ends_with(ending)).collect()
}

/// The text of a file; `None` if it is none.
fn text(file: &str) -> Option<String> {
    fs::read_to_string(root().join(file)).ok()
}

#[track_caller]
fn none(found: &[String]) {
    assert!(found.is_empty(), "\n  {}", found.join("\n  "));
}

#[test]
fn source_files_are_short() {
    let mut found = Vec::new();
    for file in ending_with(".rs") {
        let n = text(&file).unwrap().lines().count();
        let excused = LONG.iter().any(|(long, _)| *long == file);
        if n > LINES_HARD || n > LINES && !excused {
            found.push(format!("{file} has {n} lines: split it by noun at {LINES}"));
        }
        if excused && n <= LINES {
            found.push(format!("{file} has {n} lines: it needs no excuse any more"));
        }
    }
    none(&found);
}

#[test]
fn documents_are_short() {
    for (file, most) in DOCUMENTS {
        let n = text(file).unwrap().lines().count();
        assert!(n <= most, "{file} has {n} lines, {most} at most");
    }
}

#[test]
fn modules_are_named_after_what_they_hold() {
    let found: Vec<String> =
        ending_with("/mod.rs").iter().map(|file| format!("{file}: write `foo.rs` beside `foo/`")).collect();
    none(&found);
}

#[test]
fn every_crate_opens_with_what_it_is() {
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
fn no_crate_collects_what_has_no_place() {
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
fn what_is_to_be_done_has_an_issue() {
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
fn the_gates_can_be_run() {
    use std::os::unix::fs::PermissionsExt;
    for file in ["test", ".ci/run"] {
        let mode = fs::metadata(root().join(file)).unwrap().permissions().mode();
        assert!(mode & 0o111 != 0, "{file} is not executable");
    }
}
