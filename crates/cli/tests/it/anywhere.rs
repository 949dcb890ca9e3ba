//! Three servers on one PostgreSQL: a request to one holds at all of them, and one may stop at any time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_conformance::postgres_server::PostgresServer;
use windlass_sdk::contract::{JobsQuery, Signal};
use windlass_sdk::worker::ServiceCall;
use windlass_sdk::{Client, Worker};

use crate::http::{ends, expect, get, post, seen, start};
use crate::kill::{CallCounts, calls, waits};
use crate::server::{PATIENCE, Server, publish, with_params};

/// Hints arrive within this time; the polling interval is longer.
const SOON: Duration = Duration::from_secs(5);

/// Servers, and the database that they share. They go before it does.
struct Servers {
    all: Vec<Server>,
    _database: PostgresServer,
}

impl Servers {
    async fn start(n: usize) -> Self {
        let database = tokio::task::block_in_place(|| PostgresServer::start(false));
        let address = database.address(&database.create());
        let mut all = Vec::new();
        for _ in 0..n {
            all.push(Server::start_on(&address, &[]).await);
        }
        Servers { all, _database: database }
    }

    fn clients(&self) -> Vec<Client> {
        self.all.iter().map(Server::client).collect()
    }
}

fn task(queue: &str, n: usize) -> Value {
    json!({"name": "work", "type": "immediate", "queue_name": queue, "payload": {"n": n}})
}

fn claim(queue: &str, worker: &str, max: usize, wait_ms: u64) -> Value {
    json!({"worker_id": worker, "queues": [queue], "max": max, "wait_ms": wait_ms})
}

/// Takes jobs of a queue; their ids and leases.
async fn take(client: &Client, asked: Value) -> Vec<(String, Value)> {
    let claimed = post(client, "/api/v1/jobs/claim", asked).await;
    let jobs = claimed["jobs"].as_array().unwrap().iter();
    jobs.map(|job| (job["id"].as_str().unwrap().to_owned(), job["lease"].clone())).collect()
}

async fn finish(client: &Client, taken: &[(String, Value)]) {
    let end = |(id, lease): &(String, Value)| json!({"id": id, "lease": lease, "outcome": "done"});
    let results: Vec<Value> = taken.iter().map(end).collect();
    let answer = post(client, "/api/v1/jobs/finish", json!({"results": results})).await;
    for verdict in answer["results"].as_array().unwrap() {
        assert_eq!(verdict["verdict"], "ok", "{answer}");
    }
}

/// Jobs that servers handed out in vain.
async fn n_lost(clients: &[Client]) -> usize {
    let mut sum = 0;
    for client in clients {
        let (_, page) = client.raw("GET", "/metrics", None).await.unwrap();
        let lines: Vec<&str> =
            page.lines().filter(|line| line.starts_with("windlass_claims_lost_total{")).collect();
        assert_eq!(lines.len(), 2, "{page}");
        sum += lines
            .iter()
            .map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap())
            .sum::<usize>();
    }
    sum
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_breaks_goes_on_at_another_server() {
    let servers = Servers::start(3).await;
    let [first, second, third] = &servers.clients()[..] else { panic!("three were started") };
    publish(first, "waits", waits()).await;
    let run = start(second, "waits", json!({"items": [1]})).await;
    let mut stream = first.runs().events(&run, None).await.unwrap();
    let one = stream.next().await.unwrap().expect("it has begun");
    drop(stream);
    let mut rest = third.runs().events(&run, one.id.as_deref()).await.unwrap();
    let signal: Signal = serde_json::from_value(json!({"key": "go", "value": true})).unwrap();
    second.runs().signal(&run, &signal).await.unwrap();
    let mut ids = vec![one.id.unwrap()];
    loop {
        let event = tokio::time::timeout(SOON, rest.next()).await.expect("it is told").unwrap().unwrap();
        if event.event == "end" {
            break;
        }
        ids.push(event.id.expect("events of a run are numbered"));
    }
    let unlike: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(unlike.len(), ids.len(), "something was told twice: {ids:?}");
    // Every server reports the sum of both parts.
    let mut whole = second.runs().events(&run, None).await.unwrap();
    let mut all = Vec::new();
    while let Some(event) = whole.next().await.unwrap().filter(|event| event.event != "end") {
        all.push(event.id.unwrap());
    }
    assert_eq!(ids, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_setting_at_one_server_holds_at_all() {
    let servers = Servers::start(3).await;
    let clients = servers.clients();
    let [first, second, third] = &clients[..] else { panic!("three were started") };
    expect(first, "POST", "/api/v1/queues/q/pause", None, 200).await;
    expect(second, "POST", "/api/v1/tasks", Some(task("q", 1)), 201).await;
    seen("the pause", async || (get(third, "/api/v1/queues/q").await["paused"] == true).then_some(())).await;
    assert_eq!(take(third, claim("q", "w", 1, 0)).await, []);
    let waiting = tokio::spawn({
        let third = third.clone();
        async move { take(&third, claim("q", "w", 1, 20_000)).await }
    });
    expect(second, "POST", "/api/v1/queues/q/resume", None, 200).await;
    let taken = tokio::time::timeout(SOON, waiting).await.expect("it is resumed").unwrap();
    assert_eq!(taken.len(), 1);
    // A worker that claimed a job from one server finishes it at another.
    finish(first, &taken).await;

    let limits = json!({"limits": {"concurrency": 2}});
    expect(first, "PATCH", "/api/v1/queues/few", Some(limits), 200).await;
    for n in 0..9 {
        expect(&clients[n % 3], "POST", "/api/v1/tasks", Some(task("few", n)), 201).await;
    }
    seen("the limit", async || {
        let all = [get(second, "/api/v1/queues/few").await, get(third, "/api/v1/queues/few").await];
        all.iter().all(|queue| queue["limits"]["concurrency"] == 2).then_some(())
    })
    .await;
    let (a, b, c) = tokio::join!(
        take(first, claim("few", "a", 9, 0)),
        take(second, claim("few", "b", 9, 0)),
        take(third, claim("few", "c", 9, 0))
    );
    assert_eq!(a.len() + b.len() + c.len(), 2, "two at once, whoever hands them out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_fires_each_slot_once_on_three_servers() {
    let servers = Servers::start(3).await;
    let clients = servers.clients();
    let tick = json!({"name": "tick", "cron_expr": "* * * * * *", "overlap": "allow", "catchup": "all",
        "task": {"name": "tick", "queue_name": "ticks"}});
    let schedule = expect(&clients[0], "POST", "/api/v1/schedules", Some(tick), 201).await;
    let id = schedule["id"].as_str().unwrap();
    seen("four slots", async || (clients[1].schedules().show(id).await.unwrap().fired >= 4).then_some(()))
        .await;
    clients[2].schedules().toggle(id, Some(false)).await.unwrap();
    let fired = clients[0].schedules().show(id).await.unwrap().fired;
    let query = JobsQuery { queue: Some("ticks".to_owned()), limit: Some(500), ..JobsQuery::default() };
    let jobs = clients[1].jobs().list(&query).await.unwrap().items;
    assert_eq!(jobs.len() as u64, fired);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_cancelled_at_a_server_that_makes_none_of_its_calls() {
    let servers = Servers::start(2).await;
    let clients = servers.clients();
    let (begun, stop) = (Arc::new(tokio::sync::Notify::new()), CancellationToken::new());
    let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
    let told = begun.clone();
    let worker = Worker::new(clients[0].clone(), "slow").service("double", move |_: ServiceCall| {
        told.notify_one();
        async { std::future::pending::<Value>().await }
    });
    let working = tokio::spawn(worker.listen(listener, url).run(stop.clone()));
    publish(&clients[0], "push", calls("http")).await;
    seen("the worker", async || (!clients[0].workers().all().await.unwrap().is_empty()).then_some(())).await;
    let run = start(&clients[0], "push", json!({"x": 1})).await;
    begun.notified().await;
    let asked = Instant::now();
    expect(&clients[1], "POST", &format!("/api/v1/runs/{run}/cancel"), Some(json!({})), 200).await;
    ends(&clients[1], &run, "canceled").await;
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    stop.cancel();
    working.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_queue_is_emptied_by_three_servers_and_nothing_is_done_twice() {
    const JOBS: usize = 3_000;
    let servers = Servers::start(3).await;
    let clients = servers.clients();
    let all: Vec<Value> = (0..JOBS).map(|n| task("long", n)).collect();
    expect(&clients[0], "POST", "/api/v1/tasks/batch", Some(json!(all)), 201).await;
    let done = Arc::new(Mutex::new(Vec::new()));
    let mut working = JoinSet::new();
    for (nth, client) in clients.iter().enumerate() {
        let (client, done) = (client.clone(), done.clone());
        working.spawn(async move {
            loop {
                let taken = take(&client, claim("long", &format!("w{nth}"), 50, 0)).await;
                if taken.is_empty() && done.lock().unwrap().len() >= JOBS {
                    return;
                }
                if !taken.is_empty() {
                    finish(&client, &taken).await;
                    done.lock().unwrap().extend(taken.into_iter().map(|(id, _)| id));
                }
            }
        });
    }
    tokio::time::timeout(PATIENCE * 2, working.join_all()).await.expect("the queue becomes empty");
    let done = done.lock().unwrap().clone();
    let unlike: BTreeSet<&String> = done.iter().collect();
    assert_eq!((done.len(), unlike.len()), (JOBS, JOBS));
    // The number depends on the pace of each server; but a server that lost a job does not claim it again.
    let lost = n_lost(&clients).await;
    assert!(lost <= JOBS * (clients.len() - 1), "{lost} of {JOBS} were handed out in vain");
}

/// Starts runs at one server after the other until told to stop, each until it is acknowledged.
async fn start_runs(clients: Vec<Client>, caller: usize, stop: CancellationToken) -> Vec<String> {
    let (mut at, mut runs) = (caller, Vec::new());
    for n in 0_i64.. {
        let mut run = with_params(&json!({"x": n}));
        run.request_id = Some(format!("{caller}-{n}"));
        let flow = ["push", "pull"][n as usize % 2];
        loop {
            at += 1;
            if let Ok(started) = clients[at % clients.len()].runs().start(flow, &run).await {
                runs.push(started.id);
                break;
            }
        }
        if stop.is_cancelled() {
            return runs;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    runs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_loses_nothing_and_repeats_nothing() {
    let mut servers = Servers::start(3).await;
    let clients = servers.clients();
    publish(&clients[0], "push", calls("http")).await;
    publish(&clients[1], "pull", calls("queue")).await;
    let (asked, stop_workers) = (CallCounts::default(), CancellationToken::new());
    let mut working = JoinSet::new();
    for (nth, client) in clients.iter().enumerate() {
        let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
        let asked = asked.clone();
        let worker = Worker::new(client.clone(), format!("doubler-{nth}"))
            .beat_every(Duration::from_millis(200))
            .service("double", move |call: ServiceCall| {
                *asked.lock().unwrap().entry(call.key).or_default() += 1;
                async move { json!(call.input.as_i64().unwrap() * 2) }
            });
        working.spawn(worker.listen(listener, url).run(stop_workers.clone()));
    }
    seen("the workers", async || (clients[0].workers().all().await.unwrap().len() == 3).then_some(())).await;
    let stop = CancellationToken::new();
    let mut callers = JoinSet::new();
    for caller in 0..2 {
        callers.spawn(start_runs(clients.clone(), caller, stop.clone()));
    }
    for server in &mut servers.all {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let ended = tokio::task::block_in_place(|| server.terminate());
        assert!(ended.success(), "{}", server.log());
        server.spawn();
        server.ready().await;
    }
    stop.cancel();
    let runs: Vec<String> = callers.join_all().await.into_iter().flatten().collect();
    assert!(runs.len() > 20, "only {} runs were started", runs.len());
    for (n, run) in runs.iter().enumerate() {
        ends(&clients[n % 3], run, "completed").await;
    }
    let asked = asked.lock().unwrap().clone();
    assert_eq!(asked.len(), runs.len() * 3);
    let again: Vec<&String> = asked.iter().filter(|(_, n)| **n > 1).map(|(key, _)| key).collect();
    assert!(again.is_empty(), "{} of {} calls were made again: {again:?}", again.len(), asked.len());
    assert_eq!(clients[0].examine(false).await.unwrap().findings.len(), 0);
    stop_workers.cancel();
    while let Some(ended) = working.join_next().await {
        ended.unwrap().unwrap();
    }
}
