//! Three servers on one PostgreSQL: they are killed, stopped for longer than they may be silent, and restarted in turn
//! while they work. Nothing that was acknowledged is lost, and nothing happens twice.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_sdk::Client;
use windlass_sdk::types::{RunStatus, Signal, TasksQuery};
use windlass_store::conformance::cluster::Cluster as Database;

use crate::kill::{Acknowledged, Asked, calls, check_history, waits, worker};
use crate::server::{PATIENCE, Server, publish, with_params};
use crate::talk::{expect, journal, seen, start};

/// What is told by a hint comes within this, and what is found by looking does not.
const SOON: Duration = Duration::from_millis(1_500);
const DEPOSIT: i64 = 1_000_000;
const PRICE: i64 = 7;
/// Callers that start runs all the time.
const CALLERS: usize = 3;

/// Servers, and the database that they share. They go before it does.
struct Cluster {
    servers: Vec<Server>,
    _database: Database,
}

impl Cluster {
    async fn start(n: usize) -> Self {
        let database = tokio::task::block_in_place(|| Database::start(false));
        let address = database.address(&database.create());
        let mut servers = Vec::new();
        for _ in 0..n {
            servers.push(Server::start_on(&address, &[]).await);
        }
        Cluster { servers, _database: database }
    }

    fn client(&self, nth: usize) -> Client {
        self.servers[nth % self.servers.len()].client()
    }
}

/// Everything is paid for by one account, and every call costs the same.
async fn open_account(client: &Client) {
    let account = json!({"id": "payer"});
    client.open_account(&serde_json::from_value(account).unwrap()).await.unwrap();
    let deposit = json!({"amount": DEPOSIT, "key": "first"});
    client.deposit("payer", &serde_json::from_value(deposit).unwrap()).await.unwrap();
    let price = json!({"unit_price": PRICE, "min_unit": 1});
    client.set_price("double", &serde_json::from_value(price).unwrap()).await.unwrap();
}

/// Each call of each run was paid for once.
async fn adds_up(client: &Client, runs: &[Acknowledged]) {
    let n_calls: i64 = runs.iter().map(|run| if run.flow == "waits" { 0 } else { 3 }).sum();
    let account = client.account("payer").await.unwrap();
    assert_eq!((account.balance, account.held), (DEPOSIT - n_calls * PRICE, 0));
}

/// Starts runs at one server after the other until told to stop, each until it is acknowledged.
async fn start_runs(
    clients: Vec<Client>,
    caller: usize,
    acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
    stop: CancellationToken,
) {
    let mut at = caller;
    for n in 0_i64.. {
        let flow = ["push", "pull", "waits"][(n as usize + caller) % 3];
        let mut run = with_params(&json!({"x": n, "items": [n, n + 1]}));
        run.request_id = Some(format!("{caller}-{n}"));
        run.account = Some("payer".to_owned());
        loop {
            at += 1;
            if stop.is_cancelled() {
                return;
            }
            // Whether a start that was not answered happened is unknown: the same request goes to the next server.
            let started = clients[at % clients.len()].start(flow, &run);
            if let Ok(Ok(started)) = tokio::time::timeout(Duration::from_secs(2), started).await {
                acknowledged.lock().unwrap().push(Acknowledged { id: started.id, flow, x: n });
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
}

/// Sends every run that waits for it its signal, at whichever server takes it.
async fn send_signals(clients: &[Client], runs: &[Acknowledged]) {
    let signal: Signal = serde_json::from_value(json!({"key": "go", "value": true})).unwrap();
    for (n, run) in runs.iter().filter(|run| run.flow == "waits").enumerate() {
        let mut at = n;
        // A run that has ended got it before, although nobody heard of it.
        while clients[at % clients.len()]
            .signal(&run.id, &signal)
            .await
            .is_err_and(|error| error.status != Some(409))
        {
            at += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn all_ended(clients: &[Client], runs: &[Acknowledged], asked: &Asked) {
    for (n, run) in runs.iter().enumerate() {
        let client = &clients[n % clients.len()];
        let Some(ended) = client.wait(&run.id, Some(PATIENCE)).await.unwrap() else {
            panic!("{} ({}) did not end: {:?}", run.id, run.flow, client.why(&run.id).await);
        };
        assert_eq!(ended.summary.status, RunStatus::Completed, "{}: {:?}", run.id, ended.summary.error);
        match run.flow {
            "waits" => assert_eq!(ended.shared["out"], json!([run.x * 8, (run.x + 1) * 8])),
            _ => assert_eq!(ended.shared["c"], json!(run.x * 8)),
        }
    }
    let ids: BTreeSet<&String> = runs.iter().map(|run| &run.id).collect();
    assert_eq!(ids.len(), runs.len(), "two requests made one run");
    let asked = asked.lock().unwrap().clone();
    for (n, run) in runs.iter().enumerate() {
        check_history(run, &journal(&clients[n % clients.len()], &run.id).await, &asked);
    }
}

/// The schedule has fired each of its slots once.
async fn each_slot_once(client: &Client, id: &str) {
    let n_fired = client.schedule(id).await.unwrap().fired;
    let mut query = TasksQuery { queue: Some("ticks".to_owned()), limit: Some(500), ..TasksQuery::default() };
    let mut ids = BTreeSet::new();
    loop {
        let page = client.tasks(&query).await.unwrap();
        ids.extend(page.tasks.into_iter().map(|task| task.id));
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    assert!(n_fired >= 20, "{n_fired}");
    // It may fire between the two questions.
    assert!(ids.len() as u64 - n_fired <= 2, "{} jobs of {n_fired} slots", ids.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_are_killed_frozen_and_restarted_in_turn() {
    let mut cluster = Cluster::start(3).await;
    let clients: Vec<Client> = (0..3).map(|nth| cluster.client(nth)).collect();
    open_account(&clients[1]).await;
    publish(&clients[0], "push", calls("http")).await;
    publish(&clients[1], "pull", calls("queue")).await;
    publish(&clients[2], "waits", waits()).await;
    let tick = json!({"name": "tick", "cron_expr": "* * * * * *", "overlap": "allow", "catchup": "all",
        "task": {"name": "tick", "queue_name": "ticks"}});
    let schedule = expect(&clients[0], "POST", "/api/v1/schedules", Some(tick), 201).await;

    let (asked, stop_workers) = (Asked::default(), CancellationToken::new());
    let mut working = JoinSet::new();
    for client in &clients {
        let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
        let worker = worker(client.clone(), &asked).listen(listener, url);
        working.spawn(worker.run(stop_workers.clone()));
    }
    let (acknowledged, stop) = (Arc::new(Mutex::new(Vec::new())), CancellationToken::new());
    let mut busy = JoinSet::new();
    for caller in 0..CALLERS {
        busy.spawn(start_runs(clients.clone(), caller, acknowledged.clone(), stop.clone()));
    }
    for nth in 0..6 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        cluster.servers[nth % 3].kill();
        tokio::time::sleep(Duration::from_millis(300)).await;
        cluster.servers[nth % 3].spawn();
        cluster.servers[nth % 3].ready().await;
    }
    // Longer than it may be silent: the others take over what it does, and it finds that out when it goes on.
    cluster.servers[0].freeze(true);
    tokio::time::sleep(Duration::from_secs(13)).await;
    cluster.servers[0].freeze(false);
    cluster.servers[0].ready().await;
    for server in &mut cluster.servers {
        assert!(server.terminate().success(), "{}", server.log());
        server.spawn();
        server.ready().await;
    }
    stop.cancel();
    while let Some(ended) = busy.join_next().await {
        ended.unwrap();
    }
    let runs = acknowledged.lock().unwrap().clone();
    assert!(runs.len() > 50, "only {} runs were acknowledged", runs.len());
    send_signals(&clients, &runs).await;
    all_ended(&clients, &runs, &asked).await;
    adds_up(&clients[2], &runs).await;
    each_slot_once(&clients[1], schedule["id"].as_str().unwrap()).await;
    for client in &clients {
        assert_eq!(client.examine(false).await.unwrap().findings.len(), 0);
    }
    stop_workers.cancel();
    while let Some(ended) = working.join_next().await {
        ended.unwrap().unwrap();
    }
    println!("{} runs, {} calls made", runs.len(), asked.lock().unwrap().values().sum::<usize>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_at_one_server_is_seen_at_another_at_once() {
    let cluster = Cluster::start(2).await;
    let (here, there) = (cluster.client(0), cluster.client(1));
    publish(&here, "waits", waits()).await;
    let run = start(&here, "waits", json!({"items": [1]})).await;
    let mut events = there.run_events(&run, None).await.unwrap();
    let mut all = there.events(None).await.unwrap();
    let signal: Signal = serde_json::from_value(json!({"key": "go", "value": true})).unwrap();
    here.signal(&run, &signal).await.unwrap();
    let begun = Instant::now();
    while events.next().await.unwrap().expect("the stream goes on to the end of the run").event != "end" {}
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let change = tokio::time::timeout(SOON, all.next()).await.expect("it is told").unwrap().unwrap();
    assert!(change.data.contains(&run), "{}", change.data);

    let waiting = tokio::spawn({
        let there = there.clone();
        async move { expect(&there, "POST", "/api/v1/jobs/claim", Some(claim()), 200).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let task = json!({"name": "work", "type": "immediate", "queue_name": "q"});
    expect(&here, "POST", "/api/v1/tasks", Some(task), 201).await;
    let claimed =
        tokio::time::timeout(SOON, waiting).await.expect("it does not wait for what is there").unwrap();
    assert_eq!(claimed["jobs"].as_array().unwrap().len(), 1, "{claimed}");

    // A worker that registers with one is called by the other.
    let (asked, stop) = (Asked::default(), CancellationToken::new());
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let working = tokio::spawn(worker(here.clone(), &asked).listen(listener, url).run(stop.clone()));
    seen("the worker", async || {
        let workers = there.workers().await.unwrap();
        (!workers.workers.is_empty()).then_some(())
    })
    .await;
    publish(&here, "push", calls("http")).await;
    let run = start(&there, "push", json!({"x": 1})).await;
    let ended = tokio::time::timeout(SOON, there.wait(&run, None)).await.expect("it is called").unwrap();
    assert_eq!(ended.unwrap().shared["c"], json!(8));
    stop.cancel();
    working.await.unwrap().unwrap();
}

fn claim() -> Value {
    json!({"worker_id": "w", "queues": ["q"], "wait_ms": 20_000})
}
