//! Commands for jobs, dead letters and workers.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::http::seen;
use crate::shell::{TestShell, text};

/// The stdout of a command with this stdin.
fn with_stdin(shell: &TestShell, arguments: &[&str], input: &str) -> String {
    let mut child = shell.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    text(&output.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_created_shown_and_awaited() {
    let shell = TestShell::open().await;
    let alone = shell.text(&["job", "create", "resize", "--payload", r#"{"file": "cat.png"}"#, "--quiet"]);
    assert!(shell.text(&["job", "show", &alone, "-o", "table"]).contains("queued"));
    let late = shell.code(&["job", "wait", &alone, "--timeout", "50ms"], 124);
    assert!(text(&late.stderr).contains("windlass job show"), "{}", text(&late.stderr));
    let _worker = shell.worker(&["--demo", "--id", "w-1"]);
    let ended = shell.json(&["job", "wait", &alone, "--timeout", "30s"]);
    assert_eq!((&ended["status"], &ended["payload"]["file"]), (&"completed".into(), &"cat.png".into()));
    assert_eq!(shell.json(&["job", "attempts", &alone])[0]["worker_id"], "w-1");
    assert!(shell.text(&["job", "attempts", &alone, "-o", "table"]).contains("completed"));
    // A unique prefix of an id is enough, with `job_` or without.
    let digits = alone.strip_prefix("job_").unwrap();
    assert_eq!(shell.text(&["job", "show", &digits[..20], "--quiet"]), alone);
    assert_eq!(shell.text(&["job", "show", &alone[..24], "--quiet"]), alone);
    assert!(shell.text(&["job", "list", "-o", "table"]).contains("resize"));
    assert_eq!(shell.text(&["job", "list", "--name", "resize", "--since", "1h", "--quiet"]), alone);
    assert_eq!(shell.json(&["job", "list", "--status", "open"]), Value::Array(Vec::new()));
    shell.write(
        "job.json",
        r#"{"name": "sum", "payload": [1, 2, 3], "priority": 1, "retry": {"delay_ms": 100}}"#,
    );
    let sum =
        shell.json(&["job", "create", "-f", "job.json", "--priority", "2", "--wait", "--timeout", "30s"]);
    assert_eq!((&sum["latest_attempt"]["result"], &sum["priority"]), (&6.into(), &2.into()));
    let failed = shell.code(&["job", "create", "x", "--priority", "1", "--retries", "0", "--wait"], 1);
    assert!(text(&failed.stdout).contains("odd priority"), "{}", text(&failed.stdout));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_jobs_are_created_from_a_file_or_a_pipe() {
    let shell = TestShell::open().await;
    let lines = "{\"name\": \"a\", \"dedup_key\": \"one\"}\n\n{\"name\": \"b\"}\n{\"name\": \"a\", \"dedup_key\": \"one\"}\n";
    let printed = with_stdin(&shell, &["job", "create", "--batch", "-", "--queue", "bulk", "--quiet"], lines);
    let ids: Vec<&str> = printed.lines().collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(ids[0], ids[2]);
    assert_eq!(shell.json(&["job", "list", "--queue", "bulk"]).as_array().unwrap().len(), 2);
    shell.write("jobs.json", r#" [{"name": "c"}, {"name": "d", "run_at": "2099-01-01T00:00:00Z"}]"#);
    let created = shell.json(&["job", "create", "--batch", "jobs.json"]);
    assert_eq!((&created[0]["status"], &created[1]["status"]), (&"queued".into(), &"queued".into()));
    let summary = shell.text(&["job", "create", "--batch", "jobs.json", "-o", "table"]);
    assert_eq!(summary, "2 jobs created");
    let again =
        with_stdin(&shell, &["job", "create", "--batch", "-", "--queue", "bulk", "-o", "table"], lines);
    assert_eq!(again.trim_end(), "1 job created, 2 duplicates of open jobs");
    shell.write("bad.jsonl", "{\"name\": \"c\"}\n{\"name\": \"c\", \"queue_name\": \"x\"}\n");
    let refused = text(&shell.code(&["job", "create", "--batch", "bad.jsonl"], 1).stderr);
    assert!(refused.contains("bad.jsonl:2") && refused.contains("`queue_name`"), "{refused}");
    let none = text(&shell.code(&["job", "create", "--batch", "missing.jsonl"], 1).stderr);
    assert!(none.contains("cannot open missing.jsonl"), "{none}");
    let wrong = shell.code(&["job", "create", "c", "--queue", "two words", "--retries", "5000"], 1);
    let wrong = text(&wrong.stderr);
    assert!(wrong.contains("queue: the name") && wrong.contains("retry.max: `5000`"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_canceled_and_retried() {
    let shell = TestShell::open().await;
    let id = shell.text(&["job", "create", "later", "--in", "1h", "--quiet"]);
    assert_eq!(shell.text(&["job", "list", "--status", "delayed", "--quiet"]), id);
    assert!(shell.text(&["job", "show", &id, "-o", "table"]).contains("due"));
    assert_eq!(shell.json(&["job", "cancel", &id])["status"], "canceled");
    shell.code(&["job", "wait", &id], 5);
    assert!(shell.text(&["job", "retry", &id, "-o", "table"]).ends_with("queued"));
    shell.text(&["job", "cancel", &id]);
    let _worker = shell.worker(&["--demo"]);
    let done = shell.text(&["job", "create", "now", "--wait", "--timeout", "30s", "--quiet"]);
    for verb in ["cancel", "retry"] {
        let ended = text(&shell.code(&["job", verb, &done], 1).stderr);
        assert!(ended.contains("[job_ended]") && ended.contains("windlass job show"), "{ended}");
    }
    for unknown in ["nope", "00000000-0000-7000-8000-000000000000", "ffff"] {
        let said = text(&shell.code(&["job", "show", unknown], 1).stderr);
        assert!(said.contains("[unknown_job]") && said.contains("windlass job list"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_grouped_replayed_and_discarded() {
    let shell = TestShell::open().await;
    let _worker = shell.worker(&["--demo"]);
    let dead = |name: &str| {
        let words = ["job", "create", name, "--priority", "1", "--retries", "0", "--quiet"];
        let id = shell.text(&words);
        shell.code(&["job", "wait", &id, "--timeout", "30s"], 1);
        id
    };
    let (first, second, third) = (dead("a"), dead("b"), dead("c"));
    assert_eq!(shell.text(&["dlq", "list", "default", "--quiet"]), [&*first, &second, &third].join("\n"));
    assert!(shell.text(&["dlq", "list", "default", "--limit", "2", "-o", "table"]).contains("odd priority"));
    let groups = shell.json(&["dlq", "groups", "default"]);
    assert_eq!((&groups[0]["count"], &groups[0]["queue"]), (&3.into(), &"default".into()));
    let group = groups[0]["fingerprint"].as_str().unwrap();
    assert_eq!(shell.json(&["dlq", "list", "default", "--group", group]).as_array().unwrap().len(), 3);
    assert_eq!(shell.json(&["dlq", "show", &first])["attempts"][0]["attempt"], 1);
    // Without a terminal and without --yes, nothing is replayed.
    let unasked = text(&shell.code(&["dlq", "replay", "default", "--all"], 2).stderr);
    assert!(unasked.contains("3 dead letters") && unasked.contains("--yes"), "{unasked}");
    assert_eq!(
        shell.json(&["dlq", "discard", "default", "--count", "1", "--reason", "x", "--dry-run"])[0],
        first.as_str()
    );
    let moved =
        shell.json(&["dlq", "replay", "default", &first, "--priority", "2", "--patch", r#"{"n": 1}"#]);
    assert_eq!(moved["moved"], 1);
    let replayed = shell.json(&["job", "wait", &first, "--timeout", "30s"]);
    assert_eq!((&replayed["payload"]["n"], &replayed["latest_attempt"]["attempt"]), (&1.into(), &2.into()));
    let gone = shell.code(&["dlq", "show", &first], 1);
    assert!(text(&gone.stderr).contains("is no dead letter"), "{}", text(&gone.stderr));
    // One that is no dead letter any more stays as it is, and the other one is moved.
    let both = shell.code(&["dlq", "discard", "default", &first, &second, "--reason", "not needed"], 1);
    assert!(text(&both.stderr).contains(&first), "{}", text(&both.stderr));
    assert_eq!(shell.json(&["job", "show", &second])["discarded"], "not needed");
    assert_eq!(
        shell.json(&["dlq", "replay", "default", "--group", group, "--priority", "2", "--yes"])["moved"],
        1
    );
    shell.code(&["job", "wait", &third, "--timeout", "30s"], 0);
    assert_eq!(shell.json(&["dlq", "list", "default"]), Value::Array(Vec::new()));
    // A queue that is empty now is no error; an unknown queue or group is.
    assert_eq!(shell.json(&["dlq", "replay", "default", "--all", "--yes"])["moved"], 0);
    let queue = text(&shell.code(&["dlq", "replay", "defualt", "--all", "--yes"], 1).stderr);
    assert!(queue.contains("there is no queue `defualt`"), "{queue}");
    // An id makes the command repeatable: a group may have gone since, but a queue stays.
    let gone = ["dlq", "replay", "default", "--group", group, "--yes", "--replay-id", "r-1"];
    assert_eq!(shell.json(&gone)["moved"], 0);
    let mistyped = ["dlq", "replay", "defualt", "--all", "--yes", "--replay-id", "r-1"];
    let queue = text(&shell.code(&mistyped, 1).stderr);
    assert!(queue.contains("there is no queue `defualt`"), "{queue}");
    for verb in [&["replay"][..], &["discard", "--reason", "x"]] {
        let words = [&["dlq"], verb, &["default", "--group", "3f2a9c0d11e8b7a4", "--yes"]].concat();
        let group = text(&shell.code(&words, 1).stderr);
        assert!(
            group.contains("no dead letters of group") && group.contains("windlass dlq groups default"),
            "{group}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_listed_and_go_when_they_are_told_to() {
    let shell = TestShell::open().await;
    let mut worker = shell.worker(&["--demo", "--id", "w-going", "--queues", "mail,post"]);
    seen("the worker", async || (shell.text(&["worker", "list", "--quiet"]) == "w-going").then_some(()))
        .await;
    let listed = shell.text(&["worker", "list", "--online", "-o", "table"]);
    assert!(listed.contains("online") && listed.contains("mail, post"), "{listed}");
    shell.text(&["job", "create", "letter", "--queue", "post", "--wait", "--timeout", "30s"]);
    assert!(shell.text(&["worker", "drain", "w-go", "-o", "table"]).starts_with("w-going"));
    worker.goes().await;
    assert_eq!(shell.json(&["worker", "undrain", "w-going"])["is_draining"], false);
    let unknown = text(&shell.code(&["worker", "drain", "nobody"], 1).stderr);
    assert!(unknown.contains("[unknown_worker]") && unknown.contains("windlass worker list"), "{unknown}");
}
