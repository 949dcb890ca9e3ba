//! Several servers on one database.

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_conformance::block_on_tokio;
use windlass_conformance::entries::{commit, entry, id, len, open_account, posting, publish};
use windlass_conformance::fixture::publication;
use windlass_conformance::postgres_server::{shared, test_database};
use windlass_engine::counter::Seq;
use windlass_engine::money::{Amount, Movement};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::account::LedgerQuery;
use windlass_store::commit::Commit;
use windlass_store::flow::FlowQuery;
use windlass_store::hint::Hint;
use windlass_store::queue::{QueueLimits, QueueSettings};
use windlass_store::{Durability, Postgres, Refusal, Store, StoreError};

use crate::connect;

async fn three(address: &str) -> Vec<Arc<Postgres>> {
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(Arc::new(Postgres::open(address, Durability::Fast).await.unwrap()));
    }
    stores
}

#[test]
fn each_entry_from_three_servers_is_written_once() {
    block_on_tokio(async {
        let database = test_database().await;
        publish(&database.store).await;
        let mut tasks = Vec::new();
        for (by, store) in (1..).zip(three(&database.address).await) {
            // Eight tasks of each server append to four runs, forty times.
            for nth in 0..8u64 {
                let store = store.clone();
                tasks.push(tokio::spawn(async move {
                    let (run, mut n_written) = (1 + nth % 4, 0u64);
                    let mut at = len(&*store, run).await;
                    while n_written < 40 {
                        match commit(&*store, entry(by * 8 + nth, run, at, 100)).await {
                            Ok(committed) => {
                                assert_eq!(committed.run, Some((id("run", run), Seq(at + 1))));
                                (at, n_written) = (at + 1, n_written + 1);
                            }
                            Err(StoreError::Conflict { found, .. }) => at = found,
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                    n_written
                }));
            }
        }
        let mut n_written = 0;
        for task in tasks {
            n_written += task.await.unwrap();
        }
        let mut n_there = 0;
        for run in 1..=4 {
            n_there += len(&database.store, run).await;
        }
        assert_eq!((n_written, n_there), (3 * 8 * 40, 3 * 8 * 40));
    });
}

/// Charges of one to `amount`, until the accounts are empty; the charged sums by account.
async fn charge(store: Arc<Postgres>, by: u64, accounts: [&'static str; 2]) -> [i64; 2] {
    let mut charged = [0, 0];
    for n in 0..60u64 {
        let which = usize::try_from((by + n) % 2).unwrap();
        // Every third charge moves both accounts, in an order that differs between tasks.
        let names =
            if n % 3 == 0 { vec![accounts[which], accounts[1 - which]] } else { vec![accounts[which]] };
        let amount = 1 + i64::try_from(n % 7).unwrap();
        let movement = || Movement::charge(format!("charge:{by}/{n}"), Amount(amount));
        let postings = names.iter().map(|name| posting(name, movement())).collect();
        let command = id("cmd", (by << 32) + n);
        match commit(&*store, Commit { postings, ..Commit::new(&Project::DEFAULT, command, Timestamp(1)) })
            .await
        {
            Ok(committed) => {
                assert!(committed.balances.values().all(|balance| *balance >= Amount::ZERO));
                for name in names {
                    charged[accounts.iter().position(|account| *account == name).unwrap()] += amount;
                }
            }
            Err(StoreError::Refused(Refusal::InsufficientFunds { .. })) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    charged
}

#[test]
fn charges_from_three_servers_never_overdraw_and_the_ledger_adds_up() {
    block_on_tokio(async {
        let database = test_database().await;
        let store: &dyn Store = &database.store;
        open_account(store, "one", 700).await;
        open_account(store, "two", 900).await;
        let mut tasks = Vec::new();
        for (by, store) in (0..).zip(three(&database.address).await) {
            for nth in 0..4u64 {
                tasks.push(tokio::spawn(charge(store.clone(), by * 4 + nth, ["one", "two"])));
            }
        }
        let mut charged = [0, 0];
        for task in tasks {
            let its = task.await.unwrap();
            charged = [charged[0] + its[0], charged[1] + its[1]];
        }
        for ((name, deposited), charged) in [("one", 700), ("two", 900)].into_iter().zip(charged) {
            let row = store.account(&Project::DEFAULT, name).await.unwrap().unwrap();
            assert_eq!((row.balance.0, row.held.0), (deposited - charged, charged), "{name}");
            let query = LedgerQuery { account: name.to_owned(), limit: 1_000, ..LedgerQuery::default() };
            let ledger = store.ledger(&Project::DEFAULT, query).await.unwrap();
            assert_eq!(ledger.iter().map(|row| row.posting.movement.amount.0).sum::<i64>(), row.balance.0);
            assert!(ledger.iter().zip(1..).all(|(row, n)| row.seq == Seq(n)), "the ledger has no gaps");
            assert_eq!(ledger.last().unwrap().balance_after, row.balance);
            assert_eq!(row.revision.0, ledger.len() as u64);
        }
    });
}

#[test]
fn the_same_command_at_three_servers_is_one_commit() {
    block_on_tokio(async {
        let database = test_database().await;
        publish(&database.store).await;
        let stores = three(&database.address).await;
        for n in 0..20 {
            let mut tasks = Vec::new();
            for store in &stores {
                let store = store.clone();
                tasks.push(tokio::spawn(async move { commit(&*store, entry(1, 1, n, 100)).await.unwrap() }));
            }
            let mut answers = Vec::new();
            for task in tasks {
                answers.push(task.await.unwrap());
            }
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        }
        assert_eq!(len(&database.store, 1).await, 20);
    });
}

#[test]
fn one_of_three_servers_gets_a_name_that_all_want() {
    block_on_tokio(async {
        let database = test_database().await;
        let stores = three(&database.address).await;
        for round in 0..5u64 {
            let mut tasks = Vec::new();
            for (nth, store) in (1..).zip(&stores) {
                let (store, flow) = (store.clone(), publication(round * 10 + nth, &format!("name {round}")));
                tasks.push(tokio::spawn(async move { store.publish(&Project::DEFAULT, flow).await }));
            }
            let mut n_made = 0;
            for task in tasks {
                match task.await.unwrap() {
                    Ok(published) => n_made += usize::from(published.created),
                    Err(error) => {
                        assert!(matches!(error.refusal(), Some(Refusal::NameTaken { .. })), "{error:?}")
                    }
                }
            }
            assert_eq!(n_made, 1);
        }
        let flows = database.store.flows(&Project::DEFAULT, FlowQuery::default()).await.unwrap().items;
        assert_eq!(flows.len(), 5);
    });
}

#[test]
fn servers_that_start_at_once_make_the_tables_once() {
    block_on_tokio(async {
        let address = tokio::task::block_in_place(|| shared().address(&shared().create()));
        let mut tasks = Vec::new();
        for _ in 0..6 {
            let address = address.clone();
            tasks.push(tokio::spawn(
                async move { Postgres::open(&address, Durability::Fast).await.map(drop) },
            ));
        }
        for task in tasks {
            task.await.unwrap().unwrap();
        }
    });
}

#[test]
fn a_server_gets_hints_of_the_writes_of_another() {
    block_on_tokio(async {
        let database = test_database().await;
        publish(&database.store).await;
        let other = Postgres::open(&database.address, Durability::Fast).await.unwrap();
        let mut hints = other.hints().unwrap();
        // The first hint covers everything that was written before the store listened.
        assert!(hints.next().await.unwrap().everything);
        commit(&database.store, entry(1, 7, 0, 100)).await.unwrap();
        let heard = hints.next().await.unwrap();
        assert_eq!(heard, Hint { runs: BTreeSet::from([id("run", 7)]), ..Hint::default() });
        // A store sends itself no hint of its own writes.
        commit(&other, entry(1, 8, 0, 100)).await.unwrap();
        let settings = QueueSettings {
            name: "q".to_owned(),
            is_paused: true,
            limits: QueueLimits::default(),
            updated_at: Timestamp(1),
        };
        database.store.save_queue(&Project::DEFAULT, settings).await.unwrap();
        assert_eq!(hints.next().await.unwrap(), Hint { settings: true, ..Hint::default() });
        // After its connection was lost and restored, hints may be missing.
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND query LIKE 'LISTEN%'";
        connect(&database.address).await.batch_execute(cut).await.unwrap();
        assert!(hints.next().await.unwrap().everything);
    });
}
