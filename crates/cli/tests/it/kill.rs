//! The server is killed fifty times while it works: nothing that was acknowledged is lost, and nothing happens twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_sdk::contract::{RunStatus, Signal};
use windlass_sdk::worker::ServiceCall;
use windlass_sdk::{Client, Worker};

use crate::http::journal;
use crate::server::{PATIENCE, Server, publish, with_params};

const KILLS: u64 = 50;
const RUNS_MIN: usize = 200;
/// Callers that start runs all the time.
const CALLERS: usize = 6;

/// A flow, its number and its expected result.
#[derive(Clone)]
pub(crate) struct Acknowledged {
    pub(crate) id: String,
    pub(crate) flow: &'static str,
    pub(crate) x: i64,
}

/// The idempotency keys of the calls that workers received.
pub(crate) type CallCounts = Arc<Mutex<BTreeMap<String, usize>>>;

pub(crate) fn calls(exec_type: &str) -> Value {
    let node = |input: &str, output: &str| {
        json!({
            "service": "double", "exec_type": exec_type, "max_retries": 100, "wait_ms": 20,
            "prep": {"input_key": input}, "post": {"output_key": output},
        })
    };
    json!({
        "start": "a",
        "nodes": {"a": node("$params.x", "a"), "b": node("a", "b"), "c": node("b", "c")},
        "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}],
    })
}

/// A timer, then a signal, then functions over items.
pub(crate) fn waits() -> Value {
    json!({
        "start": "t",
        "nodes": {
            "t": {"kind": "timer", "params": {"delay_ms": 60}},
            "w": {"kind": "wait_event", "params": {"signal_key": "$shared.go"}},
            "f": {
                "kind": "foreach", "exec_type": "local_func", "func": "mul", "params": {"mul": 8},
                "prep": {"input_key": "$params.items"}, "post": {"output_key": "out"},
                "parallel_mode": "concurrent", "max_parallel": 3,
            },
        },
        "edges": [{"from": "t", "to": "w"}, {"from": "w", "to": "f"}],
    })
}

pub(crate) fn worker(client: Client, id: &str, asked: &CallCounts) -> Worker {
    let asked = asked.clone();
    Worker::new(client, id).lease(Duration::from_secs(2)).beat_every(Duration::from_millis(200)).service(
        "double",
        move |call: ServiceCall| {
            *asked.lock().unwrap().entry(call.key).or_default() += 1;
            async move { json!(call.input.as_i64().unwrap() * 2) }
        },
    )
}

/// Every run that was acknowledged has ended as it must, whichever server is asked, and its journal says so.
pub(crate) async fn all_ended(clients: &[Client], runs: &[Acknowledged], asked: &CallCounts) {
    for (n, run) in runs.iter().enumerate() {
        let client = &clients[n % clients.len()];
        let Some(ended) = client.runs().wait(&run.id, Some(PATIENCE)).await.unwrap() else {
            panic!("{} ({}) did not end: {:?}", run.id, run.flow, client.runs().why(&run.id).await);
        };
        assert_eq!(ended.summary.status, RunStatus::Completed, "{}: {:?}", run.id, ended.summary.error);
        match run.flow {
            "waits" => assert_eq!(ended.shared["out"], json!([run.x * 8, (run.x + 1) * 8])),
            _ => assert_eq!(ended.shared["c"], json!(run.x * 8)),
        }
    }
    let ids: BTreeSet<&String> = runs.iter().map(|run| &run.id).collect();
    assert_eq!(ids.len(), runs.len(), "two requests made one run");
    let asked = asked.lock().unwrap().clone();
    for (n, run) in runs.iter().enumerate() {
        check_history(run, &journal(&clients[n % clients.len()], &run.id).await, &asked);
    }
}

/// Starts runs until told to stop, each until it is acknowledged.
async fn start_runs(
    client: Client,
    caller: usize,
    acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
    stop: CancellationToken,
) {
    for n in 0_i64.. {
        let flow = ["push", "pull", "waits"][(n as usize + caller) % 3];
        let mut run = with_params(&json!({"x": n, "items": [n, n + 1]}));
        run.request_id = Some(format!("{caller}-{n}"));
        loop {
            // Whether a start that was not answered happened is unknown: the same request is made again.
            if let Ok(started) = client.runs().start(flow, &run).await {
                acknowledged.lock().unwrap().push(Acknowledged { id: started.id, flow, x: n });
                break;
            }
            if stop.is_cancelled() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if stop.is_cancelled() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Sends every run that waits for it its signal, until that is acknowledged.
async fn send_signals(client: Client, acknowledged: Arc<Mutex<Vec<Acknowledged>>>, stop: CancellationToken) {
    let mut at = 0;
    loop {
        let next = acknowledged.lock().unwrap().get(at).cloned();
        let Some(run) = next else {
            if stop.is_cancelled() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        at += 1;
        if run.flow != "waits" {
            continue;
        }
        let signal: Signal = serde_json::from_value(json!({"key": "go", "value": true})).unwrap();
        // An ended run received it before, although the response was lost.
        while client.runs().signal(&run.id, &signal).await.is_err_and(|error| error.status != Some(409)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Every node ended once per visit, the run ended once, and only granted calls were answered.
fn check_history(run: &Acknowledged, events: &[Value], asked: &BTreeMap<String, usize>) {
    let ends = events.iter().filter(|event| event["e"] == "ended").count();
    assert_eq!(ends, 1, "{} ended {ends} times", run.id);
    let mut granted = BTreeSet::new();
    let mut done = BTreeSet::new();
    for event in events {
        let fence = event["fence"].as_u64().unwrap_or(0);
        match event["e"].as_str().unwrap() {
            "granted" => assert!(granted.insert(fence), "{}: fence {fence} granted twice", run.id),
            "done" if fence > 0 => {
                assert!(granted.contains(&fence), "{}: fence {fence} was never granted", run.id);
                assert!(done.insert(event["node"].to_string()), "{}: {} done twice", run.id, event["node"]);
            }
            _ => {}
        }
    }
    if run.flow != "waits" {
        assert_eq!(done.len(), 3, "{}", run.id);
        let keys = asked.keys().filter(|key| key.contains(run.id.trim_start_matches("run_"))).count();
        assert_eq!(keys, 3, "{}: every call was made, each under one key", run.id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_kills_lose_nothing_and_do_nothing_twice() {
    let mut server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "push", calls("http")).await;
    publish(&client, "pull", calls("queue")).await;
    publish(&client, "waits", waits()).await;

    let (asked, stop_workers) = (CallCounts::default(), CancellationToken::new());
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let working = worker(client.clone(), "doubler", &asked).listen(listener, url).run(stop_workers.clone());
    let working = tokio::spawn(working);

    let (acknowledged, stop) = (Arc::new(Mutex::new(Vec::new())), CancellationToken::new());
    let mut busy = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        busy.spawn(start_runs(client.clone(), caller, acknowledged.clone(), stop.clone()));
    }
    let all_started = CancellationToken::new();
    let signalling = tokio::spawn(send_signals(client.clone(), acknowledged.clone(), all_started.clone()));

    let mut n_kills = 0;
    // On a slow machine more often, until there is something to lose.
    while n_kills < KILLS || acknowledged.lock().unwrap().len() < RUNS_MIN && n_kills < KILLS * 10 {
        tokio::time::sleep(Duration::from_millis(60 + n_kills * 37 % 240)).await;
        server.kill();
        server.spawn();
        server.ready().await;
        n_kills += 1;
    }
    stop.cancel();
    while let Some(ended) = busy.join_next().await {
        ended.unwrap();
    }
    // Only now: the last runs that were acknowledged get their signals too.
    all_started.cancel();
    signalling.await.unwrap();

    let runs = acknowledged.lock().unwrap().clone();
    assert!(runs.len() >= RUNS_MIN, "only {} runs were acknowledged", runs.len());
    all_ended(&[client], &runs, &asked).await;
    stop_workers.cancel();
    working.await.unwrap().unwrap();
    let n_calls: usize = asked.lock().unwrap().values().sum();
    println!("{} runs, {n_calls} calls made, {n_kills} kills", runs.len());
}
