//! The log of a run, in words.

use std::collections::VecDeque;

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::event::{Event, Level};
use windlass_engine::id::RunId;
use windlass_engine::journal::Entry;
use windlass_engine::log::{ended, line};
use windlass_engine::path::NodePath;
use windlass_engine::plan::Plan;
use windlass_sdk::contract::{List, LogLevel, LogLine, LogsQuery};
use windlass_store::log::{LOGS_MAX, LogRow, LogsOf};
use windlass_store::run::Since;

use crate::app::{App, ENTRIES, run_id};
use crate::extract::{PathParams, QueryParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Lists the log of a run, oldest line first: its events in words, and the lines of its workers at the end of each
/// attempt. Lines never change, and new ones come at the end: with `follow` there is always a `next`, from which only
/// new lines are read.
#[utoipa::path(get, path = "/api/v1/runs/{id}/logs", operation_id = "list_logs", tag = "runs",
    params(("id" = String, Path, description = "The id of the run"), LogsQuery),
    responses((status = 200, description = "A page of lines", body = List<LogLine>)))]
pub(crate) async fn list(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(asked): QueryParams<LogsQuery>,
) -> ApiResult<Json<List<LogLine>>> {
    let row = app.row(run_id(&id)?).await?;
    let from = LogCursor::read(asked.cursor.as_deref())?;
    let limit = shape::limit(asked.limit)?;
    let level = asked.level.unwrap_or_default();
    let node = asked.node.as_deref().filter(|node| !node.is_empty());
    let is_asked = |line: &LogLine| line.level >= level && node.is_none_or(|node| is_about(line, node));
    // A definition that cannot be read any more takes no line from the log.
    let plan = app.runtime.runs().plan(row.origin.version).await.ok();
    let mut story = RunLogReader::new(&app, row.id, from);
    let mut items = Vec::new();
    while let Some((place, line)) = story.next().await? {
        if !is_asked(&line) {
            story.seen = place;
        } else if items.len() < limit {
            items.push(LogLine { title: title(plan.as_deref(), &line), ..line });
            story.seen = place;
        } else {
            return Ok(Json(List { items, next: Some(story.seen.word()) }));
        }
    }
    let next = asked.follow.unwrap_or(false).then(|| story.seen.word());
    Ok(Json(List { items, next }))
}

/// The title of the node that a line is about.
fn title(plan: Option<&Plan>, line: &LogLine) -> Option<String> {
    let position = plan?.position(&NodePath::from(line.node.as_deref()?))?;
    position.node.title.clone()
}

/// Whether a line is about this node or something inside it.
fn is_about(line: &LogLine, node: &str) -> bool {
    let Some(path) = &line.node else { return false };
    path.strip_prefix(node).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Up to where a log was read: an entry of the journal, and how many of its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogCursor {
    entry: Seq,
    n_lines: u64,
}

impl LogCursor {
    fn read(cursor: Option<&str>) -> ApiResult<LogCursor> {
        let Some(cursor) = cursor else { return Ok(LogCursor { entry: Seq(1), n_lines: 0 }) };
        let read = || {
            let (entry, n_lines) = cursor.split_once('.')?;
            Some(LogCursor {
                entry: entry.parse().ok().filter(|entry| *entry > Seq::ZERO)?,
                n_lines: n_lines.parse().ok()?,
            })
        };
        read().ok_or_else(|| {
            ApiError::new(Code::BadCursor, "the cursor is not one of this list: ask again without it")
        })
    }

    fn word(self) -> String {
        format!("{}.{}", self.entry, self.n_lines)
    }
}

/// The lines of a run after a cursor, read lazily. Lines of an attempt are stored with the journal entry of its end, so
/// that an entry always gives the same lines.
struct RunLogReader<'a> {
    app: &'a App,
    run: RunId,
    /// The lines that the client has read.
    seen: LogCursor,
    /// The last entry that was read.
    read: Seq,
    entries: VecDeque<(Seq, Entry)>,
    /// The lines that are stored with these entries, as far as they are read.
    written: VecDeque<LogRow>,
    /// After which the next ones are read; `None` = there are no more.
    after: Option<(Seq, Fence)>,
    lines: VecDeque<(LogCursor, LogLine)>,
    is_over: bool,
}

impl<'a> RunLogReader<'a> {
    fn new(app: &'a App, run: RunId, from: LogCursor) -> Self {
        let read = Seq(from.entry.0 - 1);
        RunLogReader {
            app,
            run,
            seen: from,
            read,
            entries: VecDeque::new(),
            written: VecDeque::new(),
            after: Some((read, Fence(u64::MAX >> 1))),
            lines: VecDeque::new(),
            is_over: false,
        }
    }

    /// The next line, and the place after it.
    async fn next(&mut self) -> ApiResult<Option<(LogCursor, LogLine)>> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(Some(line));
            }
            let Some((seq, entry)) = self.next_entry().await? else { return Ok(None) };
            let rows = self.rows_of(seq).await?;
            let n_seen = if seq == self.seen.entry { self.seen.n_lines } else { 0 };
            let lines = (1..).map(|n_lines| LogCursor { entry: seq, n_lines }).zip(tell(&entry, rows));
            self.lines = lines.filter(|(place, _)| place.n_lines > n_seen).collect();
        }
    }

    async fn next_entry(&mut self) -> ApiResult<Option<(Seq, Entry)>> {
        if self.entries.is_empty() && !self.is_over {
            let since = Since::Entry(self.read);
            let part = self.app.store().journal(self.app.project(), self.run, since, ENTRIES).await?;
            self.is_over = part.entries.len() < ENTRIES;
            self.entries = part.entries.into();
        }
        let next = self.entries.pop_front();
        if let Some((seq, _)) = &next {
            self.read = *seq;
        }
        Ok(next)
    }

    /// The lines that are stored with this entry.
    async fn rows_of(&mut self, seq: Seq) -> ApiResult<Vec<LogRow>> {
        let mut rows = Vec::new();
        loop {
            if self.written.is_empty()
                && let Some((entry, fence)) = self.after
            {
                let part = self
                    .app
                    .store()
                    .logs(self.app.project(), self.run, LogsOf::After { entry, fence })
                    .await?;
                self.after = part.last().filter(|_| part.len() == LOGS_MAX).map(|row| (row.entry, row.fence));
                self.written = part.into();
            }
            match self.written.pop_front_if(|row| row.entry <= seq) {
                Some(row) => rows.push(row),
                None if self.written.is_empty() && self.after.is_some() => {}
                None => return Ok(rows),
            }
        }
    }
}

/// The lines of one entry: its events, and before the end of an attempt the lines of the attempt.
fn tell(entry: &Entry, mut rows: Vec<LogRow>) -> Vec<LogLine> {
    let mut lines = Vec::new();
    for event in &entry.events {
        if let Some(at) = rows.iter().position(|row| is_end(event, row)) {
            write(&mut lines, &rows.remove(at));
        }
        if let Some(line) = line(event) {
            lines.push(LogLine {
                at: shape::time(entry.at),
                level: level(line.level),
                node: line.node.map(|node| node.to_string()),
                title: None,
                fence: None,
                message: line.message,
                data: if line.data.is_empty() { Value::Null } else { Value::Object(line.data) },
            });
        }
    }
    rows.iter().for_each(|row| write(&mut lines, row));
    lines
}

/// Whether this is the end that the log came with.
fn is_end(event: &Event, row: &LogRow) -> bool {
    ended(event) == Some(row.fence) || matches!(event, Event::Dropped { node } if *node == row.node)
}

fn write(lines: &mut Vec<LogLine>, row: &LogRow) {
    let said = |level, message: &str, data: &Value| LogLine {
        at: shape::time(row.at),
        level,
        node: Some(row.node.to_string()).filter(|node| !node.is_empty()),
        title: None,
        fence: Some(row.fence.0),
        message: message.to_owned(),
        data: data.clone(),
    };
    if !row.text.is_empty() {
        lines.push(said(LogLevel::Info, &row.text, &Value::Null));
    }
    lines.extend(row.lines.iter().map(|line| said(level(line.level), &line.message, &line.data)));
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::Info => LogLevel::Info,
        Level::Warn => LogLevel::Warn,
        Level::Error => LogLevel::Error,
    }
}
