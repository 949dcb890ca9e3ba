//! Commands against a running server, as a person and as a pipe would use them.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::http::ask;
use crate::server::{PATIENCE, Server};
use crate::shell::{TestShell, text};

const LOCAL: &str = r#"{"start": "a", "nodes": {"a": {"kind": "local", "func": "upper",
    "prep": {"input_key": "$params.word"}, "post": {"output_key": "out"}}}, "edges": []}"#;
const WAITS: &str = "start: review
nodes:
  review: {kind: approval, params: {assignees: [ann, bob]}}
  paid: {kind: wait_event, params: {signal_key: payment}}
  done: {kind: local, func: echo, prep: {input_key: payment}, post: {output_key: out}}
edges:
  - {from: review, action: approved, to: paid}
  - {from: paid, to: done}
";

#[tokio::test(flavor = "multi_thread")]
async fn flows_are_applied_listed_shown_and_compared() {
    let shell = TestShell::open().await;
    shell.write("shout.json", LOCAL);
    assert_eq!(shell.json(&["flow", "apply", "shout.json"])[0]["done"], "created");
    assert_eq!(shell.json(&["flow", "apply", "shout.json"])[0]["done"], "unchanged");
    shell.write("shout.json", &LOCAL.replace("upper", "lower"));
    assert_eq!(shell.json(&["flow", "apply", "--dry-run", "shout.json"])[0]["version"], 2);
    assert_eq!(shell.json(&["flow", "apply", "--note", "quieter", "shout.json"])[0]["done"], "updated");
    assert_eq!(shell.text(&["flow", "list", "--quiet"]), "shout");
    assert!(shell.text(&["flow", "list", "-o", "table"]).starts_with("NAME"));
    assert_eq!(shell.json(&["flow", "show", "shout"])["version"]["version"], 2);
    assert!(shell.text(&["flow", "show", "shout", "--version", "1", "-o", "table"]).contains("upper"));
    assert_eq!(shell.json(&["flow", "versions", "shout"])[0]["note"], "quieter");
    let diff = shell.text(&["flow", "diff", "shout", "1", "2", "-o", "table"]);
    assert!(diff.contains("~ /nodes/a/func \"upper\" → \"lower\""), "{diff}");
    assert!(shell.text(&["flow", "graph", "shout"]).contains("│ a "));
    assert!(shell.text(&["flow", "show", "shout", "-o", "yaml"]).contains("latest_version: 2"));
    shell.write("bad.json", r#"{"start": "x", "nodes": {}, "edges": []}"#);
    let refused = shell.code(&["flow", "apply", "bad.json"], 4);
    assert!(text(&refused.stderr).contains("bad.json:1:"), "{}", text(&refused.stderr));
    let unknown = text(&shell.code(&["flow", "show", "shuot"], 1).stderr);
    assert!(unknown.contains("[unknown_flow]") && unknown.contains("windlass flow list"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_started_watched_and_looked_at() {
    let shell = TestShell::open().await;
    shell.write("shout.json", LOCAL);
    shell.text(&["flow", "apply", "shout.json"]);
    let run = shell.json(&["run", "start", "shout", "-p", "word=rope", "--wait", "--label", "team=a"]);
    assert_eq!(run["shared"]["out"], "ROPE");
    let id = run["id"].as_str().unwrap();
    let drawn = shell.text(&["flow", "graph", "--svg", "shout", "--run", id]);
    assert!(drawn.contains("<title>shout, version 1</title>") && drawn.contains("node ok start"), "{drawn}");
    assert!(shell.text(&["flow", "graph", "--svg", "shout", "--dir", "tb"]).contains("node plain start"));
    let refused = text(&shell.code(&["flow", "graph", "--svg", "shuot", "--run", id], 1).stderr);
    assert!(refused.contains("[unknown_flow]"), "{refused}");
    // A finished run is watched to its end at once, with the same code.
    let lines = shell.text(&["run", "watch", id]);
    assert!(lines.lines().any(|line| line.contains(r#""status":"completed""#)), "{lines}");
    assert!(shell.text(&["run", "watch", id, "-o", "table"]).contains("✓ a"), "{lines}");
    assert_eq!(shell.json(&["run", "wait", id])["status"], "completed");
    assert_eq!(shell.json(&["run", "attempts", id])[0]["node"], "a");
    assert_eq!(shell.json(&["run", "state", id, "--at", "1"])["at"], 1);
    assert_eq!(shell.json(&["run", "events", id])[0]["seq"], 1);
    assert!(shell.text(&["run", "events", id, "--follow", "-o", "table"]).contains("started"));
    assert_eq!(shell.text(&["run", "list", "--label", "team=a", "--quiet"]), id);
    assert!(shell.text(&["run", "list", "--since", "1h", "-o", "table"]).contains("shout v1"));
    assert!(shell.text(&["run", "show", id, "-o", "table"]).contains("out = \"ROPE\""));
    // The beginning of an id does, if no other run has it.
    let beginning = id.strip_prefix("run_").unwrap().split_at(12).0;
    assert_eq!(shell.text(&["run", "show", beginning, "--quiet"]), id);
    let failed = shell.code(&["run", "start", "shout", "-p", "word=1", "--wait"], 1);
    let failed: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!(failed["status"], "failed");
    let unknown = shell.code(&["run", "show", "run_00000000000000000000000000000000"], 1);
    assert!(text(&unknown.stderr).contains("windlass run list"), "{}", text(&unknown.stderr));
    let again = ["run", "start", "shout", "-p", "word=x", "--request-id", "r-1", "--quiet"];
    assert_eq!(shell.text(&again), shell.text(&again));
}

#[tokio::test(flavor = "multi_thread")]
async fn people_decide_signal_cancel_and_retry() {
    let shell = TestShell::open().await;
    shell.write("waits.yaml", WAITS);
    shell.text(&["flow", "apply", "waits.yaml"]);
    let id = shell.text(&["run", "start", "waits", "--quiet"]);
    let late = shell.code(&["run", "wait", &id, "--timeout", "50ms"], 124);
    assert!(text(&late.stderr).contains("windlass run why"), "{}", text(&late.stderr));
    assert_eq!(shell.json(&["run", "why", &id])["reasons"][0]["waits_for"], "approval");
    assert_eq!(shell.text(&["approvals", "list", "--quiet"]), format!("{id}/review"));
    let refused = shell.code(&["approvals", "approve", &id, "--by", "eve"], 1);
    assert!(text(&refused.stderr).contains("[not_assigned]"), "{}", text(&refused.stderr));
    shell.text(&["approvals", "approve", &format!("{id}/review"), "-m", "go ahead"]);
    let again = text(&shell.code(&["approvals", "reject", &id], 1).stderr);
    assert!(again.contains("windlass approvals list"), "{again}");
    shell.text(&["run", "pause", &id]);
    shell.text(&["run", "resume", &id]);
    shell.text(&["run", "signal", &id, "payment", r#"{"receipt": "R-7"}"#]);
    let ended = shell.json(&["run", "wait", &id, "--timeout", "30s"]);
    assert_eq!(ended["shared"]["out"]["receipt"], "R-7");
    let rerun = shell.json(&["run", "rerun", &id, "--from", "done"]);
    assert_eq!(rerun["round"], 2);
    shell.code(&["run", "wait", &id], 0);

    let id = shell.text(&["run", "start", "waits", "--quiet"]);
    shell.text(&["run", "cancel", &id, "--reason", "wrong"]);
    shell.code(&["run", "wait", &id], 5);
    shell.code(&["run", "watch", &id], 5);
    shell.text(&["run", "retry", &id]);
    shell.text(&["approvals", "approve", &id]);
    shell.text(&["run", "continue", &id, "paid", r#"{"receipt": "by hand"}"#]);
    shell.code(&["run", "wait", &id, "--timeout", "30s"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_worker_is_listed_with_the_setting_that_allows_it() {
    let shell = TestShell::open().await;
    let client = shell.server.client();
    let body = json!({"id": "far", "url": "http://10.1.2.3:9001", "services": ["press"], "type": "http"});
    let (status, answer) = ask(&client, "POST", "/api/workers/register", Some(body)).await;
    assert!(status == 400 && answer["error"].as_str().unwrap().contains("--allow-worker-net"), "{answer}");
    let listed = shell.json(&["worker", "list"]);
    assert_eq!((&listed[0]["id"], &listed[0]["status"]), (&json!("far"), &json!("refused")), "{listed}");
    assert!(listed[0]["reason"].as_str().unwrap().contains("--allow-worker-net"), "{listed}");
    assert_eq!(shell.json(&["worker", "list", "--online"]), json!([]));
    let table = shell.text(&["worker", "list", "-o", "table", "--wide"]);
    assert!(table.contains("refused") && table.contains("--allow-worker-net"), "{table}");
    let checks = shell.json(&["doctor"]);
    let check = checks.as_array().unwrap().iter().find(|check| check["check"] == "refused workers");
    let detail = check.unwrap_or_else(|| panic!("{checks}"))["detail"].as_str().unwrap();
    assert!(detail.contains("`far`") && detail.contains("--allow-worker-net"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demonstration_needs_a_worker_and_says_so() {
    let shell = TestShell::open().await;
    let alone = text(&shell.code(&["demo"], 1).stderr);
    assert!(alone.contains("windlass worker"), "{alone}");
    assert_eq!(shell.json(&["doctor"])[3]["check"], "clock");
    let _worker = shell.worker(&["--id", "w-1"]);
    let client = shell.server.client();
    let began = std::time::Instant::now();
    while client.workers().all().await.unwrap().is_empty() {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let endings = shell.json(&["demo"]);
    assert_eq!(endings[0]["task"]["status"], "completed");
    let shared: Value = serde_json::from_str(endings[0]["task"]["shared_json"].as_str().unwrap()).unwrap();
    assert_eq!(shared["result"], "HELLO FROM WINDLASS");
    let shared: Value = serde_json::from_str(endings[1]["task"]["shared_json"].as_str().unwrap()).unwrap();
    assert_eq!(shared["result"], 42);
    assert_eq!(endings[1]["node_runs"].as_array().unwrap().len(), 2);
    let healthy = shell.json(&["doctor"]);
    let workers = healthy.as_array().unwrap().iter().find(|finding| finding["check"] == "workers").unwrap();
    assert_eq!(workers["status"], "ok");
    let examined = shell.json(&["doctor", "--repair"]);
    let state = examined.as_array().unwrap().iter().find(|finding| finding["check"] == "state").unwrap();
    assert_eq!(state["status"], "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_a_run_waits_for_a_server_that_restarts() {
    let mut shell = TestShell::open().await;
    shell.write("waits.yaml", WAITS);
    shell.text(&["flow", "apply", "waits.yaml"]);
    let id = shell.text(&["run", "start", "waits", "--quiet"]);
    let waiting = |verb: &[&str]| {
        let arguments = [&["run"], verb, &[id.as_str()]].concat();
        shell.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut following = waiting(&["events", "--follow"]);
    let mut watching = waiting(&["watch", "--timeout", "60s"]);
    let waiting = waiting(&["wait", "--timeout", "60s"]);
    // The first line says that the server has answered.
    for child in [&mut following, &mut watching] {
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    }
    shell.server.kill();
    assert_eq!(shell.code(&["run", "wait", &id, "--timeout", "50ms"], 3).stdout, b"");
    shell.code(&["run", "show", &id], 3);
    shell.server.spawn();
    shell.server.ready().await;
    shell.text(&["run", "cancel", &id]);
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(5));
    assert_eq!(watching.wait_with_output().unwrap().status.code(), Some(5));
    let followed = following.wait_with_output().unwrap();
    assert_eq!(followed.status.code(), Some(0));
    assert!(text(&followed.stdout).contains("cancel"), "{}", text(&followed.stdout));
}

#[tokio::test(flavor = "multi_thread")]
async fn any_call_can_be_made() {
    let shell = TestShell::open().await;
    assert_eq!(shell.json(&["api", "GET", "/healthz"])["status"], "ok");
    let mut posting = shell
        .command(&["api", "POST", "/api/v1/flows/validate", "-d", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let definition: Value = serde_json::from_str(LOCAL).unwrap();
    let body = serde_json::json!({ "definition": definition }).to_string();
    posting.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let answer: Value = serde_json::from_slice(&posting.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(answer["ok"], true);
    shell.code(&["api", "GET", "/api/v1/runs/nope"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_stop_ends_well() {
    let mut server = Server::start(&["--drain-sec", "5"]).await;
    assert_eq!(server.terminate().code(), Some(0), "{}", server.log());
    let said = server.log();
    let store = server.store().address();
    let kind = store.split(':').next().unwrap();
    assert!(said.contains("durability  strict") && said.contains(&format!("store       {kind}:")), "{said}");
}
