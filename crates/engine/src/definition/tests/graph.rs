use serde_json::json;

use super::*;
use crate::plan::{Body, Branches, Exec, Prep, Routing, Strategy, SubFailure, Timer, When};
use crate::reference::{Ref, Root, Seg, Template};
use crate::retry::Backoff;

fn one(node: Value) -> Value {
    json!({"start": "n", "nodes": {"n": node}, "edges": []})
}

/// Every kind and nearly every field at once.
fn everything() -> Value {
    json!({
        "start": "fetch",
        "nodes": {
            "fetch": {
                "kind": "remote", "service": "download", "params": {"depth": 2},
                "prep": {"input_key": "$params.url"},
                "post": {"output_key": "page", "output_map": {"lang": "meta.lang"}, "action_key": "next"},
                "max_retries": 3, "wait_ms": 50, "max_attempts": 4, "attempt_delay_ms": 10,
                "weighted_by_load": true, "timeout_ms": 900, "cost": {"estimate": 5, "actual": "$result.cost"}
            },
            "local": {"kind": "local", "func": "upper", "prep": {"input_map": {"a": "$shared.lang", "b": 7}}},
            "shell": {
                "exec_type": "local_script",
                "script": {"code": "print(1)", "language": "python", "env": {"A": "b"}, "stdin_mode": "none"}
            },
            "child": {"kind": "flow_ref", "flow": "other", "version": 3},
            "pick": {
                "kind": "choice", "default_action": "no",
                "choice_cases": [{"action": "yes", "expr": {"eq": ["$shared.lang", "de"]}}]
            },
            "fan": {
                "kind": "parallel", "parallel_mode": "concurrent", "max_parallel": 2, "max_retries": 1,
                "failure_strategy": "collect_errors", "params": {"x": 1}, "post": {"output_key": "all"},
                "parallel_execs": [
                    {"service": "a", "params": {"y": 2}},
                    {"exec_type": "queue", "service": "b", "post": {"output_map": {"z": "q"}}},
                    {"subflow": {"steps": [{"id": "1", "operator": "deep"}]}}
                ]
            },
            "each": {
                "kind": "foreach", "service": "transform", "prep": {"input_key": "all"},
                "failure_strategy": "retry", "foreach_execs": [{"index": 2, "service": "special"}]
            },
            "sub": {
                "kind": "subflow", "failure_strategy": "retry", "max_retries": 2, "wait_ms": 9, "timeout_ms": 70,
                "subflow": {"start": "x", "nodes": {"x": {"service": "inner"}}},
                "subflow_execs": [{"node": "x", "params": {"k": 1}}]
            },
            "nap": {"kind": "timer", "params": {"delay_ms": "$params.pause"}},
            "flag": {"kind": "wait_event", "params": {"signal_key": "$shared.flag", "timeout_ms": 60000}},
            "boss": {
                "kind": "approval",
                "params": {"approval_key": "ok", "assignees": ["ann"], "form": {"type": "object"}}
            }
        },
        "edges": [
            {"from": "fetch", "to": "local"}, {"from": "fetch", "action": "error", "to": "shell"},
            {"from": "local", "action": "", "to": "child"}, {"from": "child", "to": "pick"},
            {"from": "pick", "action": "yes", "to": "fan"}, {"from": "pick", "action": "no", "to": ""},
            {"from": "fan", "to": "each"}, {"from": "each", "to": "sub"}, {"from": "sub", "to": "nap"},
            {"from": "nap", "to": "flag"}, {"from": "flag", "to": "boss"},
            {"from": "boss", "action": "approved", "to": "fetch"}, {"from": "boss", "action": "rejected", "to": ""}
        ]
    })
}

#[test]
fn a_graph_with_everything_compiles_without_a_word() {
    assert_eq!(problems(&everything()), [""; 0]);
    let plan = plan(&everything());
    assert_eq!(plan.n_nodes, 13);
    let Routing::Action { start } = plan.root.routing else { panic!() };
    assert_eq!(plan.root.nodes[start].key, "fetch");
}

#[test]
fn calls_keep_their_terms() {
    let plan = plan(&everything());
    let fetch = call(&plan, "fetch");
    assert_eq!((fetch.exec.clone(), fetch.service.as_str()), (Exec::Http, "download"));
    assert_eq!((fetch.retry.max, fetch.retry.delay_ms, fetch.retry.backoff), (3, 50, Backoff::Fixed));
    assert_eq!((fetch.failover_max, fetch.failover_delay_ms, fetch.timeout_ms), (4, 10, 900));
    assert!(fetch.weighted_by_load && fetch.cost.is_some());
    let post = &node(&plan, "fetch").post;
    assert_eq!(post.output_map["lang"], [Seg::Key("meta".into()), Seg::Key("lang".into())]);
    assert_eq!(call(&plan, "local").exec, Exec::Func { name: "upper".into() });
    assert_eq!(call(&plan, "child").exec, Exec::Flow { flow: "other".into(), version: Some(3) });
    let Exec::Script(script) = &call(&plan, "shell").exec else { panic!() };
    assert_eq!((script.timeout_ms, script.language.as_str()), (10_000, "python"));
    let Prep::Map(map) = &node(&plan, "local").prep else { panic!() };
    assert_eq!(map["b"], Template::Literal(json!(7)));
}

#[test]
fn switching_workers_is_only_for_push() {
    let queue = plan(&one(json!({"service": "s", "exec_type": "queue", "max_attempts": 5})));
    assert_eq!(call(&queue, "n").failover_max, 1);
    let push = plan(&one(json!({"service": "s", "kind": ""})));
    assert_eq!(call(&push, "n").failover_max, 0, "every live worker");
}

#[test]
fn fans_have_branches_of_every_sort() {
    let plan = plan(&everything());
    let NodeKind::Fan(fan) = &node(&plan, "fan").kind else { panic!() };
    assert_eq!((fan.max_parallel, fan.strategy), (Some(2), Strategy::CollectErrors));
    let Branches::Fixed(branches) = &fan.branches else { panic!() };
    let Body::Call(a) = &branches[0].body else { panic!() };
    assert_eq!(a.retry.max, 1);
    assert_eq!(
        (node(&plan, "fan").params.get("x"), branches[0].params.get("y")),
        (Some(&json!(1)), Some(&json!(2)))
    );
    assert_eq!(branches[1].name, "b");
    assert!(matches!(&branches[2].body, Body::Scope(scope) if scope.index.contains_key("1")));
    let NodeKind::Fan(each) = &node(&plan, "each").kind else { panic!() };
    assert_eq!((each.max_parallel, each.strategy), (Some(1), Strategy::FailFast));
    let Branches::Items { each, special } = &each.branches else { panic!() };
    assert_eq!((each.name.as_str(), special[&2].name.as_str()), ("transform", "special"));
}

#[test]
fn branches_may_come_from_services_or_params() {
    let listed = plan(&one(json!({"kind": "parallel", "parallel_services": ["a", "b"]})));
    let NodeKind::Fan(fan) = &node(&listed, "n").kind else { panic!() };
    assert!(matches!(&fan.branches, Branches::Fixed(list) if list.len() == 2));
    let dynamic =
        plan(&one(json!({"kind": "parallel", "params": {"services": ["a"]}, "exec_type": "queue"})));
    let NodeKind::Fan(fan) = &node(&dynamic, "n").kind else { panic!() };
    let Branches::Services { each } = &fan.branches else { panic!() };
    assert!(matches!(&each.body, Body::Call(call) if call.exec == Exec::Queue));
    has(&errors(&one(json!({"kind": "parallel"}))), &["$.nodes.n: error: there are no branches"]);
    has(&errors(&one(json!({"kind": "parallel", "params": {"services": "a"}}))), &["array of service names"]);
}

#[test]
fn a_foreach_needs_a_service_or_flow_for_every_item() {
    has(&errors(&one(json!({"kind": "foreach"}))), &["$.nodes.n.service", "service is missing"]);
    let only = json!({"kind": "foreach", "foreach_execs": [{"index": 1, "service": "s"}]});
    has(&errors(&one(only)), &["the other items have no service"]);
    let all = plan(&one(json!({"kind": "foreach", "foreach_execs": [{"service": "s"}]})));
    let NodeKind::Fan(fan) = &node(&all, "n").kind else { panic!() };
    assert!(
        matches!(&fan.branches, Branches::Items { each, special } if each.name == "s" && special.is_empty())
    );
    let body = json!({"kind": "foreach", "subflow": {"start": "x", "nodes": {"x": {"service": "s"}}}});
    let NodeKind::Fan(fan) = &node(&plan(&one(body)), "n").kind.clone() else { panic!() };
    assert!(matches!(&fan.branches, Branches::Items { each, .. } if matches!(each.body, Body::Scope(_))));
    let twice = json!({"kind": "foreach", "service": "s", "foreach_execs": [
        {"index": 1, "service": "a"}, {"index": 1, "service": "b"}]});
    has(&errors(&one(twice)), &["foreach_execs[1].index", "item 1 is given twice"]);
}

#[test]
fn subflows_nest_and_say_what_failure_means() {
    let plan = plan(&everything());
    let NodeKind::Sub(sub) = &node(&plan, "sub").kind else { panic!() };
    assert!(
        matches!(&sub.on_failure, SubFailure::Restart(policy) if policy.max == 2 && policy.delay_ms == 9)
    );
    assert_eq!(sub.overrides["x"].get("k"), Some(&json!(1)));
    assert_eq!(node(&plan, "sub").timeout_ms, 70);
    assert!(sub.scope.owns_shared);
    let mut wrong = everything();
    wrong["nodes"]["sub"]["subflow_execs"][0]["node"] = json!("xx");
    has(&errors(&wrong), &["$.nodes.sub.subflow_execs[0].node", "no node `xx`", "did you mean `x`?"]);
    wrong["nodes"]["sub"]["subflow"]["nodes"]["x"] = json!({});
    has(&errors(&wrong), &["$.nodes.sub.subflow.nodes.x.service: error"]);
    let ignore = json!({"kind": "subflow", "failure_strategy": "continue",
        "subflow": {"start": "x", "nodes": {"x": {"service": "s"}}}});
    let NodeKind::Sub(sub) = &node(&super::plan(&one(ignore)), "n").kind.clone() else { panic!() };
    assert_eq!(sub.on_failure, SubFailure::Ignore);
}

#[test]
fn waits_keep_their_keys_and_limits() {
    let plan = plan(&everything());
    let NodeKind::Wait(wait) = &node(&plan, "flag").kind else { panic!() };
    assert_eq!(wait.key, Ref { root: Root::Shared, path: vec![Seg::Key("flag".into())] });
    assert_eq!(node(&plan, "flag").timeout_ms, 60_000);
    let NodeKind::Approval(approval) = &node(&plan, "boss").kind else { panic!() };
    assert_eq!(approval.key.as_ref().unwrap().root, Root::Anywhere);
    assert_eq!(approval.assignees, ["ann"]);
    assert!(approval.form.is_some());
    assert!(matches!(&node(&plan, "nap").kind, NodeKind::Timer(Timer::Delay(Template::Ref(_)))));
    has(&errors(&one(json!({"kind": "wait_event"}))), &["signal"]);
}

#[test]
fn timers_take_a_delay_or_a_moment() {
    let timer = |params: Value| errors(&one(json!({"kind": "timer", "params": params})));
    assert_eq!(timer(json!({"until": "2026-11-15T09:00:00+08:00"})), [""; 0]);
    assert_eq!(timer(json!({"delay_ms": 5.5})), [""; 0]);
    has(&timer(json!({"until": "tomorrow"})), &["$.nodes.n.params.until", "2026-11-15T09:00:00Z"]);
    has(&timer(json!({"delay_ms": -1})), &["$.nodes.n.params.delay_ms"]);
    has(&timer(json!({"delay_ms": 1, "until": "x"})), &["not both"]);
    has(&timer(json!({})), &["needs `delay_ms` or `until`"]);
    has(&timer(json!({"delay_ms": "$parms.x"})), &["did you mean `params`?"]);
}

#[test]
fn every_error_is_reported_at_once_with_its_place() {
    let value = json!({
        "start": "tranform",
        "nodes": {
            "transform": {"kind": "exekutor", "service": "s"},
            "a": {"service": ""},
            "b": {"kind": "choice", "choice_cases": [{"action": "x", "expr": {"eqq": [1, 2]}}]},
            "c": {"service": "s", "post": {"output_key": "_rt.x", "output_map": {"_error": "e"}}},
            "d": {"service": "s", "exec_type": "pull", "wait_ms": "soon"},
            "e/f": {"service": "s"}
        },
        "edges": [
            {"from": "a", "to": "bb"}, {"from": "transfrom", "to": "a"}, {"to": "a"},
            {"from": "c", "to": "a"}, {"from": "c", "action": "default", "to": "d"}
        ]
    });
    let found = errors(&value);
    has(&found, &["$.start", "did you mean `transform`?"]);
    has(&found, &["$.nodes.transform.kind", "did you mean `executor`?"]);
    has(&found, &["$.nodes.a.service", "service is missing"]);
    has(&found, &["$.nodes.b.choice_cases[0].expr", "eqq"]);
    has(&found, &["$.nodes.c.post.output_key", "reserved"]);
    has(&found, &["$.nodes.c.post.output_map._error", "reserved"]);
    has(&found, &["$.nodes.d.exec_type", "pull"]);
    has(&found, &["$.nodes.d.wait_ms", "`soon`"]);
    has(&found, &["$.nodes[\"e/f\"]", "must not contain `/`"]);
    has(&found, &["$.edges[0].to: error: unknown node `bb`", "did you mean `b`?"]);
    has(&found, &["$.edges[1].from", "did you mean `transform`?"]);
    has(&found, &["$.edges[2].from", "needs the node"]);
    has(&found, &["$.edges[4]", "another edge for action `default` at $.edges[3]"]);
}

#[test]
fn code_without_a_language_runs_by_its_command_or_by_bash() {
    let script = |script: Value| {
        let plan = plan(&one(json!({"exec_type": "local_script", "script": script})));
        let Exec::Script(script) = call(&plan, "n").exec.clone() else { panic!("no script") };
        (script.cmd, script.language)
    };
    let named = |cmd: &str, language: &str| (cmd.to_owned(), language.to_owned());
    assert_eq!(script(json!({"code": "x"})), named("", "bash"));
    assert_eq!(script(json!({"code": "x", "language": ""})), named("", "bash"));
    assert_eq!(script(json!({"code": "x", "cmd": "ruby"})), named("ruby", ""));
    for (word, language) in [("python3", "python"), ("node", "javascript"), ("sh", "sh")] {
        assert_eq!(script(json!({"code": "x", "language": word})), named("", language));
    }
}

#[test]
fn missing_parts_are_errors() {
    has(&errors(&json!({"nodes": {"a": {"service": "s"}}})), &["$.start", "missing"]);
    has(&errors(&json!({"start": "a", "nodes": {}})), &["$.nodes", "at least one node"]);
    has(&errors(&one(json!({"script": {"cmd": "ls"}}))), &["exec_type: local_script"]);
    has(&errors(&one(json!({"kind": "subflow"}))), &["$.nodes.n.subflow", "missing"]);
    has(&errors(&one(json!({"kind": "flow_ref", "version": 0, "flow": "f"}))), &["version", "from 1"]);
    has(
        &errors(&one(json!({"service": "s", "prep": {"input_key": "$node.gone.output"}}))),
        &["unknown node `gone`"],
    );
}

#[test]
fn risky_definitions_get_warnings() {
    let value = json!({
        "start": "a",
        "nodes": {
            "a": {"service": "s", "choice_cases": [{"x": 1}], "prep": {"input_key": "$shared.nowhere"}},
            "b": {"service": "s"},
            "c": {"kind": "choice", "choice_cases": [{"action": "x", "expr": {"exists": "$input"}}]}
        },
        "edges": [{"from": "a", "action": "go", "to": "c"}, {"from": "c", "action": "y", "to": ""}]
    });
    let found = problems(&value);
    assert!(errors(&value).is_empty());
    has(&found, &["$.nodes.a: warning: no default edge"]);
    has(&found, &["$.nodes.a.choice_cases: warning: has no effect"]);
    has(&found, &["$.nodes.a: warning: nothing writes `nowhere`"]);
    has(&found, &["$.nodes.b: warning: no path leads"]);
    has(&found, &["$.nodes.c: warning: no edge for action `x`"]);
}

#[test]
fn edges_carry_their_action_and_may_end_the_scope() {
    let plan = plan(&everything());
    let pick = &node(&plan, "pick").out;
    assert!(matches!(&pick[1].when, When::Action(action) if action == "no") && pick[1].to.is_none());
    assert!(matches!(&node(&plan, "local").out[0].when, When::Action(action) if action == "default"));
}
