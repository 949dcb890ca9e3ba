//! Runs in this process: the engine, the runtime and the store, without a network between them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use windlass_engine::definition::Strictness;
use windlass_engine::event::Start;
use windlass_engine::input::Outcome;
use windlass_runtime::flow::{NewFlow, NewVersion};
use windlass_runtime::function::{FunctionCall, Functions};
use windlass_runtime::run::NewRun;
use windlass_runtime::{Runtime, Settings};
use windlass_store::flow::VersionStatus;
use windlass_store::run::RunStatus;
use windlass_store::sqlite::Sqlite;

use super::report::Figure;
use super::{Plan, rounds};

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

fn function(input: &str, output: &str) -> Value {
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
    pub(super) async fn make(plan: &Plan, file: &Path, name: &str, definition: &Value) -> Result<Bed> {
        let store = Sqlite::open(file, plan.durability)?;
        // Functions of a program that embeds the server: nothing is known about them, so every step is durable
        // before the next begins.
        let step = |call: &FunctionCall| Outcome::Done(call.input.clone());
        let functions = Functions::built_in().with_quick("step", step).with_quick("paid", step);
        let settings = Settings { functions, ..Settings::default() };
        Bed::of(Runtime::start_up(Arc::new(store), settings).await?, name, definition).await
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
        file: &Path,
        name: &str,
        definition: &Value,
        n: usize,
    ) -> Result<()> {
        let bed = Arc::new(Bed::make(plan, file, name, definition).await?);
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

    /// Stops the server and closes the store.
    pub(super) async fn close(self: Arc<Self>) {
        self.runtime.shut_down(Duration::from_secs(1)).await;
    }
}

/// Runs of three steps, many at once.
pub(super) async fn throughput(plan: &Plan) -> Result<Figure> {
    let bed = Arc::new(Bed::make(plan, &plan.dir.join("steps.db"), "bench", &chain(3, function)).await?);
    bed.many(plan.at_once, plan.round / 4).await?;
    let what = format!("runs of 3 steps, {} at once", plan.at_once);
    let figure = rounds(plan, &what, "runs/s", |_| bed.many(plan.at_once, plan.round)).await;
    bed.close().await;
    figure
}

/// Runs of three steps, one at a time.
pub(super) async fn latency(plan: &Plan) -> Result<[Figure; 2]> {
    let bed = Arc::new(Bed::make(plan, &plan.dir.join("latency.db"), "bench", &chain(3, function)).await?);
    bed.many(1, plan.round / 8).await?;
    let (mut half, mut most) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let mut took = Vec::with_capacity(plan.n_singles);
        for _ in 0..plan.n_singles {
            took.push(bed.one(json!({"x": 1})).await?);
        }
        let (middle, late) = percentiles(took);
        half.push(middle);
        most.push(late);
    }
    bed.close().await;
    let figure = |part, values| Figure::new(format!("run of 3 steps, one at a time, {part}"), "ms", values);
    Ok([figure("p50", half), figure("p99", most)])
}

/// One run of forty steps.
pub(super) async fn forty(plan: &Plan) -> Result<Figure> {
    let bed = Bed::make(plan, &plan.dir.join("forty.db"), "bench", &chain(40, function)).await?;
    bed.one(json!({"x": 1})).await?;
    let once = |_| async { Ok(milliseconds(bed.one(json!({"x": 1})).await?)) };
    let figure = rounds(plan, "one run of 40 steps", "ms", once).await;
    Arc::new(bed).close().await;
    figure
}

/// Foreach over many items and over half as many: what is linear takes twice as long.
pub(super) async fn foreach(plan: &Plan) -> Result<Vec<Figure>> {
    let definition = json!({"start": "each", "nodes": {"each": {
        "kind": "foreach", "exec_type": "local_func", "func": "step",
        "prep": {"input_key": "$params.items"}, "post": {"output_key": "out"},
        "parallel_mode": "concurrent", "max_parallel": 256,
    }}});
    let (mut whole, mut half, mut grows) = (Vec::new(), Vec::new(), Vec::new());
    for nth in 0..plan.rounds {
        let (mut took, mut bytes) = ([0.0; 2], [0.0; 2]);
        for (at, n) in [plan.n_items / 2, plan.n_items].into_iter().enumerate() {
            let file = plan.dir.join(format!("foreach-{nth}-{n}.db"));
            let bed = Bed::make(plan, &file, "bench", &definition).await?;
            let items: Vec<usize> = (0..n).collect();
            took[at] = bed.one(json!({"items": items})).await?.as_secs_f64();
            Arc::new(bed).close().await;
            settled(&file).await?;
            bytes[at] = size(&file)?;
        }
        half.push(took[0]);
        whole.push(took[1]);
        grows.push((took[1] / took[0], bytes[1] / bytes[0]));
    }
    let items = |n: usize| format!("foreach over {n} items");
    let twice = format!("{} against half as many", items(plan.n_items));
    Ok(vec![
        Figure::new(items(plan.n_items / 2), "s", half),
        Figure::new(items(plan.n_items), "s", whole),
        Figure::new(format!("{twice}, time"), "×", grows.iter().map(|(time, _)| *time).collect()),
        Figure::new(format!("{twice}, bytes"), "×", grows.iter().map(|(_, bytes)| *bytes).collect()),
    ])
}

/// Bytes on disk per finished run of three steps.
pub(super) async fn bytes(plan: &Plan) -> Result<Figure> {
    let n = plan.n_singles * 20;
    rounds(plan, "bytes on disk per finished run of 3 steps", "bytes", |nth| async move {
        let file = plan.dir.join(format!("bytes-{nth}.db"));
        let bed = Arc::new(Bed::make(plan, &file, "bench", &chain(3, function)).await?);
        let before = size(&file)?;
        bed.fill(n, plan.at_once).await?;
        bed.close().await;
        settled(&file).await?;
        Ok((size(&file)? - before) / n as f64)
    })
    .await
}

/// Waits until the store is closed: its log is in the file then.
async fn settled(file: &Path) -> Result<()> {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let begun = Instant::now();
    while Path::new(&log).exists() {
        ensure!(begun.elapsed() < PATIENCE, "{} was not closed", file.display());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// The store's files together.
pub(super) fn size(file: &Path) -> Result<f64> {
    let mut total = 0;
    for ending in ["", "-wal"] {
        let mut name = file.as_os_str().to_owned();
        name.push(ending);
        total += std::fs::metadata(name).map_or(0, |found| found.len());
    }
    ensure!(total > 0, "{} is not there", file.display());
    Ok(total as f64)
}

/// The middle of what things took, and what one of a hundred took longer than; in milliseconds.
pub(super) fn percentiles(mut took: Vec<Duration>) -> (f64, f64) {
    took.sort();
    let at = |nth: usize| took.get(nth).copied().map_or(0.0, milliseconds);
    (at(took.len() / 2), at(took.len() * 99 / 100))
}

fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
