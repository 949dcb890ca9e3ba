use serde_json::json;

use super::*;
use crate::plan::{Compute, Exec, OnFailure, Prep, Routing, Temporary, Timer, VariableKind, When};
use crate::retry::Backoff;

fn digital_human() -> Value {
    json!({
        "nodes": [
            {"id": "start", "type": "start", "name": "开始"},
            {"id": "video_motion", "type": "video_motion", "name": "视频动作", "config": {"image": "$var.image"}},
            {"id": "audio_tts", "type": "audio_tts", "name": "语音合成", "config": {"text": "$var.text"}},
            {"id": "video_lipsync", "type": "video_lipsync", "name": "口型同步", "config": {
                "video": "$node.video_motion.output.urls[0]", "audio": "$node.audio_tts.output.urls[0]"}},
            {"id": "end", "type": "end", "name": "结束", "config": {"outputs": [
                {"name": "video", "source": "$node.video_lipsync.output.urls[0]"}]}}
        ],
        "edges": [
            {"source": "start", "target": "video_motion"}, {"source": "start", "target": "audio_tts"},
            {"source": "video_motion", "target": "video_lipsync"},
            {"source": "audio_tts", "target": "video_lipsync"}, {"source": "video_lipsync", "target": "end"}
        ],
        "variables": {"image": {"type": "url", "required": true}, "text": {"type": "string", "defaultValue": ""}}
    })
}

fn chain(nodes: Value, edges: Value) -> Value {
    json!({"nodes": nodes, "edges": edges})
}

#[test]
fn the_digital_human_compiles_without_a_word() {
    assert_eq!(problems(&digital_human()), [""; 0]);
    let plan = plan(&digital_human());
    assert_eq!(targets(&plan.root, "start"), ["video_motion", "audio_tts"]);
    assert_eq!(node(&plan, "video_lipsync").n_in, 2);
    let motion = call(&plan, "video_motion");
    assert_eq!((motion.exec.clone(), motion.service.as_str()), (Exec::Queue, "video_motion"));
    assert_eq!(motion.temporary, Temporary::Suspends);
    assert!(matches!(&node(&plan, "audio_tts").prep, Prep::Params(_)));
    assert!(
        matches!(&node(&plan, "end").kind, NodeKind::Compute(Compute::Outputs(list)) if list[0].0 == "video")
    );
    assert!(matches!(&node(&plan, "start").kind, NodeKind::Pass));
    assert_eq!(plan.variables["image"].kind, VariableKind::Url);
    assert!(plan.variables["image"].required && plan.variables["text"].default.is_some());
}

#[test]
fn every_own_type_and_graph_kind_has_its_meaning() {
    let value = json!({
        "on_failure": "continue",
        "nodes": [
            {"id": "s", "type": "start"},
            {"id": "set", "type": "variable_set", "config": {"variables": [{"name": "n", "value": 3}]}},
            {"id": "if", "type": "condition", "config": {"expression": "$var.n > 2"}},
            {"id": "nap", "type": "delay", "config": {"delaySeconds": 2}},
            {"id": "exec", "type": "executor", "exec_type": "http", "timeout_ms": 9,
             "retry": {"max": 4, "delay_ms": 5, "backoff": "exponential"},
             "config": {"service": "x", "params": {"a": "$var.n"}}},
            {"id": "wait", "type": "wait_event", "config": {"signal_key": "go", "timeout_ms": 7}},
            {"id": "job", "type": "render", "exec_type": "http", "cost": {"estimate": "$var.n"}}
        ],
        "edges": [
            {"source": "s", "target": "set"}, {"source": "set", "target": "if"},
            {"source": "if", "target": "nap", "condition": "true"},
            {"source": "if", "target": "exec", "condition": "false"},
            {"source": "if", "target": "wait", "condition": "$var.n === 3 && !false"},
            {"source": "exec", "target": "job", "action": "again"}
        ]
    });
    assert_eq!(problems(&value), [""; 0]);
    let plan = plan(&value);
    assert!(matches!(plan.root.routing, Routing::Join { on_failure: OnFailure::Continue }));
    let edges = &node(&plan, "if").out;
    assert!(matches!(&edges[0].when, When::Action(action) if action == "true"));
    assert!(matches!(&edges[1].when, When::Action(action) if action == "false"));
    assert!(matches!(&edges[2].when, When::If(_)));
    assert!(matches!(&node(&plan, "exec").out[0].when, When::Action(action) if action == "again"));
    assert!(matches!(&node(&plan, "if").kind, NodeKind::Compute(Compute::Test(_))));
    assert!(matches!(&node(&plan, "nap").kind, NodeKind::Timer(Timer::Seconds(_))));
    let exec = call(&plan, "exec");
    assert_eq!((exec.exec.clone(), exec.timeout_ms, exec.retry.max), (Exec::Http, 9, 4));
    assert_eq!((exec.retry.backoff, exec.temporary), (Backoff::Exponential, Temporary::Suspends));
    assert!(exec.retry.jitter, "growing delays are spread");
    assert!(matches!(&node(&plan, "exec").prep, Prep::Params(_)));
    assert_eq!(node(&plan, "wait").timeout_ms, 7);
    assert!(call(&plan, "job").cost.is_some());
}

#[test]
fn a_cycle_is_named_node_by_node() {
    let nodes = json!([{"id": "a", "type": "x"}, {"id": "b", "type": "x"}, {"id": "c", "type": "x"},
        {"id": "d", "type": "x"}, {"id": "e", "type": "x"}]);
    let edges = json!([
        {"source": "a", "target": "b"}, {"source": "b", "target": "c"}, {"source": "c", "target": "a"},
        {"source": "c", "target": "d"}, {"source": "e", "target": "e"}
    ]);
    let found = errors(&chain(nodes, edges));
    assert_eq!(found, ["$.edges[4]: error: cycle: e → e", "$.nodes[0]: error: cycle: a → b → c → a"]);
}

#[test]
fn every_cycle_apart_from_the_others_is_reported() {
    let nodes: Vec<Value> = "abcdef".chars().map(|c| json!({"id": c.to_string(), "type": "x"})).collect();
    let edges = json!([
        {"source": "a", "target": "b"}, {"source": "b", "target": "a"}, {"source": "b", "target": "c"},
        {"source": "c", "target": "d"}, {"source": "d", "target": "c"}, {"source": "d", "target": "e"}
    ]);
    let found = errors(&chain(json!(nodes), edges));
    assert_eq!(found.len(), 2, "{found:?}");
    has(&found, &["a → b → a"]);
    has(&found, &["c → d → c"]);
}

#[test]
fn wrong_edges_and_ids_are_errors() {
    let value = json!({
        "nodes": [{"id": "fetch", "type": "x"}, {"id": "keep", "type": "x"}, {"id": "keep", "type": "y"},
            {"type": "x"}, {"id": "t"}, {"id": 7, "type": "x"}],
        "edges": [
            {"source": "fetch", "target": "keep"}, {"source": "fetch", "target": "keep"},
            {"source": "fecth", "target": "keep"}, {"source": "fetch"},
            {"source": "fetch", "target": "t", "condition": "1 +", "x": 1},
            {"source": "fetch", "target": "t", "condition": "true", "action": "a"},
            {"source": 7, "target": "keep"}
        ]
    });
    let found = errors(&value);
    has(&found, &["$.nodes[2].id", "taken by $.nodes[1]"]);
    has(&found, &["$.nodes[3].id", "needs a name"]);
    has(&found, &["$.nodes[4].type", "missing"]);
    has(&found, &["$.edges[1]", "the same edge as $.edges[0]"]);
    has(&found, &["$.edges[2].source", "did you mean `fetch`?"]);
    has(&found, &["$.edges[3].target", "needs a target"]);
    has(&found, &["$.edges[4].condition"]);
    has(&found, &["$.edges[4].x", "unknown field"]);
    has(&found, &["$.edges[5].condition", "not both"]);
    assert_eq!(found.len(), 9, "{found:#?}");
}

#[test]
fn references_must_name_nodes_that_come_before() {
    let value = json!({
        "nodes": [
            {"id": "s", "type": "start"},
            {"id": "motion", "type": "m", "config": {"a": {"b": ["$node.motoin.output"]}}},
            {"id": "voice", "type": "v", "config": {"x": "$node.motion.output", "y": "$node.s.output"}},
            {"id": "self", "type": "v", "config": {"x": "$node.self.output"}}
        ],
        "edges": [
            {"source": "s", "target": "motion"}, {"source": "s", "target": "voice"},
            {"source": "voice", "target": "self", "condition": "$node.voice.output.ok && $node.motion.output.ok"},
            {"source": "s", "target": "self", "condition": "$node.nobody.output == 1"}
        ]
    });
    let found = problems(&value);
    has(&found, &["$.nodes[1]: error: reference to unknown node `motoin`", "did you mean `motion`?"]);
    has(&found, &["$.edges[3].condition: error: reference to unknown node `nobody`"]);
    has(&found, &["$.nodes[2]: error: `motion` need not have run before"]);
    has(&found, &["$.nodes[3]: error: a node cannot read its own result"]);
    assert_eq!(found.len(), 5, "{found:#?}");
}

#[test]
fn later_nodes_cannot_be_read_and_parallel_nodes_only_for_their_status() {
    let read = |what: &str| {
        json!({
            "nodes": [
                {"id": "a", "type": "x", "config": {"v": what}}, {"id": "b", "type": "x"}, {"id": "c", "type": "x"}
            ],
            "edges": [{"source": "a", "target": "b"}]
        })
    };
    let found = problems(&read("$node.b.error"));
    has(&found, &["$.nodes[0]: error: `b` cannot have run before this node", "turn the edges"]);
    has(&problems(&read("$node.c.output")), &["$.nodes[0]: error: `c` need not have run before"]);
    has(&problems(&read("$node.c.status")), &["$.nodes[0]: warning: `c` need not have run before"]);
    // Versions published before this became an error still compile.
    assert!(compile_value(read("$node.b.output"), Strictness::Lenient).plan.is_some());
}

#[test]
fn how_often_a_call_is_asked_again_has_bounds() {
    let with =
        |ms: serde_json::Value| json!({"nodes": [{"id": "a", "type": "x", "recheck_ms": ms}], "edges": []});
    for bad in [json!(0), json!(99), json!(86_400_001), json!(-1), json!(1.5), json!("soon")] {
        has(
            &problems(&with(bad)),
            &["$.nodes[0].recheck_ms: error: must be a whole number from 100 to 86400000"],
        );
    }
    assert!(problems(&with(json!(100))).is_empty());
}

#[test]
fn writers_side_by_side_are_warned_of() {
    let set =
        |id: &str, name: &str| json!({"id": id, "type": "variable_set", "config": {"variables": {name: 1}}});
    let nodes =
        json!([{"id": "s", "type": "start"}, set("a", "x"), set("b", "x"), set("c", "y"), set("d", "y")]);
    let edges = json!([
        {"source": "s", "target": "a"}, {"source": "s", "target": "b"},
        {"source": "a", "target": "c"}, {"source": "c", "target": "d"}
    ]);
    let found = problems(&chain(nodes, edges));
    assert_eq!(found.len(), 1, "{found:?}");
    has(&found, &["warning", "both write `x`"]);
}

#[test]
fn writers_of_which_one_is_decided_for_are_fine() {
    let set = |id: &str| json!({"id": id, "type": "variable_set", "config": {"variables": {"x": 1}}});
    let nodes =
        json!([{"id": "if", "type": "condition", "config": {"expression": "true"}}, set("a"), set("b")]);
    let decided = json!([{"source": "if", "target": "a", "condition": "true"},
        {"source": "if", "target": "b", "condition": "false"}]);
    assert_eq!(problems(&chain(nodes.clone(), decided)), [""; 0]);
    let both = json!([{"source": "if", "target": "a", "condition": "true"},
        {"source": "if", "target": "b", "condition": "true"}]);
    has(&problems(&chain(nodes, both)), &["both write `x`"]);
}

#[test]
fn variables_are_checked() {
    let value = json!({
        "nodes": [{"id": "a", "type": "svc", "config": {"p": "$var.promt", "q": "$var.n"}}], "edges": [],
        "variables": {
            "prompt": {"type": "string", "defaultValue": 5}, "n": {"type": "numbr"}, "_error": {"type": "array"},
            "ok": {"type": "object", "default": {}}, "none": {}
        }
    });
    let found = problems(&value);
    has(&found, &["$.variables.prompt.defaultValue", "type string", "a number"]);
    has(&found, &["$.variables.n.type", "did you mean `number`?"]);
    has(&found, &["$.variables._error", "reserved"]);
    has(&found, &["$.variables.none.type", "missing"]);
    has(&found, &["$.nodes[0]: warning: nothing writes `promt`", "did you mean `prompt`?"]);
    assert_eq!(found.len(), 5, "{found:#?}");
}

#[test]
fn slips_in_types_and_islands_are_warned_of() {
    let nodes =
        json!([{"id": "a", "type": "conditon"}, {"id": "b", "type": "start"}, {"id": "c", "type": "end"}]);
    let found = problems(&chain(nodes, json!([{"source": "b", "target": "c"}])));
    has(&found, &["$.nodes[0].type: warning", "did you mean `condition`?"]);
    has(&found, &["$.nodes[0]: warning: no edge leads"]);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn text_that_looks_like_a_reference_is_warned_of() {
    let read = |text: &str| json!({"nodes": [{"id": "a", "type": "x", "config": {"v": [{"w": text}]}}], "edges": []});
    let found = problems(&read("$nodes.a.output"));
    has(&found, &["$.nodes[0].config: warning: `$nodes.a.output` is no reference", "did you mean `node`?"]);
    for plain in ["$5.00 each", "$", "$.x", "$HOME/film.mp4", "$var.x"] {
        assert_eq!(problems(&read(plain)), [""; 0], "{plain}");
    }
}

#[test]
fn own_types_need_their_configuration() {
    let nodes = json!([
        {"id": "a", "type": "condition"}, {"id": "b", "type": "delay", "config": {"delaySeconds": "soon"}},
        {"id": "c", "type": "variable_set"}, {"id": "d", "type": "x", "config": []},
        {"id": "e", "type": "end", "config": {"outputs": [{"source": 1}]}}, {"id": "f", "type": "delay"},
        {"id": "g", "type": "delay", "config": {"delaySeconds": "$var.n"}}
    ]);
    let found = errors(&chain(nodes, json!([])));
    has(&found, &["$.nodes[0].config.expression", "missing"]);
    has(&found, &["$.nodes[1].config.delaySeconds", "a number from 0"]);
    has(&found, &["$.nodes[2].config.variables", "name the variables"]);
    has(&found, &["$.nodes[3].config", "must be an object"]);
    has(&found, &["$.nodes[4].config.outputs[0].name", "missing"]);
    has(&found, &["$.nodes[5].config.delaySeconds", "missing"]);
    assert_eq!(found.len(), 6, "{found:#?}");
}
