//! Properties of a job for all sequences of inputs.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::counter::Fence;
use crate::raw_json::RawJson;
use crate::retry::Backoff;

fn outcome() -> impl Strategy<Value = JobOutcome> {
    prop_oneof![
        2 => (0i64..3).prop_map(done),
        1 => Just(JobOutcome::Done { result: RawJson::default() }),
        4 => (any::<bool>(), prop::option::of(0u64..20_000)).prop_map(|(retryable, retry_after_ms)| {
            JobOutcome::Failed { fault: Fault { retryable, ..Fault::new(FaultKind::Error, "x") }, retry_after_ms }
        }),
        2 => (0i64..3, any::<u64>()).prop_map(|(n, ms)| JobOutcome::Suspended { memo: json!(n), recheck_ms: ms >> 48 }),
    ]
}

/// Inputs whose fences are near the current one: `back` is subtracted from it.
fn input() -> impl Strategy<Value = (JobInput, u64)> {
    let back = prop_oneof![4 => Just(0u64), 1 => 1u64..3];
    let plain = prop_oneof![
        2 => Just(JobInput::Due),
        6 => any::<u64>().prop_map(|ms| JobInput::Claim { worker: "w".to_owned(), lease_ms: ms >> 40 }),
        1 => any::<u64>().prop_map(|ms| JobInput::ClaimKeptByBeats { worker: "w".to_owned(), lease_ms: ms >> 40 }),
        1 => Just(JobInput::Extend { fence: Fence(0), lease_ms: 0 }),
        4 => outcome().prop_map(|outcome| JobInput::Finish { fence: Fence(0), outcome }),
        2 => Just(JobInput::LeaseExpired { fence: Fence(0) }),
        1 => Just(JobInput::AttemptTimeout),
        1 => Just(JobInput::Cancel),
        1 => Just(JobInput::RetryNow),
        2 => (0u8..9).prop_map(|n| replay(&n.to_string())),
        1 => Just(JobInput::Discard { reason: String::new() }),
        1 => Just(JobInput::Release { fence: Fence(0) }),
    ];
    (plain, back)
}

fn with_fence(input: JobInput, fence: Fence) -> JobInput {
    match input {
        JobInput::Extend { lease_ms, .. } => JobInput::Extend { fence, lease_ms },
        JobInput::Finish { outcome, .. } => JobInput::Finish { fence, outcome },
        JobInput::LeaseExpired { .. } => JobInput::LeaseExpired { fence },
        JobInput::Release { .. } => JobInput::Release { fence },
        JobInput::Due
        | JobInput::Claim { .. }
        | JobInput::ClaimKeptByBeats { .. }
        | JobInput::AttemptTimeout
        | JobInput::Cancel
        | JobInput::RetryNow
        | JobInput::Replay { .. }
        | JobInput::Discard { .. } => input,
    }
}

proptest! {
    #[test]
    fn a_job_keeps_its_invariants_under_any_requests(
        max_retries in 0u32..5, timeout_ms in prop_oneof![Just(0u64), 1u64..60_000], exponential in any::<bool>(),
        steps in prop::collection::vec((input(), 0u64..40_000), 1..120),
    ) {
        let kind = if exponential { Backoff::Exponential } else { Backoff::Fixed };
        let backoff = JobBackoff { kind, ..JobBackoff::default() };
        let mut bench = TestJob::new(JobSpec { max_retries, timeout_ms, backoff, ..JobSpec::new("a", "b") });
        for ((input, back), gap) in steps {
            bench.wait(gap);
            let before = bench.job.clone();
            let input = with_fence(input, Fence(before.fence.0.saturating_sub(back)));
            let is_claim = matches!(input, JobInput::Claim { .. } | JobInput::ClaimKeptByBeats { .. });
            let answer = bench.ask(input.clone());
            let job = &bench.job;
            prop_assert_eq!(job.fence.0, before.fence.0 + u64::from(is_claim && answer.is_ok()), "fence moves with grants");
            prop_assert!(job.round.n_attempts <= job.spec.attempts_max());
            prop_assert!(job.round.n_losses <= LOSSES_MAX);
            prop_assert!(job.latest().number >= before.latest().number);
            let n_running = job.attempts.iter().filter(|a| a.status == AttemptStatus::Running).count();
            prop_assert!(n_running <= 1);
            prop_assert!(answer.is_ok() || *job == before, "a refusal changes nothing");
            if let JobInput::Finish { outcome: JobOutcome::Done { .. } | JobOutcome::Failed { .. }, .. } = &input {
                // A repeated report of an accepted answer is a no-op.
                if answer.is_ok() {
                    prop_assert_eq!(bench.ask(input), Ok(0));
                }
            }
            if before.state == State::Succeeded {
                prop_assert_eq!(&bench.job.state, &State::Succeeded);
            }
            prop_assert!(bench.job.overdue(bench.now).is_none() || bench.job.wake_at() <= Some(bench.now));
        }
        let replayed = Job::replay(bench.job.id, &bench.journal);
        prop_assert_eq!(replayed.as_ref(), Some(&bench.job));
        let stored: Job = serde_json::from_value(serde_json::to_value(&bench.job).unwrap()).unwrap();
        prop_assert_eq!(&stored, &bench.job);
        let text = serde_json::to_string(&bench.journal).unwrap();
        let journal: Vec<(JobEvent, Timestamp)> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&journal, &bench.journal);
        // Once workers only fail or fall silent, it ends.
        for n in 0.. {
            if !bench.job.is_open() {
                break;
            }
            prop_assert!(n < 100, "never ends: {:?}", bench.job);
            match bench.job.wake_at() {
                Some(_) => bench.wake(),
                None => { bench.claim(); }
            }
        }
    }
}
