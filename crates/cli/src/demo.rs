//! `windlass demo`: a demonstration of the scheduler API. It publishes a flow with two branches, runs both, polls them
//! until they end, and prints results and node runs.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_sdk::{Client, ClientError};

use crate::exit::{Exit, timed_out};
use crate::output;
use crate::session::{GlobalArgs, Session, cut, duration};

/// The pause between two polls of a task.
const POLL: Duration = Duration::from_millis(50);
/// Services that the flow calls.
const SERVICES: [&str; 2] = ["route", "transform"];
/// Characters of a value that a row shows.
const VALUE_CHARS: usize = 60;

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Stop waiting after this time: 30s, 2m.
    #[arg(long, default_value = "30s", value_parser = duration)]
    timeout: Duration,
}

pub(crate) async fn run(flags: &DemoArgs, options: &GlobalArgs) -> Result<Exit> {
    let session = options.session()?;
    for service in SERVICES {
        check_worker(&session.client, service).await?;
    }
    let flow = publish(&session.client).await?;
    let mut endings = Vec::new();
    for (branch, action) in [("B", "goB"), ("C", "goC")] {
        let params = json!({ "action": action, "text": "hello from windlass", "number": 21 });
        let body = json!({ "FlowID": flow, "Version": 0, "ParamsJSON": params.to_string() });
        let task = create(&session.client, "/api/tasks", &body).await?;
        output::message(&format!("branch {branch}: task {task}"));
        let ended = poll(&session.client, &task, flags.timeout).await?;
        let runs: Vec<Value> = get(&session.client, &format!("/api/tasks/runs?task_id={task}")).await?;
        endings.push(json!({ "branch": branch, "task": ended, "node_runs": runs }));
    }
    print(&endings, &session)?;
    let all_completed = endings.iter().all(|ending| ending["task"]["status"] == "completed");
    Ok(if all_completed { Exit::Done } else { Exit::Failed })
}

async fn check_worker(client: &Client, service: &str) -> Result<()> {
    let workers: Vec<Value> = get(client, &format!("/api/workers/list?service={service}")).await?;
    if workers.is_empty() {
        bail!(
            "no worker serves `{service}`: start one beside this with\n  windlass worker --server {}",
            client.base()
        );
    }
    Ok(())
}

async fn publish(client: &Client) -> Result<String> {
    let body = json!({ "Name": "demo", "Description": "two branches, chosen by a worker" });
    let flow = create(client, "/api/flows", &body).await?;
    let version = json!({
        "FlowID": flow, "Version": 1, "DefinitionJSON": definition().to_string(), "Status": "published",
    });
    create(client, "/api/flows/version", &version).await?;
    output::message(&format!("published {flow}"));
    Ok(flow)
}

fn definition() -> Value {
    json!({
        "start": "A",
        "nodes": {
            "A": {"kind": "executor", "service": "route", "post": {"action_key": "action", "output_key": "route"}},
            "B": {
                "kind": "executor", "service": "transform", "params": {"op": "upper"},
                "prep": {"input_key": "$params.text"}, "post": {"output_key": "result"}
            },
            "C": {
                "kind": "executor", "service": "transform", "params": {"mul": 2},
                "prep": {"input_key": "$params.number"}, "post": {"output_key": "result"}
            }
        },
        "edges": [
            {"from": "A", "action": "goB", "to": "B"},
            {"from": "A", "action": "goC", "to": "C"}
        ]
    })
}

async fn poll(client: &Client, task: &str, at_most: Duration) -> Result<Value> {
    let began = Instant::now();
    loop {
        let seen: Value = get(client, &format!("/api/tasks/get?id={task}")).await?;
        let status = seen["status"].as_str().unwrap_or_default();
        if matches!(status, "completed" | "failed" | "canceled") {
            return Ok(seen);
        }
        if began.elapsed() >= at_most {
            return Err(timed_out(format!(
                "task {task} is still {status} after {at_most:?}: is the worker alive?\n  windlass doctor"
            )));
        }
        tokio::time::sleep(POLL).await;
    }
}

fn print(endings: &[Value], session: &Session) -> Result<()> {
    let word = |value: &Value, field: &str| match &value[field] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    session.out.list(
        ["branch", "task", "status", "shared"],
        endings,
        |ending| word(&ending["task"], "id"),
        |ending| {
            let task = &ending["task"];
            let shared = cut(&word(task, "shared_json"), VALUE_CHARS);
            [word(ending, "branch"), word(task, "id"), word(task, "status"), shared]
        },
    )?;
    if session.out.quiet || session.out.format() != output::OutputFormat::Table {
        return Ok(());
    }
    let rows: Vec<[String; 6]> = endings
        .iter()
        .flat_map(|ending| ending["node_runs"].as_array().into_iter().flatten().map(move |run| (ending, run)))
        .map(|(ending, run)| {
            [
                word(ending, "branch"),
                word(run, "node_key"),
                word(run, "attempt_no"),
                word(run, "status"),
                word(run, "worker_id"),
                cut(&word(run, "exec_output_json"), VALUE_CHARS),
            ]
        })
        .collect();
    output::line("")?;
    session.out.table(["branch", "node", "attempt", "status", "worker", "output"], &rows)
}

/// Creates something and returns its id.
async fn create(client: &Client, path: &str, body: &Value) -> Result<String> {
    let (status, text) = client.raw("POST", path, Some(body)).await?;
    let answer: Value = decode(client, path, status, &text)?;
    let id = answer["id"].as_str().map(str::to_owned);
    id.ok_or_else(|| anyhow!("{path} answered without an id: {text}"))
}

async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T> {
    let (status, text) = client.raw("GET", path, None).await?;
    decode(client, path, status, &text)
}

fn decode<T: DeserializeOwned>(client: &Client, path: &str, status: u16, text: &str) -> Result<T> {
    if (200..300).contains(&status)
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let why = body["error"].as_str().unwrap_or(text);
    Err(ClientError {
        status: Some(status),
        code: "refused".to_owned(),
        detail: format!("{}{path} answered {status}: {}", client.base(), cut(why, 200)),
        errors: Vec::new(),
        retry_after: None,
    }
    .into())
}
