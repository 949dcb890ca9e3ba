//! Bulk actions and queries on the command line, and a bulk action whose server is killed.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_sdk::contract::{BulkAction, BulkKind, BulkRequest, BulkStatus};

use crate::http::{get, seen};
use crate::server::{Server, publish, with_params};
use crate::shell::TestShell;

/// Runs in the action that is cut short.
const RUNS: usize = 300;

fn fails() -> Value {
    json!({"start": "a", "nodes": {
        "a": {"kind": "local", "func": "fail"}
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_action_goes_on_after_its_server_was_killed_and_retries_no_run_twice() {
    let mut server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "f", fails()).await;
    for n in 0..RUNS {
        client.runs().start("f", &with_params(&json!({"message": n.to_string()}))).await.unwrap();
    }
    let is_failed = async || {
        let counts = get(&client, "/api/v1/runs/counts?by=status").await;
        let of = |status: &str| {
            let all = counts["counts"].as_array().unwrap();
            all.iter().find(|count| count["value"] == status).unwrap()["count"].as_u64().unwrap()
        };
        (of("failed") == RUNS as u64).then_some(())
    };
    seen("all runs have failed", is_failed).await;
    let bulk = BulkRequest {
        kind: BulkKind::Runs,
        query: Some("flow:f".to_owned()),
        action: BulkAction::Retry,
        ..BulkRequest::default()
    };
    let accepted = client.bulks().create(&bulk).await.unwrap();
    assert_eq!(accepted.matched, RUNS as u64);
    let has_begun = async || {
        let shown = client.bulks().show(&accepted.id).await.unwrap();
        (shown.done > 0).then_some(shown)
    };
    let begun = seen("the action has begun", has_begun).await;
    server.kill();
    server.spawn();
    server.ready().await;
    let has_ended = async || {
        let shown = client.bulks().show(&accepted.id).await.ok()?;
        (shown.status != BulkStatus::Running).then_some(shown)
    };
    let ended = seen("the action has ended", has_ended).await;
    assert_eq!(
        (ended.status, ended.done, ended.failed),
        (BulkStatus::Completed, RUNS as u64, 0),
        "{begun:?}"
    );
    seen("all runs have failed again", is_failed).await;
    let (mut cursor, mut rounds) = (String::new(), Vec::new());
    loop {
        let page = get(&client, &format!("/api/v1/runs?limit=100{cursor}")).await;
        rounds.extend(page["items"].as_array().unwrap().iter().map(|run| run["round"].as_u64().unwrap()));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(rounds, vec![2; RUNS], "a run was retried twice, or not at all");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_counts_before_it_changes() {
    let shell = TestShell::open().await;
    let client = shell.server.client();
    publish(&client, "f", fails()).await;
    for why in ["disk", "route", "disk"] {
        let started = client.runs().start("f", &with_params(&json!({"message": why}))).await.unwrap();
        client.runs().wait(&started.id, Some(Duration::from_secs(60))).await.unwrap().unwrap();
    }
    let query = "status:failed error~disk";
    let found = shell.text(&["run", "list", "-q", query, "--quiet"]);
    assert_eq!(found.lines().count(), 2);
    let counted = shell.text(&["bulk", "retry", "-q", query, "-o", "table"]);
    assert!(counted.contains("2 would take it, 0 would refuse it"), "{counted}");
    assert_eq!(shell.json(&["bulk", "list", "-o", "json"]), json!([]));
    let done = shell.text(&["bulk", "retry", "-q", query, "--yes", "-o", "table"]);
    assert!(done.contains("2 of 2"), "{done}");
    let one = found.lines().next().unwrap();
    shell.code(&["bulk", "cancel", one, "--yes"], 1);
    assert_eq!(shell.json(&["bulk", "list", "-o", "json"]).as_array().unwrap().len(), 2);
    shell.code(&["run", "list", "-q", "stauts:failed"], 1);
    let overview = shell.text(&["overview", "-o", "table"]);
    assert!(overview.contains("failed in 24 h") && overview.contains("workers"), "{overview}");
}
