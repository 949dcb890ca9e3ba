//! Work goes on through every fault of Redis, for as long as one likes: `TROUBLES=600` kills it two hundred times.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_conformance::postgres_server::test_database;
use windlass_conformance::redis_server::RedisTestServer;
use windlass_engine::id::JobId;
use windlass_engine::job::JobSpec;
use windlass_engine::project::Project;
use windlass_runtime::Runtime;
use windlass_runtime::jobs::{ClaimRequest, ClaimVerdict};
use windlass_store::Store;
use windlass_store::job::{JobQuery, JobStatus};
use windlass_store::page::Part;

use crate::cluster::{claim, done, spec};
use crate::redis::{BACK, all_up, on_postgres, until};

/// The faults of Redis in the test unless `TROUBLES` says otherwise.
const TROUBLES: usize = 15;
/// The least number of jobs, and the most that are open before more are made: the jobs that Redis lost last have to be
/// done in time.
const JOBS: usize = 2_000;
const OPEN_MAX: usize = 1_000;
/// Before every so many troubles there is a backlog of so many jobs, which has to be done in time.
const LOOK_EVERY: usize = 10;
const BACKLOG: usize = 500;

/// Workers of both servers, all of which record their claims and the results.
struct Crowd {
    granted: Arc<Mutex<BTreeMap<JobId, usize>>>,
    ended: Arc<Mutex<BTreeMap<JobId, usize>>>,
    stop: CancellationToken,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Crowd {
    fn start(servers: &[Runtime], each: usize) -> Self {
        let mut crowd = Crowd {
            granted: Arc::default(),
            ended: Arc::default(),
            stop: CancellationToken::new(),
            tasks: Vec::new(),
        };
        for (nth, server) in servers.iter().enumerate() {
            for n in 0..each {
                let worker = format!("w{nth}-{n}");
                crowd.tasks.push(tokio::spawn(work(
                    server.clone(),
                    ClaimRequest { worker, ..claim("q", 1 + n * 3, Duration::from_millis(500)) },
                    (crowd.granted.clone(), crowd.ended.clone()),
                    crowd.stop.clone(),
                )));
            }
        }
        crowd
    }

    fn n_ended(&self) -> usize {
        self.ended.lock().unwrap().len()
    }
}

/// How often, by job.
type Counts = Arc<Mutex<BTreeMap<JobId, usize>>>;

async fn work(
    server: Runtime,
    claim: ClaimRequest,
    (granted, ended): (Counts, Counts),
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        let claimed = server.jobs().claim(claim.clone()).await.unwrap();
        for one in &claimed {
            *granted.lock().unwrap().entry(one.job).or_default() += 1;
        }
        let ends = claimed.iter().map(|one| done(one, json!(1))).collect();
        for (one, verdict) in claimed.iter().zip(server.jobs().finish(ends).await) {
            if verdict.unwrap() == ClaimVerdict::Ok {
                *ended.lock().unwrap().entry(one.job).or_default() += 1;
            }
        }
    }
}

/// The faults of Redis: it is killed and comes back empty, it is flushed, or it is filled with garbage.
async fn trouble(redis: &mut RedisTestServer, nth: usize) {
    match nth % 3 {
        0 => {
            tokio::task::block_in_place(|| redis.kill());
            tokio::time::sleep(Duration::from_millis(200)).await;
            tokio::task::block_in_place(|| redis.launch());
        }
        1 => {
            redis.cli(&["FLUSHALL"]);
        }
        _ => {
            let unknown = r#"{"task_run_id":"x","task_id":"00000000-0000-7000-8000-000000000000","attempt":1,"priority":5}"#;
            redis.cli(&["LPUSH", "queue:q:ready", "nonsense", "", unknown]);
            redis.cli(&["HSET", "queue:q:more", "below", "nonsense", "skipped", "nonsense"]);
            redis.cli(&["SET", "queue:q:asked", "nonsense"]);
            redis.cli(&["ZADD", "queue:q:delayed", "1", "nonsense:99"]);
            if nth.is_multiple_of(2) {
                redis.cli(&["DEL", "queue:q:ready"]);
                redis.cli(&["SET", "queue:q:ready", "nonsense"]);
            }
        }
    }
}

/// Makes jobs at both servers until it is told to stop; how many there are.
async fn make(servers: Vec<Runtime>, crowd: Counts, n_made: Arc<AtomicUsize>, stop: CancellationToken) {
    for server in servers.iter().cycle() {
        let n = n_made.load(Ordering::Relaxed);
        if n >= JOBS && stop.is_cancelled() {
            return;
        }
        if n < crowd.lock().unwrap().len() + OPEN_MAX {
            let specs = (0..25).map(|at| JobSpec { priority: at % 3, ..spec("q") }).collect();
            server.jobs().create_jobs(specs).await.unwrap();
            n_made.fetch_add(25, Ordering::Relaxed);
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_and_nothing_done_twice_through_faults_of_redis() {
    let n_troubles = std::env::var("TROUBLES").ok().and_then(|n| n.parse().ok()).unwrap_or(TROUBLES);
    let database = test_database().await;
    let mut redis = tokio::task::block_in_place(|| RedisTestServer::start(&[]));
    let servers = on_postgres(&database.address, &redis).await;
    let crowd = Crowd::start(&servers, 3);
    let (n_made, enough) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
    let making = tokio::spawn(make(servers.clone(), crowd.ended.clone(), n_made.clone(), enough.clone()));
    let (begun, mut longest) = (Instant::now(), Duration::ZERO);
    let is_done = |n: usize| {
        let crowd = &crowd;
        async move {
            let since = Instant::now();
            until("what was there is done", BACK, || crowd.n_ended() >= n).await;
            since.elapsed()
        }
    };
    for nth in 0..n_troubles {
        if nth % LOOK_EVERY == 0 {
            servers[0].jobs().create_jobs((0..BACKLOG).map(|_| spec("q")).collect()).await.unwrap();
            n_made.fetch_add(BACKLOG, Ordering::Relaxed);
        }
        trouble(&mut redis, nth).await;
        if nth % LOOK_EVERY == 0 {
            longest = longest.max(is_done(n_made.load(Ordering::Relaxed)).await);
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    enough.cancel();
    making.await.unwrap();
    let n = n_made.load(Ordering::Relaxed);
    longest = longest.max(is_done(n).await);
    all_up(&servers).await;
    crowd.stop.cancel();
    for task in crowd.tasks {
        task.await.unwrap();
    }
    assert!(crowd.granted.lock().unwrap().values().all(|n| *n == 1), "somebody was given what another had");
    assert!(crowd.ended.lock().unwrap().values().all(|n| *n == 1));
    let store: &dyn Store = &database.store;
    let part = Part { count: true, limit: 1, ..Part::default() };
    let query = JobQuery { statuses: vec![JobStatus::Completed], part, ..JobQuery::default() };
    assert_eq!(store.jobs(&Project::DEFAULT, query).await.unwrap().total, Some(n as u64));
    println!(
        "{n_troubles} troubles in {:?}: {n} jobs, all done once, and after a trouble within {longest:?}",
        begun.elapsed()
    );
    for server in &servers {
        server.shut_down(Duration::from_secs(1)).await;
    }
}
