//! Calls as a plan knows them: the executor, its settings, and its retries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Priority;
use crate::params::Params;

/// One unit of work that a worker, script, function or child run performs.
#[derive(Debug, Clone)]
pub struct Call {
    pub exec: Exec,
    pub service: String,
    /// Literal parameters of the node (graph form).
    pub params: Params,
    pub retry: crate::retry::Policy,
    /// Push workers that are called within one try, after calls without an answer and after errors; 0 = every live
    /// worker of the service, after calls without an answer only.
    pub failover_max: u32,
    pub failover_delay_ms: u64,
    pub weighted_by_load: bool,
    /// Time limit of one attempt; 0 = the server's default.
    pub timeout_ms: u64,
    /// Time limit over all attempts of a visit; 0 = none. When it passes, the worker is told to stop and has
    /// [`crate::retry::WATCHDOG_MS`] left to answer.
    pub total_timeout_ms: u64,
    /// Temporary faults are tried again quickly and then suspend the node.
    pub temporary: Temporary,
    pub cost: Option<crate::money::Cost>,
    pub recheck: Recheck,
    /// The class of the call; `None` = the setting of the service, or else the run's.
    pub priority: Option<Priority>,
    /// Never deliver again when it is unknown whether the call was executed.
    pub at_most_once: bool,
}

/// When a suspended call whose worker named no interval is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recheck {
    /// As its service says; without such a setting, only when it is reported.
    #[default]
    OfService,
    /// As its service says; without such a setting, every [`Recheck::RECONCILE_MS`] (dag form).
    Reconciled,
    /// Every so often, whatever its service says. It is also the first wait while temporary faults go on.
    Every(u64),
    /// Only when it is reported, whatever its service says.
    UntilReported,
}

impl Recheck {
    /// The interval of the dag form: the time between two looks at a suspended call.
    pub const RECONCILE_MS: u64 = 10_000;
}

/// The effect of a temporary fault (network, time-out) of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Temporary {
    /// Counts as a failed try like any other (graph and steps forms).
    #[default]
    Fails,
    /// Three quick tries more, then suspended and asked again (dag form).
    Suspends,
}

/// The executor of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Exec {
    /// A push worker, over HTTP.
    Http,
    /// A pull worker, through a job.
    Queue,
    /// A function registered in the server.
    Func { name: String },
    /// A script run by the server.
    Script(Box<Script>),
    /// Another flow, as a child run.
    Flow { flow: String, version: Option<u32> },
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cmd: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub code: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub language: String,
    pub timeout_ms: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub work_dir: String,
    pub stdin_mode: StdinMode,
    pub output_mode: OutputMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StdinMode {
    /// The input, the params and the memo.
    Json,
    #[default]
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputMode {
    /// JSON if the output parses, else text.
    #[default]
    Auto,
    /// The same, but text gets a warning in the log.
    Json,
    Text,
}
