//! Changes leave a line in the audit log, whether they succeed or not.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use windlass_runtime::{Runtime, Settings};
use windlass_server::Options;

use crate::test_server::{TestResponse, TestServer, upper, waiting};
use windlass_conformance::faulty_store::FaultyStore;
use windlass_store::Memory;
use windlass_store::commit::Commit;

/// The id of no run.
const NOBODYS: &str = "run_00000000000000000000000000000001";

impl TestServer {
    /// Asks for something under a name.
    async fn by(&self, actor: &str, method: &str, path: &str, body: Value) -> TestResponse {
        let request = Request::builder().method(method).uri(path).header("X-Windlass-Actor", actor);
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    /// The lines of the audit.
    pub(crate) async fn audit(&self, query: &str) -> Vec<Value> {
        let response = self.get(&format!("/api/v1/audit{query}")).await.ok();
        response["items"].as_array().unwrap().clone()
    }
}

/// The change, its subject, its actor and its result.
fn short(lines: &[Value]) -> Vec<String> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    let each =
        lines.iter().map(|line| ["what", "subject", "who", "result"].map(|name| text(line, name)).join(" "));
    each.collect()
}

#[tokio::test]
async fn a_change_is_noted_with_who_asked_and_what_came_of_it() {
    let host = TestServer::new().await;
    host.by("ann", "POST", "/api/v1/flows", json!({ "name": "wait", "definition": waiting() })).await.ok();
    let run = host.start("wait", json!({})).await;
    let cancel = json!({ "reason": "no longer needed", "by": "bob" });
    host.by("ann@example.org", "POST", &format!("/api/v1/runs/{run}/cancel"), cancel).await.ok();
    let lines = host.audit("").await;
    assert_eq!(
        short(&lines),
        [format!("run.cancel {run} ann@example.org done"), "flow.create wait ann done".to_owned()],
        "starts are not noted"
    );
    let line = &lines[0];
    assert_eq!((&line["seq"], &line["status"]), (&json!(2), &json!(200)));
    assert_eq!(
        (&line["method"], &line["path"]),
        (&json!("POST"), &json!(format!("/api/v1/runs/{run}/cancel")))
    );
    assert_eq!(line["reason"], "no longer needed");
    assert!(line["at"].as_str().unwrap().ends_with('Z'));
    assert_eq!((line.get("ip"), line.get("code")), (None, None), "there is no connection, and no problem");
}

#[tokio::test]
async fn every_kind_of_change_is_noted() {
    let host = TestServer::new().await;
    host.publish("wait", waiting()).await;
    host.post("/api/v1/flows/wait/versions", json!({ "definition": waiting() })).await.ok();
    let template = json!({ "name": "t/1", "definition": upper(), "is_template": true });
    host.post("/api/v1/flows", template).await.ok();
    host.post("/api/v1/flows/t%2F1/instantiate", json!({ "name": "made" })).await.ok();
    let run = host.start("wait", json!({})).await;
    for act in ["pause", "resume"] {
        host.post(&format!("/api/v1/runs/{run}/{act}"), json!({})).await.ok();
    }
    let signal = json!({ "key": "payment", "value": "a secret", "by": "till 7" });
    host.post(&format!("/api/v1/runs/{run}/signal"), signal).await.ok();
    host.ended(&run).await;
    host.post(&format!("/api/v1/runs/{run}/rerun?dry_run=1"), json!({ "from": "ship" })).await.ok();
    host.post(&format!("/api/v1/runs/{run}/rerun"), json!({ "from": "ship" })).await.ok();
    host.post("/api/v1/accounts", json!({ "id": "acme" })).await.ok();
    host.post("/api/v1/accounts/acme/deposit", json!({ "amount": 5, "key": "k" })).await.ok();
    host.put("/api/v1/prices/video", json!({ "unit_price": 2 })).await.ok();
    host.raw("DELETE", "/api/v1/prices/video", Body::empty()).await.ok();
    host.put("/api/v1/services/video", json!({ "recheck_ms": 5_000 })).await.ok();
    host.post("/api/v1/doctor", json!({})).await.ok();
    host.post("/api/v1/doctor", json!({ "repair": true })).await.ok();
    let lines = host.audit("?order=oldest").await;
    let nobody = |what: &str, subject: &str| format!("{what} {subject} anonymous done");
    let expected = [
        nobody("flow.create", "wait"),
        nobody("flow.publish", "wait"),
        nobody("flow.create", "t/1"),
        nobody("flow.instantiate", "made"),
        nobody("run.pause", &run),
        nobody("run.resume", &run),
        format!("run.signal {run} till 7 done"),
        nobody("run.rerun", &run),
        nobody("account.open", "acme"),
        nobody("account.deposit", "acme"),
        nobody("price.set", "video"),
        nobody("price.delete", "video"),
        nobody("service.set", "video"),
        nobody("server.repair", ""),
    ];
    assert_eq!(short(&lines), expected);
    assert!(!lines.iter().any(|line| line.to_string().contains("secret")), "bodies are not kept");
}

#[tokio::test]
async fn refused_changes_are_audited_too() {
    let host = TestServer::new().await;
    let path = format!("/api/v1/runs/{NOBODYS}/pause");
    host.by("ann", "POST", &path, json!({})).await.refused(404, "unknown_run");
    host.by("ann", "POST", &path, json!({ "x": 1 })).await.refused(422, "unknown_field");
    host.post(&format!("/api/v1/runs/{NOBODYS}/retry?dry_run=maybe"), json!({}))
        .await
        .refused(400, "bad_query");
    host.raw("POST", "/api/v1/flows", vec![b' '; 5 << 20]).await.refused(413, "too_large");
    let foreign = Request::builder().method("POST").uri(&path).header("origin", "https://evil.example");
    host.send(foreign.body(Body::empty()).unwrap()).await.refused(403, "cross_origin");
    let long = format!("/api/v1/runs/{}/pause", "x".repeat(5_000));
    host.post(&long, json!({})).await.refused(404, "unknown_run");
    host.raw("DELETE", &path, Body::empty()).await.refused(405, "method_not_allowed");
    host.post("/api/v1/nowhere", json!({})).await.refused(404, "unknown_route");
    let lines = host.audit("?order=oldest").await;
    let codes: Vec<(&str, u64)> =
        lines.iter().map(|line| (line["code"].as_str().unwrap(), line["status"].as_u64().unwrap())).collect();
    let expected = [
        ("unknown_run", 404),
        ("unknown_field", 422),
        ("bad_query", 400),
        ("too_large", 413),
        ("unknown_run", 404),
    ];
    assert_eq!(codes, expected, "what reaches no route or is turned away unseen is not noted");
    assert!(lines.iter().all(|line| line["result"] == "refused"), "{lines:?}");
    assert_eq!(lines[4]["subject"].as_str().unwrap().len(), 255);
    assert_eq!(lines[4]["path"].as_str().unwrap().len(), 500);
    host.runtime.shut_down(std::time::Duration::ZERO).await;
    host.post(&path, json!({})).await.refused(503, "draining");
    assert_eq!(host.audit("").await.len(), lines.len());
}

#[tokio::test]
async fn every_actor_has_a_readable_name() {
    let host = TestServer::new().await;
    let new = json!({ "id": "acme" });
    for bad in [" ", "a\tb", &"x".repeat(201)] {
        let refused = host.by(bad, "POST", "/api/v1/accounts", new.clone()).await.refused(400, "bad_header");
        assert_eq!(refused["errors"][0]["path"], "X-Windlass-Actor");
    }
    host.get("/api/v1/accounts/acme").await.refused(404, "account_not_found");
    assert_eq!(short(&host.audit("").await), vec!["account.open  anonymous refused"; 3]);
    host.by("Jürgen 漢字", "POST", "/api/v1/accounts", new).await.ok();
    assert_eq!(short(&host.audit("?limit=1").await), ["account.open acme Jürgen 漢字 done"]);
    // Routes that are not recorded do not read the header.
    host.by("", "POST", "/api/v1/flows/validate", json!({ "definition": upper() })).await.ok();
}

#[tokio::test]
async fn the_audit_is_read_in_pages_and_by_who_what_and_subject() {
    let host = TestServer::new().await;
    for n in 0..7 {
        let actor = if n % 2 == 0 { "ann" } else { "bob" };
        host.by(actor, "POST", "/api/v1/accounts", json!({ "id": format!("a{n}") })).await.ok();
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = host.get(&format!("/api/v1/audit?limit=3{cursor}")).await.ok();
        seen.extend(page["items"].as_array().unwrap().iter().map(|line| line["seq"].as_u64().unwrap()));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, [7, 6, 5, 4, 3, 2, 1]);
    let seqs = async |query: &str| -> Vec<u64> {
        host.audit(query).await.iter().map(|line| line["seq"].as_u64().unwrap()).collect()
    };
    assert_eq!(seqs("?who=bob").await, [6, 4, 2]);
    assert_eq!(seqs("?who=bob&order=oldest&cursor=2").await, [4, 6]);
    assert_eq!(seqs("?subject=a4&what=account.open").await, [5]);
    assert!(seqs("?what=run.cancel").await.is_empty());
    for (query, place) in [
        ("limit=0", "?limit"),
        ("limit=1001", "?limit"),
        ("limit=x", "?limit"),
        ("order=up", "?order"),
        ("after=1", "?after"),
        ("what=run.cancle", "?what"),
    ] {
        let refused = host.get(&format!("/api/v1/audit?{query}")).await.refused(400, "bad_query");
        assert_eq!(refused["errors"][0]["path"], place, "{refused}");
    }
    let slip = host.get("/api/v1/audit?what=run.cancle").await.json();
    assert_eq!(slip["errors"][0]["hint"], "did you mean `run.cancel`?");
    host.get("/api/v1/audit?cursor=x").await.refused(400, "bad_cursor");
}

#[tokio::test]
async fn a_response_is_unchanged_if_its_audit_row_cannot_be_written() {
    // It takes everything but lines of the audit.
    let on_commit = |_: &Memory, commits: &[Commit]| commits.iter().all(|commit| commit.audit.is_empty());
    let store = Arc::new(FaultyStore { on_commit: Box::new(on_commit), ..FaultyStore::default() });
    let runtime = Runtime::start_up(store, Settings::default()).await.unwrap();
    let host = TestServer {
        router: windlass_server::router(runtime.clone(), Options::default()),
        runtime,
        authorization: None,
    };
    host.by("ann", "POST", "/api/v1/accounts", json!({ "id": "acme" })).await.ok();
    host.by("ann", "POST", "/api/v1/accounts/none/deposit", json!({ "amount": 1, "key": "k" }))
        .await
        .refused(404, "account_not_found");
    assert_eq!(host.get("/api/v1/accounts/acme").await.ok()["id"], "acme");
    assert!(host.audit("").await.is_empty());
}

#[tokio::test]
async fn pages_that_may_ask_may_say_who_asks() {
    let host =
        TestServer::with(Options { cors: vec!["https://console.example".to_owned()], ..Options::default() })
            .await;
    let asked = Request::builder()
        .method("OPTIONS")
        .uri("/api/v1/accounts")
        .header("origin", "https://console.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "x-windlass-actor");
    let response = host.send(asked.body(Body::empty()).unwrap()).await;
    let allowed = response.headers["access-control-allow-headers"].to_str().unwrap();
    assert!(allowed.contains("x-windlass-actor"), "{allowed}");
}

#[test]
fn the_document_says_where_who_asks_is_noted() {
    let document = windlass_server::openapi();
    let names = |path: &str, method: &str| {
        let parameters = document["paths"][path][method]["parameters"].as_array().cloned();
        parameters.into_iter().flatten().any(|parameter| parameter["name"] == "X-Windlass-Actor")
    };
    assert!(names("/api/v1/runs/{id}/cancel", "post") && names("/api/v1/accounts", "post"));
    assert!(names("/api/tasks/cancel", "post") && names("/tasks/cancel", "post"));
    assert!(!names("/api/v1/jobs/claim", "post") && !names("/api/v1/audit", "get"));
}
