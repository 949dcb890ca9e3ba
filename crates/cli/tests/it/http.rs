//! Plain HTTP requests to a server, and polling until a condition holds.

use std::future::Future;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_sdk::Client;
use windlass_sdk::contract::PageQuery;

use crate::server::{PATIENCE, with_params};

/// Sends a request; returns the status and the body, as a string if it is no JSON.
pub(crate) async fn ask(client: &Client, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let (status, text) = client.raw(method, path, body.as_ref()).await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Sends a request that must be answered with this status.
pub(crate) async fn expect(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<Value>,
    status: u16,
) -> Value {
    let (found, answer) = ask(client, method, path, body).await;
    assert_eq!(found, status, "{method} {path}: {answer}");
    answer
}

pub(crate) async fn get(client: &Client, path: &str) -> Value {
    expect(client, "GET", path, None, 200).await
}

pub(crate) async fn post(client: &Client, path: &str, body: Value) -> Value {
    expect(client, "POST", path, Some(body), 200).await
}

/// Starts a run; its id.
pub(crate) async fn start(client: &Client, flow: &str, params: Value) -> String {
    client.runs().start(flow, &with_params(&params)).await.unwrap().id
}

/// Polls until `look` finds something.
pub(crate) async fn seen<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "never seen: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until a node of a run is in this state; the run then.
pub(crate) async fn node_is(client: &Client, run: &str, node: &str, status: &str) -> Value {
    seen(&format!("{node} of {run} {status}"), async || {
        let run = get(client, &format!("/api/v1/runs/{run}")).await;
        (run["node_states"][node]["status"] == status).then_some(run)
    })
    .await
}

/// Waits until a run has ended so; the run then.
pub(crate) async fn ends(client: &Client, run: &str, status: &str) -> Value {
    let ended = client.runs().wait(run, Some(PATIENCE)).await.unwrap();
    let ended = json!(ended.unwrap_or_else(|| panic!("{run} did not end")));
    assert_eq!(ended["status"], status, "{run}: {ended}");
    ended
}

/// Everything that happened to a run.
pub(crate) async fn journal(client: &Client, run: &str) -> Vec<Value> {
    let mut events = Vec::new();
    let mut page = PageQuery::default();
    loop {
        let part = client.runs().journal(run, &page).await.unwrap();
        events.extend(part.items.into_iter().flat_map(|entry| entry.events));
        match part.next {
            Some(next) => page.cursor = Some(next),
            None => return events,
        }
    }
}
