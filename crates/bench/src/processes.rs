//! Server and worker processes over HTTP, as users run them.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use windlass_sdk::Client;
use windlass_sdk::contract::{FlowRequest, RunRequest, RunStatus};

use super::cpu_quota::CpuQuota;
use super::embedded::{EmbeddedServer, chain};
use super::history;
use super::report::Measurement;
use super::store_factory::BenchStore;
use super::{BenchPlan, rounds};

/// How long a process may take to be ready.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long one run is awaited.
const RUN_TIMEOUT: Duration = Duration::from_secs(30);

/// A process of this program, killed at the end.
pub(crate) struct ChildProcess {
    child: Child,
    share: Option<CpuQuota>,
}

impl ChildProcess {
    pub(crate) fn start(args: &[&str]) -> Result<ChildProcess> {
        let this = std::env::current_exe().context("cannot find this program")?;
        let child = Command::new(this)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start this program again")?;
        Ok(ChildProcess { child, share: None })
    }

    /// Limits the process to `percent` hundredths of a processor.
    fn limit(&mut self, percent: u32) -> Result<()> {
        self.share = Some(CpuQuota::give(self.child.id(), percent)?);
        Ok(())
    }

    /// A line of the process status about memory, in MB.
    fn memory(&self, line: &str) -> Result<f64> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))?;
        let found = text.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
        let kb = found.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        kb.map(|kb| kb / 1_024.0).with_context(|| format!("{path} does not say {line}"))
    }
}

/// The processor time of a process so far, in milliseconds.
pub(crate) fn processor(process: u32) -> Result<f64> {
    /// The clock tick of Linux.
    const TICK_MS: f64 = 10.0;
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))?;
    // The name of the program comes second, in brackets, and may have spaces in it.
    let (_, rest) = text.rsplit_once(')').with_context(|| format!("{path} names no program"))?;
    // Eleven other fields follow, then user time and system time.
    let ticks = rest.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? * TICK_MS)
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A server, and a client that speaks to it.
pub(crate) struct ServerProcess {
    process: ChildProcess,
    pub(crate) client: Client,
    pub(crate) url: String,
    took: Duration,
}

impl ServerProcess {
    pub(crate) async fn start(plan: &BenchPlan, store: &BenchStore) -> Result<ServerProcess> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let (listen, store) = (format!("127.0.0.1:{port}"), store.address());
        let url = format!("http://{listen}");
        let client = Client::new(&url)?;
        let begun = Instant::now();
        let durability = plan.durability.word();
        let mut process = ChildProcess::start(&[
            "serve",
            "--listen",
            &listen,
            "--store",
            &store,
            "--durability",
            durability,
        ])?;
        if let Some(percent) = plan.server_share {
            process.limit(percent)?;
        }
        while !matches!(client.raw("GET", "/readyz", None).await, Ok((200, _))) {
            ensure!(begun.elapsed() < READY_TIMEOUT, "the server at {url} does not get ready");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(ServerProcess { process, client, url, took: begun.elapsed() })
    }

    /// The most memory that it had so far, in MB, and the processor time that it took, in milliseconds.
    pub(crate) fn usage(&self) -> Result<(f64, f64)> {
        Ok((self.process.memory("VmHWM")?, processor(self.process.child.id())?))
    }

    async fn publish(&self, definition: &Value) -> Result<()> {
        self.publish_as("bench", definition).await
    }

    pub(crate) async fn publish_as(&self, name: &str, definition: &Value) -> Result<()> {
        let flow: FlowRequest = serde_json::from_value(json!({"name": name, "definition": definition}))?;
        self.client.flows().create(&flow).await?;
        Ok(())
    }

    async fn many(&self, at_once: usize, at_least: Duration) -> Result<f64> {
        many_runs(&self.client, at_once, at_least).await
    }
}

/// Completed runs of the flow `bench` per second, `at_once` in parallel, for `at_least`.
pub(crate) async fn many_runs(client: &Client, at_once: usize, at_least: Duration) -> Result<f64> {
    let run = RunRequest { params: json!({"x": 1}).as_object().cloned(), ..RunRequest::default() };
    let (run, done, begun) = (Arc::new(run), Arc::new(AtomicU64::new(0)), Instant::now());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..at_once {
        let (client, run, done) = (client.clone(), run.clone(), done.clone());
        tasks.spawn(async move {
            while begun.elapsed() < at_least {
                let ended = client.runs().start_and_wait("bench", &run, RUN_TIMEOUT).await?;
                ensure!(ended.status == RunStatus::Completed, "{} is {}", ended.id, ended.status.word());
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64())
}

/// Runs of three steps made by a pull worker in another process.
pub(crate) async fn worker(plan: &BenchPlan) -> Result<Measurement> {
    let server = ServerProcess::start(plan, &plan.stores.new_store("worker").await?).await?;
    let queued = |input: &str, output: &str| {
        json!({
            "exec_type": "queue", "service": "transform", "params": {"mul": 2},
            "prep": {"input_key": input}, "post": {"output_key": output},
        })
    };
    server.publish(&chain(3, queued)).await?;
    let worker = ["worker", "--pull-only", "--slots", "1000", "--server", &server.url];
    let _worker = ChildProcess::start(&worker)?;
    server.many(plan.at_once, plan.round / 4).await?;
    let what = format!("runs of 3 steps by a pull worker over HTTP, {} at once", plan.at_once);
    rounds(plan, &what, "runs/s", |_| server.many(plan.at_once, plan.round)).await
}

/// Memory of a server: idle, and the most it had under load.
pub(crate) async fn memory(plan: &BenchPlan) -> Result<[Measurement; 2]> {
    let echo = |input: &str, output: &str| {
        json!({
            "exec_type": "local_func", "func": "echo",
            "prep": {"input_key": input}, "post": {"output_key": output},
        })
    };
    let (mut idle, mut most) = (Vec::new(), Vec::new());
    for nth in 0..plan.rounds {
        let store = plan.stores.new_store(&format!("memory-{nth}")).await?;
        let server = ServerProcess::start(plan, &store).await?;
        server.publish(&chain(3, echo)).await?;
        idle.push(server.process.memory("VmRSS")?);
        server.many(plan.at_once, plan.round).await?;
        most.push(server.process.memory("VmHWM")?);
    }
    Ok([
        Measurement::new("server, idle, resident", "MB", idle),
        Measurement::new("server, under load, most", "MB", most),
    ])
}

/// From the start of the process until it takes work.
pub(crate) async fn startup(plan: &BenchPlan) -> Result<[Measurement; 2]> {
    let once = |nth: usize| async move {
        let store = plan.stores.new_store(&format!("empty-{nth}")).await?;
        let server = ServerProcess::start(plan, &store).await?;
        Ok(server.took.as_secs_f64() * 1_000.0)
    };
    let empty = rounds(plan, "start to ready, empty store", "ms", once).await?;
    let store = plan.stores.new_store("startup").await?;
    let waits = json!({"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "go"}}}});
    let n_open = plan.n_history / 10;
    EmbeddedServer::leave(plan, &store, "open", &waits, n_open).await?;
    history::load(plan, &store, plan.n_history).await?;
    let what = format!("start to ready, {} finished and {n_open} open runs", plan.n_history);
    let again = |_| async {
        let server = ServerProcess::start(plan, &store).await?;
        Ok(server.took.as_secs_f64() * 1_000.0)
    };
    Ok([empty, rounds(plan, &what, "ms", again).await?])
}
