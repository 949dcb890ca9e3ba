//! The example scripts end as they promise.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::shell::{KilledOnDrop, TestShell, text};

fn examples(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(of).canonicalize().unwrap()
}

/// The text after this word in the head of a script.
fn header(script: &str, word: &str) -> String {
    let prefix = format!("# {word}: ");
    let line = script.lines().find_map(|line| line.strip_prefix(&prefix));
    line.unwrap_or_else(|| panic!("no `{prefix}` in {script}")).to_owned()
}

/// A program that finds `windlass` and the server of this shell.
fn program(shell: &TestShell, name: &str, argument: &Path) -> Command {
    let binaries = Path::new(env!("CARGO_BIN_EXE_windlass")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(name);
    command
        .arg(argument)
        .current_dir(shell.dir.path())
        .env_clear()
        .env("PATH", path)
        .env("WINDLASS_SERVER", shell.server.url())
        .stdin(Stdio::null());
    command
}

/// Runs a script, which must succeed with the promised last line; returns its output.
fn play(shell: &TestShell, path: &Path, settings: &[(&str, &str)]) -> String {
    let script = std::fs::read_to_string(path).unwrap();
    assert!(header(&script, "needs").starts_with("windlass serve"), "{}", path.display());
    let played = program(shell, "sh", path).envs(settings.iter().copied()).output().unwrap();
    let (out, err) = (text(&played.stdout), text(&played.stderr));
    assert!(played.status.success(), "{}\n{out}\n{err}", path.display());
    assert_eq!(out.lines().last(), Some(header(&script, "expect").as_str()), "{}\n{out}", path.display());
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn every_script_ends_as_it_says() {
    let shell = TestShell::open().await;
    let _worker = shell.worker(&["--demo", "--queues", "default,limits-example"]);
    let mut n_played = 0;
    let scripts = ["jobs", "money"].map(|of| std::fs::read_dir(examples(of)).unwrap());
    for entry in scripts.into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "sh") {
            continue;
        }
        play(&shell, &path, &[]);
        n_played += 1;
    }
    assert!(n_played >= 7, "only {n_played} scripts");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_in_python_works() {
    let shell = TestShell::open().await;
    let mut command = program(&shell, "python3", &examples("jobs").join("worker.py"));
    let mut worker = KilledOnDrop(command.arg("pictures").stdout(Stdio::null()).spawn().unwrap());
    let create = ["job", "create", "thumbnail", "--queue", "pictures", "--wait", "--timeout", "30s"];
    let done = shell.json(&[&create[..], &["--payload", r#"{"file": "cat.png"}"#]].concat());
    assert_eq!(done["latest_attempt"]["result"]["made"], "small-cat.png");
    // An error that is not retryable is not retried.
    shell.code(&create, 1);
    shell.code(&["job", "create", "juggle", "--queue", "pictures", "--wait", "--timeout", "30s"], 1);
    let letters = shell.json(&["dlq", "list", "pictures"]);
    let attempts: Vec<_> =
        letters.as_array().unwrap().iter().map(|letter| letter["attempt"].as_u64()).collect();
    assert_eq!(attempts, [Some(1), Some(1)], "{letters}");
    // It goes when it is told to.
    let workers = shell.text(&["worker", "list", "--quiet"]);
    shell.text(&["worker", "drain", &workers]);
    worker.goes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_digital_human_is_made_by_a_provider_that_takes_its_time_and_fails() {
    let shell = TestShell::open().await;
    let quick = [("PROVIDER_SECONDS", "0.1-0.2"), ("RECHECK_MS", "40")];
    play(&shell, &examples("digital-human").join("run.sh"), &quick);
    let runs = shell.json(&["run", "list", "--flow", "digital-human", "--status", "completed"]);
    let run = runs[0]["id"].as_str().unwrap();
    // The seed of the provider makes it busy once and broken once; a retry repairs each.
    let attempts = shell.text(&["run", "attempts", run, "-o", "jsonl"]);
    for fault in ["busy: come again", "the machine was needed elsewhere"] {
        assert_eq!(attempts.matches(fault).count(), 1, "{attempts}");
    }
    let made = shell.json(&["run", "show", run]);
    assert_eq!(made["result"]["video"], "asset://video_lipsync-1.mp4");
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_filed_faster_side_by_side() {
    let shell = TestShell::open().await;
    play(&shell, &examples("parallel-documents").join("run.sh"), &[("FILE_MS", "600")]);
}
