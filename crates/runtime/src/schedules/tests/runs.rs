//! Schedules that start runs.

use serde_json::Value;
use windlass_engine::definition::Strictness;
use windlass_store::flow::VersionStatus;
use windlass_store::run::{RunQuery, RunRow, RunStatus};

use super::*;
use crate::runs::flow::{FlowSpec, VersionSpec};

impl Runtime {
    async fn scheduled_flow(&self, definition: Value) -> FlowId {
        let version = VersionSpec {
            definition: definition.to_string(),
            strictness: Strictness::Strict,
            number: None,
            status: VersionStatus::Published,
            note: String::new(),
        };
        let flow = FlowSpec { name: "nightly".to_owned(), ..FlowSpec::default() };
        self.runs().publish_flow(flow, Some(version)).await.unwrap().published.flow
    }

    async fn scheduled_runs(&self, schedule: ScheduleId) -> Vec<RunRow> {
        let part = Part { order: Order::Oldest, limit: 1_000, ..Part::default() };
        let query = RunQuery { schedule: Some(schedule), part, ..RunQuery::default() };
        self.store().runs(self.project(), query).await.unwrap().items
    }
}

/// Ends only on a signal.
fn patient() -> Value {
    json!({"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "go"}}}})
}

fn of(flow: FlowId) -> FiringTarget {
    let params = Map::from_iter([("day".to_owned(), json!("today"))]);
    FiringTarget::Flow { flow, version: None, params, account: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_slot_starts_one_run_with_several_servers() {
    for store in [Arc::new(Memory::shared()), on_disk()] as [Arc<dyn Store>; 2] {
        let servers = servers(store, 3).await;
        let flow = servers[0].scheduled_flow(patient()).await;
        let draft = ScheduleDraft { catchup: Catchup::All, target: of(flow), ..hourly() };
        let id = servers[0].schedule_from(draft, start()).await;
        for nth in 1..=8_u64 {
            let race = servers.iter().zip([0, 5 * MINUTE, 3 * HOUR]).map(|(server, late)| {
                let server = server.clone();
                tokio::spawn(async move {
                    server.schedules().read_schedules().await.unwrap();
                    fire_at(&server, start().after(nth * 2 * HOUR + late)).await
                })
            });
            for one in race.collect::<Vec<_>>() {
                assert!(one.await.unwrap());
            }
        }
        let slots: Vec<Timestamp> = (1..=19).map(|n| start().after(n * HOUR)).collect();
        let runs = servers[0].scheduled_runs(id).await;
        let mut found: Vec<_> = runs.iter().map(|row| row.id).collect();
        let mut expected: Vec<_> = slots.iter().map(|at| slot(id, *at).run()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        let view = servers[1].runs().view(found[0]).await.unwrap().unwrap();
        assert_eq!((view.row.origin.flow, view.row.origin.schedule), (flow, Some(id)));
        let history = servers[1].schedule_seen(id).await.row.history;
        assert_eq!((history.n_fired, history.last_error), (19, None));
    }
}

#[tokio::test]
async fn a_start_that_is_refused_is_seen_and_blocks_no_later_slot() {
    let server = server().await;
    let flow = server.scheduled_flow(patient()).await;
    let id = server
        .schedule_from(ScheduleDraft { target: of(flow), catchup: Catchup::All, ..hourly() }, start())
        .await;
    let gone = FiringTarget::Flow { flow, version: Some(7), params: Map::new(), account: None };
    server.rewrite_schedule(id, |row| row.target = serde_json::to_value(gone).unwrap()).await;
    let (first, second) = (start().after(HOUR), start().after(2 * HOUR));
    assert!(fire_at(&server, first).await);
    let row = server.schedule_seen(id).await.row;
    let error = row.history.last_error.unwrap();
    assert_eq!(error.slot, first);
    assert!(error.reason.ends_with("has no version 7: its highest is 1"), "{}", error.reason);
    assert_eq!((row.next_at, row.history.n_passed), (Some(second), 1));
    assert!(matches!(server.schedules().trigger_schedule(id).await, Err(ScheduleError::Problems(_))));
    server.rewrite_schedule(id, |row| row.target = json!({"rocket": 1})).await;
    assert!(fire_at(&server, second).await);
    let error = server.schedule_seen(id).await.row.history.last_error.unwrap();
    assert!(error.reason.contains("cannot be read"), "{}", error.reason);
    server.rewrite_schedule(id, |row| row.target = serde_json::to_value(of(flow)).unwrap()).await;
    assert!(fire_at(&server, start().after(3 * HOUR)).await);
    assert_eq!(server.scheduled_runs(id).await.len(), 1);
    assert_eq!(server.schedule_seen(id).await.row.history.last_error, None);
}

#[tokio::test]
async fn a_schedule_without_a_payer_is_refused_and_a_firing_without_one_is_recorded() {
    let server = server().await;
    let flow = server.scheduled_flow(patient()).await;
    let account = Some("nobody".to_owned());
    let job = FiringTarget::Job(Box::new(JobSpec { account: account.clone(), ..spec() }));
    let run = FiringTarget::Flow { flow, version: None, params: Map::new(), account };
    for (target, path) in [(job, "$.task.account"), (run, "$.account")] {
        let refused =
            server.schedules().create_schedule(ScheduleDraft { target: target.clone(), ..hourly() }).await;
        let Err(ScheduleError::Problems(problems)) = refused else { panic!("{refused:?}") };
        assert_eq!(problems.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), [path]);
        // One that is there since before.
        let id = server.schedule_from(hourly(), start()).await;
        server.rewrite_schedule(id, |row| row.target = serde_json::to_value(target).unwrap()).await;
        assert!(fire_at(&server, start().after(HOUR)).await);
        let error = server.schedule_seen(id).await.row.history.last_error.unwrap();
        assert!(error.reason.contains("`nobody`"), "{}", error.reason);
        assert!(server.scheduled_jobs(id).await.is_empty() && server.scheduled_runs(id).await.is_empty());
    }
}

#[tokio::test]
async fn a_run_that_is_in_the_way_is_cancelled_and_one_that_is_waited_for_is_not() {
    let server = server().await;
    let flow = server.scheduled_flow(patient()).await;
    let (first, second) = (start().after(HOUR), start().after(2 * HOUR));
    for (overlap, n_started, is_open) in [(Overlap::Cancel, 2, false), (Overlap::Queue, 1, true)] {
        let id = server.schedule_from(ScheduleDraft { target: of(flow), overlap, ..hourly() }, start()).await;
        assert!(fire_at(&server, first).await);
        assert!(fire_at(&server, second).await);
        assert_eq!(server.scheduled_runs(id).await.len(), n_started);
        let status = server.runs().view(slot(id, first).run()).await.unwrap().unwrap().row.projection.status;
        assert_eq!(status.is_open(), is_open, "{overlap:?}");
        let newest = Started::Run(slot(id, if is_open { first } else { second }).run());
        assert_eq!(server.schedule_seen(id).await.running, [newest]);
    }
}

#[tokio::test]
async fn the_end_of_a_run_lets_the_next_slot_go() {
    let server = server().await;
    let flow = server.scheduled_flow(patient()).await;
    let id = server
        .schedule_from(ScheduleDraft { target: of(flow), overlap: Overlap::Queue, ..hourly() }, start())
        .await;
    let (first, second) = (start().after(HOUR), start().after(2 * HOUR));
    let mut changes = server.runs().changes();
    assert!(fire_at(&server, first).await);
    assert!(fire_at(&server, second).await);
    let cancel = windlass_engine::input::Input::Cancel { reason: None, by: None };
    server.runs().submit(slot(id, first).run(), cancel).await.unwrap();
    let begins = async {
        loop {
            let change = changes.recv().await.unwrap();
            if change.run == slot(id, second).run() {
                return change.status;
            }
        }
    };
    let status = tokio::time::timeout(PATIENCE, begins).await.unwrap();
    assert_eq!(status, RunStatus::Waiting);
}
