//! Inputs in no order at all: whatever comes, a run must stay whole and never be stuck.

use serde_json::{Value, json};
use windlass_engine::event::Start;
use windlass_engine::input::{Given, Input, Outcome};
use windlass_engine::path::NodePath;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::run::state::Status;
use windlass_engine::time::Timestamp;

use super::world::World;

/// Numbers that are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        // A linear congruence whose low bits are poor and not used.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % n as u64).unwrap()
    }

    fn one_of<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        if list.is_empty() { None } else { list.get(self.below(list.len())) }
    }
}

/// Plays so many inputs; says what went wrong, and after what.
pub fn blow(world: &mut World, params: &Value, seed: u64, n_inputs: usize) -> Result<(), String> {
    let mut dice = Dice(seed);
    let mut now = 0;
    let mut told = Vec::new();
    let params = params.as_object().cloned().unwrap_or_default();
    let manual = dice.below(10) == 0;
    let start = Start { params, manual, ..Start::default() };
    let mut input = Input::Start(Box::new(start));
    for _ in 0..n_inputs {
        told.push(format!("{now} {input:?}"));
        let given = Given::at(Timestamp(now));
        let answer = world.submit(&input, &given);
        let context = |error: String| format!("{error}\n  after\n    {}\n  {answer:?}", told.join("\n    "));
        world.check().map_err(context)?;
        is_whole(world).map_err(context)?;
        now += [0, 1, 7, 60, 40_000][dice.below(5)];
        input = next_input(world, &mut dice);
    }
    Ok(())
}

/// Whoever is counted is there, and an open run waits for something that can come.
fn is_whole(world: &World) -> Result<(), String> {
    let run = &world.run;
    let calls = run.open_calls(&world.plan);
    if run.n_granted > calls.len() {
        return Err(format!("{} calls are counted, {} are open", run.n_granted, calls.len()));
    }
    match run.status {
        Status::Running => {
            let waits = run.why(&world.plan);
            if waits.is_empty() { Err("it is stuck: nothing is waited for".to_owned()) } else { Ok(()) }
        }
        Status::Canceling if run.wake_at().is_none() => Err("nothing ends the cancel".to_owned()),
        Status::Completed | Status::Failed | Status::Canceled if run.n_granted > 0 || !calls.is_empty() => {
            Err("it has ended with calls open".to_owned())
        }
        Status::Pending
        | Status::Paused
        | Status::Canceling
        | Status::Completed
        | Status::Failed
        | Status::Canceled => Ok(()),
    }
}

fn next_input(world: &World, dice: &mut Dice) -> Input {
    let run = &world.run;
    let calls = run.open_calls(&world.plan);
    let places: Vec<NodePath> = world.journal.iter().filter_map(|(_, event)| place(event)).collect();
    if run.status.is_ended() {
        return match (dice.below(3), dice.one_of(&places)) {
            (0, Some(from)) => Input::Rerun { from: from.clone(), shared: None },
            (1, _) if !calls.is_empty() => Input::TimePassed,
            _ => Input::Retry,
        };
    }
    match dice.below(20) {
        0 => Input::Pause,
        1 => Input::Step,
        2 => Input::Cancel { reason: None, by: None },
        3 | 4 => Input::Resume,
        5 | 6 => {
            let key = ["flag", "go", "k", "a", "ok", "one", "b"][dice.below(7)].to_owned();
            Input::Signal { id: None, key, value: json!(true), by: None }
        }
        7 | 8 => {
            Input::Decide { node: None, decision: json!(true), by: Some("bob".to_owned()), comment: None }
        }
        9..=11 => Input::TimePassed,
        12 => match dice.one_of(&places) {
            Some(node) => Input::Continue { node: node.clone(), value: json!({"go": "left"}) },
            None => Input::TimePassed,
        },
        _ => match dice.one_of(&calls) {
            Some((node, fence, _)) => {
                let fence = if dice.below(10) == 0 { fence.saturating_sub(1) } else { *fence };
                Input::CallEnded { node: node.clone(), fence, outcome: outcome(dice), worker: None }
            }
            None => Input::TimePassed,
        },
    }
}

fn outcome(dice: &mut Dice) -> Outcome {
    match dice.below(12) {
        0 | 1 => Outcome::Failed(Fault::new(FaultKind::Error, "error")),
        2 => Outcome::Failed(Fault::new(FaultKind::Transport, "refused")),
        3 => Outcome::Failed(Fault::new(FaultKind::Timeout, "late").permanent()),
        4 => Outcome::Suspended { memo: json!(1), recheck_ms: Some(5) },
        5 => Outcome::Suspended { memo: json!(2), recheck_ms: None },
        6 => Outcome::WorkerLost,
        7 => Outcome::ServerLost,
        8 => Outcome::Canceled,
        9 => Outcome::Done(json!({"go": "left", "again": true, "ok": true, "items": [1, 2]}).into()),
        10 => Outcome::Done(json!([1, 2]).into()),
        _ => Outcome::Done(json!({}).into()),
    }
}

fn place(event: &windlass_engine::event::Event) -> Option<NodePath> {
    let stored = serde_json::to_value(event).unwrap();
    Some(NodePath::from(stored.get("node")?.as_str()?))
}
