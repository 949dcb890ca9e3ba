//! Jobs of queues on the native surface: created, listed, shown, canceled, retried.

use serde_json::{Value, json};

use crate::test_server::{TestResponse, TestServer, queued};

fn job(name: &str) -> Value {
    json!({ "name": name, "queue": "mail" })
}

fn with(name: &str, more: Value) -> Value {
    let mut job = job(name);
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    job
}

impl TestServer {
    async fn create_job(&self, body: Value) -> String {
        let created = self.post("/api/v1/jobs", body).await;
        assert_eq!(created.status, 201, "{}", created.json());
        created.json()["id"].as_str().unwrap().to_owned()
    }

    async fn job(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/jobs/{id}")).await.ok()
    }

    async fn act(&self, id: &str, word: &str) -> TestResponse {
        self.post(&format!("/api/v1/jobs/{id}/{word}"), json!({})).await
    }

    async fn claim_mail(&self) -> Value {
        let claim = json!({ "worker_id": "w-1", "queues": ["mail"], "wait_ms": 20_000 });
        self.post("/api/v1/jobs/claim", claim).await.ok()["jobs"][0].clone()
    }
}

fn paths(problem: &Value) -> Vec<&str> {
    problem["errors"].as_array().unwrap().iter().map(|error| error["path"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_job_is_created_claimed_and_completed_under_one_id() {
    let host = TestServer::new().await;
    let id = host.create_job(with("welcome", json!({ "priority": 2, "payload": { "k": "v" } }))).await;
    assert!(id.starts_with("job_"), "{id}");
    let claimed = host.claim_mail().await;
    assert_eq!((&claimed["id"], &claimed["input"]), (&json!(id), &json!({ "k": "v" })));
    let running = host.job(&id).await;
    assert_eq!((&running["status"], &running["worker_id"]), (&json!("running"), &json!("w-1")));
    assert_eq!(host.finish(&claimed, json!({ "outcome": "done", "result": { "sum": 5 } })).await, "ok");
    let shown = host.job(&id).await;
    for (field, value) in [
        ("id", json!(id)),
        ("name", json!("welcome")),
        ("queue", json!("mail")),
        ("priority", json!(2)),
        ("payload", json!({ "k": "v" })),
        ("status", json!("completed")),
        ("attempt", json!(1)),
        ("retry_max", json!(2)),
        ("due_at", Value::Null),
        (
            "retry",
            json!({ "max": 2, "delay_ms": 5_000, "backoff": "exponential", "cap_ms": 3_600_000, "jitter": true }),
        ),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
    let latest = &shown["latest_attempt"];
    assert_eq!((&latest["status"], &latest["result"]), (&json!("completed"), &json!({ "sum": 5 })));
    let uuid = uuid::Uuid::parse_str(&id[4..]).unwrap().hyphenated().to_string();
    assert_eq!(host.job(&uuid).await["id"], json!(id), "the id of document 002 names the same job");
    assert_eq!(host.get(&format!("/api/v1/tasks/{id}")).await.ok()["task"]["id"], json!(uuid));
}

#[tokio::test]
async fn retry_max_counts_the_tries_after_the_first_attempt() {
    let host = TestServer::new().await;
    let retry = json!({ "retry": { "max": 1, "delay_ms": 60_000, "backoff": "fixed", "jitter": false } });
    let id = host.create_job(with("a", retry)).await;
    let failed = json!({ "outcome": "failed", "error": "out of paper" });
    let claimed = host.claim_mail().await;
    assert_eq!(host.finish(&claimed, failed.clone()).await, "ok");
    let shown = host.job(&id).await;
    assert_eq!((&shown["status"], &shown["attempt"]), (&json!("retrying"), &json!(2)));
    assert_eq!(shown["error"]["message"], "out of paper");
    assert!(shown["due_at"].is_string() && shown["due_at"] == shown["latest_attempt"]["next_retry_at"]);
    assert_eq!(host.act(&id, "retry").await.ok()["status"], "queued");
    let claimed = host.claim_mail().await;
    assert_eq!(host.finish(&claimed, failed).await, "ok");
    let shown = host.job(&id).await;
    assert_eq!((&shown["status"], &shown["is_dead_letter"]), (&json!("failed"), &json!(true)));
    let attempts = host.get(&format!("/api/v1/jobs/{id}/attempts")).await.ok();
    let statuses: Vec<_> = attempts["items"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["retrying", "failed"]);
    let page = host.get(&format!("/api/v1/jobs/{id}/attempts?limit=1")).await.ok();
    let next = page["next"].as_str().unwrap();
    let rest = host.get(&format!("/api/v1/jobs/{id}/attempts?cursor={next}")).await.ok();
    assert_eq!((&rest["items"][0]["attempt"], &rest["next"]), (&json!(2), &Value::Null));
    assert_eq!(host.act(&id, "retry").await.ok()["status"], "queued", "a failed job is opened again");
}

#[tokio::test]
async fn an_array_is_created_as_a_whole_and_answered_in_order() {
    let host = TestServer::new().await;
    let jobs: Vec<Value> = (0..700).map(|n| job(&format!("job-{n}"))).collect();
    let created = host.post("/api/v1/jobs", json!(jobs)).await;
    assert_eq!(created.status, 201);
    let items = created.json()["items"].as_array().unwrap().clone();
    assert_eq!(items.len(), 700);
    assert_eq!(host.job(items[650]["id"].as_str().unwrap()).await["name"], "job-650");
    let wrong = json!([job("a"), with("", json!({ "queue": "two words" })), 5]);
    let problem = host.post("/api/v1/jobs", wrong).await.refused(422, "invalid_body");
    assert_eq!(paths(&problem), ["[1].name", "[1].queue", "[2]"]);
    host.post("/api/v1/jobs", json!([])).await.refused(422, "invalid_body");
    let many: Vec<Value> = (0..10_001).map(|_| json!({})).collect();
    let problem = host.post("/api/v1/jobs", json!(many)).await.refused(422, "invalid_body");
    assert!(problem["detail"].as_str().unwrap().contains("give at most 10000"), "{problem}");
    assert_eq!(host.get("/api/v1/jobs?name=a").await.ok()["items"], json!([]), "nothing of it was created");
}

#[tokio::test]
async fn an_array_may_be_larger_than_other_bodies() {
    let host = TestServer::new().await;
    let large: Vec<Value> =
        (0..10).map(|n| with("a", json!({ "payload": "x".repeat(1_000_000 + n) }))).collect();
    assert_eq!(host.post("/api/v1/jobs", json!(large)).await.ok()["items"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn one_open_job_holds_a_deduplication_key() {
    let host = TestServer::new().await;
    let keyed = || with("a", json!({ "dedup_key": "once" }));
    let first = host.create_job(keyed()).await;
    let again = host.post("/api/v1/jobs", keyed()).await;
    assert_eq!(again.status, 200);
    assert_eq!(again.json(), json!({ "id": first, "status": "queued", "duplicate": true }));
    let claimed = host.claim_mail().await;
    let again = host.post("/api/v1/jobs", json!([keyed(), job("b")])).await.ok();
    assert_eq!((&again["items"][0]["id"], &again["items"][0]["status"]), (&json!(first), &json!("running")));
    assert_eq!(host.finish(&claimed, json!({ "outcome": "done" })).await, "ok");
    assert_ne!(host.create_job(keyed()).await, first);
}

#[tokio::test]
async fn every_problem_of_a_body_is_named_at_once() {
    let host = TestServer::new().await;
    let body = json!({
        "name": 5, "priorty": 1, "payload": {}, "dedup_key": "k\n", "timeout_ms": -1, "run_at": "soon",
        "retry": { "max": 1_000, "backoff": "linear", "delay": 5 }
    });
    let problem = host.post("/api/v1/jobs", body).await.refused(422, "invalid_body");
    let mut found = paths(&problem);
    found.sort_unstable();
    let expected = [
        "dedup_key",
        "name",
        "priorty",
        "queue",
        "retry.backoff",
        "retry.delay",
        "retry.max",
        "run_at",
        "timeout_ms",
    ];
    assert_eq!(found, expected, "{problem}");
    let unknown = host.post("/api/v1/jobs", with("a", json!({ "max_retries": 3 }))).await;
    let problem = unknown.refused(422, "unknown_field");
    assert_eq!(paths(&problem), ["max_retries"]);
    assert!(problem["errors"][0]["hint"].as_str().unwrap().contains("`retry` with `max`"), "{problem}");
    let unpaid = host.post("/api/v1/jobs", with("a", json!({ "account": "nobody" }))).await;
    assert_eq!(paths(&unpaid.refused(422, "invalid_body")), ["account"]);
    for (body, status, code) in [
        ("", 422, "invalid_body"),
        ("5", 422, "invalid_body"),
        ("{", 400, "malformed_json"),
        ("[", 400, "malformed_json"),
        ("[[]]", 422, "invalid_body"),
        (r#"["a", "mail"]"#, 422, "invalid_body"),
    ] {
        host.raw("POST", "/api/v1/jobs", body).await.refused(status, code);
    }
}

#[tokio::test]
async fn a_job_before_its_time_is_queued_with_its_due_time() {
    let host = TestServer::new().await;
    let id = host.create_job(with("a", json!({ "run_at": "2199-01-01T00:00:00+08:00" }))).await;
    let shown = host.job(&id).await;
    assert_eq!((&shown["status"], &shown["due_at"]), (&json!("queued"), &json!("2198-12-31T16:00:00.000Z")));
    assert_eq!(host.get("/api/v1/jobs?status=delayed").await.ok()["items"][0]["id"], json!(id));
    let canceled = host.act(&id, "cancel").await.ok();
    assert_eq!(
        (&canceled["status"], &canceled["latest_attempt"]["status"], &canceled["due_at"]),
        (&json!("canceled"), &json!("canceled"), &Value::Null)
    );
    assert_eq!(host.get("/api/v1/jobs?status=canceled").await.ok()["items"][0]["id"], json!(id));
    assert_eq!(host.get(&format!("/api/v1/tasks/{id}")).await.ok()["display_status"], "cancelled");
    assert_eq!(host.act(&id, "retry").await.ok()["status"], "queued", "a canceled job is opened again");
}

#[tokio::test]
async fn a_suspended_job_is_running_and_says_so() {
    let host = TestServer::new().await;
    let id = host.create_job(job("a")).await;
    let claimed = host.claim_mail().await;
    let suspended = json!({ "outcome": "suspended", "memo": { "n": 1 }, "recheck_ms": 600_000 });
    assert_eq!(host.finish(&claimed, suspended).await, "ok");
    let shown = host.job(&id).await;
    assert_eq!(
        (&shown["status"], &shown["suspended"], &shown["memo"]),
        (&json!("running"), &json!(true), &json!({ "n": 1 }))
    );
    assert!(shown["due_at"].is_string());
    for status in ["running", "suspended", "open"] {
        let listed = host.get(&format!("/api/v1/jobs?status={status}")).await.ok();
        assert_eq!(listed["items"][0]["id"], json!(id), "{status}");
    }
}

#[tokio::test]
async fn jobs_are_listed_by_their_filters() {
    let host = TestServer::new().await;
    let first = host.create_job(with("press", json!({ "payload": { "secret": 1 } }))).await;
    let other = host.create_job(json!({ "name": "send", "queue": "letters", "priority": 7 })).await;
    let claimed = host.claim_mail().await;
    let list = |query: &str| {
        let (path, host) = (format!("/api/v1/jobs{query}"), &host);
        async move {
            let listed = host.get(&path).await.ok();
            let items = listed["items"].as_array().unwrap().clone();
            items.into_iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        }
    };
    assert_eq!(list("").await, [other.clone(), first.clone()]);
    assert_eq!(list("?status=running").await, [first.as_str()]);
    assert_eq!(list("?status=queued,%20completed").await, [other.as_str()]);
    assert_eq!(list("?status=open&queue=letters").await, [other.as_str()]);
    assert_eq!(list("?name=press&worker=w-1").await, [first.as_str()]);
    assert_eq!(list("?until=2020-01-01T00:00:00Z").await, [] as [String; 0]);
    assert_eq!(list("?since=2020-01-01T00:00:00Z").await.len(), 2);
    let page = host.get("/api/v1/jobs?limit=1").await.ok();
    assert_eq!((&page["items"][0]["priority"], &page["items"][0]["payload"]), (&json!(7), &Value::Null));
    assert_eq!(list(&format!("?limit=1&cursor={}", page["next"].as_str().unwrap())).await, [first]);
    assert_eq!(host.finish(&claimed, json!({ "outcome": "done" })).await, "ok");
    for (query, path) in [
        ("status=cancelled", "?status"),
        ("limit=0", "?limit"),
        ("schedule=x", "?schedule"),
        ("qeue=a", "?qeue"),
    ] {
        let problem = host.get(&format!("/api/v1/jobs?{query}")).await.refused(400, "bad_query");
        assert_eq!(paths(&problem), [path], "{problem}");
    }
    let problem = host.get("/api/v1/jobs?status=cancelled").await.refused(400, "bad_query");
    assert_eq!(problem["errors"][0]["hint"], "did you mean `canceled`?");
    host.get("/api/v1/jobs?cursor=x").await.refused(400, "bad_cursor");
}

#[tokio::test]
async fn a_call_of_a_run_is_a_job_that_only_the_run_ends() {
    let host = TestServer::new().await;
    host.publish("q", queued()).await;
    let run = host.start("q", json!({ "params": { "text": "a" } })).await;
    host.claim("press").await;
    let listed = host.get("/api/v1/jobs?name=press").await.ok();
    let item = &listed["items"][0];
    assert_eq!((&item["run"], &item["node"]), (&json!(run), &json!("work")));
    let id = item["id"].as_str().unwrap();
    host.act(id, "cancel").await.refused(409, "job_of_run");
    host.act(id, "retry").await.refused(409, "job_of_run");
}

#[tokio::test]
async fn unknown_jobs_and_ended_jobs_are_refused_with_a_remedy() {
    let host = TestServer::new().await;
    for id in ["job_00000000000000000000000000000001", "x", "%00", "job_1", "%F0%9F%9A%80"] {
        host.get(&format!("/api/v1/jobs/{id}")).await.refused(404, "unknown_job");
        host.get(&format!("/api/v1/jobs/{id}/attempts")).await.refused(404, "unknown_job");
        host.act(id, "cancel").await.refused(404, "unknown_job");
        host.act(id, "retry").await.refused(404, "unknown_job");
    }
    let id = host.create_job(job("a")).await;
    host.post(&format!("/api/v1/jobs/{id}/cancel"), json!({ "reason": "x" }))
        .await
        .refused(422, "unknown_field");
    let claimed = host.claim_mail().await;
    assert_eq!(host.finish(&claimed, json!({ "outcome": "done" })).await, "ok");
    host.act(&id, "cancel").await.refused(409, "job_ended");
    host.act(&id, "retry").await.refused(409, "job_ended");
    host.raw("DELETE", "/api/v1/jobs", "").await.refused(405, "method_not_allowed");
}

#[tokio::test]
async fn canceling_and_retrying_a_job_is_audited() {
    let host = TestServer::new().await;
    let id = host.create_job(job("a")).await;
    host.act(&id, "cancel").await.ok();
    host.act(&id, "retry").await.ok();
    let audit = host.get("/api/v1/audit").await.ok();
    let lines: Vec<_> =
        audit["items"].as_array().unwrap().iter().map(|line| (&line["what"], &line["subject"])).collect();
    assert_eq!(lines, [(&json!("job.retry"), &json!(id)), (&json!("job.cancel"), &json!(id))]);
}

#[tokio::test]
async fn payload_and_result_pass_through_as_text() {
    const TEXT: &str = r#"{"z":[1,2.50,-0.0,1e2,18446744073709551615,0.1],"a":{"text":"\u00df\ud83e\udd80\u0000\/","none":null}}"#;
    const WRITTEN: &str =
        r#"{"z":[1,2.5,-0.0,100.0,18446744073709551615,0.1],"a":{"text":"ß🦀\u0000/","none":null}}"#;
    let host = TestServer::new().await;
    let spaced = TEXT.replace(',', " ,\n ").replace(':', " : ");
    let body = format!(r#"{{"payload":{spaced},"name":"a","queue":"mail"}}"#);
    let created = host.raw("POST", "/api/v1/jobs", body).await.ok();
    let path = format!("/api/v1/jobs/{}", created["id"].as_str().unwrap());
    let has = |response: TestResponse, field: &str| {
        let (text, expected) = (String::from_utf8(response.body).unwrap(), format!(r#""{field}":{WRITTEN}"#));
        assert!(text.contains(&expected), "{text}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    has(host.get(&path).await, "payload");
    let claim = json!({ "worker_id": "w-1", "queues": ["mail"], "wait_ms": 20_000 });
    let claimed = has(host.post("/api/v1/jobs/claim", claim).await, "input")["jobs"][0].clone();
    let (id, lease) = (&claimed["id"], &claimed["lease"]);
    let finish = async |result: &str| {
        let end = format!(r#"{{"id":{id},"lease":{lease},"outcome":"done","result":{result}}}"#);
        host.raw("POST", "/api/v1/jobs/finish", format!(r#"{{"results":[{end}]}}"#)).await.ok()["results"][0]
            ["verdict"]
            .clone()
    };
    assert_eq!(finish(TEXT).await, "ok");
    has(host.get(&path).await, "result");
    has(host.get(&format!("{path}/attempts")).await, "result");
    let sorted = serde_json::from_str::<Value>(TEXT).unwrap().to_string();
    assert_eq!(finish(&sorted).await, "ok", "the same result in another order of fields is no news");
    assert_eq!(finish("[]").await, "lost");
}

#[tokio::test]
async fn a_payload_that_is_no_json_is_refused() {
    let host = TestServer::new().await;
    for payload in ["1e999", r#""\ud800""#, "[1,]", "{1:2}", "nul", "\"\n\""] {
        let body = format!(r#"{{"name":"a","queue":"mail","payload":{payload}}}"#);
        host.raw("POST", "/api/v1/jobs", body.clone()).await.refused(400, "malformed_json");
        let batch = format!("[{body}]");
        host.raw("POST", "/api/v1/jobs", batch).await.refused(400, "malformed_json");
        let end = format!(r#"{{"results":[{{"id":"a","lease":"b","outcome":"done","result":{payload}}}]}}"#);
        host.raw("POST", "/api/v1/jobs/finish", end).await.refused(400, "malformed_json");
    }
}
