//! What a retry or a rerun would do, told without doing it: which nodes run again, which are kept, which depend on
//! what comes out, and what the calls would cost.
//!
//! It is told from the state in which the new round would begin, as if every node ended well. Costs are estimated
//! from what is known now: a call that was made before is taken to be asked the same again.

mod reach;
mod walk;

use crate::event::Event;
use crate::id::RunId;
use crate::input::{Given, Input, Refusal};
use crate::path::NodePath;
use crate::plan::Plan;

use super::Run;
use walk::Walk;

/// Places told of one round: an answer with more would be read by nobody.
pub const PLACES_MAX: usize = 10_000;

/// Child runs of last time that are named for one call.
const CHILDREN_MAX: usize = 100;

/// What a new round would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preview {
    pub round: u32,
    /// In the order of the plan, outermost first. What is inside a node that is kept or skipped is not named.
    pub places: Vec<Planned>,
    /// Whether there are more than [`PLACES_MAX`]: calls and costs of the rest are not counted.
    pub more: bool,
    /// Calls that will be made, and those that may be made besides.
    pub n_calls: u64,
    pub n_calls_possible: u64,
    pub cost: Expense,
    /// What is left of the budget, if there is one.
    pub budget_left: Option<i64>,
}

/// What the calls of a round would be charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expense {
    /// Calls that will be made.
    pub estimated: i64,
    /// Those and all that may be made.
    pub at_most: i64,
    /// Calls among both whose price cannot be told before, child runs included.
    pub n_unknown: u64,
}

/// What would become of one node or branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// `*` stands for every item of a fan and every turn of a loop.
    pub node: NodePath,
    pub fate: Fate,
    /// The type, kind or operator as the definition spells it.
    pub label: String,
    /// How often, where the path has a `*`; of what only the run will know, as often as last time.
    pub times: Option<u64>,
    pub call: Option<PlannedCall>,
}

/// A call that would be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCall {
    pub service: String,
    pub by: &'static str,
    /// What one of them would be charged, of many the most; `None` = nothing, or it cannot be told before.
    pub estimate: Option<i64>,
    /// The child runs that were made here last time, of many the first: what those cost, these may.
    pub children: Vec<RunId>,
}

/// What becomes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It runs, from its beginning.
    Runs,
    /// It runs if what comes before leads to it.
    MayRun,
    /// It contains others: some of them run, others are kept.
    GoesOn,
    /// It keeps its result.
    Kept,
    /// Nothing leads to it any more.
    Skipped,
}

impl Fate {
    pub fn word(self) -> &'static str {
        match self {
            Fate::Runs => "runs",
            Fate::MayRun => "may_run",
            Fate::GoesOn => "goes_on",
            Fate::Kept => "kept",
            Fate::Skipped => "skipped",
        }
    }
}

impl Run {
    /// What a retry or a rerun would do; refused where that would be. Any other input opens no round: nothing.
    pub fn preview(&self, plan: &Plan, input: &Input, given: &Given) -> Result<Preview, Refusal> {
        let events = self.decide(plan, input, given)?;
        let (mut after, mut facts) = (self.clone(), self.clone());
        for event in &events {
            if let Event::Rerun { shared: Some(shared), .. } = event {
                facts.give_shared(shared);
            }
            let (Event::Retried { .. } | Event::Rerun { .. }) = event else { return Ok(Preview::default()) };
            after.apply(plan, event, given.now);
        }
        let mut walk = Walk::new(&facts, plan, given);
        walk.reopened(&plan.root, &after.root, &NodePath::root());
        let mut preview = walk.preview;
        preview.round = after.round;
        let left =
            |budget: i64| budget.saturating_sub(self.cost.borne()).saturating_sub(self.reserved()).max(0);
        preview.budget_left = self.budget.map(left);
        Ok(preview)
    }
}
