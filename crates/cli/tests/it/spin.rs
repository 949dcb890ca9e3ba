//! A flow that decides without end takes nothing from other clients: it is decided in slices, off the threads that
//! answer requests.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_sdk::Client;

use crate::http::{ask, ends, get, post, seen, start};
use crate::server::{PATIENCE, Server, publish};

/// Runs that spin at the same time.
const SPINNING: usize = 50;
/// Requests of each kind in one measurement.
const SAMPLES: usize = if cfg!(debug_assertions) { 40 } else { 200 };
/// The part of the requests that is held to the limit, in percent.
const PART: usize = if cfg!(debug_assertions) { 95 } else { 99 };
/// The longest that a start and a health check may take beside the spinning runs; see docs/benchmarks.md. A search takes
/// many times as long in a server without optimisation, which runs beside other tests: it may take the larger of this and
/// five times the time before. Without slices the same requests wait for minutes.
const LATENCY_MAX: [Duration; 2] = if cfg!(debug_assertions) {
    [Duration::from_millis(1_000); 2]
} else {
    [Duration::from_millis(50), Duration::from_millis(10)]
};

/// A choice that looks for a word in a text, does not find it and goes back to itself.
fn spin() -> Value {
    json!({"start": "c", "edges": [{"from": "c", "to": "c"}], "nodes": {"c": {
        "kind": "choice", "choice_cases": [{"action": "found", "expr": {"contains": ["$params.text", "needle"]}}],
    }}})
}

/// A flow that ends at once.
fn short() -> Value {
    json!({"start": "c", "edges": [{"from": "c", "to": ""}], "nodes": {"c": {
        "kind": "choice", "choice_cases": [{"action": "yes", "expr": {"eq": [1, 1]}}],
    }}})
}

/// The time that most requests take at most: for starts of short runs, and for health checks.
async fn latencies(client: &Client) -> [Duration; 2] {
    let (mut starts, mut checks) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let begun = Instant::now();
        start(client, "short", json!({})).await;
        starts.push(begun.elapsed());
        let begun = Instant::now();
        get(client, "/healthz").await;
        checks.push(begun.elapsed());
    }
    [starts, checks].map(|mut times| {
        times.sort();
        times[SAMPLES * PART / 100 - 1]
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn others_are_served_while_fifty_runs_spin() {
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "spin", spin()).await;
    publish(&client, "short", short()).await;
    let before = latencies(&client).await;
    let text = "x".repeat(1 << 20);
    let mut spinning = Vec::new();
    for _ in 0..SPINNING {
        spinning.push(start(&client, "spin", json!({ "text": text })).await);
    }
    let during = latencies(&client).await;
    for (at, kind) in ["start", "health"].into_iter().enumerate() {
        let (before, during) = (before[at], during[at]);
        eprintln!("{kind} beside {SPINNING} spinning runs: before {before:?}, during {during:?}");
        let most = if cfg!(debug_assertions) { LATENCY_MAX[at].max(5 * before) } else { LATENCY_MAX[at] };
        assert!(during <= most, "{kind} takes {during:?}, and took {before:?} before");
    }
    for run in &spinning {
        let shown = get(&client, &format!("/api/v1/runs/{run}")).await;
        assert_eq!(shown["status"], "running", "{shown}");
    }
    let begun = Instant::now();
    for run in &spinning {
        post(&client, &format!("/api/v1/runs/{run}/cancel"), json!({})).await;
    }
    for run in &spinning {
        ends(&client, run, "canceled").await;
    }
    assert!(begun.elapsed() < PATIENCE / 6, "{SPINNING} cancels took {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spinning_run_goes_on_to_its_limit_after_a_kill() {
    let mut server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "spin", spin()).await;
    let run = start(&client, "spin", json!({"text": "hay"})).await;
    let path = format!("/api/v1/runs/{run}");
    seen("a second slice", async || {
        let (status, entries) = ask(&client, "GET", &format!("{path}/journal?limit=3"), None).await;
        (status == 200 && entries["items"].as_array()?.len() > 1).then_some(())
    })
    .await;
    let shown = get(&client, &path).await;
    assert_eq!(shown["status"], "running", "{shown}");
    server.kill();
    server.spawn();
    server.ready().await;
    let ended = ends(&client, &run, "failed").await;
    assert!(ended.to_string().contains("more than 50000 nodes were entered"), "{ended}");
}
