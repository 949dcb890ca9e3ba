//! Bodies from the documents of other systems, word for word: they compile and expand as those documents say.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_engine::definition::{Strictness, compile, expand};
use windlass_engine::plan::Exec;

fn fixture(name: &str) -> String {
    let path = format!("{}/tests/documents/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[track_caller]
fn compiles(text: &str) -> std::sync::Arc<windlass_engine::plan::Plan> {
    let compiled = compile(text, Strictness::Strict);
    let problems: Vec<String> = compiled.problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{problems:#?}");
    compiled.plan.expect("the definition compiles")
}

#[test]
fn every_body_compiles_without_a_problem() {
    for name in ["workflows/digital-human.yaml", "workflows/image-to-video.yaml", "steps/complete.json"] {
        compiles(&fixture(name));
    }
    compiles(&fixture("steps/conversion.json"));
    compiles(&format!("{{\"steps\": [{}]}}", fixture("steps/parallel.json")));
}

#[test]
fn a_workflow_keeps_its_names_and_calls_its_types() {
    let plan = compiles(&fixture("workflows/image-to-video.yaml"));
    assert_eq!(plan.title.as_deref(), Some("图片转视频"));
    let titles: BTreeMap<&str, &str> =
        plan.root.nodes.iter().map(|node| (node.key.as_str(), node.title.as_deref().unwrap())).collect();
    let expected = [("start", "开始"), ("img_gen", "生成图片"), ("vid_motion", "添加动作"), ("end", "结束")];
    assert_eq!(titles, BTreeMap::from(expected));
    let called: Vec<_> = plan.nodes().flat_map(|node| node.calls()).collect();
    let mut services: Vec<&str> = called.iter().map(|call| call.service.as_str()).collect();
    services.sort_unstable();
    assert_eq!(services, ["image_generation", "video_motion"]);
    assert!(called.iter().all(|call| call.exec == Exec::Queue));
}

#[test]
fn the_conversion_gives_the_tasks_that_the_document_lists() {
    let steps: Value = serde_json::from_str(&fixture("steps/conversion.json")).unwrap();
    let expansion = expand(&steps, Strictness::Strict);
    assert_eq!(expansion.problems, []);
    let tasks: Vec<Value> =
        expansion.tasks.iter().map(|task| json!({"id": task.id, "dependOn": task.depend_on})).collect();
    let expected: Value = serde_json::from_str(&fixture("steps/conversion-tasks.json")).unwrap();
    assert_eq!(json!({"tasks": tasks}), expected);
}

#[test]
fn task_ids_follow_the_rule_of_the_document() {
    let steps: Value = serde_json::from_str(&fixture("steps/complete.json")).unwrap();
    let expansion = expand(&steps, Strictness::Strict);
    let ids: Vec<(&str, &str, Option<&str>)> = expansion
        .tasks
        .iter()
        .map(|task| (task.id.as_str(), task.task_id.as_str(), task.title.as_deref()))
        .collect();
    let expected = [
        ("0", "0", Some("准备数据")),
        ("1-1", "1_b0_s0", Some("处理文件A")),
        ("2-1", "1_b1_s0", Some("处理文件B")),
        ("3-1", "1_b2_s0", Some("处理文件C")),
        ("3-2", "1_b2_s1", Some("处理文件C的后续操作")),
        ("4", "4", Some("合并结果")),
    ];
    assert_eq!(ids, expected);
}
