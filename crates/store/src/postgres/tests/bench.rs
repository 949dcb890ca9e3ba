//! Fixtures of the tests of this store.

use windlass_engine::event::{Event, Level};
use windlass_engine::id::CommandId;
use windlass_engine::journal::Entry;
use windlass_engine::money::Movement;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use crate::account::Posting;
use crate::commit::{Commit, Committed, RunChange};
use crate::conformance::bench::{origin, publication, standing};
use crate::error::StoreError;
use crate::run::{RunStatus, Since};
use crate::store::Store;

pub(super) fn id<I: std::str::FromStr<Err: std::fmt::Debug>>(prefix: &str, n: u64) -> I {
    format!("{prefix}_{n:032x}").parse().unwrap()
}

pub(super) async fn publish(store: &dyn Store) {
    store.publish(&Project::DEFAULT, publication(1, "flow")).await.unwrap();
}

/// One more entry of a run. Each writer has a number, so that no two use the same command.
pub(super) fn entry(by: u64, run: u64, expected_len: u64) -> Commit {
    let (command, now) = (id("cmd", (by << 48) + (run << 32) + expected_len + 1), Timestamp(1));
    let event = Event::Logged { level: Level::Info, node: None, message: "x".repeat(100) };
    let change = RunChange {
        run: id("run", run),
        expected_len,
        create: (expected_len == 0).then(|| origin(now)),
        entry: Entry::new(now, command, vec![event]),
        standing: standing(RunStatus::Running, now),
        snapshot: None,
        reopened: None,
    };
    Commit { run: Some(change), ..Commit::new(&Project::DEFAULT, command, now) }
}

pub(super) async fn commit(store: &dyn Store, commit: Commit) -> Result<Committed, StoreError> {
    store.commit(vec![commit]).await.remove(0)
}

/// Entries in the journal of a run, which has no gaps.
pub(super) async fn len(store: &dyn Store, run: u64) -> u64 {
    let entries =
        store.journal(&Project::DEFAULT, id("run", run), Since::Entry(0), usize::MAX).await.unwrap().entries;
    assert!(entries.iter().zip(1..).all(|((seq, _), n)| *seq == n));
    entries.len() as u64
}

pub(super) fn posting(account: &str, movement: Movement) -> Posting {
    Posting { account: account.to_owned(), movement }
}

pub(super) async fn open_account(store: &dyn Store, account: &str, amount: i64) {
    let now = Timestamp(0);
    store.open_account(&Project::DEFAULT, account, "", now).await.unwrap();
    let deposit = posting(account, Movement::deposit(&format!("deposit:{account}"), amount));
    let commit = Commit {
        postings: vec![deposit],
        ..Commit::new(&Project::DEFAULT, CommandId::of_text(account), now)
    };
    store.commit(vec![commit]).await.remove(0).unwrap();
}
