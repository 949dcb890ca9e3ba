//! Messages of workers and their answers.

use super::*;
use windlass_engine::counter::Fence;

#[tokio::test]
async fn the_same_end_again_is_fine_and_another_one_is_not() {
    let server = on_disk().await;
    let ids = server.add([spec("q")]).await;
    let claimed = server.take_one("q").await;
    assert_eq!(server.say(done(&claimed, json!(1))).await, ClaimVerdict::Ok);
    assert_eq!(server.say(done(&claimed, json!(1))).await, ClaimVerdict::Ok);
    assert_eq!(server.say(done(&claimed, json!(2))).await, ClaimVerdict::Lost);
    let failed = CallOutcome::Failed(Fault::new(FaultKind::Error, "no"));
    assert_eq!(server.say(end(&claimed, failed)).await, ClaimVerdict::Lost);
    let wrong = JobEnd { fence: claimed.fence.next(), ..done(&claimed, json!(1)) };
    assert_eq!(server.say(wrong).await, ClaimVerdict::Lost);
    assert_eq!(server.status(ids[0]).await, JobStatus::Completed);
}

#[tokio::test]
async fn ends_are_answered_in_order_each_for_itself() {
    let server = on_disk().await;
    server.add([spec("q"), spec("q"), spec("q")]).await;
    let claimed = server.take("q", 3).await;
    let unknown = JobEnd { job: JobId::new(Uuid::now_v7()), ..done(&claimed[0], json!(0)) };
    let stale = JobEnd { fence: Fence(9), ..done(&claimed[1], json!(0)) };
    let ends = vec![
        done(&claimed[0], json!(0)),
        unknown,
        stale,
        done(&claimed[2], json!(2)),
        done(&claimed[2], json!(2)),
        done(&claimed[2], json!(3)),
    ];
    let answers: Vec<ClaimVerdict> =
        server.jobs().finish(ends).await.into_iter().map(Result::unwrap).collect();
    use ClaimVerdict::{Lost, Ok};
    assert_eq!(answers, [Ok, Lost, Lost, Ok, Ok, Lost]);
    assert_eq!(server.status(claimed[1].job).await, JobStatus::Running);
}

#[tokio::test]
async fn a_failed_job_is_tried_again_until_it_is_a_dead_letter() {
    let server = on_disk().await;
    let ids = server.add([JobSpec { max_retries: 2, ..impatient("q") }]).await;
    for attempt in 1..=2 {
        let claimed = server.take_one("q").await;
        assert_eq!((claimed.attempt, claimed.fence), (attempt, Fence(attempt.into())));
        let failed = CallOutcome::Failed(Fault::new(FaultKind::Error, "no"));
        assert_eq!(server.say(end(&claimed, failed)).await, ClaimVerdict::Ok);
    }
    assert!(server.take("q", 1).await.is_empty());
    assert!(server.store().job(server.project(), ids[0]).await.unwrap().unwrap().job.is_dead_letter());
}

#[tokio::test]
async fn a_suspended_job_comes_again_with_its_memo() {
    let server = on_disk().await;
    server.add([spec("q")]).await;
    let claimed = server.take_one("q").await;
    let begun = std::time::Instant::now();
    let suspended = CallOutcome::Suspended { memo: json!({"at": 7}), recheck_ms: Some(5) };
    assert_eq!(server.say(end(&claimed, suspended.clone())).await, ClaimVerdict::Ok);
    assert_eq!(server.say(end(&claimed, suspended)).await, ClaimVerdict::Ok);
    let again = server.take_one("q").await;
    assert!(begun.elapsed().as_millis() >= 100, "an eager worker does not keep the server busy");
    assert_eq!((again.job, again.attempt), (claimed.job, 1));
    assert_eq!(again.memo, Some(json!({"at": 7})));
    assert_eq!(server.say(done(&again, json!(1))).await, ClaimVerdict::Ok);
}

#[tokio::test]
async fn a_worker_hears_that_its_job_was_cancelled() {
    let server = on_disk().await;
    let ids = server.add([spec("q")]).await;
    let claimed = server.take_one("q").await;
    assert_eq!(server.keep(&claimed, 2 * LEASE).await, ClaimVerdict::Ok);
    let row = server.store().job(server.project(), ids[0]).await.unwrap().unwrap();
    let cancel = super::super::change::moved(&row, JobInput::Cancel, server.clock().now()).unwrap();
    server.jobs().commit_jobs(cancel.into_iter().collect()).await.pop().unwrap().unwrap();
    assert_eq!(server.keep(&claimed, 3 * LEASE).await, ClaimVerdict::Canceled);
    // Also when there is nothing to extend.
    assert_eq!(server.keep(&claimed, LEASE).await, ClaimVerdict::Canceled);
    assert_eq!(server.say(done(&claimed, json!(1))).await, ClaimVerdict::Canceled);
    assert_eq!(server.say(done(&claimed, json!(1))).await, ClaimVerdict::Canceled);
    assert_eq!(server.keep(&claimed, LEASE).await, ClaimVerdict::Canceled);
    assert_eq!(server.status(ids[0]).await, JobStatus::Canceled);
}

#[tokio::test]
async fn a_change_behind_the_index_is_found() {
    let server = on_disk().await;
    let ids = server.add([spec("q"), spec("q")]).await;
    let claimed = server.take("q", 2).await;
    server.behind_its_back(ids[0], JobInput::Cancel).await;
    let ends = claimed.iter().map(|claimed| done(claimed, json!(1))).collect();
    let answers: Vec<ClaimVerdict> =
        server.jobs().finish(ends).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, [ClaimVerdict::Canceled, ClaimVerdict::Ok]);
}

#[tokio::test]
async fn two_ends_race_and_one_wins() {
    let server = on_disk().await;
    server.add((0..50).map(|_| spec("q"))).await;
    for claimed in server.take("q", 50).await {
        let (one, other) = (done(&claimed, json!(1)), done(&claimed, json!(2)));
        let (one, other) = tokio::join!(server.say(one), server.say(other));
        let verdicts = [one, other];
        assert!(
            verdicts == [ClaimVerdict::Ok, ClaimVerdict::Lost]
                || verdicts == [ClaimVerdict::Lost, ClaimVerdict::Ok]
        );
    }
}

fn puller(server: &Runtime, id: &str) -> windlass_store::worker::WorkerRow {
    let now = server.clock().now();
    windlass_store::worker::WorkerRow {
        id: id.to_owned(),
        name: id.to_owned(),
        url: String::new(),
        kind: "async".to_owned(),
        services: Vec::new(),
        queues: vec!["q".to_owned()],
        load: 0,
        capacity: 0,
        is_draining: false,
        peer: String::new(),
        replaced: Vec::new(),
        secret: None,
        registered_at: now,
        beat_at: now,
    }
}

#[tokio::test]
async fn a_draining_worker_gets_no_more_jobs_and_keeps_its_own() {
    let server = on_disk().await;
    assert!(!server.workers().drain_worker("w", true).await.unwrap(), "nobody is registered");
    server.workers().register(puller(&server, "w")).await.unwrap();
    let ids = server.add([spec("q"), spec("q")]).await;
    let claimed = server.take_one("q").await;
    assert!(server.workers().drain_worker("w", true).await.unwrap());
    assert!(server.workers().is_worker_draining("w"));
    assert!(server.jobs().claim(claim_of("q", 1, PATIENCE)).await.unwrap().is_empty(), "it is told at once");
    assert_eq!(server.keep(&claimed, LEASE).await, ClaimVerdict::Ok);
    assert_eq!(server.say(done(&claimed, json!(1))).await, ClaimVerdict::Ok);
    let other = ClaimRequest { worker: "v".to_owned(), ..claim_of("q", 9, Duration::ZERO) };
    assert_eq!(server.jobs().claim(other).await.unwrap()[0].job, ids[1]);
    server.workers().refresh_workers().await;
    assert!(server.workers().is_worker_draining("w"));
    server.workers().drain_worker("w", false).await.unwrap();
    let more = server.add([spec("q")]).await;
    assert_eq!(server.take_one("q").await.job, more[0]);
    server.workers().drain_worker("w", true).await.unwrap();
    server.workers().register(puller(&server, "w")).await.unwrap();
    assert!(!server.workers().is_worker_draining("w"), "whoever registers again begins anew");
}

#[tokio::test]
async fn a_waiting_worker_that_drains_is_answered_and_another_gets_the_job() {
    let server = server().await;
    server.workers().register(puller(&server, "w")).await.unwrap();
    let mut waiting = Box::pin(server.jobs().claim(claim_of("q", 1, PATIENCE)));
    let other = ClaimRequest { worker: "v".to_owned(), ..claim_of("q", 1, PATIENCE) };
    let mut other = Box::pin(server.jobs().claim(other));
    for claim in [&mut waiting, &mut other] {
        // Each is in the line, in this order; the index of a server that is alone knows that there is nothing.
        for _ in 0..3 {
            let begun = std::future::poll_fn(|context| Poll::Ready(claim.as_mut().poll(context)));
            assert!(begun.await.is_pending());
            tokio::task::yield_now().await;
        }
    }
    server.workers().drain_worker("w", true).await.unwrap();
    let ids = server.add([spec("q")]).await;
    assert!(waiting.await.unwrap().is_empty());
    assert_eq!(other.await.unwrap()[0].job, ids[0]);
}

#[tokio::test]
async fn a_drain_request_at_another_server_is_learned() {
    let store = Arc::new(Memory::shared());
    let settings = || Settings::default();
    let first = Runtime::start_up(store.clone(), settings()).await.unwrap();
    let second = Runtime::start_up(store, settings()).await.unwrap();
    first.workers().register(puller(&first, "w")).await.unwrap();
    second.workers().refresh_workers().await;
    let waiting = {
        let second = second.clone();
        tokio::spawn(async move { second.jobs().claim(claim_of("q", 1, PATIENCE)).await })
    };
    assert!(first.workers().drain_worker("w", true).await.unwrap());
    second.workers().refresh_workers().await;
    let waited = tokio::time::timeout(PATIENCE / 2, waiting).await.unwrap();
    assert!(waited.unwrap().unwrap().is_empty() && second.workers().is_worker_draining("w"));
}
