//! Commands for schedules.

use serde_json::{Value, json};

use crate::http::seen;
use crate::shell::{TestShell, text};

#[tokio::test(flavor = "multi_thread")]
async fn schedules_of_jobs_are_made_changed_and_fire() {
    let shell = TestShell::open().await;
    let _worker = shell.worker(&["--demo"]);
    let made = shell.json(&[
        "schedule",
        "create",
        "--cron",
        "* * * * * *",
        "--job",
        "tick",
        "--payload",
        r#"{"n": 1}"#,
        "--retries",
        "1",
        "--overlap",
        "allow",
        "--name",
        "each-second",
    ]);
    assert_eq!((&made["enabled"], &made["overlap"]), (&json!(true), &json!("allow")));
    let id = made["id"].as_str().unwrap();
    assert_eq!(shell.text(&["schedule", "list", "--quiet"]), id);
    assert!(shell.text(&["schedule", "list", "-o", "table"]).contains("job tick in default"));
    let job = seen("a job that it made", async || {
        let found = shell.json(&["job", "list", "--schedule", "each-second", "--status", "completed"]);
        found.get(0).cloned()
    })
    .await;
    assert_eq!(job["name"], "tick");
    assert!(job["schedule"].as_str().unwrap().ends_with(&id.replace('-', "")), "{job}");
    assert_eq!(shell.json(&["schedule", "disable", "each-second"])["enabled"], false);
    let triggered = shell.text(&["schedule", "trigger", &id[..13], "--quiet"]);
    assert_eq!(shell.json(&["job", "wait", &triggered, "--timeout", "30s"])["payload"]["n"], 1);
    // Fields without a flag stay, inside the job too.
    let edited = shell.json(&[
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
    let next = shell.json(&["schedule", "next", id, "--count", "3"]);
    assert_eq!(next["next_runs"].as_array().unwrap().len(), 3);
    assert!(next["local"][0].as_str().unwrap().contains("09:00:00"), "{next}");
    assert!(shell.text(&["schedule", "next", id, "-o", "table"]).contains("IN EUROPE/BERLIN"));
    assert_eq!(shell.json(&["schedule", "enable", id])["enabled"], true);
    assert!(shell.text(&["schedule", "show", id, "-o", "table"]).contains("0 9 * * * in Europe/Berlin"));
    shell.text(&["schedule", "delete", id]);
    assert_eq!(shell.json(&["schedule", "list"]), Value::Array(Vec::new()));
    let unknown = text(&shell.code(&["schedule", "show", "each-second"], 1).stderr);
    assert!(
        unknown.contains("[unknown_schedule]") && unknown.contains("windlass schedule list"),
        "{unknown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_start_runs_of_flows_and_copies_of_jobs() {
    let shell = TestShell::open().await;
    shell.write(
        "shout.json",
        r#"{"start": "a", "nodes": {"a": {"kind": "local", "func": "upper",
        "prep": {"input_key": "$params.word"}, "post": {"output_key": "out"}}}, "edges": []}"#,
    );
    shell.text(&["flow", "apply", "shout.json"]);
    let made = shell.json(&[
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
    let run = shell.text(&["schedule", "trigger", "shout", "--quiet"]);
    assert_eq!(shell.json(&["run", "wait", &run, "--timeout", "30s"])["shared"]["out"], "ROPE");
    let edited = shell.json(&["schedule", "edit", "shout", "-p", "word=anchor", "--overlap", "queue"]);
    assert_eq!((&edited["params"]["word"], &edited["overlap"]), (&json!("anchor"), &json!("queue")));
    let job = shell.text(&[
        "job",
        "create",
        "report",
        "--queue",
        "nightly",
        "--payload",
        "7",
        "--in",
        "1h",
        "--quiet",
    ]);
    let like = shell.json(&["schedule", "create", "--cron", "@hourly", "--like", &job, "--catchup", "last"]);
    assert_eq!((&like["task"]["queue_name"], &like["task"]["payload"]), (&json!("nightly"), &json!(7)));
    shell.write(
        "report.json",
        r#"{"cron_expr": "@weekly", "timezone": "Asia/Tokyo", "task": {"name": "report"}}"#,
    );
    let filed =
        shell.json(&["schedule", "create", "-f", "report.json", "--cron", "@monthly", "--name", "filed"]);
    assert_eq!((&filed["timezone"], &filed["name"]), (&json!("Asia/Tokyo"), &json!("filed")));
    assert_ne!(filed["cron_expr"], "@weekly");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_of_a_schedule_are_reported() {
    let shell = TestShell::open().await;
    let slots = shell.json(&["schedule", "preview", "30 2 29 3 *", "--tz", "Europe/Berlin", "--count", "2"]);
    assert_eq!(slots["count"], 2);
    let ends = |words: &[&str], code| text(&shell.code(&[&["schedule"], words].concat(), code).stderr);
    let (refused, usage) = (|words: &[&str]| ends(words, 1), |words: &[&str]| ends(words, 2));
    assert!(refused(&["preview", "61 * * * *"]).contains("$.cron_expr"));
    assert!(refused(&["preview", "@daily", "--tz", "Mars/Olympus"]).contains("$.timezone"));
    assert!(usage(&["create", "--cron", "@daily"]).contains("--job NAME"));
    assert!(usage(&["create", "--job", "a"]).contains("--cron"));
    assert!(refused(&["create", "--cron", "@daily", "--flow", "nope"]).contains("$.flow"));
    assert!(
        usage(&["create", "--cron", "@daily", "--flow", "nope", "--priority", "1"]).contains("-p KEY=VALUE")
    );
    let made = shell.text(&["schedule", "create", "--cron", "@daily", "--job", "a", "--quiet"]);
    assert!(usage(&["edit", &made]).contains("no change is given"));
    shell.code(&["schedule", "edit", &made, "--overlap", "maybe"], 2);
}
