mod double;

use std::future::pending;
use std::sync::Arc;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore as Gate;
use uuid::Uuid;
use windlass_conformance::certificates::TestAuthority;
use windlass_conformance::test_directory::TestDirectory;
use windlass_engine::counter::{Fence, Visit};
use windlass_engine::id::RunId;
use windlass_engine::params::Params;
use windlass_engine::path::NodePath;
use windlass_engine::plan::Priority;
use windlass_engine::retry::{Delivery, DeliveryProgress};
use windlass_engine::time::Timestamp;
use windlass_store::service::ServiceSettings;
use windlass_store::signing::SigningSecret;
use windlass_store::worker::WorkerRow;
use windlass_store::{Memory, Store};
use windlass_tls::{ClientTls, ServerTls, ServerTlsFiles};

use super::service::SecretChange;
use super::*;
use crate::Runtime;
use double::{Double, answer, double, double_over};

pub(super) async fn server(settings: Settings) -> Runtime {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    Runtime::start_up(store, settings).await.unwrap()
}

pub(crate) fn spec(exec: Exec) -> CallSpec {
    let params = json!({"op": "upper"}).as_object().unwrap().clone();
    CallSpec {
        run: RunId::new(Uuid::from_u128(7)),
        node: NodePath::from("fe/3"),
        visit: Visit(1),
        fence: Fence(4),
        attempt: 2,
        exec,
        service: "transform".to_owned(),
        input: Arc::new(json!({"text": "hi"})),
        params: Params::from(params),
        memo: None,
        key: "run_7/fe/3/1".to_owned(),
        deadline: None,
        timeout_ms: 20_000,
        priority: Priority::Medium,
        weighted_by_load: false,
        stays_with: None,
        avoid: Vec::new(),
        depth: 1,
    }
}

async fn register(runtime: &Runtime, id: &str, url: String) {
    register_row(runtime, id, url, |row| row).await;
}

async fn register_row(runtime: &Runtime, id: &str, url: String, change: impl FnOnce(WorkerRow) -> WorkerRow) {
    let now = runtime.clock().now();
    let row = WorkerRow {
        id: id.to_owned(),
        name: String::new(),
        url,
        kind: "http".to_owned(),
        services: vec!["transform".to_owned()],
        queues: Vec::new(),
        load: 0,
        capacity: 0,
        is_draining: false,
        peer: String::new(),
        replaced: Vec::new(),
        secret: None,
        registered_at: now,
        beat_at: now,
    };
    runtime.workers().register(change(row)).await.unwrap();
}

async fn call(runtime: &Runtime, spec: &CallSpec) -> CallResult {
    runtime.calls().call(spec, &CancellationToken::new()).await
}

#[track_caller]
pub(super) fn fault(reported: &CallResult) -> &Fault {
    match &reported.outcome {
        CallOutcome::Failed(fault) => fault,
        other => panic!("{other:?}"),
    }
}

/// A server with one worker, `w`, that answers every call so.
async fn with_answer(text: String) -> (Runtime, Double) {
    let runtime = server(Settings::default()).await;
    let worker = double(move |_| {
        let text = text.clone();
        async move { text }
    })
    .await;
    register(&runtime, "w", worker.url()).await;
    (runtime, worker)
}

async fn answered(status: u16, body: &str) -> CallResult {
    let (runtime, _worker) = with_answer(answer(status, body)).await;
    let reported = call(&runtime, &spec(Exec::Http)).await;
    assert_eq!(reported.worker.as_deref(), Some("w"));
    reported
}

#[tokio::test]
async fn a_worker_is_asked_as_documented_and_its_result_is_taken() {
    let (runtime, mut worker) = with_answer(answer(200, r#"{"result": "HI", "error": ""}"#)).await;
    let spec = CallSpec { service: "trans form/é".to_owned(), ..spec(Exec::Http) };
    register_row(&runtime, "w2", worker.url() + "/base/", |row| WorkerRow {
        services: vec![spec.service.clone()],
        ..row
    })
    .await;
    let before = runtime.clock().now();
    let reported = call(&runtime, &spec).await;
    assert_eq!(reported.outcome, CallOutcome::Done(Arc::new(json!("HI"))));
    assert_eq!(reported.worker.as_deref(), Some("w2"));
    let asked = worker.asked.recv().await.unwrap();
    assert_eq!(asked.line, "POST /base/exec/trans%20form%2F%C3%A9 HTTP/1.1");
    assert_eq!(asked.body, json!({"input": {"text": "hi"}, "params": {"op": "upper"}}));
    assert_eq!(asked.header("windlass-run"), spec.run.to_string());
    assert_eq!(asked.header("windlass-node"), "fe/3");
    assert_eq!(asked.header("windlass-attempt"), "2");
    assert_eq!(asked.header("windlass-fence"), "4");
    assert_eq!(asked.header("windlass-call"), runtime.grants().signed(spec.run, Fence(4)));
    assert_eq!(asked.header("idempotency-key"), "run_7/fe/3/1");
    assert_eq!(asked.header("content-type"), "application/json");
    let deadline: i64 = asked.header("windlass-deadline").parse().unwrap();
    assert!((20_000..25_000).contains(&(deadline - before.0)), "{deadline}");
}

#[tokio::test]
async fn a_worker_with_https_is_called_if_its_authority_is_trusted() {
    let (authority, directory) = (TestAuthority::new(), TestDirectory::create());
    let (cert, key) = authority.sign(&["127.0.0.1"]).write(directory.path());
    let ca = authority.write(directory.path());
    let tls = ServerTls::open(ServerTlsFiles { cert, key, client_ca: None }).unwrap().current();
    let worker = double_over(Some(tls), |_| async { answer(200, r#"{"result": 1}"#) }).await;
    let trusting = |ca| Arc::new(ClientTls { ca, identity: None }.config().unwrap());

    let runtime = server(Settings { worker_tls: trusting(Some(ca)), ..Settings::default() }).await;
    register(&runtime, "w", worker.url()).await;
    let reported = call(&runtime, &spec(Exec::Http)).await;
    assert_eq!(reported.outcome, CallOutcome::Done(Arc::new(json!(1))));

    let runtime = server(Settings { worker_tls: trusting(None), ..Settings::default() }).await;
    register(&runtime, "w", worker.url()).await;
    let reported = call(&runtime, &spec(Exec::Http)).await;
    let fault = fault(&reported);
    assert!(fault.message.contains("certificate"), "{}", fault.message);
    assert_eq!(fault.delivery.progress, DeliveryProgress::NotSent);
}

#[tokio::test]
async fn calls_are_signed_under_the_secret_of_the_worker_or_of_its_service() {
    let (runtime, mut worker) = with_answer(answer(200, "{}")).await;
    let spec = spec(Exec::Http);
    call(&runtime, &spec).await;
    assert_eq!(worker.asked.recv().await.unwrap().header("webhook-signature"), "");

    let secret = |text: &str| signature::read_secret(text).unwrap();
    let of_service = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let (calls, change) = (runtime.calls(), SecretChange::Set(of_service.clone()));
    calls.set_service("transform".to_owned(), ServiceSettings::default(), change).await.unwrap();
    call(&runtime, &spec).await;
    let asked = worker.asked.recv().await.unwrap();
    assert_eq!(asked.header("webhook-id"), format!("{}_4", spec.run));
    let by_service = asked.header("webhook-signature").to_owned();
    assert!(by_service.starts_with("v1,"), "{by_service}");
    let sent: i64 = asked.header("webhook-timestamp").parse().unwrap();
    let body = br#"{"input":{"text":"hi"},"params":{"op":"upper"}}"#;
    let signed = |secret: &SigningSecret, id: &str, sent: i64| {
        signature::sign(secret, id, Timestamp(sent * 1_000), body).unwrap()["webhook-signature"].clone()
    };
    assert_eq!(signed(&of_service, asked.header("webhook-id"), sent), by_service);

    // A change of other settings keeps the secret.
    let changed = ServiceSettings { calls_max: Some(9), ..ServiceSettings::default() };
    calls.set_service("transform".to_owned(), changed, SecretChange::Keep).await.unwrap();
    call(&runtime, &spec).await;
    assert_ne!(worker.asked.recv().await.unwrap().header("webhook-signature"), "");

    // The worker's own secret counts more.
    let own = secret("whsec_c2VjcmV0LW9mLWEtcm90YXRlZC1lbmRwb2ludA==");
    register_row(&runtime, "w", worker.url(), |row| WorkerRow { secret: Some(own.clone()), ..row }).await;
    call(&runtime, &spec).await;
    let asked = worker.asked.recv().await.unwrap();
    let sent: i64 = asked.header("webhook-timestamp").parse().unwrap();
    assert_eq!(signed(&own, asked.header("webhook-id"), sent), asked.header("webhook-signature"));
}

#[tokio::test]
async fn a_call_that_was_suspended_is_asked_again_with_its_memo() {
    let (runtime, mut worker) =
        with_answer(answer(200, r#"{"suspend": {"memo": 8, "recheck_ms": 7}}"#)).await;
    let spec = CallSpec { memo: Some(Arc::new(json!({"at": 7}))), ..spec(Exec::Http) };
    let reported = call(&runtime, &spec).await;
    assert_eq!(reported.outcome, CallOutcome::Suspended { memo: json!(8), recheck_ms: Some(RECHECK_MS_MIN) });
    assert_eq!(worker.asked.recv().await.unwrap().body["memo"], json!({"at": 7}));
}

#[tokio::test]
async fn a_worker_that_is_busy_says_when_to_come_back() {
    let (runtime, _worker) = with_answer(answer(503, "{}").replace("x\r", "x\r\nretry-after: 7\r")).await;
    assert_eq!(fault(&call(&runtime, &spec(Exec::Http)).await).retry_after_ms, Some(7_000));
}

#[tokio::test]
async fn a_worker_may_be_called_by_name() {
    let runtime = server(Settings::default()).await;
    let worker = double(|_| async { answer(200, r#"{"result": 1}"#) }).await;
    register(&runtime, "w", format!("http://localhost:{}", worker.address.port())).await;
    assert!(matches!(call(&runtime, &spec(Exec::Http)).await.outcome, CallOutcome::Done(_)));
    register(&runtime, "w", "http://no-such-host.invalid:9".to_owned()).await;
    let reported = call(&runtime, &spec(Exec::Http)).await;
    assert_eq!(fault(&reported).kind, FaultKind::Transport);
    assert!(fault(&reported).message.contains("`no-such-host.invalid` does not resolve"), "{reported:?}");
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let (runtime, mut worker) = with_answer(answer(200, r#"{"result": 1}"#)).await;
    for _ in 0..3 {
        call(&runtime, &spec(Exec::Http)).await;
        assert_eq!(worker.asked.recv().await.unwrap().connection, 0);
    }
}

#[tokio::test]
async fn statuses_and_errors_end_a_call_as_documented() {
    let reported = answered(200, r#"{"result": null, "error": "no ink"}"#).await;
    assert_eq!(*fault(&reported), Fault::new(FaultKind::Error, "no ink"));
    let reported = answered(202, r#"{"memo": [1]}"#).await;
    assert_eq!(reported.outcome, CallOutcome::Suspended { memo: json!([1]), recheck_ms: None });
    let reported = answered(404, r#"{"error": "what is transform"}"#).await;
    let refused = "worker `w` answered 404: what is transform";
    assert_eq!(*fault(&reported), Fault::new(FaultKind::Error, refused).permanent());
    let reported = answered(500, "broken").await;
    assert_eq!(*fault(&reported), Fault::new(FaultKind::Error, "worker `w` answered 500: broken"));
    let reported = answered(503, "busy").await;
    assert_eq!(*fault(&reported), Fault::new(FaultKind::Transport, "worker `w` answered 503: busy"));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (runtime, mut elsewhere) = with_answer(answer(200, r#"{"result": "stolen"}"#)).await;
    let to = elsewhere.url();
    let moved = double(move |_| {
        let text = format!("HTTP/1.1 307 x\r\nlocation: {to}/exec/transform\r\ncontent-length: 0\r\n\r\n");
        async move { text }
    })
    .await;
    register(&runtime, "moved", moved.url()).await;
    let spec = CallSpec { avoid: vec!["w".to_owned()], ..spec(Exec::Http) };
    let reported = call(&runtime, &spec).await;
    assert!(fault(&reported).message.contains("redirects are not followed"), "{reported:?}");
    assert_eq!(reported.worker.as_deref(), Some("moved"));
    assert!(elsewhere.asked.try_recv().is_err());
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused_however_it_is_sent() {
    let body = format!(r#"{{"result": "{}"}}"#, "x".repeat(http::ANSWER_BYTES_MAX));
    let chunked = {
        let head = "HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n";
        format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
    };
    for text in [answer(200, &body), chunked] {
        let (runtime, _worker) = with_answer(text).await;
        let reported = call(&runtime, &spec(Exec::Http)).await;
        assert!(fault(&reported).message.contains("more than 8388608 bytes"), "{:?}", fault(&reported));
        assert!(!fault(&reported).retryable);
    }
}

#[tokio::test]
async fn a_worker_that_is_not_there_is_a_fault_of_transport() {
    let runtime = server(Settings::default()).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    register(&runtime, "gone", format!("http://{closed}")).await;
    let reported = call(&runtime, &spec(Exec::Http)).await;
    assert_eq!(fault(&reported).kind, FaultKind::Transport);
    assert!(fault(&reported).message.starts_with("worker `gone` cannot be reached at http://127.0.0.1"));
    assert_eq!(reported.worker.as_deref(), Some("gone"));
    let delivery = |has_other_worker| Delivery { progress: DeliveryProgress::NotSent, has_other_worker };
    assert_eq!(fault(&reported).delivery, delivery(false));
    register(&runtime, "other", format!("http://{closed}")).await;
    let next = call(&runtime, &CallSpec { stays_with: Some("gone".to_owned()), ..spec(Exec::Http) }).await;
    assert_eq!((next.worker.as_deref(), fault(&next).delivery), (Some("gone"), delivery(true)));
    let last = call(&runtime, &CallSpec { avoid: vec!["gone".to_owned()], ..spec(Exec::Http) }).await;
    assert_eq!((last.worker.as_deref(), fault(&last).delivery), (Some("other"), delivery(false)));
}

#[tokio::test]
async fn a_connection_that_breaks_is_a_fault_of_transport() {
    for text in ["", "nonsense\r\n\r\n", "HTTP/1.1 200 x\r\ncontent-length: 50\r\n\r\n{\"res"] {
        let runtime = server(Settings::default()).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        register(&runtime, "w", format!("http://{}", listener.local_addr().unwrap())).await;
        let breaking = async {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 4_096]).await.unwrap() > 0);
            stream.write_all(text.as_bytes()).await.unwrap();
        };
        let spec = spec(Exec::Http);
        let (reported, ()) = tokio::join!(call(&runtime, &spec), breaking);
        assert_eq!(fault(&reported).kind, FaultKind::Transport, "{reported:?}");
        assert_eq!(fault(&reported).delivery.progress, DeliveryProgress::Sent, "{reported:?}");
        assert_eq!(reported.worker.as_deref(), Some("w"));
    }
}

#[tokio::test]
async fn a_call_without_a_worker_fails_with_a_remedy() {
    let runtime = server(Settings::default()).await;
    let reported = call(&runtime, &spec(Exec::Http)).await;
    let message = "no worker for service `transform`: start one with `windlass worker --services transform`";
    assert_eq!(*fault(&reported), Fault::new(FaultKind::NoWorker, message));
    assert_eq!(reported.worker, None);
}

#[tokio::test]
async fn a_slow_worker_is_given_up_before_the_run_would_and_is_named() {
    let runtime = server(Settings::default()).await;
    let mut worker = double(|_| pending()).await;
    register(&runtime, "slow", worker.url()).await;
    let deadline = runtime.clock().now().after(300);
    let spec = CallSpec { deadline: Some(deadline), ..spec(Exec::Http) };
    let reported = call(&runtime, &spec).await;
    assert!(runtime.clock().now() <= deadline.after(100), "it took too long to give up");
    assert_eq!(fault(&reported).kind, FaultKind::Timeout);
    assert!(fault(&reported).message.starts_with("worker `slow` did not answer `transform` within"));
    assert_eq!(reported.worker.as_deref(), Some("slow"));
    assert_eq!(worker.hung_up.recv().await, Some(0), "the worker can tell");
}

#[tokio::test]
async fn a_call_after_its_deadline_is_not_made() {
    let (runtime, mut worker) = with_answer(answer(200, r#"{"result": 1}"#)).await;
    let spec = CallSpec { deadline: Some(Timestamp(5)), ..spec(Exec::Http) };
    assert_eq!(fault(&call(&runtime, &spec).await).kind, FaultKind::Timeout);
    assert!(worker.asked.try_recv().is_err());
}

#[tokio::test]
async fn a_canceled_call_hangs_up_and_frees_its_permit() {
    let runtime = server(Settings { worker_calls_max: 1, ..Settings::default() }).await;
    let mut worker = double(|_| pending()).await;
    register(&runtime, "w", worker.url()).await;
    let (spec, cancel) = (spec(Exec::Http), CancellationToken::new());
    for connection in 0..2 {
        let cancel = cancel.child_token();
        let stopping = async {
            worker.asked.recv().await.unwrap();
            cancel.cancel();
        };
        let (reported, ()) = tokio::join!(runtime.calls().call(&spec, &cancel), stopping);
        assert_eq!(reported.outcome, CallOutcome::Canceled);
        assert_eq!(reported.worker.as_deref(), Some("w"));
        assert_eq!(worker.hung_up.recv().await, Some(connection));
    }
}

#[tokio::test]
async fn a_call_that_was_cancelled_before_is_not_made() {
    let (runtime, mut worker) = with_answer(answer(200, r#"{"result": 1}"#)).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(runtime.calls().call(&spec(Exec::Http), &cancel).await.outcome, CallOutcome::Canceled);
    assert!(worker.asked.try_recv().is_err());
}

#[tokio::test]
async fn a_worker_that_failed_is_avoided_and_load_decides_if_asked() {
    let runtime = server(Settings::default()).await;
    let worker = double(|_| async { answer(200, r#"{"result": 1}"#) }).await;
    for (id, load) in [("a", 9), ("b", 0), ("c", 5)] {
        register_row(&runtime, id, worker.url(), |row| WorkerRow { load, ..row }).await;
    }
    let avoiding = |ids: &[&str], weighted_by_load| CallSpec {
        avoid: ids.iter().map(|id| (*id).to_owned()).collect(),
        weighted_by_load,
        ..spec(Exec::Http)
    };
    let mut named = Vec::new();
    for spec in
        [avoiding(&[], true), avoiding(&["b"], true), avoiding(&["b", "c"], false), avoiding(&[], false)]
    {
        named.extend(call(&runtime, &spec).await.worker);
    }
    assert_eq!(named, ["b", "c", "a", "b"]);
}

#[tokio::test]
async fn a_worker_never_has_more_calls_than_it_can_bear_and_waiting_counts() {
    let runtime = server(Settings::default()).await;
    let gate = Arc::new(Gate::new(0));
    let mut worker = {
        let gate = gate.clone();
        double(move |_| {
            let gate = gate.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                answer(200, r#"{"result": 1}"#)
            }
        })
        .await
    };
    register_row(&runtime, "w", worker.url(), |row| WorkerRow { capacity: 1, ..row }).await;
    let order_ = spec(Exec::Http);
    let impatient = CallSpec { timeout_ms: 100, ..spec(Exec::Http) };
    let first = call(&runtime, &order_);
    let others = async {
        worker.asked.recv().await.unwrap();
        let late = call(&runtime, &impatient).await;
        assert_eq!(fault(&late).kind, FaultKind::Timeout);
        assert!(fault(&late).message.starts_with("no worker of service `transform` was free within"));
        assert_eq!(late.worker, None);
        assert!(worker.asked.try_recv().is_err(), "it was never sent");
        gate.add_permits(2);
        call(&runtime, &order_).await
    };
    let (first, second) = tokio::join!(first, others);
    assert!(matches!((first.outcome, second.outcome), (CallOutcome::Done(_), CallOutcome::Done(_))));
}

#[tokio::test]
async fn a_stored_address_is_judged_again_when_it_is_called() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let open = Settings { allow_worker_net: true, ..Settings::default() };
    let lenient = Runtime::start_up(store.clone(), open).await.unwrap();
    register(&lenient, "w", "http://10.255.255.1:9".to_owned()).await;
    let strict = Runtime::start_up(store, Settings::default()).await.unwrap();
    let reported = call(&strict, &spec(Exec::Http)).await;
    assert_eq!(fault(&reported).kind, FaultKind::Transport);
    assert!(fault(&reported).message.contains("--allow-worker-net"), "{reported:?}");
}

#[tokio::test]
async fn a_call_can_be_made_by_a_task_of_its_own() {
    let (runtime, _worker) = with_answer(answer(200, r#"{"result": 1}"#)).await;
    let called = tokio::spawn(async move { call(&runtime, &spec(Exec::Http)).await.outcome });
    assert_eq!(called.await.unwrap(), CallOutcome::Done(Arc::new(json!(1))));
}

#[tokio::test]
async fn calls_of_other_kinds_are_refused_here() {
    let runtime = server(Settings::default()).await;
    let execs = [
        Exec::Queue,
        Exec::Func { name: "echo".to_owned() },
        Exec::Flow { flow: "f".to_owned(), version: None },
    ];
    for exec in execs {
        assert!(!fault(&call(&runtime, &spec(exec)).await).retryable);
    }
}

#[test]
fn a_limit_ends_a_little_early_and_never_overflows() {
    assert_eq!(limit_of(10_000).left, Duration::from_millis(9_950));
    assert_eq!(limit_of(100).left, Duration::from_millis(90));
    assert_eq!(limit_of(0).left, Duration::ZERO);
    assert_eq!(limit_of(10_000).at_most(70).ms(), 70);
    assert_eq!(limit_of(100).at_most(70_000).ms(), 90);
    assert!(limit_of(u64::MAX).ends_at > Instant::now());
}

fn limit_of(ms: u64) -> CallLimit {
    CallLimit::new(Timestamp(0), Duration::from_millis(ms))
}
