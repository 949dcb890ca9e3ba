//! Failures of nodes and branches as clients see them: results that are kept, calls that may end, runs that do not
//! complete by accident.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_sdk::worker::{HandlerOutcome, ServiceCall};
use windlass_sdk::{Client, Worker};

use crate::http::{ends, expect, get, journal, node_is, seen, start};
use crate::server::{PATIENCE, Server, publish};

/// A worker whose calls end when the test lets them: `held` with its params, `refuse` with an error.
struct GatedWorker {
    /// One permit for every call that has arrived.
    arrived: Arc<Semaphore>,
    held: Arc<Semaphore>,
    refuse: Arc<Semaphore>,
    _stop: DropGuard,
}

impl GatedWorker {
    async fn on(client: &Client) -> Self {
        let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
        let (held, refuse) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let stop = CancellationToken::new();
        let arrived = Arc::new(Semaphore::new(0));
        let (of_held, of_refuse) = (held.clone(), refuse.clone());
        let (at_held, at_refuse) = (arrived.clone(), arrived.clone());
        let worker = Worker::new(client.clone(), "gated")
            .slots(8)
            .listen(listener, url)
            .service("held", move |call: ServiceCall| {
                let gate = of_held.clone();
                at_held.add_permits(1);
                async move {
                    gate.acquire().await.unwrap().forget();
                    HandlerOutcome::Done(call.params["name"].clone())
                }
            })
            .service("refuse", move |_: ServiceCall| {
                let gate = of_refuse.clone();
                at_refuse.add_permits(1);
                async move {
                    gate.acquire().await.unwrap().forget();
                    HandlerOutcome::refused("not today")
                }
            });
        tokio::spawn(worker.run(stop.clone()));
        seen("the worker", async || (!client.workers().all().await.unwrap().is_empty()).then_some(())).await;
        GatedWorker { arrived, held, refuse, _stop: stop.drop_guard() }
    }
}

impl GatedWorker {
    /// Waits until so many calls have arrived.
    async fn have_arrived(&self, n: u32) {
        let arrived = tokio::time::timeout(PATIENCE, self.arrived.acquire_many(n)).await;
        arrived.expect("the calls arrive").unwrap().forget();
    }
}

/// Waits until an event of this kind about this place is in the journal.
async fn happens(client: &Client, run: &str, event: &str, node: &str) {
    seen(&format!("{event} {node}"), async || {
        let events = journal(client, run).await;
        events.iter().any(|found| found["e"] == event && found["node"] == node).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_in_hand_may_end_when_a_branch_fails() {
    // One of the two pushed calls waits for the other.
    let server = Server::start(&["--service-calls-max", "1"]).await;
    let client = server.client();
    let worker = GatedWorker::on(&client).await;
    let exec = |service: &str, exec_type: &str, name: &str| json!({"service": service, "exec_type": exec_type, "params": {"name": name}});
    let definition = json!({
        "start": "p",
        "nodes": {
            "p": {"kind": "parallel", "parallel_mode": "concurrent", "failure_strategy": "fail_fast",
                "post": {"output_key": "out"}, "parallel_execs": [
                    exec("held", "http", "pushed"), exec("held", "http", "pushed"), exec("held", "queue", "pulled"),
                    exec("refuse", "http", ""), exec("unclaimed", "queue", ""),
                    {"subflow": {"start": "t", "nodes": {"t": {"kind": "timer", "params": {"delay_ms": 3_600_000}}}}}]},
            "late": {"kind": "local", "func": "echo", "prep": {"input_key": "out"}, "post": {"output_key": "kept"}},
        },
        "edges": [{"from": "p", "action": "error", "to": "late"}],
    });
    publish(&client, "drains", definition).await;
    let run = start(&client, "drains", json!({})).await;
    worker.have_arrived(3).await;
    worker.refuse.add_permits(1);
    happens(&client, &run, "draining", "p").await;
    happens(&client, &run, "dropped", "p/4").await;
    happens(&client, &run, "dropped", "p/5").await;
    seen("the end of the call that waits", async || {
        let events = journal(&client, &run).await;
        events
            .iter()
            .any(|event| event["e"] == "dropped" && (event["node"] == "p/0" || event["node"] == "p/1"))
            .then_some(())
    })
    .await;
    let open = get(&client, &format!("/api/v1/runs/{run}")).await;
    assert_eq!((open["status"].as_str(), &open["ended_at"]), (Some("running"), &Value::Null), "{open}");
    let unclaimed = get(&client, "/api/v1/jobs?queue=unclaimed").await;
    assert_eq!(unclaimed["items"][0]["status"], "canceled", "{unclaimed}");
    worker.held.add_permits(2);
    let ended = ends(&client, &run, "completed").await;
    assert_eq!(ended["shared"]["kept"], json!(["pushed", "pulled"]), "{ended}");
    assert_eq!(ended["shared"]["_error"]["node"], "p");
}

#[tokio::test(flavor = "multi_thread")]
async fn siblings_of_a_failed_step_may_end() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let worker = GatedWorker::on(&client).await;
    let steps = json!({"title": "t", "steps": [
        {"id": "p", "operator": "@control/flow/parallel", "branches": [
            {"steps": [{"id": "a", "operator": "refuse", "parameters": {}}]},
            {"steps": [{"id": "b", "operator": "held", "parameters": {"name": "kept"}}, {"id": "c", "operator": "held", "parameters": {}}]},
            {"steps": [{"id": "d", "operator": "unclaimed", "parameters": {}}]}]}]});
    publish(&client, "steps", steps).await;
    let run = start(&client, "steps", json!({})).await;
    worker.have_arrived(2).await;
    worker.refuse.add_permits(1);
    happens(&client, &run, "draining", "").await;
    happens(&client, &run, "dropped", "d").await;
    worker.held.add_permits(1);
    let ended = ends(&client, &run, "failed").await;
    assert_eq!(ended["error"]["node"], "a", "{ended}");
    node_is(&client, &run, "b", "completed").await;
    let events = journal(&client, &run).await;
    assert!(!events.iter().any(|event| event["e"] == "entered" && event["node"] == "c"), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fan_without_a_strategy_keeps_all_results() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let fan = |edges: Value| {
        json!({"start": "f", "nodes": {
            "f": {"kind": "foreach", "exec_type": "local_func", "func": "upper", "prep": {"input_key": "$params.items"},
                "post": {"output_key": "out", "action_static": "next"}},
            "n": {"kind": "local", "func": "echo"}}, "edges": edges})
    };
    let items = json!({"items": ["a", 1, "c"]});
    for (name, edges, status) in [
        ("own", json!([{"from": "f", "action": "next", "to": "n"}, {"from": "n", "to": ""}]), "completed"),
        ("none", json!([{"from": "f", "action": "other", "to": "n"}]), "failed"),
        ("end", json!([{"from": "f", "action": "next", "to": ""}]), "failed"),
        ("default", json!([{"from": "f", "to": ""}]), "failed"),
        ("error", json!([{"from": "f", "action": "error", "to": ""}]), "completed"),
    ] {
        publish(&client, name, fan(edges)).await;
        let run = start(&client, name, items.clone()).await;
        let ended = ends(&client, &run, status).await;
        assert_eq!(ended["shared"]["out"], json!(["A", null, "C"]), "{name}: {ended}");
        assert_eq!(ended["node_states"]["f"]["status"], "failed", "{name}: {ended}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_surface_reads_bare_paths_and_sums_up_after_the_branches() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let definition = json!({"start": "a", "nodes": {
        "a": {"kind": "local", "func": "echo", "prep": {"input_key": "$params.x"}, "post": {"output_key": "total"}},
        "b": {"kind": "foreach", "exec_type": "local_func", "func": "echo", "prep": {"input_key": "$params.items"}},
        "c": {"kind": "subflow", "prep": {"input_map": {"t": "total"}}, "post": {"output_key": "out", "action_static": "on"},
            "subflow": {"start": "x", "nodes": {"x": {"kind": "local", "func": "echo"}}}}},
        "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}, {"from": "c", "action": "on", "to": ""}]});
    for (prefix, id, text, wanted) in
        [("", "ID", "DefinitionJSON", json!(7)), ("/api", "id", "definition_json", json!("total"))]
    {
        let send = async |path: &str, body: Value| {
            let (_, answer) = crate::http::ask(&client, "POST", &format!("{prefix}{path}"), Some(body)).await;
            answer
        };
        let flow = send("/flows", json!({"Name": format!("f{}", prefix.len())})).await;
        let of =
            |value: &Value| [id, "id", "ID"].iter().find_map(|key| value[*key].as_str()).unwrap().to_owned();
        let flow = of(&flow);
        let version =
            json!({"FlowID": flow, "Status": "published", "DefinitionJSON": definition.to_string()});
        send("/flows/version", version).await;
        let params = json!({"x": 7, "items": [1, 2]}).to_string();
        let task = of(&send("/tasks", json!({"FlowID": flow, "ParamsJSON": params})).await);
        let run = format!("run_{}", task.trim_start_matches("task-").replace('-', ""));
        let ended = ends(&client, &run, "completed").await;
        assert_eq!(ended["shared"]["out"]["t"], wanted, "{text}: {ended}");
        let rows = expect(&client, "GET", &format!("{prefix}/tasks/runs?task_id={task}"), None, 200).await;
        let key = |row: &Value| {
            let field = |names: [&str; 2]| {
                names.iter().find_map(|name| row[*name].as_str()).unwrap_or_default().to_owned()
            };
            (field(["node_key", "nodeKey"]), field(["branch_id", "branchId"]))
        };
        let keys: Vec<(String, String)> = rows.as_array().unwrap().iter().map(key).collect();
        let place = |wanted: &str| keys.iter().rposition(|(node, _)| node == wanted).unwrap();
        assert!(keys[place("b")].1.is_empty(), "the summary of the fan is its last row: {keys:?}");
        assert_eq!(keys.iter().filter(|(node, _)| node == "b").count(), 3, "{keys:?}");
        let shown = expect(&client, "GET", &format!("{prefix}/tasks/get?id={task}"), None, 200).await;
        let field = |names: [&str; 2]| names.iter().find_map(|name| shown.get(*name)).cloned();
        assert_eq!(field(["current_node_key", "CurrentNodeKey"]), Some(json!("c")));
        assert_eq!(field(["last_action", "LastAction"]), Some(json!("on")));
        assert_eq!(ended["node"], "c", "the row names the last step: {ended}");
    }
}
