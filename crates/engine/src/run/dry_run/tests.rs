//! Estimates in dry runs: child runs, sizes, and runs without an account.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{CostEstimate, DryRunReport, EstimateInputs};
use crate::counter::Fence;
use crate::definition::{Strictness, compile_value};
use crate::event::Start;
use crate::id::RunId;
use crate::input::{CallOutcome, Given, Input};
use crate::money::{Amount, Price};
use crate::path::NodePath;
use crate::plan::Plan;
use crate::retry::{Fault, FaultKind};
use crate::run::Run;
use crate::time::Timestamp;

/// A run of this definition that failed at its node `first`, before anything else. Its service `film` has a price by
/// the second.
fn failed(definition: &Value) -> (Arc<Plan>, Run) {
    let compiled = compile_value(definition.clone(), Strictness::Strict);
    let plan = compiled.plan.unwrap_or_else(|| panic!("{:?}", compiled.problems));
    let mut run = Run::new(RunId::new(uuid::Uuid::from_u128(7)));
    let given = Given::at(Timestamp(1));
    let film =
        Price { unit_price: Amount(1), min_unit: 1, units: json!("$params.seconds"), actual_units: None };
    let start = Start {
        account: Some("acme".to_owned()),
        prices: Arc::new([("film".to_owned(), film)].into_iter().collect()),
        ..Start::default()
    };
    run.submit(&plan, &Input::Start(Box::new(start)), &given).unwrap();
    let outcome = CallOutcome::Failed(Fault::new(FaultKind::Error, "no").permanent());
    let ended = Input::CallEnded { node: NodePath::from("first"), fence: Fence(1), outcome, worker: None };
    run.submit(&plan, &ended, &given).unwrap();
    (plan, run)
}

/// Retries a failed run and ends `first` and the node after it well.
fn completed(plan: &Plan, run: &mut Run, last: &str) {
    let given = Given::at(Timestamp(2));
    run.submit(plan, &Input::Retry, &given).unwrap();
    for (node, fence) in [("first", Fence(2)), (last, Fence(3))] {
        let outcome = CallOutcome::Done(Arc::new(json!(1)));
        let done = Input::CallEnded { node: NodePath::from(node), fence, outcome, worker: None };
        run.submit(plan, &done, &given).unwrap();
    }
}

fn retried(plan: &Plan, run: &Run) -> DryRunReport {
    run.dry_run(plan, &Input::Retry, &Given::at(Timestamp(2)), &EstimateInputs::default()).unwrap()
}

/// `first`, and then a child run.
fn calling() -> Value {
    json!({ "nodes": [
        { "id": "first", "type": "x", "cost": 2 },
        { "id": "c", "type": "flow_ref", "config": { "flow": "leaf", "params": { "n": 1 } } }
    ], "edges": [{ "source": "first", "target": "c" }] })
}

#[test]
fn the_cost_of_a_child_run_that_was_never_made_is_unknown() {
    let (plan, run) = failed(&calling());
    let report = retried(&plan, &run);
    assert_eq!(report.cost, CostEstimate { estimated: Amount(2), at_most: Amount(2), n_unknown: 1 });
    assert_eq!(report.nodes[1].call.as_ref().unwrap().estimate, None);
    assert!(report.children.is_empty());
}

#[test]
fn a_child_run_is_estimated_at_the_cost_of_the_last_one() {
    let (plan, mut run) = failed(&calling());
    completed(&plan, &mut run, "c");
    let rerun = Input::Rerun { from: NodePath::from("c"), shared: None };
    let report =
        |inputs: &EstimateInputs| run.dry_run(&plan, &rerun, &Given::at(Timestamp(3)), inputs).unwrap();
    let child = RunId::of_call(run.id, Fence(3));
    let mut inputs = EstimateInputs::default();
    assert_eq!(report(&inputs).children, [child]);
    assert_eq!(report(&inputs).cost.n_unknown, 1, "it did not complete or is gone");
    inputs.child_costs.insert(child, Amount(8));
    assert_eq!(report(&inputs).cost, CostEstimate::of(Amount(8)));
}

#[test]
fn a_run_without_an_account_has_no_costs() {
    let (plan, mut run) = failed(&calling());
    run.start = Arc::new(Start { account: None, ..(*run.start).clone() });
    let report = retried(&plan, &run);
    assert!(report.children.is_empty() && report.cost == CostEstimate::default(), "{report:?}");
}

#[test]
fn literal_params_are_estimated_before_the_first_call() {
    for (config, expected) in [
        (json!({ "seconds": 4 }), CostEstimate::of(Amount(4))),
        (json!({ "seconds": 4, "prompt": "$node.first.output" }), CostEstimate::of(Amount(4))),
        (json!({ "minutes": 4 }), CostEstimate::of(Amount(1))),
        (json!({ "seconds": "$node.first.output.n" }), CostEstimate::UNKNOWN),
        (json!({ "seconds": "$shared.later" }), CostEstimate::UNKNOWN),
    ] {
        let film = json!({ "id": "last", "type": "film", "config": config });
        let nodes = json!([{ "id": "first", "type": "x" }, film]);
        let edges = json!([{ "source": "first", "target": "last" }]);
        let (plan, run) = failed(&json!({ "nodes": nodes, "edges": edges }));
        assert_eq!(retried(&plan, &run).cost, expected, "{config}");
    }
}

/// The cost of a call that is rerun with a shared value of three million bytes, which its config names `n` times.
fn cost_of_large_input(n: usize) -> CostEstimate {
    let config = json!({ "seconds": 4, "all": vec![json!("$shared.big"); n] });
    let last = json!({ "id": "last", "type": "film", "config": config });
    let nodes = json!([{ "id": "first", "type": "x" }, last]);
    let edges = json!([{ "source": "first", "target": "last" }]);
    let (plan, mut run) = failed(&json!({ "nodes": nodes, "edges": edges }));
    completed(&plan, &mut run, "last");
    let Value::Object(shared) = json!({ "big": "x".repeat(3_000_000) }) else { unreachable!() };
    let rerun = Input::Rerun { from: NodePath::from("first"), shared: Some(shared) };
    run.dry_run(&plan, &rerun, &Given::at(Timestamp(3)), &EstimateInputs::default()).unwrap().cost
}

#[test]
fn an_input_that_a_run_would_refuse_for_its_size_is_not_built() {
    assert_eq!(cost_of_large_input(2), CostEstimate::of(Amount(4)));
    assert_eq!(cost_of_large_input(3), CostEstimate::UNKNOWN);
}
