use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, Client, PATIENCE, clients};

fn definition() -> Value {
    json!({"start": "q", "nodes": {"q": {"service": "resize", "exec_type": "queue", "params": {"width": 9},
        "prep": {"input_key": "$params.picture"}, "post": {"output_key": "small"}, "max_retries": 1}}})
}

async fn poll(client: &Client) -> Answer {
    client.post("/queue/poll", json!({"worker_id": "puller", "services": ["resize"]})).await
}

/// The next job, asked for again and again as workers do.
async fn polled(client: &Client) -> Value {
    let asking = async {
        loop {
            let answer = poll(client).await;
            if answer.status == 200 {
                return answer.body;
            }
            assert_eq!(answer.status, 204, "{answer:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.expect("there is a job")
}

#[tokio::test]
async fn a_worker_polls_a_job_and_completes_it() {
    for client in clients().await {
        let nothing = poll(&client).await;
        assert_eq!((nothing.status, nothing.body), (204, Value::Null));
        let id = client.start(definition(), json!({"picture": "p.png"})).await;
        assert_eq!(client.status(&id).await, "waiting_queue");
        assert_eq!(client.listed("/tasks?status=waiting_queue").await.len(), 1);
        assert_eq!(client.told(&id, &["node_key", "status"]).await, [["q", "queued"]]);

        let job = polled(&client).await;
        assert_eq!(job["task_id"], id.as_str());
        assert_eq!((&job["node_key"], &job["service"]), (&json!("q"), &json!("resize")));
        assert_eq!((&job["worker_id"], &job["status"]), (&json!("puller"), &json!("running")));
        assert!(job["timeout_at"].as_i64() > job["started_at"].as_i64(), "{job}");
        let input: Value = serde_json::from_str(job["input_json"].as_str().unwrap()).unwrap();
        assert_eq!((&input["input"], &input["params"]["width"]), (&json!("p.png"), &json!(9)));
        let rows = client.node_runs(&id).await;
        let (name, signature) = input["run_id"].as_str().unwrap().rsplit_once('.').unwrap();
        assert_eq!(client.field(&rows[0], "id"), name, "lists name the attempt without its signature");
        assert_eq!(signature.len(), 32);
        assert_eq!(client.told(&id, &["status", "worker_id"]).await, [["running", "puller"]]);
        assert_eq!(poll(&client).await.status, 204, "it is handed out once");

        let running = json!({"run_id": input["run_id"], "status": "running"});
        assert_eq!(client.posted("/queue/update_run", running).await, json!({"ok": "1"}));
        let done = json!({"queue_id": job["id"], "result": {"file": "s.png"}, "error": "", "log_path": "/var/log/x",
            "run_id": input["run_id"]});
        assert_eq!(client.posted("/queue/complete", done).await, json!({"ok": "1"}));
        let task = client.ended(&id).await;
        assert_eq!(client.json(&task, "shared_json"), json!({"small": {"file": "s.png"}}));
        assert_eq!(client.told(&id, &["status"]).await, [["ok"]]);
        let log = client.got(&format!("/tasks/logs?run_id={}", input["run_id"].as_str().unwrap())).await;
        assert!(log["content"].as_str().unwrap().contains("/var/log/x"), "{log}");
    }
}

#[tokio::test]
async fn a_completion_after_the_end_is_refused() {
    for client in clients().await {
        let id = client.start(definition(), json!({})).await;
        let job = polled(&client).await;
        let done = |result: Value| json!({"queue_id": job["id"], "result": result});
        client.posted("/queue/complete", done(json!(1))).await;
        client.ended(&id).await;
        assert_eq!(client.post("/queue/complete", done(json!(2))).await.status, 409);
        let real = job["id"].as_str().unwrap();
        let (name, signature) = real.rsplit_once('.').unwrap();
        let stale = json!({"queue_id": name.replace(".1", ".77") + "." + signature, "result": 3});
        assert_eq!(client.post("/queue/complete", stale).await.status, 409, "another claim");
        assert_eq!(client.json(&client.task(&id).await, "shared_json"), json!({"small": 1}));
    }
}

#[tokio::test]
async fn a_forged_queue_id_completes_nothing() {
    for client in clients().await {
        let (id, other) =
            (client.start(definition(), json!({})).await, client.start(definition(), json!({})).await);
        let (job, others) = (polled(&client).await, polled(&client).await);
        let grant = |job: &Value| job["id"].as_str().unwrap().to_owned();
        let (real, others) = (grant(&job), grant(&others));
        let (name, signature) = real.rsplit_once('.').unwrap();
        let (other_name, other_signature) = others.rsplit_once('.').unwrap();
        for (queue_id, status) in [
            (name.to_owned(), 404),
            (format!("{name}."), 409),
            (format!("{name}.{}", &signature[..31]), 409),
            (format!("{name}.{other_signature}"), 409),
            (format!("{other_name}.{signature}"), 409),
            (format!("{real}.1"), 404),
        ] {
            let stolen = json!({"queue_id": queue_id, "result": "stolen", "worker_id": "thief"});
            let answer = client.post("/queue/complete", stolen).await;
            assert_eq!(answer.status, status, "{queue_id}: {answer:?}");
        }
        client.posted("/queue/complete", json!({"queue_id": real, "result": "mine"})).await;
        client.posted("/queue/complete", json!({"queue_id": others, "result": "mine"})).await;
        for id in [id, other] {
            assert_eq!(client.json(&client.ended(&id).await, "shared_json"), json!({"small": "mine"}));
        }
    }
}

#[tokio::test]
async fn the_end_of_a_polled_job_depends_on_the_heartbeats_of_its_worker() {
    for client in clients().await {
        let held = |job: &Value| job["timeout_at"].as_i64().unwrap() - job["started_at"].as_i64().unwrap();
        client.start(definition(), json!({})).await;
        assert_eq!(held(&polled(&client).await), 600, "it never registered");
        client.posted("/register", json!({"id": "puller", "services": ["resize"], "type": "async"})).await;
        client.start(definition(), json!({})).await;
        assert_eq!(held(&polled(&client).await), 600, "it never sent a heartbeat");
        let registered = client.runtime.clock().now();
        while client.runtime.clock().now() <= registered {
            tokio::task::yield_now().await;
        }
        client.posted("/heartbeat", json!({"id": "puller"})).await;
        client.start(definition(), json!({})).await;
        assert!((29..=31).contains(&held(&polled(&client).await)), "heartbeats keep it");
        client.start(definition(), json!({})).await;
        let own = json!({"worker_id": "puller", "services": ["resize"], "lease_ms": 7_000});
        let own = client.posted("/queue/poll", own).await;
        assert!((6..=8).contains(&held(&own)), "{own}");
    }
}

#[tokio::test]
async fn a_forged_run_id_extends_nothing() {
    for client in clients().await {
        client.start(definition(), json!({})).await;
        let hasty = json!({"worker_id": "slow", "services": ["resize"], "lease_ms": 5_000});
        let job = client.posted("/queue/poll", hasty).await;
        let input: Value = serde_json::from_str(job["input_json"].as_str().unwrap()).unwrap();
        let real = input["run_id"].as_str().unwrap();
        let (name, _) = real.rsplit_once('.').unwrap();
        let row = async || {
            let query = windlass_store::job::JobQuery::default();
            let store = client.runtime.store();
            store.jobs(client.runtime.project(), query).await.unwrap().items.remove(0).job.state
        };
        let before = row().await;
        for run_id in [name.to_owned(), format!("{name}.{}", "0".repeat(32))] {
            assert_eq!(
                client.posted("/queue/update_run", json!({"run_id": run_id})).await,
                json!({"ok": "1"})
            );
            assert_eq!(row().await, before, "{run_id}");
        }
        client.posted("/queue/update_run", json!({"run_id": real})).await;
        assert_ne!(row().await, before);
    }
}

#[tokio::test]
async fn a_completion_after_a_lost_lease_is_refused() {
    for client in clients().await {
        let id = client.start(definition(), json!({})).await;
        let hasty = json!({"worker_id": "slow", "services": ["resize"], "lease_ms": 1});
        let first = client.posted("/queue/poll", hasty).await;
        let second = polled(&client).await;
        assert_ne!(first["id"], second["id"]);
        let late = client.post("/queue/complete", json!({"queue_id": first["id"], "result": "late"})).await;
        assert_eq!(late.status, 409, "{late:?}");
        client.posted("/queue/complete", json!({"queue_id": second["id"], "result": "in time"})).await;
        let task = client.ended(&id).await;
        assert_eq!(client.json(&task, "shared_json"), json!({"small": "in time"}));
        let told = client.told(&id, &["attempt_no", "status"]).await;
        assert_eq!(told, [["1", "error"], ["2", "ok"]]);
    }
}

#[tokio::test]
async fn an_error_is_tried_again_as_the_node_says() {
    for client in clients().await {
        let id = client.start(definition(), json!({})).await;
        let first = polled(&client).await;
        client.posted("/queue/complete", json!({"queue_id": first["id"], "error": "out of ink"})).await;
        let second = polled(&client).await;
        assert_ne!(first["id"], second["id"]);
        assert_eq!(
            client.post("/queue/complete", json!({"queue_id": first["id"], "result": 1})).await.status,
            409
        );
        client.posted("/queue/complete", json!({"queue_id": second["id"], "error": "out of paper"})).await;
        let task = client.ended(&id).await;
        assert_eq!(client.field(&task, "status"), "failed");
        let told = client.told(&id, &["attempt_no", "status", "error_text"]).await;
        assert_eq!(told, [["1", "error", "out of ink"], ["2", "error", "out of paper"]]);
    }
}

#[tokio::test]
async fn a_worker_that_registered_need_not_name_its_services_again() {
    for client in clients().await {
        client.posted("/register", json!({"id": "puller", "services": ["resize"], "type": "async"})).await;
        client.start(definition(), json!({})).await;
        let answer = client.post("/queue/poll", json!({"worker_id": "puller"})).await;
        assert!([200, 204].contains(&answer.status), "{answer:?}");
    }
}

#[tokio::test]
async fn a_task_that_waits_for_a_worker_is_cancelled() {
    for client in clients().await {
        let cancel = async |id: &str| client.posted(&format!("/tasks/cancel?id={id}"), json!({})).await;
        let unclaimed = client.start(definition(), json!({})).await;
        cancel(&unclaimed).await;
        let task = client.ended(&unclaimed).await;
        assert_eq!(client.field(&task, "status"), "canceled", "nobody had it");
        assert_eq!(client.told(&unclaimed, &["node_key", "status"]).await, [["q", "canceled"]]);

        let claimed = client.start(definition(), json!({})).await;
        let job = polled(&client).await;
        cancel(&claimed).await;
        assert_eq!(client.status(&claimed).await, "canceling", "somebody works on it");
        let answer = client.post("/queue/complete", json!({"queue_id": job["id"], "result": 1})).await;
        assert_eq!(answer.status, 409, "{answer:?}");
        let task = client.ended(&claimed).await;
        assert_eq!(client.field(&task, "status"), "canceled");
        assert_eq!(client.told(&claimed, &["status"]).await, [["canceled"]]);
    }
}

#[tokio::test]
async fn queue_calls_that_make_no_sense_are_refused() {
    for client in clients().await {
        let uuid = "0190a1b2-c3d4-7000-8000-00000000000a";
        for (path, body, status) in [
            ("/queue/poll", json!({}), 400),
            ("/queue/poll", json!({"worker_id": "w"}), 400),
            ("/queue/poll", json!({"worker_id": "w", "services": "resize"}), 400),
            ("/queue/poll", json!({"worker_id": 1, "services": ["resize"]}), 400),
            ("/queue/complete", json!({}), 400),
            ("/queue/complete", json!({"queue_id": "x"}), 404),
            ("/queue/complete", json!({"queue_id": format!("{uuid}.1")}), 404),
            ("/queue/complete", json!({"queue_id": format!("{uuid}.1"), "error": 5}), 400),
            ("/queue/update_run", json!({}), 400),
            ("/queue/update_run", json!({"run_id": "x", "status": "running"}), 404),
            ("/queue/update_run", json!({"run_id": format!("{uuid}.1"), "status": "running"}), 404),
        ] {
            let answer = client.post(path, body.clone()).await;
            assert_eq!(answer.status, status, "{path} {body}: {answer:?}");
            assert!(answer.body["error"].is_string());
        }
    }
}
