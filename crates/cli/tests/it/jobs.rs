//! Commands for jobs, dead letters and workers.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::desk::{Desk, text};
use crate::talk::seen;

/// What comes out of a command that is given this on stdin.
fn fed(desk: &Desk, arguments: &[&str], input: &str) -> String {
    let mut child = desk.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    text(&output.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_created_looked_at_and_awaited() {
    let desk = Desk::open().await;
    let alone = desk.text(&["job", "create", "resize", "--payload", r#"{"file": "cat.png"}"#, "-q"]);
    assert!(desk.text(&["job", "show", &alone, "-o", "table"]).contains("queued"));
    let late = desk.code(&["job", "wait", &alone, "--timeout", "50ms"], 124);
    assert!(text(&late.stderr).contains("windlass job show"), "{}", text(&late.stderr));
    let _worker = desk.worker(&["--demo", "--id", "w-1"]);
    let ended = desk.json(&["job", "wait", &alone, "--timeout", "30s"]);
    assert_eq!(
        (&ended["display_status"], &ended["task"]["payload"]["file"]),
        (&"completed".into(), &"cat.png".into())
    );
    assert_eq!(desk.json(&["job", "attempts", &alone])[0]["worker_id"], "w-1");
    assert!(desk.text(&["job", "attempts", &alone, "-o", "table"]).contains("succeeded"));
    // The beginning of an id does, with or without its hyphens, and the name that flows give it.
    let digits = alone.replace('-', "");
    assert_eq!(desk.text(&["job", "show", &digits[..20], "-q"]), alone);
    assert_eq!(desk.text(&["job", "show", &format!("job_{digits}"), "-q"]), alone);
    assert!(desk.text(&["job", "list", "-o", "table"]).contains("resize"));
    assert_eq!(desk.text(&["job", "list", "--name", "resize", "--since", "1h", "-q"]), alone);
    assert_eq!(desk.json(&["job", "list", "--status", "open"]), Value::Array(Vec::new()));
    desk.write(
        "job.json",
        r#"{"name": "sum", "payload": [1, 2, 3], "priority": 1, "backoff": {"base_ms": 100}}"#,
    );
    let sum =
        desk.json(&["job", "create", "-f", "job.json", "--priority", "2", "--wait", "--timeout", "30s"]);
    assert_eq!((&sum["latest_run"]["result"], &sum["task"]["priority"]), (&6.into(), &2.into()));
    let failed = desk.code(&["job", "create", "x", "--priority", "1", "--max-retries", "1", "--wait"], 1);
    assert!(text(&failed.stdout).contains("odd priority"), "{}", text(&failed.stdout));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_jobs_are_created_from_a_file_or_a_pipe() {
    let desk = Desk::open().await;
    let lines = "{\"name\": \"a\", \"dedup_key\": \"one\"}\n\n{\"name\": \"b\"}\n{\"name\": \"a\", \"dedup_key\": \"one\"}\n";
    let printed = fed(&desk, &["job", "create", "--batch", "-", "--queue", "bulk", "-q"], lines);
    let ids: Vec<&str> = printed.lines().collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(ids[0], ids[2]);
    assert_eq!(desk.json(&["job", "list", "--queue", "bulk"]).as_array().unwrap().len(), 2);
    desk.write("jobs.json", r#" [{"name": "c"}, {"name": "d", "run_at": "2099-01-01T00:00:00Z"}]"#);
    let created = desk.json(&["job", "create", "--batch", "jobs.json"]);
    assert_eq!((&created[0]["status"], &created[1]["status"]), (&"queued".into(), &"pending".into()));
    desk.write("bad.jsonl", "{\"name\": \"c\"}\n{\"name\": \"c\", \"queue\": \"x\"}\n");
    let refused = text(&desk.code(&["job", "create", "--batch", "bad.jsonl"], 1).stderr);
    assert!(refused.contains("bad.jsonl:2") && refused.contains("queue_name"), "{refused}");
    let none = text(&desk.code(&["job", "create", "--batch", "missing.jsonl"], 1).stderr);
    assert!(none.contains("cannot open missing.jsonl"), "{none}");
    let wrong = desk.code(&["job", "create", "c", "--queue", "two words", "--max-retries", "5000"], 1);
    let wrong = text(&wrong.stderr);
    assert!(wrong.contains("$.queue_name") && wrong.contains("$.max_retries"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_cancelled_and_tried_again() {
    let desk = Desk::open().await;
    let id = desk.text(&["job", "create", "later", "--in", "1h", "-q"]);
    assert_eq!(desk.text(&["job", "list", "--status", "pending", "-q"]), id);
    assert!(desk.text(&["job", "show", &id, "-o", "table"]).contains("due"));
    assert_eq!(desk.json(&["job", "cancel", &id])["display_status"], "cancelled");
    desk.code(&["job", "wait", &id], 2);
    assert!(desk.text(&["job", "retry", &id, "-o", "table"]).ends_with("queued"));
    desk.text(&["job", "cancel", &id]);
    let _worker = desk.worker(&["--demo"]);
    let done = desk.text(&["job", "create", "now", "--wait", "--timeout", "30s", "-q"]);
    for verb in ["cancel", "retry"] {
        let ended = text(&desk.code(&["job", verb, &done], 1).stderr);
        assert!(ended.contains("[task_ended]") && ended.contains("windlass job show"), "{ended}");
    }
    for unknown in ["nope", "00000000-0000-7000-8000-000000000000", "ffff"] {
        let said = text(&desk.code(&["job", "show", unknown], 1).stderr);
        assert!(said.contains("[unknown_task]") && said.contains("windlass job list"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_grouped_replayed_and_discarded() {
    let desk = Desk::open().await;
    let _worker = desk.worker(&["--demo"]);
    let dead = |name: &str| {
        let words = ["job", "create", name, "--priority", "1", "--max-retries", "1", "-q"];
        let id = desk.text(&words);
        desk.code(&["job", "wait", &id, "--timeout", "30s"], 1);
        id
    };
    let (first, second, third) = (dead("a"), dead("b"), dead("c"));
    assert_eq!(desk.text(&["dlq", "list", "default", "-q"]), [&*first, &second, &third].join("\n"));
    assert!(desk.text(&["dlq", "list", "default", "--limit", "2", "-o", "table"]).contains("odd priority"));
    let groups = desk.json(&["dlq", "groups", "default"]);
    assert_eq!((&groups[0]["count"], &groups[0]["queue"]), (&3.into(), &"default".into()));
    let group = groups[0]["fingerprint"].as_str().unwrap();
    assert_eq!(desk.json(&["dlq", "list", "default", "--group", group]).as_array().unwrap().len(), 3);
    assert_eq!(desk.json(&["dlq", "show", &first])["runs"][0]["attempt"], 1);
    // What nobody agreed to is not done.
    let unasked = text(&desk.code(&["dlq", "replay", "default", "--all"], 1).stderr);
    assert!(unasked.contains("3 dead letters") && unasked.contains("--yes"), "{unasked}");
    assert_eq!(
        desk.json(&["dlq", "discard", "default", "--count", "1", "--reason", "x", "--dry-run"])[0],
        first.as_str()
    );
    let moved = desk.json(&["dlq", "replay", "default", &first, "--priority", "2", "--patch", r#"{"n": 1}"#]);
    assert_eq!(moved["moved"], 1);
    let replayed = desk.json(&["job", "wait", &first, "--timeout", "30s"]);
    assert_eq!(
        (&replayed["task"]["payload"]["n"], &replayed["latest_run"]["attempt"]),
        (&1.into(), &2.into())
    );
    let gone = desk.code(&["dlq", "show", &first], 1);
    assert!(text(&gone.stderr).contains("is no dead letter"), "{}", text(&gone.stderr));
    // One that is no dead letter any more stays as it is, and the other one is moved.
    let both = desk.code(&["dlq", "discard", "default", &first, &second, "--reason", "not needed"], 1);
    assert!(text(&both.stderr).contains(&first), "{}", text(&both.stderr));
    assert_eq!(desk.json(&["job", "show", &second])["task"]["discarded"], "not needed");
    assert_eq!(
        desk.json(&["dlq", "replay", "default", "--group", group, "--priority", "2", "--yes"])["moved"],
        1
    );
    desk.code(&["job", "wait", &third, "--timeout", "30s"], 0);
    assert_eq!(desk.json(&["dlq", "list", "default"]), Value::Array(Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_listed_and_go_when_they_are_told_to() {
    let desk = Desk::open().await;
    let mut worker = desk.worker(&["--demo", "--id", "w-going", "--queues", "mail,post"]);
    seen("the worker", async || (desk.text(&["worker", "list", "-q"]) == "w-going").then_some(())).await;
    let listed = desk.text(&["worker", "list", "--online", "-o", "table"]);
    assert!(listed.contains("online") && listed.contains("mail, post"), "{listed}");
    desk.text(&["job", "create", "letter", "--queue", "post", "--wait", "--timeout", "30s"]);
    assert!(desk.text(&["worker", "drain", "w-go", "-o", "table"]).starts_with("w-going"));
    worker.goes().await;
    assert_eq!(desk.json(&["worker", "undrain", "w-going"])["is_draining"], false);
    let unknown = text(&desk.code(&["worker", "drain", "nobody"], 1).stderr);
    assert!(unknown.contains("[unknown_worker]") && unknown.contains("windlass worker list"), "{unknown}");
}
