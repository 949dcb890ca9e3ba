use serde_json::json;
use uuid::Uuid;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::id::CommandId;
use windlass_engine::project::Project;
use windlass_store::commit::Commit;
use windlass_store::log::LogRow;

use crate::support::{clients, push_worker, run_of};

#[tokio::test]
async fn every_attempt_of_a_call_is_listed_oldest_first() {
    for client in clients().await {
        let url = push_worker(|service, input| match service {
            "never" => Err("never mind".to_owned()),
            _ => Ok(json!({"seen": input, "action": "goB"})),
        })
        .await;
        let body = json!({"id": "w1", "url": url, "services": ["never", "route"], "type": "http"});
        client.posted("/workers/register", body).await;
        let definition = json!({"start": "a", "nodes": {
            "a": {"service": "route", "prep": {"input_key": "$params.x"}, "post": {"action_key": "action"}},
            "b": {"service": "never", "max_retries": 1, "wait_ms": 1}},
            "edges": [{"from": "a", "action": "goB", "to": "b"}]});
        let id = client.start(definition, json!({"x": 5})).await;
        let task = client.ended(&id).await;
        assert_eq!(client.field(&task, "status"), "failed");
        let told = client
            .told(&id, &["node_key", "attempt_no", "status", "action", "error_text", "worker_id"])
            .await;
        assert_eq!(told[0], ["a", "1", "ok", "goB", "", "w1"]);
        assert_eq!(told[1], ["b", "1", "error", "", "never mind", "w1"]);
        assert_eq!(told[2], ["b", "2", "error", "", "never mind", "w1"]);
        let rows = client.node_runs(&id).await;
        let first = &rows[0];
        assert_eq!(client.field(first, "task_id"), id.as_str());
        assert_eq!(client.field(first, "worker_url"), url.as_str());
        assert_eq!(client.json(first, "prep_json"), json!({"input_key": "$params.x"}));
        assert_eq!(client.json(first, "exec_input_json"), json!(5));
        assert_eq!(client.json(first, "exec_output_json"), json!({"seen": 5, "action": "goB"}));
        assert!(client.field(first, "finished_at").as_i64() >= client.field(first, "started_at").as_i64());
        assert!(client.field(first, "started_at").as_i64().unwrap() > 1_700_000_000);
        if client.is_first() {
            let mut keys: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
            keys.sort_unstable();
            let expected = [
                "action",
                "attemptNo",
                "errorText",
                "execInputJson",
                "execOutputJson",
                "finishedAt",
                "id",
                "nodeKey",
                "prepJson",
                "startedAt",
                "status",
                "taskId",
                "workerId",
                "workerUrl",
            ];
            assert_eq!(keys, expected);
        } else {
            assert_eq!(
                (&first["sub_status"], &first["branch_id"], &first["log_path"]),
                (&json!(""), &json!(""), &json!(""))
            );
        }
    }
}

#[tokio::test]
async fn branches_and_inner_nodes_say_which_they_are() {
    let [client, _] = clients().await;
    let definition = json!({"start": "p", "nodes": {
        "p": {"kind": "parallel", "exec_type": "local_func", "parallel_services": ["upper", "lower"],
              "prep": {"input_key": "$params.word"}, "post": {"output_key": "both"}},
        "f": {"kind": "foreach", "exec_type": "local_func", "func": "echo", "prep": {"input_key": "both"}},
        "s": {"kind": "subflow", "subflow": {"start": "in", "nodes": {
              "in": {"exec_type": "local_func", "func": "echo"}}}}},
        "edges": [{"from": "p", "to": "f"}, {"from": "f", "to": "s"}]});
    let id = client.start(definition, json!({"word": "Aa"})).await;
    client.ended(&id).await;
    let told = client.told(&id, &["node_key", "sub_status", "branch_id", "status", "worker_id"]).await;
    let expected = [
        ["p", "branch_complete", "upper", "ok", "local-func:upper"],
        ["p", "branch_complete", "lower", "ok", "local-func:lower"],
        ["p", "", "", "ok", ""],
        ["f", "item_complete", "0", "ok", "local-func:echo"],
        ["f", "item_complete", "1", "ok", "local-func:echo"],
        ["f", "", "", "ok", ""],
        ["s", "", "", "ok", ""],
        ["s", "sub_node_complete", "in", "ok", "local-func:echo"],
    ];
    assert_eq!(told, expected.map(|row| row.map(str::to_owned).to_vec()));
}

#[tokio::test]
async fn the_row_of_a_fan_follows_its_branches_at_every_depth_and_in_every_visit() {
    let [client, _] = clients().await;
    let inner = json!({"start": "g", "nodes": {
        "g": {"kind": "foreach", "exec_type": "local_func", "func": "echo", "prep": {"input_key": "$params.items"}}}});
    let definition = json!({"start": "p", "nodes": {
        "p": {"kind": "parallel", "parallel_execs": [{"subflow": inner}, {"exec_type": "local_func", "func": "echo"}],
              "post": {"action_key": "turn"}},
        "count": {"kind": "choice", "choice_cases": [{"action": "again", "expr": {"exists": "$shared.never"}}]}},
        "edges": [{"from": "p", "to": "count"}, {"from": "count", "action": "again", "to": "p"}]});
    let id = client.start(definition, json!({"items": [1]})).await;
    client.ended(&id).await;
    let told = client.told(&id, &["node_key", "branch_id", "sub_status"]).await;
    let at = |row: &[&str]| {
        told.iter().position(|told| told == row).unwrap_or_else(|| panic!("{row:?}: {told:?}"))
    };
    assert_eq!(at(&["count", "", ""]), told.len() - 1);
    assert_eq!(at(&["p", "", ""]), told.len() - 2, "{told:?}");
    assert!(at(&["p/0/g", "0", "item_complete"]) < at(&["p/0", "g", "sub_node_complete"]), "{told:?}");
}

#[tokio::test]
async fn the_log_of_an_attempt_is_shown() {
    for client in clients().await {
        let definition = json!({"start": "a", "nodes": {"a": {"exec_type": "local_func", "func": "echo"}}});
        let id = client.start(definition, json!({})).await;
        client.ended(&id).await;
        let rows = client.node_runs(&id).await;
        let attempt = client.field(&rows[0], "id").as_str().unwrap().to_owned();
        let path = format!("/tasks/logs?run_id={attempt}");
        assert_eq!(client.got(&path).await, json!({"content": ""}));
        let at = client.runtime.clock().now();
        let text = "two\nlines".to_owned();
        let (run, node) = (run_of(&id), "a".into());
        let logs = vec![LogRow { run, entry: Seq(2), fence: Fence(1), node, at, text, lines: Vec::new() }];
        let commit = Commit { logs, ..Commit::new(&Project::DEFAULT, CommandId::new(Uuid::now_v7()), at) };
        client.runtime.store().commit_one(commit).await.unwrap();
        assert_eq!(client.got(&path).await, json!({"content": "two\nlines"}));
        let uuid = id.strip_prefix("task-").unwrap();
        for (run_id, status) in
            [("", 400), ("x", 404), (&format!("{uuid}.99"), 404), (&format!("{uuid}.0"), 404)]
        {
            assert_eq!(client.get(&format!("/tasks/logs?run_id={run_id}")).await.status, status, "{run_id}");
        }
        for path in ["/tasks/runs", "/tasks/logs"] {
            assert_eq!(client.get(path).await.status, 400, "{path}");
        }
        for unknown in ["x", "task-0190a1b2-c3d4-7000-8000-00000000000a"] {
            assert_eq!(client.got(&format!("/tasks/runs?task_id={unknown}")).await, json!([]), "{unknown}");
        }
    }
}
