//! Servers and workers in processes of their own, over HTTP: what a user meets.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use windlass_sdk::Client;
use windlass_sdk::types::{NewFlow, NewRun, RunStatus};

use super::bed::{Bed, chain};
use super::history;
use super::place::Place;
use super::report::Figure;
use super::share::Share;
use super::{Plan, rounds};

/// How long a process may take to be ready.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one start is waited for.
const WAIT: Duration = Duration::from_secs(30);

/// A process of this program, killed at the end.
pub(super) struct Process {
    child: Child,
    share: Option<Share>,
}

impl Process {
    pub(super) fn start(args: &[&str]) -> Result<Process> {
        let this = std::env::current_exe().context("this program cannot be found")?;
        let child = Command::new(this)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("this program cannot be started again")?;
        Ok(Process { child, share: None })
    }

    /// Lets it use so many hundredths of a processor.
    fn limit(&mut self, percent: u32) -> Result<()> {
        self.share = Some(Share::give(self.child.id(), percent)?);
        Ok(())
    }

    /// A line of what the system knows about its memory, in MB.
    fn memory(&self, line: &str) -> Result<f64> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))?;
        let found = text.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
        let kb = found.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        kb.map(|kb| kb / 1_024.0).with_context(|| format!("{path} does not say {line}"))
    }
}

/// How much processor time a process has taken so far, in milliseconds.
pub(super) fn processor(process: u32) -> Result<f64> {
    /// What the system counts in, on every Linux that there is.
    const TICK_MS: f64 = 10.0;
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))?;
    // The name of the program comes second, in brackets, and may have spaces in it.
    let (_, rest) = text.rsplit_once(')').with_context(|| format!("{path} names no program"))?;
    // Then eleven fields about other things, and the time that it spent itself and that was spent for it.
    let ticks = rest.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? * TICK_MS)
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A server, and a client that speaks to it.
pub(super) struct Server {
    process: Process,
    pub(super) client: Client,
    pub(super) url: String,
    took: Duration,
}

impl Server {
    pub(super) async fn start(plan: &Plan, place: &Place) -> Result<Server> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let (listen, store) = (format!("127.0.0.1:{port}"), place.address());
        let url = format!("http://{listen}");
        let client = Client::new(&url)?;
        let begun = Instant::now();
        let durability = plan.durability.word();
        let mut process =
            Process::start(&["serve", "--listen", &listen, "--store", &store, "--durability", durability])?;
        if let Some(percent) = plan.server_share {
            process.limit(percent)?;
        }
        while !matches!(client.raw("GET", "/readyz", None).await, Ok((200, _))) {
            ensure!(begun.elapsed() < PATIENCE, "the server at {url} does not get ready");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(Server { process, client, url, took: begun.elapsed() })
    }

    /// The most memory that it had so far, in MB, and the processor time that it took, in milliseconds.
    pub(super) fn usage(&self) -> Result<(f64, f64)> {
        Ok((self.process.memory("VmHWM")?, processor(self.process.child.id())?))
    }

    async fn publish(&self, definition: &Value) -> Result<()> {
        self.publish_as("bench", definition).await
    }

    pub(super) async fn publish_as(&self, name: &str, definition: &Value) -> Result<()> {
        let flow: NewFlow = serde_json::from_value(json!({"name": name, "definition": definition}))?;
        self.client.create_flow(&flow).await?;
        Ok(())
    }

    /// Runs per second, so many at once, for so long.
    async fn many(&self, at_once: usize, at_least: Duration) -> Result<f64> {
        let run = NewRun { params: json!({"x": 1}).as_object().cloned(), ..NewRun::default() };
        let (run, done, begun) = (Arc::new(run), Arc::new(AtomicU64::new(0)), Instant::now());
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..at_once {
            let (client, run, done) = (self.client.clone(), run.clone(), done.clone());
            tasks.spawn(async move {
                while begun.elapsed() < at_least {
                    let ended = client.start_and_wait("bench", &run, WAIT).await?;
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
}

/// Runs of three steps made by a pull worker in another process.
pub(super) async fn worker(plan: &Plan) -> Result<Figure> {
    let server = Server::start(plan, &plan.ground.place("worker").await?).await?;
    let queued = |input: &str, output: &str| {
        json!({
            "exec_type": "queue", "service": "transform", "params": {"mul": 2},
            "prep": {"input_key": input}, "post": {"output_key": output},
        })
    };
    server.publish(&chain(3, queued)).await?;
    let worker = ["worker", "--pull-only", "--slots", "1000", "--server", &server.url];
    let _worker = Process::start(&worker)?;
    server.many(plan.at_once, plan.round / 4).await?;
    let what = format!("runs of 3 steps by a pull worker over HTTP, {} at once", plan.at_once);
    rounds(plan, &what, "runs/s", |_| server.many(plan.at_once, plan.round)).await
}

/// Memory of a server: idle, and the most it had under load.
pub(super) async fn memory(plan: &Plan) -> Result<[Figure; 2]> {
    let echo = |input: &str, output: &str| {
        json!({
            "exec_type": "local_func", "func": "echo",
            "prep": {"input_key": input}, "post": {"output_key": output},
        })
    };
    let (mut idle, mut most) = (Vec::new(), Vec::new());
    for nth in 0..plan.rounds {
        let place = plan.ground.place(&format!("memory-{nth}")).await?;
        let server = Server::start(plan, &place).await?;
        server.publish(&chain(3, echo)).await?;
        idle.push(server.process.memory("VmRSS")?);
        server.many(plan.at_once, plan.round).await?;
        most.push(server.process.memory("VmHWM")?);
    }
    Ok([
        Figure::new("server, idle, resident", "MB", idle),
        Figure::new("server, under load, most", "MB", most),
    ])
}

/// From the start of the process until it takes work.
pub(super) async fn startup(plan: &Plan) -> Result<[Figure; 2]> {
    let once = |nth: usize| async move {
        let place = plan.ground.place(&format!("empty-{nth}")).await?;
        let server = Server::start(plan, &place).await?;
        Ok(server.took.as_secs_f64() * 1_000.0)
    };
    let empty = rounds(plan, "start to ready, empty store", "ms", once).await?;
    let place = plan.ground.place("startup").await?;
    let waits = json!({"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "go"}}}});
    let n_open = plan.n_history / 10;
    Bed::leave(plan, &place, "open", &waits, n_open).await?;
    history::load(plan, &place, plan.n_history).await?;
    let what = format!("start to ready, {} finished and {n_open} open runs", plan.n_history);
    let again = |_| async {
        let server = Server::start(plan, &place).await?;
        Ok(server.took.as_secs_f64() * 1_000.0)
    };
    Ok([empty, rounds(plan, &what, "ms", again).await?])
}
