//! Servers, workers, prices, settings, the audit and logs: rows without a journal.

use serde_json::json;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::event::Level;
use windlass_engine::money::{Amount, Price};
use windlass_engine::plan::Priority;
use windlass_engine::project::Project;
use windlass_store::account::PriceRow;
use windlass_store::audit::{AuditContent, AuditHead, AuditQuery, AuditRow};
use windlass_store::commit::Commit;
use windlass_store::log::{LOGS_MAX, LogRow, LoggedLine, LogsOf};
use windlass_store::page::{LineOrder, NameRange};
use windlass_store::queue::{QueueLimits, QueueSettings};
use windlass_store::run::{Origin, Owner, RunProjection, RunStatus};
use windlass_store::server::ServerRow;
use windlass_store::service::{ServiceRow, ServiceSettings};
use windlass_store::signing::SigningSecret;
use windlass_store::worker::{WorkerAddress, WorkerBeat, WorkerQuery, WorkerRow};
use windlass_store::{Refusal, Store, StoreKey};

use crate::executor::side_by_side;
use crate::fixture::{StoreFixture, at, run_id, server};

fn server_row(owner: Owner, ms: i64) -> ServerRow {
    let (name, version) = ("here".to_owned(), "0.1.0".to_owned());
    ServerRow { owner, name, version, started_at: at(0), beat_at: at(ms), worker_ttl_ms: 20_000 }
}

fn worker(id: &str, services: &[&str], ms: i64) -> WorkerRow {
    WorkerRow {
        id: id.to_owned(),
        name: id.to_owned(),
        url: format!("push/{id}"),
        kind: "http".to_owned(),
        services: services.iter().map(|service| (*service).to_owned()).collect(),
        queues: Vec::new(),
        load: 0,
        capacity: 4,
        is_draining: false,
        peer: format!("10.0.0.{}", id.len()),
        replaced: vec![WorkerAddress { url: format!("older/{id}"), peer: String::new() }],
        secret: Some(SigningSecret::new(format!("whsec_{id}"))),
        registered_at: at(ms),
        beat_at: at(ms),
    }
}

pub async fn servers_beat_and_an_old_epoch_is_refused(store: &dyn Store) {
    for row in [server_row(server(1, 3), 5), server_row(server(2, 1), 5), server_row(server(1, 3), 9)] {
        store.save_server(row).await.unwrap();
    }
    assert!(store.save_server(server_row(server(1, 2), 99)).await.unwrap_err().is_conflict());
    let rows = store.servers().await.unwrap();
    assert_eq!(rows, [server_row(server(1, 3), 9), server_row(server(2, 1), 5)]);
    store.save_server(server_row(server(1, 4), 10)).await.unwrap();
    assert_eq!(store.servers().await.unwrap()[0].owner, server(1, 4));
}

pub async fn a_key_of_the_store_is_made_once(store: &dyn Store) {
    let fresh = |byte: u8| StoreKey::new([byte; 32]);
    let asked: Vec<_> = (1..=8).map(|byte| store.store_key("grants", fresh(byte))).collect();
    let made = side_by_side(asked).await;
    let first = made[0].as_ref().unwrap();
    assert!(made.iter().all(|key| key.as_ref().is_ok_and(|key| key == first)), "all servers get one key");
    assert!((1..=8).any(|byte| *first == fresh(byte)), "it is one of those that were offered");
    assert_eq!(store.store_key("grants", fresh(9)).await.unwrap(), *first);
    assert_eq!(store.store_key("others", fresh(9)).await.unwrap(), fresh(9));
}

pub async fn servers_not_heard_of_for_long_are_forgotten(store: &dyn Store) {
    let rows = [(1, 1, 5), (2, 2, 30), (3, 3, 5), (4, 4, 5)];
    for (id, epoch, beat_at) in rows {
        store.save_server(server_row(server(id, epoch), beat_at)).await.unwrap();
    }
    let fixture = StoreFixture::new(store).await;
    let owned = |_: &mut Origin, projection: &mut RunProjection| projection.owner = Some(server(3, 3));
    fixture.create(1, RunStatus::Running, at(1), owned).await.unwrap();
    store.delete_servers(at(20)).await.unwrap();
    let left = store.servers().await.unwrap().into_iter().map(|row| row.owner.epoch.0);
    // A live server and the owner of a run stay; the epochs of all continue from the last.
    assert_eq!(left.collect::<Vec<_>>(), [2, 3, 4]);
    fixture.commit(fixture.entry(1, 1, RunStatus::Waiting, at(2))).await.unwrap();
    store.delete_servers(at(20)).await.unwrap();
    let left = store.servers().await.unwrap().into_iter().map(|row| row.owner.epoch.0);
    assert_eq!(left.collect::<Vec<_>>(), [2, 4]);
}

pub async fn workers_register_beat_and_are_found(store: &dyn Store) {
    store.save_worker(&Project::DEFAULT, worker("b", &["sum", "route"], 10)).await.unwrap();
    store.save_worker(&Project::DEFAULT, worker("a", &["sum"], 20)).await.unwrap();
    let beat = WorkerBeat { id: "b".to_owned(), url: None, load: Some(3), at: at(30) };
    store.beat_worker(&Project::DEFAULT, beat).await.unwrap();
    let found = |query: WorkerQuery| async {
        store
            .workers(&Project::DEFAULT, query)
            .await
            .unwrap()
            .into_iter()
            .map(|row| row.id)
            .collect::<Vec<_>>()
    };
    let any = WorkerQuery::default;
    assert_eq!(found(any()).await, ["a", "b"]);
    assert_eq!(found(WorkerQuery { service: Some("route".to_owned()), ..any() }).await, ["b"]);
    assert_eq!(found(WorkerQuery { alive_since: Some(at(25)), ..any() }).await, ["b"]);
    assert_eq!(
        found(WorkerQuery { service: Some("sum".to_owned()), alive_since: Some(at(20)), ..any() }).await,
        ["a", "b"]
    );
    let row = store
        .workers(&Project::DEFAULT, WorkerQuery { ids: NameRange::One("b".to_owned()), ..any() })
        .await
        .unwrap()
        .remove(0);
    assert_eq!((row.url.as_str(), row.load, row.beat_at, row.registered_at), ("push/b", 3, at(30), at(10)));
}

pub async fn an_unknown_worker_is_told_to_register(store: &dyn Store) {
    let beat = WorkerBeat { id: "x".to_owned(), url: None, load: None, at: at(1) };
    let refused = store.beat_worker(&Project::DEFAULT, beat).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UnknownWorker("x".to_owned())));
    assert!(store.workers(&Project::DEFAULT, WorkerQuery::default()).await.unwrap().is_empty());
}

pub async fn a_worker_drains_until_it_registers_again(store: &dyn Store) {
    let drain = |id, is_draining| store.drain_worker(&Project::DEFAULT, id, is_draining);
    let is_draining = || async {
        let rows = store.workers(&Project::DEFAULT, WorkerQuery::default()).await.unwrap();
        rows.iter().map(|row| row.is_draining).collect::<Vec<_>>()
    };
    for id in ["a", "b"] {
        store.save_worker(&Project::DEFAULT, worker(id, &["sum"], 1)).await.unwrap();
    }
    drain("b", true).await.unwrap();
    let beat = WorkerBeat { id: "b".to_owned(), url: Some("push/c".to_owned()), load: Some(3), at: at(30) };
    store.beat_worker(&Project::DEFAULT, beat).await.unwrap();
    assert_eq!(is_draining().await, [false, true]);
    store.save_worker(&Project::DEFAULT, worker("b", &["sum"], 40)).await.unwrap();
    assert_eq!(is_draining().await, [false, false]);
    drain("a", true).await.unwrap();
    drain("a", false).await.unwrap();
    assert_eq!(is_draining().await, [false, false]);
    let refused = drain("x", true).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UnknownWorker("x".to_owned())));
}

pub async fn workers_not_heard_of_for_long_are_forgotten(store: &dyn Store) {
    for (id, beat_at) in [("a", 10), ("b", 20), ("c", 5)] {
        store.save_worker(&Project::DEFAULT, worker(id, &["sum"], beat_at)).await.unwrap();
    }
    let beat = WorkerBeat { id: "c".to_owned(), url: None, load: None, at: at(30) };
    store.beat_worker(&Project::DEFAULT, beat).await.unwrap();
    store.delete_workers(at(20), 10).await.unwrap();
    let left = store.workers(&Project::DEFAULT, WorkerQuery::default()).await.unwrap();
    assert_eq!(left.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    let late = WorkerBeat { id: "a".to_owned(), url: None, load: None, at: at(40) };
    let refused = store.beat_worker(&Project::DEFAULT, late).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UnknownWorker("a".to_owned())));
}

pub async fn prices_and_queue_settings_are_replaced(store: &dyn Store) {
    let price = |unit_price, ms| PriceRow {
        service: "tts".to_owned(),
        price: Price { unit_price, min_unit: 1, units: json!("$params.seconds"), actual_units: None },
        updated_at: at(ms),
    };
    store.set_price(&Project::DEFAULT, price(Amount(3), 1)).await.unwrap();
    store.set_price(&Project::DEFAULT, price(Amount(4), 2)).await.unwrap();
    assert_eq!(store.prices(&Project::DEFAULT).await.unwrap(), [price(Amount(4), 2)]);
    for _ in 0..2 {
        store.delete_price(&Project::DEFAULT, "tts").await.unwrap();
        assert!(store.prices(&Project::DEFAULT).await.unwrap().is_empty());
    }
    for is_paused in [true, false] {
        let settings = QueueSettings {
            name: "default".to_owned(),
            is_paused,
            limits: QueueLimits::default(),
            updated_at: at(1),
        };
        store.save_queue(&Project::DEFAULT, settings).await.unwrap();
        assert_eq!(
            store.queues(&Project::DEFAULT, NameRange::All, at(1)).await.unwrap()[0].is_paused,
            is_paused
        );
    }
}

pub async fn settings_of_services_are_replaced_and_removed(store: &dyn Store) {
    let service = |name: &str, recheck_ms, ms| ServiceRow {
        name: name.to_owned(),
        settings: ServiceSettings { recheck_ms, ..ServiceSettings::default() },
        updated_at: at(ms),
    };
    assert!(store.services(&Project::DEFAULT, NameRange::All).await.unwrap().is_empty());
    let audio = service("audio", Some(9_000), 2);
    for row in [service("video", Some(5_000), 1), audio.clone(), service("video", Some(700), 3)] {
        store.save_service(&Project::DEFAULT, row).await.unwrap();
    }
    assert_eq!(
        store.services(&Project::DEFAULT, NameRange::All).await.unwrap(),
        [audio.clone(), service("video", Some(700), 3)]
    );
    let every = ServiceSettings {
        recheck_ms: None,
        until_reported: true,
        timeout_ms: Some(1_800_000),
        calls_max: Some(4),
        priority: Some(Priority::High),
        secret: Some(SigningSecret::new("whsec_c2VjcmV0")),
    };
    let image = ServiceRow { name: "image".to_owned(), settings: every, updated_at: at(4) };
    store.save_service(&Project::DEFAULT, image.clone()).await.unwrap();
    let one = NameRange::One("image".to_owned());
    assert_eq!(store.services(&Project::DEFAULT, one).await.unwrap(), [image]);
    // A service without settings has no row, whether it had settings before or not.
    for name in ["video", "image"] {
        store.save_service(&Project::DEFAULT, service(name, None, 4)).await.unwrap();
    }
    assert_eq!(store.services(&Project::DEFAULT, NameRange::All).await.unwrap(), [audio]);
}

pub async fn the_audit_is_numbered_in_order(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let row = |n: u64| AuditRow {
        at: at(1),
        who: "me".to_owned(),
        what: "queue.pause".to_owned(),
        subject: format!("q{n}"),
        detail: json!({ "n": n }),
    };
    for n in [1, 3] {
        let audit = vec![row(n), row(n + 1)];
        fixture
            .commit(Commit { audit, ..Commit::new(&Project::DEFAULT, fixture.command(), at(1)) })
            .await
            .unwrap();
    }
    let numbered = async |query: AuditQuery| {
        let lines = store.audit(&Project::DEFAULT, query).await.unwrap();
        lines.into_iter().map(|line| (line.seq, line.row)).collect::<Vec<_>>()
    };
    assert_eq!(numbered(AuditQuery::default()).await, [1, 2, 3, 4].map(|n| (Seq(n), row(n))));
    let part = AuditQuery { after: Seq(1), limit: 2, ..AuditQuery::default() };
    assert_eq!(numbered(part).await, [2, 3].map(|n| (Seq(n), row(n))));
}

pub async fn each_line_of_the_audit_has_the_hash_of_the_line_before(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let other = Project::new("other").unwrap();
    let row = |subject: &str| AuditRow {
        at: at(1),
        who: "m\0e ü".to_owned(),
        what: "queue.pause".to_owned(),
        subject: subject.to_owned(),
        detail: json!({ "z": 1.5, "a": [null, "\u{1}", -0.0, u64::MAX] }),
    };
    assert_eq!(store.audit_head(&Project::DEFAULT).await.unwrap(), AuditHead::EMPTY);
    for (project, audit) in [
        (&Project::DEFAULT, vec![row("a"), row("b")]),
        (&other, vec![row("a")]),
        (&Project::DEFAULT, vec![row("c")]),
    ] {
        fixture.commit(Commit { audit, ..Commit::new(project, fixture.command(), at(1)) }).await.unwrap();
    }
    for (project, n_lines) in [(&Project::DEFAULT, 3), (&other, 1)] {
        let mut head = AuditHead::EMPTY;
        for line in store.audit(project, AuditQuery::default()).await.unwrap() {
            head = head.next(&AuditContent::of(project, &line.row));
            assert_eq!((line.seq, line.hash), (head.seq, head.hash));
        }
        assert_eq!(head.seq, Seq(n_lines));
        assert_eq!(store.audit_head(project).await.unwrap(), head);
    }
}

pub async fn the_audit_is_read_in_both_orders_and_by_user_action_and_subject(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let row = |who: &str, what: &str, subject: &str| AuditRow {
        at: at(1),
        who: who.to_owned(),
        what: what.to_owned(),
        subject: subject.to_owned(),
        detail: json!({}),
    };
    let audit = vec![
        row("ann", "run.cancel", "r1"),
        row("bob", "run.cancel", "r2"),
        row("ann", "queue.pause", "r1"),
        row("a\0n", "run.cancel", "größe"),
        row("ann", "run.cancel", "r1"),
    ];
    fixture
        .commit(Commit { audit, ..Commit::new(&Project::DEFAULT, fixture.command(), at(1)) })
        .await
        .unwrap();
    let of = |who: &str, what: &str, subject: &str| {
        let said = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (who, what, subject) = (said(who), said(what), said(subject));
        AuditQuery { who, what, subject, order: LineOrder::Newest, ..AuditQuery::default() }
    };
    let seqs = async |query: AuditQuery| -> Vec<u64> {
        store.audit(&Project::DEFAULT, query).await.unwrap().into_iter().map(|line| line.seq.0).collect()
    };
    assert_eq!(seqs(of("", "", "")).await, [5, 4, 3, 2, 1]);
    assert_eq!(seqs(AuditQuery { limit: 2, ..of("", "", "") }).await, [5, 4]);
    assert_eq!(seqs(AuditQuery { limit: 2, after: Seq(4), ..of("", "", "") }).await, [3, 2]);
    assert!(seqs(AuditQuery { after: Seq(1), ..of("", "", "") }).await.is_empty());
    assert_eq!(seqs(of("ann", "", "")).await, [5, 3, 1]);
    assert_eq!(seqs(of("a\0n", "", "größe")).await, [4]);
    assert_eq!(seqs(of("ann", "run.cancel", "r1")).await, [5, 1]);
    assert_eq!(seqs(AuditQuery { after: Seq(5), limit: 1, ..of("ann", "run.cancel", "r1") }).await, [1]);
    let upwards = AuditQuery { order: LineOrder::Oldest, after: Seq(1), ..of("ann", "", "") };
    assert_eq!(seqs(upwards).await, [3, 5]);
    assert!(seqs(of("", "run", "")).await.is_empty(), "it is not a beginning that is asked for");
}

fn log_row(run: u64, entry: u64, fence: u64) -> LogRow {
    let said = |level, data| LoggedLine { level, message: format!("half\0 of {run}"), data };
    let lines = vec![said(Level::Info, json!(null)), said(Level::Error, json!({"fence": fence}))];
    let text = format!("{run}/{entry}/{fence}\nand the rest\0 of it");
    LogRow {
        run: run_id(run),
        entry: Seq(entry),
        fence: Fence(fence),
        node: "a/b".into(),
        at: at(5),
        text,
        lines,
    }
}

impl StoreFixture<'_> {
    async fn log(&self, row: LogRow) {
        self.commit(Commit { logs: vec![row], ..Commit::new(&Project::DEFAULT, self.command(), at(5)) })
            .await
            .unwrap();
    }
}

pub async fn a_log_is_written_with_its_commit_or_not_at_all(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create(1, RunStatus::Running, at(1), |_, _| {}).await.unwrap();
    let all = LogsOf::After { entry: Seq::ZERO, fence: Fence(0) };
    let late = fixture.entry(1, 0, RunStatus::Running, at(2));
    fixture.commit(Commit { logs: vec![log_row(1, 2, 7)], ..late }).await.unwrap_err();
    assert_eq!(store.logs(&Project::DEFAULT, run_id(1), all).await.unwrap(), []);
    let next = fixture.entry(1, 1, RunStatus::Running, at(2));
    fixture.commit(Commit { logs: vec![log_row(1, 2, 7), log_row(1, 2, 8)], ..next }).await.unwrap();
    assert_eq!(
        store.logs(&Project::DEFAULT, run_id(1), all).await.unwrap(),
        [log_row(1, 2, 7), log_row(1, 2, 8)]
    );
    let twice = vec![log_row(1, 3, 7), log_row(1, 3, 7)];
    let refused = fixture
        .commit(Commit { logs: twice, ..Commit::new(&Project::DEFAULT, fixture.command(), at(5)) })
        .await
        .unwrap_err();
    assert!(matches!(refused.refusal(), Some(Refusal::Malformed(_))), "{refused}");
}

pub async fn logs_of_a_run_come_by_entry_and_those_of_unknown_runs_are_not_kept(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for run in [1, 2] {
        fixture.create(run, RunStatus::Running, at(1), |_, _| {}).await.unwrap();
    }
    for (run, entry, fence) in [(1, 12, 2), (2, 3, 1), (1, 3, 9), (1, 3, 2), (9, 3, 1)] {
        fixture.log(log_row(run, entry, fence)).await;
    }
    let after = |run: u64, entry, fence| {
        store.logs(&Project::DEFAULT, run_id(run), LogsOf::After { entry: Seq(entry), fence: Fence(fence) })
    };
    let rows = [log_row(1, 3, 2), log_row(1, 3, 9), log_row(1, 12, 2)];
    assert_eq!(after(1, 0, 0).await.unwrap(), rows);
    assert_eq!(after(1, 3, 2).await.unwrap(), rows[1..]);
    assert_eq!(after(1, 3, 9).await.unwrap(), rows[2..]);
    assert!(after(1, 12, 2).await.unwrap().is_empty());
    let attempt = |run: u64, fence| store.logs(&Project::DEFAULT, run_id(run), LogsOf::Attempt(Fence(fence)));
    assert_eq!(attempt(1, 2).await.unwrap(), [log_row(1, 3, 2), log_row(1, 12, 2)]);
    assert!(attempt(1, 4).await.unwrap().is_empty());
    assert!(after(9, 0, 0).await.unwrap().is_empty());
}

pub async fn more_logs_than_are_read_at_once_are_read_in_parts(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create(1, RunStatus::Running, at(1), |_, _| {}).await.unwrap();
    let rows: Vec<LogRow> = (1..=LOGS_MAX as u64 + 5).map(|n| log_row(1, n / 3 + 1, n)).collect();
    fixture
        .commit(Commit { logs: rows.clone(), ..Commit::new(&Project::DEFAULT, fixture.command(), at(5)) })
        .await
        .unwrap();
    let (mut seen, mut last) = (Vec::new(), (Seq::ZERO, Fence::ZERO));
    loop {
        let part = store
            .logs(&Project::DEFAULT, run_id(1), LogsOf::After { entry: last.0, fence: last.1 })
            .await
            .unwrap();
        assert!(part.len() <= LOGS_MAX);
        let Some(row) = part.last() else { break };
        last = (row.entry, row.fence);
        seen.extend(part);
    }
    assert_eq!(seen, rows);
}
