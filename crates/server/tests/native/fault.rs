//! Temporary faults of a dag: tried again three times within a second, then suspended and asked again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::test_server::TestServer;

/// The reaction of a push worker to the calls before it answers.
#[derive(Clone, Copy)]
enum Trouble {
    /// Hangs up.
    HangsUp,
    /// Never says anything.
    IsSilent,
    /// Says that it is busy.
    IsBusy,
    /// Says that it is busy for a second.
    IsBusyForLong,
}

/// A push worker of `video` that is in trouble for so many calls and then answers; and how often it was called.
async fn push_worker(host: &TestServer, trouble: Trouble, n_bad: usize) -> Arc<AtomicUsize> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let nth = count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut head = [0; 4096];
                let _read = stream.read(&mut head).await;
                let answer = match trouble {
                    _ if nth >= n_bad => {
                        let body = r#"{"result": {"urls": ["asset://a.mp4"]}, "logs": ["rendered"]}"#;
                        format!(
                            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                            body.len()
                        )
                    }
                    Trouble::HangsUp => return,
                    Trouble::IsSilent => return tokio::time::sleep(Duration::from_secs(30)).await,
                    Trouble::IsBusy => {
                        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                            .to_owned()
                    }
                    Trouble::IsBusyForLong => {
                        "HTTP/1.1 429 Slow Down\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                            .to_owned()
                    }
                };
                let _written = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    let worker = json!({ "id": "video-1", "url": url, "services": ["video"], "type": "http" });
    host.post("/api/workers/register", worker).await.ok();
    calls
}

fn video(more: Value) -> Value {
    let mut node = json!({ "id": "v", "type": "video", "recheck_ms": 100 });
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "nodes": [node], "edges": [] })
}

/// The beginnings of the lines about the ends of attempts.
async fn story(host: &TestServer, run: &str) -> Vec<String> {
    let response = host.lines(run, "&node=v").await;
    let words = response.iter().map(|line| line["message"].as_str().unwrap());
    let response =
        words.filter(|word| !matches!(*word, "entered" | "asked again") && !word.starts_with("called"));
    response.map(|word| word.split(':').next().unwrap().to_owned()).collect()
}

const QUICK: &str = "temporary fault, tried again at once";
const RECHECK: &str = "temporary faults go on, suspended and asked again later";

#[tokio::test]
async fn a_push_worker_in_trouble_is_tried_three_times_more_and_then_asked_again() {
    for (trouble, more) in [
        (Trouble::HangsUp, json!({})),
        (Trouble::IsSilent, json!({ "timeout_ms": 100 })),
        (Trouble::IsBusy, json!({})),
    ] {
        let host = TestServer::new().await;
        let calls = push_worker(&host, trouble, 4).await;
        let mut node = json!({ "exec_type": "http" });
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        host.publish("film", video(node)).await;
        let begun = std::time::Instant::now();
        let run = host.start("film", json!({})).await;
        let ended = host.ended(&run).await;
        assert_eq!(ended["status"], "completed", "{ended}");
        assert_eq!(calls.load(Ordering::Relaxed), 5);
        assert!(begun.elapsed() >= Duration::from_millis(100 + 200 + 300 + 100), "{:?}", begun.elapsed());
        assert_eq!(story(&host, &run).await, [QUICK, QUICK, QUICK, RECHECK, "rendered", "done"]);
        assert_eq!(ended["node_states"]["v"]["attempts"], 5);
    }
}

#[tokio::test]
async fn a_worker_that_says_when_to_come_back_is_left_alone_until_then() {
    let host = TestServer::new().await;
    let calls = push_worker(&host, Trouble::IsBusyForLong, 1).await;
    host.publish("film", video(json!({ "exec_type": "http" }))).await;
    let begun = std::time::Instant::now();
    let run = host.start("film", json!({})).await;
    assert_eq!(host.ended(&run).await["status"], "completed");
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(story(&host, &run).await, [QUICK, "rendered", "done"]);
}

#[tokio::test]
async fn a_pull_worker_says_when_to_come_back() {
    let host = TestServer::new().await;
    host.publish("film", video(json!({}))).await;
    let run = host.start("film", json!({})).await;
    let job = host.claim("video").await;
    let busy =
        json!({ "outcome": "failed", "error": "full", "temporary": true, "retry_after_ms": 86_400_000_u64 });
    assert_eq!(host.finish(&job, busy).await, "ok");
    let response = host.until(&run, |run| run["node_states"]["v"]["attempts"] == 1).await;
    assert_eq!(response["status"], "waiting", "{response}");
    let why = host.get(&format!("/api/v1/runs/{run}/why")).await.ok();
    let until = why["reasons"][0]["until"].as_str().unwrap().to_owned();
    let at = |text: &str| windlass_engine::time::Timestamp::parse_rfc3339(text).unwrap();
    let waits_ms = at(&until).since(at(response["updated_at"].as_str().unwrap()));
    // So long, and no longer than an hour.
    assert_eq!(waits_ms, 3_600_000, "{why}");
}

#[tokio::test]
async fn a_fault_that_is_not_temporary_fails_the_run_at_once() {
    let host = TestServer::new().await;
    host.publish("film", video(json!({}))).await;
    let run = host.start("film", json!({})).await;
    let job = host.claim("video").await;
    assert_eq!(host.finish(&job, json!({ "outcome": "failed", "error": "no such face" })).await, "ok");
    let ended = host.ended(&run).await;
    assert_eq!((&ended["status"], &ended["error"]["node"]), (&json!("failed"), &json!("v")));
    assert_eq!(ended["error"]["message"], "no such face");
    assert_eq!(story(&host, &run).await, ["failed"]);
}

#[tokio::test]
async fn a_pull_worker_says_that_a_fault_is_temporary() {
    let host = TestServer::new().await;
    host.publish("film", video(json!({}))).await;
    let run = host.start("film", json!({})).await;
    for _ in 0..4 {
        let job = host.claim("video").await;
        let slow = json!({ "outcome": "failed", "error": "the provider timed out", "temporary": true });
        assert_eq!(host.finish(&job, slow).await, "ok");
    }
    let job = host.claim("video").await;
    assert_eq!(job["attempt"], 5);
    assert_eq!(host.finish(&job, json!({ "outcome": "done", "result": 1 })).await, "ok");
    assert_eq!(host.ended(&run).await["status"], "completed");
    assert_eq!(story(&host, &run).await, [QUICK, QUICK, QUICK, RECHECK, "done"]);
}

#[tokio::test]
async fn a_pull_worker_that_takes_too_long_is_tried_again_and_then_asked_again() {
    let host = TestServer::new().await;
    host.publish("film", video(json!({ "timeout_ms": 150 }))).await;
    let run = host.start("film", json!({})).await;
    for attempt in 1..=4 {
        // Claimed, and never heard of again.
        assert_eq!(host.claim("video").await["attempt"], attempt);
    }
    let job = host.claim("video").await;
    assert_eq!(host.finish(&job, json!({ "outcome": "done" })).await, "ok");
    assert_eq!(host.ended(&run).await["status"], "completed");
    assert_eq!(story(&host, &run).await, [QUICK, QUICK, QUICK, RECHECK, "done"]);
}

#[tokio::test]
async fn while_faults_go_on_the_node_is_suspended_and_says_why() {
    let host = TestServer::new().await;
    // It has no worker.
    host.publish(
        "film",
        json!({ "nodes": [{ "id": "v", "type": "video", "exec_type": "http" }], "edges": [] }),
    )
    .await;
    let run = host.start("film", json!({})).await;
    let shown = host.until(&run, |run| run["node_states"]["v"]["status"] == "suspended").await;
    assert_eq!(shown["node_states"]["v"]["error"]["kind"], "no_worker");
    assert!(shown["wake_at"].is_string(), "{shown}");
    let why = host.get(&format!("/api/v1/runs/{run}/why")).await.ok();
    assert_eq!(why["reasons"][0]["waits_for"], "retry", "{why}");
    assert!(
        why["reasons"][0]["after"].as_str().unwrap().starts_with("no worker for service `video`"),
        "{why}"
    );
}

#[tokio::test]
async fn only_a_failure_can_be_temporary() {
    let host = TestServer::new().await;
    host.publish("film", video(json!({}))).await;
    host.start("film", json!({})).await;
    let job = host.claim("video").await;
    let end = json!({ "id": job["id"], "lease": job["lease"], "outcome": "done", "temporary": true });
    let response = host.post("/api/v1/jobs/finish", json!({ "results": [end] })).await;
    assert_eq!(response.refused(422, "invalid_body")["errors"][0]["path"], "results[0].temporary");
}
