//! `windlass store copy` between real stores of stopped servers: open runs and jobs go on in the copy.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_conformance::postgres_server::PostgresServer;
use windlass_sdk::Client;
use windlass_sdk::contract::{RunRequest, Signal};

use crate::http::{ends, expect, get, post, seen, start};
use crate::kill::{Acknowledged, CallCounts, all_ended, calls, waits, worker};
use crate::server::{Server, TempDir, publish, with_params};
use crate::shell::text;
use crate::store::Store;

/// The report and the messages of a copy that must end with this code.
#[track_caller]
fn copy(from: &str, to: &str, code: i32) -> (Value, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    let output = command.args(["store", "copy", from, to, "--json"]).stdin(Stdio::null()).output().unwrap();
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{told}");
    (serde_json::from_slice(&output.stdout).unwrap_or_default(), told)
}

/// Copies everything and checks the report.
#[track_caller]
fn copied(from: &str, to: &str) -> Value {
    let (report, told) = copy(from, to, 0);
    assert!(report["same"] == true && report["doctor"]["findings"] == json!([]), "{report}\n{told}");
    report
}

fn n_rows(report: &Value, table: &str) -> u64 {
    let tables = report["tables"].as_array().unwrap();
    let found = tables.iter().find(|row| row["table"] == table);
    found.unwrap_or_else(|| panic!("no {table}"))["to"].as_u64().unwrap()
}

fn file(place: &TempDir, name: &str) -> String {
    format!("sqlite:{}", place.path().join(name).display())
}

/// A server on SQLite in every suite.
async fn on_a_file() -> Server {
    let place = TempDir::new();
    let store = Store::File(place.path().join("store.db"));
    Server::start_at(place, store, &[], &[]).await
}

async fn claim(client: &Client, queue: &str) -> Value {
    let claim = json!({"worker_id": "hand", "queues": [queue], "wait_ms": 20_000, "lease_ms": 600_000});
    post(client, "/api/v1/jobs/claim", claim).await["jobs"][0].clone()
}

async fn finish(client: &Client, job: &Value, mut end: Value) -> Value {
    (end["id"], end["lease"]) = (job["id"].clone(), job["lease"].clone());
    post(client, "/api/v1/jobs/finish", json!({"results": [end]})).await["results"][0]["verdict"].clone()
}

async fn create(client: &Client, queue: &str, more: Value) -> String {
    let mut body = json!({"name": "work", "type": "immediate", "queue_name": queue, "max_retries": 0});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    expect(client, "POST", "/api/v1/tasks", Some(body), 201).await["task_id"].as_str().unwrap().to_owned()
}

async fn status(client: &Client, job: &str) -> Value {
    get(client, &format!("/api/v1/tasks/{job}")).await["task"]["status"].clone()
}

async fn no_findings(client: &Client) {
    assert_eq!(client.examine(false).await.unwrap().findings, []);
}

/// An account with money for one call.
async fn open_account(client: &Client) {
    let account = json!({"id": "payer"});
    client.accounts().open(&serde_json::from_value(account).unwrap()).await.unwrap();
    deposit(client, "first", 7).await;
    let price = json!({"unit_price": 7, "min_unit": 1});
    client.prices().set("double", &serde_json::from_value(price).unwrap()).await.unwrap();
}

async fn deposit(client: &Client, key: &str, amount: i64) {
    let deposit = json!({"amount": amount, "key": key});
    client.accounts().deposit("payer", &serde_json::from_value(deposit).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_runs_and_jobs_go_on_in_the_copy() {
    let database = tokio::task::block_in_place(|| PostgresServer::start(false));
    let address = database.address(&database.create());
    let mut server = on_a_file().await;
    let client = server.client();
    publish(&client, "pull", calls("queue")).await;
    publish(&client, "push", calls("http")).await;
    publish(&client, "waits", waits()).await;
    open_account(&client).await;
    let waiting = start(&client, "waits", json!({"items": [1, 2]})).await;
    let (pull, push) =
        (start(&client, "pull", json!({"x": 1})).await, start(&client, "push", json!({"x": 2})).await);
    let mut paid = with_params(&json!({"x": 3}));
    paid.account = Some("payer".to_owned());
    paid.request_id = Some("the same".to_owned());
    paid.on_short_balance = serde_json::from_value(json!("wait")).unwrap();
    let short = client.runs().start("pull", &paid).await.unwrap().id;
    let other = RunRequest { request_id: Some("another".to_owned()), ..paid.clone() };
    let shorter = client.runs().start("pull", &other).await.unwrap().id;
    create(&client, "ready", json!({"payload": {"\u{0}": "\u{1}"}})).await;
    let later =
        create(&client, "later", json!({"type": "scheduled", "run_at": "2999-01-01T00:00:00Z"})).await;
    let (held, dead) =
        (create(&client, "held", json!({})).await, create(&client, "dead", json!({"dedup_key": "k"})).await);
    let (of_held, of_dead) = (claim(&client, "held").await, claim(&client, "dead").await);
    finish(&client, &of_dead, json!({"outcome": "failed", "error": "no", "retryable": false})).await;
    assert_eq!(status(&client, &dead).await, "failed");
    let schedule =
        json!({"name": "tick", "cron_expr": "0 0 1 1 *", "task": {"name": "t", "queue_name": "ticks"}});
    expect(&client, "POST", "/api/v1/schedules", Some(schedule), 201).await;
    let from = server.store().address();
    let (_, told) = copy(&from, &address, 1);
    assert!(told.contains("is in use by process"), "{told}");
    assert!(server.terminate().success());

    let report = copied(&from, &address);
    assert_eq!(
        (n_rows(&report, "runs"), n_rows(&report, "schedules"), n_rows(&report, "accounts")),
        (5, 1, 1)
    );
    let (_, told) = copy(&from, &address, 1);
    assert!(told.contains("is not empty"), "{told}");

    let server = Server::start_on(&address, &[]).await;
    let client = server.client();
    no_findings(&client).await;
    // The same request finds the same run; a claimed job stays with its worker.
    assert_eq!(client.runs().start("pull", &paid).await.unwrap().id, short);
    assert_eq!(finish(&client, &of_held, json!({"outcome": "done", "result": 1})).await, "ok");
    assert_eq!(status(&client, &held).await, "completed");
    assert_eq!(claim(&client, "ready").await["input"]["\u{0}"], "\u{1}");
    assert_eq!(status(&client, &later).await, "pending");
    let (asked, stop) = (CallCounts::default(), CancellationToken::new());
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let working =
        tokio::spawn(worker(client.clone(), "copier", &asked).listen(listener, url).run(stop.clone()));
    let signal: Signal = serde_json::from_value(json!({"key": "go", "value": true})).unwrap();
    client.runs().signal(&waiting, &signal).await.unwrap();
    deposit(&client, "second", 35).await;
    for (run, x) in [(&pull, 1), (&push, 2), (&short, 3), (&shorter, 3)] {
        assert_eq!(ends(&client, run, "completed").await["shared"]["c"], json!(x * 8), "{run}");
    }
    assert_eq!(ends(&client, &waiting, "completed").await["shared"]["out"], json!([8, 16]));
    let account = client.accounts().show("payer").await.unwrap();
    assert_eq!((account.balance, account.held), (0, 0));
    no_findings(&client).await;
    stop.cancel();
    working.await.unwrap().unwrap();

    let (_server, client) = back_to_a_file(server, &address).await;
    assert_eq!(client.runs().start("pull", &paid).await.unwrap().id, short);
    assert_eq!(status(&client, &dead).await, "failed");
    assert_eq!(client.accounts().show("payer").await.unwrap().balance, 0);
    no_findings(&client).await;
}

/// Copies everything back from a database when no server uses it any more; returns a server on the copy.
async fn back_to_a_file(mut server: Server, address: &str) -> (Server, Client) {
    let back = TempDir::new();
    let (_, told) = copy(address, &file(&back, "back.db"), 1);
    assert!(told.contains("server `windlass` uses") && told.contains("stop it"), "{told}");
    assert!(server.terminate().success());
    let report = copied(address, &file(&back, "back.db"));
    assert_eq!(n_rows(&report, "runs"), 5);
    let store = back.path().join("back.db");
    let server = Server::start_at(back, Store::File(store), &[], &[]).await;
    let client = server.client();
    (server, client)
}

/// Held for a call when it is copied, through both kinds of stores and between two of a kind, and settled at the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_charge_is_settled_in_the_copy() {
    let database = tokio::task::block_in_place(|| PostgresServer::start(false));
    let (base, other) = (database.address(&database.create()), database.address(&database.create()));
    let mut server = on_a_file().await;
    let client = server.client();
    publish(&client, "pull", calls("queue")).await;
    open_account(&client).await;
    let mut paid = with_params(&json!({"x": 3}));
    paid.account = Some("payer".to_owned());
    paid.on_short_balance = serde_json::from_value(json!("wait")).unwrap();
    let run = client.runs().start("pull", &paid).await.unwrap().id;
    seen("the charge", async || (client.accounts().show("payer").await.unwrap().held == 7).then_some(()))
        .await;
    assert!(server.terminate().success());
    let place = TempDir::new();
    let (first, last) = (file(&place, "first.db"), file(&place, "last.db"));
    let stores = [server.store().address(), base, other, first, last];
    for pair in stores.windows(2) {
        assert_eq!(n_rows(&copied(&pair[0], &pair[1]), "ledger"), 2, "{pair:?}");
    }

    let store = Store::File(place.path().join("last.db"));
    let server = Server::start_at(place, store, &[], &[]).await;
    let client = server.client();
    // Paid in before.
    deposit(&client, "first", 7).await;
    let other = serde_json::from_value(json!({"amount": 8, "key": "first"})).unwrap();
    let refused = client.accounts().deposit("payer", &other).await.unwrap_err();
    let account = client.accounts().show("payer").await.unwrap();
    assert_eq!((account.balance, account.held), (0, 7), "{refused}");
    let (asked, stop) = (CallCounts::default(), CancellationToken::new());
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let working =
        tokio::spawn(worker(client.clone(), "copier", &asked).listen(listener, url).run(stop.clone()));
    deposit(&client, "second", 14).await;
    assert_eq!(ends(&client, &run, "completed").await["shared"]["c"], json!(24));
    let account = client.accounts().show("payer").await.unwrap();
    assert_eq!((account.balance, account.held), (0, 0));
    no_findings(&client).await;
    stop.cancel();
    working.await.unwrap().unwrap();
}

/// Starts runs until told to stop, each until it is acknowledged.
async fn start_runs(client: Client, runs: Arc<Mutex<Vec<Acknowledged>>>, stop: CancellationToken) {
    for n in 0_i64.. {
        let flow = ["push", "pull"][(n % 2) as usize];
        let mut run = with_params(&json!({"x": n}));
        run.request_id = Some(n.to_string());
        match client.runs().start(flow, &run).await {
            Ok(started) => runs.lock().unwrap().push(Acknowledged { id: started.id, flow, x: n }),
            Err(_) if stop.is_cancelled() => return,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_of_a_killed_server_is_copied_and_goes_on() {
    let database = tokio::task::block_in_place(|| PostgresServer::start(false));
    let address = database.address(&database.create());
    let mut server = on_a_file().await;
    let client = server.client();
    publish(&client, "push", calls("http")).await;
    publish(&client, "pull", calls("queue")).await;
    let (asked, stop_worker) = (CallCounts::default(), CancellationToken::new());
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let working =
        tokio::spawn(worker(client.clone(), "copier", &asked).listen(listener, url).run(stop_worker.clone()));
    let (runs, stop) = (Arc::new(Mutex::new(Vec::new())), CancellationToken::new());
    let starting = tokio::spawn(start_runs(client.clone(), runs.clone(), stop.clone()));
    seen("a hundred runs", async || (runs.lock().unwrap().len() >= 100).then_some(())).await;
    stop.cancel();
    server.kill();
    starting.await.unwrap();
    stop_worker.cancel();
    // A killed server does not sign off.
    drop(working.await.unwrap());

    let from = server.store().address();
    let report = copied(&from, &address);
    assert!(n_rows(&report, "runs") >= 100, "{report}");
    let server = Server::start_on(&address, &[]).await;
    let (client, stop_worker) = (server.client(), CancellationToken::new());
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let working =
        tokio::spawn(worker(client.clone(), "copier", &asked).listen(listener, url).run(stop_worker.clone()));
    let runs = runs.lock().unwrap().clone();
    all_ended(std::slice::from_ref(&client), &runs, &asked).await;
    no_findings(&client).await;
    stop_worker.cancel();
    working.await.unwrap().unwrap();
}

/// Waits until the first jobs are in a file that another process writes.
fn wait_for_jobs(path: &Path) {
    let script = "import sqlite3, sys, time\n\
        begun = time.monotonic()\n\
        while time.monotonic() - begun < 180:\n\
        \x20   try:\n\
        \x20       db = sqlite3.connect('file:%s?mode=ro' % sys.argv[1], uri=True)\n\
        \x20       if db.execute('SELECT id FROM jobs LIMIT 1').fetchall(): sys.exit(0)\n\
        \x20   except sqlite3.Error: pass\n\
        sys.exit('no jobs')";
    assert!(Command::new("python3").args(["-c", script]).arg(path).status().unwrap().success());
}

/// A copy that is cut short at any moment can be repeated, and no server starts on it before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_killed_is_begun_anew() {
    let (place, mut server) = (TempDir::new(), on_a_file().await);
    let client = server.client();
    let many: Vec<Value> = (0..10_000)
        .map(|n| json!({"name": "work", "type": "immediate", "queue_name": "q", "payload": n}))
        .collect();
    expect(&client, "POST", "/api/v1/tasks/batch", Some(json!(many)), 201).await;
    assert!(server.terminate().success());
    let (from, to) = (server.store().address(), file(&place, "to.db"));
    let target = place.path().join("to.db");
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    let mut copying = command.args(["store", "copy", &from, &to]).stdout(Stdio::null()).spawn().unwrap();
    wait_for_jobs(&target);
    copying.kill().unwrap();
    assert!(!copying.wait().unwrap().success(), "the copy ended before it was killed");
    // A server that wrongly serves half a copy ends as well, so that the test fails and does not hang.
    let mut command = Command::new("timeout");
    let server = ["60", env!("CARGO_BIN_EXE_windlass"), "serve", "--listen", "127.0.0.1:0", "--store", &to];
    let refused = command.args(server).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("windlass store copy"), "{}", text(&refused.stderr));
    let report = copied(&from, &to);
    assert_eq!(n_rows(&report, "jobs"), 10_000);
    let server = Server::start_at(place, Store::File(target), &[], &[]).await;
    let depth = get(&server.client(), "/api/v1/queues/q").await;
    assert!(depth.to_string().contains("10000"), "{depth}");
}
