//! What child runs would cost that were not made.

mod size;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Expense, Preview, Shelf};
use crate::definition::{Strictness, compile_value};
use crate::event::{Parent, Start};
use crate::id::RunId;
use crate::input::{Given, Input, Outcome};
use crate::money::Price;
use crate::path::NodePath;
use crate::plan::{Called, Plan};
use crate::retry::{Fault, FaultKind};
use crate::run::Run;
use crate::time::Timestamp;

fn plan(definition: &Value) -> Arc<Plan> {
    let compiled = compile_value(definition, Strictness::Strict);
    compiled.plan.unwrap_or_else(|| panic!("{:?}", compiled.problems))
}

/// Flows by name, and prices of services by the second, which they take from their params.
fn shelf(flows: &[(&str, Value)], prices: &[(&str, i64)]) -> Shelf {
    let called = |flow: &str| Called { flow: flow.to_owned(), version: None };
    let price =
        |unit_price| Price { unit_price, min_unit: 1, units: json!("$params.seconds"), actual_units: None };
    let prices: BTreeMap<String, Price> =
        prices.iter().map(|(service, unit_price)| ((*service).to_owned(), price(*unit_price))).collect();
    Shelf {
        costs: BTreeMap::new(),
        flows: flows.iter().map(|(name, definition)| (called(name), plan(definition))).collect(),
        prices: Arc::new(prices),
    }
}

/// A run of this definition that failed at its node `first`, before anything else.
fn failed(definition: &Value, params: Value, depth: u32) -> (Arc<Plan>, Run) {
    let plan = plan(definition);
    let mut run = Run::new(RunId::new(uuid::Uuid::from_u128(7)));
    let given = Given::at(Timestamp(1));
    let Value::Object(params) = params else { panic!("params are an object") };
    let parent = (depth > 0).then(|| Parent { run: run.id, node: NodePath::from("c"), fence: 1, depth });
    let start = Start { account: Some("acme".to_owned()), params, parent, ..Start::default() };
    run.submit(&plan, &Input::Start(Box::new(start)), &given).unwrap();
    let outcome = Outcome::Failed(Fault::new(FaultKind::Error, "no").permanent());
    let ended = Input::CallEnded { node: NodePath::from("first"), fence: 1, outcome, worker: None };
    run.submit(&plan, &ended, &given).unwrap();
    (plan, run)
}

fn retried(definition: &Value, params: Value, depth: u32, shelf: &Shelf) -> Preview {
    let (plan, run) = failed(definition, params, depth);
    run.preview(&plan, &Input::Retry, &Given::at(Timestamp(2)), shelf).unwrap()
}

/// `first`, and then the child, which is given these params.
fn calling(flow: &str, params: Value) -> Value {
    json!({ "nodes": [
        { "id": "first", "type": "x" },
        { "id": "c", "type": "flow_ref", "config": { "flow": flow, "params": params } }
    ], "edges": [{ "source": "first", "target": "c" }] })
}

/// What the child would cost: for sure, at most, and how many calls nobody can tell.
#[track_caller]
fn check(params: Value, flows: &[(&str, Value)], prices: &[(&str, i64)], expected: (i64, i64, u64)) {
    let told = retried(&calling("leaf", params), json!({ "known": 6 }), 0, &shelf(flows, prices)).cost;
    let Expense { estimated, at_most, n_unknown } = told;
    assert_eq!((estimated, at_most, n_unknown), expected);
}

fn leaf(nodes: Value, edges: Value) -> (&'static str, Value) {
    ("leaf", json!({ "nodes": nodes, "edges": edges }))
}

#[test]
fn a_child_that_was_not_made_costs_what_its_definition_says() {
    let flow = leaf(
        json!([{ "id": "a", "type": "x", "cost": 3 }, { "id": "b", "type": "film", "config": { "seconds": 4 } },
            { "id": "c", "type": "x", "cost": 100 }, { "id": "d", "type": "free" }]),
        json!([{ "source": "a", "target": "b" }, { "source": "a", "target": "c", "condition": "$node.a.output > 1" }]),
    );
    check(json!({}), &[flow], &[("film", 10)], (43, 143, 0));
}

#[test]
fn nothing_is_known_of_a_flow_that_is_not_there_or_is_stopped() {
    check(json!({}), &[], &[], (0, 0, 1));
    let stopped =
        json!({ "status": "stopped", "steps": [{ "id": "s", "operator": "x", "settings": { "cost": 1 } }] });
    check(json!({}), &[("leaf", stopped)], &[], (0, 0, 1));
}

#[test]
fn params_are_followed_as_far_as_they_can_be_told() {
    let film = |config: Value| {
        leaf(
            json!([{ "id": "a", "type": "film", "config": config }, { "id": "b", "type": "x" }]),
            json!([{ "source": "b", "target": "a" }]),
        )
    };
    let param = || film(json!({ "seconds": "$params.seconds", "prompt": "$node.b.output.text" }));
    // Said by whoever calls, found in the params of the run that calls, and what is not there at all.
    check(json!({ "seconds": 5 }), &[param()], &[("film", 10)], (50, 50, 0));
    check(json!({ "seconds": "$params.known" }), &[param()], &[("film", 10)], (60, 60, 0));
    check(json!({ "minutes": 5 }), &[param()], &[("film", 10)], (10, 10, 0));
    // What comes of a node that has not run is not there yet: the least that is sold would be a guess.
    check(json!({ "seconds": "$node.first.output.n" }), &[param()], &[("film", 10)], (0, 0, 1));
    check(json!({ "seconds": "$shared.later" }), &[param()], &[("film", 10)], (0, 0, 1));
    check(json!({}), &[film(json!({ "seconds": "$node.b.output.n" }))], &[("film", 10)], (0, 0, 1));
}

#[test]
fn variables_have_their_defaults_unless_something_writes_them() {
    let film = |set: &str| {
        let nodes = json!([
            { "id": "set", "type": "variable_set", "config": { "variables": [{ "name": set, "value": 1 }] } },
            { "id": "a", "type": "film", "config": { "seconds": "$var.seconds" } }
        ]);
        let variables = json!({ "seconds": { "type": "number", "default": 8 } });
        let edges = json!([{ "source": "set", "target": "a" }]);
        ("leaf", json!({ "nodes": nodes, "edges": edges, "variables": variables }))
    };
    check(json!({}), &[film("other")], &[("film", 10)], (80, 80, 0));
    check(json!({ "seconds": 2 }), &[film("other")], &[("film", 10)], (20, 20, 0));
    check(json!({}), &[film("seconds")], &[("film", 10)], (0, 0, 1));
}

/// A loop over this, whose body has a film of as many seconds as the turn says, and a call that costs 1.
fn looping(over: Value) -> (&'static str, Value) {
    let mut parameters = over;
    parameters["outputs"] = json!([]);
    let body = json!([{ "id": "s", "operator": "film", "parameters": { "seconds": "{{__o.value}}" } },
        { "id": "t", "operator": "x", "settings": { "cost": 1 } }]);
    let steps = json!([{ "id": "g", "operator": "@trigger/x" }, { "id": "o", "operator": "@control/flow/loop", "parameters": parameters, "steps": body }]);
    ("leaf", json!({ "steps": steps }))
}

#[test]
fn turns_are_counted_where_their_number_can_be_told() {
    let films = [("film", 10)];
    check(json!({}), &[looping(json!({ "mode": "limit", "limit": 3 }))], &[], (3, 3, 0));
    check(json!({}), &[looping(json!({ "mode": "array", "array": [2, 5] }))], &films, (72, 72, 0));
    let given = || looping(json!({ "mode": "array", "array": "{{__g.list}}" }));
    check(json!({ "list": [7] }), &[given()], &films, (71, 71, 0));
    check(json!({ "list": [] }), &[given()], &films, (0, 0, 0));
    check(json!({ "list": ["$node.first.output", 4] }), &[given()], &films, (42, 42, 1));
    check(json!({ "list": "$node.first.output" }), &[given()], &films, (1, 1, 2));
}

#[test]
fn branches_have_their_items_their_params_and_their_names() {
    let items = json!({ "start": "f", "nodes": { "f": { "kind": "foreach", "prep": { "input_key": "$params.list" },
        "service": "film", "cost": { "estimate": "$input.n" } } } });
    let list = json!({ "list": [{ "n": 1 }, { "n": 20 }] });
    check(list, &[("leaf", items.clone())], &[], (21, 21, 0));
    check(json!({}), &[("leaf", items)], &[], (0, 0, 1));
    let named =
        json!({ "start": "p", "nodes": { "p": { "kind": "parallel", "params": { "services": ["free"] } } } });
    check(json!({ "services": ["film", "free"] }), &[("leaf", named.clone())], &[("film", 10)], (10, 10, 0));
    check(json!({}), &[("leaf", named.clone())], &[("free", 5)], (5, 5, 0));
    check(json!({ "services": "$node.first.output" }), &[("leaf", named)], &[("film", 10)], (0, 0, 1));
    let inner = json!({ "start": "a", "nodes": {
        "a": { "service": "film", "params": { "seconds": 4 } }, "b": { "service": "x", "cost": { "estimate": "$shared.n" } }
    }, "edges": [{ "from": "a", "to": "b" }] });
    let sub = json!({ "start": "s", "nodes": { "s": { "kind": "subflow", "subflow": inner,
        "prep": { "input_map": { "n": "$params.n" } }, "subflow_execs": [{ "node": "a", "params": { "seconds": 9 } }] } } });
    check(json!({ "n": 3, "seconds": 2 }), &[("leaf", sub)], &[("film", 10)], (93, 93, 0));
}

#[test]
fn items_with_a_branch_of_their_own_cost_what_that_does() {
    let items = |service: &str| {
        let execs = json!([{ "index": 0, "service": "film", "params": { "seconds": 1 } }, { "index": 3, "service": "film" }]);
        json!({ "start": "f", "nodes": { "f": { "kind": "foreach", "prep": { "input_key": "$params.list" },
            "service": service, "foreach_execs": execs } } })
    };
    let prices = [("film", 10), ("cut", 2)];
    let known = |service, n: usize| (json!({ "list": vec![1; n], "seconds": 1 }), ("leaf", items(service)));
    for (service, n, cost) in
        [("free", 2, 10), ("free", 4, 20), ("cut", 4, 24), ("cut", 200, 416), ("cut", 0, 0)]
    {
        let (params, flow) = known(service, n);
        check(params, &[flow], &prices, (cost, cost, 0));
    }
    // How many there are is not known: the two may be among them.
    let params = || json!({ "list": "$node.first.output", "seconds": 1 });
    check(params(), &[("leaf", items("free"))], &prices, (0, 20, 0));
    check(params(), &[("leaf", items("cut"))], &prices, (2, 22, 1));
}

#[test]
fn flows_that_call_flows_are_followed_to_the_depth_that_runs_are() {
    let calls = |id: &str, edges: Value| {
        let child = json!({ "id": id, "type": "flow_ref", "config": { "flow": "leaf", "params": { "n": "$params.n" } } });
        leaf(json!([{ "id": "a", "type": "x", "cost": 5 }, child]), edges)
    };
    // Thirty-two flows may call one another: the next is refused before it costs anything.
    let always = calls("again", json!([{ "source": "a", "target": "again" }]));
    check(json!({}), std::slice::from_ref(&always), &[], (160, 160, 0));
    let maybe =
        calls("again", json!([{ "source": "a", "target": "again", "condition": "$node.a.output > 1" }]));
    check(json!({}), &[maybe], &[], (5, 160, 0));
    let told = retried(&calling("leaf", json!({})), json!({}), 30, &shelf(&[always], &[])).cost;
    assert_eq!((told.estimated, told.n_unknown), (10, 0));
    // Twice as many at every depth are as quickly told, if they are the same.
    let twice = leaf(
        json!([{ "id": "a", "type": "x", "cost": 1 }, { "id": "b", "type": "flow_ref", "config": { "flow": "leaf" } },
            { "id": "c", "type": "flow_ref", "config": { "flow": "leaf" } }]),
        json!([]),
    );
    check(json!({}), &[twice], &[], (4_294_967_295, 4_294_967_295, 0));
}

#[test]
fn what_is_too_much_to_look_at_is_not_guessed() {
    let more = json!([{ "id": "a", "type": "film", "config": { "seconds": "$params.n" } },
        { "id": "b", "type": "flow_ref", "config": { "flow": "leaf", "params": { "n": 1 } } },
        { "id": "c", "type": "flow_ref", "config": { "flow": "leaf", "params": { "n": 2 } } }]);
    let shelf = shelf(&[leaf(more, json!([]))], &[("film", 1)]);
    let told = retried(&calling("leaf", json!({ "n": 1 })), json!({}), 0, &shelf).cost;
    assert!(told.n_unknown > 0 && told.estimated > 0, "{told:?}");
    // A nest of subflows, whose innermost calls the flow again: no stack is deep enough for all of them.
    let mut nest = json!({ "start": "c", "nodes": { "c": { "kind": "flow_ref", "flow": "leaf" } } });
    for _ in 0..25 {
        nest = json!({ "start": "s", "nodes": { "s": { "kind": "subflow", "subflow": nest } } });
    }
    check(json!({}), &[("leaf", nest)], &[], (0, 0, 1));
}

#[test]
fn a_child_that_was_made_costs_what_it_did() {
    let definition = calling("leaf", json!({ "n": 1 }));
    let (plan, mut run) = failed(&definition, json!({}), 0);
    let given = Given::at(Timestamp(2));
    run.submit(&plan, &Input::Retry, &given).unwrap();
    let done = |node: &str, fence| Input::CallEnded {
        node: NodePath::from(node),
        fence,
        outcome: Outcome::Done(Arc::new(json!(1))),
        worker: None,
    };
    run.submit(&plan, &done("first", 2), &given).unwrap();
    run.submit(&plan, &done("c", 3), &given).unwrap();
    let mut shelf = shelf(&[leaf(json!([{ "id": "a", "type": "x", "cost": 3 }]), json!([]))], &[]);
    let rerun = Input::Rerun { from: NodePath::from("c"), shared: None };
    let told = |shelf: &Shelf| run.preview(&plan, &rerun, &given, shelf).unwrap();
    let child = RunId::of_call(run.id, 3);
    assert_eq!(told(&shelf).questions.children, [child]);
    assert_eq!(told(&shelf).cost.estimated, 3, "it is no longer there");
    shelf.costs.insert(child, 8);
    assert_eq!((told(&shelf).cost.estimated, told(&shelf).cost.n_unknown), (8, 0));
}

#[test]
fn who_pays_nothing_asks_nothing() {
    let (plan, mut run) = failed(&calling("leaf", json!({})), json!({}), 0);
    run.start = Arc::new(Start { account: None, ..(*run.start).clone() });
    let told = run.preview(&plan, &Input::Retry, &Given::at(Timestamp(2)), &Shelf::default()).unwrap();
    assert!(told.questions.is_empty() && told.cost == Expense::default(), "{told:?}");
}
