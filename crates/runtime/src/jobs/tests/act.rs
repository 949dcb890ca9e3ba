//! Actions of people on jobs.

use windlass_engine::counter::{Fence, Revision};
use windlass_engine::id::RunId;
use windlass_engine::job::{JobRefusal, State};
use windlass_engine::path::NodePath;

use super::*;

fn failed() -> CallOutcome<RawJson> {
    CallOutcome::Failed(Fault::new(FaultKind::Error, "no"))
}

fn refusal<T: std::fmt::Debug>(answer: Result<T, JobError>) -> JobRefusal {
    match answer {
        Err(JobError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

impl Runtime {
    /// A job that has failed for good.
    async fn dead(&self, spec: JobSpec) -> JobId {
        let queue = spec.queue.clone();
        let job = self.jobs().create_job(JobSpec { max_retries: 1, ..spec }).await.unwrap().job;
        let claimed = self.take_one(&queue).await;
        assert_eq!(claimed.job, job);
        assert_eq!(self.say(end(&claimed, failed())).await, ClaimVerdict::Ok);
        job
    }
}

#[tokio::test]
async fn an_unclaimed_job_is_canceled_at_once() {
    let server = on_disk().await;
    let queued = server.jobs().create_job(spec("q")).await.unwrap().job;
    assert_eq!(server.jobs().cancel_job(queued).await.unwrap().job.state, State::Canceled);
    assert!(server.take("q", 9).await.is_empty(), "it has left the index");
    let run_at = Some(server.clock().now().after(60_000));
    let pending = server.jobs().create_job(JobSpec { run_at, ..spec("q") }).await.unwrap().job;
    assert_eq!(server.jobs().cancel_job(pending).await.unwrap().job.state, State::Canceled);
    let retrying = server.jobs().create_job(spec("q")).await.unwrap().job;
    let claimed = server.take_one("q").await;
    server.say(end(&claimed, failed())).await;
    assert_eq!(server.status(retrying).await, JobStatus::Retrying);
    assert_eq!(server.jobs().cancel_job(retrying).await.unwrap().job.state, State::Canceled);
    assert_eq!(
        server.jobs().cancel_job(retrying).await.unwrap().job.state,
        State::Canceled,
        "again is no news"
    );
}

#[tokio::test]
async fn the_worker_of_a_cancelled_job_is_told_and_has_the_last_word() {
    let server = on_disk().await;
    let job = server.jobs().create_job(spec("q")).await.unwrap().job;
    let claimed = server.take_one("q").await;
    let row = server.jobs().cancel_job(job).await.unwrap();
    assert!(row.job.cancel_requested());
    assert_eq!(server.status(job).await, JobStatus::Running);
    assert_eq!(server.keep(&claimed, 2 * LEASE).await, ClaimVerdict::Canceled);
    assert!(server.jobs().cancel_job(job).await.unwrap().job.cancel_requested(), "again is no news");
    assert_eq!(server.say(done(&claimed, json!("too late"))).await, ClaimVerdict::Canceled);
    let row = server.store().job(server.project(), job).await.unwrap().unwrap();
    assert_eq!(
        (row.job.state.clone(), row.job.latest().result.clone()),
        (State::Canceled, Some(json!("too late").into()))
    );
}

#[tokio::test]
async fn an_ended_job_cannot_be_canceled() {
    let server = on_disk().await;
    let job = server.jobs().create_job(spec("q")).await.unwrap().job;
    let claimed = server.take_one("q").await;
    server.say(done(&claimed, json!(1))).await;
    assert_eq!(refusal(server.jobs().cancel_job(job).await), JobRefusal::Ended { status: "completed" });
    let dead = server.dead(spec("q")).await;
    assert_eq!(refusal(server.jobs().cancel_job(dead).await), JobRefusal::Ended { status: "failed" });
    let nobody = JobId::new(Uuid::now_v7());
    assert!(matches!(server.jobs().cancel_job(nobody).await, Err(JobError::Unknown(id)) if id == nobody));
    assert!(matches!(server.jobs().retry_job(nobody).await, Err(JobError::Unknown(_))));
}

#[tokio::test]
async fn a_retry_ends_any_wait() {
    let server = on_disk().await;
    let run_at = Some(server.clock().now().after(60_000));
    let job = server.jobs().create_job(JobSpec { run_at, ..spec("q") }).await.unwrap().job;
    assert!(server.take("q", 1).await.is_empty());
    server.jobs().retry_job(job).await.unwrap();
    server.jobs().retry_job(job).await.unwrap();
    let claimed = server.take_one("q").await;
    assert_eq!((claimed.job, claimed.attempt), (job, 1));
    assert!(matches!(
        refusal(server.jobs().retry_job(job).await),
        JobRefusal::NotEnded { status: "running" }
    ));
    server.say(end(&claimed, failed())).await;
    assert_eq!(server.status(job).await, JobStatus::Retrying);
    server.jobs().retry_job(job).await.unwrap();
    let claimed = server.take_one("q").await;
    assert_eq!((claimed.job, claimed.attempt), (job, 2));
    let suspended = CallOutcome::Suspended { memo: json!(7), recheck_ms: Some(60_000) };
    server.say(end(&claimed, suspended)).await;
    server.jobs().retry_job(job).await.unwrap();
    let claimed = server.take_one("q").await;
    assert_eq!((claimed.attempt, claimed.memo.clone()), (2, Some(json!(7))));
    server.say(done(&claimed, json!(1))).await;
    assert_eq!(refusal(server.jobs().retry_job(job).await), JobRefusal::Completed);
}

#[tokio::test]
async fn a_failed_or_cancelled_job_is_opened_again() {
    let server = on_disk().await;
    let dead = server.dead(spec("q")).await;
    let row = server.jobs().retry_job(dead).await.unwrap();
    assert_eq!((row.job.round.number, row.job.latest().number), (2, 2));
    assert_eq!(server.take_one("q").await.job, dead);
    let cancelled = server.jobs().create_job(spec("q")).await.unwrap().job;
    server.jobs().cancel_job(cancelled).await.unwrap();
    server.jobs().retry_job(cancelled).await.unwrap();
    assert_eq!(server.take_one("q").await.job, cancelled);
}

#[tokio::test]
async fn a_job_with_a_taken_key_stays_as_it_is() {
    let server = on_disk().await;
    let keyed = || JobSpec { dedup_key: "k".to_owned(), ..spec("q") };
    let dead = server.dead(keyed()).await;
    let other = server.jobs().create_job(keyed()).await.unwrap().job;
    let taken = JobRefusal::KeyTaken { key: "k".to_owned(), existing: other };
    assert_eq!(refusal(server.jobs().retry_job(dead).await), taken);
    assert_eq!(server.status(dead).await, JobStatus::Failed);
    server.jobs().cancel_job(other).await.unwrap();
    server.jobs().retry_job(dead).await.unwrap();
}

#[tokio::test]
async fn a_job_of_a_run_is_left_to_the_run() {
    let server = server().await;
    let run = RunId::new(Uuid::now_v7());
    let now = server.clock().now();
    let spec = JobSpec { run: Some(run), ..spec("q") };
    let (job, _) = Job::create(JobId::of_call(run, Fence(1)), spec, now).unwrap();
    let call = CallRef { run, node: NodePath::from("a"), fence: Fence(1) };
    let origin = windlass_store::job::JobOrigin { call: Some(call), schedule: None };
    let id = job.id;
    server
        .jobs()
        .commit_jobs(vec![JobChange { expected_rev: Revision(0), job, origin }])
        .await
        .pop()
        .unwrap()
        .unwrap();
    assert_eq!(refusal(server.jobs().cancel_job(id).await), JobRefusal::BelongsToRun);
    assert_eq!(refusal(server.jobs().retry_job(id).await), JobRefusal::BelongsToRun);
}

#[tokio::test]
async fn a_change_by_another_writer_is_read_again() {
    let server = on_disk().await;
    let job = server.jobs().create_job(spec("q")).await.unwrap().job;
    server.behind_its_back(job, JobInput::Claim { worker: "else".to_owned(), lease_ms: 0 }).await;
    assert!(server.jobs().cancel_job(job).await.unwrap().job.cancel_requested());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancels_and_ends_race_and_each_job_ends_once() {
    let server = on_disk().await;
    let ids: Vec<JobId> = server
        .jobs()
        .create_jobs((0..100).map(|_| spec("q")).collect())
        .await
        .unwrap()
        .iter()
        .map(|one| one.job)
        .collect();
    let claimed = server.take("q", 100).await;
    let cancels = ids.iter().map(|id| {
        let (server, id) = (server.clone(), *id);
        tokio::spawn(async move { server.jobs().cancel_job(id).await })
    });
    let cancels: Vec<_> = cancels.collect();
    let ends = claimed.iter().map(|claimed| done(claimed, json!(1))).collect();
    let verdicts = server.jobs().finish(ends).await;
    for ((id, cancel), verdict) in ids.into_iter().zip(cancels).zip(verdicts) {
        let (cancel, status) = (cancel.await.unwrap(), server.status(id).await);
        match verdict.unwrap() {
            ClaimVerdict::Ok => assert_eq!(
                (refusal(cancel), status),
                (JobRefusal::Ended { status: "completed" }, JobStatus::Completed)
            ),
            ClaimVerdict::Canceled => assert_eq!((cancel.is_ok(), status), (true, JobStatus::Canceled)),
            ClaimVerdict::Lost => panic!("nobody else had it"),
        }
    }
}
