use std::sync::Arc;

use windlass_engine::counter::Fence;
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::event::Start;
use windlass_engine::input::{CallOutcome, Given, Input};
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::time::Timestamp;

use super::*;

struct Played {
    plan: Arc<Plan>,
    run: Run,
}

impl Played {
    fn new(definition: &str, params: &Value) -> Self {
        let compiled = compile(definition, Strictness::Strict);
        let plan = compiled.plan.unwrap_or_else(|| panic!("{:#?}", compiled.problems));
        let run = Run::new("run_0190a1b2c3d47000800000000000000a".parse().unwrap());
        let mut played = Played { plan, run };
        let params = params.as_object().cloned().unwrap();
        played.submit(Input::Start(Box::new(Start { params: params.into(), ..Start::default() })));
        played
    }

    fn submit(&mut self, input: Input) {
        self.run.submit(&self.plan, &input, &Given::at(Timestamp(5_000))).unwrap();
    }

    fn end(&mut self, node: &str, fence: u64, outcome: CallOutcome) {
        self.submit(Input::CallEnded { node: node.into(), fence: Fence(fence), outcome, worker: None });
    }

    fn rendered(&self) -> Value {
        render(&self.plan, &self.run)
    }
}

fn failed() -> CallOutcome {
    CallOutcome::Failed(Fault::new(FaultKind::Error, "no"))
}

#[test]
fn a_parallel_shows_what_is_done_and_what_failed_by_service() {
    let mut played = Played::new(
        r#"{"start": "p", "nodes": {"p": {"kind": "parallel", "parallel_services": ["x", "y", "x"],
            "parallel_mode": "concurrent", "max_parallel": 3, "failure_strategy": "collect_errors"}}}"#,
        &json!({}),
    );
    played.end("p/0", 1, CallOutcome::Done(Arc::new(json!(1))));
    played.end("p/1", 2, failed());
    let expected = json!({"_rt": {"pl:p": {"done": {"x": 1}, "errs": {"y": "no"}, "mode": "concurrent", "max": 3,
        "strategy": "collect_errors"}}});
    assert_eq!(played.rendered(), expected);
    played.end("p/2", 3, failed());
    assert!(played.rendered().get("_rt").is_none(), "nothing is open any more");
}

#[test]
fn a_foreach_shows_what_is_done_by_index() {
    let mut played = Played::new(
        r#"{"start": "f", "nodes": {"f": {"kind": "foreach", "service": "s", "prep": {"input_key": "$params.items"}}}}"#,
        &json!({"items": ["a", "b"]}),
    );
    played.end("f/0", 1, CallOutcome::Done(Arc::new(json!("A"))));
    let expected = json!({"_rt": {"fe:f": {"done": {"0": "A"}, "errs": {}, "idx": 2, "mode": "sequential", "max": 1,
        "strategy": ""}}});
    assert_eq!(played.rendered(), expected);
}

#[test]
fn a_subflow_shows_where_it_is_and_what_it_shares() {
    let mut played = Played::new(
        r#"{"start": "q", "nodes": {"q": {"kind": "subflow", "subflow": {"start": "a", "nodes": {
            "a": {"service": "s", "post": {"output_key": "got", "action_static": "on"}},
            "t": {"kind": "timer", "params": {"delay_ms": 9}}},
            "edges": [{"from": "a", "action": "on", "to": "t"}]}}}}"#,
        &json!({}),
    );
    let rendered = played.rendered();
    assert_eq!(rendered["_rt"]["sf:q"], json!({"curr": "a", "shared": {}, "last": ""}));
    played.end("q/a", 1, CallOutcome::Done(Arc::new(json!(7))));
    let inner = json!({"got": 7, "_rt": {"tm:t": {"start": 5_000}}});
    assert_eq!(played.rendered()["_rt"]["sf:q"], json!({"curr": "t", "shared": inner, "last": "on"}));
}

#[test]
fn waits_show_since_when_and_signals_are_shared() {
    let mut played = Played::new(
        r#"{"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "$shared.go"}},
            "p": {"kind": "approval", "params": {"approval_key": "$shared.ok"}, "post": {"output_key": "said"}}},
            "edges": [{"from": "w", "to": "p"}]}"#,
        &json!({}),
    );
    assert_eq!(played.rendered(), json!({"_rt": {"we:w": {"start": 5_000}}}));
    let signal = |key: &str, value| Input::Signal { id: None, key: key.to_owned(), value, by: None };
    played.submit(signal("go", json!(1)));
    assert_eq!(played.rendered(), json!({"go": 1, "_rt": {"ap:p": {"start": 5_000}}}));
    played.submit(signal("ok", json!("approved")));
    assert_eq!(played.rendered(), json!({"go": 1, "ok": "approved", "said": "approved"}));
}

#[test]
fn the_current_node_is_where_the_run_is() {
    let mut played = Played::new(
        r#"{"start": "a", "nodes": {"a": {"service": "s"}, "b": {"service": "s"}}, "edges": [{"from": "a", "to": "b"}]}"#,
        &json!({}),
    );
    let current = |played: &Played| super::current(&played.plan.root, &played.run.root).map(str::to_owned);
    assert_eq!(current(&played).as_deref(), Some("a"));
    played.end("a", 1, CallOutcome::Done(Arc::default()));
    assert_eq!(current(&played).as_deref(), Some("b"));
}
