//! The OpenAPI description of the scheduler surface. A test holds these tables to the routes.

use serde_json::{Map, Value, json};

use super::ROUTES;

/// The parameters and the response of one route.
struct OperationShape {
    method: &'static str,
    path: &'static str,
    /// Parameters of the query; a `*` after the name: it must be there.
    query: &'static [&'static str],
    /// Fields of the body; a `*` after the name: it must be there.
    body: &'static [&'static str],
    answer: ResponseShape,
}

/// The body of a response.
enum ResponseShape {
    /// `{"ok": "1"}`.
    Ok,
    /// `{"id": …}`.
    Id,
    One(&'static str),
    Many(&'static str),
    /// `{data, total, page, size}`; a bare array in the first era.
    Page(&'static str),
    /// One, or 204 when there is none.
    Maybe(&'static str),
    /// `{"content": …}`.
    Content,
}

const REGISTER: &[&str] = &["id*", "name", "url", "services", "type"];
const BEAT: &[&str] = &["id*", "url", "load"];
const LIST: &[&str] = &["service", "ttl"];

macro_rules! shapes {
    ($($method:literal $path:literal $query:expr, $body:expr, $answer:expr;)*) => {
        &[$(OperationShape { method: $method, path: $path, query: $query, body: $body, answer: $answer }),*]
    };
}

const SHAPES: &[OperationShape] = shapes! {
    "POST" "/workers/register" &[], REGISTER, ResponseShape::Ok;
    "POST" "/register" &[], REGISTER, ResponseShape::Ok;
    "POST" "/workers/heartbeat" &[], BEAT, ResponseShape::Ok;
    "POST" "/heartbeat" &[], BEAT, ResponseShape::Ok;
    "GET" "/workers" LIST, &[], ResponseShape::Many("Worker");
    "GET" "/workers/list" LIST, &[], ResponseShape::Many("Worker");
    "GET" "/list" LIST, &[], ResponseShape::Many("Worker");
    "GET" "/workers/allocate" &["service*"], &[], ResponseShape::One("Worker");
    "GET" "/allocate" &["service*"], &[], ResponseShape::One("Worker");
    "GET" "/flows" &["page", "page_size"], &[], ResponseShape::Page("Flow");
    "POST" "/flows" &[], &["Name*", "Description"], ResponseShape::Id;
    "GET" "/flows/version" &["flow_id*"], &[], ResponseShape::Many("FlowVersion");
    "POST" "/flows/version" &[], &["FlowID*", "Version", "DefinitionJSON", "DefinitionYAML", "Status"], ResponseShape::Id;
    "GET" "/flows/version/get" &["id*"], &[], ResponseShape::One("FlowVersion");
    "GET" "/tasks" &["status", "flow_version_id", "page", "page_size"], &[], ResponseShape::Page("Task");
    "POST" "/tasks" &[], &["FlowID*", "Version", "ParamsJSON", "RequestID", "Manual"], ResponseShape::Id;
    "GET" "/tasks/get" &["id*"], &[], ResponseShape::One("Task");
    "POST" "/tasks/run_once" &["id*", "owner"], &[], ResponseShape::Ok;
    "POST" "/tasks/cancel" &["id*"], &[], ResponseShape::Ok;
    "GET" "/tasks/runs" &["task_id*"], &[], ResponseShape::Many("NodeRun");
    "GET" "/tasks/logs" &["run_id*"], &[], ResponseShape::Content;
    "POST" "/tasks/signal" &[], &["task_id*", "key*", "value"], ResponseShape::Ok;
    "POST" "/queue/poll" &[], &["worker_id*", "services*"], ResponseShape::Maybe("QueueTask");
    "POST" "/queue/complete" &[], &["queue_id*", "result", "error", "log", "log_path", "run_id", "worker_id"], ResponseShape::Ok;
    "POST" "/queue/update_run" &[], &["run_id*", "status"], ResponseShape::Ok;
};

/// The objects of the surface, by the names of their fields.
const OBJECTS: [(&str, &[&str]); 5] = [
    ("Worker", &["id", "url", "services", "load", "last_heartbeat", "status", "type"]),
    ("Flow", &["id", "name", "description", "created_at"]),
    ("FlowVersion", &["id", "flow_id", "version", "definition_json", "status"]),
    (
        "Task",
        &[
            "id",
            "flow_version_id",
            "flow_id",
            "flow_name",
            "flow_version",
            "status",
            "params_json",
            "shared_json",
            "current_node_key",
            "last_action",
            "step_count",
            "retry_state_json",
            "lease_owner",
            "lease_expiry",
            "request_id",
            "created_at",
            "updated_at",
        ],
    ),
    (
        "NodeRun",
        &[
            "id",
            "task_id",
            "node_key",
            "attempt_no",
            "status",
            "sub_status",
            "branch_id",
            "prep_json",
            "exec_input_json",
            "exec_output_json",
            "error_text",
            "action",
            "started_at",
            "finished_at",
            "worker_id",
            "worker_url",
            "log_path",
        ],
    ),
];

const QUEUE_TASK: &[&str] = &[
    "id",
    "task_id",
    "node_key",
    "service",
    "input_json",
    "status",
    "worker_id",
    "created_at",
    "started_at",
    "timeout_at",
];

/// Schemas of the objects, under names of their own: the native surface has other flows and workers.
pub(crate) fn schemas() -> Map<String, Value> {
    let objects = OBJECTS.into_iter().chain([("QueueTask", QUEUE_TASK)]);
    let mut schemas: Map<String, Value> = objects
        .map(|(name, fields)| {
            let fields: Map<String, Value> =
                fields.iter().map(|field| ((*field).to_owned(), kind(field))).collect();
            (format!("Scheduler{name}"), json!({ "type": "object", "properties": fields }))
        })
        .collect();
    let error =
        json!({ "type": "object", "required": ["error"], "properties": { "error": { "type": "string" } } });
    schemas.insert("SchedulerError".to_owned(), error);
    schemas
}

/// The schema of a field, by its name.
fn kind(field: &str) -> Value {
    match field {
        "services" => json!({ "type": "array", "items": { "type": "string" } }),
        "Manual" => json!({ "type": "boolean" }),
        "result" | "value" => json!({}),
        "load" | "version" | "Version" | "flow_version" | "step_count" | "attempt_no" | "page"
        | "page_size" | "ttl" => {
            json!({ "type": "integer" })
        }
        "last_heartbeat" | "lease_expiry" => json!({ "type": "integer", "description": "Unix seconds" }),
        field if field.ends_with("_at") => json!({ "type": "integer", "description": "Unix seconds" }),
        field if field.ends_with("_json") || field.ends_with("JSON") => {
            json!({ "type": "string", "description": "JSON, encoded as a string" })
        }
        _ => json!({ "type": "string" }),
    }
}

/// Every path of both eras.
pub(crate) fn paths() -> Map<String, Value> {
    let mut paths = Map::new();
    for (prefix, era) in [("/api", "prefixed"), ("", "first")] {
        for (method, path, summary) in ROUTES {
            let shape = SHAPES.iter().find(|shape| shape.method == method && shape.path == path);
            let Some(shape) = shape else { continue };
            let item = paths.entry(format!("{prefix}{path}")).or_insert_with(|| json!({}));
            item[method.to_lowercase()] = operation(shape, summary, era);
        }
    }
    paths
}

fn operation(shape: &OperationShape, summary: &str, era: &str) -> Value {
    let id = format!("scheduler_{era}_{}{}", shape.method.to_lowercase(), shape.path.replace('/', "_"));
    let named = |field: &'static str| (field.trim_end_matches('*'), field.ends_with('*'));
    let parameters: Vec<Value> = shape
        .query
        .iter()
        .map(|field| {
            let (name, required) = named(field);
            json!({ "name": name, "in": "query", "required": required, "schema": kind(name) })
        })
        .collect();
    let mut operation = json!({
        "tags": ["scheduler"],
        "summary": summary,
        "operationId": id,
        "parameters": parameters,
        "responses": responses(&shape.answer, era == "first"),
    });
    if shape.method == "POST" {
        let fields: Map<String, Value> =
            shape.body.iter().map(|field| (named(field).0.to_owned(), kind(named(field).0))).collect();
        let schema = json!({
            "type": "object",
            "description": "Keys are matched without regard to case and underscores",
            "required": shape.body.iter().map(|field| named(field)).filter(|(_, must)| *must).map(|(name, _)| name).collect::<Vec<_>>(),
            "properties": fields,
        });
        let mut schema = schema;
        if shape.path == "/flows/version" {
            schema["anyOf"] = json!([{ "required": ["DefinitionJSON"] }, { "required": ["DefinitionYAML"] }]);
        }
        let required = !shape.body.is_empty();
        operation["requestBody"] =
            json!({ "required": required, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn responses(answer: &ResponseShape, is_first: bool) -> Value {
    let one = |name: &str| json!({ "$ref": format!("#/components/schemas/Scheduler{name}") });
    let many = |name: &str| json!({ "type": "array", "items": one(name) });
    let with = |field: &str| json!({ "type": "object", "required": [field], "properties": { field: { "type": "string" } } });
    let schema = match answer {
        ResponseShape::Ok => with("ok"),
        ResponseShape::Id => with("id"),
        ResponseShape::Content => with("content"),
        ResponseShape::One(name) | ResponseShape::Maybe(name) => one(name),
        ResponseShape::Many(name) => many(name),
        ResponseShape::Page(name) if is_first => many(name),
        ResponseShape::Page(name) => json!({
            "type": "object",
            "required": ["data", "total", "page", "size"],
            "properties": {
                "data": many(name),
                "total": { "type": "integer" }, "page": { "type": "integer" }, "size": { "type": "integer" },
            },
        }),
    };
    let about = if is_first { "Done; objects are spelled as in the first era" } else { "Done" };
    let error = json!({ "schema": one("Error") });
    let mut responses = json!({
        "200": { "description": about, "content": { "application/json": { "schema": schema } } },
        "default": { "description": "The error, in a sentence", "content": { "application/json": error } },
    });
    match answer {
        ResponseShape::Maybe(_) => responses["204"] = json!({ "description": "There is nothing to do" }),
        ResponseShape::Ok
        | ResponseShape::Id
        | ResponseShape::Content
        | ResponseShape::One(_)
        | ResponseShape::Many(_)
        | ResponseShape::Page(_) => {}
    }
    responses
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_of_the_surface_is_described_and_nothing_else() {
        let routes: BTreeSet<_> = ROUTES.iter().map(|(method, path, _)| (*method, *path)).collect();
        let described: BTreeSet<_> = SHAPES.iter().map(|shape| (shape.method, shape.path)).collect();
        assert_eq!(described, routes);
        assert_eq!(described.len(), SHAPES.len(), "a route is described twice");
    }
}
