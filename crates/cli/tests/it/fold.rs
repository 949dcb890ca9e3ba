//! The API reports of a run exactly the fold of its journal: state at every entry, row, and attempts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_engine::definition::{Strictness, compile_value};
use windlass_engine::event::Event;
use windlass_engine::id::{CommandId, RunId};
use windlass_engine::journal::Entry;
use windlass_engine::plan::Plan;
use windlass_engine::run::Run;
use windlass_engine::time::Timestamp;
use windlass_sdk::Client;
use windlass_sdk::contract::PageQuery;
use windlass_store::projection;

use crate::http::{ask, get, post, start};
use crate::server::{PATIENCE, Server, publish};

const FLOWS: u64 = 6;
const RUNS_OF_EACH: u64 = 5;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn node(&mut self) -> Value {
        let retries = self.roll(3);
        let mode = ["sequential", "concurrent"][self.roll(2) as usize];
        match self.roll(8) {
            0 => json!({"kind": "timer", "params": {"delay_ms": self.roll(40)}}),
            1 => {
                json!({"kind": "wait_event", "params": {"signal_key": "$shared.go"}, "post": {"output_key": "heard"}})
            }
            2 => json!({"kind": "local", "func": "sleep", "params": {"ms": self.roll(30)}}),
            3 => json!({"kind": "local", "func": "fail", "max_retries": retries, "wait_ms": self.roll(20)}),
            4 => json!({
                "kind": "foreach", "exec_type": "local_func", "func": "mul", "params": {"mul": 3},
                "prep": {"input_key": "$params.items"}, "post": {"output_key": "each"},
                "parallel_mode": mode, "max_parallel": self.roll(3),
            }),
            5 => json!({
                "kind": "subflow", "post": {"output_key": "inner"},
                "subflow": {"start": "i", "nodes": {
                    "i": {"kind": "local", "func": "upper", "prep": {"input_key": "$params.word"},
                        "post": {"output_key": "loud"}},
                }, "edges": []},
            }),
            _ => json!({"kind": "local", "func": "echo", "prep": {"input_key": "$params.items"},
                "post": {"output_key": format!("k{}", self.roll(3))}}),
        }
    }

    fn flow(&mut self) -> Value {
        let n = 2 + self.roll(4);
        let nodes: BTreeMap<String, Value> = (0..n).map(|i| (format!("n{i}"), self.node())).collect();
        let mut edges: Vec<Value> =
            (1..n).map(|i| json!({"from": format!("n{}", i - 1), "to": format!("n{i}")})).collect();
        if self.roll(2) == 0 {
            edges.push(json!({"from": "n0", "action": "error", "to": format!("n{}", n - 1)}));
        }
        json!({"start": "n0", "nodes": nodes, "edges": edges})
    }
}

/// The journal as a client reads it.
async fn entries(client: &Client, run: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut page = PageQuery { limit: Some(3), ..PageQuery::default() };
    loop {
        let part = client.runs().journal(run, &page).await.unwrap();
        for entry in part.items {
            let at = Timestamp::parse_rfc3339(json!(entry.at).as_str().unwrap()).unwrap();
            let command: CommandId = entry.command.parse().unwrap();
            let events: Vec<Event> = serde_json::from_value(json!(entry.events)).unwrap();
            entries.push(Entry::new(at, command, events));
            assert_eq!(entry.seq, entries.len() as u64, "{run}");
        }
        match part.next {
            Some(next) => page.cursor = Some(next),
            None => return entries,
        }
    }
}

fn fold(id: RunId, plan: &Plan, entries: &[Entry]) -> Run {
    let events = entries.iter().flat_map(|entry| entry.events.iter().map(|event| (entry.at, event)));
    Run::replay(id, plan, events)
}

/// Checks the API's report of a state; `said` is the response of the route for the state or for the run.
fn compare(said: &Value, folded: &Run, plan: &Plan) {
    let place = format!("{said}\n{folded:#?}");
    assert_eq!(said["status"], projection::status(folded).word(), "{place}");
    assert_eq!(said["round"], folded.round, "{place}");
    let shared: BTreeMap<&String, &Value> =
        folded.root.shared.iter().flatten().map(|(key, value)| (key, &**value)).collect();
    assert_eq!(said["shared"], json!(shared), "{place}");
    assert_eq!(said["params"], json!(folded.start.params), "{place}");
    assert_eq!(said.get("result"), folded.result.as_deref(), "{place}");
    assert_eq!(said.get("error").is_some(), folded.error.is_some(), "{place}");
    for (ix, node) in plan.root.nodes.iter().enumerate() {
        let (said, state) = (&said["node_states"][node.key.as_str()], folded.root.node(ix));
        // A run that has ended shows the nodes that it did not reach as skipped.
        let is_unreached = folded.status.is_ended() && state.phase.word() == "pending";
        let status = if is_unreached { "skipped" } else { state.phase.word() };
        assert_eq!(said["status"], status, "{}: {place}", node.key);
        assert_eq!(said["attempts"], state.attempts, "{}: {place}", node.key);
        assert_eq!(said.get("output"), state.output.as_deref(), "{}: {place}", node.key);
        let time = |at: Option<Timestamp>| at.map(|at| at.to_rfc3339());
        let read = |name: &str| said.get(name).and_then(Value::as_str).and_then(Timestamp::parse_rfc3339);
        assert_eq!(time(read("started_at")), time(state.entered_at), "{}: {place}", node.key);
        assert_eq!(time(read("finished_at")), time(state.ended_at), "{}: {place}", node.key);
    }
}

/// Tells a run something at some moments, whether it is of use or not.
async fn trouble(client: &Client, run: &str, seed: u64) {
    let mut dice = Dice(seed);
    for _ in 0..dice.roll(4) {
        tokio::time::sleep(Duration::from_millis(dice.roll(40))).await;
        let (verb, body) = match dice.roll(8) {
            0 => ("cancel", json!({})),
            1 => ("pause", json!({})),
            2 => ("resume", json!({})),
            3 => ("retry", json!({})),
            4 => ("step", json!({})),
            5 => ("rerun", json!({"from": "n1"})),
            _ => ("signal", json!({"key": "go", "value": dice.roll(100)})),
        };
        let (status, answer) = ask(client, "POST", &format!("/api/v1/runs/{run}/{verb}"), Some(body)).await;
        assert!(status < 500, "{verb}: {status} {answer}");
    }
    // No run waits for ever.
    for (verb, body) in [("resume", json!({})), ("signal", json!({"key": "go", "value": true}))] {
        ask(client, "POST", &format!("/api/v1/runs/{run}/{verb}"), Some(body)).await;
    }
}

async fn check(client: &Client, run: &str, plan: &Plan) {
    let ended = client.runs().wait(run, Some(PATIENCE)).await.unwrap();
    assert!(ended.is_some(), "{run} did not end: {}", get(client, &format!("/api/v1/runs/{run}/why")).await);
    let id: RunId = run.parse().unwrap();
    let entries = entries(client, run).await;
    for at in 1..=entries.len() {
        let said = get(client, &format!("/api/v1/runs/{run}/state?at={at}")).await;
        assert_eq!(said["at"], at);
        assert_eq!(said["len"], entries.len());
        let folded = fold(id, plan, &entries[..at]);
        compare(&said, &folded, plan);
        let signals: BTreeMap<&String, &Value> =
            folded.signals.iter().map(|(key, value)| (key, &**value)).collect();
        assert_eq!(said["signals"], json!(signals));
    }
    let said = get(client, &format!("/api/v1/runs/{run}")).await;
    compare(&said, &fold(id, plan, &entries), plan);
    assert_eq!(said["len"], entries.len());
    let said = get(client, &format!("/api/v1/runs/{run}/attempts?limit=1000")).await;
    let said = said["items"].as_array().unwrap();
    let rows = projection::attempts::attempts(id, plan, &entries);
    assert_eq!(said.len(), rows.len(), "{run}: {said:?}");
    for (said, row) in said.iter().zip(&rows) {
        assert_eq!(said["node"], row.node.to_string(), "{run}");
        assert_eq!(said["attempt"], row.attempt, "{run}");
        assert_eq!(said["status"], row.status.word(), "{run}: {said}");
        assert_eq!(said["input"], *row.input, "{run}: {said}");
        assert_eq!(said.get("output"), row.output.as_deref(), "{run}: {said}");
        assert!(said["finished_at"].is_string(), "{run} has ended: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_reports_the_fold_of_the_journal() {
    let server = Server::start(&["--durability", "fast"]).await;
    let client = server.client();
    let mut dice = Dice(20_26);
    let mut begun = Vec::new();
    let mut troubling = tokio::task::JoinSet::new();
    for n in 0..FLOWS {
        let (name, definition) = (format!("flow-{n}"), dice.flow());
        let plan = compile_value(definition.clone(), Strictness::Strict).plan.unwrap();
        publish(&client, &name, definition).await;
        for _ in 0..RUNS_OF_EACH {
            let run = start(&client, &name, json!({"items": [1, 2, 3], "word": "rope"})).await;
            let (client, seed, told) = (client.clone(), dice.roll(u64::from(u32::MAX)), run.clone());
            troubling.spawn(async move { trouble(&client, &told, seed).await });
            begun.push((run, plan.clone()));
        }
    }
    // One is canceled for certain, however late the others are told to.
    let held =
        json!({"start": "n0", "nodes": {"n0": {"kind": "wait_event", "params": {"signal_key": "never"}}}});
    let plan = compile_value(held.clone(), Strictness::Strict).plan.unwrap();
    publish(&client, "held", held).await;
    let run = start(&client, "held", json!({})).await;
    post(&client, &format!("/api/v1/runs/{run}/cancel"), json!({})).await;
    begun.push((run, plan));
    while let Some(ended) = troubling.join_next().await {
        ended.unwrap();
    }
    let mut endings = BTreeMap::new();
    for (run, plan) in &begun {
        check(&client, run, plan).await;
        let run = client.runs().show(run).await.unwrap();
        *endings.entry(run.summary.status).or_insert(0) += 1;
    }
    assert!(endings.len() == 3, "runs of every ending were looked at: {endings:?}");
    // Another process that reads the same store says the same.
    let before: Vec<Value> = said(&client, &begun).await;
    let mut server = server;
    server.kill();
    server.spawn();
    server.ready().await;
    assert_eq!(said(&client, &begun).await, before);
}

async fn said(client: &Client, begun: &[(String, std::sync::Arc<Plan>)]) -> Vec<Value> {
    let mut answers = Vec::new();
    for (run, _) in begun {
        answers.push(get(client, &format!("/api/v1/runs/{run}")).await);
    }
    answers
}
