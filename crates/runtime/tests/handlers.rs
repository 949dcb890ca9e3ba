//! Handlers that serve services in the server's own process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;
use windlass_conformance::backend::fresh;
use windlass_engine::counter::Fence;
use windlass_engine::definition::Strictness;
use windlass_engine::event::{Level, Start};
use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_engine::job::JobSpec;
use windlass_runtime::calls::function::{FunctionAnswer, Functions};
use windlass_runtime::runs::RunSpec;
use windlass_runtime::runs::flow::{FlowSpec, VersionSpec};
use windlass_runtime::{Runtime, Settings};
use windlass_store::flow::VersionStatus;
use windlass_store::log::LogsOf;
use windlass_store::run::RunStatus;
use windlass_store::worker::WorkerQuery;

const PATIENCE: Duration = Duration::from_secs(60);

async fn server(functions: Functions) -> Runtime {
    let settings = Settings { functions, ..Settings::default() };
    Runtime::start_up(fresh().await, settings).await.unwrap()
}

async fn start(server: &Runtime, node: Value) -> RunId {
    let flow = FlowSpec { name: Uuid::now_v7().to_string(), ..FlowSpec::default() };
    let version = VersionSpec {
        definition: json!({ "nodes": [node], "edges": [] }).to_string(),
        strictness: Strictness::Strict,
        number: None,
        status: VersionStatus::Published,
        note: String::new(),
    };
    let published = server.runs().publish_flow(flow, Some(version)).await.unwrap().published;
    let new = RunSpec {
        flow: published.flow,
        version: published.version.unwrap().0,
        request: None,
        labels: BTreeMap::new(),
        schedule: None,
        start: Start::default(),
    };
    server.runs().start(new).await.unwrap().run
}

async fn end(server: &Runtime, run: RunId) -> RunStatus {
    server.runs().wait_ended(run, PATIENCE).await.unwrap().unwrap()
}

async fn output(server: &Runtime, run: RunId) -> Value {
    let view = server.runs().view(run).await.unwrap().unwrap();
    view.state.root.node(0).output.as_deref().cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_handler_gets_the_job_of_any_worker_and_answers_in_three_ways() {
    let functions = Functions::built_in()
        .register("draw", |call| async move {
            assert!(call.run.is_some() && call.node.as_ref().is_some_and(|node| node.as_str() == "n"));
            assert_eq!((call.attempt, call.params.get("n")), (1, Some(&json!(3))));
            match call.memo.as_deref() {
                None => FunctionAnswer::Suspended {
                    memo: json!({ "key": call.key }),
                    recheck: Some(Duration::from_millis(100)),
                },
                Some(memo) => FunctionAnswer::Done(json!({ "same": memo["key"] == json!(call.key) })),
            }
        })
        .register("values", |_| async { Ok::<Value, String>(json!("plain")) })
        .register("refuses", |_| async { FunctionAnswer::refused("not mine") });
    let server = server(functions).await;
    let run = start(&server, json!({ "id": "n", "type": "draw", "config": { "n": 3 } })).await;
    assert_eq!(end(&server, run).await, RunStatus::Completed);
    assert_eq!(output(&server, run).await, json!({ "same": true }));
    let run = start(&server, json!({ "id": "n", "type": "values" })).await;
    assert_eq!(end(&server, run).await, RunStatus::Completed);
    assert_eq!(output(&server, run).await, json!("plain"));
    let run = start(&server, json!({ "id": "n", "type": "refuses", "retry": { "max": 5 } })).await;
    assert_eq!(end(&server, run).await, RunStatus::Failed);
    // It can be named as a function, too.
    let run = start(&server, json!({ "id": "n", "type": "values", "exec_type": "local_func" })).await;
    assert_eq!(end(&server, run).await, RunStatus::Completed);
    let workers = server.workers().list(WorkerQuery::default()).await.unwrap();
    assert_eq!(workers[0].services, ["draw", "refuses", "values"]);
}

#[tokio::test]
async fn a_handler_that_panics_or_fails_is_tried_again_as_the_node_says() {
    let n = Arc::new(AtomicUsize::new(0));
    let count = n.clone();
    let functions = Functions::built_in().register("shaky", move |call| {
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            match call.attempt {
                1 => panic!("the first time"),
                2 => FunctionAnswer::temporary("a moment, please"),
                3 => FunctionAnswer::failed("not yet"),
                attempt => FunctionAnswer::Done(json!(attempt)),
            }
        }
    });
    let server = server(functions).await;
    let run = start(&server, json!({ "id": "n", "type": "shaky", "retry": { "max": 2 } })).await;
    assert_eq!(end(&server, run).await, RunStatus::Completed);
    assert_eq!((output(&server, run).await, n.load(Ordering::Relaxed)), (json!(4), 4));
}

/// Tells when it is dropped.
struct Dropped(mpsc::UnboundedSender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _heard = self.0.send("dropped");
    }
}

#[tokio::test]
async fn a_cancelled_run_stops_its_handler() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let functions = Functions::built_in().register("forever", move |_| {
        let guard = Dropped(tell.clone());
        async move {
            let _begun = guard.0.send("begun");
            let _guard = guard;
            std::future::pending::<Value>().await
        }
    });
    let server = server(functions).await;
    let run = start(&server, json!({ "id": "n", "type": "forever" })).await;
    assert_eq!(told.recv().await, Some("begun"));
    server.runs().submit(run, Input::Cancel { reason: None, by: None }).await.unwrap();
    assert_eq!(tokio::time::timeout(PATIENCE, told.recv()).await.unwrap(), Some("dropped"));
    assert_eq!(end(&server, run).await, RunStatus::Canceled);
}

#[tokio::test]
async fn a_server_that_shuts_down_lets_its_handlers_end() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let functions = Functions::built_in().register("slow", move |_| {
        let tell = tell.clone();
        async move {
            let _begun = tell.send("begun");
            tokio::time::sleep(Duration::from_millis(300)).await;
            json!("in time")
        }
    });
    let server = server(functions).await;
    let run = start(&server, json!({ "id": "n", "type": "slow" })).await;
    assert_eq!(told.recv().await, Some("begun"));
    server.shut_down(PATIENCE).await;
    assert_eq!(output(&server, run).await, json!("in time"));
}

#[tokio::test]
async fn plain_jobs_of_the_name_are_handled_as_well() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let functions = Functions::built_in().register("mail", move |call| {
        let _heard = tell.send((call.run, call.input.clone()));
        async { json!(null) }
    });
    let server = server(functions).await;
    let spec = json!({ "queue": "default", "name": "mail", "payload": { "to": "ann" } });
    let spec: JobSpec = serde_json::from_value(spec).unwrap();
    server.jobs().create_job(spec).await.unwrap();
    let (run, input) = tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap();
    assert_eq!((run, &*input), (None, &json!({ "to": "ann" })));
}

#[tokio::test]
async fn the_log_of_a_handler_is_kept_with_its_end() {
    let functions = Functions::built_in().register("draw", |call| async move {
        call.logger.info("begun");
        call.logger.add(Level::Warn, "slow", json!({ "seconds": 4 }));
        json!(null)
    });
    let server = server(functions).await;
    for node in [
        json!({ "id": "n", "type": "draw" }),
        json!({ "id": "n", "type": "draw", "exec_type": "local_func" }),
    ] {
        let run = start(&server, node).await;
        assert_eq!(end(&server, run).await, RunStatus::Completed);
        let logs = server.store().logs(server.project(), run, LogsOf::Attempt(Fence(1))).await.unwrap();
        let said: Vec<_> =
            logs[0].lines.iter().map(|said| (said.level, said.message.as_str(), &said.data)).collect();
        assert_eq!(
            said,
            [(Level::Info, "begun", &Value::Null), (Level::Warn, "slow", &json!({ "seconds": 4 }))]
        );
    }
}

#[tokio::test]
async fn handlers_that_are_drained_rest_until_they_are_wanted_again() {
    let functions = Functions::built_in().register("draw", |_| async { json!(null) });
    let server = server(functions).await;
    let first = start(&server, json!({ "id": "n", "type": "draw" })).await;
    assert_eq!(end(&server, first).await, RunStatus::Completed);
    let id = loop {
        if let Some(row) = server.workers().list(WorkerQuery::default()).await.unwrap().pop() {
            break row.id;
        }
        tokio::task::yield_now().await;
    };
    assert!(server.workers().drain_worker(&id, true).await.unwrap());
    // A loop that does not rest would keep the only thread busy.
    let metrics = tokio::runtime::Handle::current().metrics();
    let watched = Duration::from_millis(500);
    let mut busy = watched;
    for _ in 0..10 {
        let before = metrics.worker_total_busy_duration(0);
        tokio::time::sleep(watched).await;
        busy = metrics.worker_total_busy_duration(0) - before;
        // A thread that has to wait for a core counts as busy: one quiet moment is enough.
        if busy < watched / 2 {
            break;
        }
    }
    assert!(busy < watched / 2, "busy for {busy:?} of {watched:?}");
    let run = start(&server, json!({ "id": "n", "type": "draw" })).await;
    server.workers().drain_worker(&id, false).await.unwrap();
    assert_eq!(end(&server, run).await, RunStatus::Completed);
}
