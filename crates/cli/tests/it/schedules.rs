//! Commands for schedules.

use serde_json::{Value, json};

use crate::desk::{Desk, text};
use crate::talk::seen;

#[tokio::test(flavor = "multi_thread")]
async fn schedules_of_jobs_are_made_changed_and_fire() {
    let desk = Desk::open().await;
    let _worker = desk.worker(&["--demo"]);
    let made = desk.json(&[
        "schedule",
        "create",
        "--cron",
        "* * * * * *",
        "--job",
        "tick",
        "--payload",
        r#"{"n": 1}"#,
        "--max-retries",
        "2",
        "--overlap",
        "allow",
        "--name",
        "each-second",
    ]);
    assert_eq!((&made["enabled"], &made["overlap"]), (&json!(true), &json!("allow")));
    let id = made["id"].as_str().unwrap();
    assert_eq!(desk.text(&["schedule", "list", "-q"]), id);
    assert!(desk.text(&["schedule", "list", "-o", "table"]).contains("job tick in default"));
    let job = seen("a job that it made", async || {
        let found = desk.json(&["job", "list", "--schedule", "each-second", "--status", "completed"]);
        found.get(0).cloned()
    })
    .await;
    assert_eq!((&job["name"], &job["schedule_id"]), (&json!("tick"), &json!(id)));
    assert_eq!(desk.json(&["schedule", "disable", "each-second"])["enabled"], false);
    let triggered = desk.text(&["schedule", "trigger", &id[..13], "-q"]);
    assert_eq!(desk.json(&["job", "wait", &triggered, "--timeout", "30s"])["task"]["payload"]["n"], 1);
    // What is not said stays, inside the job too.
    let edited = desk.json(&[
        "schedule",
        "edit",
        id,
        "--cron",
        "0 9 * * *",
        "--tz",
        "Europe/Berlin",
        "--priority",
        "6",
    ]);
    assert_eq!((&edited["cron_expr"], &edited["timezone"]), (&json!("0 9 * * *"), &json!("Europe/Berlin")));
    let task = &edited["task"];
    assert_eq!(
        (&task["priority"], &task["max_retries"], &task["payload"]["n"]),
        (&json!(6), &json!(2), &json!(1))
    );
    let next = desk.json(&["schedule", "next", id, "--count", "3"]);
    assert_eq!(next["next_runs"].as_array().unwrap().len(), 3);
    assert!(next["local"][0].as_str().unwrap().contains("09:00:00"), "{next}");
    assert!(desk.text(&["schedule", "next", id, "-o", "table"]).contains("IN EUROPE/BERLIN"));
    assert_eq!(desk.json(&["schedule", "enable", id])["enabled"], true);
    assert!(desk.text(&["schedule", "show", id, "-o", "table"]).contains("0 9 * * * in Europe/Berlin"));
    desk.text(&["schedule", "delete", id]);
    assert_eq!(desk.json(&["schedule", "list"]), Value::Array(Vec::new()));
    let unknown = text(&desk.code(&["schedule", "show", "each-second"], 1).stderr);
    assert!(
        unknown.contains("[unknown_schedule]") && unknown.contains("windlass schedule list"),
        "{unknown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_start_runs_of_flows_and_copies_of_jobs() {
    let desk = Desk::open().await;
    desk.write(
        "shout.json",
        r#"{"start": "a", "nodes": {"a": {"kind": "local", "func": "upper",
        "prep": {"input_key": "$params.word"}, "post": {"output_key": "out"}}}, "edges": []}"#,
    );
    desk.text(&["flow", "apply", "shout.json"]);
    let made = desk.json(&[
        "schedule",
        "create",
        "--cron",
        "@daily",
        "--flow",
        "shout",
        "-p",
        "word=rope",
        "--disabled",
    ]);
    assert_eq!((&made["flow"], &made["params"]["word"]), (&json!("shout"), &json!("rope")));
    let run = desk.text(&["schedule", "trigger", "shout", "-q"]);
    assert_eq!(desk.json(&["run", "wait", &run, "--timeout", "30s"])["shared"]["out"], "ROPE");
    let edited = desk.json(&["schedule", "edit", "shout", "-p", "word=anchor", "--overlap", "queue"]);
    assert_eq!((&edited["params"]["word"], &edited["overlap"]), (&json!("anchor"), &json!("queue")));
    let job =
        desk.text(&["job", "create", "report", "--queue", "nightly", "--payload", "7", "--in", "1h", "-q"]);
    let like = desk.json(&["schedule", "create", "--cron", "@hourly", "--like", &job, "--catchup", "last"]);
    assert_eq!((&like["task"]["queue_name"], &like["task"]["payload"]), (&json!("nightly"), &json!(7)));
    desk.write(
        "report.json",
        r#"{"cron_expr": "@weekly", "timezone": "Asia/Tokyo", "task": {"name": "report"}}"#,
    );
    let filed =
        desk.json(&["schedule", "create", "-f", "report.json", "--cron", "@monthly", "--name", "filed"]);
    assert_eq!((&filed["timezone"], &filed["name"]), (&json!("Asia/Tokyo"), &json!("filed")));
    assert_ne!(filed["cron_expr"], "@weekly");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_about_a_schedule_is_said() {
    let desk = Desk::open().await;
    let slots = desk.json(&["schedule", "preview", "30 2 29 3 *", "--tz", "Europe/Berlin", "--count", "2"]);
    assert_eq!(slots["count"], 2);
    let said = |words: &[&str]| text(&desk.code(&[&["schedule"], words].concat(), 1).stderr);
    assert!(said(&["preview", "61 * * * *"]).contains("$.cron_expr"));
    assert!(said(&["preview", "@daily", "--tz", "Mars/Olympus"]).contains("$.timezone"));
    assert!(said(&["create", "--cron", "@daily"]).contains("--job NAME"));
    assert!(said(&["create", "--job", "a"]).contains("--cron"));
    assert!(said(&["create", "--cron", "@daily", "--flow", "nope"]).contains("$.flow"));
    assert!(
        said(&["create", "--cron", "@daily", "--flow", "nope", "--priority", "1"]).contains("-p KEY=VALUE")
    );
    let made = desk.text(&["schedule", "create", "--cron", "@daily", "--job", "a", "-q"]);
    assert!(said(&["edit", &made]).contains("what is to be different"));
    desk.code(&["schedule", "edit", &made, "--overlap", "maybe"], 2);
}
