//! From an input to events. Nothing here changes anything; one file per family of inputs.

mod again;
mod answer;
pub mod call;
pub mod control;
mod end;
mod node;
pub mod outside;
mod price;
mod settle;
pub mod start;
mod time;

use std::sync::Arc;

use serde_json::Value;

use super::facts::View;
use super::state::Status;
use super::view::NodeRef;
use super::waits::Look;
use super::{Run, Todo};
use crate::event::{Event, Level};
use crate::input::{Given, Input, Refusal};
use crate::meter::Meter;
use crate::money::Amount;
use crate::path::NodePath;
use crate::plan::{Plan, Prep};

impl Run {
    /// The events of the input; `Err` when it is refused, an empty list when it is a no-op.
    pub fn decide(&self, plan: &Plan, input: &Input, given: &Given) -> Result<Vec<Event>, Refusal> {
        let decider = Decider { run: self, plan, given };
        if let Input::Start(start) = input {
            return decider.start(start);
        }
        if self.status == Status::Pending {
            return Err(Refusal::NotStarted);
        }
        match input {
            Input::Start(_) => Err(Refusal::AlreadyStarted),
            Input::CallEnded { node, fence, outcome, worker } => {
                decider.call_ended(node, *fence, outcome, worker.as_deref())
            }
            Input::ChildEnded { node, fence, outcome, bill } => {
                decider.child_ended(node, *fence, outcome.as_ref(), *bill)
            }
            Input::TimePassed => Ok(decider.time_passed()),
            Input::Signal { id, key, value, by } => decider.signal(id.as_deref(), key, value, by.as_deref()),
            Input::Decide { node, decision, by, comment } => {
                decider.decision(node.as_ref(), decision, by.as_deref(), comment.as_deref())
            }
            Input::Cancel { reason, by } => decider.cancel(reason.as_deref(), by.as_deref()),
            Input::Pause => decider.pause(),
            Input::Resume => decider.resume(),
            Input::Step => decider.step(),
            Input::Retry => decider.retry(),
            Input::Rerun { from, shared } => decider.rerun(from, shared.as_ref()),
            Input::Continue { node, value } => decider.continue_node(node, value),
            Input::BalanceChanged { budget, balance } => decider.balance_changed(*budget, *balance),
            Input::ReserveRaised { budget } => Ok(decider.reserve_raised(*budget)),
        }
    }

    /// The events of the first item of the agenda that may go on; `None` when there is none. They count for nothing
    /// when the meter says that the item was put back.
    pub(crate) fn proceed(&self, plan: &Plan, given: &Given) -> Option<Vec<Event>> {
        let decider = Decider { run: self, plan, given };
        match self.status {
            Status::Running | Status::Paused => {}
            Status::Canceling => return decider.end_of_cancel(),
            Status::Pending | Status::Completed | Status::Failed | Status::Canceled => return None,
        }
        let todo = self.agenda.iter().find(|todo| !decider.is_held(todo))?;
        Some(match todo {
            Todo::Enter(path) => decider.enter(path),
            Todo::Begin(path) => decider.begin(path),
            Todo::Judge(path) => decider.judge(path),
            Todo::Turn(path) => decider.turn(path),
            Todo::Finish(path) => decider.finish(path),
            Todo::Collapse(path) => decider.collapse(path),
        })
    }

    /// Waits whose signal or decision has come.
    pub(crate) fn look_at_waits(&self, plan: &Plan, look: &Look, meter: &Meter) -> Vec<Event> {
        if self.status != Status::Running || self.waits.is_empty() {
            return Vec::new();
        }
        let given = Given::at(self.updated_at);
        let decider = Decider { run: self, plan, given: &given };
        let waits = look.of(&self.waits);
        meter.count(waits.len());
        waits.into_iter().filter_map(|path| decider.arrived(path)).collect()
    }
}

/// The charge of a call if it were made now; `None` when it is free or the amount is unknown.
pub(super) fn estimated(run: &Run, spot: &NodeRef<'_, '_>) -> Option<Amount> {
    let call = spot.call()?;
    let price = run.start.prices.get(spot.service().unwrap_or_default());
    let scope = &spot.level.state.input;
    let prepared = match spot.branch {
        Some(_) => None,
        None => prepare(&spot.node.prep, &spot.view(run, scope)),
    };
    let input = prepared.map_or_else(|| spot.input(run), Arc::new);
    crate::money::estimate(call.cost.as_ref(), price, &view_of(run, spot, &input)).ok().flatten()
}

/// Facts for prices: the call's own params are `$params`.
fn view_of<'v>(run: &'v Run, spot: &'v NodeRef<'_, '_>, input: &'v Value) -> View<'v> {
    let mut view = spot.view(run, input);
    view.own_params = matches!(spot.node.prep, Prep::Params(_)).then_some(input);
    view
}

/// One decision: the run as it is, its plan, and the facts that came with the input.
pub(crate) struct Decider<'a> {
    run: &'a Run,
    plan: &'a Plan,
    given: &'a Given,
}

impl Decider<'_> {
    /// Whether pause or manual mode holds this item back until a step lets it go.
    fn is_held(&self, todo: &Todo) -> bool {
        let run = self.run;
        let paused = run.status == Status::Paused;
        match todo {
            // To skip a node is not to enter it.
            Todo::Enter(path) => {
                let dead = || run.spot(self.plan, path).is_some_and(|spot| node::is_dead(&spot));
                (paused || run.start.manual) && run.allowance == 0 && !dead()
            }
            // A new branch or another attempt is a new call; a node just entered was let in by a step.
            Todo::Begin(path) => {
                let entered = || run.spot(self.plan, path).is_some_and(|spot| spot.was_entered());
                paused && run.allowance == 0 && !entered()
            }
            Todo::Judge(_) | Todo::Turn(_) | Todo::Finish(_) | Todo::Collapse(_) => false,
        }
    }
}

fn warning(path: &NodePath, message: String) -> Event {
    Event::Logged { level: Level::Warn, node: Some(path.clone()), message }
}

/// The input a node's definition asks for; `None` = it has no say and the scope's input is taken.
pub(crate) fn prepare(prep: &Prep, view: &View<'_>) -> Option<Value> {
    match prep {
        Prep::Scope => None,
        Prep::Key(reference) => Some(reference.resolve(view).into_owned()),
        Prep::Map(map) => {
            Some(Value::Object(map.iter().map(|(key, t)| (key.clone(), t.resolve(view))).collect()))
        }
        Prep::Params(template) => Some(template.resolve(view)),
    }
}

/// An action as text: strings as they are, booleans and numbers by their name, anything else is none.
pub(crate) fn action_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
