//! Servers that hand out jobs through one Redis: it may be killed, emptied, filled with nonsense or stopped, and
//! everything goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::timeout;
use windlass_conformance::redis_server::RedisTestServer;
use windlass_engine::id::JobId;
use windlass_engine::job::JobSpec;
use windlass_engine::project::Project;
use windlass_queue::redis::Redis;
use windlass_runtime::jobs::ClaimRequest;
use windlass_runtime::{Runtime, Settings};
use windlass_store::job::JobQuery;
use windlass_store::queue::QueueLimits;
use windlass_store::{Durability, Postgres};

use crate::cluster::{Cluster, PATIENCE, SOON, claim, done, spec};

/// Within this, jobs that Redis lost are handed out again.
pub(crate) const BACK: Duration = Duration::from_secs(10);

fn at(server: &RedisTestServer) -> Redis {
    Redis::at(&server.address()).unwrap()
}

pub(crate) async fn until(what: &str, within: Duration, seen: impl Fn() -> bool) {
    let begun = Instant::now();
    while !seen() {
        assert!(begun.elapsed() < within, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn all_up(servers: &[Runtime]) {
    until("every server uses Redis", BACK, || {
        servers.iter().all(|server| server.jobs().redis_stats().is_some_and(|stats| stats.is_up))
    })
    .await;
}

/// Two servers on one store in memory and one Redis.
pub(crate) async fn two() -> (RedisTestServer, Cluster) {
    let redis = RedisTestServer::start(&[]);
    let cluster = Cluster::with(2, Some(at(&redis))).await;
    all_up(&cluster.servers).await;
    (redis, cluster)
}

/// Two servers on one PostgreSQL and one Redis.
pub(crate) async fn on_postgres(address: &str, redis: &RedisTestServer) -> Vec<Runtime> {
    let mut servers = Vec::new();
    for nth in 0..2 {
        let store = Postgres::open(address, Durability::Fast).await.unwrap();
        let (name, redis) = (format!("server {nth}"), Some(at(redis)));
        let settings = Settings { name, redis, ..Settings::default() };
        servers.push(Runtime::start_up(Arc::new(store), settings).await.unwrap());
    }
    all_up(&servers).await;
    servers
}

fn waiting(server: &Runtime, queue: &str) -> tokio::task::JoinHandle<Vec<JobId>> {
    let (server, claim) = (server.clone(), claim(queue, 1, PATIENCE));
    tokio::spawn(async move { server.jobs().claim(claim).await.unwrap().iter().map(|one| one.job).collect() })
}

#[tokio::test]
async fn a_claim_that_waits_at_another_server_is_woken_through_redis() {
    let (redis, cluster) = two().await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    for _ in 0..3 {
        let claimed = waiting(second, "q");
        tokio::time::sleep(Duration::from_millis(50)).await;
        let made = first.jobs().create_job(spec("q")).await.unwrap().job;
        assert_eq!(timeout(SOON, claimed).await.expect("it waits for what is there").unwrap(), [made]);
    }
    assert_eq!(redis.cli(&["LLEN", "queue:q:ready"]).unwrap(), "0");
}

#[tokio::test]
async fn jobs_come_in_order_of_priority_from_whichever_server_made_them() {
    let (redis, cluster) = two().await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    let mut made = Vec::new();
    for (n, priority) in [0, 3, -2, 3, 0, 10].into_iter().enumerate() {
        let server = [first, second][n % 2];
        made.push(server.jobs().create_job(JobSpec { priority, ..spec("q") }).await.unwrap().job);
        let n = n + 1;
        // Each is there before the next one is made.
        until("it is in Redis", PATIENCE, || {
            redis.cli(&["LLEN", "queue:q:ready"]).unwrap().parse::<usize>().unwrap() == n
        })
        .await;
    }
    let mut order = Vec::new();
    for n in 0..6 {
        let claimed = [second, first][n % 2].jobs().claim(claim("q", 1, PATIENCE)).await.unwrap();
        order.extend(claimed.into_iter().map(|one| made.iter().position(|job| *job == one.job).unwrap()));
    }
    assert_eq!(order, [5, 1, 3, 0, 4, 2]);
}

#[tokio::test]
async fn queues_with_limits_paused_queues_and_services_are_handed_out_as_ever() {
    let (redis, cluster) = two().await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    let limits = QueueLimits { concurrency: Some(1), ..QueueLimits::default() };
    first.jobs().limit_queue("tight", limits).await.unwrap();
    first.jobs().create_jobs(vec![spec("tight"), spec("tight")]).await.unwrap();
    let held = first.jobs().claim(claim("tight", 5, PATIENCE)).await.unwrap();
    assert_eq!(held.len(), 1);
    assert!(first.jobs().claim(claim("tight", 5, Duration::from_millis(300))).await.unwrap().is_empty());
    assert!(first.jobs().finish(vec![done(&held[0], json!(1))]).await.pop().unwrap().is_ok());
    assert_eq!(first.jobs().claim(claim("tight", 5, PATIENCE)).await.unwrap().len(), 1);

    first.jobs().pause_queue("halted", true).await.unwrap();
    first.jobs().create_jobs(vec![spec("halted")]).await.unwrap();
    assert!(first.jobs().claim(claim("halted", 5, Duration::from_millis(300))).await.unwrap().is_empty());
    let claimed = waiting(first, "halted");
    tokio::time::sleep(Duration::from_millis(50)).await;
    first.jobs().pause_queue("halted", false).await.unwrap();
    assert_eq!(timeout(PATIENCE, claimed).await.unwrap().unwrap().len(), 1);

    let by_service = |queues: &[&str]| ClaimRequest {
        queues: queues.iter().map(|queue| (*queue).to_owned()).collect(),
        services: vec!["work".to_owned()],
        ..claim("", 1, PATIENCE)
    };
    second.jobs().create_jobs(vec![spec("mixed"), spec("mixed"), spec("other")]).await.unwrap();
    assert_eq!(first.jobs().claim(by_service(&[])).await.unwrap().len(), 1);
    assert_eq!(second.jobs().claim(by_service(&["mixed"])).await.unwrap().len(), 1);
    assert_eq!(first.jobs().claim(by_service(&["mixed"])).await.unwrap().len(), 1);
    assert!(
        first
            .jobs()
            .claim(ClaimRequest { wait: Duration::from_millis(200), ..by_service(&[]) })
            .await
            .unwrap()
            .is_empty()
    );
    // A job that was claimed without Redis is removed from it.
    until("nothing is left of them", PATIENCE, || redis.lines(&["KEYS", "queue:*:ready*"]).is_empty()).await;
}

#[tokio::test]
async fn a_service_with_little_to_do_does_not_wait_behind_a_long_queue_in_redis() {
    let (_redis, cluster) = two().await;
    let [first, _] = &cluster.servers[..] else { unreachable!() };
    first.jobs().create_jobs((0..200).map(|_| spec("long")).collect()).await.unwrap();
    let rare = JobSpec::new("rare", "elsewhere");
    let made = first.jobs().create_job(rare).await.unwrap().job;
    let mut n_claims = 0;
    loop {
        let both = ClaimRequest { services: vec!["rare".to_owned()], ..claim("long", 1, PATIENCE) };
        let claimed = first.jobs().claim(both).await.unwrap();
        if claimed.iter().any(|one| one.job == made) {
            break;
        }
        n_claims += claimed.len();
        assert!(n_claims < 10, "{n_claims} jobs of the queue came first");
    }
}

#[tokio::test]
async fn jobs_that_redis_lost_silently_are_found_while_a_claim_waits() {
    let (redis, cluster) = two().await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    let made = first.jobs().create_job(spec("q")).await.unwrap().job;
    until("it is in Redis", PATIENCE, || redis.cli(&["DEL", "queue:q:ready"]).unwrap() == "1").await;
    let claimed =
        timeout(BACK, second.jobs().claim(claim("q", 1, PATIENCE))).await.expect("it is looked for").unwrap();
    assert_eq!(claimed[0].job, made);
    // The same when all of it is gone.
    let made = first.jobs().create_job(spec("q")).await.unwrap().job;
    until("it is in Redis", PATIENCE, || redis.cli(&["LLEN", "queue:q:ready"]).unwrap() == "1").await;
    redis.cli(&["FLUSHALL"]).unwrap();
    let claimed =
        timeout(BACK, second.jobs().claim(claim("q", 1, PATIENCE))).await.expect("it is looked for").unwrap();
    assert_eq!(claimed[0].job, made);
}

#[tokio::test]
async fn a_long_backlog_comes_back_in_its_order_a_part_at_a_time() {
    let (redis, cluster) = two().await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    let mut made = Vec::new();
    for _ in 0..2 {
        let specs = (0..6_000).map(|_| spec("q")).collect();
        made.extend(first.jobs().create_jobs(specs).await.unwrap().iter().map(|created| created.job));
    }
    // A change that is sent after the loss would come before the others.
    until("Redis was told of all", PATIENCE, || {
        redis.cli(&["HGET", "queue:q:more", "skipped"]).unwrap() == "11000"
    })
    .await;
    assert_eq!(redis.cli(&["LLEN", "queue:q:ready"]).unwrap(), "1000");
    redis.cli(&["FLUSHALL"]).unwrap();
    let mut order = Vec::new();
    while order.len() < made.len() {
        let claimed = second.jobs().claim(claim("q", 1_000, PATIENCE)).await.unwrap();
        assert!(!claimed.is_empty(), "{} are missing", made.len() - order.len());
        order.extend(claimed.into_iter().map(|one| one.job));
    }
    assert!(order == made, "they come in the order in which they were made");
}

#[tokio::test]
async fn more_urgent_jobs_come_before_a_backlog_that_redis_does_not_hold() {
    let (redis, cluster) = two().await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    let backlog = first.jobs().create_jobs((0..3_000).map(|_| spec("q")).collect()).await.unwrap();
    until("Redis was told of all", PATIENCE, || {
        redis.cli(&["HGET", "queue:q:more", "skipped"]).unwrap() == "2000"
    })
    .await;
    let urgent = second.jobs().create_job(JobSpec { priority: 1, ..spec("q") }).await.unwrap().job;
    let lowest = second.jobs().create_job(JobSpec { priority: -1, ..spec("q") }).await.unwrap().job;
    until("one more was left to the store", PATIENCE, || {
        redis.cli(&["HGET", "queue:q:more", "skipped"]).unwrap() == "2002"
    })
    .await;
    let mut order = Vec::new();
    while order.len() < 3_002 {
        let claimed = first.jobs().claim(claim("q", 300, PATIENCE)).await.unwrap();
        order.extend(claimed.into_iter().map(|one| one.job));
        // Every worker takes a while, and the window is filled meanwhile.
        tokio::task::yield_now().await;
    }
    let backlog: Vec<JobId> = backlog.iter().map(|created| created.job).collect();
    assert_eq!((order[0], order[3_001]), (urgent, lowest));
    assert!(order[1..3_001] == backlog, "they come in the order in which they were made");
}

#[tokio::test]
async fn a_forged_message_changes_nothing() {
    let (redis, cluster) = two().await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    first.jobs().pause_queue("halted", true).await.unwrap();
    let payload = json!({"amount": 1});
    let real = JobSpec { payload: payload.clone().into(), ..spec("q") };
    let real = first.jobs().create_job(real).await.unwrap().job;
    let halted = first.jobs().create_job(spec("halted")).await.unwrap().job;
    let other = first.jobs().create_job(spec("other")).await.unwrap().job;
    let later = JobSpec { run_at: Some(first.clock().now().after(3_600_000)), ..spec("q") };
    let later = first.jobs().create_job(later).await.unwrap().job;
    let ended = first.jobs().create_job(spec("ended")).await.unwrap().job;
    let held = first.jobs().claim(claim("ended", 1, PATIENCE)).await.unwrap();
    assert!(first.jobs().finish(vec![done(&held[0], json!(1))]).await.pop().unwrap().is_ok());
    until("all are in Redis", PATIENCE, || {
        let n = |words: &[&str]| redis.cli(words).unwrap();
        n(&["LLEN", "queue:q:ready"]) == "1"
            && n(&["ZCARD", "queue:q:delayed"]) == "1"
            && n(&["LLEN", "queue:other:ready"]) == "1"
    })
    .await;
    let before = cluster.store.jobs_now(&Project::DEFAULT, JobQuery::default()).unwrap().items;
    let unknown = JobId::new(uuid::Uuid::from_u128(77));
    for job in [real, halted, other, later, ended, unknown] {
        let forged = json!({
            "task_run_id": job.uuid(), "task_id": job.uuid(), "attempt": 9, "priority": 99, "queue_name": "q",
            "max_retries": 99, "payload": {"amount": 1_000_000},
        });
        redis.cli(&["LPUSH", "queue:q:ready", &forged.to_string()]).unwrap();
        redis.cli(&["RPUSH", "queue:q:dlq", &forged.to_string()]).unwrap();
        redis.cli(&["ZADD", "queue:q:delayed", "1", &forged.to_string()]).unwrap();
        redis.cli(&["SET", &format!("lease:{}", job.uuid()), "thief"]).unwrap();
    }
    let claimed = second.jobs().claim(claim("q", 9, PATIENCE)).await.unwrap();
    let got: Vec<_> =
        claimed.iter().map(|one| (one.job, one.attempt, one.priority, one.input.value())).collect();
    assert_eq!(got, [(real, 1, 0, payload)]);
    assert!(second.jobs().claim(claim("q", 9, Duration::from_millis(300))).await.unwrap().is_empty());
    let after = cluster.store.jobs_now(&Project::DEFAULT, JobQuery::default()).unwrap().items;
    for (before, after) in before.iter().zip(&after).filter(|(before, _)| before.id() != real) {
        assert_eq!(before, after);
    }
    assert_eq!(after.len(), 5);
}

#[tokio::test]
async fn a_redis_that_does_not_answer_delays_no_claim_for_long() {
    let (redis, cluster) = two().await;
    let first = &cluster.servers[0];
    redis.freeze(true);
    let begun = Instant::now();
    let made = first.jobs().create_job(spec("q")).await.unwrap().job;
    assert!(begun.elapsed() < SOON, "nobody who creates a job waits for Redis");
    let claimed =
        timeout(Duration::from_secs(5), first.jobs().claim(claim("q", 1, PATIENCE))).await.unwrap().unwrap();
    assert_eq!(claimed[0].job, made);
    // From then on it is known to be away.
    first.jobs().create_job(spec("q")).await.unwrap();
    assert_eq!(timeout(SOON, first.jobs().claim(claim("q", 1, PATIENCE))).await.unwrap().unwrap().len(), 1);
    assert!(first.troubles().is_empty());
    redis.freeze(false);
    all_up(&cluster.servers).await;
    assert_eq!(first.jobs().redis_stats().unwrap().n_outages, 1);
}

#[tokio::test]
async fn a_popped_job_that_could_not_be_claimed_goes_back() {
    let (_redis, cluster) = two().await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    let made = second.jobs().create_job(spec("q")).await.unwrap().job;
    cluster.cut(0).await;
    assert!(first.jobs().claim(claim("q", 5, PATIENCE)).await.is_err(), "it cannot be written");
    let claimed = timeout(SOON, second.jobs().claim(claim("q", 5, PATIENCE)))
        .await
        .expect("it is there again")
        .unwrap();
    assert_eq!(claimed[0].job, made);
}

#[tokio::test]
async fn changes_that_a_dead_server_did_not_send_are_read_from_the_store() {
    let (_redis, cluster) = two().await;
    let second = &cluster.servers[1];
    second.jobs().create_job(spec("q")).await.unwrap();
    let before = second.jobs().redis_stats().unwrap().n_fills;
    cluster.cut(0).await;
    until("the queue is filled", PATIENCE, || second.jobs().redis_stats().unwrap().n_fills > before).await;
}
