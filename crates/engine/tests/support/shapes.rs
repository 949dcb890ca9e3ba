//! Definitions of a given size, in all three forms, and a driver that plays a run of them to its end.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_engine::counter::Fence;
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::effect::Effect;
use windlass_engine::event::{Event, Start};
use windlass_engine::id::RunId;
use windlass_engine::input::{CallOutcome, Given, Input};
use windlass_engine::path::NodePath;
use windlass_engine::plan::Plan;
use windlass_engine::run::Run;
use windlass_engine::time::Timestamp;

pub fn plan_of(definition: &Value) -> Arc<Plan> {
    let compiled = compile(&definition.to_string(), Strictness::Strict);
    compiled.plan.unwrap_or_else(|| panic!("does not compile: {:#?}", compiled.problems))
}

/// Calls one after the other, each fed by the one before.
pub fn graph_chain(n: usize) -> Value {
    let node = |i: usize| {
        let from = if i == 0 { "$params.x".to_owned() } else { format!("$shared.k{}", i - 1) };
        let node = json!({
            "service": "transform", "prep": {"input_key": from}, "post": {"output_key": format!("k{i}")},
        });
        (format!("n{i}"), node)
    };
    let nodes: Map<String, Value> = (0..n).map(node).collect();
    let edges: Vec<Value> =
        (1..n).map(|i| json!({"from": format!("n{}", i - 1), "to": format!("n{i}")})).collect();
    json!({"start": "n0", "nodes": nodes, "edges": edges})
}

/// `n / width` layers of `width` nodes; a node follows its neighbours of the layer before.
pub fn dag_layers(n: usize, width: usize) -> Value {
    let node = |i: usize| json!({"id": format!("n{i}"), "type": "render", "config": {"seed": i}});
    let edge = |from: usize, to: usize| json!({"source": format!("n{from}"), "target": format!("n{to}")});
    let before = |i: usize| {
        if (i + 1).is_multiple_of(width) { vec![i - width] } else { vec![i - width, i + 1 - width] }
    };
    let edges: Vec<Value> =
        (width..n).flat_map(|i| before(i).into_iter().map(move |from| edge(from, i))).collect();
    json!({"nodes": (0..n).map(node).collect::<Vec<_>>(), "edges": edges})
}

/// One start, `n` nodes side by side, one end.
pub fn dag_wide(n: usize) -> Value {
    let mut nodes = vec![json!({"id": "start", "type": "start"}), json!({"id": "end", "type": "end"})];
    let mut edges = Vec::new();
    for i in 0..n {
        nodes.push(json!({"id": format!("n{i}"), "type": "render"}));
        edges.push(json!({"source": "start", "target": format!("n{i}")}));
        edges.push(json!({"source": format!("n{i}"), "target": "end"}));
    }
    json!({"nodes": nodes, "edges": edges})
}

/// A choice that looks for a word in `params.text`, does not find it and goes back to itself.
pub fn graph_spin() -> Value {
    json!({"start": "c", "edges": [{"from": "c", "to": "c"}], "nodes": {"c": {
        "kind": "choice", "choice_cases": [{"action": "found", "expr": {"contains": ["$params.text", "needle"]}}],
    }}})
}

/// A trigger and `n` steps, each reading the one before.
pub fn steps_chain(n: usize) -> Value {
    let mut steps = vec![json!({"id": "s0", "operator": "@trigger/manual"})];
    for i in 1..=n {
        let from = format!("{{{{__s{}.v}}}}", i - 1);
        steps.push(json!({"id": format!("s{i}"), "operator": "@work/do", "parameters": {"v": from}}));
    }
    json!({"steps": steps})
}

/// A loop of the steps form whose body reads the index and puts one output per turn.
pub fn steps_loop(n: usize) -> Value {
    json!({"steps": [
        {"id": "t", "operator": "@trigger/manual"},
        {"id": "L", "operator": "@control/flow/loop",
         "parameters": {"mode": "limit", "limit": n, "outputs": [{"key": "r", "value": "{{__b.v}}"}]},
         "steps": [{"id": "b", "operator": "@work/do", "parameters": {"i": "{{__L.index}}"}}]},
    ]})
}

/// One call per item of `params.items`, all at once.
pub fn foreach_calls() -> Value {
    json!({"start": "f", "edges": [], "nodes": {"f": {
        "kind": "foreach", "service": "t", "parallel_mode": "concurrent",
        "prep": {"input_key": "$params.items"}, "post": {"output_key": "out"},
    }}})
}

/// The same with parameters of the node's own, which have to be laid over the run's.
pub fn foreach_with_params() -> Value {
    let mut definition = foreach_calls();
    definition["nodes"]["f"]["params"] = json!({"quality": "high"});
    definition
}

/// One flow per item that ends without a call.
pub fn foreach_flows() -> Value {
    json!({"start": "f", "edges": [], "nodes": {"f": {
        "kind": "foreach", "parallel_mode": "concurrent", "prep": {"input_key": "$params.items"},
        "subflow": {"nodes": [{"id": "s", "type": "start"}, {"id": "e", "type": "end"}],
                    "edges": [{"source": "s", "target": "e"}]},
    }}})
}

/// One flow per item that calls a service, writes, and then waits for a signal.
pub fn foreach_waits() -> Value {
    json!({"start": "f", "edges": [], "nodes": {"f": {
        "kind": "foreach", "parallel_mode": "concurrent", "prep": {"input_key": "$params.items"},
        "subflow": {"start": "a", "edges": [{"from": "a", "to": "w"}], "nodes": {
            "a": {"service": "t", "post": {"output_key": "o"}},
            "w": {"kind": "wait_event", "params": {"signal_key": "go"}}}},
    }}})
}

pub fn items(n: usize) -> Map<String, Value> {
    let items: Vec<Value> = (0..n).map(Value::from).collect();
    Map::from_iter([("items".to_owned(), Value::Array(items))])
}

pub fn run_id() -> RunId {
    "run_0190a1b2c3d47000800000000000000a".parse().unwrap()
}

/// A run that is played to its end: every call is done as soon as it is made, in order.
pub struct Play {
    pub run: Run,
    pub journal: Vec<(Timestamp, Event)>,
    orders: VecDeque<(NodePath, Fence)>,
    answer: Arc<Value>,
}

impl Play {
    pub fn start(plan: &Plan, params: Map<String, Value>) -> Play {
        let mut play = Play {
            run: Run::new(run_id()),
            journal: Vec::new(),
            orders: VecDeque::new(),
            answer: Arc::new(json!({"v": 1})),
        };
        play.feed(plan, &Input::Start(Box::new(Start { params: params.into(), ..Start::default() })));
        play
    }

    pub fn feed(&mut self, plan: &Plan, input: &Input) {
        let now = Timestamp(1_700_000_000_000);
        let step = self.run.submit(plan, input, &Given::at(now)).unwrap();
        self.journal.extend(step.events.into_iter().map(|event| (now, event)));
        for effect in step.effects {
            if let Effect::Call(spec) = effect {
                self.orders.push_back((spec.node.clone(), spec.fence));
            }
        }
    }

    /// Answers every call that was made and those that follow.
    pub fn answer_all(&mut self, plan: &Plan) {
        while let Some((node, fence)) = self.orders.pop_front() {
            let outcome = CallOutcome::Done(self.answer.clone());
            self.feed(plan, &Input::CallEnded { node, fence, outcome, worker: None });
        }
    }

    pub fn to_end(plan: &Plan, params: Map<String, Value>) -> Play {
        let mut play = Play::start(plan, params);
        play.answer_all(plan);
        assert!(play.run.status.is_ended(), "nothing is left to answer, but it is {:?}", play.run.status);
        play
    }
}
