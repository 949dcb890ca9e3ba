//! The store in memory.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod invariants;

use std::thread;

use windlass_engine::counter::Seq;
use windlass_engine::project::Project;
use windlass_store::Memory;
use windlass_store::run::Since;

async fn memory() -> Memory {
    Memory::new()
}

windlass_conformance::conformance!(memory);

/// The suite runs concurrent commits on one thread; here each writer has its own.
#[test]
fn commits_of_many_threads_leave_a_dense_journal() {
    let store = Memory::new();
    invariants::publish(&store);
    thread::scope(|scope| {
        for server in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..50 {
                    let mut wins = false;
                    while !wins {
                        let len = invariants::len(store);
                        wins = store
                            .commit_now(vec![invariants::entry(server * 1_000 + n, len)])
                            .remove(0)
                            .is_ok();
                    }
                }
            });
        }
    });
    let journal =
        store.journal_now(&Project::DEFAULT, invariants::run(), Since::Entry(Seq::ZERO), 1_000).unwrap();
    assert_eq!(journal.entries.len(), 200);
    assert!(journal.entries.iter().zip(1..).all(|((seq, _), n)| *seq == Seq(n)));
}
