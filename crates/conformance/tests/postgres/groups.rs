//! Groups of commits in one transaction.

use std::time::Duration;

use tokio_postgres::Client;
use windlass_conformance::block_on_tokio;
use windlass_conformance::entries::{commit, entry, id, publish};
use windlass_conformance::postgres_server::test_database;
use windlass_engine::counter::Revision;
use windlass_engine::id::RunId;
use windlass_engine::job::{Job, JobSpec};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::error::Subject;
use windlass_store::job::JobOrigin;
use windlass_store::postgres::WRITERS;
use windlass_store::{Store, StoreError};

use crate::connect;

/// Returns when this many transactions of the database wait for a lock.
pub(crate) async fn so_many_wait(client: &Client, n: usize) {
    let waiting = "SELECT 1 FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while client.query(waiting, &[]).await.unwrap().len() < n {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn commits_that_arrive_while_all_writers_are_busy_share_a_transaction() {
    block_on_tokio(async {
        let database = test_database().await;
        let (store, n) = (&database.store, WRITERS as u64);
        publish(store).await;
        for run in 1..=n {
            commit(store, entry(1, run, 0, 100)).await.unwrap();
        }
        let (holder, onlooker) = (connect(&database.address).await, connect(&database.address).await);
        holder.batch_execute("BEGIN; SELECT 1 FROM runs FOR UPDATE").await.unwrap();
        let mut busy: Vec<_> = (1..=n).map(|run| Box::pin(commit(store, entry(1, run, 1, 100)))).collect();
        for (nth, commit) in busy.iter_mut().enumerate() {
            // One after the other, so that each commit keeps one writer busy.
            tokio::select! {
                biased;
                answer = commit => panic!("{answer:?}"),
                () = so_many_wait(&onlooker, nth + 1) => {}
            }
        }
        let mut late: Vec<_> =
            (n + 1..=n + 20).map(|run| Box::pin(commit(store, entry(1, run, 0, 100)))).collect();
        for commit in &mut late {
            tokio::select! {
                biased;
                answer = commit => panic!("{answer:?}"),
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
        }
        holder.batch_execute("COMMIT").await.unwrap();
        for commit in busy.into_iter().chain(late) {
            commit.await.unwrap();
        }
        let first: RunId = id("run", n);
        let transactions = format!("SELECT DISTINCT xmin::text FROM journal WHERE run > '{}'", first.uuid());
        assert_eq!(holder.query(&transactions, &[]).await.unwrap().len(), 1);
    });
}

#[test]
fn a_claim_of_a_job_that_another_transaction_writes_is_refused_at_once() {
    block_on_tokio(async {
        let database = test_database().await;
        let store = &database.store;
        let (job, _) = Job::create(id("job", 1), JobSpec::new("s", "q"), Timestamp(1)).unwrap();
        let change = |expected_rev| JobChange {
            expected_rev: Revision(expected_rev),
            job: job.clone(),
            origin: JobOrigin::default(),
        };
        let write = |n, is_hasty, change| Commit {
            jobs: vec![change],
            is_hasty,
            ..Commit::new(&Project::DEFAULT, id("cmd", n), Timestamp(1))
        };
        commit(store, write(1, false, change(0))).await.unwrap();
        let (holder, onlooker) = (connect(&database.address).await, connect(&database.address).await);
        holder.batch_execute("BEGIN; SELECT 1 FROM jobs FOR UPDATE").await.unwrap();
        let refused = commit(store, write(2, true, change(1))).await;
        assert!(matches!(refused, Err(StoreError::Conflict { what: Subject::Job(_), .. })), "{refused:?}");
        // A writer that has to change this row waits, also beside a claim of it.
        let both = vec![write(3, false, change(1)), write(4, true, change(1))];
        let mut waiting = std::pin::pin!(store.commit(both));
        tokio::select! {
            biased;
            answer = &mut waiting => panic!("{answer:?}"),
            () = so_many_wait(&onlooker, 1) => {}
        }
        holder.batch_execute("COMMIT").await.unwrap();
        let answers = waiting.await;
        assert!(answers[0].is_ok() && answers[1].is_err(), "{answers:?}");
        commit(store, write(5, true, change(2))).await.unwrap();
    });
}
