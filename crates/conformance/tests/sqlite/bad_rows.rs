//! Rows that cannot be decoded and pages that cannot be read: readers of many rows go on without them and say which.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use windlass_conformance::block_on;
use windlass_conformance::entries::{self, id};
use windlass_conformance::test_directory::TestDirectory;
use windlass_engine::counter::{Revision, Seq};
use windlass_engine::id::{CommandId, JobId, RunId};
use windlass_engine::job::{Job, JobSpec};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::condition::{StoreCondition, StoreFault};
use windlass_store::job::{JobOrigin, JobQuery, KeyQuery, ReadyQuery};
use windlass_store::page::{Order, Part};
use windlass_store::run::{RunQuery, RunRef};
use windlass_store::{Durability, Sqlite, Store, StoreError};

const PROJECT: &Project = &Project::DEFAULT;

fn job(n: u64) -> JobId {
    id("job", n)
}

fn run(n: u64) -> RunId {
    id("run", n)
}

/// A store with three runs and three jobs of the queue `q`, after these changes to its file.
fn store_after(path: &Path, changes: &str) -> Sqlite {
    let store = Sqlite::open(path, Durability::Fast).unwrap();
    block_on(entries::publish(&store));
    for n in 1..=3 {
        block_on(entries::commit(&store, entries::entry(0, n, 0, 10))).unwrap();
        let now = Timestamp(i64::try_from(n).unwrap());
        let (job, _) = Job::create(job(n), JobSpec::new("demo", "q"), now).unwrap();
        let change = JobChange { expected_rev: Revision(0), job, origin: JobOrigin::default() };
        let command = CommandId::of_text(&format!("job {n}"));
        let commit = Commit { jobs: vec![change], ..Commit::new(PROJECT, command, now) };
        block_on(entries::commit(&store, commit)).unwrap();
    }
    drop(store);
    Connection::open(path).unwrap().execute_batch(changes).unwrap();
    Sqlite::open(path, Durability::Fast).unwrap()
}

fn condition(store: &Sqlite) -> StoreCondition {
    let store: &dyn Store = store;
    store.condition()
}

/// The keys of the rows that were set aside.
fn set_aside(store: &Sqlite) -> Vec<(&'static str, String)> {
    condition(store).set_aside.into_iter().map(|row| (row.table, row.key)).collect()
}

fn part(limit: usize) -> Part {
    Part { order: Order::Oldest, limit, count: true, ..Part::default() }
}

#[test]
fn a_bad_job_hides_no_other_however_small_the_page() {
    let place = TestDirectory::create();
    let bad = "UPDATE jobs SET state = '{' WHERE created_at = 1;
        DELETE FROM job_specs WHERE job = (SELECT id FROM jobs WHERE created_at = 2);";
    let store = store_after(&place.join("store.db"), bad);
    let query =
        ReadyQuery { queues: vec!["q".to_owned()], now: Timestamp(9), limit: 1, ..ReadyQuery::default() };
    let ready = block_on(store.ready(PROJECT, query)).unwrap();
    assert_eq!(ready.iter().map(|row| row.id()).collect::<Vec<_>>(), [job(3)]);
    assert_eq!(set_aside(&store), [("jobs", job(1).to_string()), ("jobs", job(2).to_string())]);
    let found = condition(&store);
    assert!(found.troubles.is_empty() && found.n_faults.is_empty(), "{found:?}");
    let page = block_on(store.jobs(PROJECT, JobQuery { part: part(1), ..JobQuery::default() })).unwrap();
    assert_eq!(page.items.iter().map(|row| row.id()).collect::<Vec<_>>(), [job(3)]);
    let limit = 1;
    let keys = KeyQuery { queue: "q".to_owned(), now: Timestamp(9), limit, ..KeyQuery::default() };
    block_on(store.ready_by_key(PROJECT, keys)).unwrap();
    assert!(matches!(block_on(store.job(PROJECT, job(1))), Err(StoreError::Corrupt(_))));
    let whole: &dyn Store = &store;
    whole.forget_set_aside();
    assert_eq!(set_aside(&store), []);
}

#[test]
fn a_bad_run_hides_no_other_however_small_the_page() {
    let place = TestDirectory::create();
    let bad = "UPDATE runs SET labels = '?' WHERE no = 1; UPDATE journal SET events = '}' WHERE run = 2;
        UPDATE runs SET owner_server = randomblob(16), owner_epoch = 1;";
    let store = store_after(&place.join("store.db"), bad);
    let page = block_on(store.runs(PROJECT, RunQuery { part: part(1), ..RunQuery::default() })).unwrap();
    assert_eq!(page.items.iter().map(|row| row.id).collect::<Vec<_>>(), [run(2)]);
    assert!(page.next.is_some(), "the third run is on the next page");
    let orphans = block_on(store.orphans(Timestamp(9), 0, None, 1)).unwrap();
    assert_eq!(orphans.iter().map(|row| row.id).collect::<Vec<_>>(), [run(2)]);
    assert_eq!(set_aside(&store), [("runs", run(1).to_string())]);
    let reason = &condition(&store).set_aside[0].reason;
    assert!(reason.contains("column `labels`"), "{reason}");
    let row = block_on(store.run(PROJECT, RunRef::Id(run(1))));
    assert!(
        matches!(&row, Err(StoreError::Corrupt(reason)) if reason.contains(&run(1).to_string())),
        "{row:?}"
    );
    block_on(store.journal(PROJECT, run(2), windlass_store::run::Since::Entry(Seq::ZERO), 10)).unwrap_err();
    assert_eq!(set_aside(&store)[0], ("journal", format!("{}/1", run(2))));
}

/// Overwrites the first page of a table.
fn damage(path: &Path, table: &str) {
    let db = Connection::open(path).unwrap();
    let size: u32 = db.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    let page = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let page: usize = db.query_row(page, [table], |row| row.get::<_, u32>(0)).unwrap().try_into().unwrap();
    drop(db);
    let (mut bytes, size) = (fs::read(path).unwrap(), usize::try_from(size).unwrap());
    bytes[(page - 1) * size..page * size].fill(0xff);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_page_is_found_by_a_check_and_by_a_read() {
    let place = TestDirectory::create();
    let path = place.join("store.db");
    let store = store_after(&path, "");
    let whole = block_on(store.check(Duration::from_secs(60))).unwrap();
    assert!(whole.is_whole() && whole.findings.is_empty(), "{whole:?}");
    drop(store);
    damage(&path, "job_specs");
    let store = Sqlite::open(&path, Durability::Fast).unwrap();
    // The jobs that need the page are set aside, and the store says that it is damaged.
    let query =
        ReadyQuery { queues: vec!["q".to_owned()], now: Timestamp(9), limit: 5, ..ReadyQuery::default() };
    assert!(block_on(store.ready(PROJECT, query)).unwrap().is_empty());
    let found = condition(&store);
    assert_eq!((found.set_aside.len(), found.troubles.len()), (3, 1), "{found:?}");
    assert!(found.n_faults[&StoreFault::Damaged] >= 1, "{found:?}");
    let check = block_on(store.check(Duration::from_secs(60))).unwrap();
    assert!(check.findings[0].contains("table `job_specs` is damaged"), "{check:?}");
    assert_eq!(condition(&store).troubles, [check.findings[0].clone()]);
    assert_eq!(block_on(entries::len(&store, 1)), 1, "other tables are read as before");
    let hurried = block_on(store.check(Duration::ZERO)).unwrap();
    assert!(!hurried.is_whole(), "{hurried:?}");
}

#[test]
fn a_full_disk_is_a_trouble_until_a_write_succeeds() {
    let place = TestDirectory::create();
    let store = store_after(&place.join("store.db"), "");
    block_on(store.limit_pages(1)).unwrap();
    block_on(entries::commit(&store, entries::entry(0, 1, 1, 1 << 20))).unwrap_err();
    let found = condition(&store);
    assert!(found.troubles[0].contains("the disk is full"), "{found:?}");
    assert_eq!(found.n_faults[&StoreFault::Full], 1);
    block_on(store.limit_pages(1_000_000)).unwrap();
    let begun = std::time::Instant::now();
    let mut len = 1;
    while !condition(&store).troubles.is_empty() {
        block_on(entries::commit(&store, entries::entry(0, 1, len, 10))).unwrap();
        len += 1;
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", condition(&store));
        std::thread::sleep(Duration::from_millis(20));
    }
}
