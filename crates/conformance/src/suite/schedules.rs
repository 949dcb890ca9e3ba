//! Schedules: a slot fires once.

use windlass_engine::counter::Revision;
use windlass_engine::job::{JobInput, JobSpec};
use windlass_engine::project::Project;
use windlass_engine::schedule::{Firing, Progress};
use windlass_store::commit::{Commit, ScheduleChange};
use windlass_store::page::Part;
use windlass_store::run::RunStatus;
use windlass_store::schedule::{FiringRow, History, Misfire, ScheduleRow, Started};
use windlass_store::{Refusal, Store};

use crate::fixture::{StoreFixture, at, job_id, run_id, schedule_id, schedule_row};

async fn save(
    fixture: &StoreFixture<'_>,
    expected_rev: u64,
    row: ScheduleRow,
) -> Result<(), windlass_store::StoreError> {
    let schedules = vec![ScheduleChange { expected_rev: Revision(expected_rev), row, delete: false }];
    fixture
        .commit(Commit { schedules, ..Commit::new(&Project::DEFAULT, fixture.command(), at(1)) })
        .await
        .map(|_| ())
}

fn firing(n: u64, slot: i64) -> Firing {
    Firing { schedule: schedule_id(n), slot: at(slot), manual: false }
}

/// Fires and starts a job in one commit.
async fn fire(
    fixture: &StoreFixture<'_>,
    firing: Firing,
    job: u64,
) -> Result<(), windlass_store::StoreError> {
    let mut commit = fixture.job(job, JobSpec::new("demo", "default"), at(5));
    commit.firings = vec![FiringRow { firing, started: Started::Job(job_id(job)) }];
    fixture.commit(commit).await.map(|_| ())
}

pub async fn a_slot_fires_once(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    save(&fixture, 0, schedule_row(1, Some(at(10)), at(1))).await.unwrap();
    fire(&fixture, firing(1, 10), 1).await.unwrap();
    let refused = fire(&fixture, firing(1, 10), 2).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::AlreadyFired(firing(1, 10))));
    assert_eq!(store.job(&Project::DEFAULT, job_id(2)).await.unwrap(), None);
    fire(&fixture, firing(1, 20), 2).await.unwrap();
}

pub async fn a_manual_firing_is_not_a_slot(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    save(&fixture, 0, schedule_row(1, Some(at(10)), at(1))).await.unwrap();
    fire(&fixture, Firing { manual: true, ..firing(1, 10) }, 1).await.unwrap();
    fire(&fixture, firing(1, 10), 2).await.unwrap();
}

pub async fn a_firing_is_deleted_with_the_job_it_started(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    save(&fixture, 0, schedule_row(1, Some(at(10)), at(1))).await.unwrap();
    fire(&fixture, firing(1, 10), 1).await.unwrap();
    store.retain(at(40), 10).await.unwrap();
    assert!(fire(&fixture, firing(1, 10), 2).await.is_err(), "an open job is kept, and its firing too");
    fixture.submit(1, JobInput::Cancel, at(6)).await.unwrap();
    assert_eq!(store.retain(at(40), 10).await.unwrap().n_jobs, 1);
    fire(&fixture, firing(1, 10), 3).await.unwrap();
}

pub async fn a_schedule_change_needs_the_right_revision(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut row = schedule_row(1, Some(at(10)), at(1));
    save(&fixture, 0, row.clone()).await.unwrap();
    row.progress = Progress { last_slot: Some(at(10)), waiting: vec![at(10)] };
    row.next_at = None;
    row.history = History {
        n_fired: 3,
        n_passed: 4,
        last: Some(FiringRow { firing: firing(1, 10), started: Started::Job(job_id(7)) }),
        last_error: Some(Misfire { slot: at(10), at: at(11), reason: "no version".to_owned() }),
    };
    assert!(save(&fixture, 0, row.clone()).await.unwrap_err().is_conflict());
    assert!(save(&fixture, 2, row.clone()).await.unwrap_err().is_conflict());
    save(&fixture, 1, row.clone()).await.unwrap();
    let found = store.schedule(&Project::DEFAULT, schedule_id(1)).await.unwrap().unwrap();
    assert_eq!((found.rev, &found.row), (Revision(2), &row));
}

pub async fn due_schedules_come_oldest_first_with_their_open_runs_and_jobs(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for (n, next) in [(1, Some(at(30))), (2, Some(at(20))), (3, None), (4, Some(at(99)))] {
        save(&fixture, 0, schedule_row(n, next, at(1))).await.unwrap();
    }
    fire(&fixture, firing(2, 5), 1).await.unwrap();
    fire(&fixture, firing(2, 6), 2).await.unwrap();
    fixture.submit(1, JobInput::Cancel, at(7)).await.unwrap();
    let mut commit = fixture.entry(1, 0, RunStatus::Running, at(8));
    commit.firings = vec![FiringRow { firing: firing(2, 8), started: Started::Run(run_id(1)) }];
    fixture.commit(commit).await.unwrap();
    let due = store.due(at(40), 10).await.unwrap().schedules;
    assert_eq!(due.iter().map(|row| row.row.id()).collect::<Vec<_>>(), [schedule_id(2), schedule_id(1)]);
    assert_eq!(due[0].running, [Started::Job(job_id(2)), Started::Run(run_id(1))]);
    assert!(due[1].running.is_empty());
    fixture.commit(fixture.entry(1, 1, RunStatus::Completed, at(9))).await.unwrap();
    let due = store.due(at(40), 1).await.unwrap().schedules;
    assert_eq!((due.len(), due[0].running.as_slice()), (1, &[Started::Job(job_id(2))][..]));
    assert_eq!(store.schedules(&Project::DEFAULT, Part::default()).await.unwrap().items.len(), 4);
}

pub async fn a_deleted_schedule_is_gone_and_its_slots_stay_fired(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let row = schedule_row(1, Some(at(10)), at(1));
    save(&fixture, 0, row.clone()).await.unwrap();
    fire(&fixture, firing(1, 10), 1).await.unwrap();
    let schedules = vec![ScheduleChange { expected_rev: Revision(1), row: row.clone(), delete: true }];
    fixture
        .commit(Commit { schedules, ..Commit::new(&Project::DEFAULT, fixture.command(), at(2)) })
        .await
        .unwrap();
    assert!(store.schedules(&Project::DEFAULT, Part::default()).await.unwrap().items.is_empty());
    assert!(store.due(at(99), 10).await.unwrap().schedules.is_empty());
    save(&fixture, 0, row).await.unwrap();
    assert!(fire(&fixture, firing(1, 10), 2).await.is_err());
}

pub async fn a_firing_of_an_unknown_schedule_is_refused(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let refused = fire(&fixture, firing(7, 10), 1).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UnknownSchedule(schedule_id(7))));
}
