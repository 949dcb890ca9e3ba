//! Runs: creation, journals, wake-ups, owners.

use windlass_engine::counter::{Revision, Seq};
use windlass_engine::job::JobSpec;
use windlass_engine::project::Project;
use windlass_store::commit::{Commit, ScheduleChange};
use windlass_store::run::{Origin, Owner, Request, RunProjection, RunRef, RunStatus, Since, Snapshot, Wake};
use windlass_store::server::ServerRow;
use windlass_store::store::Due;
use windlass_store::{Refusal, Store};

use crate::fixture::{
    StoreFixture, at, job_id, origin, run_id, schedule_id, schedule_row, server, version_id,
};

fn asked(id: &str, digest: &str) -> impl FnOnce(&mut Origin, &mut RunProjection) {
    let request = Request { id: id.to_owned(), digest: digest.to_owned() };
    |origin, _| origin.request = Some(request)
}

fn owned(owner: Owner) -> impl FnOnce(&mut Origin, &mut RunProjection) {
    move |_, projection| projection.owner = Some(owner)
}

fn waking(ms: i64) -> impl FnOnce(&mut Origin, &mut RunProjection) {
    move |_, projection| projection.wake_at = Some(at(ms))
}

pub async fn a_run_is_created_once_per_request_id(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create(1, RunStatus::Running, at(1), asked("r", "same")).await.unwrap();
    let refused = fixture.create(2, RunStatus::Running, at(2), asked("r", "same")).await.unwrap_err();
    let taken = Refusal::RequestTaken { request: "r".to_owned(), existing: run_id(1), same_request: true };
    assert_eq!(refused.refusal(), Some(&taken));
    assert_eq!(fixture.run(2).await, None);
    let found = store.run(&Project::DEFAULT, RunRef::Request("r".to_owned())).await.unwrap();
    assert_eq!(found.unwrap().id, run_id(1));
    assert_eq!(store.run(&Project::DEFAULT, RunRef::Request("other".to_owned())).await.unwrap(), None);
}

pub async fn another_request_under_the_same_id_is_told_apart(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create(1, RunStatus::Running, at(1), asked("r", "one")).await.unwrap();
    let refused = fixture.create(2, RunStatus::Running, at(2), asked("r", "two")).await.unwrap_err();
    let refusal = refused.refusal().unwrap();
    assert!(matches!(refusal, Refusal::RequestTaken { same_request: false, .. }), "{refusal}");
}

pub async fn a_run_of_an_unknown_version_is_refused(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let unknown = |origin: &mut Origin, _: &mut RunProjection| origin.version = version_id(9);
    let refused = fixture.create(1, RunStatus::Running, at(1), unknown).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UnknownVersion(version_id(9))));
}

pub async fn the_journal_is_dense_and_comes_in_parts(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut written = Vec::new();
    for len in 0..7 {
        let commit = fixture.entry(1, len, RunStatus::Running, at(1));
        written.push((Seq(len + 1), commit.run.clone().unwrap().entry));
        fixture.commit(commit).await.unwrap();
    }
    let part = |after, limit| store.journal(&Project::DEFAULT, run_id(1), Since::Entry(Seq(after)), limit);
    assert_eq!(part(0, 100).await.unwrap().entries, written);
    assert_eq!(part(2, 3).await.unwrap().entries, written[2..5]);
    assert_eq!(part(5, 3).await.unwrap().entries, written[5..]);
    assert_eq!(part(7, 3).await.unwrap().entries, []);
    assert_eq!(part(u64::MAX >> 1, 3).await.unwrap().entries, []);
}

pub async fn the_journal_of_an_unknown_run_is_empty(store: &dyn Store) {
    for since in [Since::Entry(Seq::ZERO), Since::Snapshot] {
        let journal = store.journal(&Project::DEFAULT, run_id(9), since, 10).await.unwrap();
        assert_eq!((journal.snapshot, journal.entries.len()), (None, 0));
    }
}

pub async fn a_snapshot_saves_reading_earlier_entries(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for len in 0..5 {
        let mut commit = fixture.entry(1, len, RunStatus::Running, at(1));
        let bytes = [1, 3].contains(&len).then(|| vec![0, 255, u8::try_from(len).unwrap()]);
        commit.run.as_mut().unwrap().snapshot = bytes;
        fixture.commit(commit).await.unwrap();
    }
    let journal = store.journal(&Project::DEFAULT, run_id(1), Since::Snapshot, 100).await.unwrap();
    assert_eq!(journal.snapshot, Some(Snapshot { seq: Seq(4), bytes: vec![0, 255, 3] }));
    assert_eq!(journal.entries.iter().map(|(seq, _)| seq.0).collect::<Vec<_>>(), [5]);
    // Earlier entries are still there for readers.
    let journal = store.journal(&Project::DEFAULT, run_id(1), Since::Entry(Seq::ZERO), 100).await.unwrap();
    assert_eq!((journal.snapshot, journal.entries.len()), (None, 5));
}

pub async fn the_origin_of_a_run_never_changes(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create(1, RunStatus::Running, at(1), asked("r", "d")).await.unwrap();
    let before = fixture.run(1).await.unwrap();
    let mut commit = fixture.entry(1, 1, RunStatus::Waiting, at(9));
    commit.run.as_mut().unwrap().projection.wake_at = Some(at(50));
    let projection = commit.run.clone().unwrap().projection;
    fixture.commit(commit).await.unwrap();
    let after = fixture.run(1).await.unwrap();
    assert_eq!(after.origin, before.origin);
    assert_eq!(after.origin.created_at, origin(at(1)).created_at);
    assert_eq!((after.len, after.projection), (Seq(2), projection));
}

pub async fn due_runs_come_oldest_first_and_only_open_ones(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for (run, wake) in [(1, 30), (2, 10), (3, 20), (4, 41), (5, 5)] {
        fixture.create(run, RunStatus::Waiting, at(1), waking(wake)).await.unwrap();
    }
    fixture.create(6, RunStatus::Waiting, at(1), |_, _| {}).await.unwrap();
    fixture.commit(fixture.entry(5, 1, RunStatus::Completed, at(2))).await.unwrap();
    let due = store.due(at(40), 100).await.unwrap().runs;
    let due: Vec<_> = due.iter().map(|wake| (wake.at.0, wake.id)).collect();
    assert_eq!(due, [(10, run_id(2)), (20, run_id(3)), (30, run_id(1))]);
    let two = store.due(at(40), 2).await.unwrap().runs;
    assert_eq!(two.iter().map(|wake| wake.id).collect::<Vec<_>>(), [run_id(2), run_id(3)]);
    assert!(store.due(at(9), 100).await.unwrap().runs.is_empty());
}

pub async fn a_wake_up_that_was_moved_is_due_only_then(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create(1, RunStatus::Waiting, at(1), waking(10)).await.unwrap();
    let mut commit = fixture.entry(1, 1, RunStatus::Waiting, at(2));
    commit.run.as_mut().unwrap().projection.wake_at = Some(at(70));
    fixture.commit(commit).await.unwrap();
    assert!(store.due(at(69), 100).await.unwrap().runs.is_empty());
    assert_eq!(store.due(at(70), 100).await.unwrap().runs.len(), 1);
}

async fn beat(store: &dyn Store, owner: Owner, ms: i64) {
    let row = ServerRow {
        owner,
        name: "server".to_owned(),
        version: "0.1.0".to_owned(),
        started_at: at(0),
        beat_at: at(ms),
        worker_ttl_ms: 15_000,
    };
    store.save_server(row).await.unwrap();
}

async fn orphans(store: &dyn Store, now: i64) -> Vec<u64> {
    let rows = store.orphans(at(now), 10_000, None, 100).await.unwrap();
    (1..10).filter(|n| rows.iter().any(|row| row.id == run_id(*n))).collect()
}

pub async fn runs_of_a_dead_server_are_orphans(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    beat(store, server(1, 1), 5_000).await;
    beat(store, server(2, 1), 1_000).await;
    fixture.create(1, RunStatus::Running, at(1), owned(server(1, 1))).await.unwrap();
    fixture.create(2, RunStatus::Running, at(1), owned(server(2, 1))).await.unwrap();
    fixture.create(3, RunStatus::Running, at(1), owned(server(3, 1))).await.unwrap();
    assert_eq!(orphans(store, 6_000).await, [3]);
    assert_eq!(orphans(store, 10_999).await, [3]);
    assert_eq!(orphans(store, 11_000).await, [2, 3]);
    beat(store, server(2, 1), 11_000).await;
    assert_eq!(orphans(store, 11_000).await, [3]);
    assert_eq!(store.orphans(at(90_000), 10_000, None, 2).await.unwrap().len(), 2);
}

pub async fn runs_of_an_earlier_epoch_are_orphans(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    beat(store, server(1, 1), 1_000).await;
    fixture.create(1, RunStatus::Running, at(1), owned(server(1, 1))).await.unwrap();
    assert_eq!(orphans(store, 2_000).await, [] as [u64; 0]);
    beat(store, server(1, 2), 2_000).await;
    fixture.create(2, RunStatus::Running, at(1), owned(server(1, 2))).await.unwrap();
    assert_eq!(orphans(store, 2_000).await, [1]);
}

pub async fn runs_that_ended_or_have_no_owner_are_no_orphans(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create(1, RunStatus::Waiting, at(1), |_, _| {}).await.unwrap();
    fixture.create(2, RunStatus::Running, at(1), owned(server(1, 1))).await.unwrap();
    assert_eq!(orphans(store, 1).await, [2]);
    fixture.commit(fixture.entry(2, 1, RunStatus::Failed, at(2))).await.unwrap();
    assert_eq!(orphans(store, 90_000).await, [] as [u64; 0]);
}

pub async fn orphans_are_walked_through_by_id(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    beat(store, server(4, 1), 90_000).await;
    for run in 1..=7 {
        // The owners are several dead servers in turn, and a live one.
        let owner = if run == 3 { server(4, 1) } else { server(1 + run % 2, run % 3) };
        fixture.create(run, RunStatus::Running, at(1), owned(owner)).await.unwrap();
    }
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let rows = store.orphans(at(90_000), 10_000, after, 2).await.unwrap();
        let Some(last) = rows.last() else { break };
        assert!(rows.len() <= 2);
        after = Some(last.id);
        found.extend(rows.into_iter().map(|row| row.id));
    }
    assert_eq!(found, [1, 2, 4, 5, 6, 7].map(run_id));
}

pub async fn rows_that_become_due_later_are_found_with_their_times(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create(1, RunStatus::Waiting, at(1_000), waking(30_000)).await.unwrap();
    fixture.create(2, RunStatus::Waiting, at(1_000), waking(61_001)).await.unwrap();
    let later = JobSpec { run_at: Some(at(20_000)), ..JobSpec::new("demo", "default") };
    fixture.create_job(1, later, at(1_000)).await.unwrap();
    let row = schedule_row(1, Some(at(60_000)), at(1_000));
    let schedules = vec![ScheduleChange { expected_rev: Revision(0), row, delete: false }];
    fixture
        .commit(Commit { schedules, ..Commit::new(&Project::DEFAULT, fixture.command(), at(1_000)) })
        .await
        .unwrap();
    let now = store.due(at(1_000), 10).await.unwrap();
    assert_eq!(now, Due::default());
    let due = store.due(at(61_000), 10).await.unwrap();
    assert_eq!(due.runs, [Wake { at: at(30_000), id: run_id(1), project: Project::DEFAULT }]);
    assert_eq!(due.jobs, [Wake { at: at(20_000), id: job_id(1), project: Project::DEFAULT }]);
    let schedules: Vec<_> = due.schedules.iter().map(|row| (row.row.next_at, row.row.id())).collect();
    assert_eq!(schedules, [(Some(at(60_000)), schedule_id(1))]);
}
