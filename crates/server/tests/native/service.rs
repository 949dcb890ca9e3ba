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
    for (field, bad) in [
        ("timeout_ms", json!({ "timeout_ms": 99 })),
        ("timeout_ms", json!({ "timeout_ms": 2_592_000_001_u64 })),
        ("calls_max", json!({ "calls_max": 0 })),
        ("calls_max", json!({ "calls_max": 100_001 })),
        ("until_reported", json!({ "recheck_ms": 500, "until_reported": true })),
    ] {
        let response = host.put("/api/v1/services/video", bad).await;
        assert_eq!(response.refused(422, "invalid_body")["errors"][0]["path"], field);
    }
    for bad in [json!({ "recheck_ms": -1 }), json!({ "recheck_ms": "1s" }), json!({ "priority": "urgent" })] {
        host.put("/api/v1/services/video", bad).await.refused(422, "invalid_body");
    }
    host.put("/api/v1/services/video", json!({ "recheck": 1 })).await.refused(422, "unknown_field");
    host.put(&format!("/api/v1/services/{}", "x".repeat(300)), json!({})).await.refused(422, "invalid_body");
    host.get("/api/v1/services/video").await.refused(404, "unknown_service");
}

#[tokio::test]
async fn demand_is_shown_against_supply() {
    let host = TestServer::new().await;
    host.publish(
        "film",
        json!({ "nodes": [{ "id": "v", "type": "video" }, { "id": "w", "type": "video" }], "edges": [] }),
    )
    .await;
    host.start("film", json!({})).await;
    // Work that no worker serves is listed, too.
    let listed = host.get("/api/v1/services").await.ok();
    assert_eq!((&listed["items"][0]["name"], &listed["items"][0]["n_waiting"]), (&json!("video"), &json!(2)));
    let worker = json!({ "id": "w", "url": "", "services": ["video"], "type": "async", "capacity": 4 });
    host.post("/api/workers/register", worker).await.ok();
    host.claim("video").await;
    host.post("/api/workers/heartbeat", json!({ "id": "w", "load": 1 })).await.ok();
    let video = host.get("/api/v1/services/video").await.ok();
    let found = ["n_waiting", "n_workers", "capacity", "load"].map(|field| video[field].clone());
    assert_eq!(found, [json!(1), json!(1), json!(4), json!(1)]);
}

#[tokio::test]
async fn a_service_limits_the_time_of_calls_without_a_limit_of_their_own() {
    let host = TestServer::new().await;
    let settings =
        json!({ "timeout_ms": 1_800_000, "priority": "highest", "calls_max": 8, "until_reported": true });
    let set = host.put("/api/v1/services/copy", settings.clone()).await.ok();
    for (field, value) in settings.as_object().unwrap() {
        assert_eq!(&set[field], value);
    }
    let step = |id: &str, settings| json!({ "id": id, "operator": "copy", "settings": settings });
    let branches = json!([
        { "steps": [step("a", json!({}))] },
        { "steps": [step("b", json!({ "timeout": { "delay": 60 }, "priority": "low" }))] }
    ]);
    let steps =
        json!({ "steps": [{ "id": "p", "operator": "@control/flow/parallel", "branches": branches }] });
    host.publish("copies", steps).await;
    let run = host.start("copies", json!({})).await;
    // The service's priority goes first, and the step's own wins over it.
    let (first, second) = (host.claim("copy").await, host.claim("copy").await);
    assert_eq!((&first["node"], &first["priority"]), (&json!("a"), &json!(2)));
    assert_eq!((&second["node"], &second["priority"]), (&json!("b"), &json!(-1)));
    let why = host.get(&format!("/api/v1/runs/{run}/why")).await.ok();
    assert_eq!(why["reasons"].as_array().unwrap().len(), 2, "{why}");
}
