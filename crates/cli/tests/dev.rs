//! `windlass dev`, as a person runs it.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn windlass(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(arguments)
        .current_dir(root())
        .env_remove("WINDLASS_OUTPUT")
        .env_remove("WINDLASS_EXAMPLES")
        .env_remove("WINDLASS_LISTEN")
        .output()
        .unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A directory of one example, removed when the test is over.
struct ExampleDir(PathBuf);

impl ExampleDir {
    fn new(name: &str, definition: &str, script: &str) -> ExampleDir {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("flow.json"), definition).unwrap();
        fs::write(dir.join("flow.run.json"), script).unwrap();
        ExampleDir(dir)
    }

    fn play(&self) -> Output {
        windlass(&["dev", "--once", "--examples", self.0.to_str().unwrap()])
    }
}

impl Drop for ExampleDir {
    fn drop(&mut self) {
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}

const SHOUT: &str = r#"{"start": "a", "nodes": {"a": {"service": "upper",
    "prep": {"input_key": "$params.word"}, "post": {"output_key": "out"}}}, "edges": []}"#;

#[test]
fn every_example_ends_as_it_promises() {
    let output = windlass(&["dev", "--once", "-o", "json"]);
    let messages = text(&output.stderr);
    assert!(output.status.success(), "{messages}");
    let reports: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reports = reports.as_array().unwrap();
    assert!(reports.len() >= 40, "only {} examples", reports.len());
    for form in ["graph", "dag", "steps"] {
        assert!(reports.iter().any(|report| report["form"] == form), "no example of the {form} form");
    }
    assert!(messages.contains("listens on http://127.0.0.1:"), "{messages}");
}

#[test]
fn every_example_says_how_it_must_end() {
    for form in ["graph", "dag", "steps"] {
        for entry in fs::read_dir(root().join("examples").join(form)).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().ends_with(".run.json") {
                let script: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
                let expect = script["expect"].as_object().unwrap_or_else(|| panic!("{}", path.display()));
                assert!(expect.contains_key("status") && expect.len() > 1, "{}", path.display());
            }
        }
    }
}

#[test]
fn a_person_gets_a_table() {
    let examples = ExampleDir::new("table", SHOUT, r#"{"params": {"word": "a"}}"#);
    let output = windlass(&["dev", "--once", "-o", "table", "--examples", examples.0.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.starts_with("FLOW"), "{table}");
    assert!(table.contains(r#"flow  graph  completed"#), "{table}");
}

#[test]
fn without_once_it_serves_until_it_is_told_to_stop() {
    let examples = ExampleDir::new("serves", SHOUT, r#"{"params": {"word": "a"}}"#);
    let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["dev", "--examples", "."])
        .current_dir(&examples.0)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    for line in stderr.lines() {
        let line = line.unwrap();
        said.push_str(&line);
        if line.starts_with("serving until Ctrl-C") {
            let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
            assert!(asked.success());
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    assert!(said.contains("all 1 examples ended as expected"), "{said}");
    assert!(examples.0.join(".windlass/windlass.db").exists());
}

#[test]
fn an_example_that_ends_otherwise_fails_the_command() {
    let script = r#"{"params": {"word": "a"}, "expect": {"status": "completed", "shared": {"out": "B"}}}"#;
    let output = ExampleDir::new("otherwise", SHOUT, script).play();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(r#"shared `out` is "A" and should be "B""#));
    let reports: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reports[0]["differences"].as_array().unwrap().len(), 1);
}

#[test]
fn a_failed_run_is_not_taken_for_a_completed_one() {
    let output = ExampleDir::new("fails", SHOUT, r#"{"params": {"word": 1}}"#).play();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("it is failed and should be completed"));
}

#[test]
fn unknown_fields_of_a_run_file_are_errors() {
    let output = ExampleDir::new("unknown", SHOUT, r#"{"parms": {"word": "a"}}"#).play();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("unknown field `parms`"), "{}", text(&output.stderr));
}

#[test]
fn a_run_that_waits_for_a_lost_call_is_reported() {
    let waits = r#"{"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "k"}}}, "edges": []}"#;
    let output = ExampleDir::new("waits", waits, "{}").play();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("has not ended; it waits"), "{}", text(&output.stderr));
}

#[test]
fn acts_that_are_left_over_are_reported() {
    let script = r#"{"params": {"word": "a"}, "script": [{"signal": {"key": "k", "value": 1}}]}"#;
    let output = ExampleDir::new("left-over", SHOUT, script).play();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("the script's next act was refused"), "{}", text(&output.stderr));
}

#[test]
fn answers_are_given_as_scripted() {
    let script = r#"{"params": {"word": "a"}, "answers": {"a": [{"done": "scripted"}]},
        "expect": {"status": "completed", "shared": {"out": "scripted"}}}"#;
    let output = ExampleDir::new("scripted", SHOUT, script).play();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn the_program_brings_its_examples_along() {
    let elsewhere = Path::new(env!("CARGO_TARGET_TMPDIR")).join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["dev", "--once", "-o", "json"])
        .current_dir(&elsewhere)
        .env_remove("WINDLASS_EXAMPLES")
        .env_remove("WINDLASS_LISTEN")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let reports: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(reports.as_array().unwrap().len() >= 40);
}

#[test]
fn dev_listens_where_the_flag_or_the_variable_says() {
    let examples = ExampleDir::new("listens", SHOUT, r#"{"params": {"word": "a"}}"#);
    let dev = |arguments: &[&str], variable: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["dev", "--once", "--examples", "."])
            .args(arguments)
            .current_dir(&examples.0)
            .env("WINDLASS_LISTEN", variable)
            .output()
            .unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (flag, variable) = (port(), port());
    let (code, messages) = dev(&["--listen", &flag], &variable);
    assert!(code == Some(0) && messages.contains(&format!("listens on http://{flag}")), "{messages}");
    let (code, messages) = dev(&[], &variable);
    assert!(code == Some(0) && messages.contains(&format!("listens on http://{variable}")), "{messages}");
    let (code, messages) = dev(&[], "everywhere");
    assert!(code == Some(4) && messages.contains("`everywhere` is no address"), "{messages}");
}

#[test]
fn a_missing_directory_is_named() {
    let output = windlass(&["dev", "--examples", "no/such/place"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no/such/place"));
}
