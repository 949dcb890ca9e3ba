//! `windlass run watch` and `run events`: a run redrawn in place on a terminal, one line a change on a pipe.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use windlass_sdk::client::EventStream;
use windlass_sdk::contract::{JournalEntry, PageQuery, RunDetail, RunStatus};
use windlass_sdk::{Client, ClientError};

use super::{RunSelector, exit_of, render};
use crate::exit::Exit;
use crate::output::{self, OutputFormat, Printer};
use crate::poll::ServerPoller;
use crate::session::Session;

/// How long the event stream may be quiet before the run is read again.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long changes are collected before they are drawn.
const REDRAW_DELAY: Duration = Duration::from_millis(40);
/// Entries of one page.
const PAGE_SIZE: usize = 1_000;

pub(super) async fn watch(id: &str, timeout: Option<Duration>, session: &Session) -> Result<Exit> {
    let mut poller = ServerPoller::new(timeout);
    let mut waiter = RunEventWaiter::default();
    let mut screen = RunScreen { out: session.out, n_lines: 0, seen: BTreeMap::new(), status: None };
    loop {
        let run = poller.poll(async || session.client.runs().show(id).await).await?;
        screen.show(&run)?;
        if run.summary.status.is_ended() {
            return Ok(exit_of(run.summary.status));
        }
        let left = poller.time_left();
        if left.is_some_and(|left| left.is_zero()) {
            output::message(&format!("error: {id} did not end in time\n  see windlass run why {id}"));
            return Ok(Exit::TimedOut);
        }
        waiter.wait(&session.client, id, left.unwrap_or(POLL_INTERVAL).min(POLL_INTERVAL)).await;
    }
}

/// Waits for the next event of a run; without an event stream it only sleeps.
#[derive(Default)]
pub(super) struct RunEventWaiter {
    stream: Option<EventStream>,
    last: Option<String>,
}

impl RunEventWaiter {
    pub(super) async fn wait(&mut self, client: &Client, id: &str, at_most: Duration) {
        if self.stream.is_none() {
            self.stream = client.runs().events(id, self.last.as_deref()).await.ok();
        }
        let Some(stream) = &mut self.stream else {
            return tokio::time::sleep(at_most).await;
        };
        match tokio::time::timeout(at_most, stream.next()).await {
            Ok(Ok(Some(event))) => self.last = event.id.or(self.last.take()),
            Ok(Ok(None) | Err(_)) => self.stream = None,
            Err(_quiet) => return,
        }
        tokio::time::sleep(REDRAW_DELAY.min(at_most)).await;
    }
}

/// The last drawn state of a run.
struct RunScreen {
    out: Printer,
    n_lines: usize,
    seen: BTreeMap<String, String>,
    status: Option<RunStatus>,
}

impl RunScreen {
    fn show(&mut self, run: &RunDetail) -> Result<()> {
        match self.out.format() {
            OutputFormat::Table if self.out.terminal => self.redraw(run),
            OutputFormat::Table => self.lines(run),
            OutputFormat::Json | OutputFormat::Jsonl | OutputFormat::Yaml => self.values(run),
        }
    }

    fn redraw(&mut self, run: &RunDetail) -> Result<()> {
        let many = run.node_states.len() > render::SHOW_ALL_MAX && !run.summary.status.is_ended();
        let mut lines = vec![render::heading(run, &self.out)];
        let mut n_hidden = 0;
        for (path, node) in render::in_order(&run.node_states) {
            // Completed and pending nodes matter least.
            if many && matches!(node.status.as_str(), "completed" | "skipped" | "pending") {
                n_hidden += 1;
            } else {
                lines.push(render::node_line(path, node, run.summary.round, &self.out));
            }
        }
        if n_hidden > 0 {
            lines.push(format!("  … {n_hidden} nodes that are done or pending"));
        }
        if let Some(error) = run.summary.error.as_ref().filter(|_| run.summary.status.is_ended()) {
            lines.push(format!("error: {}", error.message));
        }
        let up =
            if self.n_lines > 0 { output::command(&format!("{}A", self.n_lines)) } else { String::new() };
        let wipe = output::command("2K");
        let body: String = lines.iter().map(|line| format!("{wipe}{line}\n")).collect();
        // Wipes the rest of a longer picture.
        output::part(&format!("{up}{body}{}", output::command("J")))?;
        self.n_lines = lines.len();
        Ok(())
    }

    /// One line for every node whose status changed, and for the run.
    fn lines(&mut self, run: &RunDetail) -> Result<()> {
        for (path, node) in render::in_order(&run.node_states) {
            let known = self.seen.get(path).map(String::as_str).unwrap_or("pending");
            if known != node.status {
                output::line(&render::node_line(path, node, run.summary.round, &self.out))?;
            }
            self.seen.insert(path.clone(), node.status.clone());
        }
        if self.status != Some(run.summary.status) {
            output::line(&render::heading(run, &self.out))?;
            self.status = Some(run.summary.status);
        }
        Ok(())
    }

    /// One JSON value for every change, so that a program can follow.
    fn values(&mut self, run: &RunDetail) -> Result<()> {
        for (path, node) in render::in_order(&run.node_states) {
            let known = self.seen.get(path).map(String::as_str).unwrap_or("pending");
            if known != node.status {
                let change = serde_json::json!({ "node": path, "status": node.status });
                output::line(&change.to_string())?;
            }
            self.seen.insert(path.clone(), node.status.clone());
        }
        if self.status != Some(run.summary.status) {
            let change = serde_json::json!({ "run": run.summary.id, "status": run.summary.status });
            output::line(&change.to_string())?;
            self.status = Some(run.summary.status);
        }
        Ok(())
    }
}

pub(super) async fn events(which: &RunSelector, follow: bool, session: &Session) -> Result<Exit> {
    let run = session.run_id(&which.run).await?;
    if follow {
        return follow_events(&run, session).await;
    }
    let mut page = PageQuery { cursor: None, limit: Some(PAGE_SIZE) };
    let mut entries: Vec<JournalEntry> = Vec::new();
    loop {
        let part = session.client.runs().journal(&run, &page).await?;
        entries.extend(part.items);
        match part.next {
            Some(next) => page.cursor = Some(next),
            None => break,
        }
    }
    session.out.list(
        ["entry", "at", "events"],
        &entries,
        |entry| entry.seq.to_string(),
        |entry| [entry.seq.to_string(), entry.at.to_string(), words_of(entry)],
    )?;
    Ok(Exit::Done)
}

async fn follow_events(run: &str, session: &Session) -> Result<Exit> {
    let mut poller = ServerPoller::new(None);
    let mut last: Option<String> = None;
    loop {
        // A run that ended before the stream was opened sends all its entries before the stream ends.
        let seen = poller.poll(async || session.client.runs().show(run).await).await?;
        let has_ended = seen.summary.status.is_ended();
        match print_events(run, &mut last, session).await {
            Ok(()) if has_ended => return Ok(Exit::Done),
            Ok(()) => {}
            Err(error) => match error.downcast_ref::<ClientError>() {
                // A broken stream continues where it broke.
                Some(broke) if broke.is_temporary() => {}
                Some(_) | None => return Err(error),
            },
        }
        tokio::time::sleep(REDRAW_DELAY).await;
    }
}

/// Prints the entries after `last` until the stream is closed.
async fn print_events(run: &str, last: &mut Option<String>, session: &Session) -> Result<()> {
    let mut stream = session.client.runs().events(run, last.as_deref()).await?;
    while let Some(event) = stream.next().await? {
        *last = event.id.clone().or(last.take());
        match serde_json::from_str::<JournalEntry>(&event.data) {
            Ok(entry) if session.out.format() == OutputFormat::Table => {
                output::line(&format!("{:>5}  {}  {}", entry.seq, entry.at, words_of(&entry)))?;
            }
            Ok(_) => output::line(&event.data)?,
            Err(_the_end_or_something_new) => {}
        }
    }
    Ok(())
}

/// The kinds of the events of an entry, with the nodes they are about.
fn words_of(entry: &JournalEntry) -> String {
    let word = |event: &serde_json::Value| {
        let kind = event["e"].as_str().unwrap_or("?");
        match event["node"].as_str() {
            Some(node) => format!("{kind} {node}"),
            None => kind.to_owned(),
        }
    };
    entry.events.iter().map(word).collect::<Vec<_>>().join(", ")
}
