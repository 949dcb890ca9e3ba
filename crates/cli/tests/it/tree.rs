//! Trees of runs on a real server: a flow that starts itself without end, wide fans, and the bounds on open runs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_sdk::Client;

use crate::http::{ask, ends, expect, get, post, seen, start};
use crate::memory::read_status;
use crate::server::{PATIENCE, Server, TempDir, publish, with_params};
use crate::store::Store;

const OPEN: &str = "status=pending,running,waiting,paused,canceling";
/// The bounds of a tree, unless a flag says otherwise.
const OPEN_RUNS_MAX: usize = 10_000;
const RUNS_MAX: usize = 100_000;
/// Peak memory of a server with a tree that is as large as it may be.
const PEAK_MAX: usize = 1_000_000_000;

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

/// The number of runs that match, page by page.
async fn count(client: &Client, query: &str) -> usize {
    let (mut n, mut cursor) = (0, String::new());
    loop {
        let page = get(client, &format!("/api/v1/runs?limit=1000&{query}{cursor}")).await;
        n += page["items"].as_array().unwrap().len();
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return n,
        }
    }
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
    let n_runs = count(&client, "flow=double").await;
    assert!((150..=2_001).contains(&n_runs), "{n_runs} runs");
    during.sort();
    let (usual, median) = (before[before.len() / 2], during[during.len() / 2]);
    assert!(median <= (usual * 10).max(Duration::from_millis(500)), "{median:?} in place of {usual:?}");
    let peak = read_status(&server, "VmHWM");
    assert!(peak < 1 << 30, "{peak} bytes");
}

/// A child run of this flow for each item.
fn each(flow: &str) -> Value {
    json!({"start": "f", "nodes": {"f": each_of(flow, "items")}, "edges": []})
}

/// A node with a child run of this flow for each item of a list in the params.
fn each_of(flow: &str, key: &str) -> Value {
    json!({"kind": "foreach", "prep": {"input_key": format!("$params.{key}")}, "parallel_mode": "concurrent",
        "subflow": {"start": "c", "nodes": {"c": {"kind": "flow_ref", "flow": flow}}, "edges": []}})
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
    let n_runs = count(&client, "flow=quick").await;
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
    let n_runs = count(&client, "flow=double").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(count(&client, "flow=double").await, n_runs, "no run is created after the cancel");
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
    // Room for 31 runs of a flow without a parent, and for one more with one.
    const ROOTS: usize = 31;
    let server = Server::start(&["--flow-open-runs-max", "64"]).await;
    let client = server.client();
    publish(&client, "wait", waiting()).await;
    let first = start(&client, "wait", json!({})).await;
    for _ in 1..ROOTS {
        start(&client, "wait", json!({})).await;
    }
    let mut parents = Vec::new();
    for name in ["one", "two", "three"] {
        publish(&client, name, calling("wait")).await;
        parents.push(start(&client, name, json!({})).await);
        if name == "one" {
            let has_child = async || (count(&client, "flow=wait").await == ROOTS + 1).then_some(());
            seen("its child run", has_child).await;
        }
    }
    let [_, canceled, next] = &parents[..] else { unreachable!() };
    seen("two trees that wait for room", async || {
        let refused = ask(&client, "POST", "/api/v1/flows/wait/runs", Some(json!({}))).await.0 == 429;
        let waits =
            async |run: &str| get(&client, &format!("/api/v1/runs/{run}")).await["status"] == "running";
        (refused && waits(canceled).await && waits(next).await).then_some(())
    })
    .await;
    post(&client, &format!("/api/v1/runs/{canceled}/cancel"), json!({})).await;
    ends(&client, canceled, "canceled").await;
    let begun = Instant::now();
    post(&client, &format!("/api/v1/runs/{first}/cancel"), json!({})).await;
    seen("the child run", async || (count(&client, "flow=wait").await == ROOTS + 2).then_some(())).await;
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

/// Runs of a tree of three levels: first child runs with leaves that end, then child runs with leaves that wait. The
/// latter ask for more open runs than there may be.
struct TreeSize {
    ending: [usize; 2],
    waiting: [usize; 2],
    n_kills: usize,
}

impl TreeSize {
    /// `WINDLASS_TEST_LONG=1` asks for a tree with as many runs as may exist.
    fn chosen() -> Self {
        if std::env::var("WINDLASS_TEST_LONG").is_ok_and(|word| word == "1") {
            TreeSize { ending: [300, 300], waiting: [100, 120], n_kills: 2 }
        } else {
            TreeSize { ending: [10, 50], waiting: [60, 170], n_kills: 1 }
        }
    }

    fn params(&self) -> Value {
        let list = |n: usize| (0..n).collect::<Vec<_>>();
        json!({"x": 1, "ending": list(self.ending[0]), "ending_leaves": list(self.ending[1]),
            "waiting": list(self.waiting[0]), "waiting_leaves": list(self.waiting[1])})
    }
}

/// A number that the store answers with, asked without the server in between.
fn ask_number(server: &Server, sql: &str) -> usize {
    server.store().ask(sql).trim().parse().unwrap()
}

fn n_open(server: &Server) -> usize {
    ask_number(server, "SELECT count(*) FROM runs WHERE ended_at IS NULL")
}

/// Waits until the number of open runs is as wanted, as long as it changes; it is never above the bound.
async fn open_runs_are(server: &Server, is_wanted: impl Fn(usize) -> bool) {
    let (mut last, mut changed) = (usize::MAX, Instant::now());
    loop {
        let n = n_open(server);
        assert!(n <= OPEN_RUNS_MAX + 1, "{n} runs are open");
        if is_wanted(n) {
            return;
        }
        if n != last {
            (last, changed) = (n, Instant::now());
        }
        assert!(changed.elapsed() < PATIENCE, "{n} runs stay open");
        // No event tells of the rows of the store.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[track_caller]
fn assert_peak(server: &Server) {
    let peak = read_status(server, "VmHWM");
    eprintln!("peak of the server: {} MB", peak / 1_000_000);
    assert!(peak <= PEAK_MAX, "{peak} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_as_large_as_it_may_be_is_canceled_in_bounded_memory_over_kills() {
    let (dir, size) = (TempDir::new(), TreeSize::chosen());
    let store = Store::fresh(&dir);
    let mut server = Server::start_at(dir, store, &["prlimit", "--as=4294967296"], &[]).await;
    let client = server.client();
    publish(&client, "quick", quick()).await;
    publish(&client, "wait", waiting()).await;
    let level =
        |flow: &str, key: &str| json!({"start": "f", "nodes": {"f": each_of(flow, key)}, "edges": []});
    publish(&client, "ending", level("quick", "ending_leaves")).await;
    publish(&client, "waiting", level("wait", "waiting_leaves")).await;
    let nodes = json!({"a": each_of("ending", "ending"), "b": each_of("waiting", "waiting")});
    publish(&client, "top", json!({"start": "a", "nodes": nodes, "edges": [{"from": "a", "to": "b"}]})).await;
    let begun = Instant::now();
    let root = start(&client, "top", size.params()).await;
    // The levels above leave a part of the bound to deeper ones.
    open_runs_are(&server, |n| n >= OPEN_RUNS_MAX * 92 / 100).await;
    let n_runs = ask_number(&server, "SELECT count(*) FROM runs");
    let [ended, wanted] = [size.ending, size.waiting].map(|[n, leaves]| n + n * leaves);
    eprintln!("{n_runs} runs after {:?}", begun.elapsed());
    assert!(n_runs > ended + OPEN_RUNS_MAX * 9 / 10 && n_runs <= RUNS_MAX + 1, "{n_runs} runs");
    assert!(n_runs < 1 + ended + wanted, "no child run waits");
    assert_peak(&server);
    let (begun, most) = (Instant::now(), n_open(&server));
    post(&client, &format!("/api/v1/runs/{root}/cancel"), json!({})).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "the cancel took {:?}", begun.elapsed());
    for nth in 1..=size.n_kills {
        open_runs_are(&server, |n| n <= most - most * nth / (size.n_kills + 2)).await;
        assert!(n_open(&server) > 1, "the tree has ended before the kill");
        assert_peak(&server);
        server.kill();
        server.spawn();
        server.ready().await;
    }
    open_runs_are(&server, |n| n == 0).await;
    eprintln!("canceled after {:?}", begun.elapsed());
    assert_peak(&server);
    ends(&client, &root, "canceled").await;
    let waited = "flow = (SELECT id FROM named_flows WHERE name = 'wait')";
    let others = format!("SELECT count(*) FROM runs WHERE status <> 'canceled' AND {waited}");
    assert_eq!(ask_number(&server, &others), 0, "leaves that waited have another end");
    // The server takes work, and the run that it takes is the only new one.
    let n_runs = ask_number(&server, "SELECT count(*) FROM runs");
    let next = start(&client, "quick", json!({"x": 1})).await;
    ends(&client, &next, "completed").await;
    assert_eq!(
        ask_number(&server, "SELECT count(*) FROM runs"),
        n_runs + 1,
        "runs are created after the cancel"
    );
}
