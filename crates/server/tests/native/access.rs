//! API keys: every route with every role, scopes, and credentials that prove nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::HOST;
use axum::http::{HeaderMap, Request};
use serde_json::{Value, json};
use tower::ServiceExt;
use windlass_conformance::faulty_store::FaultyStore;
use windlass_conformance::postgres_server::PostgresServer;
use windlass_engine::access::api_key::{ApiKey, RANDOM_BYTES};
use windlass_engine::access::identity::{KeyRights, WorkScope};
use windlass_engine::access::{Permission, Role};
use windlass_engine::time::Timestamp;
use windlass_runtime::access::NewApiKey;
use windlass_runtime::{ScriptPolicy, Settings};
use windlass_server::Options;
use windlass_store::{Durability, Memory, Postgres};

use crate::test_server::{TestResponse, TestServer, approval, waiting};

/// A credential of a test: the value of the header `Authorization`.
type Credential = Option<String>;

fn bearer(key: &str) -> Credential {
    Some(format!("Bearer {key}"))
}

impl TestServer {
    /// Makes a key with these rights.
    pub(crate) async fn key_with(
        &self,
        rights: KeyRights,
        expires_at: Option<Timestamp>,
    ) -> (String, String) {
        let name = format!("the {}", rights.role.word());
        let new =
            NewApiKey { name, rights: rights.checked().unwrap(), expires_at, created_by: "test".to_owned() };
        let (key, row) = self.runtime.access().create(new).await.unwrap();
        (key.reveal().to_owned(), row.id.to_string())
    }

    /// Makes a key of a role; workers do the work of the service `tts` and the queue `mail`.
    pub(crate) async fn key(&self, role: Role) -> String {
        self.key_with(rights(role), None).await.0
    }

    /// The status, the headers and the code of an answer; its body is left where it has no end.
    async fn ask(
        &self,
        credential: &Credential,
        method: &str,
        path: &str,
        body: &str,
    ) -> (u16, HeaderMap, Value) {
        let mut request = Request::builder().method(method).uri(path).header(HOST, "localhost");
        if let Some(credential) = credential {
            request = request.header("authorization", credential);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let is_refused = parts.status.is_client_error();
        let bytes =
            if is_refused { axum::body::to_bytes(body, 1 << 20).await.unwrap() } else { Default::default() };
        (parts.status.as_u16(), parts.headers, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn as_key(&self, key: &str, method: &str, path: &str, body: Value) -> TestResponse {
        let request =
            Request::builder().method(method).uri(path).header("authorization", format!("Bearer {key}"));
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }
}

fn rights(role: Role) -> KeyRights {
    let names = |name: &str| [name.to_owned()].into();
    let is_worker = role == Role::Worker;
    let scope = if is_worker {
        WorkScope { services: names("tts"), queues: names("mail") }
    } else {
        Default::default()
    };
    KeyRights { scope, ..KeyRights::of(role) }
}

/// Every operation with the permission that its route requires; `None` = it is public.
fn operations() -> Vec<(String, String, Option<Permission>)> {
    let document = windlass_server::openapi();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let word = operation["x-permission"].as_str().unwrap_or_else(|| panic!("{method} {path}"));
            let permission = Permission::ALL.into_iter().find(|permission| permission.word() == word);
            assert_eq!(permission.is_none(), word == "public", "{method} {path}: {word}");
            let path = path.replace("{version}", "1");
            let path = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
            found.push((method.to_uppercase(), path.collect::<Vec<_>>().join("/"), permission));
        }
    }
    assert!(found.len() > 150, "{}", found.len());
    found
}

#[tokio::test]
async fn every_route_takes_the_roles_of_the_table_and_no_other_credential() {
    let host = TestServer::new().await;
    let mut keys: BTreeMap<Role, Credential> = BTreeMap::new();
    for role in Role::ALL {
        keys.insert(role, bearer(&host.key(role).await));
    }
    let (expired, _) = host.key_with(rights(Role::Admin), Some(Timestamp(1))).await;
    let (revoked, id) = host.key_with(rights(Role::Admin), None).await;
    assert!(host.runtime.access().revoke(id.parse().unwrap()).await.unwrap());
    let unknown = ApiKey::new(Role::Admin, &[7; RANDOM_BYTES]);
    let strangers = [
        (None, "unauthenticated"),
        (Some("Bearer".to_owned()), "unauthenticated"),
        (bearer("garbage"), "unauthenticated"),
        (bearer(unknown.reveal()), "unauthenticated"),
        (bearer(&revoked), "unauthenticated"),
        (bearer(&expired), "key_expired"),
        (keys[&Role::Admin].as_ref().map(|key| key.replace("Bearer wl_a", "Bearer wl_u")), "unauthenticated"),
    ];
    for (method, path, permission) in operations() {
        for (credential, code) in &strangers {
            let place = format!("{method} {path} {credential:?}");
            let (status, headers, body) = host.ask(credential, &method, &path, "{}").await;
            let Some(_) = permission else {
                assert!(![401, 403].contains(&status), "{place}: {status}");
                continue;
            };
            assert_eq!(status, 401, "{place}: {body}");
            assert_eq!(headers["www-authenticate"], "Bearer", "{place}");
            let told = body["code"].as_str().or(body["error"].as_str().map(|_| *code));
            assert_eq!(told, Some(*code), "{place}: {body}");
            assert!(!body.to_string().contains("garbage"), "{place}: {body}");
        }
        for role in Role::ALL {
            let place = format!("{method} {path} as {}", role.word());
            let (status, _, body) = host.ask(&keys[&role], &method, &path, "{}").await;
            let may = permission.is_none_or(|permission| role.has(permission));
            assert_ne!(status, 401, "{place}: {body}");
            assert_eq!(status == 403, !may, "{place}: {status} {body}");
            if let (false, Some(permission)) = (may, permission) {
                assert!(body.to_string().contains(&format!("`{}`", permission.word())), "{place}: {body}");
            }
        }
    }
    // Reads without a body are decided like reads.
    let (status, ..) = host.ask(&keys[&Role::Worker], "HEAD", "/api/v1/runs", "").await;
    assert_eq!(status, 403);
    let (status, ..) = host.ask(&None, "HEAD", "/metrics", "").await;
    assert_eq!(status, 401);
    let (status, ..) = host.ask(&keys[&Role::Viewer], "DELETE", "/api/v1/runs", "").await;
    assert_eq!(status, 405);
}

#[tokio::test]
async fn names_that_look_like_routes_open_nothing() {
    let host = TestServer::new().await;
    host.publish("x/healthz", waiting()).await;
    host.key(Role::Admin).await;
    for path in [
        "/api/v1/flows/x%2Fhealthz",
        "/api/v1/flows/x/healthz",
        "/api/v1/flows/..%2f..%2fhealthz",
        "/api/v1/flows/%2e%2e%2fui%2f",
        "/api/v1/flows?/healthz",
        "/api/v1/flows/docs",
        "/api/v1/runs/run_0000",
        "//api/v1/flows",
        "/ui/..%2fapi%2fv1%2fflows",
        "/ui/../api/v1/flows",
        "/docs/..%2f..%2fapi/v1/flows",
        "/healthz/../api/v1/flows",
        "/healthz%2f..%2fapi/v1/flows",
        "/metrics?x=/healthz",
        "/API/V1/FLOWS",
        "/api/../flows",
        "/flows;/healthz",
    ] {
        let response = host.get(path).await;
        let body = String::from_utf8_lossy(&response.body).into_owned();
        let is_page = body.starts_with("<!doctype html") || body.starts_with("<!DOCTYPE html");
        assert!(
            [401, 404].contains(&response.status.as_u16()) || is_page,
            "{path}: {} {body}",
            response.status
        );
        assert!(!body.contains("x/healthz\","), "{path}: {body}");
    }
}

#[tokio::test]
async fn a_server_is_open_until_its_first_key_and_closed_from_then_on() {
    let host = TestServer::new().await;
    host.get("/api/v1/flows").await.ok();
    let made = host.post("/api/v1/keys", json!({ "name": "me", "role": "admin" })).await.ok();
    let key = made["key"].as_str().unwrap().to_owned();
    assert!(key.starts_with("wl_a_"), "{made}");
    assert_eq!(made["created_by"], "anonymous");
    host.get("/api/v1/flows").await.refused(401, "unauthenticated");
    host.as_key(&key, "GET", "/api/v1/flows", json!({})).await.ok();
    let listed = host.as_key(&key, "GET", "/api/v1/keys", json!({})).await.ok();
    assert_eq!(listed["items"][0]["id"], made["id"]);
    // The text of a key is in no other answer, and the audit names the key by its id.
    let audit = host.as_key(&key, "GET", "/api/v1/audit", json!({})).await.ok();
    assert_eq!(
        (&audit["items"][0]["what"], &audit["items"][0]["subject"]),
        (&json!("key.create"), &made["id"])
    );
    for answer in [listed.to_string(), audit.to_string()] {
        assert!(!answer.contains(&key[15..]), "{answer}");
    }
}

#[tokio::test]
async fn wrong_requests_for_keys_name_the_field() {
    let host = TestServer::new().await;
    for (body, field) in [
        (json!({ "name": "", "role": "viewer" }), "name"),
        (json!({ "name": "a\u{202e}b", "role": "viewer" }), "name"),
        (json!({ "name": "a", "role": "worker" }), "services"),
        (json!({ "name": "a", "role": "viewer", "services": ["tts"] }), "services"),
        (json!({ "name": "a", "role": "admin", "queues": ["mail"] }), "queues"),
        (json!({ "name": "a", "role": "viewer", "scripts": true }), "scripts"),
        (json!({ "name": "a", "role": "viewer", "expires_at": "2001-01-01T00:00:00Z" }), "expires_at"),
    ] {
        let refused = host.post("/api/v1/keys", body.clone()).await.refused(422, "invalid_body");
        assert_eq!(refused["errors"][0]["path"], field, "{body}: {refused}");
    }
    host.post("/api/v1/keys", json!({ "name": "a", "role": "root" })).await.refused(422, "invalid_body");
    assert!(!host.runtime.access().is_closed());
    for action in ["revoke", "rotate"] {
        for id in ["none", "00000000"] {
            let path = format!("/api/v1/keys/{id}/{action}");
            host.post(&path, json!({})).await.refused(404, "unknown_key");
        }
    }
}

#[tokio::test]
async fn a_revoked_key_ends_at_once_and_a_rotated_one_after_its_grace() {
    let host = TestServer::new().await;
    let admin = host.key(Role::Admin).await;
    let (viewer, id) = host.key_with(rights(Role::Viewer), None).await;
    let reads = async |key: &str| host.as_key(key, "GET", "/api/v1/runs", json!({})).await.status.as_u16();
    assert_eq!(reads(&viewer).await, 200);
    let path = format!("/api/v1/keys/{id}/rotate");
    let made = host.as_key(&admin, "POST", &path, json!({ "grace_ms": 60_000 })).await.ok();
    let next = made["key"].as_str().unwrap();
    assert_eq!((made["role"].as_str(), made["name"].as_str()), (Some("viewer"), Some("the viewer")));
    assert_eq!((reads(&viewer).await, reads(next).await), (200, 200));
    let path = format!("/api/v1/keys/{}/rotate", made["id"].as_str().unwrap());
    let last = host.as_key(&admin, "POST", &path, json!({ "grace_ms": 0 })).await.ok();
    host.as_key(next, "GET", "/api/v1/runs", json!({})).await.refused(401, "key_expired");
    let last_id = last["id"].as_str().unwrap();
    let revoked =
        host.as_key(&admin, "POST", &format!("/api/v1/keys/{last_id}/revoke"), json!({})).await.ok();
    assert!(revoked["revoked_at"].is_string(), "{revoked}");
    host.as_key(last["key"].as_str().unwrap(), "GET", "/api/v1/runs", json!({}))
        .await
        .refused(401, "unauthenticated");
}

#[tokio::test]
async fn a_worker_does_the_work_of_its_services_and_queues_only() {
    let host = TestServer::new().await;
    let worker = host.key(Role::Worker).await;
    let operator = host.key(Role::Operator).await;
    let everything: WorkScope = WorkScope::everything();
    let (any, _) = host.key_with(KeyRights { scope: everything, ..KeyRights::of(Role::Worker) }, None).await;
    for queue in ["mail", "mail", "other"] {
        host.as_key(&operator, "POST", "/api/v1/jobs", json!({ "name": "n", "queue": queue })).await.ok();
    }
    let claim = async |key: &str, body: Value| host.as_key(key, "POST", "/api/v1/jobs/claim", body).await;
    for (body, name) in [
        (json!({ "worker_id": "w", "queues": ["mail", "other"] }), "`other`"),
        (json!({ "worker_id": "w", "services": ["tts", "video"] }), "`video`"),
        (json!({ "worker_id": "w", "services": ["*"] }), "`*`"),
    ] {
        let refused = claim(&worker, body).await.refused(403, "forbidden");
        assert!(refused["detail"].as_str().unwrap().contains(name), "{refused}");
    }
    let own = claim(&worker, json!({ "worker_id": "w", "queues": ["mail"], "services": ["tts"] })).await.ok();
    let other = claim(&any, json!({ "worker_id": "v", "queues": ["other"] })).await.ok();
    let end = |job: &Value| json!({ "id": job["id"], "lease": job["lease"], "outcome": "done" });
    let both = json!({ "results": [end(&own["jobs"][0]), end(&other["jobs"][0])] });
    host.as_key(&worker, "POST", "/api/v1/jobs/finish", both.clone()).await.refused(403, "forbidden");
    let leases = json!({ "leases": [own["jobs"][0]["lease"], other["jobs"][0]["lease"]] });
    host.as_key(&worker, "POST", "/api/v1/jobs/extend", leases).await.refused(403, "forbidden");
    // Nothing of the refused batch was done.
    let finished = host.as_key(&any, "POST", "/api/v1/jobs/finish", both).await.ok();
    assert_eq!(
        (&finished["results"][0]["verdict"], &finished["results"][1]["verdict"]),
        (&json!("ok"), &json!("ok"))
    );
    let own = claim(&worker, json!({ "worker_id": "w", "queues": ["mail"] })).await.ok();
    let one = json!({ "results": [end(&own["jobs"][0])] });
    assert_eq!(
        host.as_key(&worker, "POST", "/api/v1/jobs/finish", one).await.ok()["results"][0]["verdict"],
        "ok"
    );
}

#[tokio::test]
async fn a_worker_registers_for_its_scope_and_takes_over_no_other_worker() {
    let host = TestServer::new().await;
    let worker = host.key(Role::Worker).await;
    let admin = host.key(Role::Admin).await;
    let tell =
        async |key: &str, path: &str, body: Value| host.as_key(key, "POST", path, body).await.status.as_u16();
    for path in ["/register", "/api/workers/register"] {
        let of = |id: &str, services: &[&str]| json!({ "id": id, "services": services, "type": "async" });
        assert_eq!(tell(&worker, path, of("w", &["tts"])).await, 200, "{path}");
        assert_eq!(tell(&worker, path, of("w", &["tts", "video"])).await, 403, "{path}");
        assert_eq!(tell(&admin, path, of("v", &["video"])).await, 200, "{path}");
        // The calls of the other worker would go to this one.
        assert_eq!(tell(&worker, path, of("v", &["tts"])).await, 403, "{path}");
    }
    for path in ["/heartbeat", "/api/workers/heartbeat"] {
        assert_eq!(tell(&worker, path, json!({ "id": "w" })).await, 200, "{path}");
        assert_eq!(
            tell(&worker, path, json!({ "id": "v", "url": "http://127.0.0.1:1" })).await,
            403,
            "{path}"
        );
    }
    let poll = |services: &[&str]| json!({ "worker_id": "w", "services": services });
    assert_eq!(tell(&worker, "/queue/poll", poll(&["tts"])).await, 204);
    assert_eq!(tell(&worker, "/queue/poll", poll(&["tts", "video"])).await, 403);
}

#[tokio::test]
async fn basic_credentials_count_on_compatible_surfaces_only() {
    let host = TestServer::new().await;
    let key = host.key(Role::Viewer).await;
    let basic = |pair: String| {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for part in pair.as_bytes().chunks(3) {
            let bits = part.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte))
                << (8 * (3 - part.len()));
            let digits = (0..4).map(|at| char::from(DIGITS[bits >> (18 - 6 * at) & 63]));
            text.extend(digits.take(part.len() + 1).chain("===".chars()).take(4));
        }
        Some(format!("Basic {text}"))
    };
    for credential in [basic(format!("{key}:")), basic(format!(":{key}")), basic(format!("windlass:{key}"))] {
        for (path, status) in [
            ("/workers", 200),
            ("/api/workers", 200),
            ("/tasks", 200),
            ("/api/v1/tasks", 200),
            ("/api/v1/queues", 200),
            ("/api/v1/flows", 401),
            ("/metrics", 401),
        ] {
            let (got, headers, _) = host.ask(&credential, "GET", path, "").await;
            assert_eq!(got, status, "{path} {credential:?}");
            assert!(headers.get("www-authenticate").is_none_or(|value| value == "Bearer"), "{path}");
        }
    }
}

#[tokio::test]
async fn the_identity_is_the_actor_and_decides_approvals() {
    let host = TestServer::new().await;
    host.publish("review", approval()).await;
    let run = host.start("review", json!({})).await;
    host.until(&run, |run| run["status"] == "waiting").await;
    let named = async |name: &str| {
        let rights = rights(Role::Operator);
        let new = NewApiKey { name: name.to_owned(), rights, expires_at: None, created_by: String::new() };
        host.runtime.access().create(new).await.unwrap().0.reveal().to_owned()
    };
    let (ann, eve) = (named("ann").await, named("eve").await);
    let admin = host.key(Role::Admin).await;
    let path = format!("/api/v1/runs/{run}/decide");
    let decision = json!({ "decision": "approved", "by": "ann" });
    host.as_key(&eve, "POST", &path, decision).await.refused(409, "not_assigned");
    host.as_key(&ann, "POST", &path, json!({ "decision": "approved", "by": "carl" })).await.ok();
    let lines = host.as_key(&admin, "GET", "/api/v1/audit?what=run.decide", json!({})).await.ok();
    let line = |at: usize| {
        ["who", "on_behalf_of", "result"].map(|name| lines["items"][at][name].as_str().unwrap_or(""))
    };
    assert_eq!((line(0), line(1)), (["ann", "carl", "done"], ["eve", "ann", "refused"]));
    assert!(lines["items"][0]["key"].is_string(), "{lines}");
    // Refusals for want of a permission are in the audit, those of strangers are not.
    let viewer = host.key(Role::Viewer).await;
    let cancel = format!("/api/v1/runs/{run}/cancel");
    host.as_key(&viewer, "POST", &cancel, json!({})).await.refused(403, "forbidden");
    host.post(&cancel, json!({})).await.refused(401, "unauthenticated");
    let lines = host.as_key(&admin, "GET", "/api/v1/audit?what=run.cancel", json!({})).await.ok();
    assert_eq!(lines["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&lines["items"][0]["who"], &lines["items"][0]["code"]),
        (&json!("the viewer"), &json!("forbidden"))
    );
}

#[tokio::test]
async fn scripts_need_a_right_of_their_own() {
    let settings = Settings { scripts: ScriptPolicy::All, ..Settings::default() };
    let host = TestServer::on(Arc::new(Memory::new()), settings, Options::default()).await;
    let author = host.key(Role::Author).await;
    let scripts = KeyRights { may_script: true, ..KeyRights::of(Role::Author) };
    let (trusted, _) = host.key_with(scripts, None).await;
    let script = json!({ "start": "a", "nodes": { "a": {
        "kind": "executor", "exec_type": "local_script", "script": { "cmd": "true" }
    } } });
    let nested = json!({ "start": "each", "nodes": { "each": { "kind": "foreach", "prep": { "input_key": "$params.all" },
        "exec_type": "local_script", "script": { "cmd": "true" } } } });
    for (name, definition) in [("one", script), ("inner", nested)] {
        let flow = json!({ "name": name, "definition": definition });
        let refused =
            host.as_key(&author, "POST", "/api/v1/flows", flow.clone()).await.refused(403, "forbidden");
        assert!(refused["detail"].as_str().unwrap().contains("scripts"), "{refused}");
        host.as_key(&trusted, "POST", "/api/v1/flows", flow).await.ok();
        let version = json!({ "definition": definition });
        let path = format!("/api/v1/flows/{name}/versions");
        host.as_key(&author, "POST", &path, version).await.refused(403, "forbidden");
    }
    host.as_key(&author, "POST", "/api/v1/flows", json!({ "name": "plain", "definition": waiting() }))
        .await
        .ok();
}

/// A server whose store counts reads of keys.
async fn counting() -> (TestServer, Arc<AtomicUsize>) {
    let n_reads = Arc::new(AtomicUsize::new(0));
    let counter = n_reads.clone();
    let store = FaultyStore {
        on_api_key: Box::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }),
        ..FaultyStore::default()
    };
    (TestServer::on(Arc::new(store), Settings::default(), Options::default()).await, n_reads)
}

#[tokio::test]
async fn a_flood_of_wrong_keys_costs_few_reads_and_slows_no_other_caller() {
    let (host, n_reads) = counting().await;
    let key = host.key(Role::Viewer).await;
    let read = async || host.as_key(&key, "GET", "/api/v1/prices", json!({})).await.status.as_u16();
    assert_eq!(read().await, 200);
    let before = n_reads.load(Ordering::SeqCst);
    let begun = Instant::now();
    for n in 0..10_000_u32 {
        // Every other one has a right checksum.
        let mut random = [0; RANDOM_BYTES];
        random[..4].copy_from_slice(&n.to_be_bytes());
        let mut wrong = ApiKey::new(Role::Viewer, &random).reveal().to_owned();
        if n % 2 == 0 {
            wrong.pop();
        }
        let (status, ..) = host.ask(&bearer(&wrong), "GET", "/api/v1/prices", "").await;
        assert!(status == 401 || (status == 429 && n % 2 == 1), "{status}");
    }
    let (took, n) = (begun.elapsed(), n_reads.load(Ordering::SeqCst) - before);
    let most = 200 + 20 * usize::try_from(took.as_secs() + 1).unwrap();
    assert!(n <= most, "{n} reads in {took:?}");
    assert_eq!(read().await, 200);
}

#[tokio::test]
async fn a_key_is_read_once_for_many_requests() {
    let (host, n_reads) = counting().await;
    let key = host.key(Role::Viewer).await;
    for _ in 0..100 {
        assert_eq!(host.as_key(&key, "GET", "/api/v1/prices", json!({})).await.status.as_u16(), 200);
    }
    assert!(n_reads.load(Ordering::SeqCst) <= 2, "{}", n_reads.load(Ordering::SeqCst));
}

/// Asks until the answer has this status, for at most a second and a half: one for the cache, the rest for the machine.
async fn soon(host: &TestServer, key: &str, status: u16) {
    let begun = Instant::now();
    loop {
        let got = host.as_key(key, "GET", "/api/v1/prices", json!({})).await.status.as_u16();
        if got == status {
            return;
        }
        assert!(begun.elapsed() < Duration::from_millis(1_500), "{got} after {:?}", begun.elapsed());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_revoked_key_stops_on_every_server_within_a_second() {
    let postgres = PostgresServer::start(false);
    let database = postgres.create();
    let mut hosts = Vec::new();
    for _ in 0..2 {
        let store = Postgres::open(&postgres.address(&database), Durability::Fast).await.unwrap();
        hosts.push(TestServer::on(Arc::new(store), Settings::default(), Options::default()).await);
    }
    let (one, other) = (&hosts[0], &hosts[1]);
    other.get("/api/v1/prices").await.ok();
    let (key, id) = one.key_with(rights(Role::Viewer), None).await;
    // The other server notices that there are keys, and takes this one.
    let begun = Instant::now();
    while !other.runtime.access().is_closed() {
        assert!(begun.elapsed() < Duration::from_secs(5), "the other server stays open");
        tokio::task::yield_now().await;
    }
    soon(other, &key, 200).await;
    assert!(one.runtime.access().revoke(id.parse().unwrap()).await.unwrap());
    soon(one, &key, 401).await;
    soon(other, &key, 401).await;
}
