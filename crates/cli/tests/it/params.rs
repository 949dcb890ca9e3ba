//! Large params of a run on a real server: memory and disk hold them once, however many branches, jobs and child runs
//! have them.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_sdk::Client;

use crate::http::{ends, get, post, seen, start};
use crate::memory::{ADDRESS_SPACE, growth, read_status};
use crate::server::{PATIENCE, Server, TempDir, publish};
use crate::store::Store;

/// Bytes of an item.
const ITEM: usize = 2_000;
/// Growth of memory that one run may cause: a copy of the params for each of 600 branches would be 700 MB of text alone.
const GROWTH_MAX: usize = 150 << 20;

fn items(n: usize) -> Value {
    let item = |at: usize| format!("{at:0width$}", width = ITEM);
    json!({"items": (0..n).map(item).collect::<Vec<_>>()})
}

fn each(branch: Value) -> Value {
    let mut node =
        json!({"kind": "foreach", "prep": {"input_key": "$params.items"}, "parallel_mode": "concurrent"});
    node.as_object_mut().unwrap().extend(branch.as_object().unwrap().clone());
    json!({"start": "f", "nodes": {"f": node}, "edges": []})
}

fn subflow(node: Value) -> Value {
    json!({"subflow": {"start": "c", "nodes": {"c": node}, "edges": []}})
}

/// A server whose store is a file in the directory.
async fn server() -> (Server, std::path::PathBuf) {
    let dir = TempDir::new();
    let (path, store) = (dir.path().to_owned(), Store::File(dir.path().join("store.db")));
    (Server::start_at(dir, store, &["prlimit", ADDRESS_SPACE], &[]).await, path)
}

fn bytes_on_disk(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap());
    let files = files.filter(|file| file.file_name().to_string_lossy().starts_with("store.db"));
    files.map(|file| file.metadata().unwrap().len()).sum()
}

/// Plays a run over so many items to its end; returns the bytes of the store.
async fn played(definition: &Value, n: usize) -> u64 {
    let (mut server, dir) = server().await;
    let client = server.client();
    let leaf = json!({"kind": "local", "func": "lower", "prep": {"input_key": "$params.word"}, "post": {"output_key": "out"}});
    publish(&client, "leaf", json!({"start": "a", "nodes": {"a": leaf}, "edges": []})).await;
    publish(&client, "top", definition.clone()).await;
    let work = async {
        let run = start(&client, "top", items(n)).await;
        ends(&client, &run, "completed").await
    };
    let (grown, run) = growth(&server, work).await;
    assert!(grown <= GROWTH_MAX, "{n} items: {grown} bytes");
    assert_eq!(run["params"]["items"].as_array().unwrap().len(), n);
    // A stopped server leaves no write-ahead log, whose size depends on the time of checkpoints.
    assert!(server.terminate().success());
    bytes_on_disk(&dir)
}

#[track_caller]
fn is_linear(half: u64, whole: u64) {
    assert!(whole * 10 <= half * 22, "{half} bytes for half of the items, {whole} for all");
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_with_params_of_their_node_share_those_of_the_run() {
    let mut branch = subflow(json!({"kind": "local", "func": "echo", "prep": {"input_key": "$input"}}));
    branch["params"] = json!({"x": 1});
    let definition = each(branch);
    is_linear(played(&definition, 150).await, played(&definition, 300).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn child_runs_share_the_params_of_their_parent() {
    let branch = subflow(json!({"kind": "flow_ref", "flow": "leaf", "prep": {"input_map": {"word": "UP"}}}));
    let definition = each(branch);
    is_linear(played(&definition, 150).await, played(&definition, 300).await);
}

async fn claim(client: &Client, max: usize) -> Vec<Value> {
    let claim = json!({"worker_id": "w", "services": ["press"], "max": max, "wait_ms": 5_000});
    post(client, "/api/v1/jobs/claim", claim).await["jobs"].as_array().unwrap().clone()
}

/// Starts a run with so many jobs, and claims some; returns the bytes of the store.
async fn queued(n: usize) -> u64 {
    let (server, dir) = server().await;
    let client = server.client();
    let branch = json!({"service": "press", "exec_type": "queue", "params": {"by": 2}});
    publish(&client, "top", each(branch)).await;
    let params = items(n);
    let work = async {
        let run = start(&client, "top", params.clone()).await;
        seen("all jobs", async || {
            let queue = get(&client, "/api/v1/queues/press").await;
            (queue["depth"]["queued"] == n).then_some(())
        })
        .await;
        let on_disk = bytes_on_disk(&dir);
        // An answer has a limit of bytes, whatever the worker asks for.
        let jobs = claim(&client, 1_000).await;
        assert!(!jobs.is_empty() && jobs.len() < 60, "{} jobs", jobs.len());
        let mut expected = params.clone();
        expected["by"] = json!(2);
        for job in &jobs {
            assert_eq!(job["params"], expected);
            assert_eq!(job["input"].as_str().unwrap().len(), ITEM);
        }
        let shown = get(&client, &format!("/api/v1/jobs/{}", jobs[0]["id"].as_str().unwrap())).await;
        assert_eq!(shown["payload"]["params"], expected);
        post(&client, &format!("/api/v1/runs/{run}/cancel"), json!({})).await;
        on_disk
    };
    let (grown, on_disk) = growth(&server, work).await;
    assert!(grown <= GROWTH_MAX, "{n} items: {grown} bytes");
    on_disk
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_refer_to_the_params_of_their_run() {
    is_linear(queued(300).await, queued(600).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_and_child_runs_find_their_params_after_a_kill() {
    let (mut server, _dir) = server().await;
    let client = server.client();
    let wait = json!({"kind": "wait_event", "params": {"signal_key": "go"}});
    let press = json!({"service": "press", "exec_type": "queue", "prep": {"input_key": "$params.n"}, "post": {"output_key": "out"}});
    let leaf = json!({"start": "w", "nodes": {"w": wait, "p": press}, "edges": [{"from": "w", "to": "p"}]});
    publish(&client, "leaf", leaf).await;
    publish(
        &client,
        "top",
        each(subflow(json!({"kind": "flow_ref", "flow": "leaf", "prep": {"input_map": {"n": "$input"}}}))),
    )
    .await;
    let run = start(&client, "top", items(10)).await;
    let children = seen("all children", async || {
        let list = get(&client, "/api/v1/runs?flow=leaf&status=waiting").await;
        let children = list["items"].as_array().unwrap().clone();
        (children.len() == 10).then_some(children)
    })
    .await;
    server.kill();
    server.spawn();
    server.ready().await;
    for child in &children {
        let path = format!("/api/v1/runs/{}/signal", child["id"].as_str().unwrap());
        post(&client, &path, json!({"key": "go", "value": true})).await;
    }
    let mut n_done = 0;
    while n_done < 10 {
        for job in claim(&client, 10).await {
            assert_eq!(job["params"]["items"], items(10)["items"]);
            assert_eq!(job["params"]["n"], job["input"]);
            let result = json!({"id": job["id"], "lease": job["lease"], "outcome": "done", "result": 1});
            post(&client, "/api/v1/jobs/finish", json!({"results": [result]})).await;
            n_done += 1;
        }
    }
    ends(&client, &run, "completed").await;
}

/// Bytes of requests with a list of small numbers: the sizes at which memory was once 5.6 GB, and ended.
const LIST_BYTES: [usize; 2] = [45 << 10, 110 << 10];
/// Items that the larger of them has at least.
const N_ITEMS: usize = 20_000;
/// A server without optimisation takes a minute for 20,000 child runs, so that it gets the smaller list only.
const CHILD_LIST_BYTES: &[usize] = if cfg!(debug_assertions) { &[45 << 10] } else { &LIST_BYTES };
/// Peak memory of the server.
const PEAK_MAX: usize = 500_000_000;
/// The time of one run. The goal is 5 s; a server without optimisation, beside other tests, gets more.
const TIME_MAX: Duration = if cfg!(debug_assertions) { PATIENCE } else { Duration::from_secs(5) };

/// A list of numbers with so many bytes.
fn numbers(bytes: usize) -> Vec<usize> {
    let mut left = bytes;
    (0..)
        .take_while(|n: &usize| left.checked_sub(n.to_string().len() + 1).map(|rest| left = rest).is_some())
        .collect()
}

/// Starts a run over each of the lists, on a server of its own, and waits until the work on it is done; checks memory and
/// time.
async fn assert_goal(definition: Value, lists: &[usize], is_done: impl AsyncFn(&Client, &str, usize)) {
    let dir = TempDir::new();
    let store = Store::fresh(&dir);
    let server = Server::start_at(dir, store, &["prlimit", ADDRESS_SPACE], &[]).await;
    let client = server.client();
    let leaf = json!({"kind": "local", "func": "echo", "prep": {"input_key": "$params.word"}});
    publish(&client, "leaf", json!({"start": "a", "nodes": {"a": leaf}, "edges": []})).await;
    publish(&client, "top", definition).await;
    for bytes in lists {
        let items = numbers(*bytes);
        let n = items.len();
        assert!(n >= N_ITEMS || *bytes < LIST_BYTES[1], "{n} items");
        let begun = Instant::now();
        let run = start(&client, "top", json!({ "items": items })).await;
        is_done(&client, &run, n).await;
        let (took, peak) = (begun.elapsed(), read_status(&server, "VmHWM"));
        eprintln!("{n} items: {took:?}, peak {} MB", peak / 1_000_000);
        assert!(peak <= PEAK_MAX, "{n} items: {peak} bytes");
        assert!(took <= TIME_MAX, "{n} items: {took:?}");
    }
}

async fn completed(client: &Client, run: &str, _: usize) {
    ends(client, run, "completed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn local_functions_over_a_long_list_are_quick_and_small() {
    let branch = json!({"exec_type": "local_func", "func": "echo", "service": "echo"});
    assert_goal(each(branch), &LIST_BYTES, completed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_with_params_of_their_node_over_a_long_list_are_quick_and_small() {
    let mut branch = subflow(json!({"kind": "local", "func": "echo", "prep": {"input_key": "$input"}}));
    branch["params"] = json!({"x": 1});
    assert_goal(each(branch), &LIST_BYTES, completed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn child_runs_over_a_long_list_are_quick_and_small() {
    let branch = subflow(json!({"kind": "flow_ref", "flow": "leaf", "prep": {"input_map": {"word": "UP"}}}));
    assert_goal(each(branch), CHILD_LIST_BYTES, completed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_over_a_long_list_are_quick_and_small() {
    let branch = json!({"service": "press", "exec_type": "queue", "params": {"by": 2}});
    // The jobs of a canceled run are gone, so each run finds an empty queue.
    assert_goal(each(branch), &LIST_BYTES, async |client: &Client, run: &str, n: usize| {
        seen("all jobs", async || {
            let queue = get(client, "/api/v1/queues/press").await;
            (queue["depth"]["queued"] == n).then_some(())
        })
        .await;
        post(client, &format!("/api/v1/runs/{run}/cancel"), json!({})).await;
        ends(client, run, "canceled").await;
    })
    .await;
}
