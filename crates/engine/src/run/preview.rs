//! What a retry or a rerun would do, told without doing it: which nodes run again, which are kept, which depend on
//! what comes out, and what the calls would cost.
//!
//! It is told from the state in which the new round would begin, as if every node ended well. Costs are estimated
//! from what is known now: a call that was made before is taken to be asked the same again, a child run to cost what
//! the last one did if that completed, and else what its definition says.

mod anew;
mod ask;
mod forecast;
mod reach;
mod room;
mod told;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::Event;
use crate::id::RunId;
use crate::input::{Given, Input, Refusal};
use crate::money::Price;
use crate::path::NodePath;
use crate::plan::{Called, Plan};

use super::Run;
use walk::Walk;

/// Places told of one round: an answer with more would be read by nobody.
pub const PLACES_MAX: usize = 10_000;

/// Places of the run whose estimates are looked at in one plan, and as many of child runs: what is beyond is counted as
/// unknown.
const LOOKS_MAX: usize = 20_000;

/// Child runs of last time that are asked for: those of other calls are told from their definition.
const CHILDREN_MAX: usize = 200;

/// What a preview has to know besides the run. What is not here is told as far as it can be without.
#[derive(Debug, Clone, Default)]
pub struct Shelf {
    /// What child runs of last time cost that completed: those that failed early are no measure.
    pub costs: BTreeMap<RunId, i64>,
    /// What calls of flows would run now.
    pub flows: BTreeMap<Called, Arc<Plan>>,
    /// What services ask now: what a child has that starts now.
    pub prices: Arc<BTreeMap<String, Price>>,
}

/// What a preview would have to know to tell more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Questions {
    pub children: Vec<RunId>,
    /// Those that the run itself calls; what they call is asked of their plans.
    pub flows: BTreeSet<Called>,
}

impl Questions {
    pub fn is_empty(&self) -> bool {
        self.children.is_empty() && self.flows.is_empty()
    }
}

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
    pub questions: Questions,
}

/// What the calls of a round would be charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expense {
    /// Calls that will be made.
    pub estimated: i64,
    /// Those and all that may be made.
    pub at_most: i64,
    /// Calls among both whose price cannot be told before, those of child runs included; a child run of which nothing
    /// can be told is one.
    pub n_unknown: u64,
}

impl Expense {
    /// What is charged for sure.
    fn of(amount: i64) -> Expense {
        Expense { estimated: amount, at_most: amount, n_unknown: 0 }
    }

    fn unknown(n_unknown: u64) -> Expense {
        Expense { n_unknown, ..Expense::default() }
    }

    /// Adds what is spent at a place of this fate, so many times; `None` = nobody knows how often.
    fn add(&mut self, one: Expense, fate: Fate, times: Option<u64>) {
        let n = times.unwrap_or(1);
        let amount = |one: i64| one.saturating_mul(i64::try_from(n).unwrap_or(i64::MAX));
        let estimated = if fate == Fate::Runs { amount(one.estimated) } else { 0 };
        let is_counted = times.is_some() || one == Expense::default();
        let n_unknown = one.n_unknown.saturating_mul(n).max(u64::from(!is_counted));
        *self = self.plus(Expense { estimated, at_most: amount(one.at_most), n_unknown });
    }

    fn plus(self, other: Expense) -> Expense {
        Expense {
            estimated: self.estimated.saturating_add(other.estimated),
            at_most: self.at_most.saturating_add(other.at_most),
            n_unknown: self.n_unknown.saturating_add(other.n_unknown),
        }
    }
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
    /// What becomes of a node inside of one with this fate: what may not begin has no inside that surely does.
    fn inside(self, fate: Fate) -> Fate {
        if self == Fate::MayRun { Fate::MayRun } else { fate }
    }

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
    pub fn preview(
        &self,
        plan: &Plan,
        input: &Input,
        given: &Given,
        shelf: &Shelf,
    ) -> Result<Preview, Refusal> {
        let events = self.decide(plan, input, given)?;
        let (mut after, mut facts) = (self.clone(), self.clone());
        for event in &events {
            if let Event::Rerun { shared: Some(shared), .. } = event {
                facts.give_shared(shared);
            }
            let (Event::Retried { .. } | Event::Rerun { .. }) = event else { return Ok(Preview::default()) };
            after.apply(plan, event, given.now);
        }
        let mut walk = Walk::new(&facts, plan, given, shelf);
        walk.reopened(&plan.root, &after.root, &NodePath::root());
        let mut preview = walk.preview;
        preview.round = after.round;
        let left =
            |budget: i64| budget.saturating_sub(self.cost.borne()).saturating_sub(self.reserved()).max(0);
        preview.budget_left = self.budget.map(left);
        Ok(preview)
    }
}

#[cfg(test)]
mod tests;
