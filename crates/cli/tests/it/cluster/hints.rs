//! Changes at one server are visible at the others at once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_sdk::contract::Signal;

use super::Cluster;
use crate::http::{expect, seen, start};
use crate::kill::{CallCounts, calls, waits, worker};
use crate::server::publish;

/// Hints arrive within this time, on a busy machine too; polling takes half a minute.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_at_one_server_is_visible_at_another_at_once() {
    let cluster = Cluster::start(2).await;
    let (here, there) = (cluster.client(0), cluster.client(1));
    publish(&here, "waits", waits()).await;
    let run = start(&here, "waits", json!({"items": [1]})).await;
    let mut events = there.runs().events(&run, None).await.unwrap();
    let mut all = there.events(None).await.unwrap();
    let signal: Signal = serde_json::from_value(json!({"key": "go", "value": true})).unwrap();
    here.runs().signal(&run, &signal).await.unwrap();
    let begun = Instant::now();
    while events.next().await.unwrap().expect("the stream goes on to the end of the run").event != "end" {}
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let change = tokio::time::timeout(SOON, all.next()).await.expect("it is told").unwrap().unwrap();
    assert!(change.data.contains(&run), "{}", change.data);

    let waiting = tokio::spawn({
        let there = there.clone();
        async move { expect(&there, "POST", "/api/v1/jobs/claim", Some(claim()), 200).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let task = json!({"name": "work", "type": "immediate", "queue_name": "q"});
    expect(&here, "POST", "/api/v1/tasks", Some(task), 201).await;
    let claimed =
        tokio::time::timeout(SOON, waiting).await.expect("it does not wait for what is there").unwrap();
    assert_eq!(claimed["jobs"].as_array().unwrap().len(), 1, "{claimed}");

    // A worker that registers with one is called by the other.
    let (asked, stop) = (CallCounts::default(), CancellationToken::new());
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let working =
        tokio::spawn(worker(here.clone(), "doubler", &asked).listen(listener, url).run(stop.clone()));
    seen("the worker", async || {
        let workers = there.workers().all().await.unwrap();
        (!workers.is_empty()).then_some(())
    })
    .await;
    publish(&here, "push", calls("http")).await;
    let run = start(&there, "push", json!({"x": 1})).await;
    let ended =
        tokio::time::timeout(SOON, there.runs().wait(&run, None)).await.expect("it is called").unwrap();
    assert_eq!(ended.unwrap().shared["c"], json!(8));
    stop.cancel();
    working.await.unwrap().unwrap();
}

fn claim() -> Value {
    json!({"worker_id": "w", "queues": ["q"], "wait_ms": 20_000})
}
