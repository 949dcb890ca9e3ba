//! Dry run of a retry or a rerun: the nodes that would run again, those that would be kept, and the estimated cost.
//!
//! It walks the state in which the new round would begin and assumes that every node succeeds. A call that was made
//! before is estimated with the same input, a child run at the cost of the last one if that completed. Every other
//! child run counts as unknown.

mod budget;
mod estimate;
mod reach;
mod repeat;
mod walk;

use std::collections::BTreeMap;

use crate::event::Event;
use crate::id::RunId;
use crate::input::{Given, Input, Refusal};
use crate::money::Amount;
use crate::path::NodePath;
use crate::plan::Plan;

use super::Run;
use walk::DryRunWalk;

/// Nodes listed in one dry run; later ones are neither listed nor counted.
pub const DRY_RUN_NODES_MAX: usize = 10_000;

/// Child runs of the last round whose cost is asked for.
const CHILDREN_MAX: usize = 200;

/// Facts from outside the run that make estimates more precise. All are optional.
#[derive(Debug, Clone, Default)]
pub struct EstimateInputs {
    /// Costs of child runs that completed; a child run that failed early says nothing about the next one.
    pub child_costs: BTreeMap<RunId, Amount>,
}

/// The result of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DryRunReport {
    pub round: u32,
    /// In the order of the plan, outermost first. Nodes inside of a kept or skipped node are not listed.
    pub nodes: Vec<DryRunEntry>,
    /// Whether there are more than [`DRY_RUN_NODES_MAX`]: calls and costs of the rest are not counted.
    pub more: bool,
    /// Calls that will be made.
    pub n_calls: u64,
    /// Calls that will or may be made.
    pub n_calls_possible: u64,
    pub cost: CostEstimate,
    /// The rest of the budget, if there is one.
    pub budget_left: Option<Amount>,
    /// Child runs whose costs, given as [`EstimateInputs`], would make the estimate more precise.
    pub children: Vec<RunId>,
}

/// The estimated cost of the calls of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CostEstimate {
    /// Calls that will be made.
    pub estimated: Amount,
    /// Calls that will or may be made.
    pub at_most: Amount,
    /// Calls and child runs among both whose cost is unknown.
    pub n_unknown: u64,
}

impl CostEstimate {
    fn of(amount: Amount) -> CostEstimate {
        CostEstimate { estimated: amount, at_most: amount, n_unknown: 0 }
    }

    const UNKNOWN: CostEstimate =
        CostEstimate { estimated: Amount::ZERO, at_most: Amount::ZERO, n_unknown: 1 };

    /// Adds the cost `one`, `n` times.
    fn add(&mut self, one: CostEstimate, n: u64) {
        self.estimated = self.estimated.saturating_add(one.estimated.saturating_mul(n));
        self.at_most = self.at_most.saturating_add(one.at_most.saturating_mul(n));
        self.n_unknown = self.n_unknown.saturating_add(one.n_unknown.saturating_mul(n));
    }
}

/// One node or branch in a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryRunEntry {
    /// `*` stands for every item of a fan and every turn of a loop.
    pub node: NodePath,
    pub status: DryRunStatus,
    /// The type, kind or operator as the definition spells it.
    pub label: String,
    /// The number of executions where the path has a `*`, taken from the last round; `None` = unknown.
    pub times: Option<u64>,
    pub call: Option<DryRunCall>,
}

/// A call that would be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryRunCall {
    pub service: String,
    pub by: &'static str,
    /// The charge for one call, for many the highest; `None` = free or unknown.
    pub estimate: Option<Amount>,
}

/// The status of a node in a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DryRunStatus {
    /// It runs, from its beginning.
    Runs,
    /// It runs if the nodes before lead to it.
    MayRun,
    /// It contains other nodes: some of them run, others are kept.
    GoesOn,
    /// It keeps its result.
    Kept,
    /// No edge leads to it any more.
    Skipped,
}

impl DryRunStatus {
    /// The status of a node inside of one with this status: nodes inside of one that may run only may run.
    fn inside(self, inner: DryRunStatus) -> DryRunStatus {
        if self == DryRunStatus::MayRun { DryRunStatus::MayRun } else { inner }
    }

    pub fn word(self) -> &'static str {
        match self {
            DryRunStatus::Runs => "runs",
            DryRunStatus::MayRun => "may_run",
            DryRunStatus::GoesOn => "goes_on",
            DryRunStatus::Kept => "kept",
            DryRunStatus::Skipped => "skipped",
        }
    }
}

impl Run {
    /// Reports the effect of a retry or a rerun, refused where that would be refused. An input that opens no round
    /// gives an empty report.
    pub fn dry_run(
        &self,
        plan: &Plan,
        input: &Input,
        given: &Given,
        inputs: &EstimateInputs,
    ) -> Result<DryRunReport, Refusal> {
        let events = self.decide(plan, input, given)?;
        let (mut after, mut facts) = (self.clone(), self.clone());
        for event in &events {
            if let Event::Rerun { shared: Some(shared), .. } = event {
                facts.give_shared(shared);
            }
            let (Event::Retried { .. } | Event::Rerun { .. }) = event else {
                return Ok(DryRunReport::default());
            };
            after.apply(plan, event, given.now);
        }
        let mut walk = DryRunWalk::new(&facts, plan, given, inputs);
        walk.reopened(&plan.root, &after.root, &NodePath::root());
        let mut report = walk.report;
        report.round = after.round;
        report.budget_left = self.budget_left().map(|left| left.max(Amount::ZERO));
        Ok(report)
    }
}

#[cfg(test)]
mod tests;
