//! The queue platform surface as its clients know it: the paths of a task through success, retry and dead letters, and
//! the list of checks that is made by hand, with a real server and the demonstration worker in a process of its own.

use serde_json::{Value, json};
use windlass_sdk::Client;

use crate::http::{expect, get, post, seen};
use crate::shell::{KilledOnDrop, TestShell};

/// A server, and `windlass worker --demo` beside it, which is known to be there.
async fn stage() -> (TestShell, Client, KilledOnDrop) {
    let shell = TestShell::open().await;
    let worker = shell.worker(&["--demo"]);
    let client = shell.server.client();
    seen("the worker", async || (get(&client, "/api/v1/workers").await["count"] == 1).then_some(())).await;
    (shell, client, worker)
}

fn task(name: &str, priority: i32, max_retries: u32) -> Value {
    json!({"name": name, "type": "immediate", "queue_name": "default", "priority": priority,
        "payload": {"k": "v"}, "dedup_key": "", "max_retries": max_retries})
}

/// Creates a task, which must be answered as new; its id.
async fn created(client: &Client, body: Value) -> String {
    let answer = expect(client, "POST", "/api/v1/tasks", Some(body), 201).await;
    assert_eq!(answer["status"], "queued", "{answer}");
    answer["task_id"].as_str().unwrap().to_owned()
}

/// Waits until a task is shown so.
async fn shown(client: &Client, id: &str, status: &str) -> Value {
    seen(&format!("{id} {status}"), async || {
        let detail = get(client, &format!("/api/v1/tasks/{id}")).await;
        (detail["display_status"] == status).then_some(detail)
    })
    .await
}

async fn runs(client: &Client, id: &str) -> Vec<Value> {
    let answer = get(client, &format!("/api/v1/tasks/{id}/runs")).await;
    assert_eq!(answer["task_id"], id);
    let runs = answer["runs"].as_array().unwrap().clone();
    assert_eq!(answer["count"], runs.len());
    runs
}

#[tokio::test(flavor = "multi_thread")]
async fn an_even_priority_succeeds_at_once() {
    let (_desk, client, _worker) = stage().await;
    let id = created(&client, task("even", 2, 3)).await;
    let detail = shown(&client, &id, "completed").await;
    assert_eq!(detail["task"]["status"], "completed");
    let run = &detail["latest_run"];
    assert_eq!((run["status"].as_str(), run["attempt"].as_u64()), (Some("succeeded"), Some(1)), "{run}");
    assert!(run["worker_id"].is_string() && run["started_at"].is_string(), "{run}");
    assert!(run["finished_at"].is_string() && run["next_retry_at"].is_null(), "{run}");
    assert_eq!(run["result"], Value::Null);
    assert_eq!(runs(&client, &id).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_odd_priority_fails_once_and_then_succeeds() {
    let (_desk, client, _worker) = stage().await;
    let body = task("odd", 1, 3);
    let id = created(&client, body).await;
    let waiting = shown(&client, &id, "retrying").await;
    assert_eq!(waiting["task"]["status"], "queued", "{waiting}");
    let first = runs(&client, &id).await.remove(0);
    assert_eq!((first["status"].as_str(), first["attempt"].as_u64()), (Some("retrying"), Some(1)), "{first}");
    assert!(first["next_retry_at"].is_string() && first["finished_at"].is_string(), "{first}");
    let detail = shown(&client, &id, "completed").await;
    assert_eq!(detail["latest_run"]["attempt"], 2);
    assert_eq!(detail["latest_run"]["status"], "succeeded");
    let runs = runs(&client, &id).await;
    assert_eq!(runs.len(), 2);
    // Not before its time.
    assert!(runs[1]["started_at"].as_str() >= runs[0]["next_retry_at"].as_str(), "{runs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_attempt_that_fails_leaves_a_dead_letter_that_can_be_replayed() {
    let (_desk, client, _worker) = stage().await;
    let id = created(&client, task("dead", 1, 1)).await;
    let detail = shown(&client, &id, "failed").await;
    assert_eq!(detail["task"]["status"], "failed");
    assert_eq!(detail["latest_run"]["status"], "failed");
    let letters = get(&client, "/api/v1/queues/default/dlq?count=50").await;
    assert_eq!((letters["queue"].as_str(), letters["count"].as_u64()), (Some("default"), Some(1)));
    let letter: Value = serde_json::from_str(letters["items"][0].as_str().unwrap()).unwrap();
    assert_eq!(letter["task_id"], id.as_str());
    assert_eq!((letter["attempt"].as_u64(), letter["max_retries"].as_u64()), (Some(1), Some(1)));
    assert_eq!((&letter["payload"], letter["queue_name"].as_str()), (&json!({"k": "v"}), Some("default")));
    assert!(letter["task_run_id"].is_string() && !letter["error"].is_null(), "{letter}");
    let path = "/api/v1/queues/default/dlq/replay";
    let replayed = post(&client, path, json!({"count": 1, "override_priority": 2})).await;
    assert_eq!((replayed["queue"].as_str(), replayed["moved"].as_u64()), (Some("default"), Some(1)));
    let detail = shown(&client, &id, "completed").await;
    assert_eq!((&detail["task"]["priority"], &detail["latest_run"]["attempt"]), (&json!(2), &json!(2)));
    assert_eq!(get(&client, "/api/v1/queues/default/dlq").await["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_checks_holds_as_it_stands() {
    // 1. Services are started.
    let (_desk, client, _worker) = stage().await;
    // 2. A task that succeeds, created as documented; asked for again while it is open it is the same one.
    let body = json!({"name": "test-success", "type": "immediate", "queue_name": "default", "priority": 2,
        "payload": {"k": "v"}, "dedup_key": "success-1", "max_retries": 3});
    let success = created(&client, body).await;
    // 3. Its state.
    let detail = shown(&client, &success, "completed").await;
    assert_eq!(detail["latest_run"]["status"], "succeeded");
    for field in
        ["id", "name", "type", "queue_name", "priority", "payload", "max_retries", "status", "dedup_key"]
    {
        assert!(!detail["task"][field].is_null(), "{field}: {detail}");
    }
    // 4. One that fails first, and succeeds when it is tried again.
    let odd = json!({"name": "test-retry", "type": "immediate", "queue_name": "default", "priority": 3,
        "payload": {"k": "v"}, "dedup_key": "retry-1", "max_retries": 3});
    let again = created(&client, odd.clone()).await;
    shown(&client, &again, "retrying").await;
    let duplicate = expect(&client, "POST", "/api/v1/tasks", Some(odd), 201).await;
    assert_eq!(duplicate["task_id"], again.as_str());
    // 5. One that goes to the dead letters at once.
    let dead = created(&client, task("test-dlq", 1, 1)).await;
    shown(&client, &dead, "failed").await;
    // 6. They are seen.
    let letters = get(&client, "/api/v1/queues/default/dlq?count=50").await;
    assert_eq!(letters["items"].as_array().unwrap().len(), 1);
    // 7. And replayed.
    let body = json!({"count": 1, "override_priority": 2});
    assert_eq!(post(&client, "/api/v1/queues/default/dlq/replay", body).await["moved"], 1);
    shown(&client, &dead, "completed").await;
    assert_eq!(shown(&client, &again, "completed").await["latest_run"]["attempt"], 2);
    // 8. The workers.
    let workers = get(&client, "/api/v1/workers").await;
    let worker = &workers["workers"][0];
    assert_eq!((&workers["count"], &worker["status"]), (&json!(1), &json!("online")));
    assert_eq!(worker["queues"], json!(["default"]));
    for field in ["id", "name", "heartbeat_at", "capacity"] {
        assert!(!worker[field].is_null(), "{field}: {worker}");
    }
}
