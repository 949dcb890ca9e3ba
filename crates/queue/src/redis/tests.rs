//! The scripts against a real server.

mod cost;
mod share;

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use uuid::Uuid;
use windlass_conformance::redis_server::RedisTestServer;
use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobInput, JobOutcome, JobSpec};
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::time::Timestamp;

use super::*;

fn job_id(n: u128) -> JobId {
    JobId::new(Uuid::from_u128(n))
}

fn entry(queue: &str, priority: i32, n: u128) -> ReadyEntry {
    ReadyEntry { queue: queue.to_owned(), priority, job: job_id(n), is_run: false }
}

fn ready(queue: &str, priority: i32, n: u128) -> RedisUpdate {
    RedisUpdate::Ready { at: entry(queue, priority, n), ended: None, has_waited: false, was_dead: false }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

async fn connect(server: &RedisTestServer) -> RedisConnection {
    Redis::at(&server.address()).unwrap().connect(|_| ()).await.unwrap()
}

/// The numbers of popped jobs.
async fn pop(connection: &RedisConnection, queues: &[&str], max: usize) -> Vec<u128> {
    let popped = connection.pop(&names(queues), max, Timestamp(1_000)).await.unwrap();
    popped.entries.iter().map(|entry| entry.job.uuid().as_u128()).collect()
}

fn shown(n: u128) -> String {
    Uuid::from_u128(n).hyphenated().to_string()
}

#[tokio::test]
async fn higher_priorities_come_first_and_then_earlier_jobs() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let all = [("a", 0, 1), ("a", 5, 2), ("a", 0, 3), ("b", 5, 4), ("b", -1, 5), ("a", -10, 6), ("b", 0, 7)];
    let updates: Vec<RedisUpdate> =
        all.iter().map(|(queue, priority, n)| ready(queue, *priority, *n)).collect();
    connection.apply(&updates).await.unwrap();
    assert_eq!(server.lines(&["LRANGE", "queue:a:ready", "0", "-1"]), [shown(1), shown(3)]);
    assert_eq!(server.lines(&["LRANGE", "queue:a:ready:5", "0", "-1"]), [shown(2)]);
    assert_eq!(pop(&connection, &["b", "a"], 2).await, [4, 2]);
    assert_eq!(pop(&connection, &["a", "b"], 2).await, [1, 3]);
    assert_eq!(pop(&connection, &["a", "b"], 9).await, [7, 5, 6]);
    assert_eq!(pop(&connection, &["a", "b"], 9).await, [] as [u128; 0]);
    assert_eq!(server.lines(&["KEYS", "queue:*"]), [] as [&str; 0]);
    // A job that goes back after a failed claim is the first again.
    connection.apply(&[ready("a", 0, 8), RedisUpdate::Back(entry("a", 0, 9))]).await.unwrap();
    assert_eq!(pop(&connection, &["a"], 9).await, [9, 8]);
}

#[tokio::test]
async fn a_pop_moves_due_jobs() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let later = |queue: &str, priority, n, due| {
        let (at, due) = (entry(queue, priority, n), Timestamp(due));
        RedisUpdate::Delayed { at, ended: None, due, was_dead: false }
    };
    connection
        .apply(&[later("q", 0, 1, 900), later("q", 7, 2, 1_000), later("q", 9, 3, 1_001)])
        .await
        .unwrap();
    let delayed = server.lines(&["ZRANGE", "queue:q:delayed", "0", "-1", "WITHSCORES"]);
    assert_eq!(delayed[..2], [shown(1), "900".to_owned()]);
    assert_eq!(pop(&connection, &["q"], 1).await, [2]);
    assert_eq!(server.lines(&["LRANGE", "queue:q:ready", "0", "-1"]), [shown(1)]);
    // The update after a delay finds that a pop has moved the job already, or moves it.
    let waited = |priority, n| {
        let at = entry("q", priority, n);
        RedisUpdate::Ready { at, ended: None, has_waited: true, was_dead: false }
    };
    connection.apply(&[waited(0, 1), waited(9, 3)]).await.unwrap();
    assert_eq!(pop(&connection, &["q"], 9).await, [3, 1]);
    assert_eq!(server.lines(&["KEYS", "queue:*"]), [] as [&str; 0]);
}

#[tokio::test]
async fn two_concurrent_pops_never_get_the_same_job() {
    let server = RedisTestServer::start(&[]);
    let (one, other) = (connect(&server).await, connect(&server).await);
    let updates: Vec<RedisUpdate> = (0..2_000).map(|n| ready("q", (n % 3) as i32, n)).collect();
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
    assert_eq!(all, (0..2_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn invalid_contents_are_passed_over() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    for words in [
        &["RPUSH", "queue:q:ready", "nonsense", "", "\u{1}", "{\"task_run_id\":1}"][..],
        &["ZADD", "queue:q:priorities", "0", "0", "3", "x", "4", "999999999999999999999"],
        &["RPUSH", "queue:q:ready:999999999999999999999", "nonsense"],
        &["ZADD", "queue:q:delayed", "1", "nonsense", "2", "a:b:c:7", "3", ":"],
        &["SET", "queue:q:more", "much"],
        &["SET", "queue:text:ready", "text"],
        &["SET", "queue:text:priorities", "text"],
        &["SADD", "queue:text:delayed", "member"],
        &["SADD", "queue:text:more", "member"],
        &["SET", "queue:text:dlq", "text"],
        &["SADD", "windlass:epoch", "x"],
    ] {
        assert!(server.cli(words).is_some());
    }
    let dead = RedisUpdate::Dead { at: entry("text", 0, 5), ended: None };
    connection.apply(&[ready("q", 0, 1), ready("text", 0, 2), dead]).await.unwrap();
    let popped = connection.pop(&names(&["q", "text"]), 100, Timestamp(1_000)).await.unwrap();
    let mut entries = popped.entries;
    entries.sort_by_key(|entry| entry.job);
    assert_eq!(entries, [entry("q", 0, 1), entry("text", 0, 2)]);
    assert_eq!(popped.n_invalid, 8);
    assert_eq!(server.lines(&["LRANGE", "queue:text:dlq", "0", "-1"]), [shown(5)]);
    assert_eq!(
        connection.count_ready(&names(&["q", "text"]), Timestamp(1_000)).await.unwrap().ready,
        [Some(0), Some(0)]
    );
}

#[tokio::test]
async fn jobs_that_do_not_fit_are_read_from_the_store_before_later_ones() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let place = |priority, n| entry("q", priority, n);
    connection.apply(&[ready("q", 0, 99), ready("q", 8, 98)]).await.unwrap();
    // The store has more jobs of priority 2.
    connection.fill("q", &[place(5, 1), place(2, 2)], true, None).await.unwrap();
    connection.fill("q", &[place(2, 3)], false, Some(2)).await.unwrap();
    connection.apply(&[ready("q", 2, 10), ready("q", 1, 11), ready("q", 3, 12)]).await.unwrap();
    let popped = connection.pop(&names(&["q"]), 3, Timestamp(0)).await.unwrap();
    let ids: Vec<u128> = popped.entries.iter().map(|entry| entry.job.uuid().as_u128()).collect();
    assert_eq!((ids, popped.incomplete), (vec![1, 12, 2], vec![]));
    let popped = connection.pop(&names(&["q"]), 3, Timestamp(0)).await.unwrap();
    assert_eq!((popped.entries, popped.incomplete), (vec![entry("q", 2, 3)], names(&["q"])));
    assert_eq!(connection.count_ready(&names(&["q"]), Timestamp(0)).await.unwrap().ready, [None]);
    connection.fill("q", &[place(2, 10), place(1, 11)], true, None).await.unwrap();
    assert_eq!(pop(&connection, &["q"], 9).await, [10, 11]);
}

#[tokio::test]
async fn empty_lists_hide_no_jobs() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    // As many lists as one pop examines.
    let gone: Vec<ReadyEntry> = (1..=128).map(|n| entry("q", n, n.unsigned_abs().into())).collect();
    connection.fill("q", &gone, false, None).await.unwrap();
    let ended: Vec<RedisUpdate> = gone.into_iter().map(|at| RedisUpdate::Ended { at, ended: None }).collect();
    connection.apply(&[ended, vec![ready("q", 0, 500)]].concat()).await.unwrap();
    assert_eq!([pop(&connection, &["q"], 1).await, pop(&connection, &["q"], 1).await], [vec![], vec![500]]);
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
    connection.apply(&[ready("a:b", 0, 1), ready("a:b", 3, 2)]).await.unwrap();
    let until = async |expected: RedisEvent| {
        while !heard.0.lock().unwrap().contains(&expected) {
            heard.1.notified().await;
        }
    };
    until(RedisEvent::Ready { queue: "a:b".to_owned(), n: 2 }).await;
    server.kill();
    until(RedisEvent::Gone).await;
    assert!(listening.apply(&[]).await.is_err() && connection.count_ready(&[], Timestamp(0)).await.is_err());
}

#[tokio::test]
async fn redis_counts_as_lost_until_it_is_filled() {
    let server = RedisTestServer::start(&[]);
    let (connection, other) = (connect(&server).await, connect(&server).await);
    assert!(connection.pop(&names(&["q"]), 1, Timestamp(0)).await.unwrap().is_lost);
    assert!(connection.begin_fill("one").await.unwrap() && !other.begin_fill("other").await.unwrap());
    connection.end_fill(Some(Timestamp(7))).await.unwrap();
    assert!(!connection.pop(&names(&["q"]), 1, Timestamp(0)).await.unwrap().is_lost);
    assert_eq!(other.filled_at().await.unwrap(), Some(Timestamp(7)));
    assert!(other.begin_fill("other").await.unwrap());
    other.end_fill(None).await.unwrap();
    server.cli(&["FLUSHALL"]).unwrap();
    assert_eq!(other.filled_at().await.unwrap(), None);
    assert!(connection.count_ready(&[], Timestamp(0)).await.unwrap().is_lost);
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
        connection.apply(&[RedisUpdate::of(job, at(now))]).await.unwrap();
        let keys: std::collections::BTreeSet<String> = server.lines(&["KEYS", "*"]).into_iter().collect();
        keys.into_iter().filter(|key| !key.ends_with(":priorities")).collect::<Vec<_>>()
    };
    let claim = |worker: &str| Some(JobInput::Claim { worker: worker.to_owned(), lease_ms: 60_000 });
    let failed = |fence: u64| {
        let fault = Fault::new(FaultKind::Error, "no");
        Some(JobInput::Finish {
            fence: Fence(fence),
            outcome: JobOutcome::Failed { fault, retry_after_ms: None },
        })
    };
    let lease = |number: u32| format!("lease:{}", windlass_engine::job::attempt_id(job_id(1), number));
    assert_eq!(go(&mut job, None, 0).await, ["queue:q:delayed"]);
    assert_eq!(go(&mut job, Some(JobInput::Due), 10).await, ["queue:q:ready:4"]);
    assert_eq!(go(&mut job, claim("w1"), 20).await, [lease(1)]);
    assert_eq!(server.cli(&["GET", &lease(1)]).unwrap(), "w1");
    assert_eq!(go(&mut job, failed(1), 30).await, ["queue:q:delayed"]);
    assert_eq!(go(&mut job, Some(JobInput::RetryNow), 40).await, ["queue:q:ready:4"]);
    assert_eq!(go(&mut job, claim("w2"), 50).await, [lease(2)]);
    assert_eq!(go(&mut job, failed(2), 60).await, ["queue:q:dlq"]);
    assert_eq!(server.lines(&["LRANGE", "queue:q:dlq", "0", "-1"]), [shown(1)]);
    let replay = JobInput::Replay { replay_id: "r".to_owned(), priority: Some(0), patch: None, due: None };
    assert_eq!(go(&mut job, Some(replay), 70).await, ["queue:q:ready"]);
    assert_eq!(go(&mut job, Some(JobInput::Cancel), 80).await, [] as [&str; 0]);
    connection
        .apply(&[RedisUpdate::Heartbeat { worker: "w1".to_owned(), at: at(5), ms: 15_000 }])
        .await
        .unwrap();
    let left: i64 = server.cli(&["PTTL", "worker:w1:heartbeat"]).unwrap().parse().unwrap();
    assert!((1..=15_000).contains(&left), "{left}");
}

#[tokio::test]
async fn two_deployments_share_one_redis_by_prefix_or_by_database() {
    let server = RedisTestServer::start(&[]);
    let at = |address: String| async move { Redis::at(&address).unwrap().connect(|_| ()).await.unwrap() };
    let plain = connect(&server).await;
    let prefixed = at(format!("{}?prefix=two:", server.address())).await;
    let other = at(format!("{}?db=3", server.address())).await;
    prefixed.apply(&[ready("q", 0, 1)]).await.unwrap();
    other.apply(&[ready("q", 0, 2)]).await.unwrap();
    assert_eq!(server.lines(&["LRANGE", "two:queue:q:ready", "0", "-1"]), [shown(1)]);
    assert_eq!(pop(&plain, &["q"], 9).await, [] as [u128; 0]);
    assert_eq!((pop(&prefixed, &["q"], 9).await, pop(&other, &["q"], 9).await), (vec![1], vec![2]));
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
