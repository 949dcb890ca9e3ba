//! Two push workers of a service, of which one is killed at work: no run fails, without a retry in the flow.

use serde_json::{Value, json};

use crate::http::{ends, get, seen, start};
use crate::server::{publish, signal};
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

#[tokio::test(flavor = "multi_thread")]
async fn retries_stay_with_the_worker_that_failed() {
    let shell = TestShell::open().await;
    let client = shell.server.client();
    let _one = worker(&shell, "one").await;
    let _two = worker(&shell, "two").await;
    // An operation that the worker does not know is an error of its own.
    let node = json!({"service": "transform", "params": {"op": "melt"}, "prep": {"input_key": "$params.x"},
        "max_retries": 3, "wait_ms": 1});
    publish(&client, "melt", json!({"start": "a", "nodes": {"a": node}})).await;
    let run = start(&client, "melt", json!({"x": "rope"})).await;
    ends(&client, &run, "failed").await;
    let attempts = get(&client, &format!("/api/v1/runs/{run}/attempts")).await;
    let workers: Vec<&Value> =
        attempts["items"].as_array().unwrap().iter().map(|attempt| &attempt["worker"]).collect();
    assert_eq!(workers.len(), 4, "{attempts}");
    assert!(workers.iter().all(|worker| *worker == workers[0]), "{workers:?}");
}
