//! Dry runs of new rounds, and differences between two states of a run.

use serde_json::{Value, json};

use crate::test_server::{TestServer, waiting};

/// Two sure nodes, one that depends on a choice, and one that fails unless it is given something.
fn flow() -> Value {
    json!({ "start": "a", "nodes": {
        "a": { "kind": "local", "func": "echo", "prep": { "input_map": { "n": 1 } }, "post": { "output_key": "a" } },
        "b": { "kind": "choice", "default_action": "stop",
            "choice_cases": [{ "action": "go", "expr": { "eq": ["$shared.ok", true] } }] },
        "c": { "service": "press", "exec_type": "queue", "cost": 7 },
        "d": { "kind": "local", "func": "fail", "prep": { "input_map": { "message": "not yet" } } }
    }, "edges": [
        { "from": "a", "to": "b" }, { "from": "b", "action": "go", "to": "c" }, { "from": "b", "action": "stop", "to": "d" }
    ] })
}

fn statuses(dry_run: &Value) -> Vec<(&str, &str)> {
    let nodes = dry_run["nodes"].as_array().unwrap().iter();
    nodes.map(|node| (node["node"].as_str().unwrap(), node["status"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let host = TestServer::new().await;
    host.account("acme", 100).await;
    host.publish("f", flow()).await;
    let run = host.start("f", json!({ "account": "acme" })).await;
    assert_eq!(host.ended(&run).await["status"], "failed");
    let before = host.get(&format!("/api/v1/runs/{run}")).await.ok();
    let path = |word: &str| format!("/api/v1/runs/{run}/{word}");

    let retry = host.post(&path("retry?dry_run=1"), json!({})).await.ok();
    assert_eq!((&retry["round"], &retry["id"]), (&json!(2), &json!(run)));
    assert_eq!(statuses(&retry), [("a", "kept"), ("b", "kept"), ("d", "runs")]);
    let rerun = json!({ "from": "a", "shared": { "ok": true } });
    let dry_run = host.post(&path("rerun?dry_run=true"), rerun.clone()).await.ok();
    assert_eq!(statuses(&dry_run), [("a", "runs"), ("b", "runs"), ("c", "may_run"), ("d", "may_run")]);
    assert_eq!(dry_run["calls"], json!({ "sure": 1, "at_most": 3 }));
    assert_eq!(dry_run["cost"], json!({ "estimated": 0, "at_most": 7, "unknown": 0 }));
    let call = &dry_run["nodes"][2];
    assert_eq!(
        (&call["service"], &call["by"], &call["estimate"]),
        (&json!("press"), &json!("pull worker"), &json!(7))
    );
    assert_eq!(host.get(&format!("/api/v1/runs/{run}")).await.ok(), before, "the dry run changed the run");

    // The same without `dry_run` does it.
    assert_eq!(host.post(&path("rerun?dry_run=0"), rerun).await.ok()["round"], 2);
    let waits = host.until(&run, |run| run["node_states"]["c"]["status"] == "running").await;
    assert_eq!(waits["node_states"]["d"]["status"], "failed", "what is not run again keeps what it came to");
}

#[tokio::test]
async fn a_dry_run_is_refused_where_the_round_would_be() {
    let host = TestServer::new().await;
    host.publish("f", flow()).await;
    host.publish("w", waiting()).await;
    let open = host.start("w", json!({})).await;
    let ended = host.start("f", json!({})).await;
    host.ended(&ended).await;
    for mark in ["", "?dry_run=1"] {
        let rerun =
            async |run: &str, body: Value| host.post(&format!("/api/v1/runs/{run}/rerun{mark}"), body).await;
        rerun(&open, json!({ "from": "paid" })).await.refused(409, "run_open");
        host.post(&format!("/api/v1/runs/{open}/retry{mark}"), json!({})).await.refused(409, "run_open");
        let unknown = rerun(&ended, json!({ "from": "nowhere" })).await.refused(422, "unknown_node");
        assert!(unknown["detail"].as_str().unwrap().contains("`nowhere`"), "{unknown}");
        let not_run = rerun(&ended, json!({ "from": "c" })).await.refused(409, "not_run_yet");
        assert!(not_run["detail"].as_str().unwrap().contains("`c`"), "{not_run}");
        rerun(&ended, json!({ "from": "a", "shared": { "_rt": 1 } })).await.refused(422, "reserved_key");
        rerun(&ended, json!({ "from": "a", "shared": [] })).await.refused(422, "invalid_body");
        rerun("run_00000000000000000000000000000001", json!({ "from": "a" }))
            .await
            .refused(404, "unknown_run");
    }
    host.post(&format!("/api/v1/runs/{ended}/retry?dry_run=maybe"), json!({}))
        .await
        .refused(400, "bad_query");
    host.post(&format!("/api/v1/runs/{ended}/retry?dry_rum=1"), json!({})).await.refused(400, "bad_query");
}

#[tokio::test]
async fn two_moments_of_a_run_are_compared() {
    let host = TestServer::new().await;
    host.publish("w", waiting()).await;
    let run = host.start("w", json!({})).await;
    let diff = |query: &str| format!("/api/v1/runs/{run}/state/diff{query}");
    host.get(&diff("")).await.refused(404, "unknown_entry");
    host.post(&format!("/api/v1/runs/{run}/signal"), json!({ "key": "payment", "value": 7 })).await.ok();
    let len = host.ended(&run).await["len"].as_u64().unwrap();
    let response = host.get(&diff(&format!("?from=1&to={len}"))).await.ok();
    assert_eq!(
        (&response["from"], &response["to"], &response["more"]),
        (&json!(1), &json!(len), &json!(false))
    );
    let changes = response["changes"].as_array().unwrap();
    let change = |path: &str| changes.iter().find(|change| change["path"] == path).cloned();
    let status = json!({ "path": "/status", "kind": "changed", "before": "waiting", "after": "completed" });
    assert_eq!(change("/status"), Some(status));
    assert_eq!(change("/shared/shipped").unwrap()["after"], 7);
    assert_eq!(change("/signals/payment").unwrap()["kind"], "added");
    assert_eq!(change("/node_states/ship/status").unwrap()["after"], "completed");
    assert!(change("/at").is_none() && change("/time").is_none(), "{response}");
    let back = host.get(&diff(&format!("?from={len}&to=1"))).await.ok();
    assert_eq!(back["changes"].as_array().unwrap().len(), changes.len());
    assert_eq!(host.get(&diff(&format!("?from={len}"))).await.ok()["changes"], json!([]));
    host.get(&diff("?from=0")).await.refused(404, "unknown_entry");
    host.get(&diff("?to=99")).await.refused(404, "unknown_entry");
    host.get(&diff("?form=1")).await.refused(400, "bad_query");
}
