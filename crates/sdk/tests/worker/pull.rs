//! The pull loop, against a server that speaks the contract.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::fake::Fake;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use windlass_sdk::Worker;
use windlass_sdk::contract;
use windlass_sdk::worker::{HandlerOutcome, ServiceCall};

const LEASE: Duration = Duration::from_millis(60);

async fn upper(call: ServiceCall) -> HandlerOutcome {
    match call.input.as_str() {
        Some(text) => HandlerOutcome::Done(json!(text.to_uppercase())),
        None => HandlerOutcome::refused("upper needs a string"),
    }
}

fn start(worker: Worker) -> (CancellationToken, tokio::task::JoinHandle<std::io::Result<()>>) {
    let shutdown = CancellationToken::new();
    (shutdown.clone(), tokio::spawn(worker.run(shutdown)))
}

#[tokio::test]
async fn jobs_are_claimed_answered_and_finished() {
    let (fake, client) = Fake::start().await;
    let good = fake.put("upper", json!("ada"));
    let bad = fake.put("upper", json!(1));
    let (shutdown, running) = start(Worker::new(client, "w-1").service("upper", upper));
    fake.until("two ends", |state| state.finished.len() == 2).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    let state = fake.state.lock().unwrap();
    let of = |id: &str| state.finished.iter().find(|result| result.id == id).unwrap();
    assert_eq!((of(&good).outcome, &of(&good).result), (contract::CallOutcome::Done, &json!("ADA")));
    assert_eq!(of(&bad).outcome, contract::CallOutcome::Failed);
    assert_eq!(of(&bad).retryable, Some(false));
    assert_eq!(state.registered[0]["type"], "async");
    assert_eq!(state.registered[0]["services"], json!(["upper"]));
}

#[tokio::test]
async fn no_more_is_claimed_than_there_are_slots() {
    let (fake, client) = Fake::start().await;
    for n in 0..6 {
        fake.put("slow", json!(n));
    }
    let (begun, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let most = Arc::new(AtomicUsize::new(0));
    let now = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (begun, gate) = (Arc::clone(&begun), Arc::clone(&gate));
        let (most, now) = (Arc::clone(&most), Arc::clone(&now));
        move |_call: ServiceCall| {
            let (begun, gate) = (Arc::clone(&begun), Arc::clone(&gate));
            let (most, now) = (Arc::clone(&most), Arc::clone(&now));
            async move {
                begun.add_permits(1);
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                gate.acquire().await.unwrap().forget();
                now.fetch_sub(1, Ordering::SeqCst);
                Value::Null
            }
        }
    };
    let (shutdown, running) = start(Worker::new(client, "w-1").slots(2).service("slow", handler));
    begun.acquire_many(2).await.unwrap().forget();
    for n in 1..=6 {
        gate.add_permits(1);
        fake.until("one more end", |state| state.finished.len() >= n).await;
    }
    shutdown.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn leases_are_kept_and_cancellation_reaches_the_handler() {
    let (fake, client) = Fake::start().await;
    let id = fake.put("wait", json!(null));
    let handler = |call: ServiceCall| async move {
        call.cancel.cancelled().await;
        HandlerOutcome::failed("stopped")
    };
    let (shutdown, running) = start(Worker::new(client, "w-1").lease(LEASE).service("wait", handler));
    fake.until("the lease was extended", |state| state.extended.len() > 1).await;
    fake.change(|state| state.canceled.extend([id.clone()]));
    fake.until("the handler stopped", |state| state.finished.len() == 1).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(fake.state.lock().unwrap().finished[0].error.as_deref(), Some("stopped"));
}

#[tokio::test]
async fn a_lost_job_is_stopped_and_not_finished() {
    let (fake, client) = Fake::start().await;
    let lost = fake.put("wait", json!(null));
    fake.change(|state| state.lost.extend([lost]));
    let stopped = CancellationToken::new();
    let seen = stopped.clone();
    let handler = move |call: ServiceCall| {
        let seen = seen.clone();
        async move {
            call.cancel.cancelled().await;
            seen.cancel();
            Value::Null
        }
    };
    let worker = Worker::new(client, "w-1").lease(LEASE).service("wait", handler).service("upper", upper);
    let (shutdown, running) = start(worker);
    tokio::time::timeout(Duration::from_secs(10), stopped.cancelled()).await.unwrap();
    fake.put("upper", json!("x"));
    fake.until("the next job", |state| !state.finished.is_empty()).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    let state = fake.state.lock().unwrap();
    assert_eq!(state.finished.len(), 1);
    assert_eq!(state.finished[0].result, json!("X"));
}

#[tokio::test]
async fn calls_that_run_at_the_shutdown_are_finished_and_reported() {
    let (fake, client) = Fake::start().await;
    fake.put("slow", json!(null));
    let (begun, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let handler = {
        let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
        move |_call: ServiceCall| {
            let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
            async move {
                begun.add_permits(1);
                go_on.acquire().await.unwrap().forget();
                json!("done")
            }
        }
    };
    let (shutdown, running) = start(Worker::new(client, "w-1").service("slow", handler));
    begun.acquire().await.unwrap().forget();
    fake.until("it claims", |state| state.n_waiting == 1).await;
    shutdown.cancel();
    fake.until("it claims no more", |state| state.n_waiting == 0).await;
    fake.put("slow", json!("too late"));
    go_on.add_permits(2);
    running.await.unwrap().unwrap();
    let state = fake.state.lock().unwrap();
    assert_eq!(state.finished.len(), 1);
    assert_eq!(state.ready.len(), 1, "nothing new is taken after the shutdown");
}

#[tokio::test]
async fn results_are_told_again_while_the_server_drains() {
    let (fake, client) = Fake::start().await;
    fake.change(|state| state.refuse_finishes = 2);
    fake.put("upper", json!("x"));
    let (shutdown, running) = start(Worker::new(client, "w-1").service("upper", upper));
    fake.until("taken at last", |state| state.finished.len() == 1).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(fake.state.lock().unwrap().n_finishes, 3);
}

#[tokio::test]
async fn a_result_that_was_not_taken_is_told_again() {
    let (fake, client) = Fake::start().await;
    let id = fake.put("upper", json!("x"));
    fake.change(|state| state.doubtful.extend([id.clone()]));
    let (shutdown, running) = start(Worker::new(client, "w-1").service("upper", upper));
    fake.until("taken at last", |state| state.finished.len() == 1).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    let state = fake.state.lock().unwrap();
    assert_eq!((state.n_finishes, state.finished[0].id.as_str()), (2, id.as_str()));
}

#[tokio::test]
async fn a_result_that_is_too_large_fails_alone() {
    let (fake, client) = Fake::start().await;
    fake.change(|state| state.finish_bytes_max = 1_000);
    let large = fake.put("repeat", json!(2_000));
    let small: Vec<String> = (0..5).map(|n| fake.put("repeat", json!(n))).collect();
    let handler = |call: ServiceCall| async move {
        let n = call.input.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        json!("x".repeat(n))
    };
    let (shutdown, running) = start(Worker::new(client, "w-1").service("repeat", handler));
    fake.until("all ends", |state| state.finished.len() == 6).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    let state = fake.state.lock().unwrap();
    let of = |id: &str| state.finished.iter().find(|result| result.id == id).unwrap();
    assert_eq!((of(&large).outcome, of(&large).retryable), (contract::CallOutcome::Failed, Some(false)));
    assert!(of(&large).error.as_ref().unwrap().contains("too many bytes"));
    assert!(small.iter().all(|id| of(id).outcome == contract::CallOutcome::Done));
}

#[tokio::test]
async fn large_results_go_in_several_requests() {
    let (fake, client) = Fake::start().await;
    fake.change(|state| state.finish_bytes_max = 2 << 20);
    let gate = Arc::new(Semaphore::new(0));
    for _ in 0..8 {
        fake.put("large", json!(null));
    }
    let handler = {
        let gate = Arc::clone(&gate);
        move |_call: ServiceCall| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                json!("x".repeat(700_000))
            }
        }
    };
    let (shutdown, running) = start(Worker::new(client, "w-1").service("large", handler));
    gate.add_permits(8);
    fake.until("all ends", |state| state.finished.len() == 8).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    let state = fake.state.lock().unwrap();
    assert!(state.finished.iter().all(|result| result.outcome == contract::CallOutcome::Done));
}

#[tokio::test]
async fn finished_work_is_told_and_its_lease_kept_however_long_the_server_is_out() {
    let (fake, client) = Fake::start().await;
    fake.change(|state| state.refuse_finishes = usize::MAX);
    fake.put("upper", json!("x"));
    let (shutdown, running) = start(Worker::new(client, "w-1").lease(LEASE).service("upper", upper));
    fake.until("state in vain", |state| state.n_finishes >= 3).await;
    let n_extended = fake.state.lock().unwrap().extended.len();
    fake.until("the lease is kept", |state| state.extended.len() > n_extended + 2).await;
    fake.change(|state| state.refuse_finishes = 0);
    fake.until("taken at last", |state| state.finished.len() == 1).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_worker_that_stops_does_not_wait_for_ever_for_a_server_that_is_out() {
    let (fake, client) = Fake::start().await;
    fake.change(|state| state.refuse_finishes = usize::MAX);
    fake.put("upper", json!("x"));
    let worker = Worker::new(client, "w-1").grace(Duration::from_millis(50)).service("upper", upper);
    let (shutdown, running) = start(worker);
    fake.until("state in vain", |state| state.n_finishes >= 1).await;
    shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(10), running).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_call_can_be_reported_by_another_worker() {
    let (fake, client) = Fake::start().await;
    fake.put("later", json!(null));
    let handler = |call: ServiceCall| async move {
        HandlerOutcome::Suspended { memo: json!(call.call), recheck: None }
    };
    let (shutdown, running) = start(Worker::new(client, "w-1").service("later", handler));
    fake.until("an end", |state| state.finished.len() == 1).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(fake.state.lock().unwrap().finished[0].memo, json!("run_1.1"));
}

#[tokio::test]
async fn a_queue_answers_for_services_without_workers() {
    let (fake, client) = Fake::start().await;
    fake.put("unheard_of", json!(7));
    let handler = |call: ServiceCall| async move { json!([call.service, call.queue, call.input]) };
    let (shutdown, running) = start(Worker::new(client, "w-1").queue("default", handler));
    fake.until("an end", |state| state.finished.len() == 1).await;
    fake.until("registered", |state| !state.registered.is_empty()).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    let state = fake.state.lock().unwrap();
    assert_eq!(state.finished[0].result, json!(["unheard_of", "default", 7]));
    assert_eq!(state.registered[0]["queues"], json!(["default"]));
    assert_eq!(state.registered[0]["capacity"], 64);
}

/// Works until the gate opens, and says when it begins.
fn gated(
    begun: &Arc<Semaphore>,
    gate: &Arc<Semaphore>,
) -> impl Fn(ServiceCall) -> Gated + Send + Sync + 'static {
    let (begun, gate) = (Arc::clone(begun), Arc::clone(gate));
    move |call: ServiceCall| {
        let (begun, gate) = (Arc::clone(&begun), Arc::clone(&gate));
        Box::pin(async move {
            begun.add_permits(1);
            tokio::select! {
                permit = gate.acquire() => {
                    permit.unwrap().forget();
                    HandlerOutcome::Done(json!("done"))
                }
                () = call.cancel.cancelled() => HandlerOutcome::failed("stopped"),
            }
        })
    }
}

type Gated = std::pin::Pin<Box<dyn Future<Output = HandlerOutcome> + Send>>;

#[tokio::test]
async fn a_worker_that_is_told_to_go_finishes_what_it_has_and_goes() {
    // One learns of it from its claim, the other, which has no free slot to claim for, from its heartbeat.
    for slots in [2, 1] {
        let (fake, client) = Fake::start().await;
        fake.put("slow", json!(1));
        let (begun, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let worker = Worker::new(client, "w-1").slots(slots).service("slow", gated(&begun, &gate));
        let worker = worker.grace(Duration::ZERO).beat_every(Duration::from_millis(10));
        let (shutdown, mut running) = start(worker);
        begun.acquire().await.unwrap().forget();
        fake.drain();
        fake.until("nobody claims", |state| state.n_waiting == 0).await;
        fake.put("slow", json!(2));
        let early = tokio::time::timeout(Duration::from_millis(50), &mut running).await;
        assert!(early.is_err(), "it has all the time it needs");
        gate.add_permits(2);
        tokio::time::timeout(Duration::from_secs(10), running).await.unwrap().unwrap().unwrap();
        assert!(!shutdown.is_cancelled(), "others that this program does go on");
        let state = fake.state.lock().unwrap();
        let results: Vec<&Value> = state.finished.iter().map(|end| &end.result).collect();
        assert_eq!((results, state.ready.len()), (vec![&json!("done")], 1));
    }
}

#[tokio::test]
async fn a_worker_that_goes_can_still_be_hurried() {
    let (fake, client) = Fake::start().await;
    fake.put("slow", json!(1));
    let (begun, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let worker = Worker::new(client, "w-1").service("slow", gated(&begun, &gate));
    let (shutdown, running) = start(worker.grace(Duration::ZERO));
    begun.acquire().await.unwrap().forget();
    fake.drain();
    fake.until("nobody claims", |state| state.n_waiting == 0).await;
    shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(10), running).await.unwrap().unwrap().unwrap();
    assert_eq!(fake.state.lock().unwrap().finished[0].error.as_deref(), Some("stopped"));
}

#[tokio::test]
async fn a_worker_whose_id_was_taken_stops_and_does_not_take_it_back() {
    let (fake, client) = Fake::start().await;
    let worker = Worker::new(client, "w-1").service("upper", upper).beat_every(Duration::from_millis(10));
    let (_shutdown, running) = start(worker);
    fake.until("the registration", |state| !state.registered.is_empty()).await;
    fake.state.lock().unwrap().id_taken = true;
    let error = running.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("an id of its own"), "{error}");
    assert_eq!(fake.state.lock().unwrap().registered.len(), 1);
}

#[tokio::test]
async fn a_worker_with_a_range_of_slots_grows_with_waiting_work_and_shrinks_when_idle() {
    let (fake, client) = Fake::start().await;
    for n in 0..8 {
        fake.put("slow", json!(n));
    }
    let (begun, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let handler = {
        let (begun, gate) = (Arc::clone(&begun), Arc::clone(&gate));
        move |_call: ServiceCall| {
            let (begun, gate) = (Arc::clone(&begun), Arc::clone(&gate));
            async move {
                begun.add_permits(1);
                gate.acquire().await.unwrap().forget();
                Value::Null
            }
        }
    };
    let worker = Worker::new(client, "w-1").slots_between(1, 6).idle_after(Duration::from_millis(100));
    let (shutdown, running) = start(worker.service("slow", handler));
    // One after the other would never end: six are in hand before any ends.
    begun.acquire_many(6).await.unwrap().forget();
    let told = |state: &crate::fake::FakeState, n: u64| {
        state.registered.last().is_some_and(|worker| worker["capacity"] == n)
    };
    fake.until("the server hears of six slots", |state| told(state, 6)).await;
    gate.add_permits(8);
    fake.until("all ends", |state| state.finished.len() == 8).await;
    fake.until("the server hears of one slot", |state| told(state, 1)).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
}
