//! Queries of the list of runs, counts, ids by their beginning, and the search.

use serde_json::{Value, json};

use crate::test_server::{TestServer, waiting};

/// A flow that fails when it is told so.
fn fails() -> Value {
    json!({ "start": "a", "nodes": {
        "a": { "kind": "local", "func": "fail", "prep": { "input_map": { "message": "$params.message" } } }
    } })
}

fn ids(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect()
}

/// Three runs: two that failed, with a label and an account, and one that waits.
async fn three_runs(host: &TestServer) -> [String; 3] {
    host.publish("f", fails()).await;
    host.publish("w", waiting()).await;
    let labels = json!({ "team": "video" });
    let first =
        host.start("f", json!({ "params": { "message": "disk full", "n": 1 }, "labels": labels })).await;
    let second =
        host.start("f", json!({ "params": { "message": "no route", "n": { "deep": [true] } } })).await;
    let third = host.start("w", json!({ "request_id": "order-7" })).await;
    host.ended(&first).await;
    host.ended(&second).await;
    host.until(&third, |run| run["status"] == "waiting").await;
    [first, second, third]
}

fn encoded(query: &str) -> String {
    query
        .bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}

#[tokio::test]
async fn a_query_selects_runs_and_combines_with_the_other_filters() {
    let host = TestServer::new().await;
    let [first, second, third] = three_runs(&host).await;
    let (first, second, third) = (first.as_str(), second.as_str(), third.as_str());
    for (query, expected) in [
        ("", vec![third, second, first]),
        ("status:failed", vec![second, first]),
        ("-status:failed", vec![third]),
        ("flow:f", vec![second, first]),
        ("flow:f@1 status:failed", vec![second, first]),
        ("flow:f,w", vec![third, second, first]),
        ("flow:f version:1", vec![second, first]),
        ("error~\"DISK full\"", vec![first]),
        ("error:error", vec![second, first]),
        ("label.team=video", vec![first]),
        ("label.team=*", vec![first]),
        ("-label.team=video status:failed", vec![second]),
        ("params.n=1", vec![first]),
        ("params.n.deep.0=true", vec![second]),
        ("-params.n=1 flow:f", vec![second]),
        ("request:order-7", vec![third]),
        ("trigger:api", vec![third, second, first]),
        ("trigger:schedule", vec![]),
        ("after:1h", vec![third, second, first]),
        ("before:1h", vec![]),
        ("duration>1d", vec![]),
        ("worker:nothing", vec![]),
        ("\"no route\"", vec![second]),
    ] {
        let found = host.get(&format!("/api/v1/runs?query={}", encoded(query))).await.ok();
        assert_eq!(ids(&found), expected, "{query}");
        assert_eq!(found["next"], Value::Null, "{query}");
    }
    let by_id = format!("id:{}", &first[..14]);
    let found = host.get(&format!("/api/v1/runs?query={}", encoded(&by_id))).await.ok();
    assert!(ids(&found).contains(&first), "{found}");
    let both = host.get("/api/v1/runs?query=status:failed&label=team").await.ok();
    assert_eq!(ids(&both), [first]);
    // A page of a filter on parameters ends with a cursor that leads on.
    let one = host.get("/api/v1/runs?query=params.message%3D*&limit=1").await.ok();
    assert_eq!(ids(&one), [second]);
    let next = one["next"].as_str().unwrap();
    let rest = host.get(&format!("/api/v1/runs?query=params.message%3D*&limit=1&cursor={next}")).await.ok();
    assert_eq!(ids(&rest), [first]);
}

#[tokio::test]
async fn a_wrong_query_names_its_position() {
    let host = TestServer::new().await;
    host.publish("f", fails()).await;
    for (query, path, part) in [
        ("stauts:failed", "?query:0", "did you mean `status`?"),
        ("flow:f status:faild", "?query:14", "did you mean `failed`?"),
        ("x flow:none", "?query:2", "there is no flow `none`"),
        ("flow:f@9", "?query:0", "has no version 9"),
        ("version:3", "?query:0", "needs its flow"),
    ] {
        let refused =
            host.get(&format!("/api/v1/runs?query={}", encoded(query))).await.refused(400, "bad_query");
        assert_eq!(refused["errors"][0]["path"], path, "{refused}");
        assert!(refused["errors"][0]["reason"].as_str().unwrap().contains(part), "{refused}");
    }
}

#[tokio::test]
async fn runs_are_counted_by_status() {
    let host = TestServer::new().await;
    three_runs(&host).await;
    let numbers = async |query: &str| {
        let counts = host.get(&format!("/api/v1/runs/counts?query={}", encoded(query))).await.ok();
        let of = |status: &str| {
            let counts = counts["counts"].as_array().unwrap();
            counts.iter().find(|count| count["value"] == status).unwrap()["count"].as_u64().unwrap()
        };
        (of("failed"), of("waiting"), of("completed"))
    };
    assert_eq!(numbers("").await, (2, 1, 0));
    // The statuses of the query are left out: all are counted.
    assert_eq!(numbers("status:failed").await, (2, 1, 0));
    assert_eq!(numbers("flow:w").await, (0, 1, 0));
    assert_eq!(numbers("params.n=1").await, (1, 0, 0));
    host.get("/api/v1/runs/counts?by=color").await.refused(400, "bad_query");
}

#[tokio::test]
async fn the_beginning_of_an_id_is_enough_where_it_is_unique() {
    let host = TestServer::new().await;
    let [first, second, _] = three_runs(&host).await;
    let shared = first.bytes().zip(second.bytes()).take_while(|(a, b)| a == b).count();
    let unique = &first[..shared + 1];
    for path in [unique.to_owned(), unique.trim_start_matches("run_").to_owned()] {
        let shown = host.get(&format!("/api/v1/runs/{path}")).await;
        // One digit more may still be the digit of the third run.
        if shown.status == 200 {
            assert_eq!(shown.ok()["id"], first.as_str());
        }
    }
    let almost = &first[..first.len() - 1];
    assert_eq!(host.get(&format!("/api/v1/runs/{almost}")).await.ok()["id"], first.as_str());
    assert_eq!(
        host.get(&format!("/api/v1/runs/{almost}/attempts?limit=1")).await.ok()["items"][0]["node"],
        "a"
    );
    let several = host.get(&format!("/api/v1/runs/{}", &first[..8])).await.refused(409, "ambiguous_id");
    assert_eq!(several["errors"].as_array().unwrap().len(), 3, "{several}");
    host.get("/api/v1/runs/run_ffff").await.refused(404, "unknown_run");
    host.get("/api/v1/runs/run_1").await.refused(404, "unknown_run");
    // The audit has the whole id.
    host.post(&format!("/api/v1/runs/{almost}/retry"), json!({})).await.ok();
    let line = host.get("/api/v1/audit?limit=1").await.ok();
    assert_eq!(line["items"][0]["subject"], first.as_str(), "{line}");
}

#[tokio::test]
async fn the_search_finds_runs_flows_and_queues() {
    let host = TestServer::new().await;
    let [first, ..] = three_runs(&host).await;
    host.put("/api/v1/queues/video-motion", json!({ "paused": true })).await.ok();
    let kinds = async |text: &str| {
        let found = host.get(&format!("/api/v1/search?q={}", encoded(text))).await.ok();
        let items = found["items"].as_array().unwrap().clone();
        items
            .iter()
            .map(|hit| format!("{} {}", hit["kind"].as_str().unwrap(), hit["id"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&first).await, [format!("run {first}")]);
    assert_eq!(kinds("motion").await, ["queue video-motion"]);
    host.publish("orders-eu", waiting()).await;
    assert_eq!(kinds("ders").await, ["flow orders-eu"]);
    host.get("/api/v1/search?q=x").await.refused(400, "bad_query");
}
