//! The OpenAPI document is complete: every named schema exists, and every operation describes its input and output.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::Request;
use serde_json::Value;

use crate::test_server::TestServer;

/// The routes of the native surface and of the queue platform surface, as the contract has them.
const NATIVE: &[&str] = &[
    "GET /api/v1/flows",
    "POST /api/v1/flows",
    "POST /api/v1/flows/validate",
    "POST /api/v1/flows/expand",
    "GET /api/v1/flows/{flow}",
    "GET /api/v1/flows/{flow}/versions",
    "POST /api/v1/flows/{flow}/versions",
    "GET /api/v1/flows/{flow}/versions/{version}",
    "GET /api/v1/flows/{flow}/diff",
    "GET /api/v1/flows/{flow}/graph",
    "GET /api/v1/flows/{flow}/graph.svg",
    "POST /api/v1/flows/{flow}/instantiate",
    "POST /api/v1/flows/{flow}/runs",
    "GET /api/v1/flows/{flow}/stats",
    "GET /api/v1/runs",
    "GET /api/v1/runs/{id}",
    "GET /api/v1/runs/{id}/graph",
    "GET /api/v1/runs/{id}/attempts",
    "GET /api/v1/runs/{id}/journal",
    "GET /api/v1/runs/{id}/logs",
    "GET /api/v1/runs/{id}/state",
    "GET /api/v1/runs/{id}/state/diff",
    "GET /api/v1/runs/{id}/why",
    "GET /api/v1/runs/{id}/stats",
    "GET /api/v1/runs/{id}/events",
    "POST /api/v1/runs/{id}/cancel",
    "POST /api/v1/runs/{id}/pause",
    "POST /api/v1/runs/{id}/resume",
    "POST /api/v1/runs/{id}/step",
    "POST /api/v1/runs/{id}/retry",
    "POST /api/v1/runs/{id}/continue",
    "POST /api/v1/runs/{id}/signal",
    "POST /api/v1/runs/{id}/decide",
    "POST /api/v1/runs/{id}/rerun",
    "POST /api/v1/runs/{id}/budget",
    "GET /api/v1/approvals",
    "GET /api/v1/jobs",
    "POST /api/v1/jobs",
    "GET /api/v1/jobs/{id}",
    "GET /api/v1/jobs/{id}/attempts",
    "POST /api/v1/jobs/{id}/cancel",
    "POST /api/v1/jobs/{id}/retry",
    "POST /api/v1/jobs/claim",
    "POST /api/v1/jobs/finish",
    "POST /api/v1/jobs/exchange",
    "POST /api/v1/jobs/extend",
    "POST /api/v1/calls/{id}/report",
    "GET /api/v1/accounts",
    "POST /api/v1/accounts",
    "GET /api/v1/accounts/{id}",
    "POST /api/v1/accounts/{id}/deposit",
    "GET /api/v1/accounts/{id}/ledger",
    "GET /api/v1/prices",
    "GET /api/v1/prices/{service}",
    "PUT /api/v1/prices/{service}",
    "DELETE /api/v1/prices/{service}",
    "GET /api/v1/services",
    "GET /api/v1/services/{service}",
    "PUT /api/v1/services/{service}",
    "GET /api/v1/workers",
    "POST /api/v1/workers/{id}/drain",
    "POST /api/v1/workers/{id}/undrain",
    "GET /api/v1/tasks",
    "POST /api/v1/tasks",
    "POST /api/v1/tasks/batch",
    "GET /api/v1/tasks/{id}",
    "GET /api/v1/tasks/{id}/runs",
    "POST /api/v1/tasks/{id}/cancel",
    "POST /api/v1/tasks/{id}/retry",
    "GET /api/v1/queues",
    "GET /api/v1/queues/{name}",
    "PUT /api/v1/queues/{name}",
    "PATCH /api/v1/queues/{name}",
    "POST /api/v1/queues/{name}/pause",
    "POST /api/v1/queues/{name}/resume",
    "GET /api/v1/queues/{name}/dlq",
    "GET /api/v1/queues/{name}/dlq/groups",
    "POST /api/v1/queues/{name}/dlq/replay",
    "POST /api/v1/queues/{name}/dlq/discard",
    "GET /api/v1/schedules",
    "POST /api/v1/schedules",
    "POST /api/v1/schedules/preview",
    "GET /api/v1/schedules/{id}",
    "PATCH /api/v1/schedules/{id}",
    "DELETE /api/v1/schedules/{id}",
    "POST /api/v1/schedules/{id}/toggle",
    "POST /api/v1/schedules/{id}/trigger",
    "GET /api/v1/schedules/{id}/next",
    "GET /api/v1/events",
    "GET /api/v1/runs/counts",
    "GET /api/v1/runs/{id}/view",
    "GET /api/v1/runs/{id}/output",
    "GET /api/v1/bulk",
    "POST /api/v1/bulk",
    "GET /api/v1/bulk/{id}",
    "POST /api/v1/bulk/{id}/cancel",
    "GET /api/v1/overview",
    "GET /api/v1/about",
    "GET /api/v1/series",
    "GET /api/v1/search",
    "GET /api/v1/examples",
    "POST /api/v1/examples",
    "POST /api/v1/doctor",
    "GET /api/v1/audit",
    "GET /api/v1/audit/head",
    "GET /api/v1/audit/verify",
    "GET /api/v1/stats",
    "GET /metrics",
    "GET /healthz",
    "GET /readyz",
    "GET /api/v1/keys",
    "POST /api/v1/keys",
    "POST /api/v1/keys/{id}/revoke",
    "POST /api/v1/keys/{id}/rotate",
    "GET /",
    "GET /openapi.json",
    "GET /docs",
    "GET /docs/errors",
    "GET /docs/api",
    "GET /ui/",
];

fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let each = paths.iter().flat_map(|(path, item)| {
        item.as_object().unwrap().iter().map(move |(method, op)| (method.to_uppercase(), path.clone(), op))
    });
    each.collect()
}

#[tokio::test]
async fn every_route_is_in_the_document_and_the_document_has_no_other() {
    let host = TestServer::new().await;
    let document = host.get("/openapi.json").await.ok();
    assert_eq!(document, windlass_server::openapi());
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let named: BTreeSet<String> =
        operations(&document).into_iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    let mut expected: BTreeSet<String> = NATIVE.iter().map(|route| (*route).to_owned()).collect();
    for (method, path, _) in windlass_server::scheduler::ROUTES {
        expected.insert(format!("{method} /api{path}"));
        expected.insert(format!("{method} {path}"));
    }
    assert_eq!(named, expected);
}

#[tokio::test]
async fn everything_in_the_document_is_answered_by_a_handler() {
    let host = TestServer::new().await;
    let document = host.get("/openapi.json").await.ok();
    for (method, path, _) in operations(&document) {
        let real = path
            .replace("{flow}", "x")
            .replace("{version}", "1")
            .replace("{id}", "run_x")
            .replace("{name}", "q");
        if real.ends_with("/events") && method == "GET" && real == "/api/v1/events" {
            // It never ends; the tests of streams read it.
            continue;
        }
        let response = host.raw(&method, &real, "{}").await;
        let body = String::from_utf8_lossy(&response.body);
        assert!(!body.contains("there is nothing at"), "{method} {path}: {body}");
        assert_ne!(response.status, 405, "{method} {path}");
        assert!(!response.status.is_server_error(), "{method} {path}: {} {body}", response.status);
    }
}

#[tokio::test]
async fn every_operation_says_what_goes_in_and_out() {
    let document = windlass_server::openapi();
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let place = format!("{method} {path}");
        assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{place}");
        assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{place}: id taken");
        let responses = operation["responses"].as_object().unwrap();
        let success =
            responses.iter().find(|(status, _)| status.starts_with('2')).unwrap_or_else(|| panic!("{place}"));
        let content = success.1["content"].as_object().unwrap_or_else(|| panic!("{place}: no content"));
        assert!(content.values().all(|media| media["schema"].is_object()), "{place}");
        if ["POST", "PUT", "PATCH"].contains(&method.as_str()) {
            let content =
                operation["requestBody"]["content"].as_object().unwrap_or_else(|| panic!("{place}: no body"));
            assert!(content.values().all(|media| media["schema"].is_object()), "{place}");
        }
        if !path.starts_with("/docs") && !["/", "/ui/", "/openapi.json"].contains(&path.as_str()) {
            assert!(responses.contains_key("default"), "{place}");
        }
        for segment in path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
            let parameters = operation["parameters"].as_array().unwrap();
            assert!(
                parameters.iter().any(|p| p["name"] == segment && p["in"] == "path"),
                "{place}: {segment}"
            );
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = windlass_server::openapi();
    let mut open = vec![&document];
    let mut n_refs = 0;
    while let Some(value) = open.pop() {
        if let Some(place) = value["$ref"].as_str() {
            n_refs += 1;
            let pointer = place.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{place}");
        }
        match value {
            Value::Object(fields) => open.extend(fields.values()),
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    assert!(n_refs > 50, "{n_refs}");
}

#[tokio::test]
async fn the_pages_need_nothing_from_elsewhere() {
    let host = TestServer::new().await;
    for path in ["/docs", "/docs/errors", "/docs/api"] {
        let response = host.get(path).await;
        let page = String::from_utf8(response.body).unwrap();
        assert_eq!(response.status, 200);
        assert!(response.headers["content-security-policy"].to_str().unwrap().contains("script-src 'self';"));
        for foreign in ["<script>", "src=\"http", "rel=\"stylesheet\" href=\"http", "style=", "onclick"] {
            assert!(!page.contains(foreign), "{path}: {foreign}");
        }
    }
}

#[tokio::test]
async fn a_server_says_that_it_is_there_and_whether_it_takes_work() {
    let host = TestServer::new().await;
    assert_eq!(host.get("/healthz").await.ok()["status"], "ok");
    let ready = host.get("/readyz").await.ok();
    assert_eq!(ready["ready"], true);
    assert!(ready["timestamp"].as_str().unwrap().ends_with('Z'));
    // It has none.
    assert!(ready.get("redis").is_none() && host.get("/api/v1/stats").await.ok().get("redis").is_none());
    host.runtime.shut_down(std::time::Duration::ZERO).await;
    let response = host.get("/readyz").await;
    assert_eq!((response.status.as_u16(), &response.json()["ready"]), (503, &Value::Bool(false)));
    let refused =
        host.post("/api/v1/runs/run_00000000000000000000000000000001/pause", serde_json::json!({})).await;
    refused.refused(503, "draining");
    assert!(refused.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn the_front_page_answers_browsers_with_the_console_and_programs_with_json() {
    let host = TestServer::new().await;
    let json = host.get("/").await;
    assert_eq!(json.ok()["docs"], "/docs");
    assert_eq!(json.headers["vary"], "accept");
    assert_eq!(json.ok()["version"], env!("CARGO_PKG_VERSION"));
    let accept = "text/html,application/xhtml+xml,*/*;q=0.8";
    let request = Request::builder().uri("/").header("accept", accept).body(Body::empty()).unwrap();
    let page = host.send(request).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let text = String::from_utf8(page.body).unwrap();
    assert!(text.contains("<script") && !text.contains("<script>"), "{text}");
    for path in ["/runs/x", "/ui/runs/x"] {
        let request = Request::builder().uri(path).header("accept", accept).body(Body::empty()).unwrap();
        assert_eq!(host.send(request).await.body, text.as_bytes(), "{path}");
    }
    for path in ["/api/v1/none", "/api/none", "/none.js", "/ui/assets/none.js"] {
        let request = Request::builder().uri(path).header("accept", accept).body(Body::empty()).unwrap();
        assert_eq!(host.send(request).await.status, 404, "{path}");
    }
    let refused = host.raw("POST", "/", "{}").await;
    refused.refused(405, "method_not_allowed");
}
