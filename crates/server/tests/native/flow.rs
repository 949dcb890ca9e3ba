//! Flows, versions, and definitions that are only looked at.

use serde_json::json;

use crate::test_server::{TestServer, upper, waiting};

#[tokio::test]
async fn a_flow_is_published_and_found_by_its_name_and_its_id() {
    let host = TestServer::new().await;
    let body = json!({ "name": "shout it", "description": "loud", "definition": upper(), "labels": { "team": "a" } });
    let response = host.post("/api/v1/flows", body).await;
    assert_eq!(response.status, 201);
    let published = response.ok();
    assert_eq!((&published["name"], &published["version"]), (&json!("shout it"), &json!(1)));
    for name in ["shout%20it", published["id"].as_str().unwrap()] {
        let flow = host.get(&format!("/api/v1/flows/{name}")).await.ok();
        assert_eq!((&flow["id"], &flow["labels"]["team"]), (&published["id"], &json!("a")));
        assert_eq!(flow["version"]["definition"], upper());
        assert_eq!(flow["version"]["id"], published["version_id"]);
        assert_eq!(flow["latest_version"], 1);
    }
    let listed = host.get("/api/v1/flows?q=SHOUT&label=team%3Da&is_template=false").await.ok();
    assert_eq!(listed["items"][0]["id"], published["id"]);
    assert_eq!(host.get("/api/v1/flows?label=team%3Db").await.ok()["items"], json!([]));
}

#[tokio::test]
async fn a_taken_name_is_refused() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    let again = host.post("/api/v1/flows", json!({ "name": "a", "definition": upper() })).await;
    again.refused(409, "name_taken");
}

#[tokio::test]
async fn versions_are_numbered_listed_and_compared() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    let next =
        host.post("/api/v1/flows/a/versions", json!({ "definition": waiting(), "note": "waits" })).await;
    assert_eq!((next.status.as_u16(), &next.ok()["version"]), (201, &json!(2)));
    let yaml = "start: x\nnodes:\n  x: {kind: local, func: lower}\n";
    host.post("/api/v1/flows/a/versions", json!({ "yaml": yaml })).await.ok();
    let listed = host.get("/api/v1/flows/a/versions").await.ok();
    let numbers: Vec<_> = listed["items"].as_array().unwrap().iter().map(|v| v["version"].clone()).collect();
    assert_eq!(numbers, [3, 2, 1]);
    assert_eq!(listed["items"][1]["note"], "waits");
    let third = host.get("/api/v1/flows/a/versions/3").await.ok();
    assert_eq!((&third["text"], &third["definition"]["nodes"]["x"]["func"]), (&json!(yaml), &json!("lower")));
    let diff = host.get("/api/v1/flows/a/diff?from=1&to=2").await.ok();
    assert!(
        diff["changes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|c| c["path"] == "/nodes/paid" && c["kind"] == "added")
    );
    assert_eq!(host.get("/api/v1/flows/a/diff").await.ok()["from"], 2);
    host.get("/api/v1/flows/a/diff?from=1&to=9").await.refused(404, "unknown_version");
    host.get("/api/v1/flows/a/diff?to=1").await.refused(404, "unknown_version");
    host.get("/api/v1/flows/a/versions/9").await.refused(404, "unknown_version");
    host.get("/api/v1/flows/a/versions/x").await.refused(404, "unknown_version");
}

#[tokio::test]
async fn every_error_of_a_definition_is_told_at_once() {
    let host = TestServer::new().await;
    let bad = json!({ "start": "nowhere", "nodes": { "a": { "servise": "x" } } });
    let response = host.post("/api/v1/flows", json!({ "name": "a", "definition": bad })).await;
    let problem = response.refused(422, "invalid_definition");
    assert!(problem["errors"].as_array().unwrap().len() >= 2, "{problem}");
    assert!(
        problem["errors"].as_array().unwrap().iter().any(|e| e["hint"] == "did you mean `service`?"),
        "{problem}"
    );
    host.get("/api/v1/flows/a").await.refused(404, "unknown_flow");
    let looked = host.post("/api/v1/flows/validate", json!({ "definition": bad })).await.ok();
    assert_eq!((&looked["ok"], &looked["problems"][0]["severity"]), (&json!(false), &json!("error")));
    let fine = host.post("/api/v1/flows/validate", json!({ "definition": upper() })).await.ok();
    assert_eq!((&fine["ok"], &fine["form"], &fine["n_nodes"]), (&json!(true), &json!("graph"), &json!(1)));
}

#[tokio::test]
async fn steps_expand_to_tasks_and_nothing_else_does() {
    let host = TestServer::new().await;
    let steps = json!({ "steps": [
        { "id": "1", "operator": "@trigger/manual" },
        { "id": "2", "operator": "press" }
    ] });
    let response = host.post("/api/v1/flows/expand", json!({ "definition": steps })).await.ok();
    assert_eq!(
        response["tasks"][1],
        json!({ "id": "2", "task_id": "2", "operator": "press", "dependOn": ["1"] })
    );
    host.post("/api/v1/flows/expand", json!({ "definition": upper() }))
        .await
        .refused(422, "invalid_definition");
    host.post("/api/v1/flows/expand", json!({ "yaml": ": : :" })).await.refused(422, "invalid_definition");
    host.post("/api/v1/flows/expand", json!({})).await.refused(422, "invalid_body");
}

#[tokio::test]
async fn pages_of_flows_join_without_gaps() {
    let host = TestServer::new().await;
    for name in ["a", "b", "c"] {
        host.publish(name, upper()).await;
    }
    let (mut names, mut path) = (Vec::new(), "/api/v1/flows?limit=2".to_owned());
    loop {
        let page = host.get(&path).await.ok();
        names.extend(
            page["items"].as_array().unwrap().iter().map(|flow| flow["name"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/v1/flows?limit=2&cursor={next}");
    }
    names.sort();
    assert_eq!(names, ["a", "b", "c"]);
    host.get("/api/v1/flows?cursor=nonsense").await.refused(400, "bad_cursor");
}

#[tokio::test]
async fn a_flow_beside_its_definition_is_told_where_it_belongs() {
    let host = TestServer::new().await;
    let body = json!({ "name": "f", "nodes": [{ "id": "a", "type": "start" }] });
    let refused = host.post("/api/v1/flows", body).await.refused(422, "unknown_field");
    assert_eq!(refused["errors"][0]["path"], "nodes");
    assert_eq!(refused["errors"][0]["hint"], "put the flow into `definition`");
    let body = json!({ "name": "f", "definition": {}, "labels": [] });
    let refused = host.post("/api/v1/flows", body).await.refused(422, "invalid_body");
    assert_eq!(refused["errors"][0]["reason"], "invalid type: array, expected an object");
}
