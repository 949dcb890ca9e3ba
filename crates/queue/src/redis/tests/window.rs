//! The window of a queue: the first thousand jobs, filled from the store.

use super::*;

const WINDOW: u128 = 1_000;

fn messages(priority: i32, numbers: std::ops::Range<u128>) -> Vec<JobMessage> {
    numbers.map(|n| message("q", priority, n)).collect()
}

async fn add(connection: &RedisConnection, priority: i32, numbers: std::ops::Range<u128>) -> WindowNeeds {
    connection.apply(&numbers.map(|n| ready("q", priority, n)).collect::<Vec<_>>()).await.unwrap()
}

#[tokio::test]
async fn jobs_behind_the_window_stay_in_the_store_and_more_urgent_ones_push_the_last_out() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    assert_eq!(add(&connection, 0, 0..1_200).await, WindowNeeds::default());
    assert_eq!(listed(&server, "queue:q:ready"), (0..WINDOW).collect::<Vec<_>>());
    add(&connection, 7, 2_000..2_001).await;
    add(&connection, 0, 3_000..3_001).await;
    add(&connection, -1, 4_000..4_001).await;
    let list = listed(&server, "queue:q:ready");
    assert_eq!((list[0], list[1], list.len(), list[999]), (2_000, 0, 1_000, 998));
    // Room for them would come too early: the store has earlier ones.
    assert_eq!(pop(&connection, &["q"], 400).await.len(), 400);
    add(&connection, 0, 3_001..3_002).await;
    assert!(!listed(&server, "queue:q:ready").contains(&3_001));
    // A short window is filled by the server that hears of it first.
    let popped = connection.pop(&names(&["q"]), 101).await.unwrap();
    assert_eq!((popped.jobs.len(), popped.short), (101, names(&["q"])));
    assert_eq!(connection.pop(&names(&["q"]), 1).await.unwrap().short, [] as [&str; 0]);
    while !pop(&connection, &["q"], 100).await.is_empty() {}
    assert_eq!(connection.count_ready(&names(&["q"])).await.unwrap().ready, [None]);
}

#[tokio::test]
async fn a_fill_keeps_what_was_added_and_drops_what_was_popped_since_the_store_was_read() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    add(&connection, 0, 0..10).await;
    let window = connection.window("q").await.unwrap();
    assert_eq!(window.priorities().collect::<Vec<_>>(), [0; 10]);
    assert_eq!(pop(&connection, &["q"], 3).await, [0, 1, 2]);
    add(&connection, 5, 20..21).await;
    add(&connection, -5, 21..22).await;
    // The store had read these: one is not in the list yet, and one of the list is not ready any more.
    let read = [messages(0, 0..5), messages(0, 6..12)].concat();
    assert!(!connection.fill("q", &window, None, &read).await.unwrap());
    assert_eq!(listed(&server, "queue:q:ready"), [20, 3, 4, 6, 7, 8, 9, 10, 11, 21]);
    // The update of a job that the fill has added arrives late.
    add(&connection, 0, 11..12).await;
    assert_eq!(listed(&server, "queue:q:ready").iter().filter(|n| **n == 11).count(), 1);
    assert_eq!(server.lines(&["KEYS", "queue:*"]), ["queue:q:ready"]);
}

#[tokio::test]
async fn a_fill_that_reads_the_store_too_early_is_asked_for_again() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    connection.fill("q", &ReadyWindow::default(), Some(0), &messages(0, 0..10)).await.unwrap();
    let window = connection.window("q").await.unwrap();
    // The store is read to its end, and then gets a job that the list leaves to it.
    add(&connection, -1, 50..51).await;
    assert!(connection.fill("q", &window, None, &messages(0, 0..10)).await.unwrap());
    let window = connection.window("q").await.unwrap();
    let read = [messages(0, 0..10), messages(-1, 50..51)].concat();
    assert!(!connection.fill("q", &window, None, &read).await.unwrap());
    add(&connection, -1, 51..52).await;
    assert_eq!(listed(&server, "queue:q:ready")[9..], [9, 50, 51]);
}

#[tokio::test]
async fn a_window_that_claims_by_service_drain_is_filled_too() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    add(&connection, 0, 0..1_200).await;
    let held = |n: u128| RedisUpdate::Held {
        message: message("q", 0, n),
        was_ready: true,
        was_delayed: false,
        attempt: Uuid::from_u128(n),
        worker: "w".to_owned(),
        ms: 1_000,
    };
    assert_eq!(
        connection.apply(&(0..500).map(held).collect::<Vec<_>>()).await.unwrap(),
        WindowNeeds::default()
    );
    let needs = connection.apply(&[held(500)]).await.unwrap();
    assert_eq!(needs.short, names(&["q"]).into_iter().collect());
    assert_eq!(listed(&server, "queue:q:ready"), (501..WINDOW).collect::<Vec<_>>());
}

#[tokio::test]
async fn jobs_of_several_classes_of_runs_are_reported_so_that_a_fill_gives_each_its_share() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let run = |priority: i32, n: u128| {
        let message = message("q", priority, n);
        RedisUpdate::Ready { message, is_run: true, was_delayed: false, ended: None, revived: None }
    };
    let needs = connection.apply(&(0..5).map(|n| run(2, n)).collect::<Vec<_>>()).await.unwrap();
    assert_eq!(needs, WindowNeeds::default());
    let needs = connection.apply(&[run(-2, 9)]).await.unwrap();
    assert_eq!(needs.mixed, names(&["q"]).into_iter().collect());
    // Plain jobs have their order.
    assert_eq!(add(&connection, 1, 10..11).await, WindowNeeds::default());
}

#[tokio::test]
async fn a_turn_of_a_lower_class_does_not_hold_its_queue_back() {
    let server = RedisTestServer::start(&[]);
    let connection = connect(&server).await;
    let turns = [message("a", -2, 1), message("a", 2, 2), message("a", 2, 3)];
    connection.fill("a", &ReadyWindow::default(), None, &turns).await.unwrap();
    connection.apply(&[ready("b", 1, 4), ready("b", 1, 5)]).await.unwrap();
    assert_eq!(pop(&connection, &["b", "a"], 9).await, [1, 2, 3, 4, 5]);
}
