//! Jobs over HTTP: creation, claims and results.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use windlass_sdk::Client;

use super::connection::HttpConnection;
use super::processes::{ChildProcess, ServerProcess};
use super::report::Measurement;
use super::steps::percentiles;
use super::{BenchPlan, rounds};

/// Parallel callers that create single jobs.
const CALLERS: usize = 16;
/// Jobs of one bulk call, and of one claim.
pub(crate) const BATCH: usize = 500;
/// Jobs of one call that fills a queue before a measurement.
const FILL_BATCH: usize = 10 * BATCH;
/// Parallel callers that create jobs in bulk.
pub(crate) const BULK_CALLERS: usize = 4;
/// The pause between two looks at a queue that empties: long enough to cost the server nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a queue may take to become empty.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(300);

fn task(queue: &str, n: u64) -> Value {
    json!({"name": "noop", "type": "immediate", "queue_name": queue, "payload": {"n": n}})
}

/// Jobs created per second, one a call.
pub(crate) async fn enqueue(plan: &BenchPlan) -> Result<Measurement> {
    let server = ServerProcess::start(plan, &plan.stores.new_store("enqueue").await?).await?;
    let body = task("single", 1).to_string();
    let what = format!("jobs created one a call, {CALLERS} callers");
    rounds(plan, &what, "jobs/s", |_| {
        hammer(&server.url, "/api/v1/tasks", body.as_bytes(), CALLERS, 1, plan.round)
    })
    .await
}

/// Jobs created per second, many a call.
pub(crate) async fn bulk(plan: &BenchPlan) -> Result<Measurement> {
    let server = ServerProcess::start(plan, &plan.stores.new_store("bulk").await?).await?;
    let body = many("bulk", BATCH);
    let what = format!("jobs created {BATCH} a call, {BULK_CALLERS} callers");
    rounds(plan, &what, "jobs/s", |_| {
        hammer(&server.url, "/api/v1/tasks/batch", body.as_bytes(), BULK_CALLERS, BATCH, plan.round)
    })
    .await
}

fn many(queue: &str, n: usize) -> String {
    Value::Array((0..n as u64).map(|n| task(queue, n)).collect()).to_string()
}

/// Repeats one call from parallel callers for a time; returns the calls per second times `worth`.
async fn hammer(
    url: &str,
    path: &'static str,
    body: &[u8],
    callers: usize,
    worth: usize,
    at_least: Duration,
) -> Result<f64> {
    let (done, begun, body) = (Arc::new(AtomicU64::new(0)), Instant::now(), Arc::new(body.to_vec()));
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (mut connection, done, body) = (HttpConnection::to(url).await?, done.clone(), body.clone());
        tasks.spawn(async move {
            while begun.elapsed() < at_least {
                connection.post(path, &body).await?;
                done.fetch_add(worth as u64, Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64())
}

/// Creates `n` jobs in a queue, in batches.
pub(crate) async fn fill(client: &Client, queue: &str, n: usize, batch: usize) -> Result<()> {
    let mut connection = HttpConnection::to(client.base()).await?;
    let mut left = n;
    while left > 0 {
        let some = left.min(batch);
        connection.post("/api/v1/tasks/batch", many(queue, some).as_bytes()).await?;
        left -= some;
    }
    Ok(())
}

/// Jobs claimed, worked on and finished per second by one worker in another process: many at a time, and one at a
/// time by several; then many at a time with every kind of limit on.
pub(crate) async fn process(plan: &BenchPlan) -> Result<[Measurement; 3]> {
    let server = ServerProcess::start(plan, &plan.stores.new_store("process").await?).await?;
    let n = plan.n_jobs;
    let free = format!("{n} jobs processed by one worker process, {BATCH} a claim, limits off");
    let held = format!("{n} jobs processed by one worker process, {BATCH} a claim, limits on");
    let limits = json!({"limits": {
        "concurrency": 5_000, "rate": {"count": 1_000_000, "per_ms": 1_000},
        "key_concurrency": 5_000, "key_rate": {"count": 1_000_000, "per_ms": 1_000},
    }});
    server.client.raw("PATCH", "/api/v1/queues/held", Some(&limits)).await?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    // In turns, so that both meet the same machine.
    for _ in 0..plan.rounds {
        without.push(drain(&server, "free", n).await?);
        with.push(drain(&server, "held", n).await?);
    }
    let one = format!("jobs processed one a claim, {CALLERS} at once");
    let unbatched = rounds(plan, &one, "jobs/s", |_| one_by_one(&server, plan)).await?;
    Ok([Measurement::new(&free, "jobs/s", without), Measurement::new(&held, "jobs/s", with), unbatched])
}

/// The rate at which a worker process empties a queue.
async fn drain(server: &ServerProcess, queue: &str, n: usize) -> Result<f64> {
    pause(&server.client, queue, true).await?;
    fill(&server.client, queue, n, FILL_BATCH).await?;
    let worker = ["worker", "--pull-only", "--demo", "--slots", "2000", "--queues", queue];
    let _worker = ChildProcess::start(&[&worker[..], &["--server", &server.url]].concat())?;
    // It waits at the queue before the clock starts.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begun = Instant::now();
    pause(&server.client, queue, false).await?;
    emptied(&server.client, queue).await?;
    Ok(n as f64 / begun.elapsed().as_secs_f64())
}

pub(crate) async fn pause(client: &Client, queue: &str, is_paused: bool) -> Result<()> {
    let word = if is_paused { "pause" } else { "resume" };
    let (status, text) = client.raw("POST", &format!("/api/v1/queues/{queue}/{word}"), None).await?;
    ensure!(status == 200, "the queue `{queue}`: {text}");
    Ok(())
}

/// Waits until all jobs of a queue have ended.
pub(crate) async fn emptied(client: &Client, queue: &str) -> Result<()> {
    let begun = Instant::now();
    while client.queues().show(queue).await?.open > 0 {
        ensure!(begun.elapsed() < EMPTY_TIMEOUT, "the queue `{queue}` does not become empty");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

async fn one_by_one(server: &ServerProcess, plan: &BenchPlan) -> Result<f64> {
    fill(&server.client, "one", plan.n_jobs, FILL_BATCH).await?;
    let (done, begun, at_least) = (Arc::new(AtomicU64::new(0)), Instant::now(), plan.round);
    let mut tasks = JoinSet::new();
    for nth in 0..CALLERS {
        let (mut connection, done) = (HttpConnection::to(&server.url).await?, done.clone());
        tasks.spawn(async move {
            let claim = json!({"worker_id": format!("bench-{nth}"), "queues": ["one"], "max": 1});
            while begun.elapsed() < at_least && claim_and_finish(&mut connection, &claim).await? {
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

/// Takes one claim to its end; `false` when there was nothing.
async fn claim_and_finish(connection: &mut HttpConnection, claim: &Value) -> Result<bool> {
    let claimed = connection.json("/api/v1/jobs/claim", claim).await?;
    let jobs = claimed["jobs"].as_array().context("no jobs in the answer")?;
    if jobs.is_empty() {
        return Ok(false);
    }
    let end = |job: &Value| json!({"id": job["id"], "lease": job["lease"], "outcome": "done"});
    let results: Vec<Value> = jobs.iter().map(end).collect();
    let finished = connection.json("/api/v1/jobs/finish", &json!({"results": results})).await?;
    ensure!(finished["results"][0]["verdict"] == "ok", "not taken: {finished}");
    Ok(true)
}

/// From the creation of a job until its end is durable, while nothing else happens.
pub(crate) async fn latency(plan: &BenchPlan) -> Result<[Measurement; 2]> {
    let server = ServerProcess::start(plan, &plan.stores.new_store("idle").await?).await?;
    let (mut creating, mut working) =
        (HttpConnection::to(&server.url).await?, HttpConnection::to(&server.url).await?);
    let body = task("idle", 1).to_string();
    let claim = json!({"worker_id": "bench", "queues": ["idle"], "max": 1, "wait_ms": 10_000});
    let (mut p50, mut p99) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let mut took = Vec::with_capacity(plan.n_singles);
        for _ in 0..plan.n_singles {
            // The worker waits before the job is there, as it would.
            let (begun, ended) = tokio::join!(
                async {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    let begun = Instant::now();
                    creating.post("/api/v1/tasks", body.as_bytes()).await?;
                    anyhow::Ok(begun)
                },
                async {
                    claim_and_finish(&mut working, &claim).await?;
                    anyhow::Ok(Instant::now())
                }
            );
            took.push(ended?.duration_since(begun?));
        }
        let (middle, late) = percentiles(took);
        p50.push(middle);
        p99.push(late);
    }
    let what = |p: &str| format!("job at idle, created to completed, {p}");
    Ok([Measurement::new(what("p50"), "ms", p50), Measurement::new(what("p99"), "ms", p99)])
}

/// Claims of the first jobs of a queue, with nothing behind them and with very many.
pub(crate) async fn backlog(plan: &BenchPlan) -> Result<[Measurement; 2]> {
    let server = ServerProcess::start(plan, &plan.stores.new_store("backlog").await?).await?;
    let n = plan.n_jobs;
    fill(&server.client, "behind", plan.n_backlog, FILL_BATCH).await?;
    let (mut alone, mut behind) = (Vec::new(), Vec::new());
    for nth in 0..plan.rounds {
        let queue = format!("alone-{nth}");
        fill(&server.client, &queue, n, FILL_BATCH).await?;
        alone.push(take(&server, &queue, n).await?);
        behind.push(take(&server, "behind", n).await?);
    }
    let long = format!("claim and finish, {BATCH} a call, queue of {}", plan.n_backlog);
    let short = format!("claim and finish, {BATCH} a call, queue of {n}");
    Ok([Measurement::new(&short, "jobs/s", alone), Measurement::new(&long, "jobs/s", behind)])
}

/// Claims and finishes jobs of a queue, one call after the other.
async fn take(server: &ServerProcess, queue: &str, n: usize) -> Result<f64> {
    let mut connection = HttpConnection::to(&server.url).await?;
    let claim = json!({"worker_id": "bench", "queues": [queue], "max": BATCH});
    let begun = Instant::now();
    for _ in 0..n.div_ceil(BATCH) {
        ensure!(claim_and_finish(&mut connection, &claim).await?, "the queue `{queue}` is empty too soon");
    }
    Ok(n as f64 / begun.elapsed().as_secs_f64())
}
