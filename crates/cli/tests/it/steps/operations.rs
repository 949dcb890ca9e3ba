//! Operations on a run of steps by API and by command line, and steps that need no worker.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::http::{node_is, post};
use crate::shell::TestShell;

#[tokio::test(flavor = "multi_thread")]
async fn operators_and_templates_come_to_what_they_say() {
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "inner", json!({"steps": [
        {"id": "in", "operator": "@trigger/manual"},
        {"id": "out", "operator": "@internal/return", "parameters": {"twice": ["{{__in.x}}", "{{__in.x}}"]}}]})).await;
    let steps = [
        json!({"id": "0", "operator": "@trigger/manual"}),
        json!({"id": "total", "operator": "@internal/define", "parameters": {"name": "total", "value": 1}}),
        json!({"id": "more", "operator": "@internal/assign", "parameters": {"target": "total", "value": "{{__0.n}}"}}),
        json!({"id": "join", "operator": "@internal/text/join", "parameters": {"texts": ["a", "{{__0.name}}"], "separator": "-"}}),
        json!({"id": "split", "operator": "@internal/text/split", "parameters": {"text": "{{__join.text}}", "separator": "-"}}),
        json!({"id": "set", "operator": "@internal/json/set", "parameters": {"json": {"a": 1}, "key": "b", "value": "{{__split.list}}"}}),
        json!({"id": "get", "operator": "@internal/json/get", "parameters": {"json": "{{__set.json}}", "key": "b"}}),
        json!({"id": "now", "operator": "@internal/time/now"}),
        json!({"id": "call", "operator": "@subflow/call", "parameters": {"flow": "inner", "params": {"x": "{{__get.value}}"}}}),
        json!({"id": "out", "operator": "@internal/return", "parameters": {
            "kept": "{{$var.total}}", "text": "n={{$var.total}}", "literal": "{{{__0.n}}}", "missing": "{{__0.nothing}}",
            "sub": "{{__call.twice}}", "at": "{{__now.timestamp}}"}}),
    ];
    let run = comes_to(&client, "operators", &steps, json!({"n": 7, "name": "b"})).await;
    let result = &run["result"];
    assert_eq!(
        (&result["kept"], &result["text"]),
        (&json!(7), &json!("n=7")),
        "a single variable keeps its type"
    );
    assert_eq!((&result["literal"], &result["missing"]), (&json!("{{__0.n}}"), &Value::Null));
    assert_eq!(result["sub"], json!([["a", "b"], ["a", "b"]]));
    assert!(result["at"].is_i64(), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_tried_again_as_its_settings_say_and_a_slow_one_times_out() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let flaky = Worker::new(client.clone(), "flaky")
        .grace(Duration::ZERO)
        .service("flaky", async |call: ServiceCall| match call.attempt {
            1 => HandlerOutcome::failed("once"),
            attempt => HandlerOutcome::Done(json!(attempt)),
        })
        .service("slow", async |call: ServiceCall| {
            call.cancel.cancelled().await;
            HandlerOutcome::failed("stopped")
        });
    tokio::spawn(flaky.run(stop));
    let settings = json!({"retry": {"max": 1, "delay": 1}});
    let steps = [
        json!({"id": "a", "operator": "flaky", "settings": settings}),
        json!({"id": "b", "operator": "@internal/return", "parameters": {"attempt": "{{__a}}"}}),
    ];
    let run = comes_to(&client, "again", &steps, json!({})).await;
    assert_eq!(run["result"]["attempt"], 2);
    let slow = json!({"steps": [{"id": "a", "operator": "slow", "settings": {"timeout": {"delay": 1}}}]});
    publish(&client, "slow", slow).await;
    let failed = ends(&client, &start(&client, "slow", json!({})).await, "failed").await;
    assert_eq!(failed["error"]["node"], "a", "{failed}");
    assert!(failed["node_states"]["a"]["error"].to_string().contains("time"), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_paused_resumed_continued_decided_and_cancelled_by_the_command_line() {
    let shell = TestShell::open().await;
    let approval = r#"{"steps": [
        {"id": "ask", "operator": "@workflow/approval", "parameters": {"assignees": ["ann"]}},
        {"id": "if", "operator": "@control/flow/branches", "branches": [
            {"conditions": [[{"operator": "@workflow/cmp/approval-eq", "parameters": {"a": "{{__ask}}", "b": "approved"}}]],
             "steps": [{"id": "yes", "operator": "render"}]}]},
        {"id": "out", "operator": "@internal/return", "parameters": {"yes": "{{__yes}}"}}]}"#;
    shell.write("ask.json", approval);
    let tasks = shell.json(&["flow", "expand", "ask.json"]);
    assert_eq!(tasks["tasks"][2]["task_id"], "if_b0_s0", "{tasks}");
    shell.text(&["flow", "apply", "ask.json"]);
    let client = shell.server.client();
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let render = Worker::new(client.clone(), "render").grace(Duration::ZERO).service(
        "render",
        async |_: ServiceCall| HandlerOutcome::Suspended { memo: json!("job-7"), recheck: None },
    );
    tokio::spawn(render.run(stop));
    let id = shell.text(&["run", "start", "ask", "--quiet"]);
    node_is(&client, &id, "ask", "waiting").await;
    assert_eq!(shell.json(&["run", "pause", &id])["status"], "paused");
    shell.text(&["approvals", "approve", &format!("{id}/ask")]);
    assert_eq!(shell.json(&["run", "show", &id])["node_states"]["yes"]["status"], "pending", "it is paused");
    shell.text(&["run", "resume", &id]);
    node_is(&client, &id, "yes", "suspended").await;
    // No recheck: a report ends the call.
    assert_eq!(shell.json(&["run", "continue", &id, "yes", "\"by hand\""])["id"], id);
    let ended = ends(&client, &id, "completed").await;
    assert_eq!(ended["result"]["yes"], "by hand");
    let other = shell.text(&["run", "start", "ask", "--quiet"]);
    shell.text(&["run", "cancel", &other, "--reason", "changed my mind"]);
    ends(&client, &other, "canceled").await;
    assert!(shell.text(&["run", "stats", &id, "-o", "table"]).contains("at once"));
    assert!(shell.text(&["stats", "-o", "table"]).contains("since start"));
    assert!(shell.text(&["stats", "ask", "-o", "table"]).contains("yes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_does_only_what_failed() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let (stop, is_mended) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
    let _guard = stop.clone().drop_guard();
    let (_worker, diary) = worker(&client);
    let mended = is_mended.clone();
    let broken = Worker::new(client.clone(), "broken").grace(Duration::ZERO).service(
        "broken",
        move |_: ServiceCall| {
            let is_mended = mended.load(Ordering::Relaxed);
            async move {
                if is_mended {
                    HandlerOutcome::Done(json!("mended"))
                } else {
                    HandlerOutcome::refused("broken")
                }
            }
        },
    );
    tokio::spawn(broken.run(stop));
    let branches = [json!([step("a", "copy")]), json!([step("first", "copy"), step("b", "broken")])];
    let steps = json!([trigger(), parallel("p", &branches), {"id": "out", "operator": "@internal/return", "parameters": {"b": "{{__b}}"}}]);
    publish(&client, "mend", json!({"steps": steps})).await;
    let run = start(&client, "mend", json!({"id": "x"})).await;
    ends(&client, &run, "failed").await;
    is_mended.store(true, Ordering::Relaxed);
    post(&client, &format!("/api/v1/runs/{run}/retry"), json!({})).await;
    let ended = ends(&client, &run, "completed").await;
    assert_eq!(ended["result"]["b"], "mended");
    let mut done: Vec<String> = diary.lock().unwrap().iter().map(|(node, ..)| node.clone()).collect();
    done.sort_unstable();
    assert_eq!(done, ["a", "first"], "what is done stays done");
}
