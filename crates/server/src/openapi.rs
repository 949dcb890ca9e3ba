//! The OpenAPI document of every surface.
//!
//! The native surface is in it by construction: a route cannot be added without its description. The scheduler
//! surface is described by a table, which a test holds to its routes.

use std::collections::BTreeSet;

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::VARY;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Map, Value, json};
use utoipa::PartialSchema;
use utoipa::openapi::OpenApi;
use windlass_sdk::contract::{FieldError, PlatformProblem, ProblemDetails};

use crate::access::AccessTable;
use crate::{audit, console, guard, scheduler};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Properties of bodies, by schema, of which a request has at least one.
const CHOICES: &[(&str, &[&str])] = &[
    ("Definition", &["definition", "yaml"]),
    ("FlowRequest", &["definition", "yaml"]),
    ("VersionRequest", &["definition", "yaml"]),
    ("ClaimRequest", &["queues", "services"]),
    ("QueueChange", &["paused", "limits"]),
    ("DiscardDeadLetters", &["ids", "fingerprint", "count"]),
    ("NewSchedule", &["task", "task_template_id", "flow"]),
];

/// The document, and the links to it.
pub(crate) fn routes(document: Value) -> Router {
    Router::new().route("/", get(root)).route("/openapi.json", get(async move || Json(document.clone())))
}

/// The front page: the console for a browser, links for other clients.
async fn root(request: Request) -> Response {
    if console::wants_page(request.headers()) {
        return console::shell(request).await;
    }
    let links = json!({ "name": "windlass", "version": VERSION, "console": "/ui/", "docs": "/docs",
        "errors": "/docs/errors", "openapi": "/openapi.json", "api": "/api/v1" });
    let mut response = Json(links).into_response();
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// The document of every surface.
pub(crate) fn document(native: OpenApi) -> Value {
    let mut document = serde_json::to_value(native).unwrap_or_else(|_| json!({}));
    document["info"] = json!({
        "title": "Windlass",
        "version": VERSION,
        "description": "Durable workflows and job queues in one server. The native surface and the queue \
            platform surface (tasks, queues, schedules, workers) are under /api/v1; the scheduler surface is under /api, and without a prefix in the spelling of its first era.",
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    });
    document["tags"] = json!([
        { "name": "flows", "description": "Flows, their versions, and the validation of definitions" },
        { "name": "services", "description": "Services of workers, and their settings" },
        { "name": "runs", "description": "Starting runs, acting on them, reading them" },
        { "name": "money", "description": "Accounts, deposits, ledgers, and prices of services" },
        { "name": "events", "description": "Event streams" },
        { "name": "jobs", "description": "Jobs of queues, and the pull protocol of workers" },
        { "name": "tasks", "description": "Jobs, one by one or in batches: a task of the queue platform surface is a job" },
        { "name": "queues", "description": "Depth, throughput and limits of queues" },
        { "name": "dead letters", "description": "Tasks that failed for good: looking at them, replaying, discarding" },
        { "name": "schedules", "description": "Tasks and runs that start by the clock" },
        { "name": "workers", "description": "Workers" },
        { "name": "keys", "description": "API keys: making, listing, ending and rotating them" },
        { "name": "server", "description": "Health, metrics and documents of the server" },
        { "name": "scheduler", "description": "The scheduler surface: a task here is a run" },
    ]);
    let problem = serde_json::to_value(ProblemDetails::schema()).unwrap_or(Value::Null);
    let platform = serde_json::to_value(PlatformProblem::schema()).unwrap_or(Value::Null);
    let field = serde_json::to_value(FieldError::schema()).unwrap_or(Value::Null);
    let schemas = object(&mut document["components"]["schemas"]);
    schemas.insert("ProblemDetails".to_owned(), problem);
    schemas.insert("PlatformProblem".to_owned(), platform);
    schemas.insert("FieldError".to_owned(), field);
    schemas.extend(scheduler::openapi::schemas());
    require(schemas);
    let paths = object(&mut document["paths"]);
    for (path, item) in paths.iter_mut() {
        let (kind, problem) = if guard::is_platform(path) {
            ("application/json", "#/components/schemas/PlatformProblem")
        } else {
            ("application/problem+json", "#/components/schemas/ProblemDetails")
        };
        for operation in item.as_object_mut().into_iter().flat_map(|item| item.values_mut()) {
            let refused = json!({
                "description": "A problem; its code is explained at /docs/errors",
                "content": { kind: { "schema": { "$ref": problem } } },
            });
            object(&mut operation["responses"]).entry("default").or_insert(refused);
        }
    }
    paths.extend(own_paths());
    paths.extend(scheduler::openapi::paths());
    name_actors(paths);
    name_permissions(paths);
    document["components"]["securitySchemes"]["key"] = json!({
        "type": "http",
        "scheme": "bearer",
        "description": "An API key: `windlass key create`. A server without keys asks for none.",
    });
    document
}

/// Adds requirements to schemas that their types cannot state.
fn require(schemas: &mut Map<String, Value>) {
    // The task of a schedule has no type and no time: the schedule says when it runs.
    let mut task = schemas.get("NewTask").cloned().unwrap_or_default();
    if let Some(required) = task["required"].as_array_mut() {
        required.retain(|name| name != "type");
    }
    object(&mut task["properties"]).remove("run_at");
    schemas.insert("ScheduledTask".to_owned(), task);
    for name in ["NewSchedule", "SchedulePatch"] {
        let schedule = schemas.entry(name).or_insert_with(|| json!({}));
        schedule["properties"]["task"] =
            json!({ "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/ScheduledTask" }] });
    }
    for (name, properties) in CHOICES {
        let choices: Vec<Value> = properties.iter().map(|one| json!({ "required": [one] })).collect();
        object(schemas.entry(*name).or_insert(Value::Null)).insert("anyOf".to_owned(), choices.into());
    }
}

/// Adds the actor header to every operation that the audit log records.
fn name_actors(paths: &mut Map<String, Value>) {
    let changes = audit::AuditTable::new();
    for (path, item) in paths.iter_mut() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            if !changes.has(&method.to_uppercase(), path) {
                continue;
            }
            let actor = json!({
                "name": "X-Windlass-Actor",
                "in": "header",
                "required": false,
                "description": "The name of the caller, for the audit; at most 200 visible characters",
                "schema": { "type": "string" },
            });
            match operation["parameters"].as_array_mut() {
                Some(parameters) => parameters.push(actor),
                None => operation["parameters"] = json!([actor]),
            }
        }
    }
}

/// Names the permission that each operation requires.
fn name_permissions(paths: &mut Map<String, Value>) {
    for (path, rule) in AccessTable::new().rules() {
        let path = if path == "/docs/{*path}" { "/docs/" } else { path };
        let is_named = |named: &str| named == path || (path == "/docs/" && named.starts_with(path));
        let (permission, security) = match rule.permission {
            Some(permission) => (permission.word(), json!([{ "key": [] }])),
            None => ("public", json!([])),
        };
        for (_, item) in paths.iter_mut().filter(|(named, _)| is_named(named)) {
            if let Some(operation) = item.get_mut(rule.method.to_lowercase()) {
                operation["x-permission"] = json!(permission);
                operation["security"] = security.clone();
            }
        }
    }
}

/// The operations that take something behind the question mark: `GET /api/v1/runs`.
pub(crate) fn asking(document: &Value) -> BTreeSet<String> {
    let mut asking = BTreeSet::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let mut parameters = operation["parameters"].as_array().into_iter().flatten();
            if parameters.any(|parameter| parameter["in"] == "query") {
                asking.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    asking
}

/// The document itself and the pages.
fn own_paths() -> Map<String, Value> {
    let page = |summary: &str, kind: &str, schema: Value| {
        json!({ "get": {
            "tags": ["server"],
            "summary": summary,
            "operationId": summary.to_lowercase().replace(' ', "_"),
            "responses": { "200": { "description": summary, "content": { kind: { "schema": schema } } } },
        } })
    };
    let text = || json!({ "type": "string" });
    [
        ("/", page("Front page", "text/html", text())),
        ("/openapi.json", page("This document", "application/json", json!({ "type": "object" }))),
        ("/ui/", page("The console", "text/html", text())),
        ("/docs", page("Documents for people", "text/html", text())),
        ("/docs/api", page("This document for people", "text/html", text())),
        ("/docs/errors", page("Every error code", "text/html", text())),
    ]
    .into_iter()
    .map(|(path, item)| (path.to_owned(), item))
    .collect()
}

/// The object at this place; one is made where there is none.
fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it is an object: it was made one where it was not")
}
