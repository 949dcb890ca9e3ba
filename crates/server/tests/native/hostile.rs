//! Hostile input: every request gets a response that names its problem, and the server goes on.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use windlass_server::Options;

use crate::test_server::{TestServer, upper, waiting};

/// Hostile bodies.
fn bodies() -> Vec<Vec<u8>> {
    let deep = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n)).into_bytes();
    let mut bodies: Vec<Vec<u8>> = [
        "",
        " ",
        "{",
        "}",
        "[]",
        "null",
        "5",
        "\"text\"",
        "true",
        "{}{}",
        "{\"a\":}",
        "{\"a\":1e999}",
        "\u{feff}{}",
        "{\"\\ud800\":1}",
        "{\"a\":\"\\u0000\"}",
        "{\"__proto__\":{}}",
        "{\"name\":null}",
        "{\"name\":[]}",
        "{\"name\":\"x\",\"name\":\"y\"}",
        "{\"name\":123456789012345678901234567890}",
        "{\"params\":[1]}",
        "{\"definition\":5}",
        "{\"definition\":\"x\"}",
        "{\"yaml\":\"&a [*a, *a]\"}",
        "{\"yaml\":\": : :\"}",
        "{\"definition\":{\"nodes\":{},\"edges\":{}}}",
        "{\"version\":-1}",
        "{\"version\":4294967296}",
        "{\"labels\":{\"a\":1}}",
        "{\"priority\":\"urgent\"}",
        "{\"key\":\"_rt.x\",\"value\":1}",
        "{\"node\":\"/////\"}",
        "{\"node\":\"\",\"decision\":{}}",
        "{\"from\":\"\u{202e}x\"}",
        "{\"leases\":[\"x\"]}",
        "{\"results\":[[]]}",
        "{\"results\":[{\"id\":\"\",\"lease\":\"\",\"outcome\":\"done\"}]}",
        "{\"worker_id\":\"w\",\"queues\":[\"q\"],\"max\":18446744073709551615}",
        "{\"unknown\":1}",
        "{\"key\":\"'; DROP TABLE runs; --\",\"value\":\"$(reboot) {{x}} ${y}\"}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into();
    bodies.extend([deep(60), deep(126), deep(127), deep(100_000), vec![0xff, 0xfe], vec![0; 100]]);
    bodies.push(format!("{{\"name\":\"{}\"}}", "x".repeat(300)).into_bytes());
    bodies.push(json!({ "name": "big", "description": "y".repeat(100_000) }).to_string().into_bytes());
    bodies
}

fn paths(run: &str) -> Vec<String> {
    let runs = ["cancel", "pause", "resume", "step", "retry", "continue", "signal", "decide", "rerun"];
    let ids = [run, "run_00000000000000000000000000000001", "run_x", "job_1", "%00", "%F0%9F%9A%80"];
    let mut paths: Vec<String> =
        ids.iter().flat_map(|id| runs.iter().map(move |word| format!("/api/v1/runs/{id}/{word}"))).collect();
    paths.extend(ids.iter().map(|id| format!("/api/v1/calls/{id}.1/report")));
    paths.extend(ids.iter().map(|id| format!("/api/v1/flows/{id}/versions")));
    paths.extend(
        [
            "flows",
            "flows/validate",
            "flows/expand",
            "flows/a/runs",
            "flows/a/versions",
            "jobs/claim",
            "jobs/finish",
            "jobs/exchange",
            "jobs/extend",
        ]
        .map(|path| format!("/api/v1/{path}")),
    );
    paths
}

#[tokio::test]
async fn no_body_makes_the_server_stumble() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    host.publish("b", waiting()).await;
    let run = host.start("b", json!({})).await;
    let bodies = bodies();
    for path in paths(&run) {
        for body in &bodies {
            let response = host.raw("POST", &path, body.clone()).await;
            let shown = String::from_utf8_lossy(&response.body).into_owned();
            let sent: String = String::from_utf8_lossy(body).chars().take(80).collect();
            assert!(!response.status.is_server_error(), "{path} {sent}: {} {shown}", response.status);
            if !response.status.is_success() {
                let code = response.json()["code"].as_str().map(str::to_owned);
                response.refused(response.status.as_u16(), &code.unwrap());
            }
        }
    }
    let sure = host.start("a", json!({ "params": { "text": "still here" } })).await;
    assert_eq!(host.ended(&sure).await["shared"]["loud"], "STILL HERE");
}

#[tokio::test]
async fn no_query_or_path_makes_the_server_stumble() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    let run = host.start("a", json!({})).await;
    host.ended(&run).await;
    let queries = [
        "?x=1",
        "?limit=0",
        "?limit=-1",
        "?limit=99999999999999999999",
        "?limit=x",
        "?cursor=%00",
        "?cursor=n5.run_x",
        "?at=-1",
        "?at=x",
        "?from=x",
        "?status=x",
        "?since=x",
        "?label==",
        "?q=%F0%9F%9A%80",
        "?q=%FF",
        "?&&",
        "?=",
        "?limit=1&limit=2",
        "?wait_ms=x",
    ];
    let lists = [
        "/api/v1/flows".to_owned(),
        "/api/v1/runs".to_owned(),
        "/api/v1/approvals".to_owned(),
        "/api/v1/flows/a".to_owned(),
        "/api/v1/flows/a/diff".to_owned(),
        format!("/api/v1/runs/{run}"),
        format!("/api/v1/runs/{run}/attempts"),
        format!("/api/v1/runs/{run}/journal"),
        format!("/api/v1/runs/{run}/logs"),
        format!("/api/v1/runs/{run}/state"),
        format!("/api/v1/runs/{run}/why"),
        "/api/v1/flows/%FF".to_owned(),
        "/api/v1/runs/..%2F..%2Fetc".to_owned(),
        "/api/v1/nowhere".to_owned(),
        "/api/v1/flows/a/versions/99999999999".to_owned(),
    ];
    for list in &lists {
        for query in queries {
            let response = host.get(&format!("{list}{query}")).await;
            assert!(!response.status.is_server_error(), "{list}{query}: {}", response.status);
        }
    }
    host.get("/api/v1/runs?statsu=failed").await.refused(400, "bad_query");
    let problem = host.get("/api/v1/runs?statsu=failed").await.json();
    assert_eq!(
        (&problem["errors"][0]["path"], &problem["errors"][0]["hint"]),
        (&json!("?statsu"), &json!("did you mean `status`?"))
    );
    host.get(&format!("/api/v1/runs/{run}?verbose=1")).await.refused(400, "bad_query");
    host.post(&format!("/api/v1/runs/{run}/cancel?force=1"), json!({})).await.refused(400, "bad_query");
    host.get("/healthz?probe=1").await.ok();
    host.get("/api/v1/nowhere").await.refused(404, "unknown_route");
    host.raw("DELETE", "/api/v1/flows", "").await.refused(405, "method_not_allowed");
    let plain = host.get("/api/flows/nowhere").await;
    assert_eq!((plain.status.as_u16(), plain.json()["error"].is_string()), (404, true));
}

#[tokio::test]
async fn mistakes_are_named() {
    let host = TestServer::new().await;
    let flows = "/api/v1/flows";
    host.raw("POST", flows, "{\"a\":").await.refused(400, "malformed_json");
    let deep = format!("{{\"name\":{}", "[".repeat(200));
    host.raw("POST", flows, deep).await.refused(400, "too_deep");
    let problem =
        host.post(flows, json!({ "name": "a", "definitoin": {} })).await.refused(422, "unknown_field");
    assert_eq!(
        problem["errors"][0],
        json!({
            "path": "definitoin",
            "reason": "unknown field `definitoin`, expected one of `name`, `description`, `definition`, `yaml`, `labels`, `is_template`",
            "hint": "did you mean `definition`?",
        })
    );
    let problem = host.post(flows, json!({ "name": 5 })).await.refused(422, "invalid_body");
    assert_eq!(problem["errors"][0]["path"], "name");
    for path in ["", "/why", "/journal", "/attempts", "/logs", "/state"] {
        host.get(&format!("/api/v1/runs/run_00000000000000000000000000000001{path}"))
            .await
            .refused(404, "unknown_run");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_on_every_surface() {
    let host = TestServer::with(Options { body_bytes_max: 1_000, ..Options::default() }).await;
    let large = json!({ "name": "a", "description": "x".repeat(2_000) });
    host.post("/api/v1/flows", large.clone()).await.refused(413, "too_large");
    for path in ["/api/flows", "/flows"] {
        let response = host.post(path, large.clone()).await;
        assert_eq!((response.status.as_u16(), response.json()["error"].is_string()), (413, true), "{path}");
    }
    let fits = json!({ "name": "a", "description": "x".repeat(500), "definition": upper() });
    host.post("/api/v1/flows", fits).await.ok();
}

#[tokio::test]
async fn a_body_of_four_mebibytes_is_taken() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    let text = "x".repeat(4_000_000);
    let response =
        host.post("/api/v1/flows/a/runs?wait_ms=20000", json!({ "params": { "text": text } })).await.ok();
    assert_eq!(response["run"]["shared"]["loud"].as_str().map(str::len), Some(4_000_000));
}

#[tokio::test]
async fn a_page_of_another_origin_is_kept_out_unless_it_may() {
    let ask = |host: &TestServer| {
        let request = Request::builder().method("POST").uri("/api/v1/flows/validate");
        let request = request.header("origin", "https://app.example").header("host", "localhost:8070");
        let request = request.body(Body::from(json!({ "definition": upper() }).to_string())).unwrap();
        let router = host.router.clone();
        async move { tower::ServiceExt::oneshot(router, request).await.unwrap() }
    };
    let strict = TestServer::new().await;
    assert_eq!(ask(&strict).await.status(), 403);
    let open =
        TestServer::with(Options { cors: vec!["https://app.example".to_owned()], ..Options::default() })
            .await;
    let response = ask(&open).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["access-control-allow-origin"]),
        (200, &"https://app.example".parse().unwrap())
    );
    let preflight =
        Request::builder().method("OPTIONS").uri("/api/v1/flows").header("origin", "https://app.example");
    let preflight = preflight.header("access-control-request-method", "POST").body(Body::empty()).unwrap();
    let response = open.send(preflight).await;
    assert_eq!(response.headers["access-control-allow-origin"], "https://app.example");
}

#[tokio::test]
async fn a_request_for_an_unknown_host_reaches_nothing() {
    let host = TestServer::with(Options { cors: vec!["*".to_owned()], ..Options::default() }).await;
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        for path in ["/healthz", "/docs", "/api/v1/flows", "/api/flows", "/nowhere"] {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header("host", "evil.example:8070")
                .header("origin", "http://evil.example:8070");
            let response = host.send_as_is(request.body(Body::empty()).unwrap()).await;
            assert_eq!(response.status.as_u16(), 421, "{method} {path}");
        }
    }
    let missing = Request::builder().uri("/api/v1/flows").body(Body::empty()).unwrap();
    host.send_as_is(missing).await.refused(400, "bad_header");
    let rebound = Request::builder().uri("/api/v1/flows").header("host", "evil.example:8070");
    let problem = host.send_as_is(rebound.body(Body::empty()).unwrap()).await.refused(421, "unknown_host");
    assert!(problem["detail"].as_str().unwrap().contains("--host evil.example"), "{problem}");
}
