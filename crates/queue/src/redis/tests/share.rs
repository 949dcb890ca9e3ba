//! Fair share of lower classes of runs in Redis.

use std::collections::{BTreeMap, VecDeque};

use windlass_engine::share::Share;

use super::*;

/// The number of a job, which encodes its priority.
pub(super) fn number(priority: i32, nth: usize) -> u128 {
    u128::try_from(priority + 10).unwrap() * 1_000_000 + nth as u128
}

fn priority_of(n: u128) -> i32 {
    i32::try_from(n / 1_000_000).unwrap() - 10
}

pub(super) fn of_run(queue: &str, priority: i32, n: u128) -> ReadyEntry {
    ReadyEntry { is_run: true, ..entry(queue, priority, n) }
}

fn run(queue: &str, priority: i32, n: u128) -> RedisUpdate {
    RedisUpdate::Ready { at: of_run(queue, priority, n), ended: None, has_waited: false, was_dead: false }
}

pub(super) fn runs(queue: &str, priority: i32, n: usize) -> Vec<RedisUpdate> {
    (0..n).map(|nth| run(queue, priority, number(priority, nth))).collect()
}

/// The priorities of popped jobs, `at_once` at a time by each connection in turn.
async fn turns(connections: &[&RedisConnection], queues: &[&str], n: usize, at_once: usize) -> Vec<i32> {
    let mut order = Vec::new();
    for connection in connections.iter().cycle() {
        if order.len() >= n {
            break;
        }
        let popped = pop(connection, queues, at_once.min(n - order.len())).await;
        assert!(!popped.is_empty());
        order.extend(popped.into_iter().map(priority_of));
    }
    order
}

/// The order that the engine rules for waiting runs of these classes.
fn ruled(mut waiting: BTreeMap<i32, VecDeque<u128>>, n: usize) -> Vec<i32> {
    let (mut share, mut order) = (Share::default(), Vec::new());
    for _ in 0..n {
        let top = *waiting.last_key_value().unwrap().0;
        let lower = |below: i32| waiting.range(..below).next_back().map(|(class, _)| *class);
        let kept = share.is_kept().then(|| share.below(top).into_iter().find_map(lower)).flatten();
        let given = kept.unwrap_or(top);
        share.gave(top, given);
        order.push(given);
        let class = waiting.get_mut(&given).unwrap();
        class.pop_front();
        if class.is_empty() {
            waiting.remove(&given);
        }
    }
    order
}

#[tokio::test]
async fn classes_of_runs_get_the_turns_of_the_engine_on_any_connection() {
    let server = RedisTestServer::start(&[]);
    let (one, other) = (connect(&server).await, connect(&server).await);
    for at_once in [1, 3, 7, 100] {
        let lengths = [(2, 60), (1, 3), (0, 6), (-1, 1), (-2, 40)];
        let updates: Vec<RedisUpdate> = lengths.iter().flat_map(|(class, n)| runs("q", *class, *n)).collect();
        one.apply(&updates).await.unwrap();
        let waiting = lengths.map(|(class, n)| (class, (0..n).map(|nth| number(class, nth)).collect()));
        let n = 75;
        let order = turns(&[&one, &other], &["q"], n, at_once).await;
        assert_eq!(order, ruled(waiting.into(), n), "{at_once} at once");
        while !pop(&one, &["q"], 100).await.is_empty() {}
        assert_eq!(server.lines(&["KEYS", "queue:*"]), [] as [&str; 0]);
    }
}

#[tokio::test]
async fn within_a_class_earlier_jobs_go_first() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    connection.apply(&[runs("q", 2, 20), runs("q", 0, 3)].concat()).await.unwrap();
    let popped = pop(&connection, &["q"], 23).await;
    let of = |class: i32| popped.iter().copied().filter(move |n| priority_of(*n) == class);
    assert!(of(2).eq((0..20).map(|nth| number(2, nth))) && of(0).eq((0..3).map(|nth| number(0, nth))));
    assert_eq!(popped.iter().position(|n| priority_of(*n) == 0), Some(4));
}

#[tokio::test]
async fn no_plain_job_is_overtaken_and_none_takes_an_unwanted_turn() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    // No lower class of runs waits: the highest gets every turn, even with plain jobs below.
    connection.apply(&[runs("q", 2, 12), vec![ready("q", 0, 1), ready("q", -2, 2)]].concat()).await.unwrap();
    assert_eq!(pop(&connection, &["q"], 12).await, (0..12).map(|nth| number(2, nth)).collect::<Vec<_>>());
    assert_eq!(pop(&connection, &["q"], 9).await, [1, 2]);
    // A lower class waits behind plain jobs of each list: the plain jobs get its turns, one after the other.
    let mixed = [ready("q", 2, 21), run("q", 2, number(2, 90)), ready("q", 1, 11), ready("q", -1, 5)];
    let updates = [runs("q", 2, 30), mixed.to_vec(), vec![run("q", -1, number(-1, 0))]].concat();
    connection.apply(&updates).await.unwrap();
    let popped = pop(&connection, &["q"], 25).await;
    let others: Vec<(usize, u128)> =
        popped.iter().copied().enumerate().filter(|(_, n)| priority_of(*n) != 2).collect();
    assert_eq!(others, [(4, 21), (9, 11), (14, 5), (19, number(-1, 0))]);
    // A plain job that is next neither gives nor takes a turn.
    while !pop(&connection, &["q"], 100).await.is_empty() {}
    let updates = [(0..20).map(|n| ready("q", 2, n)).collect(), runs("q", -2, 3)].concat();
    connection.apply(&updates).await.unwrap();
    assert_eq!(pop(&connection, &["q"], 20).await, (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_lower_class_of_another_queue_of_the_claim_may_get_the_turn() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    connection.apply(&[runs("busy", 2, 20), runs("quiet", -2, 2)].concat()).await.unwrap();
    let order = turns(&[&connection], &["quiet", "busy"], 10, 1).await;
    assert_eq!(order, [2, 2, 2, 2, -2, 2, 2, 2, 2, -2]);
}

#[tokio::test]
async fn lower_classes_have_turns_although_the_store_has_more_of_the_highest_than_fits() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let entries: Vec<ReadyEntry> = (0..600).map(|nth| of_run("q", 2, number(2, nth))).collect();
    connection.fill("q", &entries, true, Some(2)).await.unwrap();
    // The first pop reports that lower classes were not read.
    let popped = connection.pop(&names(&["q"]), 9, Timestamp(0)).await.unwrap();
    assert_eq!(
        (popped.entries.len(), popped.incomplete, popped.incomplete_classes),
        (9, vec![], names(&["q"]))
    );
    let incomplete_classes = |priority| [0, 1].map(|nth| of_run("q", priority, number(priority, nth)));
    connection.fill_class("q", -1, &incomplete_classes(-1)).await.unwrap();
    connection.fill_class("q", -2, &incomplete_classes(-2)).await.unwrap();
    // A later job of a run is kept too; a plain job is left to the store.
    connection.apply(&[run("q", 0, number(0, 7)), ready("q", 1, 11), run("q", 2, 22)]).await.unwrap();
    let order = turns(&[&connection], &["q"], 35, 1).await;
    let lower: Vec<i32> = order.into_iter().filter(|class| *class != 2).collect();
    assert_eq!(lower[..5], [0, -1, -2, -1, -2]);
    // After this many turns the store is read again.
    let mut asked = Vec::new();
    for _ in 0..250 {
        asked.extend(connection.pop(&names(&["q"]), 1, Timestamp(0)).await.unwrap().incomplete_classes);
    }
    assert_eq!(asked, ["q"]);
    // Jobs of lower classes alone are not next.
    connection.fill_class("q", -2, &incomplete_classes(-2)).await.unwrap();
    while !connection.pop(&names(&["q"]), 100, Timestamp(0)).await.unwrap().entries.is_empty() {}
    assert_eq!(connection.count_ready(&names(&["q"]), Timestamp(0)).await.unwrap().ready, [None]);
    assert_eq!(connection.pop(&names(&["q"]), 1, Timestamp(0)).await.unwrap().incomplete, ["q"]);
    // They are not set either after the store has been read to its end.
    connection.fill("q", &[of_run("q", 0, 1)], true, None).await.unwrap();
    connection.fill_class("q", -2, &incomplete_classes(-2)).await.unwrap();
    assert_eq!(pop(&connection, &["q"], 9).await, [1]);
}

#[tokio::test]
async fn lost_or_wrong_turn_counts_lose_no_job() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    for words in [
        &["DEL", "queue:q:runs"][..],
        &["HSET", "queue:q:runs", "2", "x", "since", "nan", "last", "inf", "unread", "1e99", "-2", "999"],
        &["HSET", "queue:q:runs", "2", "-7", "since", "-5", "-2", "9223372036854775807"],
        &["SET", "queue:q:runs", "text"],
        // Written by a server that does not mark jobs of runs.
        &["RPUSH", "queue:q:ready:2", &shown(777)],
    ] {
        connection
            .apply(&[runs("q", 2, 40), runs("q", -2, 5), vec![ready("q", 1, 5)]].concat())
            .await
            .unwrap();
        assert!(server.cli(words).is_some());
        let more = (0..10).map(|nth| run("q", -2, number(-2, 100 + nth))).collect::<Vec<_>>();
        connection
            .apply(&[vec![RedisUpdate::Back(of_run("q", -2, number(-2, 99)))], more].concat())
            .await
            .unwrap();
        let mut n_found = 0;
        loop {
            let popped = pop(&connection, &["q"], 3).await;
            if popped.is_empty() {
                break;
            }
            n_found += popped.into_iter().filter(|n| *n != 777).count();
        }
        assert_eq!(n_found, 57, "{words:?}");
        assert_eq!(server.lines(&["KEYS", "queue:*"]), [] as [&str; 0]);
    }
}

#[tokio::test]
async fn a_job_of_a_run_is_taken_out_and_put_back_like_any_other() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    connection.apply(&[run("q", 1, 1), run("q", 1, 2), run("q", 1, 3)]).await.unwrap();
    assert_eq!(
        server.lines(&["LRANGE", "queue:q:ready:1", "0", "0"]),
        [Uuid::from_u128(1).simple().to_string()]
    );
    connection.apply(&[RedisUpdate::Ended { at: of_run("q", 1, 2), ended: None }]).await.unwrap();
    assert_eq!(server.lines(&["HGETALL", "queue:q:runs"]), ["1", "2"]);
    let popped = connection.pop(&names(&["q"]), 1, Timestamp(0)).await.unwrap().entries;
    assert_eq!(popped, [of_run("q", 1, 1)]);
    connection.apply(&[RedisUpdate::Back(popped[0].clone())]).await.unwrap();
    assert_eq!(pop(&connection, &["q"], 9).await, [1, 3]);
    let (at, due) = (of_run("q", 1, 4), Timestamp(5));
    connection
        .apply(&[RedisUpdate::Delayed { at: at.clone(), ended: None, due, was_dead: false }])
        .await
        .unwrap();
    assert_eq!(connection.pop(&names(&["q"]), 9, Timestamp(6)).await.unwrap().entries, [at]);
}

#[tokio::test]
async fn classes_behind_more_lists_than_a_pop_examines_keep_their_turns() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let plain = (100..230).map(|priority| ready("q", priority, number(priority, 0)));
    let updates = [runs("q", 300, 5), plain.collect(), runs("q", 0, 20), runs("q", -2, 5)].concat();
    connection.apply(&updates).await.unwrap();
    assert_eq!(turns(&[&connection], &["q"], 135, 27).await.last(), Some(&100));
    // The fifth job of the highest class had a turn that no lower class wanted.
    assert_eq!(turns(&[&connection], &["q"], 10, 1).await, [0, 0, 0, -2, 0, 0, 0, 0, -2, 0]);
}
