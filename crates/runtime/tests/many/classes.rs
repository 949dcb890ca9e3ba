//! Runs of lower priorities in a queue that is popped through Redis: they get on however much there is above them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;
use windlass_conformance::redis_server::RedisTestServer;
use windlass_engine::counter::Revision;
use windlass_engine::event::Start;
use windlass_engine::id::{CommandId, JobId, RunId};
use windlass_engine::job::{Job, JobSpec};
use windlass_engine::plan::Priority;
use windlass_engine::project::Project;
use windlass_engine::share::SHARE;
use windlass_engine::time::Timestamp;
use windlass_runtime::Runtime;
use windlass_runtime::runs::RunSpec;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::JobOrigin;

use crate::cluster::{Cluster, PATIENCE, claim, publish, spec};
use crate::redis::{two, until};

/// A run with so many branches that each wait in the queue `work`.
async fn start(server: &Runtime, n: usize, priority: Priority) {
    let node = json!({
        "kind": "foreach", "service": "work", "exec_type": "queue", "parallel_mode": "concurrent",
        "prep": {"input_key": "$params.all"},
    });
    let flow = json!({"start": "each", "nodes": {"each": node}, "edges": []});
    let (flow, version) = publish(server, &format!("{priority:?}"), flow).await;
    let Value::Object(params) = json!({"all": vec![0; n]}) else { unreachable!() };
    let start = Start { params: params.into(), priority: Some(priority), ..Start::default() };
    let new = RunSpec { flow, version, request: None, labels: BTreeMap::new(), schedule: None, start };
    server.runs().start(new).await.unwrap();
}

/// The priorities in the list of the queue, in order.
fn listed(redis: &RedisTestServer) -> Vec<i64> {
    let priority = |text: &String| serde_json::from_str::<Value>(text).unwrap()["priority"].as_i64().unwrap();
    redis.lines(&["LRANGE", "queue:work:ready", "0", "-1"]).iter().map(priority).collect()
}

/// Starts runs, and waits until Redis has their jobs, with the turns that the classes have.
async fn begin(cluster: &Cluster, redis: &RedisTestServer, all: &[(Priority, i32, usize)]) {
    for (nth, (priority, class, n)) in all.iter().enumerate() {
        start(&cluster.servers[nth % 2], *n, *priority).await;
        let class = i64::from(*class);
        until("they are in Redis", PATIENCE, || {
            listed(redis).iter().filter(|priority| **priority == class).count() == *n
        })
        .await;
    }
    let n = all.iter().map(|(_, _, n)| n).sum::<usize>();
    until("the classes have their turns", PATIENCE, || {
        let list = listed(redis);
        let turns = || list.iter().skip(SHARE as usize - 1).step_by(SHARE as usize).take(8);
        let classes: std::collections::BTreeSet<&i64> = turns().collect();
        list.len() == n && turns().all(|class| *class < 2) && classes.len() == all.len() - 1
    })
    .await;
}

/// The priorities of jobs as the two servers hand them out, one claim after the other.
async fn order(cluster: &Cluster, n: usize, at_once: usize) -> Vec<i32> {
    let mut order = Vec::new();
    for server in cluster.servers.iter().cycle() {
        if order.len() >= n {
            break;
        }
        let claimed = server.jobs().claim(claim("work", at_once, PATIENCE)).await.unwrap();
        order.extend(claimed.into_iter().map(|one| one.priority));
    }
    order
}

#[tokio::test]
async fn every_fifth_turn_is_that_of_a_lower_class_at_all_servers_together() {
    let (redis, cluster) = two().await;
    let all = [(Priority::Highest, 2, 60), (Priority::Lowest, -2, 20), (Priority::Medium, 0, 20)];
    begin(&cluster, &redis, &all).await;
    let order = order(&cluster, 40, 1).await;
    let lower: Vec<(usize, i32)> =
        order.iter().copied().enumerate().filter(|(_, class)| *class != 2).collect();
    assert_eq!(lower.len(), 8);
    for (nth, (at, class)) in lower.iter().enumerate() {
        assert_eq!(*at, (nth + 1) * SHARE as usize - 1, "{lower:?}");
        assert_eq!(*class == 0, (lower[0].1 == 0) == (nth % 2 == 0), "they take turns: {lower:?}");
    }
}

/// Puts so many jobs of runs into the store, unknown to Redis.
fn put(cluster: &Cluster, n: u128, priority: i32) {
    let now = Timestamp(1);
    let change = |nth: u128| {
        let id = (u128::from(priority.wrapping_add(10).unsigned_abs()) << 64) + nth;
        let run = Some(RunId::new(Uuid::from_u128(id)));
        let spec = JobSpec { priority, run, ..spec("work") };
        let (job, _) = Job::create(JobId::new(Uuid::from_u128(id)), spec, now).unwrap();
        JobChange { expected_rev: Revision(0), job, origin: JobOrigin::default() }
    };
    let command = CommandId::new(Uuid::now_v7());
    let commit =
        Commit { jobs: (0..n).map(change).collect(), ..Commit::new(&Project::DEFAULT, command, now) };
    cluster.store.commit_now(vec![commit]).pop().unwrap().unwrap();
}

#[tokio::test]
async fn the_lowest_get_on_behind_more_than_redis_is_given_at_once() {
    let (redis, cluster) = two().await;
    put(&cluster, 14_000, 2);
    put(&cluster, 300, -2);
    redis.cli(&["FLUSHALL"]).unwrap();
    // The next claim notices the loss; each fill then reads a thousand jobs of the highest class, and not all of the lowest.
    let order = order(&cluster, 3_000, 50).await;
    assert_eq!(order.iter().filter(|class| **class == -2).count(), 300);
    // And there is still more than it was given.
    until("it is filled", PATIENCE, || {
        redis.cli(&["HGET", "queue:work:more", "below"]).unwrap() == "2" && listed(&redis).len() > 500
    })
    .await;
}

#[tokio::test]
async fn a_plain_job_is_not_overtaken_by_those_of_lower_classes() {
    let (redis, cluster) = two().await;
    let all = [(Priority::Highest, 2, 60), (Priority::Lowest, -2, 20)];
    begin(&cluster, &redis, &all).await;
    // One is behind all of the highest, and one between the classes: they have the first turns that are kept.
    for priority in [-1, 2] {
        cluster.servers[0].jobs().create_job(JobSpec { priority, ..spec("work") }).await.unwrap();
        let n = if priority == 2 { 61 } else { 1 };
        until("it is in Redis", PATIENCE, || {
            listed(&redis).iter().filter(|listed| **listed == i64::from(priority)).count() == n
        })
        .await;
    }
    // After any loss, the fill knows again which jobs belong to runs.
    redis.cli(&["FLUSHALL"]).unwrap();
    let order = order(&cluster, 20, 1).await;
    let lower: Vec<(usize, i32)> =
        order.iter().copied().enumerate().filter(|(_, class)| *class != 2).collect();
    assert_eq!(lower, [(9, -1), (14, -2), (19, -2)], "{order:?}");
}
