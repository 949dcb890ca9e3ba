//! `windlass run list`, `show`, `wait`, `attempts`, `state` and `why`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use windlass_sdk::contract::{NodeAttemptInfo, PageQuery, RunSummary, RunsQuery, StateQuery, WaitReason};

use super::{RunSelector, children, exit_of, render};
use crate::exit::Exit;
use crate::output::{self, OutputFormat, ShortIds};
use crate::session::{Session, ago, cut, duration, in_words, now_ms};

/// Rows of one page.
const PAGE_SIZE: usize = 1_000;
/// Characters of a value that a row shows.
const VALUE_CHARS: usize = 60;

#[derive(Args)]
pub(crate) struct RunListArgs {
    /// Only runs that this query selects: `status:failed flow:orders error~"time out" label.team=video after:7d`.
    #[arg(short, long)]
    query: Option<String>,
    /// Only runs of this flow, by name or id.
    #[arg(long)]
    flow: Option<String>,
    /// Only runs with one of these statuses, with commas between.
    #[arg(long)]
    status: Option<String>,
    /// Only runs with this label: `key` or `key=value`.
    #[arg(long)]
    label: Option<String>,
    /// Only runs that this account pays for.
    #[arg(long)]
    account: Option<String>,
    /// Only child runs of this run.
    #[arg(long, value_name = "RUN")]
    parent: Option<String>,
    /// Only runs started within this time: 90s, 15m, 2h, 7d.
    #[arg(long, value_parser = duration)]
    since: Option<Duration>,
    /// Only runs with this in their id, request id, labels or error.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// The number of runs at most.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub(super) async fn list(list: RunListArgs, session: &Session) -> Result<Exit> {
    let limit = list.limit as usize;
    let parent = match &list.parent {
        Some(parent) => Some(session.run_id(parent).await?),
        None => None,
    };
    let mut query = RunsQuery {
        query: list.query,
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
        query.limit = Some((limit - runs.len()).min(PAGE_SIZE));
        let page = session.client.runs().list(&query).await?;
        runs.extend(page.items);
        more = page.next.is_some();
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    let ids = session.out.short_ids(runs.iter().map(|run| run.id.as_str()));
    session.out.list(
        ["id", "flow", "status", "node", "started", "took", "error"],
        &runs,
        |run| run.id.clone(),
        |run| row(run, ids),
    )?;
    if more {
        output::message(&format!("there are more than {limit}: raise --limit to see them"));
    }
    Ok(Exit::Done)
}

fn row(run: &RunSummary, ids: ShortIds) -> [String; 7] {
    let now = now_ms();
    let took = run.ended_at.map_or(now, |at| at.0).saturating_sub(run.created_at.0);
    let error = run.error.as_ref().map(|error| cut(&error.message, VALUE_CHARS)).unwrap_or_default();
    [
        ids.of(&run.id),
        format!("{} v{}", run.flow, run.version),
        run.status.word().to_owned(),
        run.node.clone().unwrap_or_default(),
        format!("{} ago", in_words(now.saturating_sub(run.created_at.0))),
        in_words(took),
        error,
    ]
}

pub(super) async fn show(which: &RunSelector, session: &Session) -> Result<Exit> {
    let run = session.client.runs().show(&session.run_id(&which.run).await?).await?;
    let is_read = matches!(session.out.format(), OutputFormat::Table) && !session.out.quiet;
    let tree = if is_read { children::tree(&run, session).await? } else { String::new() };
    session.out.value(&run, &run.summary.id, || render::run_text(&run, &session.out) + &tree)?;
    Ok(Exit::Done)
}

pub(super) async fn wait(run: &str, timeout: Option<Duration>, session: &Session) -> Result<Exit> {
    let Some(ended) = session.client.runs().wait(run, timeout).await? else {
        output::message(&format!("error: {run} did not end in time\n  see windlass run why {run}"));
        return Ok(Exit::TimedOut);
    };
    session.out.value(&ended, &ended.summary.id, || render::run_text(&ended, &session.out))?;
    Ok(exit_of(ended.summary.status))
}

pub(super) async fn attempts(which: &RunSelector, session: &Session) -> Result<Exit> {
    let run = session.run_id(&which.run).await?;
    let mut page = PageQuery { cursor: None, limit: Some(PAGE_SIZE) };
    let mut attempts: Vec<NodeAttemptInfo> = Vec::new();
    loop {
        let part = session.client.runs().attempts(&run, &page).await?;
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
    Ok(Exit::Done)
}

fn attempt_row(attempt: &NodeAttemptInfo) -> [String; 6] {
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

pub(super) async fn state(which: &RunSelector, at: Option<u64>, session: &Session) -> Result<Exit> {
    let run = session.run_id(&which.run).await?;
    let state = session.client.runs().state(&run, &StateQuery { at }).await?;
    session.out.value(&state, &state.id, || {
        let mut text = format!(
            "{} {} after entry {} of {}, {}\n\n",
            state.id,
            state.status.word(),
            state.at,
            state.len,
            state.time
        );
        text += &render::values_text("shared", &state.shared);
        text += &render::values_text("signals", &state.signals);
        text + &render::nodes_text(&state.node_states, state.more_nodes, state.round, &session.out)
    })?;
    Ok(Exit::Done)
}

pub(super) async fn why(which: &RunSelector, session: &Session) -> Result<Exit> {
    let why = session.client.runs().why(&session.run_id(&which.run).await?).await?;
    session.out.value(&why, &why.id, || {
        let mut text = format!("{} is {}\n", why.id, why.status.word());
        if why.reasons.is_empty() {
            text += "it waits for nothing\n";
        }
        why.reasons.iter().for_each(|reason| text += &reason_text(reason));
        text
    })?;
    Ok(Exit::Done)
}

fn reason_text(reason: &WaitReason) -> String {
    let node = if reason.node.is_empty() { String::new() } else { format!("{}: ", reason.node) };
    let command = reason.command.as_ref().map(|command| format!("    {command}\n")).unwrap_or_default();
    format!("  {node}{}\n{command}", reason.text)
}
