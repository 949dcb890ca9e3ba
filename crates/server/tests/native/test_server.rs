//! A server in this process, asked without a connection.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::HOST;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;
use windlass_conformance::backend::fresh;
use windlass_runtime::{Runtime, Settings};
use windlass_server::Options;
use windlass_store::Store;

/// Bytes of one response in a test.
const ANSWER_BYTES: usize = 64 << 20;

pub(crate) struct TestServer {
    pub(crate) router: Router,
    pub(crate) runtime: Runtime,
    /// The header of requests that say nothing else about their caller.
    pub(crate) authorization: Option<HeaderValue>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl TestResponse {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON ({}): {}", self.status, String::from_utf8_lossy(&self.body)))
    }

    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// Checks that it is a problem of this code, in its form.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        let body = self.json();
        assert_eq!((self.status.as_u16(), body["code"].as_str()), (status, Some(code)), "{body}");
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(body["type"], format!("/docs/errors#{code}"));
        assert_eq!(body["status"], status);
        body
    }
}

impl TestServer {
    pub(crate) async fn new() -> TestServer {
        TestServer::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> TestServer {
        TestServer::on(fresh().await, Settings::default(), options).await
    }

    /// A server on this store.
    pub(crate) async fn on(store: Arc<dyn Store>, settings: Settings, options: Options) -> TestServer {
        let runtime = Runtime::start_up(store, settings).await.unwrap();
        TestServer { router: windlass_server::router(runtime.clone(), options), runtime, authorization: None }
    }

    /// Sends a request, to `localhost` unless it names a host.
    pub(crate) async fn send(&self, mut request: Request<Body>) -> TestResponse {
        request.headers_mut().entry(HOST).or_insert(HeaderValue::from_static("localhost"));
        self.send_as_is(request).await
    }

    pub(crate) async fn send_as_is(&self, request: Request<Body>) -> TestResponse {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, ANSWER_BYTES).await.unwrap().to_vec();
        TestResponse { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn raw(&self, method: &str, path: &str, body: impl Into<Body>) -> TestResponse {
        let mut request =
            Request::builder().method(method).uri(path).header("content-type", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.raw("GET", path, Body::empty()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.raw("POST", path, body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> TestResponse {
        self.raw("PUT", path, body.to_string()).await
    }

    /// Publishes a flow.
    pub(crate) async fn publish(&self, name: &str, definition: Value) -> Value {
        self.post("/api/v1/flows", json!({ "name": name, "definition": definition })).await.ok()
    }

    /// Starts a run and answers with its id.
    pub(crate) async fn start(&self, flow: &str, body: Value) -> String {
        let started = self.post(&format!("/api/v1/flows/{flow}/runs"), body).await.ok();
        started["id"].as_str().unwrap().to_owned()
    }

    /// Waits until the run has ended, and answers with it.
    pub(crate) async fn ended(&self, run: &str) -> Value {
        let id = run.parse().unwrap();
        let status = self.runtime.runs().wait_ended(id, Duration::from_secs(60)).await.unwrap().unwrap();
        assert!(!status.is_open(), "{run} did not end: {status:?}");
        self.get(&format!("/api/v1/runs/{run}")).await.ok()
    }

    /// Watches until a run satisfies this: there is no event for everything that a node does.
    pub(crate) async fn until(&self, run: &str, seen: impl Fn(&Value) -> bool) -> Value {
        let mut changes = self.runtime.runs().changes();
        let watch = async {
            loop {
                let shown = self.get(&format!("/api/v1/runs/{run}")).await.ok();
                if seen(&shown) {
                    return shown;
                }
                drop(changes.recv().await);
            }
        };
        tokio::time::timeout(Duration::from_secs(60), watch).await.expect("the run never got there")
    }
}

/// A function of the server, then the end.
pub(crate) fn upper() -> Value {
    json!({ "start": "shout", "nodes": { "shout": {
        "kind": "local", "func": "upper", "prep": { "input_key": "$params.text" }, "post": { "output_key": "loud" }
    } } })
}

/// Waits for a signal.
pub(crate) fn waiting() -> Value {
    json!({ "start": "paid", "nodes": {
        "paid": { "kind": "wait_event", "params": { "signal_key": "payment" } },
        "ship": { "kind": "local", "func": "echo", "prep": { "input_key": "$shared.payment" }, "post": { "output_key": "shipped" } }
    }, "edges": [{ "from": "paid", "to": "ship" }] })
}

/// Waits for ann or bob.
pub(crate) fn approval() -> Value {
    json!({ "start": "review", "nodes": {
        "review": { "kind": "approval", "params": { "assignees": ["ann", "bob"] } },
        "send": { "kind": "local", "func": "echo", "prep": { "input_map": { "sent": true } }, "post": { "output_key": "outcome" } }
    }, "edges": [{ "from": "review", "action": "approved", "to": "send" }] })
}

/// A call through a queue.
pub(crate) fn queued() -> Value {
    json!({ "start": "work", "nodes": { "work": {
        "service": "press", "exec_type": "queue", "prep": { "input_key": "$params.text" }, "post": { "output_key": "pressed" }
    } } })
}
