//! The examples that are scripts do what they say.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::desk::{Desk, Ended, text};

fn examples(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(of).canonicalize().unwrap()
}

/// What a script says after this word in its head.
fn said(script: &str, word: &str) -> String {
    let prefix = format!("# {word}: ");
    let line = script.lines().find_map(|line| line.strip_prefix(&prefix));
    line.unwrap_or_else(|| panic!("no `{prefix}` in {script}")).to_owned()
}

/// A program that finds `windlass` and the server of this desk.
fn program(desk: &Desk, name: &str, argument: &Path) -> Command {
    let binaries = Path::new(env!("CARGO_BIN_EXE_windlass")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(name);
    command
        .arg(argument)
        .current_dir(desk.place.path())
        .env_clear()
        .env("PATH", path)
        .env("WINDLASS_SERVER", desk.server.url())
        .stdin(Stdio::null());
    command
}

/// Plays a script, which must end well and with the line that it promises; what it printed.
fn play(desk: &Desk, path: &Path, settings: &[(&str, &str)]) -> String {
    let script = std::fs::read_to_string(path).unwrap();
    assert!(said(&script, "needs").starts_with("windlass serve"), "{}", path.display());
    let played = program(desk, "sh", path).envs(settings.iter().copied()).output().unwrap();
    let (out, err) = (text(&played.stdout), text(&played.stderr));
    assert!(played.status.success(), "{}\n{out}\n{err}", path.display());
    assert_eq!(out.lines().last(), Some(said(&script, "expect").as_str()), "{}\n{out}", path.display());
    out
}

pub(crate) fn has_python() -> bool {
    let asked = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = asked.is_ok_and(|status| status.success());
    if !found {
        eprintln!("there is no python3: what is written in Python is not tried");
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn every_script_ends_as_it_says() {
    let desk = Desk::open().await;
    let _worker = desk.worker(&["--demo", "--queues", "default,limits-example"]);
    let mut n_played = 0;
    let scripts = ["jobs", "money"].map(|of| std::fs::read_dir(examples(of)).unwrap());
    for entry in scripts.into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "sh") {
            continue;
        }
        play(&desk, &path, &[]);
        n_played += 1;
    }
    assert!(n_played >= 7, "only {n_played} scripts");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_in_python_works() {
    if !has_python() {
        return;
    }
    let desk = Desk::open().await;
    let mut command = program(&desk, "python3", &examples("jobs").join("worker.py"));
    let mut worker = Ended(command.arg("pictures").stdout(Stdio::null()).spawn().unwrap());
    let create = ["job", "create", "thumbnail", "--queue", "pictures", "--wait", "--timeout", "30s"];
    let done = desk.json(&[&create[..], &["--payload", r#"{"file": "cat.png"}"#]].concat());
    assert_eq!(done["latest_run"]["result"]["made"], "small-cat.png");
    // What cannot be helped is not tried again, whatever it is.
    desk.code(&create, 1);
    desk.code(&["job", "create", "juggle", "--queue", "pictures", "--wait", "--timeout", "30s"], 1);
    let letters = desk.json(&["dlq", "list", "pictures"]);
    let attempts: Vec<_> =
        letters.as_array().unwrap().iter().map(|letter| letter["attempt"].as_u64()).collect();
    assert_eq!(attempts, [Some(1), Some(1)], "{letters}");
    // It goes when it is told to.
    let workers = desk.text(&["worker", "list", "-q"]);
    desk.text(&["worker", "drain", &workers]);
    worker.goes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_digital_human_is_made_by_a_provider_that_takes_its_time_and_fails() {
    if !has_python() {
        return;
    }
    let desk = Desk::open().await;
    let quick = [("PROVIDER_SECONDS", "0.1-0.2"), ("RECHECK_MS", "40")];
    play(&desk, &examples("digital-human").join("run.sh"), &quick);
    let runs = desk.json(&["run", "list", "--flow", "digital-human", "--status", "completed"]);
    let run = runs[0]["id"].as_str().unwrap();
    // What went wrong on the way is what the provider's seed says: busy once, broken once, each helped by a retry.
    let attempts = desk.text(&["run", "attempts", run, "-o", "jsonl"]);
    for fault in ["busy: come again", "the machine was needed elsewhere"] {
        assert_eq!(attempts.matches(fault).count(), 1, "{attempts}");
    }
    let made = desk.json(&["run", "show", run]);
    assert_eq!(made["result"]["video"], "asset://video_lipsync-1.mp4");
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_filed_faster_side_by_side() {
    if !has_python() {
        return;
    }
    let desk = Desk::open().await;
    play(&desk, &examples("parallel-documents").join("run.sh"), &[("FILE_MS", "600")]);
}
