//! Runs that call flows on a real server: cancellation, kills and money.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_sdk::Client;
use windlass_sdk::contract::{DepositRequest, NewAccount, RunRequest};

use crate::http::{ends, get, post, seen, start};
use crate::server::{Server, publish};
use crate::shell::TestShell;

const N: usize = 12;

/// As many children side by side as there are items.
fn each(flow: &str) -> Value {
    json!({"start": "f", "nodes": {"f": {"kind": "foreach", "prep": {"input_key": "$params.items"},
        "parallel_mode": "concurrent", "post": {"output_key": "out"},
        "subflow": {"start": "c", "nodes": {"c": {"kind": "flow_ref", "flow": flow,
            "prep": {"input_map": {"n": "$input"}}, "post": {"output_key": "got"}}}, "edges": []}}}, "edges": []})
}

fn items() -> Value {
    json!({"items": (0..N).collect::<Vec<_>>()})
}

async fn open_account(client: &Client, amount: i64) {
    client.accounts().open(&NewAccount { id: "acme".to_owned(), name: None }).await.unwrap();
    client.accounts().deposit("acme", &DepositRequest { amount, key: "first".to_owned() }).await.unwrap();
}

async fn start_paid(client: &Client, flow: &str) -> String {
    let params = items().as_object().cloned();
    let run = RunRequest { params, account: Some("acme".to_owned()), ..RunRequest::default() };
    client.runs().start(flow, &run).await.unwrap().id
}

async fn runs(client: &Client, query: &str) -> Vec<Value> {
    get(client, &format!("/api/v1/runs?limit=1000&{query}")).await["items"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_leaves_no_child_behind_whether_it_was_created_or_not() {
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(
        &client,
        "leaf",
        json!({"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "never"}}}}),
    )
    .await;
    publish(&client, "mid", each("leaf")).await;
    publish(&client, "top", json!({"start": "c", "nodes": {"c": {"kind": "flow_ref", "flow": "mid"}}})).await;
    let mut begun = Vec::new();
    for at in 0..10 {
        let run = start(&client, "top", items()).await;
        if at % 2 == 0 {
            // Some have all their children, of others not even the first is there yet.
            seen("grandchildren", async || {
                let waiting = runs(&client, "flow=leaf&status=waiting").await;
                (waiting.len() >= N).then_some(())
            })
            .await;
        }
        post(&client, &format!("/api/v1/runs/{run}/cancel"), json!({})).await;
        ends(&client, &run, "canceled").await;
        begun.push(run);
    }
    seen("that nothing is open", async || {
        runs(&client, "status=pending,running,waiting,paused,canceling").await.is_empty().then_some(())
    })
    .await;
    let parents: BTreeSet<String> = begun.into_iter().collect();
    for run in runs(&client, "flow=mid").await {
        assert!(parents.contains(run["parent"]["run"].as_str().unwrap()), "{run}");
        assert_eq!(run["status"], "canceled", "{run}");
    }
    assert!(runs(&client, "flow=leaf").await.iter().all(|run| run["status"] == "canceled"));
}

#[tokio::test(flavor = "multi_thread")]
async fn children_are_billed_once_though_the_server_is_killed() {
    let mut server = Server::start(&[]).await;
    let client = server.client();
    open_account(&client, 100_000).await;
    let leaf = json!({"start": "a", "nodes": {
        "a": {"kind": "local", "func": "sleep", "params": {"ms": 20}, "cost": 3},
        "b": {"kind": "local", "func": "echo", "prep": {"input_key": "$params.n"}, "cost": 4, "post": {"output_key": "n"}},
    }, "edges": [{"from": "a", "to": "b"}]});
    publish(&client, "leaf", leaf).await;
    publish(&client, "mid", each("leaf")).await;
    publish(
        &client,
        "top",
        json!({"start": "own", "nodes": {
        "own": {"kind": "local", "func": "echo", "cost": 1}, "c": {"kind": "flow_ref", "flow": "mid"}},
        "edges": [{"from": "own", "to": "c"}]}),
    )
    .await;
    let mut begun = Vec::new();
    for _ in 0..3 {
        for _ in 0..4 {
            begun.push(start_paid(&client, "top").await);
        }
        server.kill();
        server.spawn();
        server.ready().await;
    }
    let each = 7 * i64::try_from(N).unwrap();
    for run in &begun {
        let ended = ends(&client, run, "completed").await;
        let cost = &ended["cost"];
        assert_eq!((&cost["actual"], &cost["own"]["actual"]), (&json!(each + 1), &json!(1)), "{ended}");
        // The charge of a call that died with its server is refunded, and stays in the sum of all charges.
        let (all, own) = (cost["estimated"].as_i64().unwrap(), cost["own"]["estimated"].as_i64().unwrap());
        assert!(all > each && own >= 1 && all - own >= each, "{ended}");
    }
    let spent = i64::try_from(begun.len()).unwrap() * (each + 1);
    let account = get(&client, "/api/v1/accounts/acme").await;
    assert_eq!((&account["balance"], &account["held"]), (&json!(100_000 - spent), &json!(0)));
    let doctor = post(&client, "/api/v1/doctor", json!({})).await;
    assert_eq!(doctor["findings"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn people_see_children_dry_runs_and_differences() {
    let shell = TestShell::open().await;
    let leaf = r#"{"start": "e", "nodes": {"e": {"kind": "local", "func": "echo", "prep": {"input_key": "$params.n"}, "post": {"output_key": "n"}}}}"#;
    shell.write("leaf.json", leaf);
    shell.write("top.json", r#"{"start": "c", "nodes": {"c": {"kind": "flow_ref", "flow": "leaf", "params": {"n": 5}, "post": {"output_key": "got"}},
        "f": {"kind": "local", "func": "fail", "prep": {"input_map": {"message": "not today"}}}}, "edges": [{"from": "c", "to": "f"}]}"#);
    shell.code(&["flow", "apply", "leaf.json"], 0);
    shell.code(&["flow", "apply", "top.json"], 0);
    let run = shell.json(&["run", "start", "top", "-o", "json"])["id"].as_str().unwrap().to_owned();
    shell.code(&["run", "wait", &run], 1);
    let child =
        shell.json(&["run", "list", "--parent", &run, "-o", "json"])[0]["id"].as_str().unwrap().to_owned();
    let shown = shell.text(&["run", "show", &run, "-o", "table"]);
    assert!(
        shown.contains("children:") && shown.contains(&format!("c → leaf v1 · {child} · completed")),
        "{shown}"
    );
    let plan = shell.text(&["run", "retry", &run, "--dry-run", "-o", "table"]);
    assert!(plan.contains("nothing was changed") && plan.contains("calls: 1"), "{plan}");
    shell.write("shared.json", r#"{"got": 1}"#);
    let told = shell.json(&[
        "run",
        "rerun",
        &run,
        "--from",
        "c",
        "--shared",
        "shared.json",
        "--dry-run",
        "-o",
        "json",
    ]);
    assert_eq!((&told["round"], &told["nodes"][0]["by"]), (&json!(2), &json!("child run")));
    assert_eq!(shell.json(&["run", "show", &run, "-o", "json"])["round"], 1);
    let diff = shell.text(&["run", "diff", &run, "1", "-o", "table"]);
    assert!(diff.contains("~ /status") && diff.contains("+ /shared/got"), "{diff}");
    let state = shell.text(&["run", "state", &run, "--at", "1", "-o", "table"]);
    assert!(state.contains("after entry 1 of"), "{state}");
    shell.code(&["run", "rerun", &run, "--from", "nowhere", "--dry-run"], 1);
    shell.code(&["run", "rerun", &run, "--from", "c", "--shared", "[1]"], 1);
    shell.code(&["run", "retry", &run], 0);
}
