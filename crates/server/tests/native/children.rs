//! Runs that call flows: links, cancel, cost, budget, and flows that call themselves.

use serde_json::{Value, json};
use windlass_engine::definition::Strictness;
use windlass_runtime::runs::flow::VersionSpec;
use windlass_store::flow::VersionStatus;

use crate::test_server::{TestServer, waiting};

fn calling(flow: &str) -> Value {
    json!({ "start": "c", "nodes": { "c": { "kind": "flow_ref", "flow": flow, "post": { "output_key": "got" } } } })
}

/// A service with a price that returns its input.
fn priced(cost: i64) -> Value {
    json!({ "start": "work", "nodes": {
        "work": { "kind": "local", "func": "echo", "prep": { "input_key": "$params.n" }, "cost": cost, "post": { "output_key": "n" } }
    } })
}

async fn children(host: &TestServer, run: &str) -> Vec<Value> {
    host.get(&format!("/api/v1/runs?parent={run}")).await.ok()["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_child_is_linked_paid_by_its_parent_and_billed_to_it() {
    let host = TestServer::new().await;
    host.account("acme", 100).await;
    host.publish("leaf", priced(5)).await;
    host.publish("mid", calling("leaf")).await;
    host.publish(
        "top",
        json!({ "start": "own", "nodes": {
            "own": { "kind": "local", "func": "echo", "cost": 2 },
            "c": { "kind": "subflow", "flow": "mid", "version": 1, "params": { "n": 7 }, "post": { "output_key": "got" } }
        }, "edges": [{ "from": "own", "to": "c" }] }),
    )
    .await;
    let run = host.start("top", json!({ "account": "acme", "priority": "high" })).await;
    let top = host.ended(&run).await;
    assert_eq!(top["shared"]["got"], json!({ "got": { "n": 7 } }), "{top}");
    let cost = json!({ "estimated": 7, "actual": 7, "own": { "estimated": 2, "actual": 2 } });
    assert_eq!(top["cost"], cost);
    let mid = children(&host, &run).await;
    assert_eq!(mid.len(), 1);
    let id = mid[0]["id"].as_str().unwrap();
    assert_eq!(top["node_states"]["c"]["child"], id);
    assert_eq!(mid[0]["parent"], json!({ "run": run, "node": "c" }));
    assert_eq!((&mid[0]["account"], &mid[0]["cost"]["actual"]), (&json!("acme"), &json!(5)));
    let leaf = children(&host, id).await;
    assert_eq!((leaf.len(), &leaf[0]["account"], &leaf[0]["flow"]), (1, &json!("acme"), &json!("leaf")));
    let leaf = host.get(&format!("/api/v1/runs/{}", leaf[0]["id"].as_str().unwrap())).await.ok();
    assert_eq!((&leaf["priority"], &leaf["cost"]["own"]), (&json!("high"), &Value::Null));
    assert_eq!(host.get("/api/v1/accounts/acme").await.ok()["balance"], 93);
    host.get("/api/v1/runs?parent=nonsense").await.refused(404, "unknown_run");

    // A dry run estimates the next child at the cost of the last one.
    let plan = host.post(&format!("/api/v1/runs/{run}/rerun?dry_run=1"), json!({ "from": "own" })).await.ok();
    assert_eq!(plan["cost"], json!({ "estimated": 7, "at_most": 7, "unknown": 0 }));
    assert_eq!(
        (&plan["nodes"][0]["node"], &plan["nodes"][0]["estimate"]),
        (&json!("c"), &json!(5)),
        "{plan}"
    );

    // The node that called runs again: another child, whose cost is added.
    host.post(&format!("/api/v1/runs/{run}/rerun"), json!({ "from": "c" })).await.ok();
    let again = host.ended(&run).await;
    assert_eq!((&again["cost"]["actual"], &again["cost"]["own"]["actual"]), (&json!(12), &json!(2)));
    assert_ne!(again["node_states"]["c"]["child"], id);
    assert_eq!(children(&host, &run).await.len(), 2);

    // A child that runs again by itself is billed too; the result of its parent stays.
    host.post(&format!("/api/v1/runs/{id}/rerun"), json!({ "from": "c" })).await.ok();
    host.ended(id).await;
    let billed = host.until(&run, |run| run["cost"]["actual"] == 17).await;
    assert_eq!((&billed["status"], &billed["round"]), (&json!("completed"), &json!(2)));
}

#[tokio::test]
async fn the_cost_of_a_child_that_was_never_made_or_failed_is_unknown() {
    let host = TestServer::new().await;
    host.account("acme", 100).await;
    let leaf = json!({ "nodes": [
        { "id": "a", "type": "echo", "exec_type": "local_func", "cost": 3 },
        { "id": "b", "type": "fail", "exec_type": "local_func" }
    ], "edges": [{ "source": "a", "target": "b" }] });
    host.publish("leaf", leaf).await;
    let top = |first: &str| {
        json!({ "nodes": [
            { "id": "own", "type": first, "exec_type": "local_func", "cost": 2 },
            { "id": "c", "type": "flow_ref", "config": { "flow": "leaf" } }
        ], "edges": [{ "source": "own", "target": "c" }] })
    };
    host.publish("never", top("fail")).await;
    host.publish("failed", top("echo")).await;
    for (flow, own) in [("never", 2), ("failed", 0)] {
        let run = host.start(flow, json!({ "account": "acme" })).await;
        assert_eq!(host.ended(&run).await["status"], "failed");
        let n_children = children(&host, &run).await.len();
        let dry_run = host.post(&format!("/api/v1/runs/{run}/retry?dry_run=1"), json!({})).await.ok();
        assert_eq!(dry_run["cost"], json!({ "estimated": own, "at_most": own, "unknown": 1 }), "{dry_run}");
        let call = dry_run["nodes"].as_array().unwrap().iter().find(|node| node["node"] == "c").unwrap();
        assert_eq!((&call["by"], &call["estimate"]), (&json!("child run"), &Value::Null));
        assert_eq!(children(&host, &run).await.len(), n_children, "a dry run starts nothing");
    }
}

#[tokio::test]
async fn cancel_reaches_the_children_of_children() {
    let host = TestServer::new().await;
    host.publish("leaf", waiting()).await;
    host.publish("mid", calling("leaf")).await;
    host.publish("top", calling("mid")).await;
    let run = host.start("top", json!({})).await;
    let why = format!("/api/v1/runs/{run}/why");
    assert!(
        host.get(&why).await.ok()["reasons"][0]["command"]
            .as_str()
            .unwrap()
            .starts_with("windlass run why run_")
    );
    let mid = host.get(&format!("/api/v1/runs/{run}")).await.ok()["node_states"]["c"]["child"].clone();
    let mid = mid.as_str().unwrap().to_owned();
    // Messages make children: both have to be there first.
    let mut changes = host.runtime.runs().changes();
    let leaf = loop {
        if let [leaf] = children(&host, &mid).await.as_slice() {
            break leaf["id"].as_str().unwrap().to_owned();
        }
        drop(changes.recv().await);
    };
    host.post(&format!("/api/v1/runs/{run}/cancel"), json!({})).await.ok();
    for run in [&run, &mid, &leaf] {
        assert_eq!(host.ended(run).await["status"], "canceled", "{run}");
    }
}

#[tokio::test]
async fn a_child_without_a_waiting_parent_is_stopped_and_billed() {
    let host = TestServer::new().await;
    host.account("acme", 100).await;
    let spends = json!({ "start": "work", "nodes": {
        "work": { "kind": "local", "func": "echo", "cost": 5 },
        "more": { "kind": "wait_event", "params": { "signal_key": "never" } }
    }, "edges": [{ "from": "work", "to": "more" }] });
    host.publish("spends", spends).await;
    let top = json!({ "nodes": [
        { "id": "c", "type": "flow_ref", "config": { "flow": "spends" } },
        { "id": "s", "type": "wait_event", "config": { "params": { "signal_key": "go" } } },
        { "id": "f", "type": "fail", "exec_type": "local_func" }
    ], "edges": [{ "source": "s", "target": "f" }] });
    host.publish("top", top).await;
    let run = host.start("top", json!({ "account": "acme" })).await;
    let child = host.get(&format!("/api/v1/runs/{run}")).await.ok()["node_states"]["c"]["child"].clone();
    let child = child.as_str().unwrap().to_owned();
    let mut changes = host.runtime.runs().changes();
    while host.get(&format!("/api/v1/runs/{child}")).await.json()["node_states"]["more"]["status"]
        != "waiting"
    {
        drop(changes.recv().await);
    }
    host.post(&format!("/api/v1/runs/{run}/signal"), json!({ "key": "go", "value": true })).await.ok();
    assert_eq!(host.ended(&run).await["status"], "failed");
    assert_eq!(host.ended(&child).await["status"], "canceled");
    let billed = host.until(&run, |run| run["cost"]["actual"] == 5).await;
    assert_eq!((&billed["status"], &billed["cost"]["own"]["actual"]), (&json!("failed"), &json!(0)));
}

#[tokio::test]
async fn children_never_spend_more_than_the_budget() {
    let host = TestServer::new().await;
    host.account("acme", 1_000).await;
    host.publish("leaf", priced(40)).await;
    let both = json!({ "nodes": [
        { "id": "c", "type": "flow_ref", "config": { "flow": "leaf" } },
        { "id": "d", "type": "flow_ref", "config": { "flow": "leaf" } }
    ], "edges": [], "on_failure": "continue" });
    host.publish("both", both).await;
    let run = host.start("both", json!({ "account": "acme", "budget": 60 })).await;
    let ended = host.ended(&run).await;
    assert_eq!((&ended["status"], &ended["cost"]["actual"]), (&json!("failed"), &json!(40)));
    assert!(ended["error"]["message"].as_str().unwrap().contains("budget of 20"), "{ended}");
    let run = host.start("both", json!({ "account": "acme", "budget": 80 })).await;
    let ended = host.ended(&run).await;
    assert_eq!((&ended["status"], &ended["cost"]["actual"]), (&json!("completed"), &json!(80)));
}

#[tokio::test]
async fn a_flow_that_calls_itself_is_stopped_and_says_how() {
    let host = TestServer::new().await;
    host.publish("ping", calling("pong")).await;
    host.publish("pong", calling("ping")).await;
    let run = host.start("ping", json!({})).await;
    let ended = host.ended(&run).await;
    assert_eq!(ended["status"], "failed");
    let message = ended["error"]["message"].as_str().unwrap();
    assert!(message.contains("more than 32 deep: pong → ping → pong → … → ping → pong"), "{message}");
    assert!(message.starts_with("`c`: … `c`: "), "how deep it went is not said again and again: {message}");
    assert_eq!(host.get("/api/v1/runs?limit=1000").await.ok()["items"].as_array().unwrap().len(), 33);
}

#[tokio::test]
async fn a_call_starts_only_published_versions() {
    let host = TestServer::new().await;
    let flow = host.publish("leaf", priced(0)).await["id"].as_str().unwrap().parse().unwrap();
    for status in [VersionStatus::Draft, VersionStatus::Archived] {
        let version = VersionSpec {
            definition: priced(0).to_string(),
            strictness: Strictness::Strict,
            number: None,
            status,
            note: String::new(),
        };
        host.runtime.runs().publish_version(flow, version).await.unwrap();
    }
    let call = |version: u32| json!({ "start": "c", "nodes": { "c": { "kind": "flow_ref", "flow": "leaf", "version": version } } });
    let refusals = [
        (2, "version 2 of `leaf` is a draft: start a published one"),
        (3, "version 3 of `leaf` is archived: start a published one"),
        (4, "flow `leaf` has no version 4: its highest is 3"),
    ];
    for (version, reason) in refusals {
        let top = format!("top-{version}");
        host.publish(&top, call(version)).await;
        let run = host.start(&top, json!({})).await;
        let ended = host.ended(&run).await;
        assert_eq!(ended["status"], "failed", "{ended}");
        assert!(ended["error"]["message"].as_str().unwrap().contains(reason), "{ended}");
        assert_eq!(children(&host, &run).await.len(), 0);
        // A start by a client gets the same answer.
        let asked = host.post("/api/v1/flows/leaf/runs", json!({ "version": version })).await;
        assert!(asked.json()["detail"].as_str().unwrap().contains(reason), "{asked:?}");
    }
    host.publish("top", call(1)).await;
    let run = host.start("top", json!({})).await;
    assert_eq!(host.ended(&run).await["status"], "completed");
}
