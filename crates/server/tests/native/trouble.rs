//! A damaged run does not affect other runs.

use serde_json::json;
use uuid::Uuid;
use windlass_engine::counter::Fence;
use windlass_engine::event::{Event, Level};
use windlass_engine::id::{CommandId, RunId};
use windlass_engine::journal::Entry;
use windlass_engine::project::Project;
use windlass_store::commit::{Commit, RunChange};
use windlass_store::run::RunRef;

use crate::test_server::{TestServer, approval, waiting};

/// Writes an unreadable entry into the journal of the run.
async fn spoil(host: &TestServer, run: &str) {
    let run: RunId = run.parse().unwrap();
    let row = host.runtime.store().run(host.runtime.project(), RunRef::Id(run)).await.unwrap().unwrap();
    let (command, now) = (CommandId::new(Uuid::now_v7()), host.runtime.clock().now());
    let said = Event::Logged { level: Level::Info, node: None, message: "from here on it is bad".to_owned() };
    let change = RunChange {
        run,
        expected_len: row.len,
        create: None,
        entry: Entry { version: u32::MAX, ..Entry::new(now, command, vec![said]) },
        projection: row.projection,
        snapshot: None,
        reopened: None,
    };
    let commit = Commit { run: Some(change), ..Commit::new(&Project::DEFAULT, command, now) };
    host.runtime.store().commit_one(commit).await.unwrap();
}

#[tokio::test]
async fn a_run_that_cannot_be_read_does_not_hide_the_others() {
    let host = TestServer::new().await;
    host.publish("c", approval()).await;
    let (good, bad) = (host.start("c", json!({})).await, host.start("c", json!({})).await);
    spoil(&host, &bad).await;
    host.get(&format!("/api/v1/runs/{bad}")).await.refused(500, "internal");
    let open = host.get("/api/v1/approvals").await.ok();
    let runs: Vec<&str> =
        open["items"].as_array().unwrap().iter().map(|a| a["run"].as_str().unwrap()).collect();
    assert_eq!(runs, [good.as_str()]);
    let tasks = host.get("/api/tasks").await.ok();
    let tasks = tasks["data"].as_array().unwrap();
    assert_eq!(tasks.len(), 2, "{tasks:?}");
    for task in tasks {
        assert_eq!((&task["flow_name"], &task["status"]), (&json!("c"), &json!("running")), "{task}");
    }
}

#[tokio::test]
async fn a_report_to_a_run_that_cannot_be_read_is_not_of_an_unknown_call() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    let run = host.start("b", json!({})).await;
    spoil(&host, &run).await;
    let call = host.runtime.grants().signed(run.parse::<RunId>().unwrap(), Fence(1));
    let report = format!("/api/v1/calls/{call}/report");
    host.post(&report, json!({ "result": 1 })).await.refused(500, "internal");
}

#[tokio::test]
async fn the_doctor_says_what_was_looked_at() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    host.start("b", json!({})).await;
    let found = host.raw("POST", "/api/v1/doctor", "").await.ok();
    let pages = &found["pages"];
    assert!(pages["n_tables"].is_u64() && pages["n_checked"] == pages["n_tables"], "{pages}");
    assert_eq!(found, json!({ "n_runs": 1, "n_accounts": 0, "findings": [], "pages": pages }));
    let bad = host.start("b", json!({})).await;
    spoil(&host, &bad).await;
    let found = host.post("/api/v1/doctor", json!({ "repair": true })).await.ok();
    assert_eq!((&found["n_runs"], &found["findings"][0]["subject"]), (&json!(2), &json!(bad)));
    host.post("/api/v1/doctor", json!({ "fix": true })).await.refused(422, "unknown_field");
}

#[tokio::test]
async fn a_repeated_request_is_answered_from_its_run_after_later_publications() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    let body = json!({ "request_id": "r-1" });
    let first = host.post("/api/v1/flows/b/runs", body.clone()).await.ok();
    host.post("/api/v1/flows/b/versions", json!({ "definition": approval() })).await.ok();
    let again = host.post("/api/v1/flows/b/runs", body).await;
    assert_eq!(again.status.as_u16(), 200);
    let again = again.ok();
    for field in ["id", "version", "version_id", "flow", "flow_id"] {
        assert_eq!(again[field], first[field], "{field}");
    }
    assert_eq!(again["created"], false);
    let other = json!({ "request_id": "r-1", "manual": true });
    host.post("/api/v1/flows/b/runs", other).await.refused(409, "request_taken");
}
