//! Trees of runs on a real server: a flow that starts itself without end, wide fans, and the bounds on open runs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_sdk::Client;

use crate::http::{ask, ends, expect, get, post, seen, start};
use crate::memory::read_status;
use crate::server::{Server, publish, with_params};

const OPEN: &str = "status=pending,running,waiting,paused,canceling";

/// A flow that waits a moment and then starts itself twice.
fn doubling(delay_ms: u32) -> Value {
    let branch = json!({"subflow": {"start": "c", "nodes": {"c": {"kind": "flow_ref", "flow": "double"}}, "edges": []}});
    json!({"start": "t", "nodes": {"t": {"kind": "timer", "params": {"delay_ms": delay_ms}},
        "p": {"kind": "parallel", "parallel_mode": "concurrent", "parallel_execs": [branch, branch]}},
        "edges": [{"from": "t", "to": "p"}]})
}

fn quick() -> Value {
    json!({"start": "a", "nodes": {"a": {"kind": "local", "func": "mul", "params": {"mul": 2}, "prep": {"input_key": "$params.x"}}}})
}

fn waiting() -> Value {
    json!({"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "never"}}}})
}

/// The number of runs that match, up to a page.
async fn count(client: &Client, query: &str) -> usize {
    get(client, &format!("/api/v1/runs?limit=1000&{query}")).await["items"].as_array().unwrap().len()
}

async fn is_open(client: &Client, run: &str) -> bool {
    let status = get(client, &format!("/api/v1/runs/{run}")).await["status"].clone();
    !["completed", "failed", "canceled"].iter().any(|ended| status == *ended)
}

/// Starts runs one after the other; how long each start took, sorted.
async fn starts(client: &Client, n: usize) -> Vec<Duration> {
    let mut took = Vec::new();
    for x in 0..n {
        let begun = Instant::now();
        client.runs().start("quick", &with_params(&json!({"x": x}))).await.expect("a start is never refused");
        took.push(begun.elapsed());
    }
    took.sort();
    took
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_that_starts_itself_twice_ends_and_leaves_room_for_others() {
    let server = Server::start(&["--tree-open-runs-max", "200", "--tree-runs-max", "2000"]).await;
    let client = server.client();
    publish(&client, "quick", quick()).await;
    publish(&client, "double", doubling(0)).await;
    let before = starts(&client, 50).await;
    let root = start(&client, "double", json!({})).await;
    let mut most_open = 0;
    let mut during = Vec::new();
    while is_open(&client, &root).await {
        during.extend(starts(&client, 5).await);
        most_open = most_open.max(count(&client, &format!("flow=double&{OPEN}")).await);
    }
    ends(&client, &root, "failed").await;
    seen("that nothing is open", async || (count(&client, OPEN).await == 0).then_some(())).await;
    assert!(most_open <= 201, "{most_open} runs were open at once");
    let n_runs = runs_of(&client, "double").await;
    assert!((150..=2_001).contains(&n_runs), "{n_runs} runs");
    during.sort();
    let (usual, median) = (before[before.len() / 2], during[during.len() / 2]);
    assert!(median <= (usual * 10).max(Duration::from_millis(500)), "{median:?} in place of {usual:?}");
    let peak = read_status(&server, "VmHWM");
    assert!(peak < 1 << 30, "{peak} bytes");
}

/// All runs of a flow, page by page.
async fn runs_of(client: &Client, flow: &str) -> usize {
    let (mut n, mut cursor) = (0, String::new());
    loop {
        let page = get(client, &format!("/api/v1/runs?limit=1000&flow={flow}{cursor}")).await;
        n += page["items"].as_array().unwrap().len();
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return n,
        }
    }
}

/// A child run of this flow for each item.
fn each(flow: &str) -> Value {
    json!({"start": "f", "nodes": {"f": {"kind": "foreach", "prep": {"input_key": "$params.items"},
        "parallel_mode": "concurrent", "subflow": {"start": "c", "nodes": {"c": {"kind": "flow_ref",
        "flow": flow}}, "edges": []}}}, "edges": []})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_call_of_a_child_run_beyond_the_bound_of_its_tree_fails() {
    let server = Server::start(&["--tree-runs-max", "100"]).await;
    let client = server.client();
    publish(&client, "quick", quick()).await;
    publish(&client, "each", each("quick")).await;
    let root = start(&client, "each", json!({"x": 1, "items": (0..300).collect::<Vec<_>>()})).await;
    let ended = ends(&client, &root, "failed").await;
    assert!(ended["error"].to_string().contains("raise tree_runs_max"), "{ended}");
    let n_runs = runs_of(&client, "quick").await;
    assert!((1..=100).contains(&n_runs), "{n_runs} runs");
    let other = start(&client, "each", json!({"x": 1, "items": [1, 2, 3]})).await;
    ends(&client, &other, "completed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_ends_a_tree_that_grows_also_over_a_kill() {
    let mut server = Server::start(&["--tree-open-runs-max", "400"]).await;
    let client = server.client();
    publish(&client, "double", doubling(200)).await;
    let root = start(&client, "double", json!({})).await;
    seen("a tree", async || (count(&client, &format!("flow=double&{OPEN}")).await > 300).then_some(())).await;
    let begun = Instant::now();
    post(&client, &format!("/api/v1/runs/{root}/cancel"), json!({})).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "the cancel took {:?}", begun.elapsed());
    server.kill();
    server.spawn();
    server.ready().await;
    ends(&client, &root, "canceled").await;
    seen("that nothing is open", async || (count(&client, OPEN).await == 0).then_some(())).await;
    let n_runs = runs_of(&client, "double").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(runs_of(&client, "double").await, n_runs, "no run is created after the cancel");
    assert!(read_status(&server, "VmHWM") < 1 << 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_beyond_the_bound_of_a_flow_are_refused_and_child_runs_wait() {
    let server = Server::start(&["--flow-open-runs-max", "64"]).await;
    let client = server.client();
    publish(&client, "wait", waiting()).await;
    publish(&client, "quick", quick()).await;
    let mut begun = Vec::new();
    let refused = loop {
        let (status, answer) = ask(&client, "POST", "/api/v1/flows/wait/runs", Some(json!({}))).await;
        match answer["id"].as_str() {
            Some(id) => begun.push(id.to_owned()),
            None => break (status, answer),
        }
        assert!(begun.len() <= 64, "more runs are open than may be");
    };
    assert_eq!((refused.0, begun.len()), (429, 31), "{}", refused.1);
    assert_eq!(refused.1["code"], "open_runs_full");
    assert!(refused.1.to_string().contains("flow_open_runs_max"), "{}", refused.1);
    start(&client, "quick", json!({"x": 1})).await;
    post(&client, &format!("/api/v1/runs/{}/cancel", begun[0]), json!({})).await;
    ends(&client, &begun[0], "canceled").await;
    expect(&client, "POST", "/api/v1/flows/wait/runs", Some(json!({})), 201).await;
    // Many more child runs of one flow than may be open end one after the other.
    publish(
        &client,
        "slow",
        json!({"start": "t", "nodes": {"t": {"kind": "timer", "params": {"delay_ms": 20}}}}),
    )
    .await;
    publish(&client, "each", each("slow")).await;
    let run = start(&client, "each", json!({"items": (0..300).collect::<Vec<_>>()})).await;
    let mut most_open = 0;
    while is_open(&client, &run).await {
        most_open = most_open.max(count(&client, &format!("flow=slow&{OPEN}")).await);
    }
    ends(&client, &run, "completed").await;
    assert!(most_open <= 64, "{most_open} runs of the flow were open at once");
}

/// A flow with one child run.
fn calling(flow: &str) -> Value {
    json!({"start": "c", "nodes": {"c": {"kind": "flow_ref", "flow": flow}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn room_that_a_canceled_tree_needs_no_more_is_for_the_next() {
    // Room for one run of a flow without a parent, and for two with one.
    let server = Server::start(&["--flow-open-runs-max", "34"]).await;
    let client = server.client();
    publish(&client, "wait", waiting()).await;
    let first = start(&client, "wait", json!({})).await;
    let mut parents = Vec::new();
    for name in ["one", "two", "three"] {
        publish(&client, name, calling("wait")).await;
        parents.push(start(&client, name, json!({})).await);
        if name == "one" {
            seen("its child run", async || (count(&client, "flow=wait").await == 2).then_some(())).await;
        }
    }
    let [_, canceled, next] = &parents[..] else { unreachable!() };
    seen("two trees that wait for room", async || {
        let refused = ask(&client, "POST", "/api/v1/flows/wait/runs", Some(json!({}))).await.0 == 429;
        let waits =
            async |run: &str| get(&client, &format!("/api/v1/runs/{run}")).await["status"] == "waiting";
        (refused && waits(canceled).await && waits(next).await).then_some(())
    })
    .await;
    post(&client, &format!("/api/v1/runs/{canceled}/cancel"), json!({})).await;
    ends(&client, canceled, "canceled").await;
    let begun = Instant::now();
    post(&client, &format!("/api/v1/runs/{first}/cancel"), json!({})).await;
    seen("the child run", async || (count(&client, "flow=wait").await == 3).then_some(())).await;
    // The store is read for waiting trees every minute.
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn other_clients_start_runs_during_a_wide_fan_of_local_calls() {
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "quick", quick()).await;
    let fan = json!({"start": "w", "nodes": {
        "w": {"kind": "wait_event", "params": {"signal_key": "$shared.items"}},
        "f": {"kind": "foreach", "exec_type": "local_func", "func": "mul", "params": {"mul": 8},
            "prep": {"input_key": "$shared.items"}, "parallel_mode": "concurrent", "post": {"output_key": "out"}},
    }, "edges": [{"from": "w", "to": "f"}]});
    publish(&client, "fan", fan).await;
    let run = start(&client, "fan", json!({})).await;
    let signal = json!({"key": "items", "value": (0..25_000).collect::<Vec<_>>()});
    let path = format!("/api/v1/runs/{run}/signal");
    let (answer, took) = tokio::join!(expect(&client, "POST", &path, Some(signal), 200), async {
        let mut took = Vec::new();
        while took.len() < 20 || count(&client, "flow=fan&status=completed").await == 0 {
            took.extend(starts(&client, 5).await);
        }
        took
    });
    assert!(answer.is_object() && took.len() >= 20);
    ends(&client, &run, "completed").await;
}
