//! `windlass job list`, `show`, `attempts` and `wait`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use windlass_sdk::contract::{JobAttempt, JobDetail, JobStatus, JobSummary, JobsQuery, PageQuery};

use crate::exit::Exit;
use crate::output::{self, ShortIds};
use crate::poll::ServerPoller;
use crate::session::{Session, ago, cut, duration, from_now, in_words};

/// Rows of one page.
const PAGE_SIZE: usize = 1_000;
/// Characters of a value that a row shows.
const VALUE_CHARS: usize = 60;
/// The first pause between two polls of an awaited job; each next one is half as long again.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(20);
/// The longest pause.
const POLL_INTERVAL_MAX: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct JobListArgs {
    /// Only jobs with one of these statuses, with commas between; `open` means all that have not ended.
    #[arg(long)]
    status: Option<String>,
    /// Only jobs of this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only jobs of this name.
    #[arg(long)]
    name: Option<String>,
    /// Only jobs that this worker holds now.
    #[arg(long)]
    worker: Option<String>,
    /// Only jobs of this schedule, by its id or its name.
    #[arg(long)]
    schedule: Option<String>,
    /// Only jobs created within this time: 90s, 15m, 2h, 7d.
    #[arg(long, value_parser = duration)]
    since: Option<Duration>,
    /// The number of jobs at most.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub(super) async fn list(list: JobListArgs, session: &Session) -> Result<Exit> {
    let limit = list.limit as usize;
    let schedule = match &list.schedule {
        Some(schedule) => Some(session.schedule(schedule).await?.id),
        None => None,
    };
    let mut query = JobsQuery {
        status: list.status,
        queue: list.queue,
        name: list.name,
        worker: list.worker,
        schedule,
        since: list.since.map(ago),
        ..JobsQuery::default()
    };
    let mut jobs: Vec<JobSummary> = Vec::new();
    let mut more = false;
    while jobs.len() < limit {
        query.limit = Some((limit - jobs.len()).min(PAGE_SIZE));
        let page = session.client.jobs().list(&query).await?;
        jobs.extend(page.items);
        more = page.next.is_some();
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    let ids = session.out.short_ids(jobs.iter().map(|job| job.id.as_str()));
    session.out.list(
        ["id", "name", "queue", "status", "attempt", "created", "worker", "error"],
        &jobs,
        |job| job.id.clone(),
        |job| row(job, ids),
    )?;
    if more {
        output::message(&format!("there are more than {limit}: raise --limit to see them"));
    }
    Ok(Exit::Done)
}

fn row(job: &JobSummary, ids: ShortIds) -> [String; 8] {
    let due = job.due_at.map(|at| format!(" (due {})", from_now(at))).unwrap_or_default();
    let error = job.error.as_ref().map(|error| cut(&error.message, VALUE_CHARS)).unwrap_or_default();
    [
        ids.of(&job.id),
        job.name.clone(),
        job.queue.clone(),
        job.status.word().to_owned(),
        attempt_of(job.attempt, job.retry_max.saturating_add(1), "/") + &due,
        from_now(job.created_at),
        job.worker_id.clone().unwrap_or_default(),
        error,
    ]
}

pub(super) async fn show(id: &str, session: &Session) -> Result<Exit> {
    let job = session.client.jobs().show(id).await?;
    session.out.value(&job, &job.summary.id, || facts_of(&job, session))?;
    Ok(Exit::Done)
}

/// The text of a job for people.
pub(crate) fn facts_of(job: &JobDetail, session: &Session) -> String {
    let (summary, attempt) = (&job.summary, &job.latest_attempt);
    let word = if summary.suspended { "suspended" } else { summary.status.word() };
    let mut text = format!("{}  {}  {}\n", summary.id, summary.name, session.out.painted(word, word));
    let length = |ms: u64| in_words(i64::try_from(ms).unwrap_or(i64::MAX));
    let plain = |value: &Option<String>| value.clone().unwrap_or_default();
    let error = summary.error.as_ref().or(attempt.error.as_ref());
    let took = match (attempt.started_at, attempt.finished_at) {
        (Some(started), Some(finished)) => in_words(finished.0.saturating_sub(started.0)),
        (Some(started), None) => format!("started {}", from_now(started)),
        (None, _) => String::new(),
    };
    let cost = job.cost.map(|cost| format!("{} charged, {} paid", cost.estimated, cost.actual));
    text += &output::facts([
        ("queue", format!("{}, priority {}", summary.queue, summary.priority)),
        ("created", format!("{} ({})", summary.created_at, from_now(summary.created_at))),
        ("due", summary.due_at.map(|at| format!("{at} ({})", from_now(at))).unwrap_or_default()),
        ("attempt", attempt_of(attempt.attempt, summary.retry_max.saturating_add(1), " of ")),
        ("worker", plain(&attempt.worker_id)),
        ("took", took),
        ("payload", if job.payload.is_null() { String::new() } else { job.payload.to_string() }),
        ("result", attempt.result.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("error", error.map(|error| format!("{} ({})", error.message, error.kind)).unwrap_or_default()),
        ("dead letter", if summary.is_dead_letter { "yes".to_owned() } else { String::new() }),
        ("discarded", plain(&job.discarded)),
        ("dedup key", summary.dedup_key.clone()),
        ("limit key", job.limit_key.clone()),
        ("time limit", job.timeout_ms.filter(|ms| *ms > 0).map(length).unwrap_or_default()),
        ("account", plain(&job.account)),
        ("cost", cost.unwrap_or_default()),
        ("schedule", plain(&summary.schedule)),
        ("run", plain(&summary.run)),
    ]);
    text
}

/// The number of an attempt, of so many. A job that was opened again goes on counting and gets all its attempts anew:
/// then the number stands alone.
pub(crate) fn attempt_of(n: u32, most: u32, of: &str) -> String {
    if n > most { n.to_string() } else { format!("{n}{of}{most}") }
}

pub(super) async fn attempts(id: &str, session: &Session) -> Result<Exit> {
    let attempts = all_attempts(id, session).await?;
    session.out.list(
        ["attempt", "status", "worker", "started", "took", "result"],
        &attempts,
        |attempt| attempt.attempt.to_string(),
        attempt_row,
    )?;
    Ok(Exit::Done)
}

/// Every attempt at a job, oldest first.
pub(crate) async fn all_attempts(id: &str, session: &Session) -> Result<Vec<JobAttempt>> {
    let mut page = PageQuery { cursor: None, limit: Some(PAGE_SIZE) };
    let mut attempts: Vec<JobAttempt> = Vec::new();
    loop {
        let part = session.client.jobs().attempts(id, &page).await?;
        attempts.extend(part.items);
        match part.next {
            Some(next) => page.cursor = Some(next),
            None => return Ok(attempts),
        }
    }
}

pub(crate) fn attempt_row(attempt: &JobAttempt) -> [String; 6] {
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
        attempt.status.word().to_owned(),
        attempt.worker_id.clone().unwrap_or_default(),
        attempt.started_at.map(|at| at.to_string()).unwrap_or_default(),
        took,
        cut(&result, VALUE_CHARS),
    ]
}

pub(super) async fn wait(id: &str, timeout: Option<Duration>, session: &Session) -> Result<Exit> {
    let mut poller = ServerPoller::new(timeout);
    let mut pause = POLL_INTERVAL_MIN;
    let (job, exit) = loop {
        let job = poller.poll(async || session.client.jobs().show(id).await).await?;
        if let Some(exit) = exit_of(job.summary.status) {
            break (job, exit);
        }
        let left = poller.time_left();
        if left.is_some_and(|left| left.is_zero()) {
            output::message(&format!(
                "error: {id} did not end in time: it is {}\n  see windlass job show {id}",
                job.summary.status.word()
            ));
            return Ok(Exit::TimedOut);
        }
        tokio::time::sleep(pause.min(left.unwrap_or(pause))).await;
        pause = (pause * 3 / 2).min(POLL_INTERVAL_MAX);
    };
    session.out.value(&job, &job.summary.id, || facts_of(&job, session))?;
    Ok(exit)
}

/// The exit code for the end of a job; `None` while it is open.
fn exit_of(status: JobStatus) -> Option<Exit> {
    match status {
        JobStatus::Completed => Some(Exit::Done),
        JobStatus::Failed => Some(Exit::Failed),
        JobStatus::Canceled => Some(Exit::Canceled),
        JobStatus::Queued | JobStatus::Running | JobStatus::Retrying => None,
    }
}
