//! Commands for money, and jobs that are paid for while the server is killed.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_sdk::contract::{
    DepositRequest, JobsQuery, LedgerListQuery, ListOrder, NewAccount, NewJob, NewPrice,
};
use windlass_sdk::worker::{HandlerOutcome, ServiceCall};
use windlass_sdk::{Client, Worker};

use crate::http::seen;
use crate::server::Server;
use crate::shell::{TestShell, text};

const KILLS: u64 = 12;
/// Jobs that callers ask for, each until it is acknowledged.
const JOBS: i64 = 240;
const CALLERS: i64 = 6;
const DEPOSIT: i64 = 100_000;

#[tokio::test(flavor = "multi_thread")]
async fn accounts_prices_and_budgets_have_their_commands() {
    let shell = TestShell::open().await;
    assert_eq!(shell.text(&["account", "open", "acme", "--name", "Acme Ltd", "--quiet"]), "acme");
    shell.text(&["account", "open", "acme"]);
    let other = shell.code(&["account", "open", "acme", "--name", "Another"], 1);
    assert!(text(&other.stderr).contains("account_taken"), "{}", text(&other.stderr));
    let said = shell.text(&["account", "deposit", "acme", "150", "--key", "k", "-o", "table"]);
    assert_eq!(said, "150 into acme, which has 150 now");
    let again = shell.text(&["account", "deposit", "acme", "150", "--key", "k", "-o", "table"]);
    assert!(again.starts_with("was made before"), "{again}");
    shell.code(&["account", "deposit", "acme", "151", "--key", "k"], 1);
    shell.code(&["account", "deposit", "nobody", "5"], 1);
    for amount in ["0", "-5", "1.5", "9223372036854775808"] {
        shell.code(&["account", "deposit", "acme", amount], 2);
    }
    let decimal = text(&shell.code(&["account", "deposit", "acme", "12.50"], 2).stderr);
    assert!(decimal.contains("smallest unit") && decimal.contains("write `1250`"), "{decimal}");
    // A key is made up where none is given, so that two are two.
    shell.text(&["account", "deposit", "acme", "5"]);
    shell.text(&["account", "deposit", "acme", "5"]);
    assert_eq!(shell.json(&["account", "show", "acme"])["balance"], 160);
    assert_eq!(shell.json(&["account", "list"]).as_array().unwrap().len(), 1);
    let amounts =
        |of: Value| of.as_array().unwrap().iter().map(|row| row["amount"].clone()).collect::<Vec<_>>();
    assert_eq!(amounts(shell.json(&["account", "ledger", "acme", "--limit", "2"])), [5, 5]);
    assert_eq!(amounts(shell.json(&["account", "ledger", "acme", "--order", "oldest"])), [150, 5, 5]);
    let set =
        ["price", "set", "sum", "2", "--units", "$params.seconds", "--actual", "$result", "--min", "10"];
    assert_eq!(shell.json(&set)["actual_units"], "$result");
    shell.code(&["price", "set", "sum", "2", "--units", "seconds"], 1);
    shell.code(&["price", "set", "sum", "-2"], 2);
    assert!(shell.text(&["price", "list", "-o", "table"]).contains("$params.seconds"));
    shell.write(
        "pay.json",
        r#"{"nodes": [{"id": "a", "type": "sum", "config": {"input": [40], "seconds": 50}}], "edges": []}"#,
    );
    shell.text(&["flow", "apply", "pay.json"]);
    let start = [
        "run",
        "start",
        "pay",
        "--account",
        "acme",
        "--budget",
        "99",
        "--on-short-balance",
        "wait",
        "--quiet",
    ];
    let run = shell.text(&start);
    let why = shell.text(&["run", "why", &run, "-o", "table"]);
    assert!(why.contains(&format!("windlass run budget {run}")), "{why}");
    assert_eq!(shell.text(&["run", "budget", &run, "100", "--quiet"]), run);
    let _worker = shell.worker(&["--demo"]);
    shell.text(&["run", "wait", &run, "--timeout", "30s"]);
    assert_eq!(shell.json(&["account", "show", "acme"])["balance"], 80);
    assert_eq!(amounts(shell.json(&["account", "ledger", "acme", "--run", &run])), [20, -100]);
    shell.text(&["price", "delete", "sum"]);
    shell.code(&["price", "show", "sum"], 1);
    shell.text(&["doctor"]);
}

/// The n-th job asks for three units; every fifth fails for good, and of the others half take none of them.
fn paid(n: i64) -> NewJob {
    NewJob {
        account: Some("acme".to_owned()),
        dedup_key: format!("n{n}"),
        unique_for_ms: Some(3_600_000),
        ..NewJob::new("work", "paid", json!({ "n": n }))
    }
}

fn worker(client: Client) -> Worker {
    Worker::new(client, "payer").lease(Duration::from_secs(2)).queue("paid", |call: ServiceCall| async move {
        let n = call.input["n"].as_i64().unwrap_or_default();
        match n % 5 {
            0 => HandlerOutcome::refused("no paper"),
            _ => HandlerOutcome::Done(json!({ "units": (n % 2) * 3 })),
        }
    })
}

async fn create(client: Client, caller: i64) {
    for n in (caller..JOBS).step_by(usize::try_from(CALLERS).unwrap()) {
        // Whether a creation that was not answered happened is unknown: the same key is asked for again.
        while client.jobs().create(&paid(n)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paid_jobs_are_charged_and_closed_once_through_kills() {
    let mut server = Server::start(&[]).await;
    let client = server.client();
    client.accounts().open(&NewAccount { id: "acme".to_owned(), name: None }).await.unwrap();
    let deposit = DepositRequest { amount: DEPOSIT, key: "first".to_owned() };
    client.accounts().deposit("acme", &deposit).await.unwrap();
    let price = NewPrice {
        unit_price: 5,
        units: Some(json!(3)),
        actual_units: Some(json!("$result.units")),
        ..NewPrice::default()
    };
    client.prices().set("work", &price).await.unwrap();
    let stop = CancellationToken::new();
    let working = tokio::spawn(worker(client.clone()).run(stop.clone()));
    let mut busy = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        busy.spawn(create(client.clone(), caller));
    }
    for n in 0..KILLS {
        tokio::time::sleep(Duration::from_millis(40 + n * 37 % 90)).await;
        server.kill();
        server.spawn();
        server.ready().await;
    }
    while let Some(created) = busy.join_next().await {
        created.unwrap();
    }
    let open = JobsQuery { status: Some("open".to_owned()), ..JobsQuery::default() };
    let none_open = || async { client.jobs().list(&open).await.ok().filter(|list| list.items.is_empty()) };
    seen("the end of all jobs", none_open).await;
    stop.cancel();
    working.await.unwrap().unwrap();
    let query =
        LedgerListQuery { order: Some(ListOrder::Oldest), limit: Some(1_000), ..LedgerListQuery::default() };
    let rows = client.accounts().ledger("acme", &query).await.unwrap().items;
    let n = |kind: &str| i64::try_from(rows.iter().filter(|row| row.kind == kind).count()).unwrap();
    let n_failed = (0..JOBS).filter(|n| n % 5 == 0).count() as i64;
    assert_eq!((n("charge"), n("refund"), n("settle")), (JOBS, n_failed, JOBS - n_failed));
    let n_paid = (0..JOBS).filter(|n| n % 5 != 0 && n % 2 == 1).count() as i64;
    let account = client.accounts().show("acme").await.unwrap();
    assert_eq!((account.balance, account.held), (DEPOSIT - n_paid * 15, 0));
    assert_eq!(rows.iter().map(|row| row.amount).sum::<i64>(), account.balance);
    let found = client.examine(false).await.unwrap();
    assert!(found.findings.is_empty(), "{:?}", found.findings);
}
