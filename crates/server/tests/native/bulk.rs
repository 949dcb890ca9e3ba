//! Bulk actions.

use std::time::Duration;

use serde_json::{Value, json};

use crate::test_server::{TestServer, waiting};

fn fails() -> Value {
    json!({ "start": "a", "nodes": {
        "a": { "kind": "local", "func": "fail", "prep": { "input_map": { "message": "no" } } }
    } })
}

/// Waits until the bulk action has ended.
async fn ended(host: &TestServer, bulk: &str) -> Value {
    let mut changes = host.runtime.bulks().changes();
    let watch = async {
        loop {
            let shown = host.get(&format!("/api/v1/bulk/{bulk}")).await.ok();
            if shown["status"] != "running" {
                return shown;
            }
            drop(changes.recv().await);
        }
    };
    tokio::time::timeout(Duration::from_secs(60), watch).await.expect("the bulk action did not end")
}

async fn failed_runs(host: &TestServer, n: usize) -> Vec<String> {
    let mut runs = Vec::new();
    for _ in 0..n {
        runs.push(host.start("f", json!({})).await);
    }
    for run in &runs {
        host.ended(run).await;
    }
    runs
}

#[tokio::test]
async fn failed_runs_are_retried_by_a_query() {
    let host = TestServer::new().await;
    host.publish("f", fails()).await;
    host.publish("w", waiting()).await;
    let runs = failed_runs(&host, 5).await;
    host.start("w", json!({})).await;
    let body = |dry_run: bool| json!({ "kind": "runs", "query": "flow:f", "action": "retry", "reason": "it works now", "dry_run": dry_run });
    let dry_run = host.post("/api/v1/bulk", body(true)).await;
    assert_eq!(dry_run.status, 200);
    let dry_run = dry_run.ok();
    assert_eq!((&dry_run["matched"], &dry_run["outcomes"]), (&json!(5), &json!({ "apply": 5, "refuse": 0 })));
    assert_eq!(dry_run["by_status"], json!({ "failed": 5 }));
    assert!(host.get("/api/v1/bulk").await.ok()["items"].as_array().unwrap().is_empty());

    let accepted = host.post("/api/v1/bulk", body(false)).await;
    assert_eq!((accepted.status.as_u16(), &accepted.ok()["matched"]), (202, &json!(5)));
    let bulk = accepted.ok()["id"].as_str().unwrap().to_owned();
    let over = ended(&host, &bulk).await;
    assert_eq!(
        (&over["status"], &over["done"], &over["succeeded"], &over["failed"]),
        (&json!("completed"), &json!(5), &json!(5), &json!(0))
    );
    assert!(over["ended_at"].is_string());
    for run in &runs {
        assert_eq!(host.ended(run).await["round"], 2);
    }
    assert_eq!(host.get("/api/v1/bulk").await.ok()["items"][0]["id"], bulk.as_str());
    // A dry run is no change, and is not in the audit.
    let lines = host.get("/api/v1/audit?what=run.bulk").await.ok();
    assert_eq!(lines["items"].as_array().unwrap().len(), 1, "{lines}");
    assert_eq!(lines["items"][0]["subject"], bulk.as_str());
}

#[tokio::test]
async fn runs_that_refuse_are_listed_with_their_reason() {
    let host = TestServer::new().await;
    host.publish("f", fails()).await;
    host.publish("w", waiting()).await;
    let failed = failed_runs(&host, 2).await;
    let open = host.start("w", json!({})).await;
    host.until(&open, |run| run["status"] == "waiting").await;
    let ids = json!([failed[0], open, failed[1], open]);
    let body = json!({ "kind": "runs", "ids": ids, "action": "cancel", "reason": "enough" });
    let dry_run = host
        .post("/api/v1/bulk", json!({ "kind": "runs", "ids": ids, "action": "cancel", "dry_run": true }))
        .await
        .ok();
    assert_eq!(dry_run["outcomes"], json!({ "apply": 1, "refuse": 2 }), "{dry_run}");
    let bulk = host.post("/api/v1/bulk", body).await.ok()["id"].as_str().unwrap().to_owned();
    let over = ended(&host, &bulk).await;
    assert_eq!((&over["matched"], &over["succeeded"], &over["failed"]), (&json!(3), &json!(1), &json!(2)));
    let failures = over["failures"].as_array().unwrap();
    assert_eq!(
        failures.iter().map(|failure| failure["id"].as_str().unwrap()).collect::<Vec<_>>(),
        [&failed[0], &failed[1]]
    );
    assert!(failures.iter().all(|failure| failure["code"] == "run_ended"), "{over}");
    assert_eq!(host.ended(&open).await["status"], "canceled");
}

#[tokio::test]
async fn signals_and_reruns_have_arguments() {
    let host = TestServer::new().await;
    host.publish("w", waiting()).await;
    let run = host.start("w", json!({})).await;
    host.until(&run, |run| run["status"] == "waiting").await;
    let signal = json!({ "kind": "runs", "query": "flow:w", "action": "signal", "args": { "key": "payment", "value": 1 } });
    let bulk = host.post("/api/v1/bulk", signal).await.ok()["id"].as_str().unwrap().to_owned();
    assert_eq!(ended(&host, &bulk).await["succeeded"], 1);
    assert_eq!(host.ended(&run).await["status"], "completed");
    for (body, status, code) in [
        (json!({ "kind": "runs", "query": "", "action": "rerun" }), 422, "invalid_body"),
        (
            json!({ "kind": "runs", "query": "", "action": "cancel", "args": { "key": "k" } }),
            422,
            "invalid_body",
        ),
        (json!({ "kind": "runs", "action": "cancel" }), 422, "invalid_body"),
        (json!({ "kind": "runs", "query": "", "ids": ["x"], "action": "cancel" }), 422, "invalid_body"),
        (
            json!({ "kind": "runs", "ids": [format!("run_{:032x}", 9)], "action": "cancel" }),
            404,
            "unknown_run",
        ),
        (json!({ "kind": "runs", "query": "stauts:x", "action": "cancel" }), 400, "bad_query"),
    ] {
        host.post("/api/v1/bulk", body).await.refused(status, code);
    }
    host.get("/api/v1/bulk/bulk_1").await.refused(404, "unknown_bulk");
}

#[tokio::test]
async fn a_bulk_action_ends_when_it_is_canceled() {
    let host = TestServer::new().await;
    host.publish("w", waiting()).await;
    for _ in 0..40 {
        host.start("w", json!({})).await;
    }
    let body = json!({ "kind": "runs", "query": "flow:w", "action": "pause" });
    let bulk = host.post("/api/v1/bulk", body).await.ok()["id"].as_str().unwrap().to_owned();
    let canceled = host.post(&format!("/api/v1/bulk/{bulk}/cancel"), json!({})).await.ok();
    // It may have been over before.
    assert_ne!(canceled["status"], "running");
    let again = host.post(&format!("/api/v1/bulk/{bulk}/cancel"), json!({})).await.ok();
    assert_eq!(again["status"], canceled["status"]);
}
