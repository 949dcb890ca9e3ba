//! Log lines that workers, scripts and functions wrote during an attempt.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::event::Level;
use windlass_engine::id::RunId;
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;

/// Lines of one run's logs that are read at once: readers page on after the last one.
pub const LOGS_MAX: usize = 100;

/// The log of an attempt up to one of its ends; a suspended attempt ends again when it is reported. It is written with
/// the journal entry of that end, and never changed. Deleted with its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    pub run: RunId,
    /// The number of that entry; 0 = there is none.
    pub entry: Seq,
    /// The grant of the attempt: it never comes again within the run.
    pub fence: Fence,
    /// Where the attempt was made.
    pub node: NodePath,
    /// When it was handed in.
    pub at: Timestamp,
    /// A log in one text.
    pub text: String,
    /// A log line by line.
    pub lines: Vec<LoggedLine>,
}

/// Which logs of a run are read; at most [`LOGS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogsOf {
    /// One attempt, by entry.
    Attempt(Fence),
    /// Those after this one, by entry, then by fence.
    After { entry: Seq, fence: Fence },
}

/// One line of a log, as the worker sent it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedLine {
    pub level: Level,
    pub message: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}
