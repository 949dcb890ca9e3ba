//! Durability, locking and errors of the file.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use windlass_conformance::block_on;
use windlass_conformance::entries::{self, command, id};
use windlass_conformance::test_directory::TestDirectory;
use windlass_engine::project::Project;
use windlass_store::commit::{Commit, Committed};
use windlass_store::run::RunRef;
use windlass_store::{Durability, Sqlite, Store, StoreError};

fn publish(store: &Sqlite) {
    block_on(entries::publish(store));
}

/// The next entry of a run, with a message of this size.
fn entry(run: u64, expected_len: u64, n_bytes: usize) -> Commit {
    entries::entry(0, run, expected_len, n_bytes)
}

fn commit(store: &Sqlite, commit: Commit) -> Result<Committed, StoreError> {
    block_on(entries::commit(store, commit))
}

fn len(store: &Sqlite, run: u64) -> u64 {
    let len = block_on(entries::len(store, run));
    let row = block_on(store.run(&Project::DEFAULT, RunRef::Id(id("run", run)))).unwrap();
    assert_eq!(row.map_or(0, |row| row.len.0), len);
    len
}

fn assert_whole(path: &Path) {
    let db = Connection::open(path).unwrap();
    let answer: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(answer, "ok");
}

#[test]
fn commits_are_there_when_the_file_is_opened_again() {
    let place = TestDirectory::create();
    let path = place.join("store.db");
    let store = Sqlite::open(&path, Durability::Strict).unwrap();
    publish(&store);
    for n in 0..5 {
        commit(&store, entry(1, n, 10)).unwrap();
    }
    drop(store);
    let store = Sqlite::open(&path, Durability::Fast).unwrap();
    assert_eq!(len(&store, 1), 5);
    assert!(block_on(store.command(&Project::DEFAULT, command(0, 1, 4))).unwrap().is_some());
    drop(store);
    assert_whole(&path);
}

#[test]
fn two_servers_never_share_a_file() {
    let place = TestDirectory::create();
    let path = place.join("store.db");
    let first = Sqlite::open(&path, Durability::Fast).unwrap();
    let refused = Sqlite::open(&path, Durability::Fast).unwrap_err();
    let StoreError::Unavailable(reason) = refused else { panic!("{refused}") };
    assert!(reason.to_string().contains(&format!("process {}", std::process::id())), "{reason}");
    drop(first);
    Sqlite::open(&path, Durability::Fast).unwrap();
}

#[test]
fn a_file_of_a_newer_program_is_refused() {
    let place = TestDirectory::create();
    let path = place.join("store.db");
    drop(Sqlite::open(&path, Durability::Fast).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 999).unwrap();
    let refused = Sqlite::open(&path, Durability::Fast).unwrap_err().to_string();
    assert!(refused.contains("version 999") && refused.contains("a newer program"), "{refused}");
}

#[test]
fn a_migration_that_was_changed_is_refused() {
    let place = TestDirectory::create();
    let path = place.join("store.db");
    drop(Sqlite::open(&path, Durability::Fast).unwrap());
    Connection::open(&path).unwrap().execute("UPDATE migrations SET checksum = 1", []).unwrap();
    let refused = Sqlite::open(&path, Durability::Fast).unwrap_err().to_string();
    assert!(refused.contains("migration 1"), "{refused}");
}

#[test]
fn a_full_disk_is_reported_and_later_commits_succeed() {
    let place = TestDirectory::create();
    let path = place.join("store.db");
    let store = Sqlite::open(&path, Durability::Fast).unwrap();
    publish(&store);
    commit(&store, entry(1, 0, 10)).unwrap();
    block_on(store.limit_pages(1)).unwrap();
    // One commit of the group fits, the other does not.
    let answers = block_on(store.commit(vec![entry(1, 1, 1 << 20), entry(2, 0, 1)]));
    let Err(StoreError::Unavailable(reason)) = &answers[0] else { panic!("{answers:?}") };
    assert!(reason.to_string().contains("the disk is full"), "{reason}");
    assert!(answers[1].is_ok(), "{answers:?}");
    assert_eq!((len(&store, 1), len(&store, 2)), (1, 1));
    block_on(store.limit_pages(1_000_000)).unwrap();
    commit(&store, entry(1, 1, 1 << 20)).unwrap();
    assert_eq!(len(&store, 1), 2);
    drop(store);
    assert_whole(&path);
}

#[test]
fn commits_that_wait_together_share_a_transaction() {
    let store = Arc::new(Sqlite::temporary(Durability::Strict).unwrap());
    publish(&store);
    let before = store.n_transactions();
    thread::scope(|scope| {
        for run in 1..=32 {
            let store = store.clone();
            scope.spawn(move || (0..20).for_each(|n| drop(commit(&store, entry(run, n, 10)).unwrap())));
        }
    });
    let n = store.n_transactions() - before;
    assert!((20..=320).contains(&n), "{n} transactions for 640 commits");
    // Commits that are queued at once share one transaction.
    let before = store.n_transactions();
    let answers = block_on(store.commit((101..=200).map(|run| entry(run, 0, 10)).collect()));
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(store.n_transactions() - before, 1);
}

/// Starts a process that commits until it is killed.
fn start(place: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_commits_until_killed"))
        .arg(place)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn acked(place: &Path, run: u64) -> u64 {
    let text = fs::read_to_string(place.join(format!("acked-{run}"))).unwrap_or_default();
    text.parse().unwrap_or(0)
}

#[test]
fn every_acknowledged_commit_survives_twenty_kills() {
    let place = TestDirectory::create();
    let path = place.join("store.db");
    publish(&Sqlite::open(&path, Durability::Strict).unwrap());
    let mut n_acked = 0;
    for kill in 0..20 {
        let before: u64 = (1..=4).map(|run| acked(place.path(), run)).sum();
        let mut child = start(place.path());
        // The process is killed after some work, each time at another moment.
        let begun = Instant::now();
        while (1..=4).map(|run| acked(place.path(), run)).sum::<u64>() < before + 5 + kill * 7 {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not commit");
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let store = Sqlite::open(&path, Durability::Strict).unwrap();
        n_acked = 0;
        for run in 1..=4 {
            let acked = acked(place.path(), run);
            assert!(len(&store, run) >= acked, "run {run} lost an acknowledged commit after kill {kill}");
            n_acked += acked;
        }
        drop(store);
        assert_whole(&path);
    }
    assert!(n_acked >= 20 * 5);
}
