//! Lists the built console and the rendered documents for embedding: every file below `ui-dist`, compressed.

use std::env;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    // The directory at run time, not at compile time: checkouts may share a target directory.
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("ui-dist");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    if root.is_dir() {
        collect(&root, &mut files)?;
    }
    files.sort();
    let mut table = "&[\n".to_owned();
    for file in &files {
        let path = file.strip_prefix(&root).map_err(io::Error::other)?;
        let name = path.to_string_lossy();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        writeln!(table, "({name:?}, include_bytes!({:?}).as_slice()),", file.canonicalize()?)
            .map_err(io::Error::other)?;
    }
    table.push(']');
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(Path::new(&out).join("ui_files.rs"), table)
}

/// All compressed files below a directory.
fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "gz") {
            files.push(path);
        }
    }
    Ok(())
}
