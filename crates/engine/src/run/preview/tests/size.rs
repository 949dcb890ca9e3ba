//! Plans of what is too large to be made: nobody may fill a server's memory by asking.

use super::*;

fn again(id: &str, params: Value) -> Value {
    json!({ "id": id, "type": "flow_ref", "config": { "flow": "leaf", "params": params } })
}

#[test]
fn what_doubles_from_flow_to_flow_is_shared() {
    let given = || json!({ "n": "x".repeat(1_000), "u": "$node.first.output" });
    let film = json!({ "id": "f", "type": "film", "config": { "seconds": "$params.u" } });
    for n in [json!(["$params.n", "$params.n"]), json!({ "a": "$params.n", "b": "$params.n" })] {
        let nodes = json!([film, again("again", json!({ "n": n, "u": "$params.u" }))]);
        check(given(), &[leaf(nodes, json!([]))], &[("film", 10)], (0, 0, 32));
    }
    let text = json!({ "n": "{{__g.n}}{{__g.n}}", "u": "{{__g.u}}" });
    let steps = json!([{ "id": "g", "operator": "@trigger/x" },
        { "id": "f", "operator": "film", "parameters": { "seconds": "{{__g.u}}" } },
        { "id": "c", "operator": "@subflow/call", "parameters": { "flow": "leaf", "params": text } }]);
    check(given(), &[("leaf", json!({ "steps": steps }))], &[("film", 10)], (0, 0, 32));
}

#[test]
fn what_is_nested_deeper_than_a_run_takes_is_not_told() {
    for (n, expected) in [(60, (60, 60, 0)), (70, (0, 0, 1))] {
        let nest = (0..n).fold(json!("$params.known"), |inner, _| json!([inner]));
        let seconds = format!("$params.n{}", "[0]".repeat(n));
        let film = json!([{ "id": "f", "type": "film", "config": { "seconds": seconds } }]);
        check(json!({ "n": nest }), &[leaf(film, json!([]))], &[("film", 10)], expected);
    }
}

#[test]
fn what_has_very_many_params_is_looked_at_for_longer() {
    let given: serde_json::Map<String, Value> = (0..100_000).map(|n| (format!("k{n}"), json!(1))).collect();
    let film =
        |n: usize| json!({ "id": format!("f{n}"), "type": "film", "config": { "seconds": "$params.k1" } });
    let nodes: Vec<Value> = (0..200).map(film).collect();
    let shelf = shelf(&[leaf(json!(nodes), json!([]))], &[("film", 1)]);
    let told = retried(&calling("leaf", Value::Object(given)), json!({}), 0, &shelf).cost;
    assert!(told.estimated > 0 && told.estimated < 200 && told.n_unknown > 0, "{told:?}");
}

/// What a call costs that is rerun with a shared value of three million bytes, which it names so many times.
fn naming(n: usize, is_entered: bool, last: &Value) -> (i64, u64) {
    let first = json!({ "id": "first", "type": "x" });
    let mut last = last.clone();
    last["id"] = json!("last");
    let big = vec![json!("$shared.big"); n];
    match last["type"] == "flow_ref" {
        true => last["config"]["params"]["all"] = json!(big),
        false => last["config"]["all"] = json!(big),
    }
    let definition = json!({ "nodes": [first, last], "edges": [{ "source": "first", "target": "last" }] });
    let (plan, mut run) = failed(&definition, json!({}), 0);
    let given = Given::at(Timestamp(2));
    if is_entered {
        run.submit(&plan, &Input::Retry, &given).unwrap();
        for (node, fence) in [("first", 2), ("last", 3)] {
            let outcome = Outcome::Done(Arc::new(json!(1)));
            let done = Input::CallEnded { node: NodePath::from(node), fence, outcome, worker: None };
            run.submit(&plan, &done, &given).unwrap();
        }
    }
    let Value::Object(shared) = json!({ "big": "x".repeat(3_000_000) }) else { unreachable!() };
    let rerun = Input::Rerun { from: NodePath::from("first"), shared: Some(shared) };
    let flow =
        leaf(json!([{ "id": "a", "type": "film", "config": { "seconds": "$params.seconds" } }]), json!([]));
    let told = run.preview(&plan, &rerun, &given, &shelf(&[flow], &[("film", 1)])).unwrap();
    (told.cost.estimated, told.cost.n_unknown)
}

#[test]
fn what_a_run_would_refuse_for_its_size_is_not_made_for_a_plan() {
    let film =
        json!({ "type": "film", "config": { "seconds": 4 }, "cost": { "estimate": "$params.seconds" } });
    let child = json!({ "type": "flow_ref", "config": { "flow": "leaf", "params": { "seconds": 4 } } });
    for is_entered in [false, true] {
        for last in [&film, &child] {
            assert_eq!(naming(2, is_entered, last), (4, 0));
            assert_eq!(naming(3, is_entered, last), (0, 1), "{is_entered} {last}");
        }
    }
}

#[test]
fn branches_are_looked_at_no_more_often_than_nodes() {
    let execs: Vec<Value> = (0..30_000).map(|_| json!({ "service": "film" })).collect();
    let wide = json!({ "start": "p", "nodes": { "p": { "kind": "parallel", "parallel_execs": execs } } });
    check(json!({ "seconds": 1 }), &[("leaf", wide)], &[("film", 1)], (0, 0, 20_000));
}
