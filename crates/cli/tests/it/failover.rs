//! Two push workers of a service, of which one is killed at work: no run fails, without a retry in the flow.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_sdk::worker::{HandlerOutcome, ServiceCall};
use windlass_sdk::{Client, Worker};

use crate::http::{ends, get, seen, start};
use crate::server::{Server, publish, signal};
use crate::shell::{KilledOnDrop, TestShell};

/// Runs of each wave: every other one goes to the worker that is killed.
const RUNS: usize = 20;

async fn worker(shell: &TestShell, id: &str) -> KilledOnDrop {
    let worker = shell.worker(&["--push-only", "--services", "transform", "--id", id]);
    let client = shell.server.client();
    seen(id, async || {
        let workers = client.workers().all().await.unwrap();
        workers.iter().any(|worker| worker.id == id).then_some(())
    })
    .await;
    worker
}

#[tokio::test(flavor = "multi_thread")]
async fn no_run_fails_when_one_of_two_workers_is_killed() {
    let shell = TestShell::open().await;
    let client = shell.server.client();
    let victim = worker(&shell, "victim").await;
    let _other = worker(&shell, "other").await;
    let node = json!({"service": "transform", "params": {"op": "upper"}, "prep": {"input_key": "$params.x"},
        "post": {"output_key": "out"}});
    publish(&client, "shout", json!({"start": "a", "nodes": {"a": node}})).await;
    // Its calls are received and stay unanswered until it is killed.
    signal(&victim.0, "STOP");
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(start(&client, "shout", json!({"x": "rope"})).await);
    }
    seen("runs of the other worker", async || {
        let done = get(&client, "/api/v1/runs?status=completed&limit=100").await;
        (done["items"].as_array().unwrap().len() >= RUNS / 2).then_some(())
    })
    .await;
    drop(victim);
    // It still counts as alive, and refuses connections.
    for _ in 0..RUNS {
        runs.push(start(&client, "shout", json!({"x": "rope"})).await);
    }
    let (mut n_switched, mut n_broken) = (0, 0);
    for run in &runs {
        assert_eq!(ends(&client, run, "completed").await["shared"]["out"], "ROPE");
        let attempts = get(&client, &format!("/api/v1/runs/{run}/attempts")).await;
        let attempts = attempts["items"].as_array().unwrap();
        let of = |n: usize| attempts.get(n).map_or(Value::Null, |attempt| attempt["worker"].clone());
        if attempts.len() > 1 {
            n_switched += 1;
            assert_eq!((attempts.len(), of(0), of(1)), (2, json!("victim"), json!("other")), "{attempts:?}");
            n_broken += usize::from(attempts[0]["error"].to_string().contains("broke"));
        }
    }
    assert!(n_switched > RUNS / 2, "{n_switched} of {} runs met the killed worker", runs.len());
    assert!(n_broken > 0 && n_broken < n_switched, "{n_broken} calls were at work of {n_switched}");
}

/// A worker of this process that fails every call.
async fn failing(client: &Client, id: &str) -> DropGuard {
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let worker = Worker::new(client.clone(), id)
        .push_only()
        .grace(Duration::ZERO)
        .listen(listener, url)
        .service("s", async |_: ServiceCall| HandlerOutcome::failed("no ink"));
    let stop = CancellationToken::new();
    tokio::spawn(worker.run(stop.clone()));
    stop.drop_guard()
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_stay_with_the_worker_that_failed_unless_others_may_be_tried() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let _workers = (failing(&client, "one").await, failing(&client, "two").await);
    seen("the workers", async || (client.workers().all().await.unwrap().len() == 2).then_some(())).await;
    let workers = async |name: &str, max_attempts: u32| {
        let node = json!({"service": "s", "max_retries": 2, "wait_ms": 1, "max_attempts": max_attempts});
        publish(&client, name, json!({"start": "a", "nodes": {"a": node}})).await;
        let run = start(&client, name, json!({})).await;
        ends(&client, &run, "failed").await;
        let attempts = get(&client, &format!("/api/v1/runs/{run}/attempts")).await;
        let attempts = attempts["items"].as_array().unwrap().clone();
        attempts.iter().map(|attempt| attempt["worker"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let same = workers("same", 0).await;
    assert!(same.len() == 3 && same.iter().all(|worker| *worker == same[0]), "{same:?}");
    // Each of the three tries goes to both; a try begins with the worker that failed the last one.
    let both = workers("both", 2).await;
    assert_eq!(both.len(), 6, "{both:?}");
    assert!(both.chunks(2).all(|pair| pair[0] != pair[1]), "{both:?}");
    assert!(both[1] == both[2] && both[3] == both[4], "{both:?}");
}
