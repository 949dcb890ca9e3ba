//! Starting runs and looking at them.

use serde_json::json;

use crate::test_server::{TestServer, approval, queued, upper, waiting};

#[tokio::test]
async fn a_run_is_started_and_its_end_is_waited_for() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    let response =
        host.post("/api/v1/flows/a/runs?wait_ms=20000", json!({ "params": { "text": "hi" } })).await;
    assert_eq!(response.status, 201);
    let started = response.ok();
    assert_eq!(
        (&started["status"], &started["version"], &started["flow"]),
        (&json!("completed"), &json!(1), &json!("a"))
    );
    assert_eq!(started["run"]["shared"], json!({ "loud": "HI" }));
    let run = host.get(&format!("/api/v1/runs/{}", started["id"].as_str().unwrap())).await.ok();
    let node = &run["node_states"]["shout"];
    assert_eq!((&node["status"], &node["output"]), (&json!("completed"), &json!("HI")));
    assert!(node["started_at"].as_str().unwrap().ends_with('Z') && node["finished_at"].is_string(), "{node}");
    assert_eq!(
        (&run["params"], &run["cost"]),
        (&json!({ "text": "hi" }), &json!({ "estimated": 0, "actual": 0 }))
    );
    assert_eq!((&run["exec_mode"], &run["priority"]), (&json!("all"), &json!("medium")));
}

#[tokio::test]
async fn the_same_request_starts_one_run() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    let body = json!({ "params": { "text": "hi" }, "request_id": "r-1" });
    let first = host.post("/api/v1/flows/a/runs", body.clone()).await;
    let again = host.post("/api/v1/flows/a/runs", body).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 200));
    assert_eq!(first.ok()["id"], again.ok()["id"]);
    let other = json!({ "params": { "text": "ho" }, "request_id": "r-1" });
    host.post("/api/v1/flows/a/runs", other).await.refused(409, "request_taken");
}

#[tokio::test]
async fn runs_are_listed_by_what_is_asked() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    host.publish("b", waiting()).await;
    let done = host.start("a", json!({ "params": { "text": "x" }, "labels": { "team": "red" } })).await;
    host.ended(&done).await;
    let open = host.start("b", json!({})).await;
    let ids = async |query: &str| {
        let listed = host.get(&format!("/api/v1/runs{query}")).await.ok();
        let ids =
            listed["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, [&*open, &*done]);
    assert_eq!(ids("?flow=a").await, [&*done]);
    assert_eq!(ids("?status=completed,failed").await, [&*done]);
    assert_eq!(ids("?status=waiting").await, [&*open]);
    assert_eq!(ids("?label=team%3Dred").await, [&*done]);
    assert_eq!(ids(&format!("?q={}", &open[4..])).await, [&*open]);
    assert_eq!(ids("?since=2999-01-01T00:00:00Z").await, Vec::<String>::new());
    assert_eq!(ids("?until=2999-01-01T00:00:00Z&limit=1").await, [&*open]);
    host.get("/api/v1/runs?status=nonsense").await.refused(400, "bad_query");
    host.get("/api/v1/runs?since=yesterday").await.refused(400, "bad_query");
    host.get("/api/v1/runs?flow=nobody").await.refused(404, "unknown_flow");
}

#[tokio::test]
async fn the_journal_of_a_run_can_be_read() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    let run = host.start("a", json!({ "params": { "text": "hi" } })).await;
    let ended = host.ended(&run).await;
    let attempts = host.get(&format!("/api/v1/runs/{run}/attempts")).await.ok();
    let attempt = &attempts["items"][0];
    assert_eq!(
        (&attempt["node"], &attempt["status"], &attempt["output"]),
        (&json!("shout"), &json!("ok"), &json!("HI"))
    );
    let journal = host.get(&format!("/api/v1/runs/{run}/journal?limit=1")).await.ok();
    assert_eq!(
        (&journal["items"][0]["seq"], &journal["items"][0]["events"][0]["e"]),
        (&json!(1), &json!("started"))
    );
    let mut seen = 1;
    let mut next = journal["next"].as_str().map(str::to_owned);
    while let Some(cursor) = next {
        let page = host.get(&format!("/api/v1/runs/{run}/journal?limit=1&cursor={cursor}")).await.ok();
        assert_eq!(page["items"][0]["seq"], seen + 1);
        (seen, next) = (seen + 1, page["next"].as_str().map(str::to_owned));
    }
    assert_eq!(ended["len"], seen);
    assert!(host.get(&format!("/api/v1/runs/{run}/logs")).await.ok()["items"].is_array());
}

#[tokio::test]
async fn the_state_at_any_entry_is_the_fold_of_the_journal_up_to_it() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    let run = host.start("b", json!({})).await;
    let before = host.get(&format!("/api/v1/runs/{run}/state")).await.ok();
    assert_eq!((&before["status"], &before["shared"]), (&json!("waiting"), &json!({})));
    host.post(&format!("/api/v1/runs/{run}/signal"), json!({ "key": "payment", "value": 7 })).await.ok();
    let ended = host.ended(&run).await;
    assert_eq!(ended["shared"]["shipped"], 7);
    let then = host.get(&format!("/api/v1/runs/{run}/state?at={}", before["at"])).await.ok();
    assert_eq!((&then["status"], &then["node_states"]), (&before["status"], &before["node_states"]));
    assert_eq!((&then["len"], &then["at"]), (&ended["len"], &before["at"]));
    let last = host.get(&format!("/api/v1/runs/{run}/state?at={}", ended["len"])).await.ok();
    assert_eq!((&last["status"], &last["shared"]), (&json!("completed"), &ended["shared"]));
    assert_eq!(last["signals"], json!({ "payment": 7 }));
    for at in [0, 9_999] {
        host.get(&format!("/api/v1/runs/{run}/state?at={at}")).await.refused(404, "unknown_entry");
    }
}

#[tokio::test]
async fn why_says_what_would_clear_it() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    host.publish("c", approval()).await;
    host.publish("d", queued()).await;
    let why = async |flow: &str| {
        let run = host.start(flow, json!({ "params": {} })).await;
        let response = host.get(&format!("/api/v1/runs/{run}/why")).await.ok();
        response["reasons"][0].clone()
    };
    let signal = why("b").await;
    assert_eq!(
        (&signal["waits_for"], &signal["key"], &signal["node"]),
        (&json!("signal"), &json!("payment"), &json!("paid"))
    );
    assert!(signal["command"].as_str().unwrap().starts_with("windlass run signal run_"), "{signal}");
    assert_eq!(why("c").await["assignees"], json!(["ann", "bob"]));
    let worker = why("d").await;
    assert_eq!((&worker["waits_for"], &worker["n_workers"]), (&json!("worker"), &json!(0)));
    assert_eq!(worker["command"], "windlass worker list");
    assert!(worker["text"].as_str().unwrap().contains("docs/workers.md"), "{worker}");
}

#[tokio::test]
async fn invalid_starts_are_refused() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    host.post("/api/v1/flows/nobody/runs", json!({})).await.refused(404, "unknown_flow");
    host.post("/api/v1/flows/a/runs", json!({ "account": "nobody" })).await.refused(422, "unknown_account");
    host.post("/api/v1/flows/a/runs", json!({ "version": 9 })).await.refused(404, "unknown_version");
    host.post("/api/v1/flows/a/runs", json!({ "params": {}, "variables": {} }))
        .await
        .refused(422, "invalid_body");
    host.post("/api/v1/flows/a/runs", json!({ "budget": -1 })).await.refused(422, "invalid_body");
    host.post("/api/v1/flows/a/runs?wait_ms=60001", json!({})).await.refused(400, "bad_query");
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    host.post("/api/v1/flows/a/runs", json!({ "params": { "text": deep } }))
        .await
        .refused(422, "invalid_input");
    let starts = json!({ "exec_mode": "specified_starts", "start_node_ids": ["nowhere"] });
    assert_eq!(host.post("/api/v1/flows/a/runs", starts).await.status, 422);
    assert_eq!(host.get("/api/v1/runs").await.ok()["items"], json!([]));
}
