//! Charges of plain jobs: the account is charged when a job is created or gets a new round, and the charge is closed
//! when the round ends. Retries within a round are not charged again. The run pays for jobs that carry its calls.

use std::borrow::Cow;

use serde_json::Value;

use super::{Job, JobSpec, State};
use crate::counter::Fence;
use crate::money::{self, Amount, Bill, MoneyFault, Movement, job_charge_key};
use crate::raw_json::RawJson;
use crate::reference::{Facts, Root};

/// The charge of one round; zero without a price or without an account.
pub(super) fn estimate(spec: &JobSpec) -> Result<Option<Amount>, MoneyFault> {
    estimate_of(spec, &spec.payload)
}

/// The same for another payload.
pub(super) fn estimate_of(spec: &JobSpec, payload: &RawJson) -> Result<Option<Amount>, MoneyFault> {
    match &spec.price {
        Some(price) if spec.account.is_some() && spec.run.is_none() => {
            money::estimate(None, Some(price), &Known { payload: payload.value(), result: None })
        }
        Some(_) | None => Ok(None),
    }
}

/// The same of a job that was checked: one whose costs cannot be told is not created.
pub(super) fn estimated(spec: &JobSpec) -> Option<Amount> {
    estimate(spec).unwrap_or_default()
}

impl Job {
    /// Postings that the account needs for the job as it stands; repeated postings are no-ops.
    pub fn movement(&self) -> Option<Movement> {
        let estimate = self.round.charge?;
        let key = job_charge_key(self.id, self.round.number);
        match &self.state {
            // The first attempt of the round, which was not granted yet.
            State::Pending { .. } | State::Queued { .. } => {
                let is_new = self.round.n_attempts <= 1 && self.latest().fence == Fence::ZERO;
                is_new.then(|| Movement::charge(key, estimate))
            }
            State::Running { .. } | State::Suspended { .. } | State::Retrying { .. } => None,
            State::Succeeded => Some(Movement::settle(&key, estimate, self.actual(estimate))),
            State::Failed { .. } | State::Canceled => Some(Movement::refund(&key, estimate)),
        }
    }

    /// The charge of this round, and the paid part of it; `None` = the job is free.
    pub fn cost(&self) -> Option<Bill> {
        let estimated = self.round.charge?;
        let actual = match &self.state {
            State::Succeeded => self.actual(estimated).min(estimated),
            State::Pending { .. }
            | State::Queued { .. }
            | State::Running { .. }
            | State::Suspended { .. }
            | State::Retrying { .. }
            | State::Failed { .. }
            | State::Canceled => Amount::ZERO,
        };
        Some(Bill { estimated, actual })
    }

    /// The cost of the round. A result with a nonsensical cost is no reason to lose the result: the
    /// estimate stands.
    fn actual(&self, estimate: Amount) -> Amount {
        let result = self.latest().result.as_ref().map(RawJson::value);
        let known = Known { payload: self.spec.payload.value(), result };
        money::actual(None, self.spec.price.as_ref(), &known, estimate).unwrap_or(estimate)
    }
}

/// Facts for a price: the payload is the params and the input of the job.
struct Known {
    payload: Value,
    result: Option<Value>,
}

impl Facts for Known {
    fn root(&self, root: &Root) -> Option<Cow<'_, Value>> {
        match root {
            Root::Params | Root::Input => Some(Cow::Borrowed(&self.payload)),
            Root::Result => self.result.as_ref().map(Cow::Borrowed),
            Root::Shared | Root::Output(_) | Root::Error(_) | Root::Status(_) | Root::Anywhere => None,
        }
    }

    fn field(&self, root: &Root, key: &str) -> Option<Cow<'_, Value>> {
        let value = match root {
            Root::Params | Root::Input => Some(&self.payload),
            Root::Result => self.result.as_ref(),
            Root::Shared | Root::Output(_) | Root::Error(_) | Root::Status(_) | Root::Anywhere => None,
        };
        value?.get(key).map(Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::id::{JobId, RunId};
    use crate::job::{JobInput, JobOutcome, JobRefusal};
    use crate::money::{AccountLedger, Price};
    use crate::retry::{Fault, FaultKind};
    use crate::time::Timestamp;

    /// Seven per second, settled by the seconds in the result.
    fn priced(payload: Value) -> JobSpec {
        let price = Price {
            unit_price: Amount(7),
            min_unit: 0,
            units: json!("$params.seconds"),
            actual_units: Some(json!("$result.seconds")),
        };
        let account = Some("payer".to_owned());
        JobSpec {
            price: Some(price),
            account,
            payload: payload.into(),
            max_retries: 2,
            ..JobSpec::new("tts", "q")
        }
    }

    struct ChargedJob {
        job: Job,
        book: AccountLedger,
        now: Timestamp,
    }

    impl ChargedJob {
        fn new(payload: Value) -> Self {
            let id = JobId::new(Uuid::from_u128(1));
            let job = Job::made(id, priced(payload), Timestamp(0)).unwrap();
            let mut book = AccountLedger::default();
            book.post(Movement::deposit("first", Amount(100))).unwrap();
            let mut bench = ChargedJob { job, book, now: Timestamp(0) };
            bench.post();
            bench
        }

        /// Everything that a job implies is posted after every change, as a server does.
        fn post(&mut self) {
            if let Some(movement) = self.job.movement() {
                self.book.post(movement).unwrap();
            }
        }

        fn tell(&mut self, input: JobInput) -> Result<(), JobRefusal> {
            self.now = self.now.after(1_000_000);
            for event in self.job.decide(input, self.now)? {
                self.job.apply(&event, self.now);
            }
            self.post();
            assert!(self.book.is_balanced());
            Ok(())
        }

        fn finish(&mut self, outcome: JobOutcome) {
            self.tell(JobInput::Claim { worker: "w".to_owned(), lease_ms: 0 }).unwrap();
            self.tell(JobInput::Finish { fence: self.job.fence, outcome }).unwrap();
        }

        fn fail(&mut self) {
            let fault = Fault::new(FaultKind::Error, "no");
            self.finish(JobOutcome::Failed { fault, retry_after_ms: None });
        }

        fn money(&self) -> (i64, i64) {
            (self.book.account().balance.0, self.book.account().held.0)
        }
    }

    #[test]
    fn a_job_is_charged_when_it_is_made_and_settled_by_its_result() {
        let mut bench = ChargedJob::new(json!({"seconds": 10}));
        assert_eq!(bench.money(), (30, 70));
        bench.finish(JobOutcome::Done { result: json!({"seconds": 4}).into() });
        assert_eq!(bench.money(), (72, 0));
        assert_eq!(bench.job.cost(), Some(Bill { estimated: Amount(70), actual: Amount(28) }));
    }

    #[test]
    fn a_result_that_says_nothing_sensible_costs_the_estimate() {
        for result in
            [json!(null), json!({"seconds": -1}), json!({"seconds": "many"}), json!({"seconds": 99})]
        {
            let mut bench = ChargedJob::new(json!({"seconds": 10}));
            bench.finish(JobOutcome::Done { result: result.clone().into() });
            assert_eq!(bench.money(), (30, 0), "{result}");
        }
    }

    #[test]
    fn retries_are_not_charged_again_and_the_last_failure_gives_everything_back() {
        let mut bench = ChargedJob::new(json!({"seconds": 10}));
        bench.fail();
        assert_eq!(bench.money(), (30, 70));
        bench.tell(JobInput::Due).unwrap();
        assert_eq!(bench.money(), (30, 70));
        bench.fail();
        assert_eq!(bench.money(), (100, 0));
        bench.tell(JobInput::Discard { reason: "enough".to_owned() }).unwrap();
        assert_eq!((bench.money(), bench.book.movements().count()), ((100, 0), 3));
    }

    #[test]
    fn a_canceled_job_is_refunded_even_if_its_worker_reports_success() {
        let mut bench = ChargedJob::new(json!({"seconds": 10}));
        bench.tell(JobInput::Claim { worker: "w".to_owned(), lease_ms: 0 }).unwrap();
        bench.tell(JobInput::Cancel).unwrap();
        assert_eq!(bench.money(), (30, 70));
        let outcome = JobOutcome::Done { result: json!({"seconds": 10}).into() };
        bench.tell(JobInput::Finish { fence: Fence(1), outcome }).unwrap();
        assert_eq!(bench.money(), (100, 0));
    }

    #[test]
    fn a_new_round_is_charged_anew_for_what_it_asks_now() {
        let mut bench = ChargedJob::new(json!({"seconds": 10}));
        bench.tell(JobInput::Cancel).unwrap();
        let patch = Some(json!({"seconds": 3}));
        let replay = |patch| JobInput::Replay { replay_id: "r".to_owned(), priority: None, patch, due: None };
        let refused = bench.tell(replay(Some(json!({"seconds": -3}))));
        assert!(matches!(refused, Err(JobRefusal::NoAmount { .. })), "{refused:?}");
        bench.tell(replay(patch)).unwrap();
        assert_eq!(bench.money(), (79, 21));
        bench.finish(JobOutcome::Done { result: json!({"seconds": 3}).into() });
        assert_eq!((bench.money(), bench.book.movements().count()), ((79, 0), 5));
    }

    #[test]
    fn a_job_that_is_given_back_or_suspended_is_not_charged_again() {
        let mut bench = ChargedJob::new(json!({"seconds": 10}));
        bench.tell(JobInput::Claim { worker: "w".to_owned(), lease_ms: 0 }).unwrap();
        bench.tell(JobInput::Release { fence: Fence(1) }).unwrap();
        bench.finish(JobOutcome::Suspended { memo: json!(1), recheck_ms: 5 });
        bench.tell(JobInput::Due).unwrap();
        assert_eq!((bench.money(), bench.book.movements().count()), ((30, 70), 2));
    }

    #[test]
    fn no_account_means_no_charge_and_an_unknown_cost_is_a_problem() {
        let id = JobId::new(Uuid::from_u128(1));
        let free = JobSpec { account: None, ..priced(json!({"seconds": 10})) };
        assert_eq!(Job::made(id, free, Timestamp(0)).unwrap().movement(), None);
        let run = Some(RunId::new(Uuid::from_u128(2)));
        let of_run = JobSpec { run, ..priced(json!({"seconds": 10})) };
        assert_eq!(Job::made(id, of_run, Timestamp(0)).unwrap().movement(), None);
        let problems = Job::made(id, priced(json!({"seconds": 1.5})), Timestamp(0)).unwrap_err();
        assert_eq!(problems[0].path, "$.payload");
    }
}
