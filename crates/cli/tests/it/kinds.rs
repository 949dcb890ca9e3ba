//! Nodes of every kind and form that need a real server: push and pull workers, scripts, other flows, people, time. The
//! examples cover the nodes that need only functions and scripted answers.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_sdk::worker::{HandlerOutcome, ServiceCall};
use windlass_sdk::{Client, Worker};

use crate::http::{ends, get, node_is, post, seen, start};
use crate::server::{Server, TempDir, publish};
use crate::store::Store;

/// A worker that is called and asks for jobs: `double`, `refuse`, `flaky` (fails once), `later` (is asked twice).
async fn worker(client: &Client) -> DropGuard {
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let stop = CancellationToken::new();
    let worker = Worker::new(client.clone(), "hand")
        .grace(Duration::ZERO)
        .listen(listener, url)
        .service("double", async |call: ServiceCall| match call.input.as_i64() {
            Some(number) => HandlerOutcome::Done(json!(number * 2)),
            None => HandlerOutcome::refused("no number"),
        })
        .service("refuse", async |_: ServiceCall| HandlerOutcome::refused("not today"))
        .service("flaky", async |call: ServiceCall| match call.attempt {
            1 => HandlerOutcome::failed("once"),
            attempt => HandlerOutcome::Done(json!({"attempt": attempt, "by": call.params["by"]})),
        })
        .service("later", async |call: ServiceCall| match call.memo {
            None => {
                HandlerOutcome::Suspended { memo: json!("seen"), recheck: Some(Duration::from_millis(100)) }
            }
            Some(memo) => HandlerOutcome::Done(json!({"memo": memo})),
        });
    tokio::spawn(worker.run(stop.clone()));
    seen("the worker", async || (!client.workers().all().await.unwrap().is_empty()).then_some(())).await;
    stop.drop_guard()
}

fn one(node: Value) -> Value {
    json!({"start": "a", "nodes": {"a": node}, "edges": []})
}

/// Publishes a flow, starts it and sees it end so.
async fn comes_to(client: &Client, name: &str, definition: Value, params: Value, status: &str) -> Value {
    publish(client, name, definition).await;
    let run = start(client, name, params).await;
    ends(client, &run, status).await
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_to_workers_of_both_sorts() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let _hand = worker(&client).await;
    for exec_type in ["http", "queue"] {
        let node = |service: &str| {
            json!({"service": service, "exec_type": exec_type, "max_retries": 1, "wait_ms": 1, "params": {"by": 3},
                "prep": {"input_key": "$params.x"}, "post": {"output_key": "out"}})
        };
        let params = json!({"x": 21});
        let name = |what: &str| format!("{exec_type}-{what}");
        let done = comes_to(&client, &name("double"), one(node("double")), params.clone(), "completed").await;
        assert_eq!(done["shared"]["out"], 42);
        let done = comes_to(&client, &name("flaky"), one(node("flaky")), params.clone(), "completed").await;
        assert_eq!(done["shared"]["out"], json!({"attempt": 2, "by": 3}));
        let done = comes_to(&client, &name("later"), one(node("later")), params.clone(), "completed").await;
        assert_eq!(done["shared"]["out"], json!({"memo": "seen"}));
        let lost = comes_to(&client, &name("refuse"), one(node("refuse")), params.clone(), "failed").await;
        assert_eq!(lost["error"]["message"], "not today");
        let attempts = get(&client, &format!("/api/v1/runs/{}/attempts", lost["id"].as_str().unwrap())).await;
        assert_eq!(attempts["items"].as_array().unwrap().len(), 1, "what was refused is not tried again");
        assert_eq!(attempts["items"][0]["worker"], "hand", "{attempts}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fans_over_workers_under_every_strategy() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let _hand = worker(&client).await;
    for exec_type in ["http", "queue"] {
        for mode in ["sequential", "concurrent"] {
            for (strategy, wanted) in [
                ("collect_errors", json!([2, null, 6])),
                ("ignore_errors", json!([2, 6])),
                ("continue", json!([2, null, 6])),
            ] {
                let node = json!({
                    "kind": "foreach", "service": "double", "exec_type": exec_type, "parallel_mode": mode,
                    "max_parallel": 2, "failure_strategy": strategy,
                    "prep": {"input_key": "$params.items"}, "post": {"output_key": "out"},
                });
                let (name, items) = (format!("{exec_type}-{mode}-{strategy}"), json!({"items": [1, "x", 3]}));
                let done = comes_to(&client, &name, one(node), items, "completed").await;
                assert_eq!(done["shared"]["out"], wanted, "{name}");
                let errors = &done["shared"]["out_errors"];
                assert_eq!(errors[0]["index"] == 1, strategy == "collect_errors", "{name}: {errors}");
            }
        }
        let node = json!({
            "kind": "parallel", "parallel_mode": "concurrent", "exec_type": exec_type,
            "parallel_services": ["double", "refuse"], "prep": {"input_key": "$params.x"},
            "post": {"output_key": "out"},
        });
        let lost =
            comes_to(&client, &format!("{exec_type}-fast"), one(node), json!({"x": 4}), "failed").await;
        assert!(lost["error"]["message"].as_str().unwrap().contains("not today"), "{lost}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_where_they_are_allowed_and_where_not() {
    let server = Server::start(&["--allow-scripts"]).await;
    let client = server.client();
    let script = |script: Value| {
        one(json!({"exec_type": "local_script", "script": script, "params": {"by": 3},
            "prep": {"input_key": "$params.x"}, "post": {"output_key": "out"}}))
    };
    let echo = script(json!({"language": "sh", "code": "echo heard >&2; cat", "stdin_mode": "json"}));
    let done = comes_to(&client, "json", echo.clone(), json!({"x": 21}), "completed").await;
    assert_eq!(done["shared"]["out"]["input"], 21);
    assert_eq!(done["shared"]["out"]["params"]["by"], 3);
    let logs = get(&client, &format!("/api/v1/runs/{}/logs", done["id"].as_str().unwrap())).await;
    assert!(logs.to_string().contains("heard"), "{logs}");
    let text = script(json!({"cmd": "printf", "args": ["%s", "a b"]}));
    assert_eq!(comes_to(&client, "text", text, json!({}), "completed").await["shared"]["out"], "a b");
    let lost = script(json!({"language": "sh", "code": "echo no paper >&2; exit 3"}));
    let lost = comes_to(&client, "lost", lost, json!({}), "failed").await;
    assert!(lost["error"]["message"].as_str().unwrap().contains("no paper"), "{lost}");
    let slow = script(json!({"language": "sh", "code": "sleep 3600", "timeout_ms": 200}));
    assert_eq!(comes_to(&client, "slow", slow, json!({}), "failed").await["error"]["kind"], "timeout");

    let server = Server::start(&[]).await;
    let refused = comes_to(&server.client(), "json", echo, json!({"x": 1}), "failed").await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("--allow-scripts"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_flows_people_signals_and_time() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let child = one(json!({"kind": "local", "func": "mul", "params": {"mul": 2},
        "prep": {"input_key": "$params.x"}, "post": {"output_key": "y"}}));
    publish(&client, "child", child).await;
    let definition = json!({
        "start": "c",
        "nodes": {
            "c": {"kind": "flow_ref", "flow": "child", "params": {"x": 21}, "post": {"output_key": "c"}},
            "p": {"kind": "approval", "params": {"assignees": ["ann"]}},
            "s": {"kind": "wait_event", "params": {"signal_key": "paid"}, "timeout_ms": 50},
            "t": {"kind": "timer", "params": {"delay_ms": 50}},
            "z": {"kind": "local", "func": "echo", "prep": {"input_key": "c.y"}, "post": {"output_key": "out"}},
        },
        "edges": [
            {"from": "c", "to": "p"}, {"from": "p", "action": "approved", "to": "s"},
            {"from": "s", "action": "timeout", "to": "t"}, {"from": "t", "to": "z"},
        ],
    });
    publish(&client, "all", definition).await;
    let run = start(&client, "all", json!({})).await;
    node_is(&client, &run, "p", "waiting").await;
    assert_eq!(get(&client, "/api/v1/approvals?assignee=ann").await["items"][0]["run"], run.as_str());
    let decision = json!({"decision": "approved", "by": "ann", "comment": "go ahead"});
    post(&client, &format!("/api/v1/runs/{run}/decide"), decision).await;
    let done = ends(&client, &run, "completed").await;
    assert_eq!(done["shared"]["out"], 42);
    assert_eq!(done["node_states"]["t"]["status"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_two_forms_with_a_worker() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let _hand = worker(&client).await;
    let dag = json!({
        "nodes": [
            {"id": "s", "type": "start"},
            {"id": "v", "type": "variable_set", "config": {"variables": [{"name": "by", "value": 5}]}},
            {"id": "f", "type": "flaky", "config": {"by": "$var.by"}, "retry": {"max": 2, "delay_ms": 1}},
            {"id": "c", "type": "condition", "config": {"expression": "$node.f.output.by == 5"}},
            {"id": "d", "type": "delay", "config": {"delaySeconds": 0.05}},
            {"id": "e", "type": "end", "config": {"outputs": [{"name": "n", "source": "$node.f.output.attempt"}]}},
        ],
        "edges": [
            {"source": "s", "target": "v"}, {"source": "v", "target": "f"}, {"source": "f", "target": "c"},
            {"source": "c", "target": "d", "condition": "$node.c.output == true"}, {"source": "d", "target": "e"},
        ],
    });
    let done = comes_to(&client, "dag", dag, json!({}), "completed").await;
    assert_eq!(done["result"], json!({"n": 2}), "{done}");
    let step = |id: &str, operator: &str, parameters: Value| json!({"id": id, "title": id, "operator": operator, "parameters": parameters});
    let mut fan = step("p", "@control/flow/parallel", json!({}));
    fan["branches"] = json!([
        {"steps": [step("l", "later", json!({}))]},
        {"steps": [step("now", "@internal/text/split", json!({"text": "a,b", "separator": ","}))]},
    ]);
    let steps = json!({"title": "t", "steps": [
        step("go", "@trigger/manual", json!({})), fan,
        step("ask", "@workflow/approval", json!({"assignees": ["ann"]})),
        step("back", "@internal/return", json!({"memo": "{{__l.memo}}"})),
    ]});
    publish(&client, "steps", steps).await;
    let run = start(&client, "steps", json!({})).await;
    node_is(&client, &run, "ask", "waiting").await;
    post(&client, &format!("/api/v1/runs/{run}/decide"), json!({"decision": "approved", "by": "ann"})).await;
    let done = ends(&client, &run, "completed").await;
    assert_eq!(done["node_states"]["l"]["output"]["memo"], "seen", "{done}");
}

#[test]
fn every_example_comes_to_what_it_says() {
    let place = TempDir::new();
    let store = Store::fresh(&place);
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    // It is told of a store, and hands out jobs by itself.
    command.args(["dev", "--once", "--examples", examples, "--store", &store.address()]);
    let output = command.output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
}
