//! The list of runs over a long history: the requests that the console's page sends when it opens, over HTTP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_sdk::Client;
use windlass_sdk::contract::{RunCountsQuery, RunsQuery};

use super::BenchPlan;
use super::embedded::{EmbeddedServer, chain, function};
use super::history;
use super::report::Measurement;
use super::steps::percentiles;

/// Openings of the page in one round; the first of them meets a server that has just started.
const OPENINGS: usize = 40;
/// Pages that a reader turns before the measured page in the middle.
const TURNED: usize = 20;

/// The times of all openings, by request.
#[derive(Default)]
struct ListSamples {
    page: Vec<Duration>,
    counts: Vec<Duration>,
    filtered: Vec<Duration>,
    later: Vec<Duration>,
    whole: Vec<Duration>,
}

/// Opens the list of runs of a store with a long history, and says how long its requests take.
pub(crate) async fn lists(plan: &BenchPlan) -> Result<Vec<Measurement>> {
    let store = plan.stores.new_store("lists").await?;
    history::load(plan, &store, plan.n_history).await?;
    let mut samples = ListSamples::default();
    let mut first = Vec::new();
    for round in 0..plan.rounds {
        let flow = format!("lists-{round}");
        let server = Arc::new(EmbeddedServer::make(plan, &store, &flow, &chain(3, function)).await?);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let client = Client::new(&format!("http://{}", listener.local_addr()?))?;
        let (stop, options) = (CancellationToken::new(), windlass_server::Options::default());
        let serving =
            tokio::spawn(windlass_server::serve(listener, server.runtime().clone(), options, stop.clone()));
        let middle = middle(&client).await?;
        for nth in 0..OPENINGS {
            let took = samples.open(&client, &middle).await?;
            if nth == 0 {
                first.push(took.as_secs_f64() * 1_000.0);
            }
        }
        stop.cancel();
        serving.await??;
        server.close().await;
        if round + 1 < plan.rounds {
            // The next server must be the only user of the store.
            store.settled().await?;
        }
    }
    let after = format!("of {} runs", plan.n_history);
    let mut figures =
        vec![Measurement::new(format!("list {after}, first opening after a start"), "ms", first)];
    for (what, took) in [
        ("page and counts together", samples.whole),
        ("newest page", samples.page),
        ("counts by status", samples.counts),
        ("failed runs of a flow", samples.filtered),
        ("a page further down", samples.later),
    ] {
        let (middle, late) = percentiles(took);
        figures.push(Measurement::new(format!("list {after}, {what}, p50"), "ms", vec![middle]));
        figures.push(Measurement::new(format!("list {after}, {what}, p99"), "ms", vec![late]));
    }
    Ok(figures)
}

/// The cursor of a page behind the newest ones.
async fn middle(client: &Client) -> Result<String> {
    let mut query = RunsQuery { limit: Some(50), ..RunsQuery::default() };
    for _ in 0..TURNED {
        match client.runs().list(&query).await?.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    query.cursor.context("the store has one page of runs only")
}

impl ListSamples {
    async fn open(&mut self, client: &Client, middle: &str) -> Result<Duration> {
        let newest = RunsQuery { limit: Some(50), ..RunsQuery::default() };
        let by_status = RunCountsQuery::default();
        let begun = Instant::now();
        let runs = client.runs();
        // The page sends both at once.
        let (page, counts) = tokio::join!(timed(runs.list(&newest)), timed(runs.counts(&by_status)));
        let whole = begun.elapsed();
        let ((page, page_took), (_, counts_took)) = (page?, counts?);
        ensure!(page.items.len() == 50, "the newest page has {} runs", page.items.len());
        let query = Some("status:failed flow:history".to_owned());
        let (_, filtered) = timed(runs.list(&RunsQuery { query, ..newest.clone() })).await?;
        let cursor = Some(middle.to_owned());
        let (_, later) = timed(runs.list(&RunsQuery { cursor, ..newest })).await?;
        self.whole.push(whole);
        self.page.push(page_took);
        self.counts.push(counts_took);
        self.filtered.push(filtered);
        self.later.push(later);
        Ok(whole)
    }
}

/// An answer, and the time until it was there.
async fn timed<T, E: Into<anyhow::Error>>(
    request: impl Future<Output = Result<T, E>>,
) -> Result<(T, Duration)> {
    let begun = Instant::now();
    let answer = request.await.map_err(Into::into)?;
    Ok((answer, begun.elapsed()))
}
