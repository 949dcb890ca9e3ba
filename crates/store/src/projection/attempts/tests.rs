use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;
use windlass_engine::counter::Fence;
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::event::Start;
use windlass_engine::id::CommandId;
use windlass_engine::input::{CallOutcome, Given, Input};
use windlass_engine::run::state::{Activity, Phase, Status};

use super::*;

/// A run that is played, and its journal.
struct Played {
    plan: Arc<Plan>,
    run: Run,
    journal: Vec<Entry>,
}

impl Played {
    fn new(definition: &str, params: &Value) -> Self {
        Played::started(
            definition,
            Start { params: params.as_object().cloned().unwrap().into(), ..Start::default() },
        )
    }

    fn started(definition: &str, start: Start) -> Self {
        let compiled = compile(definition, Strictness::Strict);
        let plan = compiled.plan.unwrap_or_else(|| panic!("{:#?}", compiled.problems));
        let run = Run::new("run_0190a1b2c3d47000800000000000000a".parse().unwrap());
        let mut played = Played { plan, run, journal: Vec::new() };
        played.submit(1_000, Input::Start(Box::new(start)));
        played
    }

    fn submit(&mut self, at: i64, input: Input) {
        let step = self.run.submit(&self.plan, &input, &Given::at(Timestamp(at))).unwrap();
        let command = CommandId::new(uuid::Uuid::nil());
        self.journal.push(Entry::new(Timestamp(at), command, step.events));
    }

    fn end(&mut self, at: i64, node: &str, fence: u64, outcome: CallOutcome) {
        let worker = Some("w1".to_owned());
        self.submit(at, Input::CallEnded { node: node.into(), fence: Fence(fence), outcome, worker });
    }

    fn done(&mut self, at: i64, node: &str, fence: u64, value: Value) {
        self.end(at, node, fence, CallOutcome::Done(Arc::new(value)));
    }

    fn fail(&mut self, at: i64, node: &str, fence: u64) {
        self.end(at, node, fence, CallOutcome::Failed(Fault::new(FaultKind::Error, "no")));
    }

    fn rows(&self) -> Vec<NodeAttempt> {
        attempts(self.run.id, &self.plan, &self.journal)
    }

    /// `place#fence.attempt status` of every row.
    fn told(&self) -> Vec<String> {
        let tell =
            |row: &NodeAttempt| format!("{}#{}.{} {}", row.node, row.fence, row.attempt, row.status.word());
        self.rows().iter().map(tell).collect()
    }
}

#[test]
fn every_grant_of_a_call_is_an_attempt() {
    let mut played = Played::new(
        r#"{"start": "a", "nodes": {"a": {"service": "s", "max_retries": 1, "wait_ms": 5,
            "prep": {"input_key": "$params.x"}, "post": {"action_static": "on"}}}}"#,
        &json!({"x": 7}),
    );
    assert_eq!(played.told(), ["a#1.1 running"]);
    played.fail(2_000, "a", 1);
    assert_eq!(played.told(), ["a#1.1 error"]);
    played.submit(3_000, Input::TimePassed);
    played.done(4_000, "a", 2, json!("out"));
    assert_eq!(played.told(), ["a#1.1 error", "a#2.2 ok"]);
    let rows = played.rows();
    assert_eq!(rows[0].fault.as_ref().map(|fault| fault.message.as_str()), Some("no"));
    assert_eq!((rows[1].input.as_ref(), rows[1].output.as_deref()), (&json!(7), Some(&json!("out"))));
    assert_eq!((rows[1].worker.as_deref(), rows[1].action.as_deref()), (Some("w1"), Some("on")));
    assert_eq!((rows[1].started_at, rows[1].finished_at), (Timestamp(3_000), Some(Timestamp(4_000))));
    assert_eq!(
        (rows[1].kind.as_str(), rows[1].exec, rows[1].service.as_deref()),
        ("executor", Some("http"), Some("s"))
    );
    assert!(rows[0].event < rows[1].event);
}

#[test]
fn a_call_through_a_queue_is_queued_until_it_ends() {
    let mut played =
        Played::new(r#"{"start": "a", "nodes": {"a": {"service": "s", "exec_type": "queue"}}}"#, &json!({}));
    assert_eq!(played.told(), ["a#1.1 queued"]);
    played.done(2_000, "a", 1, json!(1));
    assert_eq!(played.told(), ["a#1.1 ok"]);
}

#[test]
fn a_node_without_a_call_has_one_attempt_a_visit() {
    let definition = r#"{"start": "c", "nodes": {
        "c": {"kind": "choice", "choice_cases": [{"action": "t", "expr": {"eq": [1, 1]}}]},
        "t": {"kind": "timer", "params": {"delay_ms": 10}},
        "w": {"kind": "wait_event", "params": {"signal_key": "$shared.go", "timeout_ms": 50}},
        "p": {"kind": "approval", "params": {"approval_key": "$shared.ok"}}},
      "edges": [{"from": "c", "action": "t", "to": "t"}, {"from": "t", "to": "w"}, {"from": "w", "to": "p"},
                {"from": "w", "action": "timeout", "to": "c"}, {"from": "p", "action": "rejected", "to": "c"}]}"#;
    let mut played = Played::new(definition, &json!({}));
    assert_eq!(played.told(), ["c#0.1 ok", "t#0.1 waiting"]);
    assert_eq!(played.rows()[0].action.as_deref(), Some("t"));
    played.submit(1_010, Input::TimePassed);
    played.submit(1_060, Input::TimePassed);
    let rows = played.told();
    assert_eq!(rows, ["c#0.1 ok", "t#0.1 ok", "w#0.1 error", "c#0.1 ok", "t#0.1 waiting"]);
    assert_eq!(played.rows()[2].action.as_deref(), Some("timeout"));
    played.submit(1_070, Input::TimePassed);
    let signal = |key: &str, value| Input::Signal { id: None, key: key.to_owned(), value, by: None };
    played.submit(1_071, signal("go", json!(true)));
    played.submit(1_072, signal("ok", json!("approved")));
    let rows = played.rows();
    assert_eq!(played.told()[4..], ["t#0.1 ok", "w#0.1 ok", "p#0.1 ok"]);
    assert_eq!(rows[6].action.as_deref(), Some("approved"));
    let visits: Vec<u64> = rows.iter().map(|row| row.visit.0).collect();
    assert_eq!(visits, [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn branches_say_which_they_are_and_what_they_got() {
    let definition = r#"{"start": "f", "nodes": {
        "f": {"kind": "foreach", "service": "s", "prep": {"input_key": "$params.items"},
              "parallel_mode": "concurrent", "post": {"output_key": "out"}},
        "p": {"kind": "parallel", "params": {"services": ["x", "y"]}, "parallel_mode": "concurrent"},
        "q": {"kind": "subflow", "subflow": {"start": "in", "nodes": {"in": {"service": "deep"}}}}},
      "edges": [{"from": "f", "to": "p"}, {"from": "p", "to": "q"}]}"#;
    let mut played = Played::new(definition, &json!({"items": ["a", "b"]}));
    played.done(2_000, "f/1", 2, json!("B"));
    played.done(3_000, "f/0", 1, json!("A"));
    played.done(4_000, "p/0", 3, json!(0));
    played.done(5_000, "p/1", 4, json!(1));
    played.done(6_000, "q/in", 5, json!(2));
    let rows = played.rows();
    assert_eq!(
        played.told(),
        [
            "f#0.1 ok",
            "f/0#1.1 ok",
            "f/1#2.1 ok",
            "p#0.1 ok",
            "p/0#3.1 ok",
            "p/1#4.1 ok",
            "q#0.1 ok",
            "q/in#5.1 ok"
        ]
    );
    assert_eq!(rows[0].output.as_deref(), Some(&json!(["A", "B"])));
    assert_eq!((&rows[2].part, rows[2].input.as_ref()), (&AttemptPart::Item { index: 1 }, &json!("b")));
    assert_eq!(rows[5].part, AttemptPart::Branch { index: 1, name: "y".to_owned() });
    assert_eq!(rows[5].service.as_deref(), Some("y"));
    assert_eq!(rows[7].part, AttemptPart::Inner { key: "in".to_owned() });
    assert_eq!((&rows[0].part, rows[0].exec), (&AttemptPart::Outermost, None));
}

#[test]
fn a_suspended_call_that_is_asked_again_has_another_attempt_row() {
    let mut played = Played::new(r#"{"start": "a", "nodes": {"a": {"service": "s"}}}"#, &json!({}));
    let memo = json!({"ticket": 4});
    played.end(2_000, "a", 1, CallOutcome::Suspended { memo: memo.clone(), recheck_ms: Some(10) });
    assert_eq!(played.told(), ["a#1.1 suspended"]);
    played.submit(2_010, Input::TimePassed);
    played.done(2_020, "a", 2, json!(1));
    assert_eq!(played.told(), ["a#1.1 suspended", "a#2.1 ok"]);
    assert_eq!(played.rows()[0].output.as_deref(), Some(&memo));
}

#[test]
fn a_suspended_call_that_is_reported_stays_one_row() {
    let mut played = Played::new(r#"{"start": "a", "nodes": {"a": {"service": "s"}}}"#, &json!({}));
    played.end(2_000, "a", 1, CallOutcome::Suspended { memo: json!(1), recheck_ms: None });
    played.done(3_000, "a", 1, json!(2));
    assert_eq!(played.told(), ["a#1.1 ok"]);
    assert_eq!(played.rows()[0].output.as_deref(), Some(&json!(2)));
}

const CANCEL: Input = Input::Cancel { reason: None, by: None };

#[test]
fn a_cancelled_run_ends_with_a_cancelled_attempt() {
    // A worker has the call.
    let call = r#"{"start": "a", "nodes": {"a": {"service": "s"}}}"#;
    let mut played = Played::new(call, &json!({}));
    played.submit(2_000, CANCEL);
    assert_eq!(played.told(), ["a#1.1 running"]);
    played.end(2_001, "a", 1, CallOutcome::Canceled);
    assert_eq!(played.told(), ["a#1.1 canceled"]);
    // A timer runs.
    let timer = r#"{"start": "t", "nodes": {"t": {"kind": "timer", "params": {"delay_ms": 10}}}}"#;
    let mut played = Played::new(timer, &json!({}));
    played.submit(2_000, CANCEL);
    assert_eq!(played.told(), ["t#0.1 canceled"]);
    // Between two attempts nothing is open.
    let retried = r#"{"start": "a", "nodes": {"a": {"service": "s", "max_retries": 3, "wait_ms": 500}}}"#;
    let mut played = Played::new(retried, &json!({}));
    played.fail(2_000, "a", 1);
    played.submit(2_001, CANCEL);
    assert_eq!(played.told(), ["a#1.1 error", "a#0.1 canceled"]);
    // Nothing was entered.
    let mut played = Played::started(call, Start { manual: true, ..Start::default() });
    assert_eq!(played.told(), [""; 0]);
    played.submit(2_000, CANCEL);
    assert_eq!(played.told(), ["a#0.1 canceled"]);
}

#[test]
fn a_failing_fan_cancels_what_runs_and_a_retry_takes_it_up_again() {
    let definition = r#"{"start": "f", "nodes": {"f": {"kind": "foreach", "service": "s",
        "failure_strategy": "fail_fast", "prep": {"input_key": "$params.items"}, "parallel_mode": "concurrent"}}}"#;
    let mut played = Played::new(definition, &json!({"items": [1, 2]}));
    played.fail(2_000, "f/0", 1);
    assert_eq!(played.told(), ["f#0.1 running", "f/0#1.1 error", "f/1#2.1 running"]);
    played.end(2_000, "f/1", 2, CallOutcome::Canceled);
    assert_eq!(played.told(), ["f#0.1 error", "f/0#1.1 error", "f/1#2.1 canceled"]);
    played.submit(3_000, Input::Retry);
    assert_eq!(played.told()[3..], ["f#0.1 running", "f/0#3.1 running", "f/1#4.1 running"]);
    played.done(4_000, "f/0", 3, json!(1));
    played.done(5_000, "f/1", 4, json!(2));
    assert_eq!(played.told()[3..], ["f#0.1 ok", "f/0#3.1 ok", "f/1#4.1 ok"]);
    assert_eq!(played.rows()[3].started_at, Timestamp(3_000));
}

#[test]
fn a_subflow_that_starts_again_has_another_attempt() {
    let definition = r#"{"start": "q", "nodes": {"q": {"kind": "subflow", "failure_strategy": "retry",
        "max_retries": 1, "wait_ms": 5, "subflow": {"start": "in", "nodes": {"in": {"service": "s"}}}}}}"#;
    let mut played = Played::new(definition, &json!({}));
    played.fail(2_000, "q/in", 1);
    assert_eq!(played.told(), ["q#0.1 error", "q/in#1.1 error"]);
    played.submit(2_005, Input::TimePassed);
    assert_eq!(played.told()[2..], ["q#0.2 running", "q/in#2.1 running"]);
}

#[test]
fn a_call_that_could_not_begin_is_a_failed_attempt() {
    let definition = r#"{"start": "f", "nodes": {"f": {"kind": "foreach", "service": "s",
        "prep": {"input_key": "$params.items"}}}}"#;
    let played = Played::new(definition, &json!({"items": 3}));
    assert_eq!(played.told(), ["f#0.1 error"]);
    assert_eq!(played.rows()[0].fault.as_ref().map(|fault| fault.kind), Some(FaultKind::Input));
}

#[test]
fn reading_a_journal_in_parts_makes_no_difference() {
    let definition = r#"{"start": "f", "nodes": {"f": {"kind": "foreach", "service": "s", "max_retries": 1,
        "wait_ms": 1, "prep": {"input_key": "$params.items"}}}}"#;
    let mut played = Played::new(definition, &json!({"items": [1, 2]}));
    played.fail(2_000, "f/0", 1);
    played.submit(2_001, Input::TimePassed);
    played.done(2_002, "f/0", 2, json!(1));
    let mut parts = Attempts::new(played.run.id, &played.plan);
    played.journal.iter().for_each(|entry| parts.follow(entry));
    assert_eq!(parts.rows().len(), 4);
    assert_eq!(parts.into_rows(), played.rows());
}

/// Branches that are flows, inside a subflow that starts again, beside retries, a timer and a cycle.
const NESTED: &str = r#"{"start": "sf", "nodes": {
    "sf": {"kind": "subflow", "failure_strategy": "retry", "max_retries": 1, "wait_ms": 5,
        "subflow": {"start": "f", "nodes": {
            "f": {"kind": "foreach", "prep": {"input_key": "$params.items"}, "parallel_mode": "concurrent",
                  "max_parallel": 2, "subflow": {"start": "x", "nodes": {
                      "x": {"service": "s"}, "y": {"service": "t", "exec_type": "queue"}},
                      "edges": [{"from": "x", "to": "y"}]}}}}},
    "p": {"kind": "parallel", "parallel_services": ["u", "v"], "parallel_mode": "concurrent",
          "failure_strategy": "collect_errors", "max_retries": 1, "wait_ms": 3},
    "t": {"kind": "timer", "params": {"delay_ms": 20}}},
  "edges": [{"from": "sf", "to": "p"}, {"from": "p", "to": "t"}, {"from": "t", "to": "p"}]}"#;

/// One more input of any kind; a refused one is a no-op.
fn any_input(played: &mut Played, now: i64, choice: u8) {
    let calls = played.run.open_calls(&played.plan);
    let call = calls.get(usize::from(choice / 16) % calls.len().max(1));
    let ended = |outcome| {
        let (node, fence, _) = call?.clone();
        Some(Input::CallEnded { node, fence, outcome, worker: None })
    };
    let input = match choice % 16 {
        0..=5 => ended(CallOutcome::Done(Arc::new(json!(choice)))),
        6..=8 => ended(CallOutcome::Failed(Fault::new(FaultKind::Error, "no"))),
        9 => ended(CallOutcome::Suspended { memo: json!(1), recheck_ms: Some(5) }),
        10 => ended(CallOutcome::WorkerLost),
        11 | 12 => Some(Input::TimePassed),
        13 => Some(Input::Retry),
        14 => Some(Input::Rerun { from: "sf/f/1/x".into(), shared: None }),
        _ => Some(Input::Cancel { reason: None, by: None }),
    };
    let Some(input) = input else { return };
    let given = Given::at(Timestamp(now));
    if let Ok(step) = played.run.submit(&played.plan, &input, &given)
        && !step.events.is_empty()
    {
        let command = CommandId::new(uuid::Uuid::nil());
        played.journal.push(Entry::new(Timestamp(now), command, step.events));
    }
}

proptest! {
    #[test]
    fn open_attempts_are_the_open_calls_of_the_run(choices in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut played = Played::new(NESTED, &json!({"items": [1, 2, 3]}));
        let mut now = 1_000;
        for choice in choices {
            now += 7;
            any_input(&mut played, now, choice);
            let mut attempts = Attempts::new(played.run.id, &played.plan);
            played.journal.iter().for_each(|entry| attempts.follow(entry));
            let newest: BTreeSet<usize> = attempts.newest.values().copied().collect();
            let rows = attempts.rows().iter().enumerate();
            let open: Vec<&NodeAttempt> =
                rows.filter(|(at, row)| newest.contains(at) && row.status.is_open()).map(|(_, row)| row).collect();
            let told: BTreeSet<(NodePath, Fence)> =
                open.iter().filter(|row| row.fence > Fence::ZERO).map(|row| (row.node.clone(), row.fence)).collect();
            let calls = played.run.open_calls(&played.plan);
            prop_assert_eq!(told, calls.into_iter().map(|(node, fence, _)| (node, fence)).collect());
            for row in &open {
                let place = played.run.place(&played.plan, &row.node);
                prop_assert!(place.is_some_and(|place| place.phase.is_open()), "{:?} is not open", row);
            }
            for (path, at) in &attempts.newest {
                let place = played.run.place(&played.plan, path);
                if place.is_some_and(|place| *place.phase == Phase::Open(Activity::Nest)) {
                    prop_assert!(attempts.rows()[*at].status.is_open(), "{:?} is open", path);
                }
            }
            if played.run.status.is_ended() {
                prop_assert!(open.is_empty(), "{:?}", open);
            }
            if played.run.status == Status::Canceled {
                prop_assert_eq!(attempts.rows().last().map(|row| row.status), Some(AttemptStatus::Canceled));
            }
            prop_assert!(attempts.rows().is_sorted_by_key(|row| (row.event, row.started_at)));
        }
    }
}
