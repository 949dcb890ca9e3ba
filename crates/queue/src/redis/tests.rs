//! The connection against a real server.

mod encryption;
mod window;

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Notify;
use uuid::Uuid;
use windlass_conformance::redis_server::RedisTestServer;
use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobInput, JobOutcome, JobSpec, attempt_id};
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::time::Timestamp;

use super::*;

fn job_id(n: u128) -> JobId {
    // The last 32 bits of the id of an attempt are its number.
    JobId::new(Uuid::from_u128(n << 32))
}

fn job(queue: &str, priority: i32, n: u128) -> Job {
    let spec = JobSpec { priority, ..JobSpec::new("service", queue) };
    Job::create(job_id(n), spec, Timestamp(0)).unwrap().0
}

fn message(queue: &str, priority: i32, n: u128) -> JobMessage {
    JobMessage::of(&job(queue, priority, n))
}

fn ready(queue: &str, priority: i32, n: u128) -> RedisUpdate {
    RedisUpdate::of(&job(queue, priority, n), false, Timestamp(0))
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

async fn connect(server: &RedisTestServer) -> RedisConnection {
    Redis::at(&server.address()).unwrap().connect(|_| ()).await.unwrap()
}

fn number(job: JobId) -> u128 {
    job.uuid().as_u128() >> 32
}

/// The numbers of popped jobs.
async fn pop(connection: &RedisConnection, queues: &[&str], max: usize) -> Vec<u128> {
    let popped = connection.pop(&names(queues), max).await.unwrap();
    popped.jobs.iter().map(|popped| number(popped.job)).collect()
}

/// The numbers of the jobs in a list.
fn listed(server: &RedisTestServer, key: &str) -> Vec<u128> {
    let id = |text: &String| {
        let message: Value = serde_json::from_str(text).unwrap();
        number(JobId::new(message["task_id"].as_str().unwrap().parse().unwrap()))
    };
    server.lines(&["LRANGE", key, "0", "-1"]).iter().map(id).collect()
}

#[tokio::test]
async fn a_list_has_all_priorities_in_the_order_of_dispatch() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let all = [("a", 0, 1), ("a", 5, 2), ("a", 0, 3), ("b", 5, 4), ("b", -1, 5), ("a", -10, 6), ("b", 0, 7)];
    for (queue, priority, n) in all {
        connection.apply(&[ready(queue, priority, n)]).await.unwrap();
    }
    assert_eq!(listed(&server, "queue:a:ready"), [2, 1, 3, 6]);
    assert_eq!(listed(&server, "queue:b:ready"), [4, 7, 5]);
    assert_eq!(pop(&connection, &["b", "a"], 2).await, [4, 2]);
    assert_eq!(pop(&connection, &["a", "b"], 2).await, [1, 3]);
    assert_eq!(pop(&connection, &["a", "b"], 9).await, [7, 5, 6]);
    assert_eq!(pop(&connection, &["a", "b"], 9).await, [] as [u128; 0]);
    assert_eq!(server.lines(&["KEYS", "queue:*"]), [] as [&str; 0]);
    // A job that goes back after a failed claim is the first again.
    connection.apply(&[ready("a", 0, 8), RedisUpdate::Back(message("a", 0, 9))]).await.unwrap();
    assert_eq!(pop(&connection, &["a"], 9).await, [9, 8]);
}

#[tokio::test]
async fn jobs_of_many_priorities_stand_in_order_however_they_come() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    // A sequence without a visible order.
    let jobs: Vec<(i32, u128)> = (0..300u128).map(|n| ((n * 7919 % 23) as i32 - 11, n)).collect();
    for batch in jobs.chunks(7) {
        let updates: Vec<RedisUpdate> = batch.iter().map(|(priority, n)| ready("q", *priority, *n)).collect();
        connection.apply(&updates).await.unwrap();
    }
    let mut expected = jobs;
    expected.sort_by_key(|(priority, n)| (std::cmp::Reverse(*priority), *n));
    let expected: Vec<u128> = expected.into_iter().map(|(_, n)| n).collect();
    assert_eq!(listed(&server, "queue:q:ready"), expected);
}

#[tokio::test]
async fn two_concurrent_pops_never_get_the_same_job() {
    let server = RedisTestServer::start(&[]);
    let (one, other) = (connect(&server).await, connect(&server).await);
    let updates: Vec<RedisUpdate> = (0..900).map(|n| ready("q", (n % 3) as i32, n)).collect();
    one.apply(&updates).await.unwrap();
    let take = |connection: RedisConnection| {
        tokio::spawn(async move {
            let mut all = Vec::new();
            loop {
                let some = pop(&connection, &["q"], 7).await;
                if some.is_empty() {
                    return all;
                }
                all.extend(some);
            }
        })
    };
    let tasks: Vec<_> = [&one, &other, &one, &other].into_iter().cloned().map(take).collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    all.sort_unstable();
    assert_eq!(all, (0..900).collect::<Vec<_>>());
}

#[tokio::test]
async fn foreign_contents_are_passed_over() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    for words in [
        &["RPUSH", "queue:q:ready", "nonsense", "", "\u{1}", "{\"task_run_id\":1}", "[\"priority\":7]"][..],
        &["ZADD", "queue:q:delayed", "1", "nonsense"],
        &["SET", "queue:q:more", "much"],
        &["SET", "queue:text:ready", "text"],
        &["SADD", "queue:text:delayed", "member"],
        &["SADD", "queue:text:more", "member"],
        &["SET", "queue:text:dlq", "text"],
        &["SADD", "windlass:epoch", "x"],
    ] {
        assert!(server.cli(words).is_some());
    }
    let dead = RedisUpdate::Dead { message: message("text", 0, 5), ended: None };
    let needs = connection.apply(&[ready("q", 0, 1), ready("text", 0, 2), dead]).await.unwrap();
    assert_eq!(needs.short, names(&["q", "text"]).into_iter().collect());
    assert_eq!(listed(&server, "queue:text:dlq"), [5]);
    let popped = connection.pop(&names(&["q", "text"]), 100).await.unwrap();
    let mut jobs: Vec<u128> = popped.jobs.iter().map(|popped| number(popped.job)).collect();
    jobs.sort_unstable();
    assert_eq!((jobs, popped.n_invalid), (vec![1, 2], 5));
    let counts = connection.count_ready(&names(&["q", "text"])).await.unwrap();
    assert_eq!(counts.ready, [Some(0), Some(0)]);
    assert_eq!(connection.filled_at().await.unwrap(), None);
}

#[tokio::test]
async fn a_connection_reports_new_jobs_and_its_end() {
    let mut server = RedisTestServer::start(&[]);
    let heard: Arc<(Mutex<Vec<RedisEvent>>, Notify)> = Arc::default();
    let events = heard.clone();
    let tell = move |what| {
        events.0.lock().unwrap().push(what);
        events.1.notify_one();
    };
    let listening = Redis::at(&server.address()).unwrap().connect(tell).await.unwrap();
    let connection = connect(&server).await;
    connection.apply(&[ready("a", 0, 1), ready("a", 3, 2)]).await.unwrap();
    let until = async |expected: RedisEvent| {
        while !heard.0.lock().unwrap().contains(&expected) {
            heard.1.notified().await;
        }
    };
    until(RedisEvent::Ready { queue: "a".to_owned(), n: 2 }).await;
    server.kill();
    until(RedisEvent::Gone).await;
    assert!(listening.check_rights().await.is_err() && connection.count_ready(&[]).await.is_err());
}

#[tokio::test]
async fn redis_counts_as_lost_until_it_is_filled() {
    let server = RedisTestServer::start(&[]);
    let (connection, other) = (connect(&server).await, connect(&server).await);
    assert!(connection.pop(&names(&["q"]), 1).await.unwrap().is_lost);
    assert!(connection.begin_fill("one").await.unwrap() && !other.begin_fill("other").await.unwrap());
    connection.end_fill(Some(Timestamp(7))).await.unwrap();
    assert!(!connection.pop(&names(&["q"]), 1).await.unwrap().is_lost);
    assert_eq!(other.filled_at().await.unwrap(), Some(Timestamp(7)));
    assert!(other.begin_fill("other").await.unwrap());
    other.end_fill(None).await.unwrap();
    server.cli(&["FLUSHALL"]).unwrap();
    assert_eq!(other.filled_at().await.unwrap(), None);
    assert!(connection.count_ready(&[]).await.unwrap().is_lost);
}

/// The keys of a job from its creation to its end.
#[tokio::test]
async fn the_keys_of_a_job_follow_its_state() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let at = Timestamp;
    let spec = JobSpec { max_retries: 2, priority: 4, run_at: Some(at(10)), ..JobSpec::new("s", "q") };
    let (mut job, _) = Job::create(job_id(1), spec, at(0)).unwrap();
    let go = async |job: &mut Job, input: Option<JobInput>, now: i64| {
        for event in input.map(|input| job.decide(input, at(now)).unwrap()).into_iter().flatten() {
            job.apply(&event, at(now));
        }
        connection.apply(&[RedisUpdate::of(job, false, at(now))]).await.unwrap();
        let keys: std::collections::BTreeSet<String> = server.lines(&["KEYS", "*"]).into_iter().collect();
        keys.into_iter().collect::<Vec<_>>()
    };
    let claim = |worker: &str| Some(JobInput::Claim { worker: worker.to_owned(), lease_ms: 60_000 });
    let failed = |fence: u64| {
        let fault = Fault::new(FaultKind::Error, "no");
        Some(JobInput::Finish {
            fence: Fence(fence),
            outcome: JobOutcome::Failed { fault, retry_after_ms: None },
        })
    };
    let lease = |number: u32| format!("lease:{}", attempt_id(job_id(1), number));
    assert_eq!(go(&mut job, None, 0).await, ["queue:q:delayed"]);
    assert_eq!(go(&mut job, Some(JobInput::Due), 10).await, ["queue:q:ready"]);
    assert_eq!(go(&mut job, claim("w1"), 20).await, [lease(1)]);
    assert_eq!(server.cli(&["GET", &lease(1)]).unwrap(), "w1");
    assert_eq!(go(&mut job, failed(1), 30).await, ["queue:q:delayed"]);
    assert_eq!(go(&mut job, Some(JobInput::RetryNow), 40).await, ["queue:q:ready"]);
    assert_eq!(go(&mut job, claim("w2"), 50).await, [lease(2)]);
    let left: i64 = server.cli(&["PTTL", &lease(2)]).unwrap().parse().unwrap();
    assert!((50_000..=60_000).contains(&left), "{left}");
    assert_eq!(go(&mut job, failed(2), 60).await, ["queue:q:dlq"]);
    let dead: Value = serde_json::from_str(&server.lines(&["LRANGE", "queue:q:dlq", "0", "-1"])[0]).unwrap();
    assert_eq!((&dead["attempt"], &dead["error"]["message"]), (&json!(2), &json!("no")));
    let replay = JobInput::Replay { replay_id: "r".to_owned(), priority: Some(0), patch: None, due: None };
    assert_eq!(go(&mut job, Some(replay), 70).await, ["queue:q:ready"]);
    assert_eq!(go(&mut job, Some(JobInput::Cancel), 80).await, [] as [&str; 0]);
    connection.apply(&[RedisUpdate::Heartbeat { worker: "w1".to_owned(), at: at(5) }]).await.unwrap();
    let left: i64 = server.cli(&["PTTL", "worker:w1:heartbeat"]).unwrap().parse().unwrap();
    assert!((20_000..=30_000).contains(&left), "{left}");
}

#[tokio::test]
async fn delayed_jobs_are_scored_in_seconds_and_the_nearest_are_shown() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let delayed = |n: u128, due: i64| RedisUpdate::Delayed {
        message: message("q", 0, n),
        due: Timestamp(due),
        ended: None,
        revived: None,
    };
    connection.apply(&[delayed(2, 1_763_287_512_250), delayed(1, 1_763_287_512_000)]).await.unwrap();
    let shown = server.lines(&["ZRANGE", "queue:q:delayed", "0", "-1", "WITHSCORES"]);
    assert_eq!([&*shown[1], &*shown[3]], ["1763287512", "1763287512.25"]);
    let many: Vec<RedisUpdate> = (10..1_510).map(|n| delayed(n, i64::try_from(n).unwrap() * 1_000)).collect();
    connection.apply(&many).await.unwrap();
    assert_eq!(connection.count_shown(&names(&["q", "none"])).await.unwrap(), [[SHOWN_MAX, 0], [0, 0]]);
    let last = server.lines(&["ZRANGE", "queue:q:delayed", "-1", "-1", "WITHSCORES"]);
    assert_eq!(last[1], "1009");
    connection.show_delayed("q", &[(Timestamp(5_000), message("q", 0, 1))]).await.unwrap();
    connection.show_dead("q", &[message("q", 0, 3), message("q", 0, 4)]).await.unwrap();
    assert_eq!(connection.count_shown(&names(&["q"])).await.unwrap(), [[1, 2]]);
    assert_eq!(listed(&server, "queue:q:dlq"), [3, 4]);
}

#[tokio::test]
async fn dead_letters_that_are_none_any_more_leave_the_list() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let dead = |n| RedisUpdate::Dead { message: message("q", 0, n), ended: None };
    connection.apply(&(1..=1_003).map(dead).collect::<Vec<_>>()).await.unwrap();
    assert_eq!(listed(&server, "queue:q:dlq"), (4..=1_003).collect::<Vec<_>>());
    let discarded = RedisUpdate::Discarded { queue: "q".to_owned(), job: job_id(5) };
    let replayed = RedisUpdate::Ready {
        message: message("q", 9, 7),
        is_run: false,
        was_delayed: true,
        ended: None,
        revived: Some(job_id(7)),
    };
    connection.apply(&[discarded, replayed]).await.unwrap();
    assert_eq!(listed(&server, "queue:q:dlq")[..3], [4, 6, 8]);
    assert_eq!(listed(&server, "queue:q:ready"), [7]);
}

#[tokio::test]
async fn two_deployments_share_one_redis_by_prefix_or_by_database_and_projects_by_their_names() {
    let server = RedisTestServer::start(&[]);
    let at = |redis: Redis| async move { redis.connect(|_| ()).await.unwrap() };
    let address = |more: &str| Redis::at(&format!("{}{more}", server.address())).unwrap();
    let plain = connect(&server).await;
    let (prefixed, other) = (at(address("?prefix=two:")).await, at(address("?db=3")).await);
    let acme = at(address("").for_project(&"acme".parse().unwrap())).await;
    prefixed.apply(&[ready("q", 0, 1)]).await.unwrap();
    other.apply(&[ready("q", 0, 2)]).await.unwrap();
    acme.apply(&[ready("q", 0, 3)]).await.unwrap();
    assert_eq!(listed(&server, "two:queue:q:ready"), [1]);
    assert_eq!(listed(&server, "project:acme:queue:q:ready"), [3]);
    assert_eq!(pop(&plain, &["q"], 9).await, [] as [u128; 0]);
    assert_eq!((pop(&prefixed, &["q"], 9).await, pop(&other, &["q"], 9).await), (vec![1], vec![2]));
    assert_eq!(pop(&acme, &["q"], 9).await, [3]);
}

#[tokio::test]
async fn an_error_names_the_problem_and_the_remedy() {
    async fn trouble(address: &str) -> String {
        Redis::at(address).unwrap().connect(|_| ()).await.err().unwrap().to_string()
    }
    let secret = RedisTestServer::start(&["--requirepass", "right"]);
    let events = trouble(&secret.address()).await;
    assert!(events.contains("password") && events.contains("redis://user:password@"), "{events}");
    let events = trouble(&format!("{}?pass=wrong", secret.address())).await;
    assert!(events.contains("password") && !events.contains("wrong:"), "{events}");
    assert!(Redis::at(&format!("{}?pass=right", secret.address())).unwrap().connect(|_| ()).await.is_ok());
    let mut gone = RedisTestServer::start(&[]);
    gone.kill();
    let events = trouble(&gone.address()).await;
    assert!(events.contains("cannot reach") && events.contains("--queue"), "{events}");
    let replica = RedisTestServer::start(&["--replicaof", "127.0.0.1 1"]);
    let events = trouble(&replica.address()).await;
    assert!(events.contains("name the primary"), "{events}");
    // Another kind of server answers in its own protocol, or never.
    let web = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("redis://{}", web.local_addr().unwrap());
    let answers = tokio::spawn(async move {
        let (mut stream, _) = web.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        (web, stream)
    });
    let events = trouble(&address).await;
    assert!(events.contains("as Redis does") || events.contains("correct the address"), "{events}");
    answers.abort();
}
