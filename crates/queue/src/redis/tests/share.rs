//! Turns that jobs of runs leave to those of lower classes, where the lists are.

use std::collections::{BTreeMap, VecDeque};

use windlass_engine::share::Share;

use super::*;

/// The number of a job: its priority can be told from it.
pub(super) fn number(priority: i32, nth: usize) -> u128 {
    u128::try_from(priority + 10).unwrap() * 1_000_000 + nth as u128
}

fn priority_of(n: u128) -> i32 {
    i32::try_from(n / 1_000_000).unwrap() - 10
}

pub(super) fn of_run(queue: &str, priority: i32, n: u128) -> Spot {
    Spot { is_run: true, ..spot(queue, priority, n) }
}

fn run(queue: &str, priority: i32, n: u128) -> Move {
    Move::Ready { at: of_run(queue, priority, n), ended: None, has_waited: false, was_dead: false }
}

pub(super) fn runs(queue: &str, priority: i32, n: usize) -> Vec<Move> {
    (0..n).map(|nth| run(queue, priority, number(priority, nth))).collect()
}

/// The priorities of what is popped, so many at a time by one after the other.
async fn turns(links: &[&Link], queues: &[&str], n: usize, at_once: usize) -> Vec<i32> {
    let mut order = Vec::new();
    for link in links.iter().cycle() {
        if order.len() >= n {
            break;
        }
        let popped = pop(link, queues, at_once.min(n - order.len())).await;
        assert!(!popped.is_empty());
        order.extend(popped.into_iter().map(priority_of));
    }
    order
}

/// What the engine would do with runs that wait in so many classes.
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
async fn classes_of_runs_have_their_turns_as_the_engine_rules_whoever_pops() {
    let server = Server::start(&[]);
    let (one, other) = (connect(&server).await, connect(&server).await);
    for at_once in [1, 3, 7, 100] {
        let lengths = [(2, 60), (1, 3), (0, 6), (-1, 1), (-2, 40)];
        let moves: Vec<Move> = lengths.iter().flat_map(|(class, n)| runs("q", *class, *n)).collect();
        one.apply(&moves).await.unwrap();
        let waiting = lengths.map(|(class, n)| (class, (0..n).map(|nth| number(class, nth)).collect()));
        let n = 75;
        let order = turns(&[&one, &other], &["q"], n, at_once).await;
        assert_eq!(order, ruled(waiting.into(), n), "{at_once} at once");
        while !pop(&one, &["q"], 100).await.is_empty() {}
        assert_eq!(server.lines(&["KEYS", "queue:*"]), [] as [&str; 0]);
    }
}

#[tokio::test]
async fn within_a_class_who_came_first_goes_first() {
    let server = Server::start(&[]);
    let link = connect(&server).await;
    link.apply(&[runs("q", 2, 20), runs("q", 0, 3)].concat()).await.unwrap();
    let popped = pop(&link, &["q"], 23).await;
    let of = |class: i32| popped.iter().copied().filter(move |n| priority_of(*n) == class);
    assert!(of(2).eq((0..20).map(|nth| number(2, nth))) && of(0).eq((0..3).map(|nth| number(0, nth))));
    assert_eq!(popped.iter().position(|n| priority_of(*n) == 0), Some(4));
}

#[tokio::test]
async fn no_plain_job_is_overtaken_and_none_takes_a_turn_that_nobody_wants() {
    let server = Server::start(&[]);
    let link = connect(&server).await;
    // Nobody of a lower class waits: the highest have every turn, whatever plain jobs are below.
    link.apply(&[runs("q", 2, 12), vec![ready("q", 0, 1), ready("q", -2, 2)]].concat()).await.unwrap();
    assert_eq!(pop(&link, &["q"], 12).await, (0..12).map(|nth| number(2, nth)).collect::<Vec<_>>());
    assert_eq!(pop(&link, &["q"], 9).await, [1, 2]);
    // Somebody does, behind plain jobs of each list: these have the turn, one after the other.
    let mixed = [ready("q", 2, 21), run("q", 2, number(2, 90)), ready("q", 1, 11), ready("q", -1, 5)];
    let moves = [runs("q", 2, 30), mixed.to_vec(), vec![run("q", -1, number(-1, 0))]].concat();
    link.apply(&moves).await.unwrap();
    let popped = pop(&link, &["q"], 25).await;
    let others: Vec<(usize, u128)> =
        popped.iter().copied().enumerate().filter(|(_, n)| priority_of(*n) != 2).collect();
    assert_eq!(others, [(4, 21), (9, 11), (14, 5), (19, number(-1, 0))]);
    // A plain job that is next gives no turn, and takes none.
    while !pop(&link, &["q"], 100).await.is_empty() {}
    let moves = [(0..20).map(|n| ready("q", 2, n)).collect(), runs("q", -2, 3)].concat();
    link.apply(&moves).await.unwrap();
    assert_eq!(pop(&link, &["q"], 20).await, (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_turn_of_one_queue_may_be_had_by_a_lower_class_of_another_in_the_same_claim() {
    let server = Server::start(&[]);
    let link = connect(&server).await;
    link.apply(&[runs("busy", 2, 20), runs("quiet", -2, 2)].concat()).await.unwrap();
    let order = turns(&[&link], &["quiet", "busy"], 10, 1).await;
    assert_eq!(order, [2, 2, 2, 2, -2, 2, 2, 2, 2, -2]);
}

#[tokio::test]
async fn lower_classes_have_turns_although_the_store_has_more_of_the_highest_than_fits() {
    let server = Server::start(&[]);
    let link = connect(&server).await;
    let spots: Vec<Spot> = (0..600).map(|nth| of_run("q", 2, number(2, nth))).collect();
    link.fill("q", &spots, true, Some(2)).await.unwrap();
    // The first who pops says that nobody has looked for lower classes.
    let popped = link.pop(&names(&["q"]), 9, Timestamp(0)).await.unwrap();
    assert_eq!((popped.spots.len(), popped.thin, popped.low), (9, vec![], names(&["q"])));
    let low = |priority| [0, 1].map(|nth| of_run("q", priority, number(priority, nth)));
    link.fill_class("q", -1, &low(-1)).await.unwrap();
    link.fill_class("q", -2, &low(-2)).await.unwrap();
    // What comes now is kept too if it is of a run, and a plain job is left to the store.
    link.apply(&[run("q", 0, number(0, 7)), ready("q", 1, 11), run("q", 2, 22)]).await.unwrap();
    let order = turns(&[&link], &["q"], 35, 1).await;
    let lower: Vec<i32> = order.into_iter().filter(|class| *class != 2).collect();
    assert_eq!(lower[..5], [0, -1, -2, -1, -2]);
    // After so many turns the store is asked again.
    let mut asked = Vec::new();
    for _ in 0..250 {
        asked.extend(link.pop(&names(&["q"]), 1, Timestamp(0)).await.unwrap().low);
    }
    assert_eq!(asked, ["q"]);
    // Those of lower classes alone are not what comes next.
    link.fill_class("q", -2, &low(-2)).await.unwrap();
    while !link.pop(&names(&["q"]), 100, Timestamp(0)).await.unwrap().spots.is_empty() {}
    assert_eq!(link.look(&names(&["q"]), Timestamp(0)).await.unwrap().ready, [None]);
    assert_eq!(link.pop(&names(&["q"]), 1, Timestamp(0)).await.unwrap().thin, ["q"]);
    // Nor are they given where the store has been read to its end.
    link.fill("q", &[of_run("q", 0, 1)], true, None).await.unwrap();
    link.fill_class("q", -2, &low(-2)).await.unwrap();
    assert_eq!(pop(&link, &["q"], 9).await, [1]);
}

#[tokio::test]
async fn what_is_lost_or_wrong_about_turns_costs_some_turns_and_no_job() {
    let server = Server::start(&[]);
    let link = connect(&server).await;
    for words in [
        &["DEL", "queue:q:runs"][..],
        &["HSET", "queue:q:runs", "2", "x", "since", "nan", "last", "inf", "unread", "1e99", "-2", "999"],
        &["HSET", "queue:q:runs", "2", "-7", "since", "-5", "-2", "9223372036854775807"],
        &["SET", "queue:q:runs", "text"],
        // Written by a server that makes no difference.
        &["RPUSH", "queue:q:ready:2", &shown(777)],
    ] {
        link.apply(&[runs("q", 2, 40), runs("q", -2, 5), vec![ready("q", 1, 5)]].concat()).await.unwrap();
        assert!(server.cli(words).is_some());
        let more = (0..10).map(|nth| run("q", -2, number(-2, 100 + nth))).collect::<Vec<_>>();
        link.apply(&[vec![Move::Back(of_run("q", -2, number(-2, 99)))], more].concat()).await.unwrap();
        let mut n_found = 0;
        loop {
            let popped = pop(&link, &["q"], 3).await;
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
    let server = Server::start(&[]);
    let link = connect(&server).await;
    link.apply(&[run("q", 1, 1), run("q", 1, 2), run("q", 1, 3)]).await.unwrap();
    assert_eq!(
        server.lines(&["LRANGE", "queue:q:ready:1", "0", "0"]),
        [Uuid::from_u128(1).simple().to_string()]
    );
    link.apply(&[Move::Ended { at: of_run("q", 1, 2), ended: None }]).await.unwrap();
    assert_eq!(server.lines(&["HGETALL", "queue:q:runs"]), ["1", "2"]);
    let popped = link.pop(&names(&["q"]), 1, Timestamp(0)).await.unwrap().spots;
    assert_eq!(popped, [of_run("q", 1, 1)]);
    link.apply(&[Move::Back(popped[0].clone())]).await.unwrap();
    assert_eq!(pop(&link, &["q"], 9).await, [1, 3]);
    let (at, due) = (of_run("q", 1, 4), Timestamp(5));
    link.apply(&[Move::Delayed { at: at.clone(), ended: None, due, was_dead: false }]).await.unwrap();
    assert_eq!(link.pop(&names(&["q"]), 9, Timestamp(6)).await.unwrap().spots, [at]);
}

#[tokio::test]
async fn classes_behind_more_lists_than_are_looked_at_keep_their_turns() {
    let server = Server::start(&[]);
    let link = connect(&server).await;
    let plain = (100..230).map(|priority| ready("q", priority, number(priority, 0)));
    let moves = [runs("q", 300, 5), plain.collect(), runs("q", 0, 20), runs("q", -2, 5)].concat();
    link.apply(&moves).await.unwrap();
    assert_eq!(turns(&[&link], &["q"], 135, 27).await.last(), Some(&100));
    // The fifth of the highest had a turn that nobody wanted.
    assert_eq!(turns(&[&link], &["q"], 10, 1).await, [0, 0, 0, -2, 0, 0, 0, 0, -2, 0]);
}
