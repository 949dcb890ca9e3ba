//! Bodies that two readers could understand differently, that are declared as something else, or that are large.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::test_server::{TestServer, queued, upper, waiting};

#[tokio::test]
async fn a_key_given_twice_is_refused_on_every_surface() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    let twice = r#"{"params":{"list":[1,{"k":1,"k":2}]}}"#;
    let problem = host.raw("POST", "/api/v1/flows/a/runs", twice).await.refused(422, "invalid_body");
    assert_eq!(problem["errors"][0]["path"], "params.list[1].k");
    let escaped = r#"{"params":{"a":1,"\u0061":2}}"#;
    host.raw("POST", "/api/v1/flows/a/runs", escaped).await.refused(422, "invalid_body");
    for path in ["/api/v1/tasks", "/api/v1/jobs"] {
        let body = r#"{"name":"n","queue":"q","payload":{"a":1,"a":2}}"#;
        let answer = host.raw("POST", path, body).await.json();
        assert_eq!(answer["errors"][0]["path"], "payload.a", "{path}: {answer}");
    }
    for body in [r#"{"name":"x","name":"y"}"#, r#"{"FlowID":"x","flow_id":"y"}"#] {
        let answer = host.raw("POST", "/api/flows/version", body).await;
        assert_eq!(answer.status, 400, "{}", answer.json());
        let said = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(said.contains("twice") || said.contains("same field"), "{said}");
    }
    let answer = host.raw("POST", "/api/flows/version?FlowID=a&flow_id=b", "{}").await;
    assert_eq!(answer.status, 400, "{}", answer.json());
    assert!(answer.json()["error"].as_str().unwrap().contains("same field"));
    let text = json!({ "FlowID": "x", "ParamsJSON": r#"{"a":1,"a":2}"# });
    assert_eq!(host.post("/api/tasks", text).await.status, 400);
}

#[tokio::test]
async fn an_integer_beyond_64_bits_is_refused_on_every_surface() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    let run = host.start("b", json!({})).await;
    let large = "123456789012345678901234567890";
    let body = format!(r#"{{"key":"payment","value":{{"n":{large}}}}}"#);
    let path = format!("/api/v1/runs/{run}/signal");
    let problem = host.raw("POST", &path, body).await.refused(422, "invalid_body");
    assert_eq!(problem["errors"][0]["path"], "value.n");
    for (path, status) in [("/api/v1/jobs", 422), ("/api/v1/tasks", 400)] {
        let body = format!(r#"{{"name":"n","queue":"q","payload":[0,{large}]}}"#);
        let answer = host.raw("POST", path, body).await;
        assert_eq!(answer.status, status, "{}", answer.json());
        assert_eq!(answer.json()["errors"][0]["path"], "payload[1]");
    }
    let body = format!(r#"{{"key":"payment","value":{{"n":"{large}","m":{}}}}}"#, u64::MAX);
    host.raw("POST", &path, body).await.ok();
    let ended = host.ended(&run).await;
    assert_eq!(ended["shared"]["shipped"], json!({ "n": large, "m": u64::MAX }));
}

#[tokio::test]
async fn encoded_bodies_and_bodies_of_other_types_are_refused() {
    let host = TestServer::new().await;
    let send = async |name: &str, value: &str, path: &str| {
        let request = Request::builder().method("POST").uri(path).header(name, value);
        host.send(request.body(Body::from(r#"{"definition":{}}"#)).unwrap()).await
    };
    for (name, value) in [("content-encoding", "gzip"), ("content-type", "application/xml")] {
        send(name, value, "/api/v1/flows/validate").await.refused(415, "unsupported_media");
        for path in ["/api/v1/tasks", "/api/flows", "/register"] {
            let answer = send(name, value, path).await;
            assert_eq!(answer.status, 415, "{path}: {}", answer.json());
            assert!(answer.json()["error"].is_string());
        }
    }
    send("content-type", "application/x-www-form-urlencoded", "/api/v1/flows/validate").await.ok();
}

#[tokio::test]
async fn every_response_forbids_sniffing() {
    let host = TestServer::new().await;
    for path in
        ["/", "/docs", "/openapi.json", "/healthz", "/metrics", "/nowhere", "/api/v1/flows", "/api/tasks"]
    {
        assert_eq!(host.get(path).await.headers["x-content-type-options"], "nosniff", "{path}");
    }
    let stranger = Request::builder().uri("/").header("host", "evil.example").body(Body::empty()).unwrap();
    assert_eq!(host.send_as_is(stranger).await.headers["x-content-type-options"], "nosniff");
}

#[tokio::test]
async fn a_result_of_eight_mebibytes_is_taken() {
    let host = TestServer::new().await;
    host.publish("q", queued()).await;
    let result = "x".repeat((8 << 20) - 100);
    let run = host.start("q", json!({ "params": { "text": "t" } })).await;
    let claim = json!({ "worker_id": "w", "services": ["press"], "wait_ms": 20_000 });
    let job = host.post("/api/v1/jobs/claim", claim).await.ok()["jobs"][0].clone();
    let end = |result: &Value| json!({ "results": [{ "id": job["id"], "lease": job["lease"], "outcome": "done", "result": result }] });
    let answer = host.post("/api/v1/jobs/finish", end(&json!(result))).await.ok();
    assert_eq!(answer["results"][0]["verdict"], "ok", "{answer}");
    assert_eq!(host.ended(&run).await["shared"]["pressed"].as_str().map(str::len), Some(result.len()));
}

#[tokio::test]
async fn one_request_takes_seven_results_of_eight_mebibytes_and_a_larger_one_fails_only_its_job() {
    const LARGEST: usize = (8 << 20) - 2;
    let host = TestServer::new().await;
    let jobs: Vec<Value> = (0..10).map(|n| json!({ "name": format!("j{n}"), "queue": "big" })).collect();
    host.post("/api/v1/jobs", json!(jobs)).await.ok();
    let claim = json!({ "worker_id": "w", "queues": ["big"], "max": 10, "wait_ms": 20_000 });
    let claimed = host.post("/api/v1/jobs/claim", claim).await.ok()["jobs"].as_array().unwrap().clone();
    assert_eq!(claimed.len(), 10);
    let result_of = |job: &Value, n_bytes: usize| json!({ "id": job["id"], "lease": job["lease"], "outcome": "done", "result": "x".repeat(n_bytes) });
    let finish = async |results: Vec<Value>| {
        let n = results.len();
        let answer = host.post("/api/v1/jobs/finish", json!({ "results": results })).await.ok();
        let verdicts = answer["results"].as_array().unwrap();
        assert_eq!(verdicts.len(), n);
        assert!(verdicts.iter().all(|one| one["verdict"] == "ok"), "{answer}");
    };
    let show =
        async |job: &Value| host.get(&format!("/api/v1/jobs/{}", job["id"].as_str().unwrap())).await.ok();
    finish(claimed[..7].iter().map(|job| result_of(job, LARGEST)).collect()).await;
    for job in &claimed[..7] {
        let shown = show(job).await;
        assert_eq!(shown["status"], "completed");
        assert_eq!(shown["latest_attempt"]["result"].as_str().map(str::len), Some(LARGEST));
    }
    let (first, large, last) = (&claimed[7], &claimed[8], &claimed[9]);
    finish(vec![result_of(first, 5), result_of(large, LARGEST + 1), result_of(last, 5)]).await;
    let shown = show(large).await;
    assert_eq!(shown["status"], "failed");
    assert_eq!(shown["error"]["message"], "the result is larger than 8388608 bytes");
    for job in [first, last] {
        let shown = show(job).await;
        let latest = &shown["latest_attempt"];
        assert_eq!((&latest["status"], &latest["result"]), (&json!("completed"), &json!("xxxxx")));
    }
}
