//! Money in a store that no server uses.

use windlass_engine::counter::Seq;
use windlass_engine::event::Ending;
use windlass_engine::id::CommandId;
use windlass_engine::money::{Amount, Bill, Movement};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::account::Posting;
use windlass_store::commit::Commit;
use windlass_store::outbox::{Message, MessageId, Note, Party};

use super::*;
use crate::doctor::examine_at_rest;

#[tokio::test]
async fn a_store_at_rest_is_examined_without_a_trace() {
    let store = Arc::new(Memory::new());
    let first = server(&store).await;
    let run = stage(&first, 10).await;
    first.waits(&run).await;
    first.shut_down(Duration::ZERO).await;
    let servers = (&*store as &dyn Store).servers().await.unwrap();
    let examine = async || examine_at_rest(store.clone()).await.unwrap();
    let found = examine().await;
    assert_eq!((found.n_runs, found.n_accounts, found.findings), (1, 1, Vec::new()));
    assert_eq!((&*store as &dyn Store).servers().await.unwrap(), servers);
    // Its checks apply there too.
    let other = server(&store).await;
    let deposit = Posting { account: "acme".to_owned(), movement: Movement::deposit("silent", Amount(100)) };
    let command = CommandId::of_text("silent");
    let commit = Commit::new(&Project::DEFAULT, command, other.clock().now());
    other.shut_down(Duration::ZERO).await;
    let commit = Commit { postings: vec![deposit], ..commit };
    (&*store as &dyn Store).commit_one(commit).await.unwrap();
    let findings = examine().await.findings;
    assert!(findings.len() == 1 && findings[0].what.contains("calls wait for 50"), "{findings:?}");
}

/// So many runs in a store, each with calls of flows that cannot start.
async fn childless(n: usize, n_calls: usize, store: FaultyStore) -> Arc<FaultyStore> {
    let creates = |commit: &Commit| {
        let origin = commit.run.as_ref().and_then(|change| change.create.as_ref());
        origin.is_some_and(|origin| origin.parent.is_some())
    };
    let on_commit = move |_: &Memory, commits: &[Commit]| !commits.iter().any(creates);
    let store = Arc::new(FaultyStore { on_commit: Box::new(on_commit), ..store });
    let server = server(&store).await;
    stage(&server, 10).await;
    let node = |n| json!({ "id": format!("c{n}"), "type": "flow_ref", "config": { "flow": "speak" } });
    let nodes: Vec<Value> = (0..n_calls).map(node).collect();
    let new = published(&server, "calls", &json!({ "nodes": nodes, "edges": [] })).await;
    for _ in 0..n {
        server.runs().start(new.clone()).await.unwrap();
    }
    server.shut_down(Duration::ZERO).await;
    store
}

#[tokio::test]
async fn the_end_of_a_call_that_comes_while_others_are_looked_at_is_seen() {
    let (is_examined, n_reads) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
    let ended = |to: &Party, fence: Fence| Message {
        id: MessageId::new(Party::Account("child".to_owned()), Seq(fence.0)),
        to: to.clone(),
        at: Timestamp::default(),
        note: Note::CallEnded {
            node: "c0".into(),
            fence,
            ending: Ending::Failed,
            result: Arc::default(),
            error: None,
            bill: Bill::default(),
        },
    };
    // No child is to be created any more. The end of the first is there, that of the second when asked once more.
    let is_on = is_examined.clone();
    let on_messages = move |to: &Party, sent: Vec<Message>| {
        let is_to_child = sent.iter().any(|message| matches!(message.note, Note::StartChild(_)));
        match is_on.load(Ordering::SeqCst) {
            false => sent,
            true if is_to_child => Vec::new(),
            true => (0..=n_reads.fetch_add(1, Ordering::SeqCst)).map(|n| ended(to, Fence(n + 1))).collect(),
        }
    };
    let store = FaultyStore { on_messages: Box::new(on_messages), ..FaultyStore::default() };
    let store = childless(1, 2, store).await;
    store.n_messages.store(0, Ordering::SeqCst);
    is_examined.store(true, Ordering::SeqCst);
    let found = examine_at_rest(store.clone()).await.unwrap();
    assert_eq!((found.n_runs, found.findings), (1, Vec::new()));
    assert_eq!(store.n_messages.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn each_message_is_read_once_however_many_runs_are_open() {
    for n in [3, 30] {
        let store = childless(n, 1, FaultyStore::default()).await;
        store.n_messages.store(0, Ordering::SeqCst);
        let found = examine_at_rest(store.clone()).await.unwrap();
        assert_eq!((found.n_runs, found.findings), (n, Vec::new()));
        assert_eq!(store.n_messages.load(Ordering::SeqCst), n);
    }
}

#[tokio::test]
async fn each_message_to_an_account_is_read_once_however_many_runs_wait_for_it() {
    let store = Arc::new(FaultyStore::default());
    let first = server(&store).await;
    let new = stage(&first, 0).await;
    for _ in 0..20 {
        first.waits(&new).await;
    }
    first.shut_down(Duration::ZERO).await;
    comes_in(&store.memory, 50, true).await;
    store.n_messages.store(0, Ordering::SeqCst);
    let found = examine_at_rest(store.clone()).await.unwrap();
    assert_eq!((found.n_runs, found.findings), (20, Vec::new()));
    // Once for the runs, and once by the check of all rows.
    assert_eq!(store.n_messages.load(Ordering::SeqCst), 2);
}
