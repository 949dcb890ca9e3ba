//! Commands for queues.

use serde_json::{Value, json};

use crate::desk::{Desk, text};

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_listed_paused_and_resumed() {
    let desk = Desk::open().await;
    assert_eq!(desk.json(&["queue", "list"]), Value::Array(Vec::new()));
    assert_eq!(desk.json(&["queue", "pause", "mail"])["paused"], true);
    let job = desk.text(&["job", "create", "letter", "--queue", "mail", "-q"]);
    let _worker = desk.worker(&["--demo", "--queues", "mail"]);
    // A job of another queue shows that the worker is there and takes nothing from the paused one.
    desk.text(&[
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
    assert_eq!(desk.json(&["job", "show", &job])["display_status"], "queued");
    assert_eq!(desk.text(&["queue", "list", "-q"]), "mail");
    let table = desk.text(&["queue", "list", "-o", "table"]);
    assert!(table.contains("mail") && table.contains("paused"), "{table}");
    assert!(desk.text(&["queue", "show", "mail", "-o", "table"]).contains("1 queued"));
    assert_eq!(desk.json(&["queue", "resume", "mail"])["paused"], false);
    desk.code(&["job", "wait", &job, "--timeout", "30s"], 0);
    let shown = desk.json(&["queue", "show", "mail"]);
    assert_eq!((&shown["open"], &shown["stats"]["last_hour"]["succeeded"]), (&json!(0), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_set_one_by_one_and_lifted() {
    let desk = Desk::open().await;
    let limits = |words: &[&str]| desk.json(&[&["queue", "limit", "mail"], words].concat())["limits"].clone();
    let first = limits(&["--concurrency", "5", "--rate", "10/s", "--burst", "20"]);
    assert_eq!(first, json!({"concurrency": 5, "rate": {"count": 10, "per_ms": 1000, "burst": 20}}));
    assert_eq!(
        limits(&["--rate", "none", "--key-concurrency", "1", "--fair"]),
        json!({"concurrency": 5, "key_concurrency": 1, "fair": true})
    );
    desk.text(&["queue", "pause", "mail"]);
    let shown = desk.text(&["queue", "show", "mail", "-o", "table"]);
    assert!(shown.contains("5 at once, 1 at once per key, keys take turns"), "{shown}");
    assert_eq!(limits(&["--clear"]), json!({}));
    assert_eq!(desk.json(&["queue", "show", "mail"])["paused"], true);
    let none = text(&desk.code(&["queue", "limit", "mail"], 1).stderr);
    assert!(none.contains("--concurrency"), "{none}");
    let zero = text(&desk.code(&["queue", "limit", "mail", "--concurrency", "0"], 2).stderr);
    assert!(zero.contains("windlass queue pause"), "{zero}");
    let never = text(&desk.code(&["queue", "limit", "mail", "--rate", "0/s"], 1).stderr);
    assert!(never.contains("$.limits.rate.count"), "{never}");
    desk.code(&["queue", "limit", "mail", "--rate", "often"], 2);
}
