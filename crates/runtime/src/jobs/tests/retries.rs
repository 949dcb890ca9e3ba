//! Retries after a failed attempt.

use windlass_engine::job::{AttemptStatus, LOSSES_MAX, State};

use super::*;

fn failed() -> CallOutcome<RawJson> {
    CallOutcome::Failed(Fault::new(FaultKind::Error, "no"))
}

impl Runtime {
    /// Lets a job fail so often, without its waits; says how long each would have been.
    async fn delays(&self, spec: JobSpec, n: u32) -> Vec<u64> {
        let queue = spec.queue.clone();
        let job = self.jobs().create_job(spec).await.unwrap().job;
        for attempt in 1..=n {
            let claimed = self.take_one(&queue).await;
            assert_eq!((claimed.job, claimed.attempt), (job, attempt));
            assert_eq!(self.say(end(&claimed, failed())).await, ClaimVerdict::Ok);
            if attempt < n {
                assert!(self.take(&queue, 1).await.is_empty(), "it waits");
                self.jobs().retry_job(job).await.unwrap();
            }
        }
        let attempts = self.store().attempts(self.project(), job, 0, 100).await.unwrap();
        let ended = attempts.iter().filter(|attempt| attempt.finished_at.is_some());
        assert!(ended.clone().all(|attempt| attempt.status == AttemptStatus::Retrying));
        let delay = |until: Timestamp, from: Timestamp| until.since(from);
        ended.map(|attempt| delay(attempt.next_retry_at.unwrap(), attempt.finished_at.unwrap())).collect()
    }
}

#[tokio::test]
async fn waits_double_up_to_their_cap_and_are_kept_with_the_attempts() {
    let server = on_disk().await;
    let backoff = JobBackoff { jitter: false, ..JobBackoff::default() };
    let job = JobSpec { max_retries: 9, backoff, ..spec("q") };
    assert_eq!(server.delays(job.clone(), 4).await, [5_000, 10_000, 20_000, 40_000]);
    let capped =
        JobSpec { backoff: JobBackoff { cap_ms: 12_000, ..backoff }, queue: "capped".to_owned(), ..job };
    assert_eq!(server.delays(capped, 4).await, [5_000, 10_000, 12_000, 12_000]);
}

#[tokio::test]
async fn jitter_spreads_the_retries_of_jobs_that_failed_together() {
    let server = on_disk().await;
    let mut seen = BTreeSet::new();
    for n in 0..8 {
        let job = JobSpec { max_retries: 9, ..spec(&format!("q{n}")) };
        for (delay, whole) in server.delays(job, 3).await.into_iter().zip([5_000, 10_000, 20_000]) {
            assert!((whole..=whole + whole / 2).contains(&delay), "{delay} of {whole}");
            seen.insert(delay);
        }
    }
    assert!(seen.len() > 12, "{seen:?}");
}

#[tokio::test]
async fn an_error_that_no_retry_helps_makes_a_dead_letter_at_once() {
    let server = on_disk().await;
    let job = server.jobs().create_job(spec("q")).await.unwrap().job;
    let claimed = server.take_one("q").await;
    let terminal = Fault::new(FaultKind::Error, "no such customer").permanent();
    assert_eq!(server.say(end(&claimed, CallOutcome::Failed(terminal.clone()))).await, ClaimVerdict::Ok);
    let row = server.store().job(server.project(), job).await.unwrap().unwrap();
    assert!(row.job.is_dead_letter() && row.job.attempts.len() == 1);
    assert_eq!(row.job.state, State::Failed { reason: terminal, discarded: None });
    let group = server.jobs().dead_letters().groups("q").await.unwrap().remove(0);
    assert_eq!((group.n, group.reason.message.as_str()), (1, "no such customer"));
}

#[tokio::test]
async fn a_job_that_keeps_losing_its_workers_is_set_aside() {
    let server = on_disk().await;
    let job = server.jobs().create_job(JobSpec { max_retries: 50, ..impatient("q") }).await.unwrap().job;
    let mut last = None;
    for attempt in 1..=LOSSES_MAX {
        let short = ClaimRequest { lease: Duration::from_millis(20), ..claim_of("q", 1, PATIENCE) };
        let claimed = server.jobs().claim(short).await.unwrap().pop().unwrap();
        assert_eq!(claimed.attempt, attempt);
        last = Some(claimed);
    }
    let begun = std::time::Instant::now();
    while server.status(job).await != JobStatus::Failed {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let row = server.store().job(server.project(), job).await.unwrap().unwrap();
    let State::Failed { reason, discarded: None } = &row.job.state else { panic!("{:?}", row.job.state) };
    assert_eq!(reason.kind, FaultKind::Poison);
    assert_eq!(reason.message, "lost 3 times; it may be what kills its workers");
    assert_eq!(row.job.latest().error.as_ref().unwrap().kind, FaultKind::Lost);
    assert_eq!(server.say(done(&last.unwrap(), json!("late"))).await, ClaimVerdict::Lost);
    assert!(row.job.is_dead_letter());
    assert_eq!(server.jobs().retry_job(job).await.unwrap().job.round.n_losses, 0, "a new round counts anew");
}
