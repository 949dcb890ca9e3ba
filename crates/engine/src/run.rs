//! A run: decide, then apply.
//!
//! `decide` turns an input into events; it may refuse and changes nothing. `apply` folds events
//! into the state; it decides nothing and cannot fail. The consequences of an event inside the run (the next
//! node, the next branch, the end of a scope) is kept as an *agenda* in the state: `apply` puts it there,
//! `proceed` decides one item at a time, so that every decision sees the state it is about and a wide fan costs
//! its number of branches, not their square. `submit` is the loop around the three; it ends when
//! the agenda is empty or the budget of the decision is spent, and then the run goes on after its commit.

mod agenda;
pub(crate) mod apply;
mod calls;
mod cost;
pub mod decide;
mod draining;
mod dry_run;
mod effects;
pub(crate) mod facts;
mod node_view;
mod parked;
pub mod state;
mod tree;
pub(crate) mod view;
mod waits;
mod why;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::counter::{Fence, Visit};
use crate::effect::Effect;
use crate::event::{Event, RunFault, Start};
use crate::id::RunId;
use crate::input::{Given, Input, Refusal};
use crate::money::{Amount, Bill};
use crate::path::NodePath;
use crate::plan::{Plan, Priority};
use crate::time::Timestamp;

use agenda::Agenda;
use cost::Reserves;
pub use cost::Totals;
pub use dry_run::{
    CostEstimate, DRY_RUN_NODES_MAX, DryRunCall, DryRunEntry, DryRunReport, DryRunStatus, EstimateInputs,
};
pub use node_view::NodeView;
use parked::Parked;
use state::{ScopeState, Status};
use waits::{Look, Waits};
pub use why::{Cause, Reason};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub status: Status,
    /// Starts at 1; retry and rerun open the next. One terminal status per round.
    pub round: u32,
    pub start: Arc<Start>,
    pub root: ScopeState,
    /// The newest value of every signal, visible in every scope.
    pub signals: BTreeMap<String, Arc<Value>>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) signal_ids: VecDeque<String>,
    /// Grants so far. Only grows: a fence is never used twice, in any round.
    pub fence: Fence,
    /// Entries into nodes so far: every visit has its own number.
    pub visits: Visit,
    /// Entries into nodes before each round after the first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) visits_before_rounds: Vec<Visit>,
    /// Entries into nodes in this round, which the limit counts.
    pub entries: u64,
    /// Entries that fans need to run through all their branches once: on top of the limit.
    #[serde(default)]
    pub(crate) spare_entries: u64,
    /// Events so far.
    pub length: u64,
    pub error: Option<RunFault>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::event::some")]
    pub result: Option<Arc<Value>>,
    pub cost: Totals,
    pub budget: Option<Amount>,
    /// The part of `cost` that child runs told.
    #[serde(default, skip_serializing_if = "Bill::is_zero")]
    pub children: Bill,
    /// The part of `cost` that the run's own parent was told.
    #[serde(default, skip_serializing_if = "Bill::is_zero")]
    pub(crate) told: Bill,
    /// The parts of the budget that open child runs may spend, by the fence of the call that started them.
    #[serde(default, skip_serializing_if = "Reserves::is_empty")]
    pub(crate) reserves: Reserves,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Decisions to take next, oldest first.
    #[serde(default, skip_serializing_if = "Agenda::is_empty")]
    pub(crate) agenda: Agenda,
    /// When time has to be looked at, and where.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) wakes: BTreeSet<(Timestamp, NodePath)>,
    /// Nodes that wait for a signal or an approval.
    #[serde(default, skip_serializing_if = "Waits::is_empty")]
    pub(crate) waits: Waits,
    /// Calls parked for want of money, each with the amount it needs.
    #[serde(default, skip_serializing_if = "Parked::is_empty")]
    pub(crate) parked: Parked,
    /// Places that fail when the calls in hand there have ended, each with the number of those calls.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) draining: BTreeMap<NodePath, usize>,
    /// Nodes that may be entered although the run is paused or advanced by hand.
    #[serde(default)]
    pub(crate) allowance: u32,
    /// Calls that are granted.
    #[serde(default)]
    pub n_granted: usize,
    /// Which waits have to be looked at again. Not part of the state: looking once too often changes nothing.
    #[serde(skip, default = "everywhere")]
    pub(crate) look: Look,
}

fn everywhere() -> Look {
    Look::All
}

/// One item of the agenda. Every item leads to at least one event, and that event removes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Todo {
    /// A node became ready.
    Enter(NodePath),
    /// A node was entered, or a branch may start: its first action is due.
    Begin(NodePath),
    /// A node of a join scope settled and has conditional edges.
    Judge(NodePath),
    /// A turn of this loop ended.
    Turn(NodePath),
    /// All inside this place is over: it ends well.
    Finish(NodePath),
    /// Something inside this place failed uncaught: it fails.
    Collapse(NodePath),
}

/// The result of an input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunStep {
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
}

impl Run {
    /// A run that nothing has happened to.
    pub fn new(id: RunId) -> Self {
        Run {
            id,
            status: Status::Pending,
            round: 1,
            start: Arc::default(),
            root: ScopeState::default(),
            signals: BTreeMap::new(),
            signal_ids: VecDeque::new(),
            fence: Fence(0),
            visits: Visit::ZERO,
            visits_before_rounds: Vec::new(),
            entries: 0,
            spare_entries: 0,
            length: 0,
            error: None,
            result: None,
            cost: Totals::default(),
            budget: None,
            children: Bill::default(),
            told: Bill::default(),
            reserves: Reserves::default(),
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
            ended_at: None,
            agenda: Agenda::default(),
            wakes: BTreeSet::new(),
            waits: Waits::default(),
            parked: Parked::default(),
            draining: BTreeMap::new(),
            allowance: 0,
            n_granted: 0,
            look: Look::default(),
        }
    }

    /// Takes one input as far as it goes: decides, applies, and follows the agenda to its end, or until the budget is
    /// spent. A run that is unfinished then is due at once: `TimePassed` follows its agenda further.
    pub fn submit(&mut self, plan: &Plan, input: &Input, given: &Given) -> Result<RunStep, Refusal> {
        let mut step = RunStep::default();
        if *input == Input::TimePassed && self.is_unfinished() {
            self.follow(plan, given, &mut step);
            if self.is_unfinished() {
                return Ok(step);
            }
        }
        let events = self.decide(plan, input, given)?;
        self.record(plan, events, given, &mut step);
        self.follow(plan, given, &mut step);
        if *input == Input::TimePassed {
            // One thing that is due may undo another: look again after each.
            while !self.is_unfinished() && !given.meter.is_spent() {
                let events = self.decide(plan, input, given)?;
                if events.is_empty() {
                    break;
                }
                self.record(plan, events, given, &mut step);
                self.follow(plan, given, &mut step);
            }
        }
        Ok(step)
    }

    /// Follows an agenda further that a spent budget left open.
    pub fn resume_agenda(&mut self, plan: &Plan, given: &Given) -> RunStep {
        let mut step = RunStep::default();
        self.follow(plan, given, &mut step);
        step
    }

    /// Follows the agenda until nothing is left that may go on by itself, or until the budget is spent. It never stops
    /// with an empty agenda: the next wake-up is for runs with an open one.
    fn follow(&mut self, plan: &Plan, given: &Given, step: &mut RunStep) {
        loop {
            while !(given.meter.is_spent() && self.is_unfinished()) {
                let Some(events) = self.proceed(plan, given) else { break };
                if given.meter.has_put_back() {
                    return;
                }
                debug_assert!(!events.is_empty(), "every item of the agenda leads to an event");
                self.record(plan, events, given, step);
            }
            if self.is_unfinished() {
                return;
            }
            let look = std::mem::take(&mut self.look);
            if !look.is_needed() {
                return;
            }
            let events = self.look_at_waits(plan, &look, &given.meter);
            self.record(plan, events, given, step);
        }
    }

    fn record(&mut self, plan: &Plan, events: Vec<Event>, given: &Given, step: &mut RunStep) {
        for event in events {
            given.meter.count_event(&event);
            self.effects(plan, &event, &mut step.effects);
            self.apply(plan, &event, given.now);
            step.events.push(event);
        }
    }

    /// The state after these entries of a journal.
    pub fn replay<'e>(
        id: RunId,
        plan: &Plan,
        journal: impl IntoIterator<Item = (Timestamp, &'e Event)>,
    ) -> Run {
        let mut run = Run::new(id);
        for (at, event) in journal {
            run.apply(plan, event, at);
        }
        run
    }

    /// When the run has to be looked at again by itself; `None` = not before something comes from outside.
    pub fn wake_at(&self) -> Option<Timestamp> {
        match self.status {
            Status::Running if self.is_unfinished() => Some(self.updated_at),
            Status::Running | Status::Canceling => self.wakes.first().map(|(at, _)| *at),
            Status::Pending | Status::Paused | Status::Completed | Status::Failed | Status::Canceled => None,
        }
    }

    pub fn priority(&self, plan: &Plan) -> Priority {
        self.start.priority.unwrap_or(plan.priority)
    }

    /// Whether a spent budget left the agenda open: the run goes on by itself. Pause and manual mode hold new nodes back,
    /// so that their agendas are short and are followed whatever the budget.
    pub fn is_unfinished(&self) -> bool {
        self.status == Status::Running && !self.start.manual && !self.agenda.is_empty()
    }

    /// Whether something is only held back by a pause or by manual mode.
    pub fn is_held(&self) -> bool {
        !self.agenda.is_empty()
    }
}
