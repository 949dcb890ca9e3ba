//! The files of the source tree, as git lists them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Tracked files and new files that are not ignored, by their paths from the root.
pub(crate) fn files() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the files that these tests judge");
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed.lines().filter(|file| root().join(file).is_file()).map(str::to_owned).collect()
}

pub(crate) fn ending_with(ending: &str) -> Vec<String> {
    files().into_iter().filter(|file| file.ends_with(ending)).collect()
}

/// Rust files of the crates, with their texts.
pub(crate) fn sources() -> Vec<(String, String)> {
    let rust = ending_with(".rs").into_iter().filter(|file| file.starts_with("crates/"));
    rust.map(|file| (file.clone(), text(&file).unwrap())).collect()
}

/// Sources of one crate's library or program, without its tests.
pub(crate) fn shipped(name: &str) -> Vec<(String, String)> {
    let prefix = format!("crates/{name}/src/");
    let is_test = |file: &str| file.ends_with("/tests.rs") || file.contains("/tests/");
    sources().into_iter().filter(|(file, _)| file.starts_with(&prefix) && !is_test(file)).collect()
}

/// Directories of the crates.
pub(crate) fn crates() -> Vec<String> {
    let manifests = ending_with("/Cargo.toml");
    let names = manifests.iter().filter_map(|file| file.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"));
    names.map(str::to_owned).collect()
}

/// The text of a file; `None` if it is binary.
pub(crate) fn text(file: &str) -> Option<String> {
    fs::read_to_string(root().join(file)).ok()
}

#[track_caller]
pub(crate) fn none(found: &[String]) {
    assert!(found.is_empty(), "{} findings\n  {}", found.len(), found.join("\n  "));
}
