//! `windlass run logs`: the events of a run in words, and the lines that its workers logged.

use anyhow::Result;
use clap::{Args, ValueEnum};
use windlass_sdk::ClientError;
use windlass_sdk::contract::{LogLevel, LogLine, LogsQuery};

use super::RunSelector;
use super::watch::{POLL_INTERVAL, RunEventWaiter};
use crate::exit::Exit;
use crate::output::{self, OutputFormat};
use crate::poll::ServerPoller;
use crate::session::Session;

/// Lines of one page.
const PAGE_SIZE: usize = 1_000;

#[derive(Args)]
pub(crate) struct RunLogsArgs {
    #[command(flatten)]
    which: RunSelector,
    /// Only lines of at least this level.
    #[arg(long, value_enum)]
    level: Option<LogLevelArg>,
    /// Only lines about this node and the nodes inside it.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Print new lines until the run ends.
    #[arg(long)]
    follow: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum LogLevelArg {
    Info,
    Warn,
    Error,
}

pub(super) async fn logs(logs: RunLogsArgs, session: &Session) -> Result<Exit> {
    let run = session.run_id(&logs.which.run).await?;
    let level = logs.level.map(|level| match level {
        LogLevelArg::Info => LogLevel::Info,
        LogLevelArg::Warn => LogLevel::Warn,
        LogLevelArg::Error => LogLevel::Error,
    });
    let follow = logs.follow.then_some(true);
    let mut tail = LogTail {
        run,
        query: LogsQuery { level, node: logs.node, follow, cursor: None, limit: Some(PAGE_SIZE) },
    };
    if logs.follow {
        return tail.follow(session).await;
    }
    let lines = tail.rest(session).await?;
    session.out.list(
        ["at", "level", "node", "message"],
        &lines,
        |line| line.message.clone(),
        |line| {
            let node = place_of(line).unwrap_or_default();
            [line.at.to_string(), line.level.word().to_owned(), node, line.message.clone()]
        },
    )?;
    Ok(Exit::Done)
}

/// The node that a line is about, with its title.
fn place_of(line: &LogLine) -> Option<String> {
    let node = line.node.as_ref()?;
    Some(match line.title.as_ref().filter(|title| *title != node) {
        Some(title) => format!("{node} {title}"),
        None => node.clone(),
    })
}

/// The part of a log that was not read yet.
struct LogTail {
    run: String,
    query: LogsQuery,
}

impl LogTail {
    /// All lines after the cursor.
    async fn rest(&mut self, session: &Session) -> Result<Vec<LogLine>, ClientError> {
        let mut lines = Vec::new();
        loop {
            let page = session.client.runs().logs(&self.run, &self.query).await?;
            let is_full = page.items.len() == PAGE_SIZE;
            lines.extend(page.items);
            if page.next.is_none() {
                return Ok(lines);
            }
            self.query.cursor = page.next;
            if !is_full && self.query.follow.is_some() {
                return Ok(lines);
            }
        }
    }

    async fn follow(&mut self, session: &Session) -> Result<Exit> {
        let (mut poller, mut waiter) = (ServerPoller::new(None), RunEventWaiter::default());
        loop {
            // A run that has ended before its lines are read logs nothing afterwards.
            let seen = poller.poll(async || session.client.runs().show(&self.run).await).await?;
            match self.rest(session).await {
                Ok(lines) => lines.iter().try_for_each(|line| print(line, session))?,
                // The poller waits for a server that restarts.
                Err(error) if error.is_temporary() => continue,
                Err(error) => return Err(error.into()),
            }
            if seen.summary.status.is_ended() {
                return Ok(Exit::Done);
            }
            waiter.wait(&session.client, &self.run, POLL_INTERVAL).await;
        }
    }
}

fn print(line: &LogLine, session: &Session) -> Result<()> {
    if session.out.format() != OutputFormat::Table {
        return output::line(&serde_json::to_string(line)?);
    }
    let node = place_of(line).map(|node| format!("{node}: ")).unwrap_or_default();
    output::line(&format!("{}  {:<5}  {node}{}", line.at, line.level.word(), line.message))
}
