//! Rows that cannot be decoded and faults of the database: readers of many rows go on without them and say which.

use std::time::{Duration, Instant};

use windlass_conformance::block_on_tokio;
use windlass_conformance::entries::{self, id};
use windlass_conformance::postgres_server::{TestDatabase, test_database};
use windlass_engine::counter::{Revision, Seq};
use windlass_engine::id::{CommandId, JobId, RunId};
use windlass_engine::job::{Job, JobSpec};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::condition::{StoreCondition, StoreFault};
use windlass_store::job::{JobOrigin, JobQuery, KeyQuery, ReadyQuery};
use windlass_store::page::{Order, Part};
use windlass_store::run::{RunQuery, RunRef, Since};
use windlass_store::{Store, StoreError};

use crate::connect;

const PROJECT: &Project = &Project::DEFAULT;

fn job(n: u64) -> JobId {
    id("job", n)
}

fn run(n: u64) -> RunId {
    id("run", n)
}

/// The key of a row as the database writes it.
fn uuid(id: impl ToString) -> String {
    id.to_string().rsplit('_').next().unwrap().to_owned()
}

/// A store with three runs and three jobs of the queue `q`, after these changes to its tables.
async fn store_after(changes: &str) -> TestDatabase {
    let database = test_database().await;
    let store = &database.store;
    entries::publish(store).await;
    for n in 1..=3 {
        entries::commit(store, entries::entry(0, n, 0, 10)).await.unwrap();
        let now = Timestamp(i64::try_from(n).unwrap());
        let (job, _) = Job::create(job(n), JobSpec::new("demo", "q"), now).unwrap();
        let change = JobChange { expected_rev: Revision(0), job, origin: JobOrigin::default() };
        let command = CommandId::of_text(&format!("job {n}"));
        let commit = Commit { jobs: vec![change], ..Commit::new(PROJECT, command, now) };
        entries::commit(store, commit).await.unwrap();
    }
    connect(&database.address).await.batch_execute(changes).await.unwrap();
    database
}

fn condition(store: &dyn Store) -> StoreCondition {
    store.condition()
}

/// The keys of the rows that were set aside.
fn set_aside(store: &dyn Store) -> Vec<(&'static str, String)> {
    condition(store).set_aside.into_iter().map(|row| (row.table, row.key)).collect()
}

fn part(limit: usize) -> Part {
    Part { order: Order::Oldest, limit, count: true, ..Part::default() }
}

#[test]
fn a_bad_job_hides_no_other_however_small_the_page() {
    block_on_tokio(async {
        let bad = "UPDATE jobs SET state = '{' WHERE created_at = 1;
            UPDATE job_specs SET spec = '?' WHERE job = (SELECT id FROM jobs WHERE created_at = 2)";
        let database = store_after(bad).await;
        let store: &dyn Store = &database.store;
        let query =
            ReadyQuery { queues: vec!["q".to_owned()], now: Timestamp(9), limit: 1, ..ReadyQuery::default() };
        let ready = store.ready(PROJECT, query).await.unwrap();
        assert_eq!(ready.iter().map(|row| row.id()).collect::<Vec<_>>(), [job(3)]);
        assert_eq!(set_aside(store), [("jobs", job(1).to_string()), ("jobs", job(2).to_string())]);
        let found = condition(store);
        assert!(found.troubles.is_empty() && found.n_faults.is_empty(), "{found:?}");
        let page = store.jobs(PROJECT, JobQuery { part: part(1), ..JobQuery::default() }).await.unwrap();
        assert_eq!(page.items.iter().map(|row| row.id()).collect::<Vec<_>>(), [job(3)]);
        let keys = KeyQuery { queue: "q".to_owned(), now: Timestamp(9), limit: 1, ..KeyQuery::default() };
        store.ready_by_key(PROJECT, keys).await.unwrap();
        assert!(matches!(store.job(PROJECT, job(1)).await, Err(StoreError::Corrupt(_))));
        store.forget_set_aside();
        assert_eq!(set_aside(store), []);
    });
}

#[test]
fn a_bad_run_hides_no_other_however_small_the_page() {
    block_on_tokio(async {
        let bad = format!(
            "UPDATE runs SET labels = '?' WHERE id = '{}'; UPDATE journal SET events = '}}' WHERE run = '{}';
            UPDATE runs SET owner_server = gen_random_uuid(), owner_epoch = 1",
            uuid(run(1)),
            uuid(run(2))
        );
        let database = store_after(&bad).await;
        let store: &dyn Store = &database.store;
        let page = store.runs(PROJECT, RunQuery { part: part(1), ..RunQuery::default() }).await.unwrap();
        assert_eq!(page.items.iter().map(|row| row.id).collect::<Vec<_>>(), [run(2)]);
        assert!(page.next.is_some(), "the third run is on the next page");
        let orphans = store.orphans(Timestamp(9), 0, None, 1).await.unwrap();
        assert_eq!(orphans.iter().map(|row| row.id).collect::<Vec<_>>(), [run(2)]);
        assert_eq!(set_aside(store), [("runs", run(1).to_string())]);
        let row = store.run(PROJECT, RunRef::Id(run(1))).await;
        let told = |reason: &String| reason.contains(&run(1).to_string());
        assert!(matches!(&row, Err(StoreError::Corrupt(reason)) if told(reason)), "{row:?}");
        store.journal(PROJECT, run(2), Since::Entry(Seq::ZERO), 10).await.unwrap_err();
        assert_eq!(set_aside(store)[0], ("journal", format!("{}/1", run(2))));
        assert_eq!(entries::len(store, 3).await, 1, "other journals are read as before");
    });
}

#[test]
fn a_bad_schedule_and_a_bad_message_are_set_aside() {
    block_on_tokio(async {
        let bad = format!(
            "INSERT INTO schedules (project, id, rev, name, rule, target, progress, next_at, history, created_at, updated_at)
                VALUES ('default', '{}', 1, 'odd', '?', '?', '?', 1, '?', 1, 1);
            INSERT INTO outbox (project, sender, seq, part, receiver, at, note, is_delivered)
                SELECT 'default', '\\x00'::bytea || uuid_send(id), 1, 0, '\\x00'::bytea || uuid_send(id), 1, '?', false
                FROM runs WHERE id = '{}'",
            uuid(run(9)),
            uuid(run(1))
        );
        let database = store_after(&bad).await;
        let store: &dyn Store = &database.store;
        assert!(store.schedules(PROJECT, part(10)).await.unwrap().items.is_empty());
        assert_eq!(set_aside(store).iter().map(|(table, _)| *table).collect::<Vec<_>>(), ["schedules"]);
        assert!(store.outbox(Timestamp(9), None, 10).await.unwrap().is_empty());
        let found = set_aside(store);
        assert_eq!(found.iter().map(|(table, _)| *table).collect::<Vec<_>>(), ["outbox", "schedules"]);
        assert!(found[0].1.contains(&run(1).to_string()), "{found:?}");
    });
}

/// Makes every new entry of a journal fail with this code.
fn failing(code: &str) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'page 7 is odd' USING ERRCODE = '{code}'; END $$;
        CREATE OR REPLACE TRIGGER fails BEFORE INSERT ON journal FOR EACH ROW EXECUTE FUNCTION fail()"
    )
}

#[test]
fn damage_counts_until_the_store_is_opened_again() {
    block_on_tokio(async {
        let database = store_after(&failing("XX001")).await;
        let store: &dyn Store = &database.store;
        let failed = entries::commit(store, entries::entry(0, 1, 1, 10)).await;
        assert!(matches!(&failed, Err(StoreError::Damaged(_))), "{failed:?}");
        connect(&database.address).await.batch_execute(&failing("XX002")).await.unwrap();
        let failed = entries::commit(store, entries::entry(0, 1, 1, 10)).await;
        assert!(matches!(&failed, Err(StoreError::Damaged(_))), "{failed:?}");
        let drop = "DROP TRIGGER fails ON journal";
        connect(&database.address).await.batch_execute(drop).await.unwrap();
        entries::commit(store, entries::entry(0, 1, 1, 10)).await.unwrap();
        let found = condition(store);
        assert_eq!(found.troubles.len(), 1, "{found:?}");
        assert!(found.troubles[0].contains("page 7 is odd"), "{found:?}");
        assert!(found.troubles[0].contains("restore the database from a backup"), "{found:?}");
        assert!(found.n_faults[&StoreFault::Damaged] >= 2, "{found:?}");
    });
}

#[test]
fn a_failure_of_the_disk_is_a_trouble_until_a_write_succeeds() {
    block_on_tokio(async {
        let database = store_after("").await;
        let (store, client): (&dyn Store, _) = (&database.store, connect(&database.address).await);
        let mut len = 1;
        for (code, fault, reason) in [
            ("53100", StoreFault::Full, "the disk of the database is full"),
            ("58030", StoreFault::Disk, "the database cannot use its disk"),
        ] {
            client.batch_execute(&failing(code)).await.unwrap();
            let failed = entries::commit(store, entries::entry(0, 1, len, 10)).await;
            assert!(matches!(&failed, Err(StoreError::Unavailable(_))), "{failed:?}");
            let found = condition(store);
            assert!(found.troubles[0].contains(reason), "{found:?}");
            assert!(found.n_faults[&fault] >= 1, "{found:?}");
            client.batch_execute("DROP TRIGGER fails ON journal").await.unwrap();
            let begun = Instant::now();
            while !condition(store).troubles.is_empty() {
                entries::commit(store, entries::entry(0, 1, len, 10)).await.unwrap();
                len += 1;
                assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", condition(store));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
}
