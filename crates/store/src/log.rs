//! What those who were called wrote while they worked.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::event::Level;
use windlass_engine::id::RunId;
use windlass_engine::time::Timestamp;

/// What is read of the logs of one run at once: whoever wants a certain one asks for it by its fence.
pub const LOGS_MAX: usize = 1_000;

/// The log of one attempt. Deleted with its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    pub run: RunId,
    /// The grant of the attempt: it never comes again within the run.
    pub fence: u64,
    /// When it was written last.
    pub at: Timestamp,
    /// What was written as one text.
    pub text: String,
    /// What was written line by line.
    pub lines: Vec<Said>,
}

/// One line of a log, as whoever worked gave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Said {
    pub level: Level,
    pub message: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}
