use std::sync::Arc;

use windlass_engine::project::Project;
use windlass_store::{Memory, Store};

use super::*;
use crate::Runtime;
use crate::calls::tests::spec;

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
        peer: String::new(),
        replaced: Vec::new(),
        secret: None,
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
    first.workers().register(row(&first, "a", "s")).await.unwrap();
    assert_eq!(first.workers().allocate("s").await.unwrap().unwrap().id, "a");
    let second = server(&store, Settings::default()).await;
    assert_eq!(second.workers().allocate("s").await.unwrap().unwrap().id, "a");
    assert_eq!(second.workers().list(WorkerQuery::default()).await.unwrap().len(), 1);
    assert_eq!(second.workers().allocate("t").await.unwrap(), None);
}

#[tokio::test]
async fn a_heartbeat_at_another_server_is_learned_by_refreshing() {
    let store = Arc::new(Memory::new());
    let (first, second) =
        (server(&store, Settings::default()).await, server(&store, Settings::default()).await);
    assert_eq!(second.workers().allocate("s").await.unwrap(), None);
    first.workers().register(row(&first, "a", "s")).await.unwrap();
    second.workers().refresh_workers().await;
    assert_eq!(second.workers().allocate("s").await.unwrap().unwrap().id, "a");
}

#[tokio::test]
async fn a_heartbeat_updates_a_worker_and_an_unknown_one_has_to_register() {
    let store = Arc::new(Memory::new());
    let (first, second) =
        (server(&store, Settings::default()).await, server(&store, Settings::default()).await);
    assert_eq!(first.workers().beat(beat(&first, "a"), "").await.unwrap(), BeatVerdict::Unknown);
    first.workers().register(row(&first, "a", "s")).await.unwrap();
    let url = Some("http://127.0.0.1:10".to_owned());
    let told = WorkerBeat { url, load: Some(7), ..beat(&second, "a") };
    let verdict = second.workers().beat(told, "").await.unwrap();
    assert_eq!(verdict, BeatVerdict::Known, "it registered with the other server");
    let known = second.workers().allocate("s").await.unwrap().unwrap();
    assert_eq!((known.url.as_str(), known.load), ("http://127.0.0.1:10", 7));
    let empty = WorkerBeat { url: Some(String::new()), ..beat(&second, "a") };
    assert_eq!(second.workers().beat(empty, "").await.unwrap(), BeatVerdict::Known);
    let stored = second.workers().list(WorkerQuery::default()).await.unwrap().remove(0);
    assert_eq!((stored.url.as_str(), stored.load), ("http://127.0.0.1:10", 7));
}

#[tokio::test]
async fn an_address_that_may_not_be_called_is_refused_and_nothing_is_stored() {
    let store = Arc::new(Memory::new());
    let runtime = server(&store, Settings::default()).await;
    for url in ["http://10.0.0.5:9001", "http://169.254.169.254", "ftp://127.0.0.1", "nowhere"] {
        let worker = WorkerRow { url: url.to_owned(), ..row(&runtime, "a", "s") };
        let refused = runtime.workers().register(worker).await.unwrap_err();
        assert!(matches!(&refused, RegisterError::Address(text) if text.contains(url)), "{refused}");
    }
    assert_eq!(runtime.workers().list(WorkerQuery::default()).await.unwrap(), []);
    runtime.workers().register(row(&runtime, "a", "s")).await.unwrap();
    let moved = WorkerBeat { url: Some("http://0.0.0.0".to_owned()), ..beat(&runtime, "a") };
    assert!(matches!(runtime.workers().beat(moved, "").await, Err(RegisterError::Address(_))));
    let open = server(&store, Settings { allow_worker_net: true, ..Settings::default() }).await;
    let private = WorkerRow { url: "http://10.0.0.5:9001".to_owned(), ..row(&open, "b", "s") };
    open.workers().register(private).await.unwrap();
}

#[tokio::test]
async fn a_worker_that_only_claims_may_be_anywhere() {
    let store = Arc::new(Memory::new());
    let runtime = server(&store, Settings::default()).await;
    for (id, kind, url) in [("a", "async", ""), ("b", "async", "http://10.0.0.5"), ("c", "", "")] {
        let worker = WorkerRow { kind: kind.to_owned(), url: url.to_owned(), ..row(&runtime, id, "s") };
        runtime.workers().register(worker).await.unwrap();
    }
    assert_eq!(runtime.workers().list(WorkerQuery::default()).await.unwrap().len(), 3);
}

#[tokio::test]
async fn the_fields_of_a_worker_have_limits() {
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
        assert!(matches!(runtime.workers().register(worker).await, Err(RegisterError::Invalid(_))));
    }
}

#[tokio::test]
async fn a_worker_that_is_silent_too_long_gets_nothing_until_it_is_heard_again() {
    let store = Arc::new(Memory::new());
    let settings = Settings { worker_ttl: Duration::from_secs(15), ..Settings::default() };
    let runtime = server(&store, settings).await;
    let now = runtime.clock().now();
    let worker = WorkerRow { beat_at: Timestamp(now.0 - 16_000), ..row(&runtime, "a", "s") };
    runtime.workers().register(worker).await.unwrap();
    assert_eq!(runtime.workers().allocate("s").await.unwrap(), None);
    runtime.workers().refresh_workers().await;
    assert!(runtime.workers().state().pool().worker("a").is_none(), "it is forgotten here");
    assert_eq!(runtime.workers().beat(beat(&runtime, "a"), "").await.unwrap(), BeatVerdict::Known);
    assert_eq!(runtime.workers().allocate("s").await.unwrap().unwrap().id, "a");
}

#[tokio::test]
async fn a_worker_from_the_future_lives_no_longer_than_others() {
    let store = Arc::new(Memory::new());
    let runtime = server(&store, Settings::default()).await;
    let ahead = runtime.clock().now().after(3_600_000);
    runtime.workers().register(WorkerRow { beat_at: ahead, ..row(&runtime, "a", "s") }).await.unwrap();
    runtime.workers().beat(WorkerBeat { at: ahead, ..beat(&runtime, "a") }, "").await.unwrap();
    let stored = runtime.workers().list(WorkerQuery::default()).await.unwrap().remove(0);
    assert!(stored.beat_at < ahead);
}

#[tokio::test]
async fn a_call_after_an_outage_waits_for_the_heartbeat_of_its_worker() {
    let store = Arc::new(Memory::new());
    let before = server(&store, Settings::default()).await;
    let last = Timestamp(before.clock().now().0 - 60_000);
    store
        .save_worker(&Project::DEFAULT, WorkerRow { beat_at: last, ..row(&before, "a", "s") })
        .await
        .unwrap();
    before.shut_down(Duration::ZERO).await;
    let after = server(&store, Settings::default()).await;
    let known = windlass_engine::effect::CallSpec {
        service: "s".to_owned(),
        ..spec(windlass_engine::plan::Exec::Http)
    };
    let mut permit = WorkerPermit::ask(after.workers(), &known).await.expect("it is waited for");
    after.workers().refresh_workers().await;
    assert_eq!(after.workers().beat(beat(&after, "a"), "").await.unwrap(), BeatVerdict::Known);
    assert_eq!(permit.worker().await.unwrap().id, "a");
    let unknown = windlass_engine::effect::CallSpec { service: "t".to_owned(), ..known };
    assert!(matches!(
        WorkerPermit::ask(after.workers(), &unknown).await,
        Err(PermitError::NoWorker(NoWorker::NoneAlive))
    ));
}

#[tokio::test]
async fn a_draining_worker_is_not_called_any_more() {
    let store = Arc::new(Memory::new());
    let runtime = server(&store, Settings::default()).await;
    runtime.workers().register(row(&runtime, "a", "s")).await.unwrap();
    runtime.workers().register(row(&runtime, "b", "s")).await.unwrap();
    assert!(runtime.workers().drain_worker("a", true).await.unwrap());
    runtime.workers().beat(beat(&runtime, "a"), "").await.unwrap();
    let spec = windlass_engine::effect::CallSpec {
        service: "s".to_owned(),
        ..spec(windlass_engine::plan::Exec::Http)
    };
    for _ in 0..3 {
        assert_eq!(runtime.workers().allocate("s").await.unwrap().unwrap().id, "b");
        let mut permit = WorkerPermit::ask(runtime.workers(), &spec).await.unwrap();
        assert_eq!(permit.worker().await.unwrap().id, "b");
    }
    assert!(runtime.workers().drain_worker("b", true).await.unwrap());
    assert!(matches!(
        WorkerPermit::ask(runtime.workers(), &spec).await,
        Err(PermitError::NoWorker(NoWorker::NoneAlive))
    ));
    assert!(runtime.workers().drain_worker("a", false).await.unwrap());
    assert_eq!(runtime.workers().allocate("s").await.unwrap().unwrap().id, "a");
}

#[tokio::test]
async fn a_worker_whose_id_was_taken_from_another_address_is_told_so() {
    let store = Arc::new(Memory::shared());
    let (first, second) =
        (server(&store, Settings::default()).await, server(&store, Settings::default()).await);
    let at = |url: &str, peer: &str| WorkerRow {
        url: url.to_owned(),
        kind: if url.is_empty() { "async" } else { "http" }.to_owned(),
        peer: peer.to_owned(),
        ..row(&first, "w", "s")
    };
    let beat_of = |url: &str| WorkerBeat { url: Some(url.to_owned()), ..beat(&first, "w") };
    let (old, new) = ("http://127.0.0.1:1", "http://127.0.0.1:2");

    assert_eq!(first.workers().register(at(old, "10.0.0.1")).await.unwrap(), None);
    assert_eq!(first.workers().register(at(old, "10.0.0.9")).await.unwrap(), None, "the url is the same");
    let taken_from = first.workers().register(at(new, "10.0.0.2")).await.unwrap();
    assert_eq!(taken_from, Some(WorkerAddress { url: old.to_owned(), peer: "10.0.0.9".to_owned() }));
    second.workers().refresh_workers().await;
    for server in [&first, &second] {
        let workers = server.workers();
        assert_eq!(workers.beat(beat_of(old), "10.0.0.9").await.unwrap(), BeatVerdict::Lost);
        assert_eq!(workers.beat(beat_of(new), "10.0.0.2").await.unwrap(), BeatVerdict::Known);
        assert!(workers.is_replaced("w", "10.0.0.9") && !workers.is_replaced("w", "10.0.0.2"));
        assert!(!workers.is_replaced("other", "10.0.0.9") && !workers.is_replaced("w", ""));
    }
    // The newer one registers again after a restart of the server: the older one is still the older one.
    assert_eq!(first.workers().register(at(new, "10.0.0.2")).await.unwrap(), None);
    assert_eq!(first.workers().beat(beat_of(old), "10.0.0.9").await.unwrap(), BeatVerdict::Lost);
    // The older one can take the id back; the other is told then.
    assert!(first.workers().register(at(old, "10.0.0.9")).await.unwrap().is_some());
    assert_eq!(first.workers().beat(beat_of(new), "10.0.0.2").await.unwrap(), BeatVerdict::Lost);
    assert_eq!(first.workers().beat(beat_of(old), "10.0.0.9").await.unwrap(), BeatVerdict::Known);
}

#[tokio::test]
async fn every_worker_that_had_the_id_before_is_told_so() {
    let store = Arc::new(Memory::new());
    let server = server(&store, Settings::default()).await;
    let workers = server.workers();
    let peer = |n: usize| format!("10.0.0.{n}");
    for n in 1..=3 {
        let row = WorkerRow {
            peer: peer(n),
            kind: "async".to_owned(),
            url: String::new(),
            ..row(&server, "w", "s")
        };
        workers.register(row).await.unwrap();
    }
    let told = async |n: usize| workers.beat(beat(&server, "w"), &peer(n)).await.unwrap();
    assert_eq!((told(1).await, told(2).await), (BeatVerdict::Lost, BeatVerdict::Lost));
    assert_eq!(told(3).await, BeatVerdict::Known);
    let again =
        WorkerRow { peer: peer(1), kind: "async".to_owned(), url: String::new(), ..row(&server, "w", "s") };
    workers.register(again).await.unwrap();
    assert_eq!((told(1).await, told(3).await), (BeatVerdict::Known, BeatVerdict::Lost));
    for n in 10..40 {
        let row = WorkerRow {
            peer: peer(n),
            kind: "async".to_owned(),
            url: String::new(),
            ..row(&server, "w", "s")
        };
        workers.register(row).await.unwrap();
    }
    let found = workers.list(WorkerQuery::default()).await.unwrap();
    assert_eq!(found[0].replaced.len(), 8, "a bounded number is remembered");
}

#[tokio::test]
async fn a_worker_without_a_url_is_known_by_its_network_address() {
    let store = Arc::new(Memory::new());
    let runtime = server(&store, Settings::default()).await;
    let from = |peer: &str| WorkerRow {
        url: String::new(),
        kind: "async".to_owned(),
        peer: peer.to_owned(),
        ..row(&runtime, "w", "s")
    };
    assert_eq!(runtime.workers().register(from("10.0.0.1")).await.unwrap(), None);
    assert_eq!(runtime.workers().register(from("10.0.0.1")).await.unwrap(), None, "a restart");
    assert_eq!(runtime.workers().register(from("")).await.unwrap(), None, "no address is seen");
    assert_eq!(runtime.workers().register(from("10.0.0.1")).await.unwrap(), None);
    assert!(runtime.workers().register(from("10.0.0.2")).await.unwrap().is_some());
    assert_eq!(runtime.workers().beat(beat(&runtime, "w"), "10.0.0.1").await.unwrap(), BeatVerdict::Lost);
    assert_eq!(runtime.workers().beat(beat(&runtime, "w"), "10.0.0.2").await.unwrap(), BeatVerdict::Known);
}

#[tokio::test]
async fn the_id_of_a_dead_worker_is_free() {
    let store = Arc::new(Memory::new());
    let runtime = server(&store, Settings::default()).await;
    let silent = Timestamp(runtime.clock().now().0 - 60_000);
    let dead = WorkerRow { beat_at: silent, ..row(&runtime, "w", "s") };
    store.save_worker(&Project::DEFAULT, dead).await.unwrap();
    let moved = WorkerRow { url: "http://127.0.0.1:2".to_owned(), ..row(&runtime, "w", "s") };
    assert_eq!(runtime.workers().register(moved).await.unwrap(), None);
}
