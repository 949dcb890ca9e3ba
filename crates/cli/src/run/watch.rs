//! Following a run: redrawn in place for people, one line a change for pipes.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use windlass_sdk::client::EventStream;
use windlass_sdk::types::{JournalEntry, PageQuery, Run, RunStatus};
use windlass_sdk::{Client, ClientError};

use super::{Which, code_of, picture};
use crate::asking::{Asking, TIMED_OUT};
use crate::output::{self, Format, Output};
use crate::session::Session;

/// How long nothing may be heard before the run is looked at again.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// How long changes are gathered before they are drawn.
const GATHER: Duration = Duration::from_millis(40);
/// Entries read at once.
const PAGE: usize = 1_000;

pub(super) async fn watch(id: &str, timeout: Option<Duration>, session: &Session) -> Result<ExitCode> {
    let mut asking = Asking::new(timeout);
    let mut bell = Bell::default();
    let mut screen = Screen { out: session.out, n_lines: 0, seen: BTreeMap::new(), status: None };
    loop {
        let run = asking.look(async || session.client.run(id).await).await?;
        screen.show(&run)?;
        if run.summary.status.is_ended() {
            return Ok(code_of(run.summary.status));
        }
        let left = asking.left();
        if left.is_some_and(|left| left.is_zero()) {
            output::message(&format!(
                "error: {id} did not end in time\n  see what it waits for: windlass run why {id}"
            ));
            return Ok(ExitCode::from(TIMED_OUT));
        }
        bell.wait(&session.client, id, left.unwrap_or(LOOK).min(LOOK)).await;
    }
}

/// Rings when something happened to a run. Without a stream it rings now and then.
#[derive(Default)]
pub(super) struct Bell {
    stream: Option<EventStream>,
    last: Option<String>,
}

impl Bell {
    pub(super) async fn wait(&mut self, client: &Client, id: &str, at_most: Duration) {
        if self.stream.is_none() {
            self.stream = client.run_events(id, self.last.as_deref()).await.ok();
        }
        let Some(stream) = &mut self.stream else {
            return tokio::time::sleep(at_most).await;
        };
        match tokio::time::timeout(at_most, stream.next()).await {
            Ok(Ok(Some(event))) => self.last = event.id.or(self.last.take()),
            Ok(Ok(None) | Err(_)) => self.stream = None,
            Err(_quiet) => return,
        }
        tokio::time::sleep(GATHER.min(at_most)).await;
    }
}

/// What was drawn last.
struct Screen {
    out: Output,
    n_lines: usize,
    seen: BTreeMap<String, String>,
    status: Option<RunStatus>,
}

impl Screen {
    fn show(&mut self, run: &Run) -> Result<()> {
        match self.out.format() {
            Format::Table if self.out.terminal => self.redraw(run),
            Format::Table => self.lines(run),
            Format::Json | Format::Jsonl | Format::Yaml => self.values(run),
        }
    }

    fn redraw(&mut self, run: &Run) -> Result<()> {
        let many = run.node_states.len() > picture::MANY && !run.summary.status.is_ended();
        let mut lines = vec![picture::heading(run, &self.out)];
        let mut n_hidden = 0;
        for (path, node) in picture::in_order(&run.node_states) {
            // Of many nodes, those that went well or did not begin say the least.
            if many && matches!(node.status.as_str(), "completed" | "skipped" | "pending") {
                n_hidden += 1;
            } else {
                lines.push(picture::node_line(path, node, &self.out));
            }
        }
        if n_hidden > 0 {
            lines.push(format!("  … {n_hidden} nodes that are done or to come"));
        }
        if let Some(error) = run.summary.error.as_ref().filter(|_| run.summary.status.is_ended()) {
            lines.push(format!("error: {}", error.message));
        }
        let up = if self.n_lines > 0 { format!("\u{1b}[{}A", self.n_lines) } else { String::new() };
        let body: String = lines.iter().map(|line| format!("\u{1b}[2K{line}\n")).collect();
        // What is left of a longer picture below is wiped.
        output::raw(&format!("{up}{body}\u{1b}[J"))?;
        self.n_lines = lines.len();
        Ok(())
    }

    /// One line for every node whose status changed, and for the run.
    fn lines(&mut self, run: &Run) -> Result<()> {
        for (path, node) in picture::in_order(&run.node_states) {
            let known = self.seen.get(path).map(String::as_str).unwrap_or("pending");
            if known != node.status {
                output::line(&picture::node_line(path, node, &self.out))?;
            }
            self.seen.insert(path.clone(), node.status.clone());
        }
        if self.status != Some(run.summary.status) {
            output::line(&picture::heading(run, &self.out))?;
            self.status = Some(run.summary.status);
        }
        Ok(())
    }

    /// One JSON value for every change, so that a program can follow.
    fn values(&mut self, run: &Run) -> Result<()> {
        for (path, node) in picture::in_order(&run.node_states) {
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

pub(super) async fn events(which: &Which, follow: bool, session: &Session) -> Result<ExitCode> {
    let run = session.run_id(&which.run).await?;
    if follow {
        return follow_events(&run, session).await;
    }
    let mut page = PageQuery { cursor: None, limit: Some(PAGE) };
    let mut entries: Vec<JournalEntry> = Vec::new();
    loop {
        let part = session.client.journal(&run, &page).await?;
        entries.extend(part.items);
        match part.next {
            Some(next) => page.cursor = Some(next),
            None => break,
        }
    }
    session.out.list(
        ["entry", "at", "what happened"],
        &entries,
        |entry| entry.seq.to_string(),
        |entry| [entry.seq.to_string(), entry.at.to_string(), words_of(entry)],
    )?;
    Ok(ExitCode::SUCCESS)
}

async fn follow_events(run: &str, session: &Session) -> Result<ExitCode> {
    let mut asking = Asking::new(None);
    let mut last: Option<String> = None;
    loop {
        // What ended before the stream was opened has told everything when the stream ends.
        let seen = asking.look(async || session.client.run(run).await).await?;
        let has_ended = seen.summary.status.is_ended();
        match tell_events(run, &mut last, session).await {
            Ok(()) if has_ended => return Ok(ExitCode::SUCCESS),
            Ok(()) => {}
            Err(error) => match error.downcast_ref::<ClientError>() {
                // A stream that breaks is taken up where it broke.
                Some(broke) if broke.is_temporary() => {}
                Some(_) | None => return Err(error),
            },
        }
        tokio::time::sleep(GATHER).await;
    }
}

/// Prints what a stream says after `last`, until it is closed.
async fn tell_events(run: &str, last: &mut Option<String>, session: &Session) -> Result<()> {
    let mut stream = session.client.run_events(run, last.as_deref()).await?;
    while let Some(event) = stream.next().await? {
        *last = event.id.clone().or(last.take());
        match serde_json::from_str::<JournalEntry>(&event.data) {
            Ok(entry) if session.out.format() == Format::Table => {
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
