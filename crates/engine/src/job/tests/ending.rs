//! Canceling, trying again and giving up.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::counter::Fence;

#[test]
fn a_waiting_job_is_cancelled_at_once() {
    let mut bench = TestJob::plain();
    assert_eq!(bench.ask(JobInput::Cancel), Ok(1));
    assert_eq!(bench.ask(JobInput::Cancel), Ok(0));
    assert_eq!(bench.job.display_status(), "canceled");
    assert_eq!(rows(&bench.job), [(1, "canceled")]);
    assert!(bench.ask(JobInput::Claim { worker: "w".to_owned(), lease_ms: 0 }).is_err());
}

#[test]
fn a_running_job_is_cancelled_through_its_worker() {
    let mut bench = TestJob::plain();
    let fence = bench.claim();
    bench.ask(JobInput::Cancel).unwrap();
    assert!(bench.job.cancel_requested());
    assert_eq!(bench.ask(JobInput::Cancel), Ok(0));
    bench.wait(1_000);
    bench.ask(JobInput::Extend { fence, lease_ms: 0 }).unwrap();
    assert_eq!(bench.job.verdict(fence), Verdict::Canceled);
    assert_eq!(bench.finish(fence, done(1)), Ok(1));
    assert_eq!(bench.job.verdict(fence), Verdict::Canceled);
    assert_eq!(bench.finish(fence, done(1)), Ok(0));
    assert_eq!(bench.job.display_status(), "canceled");
}

#[test]
fn a_worker_that_ignores_a_cancel_is_cut_off() {
    let mut bench = TestJob::plain();
    let fence = bench.claim();
    bench.ask(JobInput::Cancel).unwrap();
    bench.ask(JobInput::Extend { fence, lease_ms: LEASE_MS_MAX }).unwrap();
    bench.wake();
    assert_eq!(bench.now, Timestamp(1_000_000).after(CANCEL_GRACE_MS));
    assert_eq!(bench.job.display_status(), "canceled");
    assert_eq!(bench.job.verdict(fence), Verdict::Canceled);
    assert!(bench.finish(fence, done(1)).is_err());
}

#[test]
fn ended_runs_cannot_be_canceled() {
    let mut bench = TestJob::plain();
    let fence = bench.claim();
    bench.finish(fence, done(1)).unwrap();
    assert_eq!(bench.ask(JobInput::Cancel), Err(JobRefusal::Ended { status: "completed" }));
    assert_eq!(bench.ask(replay("r")), Err(JobRefusal::Completed));
    assert_eq!(bench.ask(JobInput::RetryNow), Err(JobRefusal::Completed));
}

#[test]
fn a_replay_opens_a_round_once_per_id() {
    let mut bench = TestJob::plain();
    Arc::make_mut(&mut bench.job.spec).max_retries = 2;
    Arc::make_mut(&mut bench.job.spec).payload = json!({"a": 1, "b": {"c": 2, "d": 3}}).into();
    for _ in 0..2 {
        let fence = bench.claim();
        bench.finish(fence, failed("no")).unwrap();
        if bench.job.is_open() {
            assert!(bench.ask(replay("early")).is_err());
            bench.wake();
        }
    }
    let patch = Some(json!({"a": null, "b": {"c": 9}}));
    let input = JobInput::Replay { replay_id: "r1".to_owned(), priority: Some(2), patch, due: None };
    assert_eq!(bench.ask(input.clone()), Ok(1));
    assert_eq!(bench.ask(input.clone()), Ok(0));
    assert_eq!(bench.job.spec.payload, json!({"b": {"c": 9, "d": 3}}));
    assert_eq!(bench.job.spec.priority, 2);
    assert_eq!(bench.job.round, Round { number: 2, n_attempts: 1, n_losses: 0, charge: None });
    assert_eq!(bench.job.latest().number, 3);
    let fence = bench.claim();
    assert_eq!(fence, Fence(3));
    // The round starts over, its first delay too.
    bench.finish(fence, failed("no")).unwrap();
    assert_eq!(bench.job.wake_at(), Some(bench.now.after(BASE_MS_DEFAULT)));
    bench.wake();
    let fence = bench.claim();
    bench.finish(fence, failed("no")).unwrap();
    assert_eq!(bench.ask(input), Ok(0), "a replay asked for once is not made again when the job fails again");
    assert_eq!(bench.ask(replay("r2")), Ok(1));
}

#[test]
fn retry_now_shortens_every_wait() {
    let mut bench = TestJob::plain();
    let fence = bench.claim();
    assert_eq!(bench.ask(JobInput::RetryNow), Err(JobRefusal::NotEnded { status: "running" }));
    bench.finish(fence, failed("x")).unwrap();
    assert_eq!(bench.ask(JobInput::RetryNow), Ok(1));
    assert_eq!(bench.ask(JobInput::RetryNow), Ok(0));
    assert_eq!(bench.job.display_status(), "queued");
    bench.ask(JobInput::Cancel).unwrap();
    assert_eq!(bench.ask(JobInput::RetryNow), Ok(1));
    assert_eq!(bench.job.round.number, 2);
}

#[test]
fn a_discarded_letter_is_gone_but_can_be_replayed() {
    let mut bench = TestJob::plain();
    let discard = || JobInput::Discard { reason: "known".to_owned() };
    assert_eq!(bench.ask(discard()), Err(JobRefusal::NotDead { status: "queued" }));
    Arc::make_mut(&mut bench.job.spec).max_retries = 0;
    let fence = bench.claim();
    bench.finish(fence, failed("x")).unwrap();
    assert!(bench.job.is_dead_letter());
    assert_eq!((bench.ask(discard()), bench.ask(discard())), (Ok(1), Ok(0)));
    assert!(!bench.job.is_dead_letter());
    assert_eq!(bench.job.display_status(), "failed");
    assert_eq!(bench.ask(replay("r")), Ok(1));
}

#[test]
fn a_patch_does_not_make_a_payload_larger_than_a_job_may_have() {
    let mut bench = TestJob::new(JobSpec { max_retries: 1, ..JobSpec::new("work", "q") });
    let fence = bench.claim();
    bench.finish(fence, failed("no")).unwrap();
    let patch = Some(json!({"text": "x".repeat(crate::limits::SHARED_BYTES)}));
    let replay = JobInput::Replay { replay_id: "r".to_owned(), priority: None, patch, due: None };
    let refused = bench.job.decide(replay, bench.now);
    assert_eq!(refused, Err(JobRefusal::PayloadTooMuch { excess: crate::weight::Excess::Large }));
    assert!(bench.job.is_dead_letter());
}

#[test]
fn a_result_larger_than_a_value_may_be_fails_the_job_for_good() {
    let large = || json!("x".repeat(crate::limits::SHARED_BYTES));
    let outcomes = [
        (JobOutcome::Done { result: large().into() }, "the result is larger than 8388608 bytes"),
        (JobOutcome::Suspended { memo: large(), recheck_ms: 1 }, "the memo is larger than 8388608 bytes"),
    ];
    for (outcome, message) in outcomes {
        let mut bench = TestJob::plain();
        let fence = bench.claim();
        assert_eq!(bench.finish(fence, outcome.clone()), Ok(1));
        assert!(bench.job.is_dead_letter(), "it is not tried again");
        let fault = bench.job.latest().error.clone().unwrap();
        assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::Limit, message));
        assert_eq!(bench.finish(fence, outcome), Ok(0), "the same answer again is a no-op");
    }
}
