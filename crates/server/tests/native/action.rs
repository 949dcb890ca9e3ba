//! Actions on runs, and reports of workers.

use serde_json::{Value, json};

use crate::test_server::{TestServer, approval, queued, upper, waiting};

#[tokio::test]
async fn a_run_is_cancelled_once_and_retried() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    let run = host.start("b", json!({})).await;
    let canceled =
        host.post(&format!("/api/v1/runs/{run}/cancel"), json!({ "reason": "no need", "by": "ann" })).await;
    assert_eq!(canceled.ok()["status"], "canceled");
    host.post(&format!("/api/v1/runs/{run}/signal"), json!({ "key": "payment", "value": 1 }))
        .await
        .refused(409, "run_ended");
    host.post(&format!("/api/v1/runs/{run}/pause"), json!({})).await.refused(409, "run_ended");
    let again = host.raw("POST", &format!("/api/v1/runs/{run}/retry"), "").await.ok();
    assert_eq!((&again["status"], &again["round"]), (&json!("waiting"), &json!(2)));
    host.post(&format!("/api/v1/runs/{run}/retry"), json!({})).await.refused(409, "run_open");
}

#[tokio::test]
async fn a_paused_run_goes_on_when_it_is_told() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    let run = host.start("b", json!({})).await;
    assert_eq!(host.post(&format!("/api/v1/runs/{run}/pause"), json!({})).await.ok()["status"], "paused");
    host.post(&format!("/api/v1/runs/{run}/signal"), json!({ "key": "payment", "value": "x" })).await.ok();
    assert_eq!(host.get(&format!("/api/v1/runs/{run}")).await.ok()["status"], "paused");
    host.post(&format!("/api/v1/runs/{run}/resume"), json!({})).await.ok();
    assert_eq!(host.ended(&run).await["shared"]["shipped"], "x");
}

#[tokio::test]
async fn a_run_by_hand_takes_one_step_at_a_time() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    let run = host.start("a", json!({ "params": { "text": "hi" }, "manual": true })).await;
    let why = host.get(&format!("/api/v1/runs/{run}/why")).await.ok();
    assert_eq!(why["reasons"][0]["waits_for"], "step");
    host.post(&format!("/api/v1/runs/{run}/step"), json!({})).await.ok();
    assert_eq!(host.ended(&run).await["status"], "completed");
}

#[tokio::test]
async fn a_node_is_continued_with_a_result_and_run_again() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    let run = host.start("b", json!({})).await;
    let path = |word: &str| format!("/api/v1/runs/{run}/{word}");
    host.post(&path("continue"), json!({ "node": "nowhere" })).await.refused(422, "unknown_node");
    host.post(&path("rerun"), json!({ "from": "paid" })).await.refused(409, "run_open");
    host.post(&path("continue"), json!({ "node": "paid", "result": 5 })).await.ok();
    assert_eq!(host.ended(&run).await["node_states"]["paid"]["output"], 5);
    host.post(&path("continue"), json!({ "node": "paid" })).await.refused(409, "run_ended");
    let again =
        host.post(&path("rerun"), json!({ "from": "ship", "shared": { "payment": "anew" } })).await.ok();
    assert_eq!(again["round"], 2);
    assert_eq!(host.ended(&run).await["shared"]["shipped"], "anew");
    host.post(&path("rerun"), json!({ "from": "nowhere" })).await.refused(422, "unknown_node");
}

#[tokio::test]
async fn only_named_approvers_decide() {
    let host = TestServer::new().await;
    host.publish("c", approval()).await;
    let run = host.start("c", json!({})).await;
    let listed = host.get("/api/v1/approvals").await.ok();
    let open = &listed["items"][0];
    assert_eq!((&open["run"], &open["node"], &open["flow"]), (&json!(run), &json!("review"), &json!("c")));
    assert_eq!((&open["assignees"], open["since"].is_string()), (&json!(["ann", "bob"]), true));
    assert_eq!(host.get("/api/v1/approvals?assignee=eve").await.ok()["items"], json!([]));
    let decide = format!("/api/v1/runs/{run}/decide");
    host.post(&decide, json!({ "decision": true, "by": "eve" })).await.refused(409, "not_assigned");
    host.post(&decide, json!({ "decision": true, "by": "ann", "comment": "go" })).await.ok();
    assert_eq!(host.ended(&run).await["shared"]["outcome"], json!({ "sent": true }));
    host.post(&decide, json!({ "decision": true, "by": "ann" })).await.refused(409, "run_ended");
    assert_eq!(host.get("/api/v1/approvals").await.ok()["items"], json!([]));
}

#[tokio::test]
async fn reserved_keys_are_not_written_from_outside() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    let run = host.start("b", json!({})).await;
    let signal = format!("/api/v1/runs/{run}/signal");
    host.post(&signal, json!({ "key": "_rt", "value": 1 })).await.refused(422, "reserved_key");
    host.post(&signal, json!({ "key": "", "value": 1 })).await.refused(422, "invalid_body");
    host.post(&signal, json!({ "key": "payment" })).await.refused(422, "invalid_body");
}

async fn claim(host: &TestServer) -> Value {
    let response = host
        .post("/api/v1/jobs/claim", json!({ "worker_id": "w", "services": ["press"], "wait_ms": 20_000 }))
        .await;
    response.ok()["jobs"][0].clone()
}

#[tokio::test]
async fn a_run_says_that_its_queue_holds_it_back() {
    let host = TestServer::new().await;
    host.publish("d", queued()).await;
    let first = host.start("d", json!({})).await;
    let second = host.start("d", json!({})).await;
    let limit = async |body: Value| host.put("/api/v1/queues/press", body).await.ok();
    let why = async |run: &str| {
        let why = host.get(&format!("/api/v1/runs/{run}/why")).await.ok();
        let reason = &why["reasons"][0];
        format!(
            "{} {}",
            reason["waits_for"].as_str().unwrap(),
            reason["command"].as_str().unwrap_or_default()
        )
    };
    assert_eq!(why(&first).await, "worker windlass worker list");
    limit(json!({ "paused": true })).await;
    assert_eq!(why(&first).await, "queue windlass queue resume press");
    limit(json!({ "paused": false, "limits": { "concurrency": 1 } })).await;
    let job = claim(&host).await;
    let waits = if job["run"] == first.as_str() { &second } else { &first };
    assert_eq!(why(waits).await, "limit windlass queue limit press --concurrency none");
    host.finish(&job, json!({ "outcome": "done" })).await;
    limit(json!({ "limits": { "rate": { "count": 1, "per_ms": 600_000 } } })).await;
    let last = claim(&host).await;
    assert!(last.is_object(), "the rate has one");
    let third = host.start("d", json!({})).await;
    assert_eq!(why(&third).await, "limit windlass queue limit press --rate none");
}

#[tokio::test]
async fn a_job_is_claimed_kept_and_finished() {
    let host = TestServer::new().await;
    host.publish("d", queued()).await;
    let run = host.start("d", json!({ "params": { "text": "hi" } })).await;
    let job = claim(&host).await;
    assert_eq!(
        (&job["input"], &job["service"], &job["run"], &job["node"]),
        (&json!("hi"), &json!("press"), &json!(run), &json!("work"))
    );
    assert!(job["call"].as_str().unwrap().starts_with(&format!("{run}.1.")), "{job}");
    let shown = host.get(&format!("/api/v1/runs/{run}")).await.ok();
    assert_eq!(shown["node_states"]["work"]["job"], job["id"]);
    let kept = host
        .post("/api/v1/jobs/extend", json!({ "leases": [job["lease"], "nonsense"], "lease_ms": 5_000 }))
        .await
        .ok();
    let verdicts: Vec<_> = kept["results"].as_array().unwrap().iter().map(|r| r["verdict"].clone()).collect();
    assert_eq!(verdicts, ["ok", "lost"]);
    let end = |result: &str| json!({ "results": [{ "id": job["id"], "lease": job["lease"], "outcome": "done", "result": result }] });
    let verdict = async |body: Value| {
        host.post("/api/v1/jobs/finish", body).await.ok()["results"][0]["verdict"].clone()
    };
    assert_eq!(verdict(end("HI")).await, "ok");
    assert_eq!(verdict(end("HI")).await, "ok");
    assert_eq!(verdict(end("HO")).await, "lost");
    assert_eq!(host.ended(&run).await["shared"]["pressed"], "HI");
}

#[tokio::test]
async fn a_suspended_call_is_reported_once() {
    let host = TestServer::new().await;
    host.publish("d", queued()).await;
    let run = host.start("d", json!({ "params": { "text": "hi" } })).await;
    let job = claim(&host).await;
    let suspended = json!({ "results": [{ "id": job["id"], "lease": job["lease"], "outcome": "suspended", "memo": { "ticket": 1 } }] });
    host.post("/api/v1/jobs/finish", suspended).await.ok();
    let shown = host.until(&run, |run| run["node_states"]["work"]["status"] == "suspended").await;
    let call = job["call"].as_str().unwrap().to_owned();
    let name = shown["node_states"]["work"]["call"].as_str().unwrap();
    assert_eq!(name, call.rsplit_once('.').unwrap().0, "a run shows the call without its signature");
    let why = host.get(&format!("/api/v1/runs/{run}/why")).await.ok();
    assert_eq!(why["reasons"][0]["waits_for"], "report");
    let report = format!("/api/v1/calls/{call}/report");
    let response = host.post(&report, json!({ "result": "late but fine" })).await.ok();
    assert_eq!((&response["verdict"], &response["id"]), (&json!("ok"), &json!(call)));
    assert_eq!(host.ended(&run).await["shared"]["pressed"], "late but fine");
    assert_eq!(host.post(&report, json!({ "result": "late but fine" })).await.ok()["verdict"], "ok");
    assert_eq!(host.post(&report, json!({ "result": "again" })).await.ok()["verdict"], "lost");
    let nobodys = format!("/api/v1/calls/run_{:032x}.1/report", 7);
    host.post(&nobodys, json!({ "result": 1 })).await.refused(404, "unknown_call");
    host.post("/api/v1/calls/nonsense/report", json!({})).await.refused(404, "unknown_call");
}

#[tokio::test]
async fn answers_of_workers_are_checked() {
    let host = TestServer::new().await;
    let claim = "/api/v1/jobs/claim";
    host.post(claim, json!({ "worker_id": "w" })).await.refused(422, "invalid_body");
    host.post(claim, json!({ "worker_id": "", "queues": ["q"] })).await.refused(422, "invalid_body");
    host.post(claim, json!({ "worker_id": "w", "queues": ["q"], "max": 0 }))
        .await
        .refused(422, "invalid_body");
    host.post(claim, json!({ "worker_id": "w", "queues": ["q"], "wait_ms": 60_001 }))
        .await
        .refused(422, "invalid_body");
    host.post(claim, json!({ "worker_id": "w", "queues": ["q"], "lease_ms": 1 }))
        .await
        .refused(422, "invalid_body");
    assert_eq!(
        host.post(claim, json!({ "worker_id": "w", "queues": ["q"] })).await.ok(),
        json!({ "jobs": [] })
    );
    let result = json!({ "results": [{ "id": "job_1", "lease": "x", "outcome": "done", "error": "no" }] });
    let problem = host.post("/api/v1/jobs/finish", result).await.refused(422, "invalid_body");
    assert_eq!(problem["errors"][0]["path"], "results[0].error");
    let unknown = json!({ "results": [{ "id": "job_1", "lease": "x", "outcome": "done" }] });
    assert_eq!(host.post("/api/v1/jobs/finish", unknown).await.ok()["results"][0]["verdict"], "lost");
}

#[tokio::test]
async fn workers_are_listed() {
    let host = TestServer::new().await;
    assert_eq!(host.get("/api/v1/workers").await.ok(), json!({ "workers": [], "count": 0 }));
    let worker = json!({ "id": "w", "url": "http://127.0.0.1:9", "services": ["press"], "type": "http" });
    host.post("/api/workers/register", worker).await.ok();
    let listed = host.get("/api/v1/workers").await.ok();
    assert_eq!(
        (&listed["count"], &listed["workers"][0]["id"], &listed["workers"][0]["status"]),
        (&json!(1), &json!("w"), &json!("online"))
    );
}
