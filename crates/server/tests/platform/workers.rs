//! Workers: listing and draining them.

use serde_json::{Value, json};
use windlass_engine::time::Timestamp;
use windlass_store::worker::WorkerQuery;

use crate::support::task;
use crate::test_server::TestServer;

async fn registered(host: &TestServer) {
    let worker =
        json!({ "id": "w-1", "type": "async", "services": ["press"], "queues": ["default"], "capacity": 4 });
    host.post("/api/workers/register", worker).await.ok();
}

#[tokio::test]
async fn a_worker_is_told_with_what_it_has() {
    let host = TestServer::new().await;
    assert_eq!(host.get("/api/v1/workers").await.ok(), json!({ "workers": [], "count": 0 }));
    registered(&host).await;
    let id = host.create(task("press")).await;
    let job = host.claim().await;
    let response = host.get("/api/v1/workers").await.ok();
    assert_eq!(response["count"], 1);
    let worker = &response["workers"][0];
    for (field, value) in [
        ("id", json!("w-1")),
        ("queues", json!(["default"])),
        ("services", json!(["press"])),
        ("status", json!("online")),
        ("capacity", json!(4)),
        ("load", json!(0)),
        ("is_draining", json!(false)),
    ] {
        assert_eq!(worker[field], value, "{field}");
    }
    assert!(worker["heartbeat_at"].is_string() && worker["name"].is_string());
    assert_eq!((&worker["tasks"][0]["task_id"], &worker["tasks"][0]["attempt"]), (&json!(id), &json!(1)));
    host.finish(&job, json!({ "outcome": "done" })).await;
    assert_eq!(host.get("/api/v1/workers").await.ok()["workers"][0]["tasks"], json!([]));
}

#[tokio::test]
async fn a_worker_that_drains_gets_nothing() {
    let host = TestServer::new().await;
    registered(&host).await;
    let response = host.post("/api/v1/workers/w-1/drain", json!({})).await.ok();
    assert_eq!((&response["id"], &response["is_draining"]), (&json!("w-1"), &json!(true)));
    host.create(task("press")).await;
    let claim = json!({ "worker_id": "w-1", "queues": ["default"] });
    let response = host.post("/api/v1/jobs/claim", claim.clone()).await.ok();
    assert_eq!((&response["jobs"], &response["draining"]), (&json!([]), &json!(true)));
    assert_eq!(host.post("/api/v1/workers/w-1/undrain", json!({})).await.ok()["is_draining"], false);
    let response = host.post("/api/v1/jobs/claim", claim).await.ok();
    assert_eq!((response["jobs"].as_array().map(Vec::len), &response["draining"]), (Some(1), &Value::Null));
    host.post("/api/v1/workers/nobody/drain", json!({})).await.no(404, "unknown_worker");
    host.post("/api/v1/workers/nobody/undrain", json!({})).await.no(404, "unknown_worker");
}

#[tokio::test]
async fn workers_are_filtered_by_status_and_the_whole_list_marks_the_dead() {
    let host = TestServer::new().await;
    registered(&host).await;
    let now = host.runtime.clock().now();
    let alive = WorkerQuery::default();
    let mut dead = host.runtime.store().workers(host.runtime.project(), alive).await.unwrap().remove(0);
    (dead.id, dead.name) = ("w-0".to_owned(), "first".to_owned());
    (dead.beat_at, dead.registered_at) = (Timestamp(now.0 - 60_000), Timestamp(now.0 - 60_000));
    host.runtime.store().save_worker(host.runtime.project(), dead).await.unwrap();
    let told = async |query: &str| {
        let response = host.get(&format!("/api/v1/workers{query}")).await.ok();
        let workers = response["workers"].as_array().unwrap().clone();
        assert_eq!(response["count"], workers.len());
        workers.iter().map(|worker| format!("{} {}", worker["id"], worker["status"])).collect::<Vec<_>>()
    };
    let (first, second) = ("\"w-0\" \"offline\"", "\"w-1\" \"online\"");
    assert_eq!(told("").await, [first, second]);
    assert_eq!(told("?status=online").await, [second]);
    assert_eq!(told("?status=offline").await, [first]);
    assert_eq!(host.get("/api/v1/workers?status=asleep").await.no(400, "bad_query"), ["?status"]);
}
