//! Durability when the database, or the connection to it, goes away.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windlass_conformance::block_on_tokio;
use windlass_conformance::entries::{commit, entry, id, len, publish};
use windlass_conformance::postgres_server::{PostgresServer, test_database};
use windlass_engine::counter::Seq;
use windlass_engine::project::Project;
use windlass_store::{Durability, Postgres, Store, StoreError};

use crate::connect;
use crate::groups::so_many_wait;

/// The time limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Appends to a run until told to stop, through all errors; returns the confirmed length.
async fn append(store: Arc<Postgres>, run: u64, acked: Arc<AtomicU64>, stop: Arc<Mutex<bool>>) -> u64 {
    let (mut at, mut n_looked_up) = (0, 0);
    while !*stop.lock().unwrap() {
        let draft = entry(1, run, at, 100);
        let command = draft.command;
        match commit(&*store, draft).await {
            Ok(committed) => {
                assert_eq!(committed.run, Some((id("run", run), Seq(at + 1))));
                at += 1;
                acked.fetch_add(1, Ordering::Relaxed);
            }
            Err(StoreError::Unavailable(_)) => {
                // The outcome is looked up until the database answers; a missing commit is made again.
                let begun = Instant::now();
                loop {
                    match store.command(&Project::DEFAULT, command).await {
                        Ok(found) => {
                            n_looked_up += u64::from(found.is_some());
                            at += u64::from(found.is_some());
                            break;
                        }
                        Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error:?}"),
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            Err(error) => panic!("run {run} at {at}: {error:?}"),
        }
    }
    assert!(at >= n_looked_up);
    at
}

#[test]
fn every_acknowledged_commit_survives_three_kills_of_the_database() {
    let mut server = PostgresServer::start(true);
    let address = server.address(&server.create());
    block_on_tokio(async {
        let store = Arc::new(Postgres::open(&address, Durability::Strict).await.unwrap());
        publish(&*store).await;
        let (acked, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(false)));
        let tasks: Vec<_> = (1..=8)
            .map(|run| tokio::spawn(append(store.clone(), run, acked.clone(), stop.clone())))
            .collect();
        for kill in 1..=3 {
            let begun = Instant::now();
            while acked.load(Ordering::Relaxed) < kill * 200 {
                assert!(begun.elapsed() < TIMEOUT, "it does not commit");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::task::block_in_place(|| {
                server.kill();
                server.launch();
            });
        }
        let target = acked.load(Ordering::Relaxed) + 100;
        let begun = Instant::now();
        while acked.load(Ordering::Relaxed) < target {
            assert!(begun.elapsed() < TIMEOUT, "it does not go on");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        *stop.lock().unwrap() = true;
        for (run, task) in (1..).zip(tasks) {
            let known = task.await.unwrap();
            assert_eq!(len(&*store, run).await, known, "run {run}");
        }
    });
}

#[test]
fn a_commit_whose_connection_is_cut_is_looked_up() {
    block_on_tokio(async {
        let database = test_database().await;
        let store = Arc::new(Postgres::open(&database.address, Durability::Strict).await.unwrap());
        publish(&*store).await;
        let (acked, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(false)));
        let tasks: Vec<_> = (1..=8)
            .map(|run| tokio::spawn(append(store.clone(), run, acked.clone(), stop.clone())))
            .collect();
        // All connections but this one are ended again and again, in every state.
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let client = connect(&database.address).await;
        for round in 1..=20 {
            let begun = Instant::now();
            while acked.load(Ordering::Relaxed) < round * 40 {
                assert!(begun.elapsed() < TIMEOUT, "it does not commit");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            client.batch_execute(cut).await.unwrap();
        }
        *stop.lock().unwrap() = true;
        for (run, task) in (1..).zip(tasks) {
            let known = task.await.unwrap();
            assert_eq!(len(&*store, run).await, known, "run {run}");
        }
    });
}

#[test]
fn a_locked_row_delays_only_the_commit_that_needs_it() {
    block_on_tokio(async {
        let database = test_database().await;
        let store = &database.store;
        publish(store).await;
        for run in 1..=2 {
            commit(store, entry(1, run, 0, 100)).await.unwrap();
        }
        let (holder, onlooker) = (connect(&database.address).await, connect(&database.address).await);
        let hold = format!(
            "BEGIN; SELECT 1 FROM runs WHERE id = '{}' FOR UPDATE",
            id::<windlass_engine::id::RunId>("run", 1).uuid()
        );
        holder.batch_execute(&hold).await.unwrap();
        let waiting = commit(store, entry(1, 1, 1, 100));
        let mut waiting = std::pin::pin!(waiting);
        // The commit waits at the database before others arrive, which would join its group.
        tokio::select! {
            biased;
            answer = &mut waiting => panic!("{answer:?}"),
            () = so_many_wait(&onlooker, 1) => {}
        }
        // Few enough to be done before the waiting commit times out, on a slow disk too.
        for n in 1..10 {
            tokio::select! {
                biased;
                answer = &mut waiting => panic!("{answer:?}"),
                answer = commit(store, entry(1, 2, n, 100)) => drop(answer.unwrap()),
            }
        }
        holder.batch_execute("COMMIT").await.unwrap();
        waiting.await.unwrap();
    });
}
