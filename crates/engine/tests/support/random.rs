//! Random small definitions of all three forms. Every one of them compiles, and every one of them ends when its
//! calls are done: edges that lead back are only followed by an answer that asks for it (`{"action": "again"}`).

use serde_json::{Map, Value, json};

use super::dice::Dice;

/// How deep flows are nested.
const DEPTH: usize = 3;

pub fn definition(dice: &mut Dice<'_>) -> Value {
    Writer { dice, n_steps: 0 }.flow(1)
}

struct Writer<'d, 'b> {
    dice: &'d mut Dice<'b>,
    n_steps: usize,
}

impl Writer<'_, '_> {
    fn flow(&mut self, depth: usize) -> Value {
        match self.dice.below(3) {
            0 => self.graph(depth),
            1 => self.dag(depth),
            _ => self.steps_flow(depth),
        }
    }

    fn graph(&mut self, depth: usize) -> Value {
        let n = 1 + self.dice.below(4);
        let key = |i: usize| ["a", "b", "c", "d", "e"][i].to_owned();
        let mut nodes = Map::new();
        let mut edges = Vec::new();
        for i in 0..n {
            nodes.insert(key(i), self.graph_node(depth));
            let mut edge = |action: &str, to: String| {
                edges.push(json!({"from": key(i), "action": action, "to": to}));
            };
            if i + 1 < n {
                edge("default", key(i + 1));
            }
            for action in ["error", "timeout", "approved", "yes"] {
                if self.dice.once_in(4) {
                    let to = i + 1 + self.dice.below(n - i);
                    edge(action, if to < n { key(to) } else { String::new() });
                }
            }
            edge("again", key(self.dice.below(i + 1)));
        }
        json!({"start": "a", "nodes": nodes, "edges": edges})
    }

    fn graph_node(&mut self, depth: usize) -> Value {
        let nests = depth < DEPTH;
        let mut node = match self.dice.below(12) {
            0..=2 => self.call(),
            3 => json!({"kind": "flow_ref", "flow": "other"}),
            4 => json!({"kind": "choice", "default_action": "default", "choice_cases": [
                {"action": "yes", "expr": {"gt": ["$shared.k0", self.dice.below(3)]}}]}),
            5 => self.parallel(depth),
            6 | 7 => self.foreach(depth),
            8 if nests => {
                let mut sub = json!({"kind": "subflow", "subflow": self.flow(depth + 1)});
                sub["failure_strategy"] = json!(self.dice.pick(&["fail_fast", "continue", "retry"]));
                if sub["failure_strategy"] == "retry" {
                    sub["max_retries"] = json!(2);
                    sub["wait_ms"] = json!(self.dice.pick(&[0, 100]));
                }
                self.limit(&mut sub);
                sub
            }
            8 | 9 => {
                let ms = self.dice.pick(&[0, 10, 5_000]);
                json!({"kind": "timer", "params": {"delay_ms": ms}})
            }
            10 => {
                let mut wait = json!({"kind": "wait_event", "params": {"signal_key": self.dice.pick(&["go", "k0", "$shared.k1"])}});
                self.limit(&mut wait);
                wait
            }
            _ => {
                let mut approval = json!({"kind": "approval"});
                if self.dice.once_in(2) {
                    approval["params"] = json!({"approval_key": "ok"});
                }
                if self.dice.once_in(3) {
                    approval["assignees"] = json!(["ann"]);
                }
                self.limit(&mut approval);
                approval
            }
        };
        let key = self.dice.pick(&["k0", "k1", "k2"]);
        node["post"] = if node["kind"] == "choice" {
            json!({})
        } else {
            json!({"output_key": key, "action_key": "action"})
        };
        node
    }

    fn limit(&mut self, node: &mut Value) {
        if self.dice.once_in(3) {
            node["timeout_ms"] = json!(self.dice.pick(&[50, 2_000]));
        }
    }

    fn call(&mut self) -> Value {
        let mut call = match self.dice.below(4) {
            0 => json!({"service": self.dice.pick(&["s", "t"])}),
            1 => json!({"exec_type": "queue", "service": "q"}),
            2 => json!({"exec_type": "local_func", "func": "f"}),
            _ => json!({"exec_type": "local_script", "script": {"cmd": "true"}}),
        };
        self.terms(&mut call);
        if self.dice.once_in(3) {
            call["prep"] = json!({"input_key": self.dice.pick(&["k0", "$params.items", "$shared._error"])});
        }
        call
    }

    fn terms(&mut self, call: &mut Value) {
        if self.dice.once_in(2) {
            call["max_retries"] = json!(self.dice.below(3));
            call["wait_ms"] = json!(self.dice.pick(&[0, 10, 1_000]));
        }
        if self.dice.once_in(3) {
            call["max_attempts"] = json!(2);
            call["attempt_delay_ms"] = json!(self.dice.pick(&[0, 20]));
        }
        if self.dice.once_in(3) {
            call["cost"] = self.cost();
        }
        if self.dice.once_in(6) {
            call["at_most_once"] = json!(true);
        }
        self.limit(call);
    }

    fn cost(&mut self) -> Value {
        match self.dice.below(3) {
            0 => json!(5),
            1 => json!({"estimate": 9, "actual": "$result.cost"}),
            _ => json!({"estimate": "$shared.k0"}),
        }
    }

    fn pace(&mut self, fan: &mut Value) {
        let strategy = self.dice.pick(&["fail_fast", "collect_errors", "ignore_errors", "continue", ""]);
        fan["failure_strategy"] = json!(strategy);
        if self.dice.once_in(2) {
            fan["parallel_mode"] = json!("concurrent");
            fan["max_parallel"] = json!(self.dice.below(3));
        }
    }

    fn parallel(&mut self, depth: usize) -> Value {
        let mut fan = match self.dice.below(3) {
            0 => json!({"kind": "parallel", "parallel_services": ["p", "q", "r"]}),
            1 => json!({"kind": "parallel", "params": {"services": ["x", "y"]}}),
            _ => {
                let execs: Vec<Value> = (0..=self.dice.below(3)).map(|_| self.exec(depth)).collect();
                json!({"kind": "parallel", "parallel_execs": execs})
            }
        };
        self.terms(&mut fan);
        self.pace(&mut fan);
        fan
    }

    fn exec(&mut self, depth: usize) -> Value {
        if depth < DEPTH && self.dice.once_in(2) {
            json!({"name": "inner", "subflow": self.flow(depth + 1)})
        } else {
            json!({"service": "branch", "post": {"output_key": "k0"}})
        }
    }

    fn foreach(&mut self, depth: usize) -> Value {
        let mut fan = json!({"kind": "foreach", "prep": {"input_key": "$params.items"}});
        if depth < DEPTH && self.dice.once_in(2) {
            fan["subflow"] = self.flow(depth + 1);
        } else {
            fan["service"] = json!("each");
        }
        self.terms(&mut fan);
        self.pace(&mut fan);
        fan
    }

    fn dag(&mut self, depth: usize) -> Value {
        let n = 1 + self.dice.below(5);
        let mut nodes = Vec::new();
        let mut edges = Vec::new();
        for i in 0..n {
            nodes.push(self.dag_node(i, depth));
            for (from, before) in nodes.iter().enumerate().take(i) {
                let mut edge = json!({"source": format!("n{from}"), "target": format!("n{i}")});
                match self.dice.below(4) {
                    0 => continue,
                    1 => edge["condition"] = json!(self.dice.pick(&["$var.k0 > 1", "$var.k9 == 'x'"])),
                    2 if before["type"] == "condition" => edge["action"] = json!("true"),
                    _ => {}
                }
                edges.push(edge);
            }
        }
        let on_failure = self.dice.pick(&["stop", "continue"]);
        json!({"nodes": nodes, "edges": edges, "on_failure": on_failure})
    }

    fn dag_node(&mut self, i: usize, depth: usize) -> Value {
        let mut node = match self.dice.below(9) {
            0..=2 => self.dag_call(),
            3 => json!({"type": "variable_set", "config": {"variables": [{"name": "k0", "value": 3}]}}),
            4 => json!({"type": "condition", "config": {"expression": "$var.k0 > 1"}}),
            5 => json!({"type": "delay", "config": {"delaySeconds": self.dice.pick(&[0, 2])}}),
            6 => json!({"type": "end", "config": {"outputs": [{"name": "r", "source": "$var.k0"}]}}),
            7 => json!({"type": "start"}),
            _ => {
                let mut config = self.graph_node(depth);
                let kind = config.as_object_mut().and_then(|config| config.remove("kind"));
                json!({"type": kind.unwrap_or(json!("executor")), "config": config})
            }
        };
        node["id"] = json!(format!("n{i}"));
        node
    }

    fn dag_call(&mut self) -> Value {
        let mut call = json!({"type": "render", "config": {"x": "$var.k0"}});
        call["exec_type"] = json!(self.dice.pick(&["queue", "http", "local_func"]));
        if self.dice.once_in(2) {
            let backoff = self.dice.pick(&["fixed", "exponential"]);
            call["retry"] =
                json!({"max": self.dice.below(3), "delay_ms": self.dice.pick(&[0, 100]), "backoff": backoff});
        }
        if self.dice.once_in(3) {
            call["cost"] = self.cost();
        }
        if self.dice.once_in(6) {
            call["at_most_once"] = json!(true);
        }
        self.limit(&mut call);
        call
    }

    fn steps_flow(&mut self, depth: usize) -> Value {
        let before = std::mem::take(&mut self.n_steps);
        let mut steps = vec![json!({"id": "t", "operator": "@trigger/manual"})];
        steps.extend(self.steps(depth));
        self.n_steps = before;
        json!({"steps": steps})
    }

    fn steps(&mut self, depth: usize) -> Vec<Value> {
        (0..=self.dice.below(3)).map(|_| self.step(depth)).collect()
    }

    fn step(&mut self, depth: usize) -> Value {
        self.n_steps += 1;
        let id = format!("s{}", self.n_steps);
        let nests = depth < DEPTH;
        let mut step = match self.dice.below(10) {
            0..=2 => self.step_call(),
            3 if nests => {
                let branches: Vec<Value> =
                    (0..=self.dice.below(2)).map(|_| json!({"steps": self.steps(depth + 1)})).collect();
                json!({"operator": "@control/flow/parallel", "branches": branches})
            }
            4 if nests => {
                let test = json!([[{"operator": "@internal/cmp/number-gt",
                    "parameters": {"a": "{{__t.n}}", "b": self.dice.below(4)}}]]);
                json!({"operator": "@control/flow/branches", "branches": [
                    {"conditions": test, "steps": self.steps(depth + 1)}, {"steps": self.steps(depth + 1)}]})
            }
            5 if nests => {
                let over = self.dice.pick(&[
                    json!({"mode": "limit", "limit": 2}),
                    json!({"mode": "array", "array": "{{__t.items}}"}),
                ]);
                json!({"operator": "@control/flow/loop", "parameters": over, "steps": self.steps(depth + 1)})
            }
            6 => json!({"operator": "@internal/define", "parameters": {"name": "k0", "value": 4}}),
            7 => {
                let done = self.dice.once_in(3);
                let operator = if done { "@internal/return" } else { "@internal/time/now" };
                json!({"operator": operator, "parameters": {"value": "{{__t.n}}"}})
            }
            8 => {
                json!({"operator": "@subflow/call", "parameters": {"flow": "other", "params": {"x": "{{__t}}"}}})
            }
            _ => {
                let mut step =
                    json!({"operator": "@workflow/approval", "parameters": {"approval_key": "ok"}});
                if self.dice.once_in(2) {
                    step["settings"] = json!({"timeout": {"delay": 3}});
                }
                step
            }
        };
        step["id"] = json!(id);
        step
    }

    fn step_call(&mut self) -> Value {
        let mut settings = Map::new();
        if self.dice.once_in(2) {
            settings.insert("retry".to_owned(), json!({"max": 1 + self.dice.below(2), "delay": 1}));
        }
        if self.dice.once_in(2) {
            settings.insert("timeout".to_owned(), json!({"delay": self.dice.pick(&[1, 4])}));
        }
        if self.dice.once_in(3) {
            settings.insert("cost".to_owned(), json!(6));
        }
        if self.dice.once_in(3) {
            settings.insert("exec_type".to_owned(), json!("http"));
        }
        json!({"operator": "work", "parameters": {"v": "{{__t.n}}"}, "settings": settings})
    }
}
