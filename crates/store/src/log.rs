//! What those who were called wrote while they worked.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::event::Level;
use windlass_engine::id::RunId;
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;

/// What is read of the logs of one run at once: whoever wants more goes on after the last one.
pub const LOGS_MAX: usize = 100;

/// What an attempt wrote by one of its ends; one that was suspended ends again when it is reported. It is written with
/// the entry of the journal that tells the end, and never changed. Deleted with its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    pub run: RunId,
    /// The number of that entry; 0 = there is none.
    pub entry: u64,
    /// The grant of the attempt: it never comes again within the run.
    pub fence: u64,
    /// Where the attempt was made.
    pub node: NodePath,
    /// When it was handed in.
    pub at: Timestamp,
    /// What was written as one text.
    pub text: String,
    /// What was written line by line.
    pub lines: Vec<Said>,
}

/// Which logs of a run are read; at most [`LOGS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogsOf {
    /// Of one attempt, by entry.
    Attempt(u64),
    /// Those after this one, by entry, then by fence.
    After { entry: u64, fence: u64 },
}

/// One line of a log, as whoever worked gave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Said {
    pub level: Level,
    pub message: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}
