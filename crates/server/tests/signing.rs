//! Signed calls: a worker of the library refuses strangers, and no answer of the server shows a secret.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on fails")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_conformance::backend::fresh;
use windlass_runtime::{Runtime, Settings};
use windlass_sdk::contract::{FlowRequest, RunRequest, RunStatus, SecretChange, ServiceChange};
use windlass_sdk::worker::{ServiceCall, bind};
use windlass_sdk::{Client, Worker};
use windlass_server::Options;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_c2VjcmV0LW9mLWEtcm90YXRlZC1lbmRwb2ludA==";
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with a flow that calls the service `sign`.
async fn server() -> (Client, CancellationToken) {
    let runtime = Runtime::start_up(fresh().await, Settings::default()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(windlass_server::serve(listener, runtime, Options::default(), stop.clone()));
    let definition = json!({"start": "a", "nodes": {"a": {"exec_type": "http", "service": "sign"}}});
    let flow: FlowRequest = serde_json::from_value(json!({"name": "f", "definition": definition})).unwrap();
    client.flows().create(&flow).await.unwrap();
    (client, stop)
}

/// Starts a worker of the service, and returns its URL.
async fn work(
    client: &Client,
    id: &str,
    signed: impl FnOnce(Worker) -> Worker,
    stop: &CancellationToken,
) -> String {
    let (listener, url) = bind("http://127.0.0.1:0").await.unwrap();
    let worker = Worker::new(client.clone(), id).push_only().listen(listener, &url);
    let worker = signed(worker).service("sign", async |_: ServiceCall| Value::from("signed"));
    tokio::spawn(worker.run(stop.clone()));
    let begun = Instant::now();
    while client.workers().all().await.unwrap().iter().all(|worker| worker.id != id) {
        assert!(begun.elapsed() < PATIENCE, "the worker does not register");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    url
}

async fn run(client: &Client) -> (RunStatus, String) {
    let ended = client.runs().start_and_wait("f", &RunRequest::default(), PATIENCE).await.unwrap();
    (ended.status, serde_json::to_string(&ended).unwrap())
}

#[tokio::test]
async fn a_worker_with_a_secret_answers_the_server_and_refuses_strangers() {
    let (client, stop) = server().await;
    let url = work(&client, "own", |worker| worker.secret(SECRET).unwrap(), &stop).await;
    let (status, shown) = run(&client).await;
    assert_eq!(status, RunStatus::Completed, "{shown}");
    let stranger = Client::new(&url).unwrap();
    let call = json!({"input": 1, "params": {}});
    let (status, body) = stranger.raw("POST", "/exec/sign", Some(&call)).await.unwrap();
    assert_eq!(status, 401, "{body}");
    assert!(body.contains("not signed"), "{body}");
    for path in ["/api/v1/workers", "/api/v1/services", "/api/v1/audit", "/metrics"] {
        let (_, body) = client.raw("GET", path, None).await.unwrap();
        assert!(!body.contains("whsec") && !body.contains("MfKQ9r8G"), "{path}: {body}");
    }
    stop.cancel();
}

#[tokio::test]
async fn the_secret_of_a_service_signs_calls_to_workers_without_one() {
    let (client, stop) = server().await;
    let both = |worker: Worker| worker.accept_secret(SECRET).unwrap().accept_secret(OTHER_SECRET).unwrap();
    work(&client, "plain", both, &stop).await;
    let (status, shown) = run(&client).await;
    assert_eq!(status, RunStatus::Failed);
    assert!(shown.contains("not signed"), "{shown}");
    let set = async |secret| {
        let change = ServiceChange { secret, ..ServiceChange::default() };
        client.services().set("sign", &change).await
    };
    for secret in [SECRET, OTHER_SECRET] {
        assert!(set(SecretChange::Set(secret.to_owned())).await.unwrap().is_signed);
        assert_eq!(run(&client).await.0, RunStatus::Completed);
    }
    assert!(set(SecretChange::Keep).await.unwrap().is_signed, "a change without a secret keeps it");
    let wrong = set(SecretChange::Set("whsec_c2hvcnQ=".to_owned())).await.unwrap_err();
    assert!(wrong.to_string().contains("secret") && !wrong.to_string().contains("c2hvcnQ"), "{wrong}");
    let (_, shown) = client.raw("GET", "/api/v1/services/sign", None).await.unwrap();
    assert!(shown.contains("\"is_signed\":true") && !shown.contains("whsec"), "{shown}");
    assert!(!set(SecretChange::Remove).await.unwrap().is_signed);
    assert_eq!(run(&client).await.0, RunStatus::Failed);
    stop.cancel();
}
