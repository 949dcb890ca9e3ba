//! Slots that come due while the last job or run is still running.

use windlass_engine::job::{JobInput, State};
use windlass_store::job::JobStatus;

use super::*;
use crate::jobs::{ClaimRequest, JobEnd, LeasedJob};

impl Runtime {
    async fn take_scheduled(&self) -> LeasedJob {
        let claim = ClaimRequest {
            worker: "w".to_owned(),
            queues: vec!["q".to_owned()],
            services: Vec::new(),
            max: 1,
            wait: PATIENCE,
            lease: Duration::ZERO,
        };
        self.jobs().claim(claim).await.unwrap().pop().expect("there was no job within the time of the test")
    }

    async fn end_scheduled(&self, claimed: &LeasedJob) {
        let outcome = windlass_engine::input::CallOutcome::Done(json!(1).into());
        let end = JobEnd {
            job: claimed.job,
            fence: claimed.fence,
            outcome,
            worker: None,
            log: crate::calls::log::Log::default(),
            retry_after_ms: None,
        };
        self.jobs().finish(vec![end]).await.pop().unwrap().unwrap();
    }
}

fn yearly(overlap: Overlap) -> ScheduleDraft {
    ScheduleDraft { cron_expr: "0 0 1 1 *".to_owned(), overlap, ..hourly() }
}

#[tokio::test]
async fn skip_lets_slots_pass_while_something_runs() {
    let server = server().await;
    let id = server.schedule_from(ScheduleDraft { overlap: Overlap::Skip, ..hourly() }, start()).await;
    let slots: Vec<Timestamp> = (1..=3).map(|n| start().after(n * HOUR)).collect();
    assert!(fire_at(&server, slots[0]).await);
    assert!(fire_at(&server, slots[1]).await);
    server.jobs().cancel_job(slot(id, slots[0]).job()).await.unwrap();
    assert!(fire_at(&server, slots[2]).await);
    assert_eq!(server.fired_at(id, &slots).await, [slots[0], slots[2]]);
    assert_eq!(server.schedule_seen(id).await.row.history.n_passed, 1);
}

#[tokio::test]
async fn a_slot_that_waits_fires_as_soon_as_the_one_before_has_ended() {
    let store = on_disk();
    let server = in_2086(store, Settings::default()).await;
    let id = server.schedule_from(yearly(Overlap::Queue), start()).await;
    assert!(matches!(server.schedules().trigger_schedule(id).await.unwrap(), Started::Job(_)));
    let first = server.take_scheduled().await;
    let waiting = [Timestamp(1_000), Timestamp(2_000)];
    server.rewrite_schedule(id, |row| row.progress.waiting = waiting.to_vec()).await;
    // The schedule is looked at while the first one runs: it has to notice by itself when that ends.
    server.schedules().fire(id, server.clock().wall()).await.unwrap();
    assert_eq!(server.schedule_seen(id).await.row.progress.waiting, waiting);
    server.end_scheduled(&first).await;
    let second = server.take_scheduled().await;
    assert_eq!(second.job, slot(id, waiting[0]).job());
    assert_eq!(server.scheduled_jobs(id).await.len(), 2, "the next one waits for this one");
    server.end_scheduled(&second).await;
    assert_eq!(server.take_scheduled().await.job, slot(id, waiting[1]).job());
    assert!(server.schedule_seen(id).await.row.progress.waiting.is_empty());
}

#[tokio::test]
async fn a_slot_that_waits_fires_when_another_server_saw_the_end() {
    let servers = servers(Arc::new(Memory::shared()), 2).await;
    let id = servers[0].schedule_from(yearly(Overlap::Queue), start()).await;
    servers[0].schedules().trigger_schedule(id).await.unwrap();
    let first = servers[1].take_scheduled().await;
    let waiting = vec![Timestamp(1_000)];
    servers[0].rewrite_schedule(id, |row| row.progress.waiting.clone_from(&waiting)).await;
    servers[0].schedules().fire(id, servers[0].clock().wall()).await.unwrap();
    servers[1].end_scheduled(&first).await;
    let begun = std::time::Instant::now();
    while servers[0].scheduled_jobs(id).await.len() < 2 {
        assert!(begun.elapsed() < PATIENCE, "nobody noticed");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(
        servers[0].store().job(servers[0].project(), slot(id, waiting[0]).job()).await.unwrap().is_some()
    );
}

#[tokio::test]
async fn cancel_stops_the_running_job_and_fires() {
    let server = server().await;
    let id = server.schedule_from(ScheduleDraft { overlap: Overlap::Cancel, ..hourly() }, start()).await;
    let slots: Vec<Timestamp> = (1..=2).map(|n| start().after(n * HOUR)).collect();
    assert!(fire_at(&server, slots[0]).await);
    assert!(fire_at(&server, slots[1]).await);
    assert_eq!(server.fired_at(id, &slots).await, slots);
    let first = server.store().job(server.project(), slot(id, slots[0]).job()).await.unwrap().unwrap();
    assert_eq!(JobStatus::of(&first.job), JobStatus::Canceled);
    // A claimed job is told to stop; the next one does not wait for that.
    let started = server.schedules().trigger_schedule(id).await.unwrap();
    let held = server.take_scheduled().await;
    assert_eq!(started, Started::Job(held.job));
    server.schedules().trigger_schedule(id).await.unwrap();
    let row = server.store().job(server.project(), held.job).await.unwrap().unwrap();
    assert!(matches!(row.job.state, State::Running { cancel_at: Some(_), .. }));
    assert!(row.job.decide(JobInput::Cancel, start()).unwrap().is_empty());
}
