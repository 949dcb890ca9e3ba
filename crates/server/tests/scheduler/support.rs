//! A server without a socket, and clients of both eras.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Json, Path};
use axum::http::Request;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::ServiceExt;
use uuid::Uuid;
use windlass_conformance::backend::fresh;
use windlass_engine::id::RunId;
use windlass_runtime::{Runtime, Settings};
use windlass_server::Options;
use windlass_store::run::{RunRef, RunStatus};

pub const PATIENCE: Duration = Duration::from_secs(60);

/// A client of one era.
pub struct Client {
    pub runtime: Runtime,
    router: Router,
    pub prefix: &'static str,
}

/// A response.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    /// The `Warning` headers.
    pub warnings: Vec<String>,
    pub body: Value,
}

/// A client of each era, each with a server of its own.
pub async fn clients() -> [Client; 2] {
    [Client::new("/api").await, Client::new("").await]
}

impl Client {
    pub async fn new(prefix: &'static str) -> Self {
        let settings = Settings::default();
        let runtime = Runtime::start_up(fresh().await, settings).await.unwrap();
        let router = windlass_server::router(runtime.clone(), Options::default());
        Client { runtime, router, prefix }
    }

    pub async fn send(&self, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        let uri = format!("{}{path}", self.prefix);
        let request =
            Request::builder().method(method).uri(uri).header("host", "localhost").body(body.into()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
        Answer { status, warnings, body }
    }

    /// Gets from the surface beside, whose paths have a prefix of their own.
    pub async fn native(&self, path: &str) -> Value {
        let bare = Client { runtime: self.runtime.clone(), router: self.router.clone(), prefix: "" };
        bare.got(path).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, Body::empty()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, body.to_string()).await
    }

    /// Posts and expects success.
    #[track_caller]
    pub fn posted(&self, path: &str, body: Value) -> impl Future<Output = Value> {
        let answer = self.post(path, body);
        async move {
            let answer = answer.await;
            assert_eq!(answer.status, 200, "{answer:?}");
            answer.body
        }
    }

    /// Gets and expects success.
    pub async fn got(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.body
    }

    /// The items of a list: the first era has bare arrays.
    pub async fn listed(&self, path: &str) -> Vec<Value> {
        let body = self.got(path).await;
        let items = if self.is_first() { &body } else { &body["data"] };
        items.as_array().unwrap().clone()
    }

    pub fn is_first(&self) -> bool {
        self.prefix.is_empty()
    }

    /// A field by its name in snake_case, as this era spells it.
    pub fn field<'v>(&self, object: &'v Value, name: &str) -> &'v Value {
        let plain = |text: &str| text.replace('_', "").to_lowercase();
        let fields = object.as_object().unwrap_or_else(|| panic!("no object: {object}"));
        let found = fields.iter().find(|(key, _)| plain(key) == plain(name));
        found.unwrap_or_else(|| panic!("no field {name} in {object}")).1
    }

    /// A field that holds JSON as text.
    pub fn json(&self, object: &Value, name: &str) -> Value {
        serde_json::from_str(self.field(object, name).as_str().unwrap()).unwrap()
    }

    /// Makes a flow with this definition, and answers with the flow's id.
    pub async fn publish(&self, definition: Value) -> String {
        let flow = self.posted("/flows", json!({"Name": "flow", "Description": "for a test"})).await;
        let flow = flow["id"].as_str().unwrap().to_owned();
        let body = json!({"FlowID": flow, "DefinitionJSON": definition.to_string(), "Status": "published"});
        self.posted("/flows/version", body).await;
        flow
    }

    /// Starts a task of a new flow.
    pub async fn start(&self, definition: Value, params: Value) -> String {
        let flow = self.publish(definition).await;
        let body = json!({"FlowID": flow, "ParamsJSON": params.to_string()});
        self.posted("/tasks", body).await["id"].as_str().unwrap().to_owned()
    }

    pub async fn task(&self, id: &str) -> Value {
        self.got(&format!("/tasks/get?id={id}")).await
    }

    pub async fn status(&self, id: &str) -> String {
        let task = self.task(id).await;
        self.field(&task, "status").as_str().unwrap().to_owned()
    }

    /// The task after its end.
    pub async fn ended(&self, id: &str) -> Value {
        let status = self.runtime.runs().wait_ended(run_of(id), PATIENCE).await.unwrap();
        assert!(status.is_some_and(|status| !status.is_open()), "{id} is {status:?}");
        self.task(id).await
    }

    /// Waits until the run of a task has come to this status.
    pub async fn until(&self, id: &str, status: RunStatus) {
        let (run, mut changes) = (run_of(id), self.runtime.runs().changes());
        let arrived = async {
            while self
                .runtime
                .store()
                .run(self.runtime.project(), RunRef::Id(run))
                .await
                .unwrap()
                .unwrap()
                .projection
                .status
                != status
            {
                changes.recv().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, arrived).await.expect("the run comes to the status");
    }

    pub async fn node_runs(&self, id: &str) -> Vec<Value> {
        self.got(&format!("/tasks/runs?task_id={id}")).await.as_array().unwrap().clone()
    }

    /// These fields of every attempt.
    pub async fn told(&self, id: &str, fields: &[&str]) -> Vec<Vec<String>> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let rows = self.node_runs(id).await;
        rows.iter().map(|row| fields.iter().map(|name| text(self.field(row, name))).collect()).collect()
    }
}

pub fn run_of(task: &str) -> RunId {
    RunId::new(Uuid::try_parse(task.strip_prefix("task-").unwrap()).unwrap())
}

/// A push worker that answers with the result of `perform`; returns its address.
pub async fn push_worker(perform: fn(&str, &Value) -> Result<Value, String>) -> String {
    let exec = async move |Path(service): Path<String>, Json(body): Json<Value>| {
        Json(match perform(&service, &body["input"]) {
            Ok(result) => json!({"result": result, "error": ""}),
            Err(error) => json!({"result": null, "error": error}),
        })
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/exec/{service}", post(exec));
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}
