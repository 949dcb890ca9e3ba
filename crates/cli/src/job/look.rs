//! Looking at jobs.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use windlass_sdk::types::{PageQuery, TaskDetail, TaskRun, TaskSummary, TasksQuery};

use crate::asking::{Asking, TIMED_OUT};
use crate::output;
use crate::session::{Session, ago, cut, duration, from_now, in_words};

/// Rows on one page.
const PAGE: usize = 1_000;
/// Characters of a value that a row shows.
const VALUE_CHARS: usize = 60;
/// The first pause between two looks at a job whose end is awaited; each next one is half as long again.
const LOOK_FIRST: Duration = Duration::from_millis(20);
/// The longest pause.
const LOOK_LAST: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct List {
    /// Only jobs in one of these states, with commas between; `open` stands for all that have not ended.
    #[arg(long)]
    status: Option<String>,
    /// Only jobs of this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only jobs of this name.
    #[arg(long)]
    name: Option<String>,
    /// Only jobs that this worker has now.
    #[arg(long)]
    worker: Option<String>,
    /// Only jobs that this schedule made, by its id or its name.
    #[arg(long)]
    schedule: Option<String>,
    /// Only jobs created within this time: 90s, 15m, 2h, 7d.
    #[arg(long, value_parser = duration)]
    since: Option<Duration>,
    /// At most so many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub(super) async fn list(list: List, session: &Session) -> Result<ExitCode> {
    let limit = list.limit as usize;
    let schedule = match &list.schedule {
        Some(schedule) => Some(session.schedule(schedule).await?.id),
        None => None,
    };
    let mut query = TasksQuery {
        status: list.status,
        queue: list.queue,
        name: list.name,
        worker: list.worker,
        schedule,
        since: list.since.map(ago),
        ..TasksQuery::default()
    };
    let mut jobs: Vec<TaskSummary> = Vec::new();
    let mut more = false;
    while jobs.len() < limit {
        query.limit = Some((limit - jobs.len()).min(PAGE));
        let page = session.client.tasks(&query).await?;
        jobs.extend(page.tasks);
        more = page.next.is_some();
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    session.out.list(
        ["id", "name", "queue", "status", "attempt", "created", "worker", "error"],
        &jobs,
        |job| job.id.clone(),
        row,
    )?;
    if more {
        output::message(&format!("there are more than {limit}: ask for them with --limit"));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(job: &TaskSummary) -> [String; 8] {
    let due = job.next_run_at.map(|at| format!(" (due {})", from_now(at))).unwrap_or_default();
    let error = job.error.as_ref().map(|error| cut(&error.message, VALUE_CHARS)).unwrap_or_default();
    [
        job.id.clone(),
        job.name.clone(),
        job.queue_name.clone(),
        job.display_status.clone(),
        attempt_of(job.attempt, job.max_retries, "/") + &due,
        from_now(job.created_at),
        job.worker_id.clone().unwrap_or_default(),
        error,
    ]
}

pub(super) async fn show(id: &str, session: &Session) -> Result<ExitCode> {
    let job = session.client.task(id).await?;
    session.out.value(&job, &job.task.id, || facts_of(&job, session))?;
    Ok(ExitCode::SUCCESS)
}

/// A job as people read it.
pub(crate) fn facts_of(job: &TaskDetail, session: &Session) -> String {
    let (task, run) = (&job.task, &job.latest_run);
    let status = session.out.painted(&job.display_status, &job.display_status);
    let mut text = format!("{}  {}  {status}\n", task.id, task.name);
    let length = |ms: u64| in_words(i64::try_from(ms).unwrap_or(i64::MAX));
    let plain = |value: &Option<String>| value.clone().unwrap_or_default();
    let error = task.error.as_ref().or(run.error.as_ref());
    let took = match (run.started_at, run.finished_at) {
        (Some(started), Some(finished)) => in_words(finished.0.saturating_sub(started.0)),
        (Some(started), None) => format!("began {}", from_now(started)),
        (None, _) => String::new(),
    };
    let cost = task.cost.map(|cost| format!("{} charged, {} paid", cost.estimated, cost.actual));
    let cost = cost.unwrap_or_default();
    let due = run.next_retry_at.or(task.run_at.filter(|_| task.status == "pending"));
    text += &output::facts([
        ("queue", format!("{}, priority {}", task.queue_name, task.priority)),
        ("created", format!("{} ({})", task.created_at, from_now(task.created_at))),
        ("due", due.map(|at| format!("{at} ({})", from_now(at))).unwrap_or_default()),
        ("attempt", attempt_of(run.attempt, task.max_retries, " of ")),
        ("worker", plain(&run.worker_id)),
        ("took", took),
        ("payload", if task.payload.is_null() { String::new() } else { task.payload.to_string() }),
        ("result", run.result.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("error", error.map(|error| format!("{} ({})", error.message, error.kind)).unwrap_or_default()),
        ("dead letter", if task.is_dead_letter { "yes".to_owned() } else { String::new() }),
        ("discarded", plain(&task.discarded)),
        ("dedup key", task.dedup_key.clone()),
        ("limit key", task.limit_key.clone()),
        ("time limit", task.timeout_ms.filter(|ms| *ms > 0).map(length).unwrap_or_default()),
        ("account", plain(&task.account)),
        ("cost", cost),
        ("schedule", plain(&task.schedule_id)),
        ("run", plain(&task.run_id)),
    ]);
    text
}

/// The number of an attempt among those that a job has. One that was opened again goes on counting, and has them all
/// again: then there is nothing to count up to.
pub(crate) fn attempt_of(n: u32, most: u32, of: &str) -> String {
    if n > most { n.to_string() } else { format!("{n}{of}{most}") }
}

pub(super) async fn attempts(id: &str, session: &Session) -> Result<ExitCode> {
    let attempts = every_attempt(id, session).await?;
    session.out.list(
        ["attempt", "status", "worker", "started", "took", "result"],
        &attempts,
        |attempt| attempt.id.clone(),
        attempt_row,
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Every attempt at a job, oldest first.
pub(crate) async fn every_attempt(id: &str, session: &Session) -> Result<Vec<TaskRun>> {
    let mut page = PageQuery { cursor: None, limit: Some(PAGE) };
    let mut attempts: Vec<TaskRun> = Vec::new();
    loop {
        let part = session.client.task_runs(id, &page).await?;
        attempts.extend(part.runs);
        match part.next {
            Some(next) => page.cursor = Some(next),
            None => return Ok(attempts),
        }
    }
}

pub(crate) fn attempt_row(attempt: &TaskRun) -> [String; 6] {
    let result = match (&attempt.error, &attempt.result) {
        (Some(error), _) => error.message.clone(),
        (None, Some(result)) => result.to_string(),
        (None, None) => String::new(),
    };
    let took = match (attempt.started_at, attempt.finished_at) {
        (Some(started), Some(finished)) => in_words(finished.0.saturating_sub(started.0)),
        (Some(_), None) | (None, _) => String::new(),
    };
    [
        attempt.attempt.to_string(),
        attempt.status.clone(),
        attempt.worker_id.clone().unwrap_or_default(),
        attempt.started_at.map(|at| at.to_string()).unwrap_or_default(),
        took,
        cut(&result, VALUE_CHARS),
    ]
}

pub(super) async fn wait(id: &str, timeout: Option<Duration>, session: &Session) -> Result<ExitCode> {
    let mut asking = Asking::new(timeout);
    let mut pause = LOOK_FIRST;
    let (job, code) = loop {
        let job = asking.look(async || session.client.task(id).await).await?;
        if let Some(code) = ending(&job.task.status) {
            break (job, code);
        }
        let left = asking.left();
        if left.is_some_and(|left| left.is_zero()) {
            output::message(&format!(
                "error: {id} did not end in time: it is {}\n  see where it stands: windlass job show {id}",
                job.display_status
            ));
            return Ok(ExitCode::from(TIMED_OUT));
        }
        tokio::time::sleep(pause.min(left.unwrap_or(pause))).await;
        pause = (pause * 3 / 2).min(LOOK_LAST);
    };
    session.out.value(&job, &job.task.id, || facts_of(&job, session))?;
    Ok(code)
}

/// What the end of a job ends a command with; `None` while it is open.
fn ending(status: &str) -> Option<ExitCode> {
    match status {
        "completed" => Some(ExitCode::SUCCESS),
        "failed" => Some(ExitCode::FAILURE),
        "cancelled" => Some(ExitCode::from(2)),
        _open => None,
    }
}
