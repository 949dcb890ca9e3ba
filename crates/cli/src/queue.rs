//! `windlass queue`: shows, pauses and limits queues.

mod limit;

use anyhow::Result;
use clap::{Args, Subcommand};
use windlass_sdk::contract::{DurationPercentiles, QueueInfo, QueueWindow};

use crate::exit::Exit;
use crate::help::{CHANGE_EXITS, SHOW_EXITS, START_EXITS, help};
use crate::job::{self, QueuePushArgs};
use crate::output;
use crate::session::{GlobalArgs, Session, in_words};

#[derive(Subcommand)]
pub(crate) enum QueueCommand {
    /// Lists queues that have settings, open jobs or dead letters.
    #[command(after_help = help!("  windlass queue list\n  windlass queue list -o json", SHOW_EXITS))]
    List,
    /// Shows a queue: its jobs, its limits and its recent rates.
    #[command(after_help = help!("  windlass queue show mail", SHOW_EXITS))]
    Show(QueueSelector),
    /// Creates a job in a queue: `windlass job create` with the queue named first.
    #[command(after_help = help!(
        "  windlass queue push mail welcome --payload '{\"to\": \"ann\"}'\n  \
           windlass queue push nightly report --in 30m --wait",
        START_EXITS
    ))]
    Push(Box<QueuePushArgs>),
    /// Pauses a queue: workers get no new jobs of it; running jobs go on.
    #[command(after_help = help!("  windlass queue pause mail", CHANGE_EXITS))]
    Pause(QueueSelector),
    /// Resumes a paused queue.
    #[command(after_help = help!("  windlass queue resume mail", CHANGE_EXITS))]
    Resume(QueueSelector),
    /// Sets limits of a queue; limits that are not named stay.
    #[command(after_help = help!(
        "  windlass queue limit mail --concurrency 5 --rate 100/m\n  \
           windlass queue limit mail --key-concurrency 1 --fair\n  \
           windlass queue limit mail --rate none\n  windlass queue limit mail --clear",
        CHANGE_EXITS
    ))]
    Limit(limit::QueueLimitArgs),
}

/// A queue.
#[derive(Args)]
pub(crate) struct QueueSelector {
    /// The name of the queue.
    queue: String,
}

pub(crate) async fn run(command: QueueCommand, options: &GlobalArgs) -> Result<Exit> {
    let session = &options.session()?;
    let client = &session.client;
    match command {
        QueueCommand::List => list(session).await,
        QueueCommand::Show(QueueSelector { queue }) => {
            print_queue_stats(&client.queues().show(&queue).await?, session)
        }
        QueueCommand::Push(push) => job::push(*push, session).await,
        QueueCommand::Pause(QueueSelector { queue }) => {
            print_queue(&client.queues().pause(&queue).await?, session)
        }
        QueueCommand::Resume(QueueSelector { queue }) => {
            print_queue(&client.queues().resume(&queue).await?, session)
        }
        QueueCommand::Limit(limit) => limit::limit(limit, session).await,
    }
}

async fn list(session: &Session) -> Result<Exit> {
    let queues = session.client.queues().all().await?;
    session.out.list(
        ["queue", "state", "ready", "running", "later", "dead", "oldest", "done/s", "wait p95", "limits"],
        &queues,
        |queue| queue.name.clone(),
        row,
    )?;
    Ok(Exit::Done)
}

fn row(queue: &QueueInfo) -> [String; 10] {
    let in_state = |state: &str| queue.depth.get(state).copied().unwrap_or(0);
    let (ready, running) = (in_state("queued"), in_state("running"));
    let minute = &queue.stats.last_minute;
    [
        queue.name.clone(),
        state(queue).to_owned(),
        ready.to_string(),
        running.to_string(),
        queue.open.saturating_sub(ready).saturating_sub(running).to_string(),
        queue.dead_letters.to_string(),
        length(queue.oldest_age_ms),
        format!("{:.1}", minute.per_second.succeeded),
        length(minute.wait_ms.p95),
        limit::words(&queue.limits),
    ]
}

fn state(queue: &QueueInfo) -> &'static str {
    if queue.paused { "paused" } else { "open" }
}

fn length(ms: Option<u64>) -> String {
    ms.map(|ms| in_words(i64::try_from(ms).unwrap_or(i64::MAX))).unwrap_or_default()
}

/// Prints a queue.
fn print_queue(queue: &QueueInfo, session: &Session) -> Result<Exit> {
    session.out.value(queue, &queue.name, || facts_of(queue, session))?;
    Ok(Exit::Done)
}

/// Prints a queue with its statistics.
fn print_queue_stats(queue: &QueueInfo, session: &Session) -> Result<Exit> {
    session.out.value(queue, &queue.name, || {
        let stats = &queue.stats;
        let rows = [("10 s", &stats.last_10s), ("minute", &stats.last_minute), ("hour", &stats.last_hour)];
        let heading = [
            "last",
            "created",
            "started",
            "done",
            "failed",
            "dead",
            "done/s",
            "wait p50/95/99",
            "work p50/95/99",
        ];
        let table = session.out.table_text(heading, &rows.map(|(name, stretch)| stretch_row(name, stretch)));
        format!("{}\n{table}", facts_of(queue, session))
    })?;
    Ok(Exit::Done)
}

fn facts_of(queue: &QueueInfo, session: &Session) -> String {
    let state = state(queue);
    let depth = queue.depth.iter().filter(|(_, n)| **n > 0).map(|(state, n)| format!("{n} {state}"));
    let depth: Vec<String> = depth.collect();
    let facts = output::facts([
        ("jobs", if depth.is_empty() { "none".to_owned() } else { depth.join(", ") }),
        ("oldest waits", length(queue.oldest_age_ms)),
        ("dead letters", queue.dead_letters.to_string()),
        ("limits", limit::words(&queue.limits)),
    ]);
    format!("{}  {}\n{facts}", queue.name, session.out.painted(state, state))
}

fn stretch_row(name: &str, stretch: &QueueWindow) -> [String; 9] {
    let spread = |spread: &DurationPercentiles| match spread.p50 {
        Some(_) => [spread.p50, spread.p95, spread.p99].map(length).join(" / "),
        None => String::new(),
    };
    [
        name.to_owned(),
        stretch.created.to_string(),
        stretch.started.to_string(),
        stretch.succeeded.to_string(),
        stretch.failed.to_string(),
        stretch.dead.to_string(),
        format!("{:.1}", stretch.per_second.succeeded),
        spread(&stretch.wait_ms),
        spread(&stretch.work_ms),
    ]
}
