use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::limits;

/// Compiles on a thread with the stack that threads have by default.
fn compiled(value: Value) -> Vec<String> {
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || {
            let problems = compile_value(value.clone(), Strictness::Strict).problems;
            problems.iter().map(ToString::to_string).collect()
        })
        .unwrap()
        .join()
        .unwrap()
}

#[test]
fn too_many_nodes_are_refused_once() {
    let nodes: Vec<Value> = (0..100_000).map(|i| json!({"id": i.to_string(), "type": "x"})).collect();
    let found = compiled(json!({"nodes": nodes, "edges": []}));
    assert_eq!(found.len(), 1, "{found:?}");
    has(&found, &["$.nodes: error: more than 10000 nodes"]);
    let map: Map<String, Value> = (0..20_000).map(|i| (i.to_string(), json!({"service": "s"}))).collect();
    has(&compiled(json!({"start": "1", "nodes": map})), &["more than 10000 nodes"]);
    let steps: Vec<Value> = (0..20_000).map(|i| json!({"id": i.to_string(), "operator": "x"})).collect();
    has(&compiled(json!({"steps": steps})), &["more than 10000 nodes"]);
}

#[test]
fn too_many_edges_are_refused() {
    let edges: Vec<Value> = (0..60_000).map(|_| json!({"source": "a", "target": "b"})).collect();
    let found = compiled(json!({"nodes": [{"id": "a", "type": "x"}], "edges": edges}));
    has(&found, &["$.edges: error: more than 50000 edges"]);
}

#[test]
fn branches_after_branches_do_not_multiply_without_end() {
    let wide = |id: &str| {
        let branches: Vec<Value> =
            (0..400).map(|b| json!({"steps": [{"id": format!("{id}.{b}"), "operator": "w"}]})).collect();
        json!({"id": id, "operator": "@control/flow/parallel", "branches": branches})
    };
    let steps: Vec<Value> = (0..20).map(|i| wide(&format!("p{i}"))).collect();
    let found = compiled(json!({"steps": steps}));
    assert!(!found.is_empty() && found.len() < 5, "{found:?}");
    // Parallels with empty branches only pass the earlier dependencies on.
    let idle =
        |id: &str| json!({"id": id, "operator": "@control/flow/parallel", "branches": [{"steps": []}]});
    let branches: Vec<Value> = (0..3_000).map(|i| json!({"steps": [idle(&format!("e{i}"))]})).collect();
    let all = json!({"id": "all", "operator": "@control/flow/parallel", "branches": branches});
    let found = compiled(json!({"steps": [wide("p"), all, {"id": "z", "operator": "w"}]}));
    has(&found, &["too many"]);
}

#[test]
fn deep_nesting_is_refused() {
    let mut value = json!({"start": "a", "nodes": {"a": {"service": "s"}}});
    for _ in 0..60 {
        value = json!({"start": "a", "nodes": {"a": {"kind": "subflow", "subflow": value}}});
    }
    has(&compiled(value), &["nested deeper than"]);
    let mut ok = json!({"start": "a", "nodes": {"a": {"service": "s"}}});
    for _ in 1..limits::DEPTH {
        ok = json!({"start": "a", "nodes": {"a": {"kind": "subflow", "subflow": ok}}});
    }
    assert_eq!(compiled(ok.clone()), [""; 0]);
    let one_more = json!({"start": "a", "nodes": {"a": {"kind": "subflow", "subflow": ok}}});
    has(&compiled(one_more), &["scopes are nested deeper than 32 levels"]);
    let mut steps = json!([{"id": "x", "operator": "w"}]);
    for i in 0..limits::NESTED_BRANCHES {
        let branches = json!([{"steps": steps}]);
        steps = json!([{"id": format!("p{i}"), "operator": "@control/flow/parallel", "branches": branches}]);
    }
    assert_eq!(compiled(json!({"steps": steps})), [""; 0]);
    assert!(compile(&"{\"a\":".repeat(10_000), Strictness::Strict).plan.is_none());
}

#[test]
fn long_and_strange_names_are_refused_or_kept() {
    let long = "x".repeat(1 << 20);
    let mut nodes = Map::new();
    nodes.insert(long.clone(), json!({"service": "s"}));
    let found = compiled(json!({"start": long, "nodes": nodes}));
    has(&found, &["longer than 255 bytes"]);
    assert!(found.iter().all(|problem| problem.len() < 1_000));
    let strange = json!({"start": "节点 \u{202e}\"]", "nodes": {"节点 \u{202e}\"]": {"service": "é"}}});
    assert_eq!(compiled(strange), [""; 0]);
    let control = json!({"start": "a\u{0}b", "nodes": {"a\u{0}b": {"service": "s"}}});
    has(&compiled(control), &["has control characters"]);
    has(
        &compiled(json!({"start": "a", "nodes": {"a": {"service": "s".repeat(300)}}})),
        &["$.nodes.a.service"],
    );
}

#[test]
fn problems_and_suggestions_are_bounded() {
    let nodes: Map<String, Value> =
        (0..9_000).map(|i| (format!("node{i}"), json!({"service": "s"}))).collect();
    let edges: Vec<Value> =
        (0..40_000).map(|i| json!({"from": format!("nodx{i}"), "to": format!("nody{i}")})).collect();
    let found = compiled(json!({"start": "node1", "nodes": nodes, "edges": edges}));
    assert_eq!(found.len(), limits::PROBLEMS);
}

#[test]
fn params_are_not_copied_without_end() {
    let services: Vec<String> = (0..50_000).map(|i| i.to_string()).collect();
    let node =
        json!({"kind": "parallel", "parallel_services": services, "params": {"big": "x".repeat(1 << 20)}});
    has(&compiled(json!({"start": "a", "nodes": {"a": node}})), &["too large to be given to every branch"]);
}

#[test]
fn long_cycles_and_chains_need_no_deep_stack() {
    let n = limits::NODES;
    let nodes: Vec<Value> = (0..n)
        .map(|i| json!({"id": format!("n{i}"), "type": "variable_set", "config": {"variables": {"x": i}}}))
        .collect();
    let edge = |i: usize| json!({"source": format!("n{i}"), "target": format!("n{}", (i + 1) % n)});
    let mut edges: Vec<Value> = (0..n - 1).map(edge).collect();
    assert_eq!(compiled(json!({"nodes": nodes, "edges": edges})), [""; 0]);
    edges.push(edge(n - 1));
    has(&compiled(json!({"nodes": nodes, "edges": edges})), &["cycle: n0 → n1", "(9960 more) → n0"]);
}

/// Keys and words that lead far into the readers.
const WORDS: &[&str] = &[
    "start",
    "nodes",
    "edges",
    "steps",
    "id",
    "type",
    "kind",
    "service",
    "operator",
    "branches",
    "parameters",
    "config",
    "subflow",
    "executor",
    "parallel",
    "foreach",
    "choice",
    "timer",
    "condition",
    "variable_set",
    "a",
    "b",
    "from",
    "to",
    "source",
    "target",
    "dependOn",
    "settings",
    "retry",
    "conditions",
    "@control/flow/parallel",
    "@control/flow/branches",
    "@control/flow/loop",
    "@internal/assign",
    "$node.a.output",
    "{{__a.b}}",
    "{{",
    "$",
    "prep",
    "post",
    "input_map",
    "output_map",
    "params",
    "services",
    "parallel_execs",
    "foreach_execs",
    "script",
    "choice_cases",
    "expr",
    "eq",
    "variables",
    "outputs",
    "form",
    "graph",
    "dag",
    "delaySeconds",
    "true",
    "",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![9 => prop::sample::select(WORDS).prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(word(), inner, 0..8).prop_map(Value::from_iter),
        ]
    })
}

/// A definition that has the shape of one of the forms, with anything inside.
fn shaped() -> impl Strategy<Value = Value> {
    let node = prop::collection::btree_map(word(), any_json(), 0..6);
    let kinds = prop::sample::select(WORDS);
    (prop::collection::vec((node, kinds), 1..5), prop::collection::vec(any_json(), 0..4), 0..3_u8).prop_map(
        |(nodes, edges, form)| {
            let mut list: Vec<Value> = Vec::new();
            for (i, (mut node, kind)) in nodes.into_iter().enumerate() {
                let name = ["kind", "type", "operator"][usize::from(form)];
                node.insert(name.to_owned(), json!(kind));
                node.entry("id".to_owned()).or_insert_with(|| json!(["a", "b", "c", "d", "e"][i]));
                list.push(Value::from_iter(node));
            }
            match form {
                0 => {
                    let map = Value::from_iter(list.into_iter().enumerate().map(|(i, n)| (i.to_string(), n)));
                    json!({"start": "0", "nodes": map, "edges": edges})
                }
                1 => json!({"nodes": list, "edges": edges}),
                _ => json!({"steps": list}),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn anything_compiles_or_is_refused(value in prop_oneof![any_json(), shaped()]) {
        for strictness in [Strictness::Strict, Strictness::Lenient] {
            let compiled = compile_value(value.clone(), strictness);
            let errors = compiled.problems.iter().filter(|p| p.severity == Severity::Error).count();
            prop_assert_eq!(compiled.plan.is_none(), errors > 0, "{:?}", compiled.problems);
        }
        expand(&value, Strictness::Strict);
    }

    #[test]
    fn any_text_compiles_or_is_refused(text in "[\\[\\]{}:,\"&*a \\n\\-|>!#0-9]{0,60}") {
        compile(&text, Strictness::Strict);
    }
}
