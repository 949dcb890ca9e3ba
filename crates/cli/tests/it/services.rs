//! Services on a real server: their settings, demand against supply, and workers that grow with the work.

use serde_json::{Value, json};

use crate::http::{get, seen, start};
use crate::server::publish;
use crate::shell::{TestShell, text};

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_a_service_are_set_shown_and_cleared() {
    let shell = TestShell::open().await;
    let flags = ["--timeout", "30m", "--calls-max", "8", "--priority", "high", "--until-reported"];
    let set = shell.json(&[&["service", "set", "copy"][..], &flags].concat());
    let found = ["timeout_ms", "calls_max", "priority", "until_reported"].map(|field| set[field].clone());
    assert_eq!(found, [json!(1_800_000), json!(8), json!("high"), json!(true)]);
    let shown = shell.text(&["service", "show", "copy", "-o", "table"]);
    for line in [
        "timeout 30m",
        "8 calls at most",
        "priority high",
        "suspended until reported",
        "busy          0 of 0",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    shell.code(&["service", "set", "copy"], 2);
    shell.code(&["service", "set", "copy", "--clear", "--calls-max", "1"], 2);
    shell.code(&["service", "set", "copy", "--recheck", "5s", "--until-reported"], 2);
    shell.text(&["service", "set", "copy", "--clear"]);
    assert!(text(&shell.code(&["service", "show", "copy"], 1).stderr).contains("unknown_service"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_grows_with_the_work_that_waits() {
    let shell = TestShell::open().await;
    let client = shell.server.client();
    // Each call sleeps until the test is over: only more slots take more of them.
    let each = json!({"service": "sleep", "exec_type": "queue", "params": {"ms": 600_000}});
    let branches: Vec<&Value> = std::iter::repeat_n(&each, 9).collect();
    let node = json!({"kind": "parallel", "parallel_mode": "concurrent", "parallel_execs": branches});
    publish(&client, "naps", json!({"start": "a", "nodes": {"a": node}})).await;
    start(&client, "naps", json!({})).await;
    let waiting = get(&client, "/api/v1/services/sleep").await;
    assert_eq!((&waiting["n_waiting"], &waiting["capacity"]), (&json!(9), &json!(0)), "{waiting}");
    let _worker = shell.worker(&["--pull-only", "--services", "sleep", "--slots", "1..8"]);
    seen("a worker of all its slots", async || {
        let service = get(&client, "/api/v1/services/sleep").await;
        (service["capacity"] == 8).then_some(())
    })
    .await;
    let wrong = text(&shell.code(&["worker", "--slots", "8..1"], 2).stderr);
    assert!(wrong.contains("the least, 8, is above the most, 1"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn titles_of_nodes_are_shown_with_runs_and_logs() {
    let shell = TestShell::open().await;
    let nodes = r#"[{"id": "start", "type": "start", "name": "开始"}, {"id": "shout", "type": "upper", "name": "大写",
        "exec_type": "local_func", "config": {"input": "$var.text"}}]"#;
    let edges = r#"[{"source": "start", "target": "shout"}]"#;
    shell.write("titled.json", &format!("{{\"nodes\": {nodes}, \"edges\": {edges}}}"));
    shell.text(&["flow", "apply", "titled.json"]);
    let run = shell.text(&["run", "start", "titled", "-p", "text=ada", "--wait", "--quiet"]);
    let shown = shell.text(&["run", "show", &run, "-o", "table"]);
    assert!(shown.contains("✓ start 开始") && shown.contains("✓ shout 大写"), "{shown}");
    let logs = shell.text(&["run", "logs", &run, "--node", "shout", "-o", "table"]);
    assert!(logs.contains("shout 大写"), "{logs}");
    assert_eq!(shell.json(&["run", "logs", &run, "--node", "shout"])[0]["title"], "大写");
    let drawn = shell.text(&["flow", "graph", "titled"]);
    assert!(drawn.contains("开始") && drawn.contains("大写"), "{drawn}");
}
