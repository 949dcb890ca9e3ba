//! Ends of jobs and the next claim in one request.

use serde_json::{Value, json};

use crate::test_server::TestServer;

fn end(job: &Value) -> Value {
    json!({ "id": job["id"], "lease": job["lease"], "outcome": "done", "result": "small.png" })
}

fn claim(wait_ms: u64) -> Value {
    json!({ "worker_id": "w", "queues": ["q"], "wait_ms": wait_ms })
}

async fn create(host: &TestServer, payload: Value) -> String {
    let job = json!({ "name": "n", "queue": "q", "payload": payload });
    let created = host.post("/api/v1/jobs", job).await.ok();
    created["id"].as_str().unwrap().to_owned()
}

async fn exchange(host: &TestServer, body: Value) -> Value {
    host.post("/api/v1/jobs/exchange", body).await.ok()
}

async fn status(host: &TestServer, job: &str) -> Value {
    host.get(&format!("/api/v1/jobs/{job}")).await.ok()["status"].clone()
}

#[tokio::test]
async fn a_worker_hands_in_one_job_and_gets_the_next() {
    let host = TestServer::new().await;
    let (first, second) = (create(&host, json!(1)).await, create(&host, json!(2)).await);
    let got = exchange(&host, json!({ "claim": claim(20_000) })).await;
    assert_eq!((&got["results"], &got["jobs"][0]["id"]), (&json!([]), &json!(first)), "{got}");
    let body = json!({ "finish": [end(&got["jobs"][0])], "claim": claim(20_000) });
    let next = exchange(&host, body.clone()).await;
    assert_eq!(next["results"], json!([{ "id": first, "verdict": "ok" }]));
    assert_eq!((&next["jobs"][0]["id"], &next["jobs"][0]["input"]), (&json!(second), &json!(2)), "{next}");
    assert_eq!(status(&host, &first).await, "completed");
    // The very same end again is taken again; there is nothing left to claim.
    let again = exchange(&host, json!({ "finish": body["finish"], "claim": claim(0) })).await;
    assert_eq!(again, json!({ "results": [{ "id": first, "verdict": "ok" }], "jobs": [] }));
}

#[tokio::test]
async fn an_end_is_stored_while_the_claim_still_waits() {
    let host = TestServer::new().await;
    let first = create(&host, json!(1)).await;
    let job = exchange(&host, json!({ "claim": claim(20_000) })).await["jobs"][0].clone();
    let waiting = exchange(&host, json!({ "finish": [end(&job)], "claim": claim(60_000) }));
    let meanwhile = async {
        while status(&host, &first).await != "completed" {
            tokio::task::yield_now().await;
        }
        create(&host, json!(2)).await
    };
    let (answer, second) = tokio::join!(waiting, meanwhile);
    assert_eq!((&answer["results"][0]["verdict"], &answer["jobs"][0]["id"]), (&json!("ok"), &json!(second)));
}

#[tokio::test]
async fn both_parts_are_checked_before_either_is_done() {
    let host = TestServer::new().await;
    let first = create(&host, json!(1)).await;
    let job = exchange(&host, json!({ "claim": claim(20_000) })).await["jobs"][0].clone();
    let refused = async |body: Value, path: &str| {
        let problem = host.post("/api/v1/jobs/exchange", body).await.refused(422, "invalid_body");
        assert_eq!(problem["errors"][0]["path"], path, "{problem}");
        assert_eq!(status(&host, &first).await, "running");
    };
    refused(json!({ "finish": [end(&job)], "claim": { "worker_id": "w" } }), "claim.queues").await;
    refused(json!({ "finish": [end(&job)], "claim": claim(60_001) }), "claim.wait_ms").await;
    let mut wrong = end(&job);
    wrong["error"] = json!("no");
    refused(json!({ "finish": [end(&job), wrong], "claim": claim(0) }), "finish[1].error").await;
    let unknown =
        json!({ "finish": [{ "id": "job_1", "lease": "x", "outcome": "done" }], "claim": claim(0) });
    assert_eq!(exchange(&host, unknown).await["results"][0]["verdict"], "lost");
}
