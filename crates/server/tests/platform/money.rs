//! Tasks that cost something: charged when they are created, settled or refunded when they end.

use serde_json::{Value, json};

use crate::support::with;
use crate::test_server::TestServer;

/// A server with an account and a price for tasks called `tts`.
async fn host(amount: i64) -> TestServer {
    let host = TestServer::new().await;
    host.post("/api/v1/accounts", json!({ "id": "acme" })).await.ok();
    let deposit = json!({ "amount": amount, "key": "first" });
    host.post("/api/v1/accounts/acme/deposit", deposit).await.ok();
    let price = json!({ "unit_price": 2, "units": "$params.seconds", "actual_units": "$result.seconds" });
    host.raw("PUT", "/api/v1/prices/tts", price.to_string()).await.ok();
    host
}

fn paid(seconds: Value) -> Value {
    with("tts", json!({ "account": "acme", "payload": { "seconds": seconds } }))
}

impl TestServer {
    async fn money(&self) -> (i64, i64) {
        let shown = self.get("/api/v1/accounts/acme").await.ok();
        (shown["balance"].as_i64().unwrap(), shown["held"].as_i64().unwrap())
    }

    async fn kinds(&self) -> Vec<String> {
        let rows = self.get("/api/v1/accounts/acme/ledger?order=oldest").await.ok();
        let rows = rows["items"].as_array().unwrap().iter();
        rows.map(|row| row["kind"].as_str().unwrap().to_owned()).collect()
    }

    async fn sound(&self) {
        let found = self.post("/api/v1/doctor", json!({})).await.ok();
        assert_eq!(found["findings"], json!([]), "{found}");
    }
}

#[tokio::test]
async fn a_task_is_charged_when_it_is_created_and_settled_by_its_result() {
    let host = host(100).await;
    let id = host.create(paid(json!(20))).await;
    assert_eq!(host.money().await, (60, 40));
    let job = host.claim().await;
    host.finish(&job, json!({ "outcome": "done", "result": { "seconds": 5 } })).await;
    assert_eq!(host.money().await, (90, 0));
    assert_eq!(host.task(&id).await["task"]["cost"], json!({ "estimated": 40, "actual": 10 }));
    let row = host.get("/api/v1/accounts/acme/ledger?limit=1").await.ok()["items"][0].clone();
    assert_eq!((&row["kind"], &row["task"], &row["run"]), (&json!("settle"), &json!(id), &Value::Null));
    // Without an account or without a price, nothing is charged.
    host.create(with("tts", json!({ "payload": { "seconds": 9 } }))).await;
    host.create(with("free", json!({ "account": "acme" }))).await;
    assert_eq!(host.money().await, (90, 0));
    host.sound().await;
}

#[tokio::test]
async fn a_task_that_fails_is_refunded_and_a_replay_is_charged_again() {
    let host = host(100).await;
    let mut task = paid(json!(20));
    task["max_retries"] = json!(2);
    task["backoff"] = json!({ "kind": "fixed", "base_ms": 0, "cap_ms": 0, "jitter": false });
    let id = host.create(task).await;
    for held in [40, 40] {
        let job = host.claim().await;
        assert_eq!(host.money().await.1, held);
        host.finish(&job, json!({ "outcome": "failed", "error": "no voice" })).await;
    }
    assert_eq!(host.task(&id).await["display_status"], "failed");
    assert_eq!(
        (host.money().await, host.kinds().await),
        ((100, 0), ["deposit", "charge", "refund"].map(str::to_owned).to_vec())
    );
    host.sound().await;
    let replay = json!({ "count": 1, "patch": { "seconds": 30 } });
    assert_eq!(host.post("/api/v1/queues/default/dlq/replay", replay).await.ok()["moved"], 1);
    assert_eq!(host.money().await, (40, 60));
    let job = host.claim().await;
    host.finish(&job, json!({ "outcome": "done", "result": {} })).await;
    assert_eq!((host.money().await, host.kinds().await.len()), ((40, 0), 5));
    host.sound().await;
}

#[tokio::test]
async fn a_cancelled_task_is_refunded_and_a_retry_is_charged_again() {
    let host = host(100).await;
    let id = host.create(paid(json!(20))).await;
    host.post(&format!("/api/v1/tasks/{id}/cancel"), json!({})).await.ok();
    assert_eq!(host.money().await, (100, 0));
    host.post(&format!("/api/v1/tasks/{id}/retry"), json!({})).await.ok();
    assert_eq!(host.money().await, (60, 40));
    let job = host.claim().await;
    host.post(&format!("/api/v1/tasks/{id}/cancel"), json!({})).await.ok();
    assert_eq!(host.money().await, (60, 40));
    let result =
        json!({ "id": job["id"], "lease": job["lease"], "outcome": "done", "result": { "seconds": 20 } });
    let response = host.post("/api/v1/jobs/finish", json!({ "results": [result] })).await.ok();
    assert_eq!((&response["results"][0]["verdict"], host.money().await), (&json!("canceled"), (100, 0)));
    host.sound().await;
}

#[tokio::test]
async fn a_short_balance_refuses_the_whole_batch_and_names_what_does_not_fit() {
    let host = host(100).await;
    let response = host.post("/api/v1/tasks", paid(json!(51))).await;
    assert_eq!(response.no(409, "insufficient_balance"), ["$.account"]);
    let batch = json!([paid(json!(20)), paid(json!(20)), paid(json!(20)), paid(json!(5))]);
    let response = host.post("/api/v1/tasks/batch", batch).await;
    assert_eq!(response.no(409, "insufficient_balance"), ["$[2].account"]);
    let detail = response.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("130 are needed") && detail.contains("`acme` has 100"), "{detail}");
    assert!(detail.contains("deposit at least 30"), "{detail}");
    assert_eq!((host.money().await, host.kinds().await.len()), ((100, 0), 1));
    assert_eq!(host.get("/api/v1/tasks").await.ok()["count"], 0);
    let batch = json!([paid(json!(20)), paid(json!(20)), paid(json!(10))]);
    host.post("/api/v1/tasks/batch", batch).await.ok();
    assert_eq!(host.money().await, (0, 100));
    host.sound().await;
}

#[tokio::test]
async fn a_duplicate_is_not_charged_and_what_cannot_be_counted_is_refused() {
    let host = host(100).await;
    let mut task = paid(json!(20));
    task["dedup_key"] = json!("k");
    host.create(task.clone()).await;
    host.create(task.clone()).await;
    // The duplicates cost nothing: the balance is enough for the other one.
    host.post("/api/v1/tasks/batch", json!([task, paid(json!(30)), task])).await.ok();
    assert_eq!(host.money().await, (0, 100));
    for seconds in [json!(-1), json!(1.5), json!("many"), json!([1])] {
        let response = host.post("/api/v1/tasks", paid(seconds.clone())).await;
        assert_eq!(response.no(400, "invalid_fields"), ["$.payload"], "{seconds}");
    }
    let nobody = with("tts", json!({ "account": "nobody" }));
    assert_eq!(host.post("/api/v1/tasks", nobody).await.no(400, "invalid_fields"), ["$.account"]);
    assert_eq!((host.money().await, host.kinds().await.len()), ((0, 100), 3));
}

#[tokio::test]
async fn a_dead_letter_that_its_account_cannot_pay_stays_dead() {
    let host = host(40).await;
    let id = host.dead_letter(paid(json!(20)), "no").await;
    host.create(paid(json!(15))).await;
    let response = host.post("/api/v1/queues/default/dlq/replay", json!({ "ids": [id] })).await.ok();
    assert_eq!(
        (&response["moved"], response["refused"].as_array().map(Vec::len)),
        (&json!(0), Some(1)),
        "{response}"
    );
    assert_eq!(host.task(&id).await["display_status"], "failed");
    let response = host.post(&format!("/api/v1/tasks/{id}/retry"), json!({})).await;
    response.no(409, "insufficient_balance");
    assert_eq!(host.money().await, (10, 30));
    host.sound().await;
}

#[tokio::test]
async fn a_scheduled_start_is_charged_or_not_made() {
    let host = host(50).await;
    let schedule = json!({ "cron_expr": "0 0 1 1 *", "timezone": "UTC", "enabled": true,
        "task": { "name": "tts", "queue_name": "default", "account": "acme", "payload": { "seconds": 20 } } });
    let made = host.post("/api/v1/schedules", schedule).await.ok();
    let trigger = format!("/api/v1/schedules/{}/trigger", made["id"].as_str().unwrap());
    host.post(&trigger, json!({})).await.ok();
    assert_eq!(host.money().await, (10, 40));
    let response = host.post(&trigger, json!({})).await;
    assert!(response.status.is_client_error(), "{}", response.json());
    assert_eq!(host.money().await, (10, 40));
}
