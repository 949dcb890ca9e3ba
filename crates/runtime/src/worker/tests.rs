use std::sync::Arc;

use windlass_store::{Memory, Store};

use super::*;
use crate::call::tests::order;

async fn server(store: &Arc<Memory>, settings: Settings) -> Runtime {
    Runtime::start_up(store.clone() as Arc<dyn Store>, settings).await.unwrap()
}

fn row(runtime: &Runtime, id: &str, service: &str) -> WorkerRow {
    let now = runtime.clock().now();
    WorkerRow {
        id: id.to_owned(),
        name: id.to_owned(),
        url: "http://127.0.0.1:9".to_owned(),
        kind: "http".to_owned(),
        services: vec![service.to_owned()],
        queues: Vec::new(),
        load: 0,
        capacity: 0,
        is_draining: false,
        registered_at: now,
        beat_at: now,
    }
}

fn beat(runtime: &Runtime, id: &str) -> WorkerBeat {
    WorkerBeat { id: id.to_owned(), url: None, load: None, at: runtime.clock().now() }
}

#[tokio::test]
async fn a_worker_is_known_to_the_store_and_to_servers_that_start_later() {
    let store = Arc::new(Memory::new());
    let first = server(&store, Settings::default()).await;
    first.register(row(&first, "a", "s")).await.unwrap();
    assert_eq!(first.allocate("s").await.unwrap().unwrap().id, "a");
    let second = server(&store, Settings::default()).await;
    assert_eq!(second.allocate("s").await.unwrap().unwrap().id, "a");
    assert_eq!(second.workers(WorkerQuery::default()).await.unwrap().len(), 1);
    assert_eq!(second.allocate("t").await.unwrap(), None);
}

#[tokio::test]
async fn what_a_worker_said_to_another_server_is_learned_by_refreshing() {
    let store = Arc::new(Memory::new());
    let (first, second) =
        (server(&store, Settings::default()).await, server(&store, Settings::default()).await);
    assert_eq!(second.allocate("s").await.unwrap(), None);
    first.register(row(&first, "a", "s")).await.unwrap();
    second.refresh_workers().await;
    assert_eq!(second.allocate("s").await.unwrap().unwrap().id, "a");
}

#[tokio::test]
async fn a_sign_of_life_updates_and_an_unknown_worker_is_told_to_register() {
    let store = Arc::new(Memory::new());
    let (first, second) =
        (server(&store, Settings::default()).await, server(&store, Settings::default()).await);
    assert!(!first.beat(beat(&first, "a")).await.unwrap());
    first.register(row(&first, "a", "s")).await.unwrap();
    let url = Some("http://127.0.0.1:10".to_owned());
    let told = WorkerBeat { url, load: Some(7), ..beat(&second, "a") };
    assert!(second.beat(told).await.unwrap(), "it registered with the other server");
    let known = second.allocate("s").await.unwrap().unwrap();
    assert_eq!((known.url.as_str(), known.load), ("http://127.0.0.1:10", 7));
    let empty = WorkerBeat { url: Some(String::new()), ..beat(&second, "a") };
    assert!(second.beat(empty).await.unwrap());
    let stored = second.workers(WorkerQuery::default()).await.unwrap().remove(0);
    assert_eq!((stored.url.as_str(), stored.load), ("http://127.0.0.1:10", 7));
}

#[tokio::test]
async fn an_address_that_may_not_be_called_is_refused_and_nothing_is_stored() {
    let store = Arc::new(Memory::new());
    let runtime = server(&store, Settings::default()).await;
    for url in ["http://10.0.0.5:9001", "http://169.254.169.254", "ftp://127.0.0.1", "nowhere"] {
        let worker = WorkerRow { url: url.to_owned(), ..row(&runtime, "a", "s") };
        let refused = runtime.register(worker).await.unwrap_err();
        assert!(matches!(&refused, RegisterError::Address(text) if text.contains(url)), "{refused}");
    }
    assert_eq!(runtime.workers(WorkerQuery::default()).await.unwrap(), []);
    runtime.register(row(&runtime, "a", "s")).await.unwrap();
    let moved = WorkerBeat { url: Some("http://0.0.0.0".to_owned()), ..beat(&runtime, "a") };
    assert!(matches!(runtime.beat(moved).await, Err(RegisterError::Address(_))));
    let open = server(&store, Settings { allow_worker_net: true, ..Settings::default() }).await;
    let private = WorkerRow { url: "http://10.0.0.5:9001".to_owned(), ..row(&open, "b", "s") };
    open.register(private).await.unwrap();
}

#[tokio::test]
async fn a_worker_that_only_claims_may_be_anywhere() {
    let store = Arc::new(Memory::new());
    let runtime = server(&store, Settings::default()).await;
    for (id, kind, url) in [("a", "async", ""), ("b", "async", "http://10.0.0.5"), ("c", "", "")] {
        let worker = WorkerRow { kind: kind.to_owned(), url: url.to_owned(), ..row(&runtime, id, "s") };
        runtime.register(worker).await.unwrap();
    }
    assert_eq!(runtime.workers(WorkerQuery::default()).await.unwrap().len(), 3);
}

#[tokio::test]
async fn what_a_worker_says_of_itself_has_limits() {
    let store = Arc::new(Memory::new());
    let runtime = server(&store, Settings::default()).await;
    let whole = row(&runtime, "a", "s");
    let bad = [
        WorkerRow { id: String::new(), ..whole.clone() },
        WorkerRow { id: "x".repeat(256), ..whole.clone() },
        WorkerRow { services: vec!["x".repeat(256)], ..whole.clone() },
        WorkerRow { services: vec!["x".to_owned(); NAMES_MAX + 1], ..whole.clone() },
        WorkerRow { queues: vec!["x".to_owned(); NAMES_MAX + 1], ..whole.clone() },
    ];
    for worker in bad {
        assert!(matches!(runtime.register(worker).await, Err(RegisterError::Invalid(_))));
    }
}

#[tokio::test]
async fn a_worker_that_is_silent_too_long_gets_nothing_until_it_is_heard_again() {
    let store = Arc::new(Memory::new());
    let settings = Settings { worker_ttl: Duration::from_secs(15), ..Settings::default() };
    let runtime = server(&store, settings).await;
    let now = runtime.clock().now();
    let worker = WorkerRow { beat_at: Timestamp(now.0 - 16_000), ..row(&runtime, "a", "s") };
    runtime.register(worker).await.unwrap();
    assert_eq!(runtime.allocate("s").await.unwrap(), None);
    runtime.refresh_workers().await;
    assert!(runtime.registry().desk().worker("a").is_none(), "it is forgotten here");
    assert!(runtime.beat(beat(&runtime, "a")).await.unwrap());
    assert_eq!(runtime.allocate("s").await.unwrap().unwrap().id, "a");
}

#[tokio::test]
async fn a_worker_from_the_future_lives_no_longer_than_others() {
    let store = Arc::new(Memory::new());
    let runtime = server(&store, Settings::default()).await;
    let ahead = runtime.clock().now().after(3_600_000);
    runtime.register(WorkerRow { beat_at: ahead, ..row(&runtime, "a", "s") }).await.unwrap();
    runtime.beat(WorkerBeat { at: ahead, ..beat(&runtime, "a") }).await.unwrap();
    let stored = runtime.workers(WorkerQuery::default()).await.unwrap().remove(0);
    assert!(stored.beat_at < ahead);
}

#[tokio::test]
async fn a_call_after_an_outage_waits_for_the_sign_of_life_of_its_worker() {
    let store = Arc::new(Memory::new());
    let before = server(&store, Settings::default()).await;
    let last = Timestamp(before.clock().now().0 - 60_000);
    store.save(Record::Worker(WorkerRow { beat_at: last, ..row(&before, "a", "s") })).await.unwrap();
    before.shut_down(Duration::ZERO).await;
    let after = server(&store, Settings::default()).await;
    let known = windlass_engine::effect::Order {
        service: "s".to_owned(),
        ..order(windlass_engine::plan::Exec::Http)
    };
    let mut place = Place::ask(&after, &known).await.unwrap().expect("it is waited for");
    after.refresh_workers().await;
    assert!(after.beat(beat(&after, "a")).await.unwrap());
    assert_eq!(place.worker().await.unwrap().id, "a");
    let unknown = windlass_engine::effect::Order { service: "t".to_owned(), ..known };
    assert!(matches!(Place::ask(&after, &unknown).await.unwrap(), Err(Nobody::Alive)));
}

#[tokio::test]
async fn a_worker_that_is_to_go_is_not_called_any_more() {
    let store = Arc::new(Memory::new());
    let runtime = server(&store, Settings::default()).await;
    runtime.register(row(&runtime, "a", "s")).await.unwrap();
    runtime.register(row(&runtime, "b", "s")).await.unwrap();
    assert!(runtime.drain_worker("a", true).await.unwrap());
    runtime.beat(beat(&runtime, "a")).await.unwrap();
    let order = windlass_engine::effect::Order {
        service: "s".to_owned(),
        ..order(windlass_engine::plan::Exec::Http)
    };
    for _ in 0..3 {
        assert_eq!(runtime.allocate("s").await.unwrap().unwrap().id, "b");
        let mut place = Place::ask(&runtime, &order).await.unwrap().unwrap();
        assert_eq!(place.worker().await.unwrap().id, "b");
    }
    assert!(runtime.drain_worker("b", true).await.unwrap());
    assert!(matches!(Place::ask(&runtime, &order).await.unwrap(), Err(Nobody::Alive)));
    assert!(runtime.drain_worker("a", false).await.unwrap());
    assert_eq!(runtime.allocate("s").await.unwrap().unwrap().id, "a");
}
