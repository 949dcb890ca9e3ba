//! Bulk actions, and samples for charts.

use serde_json::json;
use uuid::Uuid;
use windlass_engine::counter::Revision;
use windlass_engine::id::BulkId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::Store;
use windlass_store::bulk::{BulkFailure, BulkRow, BulkSpec, BulkState, BulkStatus, BulkTarget};
use windlass_store::sample::{SampleQuery, SampleRow};

use crate::fixture::{at, run_id, server};

const HERE: Project = Project::DEFAULT;

fn bulk_id(n: u64) -> BulkId {
    BulkId::new(Uuid::from_u128(u128::from(n)))
}

fn bulk(n: u64) -> BulkRow {
    let spec = BulkSpec {
        action: "retry".to_owned(),
        args: json!({"from": "é\u{0}"}),
        query: Some("status:failed".to_owned()),
        reason: "the \"upstream\" is back".to_owned(),
        actor: "ann".to_owned(),
    };
    let state = BulkState {
        spec,
        status: BulkStatus::Running,
        matched: 3,
        done: 0,
        succeeded: 0,
        failed: 0,
        owner: Some(server(1, 2)),
        created_at: at(1),
        updated_at: at(1),
    };
    BulkRow { project: HERE, id: bulk_id(n), rev: Revision(1), state, ended_at: None }
}

fn targets(from: u64, n: u64) -> Vec<BulkTarget> {
    (from..from + n).map(|n| BulkTarget { run: run_id(n), round: 2 }).collect()
}

fn failure(no: u64) -> BulkFailure {
    let (code, message) = ("run_open".to_owned(), "it \0 is open".to_owned());
    BulkFailure { no, run: run_id(no), code, message }
}

/// A bulk action after its end, with a failure.
fn ended(row: BulkRow, ms: i64) -> BulkRow {
    let state = BulkState { status: BulkStatus::Completed, done: 3, succeeded: 2, failed: 1, ..row.state };
    BulkRow { state, ended_at: Some(at(ms)), ..row }
}

pub async fn a_bulk_action_keeps_its_targets_and_its_progress(store: &dyn Store) {
    let row = bulk(1);
    store.create_bulk(&HERE, row.clone(), vec![targets(1, 2), targets(3, 1)]).await.unwrap();
    assert_eq!(store.bulk(&HERE, row.id).await.unwrap(), Some(row.clone()));
    assert_eq!(store.open_bulks(9).await.unwrap(), std::slice::from_ref(&row));
    for (part, expected) in [(0, targets(1, 2)), (1, targets(3, 1)), (2, Vec::new())] {
        assert_eq!(store.bulk_targets(&HERE, row.id, part).await.unwrap(), expected);
    }
    let over = ended(row.clone(), 5);
    store.save_bulk(&HERE, over.clone(), vec![failure(2), failure(1)]).await.unwrap();
    let saved = store.bulk(&HERE, row.id).await.unwrap().unwrap();
    assert_eq!(saved, BulkRow { rev: Revision(2), ..over.clone() });
    // The same failure again, after a restart, is the same row.
    store.save_bulk(&HERE, saved, vec![failure(1)]).await.unwrap();
    assert_eq!(store.bulk_failures(&HERE, row.id, 9).await.unwrap(), [failure(1), failure(2)]);
    assert_eq!(store.bulk_failures(&HERE, row.id, 1).await.unwrap(), [failure(1)]);
    assert!(store.open_bulks(9).await.unwrap().is_empty());
    // One of two servers with the same row writes.
    assert!(store.save_bulk(&HERE, over, Vec::new()).await.unwrap_err().is_conflict());
    assert!(store.save_bulk(&HERE, bulk(9), Vec::new()).await.unwrap_err().is_conflict());
}

pub async fn bulk_actions_are_listed_and_forgotten(store: &dyn Store) {
    for n in 1..=3 {
        store.create_bulk(&HERE, bulk(n), vec![targets(n, 1)]).await.unwrap();
    }
    let ids = |rows: Vec<BulkRow>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(ids(store.bulks(&HERE, None, 2).await.unwrap()), [bulk_id(3), bulk_id(2)]);
    assert_eq!(ids(store.bulks(&HERE, Some(bulk_id(2)), 2).await.unwrap()), [bulk_id(1)]);
    for (n, ms) in [(1, 10), (2, 20)] {
        store.save_bulk(&HERE, ended(bulk(n), ms), vec![failure(1)]).await.unwrap();
    }
    assert_eq!(store.delete_bulks(at(20), 9).await.unwrap(), 1);
    assert_eq!(ids(store.bulks(&HERE, None, 9).await.unwrap()), [bulk_id(3), bulk_id(2)]);
    assert!(store.bulk_targets(&HERE, bulk_id(1), 0).await.unwrap().is_empty());
    assert!(store.bulk_failures(&HERE, bulk_id(1), 9).await.unwrap().is_empty());
}

pub async fn bulk_actions_of_another_project_are_not_seen(store: &dyn Store) {
    let there = Project::new("there").unwrap();
    store.create_bulk(&there, bulk(1), vec![targets(1, 1)]).await.unwrap();
    let row = store.bulk(&there, bulk_id(1)).await.unwrap().unwrap();
    store.save_bulk(&there, ended(row.clone(), 3), vec![failure(1)]).await.unwrap();
    assert_eq!(row.project, there);
    assert_eq!(store.bulk(&HERE, bulk_id(1)).await.unwrap(), None);
    assert!(store.bulks(&HERE, None, 9).await.unwrap().is_empty());
    assert!(store.bulk_targets(&HERE, bulk_id(1), 0).await.unwrap().is_empty());
    assert!(store.bulk_failures(&HERE, bulk_id(1), 9).await.unwrap().is_empty());
    assert!(store.save_bulk(&HERE, bulk(1), Vec::new()).await.unwrap_err().is_conflict());
}

pub async fn samples_are_replaced_read_by_time_and_forgotten(store: &dyn Store) {
    let sample = |scope: &str, ms: i64, n: u64, figures: &str| SampleRow {
        scope: scope.to_owned(),
        at: at(ms),
        server: server(n, 1).server,
        figures: figures.to_owned(),
    };
    let first = vec![sample("", 60, 1, "{}"), sample("", 60, 2, "{}"), sample("q", 60, 1, "{}")];
    store.save_samples(&HERE, first).await.unwrap();
    store.save_samples(&HERE, vec![sample("", 60, 1, "{\"a\":1}"), sample("", 120, 1, "{}")]).await.unwrap();
    let read = async |scope: &str, since: i64, until: i64| {
        let query = SampleQuery { scope: scope.to_owned(), since: at(since), until: at(until) };
        store.samples(&HERE, query).await.unwrap()
    };
    let minute = [sample("", 60, 1, "{\"a\":1}"), sample("", 60, 2, "{}")];
    assert_eq!(read("", 0, 120).await, minute);
    assert_eq!(read("", 120, 121).await, [sample("", 120, 1, "{}")]);
    assert_eq!(read("q", 0, 999).await, [sample("q", 60, 1, "{}")]);
    let there = Project::new("there").unwrap();
    let query = SampleQuery { until: Timestamp(i64::MAX), ..SampleQuery::default() };
    assert!(store.samples(&there, query).await.unwrap().is_empty());
    assert_eq!(store.delete_samples(at(120), 2).await.unwrap(), 2);
    assert_eq!(store.delete_samples(at(120), 9).await.unwrap(), 1);
    assert_eq!(read("", 0, 999).await, [sample("", 120, 1, "{}")]);
}
