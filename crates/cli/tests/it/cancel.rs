//! Cancellation of a run in every state: it ends at once, and no worker is called afterwards.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_sdk::worker::{HandlerOutcome, ServiceCall};
use windlass_sdk::{Client, Worker};

use crate::http::{ask, ends, expect, get, journal, node_is, post, seen, start};
use crate::server::{Server, TempDir, publish};

/// How long a run may take to end once it is canceled, on a busy machine.
const SOON: Duration = Duration::from_secs(10);
const HOUR_MS: u64 = 3_600_000;

fn one(node: Value) -> Value {
    json!({"start": "a", "nodes": {"a": node, "z": {"kind": "local", "func": "echo"}},
        "edges": [{"from": "a", "to": "z"}]})
}

/// Cancels a run and sees it end.
async fn cancel(client: &Client, run: &str) {
    let begun = Instant::now();
    post(client, &format!("/api/v1/runs/{run}/cancel"), json!({"reason": "no longer needed", "by": "ann"}))
        .await;
    let ended = ends(client, run, "canceled").await;
    assert!(begun.elapsed() < SOON, "{run} took {:?}", begun.elapsed());
    for (node, state) in ended["node_states"].as_object().unwrap() {
        let status = state["status"].as_str().unwrap();
        assert!(
            ["pending", "completed", "canceled", "skipped", "failed"].contains(&status),
            "{node}: {state}"
        );
    }
    quiet(client, run).await;
}

/// Nothing was granted after a run was canceled, no attempt is open, and its end is the last thing that happened.
async fn quiet(client: &Client, run: &str) {
    let events = journal(client, run).await;
    let canceled = events.iter().position(|event| event["e"] == "canceling").unwrap();
    assert_eq!(events[canceled]["reason"], "no longer needed", "{run}");
    let after = &events[canceled..];
    let asked = after.iter().find(|event| ["granted", "entered"].contains(&event["e"].as_str().unwrap()));
    assert!(asked.is_none(), "{run}: {asked:?} after it was cancelled");
    assert_eq!(after.iter().filter(|event| event["e"] == "ended").count(), 1, "{run}: {after:?}");
    let attempts = get(client, &format!("/api/v1/runs/{run}/attempts")).await;
    for attempt in attempts["items"].as_array().unwrap() {
        assert!(attempt["finished_at"].is_string(), "{run}: {attempt} is open");
    }
    // Canceling an ended run is a no-op.
    let (again, answer) = ask(client, "POST", &format!("/api/v1/runs/{run}/cancel"), Some(json!({}))).await;
    assert!(again == 200 || again == 409, "{again}: {answer}");
    assert_eq!(get(client, &format!("/api/v1/runs/{run}")).await["status"], "canceled");
}

/// Publishes a flow of this one node, starts it, waits until the node is in this state, and cancels the run.
async fn cancel_when(client: &Client, name: &str, node: Value, status: &str) -> String {
    publish(client, name, one(node)).await;
    let run = start(client, name, json!({"items": [1, 2, 3, 4]})).await;
    node_is(client, &run, "a", status).await;
    cancel(client, &run).await;
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn any_waiting_run_is_canceled() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let ms = HOUR_MS;
    let timer = json!({"kind": "timer", "params": {"delay_ms": ms}});
    cancel_when(&client, "timer", timer, "waiting").await;
    cancel_when(&client, "signal", json!({"kind": "wait_event", "params": {"signal_key": "k"}}), "waiting")
        .await;
    let approval = json!({"kind": "approval", "params": {"assignees": ["ann"]}});
    cancel_when(&client, "approval", approval, "waiting").await;
    assert_eq!(get(&client, "/api/v1/approvals").await["items"], json!([]));
    let backoff = json!({"kind": "local", "func": "fail", "max_retries": 3, "wait_ms": ms});
    let run = cancel_when(&client, "backoff", backoff, "retrying").await;
    assert_eq!(journal(&client, &run).await.iter().filter(|event| event["e"] == "granted").count(), 1);
    let slept = json!({"kind": "local", "func": "sleep", "params": {"ms": ms}});
    cancel_when(&client, "suspended", slept.clone(), "suspended").await;
    let each = json!({
        "kind": "foreach", "exec_type": "local_func", "func": "sleep", "params": {"ms": ms},
        "prep": {"input_key": "$params.items"}, "parallel_mode": "concurrent", "max_parallel": 2,
    });
    let run = cancel_when(&client, "fan", each, "running").await;
    let granted = journal(&client, &run).await.iter().filter(|event| event["e"] == "granted").count();
    assert_eq!(granted, 2, "those that waited for room never began");
    let inside = json!({"kind": "subflow", "subflow": {"start": "s", "nodes": {"s": slept}, "edges": []}});
    cancel_when(&client, "inside", inside, "running").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_advanced_by_hand_or_paused() {
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "timer", one(json!({"kind": "timer", "params": {"delay_ms": HOUR_MS}}))).await;
    let begun = expect(&client, "POST", "/api/v1/flows/timer/runs", Some(json!({"manual": true})), 201).await;
    cancel(&client, begun["id"].as_str().unwrap()).await;

    let run = start(&client, "timer", json!({})).await;
    node_is(&client, &run, "a", "waiting").await;
    assert_eq!(post(&client, &format!("/api/v1/runs/{run}/pause"), json!({})).await["status"], "paused");
    cancel(&client, &run).await;

    // The older surface cancels as well as the native one, and has a row for it.
    let run = start(&client, "timer", json!({})).await;
    assert_eq!(post(&client, &format!("/api/tasks/cancel?id={run}"), json!({})).await, json!({"ok": "1"}));
    ends(&client, &run, "canceled").await;
    let rows = get(&client, &format!("/api/tasks/runs?task_id={run}")).await;
    assert!(rows.as_array().unwrap().iter().any(|row| row["status"] == "canceled"), "{rows}");
    expect(&client, "POST", "/api/tasks/cancel?id=task-nobody", Some(json!({})), 404).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_ends_with_its_parent() {
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "child", one(json!({"kind": "timer", "params": {"delay_ms": HOUR_MS}}))).await;
    publish(&client, "parent", one(json!({"kind": "flow_ref", "flow": "child"}))).await;
    let run = start(&client, "parent", json!({})).await;
    let child = seen("the child", async || {
        let found = get(&client, "/api/v1/runs?flow=child&status=waiting").await;
        found["items"][0]["id"].as_str().map(str::to_owned)
    })
    .await;
    cancel(&client, &run).await;
    ends(&client, &child, "canceled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_shown_before_and_after_its_claim() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let job = json!({"service": "s", "exec_type": "queue", "max_retries": 3});
    cancel_when(&client, "unclaimed", job.clone(), "running").await;
    let claim = json!({"worker_id": "w", "services": ["s"]});
    let none = post(&client, "/api/v1/jobs/claim", claim.clone()).await;
    assert_eq!(none["jobs"], json!([]), "a cancelled job is for nobody");

    publish(&client, "claimed", one(job)).await;
    let run = start(&client, "claimed", json!({})).await;
    let mut waiting = claim.clone();
    waiting["wait_ms"] = json!(30_000);
    let claimed = post(&client, "/api/v1/jobs/claim", waiting).await;
    let (id, lease) = (&claimed["jobs"][0]["id"], &claimed["jobs"][0]["lease"]);
    let leases = json!({"leases": [lease]});
    assert_eq!(post(&client, "/api/v1/jobs/extend", leases.clone()).await["results"][0]["verdict"], "ok");
    post(&client, &format!("/api/v1/runs/{run}/cancel"), json!({"reason": "no longer needed"})).await;
    // Its worker hears of it when it next says that it is at work.
    seen("the cancel notice", async || {
        let heard = post(&client, "/api/v1/jobs/extend", leases.clone()).await;
        (heard["results"][0]["verdict"] == "canceled").then_some(())
    })
    .await;
    let finish = json!({"results": [{"id": id, "lease": lease, "outcome": "done", "result": 1}]});
    let late = post(&client, "/api/v1/jobs/finish", finish).await;
    assert_eq!(late["results"][0]["verdict"], "canceled", "{late}");
    ends(&client, &run, "canceled").await;
    quiet(&client, &run).await;
    assert_eq!(post(&client, "/api/v1/jobs/claim", claim).await["jobs"], json!([]));
}

/// A worker, with the calls that it received.
struct Called {
    begun: Arc<Notify>,
    /// The id of the last call.
    call: Arc<Mutex<Option<String>>>,
    _stop: DropGuard,
}

async fn called(client: &Client, answer: Option<HandlerOutcome>) -> Called {
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let (begun, stop) = (Arc::new(Notify::new()), CancellationToken::new());
    let told = begun.clone();
    let call = Arc::new(Mutex::new(None));
    let heard = call.clone();
    let worker = Worker::new(client.clone(), "slow")
        .push_only()
        .grace(Duration::ZERO)
        .listen(listener, url)
        .service("slow", move |asked: ServiceCall| {
            *heard.lock().unwrap() = asked.call;
            told.notify_one();
            let answer = answer.clone();
            async move {
                match answer {
                    Some(answer) => answer,
                    None => std::future::pending().await,
                }
            }
        });
    tokio::spawn(worker.run(stop.clone()));
    seen("the worker", async || {
        let workers = client.workers().all().await.unwrap();
        (!workers.is_empty()).then_some(())
    })
    .await;
    Called { begun, call, _stop: stop.drop_guard() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_worker_is_busy_with() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let worker = called(&client, None).await;
    publish(&client, "push", one(json!({"service": "slow", "max_retries": 3}))).await;
    let run = start(&client, "push", json!({})).await;
    worker.begun.notified().await;
    cancel(&client, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_its_worker_suspended() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let later =
        HandlerOutcome::Suspended { memo: json!({"at": 1}), recheck: Some(Duration::from_millis(HOUR_MS)) };
    let worker = called(&client, Some(later)).await;
    publish(&client, "push", one(json!({"service": "slow", "max_retries": 3}))).await;
    let run = start(&client, "push", json!({})).await;
    worker.begun.notified().await;
    node_is(&client, &run, "a", "suspended").await;
    let call = worker.call.lock().unwrap().clone().expect("the worker was told the id of its call");
    cancel(&client, &run).await;
    let report = post(&client, &format!("/api/v1/calls/{call}/report"), json!({"result": 1})).await;
    assert_eq!(report["verdict"], "lost", "{report}");
    quiet(&client, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_and_what_it_started() {
    let (server, place) = (Server::start(&["--allow-scripts"]).await, TempDir::new());
    let client = server.client();
    let told = place.path().join("pids");
    let code = format!("sleep 3600 & echo $$ $! > {0}.new; mv {0}.new {0}; wait", told.display());
    let script = json!({"language": "sh", "code": code, "timeout_ms": 600_000});
    publish(&client, "script", one(json!({"exec_type": "local_script", "script": script}))).await;
    let run = start(&client, "script", json!({})).await;
    let pids = seen("the script", async || std::fs::read_to_string(&told).ok()).await;
    cancel(&client, &run).await;
    for pid in pids.split_whitespace() {
        seen("the end of the script and its child", async || is_gone(pid).then_some(())).await;
    }
}

/// Whether a process has ended, buried or not.
fn is_gone(pid: &str) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid).join("status"));
    status.map_or(true, |status| status.lines().any(|line| line.starts_with("State:") && line.contains('Z')))
}
