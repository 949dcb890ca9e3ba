//! Services and their settings.

use serde_json::json;

use crate::test_server::TestServer;

#[tokio::test]
async fn a_service_says_how_often_its_calls_are_asked_again() {
    let host = TestServer::new().await;
    host.get("/api/v1/services/video").await.refused(404, "unknown_service");
    let set = host.put("/api/v1/services/video", json!({ "recheck_ms": 100 })).await.ok();
    assert_eq!(
        (&set["name"], &set["recheck_ms"], &set["n_workers"]),
        (&json!("video"), &json!(100), &json!(0))
    );
    host.publish("film", json!({ "nodes": [{ "id": "v", "type": "video" }], "edges": [] })).await;
    let run = host.start("film", json!({})).await;
    // Later settings apply to later runs.
    host.put("/api/v1/services/video", json!({})).await.ok();
    let job = host.claim("video").await;
    assert_eq!(host.finish(&job, json!({ "outcome": "suspended", "memo": { "id": 9 } })).await, "ok");
    let again = host.claim("video").await;
    assert_eq!((&again["memo"], &again["attempt"]), (&json!({ "id": 9 }), &json!(1)));
    assert_eq!(host.finish(&again, json!({ "outcome": "done", "result": 1 })).await, "ok");
    assert_eq!(host.ended(&run).await["status"], "completed");
    // A service without settings and without workers is unknown.
    host.get("/api/v1/services/video").await.refused(404, "unknown_service");
}

#[tokio::test]
async fn services_are_listed_with_who_serves_them() {
    let host = TestServer::new().await;
    let worker = json!({ "id": "w", "url": "", "services": ["audio", "video"], "type": "async" });
    host.post("/api/workers/register", worker).await.ok();
    host.put("/api/v1/services/text", json!({ "recheck_ms": 86_400_000 })).await.ok();
    let listed = host.get("/api/v1/services").await.ok();
    let rows: Vec<_> =
        listed["items"].as_array().unwrap().iter().map(|row| (&row["name"], &row["n_workers"])).collect();
    let (one, none) = (json!(1), json!(0));
    assert_eq!(rows, [(&json!("audio"), &one), (&json!("text"), &none), (&json!("video"), &one)]);
}

#[tokio::test]
async fn invalid_settings_are_named() {
    let host = TestServer::new().await;
    for bad in [0, 99, 86_400_001] {
        let response = host.put("/api/v1/services/video", json!({ "recheck_ms": bad })).await;
        assert_eq!(response.refused(422, "invalid_body")["errors"][0]["path"], "recheck_ms");
    }
    for bad in [json!({ "recheck_ms": -1 }), json!({ "recheck_ms": "1s" })] {
        host.put("/api/v1/services/video", bad).await.refused(422, "invalid_body");
    }
    host.put("/api/v1/services/video", json!({ "recheck": 1 })).await.refused(422, "unknown_field");
    host.put(&format!("/api/v1/services/{}", "x".repeat(300)), json!({})).await.refused(422, "invalid_body");
    host.get("/api/v1/services/video").await.refused(404, "unknown_service");
}
