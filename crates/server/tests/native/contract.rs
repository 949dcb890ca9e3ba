//! The OpenAPI document says what the server requires, for every route and every property of its body: one that is
//! required is missed, one that is optional is not, and one of a wrong type is refused by name.

#[path = "contract/query.rs"]
mod query;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use windlass_engine::access::Role;
use windlass_engine::access::identity::KeyRights;

use crate::test_server::{TestServer, upper, waiting};

/// Nested objects are filled to this depth; deeper ones are left out as far as they are optional.
const DEPTH_MAX: usize = 4;

/// Optional properties without which a request would wait, or would name no runs.
const ALWAYS: [&str; 2] = ["wait_ms", "query"];

/// Properties with a checker of their own, which names places inside their values.
const CHECKED_APART: [&str; 1] = ["definition"];

/// The problems of a body's shape, by code.
const SHAPE_CODES: [&str; 4] = ["invalid_body", "unknown_field", "invalid_fields", "malformed_json"];

/// An id that no row has.
const UNKNOWN: &str = "01900000-0000-7000-8000-000000000000";

/// A route that takes a body.
struct BodyRoute<'d> {
    method: String,
    path: String,
    /// The path with the ids of rows that exist.
    real: String,
    schema: &'d Value,
    /// Whether the route belongs to the scheduler surface, whose errors are one sentence.
    is_scheduler: bool,
}

/// An object in a body.
struct BodyObject<'d> {
    place: String,
    whole: Value,
    schema: &'d Value,
}

/// The document, and values for properties that not any value of their type fits.
struct Contract<'d> {
    document: &'d Value,
    values: BTreeMap<&'static str, Value>,
}

impl<'d> Contract<'d> {
    fn resolve(&self, schema: &'d Value) -> &'d Value {
        match schema["$ref"].as_str() {
            Some(name) => self.resolve(self.document.pointer(name.trim_start_matches('#')).unwrap()),
            None => schema,
        }
    }

    /// The alternatives of a schema, without null. Alternatives beside properties only say which of them are required.
    fn alternatives(&self, schema: &'d Value) -> Vec<&'d Value> {
        let schema = self.resolve(schema);
        for key in ["oneOf", "anyOf"] {
            if let Some(all) = schema[key].as_array().filter(|_| schema["properties"].is_null()) {
                let all = all.iter().flat_map(|one| self.alternatives(one));
                return all.filter(|one| one["type"] != "null").collect();
            }
        }
        vec![schema]
    }

    /// The properties of which a body needs at least one.
    fn choice(&self, schema: &'d Value) -> Vec<&'d str> {
        let choices = schema["anyOf"].as_array().filter(|_| schema["properties"].is_object());
        choices.into_iter().flatten().filter_map(|one| one["required"][0].as_str()).collect()
    }

    /// The properties of a body and whether each is required.
    fn properties(&self, schema: &'d Value) -> Vec<(&'d str, &'d Value, bool)> {
        let schema = self.resolve(schema);
        let mut found = Vec::new();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            found.extend(self.properties(part));
        }
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (name, of) in schema["properties"].as_object().into_iter().flatten() {
            found.push((name.as_str(), of, required.iter().any(|one| one == name)));
        }
        found
    }

    /// The types that a property may have; none = any value.
    fn types(&self, schema: &'d Value) -> Vec<&'d str> {
        let one = |schema: &'d Value| -> Vec<&'d str> {
            match &schema["type"] {
                Value::String(word) => vec![word],
                Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
                _ if schema["properties"].is_object() || schema["allOf"].is_array() => vec!["object"],
                _ => Vec::new(),
            }
        };
        let mut all: Vec<&str> = Vec::new();
        for alternative in self.alternatives(schema) {
            let types = one(alternative);
            if types.is_empty() {
                return Vec::new();
            }
            all.extend(types);
        }
        all
    }

    /// A value for a property.
    fn value(&self, name: &str, schema: &'d Value, depth: usize) -> Value {
        if let Some(value) = self.values.get(name) {
            return value.clone();
        }
        let alternatives = self.alternatives(schema);
        let Some(schema) = alternatives.first() else { return Value::Null };
        if let Some(word) = schema["enum"].as_array().and_then(|words| words.first()) {
            return word.clone();
        }
        match self.types(schema).first().copied() {
            Some("string") => json!("x"),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
            Some("boolean") => json!(false),
            Some("array") if depth < DEPTH_MAX => json!([self.value("", &schema["items"], depth + 1)]),
            Some("array") => json!([]),
            Some("object") => Value::Object(self.object(schema, depth)),
            _ => json!({}),
        }
    }

    /// An object with the properties that it needs.
    fn object(&self, schema: &'d Value, depth: usize) -> Map<String, Value> {
        let first = self.choice(schema).first().copied();
        let properties = self.properties(schema).into_iter();
        let needed =
            properties.filter(|(name, _, must)| *must || ALWAYS.contains(name) || first == Some(*name));
        needed.map(|(name, of, _)| (name.to_owned(), self.value(name, of, depth + 1))).collect()
    }

    /// The objects that a body may have, each with a body that has it. Optional ones are put in, one at a time.
    fn objects(&self, place: &str, whole: &Value, schema: &'d Value, depth: usize) -> Vec<BodyObject<'d>> {
        let alternatives = self.alternatives(schema);
        let Some(schema) = alternatives.first().copied().filter(|_| depth < DEPTH_MAX) else {
            return Vec::new();
        };
        match whole.pointer(place) {
            Some(Value::Array(items)) if !items.is_empty() => {
                self.objects(&format!("{place}/0"), whole, &schema["items"], depth + 1)
            }
            Some(Value::Object(fields)) if self.has_properties(schema) => {
                let mut found = vec![BodyObject { place: place.to_owned(), whole: whole.clone(), schema }];
                for (name, of, _) in self.properties(schema) {
                    if self.values.contains_key(name) {
                        continue;
                    }
                    let inside = format!("{place}/{name}");
                    if fields.contains_key(name) {
                        found.extend(self.objects(&inside, whole, of, depth + 1));
                    } else {
                        let value = self.value(name, of, 0);
                        let with =
                            changed(whole, place, |fields| drop(fields.insert(name.to_owned(), value)));
                        found.extend(self.objects(&inside, &with, of, depth + 1));
                    }
                }
                found
            }
            _ => Vec::new(),
        }
    }

    fn has_properties(&self, schema: &'d Value) -> bool {
        !self.properties(schema).is_empty()
    }

    /// A value of a type that the property does not have; `None` if it takes any.
    fn mistyped(&self, schema: &'d Value) -> Option<Value> {
        let types = self.types(schema);
        if types.is_empty() {
            return None;
        }
        let has = |word: &str| types.contains(&word);
        let is_words = self.alternatives(schema).iter().all(|one| one["enum"].is_array());
        Some(if is_words {
            json!("no such word")
        } else if !has("array") {
            json!([[true]])
        } else if !has("boolean") {
            json!(true)
        } else {
            json!(1.5)
        })
    }
}

/// A path with the ids of rows that exist.
fn real_path(path: &str, ids: &[(&str, &str, String)]) -> String {
    let of_path = ids.iter().filter(|(prefix, ..)| path.starts_with(prefix));
    let real = of_path.fold(path.to_owned(), |real, (_, parameter, id)| real.replace(parameter, id));
    assert!(!real.contains('{'), "no id for {path}");
    real
}

/// All routes that take a body, with ids of rows that exist.
fn routes<'d>(document: &'d Value, ids: &[(&str, &str, String)]) -> Vec<BodyRoute<'d>> {
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if schema.is_null() {
                continue;
            }
            let mut real = real_path(path, ids);
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let asked = parameters.filter(|one| one["in"] == "query" && one["required"] == true);
            let query: Vec<String> =
                asked.map(|one| format!("{}={UNKNOWN}", one["name"].as_str().unwrap())).collect();
            if !query.is_empty() {
                real = format!("{real}?{}", query.join("&"));
            }
            let is_scheduler = operation["tags"][0] == "scheduler";
            routes.push(BodyRoute {
                method: method.to_uppercase(),
                path: path.clone(),
                real,
                schema,
                is_scheduler,
            });
        }
    }
    routes
}

/// The answer to a body: its status, and its text if it says that the shape is wrong.
struct BodyAnswer {
    status: u16,
    text: String,
    is_of_shape: bool,
    /// The header of the queue platform that names ignored properties.
    warning: String,
}

async fn send(host: &TestServer, route: &BodyRoute<'_>, body: &Value) -> BodyAnswer {
    let response = host.raw(&route.method, &route.real, body.to_string()).await;
    let (status, text) = (response.status.as_u16(), String::from_utf8_lossy(&response.body).into_owned());
    let code =
        serde_json::from_str::<Value>(&text).ok().and_then(|body| body["code"].as_str().map(str::to_owned));
    let is_of_shape = match code {
        Some(code) => SHAPE_CODES.contains(&code.as_str()),
        None => route.is_scheduler && status == 400,
    };
    let warning = response.headers.get("warning").and_then(|value| value.to_str().ok()).unwrap_or_default();
    BodyAnswer { status, text, is_of_shape, warning: warning.to_owned() }
}

/// Whether a text names a property, in any spelling.
fn names(text: &str, property: &str) -> bool {
    let plain = |text: &str| text.replace('_', "").to_lowercase();
    plain(text).contains(&plain(property))
}

/// The body after a change of the object at this place.
fn changed(whole: &Value, place: &str, change: impl FnOnce(&mut Map<String, Value>)) -> Value {
    let mut body = whole.clone();
    change(body.pointer_mut(place).and_then(Value::as_object_mut).expect("the body has an object there"));
    body
}

/// Everything in which the document and the server disagree about one route.
async fn disagreements(host: &TestServer, contract: &Contract<'_>, route: &BodyRoute<'_>) -> Vec<String> {
    let at = format!("{} {}", route.method, route.path);
    let whole = contract.value("", route.schema, 0);
    let answer = send(host, route, &whole).await;
    if answer.status >= 500 || answer.is_of_shape {
        return vec![format!("{at}: all required properties {whole} are refused: {}", answer.text)];
    }
    let mut found = Vec::new();
    for BodyObject { place, whole, schema } in contract.objects("", &whole, route.schema, 0) {
        let answer = send(host, route, &whole).await;
        if answer.status >= 500 || answer.is_of_shape {
            found.push(format!("{at}: {place} in {whole} is refused: {}", answer.text));
            continue;
        }
        let choice = contract.choice(schema);
        for (name, of, must) in contract.properties(schema) {
            let without = changed(&whole, &place, |fields| drop(fields.remove(name)));
            let answer = send(host, route, &without).await;
            let is_missed = answer.is_of_shape && names(&answer.text, name);
            let is_needed = must || choice.first() == Some(&name);
            if is_needed != is_missed && !ALWAYS.contains(&name) {
                let word = if is_needed { "required" } else { "optional" };
                found.push(format!("{at}: {place}/{name} is {word}: {} {}", answer.status, answer.text));
            }
            let with = changed(&whole, &place, |fields| {
                drop(fields.insert(name.to_owned(), contract.value(name, of, 1)))
            });
            let answer = send(host, route, &with).await;
            if answer.status >= 500 || answer.text.contains("unknown field") {
                found.push(format!("{at}: {place}/{name} is refused: {} {}", answer.status, answer.text));
            }
            let wrong = contract.mistyped(of).filter(|_| !CHECKED_APART.contains(&name));
            let Some(wrong) = wrong else { continue };
            let with = changed(&whole, &place, |fields| drop(fields.insert(name.to_owned(), wrong.clone())));
            let answer = send(host, route, &with).await;
            if !answer.is_of_shape || !names(&answer.text, name) {
                found.push(format!("{at}: {place}/{name} takes {wrong}: {} {}", answer.status, answer.text));
            }
        }
        let strange =
            changed(&whole, &place, |fields| drop(fields.insert("no_such_property".to_owned(), json!(1))));
        let answer = send(host, route, &strange).await;
        let is_refused = answer.is_of_shape && names(&answer.text, "no_such_property");
        if !route.is_scheduler && !is_refused && !names(&answer.warning, "no_such_property") {
            found.push(format!("{at}: {place} takes an unknown property: {} {}", answer.status, answer.text));
        }
    }
    found
}

#[tokio::test]
async fn the_document_requires_what_the_server_requires() {
    let mut host = TestServer::new().await;
    let document = host.get("/openapi.json").await.ok();
    host.publish("loud", upper()).await;
    host.publish("waits", waiting()).await;
    let run = host.start("waits", json!({})).await;
    host.post("/api/v1/accounts", json!({ "id": "acc" })).await.ok();
    let job = host.post("/api/v1/jobs", json!({ "name": "a", "queue": "default" })).await.ok();
    let job = job["id"].as_str().unwrap_or_else(|| panic!("{job}")).to_owned();
    let task = json!({ "name": "t", "type": "immediate", "queue_name": "default" });
    let schedule = json!({ "name": "s", "cron_expr": "0 9 * * *", "task": task });
    let schedule = host.post("/api/v1/schedules", schedule).await.ok();
    let schedule = schedule["id"].as_str().unwrap_or_else(|| panic!("{schedule}")).to_owned();
    let call = format!("{run}.1");
    let bulk = json!({ "kind": "runs", "query": "status:failed", "action": "cancel" });
    let bulk = host.post("/api/v1/bulk", bulk).await.ok()["id"].as_str().unwrap().to_owned();
    // A key among the bodies closes the server for callers without one.
    let admin = host.key(Role::Admin).await;
    host.authorization = Some(format!("Bearer {admin}").try_into().unwrap());
    let (_, key) = host.key_with(KeyRights::of(Role::Viewer), None).await;
    let ids = [
        ("/api/v1/keys", "{id}", key),
        ("/api/v1/bulk", "{id}", bulk),
        ("/api/v1/runs", "{id}", run),
        ("/api/v1/jobs", "{id}", job.clone()),
        ("/api/v1/tasks", "{id}", job),
        ("/api/v1/schedules", "{id}", schedule),
        ("/api/v1/accounts", "{id}", "acc".to_owned()),
        ("/api/v1/workers", "{id}", "w".to_owned()),
        ("/api/v1/calls", "{id}", call),
        ("/api", "{flow}", "loud".to_owned()),
        ("/api", "{name}", "default".to_owned()),
        ("/api", "{service}", "svc".to_owned()),
        ("/api", "{version}", "1".to_owned()),
    ];
    let values = BTreeMap::from([
        ("definition", upper()),
        ("ids", json!([UNKNOWN])),
        ("DefinitionJSON", json!(upper().to_string())),
        ("cron_expr", json!("0 9 * * *")),
        ("timezone", json!("UTC")),
        ("query", json!("status:failed")),
        ("run_at", json!("2099-01-01T00:00:00Z")),
        ("url", json!("http://127.0.0.1:1")),
        ("wait_ms", json!(0)),
    ]);
    let contract = Contract { document: &document, values };
    let (mut found, n_parameters) = query::all_disagreements(&host, &contract, &ids).await;
    assert!(n_parameters > 100, "{n_parameters} parameters of queries");
    let all = routes(&document, &ids);
    assert!(all.len() > 50, "{} routes take a body", all.len());
    for route in &all {
        found.extend(disagreements(&host, &contract, route).await);
    }
    assert!(found.is_empty(), "{} disagreements:\n{}", found.len(), found.join("\n"));
}
