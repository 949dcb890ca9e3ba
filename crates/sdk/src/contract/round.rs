//! Dry runs of new rounds, and differences between two states of a run.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{DefinitionChange, RunSummary};

/// Whether a retry or a rerun is a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DryRunQuery {
    /// `1` or `true`: nothing is changed; the answer lists the nodes that would run.
    #[serde(default, deserialize_with = "flag")]
    #[param(value_type = Option<bool>)]
    pub dry_run: bool,
}

fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    match String::deserialize(from)?.as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        other => {
            let shown: String = other.chars().take(20).collect();
            Err(serde::de::Error::custom(format!("`{shown}` is neither 1 nor 0")))
        }
    }
}

/// The answer to a retry or a rerun: the run, or with `?dry_run=1` the effect it would have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum RoundAnswer {
    DryRun(DryRun),
    Run(Box<RunSummary>),
}

/// The effect of a new round of a run, assuming that every node succeeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DryRun {
    pub id: String,
    /// The number the round would have.
    pub round: u32,
    /// In the order of the definition, outermost first. Nodes inside of a kept or skipped node are not listed.
    pub nodes: Vec<DryRunNode>,
    /// Whether there are more nodes than are listed: their calls and costs are not counted.
    #[serde(default)]
    pub more: bool,
    pub calls: DryRunCalls,
    pub cost: DryRunCost,
    /// The rest of the run's budget, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_left: Option<i64>,
}

/// One node or branch of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DryRunNode {
    /// Its path; `*` stands for every item of a fan and every turn of a loop.
    pub node: String,
    /// `runs`, `may_run` (if the nodes before lead to it), `goes_on` (some nodes inside run, the others are kept),
    /// `kept` or `skipped`.
    pub status: String,
    /// The type as the definition spells it.
    pub kind: String,
    /// How often, where the path has a `*`: as often as in the last round. Absent = unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// The service, if the node makes a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The kind of callee, if the node makes a call: `push worker`, `pull worker`, `local function`, `script` or
    /// `child run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The charge for one call, if it is known in advance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<i64>,
}

/// The number of calls of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct DryRunCalls {
    /// Nodes that run.
    pub sure: u64,
    /// Nodes that run or may run.
    pub at_most: u64,
}

/// The estimated charges of a round, in minor units. A call that was made before is estimated with the same input, a
/// child run at the cost of the last one if that completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct DryRunCost {
    /// Nodes that run.
    pub estimated: i64,
    /// Nodes that run or may run.
    pub at_most: i64,
    /// Calls and child runs whose cost is unknown.
    pub unknown: u64,
}

/// Which two moments of a run are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StateDiffQuery {
    /// After so many entries of the journal; absent = one fewer than `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// After so many entries of the journal; absent = all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
}

/// The differences of a run between two entries of its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StateDiff {
    pub id: String,
    pub from: u64,
    pub to: u64,
    /// In the order of the paths: of `status`, `round`, `shared`, `signals`, `node_states`, `error`, `result` and
    /// `cost`.
    pub changes: Vec<DefinitionChange>,
    /// Whether there are more changes than are listed.
    #[serde(default)]
    pub more: bool,
}
