//! Streams of events.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::test_server::{TestServer, upper, waiting};

/// Events read from a stream, as they come.
struct Watch {
    body: Body,
    text: String,
}

#[derive(Debug)]
struct Event {
    name: String,
    id: String,
    data: Value,
}

impl Watch {
    async fn open(host: &TestServer, path: &str, last: Option<&str>) -> Watch {
        let mut request = Request::builder().uri(path).header("host", "localhost");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response: Response =
            host.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Watch { body: response.into_body(), text: String::new() }
    }

    /// The next event; `None` when the stream has ended.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                    line.unwrap_or_default().to_owned()
                };
                return Some(Event {
                    name: field("event"),
                    id: field("id"),
                    data: serde_json::from_str(&field("data")).unwrap(),
                });
            }
            let frame = std::future::poll_fn(|context| {
                hyper::body::Body::poll_frame(std::pin::Pin::new(&mut self.body), context)
            });
            let frame =
                tokio::time::timeout(Duration::from_secs(60), frame).await.expect("the stream is silent")?;
            self.text.push_str(std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap());
        }
    }

    async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

#[tokio::test]
async fn the_stream_of_a_run_is_its_journal_and_ends_with_it() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    let run = host.start("b", json!({})).await;
    let path = format!("/api/v1/runs/{run}/events");
    let mut watch = Watch::open(&host, &path, None).await;
    let first = watch.next().await.unwrap();
    assert_eq!((first.name.as_str(), first.id.as_str(), &first.data["seq"]), ("entry", "1", &json!(1)));
    host.post(&format!("/api/v1/runs/{run}/signal"), json!({ "key": "payment", "value": 1 })).await.ok();
    let len = host.ended(&run).await["len"].as_u64().unwrap();
    let rest = watch.rest().await;
    let ids: Vec<String> = rest.iter().filter(|e| e.name == "entry").map(|e| e.id.clone()).collect();
    assert_eq!(ids, (2..=len).map(|seq| seq.to_string()).collect::<Vec<_>>());
    let last = rest.last().unwrap();
    assert_eq!((last.name.as_str(), &last.data["status"]), ("end", &json!("completed")));
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was_left() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    let run = host.start("a", json!({ "params": { "text": "hi" } })).await;
    let len = host.ended(&run).await["len"].as_u64().unwrap();
    let path = format!("/api/v1/runs/{run}/events");
    let all = Watch::open(&host, &path, None).await.rest().await;
    assert_eq!(all.len() as u64, len + 1);
    let rest = Watch::open(&host, &path, Some("1")).await.rest().await;
    assert_eq!(rest.len() as u64, len);
    assert!(rest.iter().all(|event| event.id != "1"), "{rest:?}");
    let none = Watch::open(&host, &path, Some(&len.to_string())).await.rest().await;
    assert_eq!(none.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), ["end"]);
}

#[tokio::test]
async fn the_stream_of_all_runs_tells_changes_and_what_was_missed() {
    let host = TestServer::new().await;
    host.publish("a", upper()).await;
    let mut watch = Watch::open(&host, "/api/v1/events", None).await;
    let run = host.start("a", json!({ "params": { "text": "hi" } })).await;
    let first = watch.next().await.unwrap();
    assert_eq!((first.name.as_str(), &first.data["run"]), ("change", &json!(run)));
    host.ended(&run).await;
    let mut missed = Watch::open(&host, "/api/v1/events", Some(&first.id)).await;
    let response = missed.next().await.unwrap();
    assert_eq!((&response.data["run"], &response.data["status"]), (&json!(run), &json!("completed")));
    // A change that became durable late has an earlier time than the last seen one.
    let seen_later: u64 = response.id.parse::<u64>().unwrap() + 5_000;
    let mut missed = Watch::open(&host, "/api/v1/events", Some(&seen_later.to_string())).await;
    assert_eq!(missed.next().await.unwrap().data["run"], json!(run));
    let mut later = Watch::open(&host, "/api/v1/events", Some("99999999999999")).await;
    let other = host.start("a", json!({})).await;
    assert_eq!(later.next().await.unwrap().data["run"], json!(other));
}

#[tokio::test]
async fn a_stream_that_cannot_be_is_refused() {
    let host = TestServer::new().await;
    host.get("/api/v1/runs/run_00000000000000000000000000000001/events").await.refused(404, "unknown_run");
    let request = Request::builder().uri("/api/v1/events").header("last-event-id", "yesterday");
    host.send(request.body(Body::empty()).unwrap()).await.refused(400, "bad_query");
}

#[tokio::test]
async fn a_topic_of_a_run_sends_its_nodes_as_they_change() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    let run = host.start("b", json!({})).await;
    host.until(&run, |run| run["status"] == "waiting").await;
    let mut watch =
        Watch::open(&host, &format!("/api/v1/events?topics=run:{run},runs,approvals"), None).await;
    let hello = watch.next().await.unwrap();
    assert_eq!((hello.name.as_str(), &hello.data["topics"][1]), ("hello", &json!("runs")));
    let page = host.get(&format!("/api/v1/runs/{run}/view")).await.ok();
    host.post(&format!("/api/v1/runs/{run}/signal"), json!({ "key": "payment", "value": 1 })).await.ok();
    let ended = host.ended(&run).await;
    let (mut nodes, mut attempts) = (page["node_states"].clone(), Vec::new());
    let (mut last_id, mut has_runs, mut has_approvals) = (hello.id.parse::<u64>().unwrap(), false, false);
    let mut status = Value::Null;
    while status != "completed" || !has_runs || !has_approvals {
        let event = watch.next().await.unwrap();
        let id: u64 = event.id.parse().unwrap();
        assert!(id > last_id, "ids grow");
        last_id = id;
        match event.name.as_str() {
            "patch" if event.data.get("run").is_some() => {
                assert_eq!(event.data["topic"], format!("run:{run}"));
                for (path, node) in event.data["node_states"].as_object().into_iter().flatten() {
                    nodes[path] = node.clone();
                }
                attempts.extend(event.data["attempts"].as_array().into_iter().flatten().cloned());
                status = event.data["run"]["status"].clone();
            }
            "runs" => {
                has_runs = true;
                assert_eq!(event.data["changes"][0]["run"], json!(run));
            }
            "changed" => has_approvals |= event.data["topic"] == "approvals",
            "patch" => {}
            other => panic!("{other}: {event:?}"),
        }
    }
    let fresh = host.get(&format!("/api/v1/runs/{run}/view")).await.ok();
    assert_eq!(nodes, fresh["node_states"], "patches lead to the same nodes as a new snapshot");
    assert_eq!(fresh["seq"], ended["len"]);
    for attempt in &attempts {
        let same = |other: &&Value| other["node"] == attempt["node"] && other["visit"] == attempt["visit"];
        assert!(fresh["attempts"].as_array().unwrap().iter().any(|other| same(&other)), "{attempt}");
    }
}

#[tokio::test]
async fn a_stream_of_topics_that_is_opened_again_tells_where_something_was_missed() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    let run = host.start("b", json!({})).await;
    host.until(&run, |run| run["status"] == "waiting").await;
    let path = format!("/api/v1/events?topics=run:{run},runs,queues");
    let hello = Watch::open(&host, &path, None).await.next().await.unwrap();
    let mut watch = Watch::open(&host, &path, Some(&hello.id)).await;
    assert_eq!(watch.next().await.unwrap().name, "hello");
    let missed = watch.next().await.unwrap();
    assert_eq!((missed.name.as_str(), &missed.data["topic"]), ("resync", &json!(format!("run:{run}"))));
    let runs = watch.next().await.unwrap();
    assert_eq!((runs.name.as_str(), &runs.data["changes"][0]["run"]), ("runs", &json!(run)));
    let queues = watch.next().await.unwrap();
    assert_eq!((queues.name.as_str(), &queues.data["topic"]), ("changed", &json!("queues")));
    // Long after the last change nothing was missed.
    let later = hello.id.parse::<u64>().unwrap() + 60_000;
    let mut watch = Watch::open(&host, &format!("{path}&last_event_id={later}"), None).await;
    assert_eq!(watch.next().await.unwrap().name, "hello");
    assert_eq!(watch.next().await.unwrap().data["topic"], "queues");
    for wrong in ["run:x", "", "nothing"] {
        host.get(&format!("/api/v1/events?topics={wrong}")).await.refused(400, "bad_query");
    }
}

#[tokio::test]
async fn the_progress_of_a_bulk_action_is_a_topic() {
    let host = TestServer::new().await;
    host.publish("b", waiting()).await;
    host.start("b", json!({})).await;
    let body = json!({ "kind": "runs", "query": "flow:b", "action": "cancel" });
    let bulk = host.post("/api/v1/bulk", body).await.ok()["id"].as_str().unwrap().to_owned();
    let mut watch = Watch::open(&host, &format!("/api/v1/events?topics=bulk:{bulk},overview"), None).await;
    let (mut bulk_status, mut has_overview) = (Value::Null, false);
    while bulk_status != "completed" || !has_overview {
        let event = watch.next().await.unwrap();
        match event.name.as_str() {
            "bulk" => bulk_status = event.data["status"].clone(),
            "overview" => has_overview = event.data["tiles"].is_object(),
            other => assert_eq!(other, "hello"),
        }
    }
}
