//! New rounds of a run, told before they begin, and what changed between two moments of a run.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Change, RunSummary};

/// Whether a retry or a rerun is only told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PlanQuery {
    /// `1` or `true`: nothing is changed; the answer says what would run.
    #[serde(default, deserialize_with = "flag")]
    #[param(value_type = Option<bool>)]
    pub plan: bool,
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

/// What a retry or a rerun answers: the run, or with `?plan=1` what would become of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum RoundAnswer {
    Plan(RoundPlan),
    Run(Box<RunSummary>),
}

/// What a new round of a run would do. It is told as if every node ended well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RoundPlan {
    pub id: String,
    /// The number the round would have.
    pub round: u32,
    /// In the order of the definition, outermost first. What is inside a node that is kept or skipped is not named.
    pub nodes: Vec<PlannedNode>,
    /// Whether there are more nodes than are named: their calls and costs are not counted.
    #[serde(default)]
    pub more: bool,
    pub calls: PlannedCalls,
    pub cost: PlannedCost,
    /// What is left of the run's budget, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_left: Option<i64>,
}

/// What would become of one node or branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedNode {
    /// Its path; `*` stands for every item of a fan and every turn of a loop.
    pub node: String,
    /// `runs`, `may_run` (if what comes before leads to it), `goes_on` (some of what is inside runs, the rest is
    /// kept), `kept` or `skipped`.
    pub fate: String,
    /// The type as the definition spells it.
    pub kind: String,
    /// How often, where the path has a `*`: as often as last time. Absent = nobody knows yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Of a call: who is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Of a call: `push worker`, `pull worker`, `local function`, `script` or `child run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Of a call: what one of them would be charged, as far as it can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<i64>,
}

/// How many calls a round would make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct PlannedCalls {
    /// Of nodes that run.
    pub sure: u64,
    /// Of nodes that run or may run.
    pub at_most: u64,
}

/// What the calls of a round would be charged, in minor units. Estimated from what is known now: a call that was made
/// before is taken to be asked the same again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct PlannedCost {
    /// Of nodes that run.
    pub estimated: i64,
    /// Of nodes that run or may run.
    pub at_most: i64,
    /// Calls whose price cannot be told before, those of child runs included; a child run of which nothing can be told
    /// is one.
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

/// What changed in a run between two entries of its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StateDiff {
    pub id: String,
    pub from: u64,
    pub to: u64,
    /// In the order of the paths: of `status`, `round`, `shared`, `signals`, `node_states`, `error`, `result` and
    /// `cost`.
    pub changes: Vec<Change>,
    /// Whether there are more changes than are listed.
    #[serde(default)]
    pub more: bool,
}
