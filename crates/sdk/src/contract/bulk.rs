//! Bulk actions: one action on many runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Time;

/// An action on many runs. Give `query` or `ids`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRequest {
    pub kind: BulkKind,
    /// A query of the query language of runs; empty = all runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    pub action: BulkAction,
    #[serde(default)]
    pub args: BulkArgs,
    /// For the audit, and for the runs that are canceled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Changes nothing; the answer tells how many runs would take the action.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The things that an action is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkKind {
    #[default]
    Runs,
}

/// An action on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    #[default]
    Cancel,
    /// Failed and canceled nodes are tried again.
    Retry,
    /// From a node on, which `args.from` names.
    Rerun,
    Pause,
    Resume,
    /// With `args.key` and `args.value`.
    Signal,
}

impl BulkAction {
    /// Every action.
    pub const ALL: [BulkAction; 6] = [
        BulkAction::Cancel,
        BulkAction::Retry,
        BulkAction::Rerun,
        BulkAction::Pause,
        BulkAction::Resume,
        BulkAction::Signal,
    ];

    /// The word used on the wire.
    pub fn word(self) -> &'static str {
        match self {
            BulkAction::Cancel => "cancel",
            BulkAction::Retry => "retry",
            BulkAction::Rerun => "rerun",
            BulkAction::Pause => "pause",
            BulkAction::Resume => "resume",
            BulkAction::Signal => "signal",
        }
    }
}

/// Further values of an action.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkArgs {
    /// The node from which a rerun starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The shared state with which a rerun starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub shared: Option<Map<String, Value>>,
    /// The key of a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The value of a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// The answer to a bulk action: its id, or with `dry_run` the effect that it would have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum BulkAnswer {
    DryRun(BulkDryRun),
    Accepted(BulkAccepted),
}

/// A bulk action that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkAccepted {
    pub id: String,
    /// Runs that were chosen.
    pub matched: u64,
}

/// The effect that a bulk action would have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkDryRun {
    pub dry_run: bool,
    pub matched: u64,
    /// Whether there are more runs than one action may have: it would be refused.
    #[serde(default)]
    pub more: bool,
    pub outcomes: BulkOutcomes,
    pub by_status: BTreeMap<String, u64>,
    /// The first of the runs.
    pub sample: Vec<String>,
}

/// How many runs would take an action, by their status now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct BulkOutcomes {
    pub apply: u64,
    pub refuse: u64,
}

/// A bulk action and its progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BulkInfo {
    pub id: String,
    pub kind: BulkKind,
    pub action: BulkAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    pub args: BulkArgs,
    pub reason: String,
    pub actor: String,
    pub status: BulkStatus,
    pub matched: u64,
    pub done: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub created_at: Time,
    pub updated_at: Time,
    #[serde(default)]
    pub ended_at: Option<Time>,
    /// The first failures; empty in lists.
    #[serde(default)]
    pub failures: Vec<BulkFailureInfo>,
    /// Whether there are more failures.
    #[serde(default)]
    pub more_failures: bool,
}

/// Where a bulk action stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkStatus {
    Running,
    Completed,
    Canceled,
}

/// A run on which the action failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkFailureInfo {
    pub id: String,
    /// The code of the problem.
    pub code: String,
    pub message: String,
}
