//! The push loop and the client's errors, against a server that speaks the contract.

use std::time::Duration;

use crate::fake::Fake;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_sdk::worker::{HandlerOutcome, ServiceCall, bind};
use windlass_sdk::{Client, Worker};

/// A worker that is called as the server would.
async fn pushed(worker: impl FnOnce(Worker) -> Worker) -> (std::sync::Arc<Fake>, Client, CancellationToken) {
    let (fake, client) = Fake::start().await;
    let (listener, url) = bind("http://127.0.0.1:0").await.unwrap();
    let shutdown = CancellationToken::new();
    let worker = worker(Worker::new(client, "w-push").push_only()).listen(listener, &url);
    tokio::spawn(worker.run(shutdown.clone()));
    fake.until("registered", |state| !state.registered.is_empty()).await;
    assert_eq!(fake.state.lock().unwrap().registered[0]["url"], json!(url));
    (fake, Client::new(&url).unwrap(), shutdown)
}

async fn exec(client: &Client, service: &str, body: Value) -> (u16, Value) {
    let (status, text) = client.raw("POST", &format!("/exec/{service}"), Some(&body)).await.unwrap();
    (status, serde_json::from_str(&text).unwrap())
}

#[tokio::test]
async fn calls_are_answered_in_the_words_of_the_protocol() {
    let (_fake, client, shutdown) = pushed(|worker| {
        worker
            .service("double", |call: ServiceCall| async move {
                let n = call.input.as_i64().ok_or("not a number")?;
                Ok::<_, &str>(json!(n * call.params["by"].as_i64().unwrap_or(2)))
            })
            .service("later", |call: ServiceCall| async move {
                match call.memo {
                    None => HandlerOutcome::Suspended {
                        memo: json!({"job": 1}),
                        recheck: Some(Duration::from_millis(5)),
                    },
                    Some(memo) => HandlerOutcome::Done(memo),
                }
            })
    })
    .await;
    let (status, body) = exec(&client, "double", json!({"input": 4, "params": {"by": 3}})).await;
    assert_eq!((status, body), (200, json!({"result": 12, "error": ""})));
    let (status, body) = exec(&client, "double", json!({"input": "x"})).await;
    assert_eq!((status, &body["error"], &body["retryable"]), (200, &json!("not a number"), &json!(true)));
    let (_, body) = exec(&client, "later", json!({"input": null})).await;
    assert_eq!(body, json!({"suspend": {"memo": {"job": 1}, "recheck_ms": 5}}));
    let (_, body) = exec(&client, "later", json!({"input": null, "memo": {"job": 1}})).await;
    assert_eq!(body["result"], json!({"job": 1}));
    assert_eq!(exec(&client, "nobody", json!({})).await.0, 404);
    assert_eq!(exec(&client, "double", json!(7)).await.0, 400);
    shutdown.cancel();
}

#[tokio::test]
async fn a_server_that_hangs_up_cancels_the_call() {
    let cancelled = CancellationToken::new();
    let (begun, seen) = (CancellationToken::new(), cancelled.clone());
    let started = begun.clone();
    let (_fake, client, shutdown) = pushed(|worker| {
        worker.service("wait", move |call: ServiceCall| {
            let (seen, started) = (seen.clone(), started.clone());
            async move {
                started.cancel();
                call.cancel.cancelled().await;
                seen.cancel();
                Value::Null
            }
        })
    })
    .await;
    let asking = tokio::spawn(async move { exec(&client, "wait", json!({})).await });
    begun.cancelled().await;
    asking.abort();
    tokio::time::timeout(Duration::from_secs(10), cancelled.cancelled()).await.unwrap();
    shutdown.cancel();
}

#[tokio::test]
async fn a_forgotten_worker_registers_again() {
    let (fake, _client, shutdown) = pushed(|worker| worker.beat_every(Duration::from_millis(20))).await;
    fake.change(|state| state.known = false);
    fake.until("registered again", |state| state.registered.len() == 2).await;
    shutdown.cancel();
}

#[tokio::test]
async fn errors_keep_code_fields_and_hints() {
    let (_fake, client) = Fake::start().await;
    let error = client.flows().show("nope").await.unwrap_err();
    assert_eq!((error.status, error.code.as_str()), (Some(404), "unknown_flow"));
    assert_eq!(error.errors[0].hint.as_deref(), Some("did you mean `hope`?"));
    let error = client.runs().show("run_1").await.unwrap_err();
    assert_eq!(error.code, "not_found");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let (listener, url) = bind("http://127.0.0.1:0").await.unwrap();
    drop(listener);
    let error = Client::new(&url).unwrap().flows().show("any").await.unwrap_err();
    assert_eq!((error.status, error.code.as_str()), (None, "unreachable"));
    assert!(error.is_temporary() && error.detail.contains(&url), "{error}");
}
