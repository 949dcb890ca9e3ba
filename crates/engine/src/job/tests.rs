use std::sync::Arc;

use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::counter::Fence;
use crate::raw_json::RawJson;
use crate::retry::FaultKind;

mod ending;
mod invariants;

/// A job with its clock and its journal; every step is checked against a replay.
struct TestJob {
    job: Job,
    now: Timestamp,
    journal: Vec<(JobEvent, Timestamp)>,
}

impl TestJob {
    fn new(spec: JobSpec) -> Self {
        let now = Timestamp(1_000_000);
        let (job, events) = Job::create(JobId::new(Uuid::from_u128(42)), spec, now).unwrap();
        Self { job, now, journal: events.into_iter().map(|event| (event, now)).collect() }
    }

    fn plain() -> Self {
        let backoff = JobBackoff { jitter: false, ..JobBackoff::default() };
        Self::new(JobSpec { backoff, ..JobSpec::new("demo", "default") })
    }

    fn ask(&mut self, input: JobInput) -> Result<usize, JobRefusal> {
        let events = self.job.decide(input, self.now)?;
        for event in &events {
            self.job.apply(event, self.now);
            self.journal.push((event.clone(), self.now));
        }
        Ok(events.len())
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now.after(ms);
    }

    fn claim(&mut self) -> Fence {
        self.ask(JobInput::Claim { worker: "w1".to_owned(), lease_ms: 0 }).unwrap();
        self.job.fence
    }

    fn finish(&mut self, fence: Fence, outcome: JobOutcome) -> Result<usize, JobRefusal> {
        self.ask(JobInput::Finish { fence, outcome })
    }

    /// Lets time pass until it changes something.
    fn wake(&mut self) {
        self.now = self.job.wake_at().expect("something is waited for").max(self.now);
        let input = self.job.overdue(self.now).expect("something is overdue");
        assert!(self.ask(input).unwrap() > 0);
    }
}

fn done(n: i64) -> JobOutcome {
    JobOutcome::Done { result: json!(n).into() }
}

fn failed(message: &str) -> JobOutcome {
    JobOutcome::Failed { fault: Fault::new(FaultKind::Error, message), retry_after_ms: None }
}

fn replay(id: &str) -> JobInput {
    JobInput::Replay { replay_id: id.to_owned(), priority: None, patch: None, due: None }
}

fn rows(job: &Job) -> Vec<(u32, &'static str)> {
    job.attempts.iter().map(|attempt| (attempt.number, attempt.status.word())).collect()
}

#[test]
fn a_job_is_claimed_and_done() {
    let mut bench = TestJob::plain();
    assert_eq!((bench.job.status(), bench.job.display_status()), ("queued", "queued"));
    let fence = bench.claim();
    assert_eq!((bench.job.status(), bench.job.display_status()), ("queued", "running"));
    assert_eq!(bench.job.verdict(fence), Verdict::Go);
    bench.wait(5);
    assert_eq!(bench.finish(fence, done(1)), Ok(1));
    assert_eq!((bench.job.status(), bench.job.display_status()), ("completed", "completed"));
    let attempt = bench.job.latest();
    assert_eq!(attempt.finished_at.unwrap().since(attempt.started_at.unwrap()), 5);
    assert_eq!(bench.job.wake_at(), None);
}

#[test]
fn a_job_before_its_time_is_pending() {
    let mut bench = TestJob::new(JobSpec { run_at: Some(Timestamp(1_000_500)), ..JobSpec::new("a", "b") });
    assert_eq!(bench.job.display_status(), "pending");
    assert_eq!(bench.ask(JobInput::Due), Ok(0));
    let claim = JobInput::Claim { worker: "w".to_owned(), lease_ms: 0 };
    assert_eq!(bench.ask(claim), Err(JobRefusal::NotQueued { status: "pending" }));
    bench.wake();
    assert_eq!(bench.now, Timestamp(1_000_500));
    assert_eq!(bench.job.display_status(), "queued");
}

#[test]
fn failures_back_off_and_end_in_the_dead_letters() {
    let mut bench = TestJob::plain();
    for (n, delay) in [(1, 5_000), (2, 10_000)] {
        let fence = bench.claim();
        bench.finish(fence, failed("no")).unwrap();
        assert_eq!(bench.job.display_status(), "retrying");
        assert_eq!(bench.job.attempts[n - 1].next_retry_at, Some(bench.now.after(delay)));
        bench.wait(delay - 1);
        assert_eq!(bench.ask(JobInput::Due), Ok(0));
        bench.wake();
    }
    let fence = bench.claim();
    bench.finish(fence, failed("no more")).unwrap();
    assert!(bench.job.is_dead_letter());
    assert_eq!(rows(&bench.job), [(1, "retrying"), (2, "retrying"), (3, "failed")]);
    assert_eq!(fence, Fence(3));
}

#[test]
fn a_failure_that_cannot_be_helped_is_dead_at_once() {
    let mut bench = TestJob::plain();
    let fence = bench.claim();
    let fault = Fault::new(FaultKind::Error, "bad request").permanent();
    bench.finish(fence, JobOutcome::Failed { fault: fault.clone(), retry_after_ms: None }).unwrap();
    assert_eq!(bench.job.state, State::Failed { reason: fault, discarded: None });
    assert_eq!(rows(&bench.job), [(1, "failed")]);
}

#[test]
fn a_throttled_worker_is_listened_to() {
    let mut bench = TestJob::plain();
    let fence = bench.claim();
    let fault = Fault::new(FaultKind::Error, "slow down");
    bench.finish(fence, JobOutcome::Failed { fault, retry_after_ms: Some(90_000) }).unwrap();
    assert_eq!(bench.job.wake_at(), Some(bench.now.after(90_000)));
}

#[test]
fn jitter_spreads_jobs_that_fail_together() {
    let until = |n: u128| {
        let (mut job, _) =
            Job::create(JobId::new(Uuid::from_u128(n)), JobSpec::new("a", "b"), Timestamp(0)).unwrap();
        for input in [
            JobInput::Claim { worker: "w".to_owned(), lease_ms: 0 },
            JobInput::Finish { fence: Fence(1), outcome: failed("x") },
        ] {
            for event in job.decide(input, Timestamp(0)).unwrap() {
                job.apply(&event, Timestamp(0));
            }
        }
        job.wake_at().unwrap().0
    };
    let moments: std::collections::BTreeSet<i64> = (1..50).map(until).collect();
    assert!(moments.len() > 30);
    assert!(moments.iter().all(|ms| (5_000..=7_500).contains(ms)));
}

#[test]
fn an_answer_heard_twice_is_fine_and_a_different_one_is_not() {
    let mut bench = TestJob::plain();
    let fence = bench.claim();
    bench.finish(fence, done(1)).unwrap();
    assert_eq!(bench.finish(fence, done(1)), Ok(0));
    let stale = JobRefusal::Stale { fence, current: fence, status: "completed" };
    assert_eq!(bench.finish(fence, done(2)), Err(stale.clone()));
    assert_eq!(bench.finish(fence, failed("x")), Err(stale));
    let mut bench = TestJob::plain();
    let fence = bench.claim();
    bench.finish(fence, failed("x")).unwrap();
    assert_eq!(bench.finish(fence, failed("x")), Ok(0));
    assert_eq!(bench.job.verdict(fence), Verdict::Done);
    assert!(bench.finish(fence, failed("y")).is_err());
    bench.wake();
    let second = bench.claim();
    assert_eq!(bench.finish(fence, failed("x")), Ok(0));
    assert_eq!(bench.finish(second, done(1)), Ok(1));
}

#[test]
fn a_late_answer_is_refused() {
    let mut bench = TestJob::plain();
    let first = bench.claim();
    bench.wake();
    assert_eq!(bench.now, Timestamp(1_000_000).after(LEASE_MS_DEFAULT));
    assert_eq!(bench.job.display_status(), "queued");
    assert_eq!(bench.job.verdict(first), Verdict::Stale);
    assert!(bench.finish(first, done(1)).is_err());
    let second = bench.claim();
    assert!(matches!(bench.finish(first, done(1)), Err(JobRefusal::Stale { current: Fence(2), .. })));
    assert!(bench.ask(JobInput::Extend { fence: first, lease_ms: 0 }).is_err());
    bench.wait(LEASE_MS_DEFAULT);
    assert_eq!(bench.ask(JobInput::LeaseExpired { fence: first }), Ok(0), "that lease is of the past");
    assert_eq!(bench.finish(second, done(2)), Ok(1));
    for fence in [Fence(0), Fence(99)] {
        assert!(bench.finish(fence, done(2)).is_err());
        assert_eq!(bench.job.verdict(fence), Verdict::Stale);
    }
}

#[test]
fn a_lease_lives_as_long_as_its_worker_says_so() {
    let mut bench = TestJob::plain();
    let fence = bench.claim();
    for _ in 0..10 {
        bench.wait(20_000);
        assert_eq!(bench.ask(JobInput::LeaseExpired { fence }), Ok(0));
        assert_eq!(bench.ask(JobInput::Extend { fence, lease_ms: 0 }), Ok(1));
    }
    assert_eq!(bench.ask(JobInput::Extend { fence, lease_ms: 1 }), Ok(0));
    assert_eq!(bench.job.wake_at(), Some(bench.now.after(LEASE_MS_DEFAULT)));
    bench.ask(JobInput::Extend { fence, lease_ms: u64::MAX }).unwrap();
    assert_eq!(bench.job.wake_at(), Some(bench.now.after(LEASE_MS_MAX)));
}

#[test]
fn three_losses_are_poison_even_if_attempts_remain() {
    let mut bench = TestJob::plain();
    Arc::make_mut(&mut bench.job.spec).max_retries = 10;
    for _ in 0..3 {
        bench.claim();
        bench.wake();
    }
    let State::Failed { reason, .. } = &bench.job.state else { panic!("{:?}", bench.job.state) };
    assert_eq!(reason.kind, FaultKind::Poison);
    assert_eq!(bench.job.latest().error.as_ref().unwrap().kind, FaultKind::Lost);
    bench.ask(replay("r1")).unwrap();
    bench.claim();
    bench.wake();
    assert_eq!(bench.job.display_status(), "queued");
    assert_eq!(bench.job.round.n_losses, 1);
}

#[test]
fn a_slow_attempt_is_ended_though_its_worker_lives() {
    let mut bench = TestJob::plain();
    Arc::make_mut(&mut bench.job.spec).timeout_ms = 40_000;
    let fence = bench.claim();
    bench.wait(20_000);
    bench.ask(JobInput::Extend { fence, lease_ms: 0 }).unwrap();
    assert_eq!(bench.ask(JobInput::AttemptTimeout), Ok(0));
    bench.wake();
    assert_eq!(bench.now, Timestamp(1_040_000));
    assert_eq!(bench.job.display_status(), "retrying");
    assert_eq!(bench.job.attempts[0].error.as_ref().unwrap().kind, FaultKind::Timeout);
    assert!(bench.finish(fence, done(1)).is_err());
    assert_eq!(bench.job.verdict(fence), Verdict::Stale);
}

#[test]
fn a_suspended_job_burns_no_attempt_and_keeps_its_memo() {
    let mut bench = TestJob::plain();
    let fence = bench.claim();
    let suspended = JobOutcome::Suspended { memo: json!({"task": 7}), recheck_ms: 2_000 };
    bench.finish(fence, suspended.clone()).unwrap();
    assert_eq!(bench.finish(fence, suspended), Ok(0));
    assert_eq!(bench.job.display_status(), "running");
    bench.wake();
    let second = bench.claim();
    assert_eq!(bench.job.memo, Some(json!({"task": 7})));
    assert_eq!((second, bench.job.latest().number), (Fence(2), 1));
    assert!(bench.finish(fence, done(1)).is_err());
    // A worker that dies while it asks must not cause the work to be started again.
    bench.wake();
    assert_eq!(bench.job.memo, Some(json!({"task": 7})));
    let third = bench.claim();
    bench.finish(third, failed("it broke")).unwrap();
    assert_eq!(bench.job.memo, None);
}

#[test]
fn a_released_job_is_offered_at_once_and_burns_nothing() {
    let mut bench = TestJob::plain();
    for _ in 0..5 {
        let fence = bench.claim();
        assert_eq!(bench.ask(JobInput::Release { fence }), Ok(1));
        assert_eq!(bench.ask(JobInput::Release { fence }), Ok(0));
        assert!(bench.finish(fence, done(1)).is_err());
        assert_eq!(rows(&bench.job), [(1, "queued")]);
    }
    assert_eq!(bench.claim(), Fence(6));
    assert!(bench.ask(JobInput::Release { fence: Fence(5) }).is_err());
}

#[test]
fn a_job_of_a_run_has_one_attempt_and_is_no_dead_letter() {
    let run = Some(crate::id::RunId::new(Uuid::from_u128(9)));
    let mut bench = TestJob::new(JobSpec { run, ..JobSpec::new("tts", "tts") });
    bench.claim();
    bench.wake();
    let State::Failed { reason, .. } = &bench.job.state else { panic!("{:?}", bench.job.state) };
    assert_eq!(reason.kind, FaultKind::Lost);
    assert!(!bench.job.is_dead_letter());
    assert_eq!(bench.ask(replay("r")), Err(JobRefusal::BelongsToRun));
}

#[test]
fn a_key_is_held_while_open_and_for_as_long_as_asked() {
    let spec = JobSpec { dedup_key: "k".to_owned(), unique_for_ms: 60_000, ..JobSpec::new("a", "b") };
    let mut bench = TestJob::new(spec);
    assert!(bench.job.holds_key(bench.now.after(99_000_000)));
    let fence = bench.claim();
    bench.finish(fence, done(1)).unwrap();
    assert!(bench.job.holds_key(bench.now.after(59_999)));
    assert!(!bench.job.holds_key(bench.now.after(60_000)));
    assert!(!TestJob::plain().job.holds_key(bench.now));
}

#[test]
fn a_bad_specification_makes_no_job() {
    let problems = Job::create(JobId::new(Uuid::nil()), JobSpec::new("", ""), Timestamp(0)).unwrap_err();
    assert_eq!(problems.len(), 2);
}

#[test]
fn a_null_result_is_heard_twice_even_from_the_store() {
    let null = JobOutcome::Done { result: RawJson::default() };
    let mut bench = TestJob::plain();
    let fence = bench.claim();
    bench.finish(fence, null.clone()).unwrap();
    bench.job = serde_json::from_value(serde_json::to_value(&bench.job).unwrap()).unwrap();
    assert_eq!(bench.finish(fence, null), Ok(0));
    let mut bench = TestJob::plain();
    let fence = bench.claim();
    bench.finish(fence, failed("x")).unwrap();
    assert!(bench.finish(fence, JobOutcome::Done { result: RawJson::default() }).is_err());
}
