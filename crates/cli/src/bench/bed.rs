//! A server in this process with one flow: what runs and jobs cost without a network.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use windlass_engine::definition::Strictness;
use windlass_engine::event::Start;
use windlass_engine::input::Outcome;
use windlass_engine::job::JobSpec;
use windlass_engine::journal::Entry;
use windlass_runtime::flow::{NewFlow, NewVersion};
use windlass_runtime::function::{FunctionCall, Functions};
use windlass_runtime::job::{Claim, Claimed, Finish, Verdict};
use windlass_runtime::log::Log;
use windlass_runtime::run::NewRun;
use windlass_runtime::{Runtime, Settings};
use windlass_store::flow::VersionStatus;
use windlass_store::job::JobRow;
use windlass_store::run::{RunRef, RunRow, RunStatus, Since};

use super::Plan;
use super::place::Place;

/// Jobs of one call.
const BATCH: usize = 500;
/// More entries than the run has.
const SAMPLE_MAX: usize = 100;
/// No run of a bench takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A flow of so many calls, one after the other.
pub(super) fn chain(n: usize, node: impl Fn(&str, &str) -> Value) -> Value {
    let name = |at: usize| format!("n{at:03}");
    let input = |at: usize| if at == 0 { "$params.x".to_owned() } else { name(at - 1) };
    let nodes: Map<String, Value> = (0..n).map(|at| (name(at), node(&input(at), &name(at)))).collect();
    let edges: Vec<Value> = (1..n).map(|at| json!({"from": name(at - 1), "to": name(at)})).collect();
    json!({"start": name(0), "nodes": nodes, "edges": edges})
}

pub(super) fn function(input: &str, output: &str) -> Value {
    json!({
        "exec_type": "local_func", "func": "step",
        "prep": {"input_key": input}, "post": {"output_key": output},
    })
}

/// A server in this process with one flow.
pub(super) struct Bed {
    runtime: Runtime,
    new: NewRun,
    /// Who pays for the runs, in turns; nobody unless told.
    payers: Vec<String>,
    n_started: AtomicUsize,
}

impl Bed {
    pub(super) async fn make(plan: &Plan, place: &Place, name: &str, definition: &Value) -> Result<Bed> {
        let store = place.open(plan.durability).await?;
        // Functions of a program that embeds the server: nothing is known about them, so every step is durable
        // before the next begins.
        let step = |call: &FunctionCall| Outcome::Done(call.input.clone());
        let functions = Functions::built_in().with_quick("step", step).with_quick("paid", step);
        let settings = Settings { functions, is_alone: place.is_alone(), ..Settings::default() };
        Bed::of(Runtime::start_up(store, settings).await?, name, definition).await
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Another flow in the same server.
    pub(super) async fn beside(&self, name: &str, definition: &Value) -> Result<Bed> {
        Bed::of(self.runtime.clone(), name, definition).await
    }

    async fn of(runtime: Runtime, name: &str, definition: &Value) -> Result<Bed> {
        let version = NewVersion {
            definition: definition.to_string(),
            strictness: Strictness::Strict,
            number: None,
            status: VersionStatus::Published,
            note: String::new(),
        };
        let flow = NewFlow { name: name.to_owned(), ..NewFlow::default() };
        let published = runtime.publish_flow(flow, Some(version)).await?.published;
        let (version, _) = published.version.context("a version was published")?;
        let new = NewRun {
            flow: published.flow,
            version,
            request: None,
            labels: BTreeMap::new(),
            schedule: None,
            start: Start::default(),
        };
        Ok(Bed { runtime, new, payers: Vec::new(), n_started: AtomicUsize::new(0) })
    }

    /// The same, with runs that are paid for.
    pub(super) fn paid_by(self, payers: Vec<String>) -> Bed {
        Bed { payers, ..self }
    }

    pub(super) async fn one(&self, params: Value) -> Result<Duration> {
        let mut new = self.new.clone();
        new.start.params = params.as_object().cloned().unwrap_or_default();
        if !self.payers.is_empty() {
            let nth = self.n_started.fetch_add(1, Ordering::Relaxed) % self.payers.len();
            new.start.account = Some(self.payers[nth].clone());
        }
        let begun = Instant::now();
        let ended = self.runtime.start_and_wait(new, PATIENCE).await?;
        ensure!(ended.status == RunStatus::Completed, "{} is {:?}", ended.run, ended.status);
        Ok(begun.elapsed())
    }

    /// Runs per second, so many at once, for so long.
    pub(super) async fn many(self: &Arc<Self>, at_once: usize, at_least: Duration) -> Result<f64> {
        let (done, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..at_once {
            let (bed, done) = (self.clone(), done.clone());
            tasks.spawn(async move {
                while begun.elapsed() < at_least {
                    bed.one(json!({"x": 1})).await?;
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

    /// So many runs, whatever the time.
    pub(super) async fn fill(self: &Arc<Self>, n: usize, at_once: usize) -> Result<()> {
        let left = Arc::new(AtomicU64::new(n as u64));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..at_once.min(n) {
            let (bed, left) = (self.clone(), left.clone());
            tasks.spawn(async move {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                    bed.one(json!({"x": 1})).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(task) = tasks.join_next().await {
            task??;
        }
        Ok(())
    }

    /// Starts so many runs that do not end, and leaves.
    pub(super) async fn leave(
        plan: &Plan,
        place: &Place,
        name: &str,
        definition: &Value,
        n: usize,
    ) -> Result<()> {
        let bed = Arc::new(Bed::make(plan, place, name, definition).await?);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..n {
            while tasks.len() >= plan.at_once {
                tasks.join_next().await.context("a task ended")???;
            }
            let bed = bed.clone();
            tasks.spawn(async move { bed.runtime.start(bed.new.clone()).await.map(drop) });
        }
        while let Some(task) = tasks.join_next().await {
            task??;
        }
        bed.close().await;
        Ok(())
    }

    /// A run from its start to its end: where it stands, and its journal.
    pub(super) async fn sample(&self) -> Result<(RunRow, Vec<Entry>)> {
        let ended = self.runtime.start_and_wait(self.new.clone(), PATIENCE).await?;
        let row = self.runtime.store().run(RunRef::Id(ended.run)).await?.context("a run is stored")?;
        let journal = self.runtime.store().journal(ended.run, Since::Entry(0), SAMPLE_MAX).await?;
        Ok((row, journal.entries.into_iter().map(|(_, entry)| entry).collect()))
    }

    /// So many jobs created, claimed and finished, many at a time; the last of them, and how many a second.
    pub(super) async fn work(&self, queue: &str, n: usize) -> Result<(JobRow, f64)> {
        let (begun, mut last, mut left) = (Instant::now(), None, n);
        while left > 0 {
            let some = left.min(BATCH);
            let created = self.runtime.create_jobs(vec![JobSpec::new("noop", queue); some]).await?;
            last = created.last().map(|created| created.job);
            let mut n_open = some;
            while n_open > 0 {
                n_open = n_open.saturating_sub(self.work_some(queue).await?);
            }
            left -= some;
        }
        let rate = n as f64 / begun.elapsed().as_secs_f64();
        let last = self.runtime.store().job(last.context("there was no job")?).await?;
        Ok((last.context("a job is stored")?, rate))
    }

    /// Claims jobs and finishes them; how many.
    async fn work_some(&self, queue: &str) -> Result<usize> {
        let claim = Claim {
            worker: "bench".to_owned(),
            queues: vec![queue.to_owned()],
            services: Vec::new(),
            max: BATCH,
            wait: PATIENCE,
            lease: Duration::ZERO,
        };
        let claimed = self.runtime.claim(claim).await?;
        ensure!(!claimed.is_empty(), "the queue `{queue}` is empty too soon");
        let end = |claimed: Claimed| Finish {
            job: claimed.job,
            fence: claimed.fence,
            outcome: Outcome::Done(claimed.input),
            worker: Some("bench".to_owned()),
            log: Log::default(),
            retry_after_ms: None,
        };
        let ends: Vec<Finish> = claimed.into_iter().map(end).collect();
        let n = ends.len();
        for verdict in self.runtime.finish(ends).await {
            ensure!(verdict? == Verdict::Ok, "a job of `{queue}` was not taken");
        }
        Ok(n)
    }

    /// Stops the server and closes the store.
    pub(super) async fn close(self: Arc<Self>) {
        self.runtime.shut_down(Duration::from_secs(1)).await;
    }
}
