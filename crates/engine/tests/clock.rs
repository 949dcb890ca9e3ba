//! Runs under a wall clock that is behind server time, and after a repair of their store.

#![allow(clippy::unwrap_used, unreachable_pub, dead_code, reason = "a test stops at once and has no users")]

#[path = "support/world.rs"]
mod world;

use serde_json::{Value, json};
use windlass_engine::definition::{Strictness, compile_value};
use windlass_engine::event::Event;
use windlass_engine::input::{Given, Input};
use windlass_engine::run::state::Status;
use windlass_engine::time::Timestamp;

const HOUR: i64 = 3_600_000;

fn given(now: i64, wall: i64) -> Given {
    Given { wall: Timestamp(wall), ..Given::at(Timestamp(now)) }
}

fn started(nodes: Value, given: &Given) -> world::TestRun {
    let definition = json!({"start": "t", "nodes": nodes});
    let plan = compile_value(definition.clone(), Strictness::Strict).plan.unwrap();
    let mut run = world::TestRun::of(plan);
    run.submit(&Input::Start(Box::default()), given).unwrap();
    run
}

fn woken(run: &mut world::TestRun, now: i64, wall: i64) -> (Status, Option<Timestamp>) {
    run.submit(&Input::TimePassed, &given(now, wall)).unwrap();
    run.check().unwrap();
    (run.run.status, run.run.wake_at())
}

#[test]
fn a_named_moment_is_awaited_by_the_wall_clock() {
    let until = json!({"t": {"kind": "timer", "params": {"until": "1970-01-01T02:00:00Z"}}});
    let run = started(until.clone(), &given(HOUR, HOUR));
    assert_eq!(run.run.wake_at(), Some(Timestamp(2 * HOUR)));
    // The wall clock is far behind: server time runs at half pace until it shows the moment.
    let mut run = started(until, &given(10 * HOUR, HOUR));
    assert_eq!(run.run.wake_at(), Some(Timestamp(10 * HOUR + HOUR / 2)));
    let (status, wake) = woken(&mut run, 10 * HOUR + HOUR / 2, HOUR + HOUR / 2);
    assert_eq!((status, wake), (Status::Running, Some(Timestamp(10 * HOUR + HOUR / 2 + HOUR / 4))));
    let journal = run.journal.len();
    assert_eq!(woken(&mut run, 10 * HOUR + HOUR / 2, HOUR + HOUR / 2).0, Status::Running);
    assert_eq!(run.journal.len(), journal, "a repeated wake-up is a no-op");
    assert_eq!(woken(&mut run, 10 * HOUR + HOUR / 2 + HOUR / 4, 2 * HOUR), (Status::Completed, None));
}

#[test]
fn a_run_continues_after_the_times_of_its_store_were_set_back() {
    let (wrong, now) = (1_000_000 * HOUR, 10 * HOUR);
    let timer = json!({"t": {"kind": "timer", "params": {"delay_ms": HOUR}}});
    let mut run = started(timer, &given(wrong, wrong));
    assert_eq!(woken(&mut run, now, now), (Status::Running, Some(Timestamp(now + HOUR))));
    assert!(matches!(run.journal.last(), Some((_, Event::SetBack { .. }))));
    assert_eq!(woken(&mut run, now + HOUR - 1, now + HOUR - 1).0, Status::Running);
    assert_eq!(woken(&mut run, now + HOUR, now + HOUR), (Status::Completed, None));
}

#[test]
fn retries_and_limits_of_calls_are_set_back_too() {
    let (wrong, now) = (1_000_000 * HOUR, 10 * HOUR);
    let call = json!({"t": {"service": "s", "exec_type": "http", "timeout_ms": HOUR}});
    let mut run = started(call, &given(wrong, wrong));
    let (status, wake) = woken(&mut run, now, now);
    assert_eq!((status, wake), (Status::Running, Some(Timestamp(now + HOUR))));
    run.submit(&Input::Cancel { reason: None, by: None }, &given(wrong, wrong)).unwrap();
    let (status, wake) = woken(&mut run, now, now);
    assert_eq!(status, Status::Canceling);
    assert!(wake.unwrap().since(Timestamp(now)) <= 60_000);
}
