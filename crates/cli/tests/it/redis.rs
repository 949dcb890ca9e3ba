//! Servers on one PostgreSQL that dispatch jobs through one Redis: the keys that `redis-cli` shows, and the work while
//! Redis is unreachable.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_conformance::postgres_server::PostgresServer;
use windlass_conformance::redis_server::RedisTestServer as Redis;
use windlass_sdk::Client;

use crate::http::{expect, get, post, seen};
use crate::server::{Server, TempDir};
use crate::shell::TestShell;

/// Jobs that Redis lost are dispatched again within this time.
const BACK: Duration = Duration::from_secs(10);

/// Waits until a server says that it uses Redis, or that it is away.
async fn uses_redis(server: &Server, is_up: bool) {
    let (client, line) = (server.client(), format!("windlass_redis_up {}", u8::from(is_up)));
    seen(&line, async || {
        let (_, text) = client.raw("GET", "/metrics", None).await.unwrap();
        text.lines().any(|found| found == line).then_some(())
    })
    .await;
}

/// Two servers, the database and the Redis that they share. They go before those do.
struct Shared {
    servers: Vec<Server>,
    redis: Redis,
    _database: PostgresServer,
}

impl Shared {
    async fn start() -> Self {
        let (database, redis) =
            tokio::task::block_in_place(|| (PostgresServer::start(false), Redis::start(&[])));
        let address = database.address(&database.create());
        let mut servers = Vec::new();
        for _ in 0..2 {
            servers.push(Server::start_on(&address, &["--queue", &redis.address()]).await);
        }
        let shared = Shared { servers, redis, _database: database };
        shared.is_up(true).await;
        shared
    }

    fn client(&self, nth: usize) -> Client {
        self.servers[nth].client()
    }

    /// Waits until both servers use Redis, or say that it is away.
    async fn is_up(&self, is_up: bool) {
        for server in &self.servers {
            uses_redis(server, is_up).await;
        }
    }

    /// Waits until the list or set of the queue has these tasks, in this order.
    async fn lists(&self, what: &str, expected: &[&str]) {
        let key = format!("queue:default:{what}");
        let command = if what == "delayed" { "ZRANGE" } else { "LRANGE" };
        seen(&format!("{what}: {expected:?}"), async || {
            let task = |text: &String| {
                serde_json::from_str::<Value>(text).unwrap()["task_id"].as_str().unwrap().to_owned()
            };
            let found: Vec<String> = self.redis.lines(&[command, &key, "0", "-1"]).iter().map(task).collect();
            (found == expected).then_some(())
        })
        .await;
    }

    /// Waits until `redis-cli` says this.
    async fn shows(&self, words: &[&str], expected: &[&str]) {
        seen(&format!("{words:?}: {expected:?}"), async || {
            (self.redis.lines(words) == expected).then_some(())
        })
        .await;
    }
}

async fn create(client: &Client, more: Value) -> String {
    let mut task = json!({"name": "demo", "type": "immediate", "queue_name": "default"});
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let created = expect(client, "POST", "/api/v1/tasks", Some(task), 201).await;
    created["task_id"].as_str().unwrap().to_owned()
}

async fn claim(client: &Client, max: usize, wait_ms: u64) -> Vec<Value> {
    let claim = json!({"worker_id": "w1", "queues": ["default"], "max": max, "wait_ms": wait_ms});
    let claimed = post(client, "/api/v1/jobs/claim", claim).await;
    claimed["jobs"].as_array().unwrap().clone()
}

async fn finish(client: &Client, jobs: &[Value], outcome: Value) {
    let result = |job: &Value| {
        let mut result = json!({"id": job["id"], "lease": job["lease"]});
        result.as_object_mut().unwrap().extend(outcome.as_object().unwrap().clone());
        result
    };
    let results: Vec<Value> = jobs.iter().map(result).collect();
    let told = post(client, "/api/v1/jobs/finish", json!({"results": results})).await;
    for one in told["results"].as_array().unwrap() {
        assert_eq!(one["verdict"], "ok", "{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_cli_shows_where_jobs_are() {
    let shared = Shared::start().await;
    let (here, there) = (shared.client(0), shared.client(1));
    let plain = create(&here, json!({})).await;
    let urgent = create(&there, json!({"priority": 2, "max_retries": 1})).await;
    let later = create(&here, json!({"type": "scheduled", "run_at": "2100-01-01T00:00:00Z"})).await;
    shared.lists("ready", &[&urgent, &plain]).await;
    shared.lists("delayed", &[&later]).await;
    shared.shows(&["LLEN", "queue:default:ready"], &["2"]).await;
    shared.shows(&["ZCOUNT", "queue:default:delayed", "4102444800", "4102444800"], &["1"]).await;

    let worker = json!({"id": "w1", "url": "", "services": ["demo"], "type": "async"});
    post(&there, "/api/workers/register", worker).await;
    seen("a heartbeat", async || {
        let left: i64 = shared.redis.cli(&["TTL", "worker:w1:heartbeat"])?.parse().ok()?;
        (1..=30).contains(&left).then_some(())
    })
    .await;

    // The urgent one comes first, at whichever server; its lease is that of its attempt.
    let claimed = claim(&here, 1, 5_000).await;
    let detail = get(&there, &format!("/api/v1/tasks/{urgent}")).await;
    assert_eq!(detail["display_status"], "running");
    let lease = format!("lease:{}", detail["latest_run"]["id"].as_str().unwrap());
    shared.shows(&["GET", &lease], &["w1"]).await;
    shared.lists("ready", &[&plain]).await;

    finish(&there, &claimed, json!({"outcome": "failed", "error": "broken", "retryable": false})).await;
    shared.lists("dlq", &[&urgent]).await;
    shared.shows(&["EXISTS", &lease], &["0"]).await;
    let moved = post(&here, "/api/v1/queues/default/dlq/replay", json!({"count": 1})).await;
    assert_eq!(moved["moved"], 1);
    shared.lists("dlq", &[]).await;
    shared.lists("ready", &[&urgent, &plain]).await;
    // Lost keys are written again.
    shared.redis.cli(&["FLUSHALL"]).unwrap();
    assert_eq!(claim(&there, 1, 9_000).await.len(), 1);
    shared.lists("delayed", &[&later]).await;
    shared.lists("ready", &[&plain]).await;
}

/// The commands that the documentation of an older queue platform shows, word for word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_queue_platform_show_what_they_showed() {
    let shared = Shared::start().await;
    let client = shared.client(0);
    let payload = json!({"k": "v"});
    let dead = create(&client, json!({"name": "dead", "max_retries": 1, "payload": payload})).await;
    let claimed = claim(&client, 1, 5_000).await;
    finish(&client, &claimed, json!({"outcome": "failed", "error": "broken", "retryable": false})).await;
    let held = create(&client, json!({})).await;
    assert_eq!(claim(&client, 1, 5_000).await.len(), 1);
    let later = create(&client, json!({"type": "scheduled", "run_at": "2100-01-01T00:00:00Z"})).await;
    for _ in 0..3 {
        create(&client, json!({"payload": payload, "priority": 2})).await;
    }
    let worker = json!({"id": "w1", "url": "", "services": ["demo"], "type": "async"});
    post(&client, "/api/workers/register", worker).await;
    shared.lists("dlq", &[&dead]).await;
    shared.lists("delayed", &[&later]).await;
    shared.shows(&["LLEN", "queue:default:ready"], &["3"]).await;
    seen("a heartbeat", async || shared.redis.cli(&["EXISTS", "worker:w1:heartbeat"]).filter(|n| n == "1"))
        .await;

    let run =
        get(&client, &format!("/api/v1/tasks/{held}")).await["latest_run"]["id"].as_str().unwrap().to_owned();
    let text = include_str!("../../../conformance/fixtures/queue-platform.redis");
    let text = text.replace("YOUR_TASK_RUN_ID", &run).replace("YOUR_WORKER_ID", "w1");
    let commands = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let answers = commands.map(|line| shared.redis.lines(&line.split(' ').collect::<Vec<_>>()));
    let [length, delayed, dlq, lease, heartbeat] = answers.collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((length, lease), (vec!["3".to_owned()], vec!["w1".to_owned()]));
    assert_eq!((delayed.len(), delayed[1].as_str()), (2, "4102444800"));
    let message: Value = serde_json::from_str(&dlq[0]).unwrap();
    let fields: Vec<&str> = message.as_object().unwrap().keys().map(String::as_str).collect();
    let documented =
        ["task_run_id", "task_id", "attempt", "payload", "priority", "queue_name", "max_retries", "error"];
    assert_eq!(fields.iter().collect::<BTreeSet<_>>(), documented.iter().collect());
    assert_eq!((&message["task_id"], &message["payload"]), (&json!(dead), &payload));
    assert!((1..=30).contains(&heartbeat[0].parse::<i64>().unwrap()), "{heartbeat:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_while_redis_is_away_and_after_it_is_back() {
    let mut shared = Shared::start().await;
    let clients = [shared.client(0), shared.client(1)];
    let mut open = BTreeSet::new();
    for n in 0..20 {
        open.insert(create(&clients[n % 2], json!({"priority": n % 3})).await);
    }
    tokio::task::block_in_place(|| shared.redis.kill());
    for n in 0..20 {
        open.insert(create(&clients[n % 2], json!({})).await);
    }
    let done = async |open: &mut BTreeSet<String>, n: usize| {
        while open.len() > n {
            for (at, client) in clients.iter().enumerate() {
                let claimed = claim(client, 3, 100).await;
                for job in &claimed {
                    // Natively ids are written in another way.
                    let id = job["id"].as_str().unwrap().trim_start_matches("job_");
                    let uuid = open.iter().find(|open| open.replace('-', "") == id).cloned();
                    assert!(open.remove(&uuid.expect("it was nobody's before")));
                }
                finish(&clients[1 - at], &claimed, json!({"outcome": "done", "result": 1})).await;
            }
        }
    };
    done(&mut open, 15).await;
    shared.is_up(false).await;
    assert_eq!(get(&clients[0], "/readyz").await["ready"], true);
    tokio::task::block_in_place(|| shared.redis.launch());
    let begun = Instant::now();
    shared.is_up(true).await;
    // The open jobs are there again, without any new write.
    let n: usize = shared.redis.cli(&["LLEN", "queue:default:ready"]).unwrap().parse().unwrap();
    assert!(n > 0 && begun.elapsed() < BACK, "{n} after {:?}", begun.elapsed());
    done(&mut open, 0).await;
    assert!(claim(&clients[0], 3, 300).await.is_empty());
    for server in &mut shared.servers {
        assert!(server.terminate().success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_a_file_hands_out_through_redis_too() {
    let redis = tokio::task::block_in_place(|| Redis::start(&[]));
    let mut server = Server::start(&["--queue", &redis.address()]).await;
    uses_redis(&server, true).await;
    let client = server.client();
    for _ in 0..3 {
        create(&client, json!({})).await;
    }
    let claimed = claim(&client, 1, 5_000).await;
    finish(&client, &claimed, json!({"outcome": "done", "result": 1})).await;
    // The killed server did not update Redis, which still holds the old jobs.
    server.kill();
    redis.cli(&["RPUSH", "queue:default:ready", "nonsense"]).unwrap();
    server.spawn();
    server.ready().await;
    uses_redis(&server, true).await;
    assert_eq!(redis.cli(&["LLEN", "queue:default:ready"]).unwrap(), "2");
    let mut n = 0;
    while n < 2 {
        n += claim(&client, 1, 5_000).await.len();
    }
    assert!(claim(&client, 1, 0).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_says_whether_its_redis_is_up() {
    let mut redis = tokio::task::block_in_place(|| Redis::start(&[]));
    let server = Server::start(&["--queue", &redis.address()]).await;
    let shell = TestShell { server, dir: TempDir::new() };
    let client = shell.server.client();
    let doctor = || {
        let found = shell.json(&["doctor"]);
        found.as_array().unwrap().iter().find(|one| one["check"] == "redis").unwrap().clone()
    };
    for (is_up, status, shown) in [(true, "ok", "up; 0 outages"), (false, "warning", "unreachable, ")] {
        uses_redis(&shell.server, is_up).await;
        // It takes work either way.
        let (ready, stats) = (get(&client, "/readyz").await, get(&client, "/api/v1/stats").await);
        assert_eq!((&ready["ready"], &ready["redis"]["up"]), (&json!(true), &json!(is_up)), "{ready}");
        assert_eq!(stats["redis"]["up"], json!(is_up), "{stats}");
        assert_eq!(stats["redis"]["outages"], json!(u8::from(!is_up)), "{stats}");
        let text = shell.text(&["stats", "-o", "table"]);
        let line = text.lines().find(|line| line.starts_with("redis ")).unwrap();
        assert!(line.contains(shown), "{line}");
        assert_eq!(tokio::task::block_in_place(doctor)["status"], status);
        tokio::task::block_in_place(|| redis.kill());
    }
}
