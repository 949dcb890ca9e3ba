//! Flows of the dag form, from the definition to the result.

use serde_json::{Value, json};

use crate::test_server::{TestResponse, TestServer};

fn digital_human() -> Value {
    json!({
        "nodes": [
            { "id": "start", "type": "start", "name": "开始" },
            { "id": "video_motion", "type": "video_motion", "name": "视频动作", "config": { "image": "$var.image" } },
            { "id": "audio_tts", "type": "audio_tts", "name": "语音合成", "config": { "text": "$var.text" } },
            { "id": "video_lipsync", "type": "video_lipsync", "name": "口型同步", "config": {
                "video": "$node.video_motion.output.resources[0].url", "audio": "$node.audio_tts.output.urls[0]" } },
            { "id": "end", "type": "end", "name": "结束", "config": { "outputs": [
                { "name": "film", "source": "$node.video_lipsync.output.urls[0]" }] } }
        ],
        "edges": [
            { "source": "start", "target": "video_motion" }, { "source": "start", "target": "audio_tts" },
            { "source": "video_motion", "target": "video_lipsync" }, { "source": "audio_tts", "target": "video_lipsync" },
            { "source": "video_lipsync", "target": "end" }
        ],
        "variables": {
            "image": { "type": "url", "required": true }, "text": { "type": "string", "defaultValue": "hello" },
            "style": { "type": "object" }, "tags": { "type": "array" }, "loud": { "type": "boolean" }, "n": { "type": "number" }
        }
    })
}

#[tokio::test]
async fn a_digital_human_is_made() {
    let host = TestServer::new().await;
    host.publish("human", digital_human()).await;
    let run = host.start("human", json!({ "variables": { "image": "https://example.com/face.png" } })).await;
    // Both at once, before either has ended.
    let (motion, audio) = (host.claim("video_motion").await, host.claim("audio_tts").await);
    assert_eq!(
        (&motion["params"]["image"], &audio["params"]["text"]),
        (&json!("https://example.com/face.png"), &json!("hello"))
    );
    let open = host.get(&format!("/api/v1/runs/{run}")).await.ok();
    let states = &open["node_states"];
    assert_eq!(
        (&states["video_motion"]["status"], &states["video_lipsync"]["status"]),
        (&json!("running"), &json!("pending"))
    );
    assert_eq!(states["video_motion"]["job"], motion["id"]);
    let later = json!({ "outcome": "suspended", "memo": { "task": 41 }, "recheck_ms": 100 });
    assert_eq!(host.finish(&motion, later).await, "ok");
    assert_eq!(host.finish(&audio, json!({ "outcome": "done", "result": { "resources": [{ "type": "audio", "url": "asset://a.mp3" }] } })).await, "ok");
    let motion = host.claim("video_motion").await;
    assert_eq!((&motion["memo"], &motion["attempt"]), (&json!({ "task": 41 }), &json!(1)));
    assert_eq!(
        host.finish(&motion, json!({ "outcome": "done", "result": { "urls": ["asset://m.mp4"] } })).await,
        "ok"
    );
    let sync = host.claim("video_lipsync").await;
    assert_eq!(sync["params"], json!({ "video": "asset://m.mp4", "audio": "asset://a.mp3" }));
    assert_eq!(
        host.finish(&sync, json!({ "outcome": "done", "result": { "urls": ["asset://film.mp4"] } })).await,
        "ok"
    );
    let ended = host.ended(&run).await;
    assert_eq!(ended["result"], json!({ "film": "asset://film.mp4" }));
    let state = &ended["node_states"]["video_lipsync"];
    assert_eq!(
        (&state["status"], &state["job"], &state["output"]),
        (&json!("completed"), &sync["id"], &json!({ "urls": ["asset://film.mp4"] }))
    );
    assert!(
        state["started_at"].is_string() && state["finished_at"].is_string() && state["error"].is_null(),
        "{state}"
    );
    assert_eq!(state["title"], "口型同步");
}

fn paths(response: &TestResponse, status: u16, code: &str) -> Vec<String> {
    let body = response.refused(status, code);
    body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["path"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn variables_that_do_not_fit_are_all_named() {
    let host = TestServer::new().await;
    host.publish("human", digital_human()).await;
    let start = async |variables: Value| {
        host.post("/api/v1/flows/human/runs", json!({ "variables": variables })).await
    };
    let bad = json!({ "image": "face.png", "text": 7, "style": [], "tags": {}, "loud": "yes", "n": "1", "txet": 1 });
    let response = start(bad).await;
    let names =
        ["image", "loud", "n", "style", "tags", "text", "txet"].map(|name| format!("$.variables.{name}"));
    assert_eq!(paths(&response, 422, "invalid_input"), names);
    assert_eq!(paths(&start(json!({})).await, 422, "invalid_input"), ["$.variables.image"]);
    for image in ["", "face.png", "https://", "://x", "https://a b", "ht tp://x"] {
        assert_eq!(
            paths(&start(json!({ "image": image })).await, 422, "invalid_input"),
            ["$.variables.image"],
            "{image}"
        );
    }
    let both = host.post("/api/v1/flows/human/runs", json!({ "variables": {}, "params": {} })).await;
    assert_eq!(paths(&both, 422, "invalid_body"), ["variables"]);
    assert_eq!(host.get("/api/v1/runs").await.ok()["items"], json!([]));
}

#[tokio::test]
async fn variables_are_laid_over_the_defaults_and_anything_goes_where_none_are_declared() {
    let host = TestServer::new().await;
    host.publish("human", digital_human()).await;
    let run = host
        .start("human", json!({ "variables": { "image": "s3://faces/a.png", "text": "hi", "n": 1.5 } }))
        .await;
    let shown = host.get(&format!("/api/v1/runs/{run}")).await.ok();
    assert_eq!(shown["params"], json!({ "image": "s3://faces/a.png", "text": "hi", "n": 1.5 }));
    host.publish("open", json!({ "nodes": [{ "id": "a", "type": "start" }], "edges": [] })).await;
    let run = host.start("open", json!({ "variables": { "whatever": [1] } })).await;
    assert_eq!(host.ended(&run).await["status"], "completed");
}

#[tokio::test]
async fn start_nodes_that_are_not_there_are_named() {
    let host = TestServer::new().await;
    host.publish("human", digital_human()).await;
    let start = async |mut body: Value| {
        body["variables"] = json!({ "image": "https://example.com/face.png" });
        host.post("/api/v1/flows/human/runs", body).await
    };
    let unknown =
        start(json!({ "exec_mode": "specified_starts", "start_node_ids": ["audio_tts", "audio_stt"] })).await;
    let body = unknown.refused(422, "invalid_input");
    assert_eq!(body["errors"][0]["path"], "$.start_node_ids[1]");
    assert_eq!(body["errors"][0]["hint"], "did you mean `audio_tts`?");
    let none = start(json!({ "exec_mode": "isolated_nodes" })).await;
    assert_eq!(paths(&none, 422, "invalid_input"), ["$.start_node_ids"]);
    let idle = start(json!({ "start_node_ids": ["audio_tts"] })).await;
    assert_eq!(paths(&idle, 422, "invalid_input"), ["$.start_node_ids"]);
    start(json!({ "exec_mode": "some" })).await.refused(422, "invalid_body");
}

#[tokio::test]
async fn an_exec_mode_runs_its_part_and_says_what_is_read_in_vain() {
    let host = TestServer::new().await;
    host.publish("human", digital_human()).await;
    let body = json!({ "variables": { "image": "https://example.com/face.png" }, "exec_mode": "isolated_nodes", "start_node_ids": ["video_lipsync"] });
    let run = host.start("human", body).await;
    let sync = host.claim("video_lipsync").await;
    assert_eq!(sync["params"], json!({ "video": null, "audio": null }));
    assert_eq!(host.finish(&sync, json!({ "outcome": "done", "result": 1 })).await, "ok");
    let ended = host.ended(&run).await;
    let states = &ended["node_states"];
    assert_eq!((&ended["status"], &states["audio_tts"]["status"]), (&json!("completed"), &json!("skipped")));
    let said = host.lines(&run, "&level=warn").await;
    let said: Vec<&str> = said.iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert_eq!(said.len(), 2);
    assert!(said[0].starts_with("reads `audio_tts`, which takes no part"), "{said:?}");
}

#[tokio::test]
async fn references_to_what_cannot_have_run_are_refused_with_the_place() {
    let host = TestServer::new().await;
    let publish = async |config: Value, condition: &str| {
        let definition = json!({
            "nodes": [{ "id": "a", "type": "x", "config": config }, { "id": "b", "type": "x" }, { "id": "c", "type": "x" }],
            "edges": [{ "source": "a", "target": "b", "condition": condition }]
        });
        host.post("/api/v1/flows", json!({ "name": "f", "definition": definition })).await
    };
    for (config, reason) in [
        (json!({ "v": ["$node.b.output"] }), "`b` cannot have run before this node"),
        (json!({ "v": "$node.c.output.x" }), "`c` need not have run before this node"),
        (json!({ "v": "$node.a.output" }), "a node cannot read its own result"),
        (json!({ "v": "$node.d.output" }), "reference to unknown node `d`"),
    ] {
        let body = publish(config, "").await.refused(422, "invalid_definition");
        let errors = body["errors"].as_array().unwrap();
        let named = errors.iter().find(|error| error["reason"].as_str().unwrap().contains(reason));
        assert_eq!(named.expect(reason)["path"], "$.nodes[0]", "{body}");
    }
    let body = publish(json!({}), "$node.c.output == 1").await.refused(422, "invalid_definition");
    assert!(body["errors"][0]["hint"].as_str().unwrap().contains("depend on `c`"), "{body}");
    publish(json!({}), "$node.a.output == 1").await.ok();
}

#[tokio::test]
async fn built_in_nodes_do_what_they_say() {
    let host = TestServer::new().await;
    host.publish("all", json!({
        "nodes": [
            { "id": "start", "type": "start" },
            { "id": "set", "type": "variable_set", "config": { "variables": [
                { "name": "n", "value": 3 }, { "name": "copy", "value": "$var.given.list[1]" }] } },
            { "id": "big", "type": "condition", "config": { "expression": "$var.n >= 3 && $var.copy === 'b'" } },
            { "id": "wait", "type": "delay", "config": { "delaySeconds": 0.05 } },
            { "id": "no", "type": "variable_set", "config": { "variables": [{ "name": "never", "value": true }] } },
            { "id": "after", "type": "variable_set", "config": { "variables": [{ "name": "later", "value": true }] } },
            { "id": "end", "type": "end", "config": { "outputs": [
                { "name": "n", "source": "$var.n" }, { "name": "big", "source": "$node.big.output" },
                { "name": "never", "source": "$var.never" }, { "name": "whole", "source": "$node.set.output" }] } }
        ],
        "edges": [
            { "source": "start", "target": "set" }, { "source": "set", "target": "big" },
            { "source": "big", "target": "wait", "condition": "true" }, { "source": "big", "target": "no", "condition": "false" },
            { "source": "no", "target": "after" },
            { "source": "wait", "target": "end" }, { "source": "after", "target": "end" }
        ]
    })).await;
    let run = host.start("all", json!({ "variables": { "given": { "list": ["a", "b"] } } })).await;
    let ended = host.ended(&run).await;
    let expected = json!({ "n": 3, "big": true, "never": null, "whole": { "n": 3, "copy": "b" } });
    assert_eq!((&ended["status"], &ended["result"]), (&json!("completed"), &expected));
    let status = |node: &str| ended["node_states"][node]["status"].as_str().unwrap().to_owned();
    assert_eq!(
        (status("wait"), status("no"), status("after"), status("end")),
        ("completed".to_owned(), "skipped".to_owned(), "skipped".to_owned(), "completed".to_owned())
    );
    let (from, to) =
        (&ended["node_states"]["wait"]["started_at"], &ended["node_states"]["wait"]["finished_at"]);
    assert!(from.as_str() < to.as_str(), "{from} {to}");
}
