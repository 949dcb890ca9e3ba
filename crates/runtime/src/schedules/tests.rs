//! Schedules on real stores, at times of the tests' own choosing.

mod drafts;
mod dst;
mod overlap;
mod runs;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use windlass_engine::id::CommandId;
use windlass_engine::project::Project;
use windlass_engine::schedule::Firing;
use windlass_store::commit::Commit;
use windlass_store::job::{JobQuery, JobRow};
use windlass_store::page::{Order, Part};
use windlass_store::sqlite::{Durability, Sqlite};
use windlass_store::{Memory, Store};

use super::*;
use crate::clock::ManualWall;
use crate::runtime::start_with;
use crate::{Runtime, Settings};

/// Longer than anything takes that is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

/// A Tuesday.
fn start() -> Timestamp {
    at("2086-01-01T00:00:00Z")
}

/// A server with a wall clock of its own, which stands at the start until `fire_at` sets it.
async fn in_2086(store: Arc<dyn Store>, settings: Settings) -> Runtime {
    start_with(store, settings, ManualWall::at(start()).clock()).await.unwrap()
}

async fn server() -> Runtime {
    in_2086(Arc::new(Memory::new()), Settings::default()).await
}

/// Servers that share a store.
async fn servers(store: Arc<dyn Store>, n: usize) -> Vec<Runtime> {
    let (wall, mut servers) = (ManualWall::at(start()), Vec::new());
    for nth in 0..n {
        let settings = Settings { name: format!("server {nth}"), ..Settings::default() };
        let started = start_with(store.clone(), settings, wall.apart().clock());
        servers.push(started.await.unwrap());
    }
    servers
}

fn on_disk() -> Arc<dyn Store> {
    Arc::new(Sqlite::temporary(Durability::Fast).unwrap().shared())
}

fn spec() -> JobSpec {
    JobSpec { payload: json!({"n": 1}).into(), ..JobSpec::new("tick", "q") }
}

fn hourly() -> ScheduleDraft {
    ScheduleDraft {
        name: "every hour".to_owned(),
        cron_expr: "0 * * * *".to_owned(),
        timezone: "UTC".to_owned(),
        dst: Dst::Shift,
        enabled: true,
        overlap: Overlap::Allow,
        catchup: Catchup::None,
        window_ms: 0,
        target: FiringTarget::Job(Box::new(spec())),
    }
}

fn slot(schedule: ScheduleId, at: Timestamp) -> Firing {
    Firing { schedule, slot: at, manual: false }
}

/// Sets the wall clock and fires everything that is due, as the server's own loop does, too.
async fn fire_at(server: &Runtime, at: Timestamp) -> bool {
    server.clock().set_wall(at);
    server.schedules().fire_due(at).await
}

impl Runtime {
    /// A schedule of which everything before `start` is decided.
    async fn schedule_from(&self, draft: ScheduleDraft, start: Timestamp) -> ScheduleId {
        let made = self.schedules().create_schedule(draft).await.unwrap();
        self.rewrite_schedule(made.row.id(), |row| {
            row.progress.last_slot = Some(start);
            row.next_at = row.schedule.cron.next_after(start);
        })
        .await;
        made.row.id()
    }

    /// Changes the row behind the server's back.
    async fn rewrite_schedule(&self, id: ScheduleId, change: impl FnOnce(&mut ScheduleRow)) {
        let Scheduled { rev, mut row, .. } = self.schedule_seen(id).await;
        change(&mut row);
        let schedules = vec![ScheduleChange { expected_rev: rev, row, delete: false }];
        let commit =
            Commit { schedules, ..Commit::new(&Project::DEFAULT, CommandId::new(Uuid::now_v7()), start()) };
        self.store().commit_one(commit).await.unwrap();
        self.schedules().read_schedules().await.unwrap();
    }

    async fn schedule_seen(&self, id: ScheduleId) -> Scheduled {
        self.schedules().show(id).await.unwrap().unwrap()
    }

    /// The jobs of a schedule, oldest first.
    async fn scheduled_jobs(&self, schedule: ScheduleId) -> Vec<JobRow> {
        let part = Part { order: Order::Oldest, limit: 1_000, ..Part::default() };
        let query = JobQuery { schedule: Some(schedule), part, ..JobQuery::default() };
        self.store().jobs(self.project(), query).await.unwrap().items
    }

    /// The slots of a schedule that fired, among these; and that nothing else did.
    async fn fired_at(&self, schedule: ScheduleId, slots: &[Timestamp]) -> Vec<Timestamp> {
        let jobs = self.scheduled_jobs(schedule).await;
        let has = |at: &Timestamp| jobs.iter().any(|row| row.id() == slot(schedule, *at).job());
        let fired: Vec<Timestamp> = slots.iter().filter(|at| has(at)).copied().collect();
        assert_eq!(fired.len(), jobs.len(), "something else fired as well");
        fired
    }
}

#[tokio::test]
async fn a_slot_starts_one_job_and_says_so() {
    let server = server().await;
    let id = server.schedule_from(hourly(), start()).await;
    let first = start().after(HOUR);
    assert!(fire_at(&server, Timestamp(first.0 - 1)).await);
    assert!(server.scheduled_jobs(id).await.is_empty(), "nothing fires before its time");
    assert!(fire_at(&server, first).await);
    assert!(fire_at(&server, first.after(5)).await);
    let jobs = server.scheduled_jobs(id).await;
    assert_eq!(jobs.len(), 1);
    assert_eq!((jobs[0].id(), &*jobs[0].job.spec), (slot(id, first).job(), &spec()));
    assert_eq!(jobs[0].origin.schedule, Some(id));
    let seen = server.schedule_seen(id).await;
    assert_eq!(seen.running, [Started::Job(jobs[0].id())]);
    assert_eq!((seen.row.history.n_fired, seen.row.history.n_passed), (1, 0));
    assert_eq!(seen.row.history.last.map(|row| row.firing), Some(slot(id, first)));
    assert_eq!(seen.row.next_at, Some(first.after(HOUR)));
}

#[tokio::test]
async fn missed_slots_are_caught_up_as_configured() {
    let slots: Vec<Timestamp> = (1..=30).map(|n| start().after(n * HOUR)).collect();
    let late = slots[29].after(30 * MINUTE);
    for (catchup, window_ms, expected) in [
        (Catchup::None, 0, &slots[..0]),
        (Catchup::Last, 0, &slots[29..]),
        (Catchup::All, 0, &slots[6..]),
        (Catchup::All, 3 * HOUR, &slots[27..]),
        (Catchup::All, 48 * HOUR, &slots[..]),
    ] {
        let server = server().await;
        let id = server.schedule_from(ScheduleDraft { catchup, window_ms, ..hourly() }, start()).await;
        assert!(fire_at(&server, late).await);
        assert_eq!(server.fired_at(id, &slots).await, expected, "{catchup:?} within {window_ms}");
        let history = server.schedule_seen(id).await.row.history;
        assert_eq!(history.n_fired, expected.len() as u64);
        assert_eq!(history.n_fired + history.n_passed, 30);
    }
}

#[tokio::test]
async fn slots_missed_while_no_server_ran_are_caught_up_at_the_start() {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let before = in_2086(store.clone(), Settings::default()).await;
    let id = before.schedule_from(ScheduleDraft { catchup: Catchup::Last, ..hourly() }, start()).await;
    before.shut_down(Duration::ZERO).await;
    let missed = {
        let now = before.clock().now();
        let (slots, _) =
            before.schedule_seen(id).await.row.schedule.cron.latest(Timestamp(now.0 - 3 * 3_600_000), now, 9);
        *slots.last().unwrap()
    };
    before
        .rewrite_schedule(id, |row| {
            row.progress.last_slot = Some(Timestamp(missed.0 - 1));
            row.next_at = Some(missed);
        })
        .await;
    let server = in_2086(store, Settings::default()).await;
    let claim = crate::jobs::ClaimRequest {
        worker: "w".to_owned(),
        queues: vec!["q".to_owned()],
        services: Vec::new(),
        max: 1,
        wait: PATIENCE,
        lease: Duration::ZERO,
    };
    assert_eq!(server.jobs().claim(claim).await.unwrap()[0].job, slot(id, missed).job());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_fires_each_slot() {
    for store in [Arc::new(Memory::shared()), on_disk()] as [Arc<dyn Store>; 2] {
        let servers = servers(store, 3).await;
        let cron = ScheduleDraft { cron_expr: "*/5 * * * *".to_owned(), catchup: Catchup::All, ..hourly() };
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(servers[0].schedule_from(cron.clone(), start()).await);
        }
        for nth in 1..=40_u64 {
            let race = servers.iter().zip([0, 1, 7]).map(|(server, late)| {
                let server = server.clone();
                tokio::spawn(async move {
                    server.schedules().read_schedules().await.unwrap();
                    // Not all clocks agree.
                    fire_at(&server, start().after(nth * 7 * MINUTE + late * 40_000)).await
                })
            });
            for one in race.collect::<Vec<_>>() {
                assert!(one.await.unwrap());
            }
        }
        let until = start().after(40 * 7 * MINUTE + 7 * 40_000);
        let slots: Vec<Timestamp> =
            (1..).map(|n| start().after(n * 5 * MINUTE)).take_while(|at| *at <= until).collect();
        for id in ids {
            assert_eq!(servers[1].fired_at(id, &slots).await, slots);
            assert_eq!(servers[2].schedule_seen(id).await.row.history.n_fired, slots.len() as u64);
        }
    }
}

#[tokio::test]
async fn a_key_that_is_taken_lets_the_slot_pass_and_not_the_next() {
    let server = server().await;
    let target = FiringTarget::Job(Box::new(JobSpec { dedup_key: "one".to_owned(), ..spec() }));
    let id = server.schedule_from(ScheduleDraft { target, ..hourly() }, start()).await;
    let slots: Vec<Timestamp> = (1..=3).map(|n| start().after(n * HOUR)).collect();
    assert!(fire_at(&server, slots[0]).await);
    assert!(fire_at(&server, slots[1]).await);
    assert_eq!(server.fired_at(id, &slots).await, slots[..1]);
    let row = server.schedule_seen(id).await.row;
    let error = row.history.last_error.unwrap();
    assert_eq!((error.slot, row.history.n_passed, row.next_at), (slots[1], 1, Some(slots[2])));
    assert!(error.reason.contains("already has the key `one`"), "{}", error.reason);
    assert_eq!(
        server.schedules().trigger_schedule(id).await.unwrap(),
        Started::Job(slot(id, slots[0]).job()),
        "whoever asks is told who has the key"
    );
    server.jobs().cancel_job(slot(id, slots[0]).job()).await.unwrap();
    assert!(fire_at(&server, slots[2]).await);
    assert_eq!(server.scheduled_jobs(id).await.len(), 2);
    assert_eq!(server.schedule_seen(id).await.row.history.last_error, None);
}
