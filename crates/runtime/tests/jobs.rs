//! Calls of runs that workers come for: from the claim to the end of the run, on a real store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_conformance::backend::fresh;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::definition::Strictness;
use windlass_engine::event::Start;
use windlass_engine::id::RunId;
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_runtime::calls::log::Log;
use windlass_runtime::jobs::{ClaimRequest, ClaimVerdict, JobEnd, LeasedJob};
use windlass_runtime::runs::RunSpec;
use windlass_runtime::runs::flow::{FlowSpec, VersionSpec};
use windlass_runtime::{Runtime, Settings};
use windlass_store::flow::VersionStatus;
use windlass_store::job::JobStatus;
use windlass_store::log::LogsOf;
use windlass_store::run::RunStatus;

/// Longer than anything takes that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(30);

async fn server() -> Runtime {
    let settings = Settings::default();
    Runtime::start_up(fresh().await, settings).await.unwrap()
}

/// Nodes in a row, each of which a worker of the service `work` comes for.
fn row_of(names: &[&str], more: &Value) -> Value {
    let node = |(at, name): (usize, &&str)| {
        let input = if at == 0 { "$params.x".to_owned() } else { names[at - 1].to_owned() };
        let mut node = json!({
            "service": "work", "exec_type": "queue", "params": {"mul": 2},
            "prep": {"input_key": input}, "post": {"output_key": name},
        });
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ((*name).to_owned(), node)
    };
    let edges: Vec<Value> = names.windows(2).map(|pair| json!({"from": pair[0], "to": pair[1]})).collect();
    let nodes: serde_json::Map<String, Value> = names.iter().enumerate().map(node).collect();
    json!({"start": names[0], "nodes": nodes, "edges": edges})
}

async fn start(server: &Runtime, definition: Value, n: i64) -> Vec<RunId> {
    let flow = FlowSpec { name: "flow".to_owned(), ..FlowSpec::default() };
    let version = VersionSpec {
        definition: definition.to_string(),
        strictness: Strictness::Strict,
        number: None,
        status: VersionStatus::Published,
        note: String::new(),
    };
    let published = server.runs().publish_flow(flow, Some(version)).await.unwrap().published;
    let mut runs = Vec::new();
    for x in 0..n {
        let Value::Object(params) = json!({"x": x}) else { unreachable!() };
        let new = RunSpec {
            flow: published.flow,
            version: published.version.unwrap().0,
            request: None,
            labels: BTreeMap::new(),
            schedule: None,
            start: Start { params: params.into(), ..Start::default() },
        };
        runs.push(server.runs().start(new).await.unwrap().run);
    }
    runs
}

fn claim(max: usize) -> ClaimRequest {
    let services = vec!["work".to_owned()];
    ClaimRequest { worker: "w".to_owned(), queues: Vec::new(), services, max, wait: PATIENCE, lease: LEASE }
}

async fn take(server: &Runtime) -> LeasedJob {
    let claimed = server.jobs().claim(claim(1)).await.unwrap().pop();
    claimed.expect("there was no job within the time of the test")
}

fn end(claimed: &LeasedJob, outcome: CallOutcome<RawJson>) -> JobEnd {
    JobEnd {
        job: claimed.job,
        fence: claimed.fence,
        outcome,
        worker: None,
        log: Log::default(),
        retry_after_ms: None,
    }
}

fn done(claimed: &LeasedJob, value: Value) -> JobEnd {
    end(claimed, CallOutcome::Done(value.into()))
}

async fn say(server: &Runtime, end: JobEnd) -> ClaimVerdict {
    server.jobs().finish(vec![end]).await.pop().unwrap().unwrap()
}

async fn ended(server: &Runtime, run: RunId) -> (RunStatus, Value) {
    let status = server.runs().wait_ended(run, PATIENCE).await.unwrap().unwrap();
    let row = server.runs().view(run).await.unwrap().unwrap().row;
    (status, row.projection.shared.map(|shared| (*shared).clone()).unwrap_or_default())
}

#[tokio::test]
async fn a_worker_does_the_steps_of_a_run() {
    let server = server().await;
    let run = start(&server, row_of(&["a", "b"], &json!({})), 5).await[4];
    for _ in 0..10 {
        let claimed = take(&server).await;
        assert_eq!(
            (json!(claimed.params), claimed.attempt),
            (json!({"mul": 2, "x": claimed.params.get("x")}), 1)
        );
        let call = claimed.call.clone().unwrap();
        assert!(claimed.key.contains(&call.run.to_string()), "{}", claimed.key);
        let twice = json!(claimed.input.value().as_i64().unwrap() * 2);
        assert_eq!(say(&server, done(&claimed, twice.clone())).await, ClaimVerdict::Ok);
        assert_eq!(say(&server, done(&claimed, twice)).await, ClaimVerdict::Ok);
        assert_eq!(say(&server, done(&claimed, json!("else"))).await, ClaimVerdict::Lost);
        assert_eq!(
            server
                .store()
                .logs(server.project(), call.run, LogsOf::After { entry: Seq::ZERO, fence: Fence(0) })
                .await
                .unwrap(),
            []
        );
    }
    assert_eq!(ended(&server, run).await, (RunStatus::Completed, json!({"a": 8, "b": 16})));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_take_many_at_once_end_every_run_once() {
    let server = server().await;
    let runs = start(&server, row_of(&["a", "b", "c"], &json!({})), 60).await;
    let left = Arc::new(AtomicUsize::new(60 * 3));
    let worker = || {
        let (server, left) = (server.clone(), left.clone());
        tokio::spawn(async move {
            while left.load(Ordering::SeqCst) > 0 {
                let wait = Duration::from_millis(300);
                let claimed = server.jobs().claim(ClaimRequest { wait, ..claim(20) }).await.unwrap();
                left.fetch_sub(claimed.len(), Ordering::SeqCst);
                let twice =
                    |claimed: &LeasedJob| done(claimed, json!(claimed.input.value().as_i64().unwrap() * 2));
                let ends = claimed.iter().map(twice).collect();
                assert!(
                    server
                        .jobs()
                        .finish(ends)
                        .await
                        .into_iter()
                        .all(|answer| answer.unwrap() == ClaimVerdict::Ok)
                );
            }
        })
    };
    for worker in [worker(), worker(), worker(), worker()] {
        worker.await.unwrap();
    }
    for (x, run) in (0..60).zip(runs) {
        let expected = json!({"a": x * 2, "b": x * 4, "c": x * 8});
        assert_eq!(ended(&server, run).await, (RunStatus::Completed, expected));
    }
}

#[tokio::test]
async fn the_run_tries_again_and_not_the_job() {
    let server = server().await;
    let retries = json!({"max_retries": 1, "wait_ms": 1});
    let run = start(&server, row_of(&["a"], &retries), 1).await[0];
    let first = take(&server).await;
    let fault = Fault::new(FaultKind::Error, "no luck");
    let failed = JobEnd { log: Log::of_text("what happened"), ..end(&first, CallOutcome::Failed(fault)) };
    assert_eq!(say(&server, failed.clone()).await, ClaimVerdict::Ok);
    assert_eq!(say(&server, failed).await, ClaimVerdict::Ok);
    let second = take(&server).await;
    assert_ne!(second.job, first.job);
    assert_eq!((second.attempt, &second.key), (2, &first.key));
    assert_eq!(say(&server, done(&second, json!(1))).await, ClaimVerdict::Ok);
    assert_eq!(ended(&server, run).await.0, RunStatus::Completed);
    let job = server.store().job(server.project(), first.job).await.unwrap().unwrap().job;
    assert_eq!(JobStatus::of(&job), JobStatus::Failed);
    assert!(!job.is_dead_letter());
    let logs = server
        .store()
        .logs(server.project(), run, LogsOf::After { entry: Seq::ZERO, fence: Fence(0) })
        .await
        .unwrap();
    assert_eq!(logs.iter().map(|log| log.text.as_str()).collect::<Vec<_>>(), ["what happened"]);
}

#[tokio::test]
async fn a_run_with_a_worker_that_keeps_failing_fails() {
    let server = server().await;
    let run = start(&server, row_of(&["a"], &json!({})), 1).await[0];
    let claimed = take(&server).await;
    let failed = CallOutcome::Failed(Fault::new(FaultKind::Error, "no luck").permanent());
    assert_eq!(say(&server, end(&claimed, failed)).await, ClaimVerdict::Ok);
    assert_eq!(ended(&server, run).await.0, RunStatus::Failed);
}

#[tokio::test]
async fn a_suspended_call_is_asked_about_again_with_its_memo() {
    let server = server().await;
    let run = start(&server, row_of(&["a"], &json!({})), 1).await[0];
    let first = take(&server).await;
    let suspended = CallOutcome::Suspended { memo: json!({"ticket": 7}), recheck_ms: Some(5) };
    assert_eq!(say(&server, end(&first, suspended.clone())).await, ClaimVerdict::Ok);
    assert_eq!(say(&server, end(&first, suspended)).await, ClaimVerdict::Ok);
    let second = take(&server).await;
    assert_eq!(second.memo, Some(json!({"ticket": 7})));
    assert_eq!(say(&server, done(&second, json!("ready"))).await, ClaimVerdict::Ok);
    assert_eq!(ended(&server, run).await, (RunStatus::Completed, json!({"a": "ready"})));
}

#[tokio::test]
async fn a_worker_that_dies_is_noticed_and_another_goes_on() {
    let server = server().await;
    let run = start(&server, row_of(&["a"], &json!({"max_retries": 1, "wait_ms": 1})), 1).await[0];
    let lost = server
        .jobs()
        .claim(ClaimRequest { lease: Duration::from_millis(20), ..claim(1) })
        .await
        .unwrap()
        .remove(0);
    let next = take(&server).await;
    assert_ne!(next.job, lost.job);
    assert_eq!(say(&server, done(&lost, json!("late"))).await, ClaimVerdict::Lost);
    assert_eq!(say(&server, done(&next, json!("in time"))).await, ClaimVerdict::Ok);
    assert_eq!(ended(&server, run).await, (RunStatus::Completed, json!({"a": "in time"})));
}

#[tokio::test]
async fn an_attempt_of_a_run_that_takes_too_long_fails_there() {
    let server = server().await;
    let run = start(&server, row_of(&["a"], &json!({"timeout_ms": 1_000})), 1).await[0];
    let claimed = take(&server).await;
    assert_eq!(ended(&server, run).await.0, RunStatus::Failed);
    assert_eq!(say(&server, done(&claimed, json!("late"))).await, ClaimVerdict::Lost);
}

#[tokio::test]
async fn a_worker_hears_that_its_run_was_cancelled() {
    let server = server().await;
    let run = start(&server, row_of(&["a"], &json!({})), 1).await[0];
    let claimed = take(&server).await;
    let held = vec![(claimed.job, claimed.fence)];
    assert_eq!(server.jobs().extend(held.clone(), 2 * LEASE).await.pop().unwrap().unwrap(), ClaimVerdict::Ok);
    server.runs().submit(run, Input::Cancel { reason: None, by: None }).await.unwrap();
    assert_eq!(server.jobs().extend(held, LEASE).await.pop().unwrap().unwrap(), ClaimVerdict::Canceled);
    assert_eq!(say(&server, end(&claimed, CallOutcome::Canceled)).await, ClaimVerdict::Canceled);
    assert_eq!(ended(&server, run).await.0, RunStatus::Canceled);
}

#[tokio::test]
async fn an_unclaimed_job_is_gone_when_its_run_is_canceled() {
    let server = server().await;
    let run = start(&server, row_of(&["a"], &json!({})), 1).await[0];
    server.runs().submit(run, Input::Cancel { reason: None, by: None }).await.unwrap();
    assert_eq!(ended(&server, run).await.0, RunStatus::Canceled);
    assert!(server.jobs().claim(ClaimRequest { wait: Duration::ZERO, ..claim(1) }).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_step_that_no_worker_claimed_ends_with_its_time() {
    let server = server().await;
    let step = json!({"id": "a", "operator": "work", "settings": {"timeout": {"delay": 1}}});
    let begun = tokio::time::Instant::now();
    let run = start(&server, json!({"steps": [step]}), 1).await[0];
    assert_eq!(ended(&server, run).await.0, RunStatus::Failed);
    assert!(begun.elapsed() < Duration::from_secs(30), "the watchdog's time was waited for");
    let row = server.runs().view(run).await.unwrap().unwrap().row;
    let error = row.projection.error.unwrap().fault.message;
    assert!(error.contains("no time was left: no worker had claimed it"), "{error}");
    assert!(server.jobs().claim(ClaimRequest { wait: Duration::ZERO, ..claim(1) }).await.unwrap().is_empty());
    assert_eq!(server.doctor().examine(false).await.unwrap().findings, []);
}
