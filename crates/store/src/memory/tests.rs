use std::thread;
use windlass_engine::project::Project;

use super::*;

mod promises;

async fn memory() -> Memory {
    Memory::new()
}

crate::conformance!(memory);

/// The suite runs its rivals on one thread; here they have one each.
#[test]
fn commits_of_many_threads_leave_a_dense_journal() {
    let store = Memory::new();
    promises::publish(&store);
    thread::scope(|scope| {
        for server in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..50 {
                    let mut wins = false;
                    while !wins {
                        let len = promises::len(store);
                        wins = store
                            .commit_now(vec![promises::entry(server * 1_000 + n, len)])
                            .remove(0)
                            .is_ok();
                    }
                }
            });
        }
    });
    let journal = store.journal_now(&Project::DEFAULT, promises::run(), Since::Entry(0), 1_000).unwrap();
    assert_eq!(journal.entries.len(), 200);
    assert!(journal.entries.iter().zip(1..).all(|((seq, _), n)| *seq == n));
}
