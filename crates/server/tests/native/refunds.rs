//! Every way in which a priced call does not come to its end gives everything back.

use std::time::Duration;

use serde_json::{Value, json};

use crate::money::{per_second, speech};
use crate::test_server::TestServer;

/// A server with a rich account and a price, and these flows.
async fn host(flows: &[(&str, Value)]) -> TestServer {
    let host = TestServer::new().await;
    for (name, definition) in flows {
        host.publish(name, definition.clone()).await;
    }
    host.account("acme", 1_000).await;
    host.put("/api/v1/prices/audio_tts", per_second()).await.ok();
    host
}

impl TestServer {
    async fn paid(&self, flow: &str) -> String {
        self.start(flow, json!({ "variables": { "seconds": 50 }, "account": "acme" })).await
    }

    /// Checks that the account has its whole balance, and that every charge was refunded.
    async fn whole_again(&self, n_charges: usize) {
        assert_eq!(self.money("acme").await, (1_000, 0));
        let moved = self.moved("acme").await;
        let n = |kind: &str| moved.iter().filter(|(of, _)| of == kind).count();
        assert_eq!((n("charge"), n("refund"), n("settle")), (n_charges, n_charges, 0), "{moved:?}");
        self.sound().await;
    }
}

fn step(more: Value) -> Value {
    let mut node = json!({ "id": "tts", "type": "audio_tts", "config": { "seconds": "$var.seconds" } });
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

#[tokio::test]
async fn a_call_that_fails_for_good_is_refunded_and_its_retries_are_not_charged() {
    let retry = json!({ "nodes": [step(json!({ "retry": { "max": 2, "delay_ms": 0 } }))], "edges": [] });
    let host = host(&[("speak", retry)]).await;
    let run = host.paid("speak").await;
    for _ in 0..3 {
        let job = host.claim("audio_tts").await;
        assert_eq!(host.money("acme").await, (900, 100));
        host.finish(&job, json!({ "outcome": "failed", "error": "no voice" })).await;
    }
    assert_eq!(host.ended(&run).await["status"], "failed");
    host.whole_again(1).await;
}

#[tokio::test]
async fn a_cancelled_run_is_refunded_wherever_it_stands() {
    let host = host(&[("speak", speech())]).await;
    // No worker holds it yet.
    let run = host.paid("speak").await;
    host.post(&format!("/api/v1/runs/{run}/cancel"), json!({})).await.ok();
    assert_eq!(host.ended(&run).await["status"], "canceled");
    host.whole_again(1).await;
    // A worker holds it, and reports afterwards.
    let run = host.paid("speak").await;
    let job = host.claim("audio_tts").await;
    host.post(&format!("/api/v1/runs/{run}/cancel"), json!({})).await.ok();
    let verdict = host.finish(&job, json!({ "outcome": "done", "result": { "seconds": 50 } })).await;
    assert_eq!((verdict, host.ended(&run).await["status"].clone()), (json!("canceled"), json!("canceled")));
    host.whole_again(2).await;
    // It is suspended.
    let run = host.paid("speak").await;
    let job = host.claim("audio_tts").await;
    host.finish(&job, json!({ "outcome": "suspended", "memo": { "task": 7 } })).await;
    assert_eq!(host.money("acme").await, (900, 100));
    host.post(&format!("/api/v1/runs/{run}/cancel"), json!({})).await.ok();
    assert_eq!(host.ended(&run).await["status"], "canceled");
    host.whole_again(3).await;
}

#[tokio::test]
async fn a_run_cancelled_while_it_waits_for_money_was_never_charged() {
    let host = host(&[("speak", speech())]).await;
    let body = json!({ "variables": { "seconds": 9_999 }, "account": "acme", "on_short_balance": "wait" });
    let run = host.start("speak", body).await;
    host.post(&format!("/api/v1/runs/{run}/cancel"), json!({})).await.ok();
    assert_eq!(host.ended(&run).await["status"], "canceled");
    host.deposit("acme", 50_000, "too late").await.ok();
    assert_eq!(host.money("acme").await, (51_000, 0));
    assert!(host.moved("acme").await.iter().all(|(kind, _)| kind == "deposit"));
    host.sound().await;
}

#[tokio::test]
async fn a_branch_that_a_failed_sibling_stops_is_refunded() {
    let two = json!({ "nodes": [
        step(json!({ "id": "a" })), step(json!({ "id": "b" })),
        { "id": "bad", "type": "other", "config": {} }
    ], "edges": [] });
    let host = host(&[("both", two)]).await;
    let run = host.paid("both").await;
    let working = host.claim("audio_tts").await;
    assert_eq!(host.money("acme").await, (800, 200));
    let bad = host.claim("other").await;
    host.finish(&bad, json!({ "outcome": "failed", "error": "no", "retryable": false })).await;
    assert_eq!(host.ended(&run).await["status"], "failed");
    let verdict = host.finish(&working, json!({ "outcome": "done", "result": { "seconds": 50 } })).await;
    assert_ne!(verdict, "ok");
    host.whole_again(2).await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_refunded() {
    let host = host(&[(
        "slow",
        json!({ "start": "tts", "nodes": { "tts": {
        "service": "audio_tts", "exec_type": "queue", "timeout_ms": 30, "params": { "seconds": 50 } } } }),
    )])
    .await;
    let run = host.start("slow", json!({ "account": "acme" })).await;
    host.claim("audio_tts").await;
    assert_eq!(host.money("acme").await, (900, 100));
    assert_eq!(host.ended(&run).await["status"], "failed");
    host.whole_again(1).await;
}

#[tokio::test]
async fn a_call_that_kills_its_workers_is_charged_once_and_refunded() {
    let host = host(&[("speak", speech())]).await;
    let run = host.paid("speak").await;
    for _ in 0..3 {
        let claim =
            json!({ "worker_id": "w", "services": ["audio_tts"], "wait_ms": 20_000, "lease_ms": 1_000 });
        host.post("/api/v1/jobs/claim", claim).await.ok();
        assert_eq!(host.money("acme").await, (900, 100));
    }
    let ended = host.ended(&run).await;
    assert!(ended["error"]["message"].as_str().unwrap().contains("poison"), "{ended}");
    host.whole_again(1).await;
}

#[tokio::test]
async fn a_retried_and_a_rerun_node_is_charged_anew() {
    let host = host(&[("speak", speech())]).await;
    let run = host.paid("speak").await;
    let job = host.claim("audio_tts").await;
    host.finish(&job, json!({ "outcome": "failed", "error": "no", "retryable": false })).await;
    assert_eq!(host.ended(&run).await["status"], "failed");
    host.whole_again(1).await;
    host.post(&format!("/api/v1/runs/{run}/retry"), json!({})).await.ok();
    let job = host.claim("audio_tts").await;
    assert_eq!(host.money("acme").await, (900, 100));
    host.finish(&job, json!({ "outcome": "done", "result": { "seconds": 20 } })).await;
    assert_eq!(host.ended(&run).await["status"], "completed");
    assert_eq!(host.money("acme").await, (960, 0));
    host.post(&format!("/api/v1/runs/{run}/rerun"), json!({ "from": "tts" })).await.ok();
    let job = host.claim("audio_tts").await;
    assert_eq!(host.money("acme").await, (860, 100));
    host.finish(&job, json!({ "outcome": "done", "result": { "seconds": 50 } })).await;
    assert_eq!(host.ended(&run).await["status"], "completed");
    assert_eq!(host.money("acme").await, (860, 0));
    host.sound().await;
}

#[tokio::test]
async fn runs_of_one_account_never_overdraw_it_and_other_accounts_do_not_wait() {
    let host = host(&[("speak", speech())]).await;
    host.account("other", 100).await;
    let body = |account: &str| json!({ "variables": { "seconds": 50 }, "account": account });
    let mut runs = Vec::new();
    for _ in 0..25 {
        runs.push(host.start("speak", body("acme")).await);
    }
    let other = host.start("speak", body("other")).await;
    assert_eq!((host.money("acme").await, host.money("other").await), ((0, 1_000), (0, 100)));
    let (mut n_failed, mut n_done) = (0, 0);
    for _ in 0..11 {
        let job = host.claim("audio_tts").await;
        host.finish(&job, json!({ "outcome": "done", "result": { "seconds": 50 } })).await;
    }
    for run in &runs {
        let ended = host.ended(run).await;
        let is_failed = ended["status"] == "failed";
        n_failed += usize::from(is_failed);
        n_done += usize::from(!is_failed);
    }
    assert_eq!((n_done, n_failed, host.ended(&other).await["status"].clone()), (10, 15, json!("completed")));
    assert_eq!((host.money("acme").await, host.money("other").await), ((0, 0), (0, 0)));
    host.sound().await;
    tokio::time::timeout(Duration::from_secs(20), host.get("/api/v1/accounts")).await.unwrap().ok();
}

/// A flow that calls `speak`.
fn caller() -> Value {
    json!({ "nodes": [{ "id": "call", "type": "flow_ref", "config": { "flow": "speak", "params": { "seconds": 50 } } }], "edges": [] })
}

#[tokio::test]
async fn charges_of_a_child_run_come_back_when_it_fails_or_is_stopped() {
    let host = host(&[("speak", speech()), ("caller", caller())]).await;
    let run = host.start("caller", json!({ "account": "acme" })).await;
    let job = host.claim("audio_tts").await;
    assert_eq!(host.money("acme").await, (900, 100));
    host.finish(&job, json!({ "outcome": "failed", "error": "no", "retryable": false })).await;
    assert_eq!(host.ended(&run).await["status"], "failed");
    host.whole_again(1).await;
    let run = host.start("caller", json!({ "account": "acme" })).await;
    let job = host.claim("audio_tts").await;
    host.post(&format!("/api/v1/runs/{run}/cancel"), json!({})).await.ok();
    let child = job["run"].as_str().unwrap();
    host.until(child, |run| run["status"] == "canceling").await;
    host.finish(&job, json!({ "outcome": "done", "result": { "seconds": 50 } })).await;
    assert_eq!(host.ended(child).await["status"], "canceled");
    assert_eq!(host.ended(&run).await["status"], "canceled");
    host.whole_again(2).await;
}

#[tokio::test]
async fn every_turn_of_a_loop_is_charged_and_settled() {
    let turns = json!({ "title": "turns", "steps": [{
        "id": "each", "operator": "@control/flow/loop", "parameters": { "mode": "limit", "limit": 3 },
        "steps": [{ "id": "say", "operator": "audio_tts", "parameters": { "seconds": 50 } }]
    }] });
    let host = host(&[("turns", turns)]).await;
    let run = host.start("turns", json!({ "account": "acme" })).await;
    for n in 0..3 {
        let job = host.claim("audio_tts").await;
        assert_eq!(host.money("acme").await.1, 100);
        host.finish(&job, json!({ "outcome": "done", "result": { "seconds": 10 + n } })).await;
    }
    assert_eq!(host.ended(&run).await["status"], "completed");
    assert_eq!(host.money("acme").await, (1_000 - 20 - 22 - 24, 0));
    host.sound().await;
}
