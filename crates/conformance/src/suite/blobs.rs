//! Large parameters: stored once, referred to by journals, jobs and messages, and deleted with the last run that does.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::event::{Event, Start};
use windlass_engine::id::RunId;
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::money::Bill;
use windlass_engine::params::Params;
use windlass_engine::path::NodePath;
use windlass_engine::project::Project;
use windlass_engine::run::Run;
use windlass_store::Store;
use windlass_store::blob::{FoundBlobs, StoredCall, blob_of, blobs_of_jobs, referenced_bytes, written_out};
use windlass_store::commit::Commit;
use windlass_store::job::{JobQuery, JobRow};
use windlass_store::outbox::{Delivery, Message};
use windlass_store::run::Since;

use crate::driver::{Driver, delivered_input, start_with};
use crate::fixture::{StoreFixture, at, run_id, undelivered};

const PULL_EACH: &str = r#"{"start": "f", "nodes": {"f": {"kind": "foreach", "prep": {"input_key": "$params.items"},
    "parallel_mode": "concurrent", "params": {"w": 3, "x": 4}, "service": "resize", "exec_type": "queue"}}}"#;
const CALL_EACH: &str = r#"{"start": "f", "nodes": {"f": {"kind": "foreach", "prep": {"input_key": "$params.items"},
    "parallel_mode": "concurrent", "subflow": {"start": "c", "nodes": {"c": {"kind": "flow_ref", "flow": "child",
    "prep": {"input_map": {"n": "$input"}}}}}}}}"#;
const ECHO: &str = r#"{"start": "a", "nodes": {"a": {"service": "s"}}}"#;

/// Three items, and a text that is too large for a row.
fn large() -> Value {
    json!({"items": [1, 2, 3], "w": 5, "odd key": [true, null, 2.5, "ß\u{1f980}"], "text": "x".repeat(20_000)})
}

async fn jobs(store: &dyn Store) -> Vec<JobRow> {
    store
        .jobs(&Project::DEFAULT, JobQuery { run: Some(run_id(1)), ..JobQuery::default() })
        .await
        .unwrap()
        .items
}

async fn found(store: &dyn Store, project: &Project, params: &Params) -> FoundBlobs {
    let hashes = params.large().map(|layer| blob_of(layer).hash.clone()).collect();
    store.blobs(project, hashes).await.unwrap()
}

async fn stored_start(store: &dyn Store, run: RunId) -> Start {
    let journal = store.journal(&Project::DEFAULT, run, Since::Entry(Seq::ZERO), 1).await.unwrap();
    let Some(Event::Started(start)) = journal.entries[0].1.events.first() else { panic!("{journal:?}") };
    (**start).clone()
}

pub async fn jobs_refer_to_large_params_and_share_them(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut driver = Driver::new(&fixture, 1, PULL_EACH).await;
    driver.start(start_with(large()), 10).await;
    let rows = jobs(store).await;
    assert_eq!(rows.len(), 3);
    // The params of the run win over those of the node.
    let expected =
        json!({"items": [1, 2, 3], "w": 5, "x": 4, "odd key": large()["odd key"], "text": large()["text"]});
    let mut shared = Vec::new();
    for row in &rows {
        let payload = &row.job.spec.payload;
        assert!(payload.as_str().len() < 1_000, "{payload}");
        assert!(referenced_bytes(row) > 20_000);
        let hashes = blobs_of_jobs([row]);
        assert_eq!(hashes.len(), 1);
        let blobs = store.blobs(&Project::DEFAULT, hashes).await.unwrap();
        assert_eq!(json!(StoredCall::read(payload).unwrap().params(&blobs).unwrap()), expected);
        assert_eq!(written_out(payload, &blobs).unwrap().value()["params"], expected);
        shared.extend(blobs.into_values());
    }
    assert!(shared.iter().all(|layer| Arc::ptr_eq(layer, &shared[0])), "a blob is in memory once");
}

pub async fn a_start_with_large_params_reads_as_it_was_written(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for (n, snapshots) in [(1, false), (2, true)] {
        let mut driver = Driver::new(&fixture, n, PULL_EACH).await;
        driver.snapshots = snapshots;
        driver.start(start_with(large()), 10).await;
        let start = stored_start(store, run_id(n)).await;
        assert_eq!(json!(start.params), large());
        assert!(start.params_in.is_empty(), "references are resolved by the store");
        driver.submit(Input::Cancel { reason: None, by: None }, 11).await.unwrap();
    }
}

pub async fn children_refer_to_the_params_of_their_parent(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut parent = Driver::new(&fixture, 1, CALL_EACH).await;
    parent.start(start_with(large()), 10).await;
    let sent = undelivered(store, at(99), 10).await;
    assert_eq!(sent.len(), 3);
    let params = |message: &Message| match message.note.delivery() {
        Delivery::Create(child) => child.params,
        Delivery::Submit(input) => panic!("{input:?}"),
    };
    let mut expected = large();
    expected["n"] = json!(1);
    assert_eq!(json!(params(&sent[0])), expected);
    let layers: Vec<_> = sent.iter().map(|message| params(message).large().next().unwrap().clone()).collect();
    assert!(layers.iter().all(|layer| Arc::ptr_eq(layer, &layers[0])), "a blob is in memory once");
    assert_eq!(store.outbox_to(&Project::DEFAULT, sent[0].to.clone()).await.unwrap(), sent[..1]);
    let Delivery::Create(child) = sent[0].note.delivery() else { panic!("{sent:?}") };
    let mut created = Driver::new(&fixture, 2, ECHO).await;
    created.run = Run::new(child.child);
    let delivers = Commit {
        delivered: vec![sent[0].id.clone()],
        ..Commit::new(&Project::DEFAULT, fixture.command(), at(11))
    };
    created.submit_with(Input::Start(Box::new(child.start())), 11, delivers).await.unwrap();
    assert_eq!(json!(stored_start(store, child.child).await.params), expected);
}

pub async fn a_blob_is_deleted_with_the_last_run_that_refers_to_it(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let start = start_with(large());
    let params = start.params.clone();
    for (n, ends) in [(1, 20), (2, 30)] {
        let mut driver = Driver::new(&fixture, n, ECHO).await;
        driver.start(start.clone(), 10).await;
        driver.done("a", 1, json!(1), ends).await;
    }
    assert_eq!(found(store, &Project::DEFAULT, &params).await.len(), 1);
    assert!(found(store, &Project::new("other").unwrap(), &params).await.is_empty());
    assert_eq!(store.retain(at(25), 10).await.unwrap().n_runs, 1);
    assert_eq!(found(store, &Project::DEFAULT, &params).await.len(), 1);
    assert_eq!(store.retain(at(40), 10).await.unwrap().n_runs, 1);
    assert!(found(store, &Project::DEFAULT, &params).await.is_empty());
    // The same parameters can be stored again.
    Driver::new(&fixture, 3, ECHO).await.start(start, 50).await;
    assert_eq!(found(store, &Project::DEFAULT, &params).await.len(), 1);
}

pub async fn a_blob_is_kept_for_a_child_that_is_yet_to_be_created_and_no_longer(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut parent = Driver::new(&fixture, 1, CALL_EACH).await;
    let start = start_with(large());
    let params = start.params.clone();
    parent.start(start, 10).await;
    parent.submit(Input::Cancel { reason: None, by: None }, 11).await.unwrap();
    let sent = undelivered(store, at(99), 10).await;
    let canceled = |message: &Message| matches!(delivered_input(&message.note), Input::Cancel { .. });
    assert!(sent[3..].iter().all(canceled), "{sent:?}");
    for n in 0..3 {
        let (node, fence) = (NodePath::from(format!("f/{n}/c").as_str()), Fence(n + 1));
        let outcome = Some(CallOutcome::Canceled);
        parent.submit(Input::ChildEnded { node, fence, outcome, bill: Bill::default() }, 12).await.unwrap();
    }
    assert_eq!(store.retain(at(1_000), 10).await.unwrap().n_runs, 0);
    assert_eq!(undelivered(store, at(99), 10).await, sent);
    assert_eq!(found(store, &Project::DEFAULT, &params).await.len(), 1);
    let delivered = sent.into_iter().map(|message| message.id).collect();
    let commit = Commit { delivered, ..Commit::new(&Project::DEFAULT, fixture.command(), at(13)) };
    fixture.commit(commit).await.unwrap();
    assert_eq!(store.retain(at(1_000), 10).await.unwrap().n_runs, 1);
    assert!(found(store, &Project::DEFAULT, &params).await.is_empty());
}
