//! Expiry of jobs.

use windlass_engine::counter::{Fence, Revision};

use super::*;

#[tokio::test]
async fn a_lease_that_runs_out_gives_the_next_attempt_to_another() {
    let server = on_disk().await;
    let ids = server.add([spec("q")]).await;
    let short = ClaimRequest { lease: Duration::from_millis(20), ..claim_of("q", 1, PATIENCE) };
    let lost = server.jobs().claim(short).await.unwrap().pop().unwrap();
    let next = server.take_one("q").await;
    assert_eq!((next.job, next.attempt, next.fence), (ids[0], 2, Fence(2)));
    assert!(next.started_at >= lost.lease_until, "not before the lease was over");
    assert_eq!(next.key, lost.key);
    assert_eq!(server.say(done(&lost, json!("late"))).await, ClaimVerdict::Lost);
    assert_eq!(server.keep(&lost, LEASE).await, ClaimVerdict::Lost);
    assert_eq!(server.say(done(&next, json!("in time"))).await, ClaimVerdict::Ok);
    let row = server.store().job(server.project(), ids[0]).await.unwrap().unwrap();
    assert_eq!(row.job.latest().result, Some(json!("in time").into()));
}

#[tokio::test]
async fn a_claim_lives_as_long_as_it_is_kept_alive() {
    let server = on_disk().await;
    let ids = server.add([spec("q")]).await;
    let lease = Duration::from_millis(400);
    let claimed = server
        .jobs()
        .claim(ClaimRequest { lease, ..claim_of("q", 1, PATIENCE) })
        .await
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(server.keep(&claimed, LEASE).await, ClaimVerdict::Ok);
    // Longer than the first lease.
    assert!(server.jobs().claim(claim_of("q", 1, lease + lease / 4)).await.unwrap().is_empty());
    assert_eq!(server.status(ids[0]).await, JobStatus::Running);
    assert_eq!(server.say(done(&claimed, json!(1))).await, ClaimVerdict::Ok);
}

#[tokio::test]
async fn a_job_is_handed_out_at_its_time_and_not_before() {
    let server = on_disk().await;
    let run_at = server.clock().now().after(400);
    let ids = server.add([JobSpec { run_at: Some(run_at), ..spec("q") }]).await;
    assert!(server.take("q", 1).await.is_empty());
    assert_eq!(server.status(ids[0]).await, JobStatus::Pending);
    let claimed = server.take_one("q").await;
    assert!(claimed.started_at >= run_at);
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_over() {
    let server = on_disk().await;
    let ids = server.add([JobSpec { timeout_ms: 20, max_retries: 1, ..impatient("q") }]).await;
    let claimed = server.take_one("q").await;
    let begun = std::time::Instant::now();
    while server.status(ids[0]).await != JobStatus::Failed {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(server.say(done(&claimed, json!(1))).await, ClaimVerdict::Lost);
    let row = server.store().job(server.project(), ids[0]).await.unwrap().unwrap();
    assert_eq!(row.job.latest().error.as_ref().unwrap().kind, FaultKind::Timeout);
}

#[tokio::test]
async fn leases_of_the_server_before_run_out_as_well() {
    let store = Arc::new(Memory::new());
    let before = Runtime::start_up(store.clone(), Settings::default()).await.unwrap();
    before.add([spec("q")]).await;
    let short = ClaimRequest { lease: Duration::from_millis(30), ..claim_of("q", 1, PATIENCE) };
    assert_eq!(before.jobs().claim(short).await.unwrap().len(), 1);
    before.shut_down(Duration::ZERO).await;
    let server = Runtime::start_up(store, Settings::default()).await.unwrap();
    assert_eq!(server.take_one("q").await.attempt, 2);
}

#[tokio::test]
async fn a_lease_that_ran_out_while_no_server_was_there_can_still_be_kept() {
    let store = Arc::new(Memory::new());
    let before = Runtime::start_up(store.clone(), Settings::default()).await.unwrap();
    before.shut_down(Duration::ZERO).await;
    let claimed_at = Timestamp(before.clock().now().0 - 60_000);
    let claimed = || {
        let (job, _) = Job::create(JobId::new(Uuid::now_v7()), spec("q"), claimed_at).unwrap();
        let row = JobRow { rev: Revision(0), job, origin: Default::default() };
        let claim = JobInput::Claim { worker: "w".to_owned(), lease_ms: 30_000 };
        crate::jobs::change::moved(&row, claim, claimed_at).unwrap().unwrap()
    };
    let changes = vec![claimed(), claimed()];
    let ids: Vec<JobId> = changes.iter().map(|change| change.job.id).collect();
    assert!(before.jobs().commit_jobs(changes).await.into_iter().all(|answer| answer.is_ok()));
    let server = Runtime::start_up(store, Settings::default()).await.unwrap();
    server.jobs().reaper().reap_due().await;
    assert_eq!(server.status(ids[0]).await, JobStatus::Running);
    let kept = server.jobs().extend(vec![(ids[0], Fence(1))], LEASE).await.pop().unwrap().unwrap();
    assert_eq!(kept, ClaimVerdict::Ok);
    let outcome = CallOutcome::Done(json!(1).into());
    let ended = JobEnd {
        job: ids[1],
        fence: Fence(1),
        outcome,
        worker: None,
        log: Log::default(),
        retry_after_ms: None,
    };
    assert_eq!(server.say(ended).await, ClaimVerdict::Ok);
}

#[tokio::test]
async fn ten_thousand_waits_end_together() {
    let server = server().await;
    let run_at = server.clock().now().after(30);
    server.add((0..10_000).map(|_| JobSpec { run_at: Some(run_at), ..JobSpec::new("work", "q") })).await;
    let mut n = 0;
    while n < 10_000 {
        let claimed = server.jobs().claim(claim_of("q", 1_000, PATIENCE)).await.unwrap();
        assert!(!claimed.is_empty(), "only {n} came");
        n += claimed.len();
    }
    assert!(server.take("q", 1).await.is_empty());
}

#[tokio::test]
async fn a_lost_job_is_found_again() {
    let server = server().await;
    assert!(server.take("q", 1).await.is_empty());
    // Written behind the dispatcher's back.
    let now = server.clock().now();
    let (job, _) = Job::create(JobId::new(Uuid::now_v7()), spec("q"), now).unwrap();
    let command = windlass_engine::id::CommandId::new(Uuid::now_v7());
    let mut commit = windlass_store::commit::Commit::new(&Project::DEFAULT, command, now);
    commit.jobs.push(JobChange { expected_rev: Revision(0), job, origin: Default::default() });
    server.store().commit_one(commit).await.unwrap();
    assert!(server.take("q", 1).await.is_empty());
    server.jobs().state().sweep_at.store(0, std::sync::atomic::Ordering::Relaxed);
    server.jobs().reaper().reap_due().await;
    assert_eq!(server.take("q", 1).await.len(), 1);
}
