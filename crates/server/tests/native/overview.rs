//! The overview, time series, and the page of a run.

use serde_json::{Value, json};

use crate::test_server::{TestServer, upper, waiting};

#[tokio::test]
async fn an_empty_store_says_so_and_the_numbers_follow_the_work() {
    let host = TestServer::new().await;
    let empty = host.get("/api/v1/overview").await.ok();
    assert_eq!((&empty["is_empty"], &empty["tiles"]["running"]), (&json!(true), &json!({ "count": 0 })));
    host.publish("w", waiting()).await;
    let run = host.start("w", json!({})).await;
    host.until(&run, |run| run["status"] == "waiting").await;
    let job = json!({ "name": "resize", "queue": "gpu", "retry": { "max": 0 } });
    host.post("/api/v1/jobs", job).await.ok();
    let full = host.get("/api/v1/overview").await.ok();
    assert_eq!(full["is_empty"], false);
    assert_eq!(
        (&full["tiles"]["waiting"], &full["tiles"]["queued"]),
        (&json!({ "count": 1 }), &json!({ "count": 1 }))
    );
    let items = full["attention"].as_array().unwrap();
    let lonely = items.iter().find(|item| item["kind"] == "no_worker").unwrap_or_else(|| panic!("{full}"));
    assert_eq!((&lonely["subject"], &lonely["count"]), (&json!("gpu"), &json!(1)));
    assert!(lonely["text"].as_str().unwrap().contains("no live worker serves it"));
    host.post("/api/v1/queues/gpu/pause", json!({})).await.ok();
    let paused = host.get("/api/v1/overview").await.ok();
    assert!(
        paused["attention"].as_array().unwrap().iter().any(|item| item["kind"] == "queue_paused"),
        "{paused}"
    );
}

#[tokio::test]
async fn examples_are_published_once() {
    let text = upper().to_string();
    let examples =
        ["one", "two"].map(|name| windlass_server::ExampleFlow { name: name.to_owned(), text: text.clone() });
    let options =
        windlass_server::Options { examples: examples.to_vec(), ..windlass_server::Options::default() };
    let host = TestServer::with(options).await;
    host.publish("two", waiting()).await;
    let listed = host.get("/api/v1/examples").await.ok();
    assert_eq!(
        listed["items"],
        json!([{ "name": "one", "loaded": false }, { "name": "two", "loaded": true }])
    );
    let loaded = host.post("/api/v1/examples", json!({})).await.ok();
    assert_eq!((&loaded["published"][0]["name"], &loaded["kept"]), (&json!("one"), &json!(["two"])));
    assert_eq!(host.get("/api/v1/flows/two").await.ok()["version"]["version"], 1);
    host.post("/api/v1/examples", json!({ "names": ["three"] })).await.refused(422, "invalid_body");
}

#[tokio::test]
async fn a_chart_has_columns_of_one_length() {
    let host = TestServer::new().await;
    for (range, step, points) in [("1h", 60, 60), ("6h", 60, 360), ("24h", 240, 360), ("7d", 1_680, 360)] {
        let chart = host.get(&format!("/api/v1/series?range={range}")).await.ok();
        assert_eq!(chart["step"], step, "{range}");
        let n = chart["at"].as_array().unwrap().len();
        assert!((points..=points + 1).contains(&n), "{range}: {n}");
        let columns = chart["series"].as_object().unwrap();
        assert!(columns.contains_key("runs_completed") && columns.contains_key("wait_ms_p95"));
        assert!(columns.values().all(|column| column.as_array().unwrap().len() == n), "{range}");
    }
    let queue = host.get("/api/v1/series?queue=gpu").await.ok();
    assert!(!queue["series"].as_object().unwrap().contains_key("runs_completed"));
    for wrong in [
        "range=2h",
        "range=1h&from=2026-01-01T00:00:00Z",
        "step=61",
        "range=7d&step=60",
        "from=2990-01-01T00:00:00Z",
    ] {
        host.get(&format!("/api/v1/series?{wrong}")).await.refused(400, "bad_query");
    }
    let about = host.get("/api/v1/about").await.ok();
    assert!(about["version"].is_string() && about["server"].as_str().unwrap().starts_with("srv_"), "{about}");
}

#[tokio::test]
async fn the_page_of_a_run_has_its_nodes_attempts_and_reasons() {
    let host = TestServer::new().await;
    host.publish("w", waiting()).await;
    let run = host.start("w", json!({ "params": { "text": "x".repeat(5_000) } })).await;
    let waits = host.until(&run, |run| run["status"] == "waiting").await;
    let page = host.get(&format!("/api/v1/runs/{run}/view")).await.ok();
    assert_eq!((&page["run"]["id"], &page["seq"]), (&json!(run), &waits["len"]));
    assert_eq!(page["run"]["status"], "waiting");
    let text = page["params"]["head"].as_str().unwrap();
    assert!(text.starts_with("{\"text\":\"xxx") && text.len() <= 2_048);
    assert_eq!(page["params"]["bytes"], 5_011);
    assert_eq!(page["why"][0]["waits_for"], "signal");
    let attempts = page["attempts"].as_array().unwrap();
    assert!(attempts.iter().any(|attempt| attempt["status"] == "waiting"), "{page}");
    let nodes = page["graph"]["nodes"].as_array().unwrap();
    for node in page["node_states"].as_object().unwrap().keys() {
        assert!(nodes.iter().any(|drawn| drawn["id"] == node.as_str()), "{node} is not drawn");
    }
    let params = host.get(&format!("/api/v1/runs/{run}/output?of=params")).await;
    assert_eq!(params.ok()["text"].as_str().unwrap().len(), 5_000);
    let name = format!("attachment; filename=\"{run}-params.json\"");
    assert_eq!(params.headers["content-disposition"], name.as_str());
    host.get(&format!("/api/v1/runs/{run}/output?of=x")).await.refused(400, "bad_query");
}

#[tokio::test]
async fn the_output_of_an_attempt_can_be_downloaded() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    let run = host.start("a", json!({ "params": { "text": "hi" } })).await;
    let ended = host.ended(&run).await;
    let page = host.get(&format!("/api/v1/runs/{run}/view")).await.ok();
    let attempts = page["attempts"].as_array().unwrap();
    let called = attempts.iter().find(|attempt| attempt["fence"].is_u64()).unwrap();
    let (fence, output) = (&called["fence"], &called["output"]["value"]);
    let path = format!("/api/v1/runs/{run}/output");
    assert_eq!(host.get(&format!("{path}?fence={fence}")).await.ok(), *output);
    assert_eq!(host.get(&format!("{path}?fence={fence}&of=input")).await.ok(), called["input"]["value"]);
    assert_eq!(host.get(&path).await.json(), *ended.get("result").unwrap_or(&Value::Null));
    host.get(&format!("{path}?fence=999")).await.refused(400, "bad_query");
}

#[tokio::test]
async fn a_validation_has_places_and_a_graph() {
    let host = TestServer::new().await;
    let yaml = "start: a\nnodes:\n  a: {kind: local, func: 5}\n";
    let wrong = host.post("/api/v1/flows/validate", json!({ "yaml": yaml })).await.ok();
    assert_eq!((&wrong["ok"], wrong.get("graph")), (&json!(false), None));
    let problem = &wrong["problems"][0];
    assert_eq!((&problem["line"], &problem["pointer"]), (&json!(3), &json!("/nodes/a/func")), "{wrong}");
    let right = host.post("/api/v1/flows/validate", json!({ "definition": upper() })).await.ok();
    assert!(right["graph"]["nodes"].as_array().is_some_and(|nodes| !nodes.is_empty()), "{right}");
}

#[tokio::test]
async fn a_diff_names_the_nodes_that_differ() {
    let host = TestServer::new().await;
    let flow = |value: u64, more: bool| {
        let mut nodes = json!({
            "a": { "kind": "local", "func": "echo", "prep": { "input_map": { "n": value } } },
            "b": { "kind": "local", "func": "echo" } });
        let mut edges = json!([{ "from": "a", "to": "b" }]);
        if more {
            nodes["c"] = json!({ "kind": "local", "func": "echo" });
            edges = json!([{ "from": "a", "to": "b" }, { "from": "b", "to": "c" }]);
        }
        json!({ "start": "a", "nodes": nodes, "edges": edges })
    };
    host.publish("f", flow(1, false)).await;
    host.post("/api/v1/flows/f/versions", json!({ "definition": flow(2, true) })).await.ok();
    let diff = host.get("/api/v1/flows/f/diff").await.ok();
    let expected = json!([
        { "node": "a", "kind": "changed", "pointers": ["/nodes/a/prep/input_map/n"] },
        { "node": "c", "kind": "added", "pointers": ["/nodes/c"] }
    ]);
    assert_eq!(diff["nodes"], expected);
    assert!(diff["after_text"].as_str().unwrap().contains("\"c\""), "{diff}");
}
