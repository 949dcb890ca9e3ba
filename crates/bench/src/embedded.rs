//! A server in this process with one flow: runs and jobs without a network.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use windlass_engine::counter::Seq;
use windlass_engine::definition::Strictness;
use windlass_engine::event::Start;
use windlass_engine::input::CallOutcome;
use windlass_engine::job::JobSpec;
use windlass_engine::journal::Entry;
use windlass_runtime::calls::function::{FunctionCall, Functions};
use windlass_runtime::calls::log::Log;
use windlass_runtime::jobs::{ClaimRequest, ClaimVerdict, JobEnd, LeasedJob};
use windlass_runtime::runs::RunSpec;
use windlass_runtime::runs::flow::{FlowSpec, VersionSpec};
use windlass_runtime::{Runtime, Settings};
use windlass_store::flow::VersionStatus;
use windlass_store::job::JobRow;
use windlass_store::run::{RunRef, RunRow, RunStatus, Since};

use super::BenchPlan;
use super::store_factory::BenchStore;

/// Jobs of one call.
const BATCH: usize = 500;
/// More entries than the run has.
const SAMPLE_MAX: usize = 100;
/// The time limit of one run.
const RUN_TIMEOUT: Duration = Duration::from_secs(120);

/// A flow of `n` calls in sequence.
pub(crate) fn chain(n: usize, node: impl Fn(&str, &str) -> Value) -> Value {
    let name = |at: usize| format!("n{at:03}");
    let input = |at: usize| if at == 0 { "$params.x".to_owned() } else { name(at - 1) };
    let nodes: Map<String, Value> = (0..n).map(|at| (name(at), node(&input(at), &name(at)))).collect();
    let edges: Vec<Value> = (1..n).map(|at| json!({"from": name(at - 1), "to": name(at)})).collect();
    json!({"start": name(0), "nodes": nodes, "edges": edges})
}

pub(crate) fn function(input: &str, output: &str) -> Value {
    json!({
        "exec_type": "local_func", "func": "step",
        "prep": {"input_key": input}, "post": {"output_key": output},
    })
}

/// A server in this process with one flow.
pub(crate) struct EmbeddedServer {
    runtime: Runtime,
    new: RunSpec,
    /// Accounts that pay for the runs, in turns; empty = no account.
    payers: Vec<String>,
    n_started: AtomicUsize,
}

impl EmbeddedServer {
    pub(crate) async fn make(
        plan: &BenchPlan,
        store: &BenchStore,
        name: &str,
        definition: &Value,
    ) -> Result<EmbeddedServer> {
        let opened = store.open(plan.durability).await?;
        // Functions of a program that embeds the server: nothing is known about them, so every step is durable
        // before the next begins.
        let step = |call: &FunctionCall| CallOutcome::Done(call.input.clone());
        let functions = Functions::built_in().with_quick("step", step).with_quick("paid", step);
        let settings = Settings { functions, ..Settings::default() };
        EmbeddedServer::of(Runtime::start_up(opened, settings).await?, name, definition).await
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Another flow in the same server.
    pub(crate) async fn beside(&self, name: &str, definition: &Value) -> Result<EmbeddedServer> {
        EmbeddedServer::of(self.runtime.clone(), name, definition).await
    }

    async fn of(runtime: Runtime, name: &str, definition: &Value) -> Result<EmbeddedServer> {
        let version = VersionSpec {
            definition: definition.to_string(),
            strictness: Strictness::Strict,
            number: None,
            status: VersionStatus::Published,
            note: String::new(),
        };
        let flow = FlowSpec { name: name.to_owned(), ..FlowSpec::default() };
        let published = runtime.runs().publish_flow(flow, Some(version)).await?.published;
        let (version, _) = published.version.context("a version was published")?;
        let new = RunSpec {
            flow: published.flow,
            version,
            request: None,
            labels: BTreeMap::new(),
            schedule: None,
            start: Start::default(),
        };
        Ok(EmbeddedServer { runtime, new, payers: Vec::new(), n_started: AtomicUsize::new(0) })
    }

    /// The same server with accounts that pay for the runs.
    pub(crate) fn paid_by(self, payers: Vec<String>) -> EmbeddedServer {
        EmbeddedServer { payers, ..self }
    }

    pub(crate) async fn one(&self, params: Value) -> Result<Duration> {
        let mut new = self.new.clone();
        new.start.params = params.as_object().cloned().unwrap_or_default().into();
        if !self.payers.is_empty() {
            let nth = self.n_started.fetch_add(1, Ordering::Relaxed) % self.payers.len();
            new.start.account = Some(self.payers[nth].clone());
        }
        let begun = Instant::now();
        let ended = self.runtime.runs().start_and_wait(new, RUN_TIMEOUT, || {}).await?;
        ensure!(ended.status == RunStatus::Completed, "{} is {:?}", ended.run, ended.status);
        Ok(begun.elapsed())
    }

    /// Completed runs per second, `at_once` in parallel, for `at_least`.
    pub(crate) async fn many(self: &Arc<Self>, at_once: usize, at_least: Duration) -> Result<f64> {
        let (done, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..at_once {
            let (server, done) = (self.clone(), done.clone());
            tasks.spawn(async move {
                while begun.elapsed() < at_least {
                    server.one(json!({"x": 1})).await?;
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

    /// Completes `n` runs.
    pub(crate) async fn fill(self: &Arc<Self>, n: usize, at_once: usize) -> Result<()> {
        let left = Arc::new(AtomicU64::new(n as u64));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..at_once.min(n) {
            let (server, left) = (self.clone(), left.clone());
            tasks.spawn(async move {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                    server.one(json!({"x": 1})).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(task) = tasks.join_next().await {
            task??;
        }
        Ok(())
    }

    /// Starts `n` runs that do not end, and stops the server.
    pub(crate) async fn leave(
        plan: &BenchPlan,
        store: &BenchStore,
        name: &str,
        definition: &Value,
        n: usize,
    ) -> Result<()> {
        let server = Arc::new(EmbeddedServer::make(plan, store, name, definition).await?);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..n {
            while tasks.len() >= plan.at_once {
                tasks.join_next().await.context("a task ended")???;
            }
            let server = server.clone();
            tasks.spawn(async move { server.runtime.runs().start(server.new.clone()).await.map(drop) });
        }
        while let Some(task) = tasks.join_next().await {
            task??;
        }
        server.close().await;
        Ok(())
    }

    /// A completed run: its row and its journal.
    pub(crate) async fn sample(&self) -> Result<(RunRow, Vec<Entry>)> {
        let ended = self.runtime.runs().start_and_wait(self.new.clone(), RUN_TIMEOUT, || {}).await?;
        let row = self
            .runtime
            .store()
            .run(self.runtime.project(), RunRef::Id(ended.run))
            .await?
            .context("a run is stored")?;
        let journal = self
            .runtime
            .store()
            .journal(self.runtime.project(), ended.run, Since::Entry(Seq::ZERO), SAMPLE_MAX)
            .await?;
        Ok((row, journal.entries.into_iter().map(|(_, entry)| entry).collect()))
    }

    /// Creates, claims and finishes `n` jobs in batches; returns the last job and the jobs per second.
    pub(crate) async fn work(&self, queue: &str, n: usize) -> Result<(JobRow, f64)> {
        let (begun, mut last, mut left) = (Instant::now(), None, n);
        while left > 0 {
            let some = left.min(BATCH);
            let created = self.runtime.jobs().create_jobs(vec![JobSpec::new("noop", queue); some]).await?;
            last = created.last().map(|created| created.job);
            let mut n_open = some;
            while n_open > 0 {
                n_open = n_open.saturating_sub(self.work_some(queue).await?);
            }
            left -= some;
        }
        let rate = n as f64 / begun.elapsed().as_secs_f64();
        let last =
            self.runtime.store().job(self.runtime.project(), last.context("there was no job")?).await?;
        Ok((last.context("a job is stored")?, rate))
    }

    /// Claims jobs and finishes them; returns their number.
    async fn work_some(&self, queue: &str) -> Result<usize> {
        let claim = ClaimRequest {
            worker: "bench".to_owned(),
            queues: vec![queue.to_owned()],
            services: Vec::new(),
            max: BATCH,
            wait: RUN_TIMEOUT,
            lease: Duration::ZERO,
        };
        let claimed = self.runtime.jobs().claim(claim).await?;
        ensure!(!claimed.is_empty(), "the queue `{queue}` is empty too soon");
        let end = |claimed: LeasedJob| JobEnd {
            job: claimed.job,
            fence: claimed.fence,
            outcome: CallOutcome::Done(claimed.input),
            worker: Some("bench".to_owned()),
            log: Log::default(),
            retry_after_ms: None,
        };
        let ends: Vec<JobEnd> = claimed.into_iter().map(end).collect();
        let n = ends.len();
        for verdict in self.runtime.jobs().finish(ends).await {
            ensure!(verdict? == ClaimVerdict::Ok, "a job of `{queue}` was not taken");
        }
        Ok(n)
    }

    /// Stops the server and closes the store.
    pub(crate) async fn close(self: Arc<Self>) {
        self.runtime.shut_down(Duration::from_secs(1)).await;
    }
}
