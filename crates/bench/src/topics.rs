//! The cost of live topics: runs per second with a client that follows a hundred changing runs, and without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_sdk::Client;
use windlass_sdk::contract::{FlowRequest, RunRequest, Signal};

use super::BenchPlan;
use super::embedded::{EmbeddedServer, chain, function};
use super::report::Measurement;

/// Runs that the client follows.
const TOPICS: usize = 100;
/// The pause between two changes of each of these runs.
const CHANGE_INTERVAL: Duration = Duration::from_secs(1);
/// Turns of one round.
const TURNS: u32 = 10;

/// Runs per second without a client and with one, in turns on one store, and their ratio.
pub(crate) async fn topics(plan: &BenchPlan) -> Result<[Measurement; 4]> {
    let store = plan.stores.new_store("topics").await?;
    let server = Arc::new(EmbeddedServer::make(plan, &store, "bench", &chain(3, function)).await?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let client = Client::new(&format!("http://{}", listener.local_addr()?))?;
    let (stop, options) = (CancellationToken::new(), windlass_server::Options::default());
    let serving =
        tokio::spawn(windlass_server::serve(listener, server.runtime().clone(), options, stop.clone()));
    let runs = waiting_runs(&client).await?;
    let changing = tokio::spawn(change(client.clone(), runs.clone(), stop.clone()));
    let n_events = Arc::new(AtomicU64::new(0));
    server.many(plan.at_once, plan.round / 4).await?;
    let (mut off, mut on, mut ratios, mut events) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let (mut without, mut with) = (0.0, 0.0);
        n_events.store(0, Ordering::Relaxed);
        // In short turns, so that both meet the same machine, which is another one from second to second.
        for _ in 0..TURNS {
            without += server.many(plan.at_once, plan.round / TURNS).await?;
            let following = tokio::spawn(follow(client.clone(), runs.clone(), n_events.clone()));
            with += server.many(plan.at_once, plan.round / TURNS).await?;
            following.abort();
        }
        let turns = f64::from(TURNS);
        off.push(without / turns);
        on.push(with / turns);
        ratios.push(with / without);
        events.push(n_events.load(Ordering::Relaxed) as f64 / plan.round.as_secs_f64());
    }
    stop.cancel();
    changing.await??;
    serving.await??;
    server.close().await;
    let what = format!("runs of 3 steps, {} at once", plan.at_once);
    Ok([
        Measurement::new(format!("{what}, no stream"), "runs/s", off),
        Measurement::new(format!("{what}, one stream of {TOPICS} run topics"), "runs/s", on),
        Measurement::new("with the stream against without it", "×", ratios),
        Measurement::new("events of the stream", "events/s", events),
    ])
}

/// Runs that wait, and change whenever they get a signal.
async fn waiting_runs(client: &Client) -> Result<Vec<String>> {
    let definition =
        json!({"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "end"}}}});
    let flow =
        FlowRequest { name: "waits".to_owned(), definition: Some(definition), ..FlowRequest::default() };
    client.flows().create(&flow).await.context("the flow cannot be published")?;
    let mut runs = Vec::with_capacity(TOPICS);
    for _ in 0..TOPICS {
        runs.push(client.runs().start("waits", &RunRequest::default()).await?.id);
    }
    Ok(runs)
}

/// Changes every run once in each interval.
async fn change(client: Client, runs: Vec<String>, stop: CancellationToken) -> Result<()> {
    let pause = CHANGE_INTERVAL / u32::try_from(runs.len()).unwrap_or(1);
    for n in 0_u64.. {
        let run = &runs[usize::try_from(n).unwrap_or_default() % runs.len()];
        let signal = Signal { key: "tick".to_owned(), value: json!(n), id: None, by: None };
        client.runs().signal(run, &signal).await?;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => break,
        }
    }
    Ok(())
}

/// Reads the stream and counts its events.
async fn follow(client: Client, runs: Vec<String>, n_events: Arc<AtomicU64>) -> Result<()> {
    let mut topics: Vec<String> = runs.iter().map(|run| format!("run:{run}")).collect();
    topics.push("runs".to_owned());
    let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
    let mut stream = client.topics(&topics, None).await?;
    while stream.next().await?.is_some() {
        n_events.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
