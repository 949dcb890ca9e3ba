use std::time::Duration;

use serde_json::{Value, json};
use windlass_store::run::RunStatus;

use crate::support::{Client, clients, push_worker};

fn upper() -> Value {
    json!({"start": "a", "nodes": {"a": {"kind": "executor", "exec_type": "local_func", "func": "upper",
        "prep": {"input_key": "$params.word"}, "post": {"output_key": "out", "action_static": "on"}}}})
}

fn wait() -> Value {
    json!({"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "$shared.go"},
        "post": {"output_key": "got"}}}})
}

#[tokio::test]
async fn a_task_runs_to_its_end_and_is_shown() {
    for client in clients().await {
        let id = client.start(upper(), json!({"word": "hello"})).await;
        assert!(id.starts_with("task-"));
        let task = client.ended(&id).await;
        assert_eq!(client.field(&task, "id"), id.as_str());
        assert_eq!(client.field(&task, "status"), "completed");
        assert_eq!(client.json(&task, "params_json"), json!({"word": "hello"}));
        assert_eq!(client.json(&task, "shared_json"), json!({"out": "HELLO"}));
        assert_eq!(client.json(&task, "retry_state_json"), json!({}));
        assert_eq!(client.field(&task, "current_node_key"), "a");
        assert_eq!(client.field(&task, "last_action"), "on");
        assert_eq!(client.field(&task, "step_count"), 1);
        assert_eq!(client.field(&task, "request_id"), "");
        assert_eq!(
            (client.field(&task, "lease_owner"), client.field(&task, "lease_expiry")),
            (&json!(""), &json!(0))
        );
        assert!(client.field(&task, "created_at").as_i64().unwrap() > 1_700_000_000);
        assert!(client.field(&task, "flow_version_id").as_str().unwrap().starts_with("ver-"));
        if client.is_first() {
            assert!(task.get("FlowName").is_none() && task.get("ParamsJSON").is_some());
        } else {
            assert_eq!((&task["flow_name"], &task["flow_version"]), (&json!("flow"), &json!(1)));
            assert!(task["flow_id"].as_str().unwrap().starts_with("flow-"));
        }
        let uuid = id.strip_prefix("task-").unwrap();
        let own = format!("run_{}", uuid.replace('-', ""));
        assert_eq!(client.task(&own).await, task, "our own spelling is understood too");
    }
}

#[tokio::test]
async fn tasks_are_listed_latest_change_first_and_by_status() {
    for client in clients().await {
        let waiting = client.start(wait(), json!({})).await;
        let done = client.start(upper(), json!({"word": "x"})).await;
        client.ended(&done).await;
        // Changes of the same millisecond have no order.
        tokio::time::sleep(Duration::from_millis(2)).await;
        client.posted("/tasks/signal", json!({"task_id": waiting, "key": "other", "value": 1})).await;
        let ids = async |path: &str| -> Vec<String> {
            let tasks = client.listed(path).await;
            tasks.iter().map(|task| client.field(task, "id").as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids("/tasks").await, [waiting.clone(), done.clone()]);
        assert_eq!(ids("/tasks?status=completed").await, [done.as_str()]);
        assert_eq!(ids("/tasks?status=running").await, [waiting.as_str()]);
        assert_eq!(ids("/tasks?status=failed").await, [""; 0]);
        assert_eq!(ids("/tasks?page=2&page_size=1").await, [done.as_str()]);
        let version = client.field(&client.task(&done).await, "flow_version_id").as_str().unwrap().to_owned();
        assert_eq!(ids(&format!("/tasks?flow_version_id={version}")).await, [done.as_str()]);
        let listed = client.listed("/tasks?status=completed").await;
        assert_eq!(listed[0], client.task(&done).await, "a list shows what is shown of each");
        if !client.is_first() {
            let body = client.got("/tasks?page_size=1").await;
            assert_eq!((&body["total"], &body["page"], &body["size"]), (&json!(2), &json!(1), &json!(1)));
        }
        for (path, status) in [
            ("/tasks?status=bored", 400),
            ("/tasks?flow_version_id=x", 404),
            ("/tasks?page=-", 400),
            ("/tasks/get", 400),
            ("/tasks/get?id=x", 404),
            ("/tasks/get?id=task-0190a1b2-c3d4-7000-8000-00000000000a", 404),
        ] {
            assert_eq!(client.get(path).await.status, status, "{path}");
        }
    }
}

#[tokio::test]
async fn a_request_id_starts_one_task() {
    for client in clients().await {
        let flow = client.publish(upper()).await;
        let body = json!({"FlowID": flow, "ParamsJSON": "{\"word\":\"x\"}", "RequestID": "order 7"});
        let first = client.posted("/tasks", body.clone()).await;
        let again = client.posted("/tasks", body.clone()).await;
        assert_eq!(first, again);
        let task = client.task(first["id"].as_str().unwrap()).await;
        assert_eq!(client.field(&task, "request_id"), "order 7");
        let mut other = body.clone();
        other["ParamsJSON"] = json!("{\"word\":\"y\"}");
        assert_eq!(client.post("/tasks", other).await.status, 409);
        // A version published meanwhile makes no other request of it.
        client.posted("/flows/version", json!({"FlowID": flow, "DefinitionJSON": wait().to_string()})).await;
        assert_eq!(client.posted("/tasks", body).await, first);
    }
}

#[tokio::test]
async fn a_task_starts_the_version_it_names() {
    for client in clients().await {
        let flow = client.publish(upper()).await;
        client.posted("/flows/version", json!({"FlowID": flow, "DefinitionJSON": wait().to_string()})).await;
        let draft = json!({"FlowID": flow, "DefinitionJSON": wait().to_string(), "Status": "draft"});
        client.posted("/flows/version", draft).await;
        for (version, status) in [(0, "running"), (2, "running"), (1, "completed")] {
            let body = json!({"flow_id": flow, "version": version, "params_json": {"word": "x"}});
            let id = client.posted("/tasks", body).await["id"].as_str().unwrap().to_owned();
            if status == "completed" {
                client.ended(&id).await;
            }
            assert_eq!(client.status(&id).await, status, "version {version}");
        }
        for (version, status) in [(json!(3), 409), (json!(9), 404), (json!(-1), 400), (json!("x"), 400)] {
            let answer = client.post("/tasks", json!({"FlowID": flow, "Version": version})).await;
            assert_eq!(answer.status, status, "{version}: {answer:?}");
        }
        let empty = client.posted("/flows", json!({"Name": "no versions"})).await;
        assert_eq!(client.post("/tasks", json!({"FlowID": empty["id"]})).await.status, 404);
    }
}

#[tokio::test]
async fn a_task_that_makes_no_sense_is_not_started() {
    for client in clients().await {
        let flow = client.publish(upper()).await;
        for (field, value, status) in [
            ("FlowID", json!(""), 400),
            ("FlowID", json!("flow-x"), 404),
            ("FlowID", json!(7), 400),
            ("ParamsJSON", json!("{"), 400),
            ("ParamsJSON", json!("[1]"), 400),
            ("ParamsJSON", json!(3), 400),
            ("ParamsJSON", json!("{\"a\":".repeat(200)), 400),
            ("Manual", json!("perhaps"), 400),
            ("RequestID", json!("r".repeat(300)), 400),
        ] {
            let mut body = json!({"FlowID": flow, "ParamsJSON": "{}"});
            body[field] = value;
            let answer = client.post("/tasks", body.clone()).await;
            assert_eq!(answer.status, status, "{body}: {answer:?}");
            assert!(answer.body["error"].is_string());
        }
        assert!(client.listed("/tasks").await.is_empty());
    }
}

#[tokio::test]
async fn a_signal_goes_to_a_task_that_waits() {
    for client in clients().await {
        let id = client.start(wait(), json!({})).await;
        let shared = client.json(&client.task(&id).await, "shared_json");
        assert!(shared["_rt"]["we:w"]["start"].as_i64().unwrap() > 1_700_000_000_000, "{shared}");
        let signal = json!({"task_id": id, "key": "go", "value": {"by": "somebody"}});
        assert_eq!(client.posted("/tasks/signal", signal.clone()).await, json!({"ok": "1"}));
        let task = client.ended(&id).await;
        let value = json!({"by": "somebody"});
        assert_eq!(client.json(&task, "shared_json"), json!({"go": value, "got": value}));
        assert_eq!(client.posted("/tasks/signal", signal).await, json!({"ok": "1"}), "the run has ended");
        assert_eq!(client.task(&id).await, task, "and nothing changed");
        for (body, status) in [
            (json!({"key": "k", "value": 1}), 400),
            (json!({"task_id": id, "value": 1}), 400),
            (json!({"task_id": "task-x", "key": "k"}), 404),
            (json!({"task_id": id, "key": 7}), 400),
            (json!({"task_id": id, "key": "_rt"}), 400),
        ] {
            assert_eq!(client.post("/tasks/signal", body.clone()).await.status, status, "{body}");
        }
    }
}

#[tokio::test]
async fn a_task_is_cancelled_in_any_open_status() {
    for client in clients().await {
        let waiting = client.start(wait(), json!({})).await;
        let manual = start_manual(&client, upper()).await;
        for id in [waiting, manual] {
            let path = format!("/tasks/cancel?id={id}");
            assert_eq!(client.posted(&path, json!({})).await, json!({"ok": "1"}));
            let task = client.ended(&id).await;
            assert_eq!(client.field(&task, "status"), "canceled");
            let rows = client.node_runs(&id).await;
            assert_eq!(client.field(rows.last().unwrap(), "status"), "canceled");
            assert_eq!(client.send("POST", &path, "").await.status, 200, "cancelled is cancelled");
        }
        let done = client.start(upper(), json!({"word": "x"})).await;
        client.ended(&done).await;
        let path = format!("/tasks/cancel?id={done}");
        assert_eq!(client.posted(&path, json!({})).await, json!({"ok": "1"}));
        assert_eq!(client.status(&done).await, "completed");
        assert_eq!(client.send("POST", "/tasks/cancel?id=task-x", "").await.status, 404);
        assert_eq!(client.send("POST", "/tasks/cancel", "").await.status, 400);
        let unknown = "/tasks/cancel?id=task-0190a1b2-c3d4-7000-8000-00000000000a";
        assert_eq!(client.send("POST", unknown, "").await.status, 404);
    }
}

async fn start_manual(client: &Client, definition: Value) -> String {
    let flow = client.publish(definition).await;
    let body = json!({"FlowID": flow, "ParamsJSON": "{\"word\": \"x\"}", "Manual": true});
    client.posted("/tasks", body).await["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_manual_task_is_advanced_by_hand_alone() {
    for client in clients().await {
        let url = push_worker(|_, input| Ok(json!(format!("{}!", input.as_str().unwrap())))).await;
        client.posted("/register", json!({"id": "w", "url": url, "services": ["shout"]})).await;
        let definition = json!({"start": "a", "nodes": {
            "a": {"service": "shout", "prep": {"input_key": "$params.word"}, "post": {"output_key": "one"}},
            "b": {"service": "shout", "prep": {"input_key": "one"}, "post": {"output_key": "two"}}},
            "edges": [{"from": "a", "action": "default", "to": "b"}]});
        let id = start_manual(&client, definition).await;
        assert_eq!(client.status(&id).await, "pending");
        assert_eq!(client.listed("/tasks?status=pending").await.len(), 1);
        let step = format!("/tasks/run_once?id={id}&owner=me");
        assert_eq!(client.posted(&step, json!({})).await, json!({"ok": "1"}));
        let task = client.task(&id).await;
        assert_eq!(client.json(&task, "shared_json"), json!({"one": "x!"}), "the step was waited for");
        assert_eq!(client.field(&task, "current_node_key"), "b");
        assert_eq!(client.field(&task, "status"), "running");
        client.posted(&step, json!({})).await;
        let task = client.ended(&id).await;
        assert_eq!(client.json(&task, "shared_json"), json!({"one": "x!", "two": "x!!"}));
        assert_eq!(client.send("POST", &step, "").await.status, 409, "it has ended");
        assert_eq!(client.send("POST", "/tasks/run_once?id=task-x", "").await.status, 404);
        assert_eq!(client.send("POST", "/tasks/run_once", "").await.status, 400);
    }
}

#[tokio::test]
async fn any_open_task_is_stepped_and_waits_for_the_next_step() {
    for client in clients().await {
        let mut definition = wait();
        definition["nodes"]["b"] = upper()["nodes"]["a"].clone();
        definition["edges"] = json!([{"from": "w", "action": "default", "to": "b"}]);
        let id = client.start(definition, json!({"word": "x"})).await;
        client.until(&id, RunStatus::Waiting).await;
        let step = format!("/tasks/run_once?id={id}");
        assert_eq!(client.posted(&step, json!({})).await, json!({"ok": "1"}), "there is nothing to step yet");
        client.posted("/tasks/signal", json!({"task_id": id, "key": "go", "value": 1})).await;
        let task = client.task(&id).await;
        assert_eq!(client.field(&task, "status"), "running", "it goes on by steps only");
        for node in ["w", "b"] {
            assert_eq!(client.posted(&step, json!({})).await, json!({"ok": "1"}), "{node}");
        }
        let task = client.ended(&id).await;
        assert_eq!(client.json(&task, "shared_json"), json!({"go": 1, "got": 1, "out": "X"}));
    }
}

#[tokio::test]
async fn a_task_is_not_stepped_while_a_call_is_in_flight() {
    for client in clients().await {
        let definition = json!({"start": "q", "nodes": {"q": {"service": "s", "exec_type": "queue"}}});
        let id = client.start(definition, json!({})).await;
        let answer = client.send("POST", &format!("/tasks/run_once?id={id}"), "").await;
        assert_eq!(answer.status, 409, "{answer:?}");
        assert!(answer.body["error"].as_str().unwrap().contains("in flight"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_retry_that_is_to_come_is_shown() {
    for client in clients().await {
        let definition = json!({"start": "a", "nodes": {"a": {"exec_type": "local_func", "func": "fail",
            "max_retries": 1, "wait_ms": 600_000}}});
        let id = client.start(definition, json!({})).await;
        client.until(&id, RunStatus::Waiting).await;
        let task = client.task(&id).await;
        let retries = client.json(&task, "retry_state_json");
        assert_eq!(retries["a"]["attempt"], 2, "{retries}");
        assert_eq!(client.field(&task, "status"), "running");
    }
}
