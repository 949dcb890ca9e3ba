//! The cost of a long history: the same load on an empty store and on one with many ended runs and jobs.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::task::JoinSet;
use windlass_engine::counter::{Revision, Seq};
use windlass_engine::journal::Entry;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::Store;
use windlass_store::commit::{Commit, JobChange, RunChange};
use windlass_store::job::JobRow;
use windlass_store::run::{RunProjection, RunRow, RunStatus};

use super::BenchPlan;
use super::embedded::{EmbeddedServer, chain, function};
use super::report::Measurement;
use super::steps::percentiles;
use super::store_factory::BenchStore;

/// Runs, or jobs, of one commit that fills a store: a few megabytes.
const BATCH: usize = 500;
/// Parallel commits while a store is filled.
const COMMITS_MAX: usize = 4;
/// Between the ends of two runs of the history.
const APART_MS: u64 = 20;

/// Writes `n` finished runs of three steps and as many finished jobs into a store: copies of real ones, so that the
/// engine decides nothing. Returns the seconds that it took.
pub(crate) async fn load(plan: &BenchPlan, store: &BenchStore, n: usize) -> Result<f64> {
    let server = Arc::new(EmbeddedServer::make(plan, store, "history", &chain(3, function)).await?);
    let (row, journal) = server.sample().await?;
    let (job, _) = server.work("history", 1).await?;
    let past = Arc::new(HistoryTemplate { row, journal, job, n });
    let (begun, mut tasks) = (Instant::now(), JoinSet::new());
    let runtime = server.runtime().clone();
    for from in (0..n).step_by(BATCH) {
        while tasks.len() >= COMMITS_MAX {
            tasks.join_next().await.context("a task ended")???;
        }
        let (runtime, past) = (runtime.clone(), past.clone());
        tasks.spawn(async move { past.write(runtime.store(), from, BATCH.min(past.n - from)).await });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    let took = begun.elapsed().as_secs_f64();
    // The store must have no other user from here on.
    drop(runtime);
    server.close().await;
    store.settled().await?;
    Ok(took)
}

/// The run and the job that are copied.
struct HistoryTemplate {
    row: RunRow,
    journal: Vec<Entry>,
    job: JobRow,
    n: usize,
}

impl HistoryTemplate {
    /// When a copy ended: one after the other, up to the original.
    fn at(&self, nth: usize) -> Timestamp {
        let before = (self.n - nth) as u64 * APART_MS;
        Timestamp(self.row.origin.created_at.0.saturating_sub(i64::try_from(before).unwrap_or(i64::MAX)))
    }

    async fn write(&self, store: &dyn Store, from: usize, n: usize) -> Result<()> {
        let mut commits = Vec::with_capacity(n * self.journal.len() + 1);
        for nth in from..from + n {
            self.add_run(nth, &mut commits)?;
        }
        commits.push(self.jobs(from, n)?);
        for answer in store.commit(commits).await {
            answer?;
        }
        Ok(())
    }

    fn add_run(&self, nth: usize, commits: &mut Vec<Commit>) -> Result<()> {
        let (run, now) = (id("run", self.at(nth), nth)?, self.at(nth));
        for (seq, entry) in self.journal.iter().enumerate() {
            let command = id("cmd", now, nth * self.journal.len() + seq)?;
            let mut projection =
                RunProjection { updated_at: now, ended_at: Some(now), ..self.row.projection.clone() };
            if seq + 1 < self.journal.len() {
                (projection.status, projection.ended_at) = (RunStatus::Running, None);
                (projection.shared, projection.result) = (None, None);
            }
            let origin = windlass_store::run::Origin { created_at: now, ..self.row.origin.clone() };
            let change = RunChange {
                run,
                expected_len: Seq(seq as u64),
                create: (seq == 0).then_some(origin),
                entry: Entry::new(now, command, entry.events.clone()),
                projection,
                snapshot: None,
                reopened: None,
            };
            commits.push(Commit { run: Some(change), ..Commit::new(&Project::DEFAULT, command, now) });
        }
        Ok(())
    }

    fn jobs(&self, from: usize, n: usize) -> Result<Commit> {
        let now = self.at(from);
        let copy = |nth: usize| {
            let mut job = self.job.job.clone();
            let at = self.at(nth);
            (job.id, job.created_at, job.updated_at) = (id("job", at, nth)?, at, at);
            Ok(JobChange { expected_rev: Revision(0), job, origin: self.job.origin.clone() })
        };
        let jobs = (from..from + n).map(copy).collect::<Result<_>>()?;
        // Those of runs are numbered from the other end.
        Ok(Commit { jobs, ..Commit::new(&Project::DEFAULT, id("cmd", now, usize::MAX - from)?, now) })
    }
}

/// An id of that time.
fn id<I: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    prefix: &str,
    at: Timestamp,
    nth: usize,
) -> Result<I> {
    Ok(format!("{prefix}_{:012x}7000{nth:016x}", at.0.max(0)).parse()?)
}

/// The samples of one store.
#[derive(Default)]
struct HistorySamples {
    runs: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    jobs: Vec<f64>,
}

impl HistorySamples {
    async fn round(&mut self, server: &Arc<EmbeddedServer>, plan: &BenchPlan) -> Result<()> {
        self.runs.push(server.many(plan.at_once, plan.round).await?);
        let mut took = Vec::with_capacity(plan.n_singles);
        for _ in 0..plan.n_singles {
            took.push(server.one(json!({"x": 1})).await?);
        }
        let (middle, late) = percentiles(took);
        self.p50.push(middle);
        self.p99.push(late);
        self.jobs.push(server.work("bench", plan.n_jobs / 2).await?.1);
        Ok(())
    }
}

/// Runs and jobs on an empty store and on one with a history, in turns, and the ratios.
pub(crate) async fn history(plan: &BenchPlan) -> Result<Vec<Measurement>> {
    let (empty, full) = (plan.stores.new_store("fresh").await?, plan.stores.new_store("history").await?);
    let took = load(plan, &full, plan.n_history).await?;
    let bytes = full.size().await? / plan.n_history as f64;
    let fresh = Arc::new(EmbeddedServer::make(plan, &empty, "bench", &chain(3, function)).await?);
    let old = Arc::new(EmbeddedServer::make(plan, &full, "bench", &chain(3, function)).await?);
    let (mut without, mut with) = (HistorySamples::default(), HistorySamples::default());
    for server in [&fresh, &old] {
        server.many(plan.at_once, plan.round / 2).await?;
        server.work("bench", plan.n_jobs / 20).await?;
    }
    // In turns, so that both meet the same machine.
    for _ in 0..plan.rounds {
        without.round(&fresh, plan).await?;
        with.round(&old, plan).await?;
    }
    fresh.close().await;
    old.close().await;
    let after = format!("after {} runs and as many jobs", plan.n_history);
    let mut figures = vec![
        Measurement::new(
            format!("history: loading {} runs and as many jobs", plan.n_history),
            "s",
            vec![took],
        ),
        Measurement::new("history: bytes per finished run and job", "bytes", vec![bytes]),
    ];
    let runs = format!("history: runs of 3 steps, {} at once", plan.at_once);
    let one = "history: run of 3 steps, one at a time";
    let jobs = "history: jobs created, claimed and finished, many at a time";
    for (what, unit, empty, full) in [
        (runs.as_str(), "runs/s", without.runs, with.runs),
        (jobs, "jobs/s", without.jobs, with.jobs),
        (&format!("{one}, p50"), "ms", without.p50, with.p50),
        (&format!("{one}, p99"), "ms", without.p99, with.p99),
    ] {
        let ratio = full.iter().zip(&empty).map(|(full, empty)| full / empty).collect();
        figures.push(Measurement::new(format!("{what}, empty store"), unit, empty));
        figures.push(Measurement::new(format!("{what}, {after}"), unit, full));
        figures.push(Measurement::new(format!("{what}, {after} against empty"), "×", ratio));
    }
    Ok(figures)
}
