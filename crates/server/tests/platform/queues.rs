//! Queues: how full they are, paused and resumed, held back.

use serde_json::{Value, json};

use crate::support::{task, with};
use crate::test_server::TestServer;

#[tokio::test]
async fn a_queue_says_how_full_it_is() {
    let host = TestServer::new().await;
    for _ in 0..3 {
        host.create(task("a")).await;
    }
    let later = json!({ "name": "a", "type": "scheduled", "queue_name": "default", "run_at": "2199-01-01T00:00:00Z" });
    host.create(later).await;
    let job = host.claim().await;
    let queue = host.get("/api/v1/queues/default").await.ok();
    assert_eq!(queue["depth"], json!({ "pending": 1, "queued": 2, "running": 1 }));
    assert_eq!(
        (&queue["open"], &queue["paused"], &queue["dead_letters"]),
        (&json!(4), &json!(false), &json!(0))
    );
    assert!(queue["oldest_age_ms"].is_u64());
    assert_eq!(queue["limits"], json!({}));
    assert_eq!(queue["stats"]["last_10s"]["created"], 4);
    assert_eq!(queue["stats"]["last_minute"]["started"], 1);
    assert!(queue["stats"]["last_hour"]["per_second"]["created"].is_f64());
    host.finish(&job, json!({ "outcome": "done" })).await;
    let queue = host.get("/api/v1/queues/default").await.ok();
    assert_eq!(queue["stats"]["last_hour"]["succeeded"], 1);
    assert!(queue["stats"]["last_hour"]["work_ms"]["p50"].is_u64());
    let all = host.get("/api/v1/queues").await.ok();
    assert_eq!((&all["count"], &all["queues"][0]["name"]), (&json!(1), &json!("default")));
    let unused = host.get("/api/v1/queues/unused").await.ok();
    assert_eq!((&unused["open"], &unused["oldest_age_ms"]), (&json!(0), &Value::Null));
}

#[tokio::test]
async fn a_paused_queue_hands_out_nothing() {
    let host = TestServer::new().await;
    let queue = host.post("/api/v1/queues/default/pause", json!({})).await.ok();
    assert_eq!(queue["paused"], true);
    host.create(task("a")).await;
    let claim = json!({ "worker_id": "w-1", "queues": ["default"] });
    assert_eq!(host.post("/api/v1/jobs/claim", claim.clone()).await.ok()["jobs"], json!([]));
    assert_eq!(host.post("/api/v1/queues/default/resume", json!({})).await.ok()["paused"], false);
    assert_eq!(host.post("/api/v1/jobs/claim", claim).await.ok()["jobs"].as_array().unwrap().len(), 1);
    for queue in ["two%20words", "%00"] {
        host.post(&format!("/api/v1/queues/{queue}/pause"), json!({})).await.no(400, "bad_path");
    }
}

#[tokio::test]
async fn limits_are_set_as_a_whole_or_one_by_one() {
    let host = TestServer::new().await;
    let path = "/api/v1/queues/default";
    let put = async |body: Value| host.raw("PUT", path, body.to_string()).await;
    let patch = async |body: Value| host.raw("PATCH", path, body.to_string()).await;
    let rate = json!({ "count": 10, "per_ms": 1_000, "burst": 2 });
    let response = put(json!({ "limits": { "concurrency": 4, "rate": rate, "fair": true } })).await.ok();
    assert_eq!(response["limits"], json!({ "concurrency": 4, "rate": rate, "fair": true }));
    let response = patch(json!({ "limits": { "key_concurrency": 1, "rate": null } })).await.ok();
    assert_eq!(response["limits"], json!({ "concurrency": 4, "key_concurrency": 1, "fair": true }));
    let response = put(json!({ "paused": true })).await.ok();
    assert_eq!((&response["paused"], &response["limits"]["concurrency"]), (&json!(true), &json!(4)));
    assert_eq!(put(json!({ "limits": {} })).await.ok()["limits"], json!({}));
    assert_eq!(host.get(path).await.ok()["paused"], true);
}

#[tokio::test]
async fn limits_that_are_changed_at_once_are_all_kept() {
    let host = TestServer::new().await;
    let path = "/api/v1/queues/default";
    let patch = async |body: Value| host.raw("PATCH", path, body.to_string()).await.ok();
    let rate = json!({ "count": 10, "per_ms": 1_000 });
    for n in 1..=20 {
        tokio::join!(
            patch(json!({ "limits": { "concurrency": n } })),
            patch(json!({ "limits": { "key_concurrency": n } })),
            patch(json!({ "limits": { "rate": rate }, "paused": true })),
            patch(json!({ "limits": { "fair": true } })),
        );
        let response = host.get(path).await.ok();
        let expected = json!({ "concurrency": n, "key_concurrency": n, "rate": rate, "fair": true });
        assert_eq!((&response["limits"], &response["paused"]), (&expected, &json!(true)));
        host.raw("PUT", path, json!({ "limits": {}, "paused": false }).to_string()).await.ok();
    }
}

#[tokio::test]
async fn a_limit_holds_a_queue_back() {
    let host = TestServer::new().await;
    let limits = json!({ "limits": { "concurrency": 1 } }).to_string();
    host.raw("PUT", "/api/v1/queues/default", limits).await.ok();
    host.create(task("a")).await;
    host.create(with("b", json!({ "limit_key": "k" }))).await;
    let job = host.claim().await;
    let claim = json!({ "worker_id": "w-2", "queues": ["default"], "max": 10 });
    assert_eq!(host.post("/api/v1/jobs/claim", claim).await.ok()["jobs"], json!([]));
    host.finish(&job, json!({ "outcome": "done" })).await;
    assert_eq!(host.claim().await["service"], "b");
}

#[tokio::test]
async fn bad_limits_are_named() {
    let host = TestServer::new().await;
    let body = json!({ "paused": "yes", "limits": {
        "concurrency": 0, "rate": { "count": 0, "brst": 1 }, "key_rate": 5, "concurency": 1, "fair": 1
    } });
    let response = host.raw("PUT", "/api/v1/queues/a", body.to_string()).await;
    let expected = [
        "$.limits.concurrency",
        "$.limits.fair",
        "$.limits.key_rate",
        "$.limits.rate.count",
        "$.limits.rate.per_ms",
        "$.paused",
    ];
    assert_eq!(response.no(400, "invalid_fields"), expected);
    assert_eq!(host.raw("PUT", "/api/v1/queues/a", "{}").await.no(400, "invalid_fields"), ["$"]);
    let long = json!({ "limits": { "rate": { "count": 1, "per_ms": 86_400_001 } } });
    let response = host.raw("PUT", "/api/v1/queues/a", long.to_string()).await;
    assert_eq!(response.no(400, "invalid_fields"), ["$.limits.rate.per_ms"]);
    assert_eq!(host.get("/api/v1/queues").await.ok()["count"], 0);
}
