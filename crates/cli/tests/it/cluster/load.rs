//! A load for servers under faults: runs that call push and pull workers and wait, jobs without a run, money for all of
//! it, and a schedule that fires every second. At the end everything that was acknowledged has happened, and nothing has
//! happened twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_sdk::Client;
use windlass_sdk::contract::{JobRetry, JobStatus, JobsQuery, NewJob, PageQuery, Signal};
use windlass_sdk::worker::ServiceCall;

use super::{Cluster, says_ready};
use crate::http::{expect, seen};
use crate::kill::{Acknowledged, CallCounts, all_ended, calls, waits, worker};
use crate::server::{PATIENCE, publish, with_params};

const DEPOSIT: i64 = 1_000_000;
/// The price of a call and of a job.
const PRICE: i64 = 7;
/// Callers that start runs all the time.
const CALLERS: usize = 3;
/// An answer that has not come by then will not come soon: another server is asked.
const ANSWER: Duration = Duration::from_secs(3);
/// After the last fault every server takes new work and does it within this.
const SOON: Duration = Duration::from_secs(60);

pub(super) struct Load {
    clients: Vec<Client>,
    asked: CallCounts,
    runs: Arc<Mutex<Vec<Acknowledged>>>,
    /// Acknowledged jobs, with their expected results.
    jobs: Arc<Mutex<BTreeMap<String, i64>>>,
    schedule: String,
    begun: Instant,
    callers: JoinSet<()>,
    workers: JoinSet<std::io::Result<()>>,
    stop: CancellationToken,
    stop_workers: CancellationToken,
}

impl Load {
    pub(super) async fn begin(cluster: &Cluster) -> Load {
        let clients = cluster.clients();
        let at = |nth: usize| &clients[nth % clients.len()];
        open_account(at(1)).await;
        publish(at(0), "push", calls("http")).await;
        publish(at(1), "pull", calls("queue")).await;
        publish(at(2), "waits", waits()).await;
        let tick = json!({"name": "tick", "cron_expr": "* * * * * *", "overlap": "allow", "catchup": "all",
            "task": {"name": "tick", "queue_name": "ticks"}});
        let schedule = expect(at(0), "POST", "/api/v1/schedules", Some(tick), 201).await;
        let mut load = Load {
            asked: CallCounts::default(),
            runs: Arc::default(),
            jobs: Arc::default(),
            schedule: schedule["id"].as_str().unwrap().to_owned(),
            begun: Instant::now(),
            callers: JoinSet::new(),
            workers: JoinSet::new(),
            stop: CancellationToken::new(),
            stop_workers: CancellationToken::new(),
            clients,
        };
        for (nth, client) in load.clients.iter().enumerate() {
            let (listener, url) = windlass_sdk::worker::bind("http://127.0.0.1:0").await.unwrap();
            let worker = worker(client.clone(), &format!("doubler-{nth}"), &load.asked)
                .queue("work", async |call: ServiceCall| json!(call.input.as_i64().unwrap() * 2))
                .listen(listener, url);
            load.workers.spawn(worker.run(load.stop_workers.clone()));
        }
        for caller in 0..CALLERS {
            let (clients, stop) = (load.clients.clone(), load.stop.clone());
            load.callers.spawn(start_runs(clients, caller, load.runs.clone(), stop));
        }
        load.callers.spawn(create_jobs(load.clients.clone(), load.jobs.clone(), load.stop.clone()));
        load
    }

    /// Returns when so many more runs and jobs have been acknowledged.
    pub(super) async fn goes_on(&self, n: usize) {
        let count = || (self.runs.lock().unwrap().len(), self.jobs.lock().unwrap().len());
        let before = count();
        seen("that work is taken", async || {
            let now = count();
            (now.0 >= before.0 + n && now.1 >= before.1 + n).then_some(())
        })
        .await;
        self.says(&format!("{n} more were taken"));
    }

    /// A message in the log of a failing test.
    pub(super) fn says(&self, what: &str) {
        eprintln!("{:>6.1} s: {what}", self.begun.elapsed().as_secs_f32());
    }

    /// Every server takes work and does it, soon after the last fault; then everything that was acknowledged ends, and
    /// is counted.
    pub(super) async fn settles(mut self, cluster: &Cluster) {
        for (nth, client) in self.clients.iter().enumerate() {
            let took = says_ready(client, true).await;
            assert!(took < SOON, "server {nth} was ready after {took:?}");
            takes_work(client, nth).await;
        }
        self.says("all take work");
        self.stop.cancel();
        while let Some(ended) = self.callers.join_next().await {
            ended.unwrap();
        }
        let mut runs = self.runs.lock().unwrap().clone();
        let jobs = self.jobs.lock().unwrap().clone();
        assert!(runs.len() > 20 && jobs.len() > 10, "{} runs, {} jobs", runs.len(), jobs.len());
        self.says("nobody starts anything any more");
        send_signals(&self.clients, &runs).await;
        all_ended(&self.clients, &runs, &self.asked).await;
        self.says("all runs are as they should be");
        all_done(&self.clients, &jobs).await;
        runs.extend((0..self.clients.len()).map(|_| Acknowledged { id: String::new(), flow: "pull", x: 0 }));
        adds_up(cluster, &self.clients[0], &runs, jobs.len()).await;
        each_slot_once(&self.clients[0], &self.schedule).await;
        for client in &self.clients {
            assert_eq!(client.examine(false).await.unwrap().findings.len(), 0);
        }
        for server in &cluster.servers {
            assert!(!server.log().contains("panicked"), "{}", server.log());
        }
        self.stop_workers.cancel();
        while let Some(ended) = self.workers.join_next().await {
            ended.unwrap().unwrap();
        }
        let n_calls: usize = self.asked.lock().unwrap().values().sum();
        eprintln!("{} runs, {n_calls} calls, {} jobs in {:?}", runs.len(), jobs.len(), self.begun.elapsed());
    }
}

/// Everything is paid for by one account, and every call and job costs the same.
async fn open_account(client: &Client) {
    let account = json!({"id": "payer"});
    client.accounts().open(&serde_json::from_value(account).unwrap()).await.unwrap();
    let deposit = json!({"amount": DEPOSIT, "key": "first"});
    client.accounts().deposit("payer", &serde_json::from_value(deposit).unwrap()).await.unwrap();
    let price = json!({"unit_price": PRICE, "min_unit": 1});
    for service in ["double", "job"] {
        client.prices().set(service, &serde_json::from_value(price.clone()).unwrap()).await.unwrap();
    }
}

/// Sends a request to one server after the other until one answers. The outcome of an unanswered request is unknown, so
/// the same request goes to the next server.
async fn insist<T, E, F>(clients: &[Client], first: usize, ask: impl Fn(Client) -> F) -> T
where
    F: Future<Output = Result<T, E>>,
{
    let begun = Instant::now();
    // Round and round, beginning with that one.
    for client in clients.iter().cycle().skip(first % clients.len()) {
        if let Ok(Ok(answer)) = tokio::time::timeout(ANSWER, ask(client.clone())).await {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "nobody answers");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    unreachable!("there is a server")
}

/// Starts runs at one server after the other until told to stop, each until it is acknowledged.
async fn start_runs(
    clients: Vec<Client>,
    caller: usize,
    acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
    stop: CancellationToken,
) {
    for n in 0_i64.. {
        if stop.is_cancelled() {
            return;
        }
        let flow = ["push", "pull", "waits"][(n as usize + caller) % 3];
        let mut run = with_params(&json!({"x": n, "items": [n, n + 1]}));
        run.request_id = Some(format!("{caller}-{n}"));
        run.account = Some("payer".to_owned());
        let ask = |client: Client| {
            let run = run.clone();
            async move { client.runs().start(flow, &run).await }
        };
        let id = insist(&clients, caller + n as usize, ask).await.id;
        acknowledged.lock().unwrap().push(Acknowledged { id, flow, x: n });
        tokio::time::sleep(Duration::from_millis(80)).await;
    }
}

/// Creates jobs in the same way.
async fn create_jobs(
    clients: Vec<Client>,
    acknowledged: Arc<Mutex<BTreeMap<String, i64>>>,
    stop: CancellationToken,
) {
    for n in 0_i64.. {
        if stop.is_cancelled() {
            return;
        }
        let job = NewJob {
            dedup_key: format!("job-{n}"),
            // The same request is made again until it is answered, by which time the job may have ended.
            unique_for_ms: Some(3_600_000),
            retry: Some(JobRetry { max: Some(99), ..JobRetry::default() }),
            account: Some("payer".to_owned()),
            ..NewJob::new("job", "work", json!(n))
        };
        let ask = |client: Client| {
            let job = job.clone();
            async move { client.jobs().create(&job).await }
        };
        let id = insist(&clients, n as usize, ask).await.id;
        acknowledged.lock().unwrap().insert(id, n * 2);
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
}

/// A server takes a run and its workers do it, soon.
async fn takes_work(client: &Client, nth: usize) {
    let begun = Instant::now();
    let mut run = with_params(&json!({"x": 1}));
    run.request_id = Some(format!("last-{nth}"));
    run.account = Some("payer".to_owned());
    let ask = |client: Client| {
        let run = run.clone();
        async move { client.runs().start("pull", &run).await }
    };
    let id = insist(std::slice::from_ref(client), 0, ask).await.id;
    let ended = client.runs().wait(&id, Some(SOON)).await.unwrap();
    assert!(ended.is_some(), "server {nth}: {id} did not end: {:?}", client.runs().why(&id).await);
    assert!(begun.elapsed() < SOON, "server {nth} took {:?}", begun.elapsed());
}

/// Sends every run that waits for it its signal, at whichever server takes it.
async fn send_signals(clients: &[Client], runs: &[Acknowledged]) {
    let signal: Signal = serde_json::from_value(json!({"key": "go", "value": true})).unwrap();
    for (n, run) in runs.iter().filter(|run| run.flow == "waits").enumerate() {
        let signal = &signal;
        let ask = |client: Client| async move {
            match client.runs().signal(&run.id, signal).await {
                // An ended run received it before, although the response was lost.
                Err(error) if error.status != Some(409) => Err(error),
                Ok(_) | Err(_) => Ok(()),
            }
        };
        insist(clients, n, ask).await;
    }
}

/// Every job that was acknowledged has succeeded once, and there is no other.
async fn all_done(clients: &[Client], jobs: &BTreeMap<String, i64>) {
    let client = &clients[0];
    seen("the end of all jobs", async || {
        let queue = client.queues().show("work").await.unwrap();
        assert_eq!(queue.dead_letters, 0, "{queue:?}");
        (queue.open == 0).then_some(())
    })
    .await;
    assert_eq!(job_ids(client, "work").await, jobs.keys().cloned().collect());
    for (n, (id, sum)) in jobs.iter().enumerate() {
        let page = PageQuery { limit: Some(1_000), ..PageQuery::default() };
        let attempts = clients[n % clients.len()].jobs().attempts(id, &page).await.unwrap().items;
        let done: Vec<_> = attempts.iter().filter(|attempt| attempt.status == JobStatus::Completed).collect();
        assert_eq!(done.len(), 1, "{id}: {attempts:?}");
        assert_eq!(done[0].result, Some(json!(sum)), "{id}");
    }
}

/// The ids of all jobs of a queue.
async fn job_ids(client: &Client, queue: &str) -> BTreeSet<String> {
    let mut query = JobsQuery { queue: Some(queue.to_owned()), limit: Some(500), ..JobsQuery::default() };
    let mut ids = BTreeSet::new();
    loop {
        let page = client.jobs().list(&query).await.unwrap();
        for job in page.items {
            assert!(ids.insert(job.id.clone()), "{} is listed twice", job.id);
        }
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return ids,
        }
    }
}

/// Each call of each run was paid for once, and each job; the ledger in the database says so too.
async fn adds_up(cluster: &Cluster, client: &Client, runs: &[Acknowledged], n_jobs: usize) {
    let n_calls: i64 = runs.iter().map(|run| if run.flow == "waits" { 0 } else { 3 }).sum();
    let account = client.accounts().show("payer").await.unwrap();
    let spent = (n_calls + n_jobs as i64) * PRICE;
    assert_eq!((account.balance, account.held), (DEPOSIT - spent, 0));
    let sums =
        "SELECT SUM(amount), SUM(held), COUNT(*) - COUNT(DISTINCT key), MIN(balance_after) >= 0 FROM ledger";
    let told = cluster.database.ask(&cluster.name, sums);
    assert_eq!(told.trim(), format!("{}|0|0|t", DEPOSIT - spent));
}

/// The schedule has fired each of its slots once, and missed none.
async fn each_slot_once(client: &Client, id: &str) {
    // Nothing fires between the two questions.
    client.schedules().toggle(id, Some(false)).await.unwrap();
    let schedule = client.schedules().show(id).await.unwrap();
    let ids = job_ids(client, "ticks").await;
    assert_eq!((ids.len() as u64, schedule.passed), (schedule.fired, 0), "{schedule:?}");
    assert!(schedule.fired > 3, "{schedule:?}");
}
