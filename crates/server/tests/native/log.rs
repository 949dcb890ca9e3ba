//! What there is to read about a run.

use serde_json::{Value, json};

use crate::host::{Host, approval, queued};

fn told(lines: &[Value]) -> Vec<(&str, &str, &str)> {
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
    let host = Host::new().await;
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
    assert_eq!(told(&lines), expected);
    assert_eq!((&lines[4]["data"], &lines[4]["fence"]), (&json!({ "percent": 7 }), &json!(1)));
    assert_eq!(lines[6]["data"], json!({ "fence": 1, "worker": "w" }));
    assert!(lines.iter().all(|line| line["at"].as_str().unwrap().ends_with('Z')));
    assert_eq!(told(&host.lines(&run, "&level=warn").await), [("warn", "work", "ink is low")]);
    assert_eq!(host.lines(&run, "&node=work").await.len(), 6);
    assert!(host.lines(&run, "&node=wor").await.is_empty());
    let page = host.get(&format!("/api/v1/runs/{run}/logs?limit=3")).await.ok();
    let next = page["next"].as_str().unwrap();
    let rest = host.lines(&run, &format!("&cursor={next}")).await;
    assert_eq!((page["items"].as_array().unwrap().len(), rest.len()), (3, 5));
}

#[tokio::test]
async fn what_is_asked_of_a_log_is_checked() {
    let host = Host::new().await;
    host.publish("press", queued()).await;
    let run = host.start("press", json!({})).await;
    for query in ["?level=loud", "?levl=info", "?limit=0"] {
        host.get(&format!("/api/v1/runs/{run}/logs{query}")).await.refused(400, "bad_query");
    }
    host.get("/api/v1/runs/run_1/logs").await.refused(404, "unknown_run");
    let job = host.claim("press").await;
    for logs in [json!([{ "message": "x", "level": "loud" }]), json!([{ "text": "x" }]), json!("x")] {
        let end = json!({ "id": job["id"], "lease": job["lease"], "outcome": "done", "logs": logs });
        let told = host.post("/api/v1/jobs/finish", json!({ "results": [end] })).await;
        assert_eq!(told.status, 422, "{logs}");
    }
    assert_eq!(host.finish(&job, json!({ "outcome": "done" })).await, "ok");
    host.ended(&run).await;
}

#[tokio::test]
async fn too_much_is_cut_and_never_costs_the_result() {
    let host = Host::new().await;
    host.publish("press", queued()).await;
    let run = host.start("press", json!({})).await;
    let job = host.claim("press").await;
    let logs: Vec<Value> = (0..1_002)
        .map(|n| json!({ "message": format!("{n} {}", "x".repeat(5_000 * usize::from(n == 0))) }))
        .collect();
    assert_eq!(host.finish(&job, json!({ "outcome": "done", "logs": logs })).await, "ok");
    assert_eq!(host.ended(&run).await["status"], "completed");
    let lines = host.lines(&run, "&node=work&cursor=2").await;
    assert_eq!(lines[0]["message"].as_str().unwrap().len(), 4_096);
    let last = host.lines(&run, "&node=work&cursor=1002").await;
    assert_eq!(told(&last)[0], ("warn", "work", "2 more lines were left out: an attempt may write 1000"));
}

#[tokio::test]
async fn signals_decisions_and_cancels_are_told() {
    let host = Host::new().await;
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
    assert!(told(&loud).iter().any(|(_, _, message)| *message == "the run was canceled"), "{loud:?}");
}

#[tokio::test]
async fn a_report_adds_to_what_was_written_before() {
    let host = Host::new().await;
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
        "the printer is done",
        "suspended until it is reported",
        "done",
    ];
    assert_eq!(messages, expected);
}
