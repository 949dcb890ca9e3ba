//! Runs with several rounds: the tables agree with the replayed journals.

use serde_json::json;
use windlass_engine::counter::Fence;
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::path::NodePath;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_store::Store;
use windlass_store::run::RunStatus;

use crate::driver::{Driver, start_with};
use crate::fixture::StoreFixture;

const ROW: &str = r#"{"nodes": [{"id": "a", "type": "x"}, {"id": "v", "type": "variable_set",
    "config": {"variables": [{"name": "k", "value": {"deep": null, "n": "$node.a.output"}}]}},
    {"id": "b", "type": "x"}, {"id": "c", "type": "x"}, {"id": "beside", "type": "x"}],
    "edges": [{"source": "a", "target": "v"}, {"source": "v", "target": "b"}, {"source": "b", "target": "c"}]}"#;
const CAUGHT: &str = r#"{"start": "a", "nodes": {"a": {"service": "s"}, "b": {"service": "t"}},
    "edges": [{"from": "a", "action": "error", "to": "b"}]}"#;
const FAN: &str = r#"{"start": "f", "nodes": {"f": {"kind": "foreach", "service": "t", "exec_type": "queue",
    "prep": {"input_key": "$shared.items"}, "parallel_mode": "concurrent"}}}"#;
const LOOP: &str = r#"{"steps": [{"id": "L", "operator": "@control/flow/loop",
    "parameters": {"mode": "limit", "limit": 3, "outputs": []},
    "steps": [{"id": "b", "operator": "x"}, {"id": "c", "operator": "x"}]}, {"id": "z", "operator": "x"}]}"#;

const WRITERS: [&str; 2] = [
    r#"{"steps": [
    {"id": "d", "operator": "@internal/define", "parameters": {"name": "sum", "value": 0}},
    {"id": "l[*?]_%\\", "operator": "@control/flow/loop", "parameters": {"limit": 3}, "steps": [
        {"id": "x", "operator": "svc"},
        {"id": "s", "operator": "@internal/assign", "parameters": {"target": "sum", "value": "{{__x.n}}"}}]}]}"#,
    r#"{"start": "a*", "nodes": {
    "a*": {"service": "s", "post": {"output_key": "all", "output_map": {"first": "list[0]", "none": "no.where",
        "odd": "['\"\\']['0'][0]"}}},
    "f": {"kind": "parallel", "parallel_mode": "concurrent", "post": {"output_key": "late"}, "parallel_execs": [
        {"service": "s", "post": {"output_key": "left"}}, {"service": "s", "post": {"output_key": "right"}}]}},
    "edges": [{"from": "a*", "to": "f"}]}"#,
];

fn boom(node: &str, fence: u64) -> Input {
    let outcome = CallOutcome::Failed(Fault::new(FaultKind::Error, "boom").permanent());
    Input::CallEnded { node: NodePath::from(node), fence: Fence(fence), outcome, worker: None }
}

fn rerun(from: &str) -> Input {
    Input::Rerun { from: NodePath::from(from), shared: None }
}

pub async fn a_rerun_resets_the_nodes_that_follow(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut row = Driver::new(&fixture, 1, ROW).await;
    row.start(start_with(json!({"k": {"old": true}, "it's \"odd\"": [1]})), 10).await;
    let at = ["a", "beside", "b", "c"];
    for (node, fence) in at.into_iter().zip(1..) {
        row.done(node, fence, json!(fence), 10 + i64::try_from(fence).unwrap()).await;
    }
    assert_eq!(fixture.run(1).await.unwrap().projection.status, RunStatus::Completed);
    row.submit(rerun("b"), 20).await.unwrap();
    assert_eq!(fixture.run(1).await.unwrap().projection.status, RunStatus::Running);

    let mut turns = Driver::new(&fixture, 2, LOOP).await;
    turns.start(start_with(json!({})), 10).await;
    let calls = ["L/0/b", "L/0/c", "L/1/b", "L/1/c", "L/2/b", "L/2/c", "z"];
    for (node, fence) in calls.into_iter().zip(1..) {
        turns.done(node, fence, json!(fence), 10 + i64::try_from(fence).unwrap()).await;
    }
    turns.submit(rerun("L/1/b"), 30).await.unwrap();
    assert_eq!(fixture.run(2).await.unwrap().projection.status, RunStatus::Running);

    let mut fan = Driver::new(&fixture, 3, FAN).await;
    fan.start(start_with(json!({})), 5).await;
    assert_eq!(fixture.run(3).await.unwrap().projection.status, RunStatus::Failed);
    for (items, now) in [(json!([1, 2, 3]), 10), (json!([1]), 20)] {
        let shared = json!({ "items": items }).as_object().cloned();
        fan.submit(Input::Rerun { from: NodePath::from("f"), shared }, now).await.unwrap();
        if now == 10 {
            fan.done("f/0", 1, json!(1), 15).await;
            fan.submit(boom("f/1", 2), 15).await.unwrap();
            fan.done("f/2", 3, json!(3), 15).await;
        }
    }
    assert_eq!(fixture.run(3).await.unwrap().projection.round, 3);
}

pub async fn a_retry_continues_at_the_failed_nodes(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut caught = Driver::new(&fixture, 1, CAUGHT).await;
    caught.start(start_with(json!({})), 10).await;
    caught.submit(boom("a", 1), 11).await.unwrap();
    caught.submit(boom("b", 2), 12).await.unwrap();
    caught.submit(Input::Retry, 13).await.unwrap();
    assert_eq!(fixture.run(1).await.unwrap().projection.node, Some(NodePath::from("b")));

    let mut row = Driver::new(&fixture, 2, ROW).await;
    row.start(start_with(json!({})), 10).await;
    row.done("a", 1, json!(1), 11).await;
    row.done("beside", 2, json!(1), 11).await;
    row.submit(boom("b", 3), 12).await.unwrap();
    row.submit(Input::Retry, 13).await.unwrap();
    assert_eq!(fixture.run(2).await.unwrap().projection.status, RunStatus::Running);

    let mut turns = Driver::new(&fixture, 3, LOOP).await;
    turns.start(start_with(json!({})), 10).await;
    turns.done("L/0/b", 1, json!(1), 11).await;
    turns.submit(boom("L/0/c", 2), 12).await.unwrap();
    turns.submit(Input::Retry, 13).await.unwrap();
    assert_eq!(fixture.run(3).await.unwrap().projection.round, 2);

    let fan = FAN.replace("$shared.items", "$params.items");
    let mut fan = Driver::new(&fixture, 4, &fan).await;
    fan.start(start_with(json!({"items": [1, 2, 3]})), 10).await;
    fan.done("f/0", 1, json!(1), 11).await;
    fan.submit(boom("f/1", 2), 12).await.unwrap();
    fan.done("f/2", 3, json!(3), 12).await;
    fan.submit(Input::Retry, 13).await.unwrap();
    assert_eq!(fixture.run(4).await.unwrap().projection.round, 2);
}

pub async fn nodes_write_while_their_runs_are_open(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut turns = Driver::new(&fixture, 1, WRITERS[0]).await;
    turns.start(start_with(json!({"given": "apart"})), 10).await;
    turns.done("l[*?]_%\\/0/x", 1, json!({"n": 5}), 11).await;
    turns.done("l[*?]_%\\/1/x", 2, json!({"n": "six"}), 12).await;
    let mut fan = Driver::new(&fixture, 2, WRITERS[1]).await;
    fan.start(start_with(json!({})), 10).await;
    fan.done("a*", 1, json!({"list": [{"deep": null}, 2], "\"\\": {"0": ["'"]}}), 11).await;
    fan.done("f/1", 3, json!([true]), 12).await;
    for run in [1, 2] {
        // The state has the writes at once, the row only after the end of the run.
        let row = fixture.run(run).await.unwrap();
        assert_eq!((row.projection.status, row.projection.shared), (RunStatus::Running, None));
    }
}
