//! Definitions in, plans and problems out.

mod dag;
mod graph;
mod hostile;
mod order;
mod steps;

use serde_json::Value;

use super::*;
use crate::plan::{Node, NodeKind};
use crate::problem::Severity;

fn plan(value: &Value) -> Arc<Plan> {
    let compiled = compile_value(value.clone(), Strictness::Strict);
    let problems: Vec<String> = compiled.problems.iter().map(ToString::to_string).collect();
    compiled.plan.unwrap_or_else(|| panic!("not compiled: {problems:#?}"))
}

fn problems(value: &Value) -> Vec<String> {
    compile_value(value.clone(), Strictness::Strict).problems.iter().map(ToString::to_string).collect()
}

fn errors(value: &Value) -> Vec<String> {
    let compiled = compile_value(value.clone(), Strictness::Strict);
    let errors = compiled.problems.iter().filter(|p| p.severity == Severity::Error);
    let errors: Vec<String> = errors.map(ToString::to_string).collect();
    assert_eq!(compiled.plan.is_none(), !errors.is_empty(), "{errors:?}");
    errors
}

/// Asserts that a problem contains all of `parts`.
#[track_caller]
fn has(problems: &[String], parts: &[&str]) {
    let found = problems.iter().any(|problem| parts.iter().all(|part| problem.contains(part)));
    assert!(found, "no problem with {parts:?} in {problems:#?}");
}

fn node<'p>(plan: &'p Plan, key: &str) -> &'p Node {
    plan.root.node(key).unwrap_or_else(|| panic!("no node {key}")).1
}

fn targets(scope: &Scope, key: &str) -> Vec<String> {
    let (_, node) = scope.node(key).unwrap();
    node.out.iter().filter_map(|edge| edge.to).map(|to| scope.nodes[to].key.clone()).collect()
}

fn call<'p>(plan: &'p Plan, key: &str) -> &'p crate::plan::Call {
    match &node(plan, key).kind {
        NodeKind::Call(call) => call,
        other => panic!("{key} is {other:?}"),
    }
}

#[test]
fn the_form_is_told_from_the_shape_or_named() {
    use serde_json::json;
    let graph = json!({"start": "a", "nodes": {"a": {"service": "s"}}});
    let dag = json!({"nodes": [{"id": "a", "type": "start"}], "edges": []});
    let steps = json!({"steps": [{"id": "a", "operator": "x"}]});
    for (value, form) in [(&graph, Form::Graph), (&dag, Form::Dag), (&steps, Form::Steps)] {
        assert_eq!(plan(value).form, form);
        let mut named = value.clone();
        named["form"] = serde_json::to_value(form).unwrap();
        assert_eq!(plan(&named).form, form);
    }
    has(&errors(&json!({"start": "a"})), &["$: error", "neither `nodes` nor `steps`"]);
    has(&errors(&json!({"form": "grph", "nodes": {}})), &["$.form", "did you mean `graph`?"]);
    has(&errors(&json!([1])), &["$: error: must be an object, not an array"]);
    has(&errors(&json!({"form": "dag", "nodes": {}})), &["$.nodes", "must be an array"]);
}

#[test]
fn a_wrapped_definition_is_refused_or_warned_of() {
    let value = serde_json::json!({"start": "a", "nodes": {"a": {"service": "s"}}, "egdes": [], "owner": 1});
    let strict = errors(&value);
    has(&strict, &["$.egdes: error: unknown field", "did you mean `edges`?"]);
    has(&strict, &["$.owner: error"]);
    let lenient = compile_value(value.clone(), Strictness::Lenient);
    assert!(lenient.plan.is_some());
    assert_eq!(lenient.problems.len(), 2);
    assert_eq!(lenient.definition, value);
}

#[test]
fn yaml_and_json_make_the_same_plan() {
    let yaml = "
start: fetch
nodes:
  fetch:
    service: download
    post: {output_key: page}
  keep:
    kind: executor
    exec_type: queue
    service: save
    prep: {input_key: $shared.page}
edges:
  - {from: fetch, to: keep}
";
    let from_yaml = compile(yaml, Strictness::Strict);
    assert_eq!(from_yaml.problems, []);
    let json = serde_json::to_string(&from_yaml.definition).unwrap();
    let from_json = compile(&json, Strictness::Strict);
    assert_eq!(format!("{:?}", from_yaml.plan.unwrap()), format!("{:?}", from_json.plan.unwrap()));
}
