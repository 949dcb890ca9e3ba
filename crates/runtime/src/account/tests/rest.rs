//! Money in a store that no server uses.

use windlass_engine::id::CommandId;
use windlass_engine::money::Movement;
use windlass_store::account::Posting;
use windlass_store::commit::Commit;

use super::*;
use crate::doctor::examine_at_rest;

#[tokio::test]
async fn a_store_at_rest_is_examined_without_a_trace() {
    let store = Arc::new(Memory::new());
    let first = server(&store, true).await;
    let run = stage(&first, 10).await;
    first.waits(&run).await;
    first.shut_down(Duration::ZERO).await;
    let servers = (&*store as &dyn Store).servers().await.unwrap();
    let examine = async || examine_at_rest(store.clone()).await.unwrap();
    let found = examine().await;
    assert_eq!((found.n_runs, found.n_accounts, found.findings), (1, 1, Vec::new()));
    assert_eq!((&*store as &dyn Store).servers().await.unwrap(), servers);
    // What is wrong is found there too.
    let other = server(&store, true).await;
    let deposit = Posting { account: "acme".to_owned(), movement: Movement::deposit("silent", 100) };
    let command = CommandId::of_text("silent");
    let commit = Commit::new(command, other.clock().now());
    other.shut_down(Duration::ZERO).await;
    let commit = Commit { postings: vec![deposit], ..commit };
    (&*store as &dyn Store).commit_one(commit).await.unwrap();
    let findings = examine().await.findings;
    assert!(findings.len() == 1 && findings[0].what.contains("calls wait for 50"), "{findings:?}");
}
