//! Looking at runs.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use windlass_sdk::types::{Attempt, PageQuery, Reason, RunSummary, RunsQuery, StateQuery};

use super::{Which, children, code_of, picture};
use crate::asking::TIMED_OUT;
use crate::output::{self, Format};
use crate::session::{Session, ago, cut, duration, in_words, now_ms};

/// Rows on one page.
const PAGE: usize = 1_000;
/// Characters of a value that a row shows.
const VALUE_CHARS: usize = 60;

#[derive(Args)]
pub(crate) struct List {
    /// Only runs of this flow, by name or id.
    #[arg(long)]
    flow: Option<String>,
    /// Only runs in one of these states, with commas between.
    #[arg(long)]
    status: Option<String>,
    /// Only runs with this label: `key` or `key=value`.
    #[arg(long)]
    label: Option<String>,
    /// Only runs that this account pays for.
    #[arg(long)]
    account: Option<String>,
    /// Only runs that this run called, by its id or the beginning of it.
    #[arg(long, value_name = "RUN")]
    parent: Option<String>,
    /// Only runs started within this time: 90s, 15m, 2h, 7d.
    #[arg(long, value_parser = duration)]
    since: Option<Duration>,
    /// Only runs with this in their id, request id, labels or error.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub(super) async fn list(list: List, session: &Session) -> Result<ExitCode> {
    let limit = list.limit as usize;
    let parent = match &list.parent {
        Some(parent) => Some(session.run_id(parent).await?),
        None => None,
    };
    let mut query = RunsQuery {
        parent,
        flow: list.flow,
        status: list.status,
        account: list.account,
        label: list.label,
        since: list.since.map(ago),
        q: list.search,
        ..RunsQuery::default()
    };
    let mut runs: Vec<RunSummary> = Vec::new();
    let mut more = false;
    while runs.len() < limit {
        query.limit = Some((limit - runs.len()).min(PAGE));
        let page = session.client.runs(&query).await?;
        runs.extend(page.items);
        more = page.next.is_some();
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    session.out.list(
        ["id", "flow", "status", "node", "started", "took", "error"],
        &runs,
        |run| run.id.clone(),
        row,
    )?;
    if more {
        output::message(&format!("there are more than {limit}: ask for them with --limit"));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(run: &RunSummary) -> [String; 7] {
    let now = now_ms();
    let took = run.ended_at.map_or(now, |at| at.0).saturating_sub(run.created_at.0);
    let error = run.error.as_ref().map(|error| cut(&error.message, VALUE_CHARS)).unwrap_or_default();
    [
        run.id.clone(),
        format!("{} v{}", run.flow, run.version),
        run.status.word().to_owned(),
        run.node.clone().unwrap_or_default(),
        format!("{} ago", in_words(now.saturating_sub(run.created_at.0))),
        in_words(took),
        error,
    ]
}

pub(super) async fn show(which: &Which, session: &Session) -> Result<ExitCode> {
    let run = session.client.run(&session.run_id(&which.run).await?).await?;
    let is_read = matches!(session.out.format(), Format::Table) && !session.out.quiet;
    let tree = if is_read { children::tree(&run, session).await? } else { String::new() };
    session.out.value(&run, &run.summary.id, || picture::run_text(&run, &session.out) + &tree)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn wait(run: &str, timeout: Option<Duration>, session: &Session) -> Result<ExitCode> {
    let Some(ended) = session.client.wait(run, timeout).await? else {
        output::message(&format!(
            "error: {run} did not end in time\n  see what it waits for: windlass run why {run}"
        ));
        return Ok(ExitCode::from(TIMED_OUT));
    };
    session.out.value(&ended, &ended.summary.id, || picture::run_text(&ended, &session.out))?;
    Ok(code_of(ended.summary.status))
}

pub(super) async fn attempts(which: &Which, session: &Session) -> Result<ExitCode> {
    let run = session.run_id(&which.run).await?;
    let mut page = PageQuery { cursor: None, limit: Some(PAGE) };
    let mut attempts: Vec<Attempt> = Vec::new();
    loop {
        let part = session.client.attempts(&run, &page).await?;
        attempts.extend(part.items);
        match part.next {
            Some(next) => page.cursor = Some(next),
            None => break,
        }
    }
    session.out.list(
        ["node", "attempt", "status", "worker", "took", "result"],
        &attempts,
        |attempt| attempt.node.clone(),
        attempt_row,
    )?;
    Ok(ExitCode::SUCCESS)
}

fn attempt_row(attempt: &Attempt) -> [String; 6] {
    let result = match (&attempt.error, &attempt.output) {
        (Some(error), _) => error.message.clone(),
        (None, Some(output)) => output.to_string(),
        (None, None) => String::new(),
    };
    let took = attempt.finished_at.map(|at| in_words(at.0.saturating_sub(attempt.started_at.0)));
    [
        attempt.node.clone(),
        attempt.attempt.to_string(),
        attempt.status.clone(),
        attempt.worker.clone().unwrap_or_default(),
        took.unwrap_or_default(),
        cut(&result, VALUE_CHARS),
    ]
}

pub(super) async fn state(which: &Which, at: Option<u64>, session: &Session) -> Result<ExitCode> {
    let run = session.run_id(&which.run).await?;
    let state = session.client.state(&run, &StateQuery { at }).await?;
    session.out.value(&state, &state.id, || {
        let mut text = format!(
            "{} {} after entry {} of {}, {}\n\n",
            state.id,
            state.status.word(),
            state.at,
            state.len,
            state.time
        );
        text += &picture::values_text("shared", &state.shared);
        text += &picture::values_text("signals", &state.signals);
        text + &picture::nodes_text(&state.node_states, state.more_nodes, &session.out)
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn why(which: &Which, session: &Session) -> Result<ExitCode> {
    let why = session.client.why(&session.run_id(&which.run).await?).await?;
    session.out.value(&why, &why.id, || {
        let mut text = format!("{} is {}\n", why.id, why.status.word());
        if why.reasons.is_empty() {
            text += "it waits for nothing\n";
        }
        why.reasons.iter().for_each(|reason| text += &reason_text(reason));
        text
    })?;
    Ok(ExitCode::SUCCESS)
}

fn reason_text(reason: &Reason) -> String {
    let node = if reason.node.is_empty() { String::new() } else { format!("{}: ", reason.node) };
    let command = reason.command.as_ref().map(|command| format!("    {command}\n")).unwrap_or_default();
    format!("  {node}{}\n{command}", reason.text)
}
