//! Runs on a real store, from their start to their end, across restarts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::OnceCell;
use windlass_conformance::backend::{Backend, fresh};
use windlass_engine::counter::Seq;
use windlass_engine::definition::Strictness;
use windlass_engine::event::{InsufficientFundsAction, Start};
use windlass_engine::id::{FlowId, RunId, VersionId};
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::money::Amount;
use windlass_runtime::calls::function::Functions;
use windlass_runtime::runs::flow::{FlowSpec, VersionSpec};
use windlass_runtime::runs::{RunSpec, StartError};
use windlass_runtime::{Runtime, Settings, SubmitError};
use windlass_store::Store;
use windlass_store::flow::VersionStatus;
use windlass_store::run::{Request, RunStatus, Since};
use windlass_store::sqlite::{Durability, Sqlite};

const PATIENCE: Duration = Duration::from_secs(60);

struct Server {
    runtime: Runtime,
}

struct Published {
    flow: FlowId,
    version: VersionId,
}

impl Server {
    async fn on(store: Arc<dyn Store>, functions: Functions) -> Self {
        let settings = Settings { functions, ..Settings::default() };
        Server { runtime: Runtime::start_up(store, settings).await.unwrap() }
    }

    async fn new() -> Self {
        Self::on(fresh().await, Functions::built_in()).await
    }

    async fn publish(&self, name: &str, definition: Value) -> Published {
        let flow = FlowSpec { name: name.to_owned(), ..FlowSpec::default() };
        let version = VersionSpec {
            definition: definition.to_string(),
            strictness: Strictness::Strict,
            number: None,
            status: VersionStatus::Published,
            note: String::new(),
        };
        let done = self.runtime.runs().publish_flow(flow, Some(version)).await.unwrap().published;
        Published { flow: done.flow, version: done.version.unwrap().0 }
    }

    async fn start(&self, of: &Published, params: Value) -> RunId {
        self.runtime.runs().start(new_run(of, params, None)).await.unwrap().run
    }

    async fn end(&self, run: RunId) -> RunStatus {
        self.runtime.runs().wait_ended(run, PATIENCE).await.unwrap().unwrap()
    }

    async fn shared(&self, run: RunId) -> Value {
        let row = self.runtime.runs().view(run).await.unwrap().unwrap().row;
        (*row.projection.shared.unwrap()).clone()
    }

    /// Waits until the run has this status.
    async fn reaches(&self, run: RunId, status: RunStatus) {
        let begun = Instant::now();
        loop {
            let found = self.runtime.runs().view(run).await.unwrap().unwrap().row.projection.status;
            if found == status {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{run} is {found:?}, not {status:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn new_run(of: &Published, params: Value, request: Option<Request>) -> RunSpec {
    let Value::Object(params) = params else { panic!("params are an object") };
    RunSpec {
        flow: of.flow,
        version: of.version,
        request,
        labels: BTreeMap::new(),
        schedule: None,
        start: Start { params: params.into(), ..Start::default() },
    }
}

fn chain(names: &[&str], func: &str) -> Value {
    let node = |(at, name): (usize, &&str)| {
        let input = if at == 0 { "$params.x".to_owned() } else { names[at - 1].to_owned() };
        let node = json!({
            "exec_type": "local_func", "func": func, "params": {"mul": 2},
            "prep": {"input_key": input}, "post": {"output_key": name},
        });
        ((*name).to_owned(), node)
    };
    let edges: Vec<Value> = names.windows(2).map(|pair| json!({"from": pair[0], "to": pair[1]})).collect();
    let nodes: serde_json::Map<String, Value> = names.iter().enumerate().map(node).collect();
    json!({"start": names[0], "nodes": nodes, "edges": edges})
}

/// A directory of its own, deleted at the end, or a database.
struct StoreFile(PathBuf, OnceCell<Arc<dyn Store>>);

impl StoreFile {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        StoreFile(path, OnceCell::new())
    }

    async fn store(&self) -> Arc<dyn Store> {
        if Backend::chosen() != Backend::Sqlite {
            return self.1.get_or_init(fresh).await.clone();
        }
        let begun = Instant::now();
        // The one before may still be about to close the file.
        loop {
            match Sqlite::open(self.0.join("store.db"), Durability::Fast) {
                Ok(store) => return Arc::new(store),
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for StoreFile {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[tokio::test]
async fn three_functions_one_after_the_other() {
    let server = Server::new().await;
    let flow = server.publish("chain", chain(&["a", "b", "c"], "mul")).await;
    let run = server.start(&flow, json!({"x": 5})).await;
    assert_eq!(server.end(run).await, RunStatus::Completed);
    assert_eq!(server.shared(run).await, json!({"a": 10, "b": 20, "c": 40}));
}

#[tokio::test]
async fn every_step_is_durable_before_the_next_begins() {
    let server = Server::new().await;
    let flow = server.publish("chain", chain(&["a", "b", "c"], "mul")).await;
    let run = server.start(&flow, json!({"x": 5})).await;
    server.end(run).await;
    let journal = server
        .runtime
        .store()
        .journal(server.runtime.project(), run, Since::Entry(Seq::ZERO), 100)
        .await
        .unwrap();
    assert_eq!(journal.entries.len(), 4, "one entry for the start and one for the end of each call");
}

#[tokio::test]
async fn a_hundred_runs_at_once_all_end() {
    let server = Server::new().await;
    let flow = server.publish("chain", chain(&["a", "b", "c"], "mul")).await;
    let mut runs = Vec::new();
    for x in 0..100 {
        runs.push(server.start(&flow, json!({"x": x})).await);
    }
    for (x, run) in (0..100).zip(runs) {
        assert_eq!(server.end(run).await, RunStatus::Completed);
        assert_eq!(server.shared(run).await["c"], json!(x * 8));
    }
}

#[tokio::test]
async fn the_same_request_makes_one_run() {
    let server = Server::new().await;
    let flow = server.publish("chain", chain(&["a"], "mul")).await;
    let request = |digest: &str| Request { id: "r1".to_owned(), digest: digest.to_owned() };
    let first =
        server.runtime.runs().start(new_run(&flow, json!({"x": 1}), Some(request("d")))).await.unwrap();
    let again =
        server.runtime.runs().start(new_run(&flow, json!({"x": 1}), Some(request("d")))).await.unwrap();
    assert_eq!((first.created, again.created), (true, false));
    assert_eq!(first.run, again.run);
    let other = server.runtime.runs().start(new_run(&flow, json!({"x": 2}), Some(request("e")))).await;
    assert!(matches!(other, Err(StartError::RequestTaken { existing, .. }) if existing == first.run));
}

#[tokio::test]
async fn a_function_that_panics_fails_its_node() {
    let functions = Functions::built_in().with_quick("boom", |_| panic!("no"));
    let server = Server::on(fresh().await, functions).await;
    let flow = server.publish("boom", chain(&["a"], "boom")).await;
    let run = server.start(&flow, json!({"x": 1})).await;
    assert_eq!(server.end(run).await, RunStatus::Failed);
}

#[tokio::test]
async fn an_unknown_function_fails_its_node_with_its_name() {
    let server = Server::new().await;
    let flow = server.publish("none", chain(&["a"], "nonesuch")).await;
    let run = server.start(&flow, json!({"x": 1})).await;
    assert_eq!(server.end(run).await, RunStatus::Failed);
    let view = server.runtime.runs().view(run).await.unwrap().unwrap();
    assert!(view.row.projection.error.unwrap().fault.message.contains("nonesuch"));
}

fn timer(ms: u64) -> Value {
    json!({"start": "t", "nodes": {"t": {"kind": "timer", "params": {"delay_ms": ms}}}})
}

#[tokio::test]
async fn a_timer_is_never_early_and_hardly_late() {
    let server = Server::new().await;
    let flow = server.publish("timer", timer(150)).await;
    let begun = Instant::now();
    let run = server.start(&flow, json!({})).await;
    assert_eq!(server.end(run).await, RunStatus::Completed);
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(149), "{took:?}");
    // Without a timer, the next poll would find it half a minute later.
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test]
async fn a_timer_that_passed_while_no_server_ran_fires_late() {
    let place = StoreFile::new("timer");
    let server = Server::on(place.store().await, Functions::built_in()).await;
    let flow = server.publish("timer", timer(300)).await;
    let run = server.start(&flow, json!({})).await;
    server.runtime.shut_down(Duration::from_secs(1)).await;
    drop(server);
    tokio::time::sleep(Duration::from_millis(400)).await;
    let server = Server::on(place.store().await, Functions::built_in()).await;
    assert_eq!(server.end(run).await, RunStatus::Completed);
}

#[tokio::test]
async fn a_call_that_died_with_its_server_is_made_again() {
    let place = StoreFile::new("recovery");
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let stuck = Functions::built_in().with_async("work", move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<CallOutcome>()
    });
    let server = Server::on(place.store().await, stuck).await;
    let flow = server.publish("work", chain(&["a"], "work")).await;
    let run = server.start(&flow, json!({"x": 1})).await;
    while calls.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    server.runtime.shut_down(Duration::ZERO).await;
    drop(server);

    let works = Functions::built_in().with_quick("work", |call| CallOutcome::Done(call.input.clone()));
    let server = Server::on(place.store().await, works).await;
    assert_eq!(server.end(run).await, RunStatus::Completed);
    assert_eq!(server.shared(run).await["a"], json!(1));
}

#[tokio::test]
async fn twenty_runs_that_wait_do_not_delay_another() {
    let server = Server::new().await;
    let waits =
        json!({"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "$shared.go"}}}});
    let waiting = server.publish("wait", waits).await;
    let quick = server.publish("chain", chain(&["a", "b", "c"], "mul")).await;
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(server.start(&waiting, json!({})).await);
    }
    let begun = Instant::now();
    let run = server.start(&quick, json!({"x": 1})).await;
    assert_eq!(server.end(run).await, RunStatus::Completed);
    // The others wait for ever.
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    for run in runs {
        let go = Input::Signal { id: None, key: "go".to_owned(), value: json!(true), by: None };
        server.runtime.runs().submit(run, go).await.unwrap();
        assert_eq!(server.end(run).await, RunStatus::Completed);
    }
}

#[tokio::test]
async fn an_unknown_run_and_an_ended_one_say_so() {
    let server = Server::new().await;
    let unknown: RunId = "run_00000000000000000000000000000007".parse().unwrap();
    let told = server.runtime.runs().submit(unknown, Input::Pause).await;
    assert!(matches!(told, Err(SubmitError::UnknownRun(id)) if id == unknown));
    let flow = server.publish("chain", chain(&["a"], "mul")).await;
    let run = server.start(&flow, json!({"x": 1})).await;
    server.end(run).await;
    assert!(matches!(server.runtime.runs().submit(run, Input::Pause).await, Err(SubmitError::Refused(_))));
}

#[tokio::test]
async fn cancel_reaches_a_call_that_is_being_made() {
    let functions = Functions::built_in().with_async("forever", |_| std::future::pending::<CallOutcome>());
    let server = Server::on(fresh().await, functions).await;
    let flow = server.publish("forever", chain(&["a"], "forever")).await;
    let run = server.start(&flow, json!({"x": 1})).await;
    server.reaches(run, RunStatus::Running).await;
    let begun = Instant::now();
    server.runtime.runs().submit(run, Input::Cancel { reason: None, by: None }).await.unwrap();
    assert_eq!(server.end(run).await, RunStatus::Canceled);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_flow_calls_another_and_gets_its_result() {
    let server = Server::new().await;
    server.publish("inner", chain(&["a", "b"], "mul")).await;
    let outer = json!({"start": "call", "nodes": {
        "call": {"kind": "flow_ref", "flow": "inner", "params": {"x": 3}, "post": {"output_key": "got"}},
    }});
    let outer = server.publish("outer", outer).await;
    let run = server.start(&outer, json!({})).await;
    assert_eq!(server.end(run).await, RunStatus::Completed);
    assert_eq!(server.shared(run).await["got"], json!({"a": 6, "b": 12}));
}

#[tokio::test]
async fn a_flow_that_calls_one_that_is_not_there_fails_with_its_name() {
    let server = Server::new().await;
    let outer = json!({"start": "call", "nodes": {"call": {"kind": "flow_ref", "flow": "nonesuch"}}});
    let outer = server.publish("outer", outer).await;
    let run = server.start(&outer, json!({})).await;
    assert_eq!(server.end(run).await, RunStatus::Failed);
    let view = server.runtime.runs().view(run).await.unwrap().unwrap();
    assert!(view.row.projection.error.unwrap().fault.message.contains("nonesuch"));
}

#[tokio::test]
async fn cancelling_a_run_cancels_its_child() {
    let server = Server::new().await;
    let inner = server.publish("inner", timer(60_000)).await;
    let outer = json!({"start": "call", "nodes": {"call": {"kind": "flow_ref", "flow": "inner"}}});
    let outer = server.publish("outer", outer).await;
    let run = server.start(&outer, json!({})).await;
    let child = loop {
        let query = windlass_store::run::RunQuery { flow: Some(inner.flow), ..Default::default() };
        if let Some(row) =
            server.runtime.store().runs(server.runtime.project(), query).await.unwrap().items.first()
        {
            break row.id;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    server.runtime.runs().submit(run, Input::Cancel { reason: None, by: None }).await.unwrap();
    assert_eq!(server.end(run).await, RunStatus::Canceled);
    assert_eq!(server.end(child).await, RunStatus::Canceled);
}

#[tokio::test]
async fn a_large_fan_is_folded_from_a_snapshot_to_the_same_state() {
    let server = Server::new().await;
    let fan = json!({"start": "f", "nodes": {"f": {
        "kind": "foreach", "exec_type": "local_func", "func": "mul", "params": {"mul": 2},
        "prep": {"input_key": "$params.items"}, "post": {"output_key": "out"},
        "parallel_mode": "concurrent", "max_parallel": 100,
    }, "t": {"kind": "wait_event", "params": {"signal_key": "$shared.go"}}}, "edges": [{"from": "f", "to": "t"}]});
    let flow = server.publish("fan", fan).await;
    let items: Vec<u32> = (0..5_000).collect();
    let run = server.start(&flow, json!({"items": items})).await;
    server.reaches(run, RunStatus::Waiting).await;
    let view = server.runtime.runs().view(run).await.unwrap().unwrap();
    let all = server.runtime.runs().view_at(run, view.row.len).await.unwrap().unwrap();
    assert_eq!(serde_json::to_value(&*view.state).unwrap(), serde_json::to_value(&*all.state).unwrap());
    let newest =
        server.runtime.store().journal(server.runtime.project(), run, Since::Snapshot, 10_000).await.unwrap();
    assert!(newest.snapshot.is_some(), "a journal this long has a snapshot");
}

/// A choice that does not find a word in a text and goes back to itself.
fn spin() -> Value {
    json!({"start": "c", "edges": [{"from": "c", "to": "c"}], "nodes": {"c": {
        "kind": "choice", "choice_cases": [{"action": "found", "expr": {"contains": ["$params.text", "needle"]}}],
    }}})
}

#[tokio::test]
async fn a_server_that_drains_leaves_a_spinning_run_to_the_next() {
    let place = StoreFile::new("spin");
    let server = Server::on(place.store().await, Functions::built_in()).await;
    let flow = server.publish("spin", spin()).await;
    let run = server.start(&flow, json!({"text": "hay"})).await;
    let state = server.runtime.runs().view(run).await.unwrap().unwrap().row.projection;
    assert_eq!((state.status, state.wake_at), (RunStatus::Running, Some(state.updated_at)));
    let begun = Instant::now();
    server.runtime.shut_down(PATIENCE).await;
    assert!(begun.elapsed() < PATIENCE / 2, "it drained for {:?}", begun.elapsed());
    drop(server);
    let server = Server::on(place.store().await, Functions::built_in()).await;
    assert_eq!(server.end(run).await, RunStatus::Failed);
    let view = server.runtime.runs().view(run).await.unwrap().unwrap();
    assert_eq!(view.state.entries, windlass_engine::limits::VISITS);
}

#[tokio::test]
async fn a_spinning_run_takes_other_inputs_between_two_slices() {
    let server = Server::new().await;
    let flow = server.publish("spin", spin()).await;
    let run = server.start(&flow, json!({"text": "x".repeat(1 << 20)})).await;
    let runs = server.runtime.runs();
    assert_eq!(runs.submit(run, Input::Pause).await.unwrap().status, RunStatus::Paused);
    let entries = async || runs.view(run).await.unwrap().unwrap().state.entries;
    let before = entries().await;
    runs.submit(run, Input::Step).await.unwrap();
    assert_eq!(entries().await, before + 1);
    assert_eq!(runs.submit(run, Input::Resume).await.unwrap().status, RunStatus::Running);
    let cancel = Input::Cancel { reason: None, by: None };
    assert_eq!(runs.submit(run, cancel).await.unwrap().status, RunStatus::Canceled);
    assert!(entries().await < 1_000);
}

#[tokio::test]
async fn a_function_with_a_large_input_does_not_keep_the_actors_thread() {
    let threads = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = threads.clone();
    let functions = Functions::built_in().with_quick("note", move |call| {
        noted.lock().unwrap().push(std::thread::current().id());
        CallOutcome::Done(call.input.clone())
    });
    let server = Server::on(fresh().await, functions).await;
    let flow = server.publish("note", chain(&["a"], "note")).await;
    for text in ["small".to_owned(), "x".repeat(1 << 20)] {
        let run = server.start(&flow, json!({ "x": text })).await;
        assert_eq!(server.end(run).await, RunStatus::Completed);
    }
    // All actors of this test share one thread.
    let here = std::thread::current().id();
    let are_here: Vec<bool> = threads.lock().unwrap().iter().map(|thread| *thread == here).collect();
    assert_eq!(are_here, [true, false]);
}

#[tokio::test]
async fn a_slice_that_an_account_cannot_pay_for_is_decided_again() {
    let server = Server::new().await;
    let fan = json!({"start": "f", "edges": [], "nodes": {"f": {
        "kind": "foreach", "exec_type": "local_func", "func": "echo", "parallel_mode": "concurrent", "cost": 1,
        "prep": {"input_key": "$params.items"}, "failure_strategy": "continue",
    }}});
    let flow = server.publish("paid", fan).await;
    server.runtime.money().open_account("acme", None).await.unwrap();
    server.runtime.money().deposit("acme", Amount(2_500), "for some").await.unwrap();
    let mut new = new_run(&flow, json!({"items": vec![0; 4_000]}), None);
    new.start.account = Some("acme".to_owned());
    new.start.on_short_balance = InsufficientFundsAction::Fail;
    let run = server.runtime.runs().start(new).await.unwrap().run;
    assert_eq!(server.end(run).await, RunStatus::Completed);
    assert_eq!(server.runtime.money().account("acme").await.unwrap().balance, Amount(0));
    assert_eq!(server.runtime.runs().view(run).await.unwrap().unwrap().state.fence.0, 2_500);
}
