//! Puts the examples into the program, so that `windlass dev` has some wherever it is started.

use std::env;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    // Where it is run, not where it was compiled: checkouts may share a target directory.
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../examples");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    // Directories are flat. Files below `jobs` are not flows, and neither are scripts and workers.
    for place in fs::read_dir(&root)? {
        let place = place?.path();
        if place.is_dir() && !place.ends_with("jobs") {
            for file in fs::read_dir(place)? {
                files.push(file?.path());
            }
        }
    }
    files.retain(|file| {
        file.extension().is_some_and(|ending| ["json", "yaml", "yml"].iter().any(|flow| ending == *flow))
    });
    files.sort();
    let mut table = "[\n".to_owned();
    for file in &files {
        let name: PathBuf = file.strip_prefix(&root).map_err(io::Error::other)?.to_owned();
        writeln!(table, "({:?}, include_str!({:?})),", name, file.canonicalize()?)
            .map_err(io::Error::other)?;
    }
    table.push(']');
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(Path::new(&out).join("examples.rs"), table)
}
