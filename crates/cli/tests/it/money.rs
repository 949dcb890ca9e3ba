//! Money under fire: more than a thousand charges at once on a few accounts, by workers that say everything twice, on a
//! server that is killed again and again. Never negative, never double, always the sum.

mod ledger;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass_sdk::Client;
use windlass_sdk::contract::DepositRequest;

use crate::http::expect;
use crate::server::{PATIENCE, Server, publish};

/// How often the server is killed at least; twice as often while there is work.
const KILLS: usize = 12;
const RUNS_OF_EACH: usize = 25;
/// Calls of a run, all ready at once: with four accounts, 1,200 charges.
const CALLS: usize = 12;
/// Jobs without a run, which are paid for as well.
const TASKS: usize = 60;
const WORKERS: usize = 4;
/// The price of one unit.
const PRICE: i64 = 3;
/// All that a run may be charged at once.
const RUN_MOST: i64 = PRICE * (2 + 4 + 2 + 3 + 3 + 1) * (CALLS as i64 / 6);
/// The first deposits: enough, enough, too little, and too little until a second deposit.
const ACCOUNTS: [(&str, i64); 4] = [
    ("rich", 1_000_000),
    ("fickle", 1_000_000),
    ("poor", RUN_MOST * RUNS_OF_EACH as i64 / 2),
    ("patient", RUN_MOST),
];

/// The course of a call by its number: the units of its charge, and its outcome.
fn order(nth: usize) -> (i64, &'static str) {
    [(2, "done"), (4, "less"), (2, "more"), (3, "refused"), (3, "flaky"), (1, "done")][nth % 6]
}

/// The answer of the worker.
fn outcome(order: &Value, attempt: u64) -> Value {
    let units = order["units"].as_i64().unwrap();
    let done = |units: i64| json!({"outcome": "done", "result": {"units": units}});
    match order["how"].as_str().unwrap() {
        "less" => done(1),
        "more" => done(units + 3),
        "refused" => json!({"outcome": "failed", "error": "not this", "retryable": false}),
        "flaky" if attempt == 1 => json!({"outcome": "failed", "error": "not now"}),
        "flaky" | "done" => done(units),
        other => panic!("nobody knows how to `{other}`"),
    }
}

fn side_by_side() -> Value {
    let node = |nth: usize| {
        let (units, how) = order(nth);
        json!({
            "id": format!("n{nth}"), "type": "work", "config": {"units": units, "how": how},
            "retry": {"max": 8, "delay_ms": 10},
        })
    };
    json!({"nodes": (0..CALLS).map(node).collect::<Vec<_>>(), "edges": [], "on_failure": "continue"})
}

/// Says something until it is answered; a server that is away comes back.
async fn insist(client: &Client, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let begun = std::time::Instant::now();
    loop {
        match client.raw(method, path, Some(body)).await {
            Ok((status, text)) if status < 500 && status != 429 => {
                return (status, serde_json::from_str(&text).unwrap_or(Value::String(text)));
            }
            Ok(_) | Err(_) => assert!(begun.elapsed() < PATIENCE, "{method} {path} is not answered"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn open_accounts(client: &Client) {
    let price = json!({"unit_price": PRICE, "min_unit": 1, "units": "$params.units", "actual_units": "$result.units"});
    expect(client, "PUT", "/api/v1/prices/work", Some(price), 200).await;
    for (account, amount) in ACCOUNTS {
        expect(client, "POST", "/api/v1/accounts", Some(json!({"id": account})), 201).await;
        client
            .accounts()
            .deposit(account, &DepositRequest { amount, key: "first".to_owned() })
            .await
            .unwrap();
    }
}

/// Every end of a job that a worker ever sent.
type Sent = Arc<Mutex<Vec<Value>>>;

/// A worker that says everything twice at once, and says it again until it is heard.
async fn work(client: Client, other: Client, nth: usize, sent: Sent, stop: CancellationToken) {
    let claim = json!({
        "worker_id": format!("w{nth}"), "services": ["work"], "queues": ["work"],
        "max": 8, "wait_ms": 200, "lease_ms": 1_000,
    });
    while !stop.is_cancelled() {
        let (status, claimed) = insist(&client, "POST", "/api/v1/jobs/claim", &claim).await;
        assert_eq!(status, 200, "{claimed}");
        // Long enough for a server to be killed meanwhile.
        tokio::time::sleep(Duration::from_millis(15)).await;
        let mut results = Vec::new();
        for job in claimed["jobs"].as_array().unwrap() {
            // A job of a run has params; a job of its own has a payload.
            let order = if job["run"].is_null() { &job["input"] } else { &job["params"] };
            let mut result = outcome(order, job["attempt"].as_u64().unwrap());
            result["id"] = job["id"].clone();
            result["lease"] = job["lease"].clone();
            results.push(result);
        }
        if results.is_empty() {
            continue;
        }
        let body = json!({"results": results});
        sent.lock().unwrap().push(body.clone());
        let (first, second) = tokio::join!(
            insist(&client, "POST", "/api/v1/jobs/finish", &body),
            insist(&other, "POST", "/api/v1/jobs/finish", &body),
        );
        assert_eq!((first.0, second.0), (200, 200), "{} {}", first.1, second.1);
    }
}

/// Repeats old requests.
async fn haunt(client: Client, sent: Sent, stop: CancellationToken) {
    let mut nth = 0_usize;
    while !stop.is_cancelled() {
        let old = sent.lock().unwrap().get(nth).cloned();
        match old {
            Some(body) => {
                insist(&client, "POST", "/api/v1/jobs/finish", &body).await;
                nth += 1;
            }
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Starts a run until that is acknowledged; its id and its account.
async fn start_run(client: Client, account: &'static str, nth: usize) -> (String, &'static str) {
    let wait = json!(if account == "patient" { "wait" } else { "fail" });
    let body = json!({
        "request_id": format!("{account}-{nth}"), "account": account, "on_short_balance": wait,
    });
    let (status, started) = insist(&client, "POST", "/api/v1/flows/paid/runs", &body).await;
    assert!(matches!(status, 200 | 201), "{status} {started}");
    let id = started["id"].as_str().unwrap().to_owned();
    if account == "fickle" && nth.is_multiple_of(3) {
        // A cancellation by the payer, at any point of the run.
        tokio::time::sleep(Duration::from_millis(30 * nth as u64)).await;
        let (status, said) = insist(&client, "POST", &format!("/api/v1/runs/{id}/cancel"), &json!({})).await;
        assert!(matches!(status, 200 | 409), "{status} {said}");
    }
    (id, account)
}

/// Creates a job that pays for itself; its id.
async fn create_task(client: Client, nth: usize) -> String {
    let (units, how) = order(nth);
    let body = json!({
        "name": "work", "type": "immediate", "queue_name": "work", "account": "rich", "max_retries": 4,
        "payload": {"units": units, "how": how}, "dedup_key": format!("task-{nth}"),
        // Asked again after a kill, it may have ended already.
        "unique_for_ms": 600_000,
        "backoff": {"base_ms": 10, "cap_ms": 10},
    });
    let (status, created) = insist(&client, "POST", "/api/v1/tasks", &body).await;
    assert!(matches!(status, 200 | 201), "{status} {created}");
    created["task_id"].as_str().unwrap().to_owned()
}

/// Puts money in little by little, everything twice.
async fn deposit(client: Client) -> i64 {
    let (amount, n) = (RUN_MOST, RUNS_OF_EACH);
    for nth in 0..n {
        let body = json!({"amount": amount, "key": format!("more-{nth}")});
        for _ in 0..2 {
            let (status, said) = insist(&client, "POST", "/api/v1/accounts/patient/deposit", &body).await;
            assert!(matches!(status, 200 | 201), "{status} {said}");
        }
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    amount * n as i64
}

/// Kills the server again and again, as long as there is work.
async fn kill_until(server: &mut Server, over: JoinHandle<Begun>) -> (usize, Begun) {
    let mut n_kills = 0;
    while n_kills < KILLS || n_kills < KILLS * 2 && !over.is_finished() {
        tokio::time::sleep(Duration::from_millis(60 + n_kills as u64 * 37 % 240)).await;
        server.kill();
        server.spawn();
        server.ready().await;
        n_kills += 1;
    }
    (n_kills, over.await.unwrap())
}

/// Begins everything at once, and waits until it has ended.
async fn begin(client: Client) -> Begun {
    let (mut runs, mut tasks) = (JoinSet::new(), JoinSet::new());
    for nth in 0..RUNS_OF_EACH {
        for (account, _) in ACCOUNTS {
            runs.spawn(start_run(client.clone(), account, nth));
        }
    }
    for nth in 0..TASKS {
        tasks.spawn(create_task(client.clone(), nth));
    }
    let deposited = deposit(client.clone()).await;
    let runs: BTreeMap<String, &'static str> = runs.join_all().await.into_iter().collect();
    for id in runs.keys() {
        ended(&client, &format!("/api/v1/runs/{id}"), |run| !run["ended_at"].is_null()).await;
    }
    for id in tasks.join_all().await {
        let is_over = |task: &Value| matches!(task["display_status"].as_str(), Some("completed" | "failed"));
        ended(&client, &format!("/api/v1/tasks/{id}"), is_over).await;
    }
    Begun { runs, deposited }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_charges_survive_kills_and_duplicates_to_the_last_unit() {
    let mut server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "paid", side_by_side()).await;
    open_accounts(&client).await;

    let (sent, stop, mut workers) = (Sent::default(), CancellationToken::new(), JoinSet::new());
    for nth in 0..WORKERS {
        workers.spawn(work(server.client(), server.client(), nth, sent.clone(), stop.clone()));
    }
    workers.spawn(haunt(server.client(), sent.clone(), stop.clone()));

    let (n_kills, begun) = kill_until(&mut server, tokio::spawn(begin(client))).await;
    stop.cancel();
    while let Some(ended) = workers.join_next().await {
        ended.unwrap();
    }
    assert_eq!(begun.runs.len(), RUNS_OF_EACH * ACCOUNTS.len(), "two requests made one run");
    ledger::check(&server, &begun).await;
    let n_sent: usize =
        sent.lock().unwrap().iter().map(|body| body["results"].as_array().unwrap().len()).sum();
    println!("{} runs, {n_sent} ends, {n_kills} kills", begun.runs.len());
}

/// Acknowledged runs and jobs that have ended.
struct Begun {
    /// Runs, with their accounts.
    runs: BTreeMap<String, &'static str>,
    /// The second deposit of the account that waits.
    deposited: i64,
}

/// Looks until something is over, however often the server is away.
async fn ended(client: &Client, path: &str, is_over: impl Fn(&Value) -> bool) {
    let begun = std::time::Instant::now();
    loop {
        let said = client.raw("GET", path, None).await.ok().filter(|(status, _)| *status == 200);
        let seen: Option<Value> = said.and_then(|(_, text)| serde_json::from_str(&text).ok());
        if seen.as_ref().is_some_and(&is_over) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{path} does not end: {seen:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
