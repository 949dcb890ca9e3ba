//! The same for the query of every route, with a body or without one, and for bodies of routes that read none.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::header::{CONTENT_TYPE, HOST};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{BodyAnswer, Contract, UNKNOWN, names, real_path};
use crate::test_server::TestServer;

/// A parameter that no route has.
const STRANGE: &str = "no_such_parameter";

/// Bytes of one response.
const ANSWER_BYTES: usize = 4 << 20;

/// A parameter of a query.
struct QueryParameter<'d> {
    name: &'d str,
    schema: &'d Value,
    is_required: bool,
}

/// A route with the parameters of its query.
struct QueryRoute<'d> {
    method: String,
    path: &'d str,
    /// The path with the ids of rows that exist.
    real: String,
    parameters: Vec<QueryParameter<'d>>,
    /// A body with all that it needs; `None` = the route reads none.
    body: Option<Value>,
    is_scheduler: bool,
}

/// All routes of the document.
fn routes<'d>(contract: &Contract<'d>, ids: &[(&str, &str, String)]) -> Vec<QueryRoute<'d>> {
    let mut routes = Vec::new();
    for (path, item) in contract.document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let parameters = parameters.filter(|one| one["in"] == "query").map(|one| QueryParameter {
                name: one["name"].as_str().unwrap(),
                schema: &one["schema"],
                is_required: one["required"] == true,
            });
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            routes.push(QueryRoute {
                method: method.to_uppercase(),
                path,
                real: real_path(path, ids),
                parameters: parameters.collect(),
                body: (!schema.is_null()).then(|| contract.value("", schema, 0)),
                is_scheduler: operation["tags"][0] == "scheduler",
            });
        }
    }
    routes
}

impl QueryRoute<'_> {
    /// The values of all parameters that are required, without this one.
    fn required(&self, without: &str) -> Vec<(&str, String)> {
        let required = self.parameters.iter().filter(|one| one.is_required && one.name != without);
        required.map(|one| (one.name, UNKNOWN.to_owned())).collect()
    }
}

/// The answer to a query. The events of a stream are not read.
async fn ask(host: &TestServer, route: &QueryRoute<'_>, query: &[(&str, String)]) -> BodyAnswer {
    let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let uri = format!("{}?{}", route.real, query.join("&"));
    let body = route.body.as_ref().map_or_else(String::new, Value::to_string);
    send(host, &route.method, &uri, body).await
}

async fn send(host: &TestServer, method: &str, uri: &str, body: String) -> BodyAnswer {
    let request = Request::builder().method(method).uri(uri);
    let mut request = request.header(HOST, "localhost").header(CONTENT_TYPE, "application/json");
    if let Some(authorization) = &host.authorization {
        request = request.header("authorization", authorization);
    }
    let response = host.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let is_stream =
        parts.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let bytes = if is_stream { Vec::new() } else { to_bytes(body, ANSWER_BYTES).await.unwrap().to_vec() };
    let (status, text) = (parts.status.as_u16(), String::from_utf8_lossy(&bytes).into_owned());
    let warning = parts.headers.get("warning").and_then(|value| value.to_str().ok()).unwrap_or_default();
    BodyAnswer { status, text, is_of_shape: matches!(status, 400 | 422), warning: warning.to_owned() }
}

/// A text that is no value of the parameter; `None` if every text is one.
fn mistyped(contract: &Contract<'_>, parameter: &QueryParameter<'_>) -> Option<&'static str> {
    let is_text = |one: &Value| one["type"] == "string" && one["enum"].is_null();
    let alternatives = contract.alternatives(parameter.schema);
    let takes_text =
        alternatives.iter().any(|one| is_text(one)) || contract.types(parameter.schema).is_empty();
    (!takes_text).then_some("no-such-word")
}

/// Everything in which the document and the server disagree about one query.
async fn disagreements(host: &TestServer, contract: &Contract<'_>, route: &QueryRoute<'_>) -> Vec<String> {
    let at = format!("{} {}", route.method, route.path);
    let mut found = Vec::new();
    for parameter in &route.parameters {
        let name = parameter.name;
        if parameter.is_required {
            let answer = ask(host, route, &route.required(name)).await;
            if !answer.is_of_shape || !names(&answer.text, name) {
                found.push(format!("{at}: ?{name} is required: {} {}", answer.status, answer.text));
            }
        }
        if let Some(wrong) = mistyped(contract, parameter) {
            let mut query = route.required(name);
            query.push((name, wrong.to_owned()));
            let answer = ask(host, route, &query).await;
            if !answer.is_of_shape || !names(&answer.text, name) {
                found.push(format!("{at}: ?{name} takes {wrong}: {} {}", answer.status, answer.text));
            }
        }
    }
    // The scheduler surface ignores fields that it does not know, and so do the pages of the server and its probes.
    if route.path.starts_with("/api/v1/") {
        let mut query = route.required("");
        query.push((STRANGE, "1".to_owned()));
        let answer = ask(host, route, &query).await;
        if !answer.is_of_shape || !names(&answer.text, STRANGE) {
            found.push(format!("{at} takes an unknown parameter: {} {}", answer.status, answer.text));
        }
    }
    // The queue platform ignores a body, too, and would delete the schedule that other routes ask about.
    let is_lenient = route.is_scheduler || route.path.starts_with("/api/v1/schedules/");
    if route.body.is_none() && route.method != "GET" && !is_lenient {
        let answer = send(host, &route.method, &route.real, json!({ STRANGE: 1 }).to_string()).await;
        if !answer.is_of_shape || !names(&answer.text, STRANGE) {
            found.push(format!("{at} takes a body: {} {}", answer.status, answer.text));
        }
    }
    found
}

/// Whether the server takes every parameter that the document has, with a value of its type.
async fn refused_ones(host: &TestServer, contract: &Contract<'_>, route: &QueryRoute<'_>) -> Vec<String> {
    let mut found = Vec::new();
    // Anything else would change rows that other routes need.
    for parameter in route.parameters.iter().filter(|_| route.method == "GET") {
        let value = match contract.value(parameter.name, parameter.schema, 0) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let mut query = route.required(parameter.name);
        query.push((parameter.name, value.clone()));
        let answer = ask(host, route, &query).await;
        if answer.status >= 500 || answer.text.contains("unknown field") {
            let (at, name) = (route.path, parameter.name);
            found.push(format!("{at}: ?{name}={value} is refused: {} {}", answer.status, answer.text));
        }
    }
    found
}

/// Everything in which the document and the server disagree about queries, and the number of parameters.
pub(super) async fn all_disagreements(
    host: &TestServer,
    contract: &Contract<'_>,
    ids: &[(&str, &str, String)],
) -> (Vec<String>, usize) {
    let routes = routes(contract, ids);
    let mut found = Vec::new();
    for route in &routes {
        found.extend(disagreements(host, contract, route).await);
        found.extend(refused_ones(host, contract, route).await);
    }
    (found, routes.iter().map(|route| route.parameters.len()).sum())
}
