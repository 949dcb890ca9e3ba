//! Servers and workers are killed while plain jobs are created and done: none that was acknowledged is lost, and none
//! succeeds twice.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_sdk::Client;
use windlass_sdk::contract::{JobRetry, NewJob};

use crate::http::{get, post, seen};
use crate::shell::{KilledOnDrop, TestShell};

const KILLS: u64 = 20;
const JOBS_MIN: usize = 200;
/// Callers that create jobs all the time, one by one and ten by ten.
const CALLERS: i64 = 4;
/// Jobs in one batch.
const BATCH: i64 = 10;

/// Ids of jobs that were acknowledged, with the sums that must come of them.
type Acknowledged = Arc<Mutex<BTreeMap<String, i64>>>;

fn job(caller: i64, n: i64) -> NewJob {
    NewJob {
        priority: (n % 3) as i32 * 2,
        dedup_key: format!("{caller}-{n}"),
        // The same request is made again until it is answered, by which time the job may have ended.
        unique_for_ms: Some(3_600_000),
        retry: Some(JobRetry { max: Some(99), ..JobRetry::default() }),
        ..NewJob::new("sum", "work", json!([caller, n]))
    }
}

async fn create_jobs(client: Client, caller: i64, acknowledged: Acknowledged, stop: CancellationToken) {
    let mut n = 0;
    while !stop.is_cancelled() {
        let n_together = if n % 3 == 0 { BATCH } else { 1 };
        let jobs: Vec<NewJob> = (n..n + n_together).map(|n| job(caller, n)).collect();
        let ids: Vec<String> = loop {
            let answer = match jobs.as_slice() {
                [one] => client.jobs().create(one).await.map(|created| vec![created]),
                many => client.jobs().create_batch(many).await,
            };
            match answer {
                Ok(created) => break created.into_iter().map(|job| job.id).collect(),
                Err(_unknown) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        let sums = (n..).map(|n| caller + n);
        acknowledged.lock().unwrap().extend(ids.into_iter().zip(sums));
        n += n_together;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn worker(shell: &TestShell) -> KilledOnDrop {
    let words =
        ["worker", "--pull-only", "--services", "sum", "--queues", "work", "--lease", "1s", "--slots", "8"];
    KilledOnDrop(shell.command(&words).stderr(Stdio::null()).spawn().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_survive_the_deaths_of_servers_and_workers() {
    let mut shell = TestShell::open().await;
    let client = shell.server.client();
    let mut workers = [worker(&shell), worker(&shell)];
    let (acknowledged, stop) = (Acknowledged::default(), CancellationToken::new());
    let mut busy = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        busy.spawn(create_jobs(client.clone(), caller, acknowledged.clone(), stop.clone()));
    }
    let mut nth = 0;
    // On a slow machine more often, until there is something to lose.
    while nth < KILLS || acknowledged.lock().unwrap().len() < JOBS_MIN && nth < KILLS * 10 {
        tokio::time::sleep(Duration::from_millis(60 + nth * 37 % 240)).await;
        if nth % 2 == 0 {
            shell.server.kill();
            shell.server.spawn();
            shell.server.ready().await;
        } else {
            // Dropped means killed.
            workers[(nth as usize / 2) % 2] = worker(&shell);
        }
        nth += 1;
    }
    stop.cancel();
    while let Some(ended) = busy.join_next().await {
        ended.unwrap();
    }
    let acknowledged = acknowledged.lock().unwrap().clone();
    assert!(acknowledged.len() >= JOBS_MIN, "only {} jobs were acknowledged", acknowledged.len());
    settled(&client, acknowledged.len()).await;
    for (id, sum) in &acknowledged {
        let runs = get(&client, &format!("/api/v1/tasks/{id}/runs?limit=1000")).await;
        let done: Vec<&Value> =
            runs["runs"].as_array().unwrap().iter().filter(|run| run["status"] == "succeeded").collect();
        assert_eq!(done.len(), 1, "{id}: {runs}");
        assert_eq!(done[0]["result"], json!(sum), "{id}");
    }
    println!("{} jobs, {nth} kills", acknowledged.len());
}

/// Waits until all jobs are done. One that lost its worker three times is a dead letter, not lost: it is replayed.
async fn settled(client: &Client, n: usize) {
    seen("the end of all jobs", async || {
        let queue = get(client, "/api/v1/queues/work").await;
        if queue["dead_letters"] != 0 {
            post(client, "/api/v1/queues/work/dlq/replay", json!({"count": 1000})).await;
        }
        (queue["open"] == 0 && queue["dead_letters"] == 0).then_some(())
    })
    .await;
    let mut path = "/api/v1/tasks?status=completed&limit=1000".to_owned();
    let mut n_completed = 0;
    loop {
        let page = get(client, &path).await;
        n_completed += page["tasks"].as_array().unwrap().len();
        match page["next"].as_str() {
            Some(next) => path = format!("/api/v1/tasks?status=completed&limit=1000&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(n_completed, n, "as many as were acknowledged, and no others");
}
