//! Tasks: created, looked at, worked on, cancelled, tried again.

use serde_json::{Value, json};

use crate::support::{task, with};
use crate::test_server::{TestServer, queued};

#[tokio::test]
async fn a_task_that_succeeds_is_told_as_the_document_has_it() {
    let host = TestServer::new().await;
    let body = json!({
        "name": "demo-task", "type": "immediate", "queue_name": "default", "priority": 2,
        "payload": { "k": "v" }, "dedup_key": "demo-001", "max_retries": 3
    });
    let response = host.post("/api/v1/tasks", body).await;
    assert_eq!((response.status.as_u16(), &response.json()["status"]), (201, &json!("queued")));
    let id = response.json()["task_id"].as_str().unwrap().to_owned();
    assert_eq!(uuid::Uuid::parse_str(&id).unwrap().hyphenated().to_string(), id);
    let job = host.claim().await;
    assert_eq!((&job["input"], &job["attempt"]), (&json!({ "k": "v" }), &json!(1)));
    assert_eq!(host.task(&id).await["display_status"], "running");
    host.finish(&job, json!({ "outcome": "done", "result": { "sum": 5 } })).await;
    let shown = host.task(&id).await;
    assert_eq!(shown["display_status"], "completed");
    let task = &shown["task"];
    for (field, value) in [
        ("id", json!(id)),
        ("name", json!("demo-task")),
        ("type", json!("immediate")),
        ("queue_name", json!("default")),
        ("priority", json!(2)),
        ("payload", json!({ "k": "v" })),
        ("max_retries", json!(3)),
        ("status", json!("completed")),
        ("dedup_key", json!("demo-001")),
    ] {
        assert_eq!(task[field], value, "{field}");
    }
    let run = &shown["latest_run"];
    for (field, value) in [
        ("id", json!(format!("{}00000001", &id[..28]))),
        ("task_id", json!(id)),
        ("attempt", json!(1)),
        ("status", json!("succeeded")),
        ("worker_id", json!("w-1")),
        ("result", json!({ "sum": 5 })),
        ("next_retry_at", Value::Null),
    ] {
        assert_eq!(run[field], value, "{field}");
    }
    for at in [
        &task["created_at"],
        &task["updated_at"],
        &run["started_at"],
        &run["finished_at"],
        &run["created_at"],
    ] {
        assert!(at.as_str().unwrap().ends_with('Z'), "{at}");
    }
}

#[tokio::test]
async fn a_task_that_fails_is_tried_again_as_a_new_run() {
    let host = TestServer::new().await;
    let id = host
        .create(with("a", json!({ "max_retries": 2, "backoff": { "kind": "fixed", "base_ms": 60_000 } })))
        .await;
    let job = host.claim().await;
    host.finish(&job, json!({ "outcome": "failed", "error": "out of paper" })).await;
    let shown = host.task(&id).await;
    assert_eq!((&shown["display_status"], &shown["task"]["status"]), (&json!("retrying"), &json!("queued")));
    assert_eq!(
        (&shown["latest_run"]["attempt"], &shown["latest_run"]["status"]),
        (&json!(2), &json!("queued"))
    );
    assert!(shown["latest_run"]["next_retry_at"].is_string());
    let runs = host.get(&format!("/api/v1/tasks/{id}/runs")).await.ok();
    assert_eq!((&runs["task_id"], &runs["count"]), (&json!(id), &json!(2)));
    assert_eq!(
        (&runs["runs"][0]["status"], &runs["runs"][0]["error"]["message"]),
        (&json!("retrying"), &json!("out of paper"))
    );
    let page = host.get(&format!("/api/v1/tasks/{id}/runs?limit=1")).await.ok();
    let rest =
        host.get(&format!("/api/v1/tasks/{id}/runs?cursor={}", page["next"].as_str().unwrap())).await.ok();
    assert_eq!((&rest["runs"][0]["attempt"], &rest["count"]), (&json!(2), &json!(1)));
    let response = host.post(&format!("/api/v1/tasks/{id}/retry"), json!({})).await.ok();
    assert_eq!(response["display_status"], "queued");
    let job = host.claim().await;
    assert_eq!(job["attempt"], 2);
    host.finish(&job, json!({ "outcome": "done" })).await;
    assert_eq!(host.task(&id).await["display_status"], "completed");
    host.post(&format!("/api/v1/tasks/{id}/retry"), json!({})).await.no(409, "task_ended");
    host.post(&format!("/api/v1/tasks/{id}/cancel"), json!({})).await.no(409, "task_ended");
}

#[tokio::test]
async fn a_worker_that_was_told_when_to_come_back_says_so() {
    let host = TestServer::new().await;
    let id = host.create(with("a", json!({ "backoff": { "kind": "fixed", "base_ms": 0 } }))).await;
    let job = host.claim().await;
    host.finish(&job, json!({ "outcome": "failed", "error": "429", "retry_after_ms": 3_600_000 })).await;
    let shown = host.task(&id).await;
    assert_eq!(shown["display_status"], "retrying");
    let at = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let waits = at(&shown["latest_run"]["next_retry_at"]) - at(&shown["latest_run"]["created_at"]);
    assert!(waits >= 3_600_000, "{waits}");
}

#[tokio::test]
async fn a_scheduled_task_waits_for_its_moment() {
    let host = TestServer::new().await;
    let body = json!({ "name": "a", "type": "scheduled", "queue_name": "default", "run_at": "2199-01-01T00:00:00+08:00" });
    let response = host.post("/api/v1/tasks", body).await;
    assert_eq!((response.status.as_u16(), &response.json()["status"]), (201, &json!("pending")));
    let id = response.json()["task_id"].as_str().unwrap().to_owned();
    let shown = host.task(&id).await;
    assert_eq!((&shown["task"]["type"], &shown["display_status"]), (&json!("scheduled"), &json!("pending")));
    assert_eq!(shown["task"]["run_at"], "2198-12-31T16:00:00.000Z");
    let response = host.post(&format!("/api/v1/tasks/{id}/cancel"), json!({})).await.ok();
    assert_eq!(
        (&response["display_status"], &response["latest_run"]["status"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
}

#[tokio::test]
async fn a_key_is_held_by_one_open_task() {
    let host = TestServer::new().await;
    let keyed = || with("a", json!({ "dedup_key": "once" }));
    let first = host.create(keyed()).await;
    let response = host.post("/api/v1/tasks", keyed()).await;
    assert_eq!(response.status, 201);
    assert_eq!(response.json(), json!({ "task_id": first, "status": "queued", "duplicate": true }));
    let batch = host.post("/api/v1/tasks/batch", json!([keyed(), task("b")])).await.ok();
    assert_eq!(batch["tasks"][0]["task_id"], first.as_str());
    assert_eq!(batch["tasks"][1]["duplicate"], Value::Null);
    let job = host.claim().await;
    host.finish(&job, json!({ "outcome": "done" })).await;
    assert_ne!(host.create(keyed()).await, first);
}

#[tokio::test]
async fn a_batch_is_answered_in_its_order() {
    let host = TestServer::new().await;
    let names: Vec<String> = (0..700).map(|n| format!("task-{n}")).collect();
    let tasks: Vec<Value> = names.iter().map(|name| task(name)).collect();
    let response = host.post("/api/v1/tasks/batch", json!(tasks)).await;
    assert_eq!((response.status.as_u16(), &response.json()["count"]), (201, &json!(700)));
    for (n, created) in response.json()["tasks"].as_array().unwrap().iter().enumerate().step_by(100) {
        assert_eq!(created["status"], "queued");
        let shown = host.task(created["task_id"].as_str().unwrap()).await;
        assert_eq!(shown["task"]["name"], names[n].as_str());
    }
}

#[tokio::test]
async fn a_batch_may_be_larger_than_other_bodies() {
    let host = TestServer::new().await;
    let large: Vec<Value> =
        (0..10).map(|n| with("a", json!({ "payload": "x".repeat(1_000_000 + n) }))).collect();
    assert_eq!(host.post("/api/v1/tasks/batch", json!(large)).await.json()["count"], 10);
    let too_large = with("a", json!({ "payload": "x".repeat(5 << 20) }));
    host.post("/api/v1/tasks", too_large).await.no(413, "too_large");
}

#[tokio::test]
async fn tasks_are_found_by_what_they_are() {
    let host = TestServer::new().await;
    let first = host.create(with("press", json!({ "payload": { "secret": 1 } }))).await;
    let other = json!({ "name": "mail", "type": "immediate", "queue_name": "letters", "priority": 7 });
    let mail = host.create(other).await;
    let job = host.claim().await;
    let list = |query: &str| {
        let path = format!("/api/v1/tasks{query}");
        let host = &host;
        async move {
            let response = host.get(&path).await.ok();
            let ids = response["tasks"]
                .as_array()
                .unwrap()
                .iter()
                .map(|task| task["id"].as_str().unwrap().to_owned());
            ids.collect::<Vec<_>>()
        }
    };
    assert_eq!(list("").await, [mail.clone(), first.clone()]);
    assert_eq!(list("?status=running").await, [first.as_str()]);
    assert_eq!(list("?status=queued,completed").await, [mail.as_str()]);
    assert_eq!(list("?status=open&queue=letters").await, [mail.as_str()]);
    assert_eq!(list("?name=press").await, [first.as_str()]);
    assert_eq!(list("?worker=w-1").await, [first.as_str()]);
    assert_eq!(list("?until=2020-01-01T00:00:00Z").await, [] as [String; 0]);
    assert_eq!(list("?since=2020-01-01T00:00:00Z").await.len(), 2);
    let page = host.get("/api/v1/tasks?limit=1").await.ok();
    assert_eq!((&page["count"], &page["tasks"][0]["priority"]), (&json!(1), &json!(7)));
    assert_eq!(page["tasks"][0]["payload"], Value::Null);
    assert_eq!(list(&format!("?limit=1&cursor={}", page["next"].as_str().unwrap())).await, [first]);
    host.finish(&job, json!({ "outcome": "done" })).await;
}

#[tokio::test]
async fn a_call_of_a_run_is_a_task_that_only_the_run_ends() {
    let host = TestServer::new().await;
    host.publish("q", queued()).await;
    let run = host.start("q", json!({ "params": { "text": "a" } })).await;
    let claim = json!({ "worker_id": "w-1", "services": ["press"], "wait_ms": 20_000 });
    assert_eq!(host.post("/api/v1/jobs/claim", claim).await.ok()["jobs"][0]["run"], run.as_str());
    let listed = host.get("/api/v1/tasks?name=press").await.ok();
    assert_eq!(listed["tasks"][0]["run_id"], run.as_str());
    let id = listed["tasks"][0]["id"].as_str().unwrap().to_owned();
    host.post(&format!("/api/v1/tasks/{id}/cancel"), json!({})).await.no(409, "task_of_run");
    host.post(&format!("/api/v1/tasks/{id}/retry"), json!({})).await.no(409, "task_of_run");
}

#[tokio::test]
async fn unknown_tasks_and_routes_get_404() {
    let host = TestServer::new().await;
    for id in ["00000000-0000-0000-0000-000000000001", "x", "%00", "job_1", "%F0%9F%9A%80"] {
        host.get(&format!("/api/v1/tasks/{id}")).await.no(404, "unknown_task");
        host.get(&format!("/api/v1/tasks/{id}/runs")).await.no(404, "unknown_task");
        host.post(&format!("/api/v1/tasks/{id}/cancel"), json!({})).await.no(404, "unknown_task");
        host.post(&format!("/api/v1/tasks/{id}/retry"), json!({})).await.no(404, "unknown_task");
    }
    host.get("/api/v1/tasks/a/b/c").await.no(404, "unknown_route");
    host.raw("DELETE", "/api/v1/tasks", "").await.no(405, "method_not_allowed");
}
