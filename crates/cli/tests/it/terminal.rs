//! Control characters from workers and clients: names refuse them, and the command line prints texts without them.

use serde_json::{Value, json};

use crate::http::{ask, ends, expect, post, seen};
use crate::server::publish;
use crate::shell::{TestShell, text};

/// Commands that clear the screen, set the title, and write over the line, in both forms that terminals know.
const EVIL: &str = "bad\u{1b}[2J\u{1b}]0;owned\u{7}\rok\u{8}\u{9b}2J\u{7f}\u{202e}";

fn is_clean(output: &str) -> bool {
    !output.chars().any(|c| c == '\u{202e}' || (c.is_control() && c != '\n' && c != '\t'))
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_a_worker_never_reaches_a_terminal_as_it_is() {
    let shell = TestShell::open().await;
    let client = shell.server.client();
    let call = json!({"service": "s", "exec_type": "queue", "post": {"output_key": "out"}});
    publish(&client, "evil", json!({"start": "a", "nodes": {"a": call}, "edges": []})).await;
    for (end, status) in [
        (json!({"outcome": "failed", "error": EVIL, "retryable": false, "log": EVIL}), "failed"),
        (json!({"outcome": "done", "result": {EVIL: EVIL}, "log": EVIL}), "completed"),
    ] {
        let run = shell.json(&["run", "start", "evil", "--label", "note=fine"])["id"].clone();
        let run = run.as_str().unwrap();
        let claim = json!({"worker_id": "w", "services": ["s"], "wait_ms": 20_000});
        let job = post(&client, "/api/v1/jobs/claim", claim).await["jobs"][0].clone();
        let mut result = end;
        (result["id"], result["lease"]) = (job["id"].clone(), job["lease"].clone());
        let verdict = post(&client, "/api/v1/jobs/finish", json!({"results": [result]})).await;
        assert_eq!(verdict["results"][0]["verdict"], "ok", "{verdict}");
        ends(&client, run, status).await;
        let job = job["id"].as_str().unwrap();
        let commands: [&[&str]; 9] = [
            &["run", "show", run],
            &["run", "list"],
            &["run", "logs", run],
            &["run", "logs", run, "--follow"],
            &["run", "attempts", run],
            &["run", "events", run],
            &["run", "why", run],
            &["job", "show", job],
            &["api", "GET", &format!("/api/v1/runs/{run}")],
        ];
        for command in commands {
            for format in ["table", "json", "jsonl", "yaml"] {
                let mut words = command.to_vec();
                words.extend(["-o", format, "--wide"]);
                let output = shell.code(&words, 0);
                let (out, err) = (text(&output.stdout), text(&output.stderr));
                assert!(is_clean(&out) && is_clean(&err), "{words:?}: {out:?} {err:?}");
            }
        }
        assert!(shell.text(&["run", "show", run, "-o", "table"]).contains("\\u001b[2J"), "{status}");
    }
    // The value is the same for programs.
    let shown = shell.json(&["run", "list", "--status", "failed", "-o", "json"]);
    assert_eq!(shown[0]["error"]["message"], EVIL, "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_with_control_characters_are_refused_on_every_surface() {
    let shell = TestShell::open().await;
    let client = shell.server.client();
    let bad = "a\u{1b}[2Jb";
    let flow = |node: Value| json!({"start": "a", "nodes": {"a": node}, "edges": []});
    let call = |service: &str| json!({"service": service, "exec_type": "queue"});
    publish(&client, "f", flow(call("s"))).await;
    let job = |field: &str| {
        let mut job = json!({"name": "n", "queue": "q"});
        job[field] = json!(bad);
        job
    };
    let refused = [
        ("POST", "/api/v1/flows", json!({"name": bad, "definition": flow(call("s"))})),
        ("POST", "/api/v1/flows", json!({"name": "g", "definition": flow(call(bad))})),
        (
            "POST",
            "/api/v1/flows",
            json!({"name": "g", "definition": {"start": bad, "nodes": {bad: call("s")}, "edges": []}}),
        ),
        ("POST", "/api/v1/flows/f/runs", json!({"labels": {bad: "x"}})),
        ("POST", "/api/v1/flows/f/runs", json!({"request_id": bad})),
        ("POST", "/api/v1/jobs", job("name")),
        ("POST", "/api/v1/jobs", job("queue")),
        ("POST", "/api/v1/tasks", json!({"name": "n", "queue_name": bad})),
        ("POST", "/api/v1/jobs/claim", json!({"worker_id": bad, "queues": ["q"]})),
        ("POST", "/api/v1/jobs/claim", json!({"worker_id": "w", "queues": [bad]})),
        ("POST", "/api/v1/jobs/claim", json!({"worker_id": "w", "services": [bad]})),
        ("POST", "/api/v1/accounts", json!({"id": bad})),
        ("PUT", "/api/v1/prices/a%1Bb", json!({"unit_price": 1})),
        ("PUT", "/api/v1/queues/a%1Bb", json!({"paused": true})),
        ("POST", "/api/workers/register", json!({"id": bad, "services": ["s"], "type": "async"})),
        ("POST", "/api/workers/register", json!({"id": "w", "services": [bad], "type": "async"})),
        ("POST", "/api/workers/register", json!({"id": "w", "services": ["s"], "url": bad, "type": "local"})),
        ("POST", "/api/queue/poll", json!({"worker_id": bad, "services": ["s"]})),
        ("POST", "/api/flows", json!({"Name": bad})),
    ];
    for (method, path, body) in refused {
        let (status, answer) = ask(&client, method, path, Some(body.clone())).await;
        assert!((400..500).contains(&status), "{method} {path} {body}: {status} {answer}");
        assert!(answer.to_string().contains("control characters"), "{method} {path} {body}: {answer}");
    }
    assert_eq!(expect(&client, "GET", "/api/v1/workers", None, 200).await["count"], 0);
    let flows = expect(&client, "GET", "/api/v1/flows", None, 200).await;
    assert_eq!(flows["items"].as_array().map(Vec::len), Some(1), "{flows}");
    // Other characters are fine.
    post(&client, "/api/workers/register", json!({"id": "größe 🚀", "services": ["s"], "type": "async"}))
        .await;
    seen("the worker", async || {
        let workers = expect(&client, "GET", "/api/v1/workers", None, 200).await;
        (workers["workers"][0]["id"] == "größe 🚀").then_some(())
    })
    .await;
    assert!(is_clean(&shell.server.log()), "{}", shell.server.log());
}
