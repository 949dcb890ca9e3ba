//! What there is to read about a run, in words.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use windlass_engine::event::Level;
use windlass_engine::journal::Entry;
use windlass_engine::log::{begun, ended, line};
use windlass_engine::path::NodePath;
use windlass_sdk::types::{List, LogLevel, LogLine, LogsQuery};
use windlass_store::log::LogRow;

use crate::app::{App, run_id};
use crate::extract::{Asked, At};
use crate::problem::Answer;
use crate::shape;

/// Lists what happened to a run, and what those said who worked for it, oldest first. What an attempt wrote stands
/// where it ended. Every page reads the whole journal: of a long run ask for large pages (`limit` up to 1,000). Of the
/// attempts that wrote something, the first 1,000 are heard.
#[utoipa::path(get, path = "/api/v1/runs/{id}/logs", operation_id = "list_logs", tag = "runs",
    params(("id" = String, Path, description = "The id of the run"), LogsQuery),
    responses((status = 200, description = "A page of lines", body = List<LogLine>)))]
pub(crate) async fn list(
    State(app): State<App>,
    At(id): At<String>,
    Asked(asked): Asked<LogsQuery>,
) -> Answer<Json<List<LogLine>>> {
    let row = app.row(run_id(&id)?).await?;
    let logs = app.store().logs(row.id, None).await?;
    let mut story = Story::new(logs);
    app.each_entry(row.id, |_, entry| story.follow(entry)).await?;
    let mut lines = story.end(!row.standing.status.is_open());
    let level = asked.level.unwrap_or_default();
    let node = asked.node.as_deref().filter(|node| !node.is_empty());
    lines.retain(|line| line.level >= level && node.is_none_or(|node| is_about(line, node)));
    Ok(Json(shape::slice(&lines, asked.cursor.as_deref(), asked.limit, LogLine::clone)?))
}

/// Whether a line is about this node or something inside it.
fn is_about(line: &LogLine, node: &str) -> bool {
    let Some(path) = &line.node else { return false };
    path.strip_prefix(node).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The lines of a journal, with what attempts wrote where they ended. The list only ever grows at its end: what an
/// attempt wrote is stored before its end is.
struct Story {
    lines: Vec<LogLine>,
    /// Where attempts were made.
    nodes: BTreeMap<u64, NodePath>,
    /// What was written by attempts that have not ended.
    written: BTreeMap<u64, LogRow>,
}

impl Story {
    fn new(logs: Vec<LogRow>) -> Self {
        let written = logs.into_iter().map(|row| (row.fence, row)).collect();
        Story { lines: Vec::new(), nodes: BTreeMap::new(), written }
    }

    fn follow(&mut self, entry: &Entry) {
        for event in &entry.events {
            if let Some((node, fence)) = begun(event)
                && self.written.contains_key(&fence)
            {
                self.nodes.insert(fence, node.clone());
            }
            if let Some(row) = ended(event).and_then(|fence| self.written.remove(&fence)) {
                self.write(&row);
            }
            if let Some(line) = line(event) {
                self.lines.push(LogLine {
                    at: shape::time(entry.at),
                    level: level(line.level),
                    node: line.node.map(|node| node.to_string()),
                    fence: None,
                    message: line.message,
                    data: if line.data.is_empty() { Value::Null } else { Value::Object(line.data) },
                });
            }
        }
    }

    fn write(&mut self, row: &LogRow) {
        let node = self.nodes.get(&row.fence).map(ToString::to_string);
        let said = |level, message: &str, data: &Value| LogLine {
            at: shape::time(row.at),
            level,
            node: node.clone(),
            fence: Some(row.fence),
            message: message.to_owned(),
            data: data.clone(),
        };
        if !row.text.is_empty() {
            self.lines.push(said(LogLevel::Info, &row.text, &Value::Null));
        }
        self.lines.extend(row.lines.iter().map(|line| said(level(line.level), &line.message, &line.data)));
    }

    /// All lines. Attempts that were cut off with their run have no end of their own.
    fn end(mut self, is_over: bool) -> Vec<LogLine> {
        if is_over {
            std::mem::take(&mut self.written).values().for_each(|row| self.write(row));
        }
        self.lines
    }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::Info => LogLevel::Info,
        Level::Warn => LogLevel::Warn,
        Level::Error => LogLevel::Error,
    }
}
