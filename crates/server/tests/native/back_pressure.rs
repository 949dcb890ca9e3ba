//! Bounds on inputs that wait and on open runs: requests beyond them are refused, those that stop work never are.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_conformance::backend::fresh;
use windlass_runtime::Settings;
use windlass_server::Options;

use crate::test_server::{TestServer, upper, waiting};

#[tokio::test]
async fn cancel_pause_and_health_are_answered_while_inputs_are_full() {
    let store = fresh().await;
    let before = TestServer::on(store.clone(), Settings::default(), Options::default()).await;
    before.publish("wait", waiting()).await;
    let mut runs = Vec::new();
    for _ in 0..2 {
        let run = before.start("wait", json!({})).await;
        before.until(&run, |shown| shown["status"] == "waiting").await;
        runs.push(run);
    }
    before.runtime.shut_down(Duration::from_secs(30)).await;
    // With room for no input, the next one finds as many as may wait.
    let settings = Settings { inputs_max: 0, ..Settings::default() };
    let full = TestServer::on(store, settings, Options::default()).await;
    let at = |run: &str, verb: &str| format!("/api/v1/runs/{run}/{verb}");
    let signal = json!({"key": "payment", "value": 1});
    for (path, body) in [
        ("/api/v1/flows/wait/runs".to_owned(), json!({})),
        (at(&runs[0], "signal"), signal.clone()),
        (at(&runs[0], "retry"), json!({})),
    ] {
        let refused = full.post(&path, body).await;
        refused.refused(429, "busy");
        assert_eq!(refused.headers["retry-after"], "1", "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(full.get(path).await.status, 200, "{path}");
    }
    let paused = full.post(&at(&runs[0], "pause"), json!({})).await;
    assert_eq!(paused.status, 200, "{:?}", paused.json());
    full.until(&runs[0], |shown| shown["status"] == "paused").await;
    for run in &runs {
        let canceled = full.post(&at(run, "cancel"), json!({})).await;
        assert_eq!(canceled.status, 200, "{:?}", canceled.json());
        assert_eq!(full.ended(run).await["status"], "canceled");
    }
}

#[tokio::test]
async fn starts_beyond_the_open_runs_of_the_project_are_refused() {
    const OPEN_RUNS_MAX: usize = 64;
    let settings = Settings { open_runs_max: OPEN_RUNS_MAX, ..Settings::default() };
    let server = TestServer::on(fresh().await, settings, Options::default()).await;
    let flows = ["a", "b", "c"];
    for flow in flows {
        server.publish(flow, waiting()).await;
    }
    server.publish("quick", upper()).await;
    let mut open: Vec<String> = Vec::new();
    let refused = loop {
        let path = format!("/api/v1/flows/{}/runs", flows[open.len() % flows.len()]);
        let answer = server.post(&path, json!({})).await;
        if answer.status != 201 {
            break answer;
        }
        open.push(answer.json()["id"].as_str().unwrap().to_owned());
        assert!(open.len() <= OPEN_RUNS_MAX, "more runs are open than may be");
    };
    // Each of the 33 levels that child runs can have leaves one to the levels below.
    assert_eq!(open.len(), OPEN_RUNS_MAX - 33);
    let problem = refused.refused(429, "open_runs_full");
    assert_eq!(refused.headers["retry-after"], "5");
    let detail = problem["detail"].as_str().unwrap();
    assert_eq!(
        detail,
        "the project has 64 open runs, as many as may be: wait until some end, cancel some, or raise open_runs_max"
    );
    server.post("/api/v1/flows/quick/runs", json!({})).await.refused(429, "open_runs_full");
    server.post(&format!("/api/v1/runs/{}/cancel", open[0]), json!({})).await.ok();
    assert_eq!(server.ended(&open[0]).await["status"], "canceled");
    let run = server.start("quick", json!({"params": {"text": "x"}})).await;
    assert_eq!(server.ended(&run).await["shared"]["loud"], "X");
}

#[tokio::test]
async fn child_runs_beyond_the_open_runs_of_the_project_wait() {
    const OPEN_RUNS_MAX: usize = 64;
    let settings = Settings { open_runs_max: OPEN_RUNS_MAX, ..Settings::default() };
    let server = TestServer::on(fresh().await, settings, Options::default()).await;
    server
        .publish("slow", json!({"start": "t", "nodes": {"t": {"kind": "timer", "params": {"delay_ms": 20}}}}))
        .await;
    let call = json!({"start": "c", "nodes": {"c": {"kind": "flow_ref", "flow": "slow"}}, "edges": []});
    let each = json!({"start": "f", "nodes": {"f": {"kind": "foreach", "prep": {"input_key": "$params.items"},
        "parallel_mode": "concurrent", "subflow": call}}, "edges": []});
    server.publish("each", each).await;
    let items: Vec<usize> = (0..150).collect();
    let run = server.start("each", json!({"params": {"items": items}})).await;
    let n_of = |page: &Value| page["items"].as_array().unwrap().len();
    let open = "/api/v1/runs?limit=1000&status=pending,running,waiting,paused,canceling";
    let mut most_open = 0;
    let ended = loop {
        most_open = most_open.max(n_of(&server.get(open).await.ok()));
        let shown = server.get(&format!("/api/v1/runs/{run}")).await.ok();
        if ["completed", "failed"].iter().any(|status| shown["status"] == *status) {
            break shown;
        }
    };
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!((2..=OPEN_RUNS_MAX).contains(&most_open), "{most_open} runs were open at once");
    assert_eq!(
        n_of(&server.get("/api/v1/runs?limit=1000&flow=slow&status=completed").await.ok()),
        items.len()
    );
}
