//! Bodies from the documents of other systems, word for word, run from start to end.

use serde_json::{Value, json};

use crate::test_server::TestServer;

const DIGITAL_HUMAN: &str = include_str!("../../../engine/tests/documents/workflows/digital-human.yaml");
const IMAGE_TO_VIDEO: &str = include_str!("../../../engine/tests/documents/workflows/image-to-video.yaml");
const PARALLEL: &str = include_str!("../../../engine/tests/documents/steps/parallel.json");
const COMPLETE: &str = include_str!("../../../engine/tests/documents/steps/complete.json");
const CONVERSION: &str = include_str!("../../../engine/tests/documents/steps/conversion.json");
const CONVERSION_TASKS: &str = include_str!("../../../engine/tests/documents/steps/conversion-tasks.json");

async fn publish(host: &TestServer, name: &str, text: &str) {
    host.post("/api/v1/flows", json!({ "name": name, "yaml": text })).await.ok();
}

/// Takes the next job of a service and ends it; answers with the job.
async fn done(host: &TestServer, service: &str, result: Value) -> Value {
    let job = host.claim(service).await;
    assert_eq!(host.finish(&job, json!({ "outcome": "done", "result": result })).await, "ok");
    job
}

#[tokio::test]
async fn the_digital_human_runs_as_drawn() {
    let host = TestServer::new().await;
    publish(&host, "human", DIGITAL_HUMAN).await;
    let run = host.start("human", json!({})).await;
    // Both begin before either has ended.
    let (motion, audio) = (host.claim("video_motion").await, host.claim("audio_tts").await);
    for job in [&motion, &audio] {
        assert_eq!(host.finish(job, json!({ "outcome": "done", "result": { "urls": ["x"] } })).await, "ok");
    }
    done(&host, "video_lipsync", json!({ "urls": ["film.mp4"] })).await;
    let ended = host.ended(&run).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    for (node, title) in
        [("start", "开始"), ("video_motion", "视频动作"), ("video_lipsync", "口型同步"), ("end", "结束")]
    {
        let state = &ended["node_states"][node];
        assert_eq!((&state["title"], &state["status"]), (&json!(title), &json!("completed")), "{node}");
    }
    let lines = host.lines(&run, "&node=audio_tts").await;
    assert!(!lines.is_empty() && lines.iter().all(|line| line["title"] == "语音合成"), "{lines:?}");
}

#[tokio::test]
async fn the_template_of_the_guide_runs() {
    let host = TestServer::new().await;
    publish(&host, "image", IMAGE_TO_VIDEO).await;
    let run = host.start("image", json!({ "variables": { "prompt": "a cat" } })).await;
    let drawn = done(&host, "image_generation", json!({ "type": "image", "urls": ["cat.png"] })).await;
    assert_eq!(drawn["params"], json!({ "prompt": "a cat" }));
    done(&host, "video_motion", json!({})).await;
    assert_eq!(host.ended(&run).await["status"], "completed");
}

#[tokio::test]
async fn the_complete_steps_run_side_by_side() {
    let host = TestServer::new().await;
    publish(&host, "files", COMPLETE).await;
    let run = host.start("files", json!({ "params": { "id": "gns://doc" } })).await;
    // All three copies are in hand at once.
    let mut copies = Vec::new();
    for _ in 0..3 {
        copies.push(host.claim("@anyshare/file/copy").await);
    }
    for copy in &copies {
        assert_eq!((&copy["params"]["docid"], &copy["params"]["ondup"]), (&json!("gns://doc"), &json!(2)));
        let new = json!({ "new_docid": format!("new-{}", copy["node"].as_str().unwrap()) });
        assert_eq!(host.finish(copy, json!({ "outcome": "done", "result": new })).await, "ok");
    }
    let process = done(&host, "@anyshare/file/process", json!({ "new_docid": "new-3-2" })).await;
    assert_eq!(process["params"], json!({ "docid": "new-3-1" }));
    let merge = done(&host, "@anyshare/file/merge", json!("merged")).await;
    let merged = ["docid_a", "docid_b", "docid_c"].map(|field| merge["params"][field].clone());
    assert_eq!(merged, [json!("new-1-1"), json!("new-2-1"), json!("new-3-2")]);
    let ended = host.ended(&run).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(ended["node_states"]["3-2"]["task_id"], "1_b2_s1");
}

#[tokio::test]
async fn the_conversion_expands_and_runs() {
    let host = TestServer::new().await;
    let expanded = host.post("/api/v1/flows/expand", json!({ "yaml": CONVERSION })).await.ok();
    let tasks = expanded["tasks"].as_array().unwrap().iter();
    let tasks: Vec<Value> =
        tasks.map(|task| json!({ "id": task["id"], "dependOn": task["dependOn"] })).collect();
    let expected: Value = serde_json::from_str(CONVERSION_TASKS).unwrap();
    assert_eq!(json!({ "tasks": tasks }), expected);
    publish(&host, "conversion", CONVERSION).await;
    let run = host.start("conversion", json!({ "params": { "id": 7 } })).await;
    for _ in 0..3 {
        done(&host, "@anyshare/file/copy", json!({ "new_docid": 1 })).await;
    }
    done(&host, "@anyshare/file/process", json!({ "new_docid": 2 })).await;
    let merge = done(&host, "@anyshare/file/merge", json!(null)).await;
    assert_eq!(merge["params"], json!({ "docid_a": 1, "docid_b": 1, "docid_c": 2 }));
    assert_eq!(host.ended(&run).await["status"], "completed");
}

#[tokio::test]
async fn the_parallel_of_the_definition_runs() {
    let host = TestServer::new().await;
    publish(&host, "parallel", &format!("{{\"steps\": [{PARALLEL}]}}")).await;
    let run = host.start("parallel", json!({})).await;
    for _ in 0..4 {
        done(&host, "...", json!(null)).await;
    }
    let ended = host.ended(&run).await;
    assert_eq!(ended["status"], "completed");
    let ids = ["1-1", "2-1", "3-1", "3-2"].map(|node| ended["node_states"][node]["task_id"].clone());
    assert_eq!(ids, [json!("1_b0_s0"), json!("1_b1_s0"), json!("1_b2_s0"), json!("1_b2_s1")]);
}

#[tokio::test]
async fn tasks_of_a_loop_have_ids_of_their_own() {
    let host = TestServer::new().await;
    let body = json!([{ "id": "one", "operator": "copy", "title": "Copy" }]);
    let parameters = json!({ "mode": "limit", "limit": 2 });
    let each =
        json!({ "id": "each", "operator": "@control/flow/loop", "parameters": parameters, "steps": body });
    let definition = json!({ "steps": [each] });
    let expanded = host.post("/api/v1/flows/expand", json!({ "definition": definition })).await.ok();
    let inside = json!([{ "id": "one", "task_id": "one_i{turn}", "operator": "copy", "title": "Copy", "dependOn": [] }]);
    assert_eq!(expanded["tasks"][0]["steps"], inside);
    host.publish("loop", definition).await;
    let run = host.start("loop", json!({})).await;
    for _ in 0..2 {
        done(&host, "copy", json!(null)).await;
    }
    let ended = host.ended(&run).await;
    let ids = ["each/0/one", "each/1/one"].map(|node| ended["node_states"][node]["task_id"].clone());
    assert_eq!(ids, [json!("one_i0"), json!("one_i1")]);
}

#[tokio::test]
async fn parallels_nested_too_deep_are_named() {
    let host = TestServer::new().await;
    let nested = |n: usize| {
        let steps = (0..n).fold(json!([{ "id": "last", "operator": "copy" }]), |steps, n| {
            let operator = "@control/flow/parallel";
            json!([{ "id": format!("p{n}"), "operator": operator, "branches": [{ "steps": steps }] }])
        });
        json!({ "name": format!("nested-{n}"), "definition": { "steps": steps } })
    };
    host.post("/api/v1/flows", nested(24)).await.ok();
    let body = host.post("/api/v1/flows", nested(25)).await.refused(422, "invalid_definition");
    let reason = body["errors"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("parallels are nested deeper than 24 levels: p24 → p23"), "{reason}");
    // A parser of the body stops earlier, and says where.
    let body = host.post("/api/v1/flows", nested(40)).await;
    let text = body.json().to_string();
    assert!(text.contains("branches[0].steps[0]") && text.contains("@subflow/call"), "{text}");
}
