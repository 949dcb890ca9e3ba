//! A server takes over the calls of a dead one, and late answers are fenced.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use windlass_engine::input::CallOutcome;
use windlass_runtime::calls::function::Functions;
use windlass_runtime::{Runtime, Settings};
use windlass_store::run::RunStatus;
use windlass_store::{Memory, Store};

use crate::cluster::{Cluster, calls, end, go, publish, start, timer};

/// A function that answers when it is let go, and how often it was called.
fn held() -> (Functions, watch::Sender<bool>, Arc<AtomicUsize>) {
    let (let_go, held) = watch::channel(false);
    let n = Arc::new(AtomicUsize::new(0));
    let counted = n.clone();
    let functions = Functions::built_in().with_async("work", move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut held = held.clone();
        async move {
            held.wait_for(|let_go| *let_go).await.unwrap();
            CallOutcome::Done(Arc::new(json!("late")))
        }
    });
    (functions, let_go, n)
}

fn answers(word: &'static str) -> Functions {
    Functions::built_in().with_quick("work", move |_| CallOutcome::Done(Arc::new(json!(word))))
}

#[tokio::test]
async fn the_calls_of_a_dead_server_are_made_by_another_and_its_late_answer_is_refused() {
    let mut cluster = Cluster::of(0).await;
    let (functions, let_go, n) = held();
    let first = cluster.join(functions).await;
    let second = cluster.join(answers("soon")).await;
    let flow = publish(&first, "work", calls("work")).await;
    let run = start(&first, flow, json!({"x": 1})).await;
    cluster.until("the call is made", |_| n.load(Ordering::SeqCst) == 1).await;
    cluster.cut(0).await;
    assert_eq!(end(&second, run).await, RunStatus::Completed);
    let len = cluster.row(run).len;
    cluster.mend(0);
    let_go.send(true).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let row = cluster.row(run);
    assert_eq!((row.len, row.projection.shared.unwrap()["a"].clone()), (len, json!("soon")));
    assert_eq!(n.load(Ordering::SeqCst), 1, "it was made again by the one that lives");
}

#[tokio::test]
async fn a_dead_call_in_a_run_that_another_has_written_to_since_is_found() {
    let mut cluster = Cluster::of(0).await;
    let (functions, _let_go, n) = held();
    let first = cluster.join(functions).await;
    let second = cluster.join(answers("soon")).await;
    let flow = publish(&first, "work", calls("work")).await;
    let run = start(&first, flow, json!({"x": 1})).await;
    cluster.until("the call is made", |_| n.load(Ordering::SeqCst) == 1).await;
    // From here on the second owns it, and then forgets it.
    second.runs().submit(run, go()).await.unwrap();
    assert_eq!(cluster.row(run).projection.owner, Some(second.owner()));
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    cluster.cut(0).await;
    assert_eq!(end(&second, run).await, RunStatus::Completed);
}

#[tokio::test]
async fn a_server_that_deregisters_is_not_waited_for() {
    // A busy machine may be slow once; a server that has to be counted as dead first takes ten seconds every time.
    for _ in 0..4 {
        if taken_over_from_one_that_goes().await < Duration::from_secs(8) {
            return;
        }
    }
    panic!("those who go are counted as dead first");
}

async fn taken_over_from_one_that_goes() -> Duration {
    let mut cluster = Cluster::of(0).await;
    let (functions, _let_go, n) = held();
    let first = cluster.join(functions).await;
    let second = cluster.join(answers("soon")).await;
    let work = publish(&first, "work", calls("work")).await;
    let timed = publish(&first, "timer", timer(1_500)).await;
    let called = start(&first, work, json!({"x": 1})).await;
    let sleeps = start(&first, timed, json!({})).await;
    cluster.until("the call is made", |_| n.load(Ordering::SeqCst) == 1).await;
    let begun = tokio::time::Instant::now();
    first.shut_down(Duration::ZERO).await;
    assert_eq!(end(&second, called).await, RunStatus::Completed);
    assert_eq!(end(&second, sleeps).await, RunStatus::Completed);
    begun.elapsed()
}

#[tokio::test]
async fn a_server_that_cannot_say_that_it_lives_makes_no_calls() {
    let mut cluster = Cluster::of(0).await;
    let (functions, _let_go, n) = held();
    let first = cluster.join(functions).await;
    let flow = publish(&first, "work", calls("work")).await;
    cluster.cut(0).await;
    tokio::time::sleep(Duration::from_millis(5_300)).await;
    assert!(!first.troubles().is_empty());
    // Its link is back before its next heartbeat.
    cluster.mend(0);
    let run = start(&first, flow, json!({"x": 1})).await;
    cluster.until("it lives again, and makes the call", |_| n.load(Ordering::SeqCst) == 1).await;
    assert!(first.troubles().is_empty());
    assert!(cluster.row(run).projection.status.is_open());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_that_start_at_the_same_moment_are_told_apart() {
    for _ in 0..20 {
        let store: Arc<dyn Store> = Arc::new(Memory::shared());
        let starting: Vec<_> = (0..8)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move {
                    let settings = Settings::default();
                    Runtime::start_up(store, settings).await.unwrap()
                })
            })
            .collect();
        let mut lives = BTreeSet::new();
        for server in starting {
            let server = server.await.unwrap();
            assert!(lives.insert(server.owner().epoch), "two servers have the same number");
            server.shut_down(Duration::ZERO).await;
        }
    }
}
