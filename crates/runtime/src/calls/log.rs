//! Log lines that calls return beside their results: for people, within bounds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use windlass_engine::counter::Fence;
use windlass_engine::event::Level;
use windlass_engine::limits::ERROR_BYTES;
use windlass_engine::path::NodePath;
use windlass_engine::weight::weigh;
use windlass_store::commit::Commit;
use windlass_store::log::LogRow;

pub use windlass_store::log::LoggedLine;

/// Bytes of a text; the last ones are kept.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
/// Lines handed in with one end of an attempt.
pub const LINES_MAX: usize = 1_000;
/// Bytes of these lines together, texts and data.
pub const LINES_BYTES_MAX: usize = 256 << 10;
/// Bytes of the data of one line.
pub const DATA_BYTES_MAX: usize = 16 << 10;

/// The log of one attempt.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Log {
    /// As one text.
    pub text: String,
    /// Line by line.
    pub lines: Vec<LoggedLine>,
}

impl Log {
    /// A log that is one text; of a long one the end.
    pub fn of_text(text: impl Into<String>) -> Self {
        let text = text.into();
        let cut = text.ceil_char_boundary(text.len().saturating_sub(TEXT_BYTES_MAX));
        let text = if cut == 0 { text } else { text[cut..].to_owned() };
        Log { text, lines: Vec::new() }
    }

    /// A log of lines. Excess is cut, and a line says so: a log never costs a result.
    pub fn of_lines(lines: impl IntoIterator<Item = LoggedLine>) -> Self {
        let (mut kept, mut n_bytes, mut n_more) = (Vec::new(), 0_usize, 0_usize);
        for line in lines {
            if n_more == 0 && kept.len() < LINES_MAX {
                let (line, weight) = bounded(line);
                n_bytes = n_bytes.saturating_add(weight);
                if n_bytes <= LINES_BYTES_MAX {
                    kept.push(line);
                    continue;
                }
            }
            n_more += 1;
        }
        if n_more > 0 {
            let message = format!(
                "{n_more} more lines were left out: an attempt may write {LINES_MAX}, and {LINES_BYTES_MAX} bytes of them"
            );
            kept.push(LoggedLine { level: Level::Warn, message, data: Value::Null });
        }
        Log { text: String::new(), lines: kept }
    }

    /// The log in a worker's answer: `log`, a text, and `logs`, lines or texts that are lines. A line reports parts
    /// that cannot be read.
    pub fn read(log: Option<String>, logs: Value) -> Self {
        Log { lines: read_lines(logs).lines, ..Log::of_text(log.unwrap_or_default()) }
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.lines.is_empty()
    }
}

/// A line cut to its limit, and its weight.
fn bounded(line: LoggedLine) -> (LoggedLine, usize) {
    let (data, n_bytes) = match weigh(&line.data) {
        Ok(bytes) if bytes <= DATA_BYTES_MAX => (line.data, bytes),
        Ok(_) | Err(_) => (Value::String(format!("left out: more than {DATA_BYTES_MAX} bytes")), 0),
    };
    let mut message = line.message;
    message.truncate(message.floor_char_boundary(ERROR_BYTES));
    let weight = n_bytes.saturating_add(message.len());
    (LoggedLine { level: line.level, message, data }, weight)
}

/// The log of an attempt, on its way into the commit of its end.
#[derive(Debug, Clone)]
pub(crate) struct AttemptLog {
    pub(crate) node: NodePath,
    pub(crate) fence: Fence,
    pub(crate) log: Log,
}

impl AttemptLog {
    /// Adds it to the commit of the attempt's end; without such an entry it is dropped.
    pub(crate) fn join(&self, commit: &mut Commit) {
        let Some(change) = &commit.run else { return };
        let AttemptLog { node, fence, log: Log { text, lines } } = self;
        if self.log.is_empty() {
            return;
        }
        // Suspended and reported in one entry.
        if let Some(row) = commit.logs.iter_mut().find(|row| row.fence == *fence) {
            let lines = std::mem::take(&mut row.lines).into_iter().chain(lines.iter().cloned());
            row.lines = Log::of_lines(lines).lines;
            row.text = Log::of_text(std::mem::take(&mut row.text) + text).text;
            return;
        }
        let (run, entry) = (change.run, change.expected_len.next());
        let (node, at, text, lines) = (node.clone(), commit.now, text.clone(), lines.clone());
        commit.logs.push(LogRow { run, entry, fence: *fence, node, at, text, lines });
    }
}

/// Collects log lines of a run. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Logger(Arc<Mutex<Vec<LoggedLine>>>);

impl Logger {
    /// Something to know.
    pub fn info(&self, message: impl Into<String>) {
        self.add(Level::Info, message, Value::Null);
    }

    /// A warning.
    pub fn warn(&self, message: impl Into<String>) {
        self.add(Level::Warn, message, Value::Null);
    }

    /// Something that went wrong.
    pub fn error(&self, message: impl Into<String>) {
        self.add(Level::Error, message, Value::Null);
    }

    /// A line with its fields. Fields beyond the limit are dropped.
    pub fn add(&self, level: Level, message: impl Into<String>, data: Value) {
        let mut lines = self.lines();
        // One more, so that it is said that there were more.
        if lines.len() <= LINES_MAX {
            lines.push(LoggedLine { level, message: message.into(), data });
        }
    }

    /// The lines so far.
    pub(crate) fn take(&self) -> Log {
        Log::of_lines(std::mem::take(&mut *self.lines()))
    }

    fn lines(&self) -> MutexGuard<'_, Vec<LoggedLine>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads `logs` of a worker's answer: lines, or texts that are lines. A line reports parts that cannot be read.
pub(crate) fn read_lines(logs: Value) -> Log {
    let Value::Array(items) = logs else {
        let unreadable = if logs.is_null() { None } else { Some(unread("`logs` is not an array")) };
        return Log::of_lines(unreadable);
    };
    Log::of_lines(items.into_iter().map(|item| match item {
        Value::String(message) => LoggedLine { level: Level::Info, message, data: Value::Null },
        Value::Object(mut fields) => {
            let level = match fields.get("level").and_then(Value::as_str) {
                None | Some("info") => Level::Info,
                Some("warn" | "warning") => Level::Warn,
                Some("error") => Level::Error,
                Some(_) => return unread("the level of a line is `info`, `warn` or `error`"),
            };
            match fields.remove("message") {
                Some(Value::String(message)) => {
                    LoggedLine { level, message, data: fields.remove("data").unwrap_or_default() }
                }
                Some(_) | None => unread("a line of `logs` has no text `message`"),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            unread("a line of `logs` is neither an object nor a text")
        }
    }))
}

fn unread(why: &str) -> LoggedLine {
    LoggedLine {
        level: Level::Warn,
        message: format!("the log of the worker cannot be read: {why}"),
        data: Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_read_in_order_and_unreadable_ones_are_reported() {
        let log = read_lines(json!([
            "plain", {"level": "warn", "message": "half", "data": {"percent": 50}}, {"message": "x"}, {"level": "loud",
            "message": "y"}, {"level": "info"}, 7
        ]));
        let read: Vec<(&str, &str)> =
            log.lines.iter().map(|line| (line.level.word(), line.message.as_str())).collect();
        assert_eq!(read[..3], [("info", "plain"), ("warn", "half"), ("info", "x")]);
        assert_eq!(log.lines[1].data, json!({"percent": 50}));
        assert!(read[3..].iter().all(|(level, text)| *level == "warn" && text.contains("cannot be read")));
        assert_eq!(read.len(), 6);
        assert!(read_lines(Value::Null).is_empty());
        assert_eq!(read_lines(json!({})).lines.len(), 1);
    }

    #[test]
    fn a_log_stays_within_bounds_and_reports_dropped_lines() {
        let line = |n: usize, data: Value| LoggedLine { level: Level::Info, message: "x".repeat(n), data };
        let log = Log::of_lines((0..LINES_MAX + 5).map(|_| line(10, json!("y".repeat(100_000)))));
        assert_eq!(log.lines.len(), LINES_MAX + 1);
        assert!(log.lines[LINES_MAX].message.starts_with("5 more lines"));
        assert!(log.lines[0].data.as_str().unwrap().starts_with("left out"));
        let long = Log::of_lines([line(10_000, Value::Null)]);
        assert_eq!(long.lines[0].message.len(), ERROR_BYTES);
        let heavy = Log::of_lines((0..100).map(|_| line(1, json!("y".repeat(10_000)))));
        assert_eq!(heavy.lines.len(), 27);
        assert!(heavy.lines[26].message.starts_with("74 more lines"), "{}", heavy.lines[26].message);
    }

    #[test]
    fn the_end_of_a_long_text_is_kept() {
        let log = Log::of_text("é".repeat(TEXT_BYTES_MAX) + "!");
        assert_eq!((log.text.len(), log.text.ends_with("é!")), (TEXT_BYTES_MAX - 1, true));
        assert_eq!(Log::read(Some("x".repeat(TEXT_BYTES_MAX)), Value::Null).text.len(), TEXT_BYTES_MAX);
    }
}
