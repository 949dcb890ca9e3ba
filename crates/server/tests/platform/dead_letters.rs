//! Dead letters: listed, grouped, replayed, discarded.

use serde_json::{Value, json};

use crate::support::{task, with};
use crate::test_server::TestServer;

const DLQ: &str = "/api/v1/queues/default/dlq";

#[tokio::test]
async fn dead_letters_are_told_as_the_document_has_them() {
    let host = TestServer::new().await;
    let body = with("a", json!({ "priority": 1, "max_retries": 1, "payload": { "k": "v" } }));
    let id = host.dead_letter(body, "odd").await;
    let response = host.get(&format!("{DLQ}?count=50")).await.ok();
    assert_eq!((&response["queue"], &response["count"]), (&json!("default"), &json!(1)));
    let item: Value = serde_json::from_str(response["items"][0].as_str().unwrap()).unwrap();
    let expected = json!({
        "task_run_id": format!("{}00000001", &id[..28]), "task_id": id, "attempt": 1, "payload": { "k": "v" }, "priority": 1,
        "queue_name": "default", "max_retries": 1,
        "error": { "message": "odd", "kind": "error", "retryable": false }
    });
    assert_eq!(item, expected);
    let objects = host.get(&format!("{DLQ}?format=objects")).await.ok();
    assert_eq!((&objects["items"][0]["task_id"], &objects["items"][0]["name"]), (&json!(id), &json!("a")));
    assert_eq!(host.get("/api/v1/queues/other/dlq").await.ok()["count"], 0);
}

#[tokio::test]
async fn dead_letters_come_in_pages_and_in_groups() {
    let host = TestServer::new().await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(host.dead_letter(task("a"), &format!("no row {n}")).await);
    }
    ids.push(host.dead_letter(task("a"), "the disk is full").await);
    let groups = host.get(&format!("{DLQ}/groups")).await.ok();
    let counts: Vec<&Value> =
        groups["groups"].as_array().unwrap().iter().map(|group| &group["count"]).collect();
    assert_eq!(counts, [&json!(3), &json!(1)]);
    let fingerprint = groups["groups"][0]["fingerprint"].as_str().unwrap();
    let of_group = host.get(&format!("{DLQ}?format=objects&fingerprint={fingerprint}")).await.ok();
    assert_eq!((&of_group["count"], &of_group["items"][0]["fingerprint"]), (&json!(3), &json!(fingerprint)));
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let page = host.get(&format!("{DLQ}?format=objects&count=3{after}")).await.ok();
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["task_id"].clone()));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ids);
}

#[tokio::test]
async fn a_replay_moves_the_oldest_and_may_change_their_priority() {
    let host = TestServer::new().await;
    let first =
        host.dead_letter(with("a", json!({ "priority": 1, "payload": { "n": 1, "m": 2 } })), "odd").await;
    let second = host.dead_letter(task("a"), "odd").await;
    let body =
        json!({ "count": 1, "override_priority": 2, "patch": { "n": 5, "m": null }, "replay_id": "r-1" });
    let response = host.post(&format!("{DLQ}/replay"), body.clone()).await.ok();
    assert_eq!(response, json!({ "queue": "default", "moved": 1, "ids": [first] }));
    let shown = host.task(&first).await;
    assert_eq!((&shown["display_status"], &shown["task"]["priority"]), (&json!("queued"), &json!(2)));
    assert_eq!((&shown["latest_run"]["attempt"], &shown["task"]["payload"]), (&json!(2), &json!({ "n": 5 })));
    assert_eq!(host.task(&second).await["display_status"], "failed");
    let response = host.post(&format!("{DLQ}/replay"), json!({ "ids": [first, second] })).await.ok();
    assert_eq!((&response["moved"], &response["refused"][0]["task_id"]), (&json!(1), &json!(first)));
    assert!(response["refused"][0]["reason"].is_string());
}

#[tokio::test]
async fn a_group_is_replayed_and_another_discarded() {
    let host = TestServer::new().await;
    for error in ["no row 1", "no row 2", "the disk is full"] {
        host.dead_letter(task("a"), error).await;
    }
    let groups = host.get(&format!("{DLQ}/groups")).await.ok();
    let of = |n: usize| groups["groups"][n]["fingerprint"].clone();
    let response =
        host.post(&format!("{DLQ}/replay"), json!({ "fingerprint": of(0), "per_second": 100 })).await.ok();
    assert_eq!(response["moved"], 2);
    let body = json!({ "fingerprint": of(1), "reason": "the disk was replaced" });
    let response = host.post(&format!("{DLQ}/discard"), body).await.ok();
    assert_eq!(response["moved"], 1);
    let discarded = host.task(response["ids"][0].as_str().unwrap()).await;
    assert_eq!(
        (&discarded["task"]["discarded"], &discarded["display_status"]),
        (&json!("the disk was replaced"), &json!("failed"))
    );
    assert_eq!(host.get(DLQ).await.ok()["count"], 0);
}

#[tokio::test]
async fn mistakes_in_a_replay_or_a_discard_are_named() {
    let host = TestServer::new().await;
    let replay =
        async |body: Value| host.post(&format!("{DLQ}/replay"), body).await.no(400, "invalid_fields");
    assert_eq!(replay(json!({ "count": 0 })).await, ["$.count"]);
    assert_eq!(replay(json!({ "count": 10_001 })).await, ["$.count"]);
    assert_eq!(replay(json!({ "ids": ["x", 5] })).await, ["$.ids[0]", "$.ids[1]"]);
    assert_eq!(replay(json!({ "ids": [] })).await, ["$.ids"]);
    let id = "00000000-0000-0000-0000-000000000001";
    assert_eq!(replay(json!({ "ids": [id], "fingerprint": "a" })).await, ["$.ids"]);
    assert_eq!(replay(json!({ "ids": [id], "count": 1 })).await, ["$.count"]);
    let body = json!({ "override_priority": "2", "per_second": 0, "replay_id": "", "conut": 1 });
    assert_eq!(replay(body).await, ["$.override_priority", "$.per_second", "$.replay_id"]);
    let discard =
        async |body: Value| host.post(&format!("{DLQ}/discard"), body).await.no(400, "invalid_fields");
    assert_eq!(discard(json!({})).await, ["$", "$.reason"]);
    assert_eq!(discard(json!({ "count": 1, "reason": " " })).await, ["$.reason"]);
    let response = host.post(&format!("{DLQ}/replay"), json!({})).await.ok();
    assert_eq!(response, json!({ "queue": "default", "moved": 0, "ids": [] }));
    let response = host.post(&format!("{DLQ}/discard"), json!({ "ids": [id], "reason": "gone" })).await.ok();
    assert_eq!((&response["moved"], &response["refused"][0]["task_id"]), (&json!(0), &json!(id)));
}
