//! Plays `tests/cases/**/*.case`: a sentence, a definition, inputs, and the expected results. A new rule of the
//! engine is a new file. `UPDATE=1` rewrites the recorded lines (`>`, `!`, `x`); the `=` lines are written by hand.
//!
//! ```text
//! # One sentence that names the rule.
//! {definition, JSON or YAML}
//! < 0 start {"params": {"x": 1}}     an input at a time
//! <~ 0 start                         the same, when its events are too long to write down
//! > entered a visit=1                an event
//! ! call a fence=1 …                 an effect
//! x why it was refused
//! = status completed                 must hold now
//! = saw entered b                    must be among the events of the last input
//! = dry-run rerun a => a runs, b kept | calls 1-1 | cost 0-0+0
//! ```
//!
//! After every input the journal is replayed and the snapshot read back: both must give the very same state.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    unreachable_pub,
    dead_code,
    reason = "all of this is a test, and other tests share it"
)]

#[path = "support/case.rs"]
mod case;
#[path = "support/shown.rs"]
mod shown;
#[path = "support/world.rs"]
mod world;

use std::path::{Path, PathBuf};

#[test]
fn every_case_plays_as_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    #[expect(clippy::disallowed_methods, reason = "the test is told from outside to record")]
    let update = std::env::var_os("UPDATE").is_some();
    let mut failures = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let name = file.strip_prefix(&root).unwrap().display().to_string();
        let played = std::panic::catch_unwind(|| case::play(&text));
        match played {
            Ok(Ok(now)) if now == text => {}
            Ok(Ok(now)) if update => std::fs::write(file, now).unwrap(),
            Ok(Ok(now)) => failures.push(format!("{name}: recorded lines differ\n{}", diff(&text, &now))),
            Ok(Err(error)) => failures.push(format!("{name}: {error}")),
            Err(panic) => failures.push(format!("{name}: panicked: {:?}", panic.downcast_ref::<String>())),
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), files.len(), failures.join("\n"));
    assert!(files.len() >= 150, "only {} cases: the definitions have more sentences than that", files.len());
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "case") {
            files.push(path);
        }
    }
}

fn diff(before: &str, now: &str) -> String {
    let (before, now): (Vec<_>, Vec<_>) = (before.lines().collect(), now.lines().collect());
    let same = before.iter().zip(&now).take_while(|(a, b)| a == b).count();
    let show = |mark: &str, lines: &[&str]| {
        lines.iter().skip(same).take(6).map(|line| format!("  {mark} {line}\n")).collect::<String>()
    };
    format!("  at line {}\n{}{}", same + 1, show("-", &before), show("+", &now))
}
