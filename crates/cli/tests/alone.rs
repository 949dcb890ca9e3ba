//! Commands without a server.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn windlass(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A file that is this test's own.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A URL at which no server listens.
fn nowhere() -> String {
    format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap())
}

#[test]
fn settings_come_from_flags_then_environment_then_file() {
    let toml = file("settings.toml", "listen = \"127.0.0.1:1\"\nname = \"filed\"\ndurability = \"fast\"\n");
    let output = windlass(
        &["check-config", "--config", toml.to_str().unwrap(), "--listen", "127.0.0.1:3"],
        &[("WINDLASS_LISTEN", "127.0.0.1:2"), ("SCHEDULER_DB", "old.db"), ("WORKER_OFFLINE_TTL_SEC", "7")],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["listen"], "127.0.0.1:3");
    assert_eq!(shown["store"], "sqlite:old.db");
    assert_eq!(shown["name"], "filed");
    assert_eq!(shown["durability"], "fast");
    assert_eq!(shown["worker_offline_ttl_sec"], 7);
    assert_eq!(shown["allow_scripts"], false);
}

#[test]
fn all_mistakes_of_the_configuration_are_reported_together() {
    let toml = file("slip.toml", "name = \"a\"\nlistne = \"127.0.0.1:1\"\ndrain_sec = -1\n");
    for command in ["serve", "check-config"] {
        let output = windlass(
            &[command, "--config", toml.to_str().unwrap(), "--durability", "safe"],
            &[("WINDLASS_LISTEN", "everywhere")],
        );
        assert_eq!(output.status.code(), Some(4));
        let errors = text(&output.stderr);
        for part in [
            "slip.toml:2: unknown setting `listne` (did you mean `listen`?)",
            "slip.toml:3: drain_sec: `-1` is not a whole number",
            "error: --durability: `safe` is no level of durability: write strict or fast",
            "error: WINDLASS_LISTEN: `everywhere` is no address to listen on",
        ] {
            assert!(errors.contains(part), "{part}: {errors}");
        }
    }
    let missing = windlass(&["serve", "--config", "no-such.toml"], &[]);
    assert_eq!(missing.status.code(), Some(4));
    assert!(text(&missing.stderr).contains("cannot read no-such.toml"));
}

#[test]
fn a_wrong_queue_is_refused_before_the_store_is_opened() {
    for (queue, reason) in
        [("kafka://k", "is no queue"), ("redis://cache?ca=/ca.pem", "is no part of an address")]
    {
        let output = windlass(&["serve", "--queue", queue], &[]);
        assert_eq!(output.status.code(), Some(4));
        assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
    }
}

#[test]
fn a_redis_that_cannot_be_reached_is_said_without_its_password() {
    let words = ["serve", "--listen", "127.0.0.1:0", "--queue", "redis://me:secret@127.0.0.1:1"];
    let output = windlass(&words, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("cannot reach Redis at redis://127.0.0.1:1"), "{said}");
    assert!(said.contains("start it") && !said.contains("secret"), "{said}");
}

#[test]
fn a_database_that_cannot_be_reached_is_said_without_its_password() {
    let address = "postgres://me:secret@127.0.0.1:1/windlass";
    let output = windlass(&["serve", "--listen", "127.0.0.1:0", "--store", address], &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("cannot reach the database at 127.0.0.1:1/windlass"), "{said}");
    assert!(said.contains("start it") && !said.contains("secret"), "{said}");
}

#[test]
fn a_missing_server_is_reported_with_a_remedy() {
    let server = nowhere();
    let output = windlass(&["run", "list", "--server", &server], &[]);
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(said.contains(&server) && said.contains("[unreachable]"), "{said}");
    assert!(said.contains("windlass serve"), "{said}");
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn the_doctor_reports_a_missing_server() {
    let output = windlass(&["doctor", "-o", "json"], &[("SCHEDULER_BASE", &nowhere())]);
    assert_eq!(output.status.code(), Some(3));
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(findings[0]["check"], "reachable");
    assert_eq!(findings[0]["status"], "error");
}

#[test]
fn the_server_is_named_by_one_variable_and_the_names_of_documents_stay_accepted() {
    let (taught, old) = (nowhere(), nowhere());
    for (variables, server) in [
        (vec![("WINDLASS_SERVER", taught.as_str()), ("SCHEDULER_BASE", old.as_str())], &taught),
        (vec![("SCHEDULER_BASE", old.as_str())], &old),
    ] {
        let output = windlass(&["run", "list"], &variables);
        assert!(text(&output.stderr).contains(server.as_str()), "{}", text(&output.stderr));
    }
    let help = text(&windlass(&["run", "list", "--help"], &[]).stdout);
    assert!(help.contains("WINDLASS_SERVER") && !help.contains("SCHEDULER_BASE"), "{help}");
}

#[test]
fn files_are_drawn_without_a_server() {
    let output = windlass(&["flow", "graph", "examples/graph/branching.json"], &[]);
    let drawing = text(&output.stdout);
    assert!(drawing.contains("●────────╮") && drawing.contains("├─adult───"), "{drawing}");
    let output = windlass(&["flow", "graph", "--svg", "--dir", "tb", "examples/graph/branching.json"], &[]);
    assert!(text(&output.stdout).starts_with("<svg ") && text(&output.stdout).contains(">adult</text>"));
    let output = windlass(&["flow", "graph", "--run", "run_1", "examples/graph/branching.json"], &[]);
    assert_eq!(output.status.code(), Some(2));
    let output = windlass(&["flow", "graph", "--dot", "examples/steps/nested.json"], &[]);
    assert!(text(&output.stdout).starts_with("digraph flow {"));
}

#[test]
fn shells_can_complete() {
    for shell in ["bash", "zsh", "fish"] {
        let output = windlass(&["completions", shell], &[]);
        assert!(output.status.success());
        assert!(text(&output.stdout).contains("approvals"), "{shell}");
    }
}

#[test]
fn a_worker_offers_only_what_it_can_do() {
    let output = windlass(&["worker", "--services", "summ"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean `sum`?"), "{}", text(&output.stderr));
}
