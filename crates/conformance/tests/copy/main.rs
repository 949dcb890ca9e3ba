//! Copies of a store into another backend.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod ledger;
mod views;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use uuid::Uuid;
use windlass_conformance::block_on_tokio;
use windlass_conformance::fixture::publication;
use windlass_conformance::postgres_server::shared;
use windlass_conformance::test_directory::TestDirectory;
use windlass_engine::counter::Epoch;
use windlass_engine::id::{CommandId, ServerId};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::audit::{AuditContent, AuditHead, AuditQuery, AuditRow};
use windlass_store::commit::Commit;
use windlass_store::copy::{Compared, CopyError, StoreAddress, copy};
use windlass_store::run::Owner;
use windlass_store::server::ServerRow;
use windlass_store::worker::{WorkerQuery, WorkerRow};
use windlass_store::{Durability, Postgres, Sqlite, Store};

/// Characters that a text of PostgreSQL cannot hold, and their replacements.
const HOSTILE: &str = "a\0b\u{1}0\u{1}\u{1}1';--\u{10ffff}é";

fn database() -> StoreAddress {
    StoreAddress::Database(shared().address(&shared().create_migrated()))
}

async fn copied(from: &StoreAddress, to: &StoreAddress) -> Result<Vec<Compared>, CopyError> {
    copy(from, to, &mut |_| {}).await.map(|copied| copied.tables)
}

fn told(error: &CopyError) -> String {
    let source = std::error::Error::source(error).and_then(std::error::Error::source);
    format!("{error}: {}", source.map(ToString::to_string).unwrap_or_default())
}

fn hostile() -> WorkerRow {
    WorkerRow {
        id: HOSTILE.to_owned(),
        name: HOSTILE.to_owned(),
        url: String::new(),
        kind: "async".to_owned(),
        services: vec![HOSTILE.to_owned()],
        queues: Vec::new(),
        load: i64::MIN,
        capacity: 1,
        is_draining: true,
        peer: String::new(),
        replaced: Vec::new(),
        secret: None,
        registered_at: Timestamp(i64::MIN),
        beat_at: Timestamp(i64::MAX),
    }
}

fn noted(n: u128) -> Commit {
    let (now, detail) = (Timestamp(1), json!({ HOSTILE: [HOSTILE, 1e300, u64::MAX] }));
    let row = AuditRow {
        at: now,
        who: HOSTILE.to_owned(),
        what: "x".to_owned(),
        subject: HOSTILE.to_owned(),
        detail,
    };
    let command = CommandId::new(Uuid::from_u128(n));
    Commit { audit: vec![row], ..Commit::new(&Project::DEFAULT, command, now) }
}

#[test]
fn a_copied_store_reads_the_same_and_continues_its_numbers() {
    block_on_tokio(async {
        let place = TestDirectory::create();
        let (file, back) = (StoreAddress::File(place.join("a.db")), StoreAddress::File(place.join("b.db")));
        let between = tokio::task::spawn_blocking(database).await.unwrap();
        let store = Sqlite::open(place.join("a.db"), Durability::Fast).unwrap();
        let store_dyn: &dyn Store = &store;
        store.save_worker(&Project::DEFAULT, hostile()).await.unwrap();
        store.publish(&Project::DEFAULT, publication(1, HOSTILE)).await.unwrap();
        for n in 1..=3 {
            store_dyn.commit_one(noted(n)).await.unwrap();
        }
        drop(store);
        for (from, to, n) in [(&file, &between, 4), (&between, &back, 5)] {
            let store = copy(from, to, &mut |_| {}).await.unwrap().store;
            assert_eq!(store.workers(&Project::DEFAULT, WorkerQuery::default()).await.unwrap(), [hostile()]);
            let again = store.publish(&Project::DEFAULT, publication(2, HOSTILE)).await.unwrap_err();
            assert!(again.to_string().contains("taken"), "{again}");
            store.commit_one(noted(n)).await.unwrap();
            let audit = store.audit(&Project::DEFAULT, AuditQuery::default()).await.unwrap();
            assert!(audit.iter().map(|line| line.seq.0).eq(1..=n as u64), "{audit:?}");
            assert_eq!(audit[0].row, noted(1).audit[0]);
            let chain = audit.iter().fold(AuditHead::EMPTY, |head, line| {
                head.next(&AuditContent::of(&Project::DEFAULT, &line.row))
            });
            assert_eq!(store.audit_head(&Project::DEFAULT).await.unwrap(), chain);
            // The copy knows the commands of its source.
            assert_eq!(store.commit_one(noted(1)).await.unwrap().at, Timestamp(1));
            assert_eq!(store.audit(&Project::DEFAULT, AuditQuery::default()).await.unwrap().len() as u128, n);
        }
    });
}

#[test]
fn a_refused_copy_names_the_remedy() {
    block_on_tokio(async {
        let place = TestDirectory::create();
        let file = |name: &str| StoreAddress::File(place.join(name));
        let (base, nowhere) =
            tokio::task::spawn_blocking(|| (database(), shared().address("nowhere"))).await.unwrap();
        let StoreAddress::Database(address) = &base else { panic!() };
        let refused =
            async |from: &StoreAddress, to: &StoreAddress| told(&copied(from, to).await.unwrap_err());
        assert!(refused(&file("no.db"), &base).await.contains("no store"));
        assert!(!place.join("no.db").exists());
        let nowhere = StoreAddress::Database(nowhere);
        assert!(refused(&nowhere, &file("a.db")).await.contains("createdb"));
        assert!(refused(&base, &base).await.contains("name two stores"));
        let empty = tokio::task::spawn_blocking(|| shared().address(&shared().create())).await.unwrap();
        assert!(refused(&StoreAddress::Database(empty), &file("a.db")).await.contains("no store"));
        let store = Arc::new(Postgres::open(address, Durability::Fast).await.unwrap());
        let now = Store::now(&*store).await.unwrap().unwrap();
        let owner = Owner { server: ServerId::new(Uuid::from_u128(1)), epoch: Epoch(1) };
        let row = ServerRow {
            owner,
            name: "mill".to_owned(),
            version: String::new(),
            started_at: now,
            beat_at: now,
            worker_ttl_ms: 15_000,
        };
        let beating = tokio::spawn({
            let store = store.clone();
            async move {
                for beat in 1.. {
                    let row = ServerRow { beat_at: now.after(beat), ..row.clone() };
                    store.save_server(row).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        });
        let told = refused(&base, &file("a.db")).await;
        assert!(told.contains("`mill`") && told.contains("stop it"), "{told}");
        // The server is dead from now on, and the copy waits for that.
        beating.abort();
        let open = Sqlite::open(place.join("b.db"), Durability::Fast).unwrap();
        assert!(refused(&base, &file("b.db")).await.contains("is in use"));
        drop(open);
        assert!(copied(&base, &file("a.db")).await.unwrap().iter().all(|table| table.is_same));
    });
}
