//! The bodies, routes and command lines of the documents that the scheduler surface and the queue platform surface come
//! from, word for word as the fixtures have them, played against the real binary.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use windlass_sdk::Client;

use crate::http::{ask, expect, get, seen};
use crate::server::{Server, TempDir, free_port};
use crate::shell::{KilledOnDrop, TestShell, text};

fn scheduler() -> Value {
    serde_json::from_str(include_str!("originals/scheduler.json")).unwrap()
}

fn queue_platform() -> Value {
    serde_json::from_str(include_str!("originals/queue_platform.json")).unwrap()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// A client of one era of the scheduler surface.
struct OriginalEra<'c> {
    client: &'c Client,
    prefix: &'static str,
}

impl OriginalEra<'_> {
    async fn post(&self, path: &str, body: Value) -> Value {
        expect(self.client, "POST", &format!("{}{path}", self.prefix), Some(body), 200).await
    }

    /// A field, as either era spells it.
    fn field(object: &Value, name: &str) -> Value {
        let plain = |text: &str| text.replace('_', "").to_lowercase();
        let fields = object.as_object().unwrap_or_else(|| panic!("no object: {object}"));
        fields
            .iter()
            .find(|(key, _)| plain(key) == plain(name))
            .unwrap_or_else(|| panic!("{name}: {object}"))
            .1
            .clone()
    }

    /// Publishes a definition; the ids of the flow and of the version.
    async fn publish(&self, definition: &Value) -> (Value, Value) {
        let flow = self.post("/flows", json!({"Name": "original"})).await["id"].clone();
        let body = json!({"FlowID": flow, "Version": 1, "DefinitionJSON": definition.to_string(), "Status": "published"});
        (flow, self.post("/flows/version", body).await["id"].clone())
    }

    async fn start(&self, flow: &Value, params: &Value) -> String {
        let body = json!({"FlowID": flow, "Version": 0, "ParamsJSON": params.to_string()});
        self.post("/tasks", body).await["id"].as_str().unwrap().to_owned()
    }

    async fn ended(&self, task: &str) -> Value {
        seen(&format!("the end of {task}"), async || {
            let shown = get(self.client, &format!("{}/tasks/get?id={task}", self.prefix)).await;
            let status = OriginalEra::field(&shown, "status");
            (status == "completed" || status == "failed" || status == "canceled").then_some(shown)
        })
        .await
    }
}

/// A node of a document between one that makes `items` and one that shows the taken edge.
fn around(node: &Value, action: &str) -> Value {
    json!({"start": "before", "nodes": {
            "before": {"exec_type": "local_func", "func": "echo", "prep": {"input_key": "$params.items"},
                "post": {"output_key": "items"}},
            "node": node,
            "after": {"exec_type": "local_func", "func": "echo", "prep": {"input_key": "$params.items"},
                "post": {"output_key": "after", "action_static": "end"}}},
        "edges": [{"from": "before", "action": "default", "to": "node"}, {"from": "node", "action": action, "to": "after"}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_of_the_documents_does_its_work_in_both_eras() {
    let shell = TestShell::open().await;
    let client = shell.server.client();
    let _worker = shell.worker(&["--services", "transform"]);
    seen("the worker", async || (get(&client, "/api/v1/workers").await["count"] == 1).then_some(())).await;
    for prefix in ["", "/api"] {
        let era = OriginalEra { client: &client, prefix };
        for text in texts(&scheduler()["nodes"]) {
            let node: Value = serde_json::from_str(&text).unwrap();
            let (action, signal) = match node["kind"].as_str().unwrap() {
                "wait_event" => ("next", Some(("flag", json!({"by": "ann"})))),
                "approval" => ("approved", Some(("approval", json!("approved")))),
                _ => ("next", None),
            };
            let (flow, _) = era.publish(&around(&node, action)).await;
            let task = era.start(&flow, &json!({"items": [1, 2.5, 3]})).await;
            if let Some((key, value)) = signal {
                era.post("/tasks/signal", json!({"task_id": task, "key": key, "value": value})).await;
            }
            let ended = era.ended(&task).await;
            assert_eq!(OriginalEra::field(&ended, "status"), "completed", "{text}: {ended}");
            assert_eq!(OriginalEra::field(&ended, "last_action"), "end", "{text}: {ended}");
            let shared: Value =
                serde_json::from_str(OriginalEra::field(&ended, "shared_json").as_str().unwrap()).unwrap();
            assert_eq!(shared["after"], json!([1, 2.5, 3]), "{text}: the edge `{action}` was taken");
            if node["kind"] == "foreach" {
                let mapped: Vec<f64> = serde_json::from_value(shared["mapped"].clone()).unwrap();
                assert_eq!(mapped, [2.0, 5.0, 6.0]);
            }
            let runs = get(&client, &format!("{prefix}/tasks/runs?task_id={task}")).await;
            let keys: Vec<Value> =
                runs.as_array().unwrap().iter().map(|run| OriginalEra::field(run, "node_key")).collect();
            assert!(keys.contains(&json!("node")), "{text}: {runs}");
        }
    }
}

/// Values for the placeholders of a documented route, and the body that goes with it.
struct RoutePlay {
    flow: Value,
    version: Value,
    task: String,
    manual: String,
    polled: Value,
}

impl RoutePlay {
    /// The route with real values in the place of `...`.
    fn filled(&self, route: &str) -> String {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let id = if route.contains("version/get") {
            text(&self.version)
        } else if route.contains("run_once") {
            self.manual.clone()
        } else {
            self.task.clone()
        };
        route
            .replace("service=...", "service=transform")
            .replace("ttl=...", "ttl=60")
            .replace("flow_version_id=...", &format!("flow_version_id={}", text(&self.version)))
            .replace("flow_id=...", &format!("flow_id={}", text(&self.flow)))
            .replace("task_id=...", &format!("task_id={}", self.task))
            .replace("status=...", "status=running")
            .replace("id=...", &format!("id={id}"))
    }

    fn body(&self, path: &str) -> Value {
        let worker = json!({"id": "w", "url": "http://127.0.0.1:9", "services": ["transform"], "load": 1});
        match path.trim_start_matches("/api") {
            "/workers/register" | "/register" | "/workers/heartbeat" | "/heartbeat" => worker,
            "/flows" => json!({"Name": "another"}),
            "/flows/version" => {
                let definition = json!({"start": "a", "nodes": {"a": {"service": "transform"}}, "edges": []});
                json!({"FlowID": self.flow, "Version": 0, "DefinitionJSON": definition.to_string()})
            }
            "/tasks" => json!({"FlowID": self.flow, "Version": 1, "ParamsJSON": "{}"}),
            "/tasks/signal" => json!({"task_id": self.task, "key": "flag", "value": 1}),
            "/queue/poll" => json!({"worker_id": "puller", "services": ["resize"]}),
            "/queue/complete" => json!({"queue_id": self.polled["id"], "result": {"ok": true}, "error": ""}),
            _ => json!({}),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_of_the_documents_answers() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let routes = scheduler()["routes"].clone();
    for (prefix, named) in [("", "first era"), ("/api", "prefixed era")] {
        let era = OriginalEra { client: &client, prefix };
        let wait = json!({"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "$shared.go"}}}});
        let (flow, version) = era.publish(&wait).await;
        let task = era.start(&flow, &json!({})).await;
        let manual = json!({"FlowID": flow, "ParamsJSON": "{}", "Manual": true});
        let manual = era.post("/tasks", manual).await["id"].as_str().unwrap().to_owned();
        let queue = json!({"start": "q", "nodes": {"q": {"service": "resize", "exec_type": "queue"}}});
        let queue = era.publish(&queue).await.0;
        era.start(&queue, &json!({})).await;
        let poll = format!("{prefix}/queue/poll");
        let ask_for = json!({"worker_id": "puller", "services": ["resize"]});
        let polled = seen("a job", async || {
            let (status, job) = ask(&client, "POST", &poll, Some(ask_for.clone())).await;
            (status == 200).then_some(job)
        })
        .await;
        let play = RoutePlay { flow, version, task, manual, polled };
        for route in texts(&routes[named]) {
            let (method, path) = route.split_once(' ').unwrap();
            let filled = play.filled(path);
            let body = (method == "POST").then(|| play.body(path.split('?').next().unwrap()));
            let (status, answer) = ask(&client, method, &filled, body).await;
            let is_poll = path.ends_with("/poll");
            assert!(status == 200 || is_poll && status == 204, "{route}: {status} {answer}");
        }
        if prefix.is_empty() {
            for path in texts(&routes["first era, shorter"]) {
                let (method, query) = match path.as_str() {
                    "/list" | "/allocate" => ("GET", "?service=transform"),
                    _ => ("POST", ""),
                };
                let body = (method == "POST").then(|| play.body(&path));
                expect(&client, method, &format!("{path}{query}"), body, 200).await;
            }
        }
    }
}

/// A command line of a document that starts one of its programs: the environment, and the command of ours in its place.
fn translated(line: &str, ports: [(&str, u16); 2]) -> (Vec<(String, String)>, &'static str) {
    let program = match line.split_once("go run ").unwrap().1 {
        "cmd/scheduler/main.go" => "serve",
        "cmd/worker/main.go" => "worker",
        "cmd/cli/main.go" => "demo",
        other => panic!("no program {other}"),
    };
    let variables = line.split_whitespace().filter_map(|word| word.split_once('='));
    let moved = |value: &str| {
        ports.iter().fold(value.to_owned(), |value, (from, to)| value.replace(from, &format!(":{to}")))
    };
    (variables.map(|(name, value)| (name.to_owned(), moved(value))).collect(), program)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_lines_of_the_scheduler_start_the_same_from_the_same_environment() {
    let dir = TempDir::new();
    let ports = [(":8070", free_port()), (":8080", free_port())];
    let client = Client::new(&format!("http://127.0.0.1:{}", ports[0].1)).unwrap();
    let mut running = Vec::new();
    for line in texts(&scheduler()["commands"]) {
        let (variables, program) = translated(&line, ports);
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.arg(program).current_dir(dir.path()).env_clear().envs(variables).stdin(Stdio::null());
        match program {
            // The address of the original is taken where tests run beside each other.
            "serve" => {
                command.env("WINDLASS_LISTEN", format!("127.0.0.1:{}", ports[0].1));
                running
                    .push(KilledOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()));
                seen("the server", async || {
                    matches!(client.raw("GET", "/readyz", None).await, Ok((200, _))).then_some(())
                })
                .await;
                assert!(dir.path().join("scheduler.db").exists(), "the file that the environment names");
            }
            "worker" => {
                running.push(KilledOnDrop(command.stderr(Stdio::null()).spawn().unwrap()));
                let url = format!("http://localhost:{}", ports[1].1);
                seen("the worker", async || {
                    let workers = get(&client, "/api/workers/list?service=route").await;
                    (workers[0]["url"] == url.as_str()).then_some(())
                })
                .await;
            }
            _ => {
                let output = command.output().unwrap();
                let said = text(&output.stdout);
                assert!(output.status.success(), "{line}: {said}{}", text(&output.stderr));
                assert!(said.contains("HELLO FROM WINDLASS") && said.contains("42"), "{said}");
            }
        }
    }
    assert_eq!(running.len(), 2);
}

/// A request as a document writes it: the line, the headers, an empty line, the body.
fn parts(request: &str) -> (&str, &str, Option<Value>) {
    let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
    let (method, path) = head.lines().next().unwrap().split_once(' ').unwrap();
    (method, path, (!body.is_empty()).then(|| serde_json::from_str(body).unwrap()))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.as_bytes()[4] == b'-' && text.as_bytes()[10] == b'T'
}

/// Checks that an answer has everything of the documented one; ids and times need only be some. Fields may be added.
fn check_like(documented: &Value, found: &Value, place: &str) {
    match (documented, found) {
        (Value::Object(documented), Value::Object(found)) => {
            for (name, value) in documented {
                let place = format!("{place}.{name}");
                check_like(value, found.get(name).unwrap_or_else(|| panic!("{place} is missing")), &place);
            }
        }
        (Value::Array(documented), Value::Array(found)) => {
            assert_eq!(documented.len(), found.len(), "{place}");
            for (n, (documented, found)) in documented.iter().zip(found).enumerate() {
                check_like(documented, found, &format!("{place}[{n}]"));
            }
        }
        (Value::String(documented), Value::String(found)) if is_uuid(documented) => {
            // The ids of workers are their own words.
            assert!(is_uuid(found) || place.contains("worker") && !found.is_empty(), "{place}: {found}");
        }
        (Value::String(documented), Value::String(found)) if is_time(documented) => {
            assert!(is_time(found), "{place}: {found}");
        }
        (Value::String(documented), Value::String(found)) if documented.contains("-3d31") => {
            assert!(!found.is_empty(), "{place}");
        }
        (documented, found) => assert_eq!(documented, found, "{place}"),
    }
}

/// The server, and the demonstration worker with one slot, as the document has them.
async fn platform() -> (TestShell, Client, KilledOnDrop) {
    let commands = texts(&queue_platform()["commands"]);
    assert_eq!(commands, ["cd cmd/api && go run main.go", "cd cmd/worker && go run main.go"]);
    let shell = TestShell::open().await;
    let worker = shell.worker(&["--demo", "--slots", "1"]);
    let client = shell.server.client();
    seen("the worker", async || (get(&client, "/api/v1/workers").await["count"] == 1).then_some(())).await;
    (shell, client, worker)
}

async fn displayed(client: &Client, id: &str, status: &str) -> Value {
    seen(&format!("{id} {status}"), async || {
        let shown = get(client, &format!("/api/v1/tasks/{id}")).await;
        (shown["display_status"] == status).then_some(shown)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_platform_answers_its_documented_requests_as_documented() {
    let (_shell, client, _worker) = platform().await;
    let documented = queue_platform()["documented"].clone();
    let play = async |name: &str, path: Option<String>| {
        let case = &documented[name];
        let (method, of_document, body) = parts(case["request"].as_str().unwrap());
        let path = path.unwrap_or_else(|| of_document.to_owned());
        let status = u16::try_from(case["status"].as_u64().unwrap()).unwrap();
        let answer = expect(&client, method, &path, body, status).await;
        (case["answer"].clone(), answer)
    };
    let (expected, created) = play("create", None).await;
    check_like(&expected, &created, "create");
    let id = created["task_id"].as_str().unwrap();
    displayed(&client, id, "completed").await;
    let (expected, shown) = play("show", Some(format!("/api/v1/tasks/{id}"))).await;
    check_like(&expected, &shown, "show");
    let (expected, workers) = play("workers", None).await;
    check_like(&expected, &workers, "workers");

    // Two tasks that fail for good, as in the example of the dead letters.
    for n in 0..2 {
        let task = json!({"name": "dead", "type": "immediate", "queue_name": "default", "priority": 1,
            "payload": {"n": n}, "max_retries": 1});
        let made = expect(&client, "POST", "/api/v1/tasks", Some(task), 201).await;
        displayed(&client, made["task_id"].as_str().unwrap(), "failed").await;
    }
    let (expected, letters) = play("dead letters", None).await;
    assert_eq!((&expected["queue"], &expected["count"]), (&letters["queue"], &letters["count"]));
    // The document leaves values out: `{...}`.
    let fields = |text: &Value| -> Vec<(String, bool)> {
        let text = text.as_str().unwrap().replace("{...}", "{}");
        let letter: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
        letter.into_iter().map(|(name, value)| (name, value.is_object())).collect()
    };
    assert_eq!(fields(&expected["items"][0]), fields(&letters["items"][0]));
    let (expected, moved) = play("replay", None).await;
    check_like(&expected, &moved, "replay");
    let letter: Value = serde_json::from_str(letters["items"][0].as_str().unwrap()).unwrap();
    let replayed = displayed(&client, letter["task_id"].as_str().unwrap(), "completed").await;
    assert_eq!(replayed["task"]["priority"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checklist_of_the_queue_platform_passes_item_by_item() {
    let (_shell, client, _worker) = platform().await;
    let full = queue_platform()["checklist"][0]["body"].clone();
    let full: Value = serde_json::from_str(full.as_str().unwrap()).unwrap();
    let mut task = String::new();
    for step in queue_platform()["checklist"].as_array().unwrap() {
        let (method, path) = step["request"].as_str().unwrap().split_once(' ').unwrap();
        let expected = step["expected"].as_str().unwrap();
        // Later bodies name only the fields that differ: `priority=3, max_retries=3`.
        let body = step["body"].as_str().map(|text| {
            serde_json::from_str(text).unwrap_or_else(|_| {
                let mut body = full.clone();
                body["dedup_key"] = json!(text);
                for (name, value) in text.split(", ").filter_map(|pair| pair.split_once('=')) {
                    body[name] = json!(value.parse::<i64>().unwrap());
                }
                body
            })
        });
        let path = path.replace("{task_id}", &task);
        if method == "GET" && path.contains("/tasks/") {
            displayed(&client, &task, "completed").await;
        }
        let status = if method == "POST" && path == "/api/v1/tasks" { 201 } else { 200 };
        let answer = expect(&client, method, &path, body, status).await;
        if status == 201 {
            assert_eq!(answer["status"], "queued", "{step}");
            task = answer["task_id"].as_str().unwrap().to_owned();
        }
        if expected.contains("latest_run.status=succeeded") {
            assert_eq!(
                (&answer["latest_run"]["status"], &answer["display_status"]),
                (&json!("succeeded"), &json!("completed"))
            );
        } else if expected.contains("retrying") {
            let waiting = displayed(&client, &task, "retrying").await;
            assert_eq!(waiting["latest_run"]["attempt"], 2, "{waiting}");
            let done = displayed(&client, &task, "completed").await;
            assert_eq!(
                (&done["latest_run"]["attempt"], &done["latest_run"]["status"]),
                (&json!(2), &json!("succeeded"))
            );
        } else if path.ends_with("/tasks") && expected.contains("DLQ") {
            let failed = displayed(&client, &task, "failed").await;
            assert!(failed["latest_run"]["result"]["error"].is_string(), "{failed}");
        } else if path.contains("/dlq?") {
            assert_eq!(answer["count"], 1, "{answer}");
        } else if path.ends_with("/dlq/replay") {
            assert_eq!(answer["moved"], 1, "{answer}");
            displayed(&client, &task, "completed").await;
        } else if path.ends_with("/workers") {
            assert_eq!((&answer["count"], &answer["workers"][0]["status"]), (&json!(1), &json!("online")));
        }
    }
}
