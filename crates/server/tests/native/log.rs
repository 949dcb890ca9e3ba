//! The log of a run.

use serde_json::{Value, json};

use crate::test_server::{TestServer, approval, queued};

fn response(lines: &[Value]) -> Vec<(&str, &str, &str)> {
    let word = |line: &'_ Value, name: &str| {
        line[name].as_str().map_or("", |text| {
            // The lines outlive this.
            Box::leak(text.to_owned().into_boxed_str())
        })
    };
    lines.iter().map(|line| (word(line, "level"), word(line, "node"), word(line, "message"))).collect()
}

#[tokio::test]
async fn the_log_of_a_run_tells_its_whole_story() {
    let host = TestServer::new().await;
    host.publish("press", queued()).await;
    let run = host.start("press", json!({ "params": { "text": "hi" } })).await;
    let job = host.claim("press").await;
    let logs = json!([{ "message": "ink is low", "level": "warn", "data": { "percent": 7 } }, { "message": "printed" }]);
    let end = json!({ "outcome": "done", "result": "HI", "log": "two\nlines", "logs": logs });
    assert_eq!(host.finish(&job, end).await, "ok");
    host.ended(&run).await;
    let lines = host.lines(&run, "").await;
    let expected = [
        ("info", "", "the run started"),
        ("info", "work", "entered"),
        ("info", "work", "called, attempt 1"),
        ("info", "work", "two\nlines"),
        ("warn", "work", "ink is low"),
        ("info", "work", "printed"),
        ("info", "work", "done"),
        ("info", "", "the run completed"),
    ];
    assert_eq!(response(&lines), expected);
    assert_eq!((&lines[4]["data"], &lines[4]["fence"]), (&json!({ "percent": 7 }), &json!(1)));
    assert_eq!(lines[6]["data"], json!({ "fence": 1, "worker": "w" }));
    assert!(lines.iter().all(|line| line["at"].as_str().unwrap().ends_with('Z')));
    assert_eq!(response(&host.lines(&run, "&level=warn").await), [("warn", "work", "ink is low")]);
    assert_eq!(host.lines(&run, "&node=work").await.len(), 6);
    assert!(host.lines(&run, "&node=wor").await.is_empty());
    let page = host.get(&format!("/api/v1/runs/{run}/logs?limit=3")).await.ok();
    let next = page["next"].as_str().unwrap();
    let rest = host.lines(&run, &format!("&cursor={next}")).await;
    assert_eq!((page["items"].as_array().unwrap().len(), rest.len()), (3, 5));
}

#[tokio::test]
async fn queries_of_logs_are_checked() {
    let host = TestServer::new().await;
    host.publish("press", queued()).await;
    let run = host.start("press", json!({})).await;
    for query in ["?level=loud", "?levl=info", "?limit=0", "?follow=maybe"] {
        host.get(&format!("/api/v1/runs/{run}/logs{query}")).await.refused(400, "bad_query");
    }
    for cursor in ["5", "0.1", "1.-1", "x.y", "1.2.3", "99999999999999999999.1"] {
        host.get(&format!("/api/v1/runs/{run}/logs?cursor={cursor}")).await.refused(400, "bad_cursor");
    }
    assert!(host.lines(&run, "&cursor=18446744073709551615.18446744073709551615").await.is_empty());
    host.get("/api/v1/runs/run_1/logs").await.refused(404, "unknown_run");
}

#[tokio::test]
async fn a_line_that_cannot_be_read_costs_no_result() {
    let host = TestServer::new().await;
    host.publish("press", queued()).await;
    for logs in [json!([{ "message": "x", "level": "loud" }]), json!([{ "text": "x" }, "plain"]), json!("x")]
    {
        let run = host.start("press", json!({})).await;
        let job = host.claim("press").await;
        assert_eq!(host.finish(&job, json!({ "outcome": "suspended", "logs": logs })).await, "ok");
        let call = job["call"].as_str().unwrap();
        let report = json!({ "result": "HI", "logs": logs });
        assert_eq!(host.post(&format!("/api/v1/calls/{call}/report"), report).await.ok()["verdict"], "ok");
        assert_eq!(host.ended(&run).await["status"], "completed");
        let warned = host.lines(&run, "&level=warn").await;
        assert_eq!(
            response(&warned).iter().filter(|line| line.2.contains("cannot be read")).count(),
            2,
            "{warned:?}"
        );
    }
}

#[tokio::test]
async fn too_much_is_cut_and_never_costs_the_result() {
    let host = TestServer::new().await;
    host.publish("press", queued()).await;
    let run = host.start("press", json!({})).await;
    let job = host.claim("press").await;
    let logs: Vec<Value> = (0..1_002)
        .map(|n| json!({ "message": format!("{n} {}", "x".repeat(5_000 * usize::from(n == 0))) }))
        .collect();
    assert_eq!(host.finish(&job, json!({ "outcome": "done", "logs": logs })).await, "ok");
    assert_eq!(host.ended(&run).await["status"], "completed");
    let lines = host.all(&run, 1_000).await;
    assert_eq!(lines[3]["message"].as_str().unwrap().len(), 4_096);
    let (level, _, message) = response(&lines)[1_003];
    assert_eq!(level, "warn");
    assert!(message.starts_with("2 more lines were left out: an attempt may write 1000"), "{message}");

    let run = host.start("press", json!({})).await;
    let job = host.claim("press").await;
    let logs: Vec<Value> = (0..100).map(|_| json!({ "message": "m", "data": "y".repeat(10_000) })).collect();
    let end = json!({ "outcome": "done", "logs": logs, "log": format!("{}!", "x".repeat(1 << 20)) });
    assert_eq!(host.finish(&job, end).await, "ok");
    host.ended(&run).await;
    let lines = host.all(&run, 1_000).await;
    let text = lines[3]["message"].as_str().unwrap();
    assert_eq!((text.len(), text.ends_with('!')), (64 << 10, true));
    assert_eq!(lines.iter().filter(|line| line["message"] == "m").count(), 26);
}

impl TestServer {
    /// The whole log, so many lines at a time.
    async fn all(&self, run: &str, limit: usize) -> Vec<Value> {
        let (mut lines, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("/api/v1/runs/{run}/logs?limit={limit}{cursor}")).await.ok();
            lines.extend(page["items"].as_array().unwrap().iter().cloned());
            let Some(next) = page["next"].as_str() else { return lines };
            cursor = format!("&cursor={next}");
        }
    }

    /// The lines after the cursor, and the next cursor.
    async fn new_lines(&self, run: &str, cursor: &mut String, query: &str) -> Vec<Value> {
        let path = format!("/api/v1/runs/{run}/logs?follow=true&limit=1000{query}{cursor}");
        let page = self.get(&path).await.ok();
        *cursor = format!("&cursor={}", page["next"].as_str().unwrap());
        page["items"].as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn a_follower_of_a_log_misses_and_repeats_nothing() {
    let host = TestServer::new().await;
    host.publish("press", queued()).await;
    let run = host.start("press", json!({})).await;
    let (mut all, mut loud) = (String::new(), String::new());
    let mut seen = host.new_lines(&run, &mut all, "").await;
    let mut warned = host.new_lines(&run, &mut loud, "&level=warn").await;
    let job = host.claim("press").await;
    let call = format!("/api/v1/calls/{}/report", job["call"].as_str().unwrap());
    let said = |text: &str| json!([{ "message": text, "level": "warn" }]);
    let later = json!({ "outcome": "suspended", "memo": 7, "logs": said("one") });
    assert_eq!(host.finish(&job, later).await, "ok");
    seen.extend(host.new_lines(&run, &mut all, "").await);
    warned.extend(host.new_lines(&run, &mut loud, "&level=warn").await);
    let later = json!({ "outcome": "suspended", "memo": 8, "logs": said("two") });
    assert_eq!(host.post(&call, later).await.ok()["verdict"], "ok");
    seen.extend(host.new_lines(&run, &mut all, "").await);
    let fails = json!({ "outcome": "failed", "error": "no ink", "retryable": false, "logs": said("three") });
    assert_eq!(host.post(&call, fails.clone()).await.ok()["verdict"], "ok");
    assert_eq!(host.ended(&run).await["status"], "failed");
    // The same once more, and another that comes too late: neither adds anything.
    assert_eq!(host.post(&call, fails).await.ok()["verdict"], "ok");
    assert_eq!(host.post(&call, json!({ "logs": said("late") })).await.ok()["verdict"], "lost");
    seen.extend(host.new_lines(&run, &mut all, "").await);
    host.post(&format!("/api/v1/runs/{run}/retry"), json!({})).await.ok();
    let job = host.claim("press").await;
    assert_eq!(host.finish(&job, json!({ "outcome": "done", "logs": said("four") })).await, "ok");
    host.ended(&run).await;
    seen.extend(host.new_lines(&run, &mut all, "").await);
    warned.extend(host.new_lines(&run, &mut loud, "&level=warn").await);
    assert!(host.new_lines(&run, &mut all, "").await.is_empty());
    for limit in [1, 2, 3, 1_000] {
        assert_eq!(host.all(&run, limit).await, seen, "{limit} at a time");
    }
    let own: Vec<&str> =
        response(&seen).into_iter().filter(|line| line.0 == "warn").map(|(_, _, text)| text).collect();
    assert_eq!(own, ["one", "two", "three", "four"]);
    let texts: Vec<&str> =
        response(&warned).into_iter().filter(|line| line.0 == "warn").map(|(_, _, text)| text).collect();
    assert_eq!(texts, own);
}

#[tokio::test]
async fn the_log_of_each_of_many_attempts_is_kept() {
    let host = TestServer::new().await;
    let items: Vec<Value> = (0..250).map(|n| json!(n)).collect();
    let flow = json!({ "start": "each", "nodes": { "each": { "kind": "foreach", "prep": { "input_key": "$params.items" },
        "service": "press", "exec_type": "queue" } } });
    host.publish("many", flow).await;
    let run = host.start("many", json!({ "params": { "items": items } })).await;
    for _ in 0..250 {
        let job = host.claim("press").await;
        assert_eq!(host.finish(&job, json!({ "outcome": "done", "logs": ["mine"] })).await, "ok");
    }
    host.ended(&run).await;
    let lines = host.all(&run, 100).await;
    assert_eq!(lines.iter().filter(|line| line["message"] == "mine").count(), 250);
}

#[tokio::test]
async fn signals_decisions_and_cancels_are_told() {
    let host = TestServer::new().await;
    host.publish("review", approval()).await;
    let run = host.start("review", json!({})).await;
    host.post(&format!("/api/v1/runs/{run}/signal"), json!({ "key": "hint", "value": 1 })).await.ok();
    let decide = json!({ "node": "review", "decision": "approved", "by": "ann", "comment": "fine" });
    host.post(&format!("/api/v1/runs/{run}/decide"), decide).await.ok();
    host.ended(&run).await;
    let lines = host.lines(&run, "").await;
    let messages: Vec<&str> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
    for word in ["waits for a decision", "signal: hint", "decided", "the run completed"] {
        assert!(messages.contains(&word), "no `{word}` in {messages:?}");
    }
    let decided = lines.iter().find(|line| line["message"] == "decided").unwrap();
    assert_eq!(decided["data"], json!({ "decision": "approved", "by": "ann", "comment": "fine" }));
    let other = host.start("review", json!({})).await;
    host.post(&format!("/api/v1/runs/{other}/cancel"), json!({ "reason": "too late" })).await.ok();
    host.ended(&other).await;
    let loud = host.lines(&other, "&level=warn").await;
    assert!(response(&loud).iter().any(|(_, _, message)| *message == "the run was canceled"), "{loud:?}");
}

#[tokio::test]
async fn a_report_adds_to_what_was_written_before() {
    let host = TestServer::new().await;
    host.publish("press", queued()).await;
    let run = host.start("press", json!({})).await;
    let job = host.claim("press").await;
    let later = json!({ "outcome": "suspended", "memo": 7, "logs": [{ "message": "given to the printer" }] });
    assert_eq!(host.finish(&job, later).await, "ok");
    let call = job["call"].as_str().unwrap();
    let report = json!({ "result": "HI", "logs": [{ "message": "the printer is done" }] });
    assert_eq!(host.post(&format!("/api/v1/calls/{call}/report"), report).await.ok()["verdict"], "ok");
    host.ended(&run).await;
    let lines = host.lines(&run, "&node=work").await;
    let messages: Vec<&str> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
    let expected = [
        "entered",
        "called, attempt 1",
        "given to the printer",
        "suspended until it is reported",
        "the printer is done",
        "done",
    ];
    assert_eq!(messages, expected);
}
