//! Workers that poll and work longer than the shortest lease, and the cost of many of them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;
use windlass_sdk::Client;

use crate::http::{ask, ends, expect, post, seen, start};
use crate::server::{Server, publish};

/// The shortest lease of a polled job.
const LEASE: Duration = Duration::from_secs(30);
/// How often the original workers send heartbeats.
const BEAT: Duration = Duration::from_secs(5);

fn long() -> Value {
    json!({"start": "q", "nodes": {"q": {"service": "long", "exec_type": "queue", "post": {"output_key": "by"}}}})
}

async fn register(client: &Client, id: &str) {
    let body = json!({"id": id, "services": ["long"], "type": "async"});
    post(client, "/api/workers/register", body).await;
}

async fn beat(client: &Client, id: &str) {
    post(client, "/api/workers/heartbeat", json!({"id": id, "url": "", "load": 1})).await;
}

async fn poll(client: &Client, worker: &str) -> Option<Value> {
    let body = json!({"worker_id": worker, "services": ["long"]});
    let (status, job) = ask(client, "POST", "/api/queue/poll", Some(body)).await;
    assert!(status == 200 || status == 204, "{status}: {job}");
    (status == 200).then_some(job)
}

/// Starts a run and takes its job; the run and the job.
async fn taken(client: &Client, worker: &str) -> (String, Value) {
    let run = start(client, "long", json!({})).await;
    (run, seen("a job", async || poll(client, worker).await).await)
}

async fn complete(client: &Client, job: &Value, worker: &str, status: u16) {
    let body = json!({"queue_id": job["id"], "worker_id": worker, "result": worker, "error": ""});
    expect(client, "POST", "/api/queue/complete", Some(body), status).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_longer_than_the_shortest_lease_is_completed_by_its_worker() {
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "long", long()).await;
    for worker in ["beating", "silent"] {
        register(&client, worker).await;
        // A heartbeat in the same millisecond is none since the registration.
        tokio::time::sleep(Duration::from_millis(2)).await;
        beat(&client, worker).await;
    }
    let begun = Instant::now();
    let (of_beating, beating) = taken(&client, "beating").await;
    let (of_unknown, unknown) = taken(&client, "unknown").await;
    let (of_silent, silent) = taken(&client, "silent").await;
    // The job of the silent worker is handed out again, and no other one.
    let mut beats = tokio::time::interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut polls = tokio::time::interval(Duration::from_millis(200));
    let again = loop {
        tokio::select! {
            _ = beats.tick() => beat(&client, "beating").await,
            _ = polls.tick() => {
                if let Some(job) = poll(&client, "rescuer").await {
                    break job;
                }
            }
        }
        assert!(begun.elapsed() < 4 * LEASE, "the job of the silent worker was not handed out again");
    };
    assert!(begun.elapsed() >= LEASE - Duration::from_secs(1), "after {:?}", begun.elapsed());
    assert_eq!(again["task_id"], silent["task_id"]);
    complete(&client, &silent, "silent", 409).await;
    complete(&client, &again, "rescuer", 200).await;
    complete(&client, &beating, "beating", 200).await;
    complete(&client, &unknown, "unknown", 200).await;
    for (run, worker) in [(of_beating, "beating"), (of_unknown, "unknown"), (of_silent, "rescuer")] {
        assert_eq!(ends(&client, &run, "completed").await["shared"]["by"], worker);
    }
}

/// Seconds of processor time that a process has used.
fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    // The unit of the file is a hundredth of a second on every Linux.
    ticks / 100.0
}

/// Processor time of the server while 20 workers hold jobs of ten minutes and send heartbeats.
#[tokio::test(flavor = "multi_thread")]
async fn twenty_workers_at_long_jobs_cost_nearly_nothing() {
    const WORKERS: usize = 20;
    // Beyond a lease, so that the leases are looked at and extended meanwhile.
    const MEASURED: Duration = Duration::from_secs(40);
    let server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "long", long()).await;
    let ids: Vec<String> = (0..WORKERS).map(|n| format!("w{n}")).collect();
    for id in &ids {
        register(&client, id).await;
    }
    for id in &ids {
        beat(&client, id).await;
        taken(&client, id).await;
    }
    let (before, begun) = (cpu_seconds(server.pid()), Instant::now());
    let mut beats = tokio::time::interval(BEAT / WORKERS as u32);
    for id in ids.iter().cycle() {
        beats.tick().await;
        beat(&client, id).await;
        if begun.elapsed() > MEASURED {
            break;
        }
    }
    let percent = 100.0 * (cpu_seconds(server.pid()) - before) / begun.elapsed().as_secs_f64();
    println!("{WORKERS} workers at long jobs: {percent:.2} % of a processor");
    // A server without optimisation takes several times as much.
    let most = if cfg!(debug_assertions) { 4.0 } else { 1.0 };
    assert!(percent <= most, "{percent:.2} % of a processor");
    assert_eq!(poll(&client, "rescuer").await, None, "each worker still has its job");
}
