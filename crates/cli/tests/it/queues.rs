//! Commands for queues.

use serde_json::{Value, json};

use crate::shell::{TestShell, text};

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_listed_paused_and_resumed() {
    let shell = TestShell::open().await;
    assert_eq!(shell.json(&["queue", "list"]), Value::Array(Vec::new()));
    assert_eq!(shell.json(&["queue", "pause", "mail"])["paused"], true);
    let job = shell.text(&["job", "create", "letter", "--queue", "mail", "--quiet"]);
    let _worker = shell.worker(&["--demo", "--queues", "mail"]);
    // A job of another queue shows that the worker is there and takes nothing from the paused one.
    shell.text(&[
        "job",
        "create",
        "sum",
        "--payload",
        "[1]",
        "--queue",
        "other",
        "--wait",
        "--timeout",
        "30s",
    ]);
    assert_eq!(shell.json(&["job", "show", &job])["status"], "queued");
    assert_eq!(shell.text(&["queue", "list", "--quiet"]), "mail");
    let table = shell.text(&["queue", "list", "-o", "table"]);
    assert!(table.contains("mail") && table.contains("paused"), "{table}");
    assert!(shell.text(&["queue", "show", "mail", "-o", "table"]).contains("1 queued"));
    assert_eq!(shell.json(&["queue", "resume", "mail"])["paused"], false);
    shell.code(&["job", "wait", &job, "--timeout", "30s"], 0);
    let shown = shell.json(&["queue", "show", "mail"]);
    assert_eq!((&shown["open"], &shown["stats"]["last_hour"]["succeeded"]), (&json!(0), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_set_one_by_one_and_lifted() {
    let shell = TestShell::open().await;
    let limits =
        |words: &[&str]| shell.json(&[&["queue", "limit", "mail"], words].concat())["limits"].clone();
    let first = limits(&["--concurrency", "5", "--rate", "10/s", "--burst", "20"]);
    assert_eq!(first, json!({"concurrency": 5, "rate": {"count": 10, "per_ms": 1000, "burst": 20}}));
    assert_eq!(
        limits(&["--rate", "none", "--key-concurrency", "1", "--fair"]),
        json!({"concurrency": 5, "key_concurrency": 1, "fair": true})
    );
    shell.text(&["queue", "pause", "mail"]);
    let shown = shell.text(&["queue", "show", "mail", "-o", "table"]);
    assert!(shown.contains("5 at once, 1 at once per key, keys take turns"), "{shown}");
    assert_eq!(limits(&["--clear"]), json!({}));
    assert_eq!(shell.json(&["queue", "show", "mail"])["paused"], true);
    let none = text(&shell.code(&["queue", "limit", "mail"], 2).stderr);
    assert!(none.contains("--concurrency"), "{none}");
    let zero = text(&shell.code(&["queue", "limit", "mail", "--concurrency", "0"], 2).stderr);
    assert!(zero.contains("windlass queue pause"), "{zero}");
    let never = text(&shell.code(&["queue", "limit", "mail", "--rate", "0/s"], 1).stderr);
    assert!(never.contains("$.limits.rate.count"), "{never}");
    shell.code(&["queue", "limit", "mail", "--rate", "often"], 2);
}
