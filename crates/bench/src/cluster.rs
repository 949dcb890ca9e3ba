//! Several servers on one store: the same load on one, two and three servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::task::JoinSet;
use windlass_sdk::Client;
use windlass_sdk::contract::FlowRequest;

use super::BenchPlan;
use super::connection::HttpConnection;
use super::embedded::chain;
use super::jobs::{self, BATCH};
use super::processes::{ChildProcess, ServerProcess};
use super::report::Measurement;
use super::steps::percentiles;

/// Servers on one database at most.
const SERVERS: usize = 3;
/// Worker processes, however many servers there are.
const WORKERS: usize = 3;
/// Parallel calls of one worker.
const SLOTS: &str = "700";
const QUEUE: &str = "bench-cluster";
const FUNCTIONS: &str = "bench-functions";
const CALLS: &str = "bench-calls";
/// Claims that samples to nothing because another server was faster.
const LOST: &str = "windlass_claims_lost_total";

/// Servers that share a store, and the workers that serve them. The processes end with it.
struct ServerGroup {
    clients: Vec<Client>,
    servers: Vec<ServerProcess>,
    _workers: Vec<ChildProcess>,
}

impl ServerGroup {
    /// `n` servers on one empty store.
    async fn start(plan: &BenchPlan, n: usize) -> Result<ServerGroup> {
        let store = plan.stores.new_store(&format!("cluster-{n}")).await?;
        let mut servers = Vec::with_capacity(n);
        for _ in 0..n {
            servers.push(ServerProcess::start(plan, &store).await?);
        }
        let clients = servers.iter().map(|server| server.client.clone()).collect();
        ServerGroup::of(clients, servers).await
    }

    /// Servers that run already.
    async fn at(urls: &[String]) -> Result<ServerGroup> {
        let clients = urls.iter().map(|url| Client::new(url)).collect::<Result<Vec<_>, _>>()?;
        ServerGroup::of(clients, Vec::new()).await
    }

    async fn of(clients: Vec<Client>, servers: Vec<ServerProcess>) -> Result<ServerGroup> {
        let first = clients.first().context("there is no server")?;
        for (name, kind) in [(FUNCTIONS, "local_func"), (CALLS, "queue")] {
            let node = |input: &str, output: &str| {
                let mut node = json!({
                    "exec_type": kind, "prep": {"input_key": input}, "post": {"output_key": output},
                });
                if kind == "queue" {
                    (node["service"], node["params"]) = (json!("transform"), json!({"mul": 1}));
                } else {
                    node["func"] = json!("echo");
                }
                node
            };
            let flow: FlowRequest =
                serde_json::from_value(json!({"name": name, "definition": chain(3, node)}))?;
            // A flow of an earlier benchmark stays as it is.
            let made = first.flows().create(&flow).await;
            ensure!(!made.as_ref().is_err_and(|error| error.status != Some(409)), "{made:?}");
        }
        let mut workers = Vec::with_capacity(WORKERS);
        for nth in 0..WORKERS {
            let server = clients[nth % clients.len()].base();
            let fixed = ["worker", "--pull-only", "--demo", "--slots", SLOTS, "--queues", QUEUE, "--server"];
            workers.push(ChildProcess::start(&[&fixed[..], &[server]].concat())?);
        }
        Ok(ServerGroup { clients, servers, _workers: workers })
    }

    /// The nth caller's server.
    fn client(&self, nth: usize) -> &Client {
        &self.clients[nth % self.clients.len()]
    }

    /// Completed runs of a flow per second, `at_once` in parallel.
    async fn runs(&self, flow: &str, at_once: usize, at_least: Duration) -> Result<f64> {
        let (done, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let mut tasks = JoinSet::new();
        for nth in 0..at_once {
            let mut connection = HttpConnection::to(self.client(nth).base()).await?;
            let (done, flow) = (done.clone(), flow.to_owned());
            tasks.spawn(async move {
                while begun.elapsed() < at_least {
                    run(&mut connection, &flow).await?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            });
        }
        while let Some(task) = tasks.join_next().await {
            task??;
        }
        Ok(done.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64())
    }

    /// Runs one at a time, at one server after the other: p50 and p99 in milliseconds.
    async fn latency(&self, n: usize) -> Result<(f64, f64)> {
        let mut took = Vec::with_capacity(n);
        let mut connections = Vec::with_capacity(self.clients.len());
        for client in &self.clients {
            connections.push(HttpConnection::to(client.base()).await?);
        }
        for nth in 0..n {
            let begun = Instant::now();
            let at = nth % connections.len();
            run(&mut connections[at], CALLS).await?;
            took.push(begun.elapsed());
        }
        Ok(percentiles(took))
    }

    /// Creates jobs with parallel callers; returns the jobs per second.
    async fn create(&self, n: usize) -> Result<f64> {
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for nth in 0..jobs::BULK_CALLERS {
            let client = self.client(nth).clone();
            tasks.spawn(async move { jobs::fill(&client, QUEUE, n / jobs::BULK_CALLERS, BATCH).await });
        }
        while let Some(task) = tasks.join_next().await {
            task??;
        }
        Ok(n as f64 / begun.elapsed().as_secs_f64())
    }

    /// How fast the workers empty a queue.
    async fn work(&self, n: usize) -> Result<f64> {
        let begun = Instant::now();
        jobs::pause(self.client(0), QUEUE, false).await?;
        jobs::emptied(self.client(0), QUEUE).await?;
        Ok(n as f64 / begun.elapsed().as_secs_f64())
    }

    /// Claims that samples to nothing so far, at all servers.
    async fn lost(&self) -> Result<f64> {
        let mut sum = 0.0;
        for client in &self.clients {
            let (_, page) = client.raw("GET", "/metrics", None).await?;
            // An older server does not have the metric.
            let lines = page.lines().filter(|line| line.starts_with(LOST));
            sum += lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>();
        }
        Ok(sum)
    }

    /// Processor time of the servers so far, in milliseconds.
    fn processor(&self) -> Result<f64> {
        self.servers.iter().map(|server| Ok(server.usage()?.1)).sum()
    }
}

async fn run(connection: &mut HttpConnection, flow: &str) -> Result<()> {
    let path = format!("/api/v1/flows/{flow}/runs?wait_ms=30000");
    let ended = connection.json(&path, &json!({"params": {"x": 1}})).await?;
    ensure!(ended["status"] == "completed", "not completed: {ended}");
    Ok(())
}

/// The samples of one number of servers.
#[derive(Default)]
struct ClusterSamples {
    functions: Vec<f64>,
    calls: Vec<f64>,
    processor: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    created: Vec<f64>,
    worked: Vec<f64>,
    lost: Vec<f64>,
}

impl ClusterSamples {
    async fn round(&mut self, cluster: &ServerGroup, plan: &BenchPlan) -> Result<()> {
        self.functions.push(cluster.runs(FUNCTIONS, plan.at_once, plan.round).await?);
        let (before, begun) = (cluster.processor()?, Instant::now());
        let rate = cluster.runs(CALLS, plan.at_once, plan.round).await?;
        let n = rate * begun.elapsed().as_secs_f64();
        self.processor.push((cluster.processor()? - before) * 1_000.0 / n);
        self.calls.push(rate);
        let (middle, late) = cluster.latency(plan.n_singles).await?;
        self.p50.push(middle);
        self.p99.push(late);
        jobs::pause(cluster.client(0), QUEUE, true).await?;
        self.created.push(cluster.create(plan.n_jobs).await?);
        let before = cluster.lost().await?;
        self.worked.push(cluster.work(plan.n_jobs).await?);
        self.lost.push((cluster.lost().await? - before) * 1_000.0 / plan.n_jobs as f64);
        Ok(())
    }

    fn figures(&self, at_once: usize, servers: &str, first: Option<&ClusterSamples>) -> Vec<Measurement> {
        let functions = format!("runs of 3 functions over HTTP, {at_once} at once");
        let calls = format!("runs of 3 calls by {WORKERS} worker processes, {at_once} at once");
        let created = format!("jobs created {BATCH} a call, {} callers", jobs::BULK_CALLERS);
        let worked = format!("jobs claimed and finished by {WORKERS} worker processes");
        let mut figures = Vec::new();
        let rates = [
            (functions, "runs/s", &self.functions, first.map(|first| &first.functions)),
            (calls.clone(), "runs/s", &self.calls, first.map(|first| &first.calls)),
            (created, "jobs/s", &self.created, first.map(|first| &first.created)),
            (worked, "jobs/s", &self.worked, first.map(|first| &first.worked)),
        ];
        for (what, unit, values, alone) in rates {
            figures.push(Measurement::new(format!("{what}, {servers}"), unit, values.clone()));
            if let Some(alone) = alone {
                let ratio = values.iter().zip(alone).map(|(many, one)| many / one).collect();
                figures.push(Measurement::new(format!("{what}, {servers} against 1"), "×", ratio));
            }
        }
        let one = "run of 3 calls by a worker, one at a time";
        figures.push(Measurement::new(format!("{one}, {servers}, p50"), "ms", self.p50.clone()));
        figures.push(Measurement::new(format!("{one}, {servers}, p99"), "ms", self.p99.clone()));
        if self.processor.iter().any(|took| *took > 0.0) {
            let what = format!("{calls}, {servers}, processor time of the servers per run");
            figures.push(Measurement::new(what, "µs", self.processor.clone()));
        }
        let lost = format!("claims that another server was faster with, per 1000 jobs, {servers}");
        figures.push(Measurement::new(lost, "claims", self.lost.clone()));
        figures
    }
}

async fn warm_up(cluster: &ServerGroup, plan: &BenchPlan) -> Result<()> {
    for flow in [FUNCTIONS, CALLS] {
        cluster.runs(flow, plan.at_once, plan.round / 4).await?;
    }
    Ok(())
}

fn servers(n: usize) -> String {
    if n == 1 { "1 server".to_owned() } else { format!("{n} servers") }
}

/// One, two and three servers, each number on a database of its own, in turns.
pub(crate) async fn cluster(plan: &BenchPlan) -> Result<Vec<Measurement>> {
    let n_max = if plan.stores.is_database() { SERVERS } else { 1 };
    let mut all = Vec::with_capacity(n_max);
    for n in 1..=n_max {
        let cluster = ServerGroup::start(plan, n).await?;
        warm_up(&cluster, plan).await?;
        all.push((cluster, ClusterSamples::default()));
    }
    for _ in 0..plan.rounds {
        for (cluster, samples) in &mut all {
            samples.round(cluster, plan).await?;
        }
    }
    let alone = all.first().map(|(_, samples)| samples);
    let figures = all.iter().enumerate().flat_map(|(at, (_, samples))| {
        samples.figures(plan.at_once, &servers(at + 1), alone.filter(|_| at > 0))
    });
    Ok(figures.collect())
}

/// Measures servers that run already. Flows and jobs of the benchmark stay there.
pub(crate) async fn running(plan: &BenchPlan, urls: &[String]) -> Result<Vec<Measurement>> {
    let cluster = ServerGroup::at(urls).await?;
    warm_up(&cluster, plan).await?;
    let mut samples = ClusterSamples::default();
    for _ in 0..plan.rounds {
        samples.round(&cluster, plan).await?;
    }
    Ok(samples.figures(plan.at_once, &servers(urls.len()), None))
}
