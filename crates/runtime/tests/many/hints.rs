//! Changes of one server reach the others at once.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use windlass_store::run::RunStatus;
use windlass_store::worker::WorkerRow;

use crate::cluster::{Cluster, PATIENCE, SOON, claim, done, end, go, publish, spec, start, waits};

#[tokio::test]
async fn a_job_that_is_made_at_one_server_is_claimed_at_another_at_once() {
    let cluster = Cluster::of(2).await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    for _ in 0..3 {
        let waiting = {
            let second = second.clone();
            tokio::spawn(async move { second.jobs().claim(claim("q", 1, PATIENCE)).await.unwrap() })
        };
        tokio::time::sleep(Duration::from_millis(50)).await;
        first.jobs().create_jobs(vec![spec("q")]).await.unwrap();
        let claimed = timeout(SOON, waiting).await.expect("it waits for what is there").unwrap();
        assert_eq!(claimed.len(), 1);
        assert!(second.jobs().finish(vec![done(&claimed[0], json!(1))]).await.pop().unwrap().is_ok());
    }
}

#[tokio::test]
async fn jobs_that_are_added_behind_known_ones_are_found() {
    let cluster = Cluster::of(2).await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    first.jobs().create_jobs(vec![spec("q"), spec("q")]).await.unwrap();
    let mut seen = BTreeSet::new();
    seen.extend(second.jobs().claim(claim("q", 1, PATIENCE)).await.unwrap().into_iter().map(|one| one.job));
    first.jobs().create_jobs(vec![spec("q"), spec("q")]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    for _ in 0..3 {
        let claimed =
            timeout(SOON, second.jobs().claim(claim("q", 1, PATIENCE))).await.expect("there is one more");
        seen.extend(claimed.unwrap().into_iter().map(|one| one.job));
    }
    assert_eq!(seen.len(), 4);
}

#[tokio::test]
async fn a_caller_at_one_server_hears_the_end_of_a_run_at_another() {
    let cluster = Cluster::of(2).await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    let flow = publish(first, "waits", waits()).await;
    let run = start(first, flow, json!({})).await;
    let waiting = {
        let second = second.clone();
        tokio::spawn(async move { end(&second, run).await })
    };
    tokio::time::sleep(Duration::from_millis(50)).await;
    first.runs().submit(run, go()).await.unwrap();
    assert_eq!(timeout(SOON, waiting).await.expect("it was told").unwrap(), RunStatus::Completed);
}

#[tokio::test]
async fn changes_at_one_server_are_told_at_another_and_none_twice() {
    let cluster = Cluster::of(2).await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    let flow = publish(first, "waits", waits()).await;
    let (mut here, mut there) = (first.runs().changes(), second.runs().changes());
    let run = start(first, flow, json!({})).await;
    let told = timeout(SOON, there.recv()).await.expect("it was told").unwrap();
    assert_eq!((told.run, told.status), (run, RunStatus::Waiting));
    second.runs().submit(run, go()).await.unwrap();
    for changes in [&mut here, &mut there] {
        let mut seqs = Vec::new();
        let watch = async {
            loop {
                let change = changes.recv().await.unwrap();
                seqs.push(change.seq);
                if change.status == RunStatus::Completed {
                    return;
                }
            }
        };
        timeout(SOON, watch).await.expect("its end was told");
        assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
        assert!(timeout(Duration::from_millis(100), changes.recv()).await.is_err(), "nothing is told again");
    }
}

#[tokio::test]
async fn a_worker_that_registers_with_one_server_is_known_to_all() {
    let cluster = Cluster::of(3).await;
    let now = cluster.servers[0].clock().now();
    let worker = WorkerRow {
        id: "w".to_owned(),
        name: "w".to_owned(),
        url: "http://127.0.0.1:9".to_owned(),
        kind: "http".to_owned(),
        services: vec!["resize".to_owned()],
        queues: Vec::new(),
        load: 0,
        capacity: 6,
        is_draining: false,
        peer: String::new(),
        replaced: Vec::new(),
        secret: None,
        registered_at: now,
        beat_at: now,
    };
    // Their first poll is over, so later changes need a hint.
    for server in &cluster.servers {
        assert!(server.workers().allocate("resize").await.unwrap().is_none());
    }
    cluster.servers[0].workers().register(worker).await.unwrap();
    for server in &cluster.servers {
        let known = async {
            while server.workers().allocate("resize").await.unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, known).await.expect("it is known soon");
    }
    cluster.servers[1].workers().drain_worker("w", true).await.unwrap();
    let gone = async {
        while !cluster.servers[2].workers().is_worker_draining("w") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, gone).await.expect("everybody hears that it is to go");
}

#[tokio::test]
async fn a_queue_that_is_paused_at_one_server_is_paused_at_all() {
    let cluster = Cluster::of(2).await;
    let [first, second] = &cluster.servers[..] else { unreachable!() };
    first.jobs().create_jobs(vec![spec("q"), spec("q")]).await.unwrap();
    assert_eq!(second.jobs().claim(claim("q", 1, PATIENCE)).await.unwrap().len(), 1);
    first.jobs().pause_queue("q", true).await.unwrap();
    let paused = async {
        // Jobs that it claims before it hears of the pause are given back at their end.
        while let Some(job) = second.jobs().claim(claim("q", 1, Duration::ZERO)).await.unwrap().pop() {
            second.jobs().finish(vec![done(&job, json!(1))]).await;
            first.jobs().create_jobs(vec![spec("q")]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, paused).await.expect("it is paused soon");
    first.jobs().pause_queue("q", false).await.unwrap();
    assert_eq!(timeout(SOON, second.jobs().claim(claim("q", 1, PATIENCE))).await.unwrap().unwrap().len(), 1);
}
