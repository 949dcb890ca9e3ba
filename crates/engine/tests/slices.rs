//! A decision ends: a run with much to decide is decided in slices, each of bounded work.

#![allow(clippy::unwrap_used, unreachable_pub, dead_code, reason = "a test stops at once and has no users")]

#[path = "support/shapes.rs"]
mod shapes;

use serde_json::{Map, Value, json};
use shapes::{items, plan_of, run_id};
use windlass_engine::definition::{Strictness, compile_value};
use windlass_engine::event::{Event, Start};
use windlass_engine::input::{Given, Input};
use windlass_engine::limits::{SLICE_STEPS, VISITS};
use windlass_engine::meter::Meter;
use windlass_engine::plan::Plan;
use windlass_engine::run::state::Status;
use windlass_engine::run::{Run, RunStep};
use windlass_engine::time::Timestamp;

/// Steps of the largest single item of an agenda in these tests.
const ITEM_STEPS: u64 = 70_000;

/// A run, the events of all its slices, and how many slices there were.
struct Sliced {
    run: Run,
    journal: Vec<(Timestamp, Event)>,
    slices: usize,
}

impl Sliced {
    fn start(plan: &Plan, params: Map<String, Value>) -> Sliced {
        let mut sliced = Sliced { run: Run::new(run_id()), journal: Vec::new(), slices: 0 };
        sliced.feed(plan, &Input::Start(Box::new(Start { params: params.into(), ..Start::default() })));
        sliced
    }

    fn feed(&mut self, plan: &Plan, input: &Input) -> RunStep {
        let now = Timestamp(1_000 + i64::try_from(self.slices).unwrap());
        let given = Given { meter: Meter::of(SLICE_STEPS), ..Given::at(now) };
        let step = self.run.submit(plan, input, &given).unwrap();
        let spent = given.meter.spent();
        assert!(spent <= SLICE_STEPS + ITEM_STEPS, "slice {} spent {spent} steps", self.slices);
        self.journal.extend(step.events.iter().map(|event| (now, event.clone())));
        self.slices += 1;
        step
    }

    /// Each slice is decided by another server, which reads the journal.
    fn go_on_after_crashes(&mut self, plan: &Plan, n_max: usize) {
        for _ in 0..n_max {
            if !self.run.is_unfinished() {
                return;
            }
            let events = self.journal.iter().map(|(at, event)| (*at, event));
            self.run = Run::replay(self.run.id, plan, events);
            assert_eq!(self.run.wake_at(), self.journal.last().map(|(at, _)| *at), "it is due at once");
            self.feed(plan, &Input::TimePassed);
        }
    }
}

fn text(bytes: usize) -> Map<String, Value> {
    Map::from_iter([("text".to_owned(), Value::from("x".repeat(bytes)))])
}

#[test]
fn a_cycle_is_decided_in_slices_up_to_the_limit_of_visits() {
    let plan = plan_of(&shapes::graph_spin());
    let mut spin = Sliced::start(&plan, text(1_000));
    assert!(spin.run.is_unfinished());
    while spin.run.is_unfinished() {
        spin.feed(&plan, &Input::TimePassed);
    }
    assert_eq!((spin.run.status, spin.run.entries), (Status::Failed, VISITS));
    assert!(spin.run.error.unwrap().fault.message.contains("a cycle without end"));
    assert!(spin.slices > 40, "{} slices", spin.slices);
}

#[test]
fn a_search_in_a_large_text_uses_up_the_budget() {
    let definitions = [
        shapes::graph_spin(),
        json!({"steps": [
            {"id": "t", "operator": "@trigger/manual"},
            {"id": "L", "operator": "@control/flow/loop", "parameters": {"mode": "limit", "limit": 100},
             "steps": [{"id": "c", "operator": "@control/flow/branches", "branches": [
                {"id": "c-1", "conditions": [[{"operator": "@internal/cmp/string-match",
                    "parameters": {"a": "{{$params.text}}", "b": "needle$"}}]], "steps": [{"id": "x", "operator": "x"}]}]}]}]}),
    ];
    for definition in definitions {
        let compiled = compile_value(definition.clone(), Strictness::Strict);
        let plan = compiled.plan.unwrap_or_else(|| panic!("{:#?}", compiled.problems));
        let mut spin = Sliced::start(&plan, text(500_000));
        spin.go_on_after_crashes(&plan, 5);
        assert!(spin.run.is_unfinished());
        assert!(spin.run.entries < 100, "{} visits in {} slices", spin.run.entries, spin.slices);
    }
}

#[test]
fn a_cancel_takes_effect_between_two_slices() {
    let plan = plan_of(&shapes::graph_spin());
    let mut spin = Sliced::start(&plan, text(100));
    spin.feed(&plan, &Input::TimePassed);
    spin.feed(&plan, &Input::Cancel { reason: None, by: None });
    assert_eq!(spin.run.status, Status::Canceled);
    assert_eq!((spin.run.is_unfinished(), spin.run.wake_at()), (false, None));
}

#[test]
fn a_pause_takes_effect_between_two_slices_and_a_step_enters_one_node() {
    let plan = plan_of(&shapes::graph_spin());
    let mut spin = Sliced::start(&plan, text(100));
    spin.feed(&plan, &Input::Pause);
    assert_eq!((spin.run.status, spin.run.wake_at()), (Status::Paused, None));
    let before = spin.run.entries;
    spin.feed(&plan, &Input::Step);
    assert_eq!(spin.run.entries, before + 1);
    assert!(spin.feed(&plan, &Input::TimePassed).events.is_empty());
    spin.feed(&plan, &Input::Resume);
    assert!(spin.run.is_unfinished() && spin.run.entries > before + 100);
}

#[test]
fn a_wide_fan_is_granted_in_slices() {
    let plan = plan_of(&shapes::foreach_calls());
    let mut fan = Sliced::start(&plan, items(20_000));
    fan.go_on_after_crashes(&plan, 100);
    assert_eq!((fan.run.n_granted, fan.run.wake_at()), (20_000, None));
    assert!((10..50).contains(&fan.slices), "{} slices", fan.slices);
}

#[test]
fn a_strict_meter_puts_back_an_item_that_is_too_much() {
    let plan = plan_of(&shapes::graph_spin());
    let mut run = Run::new(run_id());
    let start = Input::Start(Box::new(Start { params: text(1 << 20).into(), ..Start::default() }));
    let given = Given { meter: Meter::strict(10_000), ..Given::at(Timestamp(1)) };
    let step = run.submit(&plan, &start, &given).unwrap();
    assert!(given.meter.has_put_back() && run.is_unfinished());
    assert!(matches!(step.events.last(), Some(Event::Entered { .. })), "{:?}", step.events);
    let given = Given { meter: Meter::of(10_000), ..given };
    let step = run.resume_agenda(&plan, &given);
    assert!(matches!(step.events.as_slice(), [Event::Done { .. }]), "{:?}", step.events);
}

#[test]
fn three_steps_are_one_decision_each() {
    let plan = plan_of(&shapes::graph_chain(3));
    let mut chain = Sliced::start(&plan, Map::new());
    for n in 1..=3 {
        let (node, fence, _) = chain.run.open_calls(&plan).remove(0);
        let outcome = windlass_engine::input::CallOutcome::Done(json!({"v": n}).into());
        chain.feed(&plan, &Input::CallEnded { node, fence, outcome, worker: None });
        assert!(!chain.run.is_unfinished());
    }
    assert_eq!(chain.run.status, Status::Completed);
}
