//! Order of reads: a node cannot read a node that cannot have run.

use serde_json::json;

use super::*;

#[test]
fn references_inside_a_node_must_name_earlier_nodes() {
    let sub = |what: &str| {
        json!({"nodes": [
            {"id": "a", "type": "x"},
            {"id": "sub", "type": "subflow", "config": {"subflow": {
                "nodes": [{"id": "in", "type": "x", "config": {"v": what}}, {"id": "z", "type": "x"}],
                "edges": [{"source": "z", "target": "in", "condition": format!("{what} == 1")}]}}},
            {"id": "after", "type": "x"}, {"id": "beside", "type": "x"}, {"id": "z", "type": "x"}
        ], "edges": [{"source": "a", "target": "sub"}, {"source": "sub", "target": "after"},
            {"source": "after", "target": "z"}]})
    };
    let at = "$.nodes[1].config.subflow.nodes[0]: error: ";
    let found = problems(&sub("$node.after.output.v"));
    has(&found, &[at, "`after` cannot have run before this node: it comes after `sub`", "turn the edges"]);
    has(&found, &["$.nodes[1].config.subflow.edges[0].condition: error: `after` cannot have run"]);
    has(&problems(&sub("$node.beside.output")), &[at, "`beside` need not have run", "let `sub` depend on"]);
    has(&problems(&sub("$node.beside.status")), &["warning: `beside` need not have run"]);
    has(&problems(&sub("$node.sub.output")), &[at, "`sub` has no result yet: this node is inside it"]);
    // The nearest name wins, an earlier node exists, and every node may read its own status.
    for fine in ["$node.z.output", "$node.a.output", "$node.sub.status"] {
        assert_eq!(errors(&sub(fine)), [""; 0], "{fine}");
    }
    assert!(compile_value(sub("$node.after.output"), Strictness::Lenient).plan.is_some());
}

#[test]
fn results_are_read_only_of_nodes_that_may_have_run() {
    let read = |who: &str, what: &str| {
        let call = |key: &str| match key == who {
            true => json!({"service": "s", "prep": {"input_map": {"v": what}}}),
            false => json!({"service": "s"}),
        };
        json!({"start": "a", "nodes": {"a": call("a"), "b": call("b"), "c": call("c"), "d": call("d"),
            "each": {"kind": "foreach", "prep": {"input_key": "$shared.list"}, "subflow": {"start": "in",
                "nodes": {"in": {"service": "s", "prep": {"input_map": {"v": if who == "in" { what } else { "" }}}}}}}},
            "edges": [{"from": "a", "to": "b"}, {"from": "b", "action": "again", "to": "a"}, {"from": "b", "to": "c"},
                {"from": "b", "action": "each", "to": "each"}, {"from": "each", "to": "d"}]})
    };
    has(&errors(&read("a", "$node.c.output")), &["$.nodes.a: error: `c` cannot have run before this node"]);
    has(&errors(&read("c", "$node.c.output")), &["$.nodes.c: error: a node cannot read its own result"]);
    let inside = "$.nodes.each.subflow.nodes.in: error: ";
    has(&errors(&read("in", "$node.d.output")), &[inside, "`d` cannot have run before"]);
    has(&errors(&read("in", "$node.c.output")), &[inside, "`c` cannot have run before"]);
    has(&errors(&read("in", "$node.each.output")), &[inside, "`each` has no result yet"]);
    // Round a cycle everything has run before, the node itself included.
    for (who, what) in [("a", "b"), ("a", "a"), ("in", "b"), ("in", "a"), ("d", "each"), ("d", "a")] {
        assert_eq!(errors(&read(who, &format!("$node.{what}.output"))), [""; 0], "{who} {what}");
    }
}

#[test]
fn a_body_reads_only_what_comes_before_its_loop_and_the_loop_itself() {
    let read = |who: &str, what: &str| {
        let v = |id: &str| if id == who { json!({"v": format!("{{{{{what}}}}}")}) } else { json!({}) };
        let outputs = if who == "outputs" {
            json!([{"key": "k", "value": format!("{{{{{what}}}}}")}])
        } else {
            json!([])
        };
        json!({"steps": [
            {"id": "a", "operator": "x"},
            {"id": "l", "operator": "@control/flow/loop", "parameters": {"limit": 2, "outputs": outputs}, "steps": [
                {"id": "b", "operator": "x", "parameters": v("b")},
                {"id": "m", "operator": "@control/flow/loop", "parameters": {"limit": 2}, "steps": [
                    {"id": "c", "operator": "x", "parameters": v("c")}]},
                {"id": "e", "operator": "x"}]},
            {"id": "p", "operator": "@control/flow/parallel", "branches": [
                {"steps": [{"id": "f", "operator": "x"}]},
                {"steps": [{"id": "n", "operator": "@control/flow/loop", "parameters": {"limit": 2}, "steps": [
                    {"id": "g", "operator": "x", "parameters": v("g")}]}]}]},
            {"id": "z", "operator": "x"}
        ]})
    };
    has(
        &errors(&read("b", "__z.v")),
        &["$.steps[1].steps[0]: error: `z` cannot have run", "it comes after `l`"],
    );
    has(
        &errors(&read("b", "__e.v")),
        &["$.steps[1].steps[0]: error: `e` cannot have run", "it comes after it"],
    );
    has(
        &errors(&read("c", "__z.v")),
        &["$.steps[1].steps[1].steps[0]: error: `z` cannot have run", "after `l`"],
    );
    has(
        &errors(&read("c", "__e.v")),
        &["$.steps[1].steps[1].steps[0]: error: `e` cannot have run", "after `m`"],
    );
    has(&errors(&read("outputs", "__f.v")), &["outputs[0].value: error: `f` cannot have run", "after `l`"]);
    has(&problems(&read("g", "__f.v")), &["warning: `f` need not have run", "let `n` depend on `f`"]);
    for (who, what) in [
        ("b", "__a.v"),
        ("b", "__l.index"),
        ("c", "__l.value"),
        ("c", "__m.outputs"),
        ("c", "__b.v"),
        ("g", "__l.outputs"),
        ("outputs", "__e.v"),
        ("outputs", "__l.index"),
    ] {
        assert_eq!(errors(&read(who, what)), [""; 0], "{who} {what}");
    }
}
