//! Two of a kind at once: answers, workers, servers, and a run beside others that wait; and a crowd of workers.

mod crowd;

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_sdk::worker::ServiceCall;
use windlass_sdk::{Client, Worker};

use crate::http::{ask, ends, get, journal, node_is, post, seen, start};
use crate::server::{PATIENCE, Server, TempDir, publish, signal};
use crate::store::Store;

/// One node that calls `s`, then its result in `out`.
fn calls(service: &str, exec_type: &str) -> Value {
    json!({"start": "a", "nodes": {"a": {
        "service": service, "exec_type": exec_type, "max_retries": 3, "params": {"op": "upper"},
        "prep": {"input_key": "$params.x"}, "post": {"output_key": "out"},
    }}, "edges": []})
}

async fn claim(client: &Client, worker: &str, lease_ms: u64) -> Value {
    let body = json!({"worker_id": worker, "services": ["s"], "wait_ms": 30_000, "lease_ms": lease_ms});
    let claimed = post(client, "/api/v1/jobs/claim", body).await;
    claimed["jobs"][0].clone()
}

async fn finish(client: &Client, job: &Value, result: Value) -> String {
    let result = json!({"id": job["id"], "lease": job["lease"], "outcome": "done", "result": result});
    let answer = post(client, "/api/v1/jobs/finish", json!({"results": [result]})).await;
    answer["results"][0]["verdict"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_results_of_a_claim_wins() {
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "pull", calls("s", "queue")).await;
    for round in 0..5 {
        let run = start(&client, "pull", json!({"x": round})).await;
        let job = claim(&client, "w", 30_000).await;
        let mut racing = JoinSet::new();
        for n in 0..8 {
            let (client, job) = (client.clone(), job.clone());
            racing.spawn(async move { (n, finish(&client, &job, json!(n)).await) });
        }
        let verdicts = racing.join_all().await;
        let winners: Vec<i32> = verdicts.iter().filter(|(_, word)| word == "ok").map(|(n, _)| *n).collect();
        assert_eq!(winners.len(), 1, "{verdicts:?}");
        assert!(verdicts.iter().all(|(_, word)| word == "ok" || word == "lost"), "{verdicts:?}");
        assert_eq!(ends(&client, &run, "completed").await["shared"]["out"], json!(winners[0]));
        // A worker that lost the response may repeat the same result, and no other one.
        assert_eq!(finish(&client, &job, json!(winners[0])).await, "ok");
        assert_eq!(finish(&client, &job, json!("other")).await, "lost");
        let done = journal(&client, &run).await.iter().filter(|event| event["e"] == "done").count();
        assert_eq!(done, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_after_the_lease_was_lost_is_refused() {
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "pull", calls("s", "queue")).await;
    let run = start(&client, "pull", json!({})).await;
    let first = claim(&client, "sleepy", 1_000).await;
    let second = claim(&client, "awake", 30_000).await;
    assert_ne!(first["lease"], second["lease"]);
    assert_eq!(second["attempt"].as_u64(), first["attempt"].as_u64().map(|attempt| attempt + 1));
    assert_eq!(first["key"], second["key"], "to whoever does it, it is the same thing");
    assert_eq!(finish(&client, &first, json!("late")).await, "lost");
    let extended = post(&client, "/api/v1/jobs/extend", json!({"leases": [first["lease"]]})).await;
    assert_eq!(extended["results"][0]["verdict"], "lost");
    assert_eq!(finish(&client, &second, json!("in time")).await, "ok");
    assert_eq!(ends(&client, &run, "completed").await["shared"]["out"], "in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_older_surface_too() {
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "pull", calls("s", "queue")).await;
    let run = start(&client, "pull", json!({})).await;
    let poll = json!({"worker_id": "w", "services": ["s"]});
    let task = seen("the queue task", async || {
        let (status, task) = ask(&client, "POST", "/api/queue/poll", Some(poll.clone())).await;
        (status == 200).then_some(task)
    })
    .await;
    let mut racing = JoinSet::new();
    for n in 0..8 {
        let (client, id) = (client.clone(), task["id"].clone());
        let body = json!({"queue_id": id, "result": n});
        racing.spawn(async move { ask(&client, "POST", "/api/queue/complete", Some(body)).await.0 });
    }
    let statuses = racing.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 409].contains(status)), "{statuses:?}");
    ends(&client, &run, "completed").await;
}

/// `windlass worker`, killed when it is dropped.
struct Hand(Child);

impl Hand {
    async fn start(server: &Server, id: &str, how: &str) -> Hand {
        let child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["worker", "--id", id, "--url", "http://127.0.0.1:0", how])
            .env("REGISTRY_URL", server.url())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let hand = Hand(child);
        let client = server.client();
        seen(id, async || {
            client.workers().all().await.unwrap().iter().any(|worker| worker.id == id).then_some(())
        })
        .await;
        hand
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Freezes a worker, kills it, and lets another one take over its job. Returns whether it had a job at all: it may be
/// frozen between two claims.
async fn killed_at_work(server: &Server, exec_type: &str, how: &str) -> bool {
    let client = server.client();
    let victim = Hand::start(server, "victim", how).await;
    // It has done something, so it is where it takes work.
    let run = start(&client, exec_type, json!({"x": "rope"})).await;
    assert_eq!(ends(&client, &run, "completed").await["shared"]["out"], "ROPE");
    signal(&victim.0, "STOP");
    let run = start(&client, exec_type, json!({"x": "mast"})).await;
    node_is(&client, &run, "a", "running").await;
    let _other = Hand::start(server, "other", how).await;
    drop(victim);
    assert_eq!(ends(&client, &run, "completed").await["shared"]["out"], "MAST");
    let attempts = get(&client, &format!("/api/v1/runs/{run}/attempts")).await;
    let attempts = attempts["items"].as_array().unwrap();
    assert_eq!(attempts.last().unwrap()["worker"], "other", "{attempts:?}");
    attempts.last().unwrap()["attempt"].as_u64().unwrap() > 1
}

async fn killed_at_work_once(exec_type: &str, how: &str) {
    let server = Server::start(&[]).await;
    publish(&server.client(), exec_type, calls("transform", exec_type)).await;
    for _ in 0..10 {
        if killed_at_work(&server, exec_type, how).await {
            return;
        }
    }
    panic!("never killed at work");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_while_it_is_called() {
    killed_at_work_once("http", "--push-only").await;
}

/// Takes as long as a lease lasts.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_while_it_has_a_job() {
    killed_at_work_once("queue", "--pull-only").await;
}

/// A worker in this process whose service `s` answers when it is let go, and `quick` at once.
async fn slow_worker(
    client: &Client,
    let_go: &CancellationToken,
    n_calls: &Arc<AtomicUsize>,
) -> CancellationToken {
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let (stop, let_go, n_calls) = (CancellationToken::new(), let_go.clone(), n_calls.clone());
    let worker = Worker::new(client.clone(), "slow")
        .push_only()
        .grace(Duration::ZERO)
        .listen(listener, url)
        .service("s", move |call: ServiceCall| {
            n_calls.fetch_add(1, Ordering::SeqCst);
            let let_go = let_go.clone();
            async move {
                let_go.cancelled().await;
                call.input
            }
        })
        .service("quick", async |call: ServiceCall| call.input);
    tokio::spawn(worker.run(stop.clone()));
    seen("the worker", async || (!client.workers().all().await.unwrap().is_empty()).then_some(())).await;
    stop
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_wait_delay_no_other() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let (never, n_calls) = (CancellationToken::new(), Arc::default());
    let stop = slow_worker(&client, &never, &n_calls).await;
    publish(&client, "slow", calls("s", "http")).await;
    publish(&client, "queued", calls("nobody", "queue")).await;
    publish(&client, "alone", calls("nobody", "http")).await;
    publish(&client, "quick", calls("quick", "http")).await;
    let timer = json!({"start": "a", "nodes": {"a": {"kind": "timer", "params": {"delay_ms": 3_600_000}}}, "edges": []});
    publish(&client, "timer", timer).await;
    for n in 0..20 {
        start(&client, ["slow", "queued", "alone", "timer"][n % 4], json!({"x": n})).await;
    }
    seen("all slow calls", async || (n_calls.load(Ordering::SeqCst) == 5).then_some(())).await;
    let begun = Instant::now();
    for n in 0..10 {
        let run = start(&client, "quick", json!({"x": n})).await;
        assert_eq!(ends(&client, &run, "completed").await["shared"]["out"], n);
    }
    // The others wait for an hour.
    assert!(begun.elapsed() < PATIENCE, "ten runs took {:?}", begun.elapsed());
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_stop_finishes_what_is_under_way_and_the_next_does_the_rest() {
    let mut server = Server::start(&[]).await;
    let client = server.client();
    let (let_go, n_calls) = (CancellationToken::new(), Arc::default());
    let _stop = slow_worker(&client, &let_go, &n_calls).await;
    publish(&client, "slow", calls("s", "http")).await;
    let waits = json!({"start": "a", "nodes": {
        "a": {"kind": "wait_event", "params": {"signal_key": "go"}},
        "b": {"kind": "local", "func": "echo", "prep": {"input_key": "$shared.go"}, "post": {"output_key": "out"}},
    }, "edges": [{"from": "a", "to": "b"}]});
    publish(&client, "waits", waits).await;
    publish(&client, "queued", calls("transform", "queue")).await;
    let under_way = start(&client, "slow", json!({"x": 7})).await;
    let waiting = start(&client, "waits", json!({})).await;
    let queued = start(&client, "queued", json!({"x": "rope"})).await;
    seen("the call", async || (n_calls.load(Ordering::SeqCst) == 1).then_some(())).await;

    server.ask_to_end();
    // While a call is under way the server is still there, and takes nothing new.
    let refused = seen("the refusal", async || {
        let body = Some(json!({"params": {}}));
        let (status, answer) = ask(&client, "POST", "/api/v1/flows/waits/runs", body).await;
        (status != 201).then_some((status, answer))
    })
    .await;
    assert_eq!((refused.0, &refused.1["code"]), (503, &json!("draining")), "{}", refused.1);
    assert_eq!(ask(&client, "GET", "/readyz", None).await.0, 503);
    let_go.cancel();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = server.ended() {
            break status;
        }
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(status.code(), Some(0), "{}", server.log());

    server.spawn();
    server.ready().await;
    assert_eq!(ends(&client, &under_way, "completed").await["shared"]["out"], 7);
    assert_eq!(n_calls.load(Ordering::SeqCst), 1, "what was under way was finished, not begun again");
    post(&client, &format!("/api/v1/runs/{waiting}/signal"), json!({"key": "go", "value": 8})).await;
    assert_eq!(ends(&client, &waiting, "completed").await["shared"]["out"], 8);
    let _hand = Hand::start(&server, "hand", "--pull-only").await;
    assert_eq!(ends(&client, &queued, "completed").await["shared"]["out"], "ROPE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_the_same_sqlite_file_is_refused() {
    let place = TempDir::new();
    let store = Store::File(place.path().join("store.db"));
    let server = Server::start_at(place, store, &[], &[]).await;
    let place = TempDir::new();
    let second = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["serve", "--listen", "127.0.0.1:0", "--store", &server.store().address()])
        .current_dir(place.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert_ne!(second.status.code(), Some(0), "{said}");
    assert!(said.contains("is in use by") && said.contains("a file of its own"), "{said}");
    let client = server.client();
    publish(&client, "pull", calls("s", "queue")).await;
    start(&client, "pull", json!({})).await;
}
