//! Random inputs to a run: right answers and wrong ones, early and late, and everything people may ask.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_engine::counter::Fence;
use windlass_engine::event::{InsufficientFundsAction, Start};
use windlass_engine::input::{CallOutcome, Given, Input};
use windlass_engine::money::{Amount, Bill};
use windlass_engine::path::NodePath;
use windlass_engine::plan::Exec;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::time::Timestamp;

use super::dice::Dice;
use super::world::TestRun;

pub fn start(dice: &mut Dice<'_>) -> Start {
    let items: Vec<Value> = (0..dice.below(4)).map(Value::from).collect();
    let params = json!({"items": items, "n": dice.below(4)});
    let account = dice.once_in(2).then(|| "acc".to_owned());
    Start {
        params: params.as_object().cloned().unwrap_or_default().into(),
        manual: dice.once_in(8),
        budget: (account.is_some() && dice.once_in(3)).then_some(Amount(12)),
        account,
        on_short_balance: dice.pick(&[InsufficientFundsAction::Fail, InsufficientFundsAction::Wait]),
        call_timeout_ms: dice.pick(&[0, 700]),
        ..Start::default()
    }
}

/// An input that a client might send now, and its time.
pub fn any(dice: &mut Dice<'_>, world: &TestRun, now: &mut Timestamp) -> (Input, Given) {
    *now = now.after(dice.pick(&[0, 0, 1, 15, 120, 1_000, 40_000]));
    let mut given = Given::at(*now);
    let input = match dice.below(16) {
        0..=6 => call_ended(dice, world),
        7 | 8 => Input::TimePassed,
        9 => signal(dice),
        10 => Input::Decide {
            node: None,
            decision: dice.pick(&[json!(true), json!("rejected"), json!({})]),
            by: dice.pick(&[Some("ann".to_owned()), None]),
            comment: None,
        },
        11 => dice.pick(&[Input::Pause, Input::Resume, Input::Step, Input::Retry]),
        12 if dice.once_in(3) => Input::Cancel { reason: None, by: None },
        12 | 13 => Input::Continue { node: place(dice, world), value: json!({"v": 1}) },
        14 => Input::BalanceChanged { budget: dice.pick(&[None, Some(Amount(40))]), balance: None },
        _ => rerun(dice, world),
    };
    if dice.once_in(6) {
        // The account cannot bear any of the next charges.
        given.insufficient_funds = places(world);
        given.insufficient_funds.extend(world.run.open_calls(&world.plan).into_iter().map(|(path, ..)| path));
    }
    (input, given)
}

fn call_ended(dice: &mut Dice<'_>, world: &TestRun) -> Input {
    let open = world.run.open_calls(&world.plan);
    let (node, fence) = match open.get(dice.below(open.len())) {
        Some((node, fence, Exec::Flow { .. })) => return child_ended(dice, node.clone(), *fence),
        Some((node, fence, _)) => (node.clone(), *fence),
        None => (place(dice, world), Fence(1)),
    };
    let fence = if dice.once_in(8) { Fence(fence.0.saturating_sub(1)) } else { fence };
    let worker = dice.pick(&[None, Some("w1".to_owned())]);
    Input::CallEnded { node, fence, outcome: outcome(dice), worker }
}

fn child_ended(dice: &mut Dice<'_>, node: NodePath, fence: Fence) -> Input {
    let outcome = match dice.below(4) {
        0 => CallOutcome::Failed(Fault::new(FaultKind::Error, "no")),
        1 => CallOutcome::Canceled,
        _ => CallOutcome::Done(Arc::new(json!({"v": 1}))),
    };
    let actual = i64::try_from(dice.below(3)).unwrap_or_default();
    Input::ChildEnded {
        node,
        fence,
        outcome: Some(outcome),
        bill: Bill { estimated: Amount(2), actual: Amount(actual) },
    }
}

fn outcome(dice: &mut Dice<'_>) -> CallOutcome {
    let kinds = [FaultKind::Error, FaultKind::Transport, FaultKind::Timeout, FaultKind::NoWorker];
    match dice.below(12) {
        0..=4 => CallOutcome::Done(Arc::new(dice.pick(&[
            json!({"v": 1, "cost": 3}),
            json!({"action": "again"}),
            json!(5),
            json!({"action": "yes", "urls": ["u"]}),
        ]))),
        5 | 6 => CallOutcome::Failed(Fault::new(dice.pick(&kinds), "no")),
        7 => CallOutcome::Failed(Fault::new(FaultKind::Error, "never").permanent()),
        8 => CallOutcome::Suspended {
            memo: json!({"job": 1}),
            recheck_ms: dice.pick(&[None, Some(0), Some(300)]),
        },
        9 => CallOutcome::Canceled,
        10 => CallOutcome::WorkerLost,
        _ => CallOutcome::ServerLost,
    }
}

fn signal(dice: &mut Dice<'_>) -> Input {
    let key = dice.pick(&["go", "k0", "ok", "_rt.x", "k1"]).to_owned();
    let id = dice.pick(&[None, Some("id1".to_owned()), Some("id2".to_owned())]);
    Input::Signal { id, key, value: dice.pick(&[json!(true), json!(2), json!("")]), by: None }
}

fn rerun(dice: &mut Dice<'_>, world: &TestRun) -> Input {
    let shared = Map::from_iter([("k0".to_owned(), json!(1))]);
    Input::Rerun { from: place(dice, world), shared: dice.pick(&[None, Some(shared)]) }
}

/// Places that were ever named in the journal.
fn places(world: &TestRun) -> std::collections::BTreeSet<NodePath> {
    let named = world.journal.iter().filter_map(|(_, event)| match serde_json::to_value(event) {
        Ok(Value::Object(fields)) => fields.get("node")?.as_str().map(NodePath::from),
        _ => None,
    });
    named.collect()
}

fn place(dice: &mut Dice<'_>, world: &TestRun) -> NodePath {
    let all: Vec<NodePath> = places(world).into_iter().collect();
    match all.get(dice.below(all.len() + 1)) {
        Some(path) => path.clone(),
        None => NodePath::from("nowhere"),
    }
}
