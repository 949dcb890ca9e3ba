//! What a pop asks of Redis: nobody else has it meanwhile.

use super::share::{number, of_run, runs};
use super::*;

/// How often this was called since the last time that it was asked.
fn n_calls(server: &Server, command: &str) -> u32 {
    let stats = server.lines(&["INFO", "commandstats"]);
    server.cli(&["CONFIG", "RESETSTAT"]).unwrap();
    let start = format!("cmdstat_{command}:calls=");
    let told = stats.iter().find_map(|line| line.strip_prefix(&start));
    told.map_or(0, |told| told.split(',').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_claim_of_many_looks_once_at_what_is_before_whoever_gets_a_turn() {
    let server = Server::start(&[]);
    let link = connect(&server).await;
    // Plain jobs are before the only one of the lower class, and too many: they have its turns.
    link.apply(&runs("q", 2, 1_000)).await.unwrap();
    let plain: Vec<Spot> = (0..5_000).map(|n| spot("q", -2, n)).collect();
    link.fill("q", &plain, false, None).await.unwrap();
    link.fill("q", &[of_run("q", -2, number(-2, 0))], false, None).await.unwrap();
    n_calls(&server, "lrange");
    let popped = pop(&link, &["q"], 1_000).await;
    let n = n_calls(&server, "lrange");
    assert!(popped.iter().filter(|n| **n < 5_000).copied().eq(0..200));
    assert!(n < 1_000, "{n} parts of lists were read");
    // Jobs of runs are before the plain ones that have the turns.
    link.fill("q", &[], true, None).await.unwrap();
    link.apply(&[runs("q", 2, 4_000), runs("q", -2, 1)].concat()).await.unwrap();
    let plain: Vec<Spot> = (0..1_000).map(|n| spot("q", 2, n)).collect();
    link.fill("q", &plain, false, None).await.unwrap();
    n_calls(&server, "lrange");
    let popped = pop(&link, &["q"], 1_000).await;
    let n = n_calls(&server, "lrange");
    assert!(popped.iter().filter(|n| **n < 5_000).copied().eq(0..200));
    assert!(n < 1_000, "{n} parts of lists were read");
}

#[tokio::test]
async fn a_claim_of_many_queues_asks_each_list_once_whether_it_has_plain_jobs() {
    let server = Server::start(&[]);
    let link = connect(&server).await;
    let queues: Vec<String> = (0..100).map(|n| format!("q{n}")).collect();
    let queues: Vec<&str> = queues.iter().map(String::as_str).collect();
    let mut moves = [runs("q0", 2, 1_000), runs("q99", -2, 200)].concat();
    queues.iter().for_each(|queue| moves.extend(runs(queue, 1, 1)));
    link.apply(&moves).await.unwrap();
    n_calls(&server, "llen");
    assert_eq!(pop(&link, &queues, 1_000).await.len(), 1_000);
    let n = n_calls(&server, "llen");
    assert!(n < 500, "{n} lists were asked how long they are");
}

#[tokio::test]
async fn a_class_that_is_alone_and_plain_jobs_are_popped_at_once() {
    let server = Server::start(&[]);
    let link = connect(&server).await;
    let plain: Vec<Move> = (0..1_000).map(|n| ready("plain", 0, n)).collect();
    link.apply(&[runs("q", 0, 1_100), plain].concat()).await.unwrap();
    for (queue, most) in [("q", 2), ("plain", 1)] {
        n_calls(&server, "lpop");
        assert_eq!(pop(&link, &[queue], 1_000).await.len(), 1_000);
        assert!(n_calls(&server, "lpop") <= most);
    }
    // As the engine rules: the next turn is that of a lower class, as soon as one is there.
    link.apply(&runs("q", -1, 1)).await.unwrap();
    assert_eq!(pop(&link, &["q"], 1).await, [number(-1, 0)]);
}
