//! `windlass run logs`: what happened to a run, in words, and what those said who worked for it.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use windlass_sdk::ClientError;
use windlass_sdk::types::{LogLevel, LogLine, LogsQuery};

use super::Which;
use super::watch::{Bell, LOOK};
use crate::asking::Asking;
use crate::output::{self, Format};
use crate::session::Session;

/// Lines read at once.
const PAGE: usize = 1_000;

#[derive(Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    which: Which,
    /// Only lines that are at least so serious.
    #[arg(long, value_enum)]
    level: Option<Level>,
    /// Only lines about this node and what is inside it.
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Go on until the run ends.
    #[arg(long)]
    follow: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Level {
    Info,
    Warn,
    Error,
}

pub(super) async fn logs(logs: Logs, session: &Session) -> Result<ExitCode> {
    let run = session.run_id(&logs.which.run).await?;
    let level = logs.level.map(|level| match level {
        Level::Info => LogLevel::Info,
        Level::Warn => LogLevel::Warn,
        Level::Error => LogLevel::Error,
    });
    let follow = logs.follow.then_some(true);
    let mut tail =
        Tail { run, query: LogsQuery { level, node: logs.node, follow, cursor: None, limit: Some(PAGE) } };
    if logs.follow {
        return tail.follow(session).await;
    }
    let lines = tail.rest(session).await?;
    session.out.list(
        ["at", "level", "node", "message"],
        &lines,
        |line| line.message.clone(),
        |line| {
            let node = line.node.clone().unwrap_or_default();
            [line.at.to_string(), line.level.word().to_owned(), node, line.message.clone()]
        },
    )?;
    Ok(ExitCode::SUCCESS)
}

/// What was not read yet of a log.
struct Tail {
    run: String,
    query: LogsQuery,
}

impl Tail {
    /// Everything after what was seen.
    async fn rest(&mut self, session: &Session) -> Result<Vec<LogLine>, ClientError> {
        let mut lines = Vec::new();
        loop {
            let page = session.client.logs(&self.run, &self.query).await?;
            let is_full = page.items.len() == PAGE;
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

    async fn follow(&mut self, session: &Session) -> Result<ExitCode> {
        let (mut asking, mut bell) = (Asking::new(None), Bell::default());
        loop {
            // What has ended before its lines are read has told everything when they are.
            let seen = asking.look(async || session.client.run(&self.run).await).await?;
            match self.rest(session).await {
                Ok(lines) => lines.iter().try_for_each(|line| print(line, session))?,
                // A server that goes away meanwhile is waited for.
                Err(error) if error.is_temporary() => continue,
                Err(error) => return Err(error.into()),
            }
            if seen.summary.status.is_ended() {
                return Ok(ExitCode::SUCCESS);
            }
            bell.wait(&session.client, &self.run, LOOK).await;
        }
    }
}

fn print(line: &LogLine, session: &Session) -> Result<()> {
    if session.out.format() != Format::Table {
        return output::line(&serde_json::to_string(line)?);
    }
    let node = line.node.as_ref().map(|node| format!("{node}: ")).unwrap_or_default();
    output::line(&format!("{}  {:<5}  {node}{}", line.at, line.level.word(), line.message))
}
