//! Changes on this surface leave a line in the audit.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::support::task;
use crate::test_server::TestServer;

async fn audit(host: &TestServer) -> Vec<(String, String, u64)> {
    let response = host.get("/api/v1/audit?order=oldest").await.ok();
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    let lines = response["items"].as_array().unwrap().iter();
    lines.map(|line| (text(line, "what"), text(line, "subject"), line["status"].as_u64().unwrap())).collect()
}

#[tokio::test]
async fn requests_of_people_are_audited_and_those_of_workers_are_not() {
    let host = TestServer::new().await;
    let dead = host.dead_letter(task("a"), "broken").await;
    host.post("/api/v1/queues/default/dlq/replay", json!({ "ids": [dead] })).await.ok();
    let job = host.claim().await;
    host.finish(&job, json!({ "outcome": "failed", "error": "again", "retryable": false })).await;
    let discard = json!({ "count": 1, "reason": "it never worked" });
    host.post("/api/v1/queues/default/dlq/discard", discard).await.ok();
    host.post("/api/v1/queues/default/pause", json!({})).await.ok();
    let id = host.create(task("b")).await;
    host.post(&format!("/api/v1/tasks/{id}/cancel"), json!({})).await.ok();
    host.post(&format!("/api/v1/tasks/{id}/retry"), json!({})).await.ok();
    host.put("/api/v1/queues/default", json!({ "limits": { "concurrency": 3 } })).await.ok();
    host.post("/api/v1/queues/default/resume", json!({})).await.ok();
    let schedule = json!({ "name": "nightly", "cron_expr": "0 3 * * *", "task": task("c") });
    let schedule = host.post("/api/v1/schedules", schedule).await.ok()["id"].as_str().unwrap().to_owned();
    let at = format!("/api/v1/schedules/{schedule}");
    host.raw("PATCH", &at, json!({ "enabled": false }).to_string()).await.ok();
    host.post(&format!("{at}/toggle"), json!({})).await.ok();
    host.post(&format!("{at}/trigger"), json!({})).await.ok();
    host.raw("DELETE", &at, Body::empty()).await.ok();
    host.post("/api/v1/schedules", json!({ "cron_expr": "never" })).await.no(400, "invalid_fields");
    host.post("/api/v1/schedules/preview", json!({ "cron_expr": "0 3 * * *" })).await.ok();
    host.post("/api/v1/workers/nobody/drain", json!({})).await.no(404, "unknown_worker");
    let line = |what: &str, subject: &str, status| (what.to_owned(), subject.to_owned(), status);
    let expected = [
        line("dlq.replay", "default", 200),
        line("dlq.discard", "default", 200),
        line("queue.pause", "default", 200),
        line("job.cancel", &id, 200),
        line("job.retry", &id, 200),
        line("queue.limit", "default", 200),
        line("queue.resume", "default", 200),
        line("schedule.create", &schedule, 201),
        line("schedule.change", &schedule, 200),
        line("schedule.toggle", &schedule, 200),
        line("schedule.trigger", &schedule, 200),
        line("schedule.delete", &schedule, 200),
        line("schedule.create", "", 400),
        line("worker.drain", "nobody", 404),
    ];
    assert_eq!(audit(&host).await, expected);
    let response = host.get("/api/v1/audit?what=dlq.discard").await.ok();
    assert_eq!(response["items"][0]["reason"], "it never worked");
    let response = host.get("/api/v1/audit?what=worker.drain").await.ok();
    assert_eq!(response["items"][0]["code"], "unknown_worker", "the form of the surface does not hide it");
}

#[tokio::test]
async fn a_name_that_cannot_be_read_is_refused_in_the_form_of_the_surface() {
    let host = TestServer::new().await;
    let request =
        Request::builder().method("POST").uri("/api/v1/queues/q/pause").header("X-Windlass-Actor", "");
    let response = host.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(response.no(400, "bad_header"), ["X-Windlass-Actor"]);
    assert_eq!(host.get("/api/v1/queues/q").await.ok()["paused"], false);
    assert_eq!(audit(&host).await, [("queue.pause".to_owned(), "q".to_owned(), 400)]);
}
