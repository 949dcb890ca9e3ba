use axum::body::Body;
use serde_json::json;
use windlass_server::scheduler::ROUTES;

use crate::support::clients;

#[tokio::test]
async fn every_route_is_there_and_says_no_in_its_own_words() {
    for client in clients().await {
        for (method, path, _) in ROUTES {
            let answer = client.send(method, path, Body::empty()).await;
            assert!(answer.status < 500, "{method} {path}: {answer:?}");
            assert!(!answer.body.to_string().contains("there is nothing at"), "{method} {path}: {answer:?}");
            let wrong = client.send("DELETE", path, Body::empty()).await;
            assert_eq!(wrong.status, 405, "{path}");
            assert!(wrong.body["error"].is_string(), "{path}");
        }
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_too_large() {
    for client in clients().await {
        let name = "x".repeat(5 << 20);
        let answer = client.post("/flows", json!({"Name": name})).await;
        assert_eq!(answer.status, 413, "{answer:?}");
        assert!(answer.body["error"].is_string(), "{answer:?}");
    }
}

#[tokio::test]
async fn no_body_brings_the_server_down() {
    let deep = "{\"a\":".repeat(5_000);
    let bodies = ["{", "nonsense", "[]", "7", "\"x\"", "null", "{\"id\": {\"id\": 1}}", "\u{0}", &deep];
    for client in clients().await {
        for (method, path, _) in ROUTES.into_iter().filter(|(method, _, _)| *method == "POST") {
            for body in bodies {
                let answer = client.send(method, path, body.to_owned()).await;
                assert_eq!(answer.status, 400, "{path} {body:.40}: {answer:?}");
                assert!(answer.body["error"].is_string());
            }
            let answer = client.send(method, path, vec![0xff, 0xfe]).await;
            assert_eq!(answer.status, 400, "{path}: {answer:?}");
        }
        for (_, path, _) in ROUTES.into_iter().filter(|(method, _, _)| *method == "GET") {
            for query in [
                "id=%ff&flow_id=%ff",
                "page=99999999999999999999",
                "page_size=-1&ttl=-9223372036854775808",
                "=&&=",
            ] {
                let answer = client.get(&format!("{path}?{query}")).await;
                assert!(answer.status < 500, "{path}?{query}: {answer:?}");
            }
        }
    }
}

/// Programs that marshal whole structs send each field, with the zero value of its type.
#[tokio::test]
async fn zero_values_are_as_good_as_absent() {
    for client in clients().await {
        let worker = json!({"id": "w", "name": "", "url": "", "services": ["press"], "type": "", "load": 0,
            "capacity": 0, "queues": null, "status": "", "last_heartbeat": 0});
        client.posted("/workers/register", worker).await;
        client.posted("/workers/heartbeat", json!({"id": "w", "url": "", "load": 0})).await;
        let flow =
            client.posted("/flows", json!({"Name": "f", "Description": "", "ID": "", "CreatedAt": 0})).await;
        let node = json!({"service": "press", "exec_type": "queue"});
        let definition = json!({"start": "a", "nodes": {"a": node}}).to_string();
        let version = json!({"FlowID": flow["id"], "Version": 0, "DefinitionJSON": definition,
            "DefinitionYAML": "", "Status": "", "ID": "", "CreatedAt": 0});
        client.posted("/flows/version", version).await;
        let task =
            json!({"FlowID": flow["id"], "Version": 0, "ParamsJSON": "", "RequestID": "", "Manual": false});
        let task = client.posted("/tasks", task).await;
        let poll = json!({"worker_id": "w", "services": null, "lease_ms": 0});
        let job = client.posted("/queue/poll", poll).await;
        let done = json!({"queue_id": job["id"], "worker_id": "", "result": null, "error": "", "log": "",
            "log_path": "", "run_id": ""});
        client.posted("/queue/complete", done).await;
        let ended = client.ended(task["id"].as_str().unwrap()).await;
        assert_eq!(client.field(&ended, "status"), "completed");
        client.listed("/tasks?status=&flow_version_id=&page=0&page_size=0").await;
        client.posted("/tasks/signal", json!({"task_id": task["id"], "key": "k", "value": null})).await;
    }
}
