//! Servers that are killed, stopped for longer than they may be silent, and restarted one after another.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use windlass_sdk::worker::ServiceCall;
use windlass_sdk::{Client, Worker};

use super::load::Load;
use super::{Cluster, says_ready};
use crate::http::{ends, journal, seen, start};
use crate::server::publish;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_are_killed_and_restarted_in_turn_lose_nothing() {
    let mut cluster = Cluster::start(3).await;
    let load = Load::begin(&cluster).await;
    for nth in 0..6 {
        load.goes_on(4).await;
        cluster.servers[nth % 3].kill();
        // Long enough for others to be asked meanwhile.
        load.goes_on(2).await;
        cluster.servers[nth % 3].spawn();
        cluster.servers[nth % 3].ready().await;
    }
    for server in &mut cluster.servers {
        assert!(server.terminate().success(), "{}", server.log());
        server.spawn();
        server.ready().await;
    }
    load.settles(&cluster).await;
}

/// A worker whose service `late` says which attempt it was, and takes its time over the first; tells when that begins.
async fn late_worker(client: &Client, stop: CancellationToken) -> Arc<Notify> {
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let begun = Arc::new(Notify::new());
    let told = begun.clone();
    let worker = Worker::new(client.clone(), "late").push_only().grace(Duration::ZERO).listen(listener, url);
    let worker = worker.service("late", move |call: ServiceCall| {
        let told = told.clone();
        async move {
            if call.attempt == 1 {
                told.notify_one();
                // The client is frozen by then, and finds the response when it goes on.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            json!(call.attempt)
        }
    });
    tokio::spawn(worker.run(stop));
    begun
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_frozen_for_longer_than_it_may_be_silent_does_no_harm_when_it_goes_on() {
    let cluster = Cluster::start(3).await;
    let load = Load::begin(&cluster).await;
    let (frozen, other) = (cluster.client(0), cluster.client(1));
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    let begun = late_worker(&other, stop).await;
    let node = json!({"service": "late", "max_retries": 3, "wait_ms": 1, "post": {"output_key": "out"}});
    publish(&other, "late", json!({"start": "a", "nodes": {"a": node}, "edges": []})).await;
    seen("the worker at the server that will be frozen", async || {
        let workers = frozen.workers().all().await.unwrap();
        workers.iter().any(|worker| worker.id == "late").then_some(())
    })
    .await;
    let run = start(&frozen, "late", json!({})).await;
    begun.notified().await;
    cluster.servers[0].freeze(true);
    // The others notice that it is silent, make its call again, and go on.
    let ended = ends(&other, &run, "completed").await;
    assert_eq!(ended["shared"]["out"], 2, "{ended}");
    load.goes_on(10).await;
    cluster.servers[0].freeze(false);
    says_ready(&frozen, true).await;
    // The answer to its own call was there when it went on, and is refused.
    load.goes_on(5).await;
    let events = journal(&frozen, &run).await;
    let of = |word: &str| events.iter().filter(|event| event["e"] == word).count();
    assert_eq!((of("granted"), of("done"), of("ended")), (2, 1, 1), "{events:?}");
    assert_eq!(ends(&frozen, &run, "completed").await["shared"]["out"], 2);
    load.settles(&cluster).await;
}
