//! A random run with an oracle beside it: properties that hold after every input, counted from outside.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use windlass_engine::counter::Fence;
use windlass_engine::effect::Effect;
use windlass_engine::event::{Event, Waiting};
use windlass_engine::input::{CallOutcome, Given, Input, Refusal};
use windlass_engine::meter::Meter;
use windlass_engine::money::{Amount, Bill, Movement, MovementKind};
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Exec, Plan};
use windlass_engine::run::state::Status;
use windlass_engine::run::{DryRunReport, DryRunStatus, EstimateInputs, Run, RunStep};
use windlass_engine::time::Timestamp;

use super::dice::Dice;
use super::world::{TestRun, picture};
use super::{moves, random};

/// Inputs that end any run of a random definition: far more than the largest of them has nodes.
const INPUTS_TO_END: usize = 400;
/// How often everything is told while a run goes on. A signal is not used up: one whose value leads back into a cycle
/// leads back for ever, until it has another value.
const TELL_EVERY: usize = 50;

pub struct Game {
    pub world: TestRun,
    now: Timestamp,
    fence: Fence,
    /// Rounds that have ended.
    ended: BTreeSet<u32>,
    round: u32,
    /// When places may go on by themselves.
    due: BTreeMap<NodePath, Timestamp>,
    /// Charges by key: the estimate, and how they were closed.
    charges: BTreeMap<String, (i64, Option<MovementKind>)>,
    estimated: i64,
    actual: i64,
    /// Child runs that have not told their end, by fence.
    children: BTreeMap<Fence, NodePath>,
}

/// Plays a whole game from bytes. `Err` says which promise was broken.
pub fn play(bytes: &[u8]) -> Result<Game, String> {
    let mut dice = Dice::new(bytes);
    let definition = random::definition(&mut dice);
    let compiled = windlass_engine::definition::compile_value(definition.clone(), Default::default());
    let plan = compiled.plan.ok_or_else(|| format!("{:#?}\n{definition}", compiled.problems))?;
    let mut game = Game {
        world: TestRun::of(plan),
        now: Timestamp(1_000),
        fence: Fence(0),
        ended: BTreeSet::new(),
        round: 1,
        due: BTreeMap::new(),
        charges: BTreeMap::new(),
        estimated: 0,
        actual: 0,
        children: BTreeMap::new(),
    };
    let told = |error: String| format!("{error}\n{definition}");
    let start = Input::Start(Box::new(moves::start(&mut dice)));
    game.submit(&start, &Given::at(game.now)).map_err(told)?;
    while !dice.is_spent() {
        let (input, given) = moves::any(&mut dice, &game.world, &mut game.now);
        game.submit(&input, &given).map_err(told)?;
    }
    game.finish().map_err(told)?;
    Ok(game)
}

impl Game {
    fn submit(&mut self, input: &Input, given: &Given) -> Result<(), String> {
        let told = |error: String| format!("{error}\nafter {input:?} at {:?}", given.now);
        self.checked(input, given).map_err(told)
    }

    fn checked(&mut self, input: &Input, given: &Given) -> Result<(), String> {
        let before = picture(&self.world.run);
        let opens = matches!(input, Input::Retry | Input::Rerun { .. });
        let report =
            opens.then(|| self.world.run.dry_run(&self.world.plan, input, given, &EstimateInputs::default()));
        let mut twin = self.world.run.clone();
        match self.world.submit(input, given) {
            Ok(step) => {
                look_at_dry_run(report.as_ref(), &step)?;
                let budget = 1 + before.to_string().len() as u64 % 200;
                let sliced = submit_in_slices(&mut twin, &self.world.plan, input, given, budget)?;
                ensure(sliced == step, || format!("in slices of {budget}: {sliced:#?}\nat once: {step:#?}"))?;
                ensure(picture(&twin) == picture(&self.world.run), || "slices change the state".to_owned())?;
                self.look_at(&step, input, given)?;
            }
            Err(_) => ensure(picture(&self.world.run) == before, || "a refusal changed the run".to_owned())?,
        }
        self.world.check()?;
        self.look_at_state(input, given)?;
        self.again(input, given)
    }

    /// The same report a second time is a no-op.
    fn again(&mut self, input: &Input, given: &Given) -> Result<(), String> {
        let same = match input {
            Input::CallEnded { .. } | Input::Cancel { .. } | Input::Pause | Input::TimePassed => true,
            Input::Signal { id, .. } => id.is_some(),
            _ => false,
        };
        if !same {
            return Ok(());
        }
        let before = picture(&self.world.run);
        let step: Result<RunStep, Refusal> = self.world.submit(input, given);
        let silent = step.as_ref().map_or(true, |step| step.events.is_empty() && step.effects.is_empty());
        ensure(silent, || format!("said twice, happened twice: {step:?}"))?;
        ensure(picture(&self.world.run) == before, || "said twice, changed twice".to_owned())
    }

    fn look_at(&mut self, step: &RunStep, input: &Input, given: &Given) -> Result<(), String> {
        for event in &step.events {
            self.look_at_event(event, input, given)?;
        }
        for effect in &step.effects {
            match effect {
                Effect::Move { movement, .. } => self.look_at_movement(movement)?,
                Effect::Call(spec) if matches!(spec.exec, Exec::Flow { .. }) => {
                    self.children.insert(spec.fence, spec.node.clone());
                }
                Effect::Call(_)
                | Effect::Cancel { .. }
                | Effect::Withdraw { .. }
                | Effect::Tell { .. }
                | Effect::Bill { .. }
                | Effect::Raise { .. } => {}
            }
        }
        Ok(())
    }

    fn look_at_event(&mut self, event: &Event, input: &Input, given: &Given) -> Result<(), String> {
        match event {
            Event::Granted { node, fence, .. } => {
                ensure(*fence > self.fence, || format!("fence {fence} comes after {}", self.fence))?;
                self.fence = *fence;
                let canceling = self.world.run.status == Status::Canceling;
                ensure(!canceling, || format!("{node} was granted although the run is being canceled"))?;
                self.on_time(node, given.now)?;
            }
            Event::Done { node, .. } => {
                if matches!(input, Input::TimePassed) {
                    self.on_time(node, given.now)?;
                }
                self.forget(node);
            }
            Event::Deferred { node, until, .. }
            | Event::Suspended { node, until: Some(until), .. }
            | Event::Waiting { node, wait: Waiting::Timer { until, .. } } => {
                self.due.insert(node.clone(), *until);
            }
            Event::Failed { node, .. } | Event::Dropped { node } | Event::Entered { node, .. } => {
                self.forget(node)
            }
            Event::Suspended { node, until: None, .. } => drop(self.due.remove(node)),
            Event::Billed { fence, bill, .. } => {
                self.children.remove(fence);
                self.estimated += bill.estimated.0;
                self.actual += bill.actual.0;
            }
            Event::Retried { round } | Event::Rerun { round, .. } => self.round = *round,
            Event::Ended { .. } => {
                let first = self.ended.insert(self.round);
                ensure(first, || format!("round {} ended twice", self.round))?;
                self.due.clear();
            }
            _ => {}
        }
        Ok(())
    }

    fn on_time(&mut self, node: &NodePath, now: Timestamp) -> Result<(), String> {
        let due = self.due.remove(node);
        ensure(due.is_none_or(|due| due <= now), || format!("{node} went on at {now:?}, before {due:?}"))
    }

    fn forget(&mut self, node: &NodePath) {
        self.due.retain(|place, _| !node.holds(place));
    }

    fn look_at_movement(&mut self, movement: &Movement) -> Result<(), String> {
        if movement.kind == MovementKind::Charge {
            let new = self.charges.insert(movement.key.clone(), (movement.held.0, None)).is_none();
            self.estimated += movement.held.0;
            return ensure(new, || format!("{} was charged twice", movement.key));
        }
        let key = movement.key.split_once(':').map_or("", |(_, key)| key);
        let charge = self.charges.get_mut(&format!("charge:{key}"));
        let (estimate, closed) = charge.ok_or_else(|| format!("{} closes nothing", movement.key))?;
        ensure(closed.is_none(), || format!("{} closes what is closed", movement.key))?;
        ensure(movement.held.0 == -*estimate, || format!("{} gives back another amount", movement.key))?;
        *closed = Some(movement.kind);
        if movement.kind == MovementKind::Settle {
            self.actual += *estimate - movement.amount.0;
        }
        Ok(())
    }

    fn look_at_state(&self, input: &Input, given: &Given) -> Result<(), String> {
        let run = &self.world.run;
        let granted = count_granted(&picture(run));
        ensure(run.n_granted == granted, || format!("n_granted is {}, found {granted}", run.n_granted))?;
        ensure(run.fence == self.fence, || "the fence is not that of the last grant".to_owned())?;
        if *input == Input::TimePassed {
            let late = run.wake_at().is_some_and(|at| at <= given.now);
            ensure(!late, || format!("still due at {:?}", run.wake_at()))?;
        }
        let cost = (run.cost.estimated, run.cost.actual);
        ensure(cost == (Amount(self.estimated), Amount(self.actual)), || {
            format!("cost is {cost:?}, moved were {:?}", (self.estimated, self.actual))
        })?;
        if !run.status.is_ended() {
            return Ok(());
        }
        let open = self.charges.iter().find(|(_, (_, closed))| closed.is_none());
        ensure(open.is_none(), || format!("the run has ended and {open:?} is open"))?;
        ensure(run.open_calls(&self.world.plan).is_empty(), || "the run has ended with open calls".to_owned())
    }

    /// Does everything the run could wait for: then it must end.
    fn finish(&mut self) -> Result<(), String> {
        for n in 1..=INPUTS_TO_END {
            let run = &self.world.run;
            let open = run.open_calls(&self.world.plan);
            let now = self.now;
            let orphan = self.children.iter().find(|(fence, _)| !open.iter().any(|(_, f, _)| f == *fence));
            if let Some((&fence, node)) = orphan {
                // Its parent no longer waits, but its cost counts.
                let (node, outcome) = (node.clone(), Some(CallOutcome::Canceled));
                let bill = Bill { estimated: Amount(3), actual: Amount(1) };
                self.submit(&Input::ChildEnded { node, fence, outcome, bill }, &Given::at(now))?;
                continue;
            }
            if run.status.is_ended() {
                return Ok(());
            }
            if n % TELL_EVERY == 0 {
                self.tell_everything()?;
            } else if run.status == Status::Paused {
                self.submit(&Input::Resume, &Given::at(now))?;
            } else if let Some((node, fence, exec)) = open.into_iter().next() {
                let outcome = CallOutcome::Done(json!({"v": 1, "cost": 2}).into());
                if matches!(exec, Exec::Flow { .. }) {
                    let bill = Bill { estimated: Amount(2), actual: Amount(2) };
                    let ended = Input::ChildEnded { node, fence, outcome: Some(outcome), bill };
                    self.submit(&ended, &Given::at(now))?;
                    continue;
                }
                self.submit(&Input::CallEnded { node, fence, outcome, worker: None }, &Given::at(now))?;
            } else if let Some(at) = run.wake_at() {
                self.now = self.now.max(at);
                self.submit(&Input::TimePassed, &Given::at(self.now))?;
            } else if run.start.manual && run.is_held() {
                self.submit(&Input::Step, &Given::at(now))?;
            } else {
                self.tell_everything()?;
            }
        }
        Err(format!(
            "everything was done, but the run is {:?}: {:#?}",
            self.world.run.status,
            self.world.run.why(&self.world.plan)
        ))
    }

    fn tell_everything(&mut self) -> Result<(), String> {
        let given = Given::at(self.now);
        for key in ["go", "k0", "k1", "ok"] {
            let signal = Input::Signal { id: None, key: key.to_owned(), value: json!(true), by: None };
            self.submit(&signal, &given)?;
        }
        let waiting: Vec<NodePath> =
            self.world.run.why(&self.world.plan).into_iter().map(|reason| reason.node).collect();
        for node in waiting {
            let by = Some("ann".to_owned());
            let decide = Input::Decide { node: Some(node), decision: json!(true), by, comment: None };
            self.submit(&decide, &given)?;
        }
        self.submit(&Input::BalanceChanged { budget: Some(Amount(1_000_000)), balance: None }, &given)
    }
}

/// The same input with a budget: as a server does it, first with a strict meter, then until the agenda is empty. Every
/// slice could be the last one before a crash, so the run is due after each.
fn submit_in_slices(
    run: &mut Run,
    plan: &Plan,
    input: &Input,
    given: &Given,
    budget: u64,
) -> Result<RunStep, String> {
    let mut given = Given { meter: Meter::strict(budget), ..given.clone() };
    let mut all = run.submit(plan, input, &given).map_err(|refusal| refusal.to_string())?;
    loop {
        let is_open = run.is_unfinished() || given.meter.has_put_back();
        let is_due = run.is_unfinished() && run.wake_at().is_none_or(|at| at > given.now);
        ensure(!is_due, || format!("unfinished, but woken at {:?}", run.wake_at()))?;
        given.meter = Meter::of(budget);
        let next = match (is_open, input) {
            (true, _) => run.resume_agenda(plan, &given),
            (false, Input::TimePassed) => {
                run.submit(plan, input, &given).map_err(|refusal| refusal.to_string())?
            }
            (false, _) => return Ok(all),
        };
        if next.events.is_empty() {
            return Ok(all);
        }
        all.events.extend(next.events);
        all.effects.extend(next.effects);
    }
}

/// Nodes that the dry run listed as kept or skipped are not entered.
fn look_at_dry_run(report: Option<&Result<DryRunReport, Refusal>>, step: &RunStep) -> Result<(), String> {
    let Some(report) = report else { return Ok(()) };
    let report =
        report.as_ref().map_err(|refusal| format!("taken, but its dry run was refused: {refusal}"))?;
    let entered = step.events.iter().filter_map(|event| match event {
        Event::Entered { node, .. } | Event::Granted { node, .. } => Some(node),
        _ => None,
    });
    for node in entered {
        let is_left_out = |status: DryRunStatus| matches!(status, DryRunStatus::Kept | DryRunStatus::Skipped);
        let left_out = report.nodes.iter().find(|entry| is_left_out(entry.status) && entry.node.holds(node));
        ensure(left_out.is_none(), || format!("{node} was entered, though the dry run said {left_out:?}"))?;
    }
    Ok(())
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// Granted calls, found by walking the whole state.
fn count_granted(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            let here = fields.get("stage").is_some_and(|stage| stage.get("granted").is_some());
            usize::from(here) + fields.values().map(count_granted).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(count_granted).sum(),
        _ => 0,
    }
}
