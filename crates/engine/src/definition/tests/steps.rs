use serde_json::json;

use super::*;
use crate::plan::{Compute, Exec, LoopOver, Prep, When};
use crate::reference::Root;

fn documented() -> Value {
    json!({
        "title": "并行处理示例流程", "status": "normal", "priority": "high",
        "steps": [
            {"id": "0", "title": "准备数据", "operator": "@anyshare-trigger/upload-file", "parameters": {"docid": "x"}},
            {"id": "1", "operator": "@control/flow/parallel", "branches": [
                {"steps": [{"id": "1-1", "operator": "@anyshare/file/copy", "parameters": {"docid": "{{__0.id}}"}}]},
                {"steps": [{"id": "2-1", "operator": "@anyshare/file/copy", "parameters": {"docid": "{{__0.id}}"}}]},
                {"steps": [
                    {"id": "3-1", "operator": "@anyshare/file/copy", "parameters": {"docid": "{{__0.id}}"}},
                    {"id": "3-2", "operator": "@anyshare/file/process", "parameters": {"docid": "{{__3-1.new_docid}}"}}
                ]}
            ]},
            {"id": "4", "operator": "@anyshare/file/merge", "parameters": {
                "docid_a": "{{__1-1.new_docid}}", "docid_b": "{{__2-1.new_docid}}", "docid_c": "{{__3-2.new_docid}}"}}
        ]
    })
}

fn s(id: &str) -> Value {
    json!({"id": id, "operator": "work"})
}

fn parallel(id: &str, branches: &[Value]) -> Value {
    let branches: Vec<Value> = branches.iter().map(|steps| json!({"steps": steps})).collect();
    json!({"id": id, "operator": "@control/flow/parallel", "branches": branches})
}

fn flow(steps: Value) -> Value {
    json!({"steps": steps})
}

/// `id:task_id<needs` for every task.
fn tasks(value: &Value) -> Vec<String> {
    let expansion = expand(value, Strictness::Strict);
    assert!(!expansion.tasks.is_empty(), "{:?}", expansion.problems);
    let text = |t: &ExpandedTask| format!("{}:{}<{}", t.id, t.task_id, t.depend_on.join(","));
    expansion.tasks.iter().map(text).collect()
}

#[test]
fn the_documented_example_expands_as_documented() {
    let expansion = expand(&documented(), Strictness::Strict);
    assert_eq!(expansion.problems, []);
    let copy = "@anyshare/file/copy";
    assert_eq!(
        serde_json::to_value(&expansion.tasks).unwrap(),
        json!([
            {"id": "0", "task_id": "0", "operator": "@anyshare-trigger/upload-file", "title": "准备数据", "dependOn": []},
            {"id": "1-1", "task_id": "1_b0_s0", "operator": copy, "dependOn": ["0"]},
            {"id": "2-1", "task_id": "1_b1_s0", "operator": copy, "dependOn": ["0"]},
            {"id": "3-1", "task_id": "1_b2_s0", "operator": copy, "dependOn": ["0"]},
            {"id": "3-2", "task_id": "1_b2_s1", "operator": "@anyshare/file/process", "dependOn": ["3-1"]},
            {"id": "4", "task_id": "4", "operator": "@anyshare/file/merge", "dependOn": ["1-1", "2-1", "3-2"]}
        ])
    );
}

#[test]
fn the_documented_example_becomes_a_plan() {
    let plan = plan(&documented());
    assert_eq!((plan.priority, plan.stopped, plan.n_nodes), (Priority::High, false, 6));
    assert_eq!(targets(&plan.root, "0"), ["1-1", "2-1", "3-1"]);
    assert_eq!(node(&plan, "4").n_in, 3);
    assert_eq!(node(&plan, "3-2").task_id.as_deref(), Some("1_b2_s1"));
    let Prep::Key(trigger) = &node(&plan, "0").prep else { panic!() };
    assert_eq!((trigger.root.clone(), trigger.path.len()), (Root::Params, 0));
    assert_eq!(call(&plan, "4").exec, Exec::Queue);
    assert_eq!(call(&plan, "4").service, "@anyshare/file/merge");
}

#[test]
fn parallels_nest_and_may_come_first() {
    let inner = parallel("q", &[json!([s("c")]), json!([s("d"), s("e")])]);
    let value = flow(json!([parallel("p", &[json!([s("a")]), json!([inner, s("f")])]), s("z")]));
    assert_eq!(
        tasks(&value),
        ["a:p_b0_s0<", "c:q_b0_s0<", "d:q_b1_s0<", "e:q_b1_s1<d", "f:p_b1_s1<c,e", "z:z<a,f"]
    );
    assert_eq!(plan(&value).n_nodes, 6);
}

#[test]
fn an_empty_branch_ends_where_it_began() {
    let value = flow(json!([s("a"), parallel("p", &[json!([]), json!([s("b")]), json!([])]), s("c")]));
    assert_eq!(tasks(&value), ["a:a<", "b:p_b1_s0<a", "c:c<b,a"]);
    let none = flow(json!([s("a"), parallel("p", &[]), parallel("q", &[json!([])]), s("c")]));
    assert_eq!(tasks(&none), ["a:a<", "c:c<a"]);
}

#[test]
fn steps_may_name_what_they_wait_for() {
    let needs = |id: &str, on: Value| json!({"id": id, "operator": "work", "dependOn": on});
    let value = flow(json!([
        s("a"),
        parallel("p", &[json!([s("b")]), json!([s("c")])]),
        needs("d", json!(["a"])),
        needs("e", json!(["p"])),
        needs("f", json!([])),
        s("g")
    ]));
    assert_eq!(tasks(&value)[3..], ["d:d<a", "e:e<b,c", "f:f<", "g:g<f"]);
    let forward = flow(json!([needs("a", json!(["b"])), needs("b", json!([]))]));
    assert_eq!(tasks(&forward), ["a:a<b", "b:b<"]);
    let wrong = flow(json!([s("load"), needs("x", json!(["laod"]))]));
    has(&errors(&wrong), &["$.steps[1].dependOn", "unknown step `laod`", "did you mean `load`?"]);
    let circle = flow(json!([needs("a", json!(["b"])), s("b")]));
    has(&errors(&circle), &["cycle: a → b → a"]);
    let within = flow(json!([parallel("p", &[json!([needs("a", json!(["p"]))])])]));
    has(&errors(&within), &["cycle: a → a"]);
}

fn cond(value: &str) -> Value {
    json!([[{"operator": "@internal/cmp/string-eq", "parameters": {"a": "{{__a.kind}}", "b": value}}]])
}

#[test]
fn conditional_branches_hang_on_their_node() {
    let value = flow(json!([
        s("a"),
        {"id": "if", "operator": "@control/flow/branches", "branches": [
            {"conditions": cond("x"), "steps": [s("b"), s("c")]},
            {"conditions": cond("y"), "steps": [parallel("p", &[json!([s("d")]), json!([])]), s("e")]},
            {"conditions": [], "steps": [s("f")]},
            {"conditions": cond("z"), "steps": []}
        ]},
        s("z")
    ]));
    assert_eq!(
        tasks(&value),
        [
            "a:a<",
            "if:if<a",
            "b:if_b0_s0<if",
            "c:if_b0_s1<b",
            "d:p_b0_s0<if",
            "e:if_b1_s1<d,if",
            "f:if_b2_s0<if",
            "z:z<if,c,e,f"
        ]
    );
    let plan = plan(&value);
    let fork = node(&plan, "if");
    assert!(matches!(fork.kind, NodeKind::Pass));
    let conditional: Vec<&str> = fork
        .out
        .iter()
        .filter(|edge| matches!(edge.when, When::If(_)))
        .map(|edge| plan.root.nodes[edge.to.unwrap()].key.as_str())
        .collect();
    assert_eq!(conditional, ["b", "d", "e"]);
    assert_eq!(fork.out.len(), 5);
}

#[test]
fn a_step_inside_a_branch_may_name_the_node_around_it() {
    let value = flow(json!([
        s("a"),
        {"id": "if", "operator": "@control/flow/branches", "branches": [
            {"conditions": cond("x"), "steps": [s("b"), {"id": "c", "operator": "w", "dependOn": ["if"]}]}]},
        {"id": "z", "operator": "w", "dependOn": ["if"]}
    ]));
    assert_eq!(tasks(&value), ["a:a<", "if:if<a", "b:if_b0_s0<if", "c:if_b0_s1<if", "z:z<if,c"]);
    let fork = plan(&value);
    let edges = node(&fork, "if").out.iter().filter(|edge| matches!(edge.when, When::If(_))).count();
    assert_eq!(edges, 2);
}

#[test]
fn loops_have_a_body_of_their_own() {
    let value = flow(json!([
        s("a"),
        {"id": "l", "operator": "@control/flow/loop",
         "parameters": {"mode": "array", "array": "{{__a.items}}", "outputs": [{"key": "k", "value": "{{__y.out}}"}]},
         "steps": [
            {"id": "x", "operator": "w", "parameters": {"i": "{{__l.index}}", "v": "{{__l.value}}", "a": "{{__a}}"}},
            {"id": "y", "operator": "w", "parameters": {"x": "{{__x.n}}"}}]},
        {"id": "z", "operator": "w", "parameters": {"all": "{{__l.outputs.k}}"}}
    ]));
    assert_eq!(problems(&value), [""; 0]);
    assert_eq!(tasks(&value), ["a:a<", "l:l<a", "z:z<l"]);
    let plan = plan(&value);
    assert_eq!(plan.n_nodes, 5);
    let NodeKind::Loop(l) = &node(&plan, "l").kind else { panic!() };
    assert!(matches!(l.over, LoopOver::Array(_)) && !l.body.owns_shared);
    assert_eq!(targets(&l.body, "x"), ["y"]);
    assert_eq!(l.outputs[0].0, "k");
}

#[test]
fn loops_are_checked() {
    let l = |parameters: Value, steps: Value| {
        errors(&flow(
            json!([{"id": "l", "operator": "@control/flow/loop", "parameters": parameters, "steps": steps}]),
        ))
    };
    has(&l(json!({"mode": "limit"}), json!([s("a")])), &["parameters.limit", "needs `limit`"]);
    has(&l(json!({"limit": "many"}), json!([s("a")])), &["parameters.limit", "whole number"]);
    has(&l(json!({"array": 3}), json!([s("a")])), &["parameters.array", "must be an array"]);
    has(&l(json!({"limit": 3}), json!([])), &["steps", "needs steps"]);
    has(&l(json!({"mode": "arrya", "array": []}), json!([s("a")])), &["did you mean `array`?"]);
    let gone = json!({"limit": 3, "outputs": [{"key": "k", "value": "{{__b}}"}]});
    has(&l(gone, json!([s("a")])), &["outputs[0].value", "unknown node `b`"]);
    let outside = flow(json!([
        {"id": "l", "operator": "@control/flow/loop", "parameters": {"limit": 1}, "steps": [s("in")]},
        {"id": "x", "operator": "w", "dependOn": ["in"]}]));
    has(&errors(&outside), &["$.steps[1].dependOn", "not in the same scope"]);
}

#[test]
fn ids_are_unique_in_the_whole_tree() {
    let value = flow(json!([
        s("a"), parallel("p", &[json!([s("b")]), json!([s("a")])]),
        {"id": "l", "operator": "@control/flow/loop", "parameters": {"limit": 1}, "steps": [s("b"), s("p_b0_s0")]}
    ]));
    let found = errors(&value);
    has(&found, &["$.steps[1].branches[1].steps[0].id", "`a` is taken by $.steps[0]"]);
    has(&found, &["$.steps[2].steps[0].id", "`b` is taken by $.steps[1].branches[0].steps[0]"]);
    has(&found, &["$.steps[2].steps[1].id", "also the position of step `b`"]);
}

#[test]
fn built_in_operators_need_no_worker() {
    let value = flow(json!([
        {"id": "d", "operator": "@internal/define", "parameters": {"name": "total", "value": 0}},
        {"id": "e", "operator": "@internal/define", "parameters": {"value": 0}},
        {"id": "1", "operator": "@internal/assign", "parameters": {"target": "{{__d.value}}", "value": 1}},
        {"id": "2", "operator": "@internal/assign", "parameters": {"target": "__e", "value": 1}},
        {"id": "3", "operator": "@internal/assign", "parameters": {"name": "total", "value": 1}},
        {"id": "4", "operator": "@internal/text/join", "parameters": {}},
        {"id": "5", "operator": "@internal/text/split"}, {"id": "6", "operator": "@internal/json/get"},
        {"id": "7", "operator": "@internal/json/set"}, {"id": "8", "operator": "@internal/time/now"},
        {"id": "9", "operator": "@workflow/approval", "parameters": {"assignees": ["ann"], "title": "ok?"},
         "settings": {"timeout": {"delay": 60}}},
        {"id": "10", "operator": "@subflow/call", "parameters": {"flow": "other", "version": 2, "params": {"x": "{{__4}}"}}},
        {"id": "11", "operator": "@internal/return", "parameters": {"value": "{{__4}}"}}
    ]));
    assert_eq!(problems(&value), [""; 0]);
    let plan = plan(&value);
    let variable = |key: &str| match &node(&plan, key).kind {
        NodeKind::Compute(Compute::Define { variable } | Compute::Assign { variable }) => variable.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(["d", "e", "1", "2", "3"].map(variable), ["total", "e", "total", "e", "total"]);
    assert!(matches!(node(&plan, "11").kind, NodeKind::Return));
    assert!(matches!(&node(&plan, "9").kind, NodeKind::Approval(approval) if approval.assignees == ["ann"]));
    assert_eq!(node(&plan, "9").timeout_ms, 60_000);
    assert_eq!(call(&plan, "10").exec, Exec::Flow { flow: "other".into(), version: Some(2) });
}

#[test]
fn settings_have_ranges() {
    let with = |settings: Value| flow(json!([{"id": "a", "operator": "w", "settings": settings}]));
    let good = plan(&with(
        json!({"retry": {"max": 10, "delay": 60}, "timeout": {"delay": 86400}, "exec_type": "http"}),
    ));
    let made = call(&good, "a");
    assert_eq!((made.retry.max, made.retry.delay_ms, made.total_timeout_ms), (10, 60_000, 86_400_000));
    assert_eq!(made.exec, Exec::Http);
    let found = errors(&with(json!({"retry": {"max": 11, "delay": 0}, "timeout": {"delay": 86401}})));
    has(&found, &["$.steps[0].settings.retry.max", "from 1 to 10"]);
    has(&found, &["$.steps[0].settings.retry.delay", "from 1 to 60 seconds"]);
    has(&found, &["$.steps[0].settings.timeout.delay", "from 1 to 86400 seconds"]);
    has(&errors(&with(json!({"retry": {"max": 0}}))), &["from 1 to 10"]);
}

#[test]
fn triggers_come_first_and_control_operators_are_known() {
    let late = flow(json!([s("a"), {"id": "t", "operator": "@trigger/manual"}]));
    has(&errors(&late), &["$.steps[1].operator", "only be the first step"]);
    let first_in_branch = flow(json!([parallel("p", &[json!([{"id": "t", "operator": "@x-trigger/y"}])])]));
    has(&errors(&first_in_branch), &["$.steps[0].branches[0].steps[0].operator"]);
    let unknown = flow(json!([{"id": "a", "operator": "@control/flow/paralel"}]));
    has(&errors(&unknown), &["unknown operator", "did you mean `@control/flow/parallel`?"]);
    let plain = flow(json!([{"id": "a", "operator": "w", "steps": [s("b")], "branches": [{"steps": []}]}]));
    has(&errors(&plain), &["$.steps[0].steps", "only `@control/flow/loop`"]);
    has(&errors(&plain), &["$.steps[0].branches", "have branches"]);
    let conditional = flow(json!([{"id": "p", "operator": "@control/flow/parallel", "branches": [
        {"conditions": cond("x"), "steps": []}]}]));
    has(&errors(&conditional), &["branches[0].conditions", "always run"]);
    let reference =
        flow(json!([s("load"), {"id": "b", "operator": "w", "parameters": {"x": "{{__laod.y}}"}}]));
    has(&errors(&reference), &["$.steps[1]", "unknown node `laod`", "did you mean `load`?"]);
}

#[test]
fn stopped_flows_and_wrong_priorities() {
    let mut value = flow(json!([s("a")]));
    value["status"] = json!("stopped");
    assert!(plan(&value).stopped);
    value["priority"] = json!("hihg");
    has(&errors(&value), &["$.priority", "did you mean `high`?"]);
    has(&errors(&flow(json!([]))), &["$.steps", "at least one step"]);
}

fn looped(id: &str, steps: Value) -> Value {
    json!({"id": id, "operator": "@control/flow/loop", "parameters": {"limit": 2}, "steps": steps})
}

fn forked(id: &str, steps: Value) -> Value {
    json!({"id": id, "operator": "@control/flow/branches", "branches": [{"conditions": cond("x"), "steps": steps}]})
}

#[test]
fn each_converts_inside_each() {
    let twice = |steps: Value| parallel("p", &[steps, json!([s("side")])]);
    let inner = |id: &str| -> [Value; 3] {
        let body = json!([s("b"), s("c")]);
        [parallel(id, &[body.clone(), json!([s("d")])]), forked(id, body.clone()), looped(id, body)]
    };
    let around = |step: Value, outer: &dyn Fn(Value) -> Value| {
        tasks(&flow(json!([s("a"), outer(json!([step, s("e")])), s("z")])))
    };
    let [first, second, third] = inner("q");
    // In a parallel.
    let expected = [
        "a:a<",
        "b:q_b0_s0<a",
        "c:q_b0_s1<b",
        "d:q_b1_s0<a",
        "e:p_b0_s1<c,d",
        "side:p_b1_s0<a",
        "z:z<e,side",
    ];
    assert_eq!(around(first, &twice), expected);
    let expected = [
        "a:a<",
        "q:p_b0_s0<a",
        "b:q_b0_s0<q",
        "c:q_b0_s1<b",
        "e:p_b0_s1<q,c",
        "side:p_b1_s0<a",
        "z:z<e,side",
    ];
    assert_eq!(around(second, &twice), expected);
    let expected = ["a:a<", "q:p_b0_s0<a", "e:p_b0_s1<q", "side:p_b1_s0<a", "z:z<e,side"];
    assert_eq!(around(third, &twice), expected);
    // In branches.
    let [first, second, third] = inner("q");
    let fork = |steps: Value| forked("if", steps);
    let expected =
        ["a:a<", "if:if<a", "b:q_b0_s0<if", "c:q_b0_s1<b", "d:q_b1_s0<if", "e:if_b0_s1<c,d", "z:z<if,e"];
    assert_eq!(around(first, &fork), expected);
    let expected =
        ["a:a<", "if:if<a", "q:if_b0_s0<if", "b:q_b0_s0<q", "c:q_b0_s1<b", "e:if_b0_s1<q,c", "z:z<if,e"];
    assert_eq!(around(second, &fork), expected);
    assert_eq!(around(third, &fork), ["a:a<", "if:if<a", "q:if_b0_s0<if", "e:if_b0_s1<q", "z:z<if,e"]);
    // In a loop, whose body is a plan of its own.
    for (step, last) in inner("q").into_iter().zip([vec!["c", "d"], vec!["c", "q"], vec!["q"]]) {
        let plan = plan(&flow(json!([s("a"), looped("l", json!([step, s("e")])), s("z")])));
        let NodeKind::Loop(l) = &node(&plan, "l").kind else { panic!() };
        assert_eq!(l.body.node("e").unwrap().1.n_in, last.len());
        assert!(last.iter().all(|key| targets(&l.body, key).contains(&"e".to_owned())), "{last:?}");
    }
}

#[test]
fn nesting_has_a_limit_that_is_named() {
    let deep = |n: usize, around: &dyn Fn(String, Value) -> Value| {
        flow((0..n).fold(json!([s("a")]), |steps, n| json!([around(format!("n{n}"), steps)])))
    };
    let in_loops = |n: usize| deep(n, &|id, steps| looped(&id, steps));
    assert_eq!(errors(&in_loops(16)), [""; 0]);
    has(&errors(&in_loops(40)), &["nested deeper than 32 levels"]);
    let in_parallels = |n: usize| deep(n, &|id, steps| parallel(&id, &[steps]));
    assert_eq!(tasks(&in_parallels(16)), ["a:n0_b0_s0<"]);
    has(&errors(&in_parallels(64)), &["nested deeper than 128 levels"]);
    let named = "parallels are nested deeper than 24 levels: n24 → n23 → n22 → … → n1 → n0";
    has(&errors(&in_parallels(25)), &[named, "@subflow/call"]);
    let text = serde_json::to_string(&in_parallels(40)).unwrap();
    let deep = compile(&text, Strictness::Strict).problems;
    has(&[deep[0].to_string()], &["128 levels", "steps[0].branches[0].steps[0]", "@subflow/call"]);
}

#[test]
fn an_expansion_shows_the_bodies_of_loops() {
    let inner = looped("in", json!([s("deep")]));
    let body = json!([parallel("p", &[json!([s("a")]), json!([s("b")])]), inner]);
    let expansion = expand(&flow(json!([s("first"), looped("each", body), s("last")])), Strictness::Strict);
    assert_eq!(expansion.problems, []);
    let shown = |tasks: &[ExpandedTask]| -> Vec<String> {
        tasks.iter().map(|task| format!("{}<{}", task.task_id, task.depend_on.join(","))).collect()
    };
    assert_eq!(shown(&expansion.tasks), ["first<", "each<first", "last<each"]);
    let each = &expansion.tasks[1].steps;
    assert_eq!(shown(each), ["p_b0_s0_i{turn}<", "p_b1_s0_i{turn}<", "in_i{turn}<a,b"]);
    assert_eq!(shown(&each[2].steps), ["deep_i{turn}_i{turn}<"]);
}

#[test]
fn a_task_has_its_own_id_in_every_turn() {
    let inner = looped("in", json!([s("deep")]));
    let body = json!([parallel("p", &[json!([s("a")])]), inner]);
    let plan = plan(&flow(json!([s("first"), looped("each", body)])));
    for (path, id) in [
        ("first", Some("first")),
        ("each", Some("each")),
        ("each/0/a", Some("p_b0_s0_i0")),
        ("each/12/a", Some("p_b0_s0_i12")),
        ("each/1/in", Some("in_i1")),
        ("each/1/in/3/deep", Some("deep_i1_i3")),
        ("each/1/gone", None),
    ] {
        let position = plan.position(&crate::path::NodePath::from(path));
        assert_eq!(position.and_then(|position| position.task_id()).as_deref(), id, "{path}");
    }
}

#[test]
fn an_id_that_another_step_has_in_a_turn_is_refused() {
    let clash = flow(json!([looped("each", json!([s("a")])), s("a_i0")]));
    has(&errors(&clash), &["$.steps[1].id", "the id `a_i0` is also that of step `a` in a turn"]);
    // Outside of loops, and with more numbers than loops, an id may end like that.
    assert_eq!(
        errors(&flow(json!([s("b"), s("b_i0"), looped("each", json!([s("a")])), s("a_i0_i1")]))),
        [""; 0]
    );
}

#[test]
fn a_call_has_a_priority_of_its_own() {
    let with = |operator: &str, settings: Value| {
        flow(
            json!([{"id": "a", "operator": operator, "parameters": {"target": "x", "value": 1}, "settings": settings}]),
        )
    };
    let plan = plan(&with("copy", json!({"priority": "high"})));
    assert_eq!(call(&plan, "a").priority, Some(Priority::High));
    let reason = "has no effect: this step makes no call";
    has(
        &errors(&with("@internal/assign", json!({"priority": "high"}))),
        &["$.steps[0].settings.priority", reason],
    );
    has(
        &errors(&with("@internal/assign", json!({"recheck_ms": 100}))),
        &["$.steps[0].settings.recheck_ms", reason],
    );
    has(&errors(&with("copy", json!({"priority": "urgent"}))), &["unknown priority `urgent`"]);
    let both = json!({"recheck_ms": 500, "until_reported": true});
    has(&errors(&with("copy", both)), &["$.steps[0].settings.until_reported", "not both"]);
}

#[test]
fn a_path_has_the_same_pattern_in_every_turn() {
    let plan = plan(&flow(json!([s("1"), looped("l", json!([s("2"), looped("m", json!([s("3")]))]))])));
    for (path, pattern) in [
        ("1", "1"),
        ("l", "l"),
        ("l/0", "l/*"),
        ("l/17/2", "l/*/2"),
        ("l/1/m/0/3", "l/*/m/*/3"),
        ("", ""),
        ("l/1/gone/4", "l/*/gone/4"),
        ("gone/1", "gone/1"),
    ] {
        assert_eq!(plan.pattern(&crate::path::NodePath::from(path)), pattern);
    }
    let graph = json!({"start": "f", "nodes": {"f": {"kind": "foreach", "service": "x", "prep": {"input_key": "all"}}},
        "edges": []});
    assert_eq!(super::plan(&graph).pattern(&crate::path::NodePath::from("f/12")), "f/*");
}
