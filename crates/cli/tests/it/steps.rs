//! Steps on a real server with real workers: parallel steps run at the same time, later steps wait, and parallel,
//! branches and loop work inside each other.

mod operations;
mod share;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_sdk::worker::{HandlerOutcome, ServiceCall};
use windlass_sdk::{Client, Worker};

use crate::http::{ends, get, start};
use crate::server::{PATIENCE, Server, publish};

/// The work of a worker: the node, its start and its end.
type Diary = Arc<Mutex<Vec<(String, Instant, Instant)>>>;

/// A worker that claims jobs. `copy` returns its input under `new_docid` and writes its diary; `meet` does the same, but
/// only when three calls are open at the same time, and fails if they never are.
fn worker(client: &Client) -> (DropGuard, Diary) {
    let (stop, diary, barrier) = (CancellationToken::new(), Diary::default(), Arc::new(Barrier::new(3)));
    let write = |diary: &Diary, call: &ServiceCall, begun: Instant| {
        let node = call.node.clone().unwrap_or_default();
        diary.lock().unwrap().push((node, begun, Instant::now()));
        HandlerOutcome::Done(json!({"new_docid": call.params["docid"], "node": call.node}))
    };
    let (of_copy, of_meet) = (diary.clone(), diary.clone());
    let copy = move |call: ServiceCall| {
        let diary = of_copy.clone();
        async move {
            let begun = Instant::now();
            tokio::time::sleep(Duration::from_millis(20)).await;
            write(&diary, &call, begun)
        }
    };
    let meet = move |call: ServiceCall| {
        let (diary, barrier) = (of_meet.clone(), barrier.clone());
        async move {
            let begun = Instant::now();
            match tokio::time::timeout(PATIENCE, barrier.wait()).await {
                Ok(_) => {
                    // Long enough to be seen in milliseconds.
                    tokio::time::sleep(Duration::from_millis(60)).await;
                    write(&diary, &call, begun)
                }
                Err(_) => HandlerOutcome::refused("the others never came"),
            }
        }
    };
    let worker = Worker::new(client.clone(), "copier")
        .grace(Duration::ZERO)
        .slots(8)
        .service("@anyshare/file/copy", copy.clone())
        .service("@anyshare/file/process", copy.clone())
        .service("@anyshare/file/merge", copy.clone())
        .service("copy", copy)
        .service("meet", meet);
    tokio::spawn(worker.run(stop.clone()));
    (stop.drop_guard(), diary)
}

fn step(id: &str, operator: &str) -> Value {
    json!({"id": id, "operator": operator, "parameters": {"docid": "{{__0.id}}"}})
}

fn parallel(id: &str, branches: &[Value]) -> Value {
    let branches: Vec<Value> = branches.iter().map(|steps| json!({"steps": steps})).collect();
    json!({"id": id, "operator": "@control/flow/parallel", "branches": branches})
}

fn trigger() -> Value {
    json!({"id": "0", "operator": "@anyshare-trigger/upload-file"})
}

/// Publishes steps, runs them to their end, and gives the run back.
async fn comes_to(client: &Client, name: &str, steps: &[Value], params: Value) -> Value {
    publish(client, name, json!({"steps": steps})).await;
    let run = start(client, name, params).await;
    ends(client, &run, "completed").await
}

/// Whether one node ended before the other began.
fn is_before(diary: &Diary, first: &str, second: &str) -> bool {
    let diary = diary.lock().unwrap();
    let ended = diary.iter().filter(|(node, ..)| node == first).map(|(_, _, ended)| *ended).max();
    let begun = diary.iter().filter(|(node, ..)| node == second).map(|(_, begun, _)| *begun).min();
    begun.expect("the second did something") >= ended.expect("the first did something")
}

#[tokio::test(flavor = "multi_thread")]
async fn three_branches_of_one_step_run_at_the_same_time() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let (_worker, diary) = worker(&client);
    let branches = ["1-1", "2-1", "3-1"].map(|id| json!([step(id, "meet")]));
    let steps = [trigger(), parallel("1", &branches), step("4", "copy")];
    let run = comes_to(&client, "simple", &steps, json!({"id": "gns://a"})).await;
    // They met, so they were there together; by the clock as well.
    let times: Vec<_> = diary.lock().unwrap().iter().take(3).cloned().collect();
    let last_begun = times.iter().map(|(_, begun, _)| *begun).max();
    let first_ended = times.iter().map(|(_, _, ended)| *ended).min();
    assert!(last_begun < first_ended, "{times:?}");
    assert!(["1-1", "2-1", "3-1"].iter().all(|node| is_before(&diary, node, "4")));
    assert_eq!(run["node_states"]["3-1"]["task_id"], "1_b2_s0", "{}", run["node_states"]);
    let stats = get(&client, &format!("/api/v1/runs/{}/stats", run["id"].as_str().unwrap())).await;
    assert_eq!((&stats["parallelism"]["max"], &stats["attempts"]), (&json!(3), &json!(4)), "{stats}");
    let of_three = stats["parallelism"]["distribution"].as_array().unwrap();
    assert!(
        of_three.iter().any(|level| level["from"] == 3 && level["share"].as_f64() > Some(0.0)),
        "{stats}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_of_several_steps_go_on_side_by_side_and_each_in_order() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let (_worker, diary) = worker(&client);
    let branch = |n: u32| json!((1..=3).map(|m| step(&format!("{n}-{m}"), "meet")).collect::<Vec<_>>());
    let steps = [trigger(), parallel("1", &[branch(1), branch(2), branch(3)]), step("4", "copy")];
    comes_to(&client, "complex", &steps, json!({"id": "x"})).await;
    for n in 1..=3 {
        for m in 1..3 {
            assert!(
                is_before(&diary, &format!("{n}-{m}"), &format!("{n}-{}", m + 1)),
                "branch {n}, step {m}"
            );
        }
        assert!(is_before(&diary, &format!("{n}-3"), "4"));
    }
    assert_eq!(diary.lock().unwrap().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_flow_runs_as_documented() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let (_worker, diary) = worker(&client);
    let merge = json!({"id": "4", "operator": "@anyshare/file/merge", "parameters": {"docid": {
        "a": "{{__1-1.new_docid}}", "b": "{{__2-1.new_docid}}", "c": "{{__3-2.new_docid}}"}}});
    let copy = |id: &str| json!({"id": id, "operator": "@anyshare/file/copy", "parameters": {"docid": format!("{{{{__0.id}}}}#{id}"), "ondup": 2}});
    let process = json!({"id": "3-2", "operator": "@anyshare/file/process", "parameters": {"docid": "{{__3-1.new_docid}}"}});
    let branches = [json!([copy("1-1")]), json!([copy("2-1")]), json!([copy("3-1"), process])];
    let steps = [
        trigger(),
        parallel("1", &branches),
        merge,
        json!({"id": "5", "operator": "@internal/return", "parameters": {"merged": "{{__4.new_docid}}"}}),
    ];
    let run = comes_to(&client, "documented", &steps, json!({"id": "gns://A"})).await;
    let merged = json!({"a": "gns://A#1-1", "b": "gns://A#2-1", "c": "gns://A#3-1"});
    assert_eq!(run["result"]["merged"], merged);
    assert!(
        is_before(&diary, "3-1", "3-2") && is_before(&diary, "3-2", "4") && is_before(&diary, "2-1", "4")
    );
}

fn cond(a: &str, b: &str) -> Value {
    json!([[{"operator": "@internal/cmp/string-eq", "parameters": {"a": a, "b": b}}]])
}

/// `steps` inside a container of this kind, which runs them once, or twice if it is a loop.
fn inside(kind: &str, id: &str, steps: &[Value]) -> Value {
    match kind {
        "parallel" => parallel(id, &[json!(steps), json!([step(&format!("{id}-beside"), "copy")])]),
        "branches" => json!({"id": id, "operator": "@control/flow/branches", "branches": [
            {"conditions": cond("{{__0.way}}", "yes"), "steps": steps},
            {"conditions": cond("{{__0.way}}", "no"), "steps": [step(&format!("{id}-not"), "copy")]}]}),
        _ => json!({"id": id, "operator": "@control/flow/loop", "parameters": {"mode": "limit", "limit": 2},
            "steps": steps}),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_works_inside_each_and_what_follows_waits_for_all_of_it() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let (_worker, diary) = worker(&client);
    let kinds = ["parallel", "branches", "loop"];
    for outer in kinds {
        for inner in kinds {
            diary.lock().unwrap().clear();
            let body = [inside(inner, "in", &[step("a", "copy"), step("b", "copy")]), step("c", "copy")];
            let steps = [trigger(), inside(outer, "out", &body), step("z", "copy")];
            let name = format!("{inner}-in-{outer}");
            let run = comes_to(&client, &name, &steps, json!({"way": "yes"})).await;
            let done: Vec<String> = diary.lock().unwrap().iter().map(|(node, ..)| node.clone()).collect();
            let last = |node: &str| node.rsplit('/').next().unwrap().to_owned();
            let n = |id: &str| done.iter().filter(|node| last(node) == id).count();
            let turns = |kind: &str| if kind == "loop" { 2 } else { 1 };
            assert_eq!(n("a"), turns(outer) * turns(inner), "{name}: {done:?}");
            assert_eq!((n("b"), n("c"), n("z")), (n("a"), turns(outer), 1), "{name}: {done:?}");
            assert_eq!((n("out-not"), n("in-not")), (0, 0), "{name}: {done:?}");
            assert_eq!(done.last().map(String::as_str), Some("z"), "{name}: {done:?}");
            // In every turn `b` comes after `a`, and `c` after both.
            let at = |id: &str| -> Vec<usize> {
                let places = done.iter().enumerate();
                places.filter(|(_, node)| last(node) == id).map(|(at, _)| at).collect()
            };
            assert!(at("a").into_iter().zip(at("b")).all(|(a, b)| a < b), "{name}: {done:?}");
            assert!(at("b").last() < at("c").last(), "{name}: {done:?}");
            assert_eq!(run["status"], "completed");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_after_a_parallel_see_what_its_branches_put_out() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let (_worker, _diary) = worker(&client);
    let branches = json!({"id": "if", "operator": "@control/flow/branches", "branches": [
        {"conditions": cond("{{__a.new_docid}}", "x"), "steps": [step("then", "copy")]},
        {"conditions": cond("{{__b.new_docid}}", "y"), "steps": [step("else", "copy")]}]});
    let steps = [
        trigger(),
        parallel("p", &[json!([step("a", "copy")]), json!([step("b", "copy")])]),
        branches,
        step("z", "copy"),
    ];
    let run = comes_to(&client, "then", &steps, json!({"id": "x"})).await;
    let status = |node: &str| run["node_states"][node]["status"].clone();
    assert_eq!(
        [status("then"), status("else"), status("z")],
        [json!("completed"), json!("skipped"), json!("completed")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_inside_a_parallel_goes_on_beside_the_other_branch() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let (_worker, diary) = worker(&client);
    let one = json!({"id": "each", "operator": "@control/flow/loop",
        "parameters": {"mode": "array", "array": "{{__0.names}}", "outputs": [{"key": "all", "value": "{{__turn.new_docid}}"}]},
        "steps": [{"id": "turn", "operator": "copy", "parameters": {"docid": "{{__each.value}}-{{__each.index}}"}}]});
    let out = json!({"id": "out", "operator": "@internal/return", "parameters": {"all": "{{__each.outputs.all}}", "side": "{{__side.new_docid}}"}});
    let steps = [trigger(), parallel("p", &[json!([one]), json!([step("side", "copy")])]), out];
    let run = comes_to(&client, "looping", &steps, json!({"id": "s", "names": ["a", "b", "c"]})).await;
    assert_eq!(run["result"], json!({"all": ["a-0", "b-1", "c-2"], "side": "s"}));
    assert!(
        is_before(&diary, "each/0/turn", "each/1/turn") && is_before(&diary, "each/1/turn", "each/2/turn")
    );
    let stats = get(&client, &format!("/api/v1/runs/{}/stats", run["id"].as_str().unwrap())).await;
    let nodes: Vec<&str> =
        stats["nodes"].as_array().unwrap().iter().map(|node| node["node"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["each/*/turn", "side"]);
    assert_eq!(stats["nodes"][0]["succeeded"], 3);
}
