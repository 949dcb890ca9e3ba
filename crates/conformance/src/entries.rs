//! Commits that append entries to the journals of runs, all named by numbers: tests of one backend and the program that
//! commits until it is killed use them.

use windlass_engine::counter::Seq;
use windlass_engine::event::{Event, Level};
use windlass_engine::id::CommandId;
use windlass_engine::journal::Entry;
use windlass_engine::money::{Amount, Movement};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::account::Posting;
use windlass_store::commit::{Commit, Committed, RunChange};
use windlass_store::run::{RunStatus, Since};
use windlass_store::{Store, StoreError};

use crate::fixture::{origin, projection, publication};

/// An id with this number.
pub fn id<I: std::str::FromStr<Err: std::fmt::Debug>>(prefix: &str, n: u64) -> I {
    format!("{prefix}_{n:032x}").parse().unwrap()
}

/// Publishes the flow of all runs.
pub async fn publish(store: &dyn Store) {
    store.publish(&Project::DEFAULT, publication(1, "flow")).await.unwrap();
}

/// The command of the commit that follows this many entries.
pub fn command(writer: u64, run: u64, expected_len: u64) -> CommandId {
    id("cmd", (writer << 48) + (run << 32) + expected_len + 1)
}

/// The next entry of a run, with a message of this size. Each writer has a number, so that no two use the same command.
pub fn entry(writer: u64, run: u64, expected_len: u64, n_bytes: usize) -> Commit {
    let (command, now) = (command(writer, run, expected_len), Timestamp(1));
    let event = Event::Logged { level: Level::Info, node: None, message: "x".repeat(n_bytes) };
    let change = RunChange {
        run: id("run", run),
        expected_len: Seq(expected_len),
        create: (expected_len == 0).then(|| origin(now)),
        entry: Entry::new(now, command, vec![event]),
        projection: projection(RunStatus::Running, now),
        snapshot: None,
        reopened: None,
    };
    Commit { run: Some(change), ..Commit::new(&Project::DEFAULT, command, now) }
}

/// Makes one commit.
pub async fn commit(store: &dyn Store, commit: Commit) -> Result<Committed, StoreError> {
    store.commit(vec![commit]).await.remove(0)
}

/// Entries in the journal of a run, which has no gaps.
pub async fn len(store: &dyn Store, run: u64) -> u64 {
    let entries = store
        .journal(&Project::DEFAULT, id("run", run), Since::Entry(Seq::ZERO), usize::MAX)
        .await
        .unwrap()
        .entries;
    assert!(entries.iter().zip(1..).all(|((seq, _), n)| *seq == Seq(n)));
    entries.len() as u64
}

/// A movement on an account.
pub fn posting(account: &str, movement: Movement) -> Posting {
    Posting { account: account.to_owned(), movement }
}

/// Opens an account and pays the amount in.
pub async fn open_account(store: &dyn Store, account: &str, amount: i64) {
    let now = Timestamp(0);
    store.open_account(&Project::DEFAULT, account, "", now).await.unwrap();
    let deposit = posting(account, Movement::deposit(&format!("deposit:{account}"), Amount(amount)));
    let commit = Commit {
        postings: vec![deposit],
        ..Commit::new(&Project::DEFAULT, CommandId::of_text(account), now)
    };
    store.commit(vec![commit]).await.remove(0).unwrap();
}
