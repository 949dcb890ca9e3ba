//! Graphs of flows and runs.

use serde_json::{Value, json};

use crate::test_server::{TestServer, upper, waiting};

fn ids(graph: &Value) -> Vec<&str> {
    graph["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect()
}

fn branching() -> Value {
    json!({"start": "check", "nodes": {
        "check": {"kind": "choice", "choice_cases": [{"action": "ok", "expr": {"exists": "$params.x"}}], "default_action": "bad"},
        "sub": {"kind": "subflow", "subflow": {"start": "in", "nodes": {"in": {"kind": "timer", "params": {"delay_ms": 1}}}, "edges": []}},
        "stop": {"kind": "timer", "params": {"delay_ms": 1}, "title": "<img src=x onerror=alert(1)>"}},
        "edges": [{"from": "check", "action": "ok", "to": "sub"}, {"from": "check", "action": "bad", "to": "stop"}]})
}

#[tokio::test]
async fn a_flow_is_laid_out_in_both_directions() {
    let host = TestServer::new().await;
    host.publish("f", branching()).await;
    let graph = host.get("/api/v1/flows/f/graph").await.ok();
    assert_eq!(
        (&graph["direction"], &graph["form"], &graph["more"]),
        (&json!("lr"), &json!("graph"), &json!(false))
    );
    assert_eq!(ids(&graph), ["check", "stop", "sub", "sub/in"]);
    let node = |id: &str| graph["nodes"].as_array().unwrap().iter().find(|node| node["id"] == id).unwrap();
    assert_eq!(node("sub/in")["parent"], "sub");
    assert_eq!(node("sub/in")["path"], "$.nodes.sub.subflow.nodes.in");
    assert_eq!((&node("sub")["box"], &node("check")["start"]), (&json!(true), &json!(true)));
    let edge = &graph["edges"][0];
    assert_eq!(
        (&edge["id"], &edge["when"], &edge["action"]),
        (&json!("check>sub"), &json!("action"), &json!("ok"))
    );
    assert!(edge["points"].as_array().unwrap().len() > 1 && edge["label_box"]["w"].as_i64() > Some(0));

    let down = host.get("/api/v1/flows/f/graph?dir=tb&version=1").await.ok();
    assert_eq!((&down["direction"], ids(&down)), (&json!("tb"), ids(&graph)));
    assert!(down["height"].as_i64() > graph["height"].as_i64());
}

#[tokio::test]
async fn a_drawing_shows_the_states_of_a_run() {
    let host = TestServer::new().await;
    host.publish("f", branching()).await;
    let run = host.start("f", json!({"params": {"x": 1}})).await;
    host.ended(&run).await;
    let plain = host.get("/api/v1/flows/f/graph.svg").await;
    assert_eq!(plain.headers["content-type"], "image/svg+xml");
    assert!(plain.headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
    let plain = String::from_utf8(plain.body).unwrap();
    assert!(plain.starts_with("<svg ") && plain.contains("<title>f, version 1</title>"));
    assert!(
        plain.contains("&lt;img src=x") && !plain.contains("<img") && !plain.contains("class=\"edge taken\"")
    );

    let drawn = host.get(&format!("/api/v1/flows/f/graph.svg?run={run}&dir=tb")).await;
    let drawn = String::from_utf8(drawn.body).unwrap();
    for part in [
        "class=\"node ok start\"",
        "class=\"box ok\"",
        "class=\"node idle skipped\"",
        "class=\"edge taken\"",
        "class=\"edge not\"",
    ] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
    let graph = host.get(&format!("/api/v1/runs/{run}/graph")).await.ok();
    assert_eq!(graph, host.get("/api/v1/flows/f/graph").await.ok());
}

#[tokio::test]
async fn wrong_versions_runs_and_directions_are_refused() {
    let host = TestServer::new().await;
    host.publish("f", upper()).await;
    host.publish("g", waiting()).await;
    let run = host.start("g", json!({})).await;
    host.get("/api/v1/flows/none/graph").await.refused(404, "unknown_flow");
    host.get("/api/v1/flows/f/graph?version=7").await.refused(404, "unknown_version");
    host.get("/api/v1/flows/f/graph?dir=up").await.refused(400, "bad_query");
    host.get("/api/v1/flows/f/graph?colour=red").await.refused(400, "bad_query");
    let refused = host.get(&format!("/api/v1/flows/f/graph.svg?run={run}")).await.refused(400, "bad_query");
    assert_eq!(refused["errors"][0]["path"], "?run");
    let refused =
        host.get(&format!("/api/v1/flows/g/graph.svg?run={run}&version=4")).await.refused(400, "bad_query");
    assert_eq!(refused["errors"][0]["path"], "?version");
    host.get("/api/v1/runs/run_00000000000000000000000000000000/graph").await.refused(404, "unknown_run");
}
