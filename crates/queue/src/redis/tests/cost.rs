//! The number of Redis calls of a pop: a script blocks all other clients.

use super::share::{number, of_run, runs};
use super::*;

/// How often a command was called since the last question.
fn n_calls(server: &RedisTestServer, command: &str) -> u32 {
    let stats = server.lines(&["INFO", "commandstats"]);
    server.cli(&["CONFIG", "RESETSTAT"]).unwrap();
    let start = format!("cmdstat_{command}:calls=");
    let told = stats.iter().find_map(|line| line.strip_prefix(&start));
    told.map_or(0, |told| told.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_large_claim_searches_each_list_once() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    // Many plain jobs are before the only job of the lower class, so they get its turns.
    connection.apply(&runs("q", 2, 1_000)).await.unwrap();
    let plain: Vec<ReadyEntry> = (0..5_000).map(|n| entry("q", -2, n)).collect();
    connection.fill("q", &plain, false, None).await.unwrap();
    connection.fill("q", &[of_run("q", -2, number(-2, 0))], false, None).await.unwrap();
    n_calls(&server, "lrange");
    let popped = pop(&connection, &["q"], 1_000).await;
    let n = n_calls(&server, "lrange");
    assert!(popped.iter().filter(|n| **n < 5_000).copied().eq(0..200));
    assert!(n < 1_000, "{n} parts of lists were read");
    // Jobs of runs are before the plain jobs that get the turns.
    connection.fill("q", &[], true, None).await.unwrap();
    connection.apply(&[runs("q", 2, 4_000), runs("q", -2, 1)].concat()).await.unwrap();
    let plain: Vec<ReadyEntry> = (0..1_000).map(|n| entry("q", 2, n)).collect();
    connection.fill("q", &plain, false, None).await.unwrap();
    n_calls(&server, "lrange");
    let popped = pop(&connection, &["q"], 1_000).await;
    let n = n_calls(&server, "lrange");
    assert!(popped.iter().filter(|n| **n < 5_000).copied().eq(0..200));
    assert!(n < 1_000, "{n} parts of lists were read");
}

#[tokio::test]
async fn a_claim_of_many_queues_asks_each_list_once_whether_it_has_plain_jobs() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let queues: Vec<String> = (0..100).map(|n| format!("q{n}")).collect();
    let queues: Vec<&str> = queues.iter().map(String::as_str).collect();
    let mut updates = [runs("q0", 2, 1_000), runs("q99", -2, 200)].concat();
    queues.iter().for_each(|queue| updates.extend(runs(queue, 1, 1)));
    connection.apply(&updates).await.unwrap();
    n_calls(&server, "llen");
    assert_eq!(pop(&connection, &queues, 1_000).await.len(), 1_000);
    let n = n_calls(&server, "llen");
    assert!(n < 500, "{n} lists were asked how long they are");
}

#[tokio::test]
async fn a_single_class_and_plain_jobs_are_popped_in_one_call() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let plain: Vec<RedisUpdate> = (0..1_000).map(|n| ready("plain", 0, n)).collect();
    connection.apply(&[runs("q", 0, 1_100), plain].concat()).await.unwrap();
    for (queue, most) in [("q", 2), ("plain", 1)] {
        n_calls(&server, "lpop");
        assert_eq!(pop(&connection, &[queue], 1_000).await.len(), 1_000);
        assert!(n_calls(&server, "lpop") <= most);
    }
    // By the rule of the engine, the next turn goes to a lower class as soon as it has a job.
    connection.apply(&runs("q", -1, 1)).await.unwrap();
    assert_eq!(pop(&connection, &["q"], 1).await, [number(-1, 0)]);
}
