//! Jobs of workers that poll, under a clock that the test sets.

use windlass_store::worker::{WorkerBeat, WorkerRow};

use super::*;
use crate::clock::ManualWall;
use crate::runtime::start_with;

const SECOND: i64 = 1_000;

struct PollServer {
    server: Runtime,
    wall: ManualWall,
}

impl PollServer {
    async fn start() -> Self {
        let wall = ManualWall::default();
        let store = Arc::new(Sqlite::temporary(Durability::Fast).unwrap());
        let server = start_with(store, Settings::default(), wall.clock()).await.unwrap();
        PollServer { server, wall }
    }

    /// Moves the clock so far from the system's, and lets the reaper look.
    async fn at(&self, seconds: i64) {
        self.wall.set(seconds * SECOND);
        assert!(self.server.jobs().reaper().reap_due().await);
    }

    async fn register(&self) {
        let now = self.server.clock().now();
        let row = WorkerRow {
            id: "w".to_owned(),
            name: "w".to_owned(),
            url: String::new(),
            kind: "async".to_owned(),
            services: vec!["work".to_owned()],
            queues: Vec::new(),
            load: 0,
            capacity: 0,
            is_draining: false,
            peer: String::new(),
            replaced: Vec::new(),
            secret: None,
            registered_at: now,
            beat_at: now,
        };
        self.server.workers().register(row).await.unwrap();
    }

    async fn beat(&self) {
        let beat = WorkerBeat { id: "w".to_owned(), url: None, load: None, at: self.server.clock().now() };
        self.server.workers().beat(beat, "").await.unwrap();
    }

    async fn poll(&self) -> Option<LeasedJob> {
        self.server.jobs().poll("w".to_owned(), vec!["work".to_owned()]).await.unwrap()
    }

    async fn job(&self, id: JobId) -> Job {
        self.server.store().job(self.server.project(), id).await.unwrap().unwrap().job
    }
}

#[tokio::test]
async fn heartbeats_keep_a_polled_job_and_their_end_loses_it() {
    let polled = PollServer::start().await;
    polled.register().await;
    let ids = polled.server.add([impatient("q")]).await;
    polled.at(5).await;
    polled.beat().await;
    let claimed = polled.poll().await.unwrap();
    let lease_ms = claimed.lease_until.since(claimed.started_at);
    assert!((29_900..=30_000).contains(&lease_ms), "{lease_ms}");
    for seconds in (10..600).step_by(20) {
        polled.at(seconds).await;
        polled.beat().await;
        assert_eq!(polled.server.status(ids[0]).await, JobStatus::Running, "after {seconds} s");
    }
    // The last heartbeat was at 590 s.
    polled.at(619).await;
    assert_eq!(polled.server.status(ids[0]).await, JobStatus::Running);
    polled.at(621).await;
    let job = polled.job(ids[0]).await;
    assert_eq!((job.latest().number, job.attempts[0].error.as_ref().unwrap().kind), (2, FaultKind::Lost));
    assert_eq!(polled.server.say(done(&claimed, json!("late"))).await, ClaimVerdict::Lost);
}

#[tokio::test]
async fn a_worker_without_heartbeats_has_a_polled_job_for_the_setting() {
    for registers in [false, true] {
        let polled = PollServer::start().await;
        if registers {
            polled.register().await;
        }
        let ids = polled.server.add([impatient("q")]).await;
        let claimed = polled.poll().await.unwrap();
        assert_eq!(claimed.lease_until, claimed.started_at.after(600_000));
        polled.at(599).await;
        assert_eq!(polled.server.status(ids[0]).await, JobStatus::Running, "registers: {registers}");
        polled.at(601).await;
        assert_eq!(polled.job(ids[0]).await.latest().number, 2, "registers: {registers}");
    }
}

#[tokio::test]
async fn a_sign_of_life_of_the_job_itself_keeps_it_too() {
    let polled = PollServer::start().await;
    let ids = polled.server.add([impatient("q")]).await;
    let claimed = polled.poll().await.unwrap();
    polled.at(590).await;
    let job = polled.job(ids[0]).await;
    let kept = polled.server.jobs().keep_polled(&job, claimed.fence).await.unwrap();
    assert_eq!(kept, ClaimVerdict::Ok);
    polled.at(1_180).await;
    assert_eq!(polled.server.status(ids[0]).await, JobStatus::Running);
    polled.at(1_200).await;
    assert_eq!(polled.job(ids[0]).await.latest().number, 2);
}

#[tokio::test]
async fn heartbeats_of_a_process_that_began_later_keep_nothing() {
    let polled = PollServer::start().await;
    polled.register().await;
    let ids = polled.server.add([impatient("q")]).await;
    polled.at(5).await;
    polled.beat().await;
    polled.poll().await.unwrap();
    polled.at(10).await;
    polled.register().await;
    for seconds in (20..600).step_by(20) {
        polled.at(seconds).await;
        polled.beat().await;
    }
    polled.at(604).await;
    polled.beat().await;
    assert_eq!(polled.server.status(ids[0]).await, JobStatus::Running);
    polled.at(606).await;
    assert_eq!(polled.job(ids[0]).await.latest().number, 2, "the process that took it may be gone");
}

#[tokio::test]
async fn a_claim_with_a_lease_of_its_own_is_not_kept_by_heartbeats() {
    let polled = PollServer::start().await;
    polled.register().await;
    let ids = polled.server.add([impatient("q")]).await;
    polled.at(5).await;
    polled.server.take_one("q").await;
    for seconds in [15, 25, 36] {
        polled.beat().await;
        polled.at(seconds).await;
    }
    assert_eq!(polled.job(ids[0]).await.latest().number, 2);
}
