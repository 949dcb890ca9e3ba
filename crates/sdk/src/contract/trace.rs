//! The history of a run, and the reasons why it waits.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{FaultInfo, RunStatus, Time};

/// One attempt at a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeAttemptInfo {
    /// The fence of the call; absent where no call was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    pub node: String,
    /// The entry into the node that it belongs to.
    pub visit: u64,
    /// Counts from 1 within a visit.
    pub attempt: u32,
    /// `ok`, `error`, `canceled`, `queued`, `running`, `suspended` or `waiting`.
    pub status: String,
    /// The index or the name of the branch, in a fan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The type as the definition spells it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    #[serde(default)]
    pub input: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FaultInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    pub started_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
}

/// The events that one commit appended to the journal of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JournalEntry {
    /// Its number, from 1.
    pub seq: u64,
    pub at: Time,
    /// The command that did it.
    pub command: String,
    /// The events in order; `e` names the kind of each.
    #[schema(value_type = Vec<Object>)]
    pub events: Vec<Value>,
}

/// One line of a run's log: an event in words, or a line from a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    pub at: Time,
    pub level: LogLevel,
    /// The node it is about; absent = the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The title of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The attempt that said it; absent = the run says it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    pub message: String,
    /// Further fields, without long values; for a worker's line, the fields that it sent.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// How serious a line of a log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    #[default]
    Info,
    Warn,
    Error,
}

impl LogLevel {
    /// The word used on the wire.
    pub fn word(self) -> &'static str {
        match self {
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

/// A log line that a worker sends with the result of a call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct WorkerLogLine {
    pub level: LogLevel,
    pub message: String,
    /// Further fields of the line; more than 16 KiB are dropped.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// The reasons why a run waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    pub id: String,
    pub status: RunStatus,
    /// Outermost first.
    pub reasons: Vec<WaitReason>,
}

/// One thing that keeps a run from going on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct WaitReason {
    /// Where; empty = the run itself.
    pub node: String,
    /// `start`, `resume`, `step`, `turn` (it goes on by itself), `nothing`, `cancel_confirmation`, `answer`, `worker`,
    /// `queue` (which is paused), `limit` (of the queue), `retry`, `report`, `timer`, `signal`, `approval`, `balance`
    /// or `budget`.
    pub waits_for: String,
    /// The same in a sentence.
    pub text: String,
    /// The remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Workers of the service that are alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_workers: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The key of the signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// People who may decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assignees: Vec<String>,
    /// The error before the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// When it goes on, or gives up, by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// The price of the call that waits for money, in minor units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<i64>,
    /// The amount that the account lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<i64>,
}

/// A change of any run, as the stream of all runs tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeEvent {
    pub run: String,
    pub flow_id: String,
    /// The number of the journal's entry.
    pub seq: u64,
    pub at: Time,
    pub status: RunStatus,
    /// The node that was entered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// The last thing that the stream of a run tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndEvent {
    pub run: String,
    pub status: RunStatus,
}
