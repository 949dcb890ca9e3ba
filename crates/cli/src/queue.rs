//! `windlass queue`: how full queues are, how fast they go, what holds them back.

mod limit;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use windlass_sdk::types::{Queue, Spread, Stretch};

use crate::help::help;
use crate::job::{self, CREATES, Push};
use crate::output;
use crate::session::{Options, Session, in_words};

const LOOKS: &str =
    "Exit codes:\n  0  shown\n  1  the name cannot be one of a queue\n  3  the server could not be asked";
const ACTS: &str = "Exit codes:\n  0  done\n  1  refused\n  3  the server could not be asked";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Lists queues that have settings, open jobs or dead letters.
    #[command(after_help = help!("  windlass queue list\n  windlass queue list -o json", LOOKS))]
    List,
    /// Shows a queue: what is in it, what limits it, and how it went lately.
    #[command(after_help = help!("  windlass queue show mail", LOOKS))]
    Show(Which),
    /// Creates a job in a queue: `windlass job create` with the queue named first.
    #[command(after_help = help!(
        "  windlass queue push mail welcome --payload '{\"to\": \"ann\"}'\n  \
           windlass queue push nightly report --in 30m --wait",
        CREATES
    ))]
    Push(Box<Push>),
    /// Hands out nothing from a queue; what was handed out goes on.
    #[command(after_help = help!("  windlass queue pause mail", ACTS))]
    Pause(Which),
    /// Hands out from a queue again.
    #[command(after_help = help!("  windlass queue resume mail", ACTS))]
    Resume(Which),
    /// Sets what holds a queue back; limits that are not named stay.
    #[command(after_help = help!(
        "  windlass queue limit mail --concurrency 5 --rate 100/m\n  \
           windlass queue limit mail --key-concurrency 1 --fair\n  \
           windlass queue limit mail --rate none\n  windlass queue limit mail --clear",
        ACTS
    ))]
    Limit(limit::Limit),
}

/// A queue.
#[derive(Args)]
pub(crate) struct Which {
    /// The name of the queue.
    queue: String,
}

pub(crate) async fn run(command: Command, options: &Options) -> Result<ExitCode> {
    let session = &options.session()?;
    let client = &session.client;
    match command {
        Command::List => list(session).await,
        Command::Show(Which { queue }) => shown(&client.queue(&queue).await?, session),
        Command::Push(push) => job::push(*push, session).await,
        Command::Pause(Which { queue }) => told(&client.pause_queue(&queue).await?, session),
        Command::Resume(Which { queue }) => told(&client.resume_queue(&queue).await?, session),
        Command::Limit(limit) => limit::limit(limit, session).await,
    }
}

async fn list(session: &Session) -> Result<ExitCode> {
    let queues = session.client.queues().await?.queues;
    session.out.list(
        ["queue", "state", "ready", "running", "later", "dead", "oldest", "done/s", "wait p95", "limits"],
        &queues,
        |queue| queue.name.clone(),
        row,
    )?;
    Ok(ExitCode::SUCCESS)
}

fn row(queue: &Queue) -> [String; 10] {
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

fn state(queue: &Queue) -> &'static str {
    if queue.paused { "paused" } else { "open" }
}

fn length(ms: Option<u64>) -> String {
    ms.map(|ms| in_words(i64::try_from(ms).unwrap_or(i64::MAX))).unwrap_or_default()
}

/// Shows one queue as it is now.
fn told(queue: &Queue, session: &Session) -> Result<ExitCode> {
    session.out.value(queue, &queue.name, || facts_of(queue, session))?;
    Ok(ExitCode::SUCCESS)
}

/// Shows one queue, and how it went lately.
fn shown(queue: &Queue, session: &Session) -> Result<ExitCode> {
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
    Ok(ExitCode::SUCCESS)
}

fn facts_of(queue: &Queue, session: &Session) -> String {
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

fn stretch_row(name: &str, stretch: &Stretch) -> [String; 9] {
    let spread = |spread: &Spread| match spread.p50 {
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
