//! Changes on this surface leave a line in the audit, in the words of the native one.

use serde_json::{Value, json};
use windlass_store::audit::AuditQuery;

use crate::support::{Client, clients, run_of};

fn wait() -> Value {
    json!({"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "$shared.go"}}}})
}

async fn audit(client: &Client) -> Vec<(String, String, Value)> {
    let lines = client.runtime.store().audit(client.runtime.project(), AuditQuery::default()).await.unwrap();
    lines
        .into_iter()
        .map(|line| (line.row.what, line.row.subject, line.row.detail["result"].clone()))
        .collect()
}

#[tokio::test]
async fn tasks_are_noted_as_runs_in_both_eras() {
    for client in clients().await {
        let flow = client.publish(wait()).await;
        let new = json!({"FlowID": flow, "ParamsJSON": "{}", "Manual": true});
        let task = client.posted("/tasks", new).await["id"].as_str().unwrap().to_owned();
        client.post("/tasks/run_once?id=task-none", json!({})).await;
        client.posted("/tasks/signal", json!({"TaskID": task, "key": "other", "value": 1})).await;
        // This surface has no dry runs: the parameter means nothing.
        client.posted(&format!("/tasks/cancel?id={task}&dry_run=1"), json!({})).await;
        client.posted("/register", json!({"id": "w", "url": "http://127.0.0.1:9", "services": ["s"]})).await;
        client.posted("/heartbeat", json!({"id": "w"})).await;
        client.posted("/flows?Name=asked", json!({})).await;
        let run = run_of(&task).to_string();
        let flow = format!("flow_{}", flow.strip_prefix("flow-").unwrap().replace('-', ""));
        let line = |what: &str, subject: &str, result| (what.to_owned(), subject.to_owned(), json!(result));
        let expected = [
            line("flow.create", "flow", "done"),
            line("flow.publish", &flow, "done"),
            line("run.step", "task-none", "refused"),
            line("run.signal", &run, "done"),
            line("run.cancel", &run, "done"),
            line("flow.create", "asked", "done"),
        ];
        assert_eq!(audit(&client).await, expected, "{:?}", client.prefix);
    }
}
