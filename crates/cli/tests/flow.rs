//! `windlass flow` on files, and rules for all commands.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn windlass(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(arguments)
        .current_dir(root)
        .env_remove("WINDLASS_OUTPUT")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn definition(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const SLIP: &str =
    r#"{"start": "a", "nodes": {"a": {"service": "upper"}}, "edges": [{"from": "a", "to": "aa"}]}"#;

#[test]
fn a_sound_definition_prints_nothing_to_stdout() {
    let output = windlass(&["flow", "validate", "examples/graph/branching.json"]);
    assert!(output.status.success());
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("0 errors"));
}

#[test]
fn problems_name_file_place_severity_and_hint() {
    let file = definition("slip.json", SLIP);
    let output = windlass(&["flow", "validate", &file]);
    assert_eq!(output.status.code(), Some(4));
    let expected = format!("{file}:1:84: error: $.edges[0].to: unknown node `aa` (did you mean `a`?)\n");
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn the_json_of_several_files_is_one_array() {
    let file = definition("slip-too.json", SLIP);
    let output = windlass(&["flow", "validate", "-o", "json", "examples/steps/loop.yaml", &file]);
    assert_eq!(output.status.code(), Some(4));
    let reports: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reports[0]["form"], "steps");
    assert_eq!(reports[0]["problems"], json!([]));
    assert_eq!(reports[1]["problems"][0]["severity"], "error");
    assert_eq!(reports[1]["problems"][0]["line"], 1);
    assert_eq!(reports[1]["nodes"], Value::Null);
}

#[test]
fn unknown_fields_are_warnings_when_asked() {
    let file = definition(
        "extra.json",
        r#"{"start": "a", "nodes": {"a": {"service": "s", "color": 1}}, "edges": []}"#,
    );
    assert_eq!(windlass(&["flow", "validate", &file]).status.code(), Some(4));
    let output = windlass(&["flow", "validate", "--lenient", &file]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("warning"));
}

#[test]
fn a_file_that_cannot_be_read_does_not_hide_the_others() {
    let file = definition("slip-three.json", SLIP);
    let output = windlass(&["flow", "validate", "no-such-file.json", &file]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("cannot open no-such-file.json"));
    assert!(text(&output.stdout).contains("unknown node"));
    assert_eq!(windlass(&["flow", "validate", "no-such-file.json"]).status.code(), Some(1));
}

#[test]
fn steps_expand_to_tasks() {
    let output = windlass(&["flow", "expand", "examples/steps/parallel-documents.json"]);
    assert!(output.status.success());
    let tasks: Value = serde_json::from_slice(&output.stdout).unwrap();
    let last = &tasks["tasks"][5];
    let found = ["id", "task_id", "operator", "dependOn"].map(|field| last[field].clone());
    assert_eq!(found, [json!("4"), json!("4"), json!("@files/merge"), json!(["1-1", "2-1", "3-2"])]);
}

#[test]
fn titles_and_bodies_of_loops_are_shown() {
    let file = definition(
        "loop.json",
        r#"{"steps": [{"id": "each", "title": "每个", "operator": "@control/flow/loop", "parameters": {"limit": 2},
            "steps": [{"id": "one", "title": "复制", "operator": "copy"}]}]}"#,
    );
    let output = windlass(&["flow", "expand", &file]);
    let tasks: Value = serde_json::from_slice(&output.stdout).unwrap();
    let body =
        json!([{"id": "one", "task_id": "one_i{turn}", "operator": "copy", "title": "复制", "dependOn": []}]);
    assert_eq!((&tasks["tasks"][0]["title"], &tasks["tasks"][0]["steps"]), (&json!("每个"), &body));
    let drawn = text(&windlass(&["flow", "graph", &file]).stdout);
    assert!(drawn.contains("每个") && drawn.contains("复制"), "{drawn}");
}

#[test]
fn only_steps_expand() {
    let output = windlass(&["flow", "expand", "examples/graph/branching.json"]);
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("only definitions of the steps form"));
}

#[test]
fn unknown_flags_are_errors() {
    let output = windlass(&["dev", "--onec"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--once"));
}

#[test]
fn groups_of_commands_show_an_example_too() {
    for command in [&["--help"][..], &["flow", "--help"]] {
        let help = text(&windlass(command).stdout);
        assert!(help.contains("  windlass flow validate "), "{command:?}: {help}");
    }
}

#[test]
fn every_command_shows_an_example_and_its_exit_codes() {
    let of = |group: &'static str, names: &'static str| names.split(' ').map(move |name| vec![group, name]);
    let single =
        "serve check-config dev demo worker doctor api completions".split(' ').map(|name| vec![name]);
    let run = "start list show attempts watch state events signal cancel pause resume step rerun retry continue \
               wait why";
    let commands = single
        .chain(of("flow", "apply validate list show versions diff expand graph"))
        .chain(of("run", run))
        .chain(of("approvals", "list approve reject"));
    for mut command in commands {
        command.push("--help");
        let help = text(&windlass(&command).stdout);
        assert!(help.contains("  windlass ") && help.contains("Exit codes:"), "{command:?}: {help}");
    }
}
