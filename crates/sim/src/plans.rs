//! Random definitions of all three forms: small, valid, and always able to end.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_engine::definition::{Strictness, compile_value};
use windlass_engine::plan::Plan;

use crate::rng::SimRng;

/// The nesting depth of containers in generated plans.
const DEPTH: usize = 3;

/// A definition of a random form.
pub fn definition(rng: &mut SimRng) -> Value {
    match rng.below(3) {
        0 => graph(rng, 0),
        1 => dag(rng),
        _ => steps(rng),
    }
}

/// A flow in the graph form that other flows may call; it calls none itself.
pub fn leaf(rng: &mut SimRng) -> Value {
    graph(rng, DEPTH)
}

/// The plan of a generated definition.
pub fn compiled(definition: &Value) -> Arc<Plan> {
    let compiled = compile_value(definition.clone(), Strictness::Strict);
    compiled.plan.unwrap_or_else(|| panic!("generated plans compile: {:?}\n{definition}", compiled.problems))
}

fn graph(rng: &mut SimRng, depth: usize) -> Value {
    let n = rng.between(1, 4);
    let mut nodes = Map::new();
    let mut edges = Vec::new();
    for at in 0..n {
        let key = format!("n{at}");
        let next = if at + 1 < n { format!("n{}", at + 1) } else { String::new() };
        nodes.insert(key.clone(), node(rng, depth, at));
        edges.push(json!({"from": key, "action": "default", "to": next}));
        if rng.percent(20) {
            edges.push(json!({"from": key, "action": "error", "to": ""}));
        }
        if rng.percent(10) && at + 2 < n {
            edges.push(json!({"from": key, "action": "skip", "to": format!("n{}", at + 2)}));
        }
    }
    json!({"start": "n0", "nodes": nodes, "edges": edges})
}

fn node(rng: &mut SimRng, depth: usize, at: u64) -> Value {
    let container = depth < DEPTH && rng.percent(35);
    let mut node = match (container, rng.below(10)) {
        (true, 0..=3) => fan(rng, depth, "foreach"),
        (true, 4..=6) => fan(rng, depth, "parallel"),
        (true, _) => subflow(rng, depth),
        (false, 0) => json!({"kind": "timer", "params": {"delay_ms": rng.between(0, 5_000)}}),
        (false, 1) => wait(rng, at),
        (false, 2) => approval(rng, at),
        (false, 3) => choice(rng),
        (false, 4) if depth == 0 => json!({"kind": "flow_ref", "flow": "leaf"}),
        (false, _) => call(rng),
    };
    if container && rng.percent(15) {
        node["timeout_ms"] = json!(rng.between(1_000, 40_000));
    }
    if rng.percent(60) {
        node["post"] = json!({"output_key": format!("k{}", rng.below(4))});
    }
    node
}

fn call(rng: &mut SimRng) -> Value {
    let mut call = exec(rng);
    if rng.percent(50) {
        call["max_retries"] = json!(rng.between(1, 3));
        call["wait_ms"] = json!(rng.between(0, 2_000));
    }
    if rng.percent(20) {
        call["max_attempts"] = json!(rng.between(1, 3));
        call["attempt_delay_ms"] = json!(rng.between(0, 500));
    }
    if rng.percent(30) {
        call["timeout_ms"] = json!(rng.between(500, 20_000));
    }
    if rng.percent(5) {
        call["at_most_once"] = json!(true);
    }
    if rng.percent(25) {
        call["cost"] = json!({"estimate": rng.between(0, 30)});
    }
    call
}

fn exec(rng: &mut SimRng) -> Value {
    let service = format!("s{}", rng.below(4));
    match rng.below(5) {
        0 => json!({"exec_type": "local_func", "func": "echo", "service": service}),
        1 | 2 => json!({"exec_type": "queue", "service": service}),
        _ => json!({"exec_type": "http", "service": service}),
    }
}

fn strategy(rng: &mut SimRng) -> &'static str {
    ["fail_fast", "collect_errors", "ignore_errors", "continue", ""][rng.index(5)]
}

fn fan(rng: &mut SimRng, depth: usize, kind: &str) -> Value {
    let mode = if rng.percent(70) { "concurrent" } else { "sequential" };
    let mut fan = json!({
        "kind": kind, "parallel_mode": mode, "max_parallel": rng.below(4), "failure_strategy": strategy(rng),
    });
    if kind == "parallel" {
        let execs: Vec<Value> = (0..rng.between(1, 4)).map(|_| exec(rng)).collect();
        fan["parallel_execs"] = json!(execs);
    } else {
        fan["prep"] = json!({"input_key": "$params.items"});
        if rng.percent(30) {
            fan["subflow"] = graph(rng, depth + 1);
        } else {
            let exec = exec(rng);
            for (key, value) in exec.as_object().into_iter().flatten() {
                fan[key] = value.clone();
            }
        }
    }
    if rng.percent(25) && fan.get("subflow").is_none() {
        fan["cost"] = json!({"estimate": rng.between(0, 10)});
    }
    if rng.percent(40) && fan.get("subflow").is_none() {
        fan["max_retries"] = json!(rng.between(1, 2));
        fan["wait_ms"] = json!(rng.between(0, 500));
    }
    fan
}

fn subflow(rng: &mut SimRng, depth: usize) -> Value {
    let mut sub = json!({"kind": "subflow", "subflow": graph(rng, depth + 1)});
    match rng.below(4) {
        0 => sub["failure_strategy"] = json!("continue"),
        1 => {
            sub["failure_strategy"] = json!("retry");
            sub["max_retries"] = json!(1);
            sub["wait_ms"] = json!(rng.between(0, 1_000));
        }
        _ => {}
    }
    sub
}

fn wait(rng: &mut SimRng, at: u64) -> Value {
    let mut params = json!({"signal_key": format!("$shared.go{}", at % 2)});
    if rng.percent(40) {
        params["timeout_ms"] = json!(rng.between(1_000, 30_000));
    }
    json!({"kind": "wait_event", "params": params})
}

fn approval(rng: &mut SimRng, at: u64) -> Value {
    let mut params = json!({"approval_key": format!("$shared.ok{}", at % 2)});
    if rng.percent(30) {
        params["timeout_ms"] = json!(rng.between(1_000, 30_000));
    }
    json!({"kind": "approval", "params": params})
}

fn choice(rng: &mut SimRng) -> Value {
    let limit = rng.below(4);
    json!({
        "kind": "choice", "default_action": "default",
        "choice_cases": [{"action": "skip", "expr": {"gt": ["$params.n", limit]}}],
    })
}

fn dag(rng: &mut SimRng) -> Value {
    let n = rng.between(2, 7);
    let mut nodes = vec![json!({"id": "start", "type": "start"})];
    let mut edges = Vec::new();
    for at in 0..n {
        let id = format!("d{at}");
        nodes.push(dag_node(rng, &id));
        let mut from: Vec<String> = (0..at).filter(|_| rng.percent(40)).map(|k| format!("d{k}")).collect();
        if from.is_empty() {
            from.push("start".to_owned());
        }
        for source in from {
            let mut edge = json!({"source": source, "target": id});
            if rng.percent(20) {
                edge["condition"] = json!(format!("$var.n > {}", rng.below(4)));
            }
            edges.push(edge);
        }
    }
    let on_failure = if rng.percent(30) { "continue" } else { "stop" };
    json!({"nodes": nodes, "edges": edges, "on_failure": on_failure})
}

fn dag_node(rng: &mut SimRng, id: &str) -> Value {
    let mut node = match rng.below(8) {
        0 => json!({"id": id, "type": "delay", "config": {"delaySeconds": rng.below(5)}}),
        1 => {
            json!({"id": id, "type": "variable_set", "config": {"variables": [{"name": "v", "value": "$var.n"}]}})
        }
        2 => json!({"id": id, "type": "condition", "config": {"expression": "$var.n > 1"}}),
        3 => json!({"id": id, "type": "subflow", "config": {"subflow": graph(rng, 2)}}),
        _ => json!({"id": id, "type": format!("s{}", rng.below(4)), "config": {"n": "$var.n"}}),
    };
    let is_call = node["type"].as_str().is_some_and(|kind| kind.starts_with('s') && kind.len() == 2);
    if is_call && rng.percent(40) {
        node["exec_type"] = json!("http");
        node["timeout_ms"] = json!(rng.between(500, 20_000));
    }
    if is_call && rng.percent(40) {
        node["retry"] = json!({"max": rng.between(1, 3), "delay_ms": rng.between(0, 1_000)});
    }
    if is_call && rng.percent(30) {
        node["cost"] = json!({"estimate": rng.between(0, 30)});
    }
    node
}

fn steps(rng: &mut SimRng) -> Value {
    let mut ids = 0;
    let mut list = vec![json!({"id": "t", "operator": "@trigger/manual"})];
    list.extend(step_list(rng, &mut ids, 0));
    json!({"title": "simulated", "steps": list})
}

fn step_list(rng: &mut SimRng, ids: &mut u32, depth: usize) -> Vec<Value> {
    (0..rng.between(1, 3)).map(|_| step(rng, ids, depth)).collect()
}

fn step(rng: &mut SimRng, ids: &mut u32, depth: usize) -> Value {
    *ids += 1;
    let id = format!("p{ids}");
    if depth < DEPTH && rng.percent(35) {
        return match rng.below(3) {
            0 => {
                let branch =
                    |rng: &mut SimRng, ids: &mut u32| json!({"steps": step_list(rng, ids, depth + 1)});
                let branches: Vec<Value> = (0..rng.between(1, 3)).map(|_| branch(rng, ids)).collect();
                json!({"id": id, "operator": "@control/flow/parallel", "branches": branches})
            }
            1 => {
                let limit = rng.below(4).to_string();
                let test = json!({
                    "operator": "@internal/cmp/number-gt", "parameters": {"a": "{{__t.n}}", "b": limit},
                });
                let branches = json!([
                    {"conditions": [[test]], "steps": step_list(rng, ids, depth + 1)},
                    {"conditions": [], "steps": step_list(rng, ids, depth + 1)},
                ]);
                json!({"id": id, "operator": "@control/flow/branches", "branches": branches})
            }
            _ => json!({
                "id": id, "operator": "@control/flow/loop",
                "parameters": {"mode": "limit", "limit": rng.below(4), "outputs": []},
                "steps": step_list(rng, ids, depth + 1),
            }),
        };
    }
    plain_step(rng, &id)
}

fn plain_step(rng: &mut SimRng, id: &str) -> Value {
    let mut step = json!({
        "id": id, "operator": format!("s{}", rng.below(4)), "parameters": {"n": "{{__t.n}}"},
    });
    let mut settings = Map::new();
    if rng.percent(30) {
        settings.insert("retry".to_owned(), json!({"max": rng.between(1, 3), "delay": rng.between(1, 3)}));
    }
    if rng.percent(30) {
        settings.insert("timeout".to_owned(), json!({"delay": rng.between(1, 60)}));
    }
    if rng.percent(20) {
        settings.insert("cost".to_owned(), json!({"estimate": rng.between(0, 20)}));
    }
    if !settings.is_empty() {
        step["settings"] = Value::Object(settings);
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_engine::definition::{Strictness, compile_value};
    use windlass_engine::problem::Severity;

    #[test]
    fn every_generated_definition_compiles() {
        for seed in 0..2_000 {
            let definition = definition(&mut SimRng::new(seed));
            let compiled = compile_value(definition.clone(), Strictness::Strict);
            let errors: Vec<_> =
                compiled.problems.iter().filter(|problem| problem.severity == Severity::Error).collect();
            assert!(errors.is_empty(), "seed {seed}: {errors:?}\n{definition}");
        }
    }
}
