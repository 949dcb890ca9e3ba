//! Statistics of runs: times of work, of waiting, and of neither.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::test_server::{TestServer, queued};

/// How long a call waits in its queue here at least. Nothing can be awaited for it: it is time that is measured.
const WAIT_MS: u64 = 120;

async fn waited() {
    tokio::time::sleep(Duration::from_millis(WAIT_MS)).await;
}

fn ms(of: &Value, what: &str) -> u64 {
    of[what]["max"].as_u64().unwrap_or_else(|| panic!("no `{what}` in {of}"))
}

#[tokio::test]
async fn waiting_in_a_queue_is_no_work() {
    let host = TestServer::new().await;
    host.publish("press", queued()).await;
    let run = host.start("press", json!({ "params": { "text": "hi" } })).await;
    waited().await;
    let path = format!("/api/v1/runs/{run}/stats");
    let stats = host.get(&path).await.ok();
    assert_eq!((&stats["parallelism"]["busy_ms"], &stats["attempts"]), (&json!(0), &json!(1)), "{stats}");
    let load = host.get("/api/v1/stats").await.ok()["parallelism"].clone();
    assert_eq!((&load["running"], &load["waiting"], &load["max_running"]), (&json!(0), &json!(1), &json!(0)));
    let job = host.claim("press").await;
    let load = host.get("/api/v1/stats").await.ok()["parallelism"].clone();
    assert_eq!((&load["running"], &load["waiting"]), (&json!(1), &json!(0)));
    host.finish(&job, json!({ "outcome": "done", "result": "HI" })).await;
    host.ended(&run).await;
    let stats = host.get(&path).await.ok();
    let node = &stats["nodes"][0];
    assert!(ms(node, "waiting_ms") >= WAIT_MS, "{node}");
    assert_eq!(ms(node, "node_ms"), ms(node, "waiting_ms") + ms(node, "duration_ms"), "{node}");
    assert_eq!(stats["parallelism"]["busy_ms"], node["total_ms"], "{stats}");
    let flow = host.get("/api/v1/flows/press/stats").await.ok();
    let seen = &flow["by_node"][0];
    assert_eq!(ms(seen, "duration_ms"), ms(node, "duration_ms"), "{flow}");
    assert_eq!(ms(seen, "waiting_ms"), ms(node, "waiting_ms"), "{flow}");
    assert_eq!((&flow["running"], &flow["nodes"]["total"]["succeeded"]), (&json!(0), &json!(1)));
}

#[tokio::test]
async fn a_suspension_is_neither_done_nor_failed() {
    let host = TestServer::new().await;
    host.publish("press", queued()).await;
    let run = host.start("press", json!({ "params": { "text": "hi" } })).await;
    let job = host.claim("press").await;
    host.finish(&job, json!({ "outcome": "suspended", "memo": 7 })).await;
    let of_run = format!("/api/v1/runs/{run}/stats");
    for path in [of_run.as_str(), "/api/v1/flows/press/stats"] {
        let stats = host.get(path).await.ok();
        let node = if stats["nodes"].is_array() { &stats["nodes"][0] } else { &stats["by_node"][0] };
        let counts = ["succeeded", "failed", "suspended"].map(|what| node[what].as_u64().unwrap());
        assert_eq!(counts, [0, 0, 1], "{path}: {stats}");
    }
    let load = host.get("/api/v1/stats").await.ok()["parallelism"].clone();
    assert_eq!((&load["running"], &load["waiting"]), (&json!(0), &json!(0)));
    let text = String::from_utf8(host.get("/metrics").await.body).unwrap();
    let line = "windlass_calls_ended_total{flow=\"press\",node=\"work\",outcome=\"suspended\"} 1";
    assert!(text.lines().any(|found| found == line), "{text}");
}

/// The value of a sample without labels, or with these.
fn sample(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}: {text}")).parse().unwrap()
}

#[tokio::test]
async fn the_distribution_of_calls_in_progress_is_a_histogram() {
    let host = TestServer::new().await;
    host.publish("press", queued()).await;
    for _ in 0..2 {
        host.start("press", json!({ "params": { "text": "hi" } })).await;
        host.claim("press").await;
    }
    let page = async || String::from_utf8(host.get("/metrics").await.body).unwrap();
    let bucket = |text: &str, le: &str| sample(text, &format!("windlass_parallelism_bucket{{le=\"{le}\"}}"));
    // Two calls are in progress until the end of the test.
    let mut text = page().await;
    while bucket(&text, "2") <= bucket(&text, "1") {
        text = page().await;
    }
    assert!(text.contains("# TYPE windlass_parallelism histogram"), "{text}");
    let at = ["0", "1", "2", "8", "16", "65536", "+Inf"].map(|le| bucket(&text, le));
    assert!(at.is_sorted(), "{at:?}");
    assert_eq!((at[2], at[6]), (at[6], sample(&text, "windlass_parallelism_count")));
    // Two for the time at two, and one for the time at one.
    assert_eq!(sample(&text, "windlass_parallelism_sum"), 2.0 * (at[2] - at[1]) + (at[1] - at[0]));
}

#[tokio::test]
async fn the_time_between_two_rounds_is_not_that_of_the_run() {
    let host = TestServer::new().await;
    host.publish("press", queued()).await;
    let begun = Instant::now();
    let run = host.start("press", json!({ "params": { "text": "hi" } })).await;
    let job = host.claim("press").await;
    host.finish(&job, json!({ "outcome": "done", "result": "HI" })).await;
    host.ended(&run).await;
    let between = Instant::now();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let between = between.elapsed();
    host.post(&format!("/api/v1/runs/{run}/rerun"), json!({ "from": "work" })).await.ok();
    let job = host.claim("press").await;
    host.finish(&job, json!({ "outcome": "done", "result": "HO" })).await;
    host.ended(&run).await;
    // A millisecond for every moment that was rounded.
    let most = u64::try_from((begun.elapsed() - between).as_millis()).unwrap() + 5;
    let stats = host.get(&format!("/api/v1/runs/{run}/stats")).await.ok();
    assert!(stats["parallelism"]["wall_ms"].as_u64().unwrap() <= most, "{most}: {stats}");
    let runs = host.get("/api/v1/flows/press/stats").await.ok()["runs"]["total"].clone();
    assert_eq!((&runs["started"], &runs["completed"]), (&json!(2), &json!(2)));
    assert!(ms(&runs, "duration_ms") <= most, "{most}: {runs}");
}
