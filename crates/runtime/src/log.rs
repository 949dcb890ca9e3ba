//! What those who are called write beside their results: for people, within bounds.

use serde_json::Value;
use windlass_engine::event::Level;
use windlass_engine::limits::ERROR_BYTES;
use windlass_engine::weight::weigh;

pub use windlass_store::log::Said;

/// Lines kept of one attempt.
pub const LINES_MAX: usize = 1_000;
/// Bytes of the data of one line.
pub const DATA_BYTES_MAX: usize = 16 << 10;

/// What one attempt wrote.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Log {
    /// As one text.
    pub text: String,
    /// Line by line.
    pub lines: Vec<Said>,
}

impl Log {
    /// A log that is one text.
    pub fn of_text(text: impl Into<String>) -> Self {
        Log { text: text.into(), lines: Vec::new() }
    }

    /// A log of lines. What is too much is cut, and a line says so: a log never costs a result.
    pub fn of_lines(lines: impl IntoIterator<Item = Said>) -> Self {
        let mut lines = lines.into_iter();
        let mut kept: Vec<Said> = lines.by_ref().take(LINES_MAX).map(bounded).collect();
        let n_more = lines.count();
        if n_more > 0 {
            let message = format!("{n_more} more lines were left out: an attempt may write {LINES_MAX}");
            kept.push(Said { level: Level::Warn, message, data: Value::Null });
        }
        Log { text: String::new(), lines: kept }
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.lines.is_empty()
    }
}

fn bounded(said: Said) -> Said {
    let data = match weigh(&said.data) {
        Ok(bytes) if bytes <= DATA_BYTES_MAX => said.data,
        Ok(_) | Err(_) => Value::String(format!("left out: more than {DATA_BYTES_MAX} bytes")),
    };
    let mut message = said.message;
    message.truncate(message.floor_char_boundary(ERROR_BYTES));
    Said { level: said.level, message, data }
}

/// Reads `logs` of a worker's answer: lines, or texts that are lines. What cannot be read is said in a line.
pub(crate) fn read_lines(logs: Value) -> Log {
    let Value::Array(items) = logs else {
        let unreadable = if logs.is_null() { None } else { Some(unread("`logs` is not an array")) };
        return Log::of_lines(unreadable);
    };
    Log::of_lines(items.into_iter().map(|item| match item {
        Value::String(message) => Said { level: Level::Info, message, data: Value::Null },
        Value::Object(mut fields) => {
            let level = match fields.get("level").and_then(Value::as_str) {
                None | Some("info") => Level::Info,
                Some("warn" | "warning") => Level::Warn,
                Some("error") => Level::Error,
                Some(_) => return unread("the level of a line is `info`, `warn` or `error`"),
            };
            match fields.remove("message") {
                Some(Value::String(message)) => {
                    Said { level, message, data: fields.remove("data").unwrap_or_default() }
                }
                Some(_) | None => unread("a line of `logs` has no text `message`"),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            unread("a line of `logs` is neither an object nor a text")
        }
    }))
}

fn unread(why: &str) -> Said {
    Said {
        level: Level::Warn,
        message: format!("what the worker logged cannot be read: {why}"),
        data: Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_read_as_they_come_and_what_is_wrong_is_said() {
        let log = read_lines(json!([
            "plain", {"level": "warn", "message": "half", "data": {"percent": 50}}, {"message": "x"}, {"level": "loud",
            "message": "y"}, {"level": "info"}, 7
        ]));
        let told: Vec<(&str, &str)> =
            log.lines.iter().map(|said| (said.level.word(), said.message.as_str())).collect();
        assert_eq!(told[..3], [("info", "plain"), ("warn", "half"), ("info", "x")]);
        assert_eq!(log.lines[1].data, json!({"percent": 50}));
        assert!(told[3..].iter().all(|(level, text)| *level == "warn" && text.contains("cannot be read")));
        assert_eq!(told.len(), 6);
        assert!(read_lines(Value::Null).is_empty());
        assert_eq!(read_lines(json!({})).lines.len(), 1);
    }

    #[test]
    fn a_log_stays_within_bounds_and_says_what_is_missing() {
        let line = |data: Value| Said { level: Level::Info, message: "x".repeat(10_000), data };
        let log = Log::of_lines((0..LINES_MAX + 5).map(|_| line(json!("y".repeat(100_000)))));
        assert_eq!(log.lines.len(), LINES_MAX + 1);
        assert!(log.lines[LINES_MAX].message.starts_with("5 more lines"));
        assert!(log.lines[0].message.len() <= ERROR_BYTES);
        assert!(log.lines[0].data.as_str().unwrap().starts_with("left out"));
    }
}
